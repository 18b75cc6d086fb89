"""The page in a real Chromium: what a reader does, and what `decide` says of it."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from picture import chromium, show
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select

from heedful.models import Replace, decide, erase, read, uniform
from tests.demo_run import Demo, demo, written

pytestmark = pytest.mark.browser
EVIL = (
    '<script>window.ran=1</script> </script> <img src=x onerror="window.ran=2"> "q" שלום \u202egood'
)
LONG = " ".join(["good bad dull film"] * 110)


@pytest.fixture(scope="module")
def run(has_browser: None, tmp_path_factory: pytest.TempPathFactory) -> Demo:
    extra = [written("evil", EVIL, 1), written("long", LONG, 0), written("single", "good", 1)]
    return demo(tmp_path_factory.mktemp("browser") / "run", extra=extra)


@pytest.fixture(scope="module")
def browser(run: Demo) -> Iterator[Chrome]:
    with chromium() as found:
        yield found


@pytest.fixture
def page(browser: Chrome, run: Demo) -> Chrome:
    """The page, freshly opened on a desktop in light colours."""
    show(browser, run.page, 1200)
    browser.execute_script("try { localStorage.clear() } catch {}")
    browser.get_log("browser")
    return browser


def opened(page: Chrome, name: str) -> WebElement:
    """The open panel of one instance, found by the words of its list entry's name."""
    Select(page.find_element(By.NAME, "order")).select_by_value("id")
    while not page.find_elements(By.CSS_SELECTOR, f'[data-id="{name}"]'):
        page.find_element(By.CSS_SELECTOR, "[data-more]").click()
    item = page.find_element(By.CSS_SELECTOR, f'[data-id="{name}"]')
    button = item.find_element(By.CSS_SELECTOR, ".opener")
    page.execute_script("arguments[0].scrollIntoView({block: 'start', behavior: 'instant'})", item)
    if button.get_attribute("aria-expanded") == "false":
        button.click()
    return item.find_element(By.CSS_SELECTOR, ".panel")


def probabilities(panel: WebElement) -> list[float]:
    """Those under the attention that is shown."""
    cells = panel.find_elements(By.CSS_SELECTOR, '[data-decided="attention"] .probability')
    return [float(cell.text) for cell in cells]


def weights(panel: WebElement) -> np.ndarray:
    units = panel.find_elements(By.CSS_SELECTOR, ".stage [data-unit]")
    return np.array([float(unit.get_attribute("data-weight") or "nan") for unit in units])


def unit(panel: WebElement, index: int, part: str = "") -> WebElement:
    return panel.find_element(By.CSS_SELECTOR, f'.stage [data-unit="{index}"] {part}'.strip())


def press(panel: WebElement, action: str) -> None:
    panel.find_element(By.CSS_SELECTOR, f'[data-action="{action}"]').click()


def told(run: Demo, name: str, edit: Any) -> Any:
    """The probabilities that `decide` gives one document; `edit` makes it from the reading."""
    reading = run.readings[name]
    row = reading.names.index(name)
    logits = decide(run.model, reading, edit(reading, row))[row, 0]
    return pytest.approx(logits.softmax(-1).tolist(), abs=5.001e-5)


def without(*units: int) -> Any:
    def edit(reading: Any, row: int) -> Any:
        gone = torch.zeros(len(reading.names), 1, reading.mask.shape[1], dtype=torch.bool)
        gone[row, 0, list(units)] = True
        return erase(gone)

    return edit


def attending(row_weights: np.ndarray) -> Any:
    def edit(reading: Any, row: int) -> Any:
        attention = torch.zeros(len(reading.names), 1, reading.mask.shape[1], dtype=torch.double)
        attention[row, 0, : len(row_weights)] = torch.from_numpy(row_weights)
        return Replace(attention)

    return edit


def planted(run: Demo, place: int = 0) -> str:
    """An instance that is decided by several words."""
    reading = next(iter(run.readings.values()))
    return reading.names[place]


def top_unit(run: Demo, name: str) -> int:
    reading = run.readings[name]
    return int(reading.attention[reading.names.index(name)].argmax())


def test_a_word_erased_with_the_mouse_decides_as_decide_says(page: Chrome, run: Demo) -> None:
    name = planted(run)
    panel, top = opened(page, name), top_unit(run, name)
    assert probabilities(panel) == told(run, name, without())
    unit(panel, top, ".unit-text").click()
    assert probabilities(panel) == told(run, name, without(top))
    assert unit(panel, top).get_attribute("aria-pressed") == "true"
    other = (top + 1) % len(weights(panel))
    unit(panel, other, ".unit-text").click()
    assert probabilities(panel) == told(run, name, without(top, other))
    unit(panel, top, ".unit-text").click()
    assert probabilities(panel) == told(run, name, without(other))
    press(panel, "reset")
    assert probabilities(panel) == told(run, name, without())
    assert "TVD 0.0000" in panel.text


