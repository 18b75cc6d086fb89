"""What is committed of a study: small files, and a page without dead links."""

import gzip
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
from publish import LARGE_FIGURE, LARGE_TABLE, publish


def test_large_tables_are_packed_and_the_page_links_to_what_is_there(tmp_path: Path) -> None:
    study, target = tmp_path / "study", tmp_path / "docs"
    study.mkdir()
    large = "x\n" * LARGE_TABLE
    (study / "T1.csv").write_text("a\n1\n")
    (study / "F1.csv").write_text(large)
    (study / "index.html").write_text('<a href="T1.csv">T1</a> <a href="F1.csv">F1.csv</a>')
    assert publish(study, target) == ["F1.csv"]
    page = (target / "index.html").read_text()
    assert ">F1.csv.gz</a>" in page
    links = re.findall(r'href="([^"]+)"', page)
    assert links == ["T1.csv", "F1.csv.gz"]
    assert all((target / link).is_file() for link in links)
    assert gzip.decompress((target / "F1.csv.gz").read_bytes()).decode() == large
    first = (target / "F1.csv.gz").read_bytes()
    publish(study, target)
    assert (target / "F1.csv.gz").read_bytes() == first
    assert not (target / "F1.csv").exists()


def test_a_heavy_figure_is_refused(tmp_path: Path) -> None:
    (tmp_path / "F1.svg").write_text("x" * (LARGE_FIGURE + 1))
    with pytest.raises(SystemExit, match=r"F1\.svg"):
        publish(tmp_path, tmp_path / "docs")


STUDIES = ["dynamics", "erasure", "faithful", "polarity", "tracing", "transformers"]


@pytest.mark.parametrize("study", STUDIES)
def test_the_committed_pages_have_no_dead_links(study: str) -> None:
    folder = Path(__file__).parents[2] / "docs" / "results" / study
    links = re.findall(r'(?:href|src)="([^"#:]+)"', (folder / "index.html").read_text())
    assert [link for link in links if not (folder / link).is_file()] == []
