"""Films a run's page while words are erased: python docs/film.py RUN docs/erasing.gif [TEXT]."""

from __future__ import annotations

import base64
import io
import sys
from pathlib import Path

from picture import chromium, show
from PIL import Image
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

WIDTH, PAUSE, MOST = 820, 900, 6
"""Pixels, milliseconds a picture, words that are erased."""


def film(run: Path, out: Path, text: str = "") -> int:
    """Erases the most attended words of a text, the first if none is named; counts the pictures."""
    with chromium() as browser:
        show(browser, run / "report.html", WIDTH)
        found = f'[data-id="{text}"]' if text else "[data-id]"
        while not browser.find_elements(By.CSS_SELECTOR, found):
            browser.find_element(By.CSS_SELECTOR, "[data-more]").click()
        item = browser.find_element(By.CSS_SELECTOR, found)
        opener = item.find_element(By.CSS_SELECTOR, ".opener")
        if opener.get_attribute("aria-expanded") == "false":
            opener.click()
        pictures = [taken(browser, item)]
        for _ in range(MOST):
            # By key: the mouse would rest on a word and show its numbers.
            item.find_element(By.CSS_SELECTOR, '[data-action="next"]').send_keys(Keys.ENTER)
            pictures.append(taken(browser, item))
    pause = [2 * PAUSE, *[PAUSE] * (len(pictures) - 2), 3 * PAUSE]
    pictures[0].save(out, save_all=True, append_images=pictures[1:], duration=pause, loop=0)
    return len(pictures)


def taken(browser: Chrome, element: object) -> Image.Image:
    """A picture of the top of an element."""
    script = "const r = arguments[0].getBoundingClientRect(); return [r.top + scrollY, r.height]"
    top, height = browser.execute_script(script, element)
    clip = {"x": 0, "y": top, "width": WIDTH, "height": min(height, 560), "scale": 1}
    shot = browser.execute_cdp_cmd(
        "Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip, "format": "png"}
    )
    picture = Image.open(io.BytesIO(base64.b64decode(shot["data"])))
    return picture.convert("P", palette=Image.Palette.ADAPTIVE, colors=64)


if __name__ == "__main__":
    print(film(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:]), "pictures")
