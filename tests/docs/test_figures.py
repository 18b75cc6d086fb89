"""Published figures open in other programs: well-formed, in plain colours, nothing from outside."""

import io
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

RESULTS = Path(__file__).parents[2] / "docs" / "results"
FIGURES = sorted(RESULTS.rglob("*.svg"))


def test_there_are_figures() -> None:
    assert len(FIGURES) > 100


@pytest.mark.parametrize("path", FIGURES, ids=lambda path: str(path.relative_to(RESULTS)))
def test_a_figure_needs_no_page_around_it(path: Path) -> None:
    text = path.read_text()
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "viewBox" in root.attrib
    assert "var(" not in text
    assert "<script" not in text
    assert 'href="http' not in text


@pytest.mark.browser
@pytest.mark.parametrize("path", FIGURES, ids=lambda path: str(path.relative_to(RESULTS)))
def test_cairosvg_draws_a_figure(path: Path, has_browser: None) -> None:
    """Cairo is a library of the system; it comes with Chromium."""
    import cairosvg

    drawn = Image.open(io.BytesIO(cairosvg.svg2png(url=str(path), scale=0.25)))
    colours = np.unique(np.asarray(drawn.convert("RGBA")).reshape(-1, 4), axis=0)
    assert min(drawn.size) > 5
    assert len(colours) > 10
