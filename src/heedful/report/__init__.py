"""What people look at: the page of a run, its charts and its instances."""

from heedful.report.charts import CHARTS, draw
from heedful.report.instances import choose, describe
from heedful.report.page import render

__all__ = ["CHARTS", "choose", "describe", "draw", "render"]
