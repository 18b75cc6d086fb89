"""Labels of a study's figures: all of them are there, and none runs into another."""

from itertools import pairwise

import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from heedful.papers.dynamics_examples import _figure_1
from heedful.report.panels import heatmap, lines


def _drawn(figure: Figure) -> FigureCanvasAgg:
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return canvas


@pytest.mark.parametrize("count", [2, 5, 9])
@pytest.mark.parametrize("length", [6, 26])
def test_a_legend_stays_inside_its_figure_and_leaves_room(count: int, length: int) -> None:
    names = [(f"{number} " + "uniform probe of run B ")[:length].strip() for number in range(count)]
    table = pd.DataFrame(
        [{"x": x, "y": x, "curve": n, "panel": p} for x in (0, 1) for n in names for p in "ab"]
    )
    figure = lines(table, x="x", y="y", hue="curve", panel="panel")
    canvas = _drawn(figure)
    (legend,) = figure.legends
    box = legend.get_window_extent(canvas.get_renderer())
    assert [text.get_text() for text in legend.get_texts()] == names
    assert 0 <= box.x0 < box.x1 <= figure.bbox.x1
    assert min(axes.get_window_extent().height for axes in figure.axes) > 60


def test_words_below_a_heatmap_are_apart() -> None:
    made = _figure_1(None, None)  # type: ignore[arg-type]
    figure = made.draw(made.table)
    _drawn(figure)
    assert {label.get_rotation() for label in figure.axes[0].get_xticklabels()} == {40.0}
    short = pd.DataFrame([{"x": x, "y": y, "value": 1.0} for x in "abc" for y in "ab"])
    figure = heatmap(short, x="x", y="y", value="value")
    canvas = _drawn(figure)
    labels = figure.axes[0].get_xticklabels()
    assert {label.get_rotation() for label in labels} == {0.0}
    boxes = [label.get_window_extent(canvas.get_renderer()) for label in labels]
    assert all(one.x1 < other.x0 for one, other in pairwise(boxes))
