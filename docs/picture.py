"""Takes a picture of a run's page: python docs/picture.py RUN OUT.png [--width 1200] [--dark]."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


def browser_paths() -> tuple[str, str] | None:
    """Chromium and its driver, or None where either is missing."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
    driver = shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


@contextmanager
def chromium() -> Iterator[Chrome]:
    """Lends a headless Chromium with an empty profile of its own."""
    paths = browser_paths()
    if paths is None:
        raise SystemExit("No Chromium with chromedriver here; install both to take pictures.")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = Options()
        options.binary_location = paths[0]
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        browser = Chrome(options=options, service=Service(paths[1]))
        try:
            yield browser
        finally:
            browser.quit()


def show(
    browser: Chrome, page: Path | str, width: int, height: int = 900, dark: bool = False
) -> None:
    """Opens the page in a window of that size, whatever the least window of the system is."""
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    features = [scheme, {"name": "prefers-reduced-motion", "value": "reduce"}]
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(page if isinstance(page, str) else page.resolve().as_uri())


def picture(
    run_folder: Path,
    out_png: Path,
    width: int = 1200,
    dark: bool = False,
    height: int | None = None,
    at: str | None = None,
) -> Path:
    """The path of a picture of the run's page: all of it, or `height` from the element `at` on."""
    import base64

    with chromium() as browser:
        show(browser, Path(run_folder) / "report.html", width, dark=dark)
        top, full = 0.0, browser.execute_script("return document.documentElement.scrollHeight")
        if at:
            script = "return document.querySelector(arguments[0]).getBoundingClientRect().top"
            top = browser.execute_script(script + " + scrollY", at)
        clip: dict[str, Any] = {"x": 0, "y": top, "width": width, "height": height or full - top}
        shot = browser.execute_cdp_cmd(
            "Page.captureScreenshot",
            {"captureBeyondViewport": True, "clip": clip | {"scale": 1}, "format": "png"},
        )
    out_png.write_bytes(base64.b64decode(shot["data"]))
    return out_png


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--width", type=int, default=1200)
    parser.add_argument("--height", type=int)
    parser.add_argument("--at", help="CSS selector where the picture begins")
    parser.add_argument("--dark", action="store_true")
    chosen = parser.parse_args()
    picture(chosen.run, chosen.out, chosen.width, chosen.dark, chosen.height, chosen.at)
