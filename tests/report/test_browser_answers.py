"""The page of answers in a real Chromium: an answer's pieces, its sources, and one taken away."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest
from picture import chromium, show
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

from heedful.audits.answer_measures import FIRST, ON_SOURCES, ORACLE
from heedful.audits.answer_verdict import judge
from heedful.audits.answers import summarise
from heedful.report import render
from heedful.runs import RunFolder, write_json

pytestmark = pytest.mark.browser
TEXTS = ("Ada wrote it.", '<img src=x onerror="window.ran=1"> Bell did not.', "It was long.")
SAID = [-1.0, -0.5]
WITHOUT = [[-4.0, -1.5], [-1.0, -0.25], [-1.5, -0.5]]


def answer() -> dict[str, Any]:
    """One answer of two pieces with three sources."""
    return {
        "name": "a", "question": "Who wrote </script>it?", "is_given": False,
        "pieces": [" Ada", " L"], "said": SAID, "without": WITHOUT,
        "sources": [{"title": "Notes", "text": t, "evidence": n == 0} for n, t in enumerate(TEXTS)],
        "scores": {"random": [0.1, 0.5, 0.2], "attention": [0.3, 0.1, 0.2],
                   ORACLE: [4.0, -0.25, 0.5]},
        "tokens": {"attention": [[0.1, 0.4, 0.2], [0.5, 0.0, 0.2]]},
    }  # fmt: skip


@pytest.fixture(scope="module")
def page(has_browser: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    folder = tmp_path_factory.mktemp("answers") / "run"
    settings = {"kind": "answers", "recipe": "lm:/home/ada/llama", "corpus": "q.jsonl"}
    run = RunFolder.create(folder, settings | {"units": "passages", "seed": 0})
    run.update(audited={"answers": 1, "of": 3, "command": "heedful audit lm:llama"})
    about = {"instance": "a", FIRST: 0.3, ON_SOURCES: 0.4, "found": 0.5, "best": 1.0}
    columns = ("drop at 1", "drop at 3", "drop at 5", "linear datamodeling score",
               "average precision", "share on evidence", "first is evidence")  # fmt: skip
    rows = [about | {"ranking": n} | dict.fromkeys(columns, 0.5) for n in answer()["scores"]]
    finding = summarise(pd.DataFrame(rows), ["A <b>note</b>."])
    write_json(run.findings / "answers.json", finding)
    write_json(run.findings / "verdict.json", judge(finding))
    write_json(run.findings / "instances.json", {"answers": [answer()]})
    with chromium() as browser:
        show(browser, render(folder), 1200)
        yield browser


def sources(page: Chrome) -> list[Any]:
    return page.find_elements(By.CSS_SELECTOR, ".source")


def told(page: Chrome) -> str:
    return page.find_element(By.CSS_SELECTOR, ".told").text


def pressed(page: Chrome, selector: str, number: int) -> None:
    page.find_elements(By.CSS_SELECTOR, selector)[number].click()


def chosen(page: Chrome, method: str) -> None:
    Select(page.find_element(By.NAME, "method")).select_by_value(method)


def test_a_source_taken_away_shows_the_stored_probability(page: Chrome) -> None:
    pressed(page, "button[name=whole]", 0)
    chosen(page, "attention")
    assert f"p = {math.exp(sum(SAID)):.3g}" in told(page)
    pressed(page, ".source", 0)
    assert f"p = {math.exp(-5.5):.3g}" in told(page)
    assert "without source 1" in told(page)
    assert sources(page)[0].get_attribute("aria-pressed") == "true"
    pressed(page, ".source", 0)
    assert f"p = {math.exp(sum(SAID)):.3g}" in told(page)


def test_a_piece_of_the_answer_has_sources_of_its_own(page: Chrome) -> None:
    pressed(page, "button[name=whole]", 0)
    chosen(page, "attention")
    assert [one.find_element(By.CSS_SELECTOR, ".line").text.split()[-1] for one in sources(page)]
    pressed(page, ".pieces button", 1)
    shown = [one.find_elements(By.CSS_SELECTOR, ".line span")[1].text for one in sources(page)]
    assert [float(value) for value in shown] == [0.5, 0.0, 0.2]
    chosen(page, ORACLE)
    shown = [one.find_elements(By.CSS_SELECTOR, ".line span")[1].text for one in sources(page)]
    assert [float(value.replace("−", "-")) for value in shown] == [1.0, -0.25, 0.0]
    pressed(page, ".source", 1)
    assert f"p = {math.exp(-0.25):.3g}" in told(page)
    chosen(page, "random")
    assert "of the whole answer, not of its pieces" in told(page)


def test_texts_are_never_markup_and_folders_are_not_told(page: Chrome) -> None:
    assert page.execute_script("return window.ran") is None
    assert "<img src=x" in sources(page)[1].text
    assert "/home/ada" not in page.page_source
    assert "A <b>note</b>." in page.find_element(By.ID, "explanations").text
    assert page.find_element(By.CSS_SELECTOR, ".answers-word").text == "Cannot tell"


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_wider_than_the_screen(page: Chrome, width: int) -> None:
    page.set_window_size(width, 900)
    wide, seen = page.execute_script(
        "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert wide <= seen
