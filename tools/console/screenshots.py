"""The pictures of the console in the docs, taken by headless Chromium."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from .shots import SHOTS, WIDE, Shot

FLAGS: Final = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars --force-device-scale-factor=1"
).split()
COLOURS: Final = 128
WATCHED_SECONDS: Final = 75  # so that the pictures of rates are not empty


@contextlib.contextmanager
def chromium(size: tuple[int, int] = WIDE, *, is_dark: bool = False) -> Iterator[webdriver.Chrome]:
    """Starts a browser with a new profile. Raises: FileNotFoundError, it is not installed."""
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        raise FileNotFoundError("Chromium and its driver are needed: apt install chromium chromium-driver")
    with tempfile.TemporaryDirectory(prefix="inorder-chromium-", ignore_cleanup_errors=True) as folder:
        options = Options()
        options.binary_location = program
        for flag in (*FLAGS, f"--user-data-dir={folder}", f"--window-size={size[0]},{size[1]}"):
            options.add_argument(flag)
        browser = webdriver.Chrome(options, Service(driver))
        try:
            dress(browser, size, is_dark=is_dark)
            yield browser
        finally:
            browser.quit()


def dress(browser: webdriver.Chrome, size: tuple[int, int] = WIDE, *, is_dark: bool = False, media: str = "") -> None:
    """Sets the window size and the colours of pages; `media`: print, or as on a screen."""
    scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
    metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size[0] < 600}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": [scheme]})
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def write(store: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with _served(store) as link:
        with chromium() as browser:
            browser.get(link)
            _wait_for_rates(browser)
        for shot in SHOTS:
            with chromium(shot.size, is_dark=shot.is_dark) as browser:
                browser.get(link)
                browser.get(link.partition("/?")[0] + shot.path)
                _prepare(browser, shot)
                _keep(browser.get_screenshot_as_png(), folder / f"{shot.name}.png")
            print(folder / f"{shot.name}.png")


def _prepare(browser: webdriver.Chrome, shot: Shot) -> None:
    if shot.follows:
        browser.get(str(browser.find_element(By.CSS_SELECTOR, shot.follows).get_attribute("href")))
    if shot.opens:
        for one in browser.find_elements(By.CSS_SELECTOR, f"{shot.opens} > summary"):
            one.click()
        browser.execute_script("scrollTo(0, 0)")
    for selector, text in shot.steps:
        one = browser.find_element(By.CSS_SELECTOR, selector)
        one.send_keys(text) if text else one.click()
    browser.execute_script("scrollTo(0, 0)")


def _wait_for_rates(browser: webdriver.Chrome) -> None:
    """Waits until the server has sampled for a while, and its pictures have points."""

    def has_points(one: webdriver.Chrome) -> bool:
        drawn = one.find_elements(By.CSS_SELECTOR, ".spark .line1")
        return any(len((line.get_attribute("points") or "").split()) >= 25 for line in drawn)

    WebDriverWait(browser, WATCHED_SECONDS).until(has_points)


def _keep(data: bytes, path: Path) -> None:
    """Returns the picture as a small PNG."""
    with Image.open(io.BytesIO(data)) as picture:
        picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)


@contextlib.contextmanager
def _served(store: Path) -> Iterator[str]:
    """The link to a server of the store."""
    words = [sys.executable, "-m", "inorder", "serve", str(store), "--port", "0", "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        try:
            yield str(json.loads(server.stdout.readline())["url"])
        finally:
            server.terminate()