def test_the_word_itself_deleted_stands_beside_its_attention_removed(
    page: Chrome, run: Demo
) -> None:
    name = planted(run)
    panel, top = opened(page, name), top_unit(run, name)
    text = panel.find_element(By.CSS_SELECTOR, '[data-decided="text"]')
    assert not text.is_displayed()
    unit(panel, top, ".unit-text").click()
    reading = run.readings[name]
    row = reading.names.index(name)
    words = [word for place, word in enumerate(reading.texts[row]) if place != top]
    again = read(run.model, run.model.batch([" ".join(words)])).logits.softmax(-1)[0]
    cells = text.find_elements(By.CSS_SELECTOR, ".probability")
    assert [float(cell.text) for cell in cells] == pytest.approx(again.tolist(), abs=1e-4)
    said = [part.text for part in panel.find_elements(By.CSS_SELECTOR, ".done")]
    assert said == ["Attention to this word removed", "This word deleted, the text read again"]


def test_numbers_under_a_resting_pointer_are_those_of_now(page: Chrome, run: Demo) -> None:
    name = planted(run)
    panel, top = opened(page, name), top_unit(run, name)
    word = unit(panel, top, ".unit-text")
    ActionChains(page).move_to_element(word).perform()
    tip = page.find_element(By.ID, "tooltip")
    assert f"attention now\n{weights(panel)[top]:.4f}" in tip.text
    word.click()
    assert "attention now\n0.0000" in tip.text


def test_the_first_example_is_neither_two_words_nor_a_long_text(page: Chrome, run: Demo) -> None:
    panel = page.find_element(By.CSS_SELECTOR, ".panel")
    assert 6 <= len(weights(panel)) <= 40


