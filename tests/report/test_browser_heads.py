"""A Transformer's instances in a real Chromium: erasures looked up, layers and heads drawn."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from picture import chromium, show
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from heedful.importance import explain, sentence_of
from heedful.importance.layers import head_rows
from heedful.jobs.instances import describe
from heedful.models import Reading, decide, erase, read
from heedful.report import render
from heedful.runs import RunFolder, write_json
from tests.tiny_transformers import reader

pytestmark = pytest.mark.browser
TEXTS = (
    "The food was unbelievable,  very   good!",
    '<img src=x onerror="window.ran=2"> bad </script><script>window.ran=1</script> staff',
)
METHODS = ("attention", "rollout", "attention-gradient")


@pytest.fixture(scope="module")
def reading() -> Reading:
    model = reader("bert")
    return read(model, model.batch(TEXTS))


@pytest.fixture(scope="module")
def page(
    has_browser: None, reading: Reading, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Chrome]:
    model = reader("bert")
    entries = describe(model, reading, explain(model, reading, METHODS))
    folder = tmp_path_factory.mktemp("heads") / "run"
    run = RunFolder.create(folder, {"kind": "audit", "recipe": "bert", "corpus": "none"})
    shown = {
        "classes": list(model.classes),
        "methods": [{"name": name, "sentence": sentence_of(name)} for name in METHODS],
        "linear": False,
        "documents": len(entries),
        "instances": entries,
    }
    write_json(run.findings / "instances.json", shown)
    with chromium() as browser:
        show(browser, render(folder), 1200)
        yield browser


def opened(page: Chrome, name: str) -> None:
    item = page.find_element(By.CSS_SELECTOR, f'[data-id="{name}"]')
    button = item.find_element(By.CSS_SELECTOR, ".opener")
    if button.get_attribute("aria-expanded") == "false":
        page.execute_script("arguments[0].click()", button)


def test_a_head_that_is_chosen_colours_the_words_and_draws_who_attends_to_whom(
    page: Chrome, reading: Reading
) -> None:
    opened(page, "0")
    panel = page.find_element(By.CSS_SELECTOR, '[data-id="0"] .panel')
    page.execute_script("arguments[0].open = true", panel.find_element(By.CSS_SELECTOR, ".heads"))
    heads = panel.find_elements(By.CSS_SELECTOR, ".head")
    assert len(heads) == 4
    chosen = panel.find_element(By.CSS_SELECTOR, '.head[data-layer="0"][data-head="1"]')
    page.execute_script("arguments[0].click()", chosen)
    assert chosen.get_attribute("aria-pressed") == "true"
    words = panel.find_elements(By.CSS_SELECTOR, ".head-shown .word")
    units = int(reading.units[0])
    assert len(words) == units
    script = "return arguments[0].style.getPropertyValue('--shade')"
    shades = np.array([float(page.execute_script(script, word)) for word in words])
    wanted = head_rows(reader("bert"), reading)[0, 0, 1, :units].numpy()
    np.testing.assert_allclose(shades, wanted / wanted.max(), atol=0.02)
    canvas = panel.find_element(By.CSS_SELECTOR, "canvas.pairs")
    assert page.execute_script("return arguments[0].width", canvas) == units
    written = panel.find_element(By.CSS_SELECTOR, ".head-shown .words").get_attribute("textContent")
    assert written == "The food was unbelievable, very good!"


def test_an_erased_word_shows_what_was_computed_beforehand(page: Chrome, reading: Reading) -> None:
    opened(page, "0")
    panel = page.find_element(By.CSS_SELECTOR, '[data-id="0"] .panel')
    word = panel.find_element(By.CSS_SELECTOR, '.stage [data-unit="1"] .unit-text')
    page.execute_script("arguments[0].click()", word)
    numbers = panel.find_elements(By.CSS_SELECTOR, ".probability")
    said = [float(number.text) for number in numbers]
    gone = torch.zeros(len(TEXTS), 1, reading.mask.shape[1], dtype=torch.bool)
    gone[0, 0, 1] = True
    after = decide(reader("bert"), reading, erase(gone)).softmax(-1)[0, 0]
    np.testing.assert_allclose(said, after, atol=1e-4)


def test_words_of_a_text_are_never_markup(page: Chrome) -> None:
    opened(page, "1")
    assert page.execute_script("return window.ran") is None
    assert not page.get_log("browser")
    stage = page.find_element(By.CSS_SELECTOR, '[data-id="1"] .stage')
    assert "onerror" in str(stage.get_attribute("textContent"))
