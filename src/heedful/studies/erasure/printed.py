"""What Serrano & Smith (2019) print: Tables 1 to 3 and the numbers in the text (`paper.toml`)."""

from __future__ import annotations

from heedful.reproduction.paper import Paper

PAPER = Paper.beside(__file__)
TABLE_1, TABLE_2, TABLE_3 = (
    PAPER.printed(name, ["published"]) for name in ("table_1", "table_2", "table_3")
)
MORE_THAN_HALF = {"random": 12.4, "attention": 2.8, "gradient": 0.9, "product": 0.5}
"""Amazon FLANnoenc: percent of instances with more than half of the items removed (N3)."""
LEAST_RATIO = 1.6
"""Gradient earlier over attention earlier: its minimum over the 16 encoder models (N2)."""
PUBLISHED = PAPER.stands_for
"""Which corpus of the paper each of ours stands for, or is."""
