"""Published figures open in other programs: well-formed, in plain colours, nothing from outside."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

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
