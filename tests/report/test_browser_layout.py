"""A page of many methods in a real Chromium, on a desk and on a phone: nothing cut, all legible."""

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from picture import chromium, show
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from heedful.audits.finding import Finding, Measure
from heedful.importance import METHODS
from heedful.report import render
from heedful.runs import RunFolder, write_json
from heedful.statistics import Estimate
from tests.demo_run import VERDICT

pytestmark = pytest.mark.browser
NAMES = [name for name in METHODS if name != "squared gradient"][:19]
BAR = {"value": -0.41, "low": -0.48, "high": -0.36, "n": 9, "interval": "wilson", "undefined": 0}
COLUMNS = ("comprehensiveness", "sufficiency", "claims belied", "order kept", "AUPRC")
TEXTS = "return [...document.querySelectorAll(arguments[0])].filter((e) => e.checkVisibility())"


def place(number: int, method: str) -> dict[str, Any]:
    return {
        "method": method,
        "place": 0 if method == "random" else number,
        "standing": "worse than random",
        "faithfulness": BAR,
        "beyond_random": BAR,
        "is_best": False,
        "beside": dict.fromkeys(COLUMNS, BAR),
    }


@pytest.fixture(scope="module")
def page(has_browser: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = RunFolder.create(tmp_path_factory.mktemp("layout") / "run", {"kind": "audit"})
    ranking = {
        "sentence": "One sentence.",
        "recommendation": "",
        "recommended": NAMES[-1],
        "places": [place(number, method) for number, method in enumerate(NAMES, 1)],
    }
    tests = [*VERDICT["tests"], VERDICT["tests"][0] | {"value": -0.13, "low": -0.17, "high": -0.1}]
    known = {"caption": "A long sentence. " * 12, "columns": NAMES[:7], "rows": [[*range(7)]]}
    verdict = VERDICT | {"calibration": known, "word": "no", "tests": tests, "ranking": ranking}
    write_json(run.findings / "verdict.json", verdict)
    noise = np.random.default_rng(0).uniform(-1, 1, (len(NAMES), len(NAMES)))
    curves = {name: [BAR | {"value": 0.1 * n}] * 2 for n, name in enumerate(NAMES)}
    drawn: dict[str, dict[str, Any]] = {
        "agreement": {"methods": NAMES, "Kendall τ": noise.tolist()},
        "input_erasure": {
            "methods": NAMES,
            "shares": [0.1, 0.5],
            "removed": dict.fromkeys(("comprehensiveness", "sufficiency", "flips"), curves),
        },
        "randomisation": {"methods": NAMES, "down to": ["a", "b"], "τ": curves},
        "violation": {
            "methods": NAMES,
            "violations": [BAR] * len(NAMES),
            "chance": [0.5] * len(NAMES),
            "effect as claimed": [BAR] * len(NAMES),
        },
    }
    measures = (
        Measure("violations, against what chance would give", Estimate.from_json(BAR), "x"),
    )
    for name, data in drawn.items():
        write_json(run.findings / f"{name}.json", Finding(name, "?", "!", measures, name, data))
    return render(run.path)


@pytest.fixture(scope="module")
def browser(page: Path) -> Iterator[Chrome]:
    with chromium() as found:
        yield found


@pytest.mark.parametrize("width", [1280, 390])
def test_no_word_of_an_outcome_is_broken(browser: Chrome, page: Path, width: int) -> None:
    show(browser, page, width)
    for word in browser.find_elements(By.CSS_SELECTOR, ".outcome-word"):
        assert word.size["height"] < 30
    for line in browser.find_elements(By.CSS_SELECTOR, ".tests .value"):
        right = line.location["x"] + line.size["width"]
        assert right <= width
        assert browser.execute_script("return arguments[0].scrollWidth", line) <= line.size["width"]


def test_the_ranking_is_whole_on_a_desk_and_marks_what_is_recommended(
    browser: Chrome, page: Path
) -> None:
    show(browser, page, 1280)
    table = browser.find_element(By.CSS_SELECTOR, ".ranking")
    frame = table.find_element(By.XPATH, "..")
    assert table.size["width"] <= frame.size["width"]
    assert browser.execute_script("return arguments[0].scrollWidth", frame) <= frame.size["width"]
    (marked,) = table.find_elements(By.CSS_SELECTOR, ".recommended")
    assert marked.find_element(By.XPATH, "..").text.startswith(NAMES[-1])


@pytest.mark.parametrize("width", [1280, 390])
def test_no_sentence_has_to_be_scrolled_and_names_of_measures_are_not_a_word_a_line(
    browser: Chrome, page: Path, width: int
) -> None:
    show(browser, page, width)
    browser.execute_script(
        "document.querySelectorAll('details').forEach((d) => { d.open = true; })"
    )
    right = "return arguments[0].map((p) => p.getBoundingClientRect().right)"
    sentences = browser.execute_script(TEXTS, "p, li, caption")
    assert any("A long sentence." in one.text for one in sentences)
    assert max(browser.execute_script(right, sentences)) <= width
    names = browser.execute_script(TEXTS, ".finding tbody th")
    assert names[0].text == "claims belied, against what chance would give"
    assert max(name.size["height"] for name in names) < 100  # seven words in four lines


@pytest.mark.parametrize(("width", "least"), [(1280, 9.0), (390, 10.0)])
def test_letters_of_charts_are_large_enough_to_read(
    browser: Chrome, page: Path, width: int, least: float
) -> None:
    show(browser, page, width)
    texts = browser.execute_script(TEXTS, ".chart svg text")
    assert len(texts) > 100
    script = """return arguments[0].map((text) => parseFloat(getComputedStyle(text).fontSize)
      * text.ownerSVGElement.getBoundingClientRect().width
      / text.ownerSVGElement.viewBox.baseVal.width)"""
    assert min(browser.execute_script(script, texts)) >= least
    cut = """return arguments[0].map((text) => { const one = text.getBoundingClientRect(),
      all = text.ownerSVGElement.getBoundingClientRect();
      return Math.max(all.left - one.left, one.right - all.right); })"""
    assert max(browser.execute_script(cut, texts)) <= 2
    scroll = browser.execute_script("return document.documentElement.scrollWidth")
    assert scroll <= width


@pytest.mark.parametrize("width", [1280, 390])
def test_numbers_and_names_of_the_heat_map_do_not_run_into_each_other(
    browser: Chrome, page: Path, width: int
) -> None:
    show(browser, page, width)
    texts = browser.execute_script(TEXTS, "#test-agreement .chart svg text")
    script = """return arguments[0].map((text) => { const box = text.getBBox(),
      at = text.getCTM();
      return [at.a, at.b, at.e, at.f, box.x, box.y, box.width, box.height]; })"""
    level, turned = [], []
    for a, b, e, f, x, y, wide, high in browser.execute_script(script, texts):
        if abs(b) < 1e-6:
            level.append((e + a * x, f + a * y, a * wide, a * high))
        else:
            turned.append(e)
    assert len(turned) == len(NAMES)
    for (x, y, wide, _), (u, v, other, _) in combinations(level, 2):
        apart = abs(y - v) > 4 or x + wide <= u or u + other <= x
        assert apart
    assert np.diff(sorted(turned)).min() >= 9
