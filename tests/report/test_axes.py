"""Plain charts: marks lie where their numbers say, names have room, pictures are exact."""

import base64
import io
import re
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.ft2font import FT2Font
from PIL import Image

from heedful.report.axes import BEYOND
from heedful.report.canvas import canvas
from heedful.report.dots import FINE, painted
from heedful.report.drawing import ACCENT, NARROW, RASTER, WIDTH, page, standalone
from heedful.report.letters import across
from heedful.report.ticks import STEPS, spelt, ticks

SVG = "{http://www.w3.org/2000/svg}"


def drawn(figure) -> ElementTree.Element:  # type: ignore[no-untyped-def]
    return ElementTree.fromstring(standalone(figure.svg("chart-it", "Why?", "So.")))


def frames(root: ElementTree.Element) -> list[tuple[float, float, float, float]]:
    """Left, top, width and height of the axes."""
    found = []
    for clip in root.iter(f"{SVG}clipPath"):
        x, y, wide, tall = (float(clip[0].get(k, 0)) for k in ("x", "y", "width", "height"))
        found.append((x + BEYOND, y + BEYOND, wide - 2 * BEYOND, tall - 2 * BEYOND))
    return found


@pytest.mark.parametrize("is_narrow", [False, True])
def test_a_dot_lies_where_its_numbers_say(is_narrow: bool) -> None:
    with page(is_narrow):
        figure, (left, right) = canvas(200, 2, (2, 1))
        for axes in (left, right):
            axes.x.limits, axes.y.limits = (0, 10), (4, -4)
            axes.points([0, 2.5, 10], [4, 0, -4], color=ACCENT, ms=4)
        root = drawn(figure)
        assert root.get("viewBox") == (f"0 0 {NARROW} 400" if is_narrow else f"0 0 {WIDTH} 200")
    dots = [(float(c.get("cx", 0)), float(c.get("cy", 0))) for c in root.iter(f"{SVG}circle")]
    for (x, y, wide, tall), (first, second, third) in zip(
        frames(root), (dots[:3], dots[3:]), strict=True
    ):
        assert first == pytest.approx((x, y + tall), abs=0.02)
        assert second == pytest.approx((x + wide / 4, y + tall / 2), abs=0.02)
        assert third == pytest.approx((x + wide, y), abs=0.02)
    if not is_narrow:  # the first is twice as wide
        assert frames(root)[0][2] == pytest.approx(2 * frames(root)[1][2], abs=0.05)


def test_lines_break_at_what_is_not_defined_and_bars_stand_on_nothing() -> None:
    figure, (axes,) = canvas(100)
    axes.plot([0, 1, 2, 3, 4], [1, 1, np.nan, 2, 2], color=ACCENT)
    axes.bars([0, 1, 2], [3, 0.5], 0.5, color=ACCENT)
    root = drawn(figure)
    (path,) = [p.get("d", "") for p in root.iter(f"{SVG}path") if "L" in p.get("d", "")]
    assert re.sub(r"[\d. ]", "", path) == "MLML"
    (_, top, _, tall), *_ = frames(root)
    high, low = (
        (float(r.get("y", 0)), float(r.get("height", 0)))
        for r in root.iter(f"{SVG}rect")
        if "fill" in r.get("style", "")
    )
    for y, height in (high, low):
        assert y + height == pytest.approx(top + tall, abs=0.02)
    assert high[1] == pytest.approx(6 * low[1], abs=0.05)


@given(
    st.floats(-1e4, 1e4),
    st.floats(1e-3, 1e4),
    st.integers(1, 9),
    st.booleans(),
)
def test_ticks_are_round_even_and_inside(low: float, span: float, most: int, share: bool) -> None:
    found = ticks(low, low + span, most, share)
    assert len(found) <= most + 1
    edge = 1e-6 * span
    assert all(low - edge <= tick <= low + span + edge for tick in found)
    if len(found) > 1:
        step = found[1] - found[0]
        assert np.allclose(np.diff(found), step)
        size = step / 10 ** np.floor(np.log10(step * (1 + 1e-9)))
        assert min(abs(size - one) for one in STEPS) < 1e-3
        # No coarser than it must be: the next finer step would be too many.
        assert step <= 0.05 + 1e-9 or step <= 2.6 * span / most
        assert len(set(spelt(found, share))) == len(found)


def test_no_name_is_wider_than_the_room_reckoned_for_it() -> None:
    font = FT2Font(str(Path(matplotlib.get_data_path()) / "fonts/ttf/DejaVuSans.ttf"))
    font.set_size(1000, 72)
    for name in (
        "probability of the decision",
        "gradient-input",
        "leave-one-out",
        "−0.25",
        "100 %",
        "Kendall τ, in hundredths",
        "Δ JS divergence of the output",
        "WWW MMM",
    ):
        real = sum(font.load_char(ord(c)).linearHoriAdvance for c in name) / 65536 / 1000
        assert real <= 1.03 * across(name, 1) < 1.2 * real, name


def test_what_is_beside_a_dot_at_the_edge_stays_on_the_chart() -> None:
    figure, (axes,) = canvas(100)
    axes.points([0, 1], [0, 1], color=ACCENT, ms=4)
    for x in (0, 1):
        axes.text(x, x, "a long name", beside=2)
    first, last = [t for t in drawn(figure).iter(f"{SVG}text") if t.text == "a long name"]
    assert first.get("text-anchor") == "start"
    assert last.get("text-anchor") == "end"


def test_a_painted_scatter_is_a_disc_at_each_point_darker_where_several_lie() -> None:
    x, y, radius, alpha = np.array([10.0, 10, 30, np.nan]), np.array([5.0, 5, 9, 1]), 2.0, 0.6
    element = ElementTree.fromstring(painted(x, y, radius, RASTER, alpha))
    data = base64.b64decode(element.get("href", "").partition(",")[2])
    picture = np.asarray(Image.open(io.BytesIO(data)).convert("RGBA"))
    left, top = float(element.get("x", 0)), float(element.get("y", 0))
    wide, tall = float(element.get("width", 0)), float(element.get("height", 0))
    assert picture.shape[:2] == (round(tall * FINE), round(wide * FINE))
    assert "#" + bytes(picture[0, 0, :3]).hex() == RASTER

    def seen(a: float, b: float) -> int:
        return int(picture[round((b - top) * FINE), round((a - left) * FINE), 3])

    assert seen(10, 5) == round(255 * (1 - 0.4**2))
    assert seen(30, 9) == seen(31, 9) == round(255 * 0.6)
    assert seen(20, 7) == seen(30, 9 + radius + 0.7) == 0
    area = (picture[..., 3] == round(255 * 0.6)).sum() / FINE**2
    assert area == pytest.approx(np.pi * radius**2, rel=0.1)


def test_a_legend_takes_as_many_columns_as_fit_and_its_own_room() -> None:
    for is_above in (False, True):
        figure, (axes,) = canvas(200)
        for number in range(5):
            name = f"a name that takes a third of it, {number}"
            axes.plot([0, 1], [0, number], color=ACCENT, label=name)
        figure.legend(3, is_above)
        root = drawn(figure)
        names = [t for t in root.iter(f"{SVG}text") if (t.text or "").startswith("a name")]
        assert len({t.get("x") for t in names}) == 2
        ((_, top, _, tall),) = frames(root)
        heights = [float(t.get("y", 0)) for t in names]
        assert (max(heights) < top) if is_above else (min(heights) > top + tall)
