"""A run whose every name and word is hostile, with many classes, in a real Chromium."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from picture import chromium, show
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from heedful.report import render
from heedful.report.shown_documents import MOST_BYTES
from heedful.runs import RunFolder, write_json
from tests.demo_run import VERDICT

pytestmark = pytest.mark.browser
MARKUP = '</script><script>window.ran=1</script><img src=x onerror="window.ran=2">'
WORDS = (MARKUP, "\x1b[2J\x07", "\u202eevil\u2066", "x" * 500, "\ud800", "{{7*7}}", "good")
HUGE = "y" * 1_000_000
CLASSES = [f"{WORDS[n % 3]} {n}" for n in range(50)]
DOCUMENTS, UNITS = 100, 250


def document(number: int, random: np.random.Generator) -> dict[str, Any]:
    attention = random.dirichlet(np.ones(UNITS)).round(10)
    logits = random.normal(size=(UNITS, len(CLASSES))).round(9)
    decided = np.exp(attention @ logits)
    return {
        "id": f"{number} {WORDS[number % 3]}",
        "units": [HUGE if not number else "", *(WORDS[n % len(WORDS)] for n in range(UNITS - 1))],
        "gaps": [WORDS[1] for _ in range(UNITS)],
        "gold": number % 50,
        "decision": int(decided.argmax()),
        "probabilities": (decided / decided.sum()).tolist(),
        "attention": attention.tolist(),
        "importance": {"attention": attention.tolist()},
        "evidence": None,
        "disagreement": 0.5,
        "length": UNITS,
        "tags": [MARKUP],
        "deleted": [None] * UNITS,
        "deleted_together": [],
        "unit_logits": logits.tolist(),
        "offset": [0.0] * len(CLASSES),
    }


@pytest.fixture(scope="module")
def page(has_browser: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    random = np.random.default_rng(0)
    said = " ".join((*WORDS, HUGE))
    named = {"kind": "train", "recipe": said, "corpus": said, "seed": 0}
    run = RunFolder.create(tmp_path_factory.mktemp("hostile") / "run", named)
    shown = {
        "classes": CLASSES,
        "methods": [{"name": "attention", "sentence": said}],
        "linear": True,
        "documents": DOCUMENTS,
        # A few that fit beside many that are too large together.
        "instances": [document(number, random) for number in range(DOCUMENTS)],
    }
    for entry in shown["instances"][::4]:
        for name in ("units", "gaps", "attention", "deleted", "unit_logits"):
            entry[name] = entry[name][:40]
        entry["importance"], entry["length"] = {"attention": entry["attention"]}, 40
    write_json(run.findings / "instances.json", shown)
    write_json(run.findings / "verdict.json", VERDICT | {"sentence": said, "advice": [said]})
    run.update(audited={"documents": DOCUMENTS, "of": DOCUMENTS, "notes": {said: 3}})
    return render(run.path)


@pytest.fixture(scope="module")
def browser(page: Path) -> Iterator[Chrome]:
    with chromium() as found:
        yield found


def test_a_page_of_many_classes_is_small_and_opens_in_a_second(browser: Chrome, page: Path) -> None:
    assert MOST_BYTES / 2 < page.stat().st_size < MOST_BYTES
    # Seconds of the processor: those of the clock also tell what else this machine does.
    browser.execute_cdp_cmd("Performance.setTimeDomain", {"timeDomain": "threadTicks"})
    browser.execute_cdp_cmd("Performance.enable", {})
    show(browser, page, 1200)
    told = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    assert {one["name"]: one["value"] for one in told}["TaskDuration"] < 1
    assert len(browser.find_elements(By.CSS_SELECTOR, "[data-id]")) > 10


def test_hostile_names_and_words_are_shown_and_do_nothing(browser: Chrome, page: Path) -> None:
    show(browser, page, 1200)
    browser.get_log("browser")
    browser.find_element(By.CSS_SELECTOR, "[data-id] .opener").click()
    text = browser.execute_script("return document.body.innerText")
    assert browser.execute_script("return window.ran") is None
    assert "window.ran=1" in text
    assert not set("\x1b\x07\u202e\u2066\u2028") & set(text)
    assert max(map(len, text.split())) < 2_100
    width, room = browser.execute_script(
        "const root = document.documentElement; return [root.scrollWidth, root.clientWidth]"
    )
    assert width <= room
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
