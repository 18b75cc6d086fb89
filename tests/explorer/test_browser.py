"""The live page in a real Chromium: what a person does, and what `decide` says of it."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest
import torch
from picture import chromium, show
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select

from heedful.explorer.server import Explorer
from heedful.models import Replace, decide, erase, read, uniform
from tests.explorer.serving_models import Client, documents, layered, linear, served

pytestmark = pytest.mark.browser
TEXT = "good food and bad service"
EVIL = '<script>window.ran=1</script><img src=x onerror="window.ran=2"> good {{7*7}} שלום'
DESK, PHONE = 1280, 390
MODELS = linear(), layered()
"""Those of the page once more, for the test itself."""


@pytest.fixture(scope="module")
def explorer(has_browser: None) -> Explorer:
    return Explorer([linear("<b>linear</b>"), layered()], documents(40))


@pytest.fixture(scope="module")
def client(explorer: Explorer) -> Iterator[Client]:
    with served(explorer) as found:
        yield found


@pytest.fixture(scope="module")
def chrome(client: Client) -> Iterator[Chrome]:
    with chromium() as found:
        yield found


@pytest.fixture
def page(chrome: Chrome, client: Client) -> Iterator[Chrome]:
    """The page as it opens on a desktop; nothing may complain."""
    opened(chrome, client)
    yield chrome
    assert chrome.get_log("browser") == []


def opened(
    chrome: Chrome, client: Client, width: int = DESK, dark: bool = False, **state: Any
) -> Chrome:
    chrome.get("about:blank")
    fragment = f"#{urlencode(state)}" if state else ""
    show(chrome, f"http://127.0.0.1:{client.port}/{fragment}", width, dark=dark)
    until(lambda: all_of(chrome, '[name="model"] option'))
    if state:
        finished(chrome, 2 if "beside" in state else 1)
    return chrome


def until(holds: Callable[[], Any], seconds: float = 30) -> Any:
    end = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.03)
    return found


def all_of(place: Chrome | WebElement, selector: str) -> list[WebElement]:
    return place.find_elements(By.CSS_SELECTOR, selector)


def finished(page: Chrome, models: int = 1) -> list[WebElement]:
    """The models on the page, once all their explanations are there."""
    script = """return document.querySelectorAll('.model .panel').length === arguments[0]
      && !document.querySelector('[aria-busy]')"""
    until(lambda: page.execute_script(script, models))
    return all_of(page, ".model")


def typed(page: Chrome, text: str) -> WebElement:
    field = page.find_element(By.NAME, "text")
    field.clear()
    field.send_keys(text)
    script = """return [...document.querySelectorAll('.stage .unit-text')].length
      === arguments[0] && !document.querySelector('[aria-busy]')"""
    until(lambda: page.execute_script(script, len(text.split())))
    return all_of(page, ".model")[0]


def probabilities(model: WebElement, kind: str = "attention") -> list[float]:
    cells = all_of(model, f'[data-decided="{kind}"] .probability')
    return [] if any(c.text in ("", "–") for c in cells) else [float(cell.text) for cell in cells]


def shows(model: WebElement, wanted: Any, kind: str = "attention") -> None:
    """Waits for the numbers, which the server may have to compute."""
    until(lambda: probabilities(model, kind) == pytest.approx(wanted.tolist(), abs=5.001e-5))


def word(model: WebElement, number: int, part: str = ".unit-text") -> WebElement:
    return model.find_element(By.CSS_SELECTOR, f'.stage [data-unit="{number}"] {part}'.strip())


def weights(model: WebElement) -> np.ndarray:
    units = all_of(model, ".stage [data-unit]")
    return np.array([float(unit.get_attribute("data-weight") or "nan") for unit in units])


def told(number: int, edit: Callable[[Any], Any], text: str = TEXT) -> Any:
    """The probabilities that `decide` gives, of a model that no worker is busy with."""
    model = MODELS[number].model
    reading = read(model, model.batch([text]))
    return decide(model, reading, edit(reading))[0, 0].softmax(-1)


def without(*units: int) -> Callable[[Any], Any]:
    def edit(reading: Any) -> Any:
        gone = torch.zeros(1, 1, reading.mask.shape[1], dtype=torch.bool)
        gone[..., list(units)] = True
        return erase(gone)

    return edit


def deleted(number: int, *units: int) -> Any:
    model = MODELS[number].model
    left = " ".join(w for n, w in enumerate(TEXT.split()) if n not in units)
    return read(model, model.batch([left])).logits[0].softmax(-1)


def choose(page: Chrome, name: str, value: str) -> None:
    Select(page.find_element(By.NAME, name)).select_by_value(value)


@pytest.mark.parametrize("number", [0, 1])
def test_a_typed_text_is_decided_and_edited_as_decide_does(
    page: Chrome, explorer: Explorer, number: int
) -> None:
    choose(page, "beside", "")
    choose(page, "model", str(number))
    model = typed(page, TEXT)
    shows(model, told(number, without()))
    word(model, 0).click()
    shows(model, told(number, without(0)))
    shows(model, deleted(number, 0), "text")
    word(model, 3).click()
    shows(model, told(number, without(0, 3)))
    shows(model, deleted(number, 0, 3), "text")
    model.find_element(By.CSS_SELECTOR, '[data-action="reset"]').click()
    shows(model, told(number, without()))
    model.find_element(By.CSS_SELECTOR, '[data-action="flatten"]').click()
    shows(model, told(number, uniform))


@pytest.mark.parametrize("number", [0, 1])
def test_a_bar_is_dragged_and_the_keyboard_does_the_same(
    page: Chrome, explorer: Explorer, number: int
) -> None:
    choose(page, "beside", "")
    choose(page, "model", str(number))
    model = typed(page, TEXT)
    before = weights(model)
    top = int(before.argmax())
    bar = word(model, top, ".bar")
    half = bar.size["height"] // 2
    ActionChains(page).click_and_hold(bar).move_by_offset(0, half).release().perform()
    after = weights(model)
    assert after[top] < 0.7 * before[top]
    row = torch.from_numpy(after)[None, None]
    shows(model, told(number, lambda _: Replace(row)))
    page.execute_script("arguments[0].focus()", word(model, 0, ""))
    ActionChains(page).send_keys(Keys.ARROW_RIGHT, Keys.ENTER).perform()
    assert weights(model)[1] == 0
    row = torch.from_numpy(weights(model))[None, None]
    shows(model, told(number, lambda _: Replace(row)))
    shows(model, deleted(number, 1), "text")
    ActionChains(page).send_keys(Keys.ENTER, Keys.ARROW_UP).perform()
    assert weights(model)[1] == pytest.approx(after[1] + 0.02)


def test_every_explanation_and_its_curve_arrives(page: Chrome, explorer: Explorer) -> None:
    choose(page, "beside", "")
    choose(page, "model", "1")
    model = typed(page, TEXT)
    names = [row.get_attribute("data-method") for row in all_of(model, ".method")]
    assert {"attention", "occlusion", "trace", "value-zeroing", "random"} <= set(names)
    assert names[0] == explorer.models[1].recommended
    assert len(all_of(model, ".method .words")) == len(names)
    assert len(all_of(model, "[data-curve]")) == len(names)
    assert all_of(model, ".flow-panel")
    assert all_of(model, ".heads")
    button = model.find_element(By.CSS_SELECTOR, '[data-name="trace"]')
    page.execute_script("arguments[0].click()", button)
    assert "trace: " in model.find_element(By.CSS_SELECTOR, ".curve .help").text


def test_two_models_stand_side_by_side(page: Chrome, explorer: Explorer) -> None:
    choose(page, "model", "0")
    choose(page, "beside", "1")
    typed_into = page.find_element(By.NAME, "text")
    typed_into.send_keys(TEXT)
    first, second = finished(page, 2)
    assert first.find_element(By.TAG_NAME, "h2").text == "<b>linear</b>"
    assert abs(first.rect["y"] - second.rect["y"]) < 2
    assert first.rect["x"] + first.rect["width"] <= second.rect["x"]
    for number, model in enumerate((first, second)):
        word(model, 0).click()
        shows(model, told(number, without(0)))


def test_a_link_restores_what_was_done(chrome: Chrome, client: Client, explorer: Explorer) -> None:
    page = opened(chrome, client, text=TEXT, model=1, beside=0)
    first, second = all_of(page, ".model")
    word(first, 0).click()
    second.find_element(By.CSS_SELECTOR, '[data-action="shuffle"]').click()
    word(second, 2).click()
    row = weights(second)
    until(lambda: "gone0=0" in page.current_url and "row1=" in page.current_url)
    link = page.current_url
    page.get("about:blank")
    page.get(link)
    first, second = finished(page, 2)
    assert page.find_element(By.NAME, "text").get_attribute("value") == TEXT
    assert weights(second) == pytest.approx(row, abs=1e-5)
    shows(first, told(1, without(0)))
    shows(second, told(0, lambda _: Replace(torch.from_numpy(row)[None, None])))
    assert chrome.get_log("browser") == []


def test_work_is_cancelled_and_the_page_never_freezes(page: Chrome, explorer: Explorer) -> None:
    embeddings = explorer.models[1].model.model.bert.embeddings
    hook = embeddings.register_forward_pre_hook(lambda *_: time.sleep(0.25))
    try:
        choose(page, "beside", "")
        choose(page, "model", "1")
        page.find_element(By.NAME, "text").send_keys(TEXT)
        until(lambda: all_of(page, ".panel"))
        model = all_of(page, ".model")[0]
        assert model.get_attribute("aria-busy")
        hook_at = time.monotonic()
        word(model, 0).click()  # an edit does not wait for the explanations
        shows(model, told(1, without(0)))
        assert time.monotonic() - hook_at < 5
        assert model.get_attribute("aria-busy")
        page.find_element(By.CSS_SELECTOR, "[data-cancel]").click()
        until(lambda: not model.get_attribute("aria-busy"))
        assert "Cancelled" in model.find_element(By.CSS_SELECTOR, ".state").text
        until(lambda: not explorer.worker.in_flight, 2)
    finally:
        hook.remove()
    typed(page, TEXT + " one")


def test_markup_and_script_are_shown_as_text(page: Chrome) -> None:
    choose(page, "beside", "0")
    choose(page, "model", "1")
    page.find_element(By.NAME, "text").send_keys(EVIL)
    for model in finished(page, 2):
        written = model.find_element(By.CSS_SELECTOR, ".method .words").text
        for part in ("script", "onerror", "{{", "שלום"):
            assert part in written
        assert not all_of(model, "script, img, b b")
    assert page.execute_script("return window.ran") is None


def test_documents_are_filtered_and_picked(page: Chrome, explorer: Explorer) -> None:
    until(lambda: len(explorer.documents.decided) == 40)
    until(lambda: "read so far" not in page.find_element(By.CSS_SELECTOR, "[data-count]").text)
    choose(page, "decision", "positive")
    positive = explorer.documents.page("", "positive", "", 0)["found"]
    count = page.find_element(By.CSS_SELECTOR, "[data-count]")
    until(lambda: count.text == f"{positive} of 40 documents")
    choose(page, "decision", "")
    wanted = explorer.documents.documents[7].asked.text
    page.find_element(By.NAME, "search").send_keys(wanted)
    until(lambda: count.text.startswith("1 of 40"))
    page.execute_script("arguments[0].click()", all_of(page, ".opener")[0])
    field = page.find_element(By.NAME, "text")
    until(lambda: field.get_attribute("value") == wanted)
    finished(page, 2)


def test_a_text_that_is_too_long_is_one_sentence(page: Chrome) -> None:
    page.execute_script(
        "const t = document.querySelector('[name=text]'); t.value = 'good '.repeat(5000);"
        "t.dispatchEvent(new Event('input'))"
    )
    note = page.find_element(By.CSS_SELECTOR, "[data-note]")
    until(lambda: "25000 characters" in note.text)


def test_words_and_picture_are_saved(chrome: Chrome, client: Client, tmp_path: Path) -> None:
    page = opened(chrome, client, text='good "food", =1+1', model=0)
    allowed = {"behavior": "allow", "downloadPath": str(tmp_path)}
    page.execute_cdp_cmd("Browser.setDownloadBehavior", allowed)
    for button in all_of(page, "[data-export]"):
        page.execute_script("arguments[0].click()", button)
    until(lambda: {p.name for p in tmp_path.iterdir()} >= {"heedful.csv", "heedful.svg"})
    lines = (tmp_path / "heedful.csv").read_text().splitlines()
    assert lines[0].startswith("place,word,attention weight,")
    assert lines[1].startswith("1,good,")
    assert any(",'=" in line for line in lines)
    picture = (tmp_path / "heedful.svg").read_text()
    assert picture.startswith("<svg")
    assert picture.count(">good</text>") == len(all_of(page, ".method"))


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_nothing_scrolls_sideways_and_all_can_be_done_on_a_phone(
    chrome: Chrome, client: Client, explorer: Explorer, width: int
) -> None:
    page = opened(chrome, client, width, text=TEXT, model=1, beside=0)
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
    model = all_of(page, ".model")[0]
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", word(model, 0))
    word(model, 0).click()
    shows(model, told(1, without(0)))
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
    assert page.get_log("browser") == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [DESK, PHONE])
def test_axe_finds_no_violation(
    chrome: Chrome, client: Client, axe: str, width: int, dark: bool
) -> None:
    page = opened(chrome, client, width, dark, text=TEXT, model=1, beside=0)
    until(lambda: all_of(page, "[data-number]"))
    word(all_of(page, ".model")[0], 0).click()
    for details in all_of(page, "details"):
        page.execute_script("arguments[0].open = true", details)
    page.execute_script("document.querySelector('.head')?.click()")
    page.execute_script(axe)
    found = page.execute_async_script(
        "const done = arguments[0]; axe.run(document).then((r) => done(r.violations))"
    )
    short = [(one["id"], [node["target"] for node in one["nodes"]][:3]) for one in found]
    assert not short, json.dumps(short, indent=1)
