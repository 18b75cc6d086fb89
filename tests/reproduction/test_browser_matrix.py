"""The committed page of all claims, in a real Chromium: what a reader sees is in claims.json."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from picture import chromium, show
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

pytestmark = pytest.mark.browser
RESULTS = Path(__file__).parents[2] / "docs" / "results"
PAGE = RESULTS / "claims.html"
CLAIMS: dict[str, list[dict[str, Any]]] = {
    path.parent.name: json.loads(path.read_text()) for path in sorted(RESULTS.glob("*/claims.json"))
}
OPEN_ALL = """
document.querySelector("main").hidden = true;  // or it is laid out anew for every sign
const found = [];
for (const mark of document.querySelectorAll(".mark")) {
  mark.click();
  const dialog = document.querySelector("dialog");
  found.push({
    opens: mark.dataset.opens,
    head: dialog.querySelector("h2").textContent,
    text: dialog.textContent,
    values: [...dialog.querySelectorAll("td.value:not(.count)")].map((cell) => cell.textContent),
    drawn: dialog.querySelectorAll(".parts .interval").length,
    lacking: [...dialog.querySelectorAll(".lacking dt")].map((name) => name.textContent),
    command: dialog.querySelector("pre")?.textContent ?? "",
    pictures: [...dialog.querySelectorAll("img")].map((image) => image.getAttribute("src")),
    links: [...dialog.querySelectorAll("a")].map((link) => link.getAttribute("href")),
  });
  dialog.close();
}
return found;
"""
TOO_WIDE = """
return [...document.querySelectorAll("body, dialog, dialog *, .matrix, .filters, .tally")]
  .filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1
    && one.clientWidth > 0 && !["inline", "table-cell"].includes(getComputedStyle(one).display))
  .map((one) => one.tagName + "." + one.className)
