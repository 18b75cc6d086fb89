"""The committed pages of the studies in a real Chromium, on a desk and on a phone."""

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from picture import chromium, show
from selenium.webdriver import Chrome

pytestmark = pytest.mark.browser
RESULTS = Path(__file__).parents[2] / "docs" / "results"
PAGES = sorted(path for path in RESULTS.rglob("index.html"))
MOST = 45_000
"""Pixels of height; erasure had 70,554 and faithful 77,312 with a claim's sentence in every row."""
CUT = """
return [...document.querySelectorAll(arguments[0])]
  .filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1)
  .map((one) => (one.closest("[id]")?.id ?? "") + " " + one.scrollWidth)
"""


@pytest.fixture(scope="module")
def browser(has_browser: None) -> Iterator[Chrome]:
    with chromium() as found:
        yield found


def test_there_are_pages() -> None:
    assert len(PAGES) >= 7


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.parent.name)
def test_nothing_is_cut_off_on_a_desk(browser: Chrome, path: Path) -> None:
    show(browser, path, 1300)
    assert browser.execute_script("return document.documentElement.scrollWidth") == 1300
    assert browser.execute_script(CUT, ".wide, .claims, .picture, p, dd, li") == []
    assert browser.execute_script("return document.documentElement.scrollHeight") < MOST
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.parent.name)
def test_on_a_phone_only_tables_of_numbers_scroll(browser: Chrome, path: Path) -> None:
    show(browser, path, 390, dark=True)
    assert browser.execute_script("return document.documentElement.scrollWidth") == 390
    assert browser.execute_script(CUT, ".claims, .claims td, p, dd, li, .picture") == []
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.parent.name)
def test_the_claims_are_those_of_the_file_and_each_is_said_once(path: Path) -> None:
    """`python docs/publish.py docs/results` mends it."""
    claims = json.loads((path.parent / "claims.json").read_text())
    text = path.read_text()
    body = unescape(text[text.index('<section id="claims">') : text.index('id="artifacts"')])
    heads = re.findall(r'<tr class="says">.*?</tr>', body, re.DOTALL)
    told = {claim["id"]: claim["claim"] for claim in claims}
    assert len(heads) == len(told)
    for head, (name, sentence) in zip(heads, told.items(), strict=True):
        assert f">{name}</span> {sentence} <span" in head
    words = re.findall(r'<td class="verdict ([a-z-]+)">', body)
    folded = [len(one.split(", ")) for one in re.findall(r"<summary>on (.*?)</summary>", body)]
    assert len(words) - len(folded) + sum(folded) == len(claims)
    for claim in claims:
        reasons = [part["reason"] for part in claim["parts"] if "reason" in part]
        # What cannot be measured is folded, with the whole reason instead of the parts.
        is_whole = not reasons or claim["verdict"] == "not measurable"
        assert all(one in body for one in ([claim["reason"]] if is_whole else reasons)), claim["id"]
