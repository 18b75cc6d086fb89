"""The live page's files: the report's own components, and text that stays text."""

from heedful.explorer.page import SCRIPTS, explore_page, explore_script, explore_style
from heedful.report.html import asset
from heedful.report.page import SCRIPTS as REPORT_SCRIPTS


def test_the_page_is_made_of_the_reports_components() -> None:
    assert set(REPORT_SCRIPTS) <= set(SCRIPTS)
    assert all(asset(name) in explore_script() for name in REPORT_SCRIPTS)
    assert explore_style().startswith(asset("page.css"))


def test_the_name_of_a_model_is_text() -> None:
    page = explore_page(["<script>alert(1)</script>"])
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


def test_nothing_comes_from_elsewhere() -> None:
    for text in (explore_page(["a"]), explore_script(), explore_style()):
        assert "http://" not in text
        assert "https://" not in text
    assert "innerHTML" not in explore_script()
