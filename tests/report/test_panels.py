"""Labels of a study's figures: all of them are there, and none runs into another."""

from itertools import pairwise

import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from heedful.report.panels import heatmap, lines
from heedful.studies.dynamics.examples import _figure_1


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


@pytest.mark.slow
def test_words_below_a_heatmap_are_apart() -> None:
    made = _figure_1(None)  # type: ignore[arg-type]
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


def test_a_logarithmic_axis_shows_its_start_at_0_and_words_apart() -> None:
    steps = [0, 10, 50, 250, 4_000, 36_000]
    table = pd.DataFrame([{"step": s, "y": s, "panel": p} for s in steps for p in "abc"])
    figure = lines(table, x="step", y="y", panel="panel", log=True)
    canvas = _drawn(figure)
    for axes in figure.axes:
        shown = [label for label in axes.get_xticklabels() if label.get_text()]
        assert [label.get_text() for label in shown] == ["0", "10", "100", "1k", "10k"]
        boxes = [label.get_window_extent(canvas.get_renderer()) for label in shown]
        assert all(one.x1 <= other.x0 for one, other in pairwise(boxes))
        places = axes.transData.transform([(s, 0) for s in steps])[:, 0]
        assert all(b - a > 3 for a, b in pairwise(places))
