"""What people look at: the page of a run and its charts, drawn from files without any model."""

from heedful.report.charts import CHARTS, draw
from heedful.report.page import render

__all__ = ["CHARTS", "draw", "render"]
