"""The traced attention on the page, in a real Chromium: what a click shows is what was traced."""

from __future__ import annotations

import numpy as np
import pytest
from picture import chromium, show
from selenium.webdriver.common.by import By

import heedful
from heedful.corpora import planted
from heedful.jobs.settings import settings_of
from heedful.models import lat
from heedful.models.tracing import layers_of

pytestmark = pytest.mark.browser
HEADS, LAYERS = 2, 2


@pytest.fixture(scope="module")
def run(has_browser, tmp_path_factory):
    out = tmp_path_factory.mktemp("flow") / "run"
    corpus = planted(2, "short", sizes={"train": 60, "dev": 20, "test": 6})
    sizes = {"embedding_dim": 12, "layers": LAYERS, "heads": HEADS, "head_dim": 8}
    settings = settings_of({"model": sizes, "train": {"epochs": 1}})
    heedful.train("transformer", corpus, out, settings=settings)
    heedful.audit(out, corpus, out, audits=["erasure"], methods=["attention"])
    return out


def test_a_head_and_a_layer_that_are_clicked_show_their_shares(run):
    model = heedful.load(run)
    with chromium() as browser:
        show(browser, run / "report.html", 1000)
        panel = browser.find_element(By.CSS_SELECTOR, ".flow-panel")
        panel.find_element(By.TAG_NAME, "summary").click()
        words = [w.text for w in panel.find_elements(By.CSS_SELECTOR, ".flow-words .unit-text")]
        stack = layers_of(model, model.batch([" ".join(words)]))
        shares = lat(stack).shares[:, 0].numpy()

        def shown():
            found = panel.find_elements(By.CSS_SELECTOR, ".flow-words .unit-text")
            return np.array([float(word.get_attribute("title")) for word in found])

        def click(name):
            panel.find_element(By.CSS_SELECTOR, f'[aria-label="{name}"]').click()

        assert shown() == pytest.approx(shares[0].sum(0), abs=3e-4)
        click("head 1")
        assert shown() == pytest.approx(shares[0, 1], abs=2e-4)
        click("layer 0")
        assert shown() == pytest.approx(shares[1, 1], abs=2e-4)
        caption = panel.find_element(By.CSS_SELECTOR, "[role=status]").text
        assert "head 1" in caption
        assert "layer 0" in caption
        click("head 1")
        assert shown() == pytest.approx(shares[1].sum(0), abs=3e-4)
        assert not [line for line in browser.get_log("browser") if line["level"] == "SEVERE"]