"""


@pytest.fixture(scope="module")
def browser(has_browser: None) -> Iterator[Chrome]:
    with chromium() as found:
        yield found


@pytest.fixture
def page(browser: Chrome) -> Iterator[Chrome]:
    show(browser, PAGE, 1300)
    yield browser
    assert browser.get_log("browser") == []


@pytest.fixture(scope="module")
def opened(browser: Chrome) -> list[dict[str, Any]]:
    show(browser, PAGE, 1300)
    found: list[dict[str, Any]] = browser.execute_script(OPEN_ALL)
    browser.get_log("browser")  # Chromium remarks on so many new addresses in a second
    return found


def number(text: str) -> float:
    return float(text.replace("−", "-"))


def test_every_verdict_of_every_claim_is_opened_by_one_sign(opened: list[dict[str, Any]]) -> None:
    keys = [key for one in opened for key in one["opens"].split(" ")]
    said = [f"{s}/{one['id']}/{one['corpus']}" for s, claims in CLAIMS.items() for one in claims]
    assert sorted(keys) == sorted(said)


def test_an_opened_sign_tells_verdict_number_interval_and_command(
    opened: list[dict[str, Any]],
) -> None:
    known = {f"{s}/{one['id']}/{one['corpus']}": one for s, c in CLAIMS.items() for one in c}
    for one in opened:
        key, *more = one["opens"].split(" ")
        claim = known[key]
        assert one["head"].startswith(f"{claim['verdict']} on "), key
        assert claim["claim"] in one["text"]
        if more:
            assert one["lacking"] == [known[name]["corpus"] for name in (key, *more)]
            assert all(known[name]["reason"] in one["text"] for name in (key, *more))
            continue
        parts = claim["parts"] or [claim]
        assert claim["reason"] in one["text"]
        for shown, part in zip(one["values"], parts, strict=True):
            assert (shown == "–") == (part["ours"] is None), key
            if part["ours"] is not None:
                assert number(shown) == pytest.approx(part["ours"], rel=0.06), key
        assert one["drawn"] == sum(part["interval"] is not None for part in parts)
        study = key.partition("/")[0]
        command = f"heedful reproduce {study} --scale paper --only {claim['id']}"
        every = claim["corpus"] == "all"
        assert one["command"] == (command if every else f"{command} --corpora {claim['corpus']}")


def test_every_picture_and_link_leads_to_what_is_there(opened: list[dict[str, Any]]) -> None:
    named = {name for one in opened for name in one["pictures"]}
    assert len(named) > 50
    assert [name for name in sorted(named) if not (RESULTS / name).is_file()] == []
    anchors = {s: set(re.findall(r'id="([^"]+)"', (RESULTS / s / "index.html").read_text()))
               for s in CLAIMS}  # fmt: skip
    for link in sorted({link for one in opened for link in one["links"]}):
        file, _, anchor = link.partition("#")
        assert anchor in anchors[file.partition("/")[0]], link


def test_filters_leave_what_was_asked_for(page: Chrome) -> None:
    study, outcome = (Select(page.find_element(By.NAME, name)) for name in ("study", "outcome"))
    output = page.find_element(By.CSS_SELECTOR, ".filters output")
    assert output.text == f"{sum(len({c['id'] for c in own}) for own in CLAIMS.values())} claims"
    for name, claims in CLAIMS.items():
        study.select_by_visible_text(name)
        for word in ("confirmed", "refuted", "undecided", "not measurable"):
            outcome.select_by_visible_text(word)
            asked = {claim["id"] for claim in claims if claim["verdict"] == word}
            rows = page.find_elements(By.CSS_SELECTOR, ".claim:not([hidden]) .id")
            shown = [row.get_attribute("textContent") for row in rows]
            assert set(shown) == asked, (name, word)
            assert output.text == f"{len(asked)} claim{'s' * (len(asked) != 1)}"
    page.find_element(By.CSS_SELECTOR, ".filters [type=reset]").click()
    words = page.find_element(By.NAME, "words")
    words.send_keys("fai-1")
    own = {claim["id"] for claim in CLAIMS["faithful"] if claim["id"].startswith("FAI-1")}
    assert output.text == f"{len(own)} claims"
    words.send_keys(" of no paper")
    assert output.text == "0 claims"


def test_the_keyboard_opens_and_closes_and_stays_where_it_was(page: Chrome) -> None:
    first = page.find_element(By.CSS_SELECTOR, ".mark")
    page.find_element(By.CSS_SELECTOR, ".filters [type=reset]").send_keys(Keys.TAB, Keys.TAB)
    assert page.switch_to.active_element == first
    first.send_keys(Keys.ENTER)
    assert page.find_element(By.CSS_SELECTOR, "dialog[open] h2").is_displayed()
    assert page.current_url.endswith("#" + first.get_attribute("data-opens"))
    page.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert page.find_elements(By.CSS_SELECTOR, "dialog[open]") == []
    assert page.switch_to.active_element == first
    assert "#" not in page.current_url


def test_an_address_names_a_verdict(browser: Chrome) -> None:
    show(browser, f"{PAGE.as_uri()}#faithful/FAI-2/sst", 1300)
    which = browser.find_element(By.CSS_SELECTOR, "dialog[open] .which").text
    assert which == "faithful · FAI-2"
    browser.get("about:blank")


def test_a_sentence_stands_once_and_absent_data_is_folded(page: Chrome) -> None:
    rows = page.execute_script(
        "return [...document.querySelectorAll('.claim')].map((row) => [row.querySelector('.id')"
        ".nextSibling.textContent, ...[...row.querySelectorAll('td')].map((cell) =>"
        " cell.querySelectorAll('.not-measurable').length)])"
    )
    said = {(s, one["id"]): one["claim"] for s, claims in CLAIMS.items() for one in claims}
    assert Counter(sentence for sentence, *_ in rows) == Counter(said.values())
    assert max(count for _, *counts in rows for count in counts) == 1
    text = PAGE.read_text()
    told = text[text.index('id="told"') :]
    repeated = [one for one in set(said.values()) if told.count(json.dumps(one)[1:-1]) > 1]
    assert len(repeated) <= sum(count > 1 for count in Counter(said.values()).values())


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1300, 390])
def test_nothing_is_cut_off(browser: Chrome, width: int, dark: bool) -> None:
    show(browser, PAGE, width, dark=dark)
    assert browser.execute_script("return document.documentElement.scrollWidth") == width
    assert browser.execute_script(TOO_WIDE) == []
    keys = ["faithful/FAI-2/all", "dynamics/DYN-1/sst", "erasure/ERA-4/imdb-stars"]
    longest = max((c for own in CLAIMS.values() for c in own), key=lambda c: len(c["parts"]))
    keys += [
        next(f"{s}/{longest['id']}/{longest['corpus']}" for s in CLAIMS if longest in CLAIMS[s])
    ]
    for key in keys:
        browser.execute_script(f"location.hash = {json.dumps(key)}")
        browser.execute_async_script("requestAnimationFrame(() => setTimeout(arguments[0]))")
        head = browser.find_element(By.CSS_SELECTOR, "dialog[open] .which").text
        assert head.split(" · ") == key.split("/")[:2]
        assert browser.execute_script(TOO_WIDE) == []
    ink, paper = browser.execute_script(
        "const style = getComputedStyle(document.querySelector('dialog'));"
        "return [style.color, style.backgroundColor]"
    )
    assert (brightness(ink) > brightness(paper)) == dark


def brightness(colour: str) -> float:
    return sum(map(float, re.findall(r"[\d.]+", colour)[:3]))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1300, 390])
def test_axe_finds_no_violation(browser: Chrome, axe: str, width: int, dark: bool) -> None:
    """With a verdict open and filters set, so that the page is small enough to be looked at."""
    show(browser, PAGE, width, dark=dark)
    browser.find_element(By.NAME, "words").send_keys("FAI-2")
    browser.execute_script(axe)
    script = "const done = arguments[0]; axe.run(document).then((r) => done(r.violations))"
    for key in ("", "#faithful/FAI-2/all"):
        browser.execute_script("location.hash = arguments[0]", key)
        browser.execute_async_script("requestAnimationFrame(() => setTimeout(arguments[0]))")
        assert len(browser.find_elements(By.CSS_SELECTOR, "dialog[open]")) == bool(key)
        found = browser.execute_async_script(script)
        short = [(one["id"], [node["target"] for node in one["nodes"]][:3]) for one in found]
        assert not short, json.dumps(short, indent=1)
