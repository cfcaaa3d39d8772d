"""A browser for tests of the console: headless Chromium as Debian packages it, one for all tests of a file."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import Served, Start

pytest.importorskip("selenium")

from selenium.common.exceptions import (
    ElementNotInteractableException,
    NoSuchElementException,
    StaleElementReferenceException,
    TimeoutException,
)
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait
from tools.console.screenshots import chromium, dress
from tools.console.shots import WIDE

SECONDS = 60
PASSING = (NoSuchElementException, StaleElementReferenceException)  # the page was reloaded in that moment
TABS_MAX = 120  # more than any page of the tests has


class Window:
    """A browser at the console."""

    def __init__(self, browser: Chrome, link: str) -> None:
        self.browser, self.link = browser, link
        self.base = link.partition("/?")[0]

    def all(self, selector: str) -> list[Any]:
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector: str = "main") -> str:
        """The visible text of an element, or an empty string while there is no such element."""
        asked = "return document.querySelector(arguments[0])?.innerText ?? ''"
        return str(self.browser.execute_script(asked, selector))

    def press(self, key: str) -> None:
        """Presses a key in the focused element, again if the page was reloaded in that moment."""

        def is_pressed() -> bool:
            try:
                self.browser.switch_to.active_element.send_keys(key)
            except (StaleElementReferenceException, ElementNotInteractableException):
                return False
            return True

        self.wait(is_pressed)

    def wait(self, condition: Callable[[], object]) -> None:
        """Waits until the condition holds."""
        try:
            WebDriverWait(self.browser, SECONDS, ignored_exceptions=PASSING).until(lambda _: condition())
        except TimeoutException:
            raise AssertionError(f"not so in {SECONDS} s: {self.text()}") from None

    def complaints(self) -> list[str]:
        """The browser's messages about refused requests and scripts that failed."""
        return [one["message"] for one in self.browser.get_log("browser")]  # type: ignore[no-untyped-call]

    def go(self, path: str) -> None:
        self.browser.get(f"{self.base}/console/{path}")
        self.wait(lambda: self.path == f"/console/{path}".partition("?")[0] and self.all("main"))

    @property
    def path(self) -> str:
        """The path of the current page, without the server and the query."""
        return str(self.browser.current_url).removeprefix(self.base).partition("?")[0]

    def is_at(self, path: str) -> None:
        """Waits until the browser is at a page."""
        self.wait(lambda: self.path == f"/console/{path}")

    def tab_to(self, selector: str) -> None:
        """Tabs to the element that a selector names. Each element on the way must show that it has the focus."""
        for _ in range(TABS_MAX):
            self.press(Keys.TAB)
            assert self.browser.execute_script(HAS_RING), "the focus is where nobody sees it: " + self.focused()
            if self.browser.execute_script("return document.activeElement.matches(arguments[0])", selector):
                return
        raise AssertionError(f"the tabulator does not come to {selector}")

    def focused(self) -> str:
        return str(self.browser.execute_script("return document.activeElement.outerHTML"))[:300]

    def type_in(self, selector: str, text: str) -> None:
        """Tabs to a field, and types."""
        self.tab_to(selector)
        self.press(text)

    def width(self) -> int:
        return int(self.browser.execute_script("return document.documentElement.scrollWidth"))


# True if the focused element shows an outline, or if nothing has the focus.
HAS_RING = """
const one = document.activeElement, style = getComputedStyle(one), box = one.getBoundingClientRect();
return one === document.body || (style.outlineStyle !== "none" && box.width > 0 && box.height > 0);
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    """A browser that all tests of a file share, because it takes seconds to start."""
    with chromium() as one:
        yield one


@contextlib.contextmanager
def window(
    browser: Chrome, link: str, size: tuple[int, int] = WIDE, *, is_dark: bool = False, downloads: Path | None = None
) -> Iterator[Window]:
    """Opens a page in the browser as a new visitor."""
    browser.execute_cdp_cmd("Network.clearBrowserCookies", {})
    dress(browser, size, is_dark=is_dark)
    folder = {} if downloads is None else {"downloadPath": str(downloads)}
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow" if folder else "deny", **folder})
    browser.get_log("browser")  # type: ignore[no-untyped-call]
    browser.get(link)
    try:
        yield Window(browser, link)
    finally:
        browser.get("about:blank")  # ends its event stream


@pytest.fixture
def link(served: Served, start: Start) -> str:
    """A link with the launch token of a server, as people get it."""
    running = start()
    return f"{running.record['url']}?token={running.token}"
