"""A Transformer's instances in a real Chromium: decisions looked up, layers and heads drawn."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from picture import chromium, show
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from heedful.importance import explain, sentence_of
from heedful.importance.layers import head_rows
from heedful.jobs.audited_attention import audited_attention
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
        "audited": audited_attention(model)._asdict(),
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
    told = panel.find_element(By.CSS_SELECTOR, ".head-shown .help").text
    assert told == "Layer 0, head 1 (--site heads:0.1)"
    line = panel.find_element(By.CSS_SELECTOR, ".head-shown .words").rect
    canvas = panel.find_element(By.CSS_SELECTOR, ".head-shown .pairs").rect
    assert canvas["y"] >= line["y"] + line["height"]  # below the words, not beside them
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


def told(panel: WebElement, kind: str) -> tuple[str, list[float]]:
    """What was done, and the probabilities that follow."""
    part = panel.find_element(By.CSS_SELECTOR, f'[data-decided="{kind}"]')
    numbers = part.find_elements(By.CSS_SELECTOR, ".probability")
    done = part.find_element(By.CSS_SELECTOR, ".done")
    return done.text, [float(number.text) for number in numbers]


def test_attention_removed_and_the_word_deleted_are_two_things(
    page: Chrome, reading: Reading
) -> None:
    opened(page, "0")
    model, panel = reader("bert"), page.find_element(By.CSS_SELECTOR, '[data-id="0"] .panel')
    assert told(panel, "attention")[0] == "The text as it is"
    word = panel.find_element(By.CSS_SELECTOR, '.stage [data-unit="1"] .unit-text')
    page.execute_script("arguments[0].click()", word)
    gone = torch.zeros(len(TEXTS), 1, reading.mask.shape[1], dtype=torch.bool)
    gone[0, 0, 1] = True
    after = decide(model, reading, erase(gone)).softmax(-1)[0, 0]
    done, said = told(panel, "attention")
    assert done == "Attention to this word in the last layer removed"
    np.testing.assert_allclose(said, after, atol=1e-4)
    shorter = read(model, model.batch(["The was unbelievable, very good!"])).logits.softmax(-1)[0]
    done, said = told(panel, "text")
    assert done == "This word deleted, the text read again"
    np.testing.assert_allclose(said, shorter, atol=1e-4)
    assert not np.allclose(shorter, after, atol=1e-3)
    page.execute_script("arguments[0].click()", word)


def test_words_removed_together_are_those_most_attended(page: Chrome, reading: Reading) -> None:
    opened(page, "0")
    model, panel = reader("bert"), page.find_element(By.CSS_SELECTOR, '[data-id="0"] .panel')
    following = panel.find_element(By.CSS_SELECTOR, '[data-action="next"]')
    for _ in range(2):
        page.execute_script("arguments[0].click()", following)
    first = reading.attention[0].argsort(descending=True)[:2].tolist()
    left = [word for unit, word in enumerate(reading.texts[0]) if unit not in first]
    wanted = read(model, model.batch([" ".join(left)])).logits.softmax(-1)[0]
    done, said = told(panel, "text")
    assert done == "These 2 words deleted, the text read again"
    np.testing.assert_allclose(said, wanted, atol=1e-4)
    other = next(u for u in range(int(reading.units[0])) if u not in first)
    word = panel.find_element(By.CSS_SELECTOR, f'.stage [data-unit="{other}"] .unit-text')
    if reading.attention[0].argsort(descending=True)[2] != other:
        page.execute_script("arguments[0].click()", word)
        part = panel.find_element(By.CSS_SELECTOR, '[data-decided="text"]')
        assert "Not computed beforehand" in part.text
    page.execute_script(
        "arguments[0].click()", panel.find_element(By.CSS_SELECTOR, '[data-action="reset"]')
    )
    assert not panel.find_element(By.CSS_SELECTOR, '[data-decided="text"]').is_displayed()


def test_words_of_a_text_are_never_markup(page: Chrome) -> None:
    opened(page, "1")
    assert page.execute_script("return window.ran") is None
    assert not page.get_log("browser")
    stage = page.find_element(By.CSS_SELECTOR, '[data-id="1"] .stage')
    assert "onerror" in str(stage.get_attribute("textContent"))