def test_a_dragged_bar_moves_attention_and_the_decision(page: Chrome, run: Demo) -> None:
    name = planted(run, 1)
    panel, top = opened(page, name), top_unit(run, name)
    before = weights(panel)
    assert before.sum() == pytest.approx(1)
    bar = unit(panel, top, ".bar")
    height = bar.size["height"]
    ActionChains(page).click_and_hold(bar).move_by_offset(0, height // 2).release().perform()
    after = weights(panel)
    # The tallest bar stands for the largest weight: half a bar down is half of it less.
    assert after[top] == pytest.approx(before[top] * (1 - (height // 2) / height), abs=1e-6)
    others = np.arange(len(before)) != top
    ratio = (1 - after[top]) / (1 - before[top])
    assert after[others] == pytest.approx(before[others] * ratio)
    assert probabilities(panel) == told(run, name, attending(after))
    tvd = np.abs(after - before).sum() / 2
    assert f"TVD {tvd:.4f}" in panel.text


def test_the_keyboard_does_all_the_mouse_does(page: Chrome, run: Demo) -> None:
    name = planted(run, 2)
    panel = opened(page, name)
    before = weights(panel)
    page.execute_script("arguments[0].focus()", unit(panel, 0))
    keys = ActionChains(page)
    keys.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_UP, Keys.ARROW_UP).perform()
    assert page.switch_to.active_element == unit(panel, 1)
    after = weights(panel)
    assert after[1] == pytest.approx(before[1] + 0.04)
    assert probabilities(panel) == told(run, name, attending(after))
    ActionChains(page).send_keys(Keys.ARROW_LEFT, Keys.ENTER).perform()
    assert unit(panel, 0).get_attribute("aria-pressed") == "true"
    assert weights(panel)[0] == 0
    assert probabilities(panel) == told(run, name, attending(weights(panel)))
    ActionChains(page).send_keys(Keys.SPACE).perform()
    assert weights(panel) == pytest.approx(after)
    tip = page.find_element(By.ID, "tooltip")
    assert tip.is_displayed()
    assert "leave-one-out" in tip.text
    ActionChains(page).send_keys(Keys.ESCAPE).perform()
    assert not tip.is_displayed()


def test_flatten_is_uniform_and_shuffle_keeps_the_weights(page: Chrome, run: Demo) -> None:
    name = planted(run, 3)
    panel = opened(page, name)
    before = weights(panel)
    press(panel, "shuffle")
    shuffled = weights(panel)
    assert sorted(shuffled) == pytest.approx(sorted(before))
    assert not np.allclose(shuffled, before)
    assert probabilities(panel) == told(run, name, attending(shuffled))
    press(panel, "flatten")
    assert weights(panel) == pytest.approx(np.full(len(before), 1 / len(before)))
    assert probabilities(panel) == told(run, name, lambda reading, _: uniform(reading))


def test_a_long_document_is_folded_and_exact(page: Chrome, run: Demo) -> None:
    panel = opened(page, "long")
    assert len(weights(panel)) == 401
    assert "not shown one by one" in panel.text
    assert probabilities(panel) == told(run, "long", without())
    press(panel, "flatten")
    assert probabilities(panel) == told(run, "long", lambda reading, _: uniform(reading))
    reading = run.readings["long"]
    attention = reading.attention[0]
    tvd = float((attention - 1 / len(attention)).abs().sum() / 2)
    assert f"TVD {tvd:.4f}" in panel.text


def test_with_nothing_left_the_offset_decides(page: Chrome, run: Demo) -> None:
    panel = opened(page, "single")
    unit(panel, 0, ".unit-text").click()
    assert probabilities(panel) == told(run, "single", without(0))
    assert "offset alone decides" in panel.text


def test_a_flip_is_said(page: Chrome, run: Demo) -> None:
    reading = next(iter(run.readings.values()))
    for row in range(len(reading.names)):
        top = int(reading.attention[row].argmax())
        erased = decide(run.model, reading, without(top)(reading, row))[row, 0]
        if int(erased.argmax()) != int(reading.decision[row]):
            break
    else:
        pytest.fail("no decision flips in the demonstration run")
    panel = opened(page, reading.names[row])
    message = panel.find_element(By.CSS_SELECTOR, ".message")
    assert "The model decides" in message.text
    unit(panel, top, ".unit-text").click()
    classes = run.model.classes
    decided, now = classes[int(reading.decision[row])], classes[int(erased.argmax())]
    assert message.text == f"The decision flips from {decided} to {now}."


def test_markup_and_script_are_shown_and_not_run(page: Chrome, run: Demo) -> None:
    panel = opened(page, "evil")
    shown = [u.text for u in panel.find_elements(By.CSS_SELECTOR, ".unit-text")]
    assert shown[:3] == ["<script>window.ran=1</script>", "</script>", "<img"]
    assert "שלום" in shown
    assert page.execute_script("return window.ran") is None
    assert not panel.find_elements(By.CSS_SELECTOR, "script, img")
    assert probabilities(panel) == told(run, "evil", without())


def test_every_method_stands_side_by_side_with_numbers_on_hover(page: Chrome, run: Demo) -> None:
    name = planted(run, 4)
    panel = opened(page, name)
    rows = panel.find_elements(By.CSS_SELECTOR, ".method")
    assert {row.get_attribute("data-method") for row in rows} >= {"random", "attention", "gradient"}
    word = rows[1].find_element(By.CSS_SELECTOR, '[data-unit="2"]')
    ActionChains(page).move_to_element(word).perform()
    tip = page.find_element(By.ID, "tooltip")
    assert f"{weights(panel)[2]:.4f}" in tip.text
    assert len(panel.find_elements(By.CSS_SELECTOR, ".lit")) == len(rows) + 1


def test_instances_are_sorted_filtered_and_found(page: Chrome, run: Demo) -> None:
    def shown() -> list[str]:
        items = page.find_elements(By.CSS_SELECTOR, ".instance")
        return [item.get_attribute("data-id") or "" for item in items]

    def decided(name: str) -> int:
        reading = run.readings[name]
        return int(reading.decision[reading.names.index(name)])

    everything = len(run.readings)
    assert f"{everything} of {everything}" in page.find_element(By.ID, "instances").text
    assert len(shown()) == 20
    Select(page.find_element(By.NAME, "class")).select_by_value("1")
    assert {decided(name) for name in shown()} == {1}
    Select(page.find_element(By.NAME, "class")).select_by_value("")
    Select(page.find_element(By.NAME, "order")).select_by_value("longest")
    assert shown()[0] == "long"
    Select(page.find_element(By.NAME, "order")).select_by_value("unsure")
    cells = page.find_elements(By.CSS_SELECTOR, ".opener .number")
    confidences = [float(cell.text) for cell in cells]
    assert confidences == sorted(confidences)
    page.find_element(By.NAME, "search").send_keys("שלום")
    assert shown() == ["evil"]


@pytest.mark.parametrize("width", [375, 700, 1200])
def test_nothing_scrolls_sideways_and_nothing_complains(
    browser: Chrome, run: Demo, width: int
) -> None:
    show(browser, run.page, width)
    for name in (planted(run), "evil"):
        opened(browser, name)
    scroll = browser.execute_script("return document.documentElement.scrollWidth")
    assert scroll <= width
    assert browser.get_log("browser") == []


def test_colours_follow_the_system_and_the_button(page: Chrome, run: Demo) -> None:
    def background() -> int:
        colour = page.execute_script("return getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in colour.strip("rgb()").split(",")[:3])

    assert background() > 600
    show(page, run.page, 1200, dark=True)
    assert background() < 150
    ink = page.execute_script(
        "return getComputedStyle(document.querySelector('.chart svg text')).fill"
    )
    assert sum(int(part) for part in ink.strip("rgb()").split(",")[:3]) > 300
    page.find_element(By.CSS_SELECTOR, "[data-theme-button]").click()
    assert background() > 600
    assert page.get_log("browser") == []
