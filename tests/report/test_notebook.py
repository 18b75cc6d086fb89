"""What a notebook shows: coloured words and the verdict card, without a script, light and dark."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pytest
from picture import chromium, show

from heedful.audits.finding import Finding
from heedful.audits.verdict import judge
from heedful.jobs.audited import Audited
from heedful.jobs.explain import Explanation
from heedful.report.notebook import OPEN, colours
from tests.demo_run import VERDICT

EVIL = '<script>window.ran=1</script> good <img src=x onerror="window.ran=2">  bad'


def explained(text: str = "The soup was good, but  bad!") -> Explanation:
    """An explanation made by hand, of the words between spaces."""
    spans = tuple((found.start(), found.end()) for found in re.finditer(r"\S+", text))
    units = tuple(text[start:stop].lower() for start, stop in spans)
    falling = tuple(1 / (1 + place) for place in range(len(units)))
    signed = tuple((-1) ** place * value for place, value in enumerate(falling))
    return Explanation(
        units=units,
        decision="neg",
        probabilities={"neg": 0.75, "pos": 0.25},
        importance={"occlusion": signed, "attention": falling, "random": falling[::-1]},
        target="neg",
        spans=spans,
        text=text,
        unknown=("soup",),
    )


def audited(sentence: str = "Attention is a hint.") -> Audited:
    found = judge({}, 12)
    shown = type(found)(**{**vars(found), "word": "partly", "sentence": sentence})
    findings: dict[str, Finding] = {}
    place = Path("runs/mine")
    return Audited(shown, findings, place, place / "report.html", 12)


def words_of(card: str, method: str) -> list[tuple[str, bool, float]]:
    """Each word of a method's line, whether it speaks against, and its shade."""
    line = card.split(f"<b>{method}</b>")[1].split("</p></div>")[0]
    found = re.findall(r'class="word( against)?" style="--shade:([\d.]+)"[^>]*>(.*?)</bdi>', line)
    return [(html.unescape(word), bool(against), float(shade)) for against, shade, word in found]


def test_words_are_as_written_and_shaded_by_their_share_of_the_largest() -> None:
    card = explained()._repr_html_()
    found = words_of(card, "occlusion")
    assert [word for word, _, _ in found] == ["The", "soup", "was", "good,", "but", "bad!"]
    assert [against for _, against, _ in found] == [False, True] * 3
    assert [shade for _, _, shade in found] == [1, 0.5, 0.333, 0.25, 0.2, 0.167]
    assert "  <bdi" in card  # white space as it was
    assert card.index("<b>attention</b>") < card.index("<details>") < card.index("<b>random</b>")
    assert OPEN == 2


def test_all_text_is_escaped_and_there_is_no_script() -> None:
    for card in (explained(EVIL)._repr_html_(), audited(EVIL)._repr_html_()):
        assert not re.search(r"<(script|img|link|iframe)", card)
        assert "onerror=&#34;" in card or "&lt;script&gt;" in card
        assert "http" not in card


def test_the_short_forms_are_short_and_the_rest_is_data() -> None:
    one = explained()
    assert repr(one) == (
        "Explanation(neg 0.750; occlusion: the 1, soup -0.5, was 0.333, good, -0.25, but 0.2)"
    )
    assert str(one) == repr(one)
    frame = one.to_frame()
    assert list(frame.columns) == ["occlusion", "attention", "random"]
    assert list(frame.index) == list(one.units)
    assert frame.loc["soup", "occlusion"] == -0.5
    assert one.to_json()["importance"]["attention"][0] == 1
    assert repr(audited()) == "Audited('partly', 12 documents, 'runs/mine/report.html')"
    assert "PARTLY" in str(audited())


def test_the_card_has_the_tests_with_their_intervals() -> None:
    from heedful.report.notebook import verdict_card

    card = verdict_card(VERDICT, 60, "test 90.0\xa0%", "report.html")
    assert "31\xa0% [27, 35]" in card
    assert "not measured" in card
    assert "accuracy test 90.0\xa0%" in card


def test_colours_are_the_page_s_own() -> None:
    assert colours().count(".heedful {") == 2
    assert "prefers-color-scheme: dark" in colours()
    assert ":root" not in colours()


CONTRAST = """
const parse = (c) => c.match(/[\\d.]+/g).map(Number);
const light = (c) => { const [r, g, b] = c.slice(0, 3).map((x) => { x /= 255;
  return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4; });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const all = '.heedful p, .heedful span, .heedful b, .heedful bdi';
return [...document.querySelectorAll(all)].map((e) => {
  const card = parse(getComputedStyle(e.closest('.heedful')).backgroundColor);
  const own = parse(getComputedStyle(e).backgroundColor), alpha = own.length > 3 ? own[3] : 1;
  const back = [0, 1, 2].map((i) => own[i] * alpha + card[i] * (1 - alpha));
  const [a, b] = [light(parse(getComputedStyle(e).color)), light(back)];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
});
"""


@pytest.mark.browser
@pytest.mark.usefixtures("has_browser")
def test_cards_in_chromium_light_and_dark(tmp_path: Path) -> None:
    cards = explained(EVIL)._repr_html_() + audited()._repr_html_()
    page = tmp_path / "cards.html"
    page.write_text(f"<!doctype html><meta charset=utf-8><body>{cards}", encoding="utf-8")
    papers: list[Any] = []
    with chromium() as browser:
        for dark in (False, True):
            show(browser, page, 900, dark=dark)
            assert min(browser.execute_script(CONTRAST)) >= 4.5
            papers.append(browser.execute_script(
                "return getComputedStyle(document.querySelector('.heedful')).backgroundColor"
            ))  # fmt: skip
            text = browser.execute_script("return document.querySelector('.words').textContent")
            assert text == EVIL
            assert browser.execute_script("return window.ran") is None
            strongest, second = browser.execute_script(
                "return [...document.querySelectorAll('.words bdi')].slice(0, 2)"
                ".map((word) => getComputedStyle(word).backgroundColor)"
            )
            assert "0.56)" in strongest
            assert "0.28)" in second
            assert strongest.split(",")[:3] != second.split(",")[:3]  # for, and against
            browser.save_screenshot(str(tmp_path / f"cards-{'dark' if dark else 'light'}.png"))
    assert papers[0] != papers[1]
