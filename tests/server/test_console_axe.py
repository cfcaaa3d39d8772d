"""axe-core finds nothing on any page: labels, headings, roles, contrast."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("selenium")

from selenium.webdriver import Chrome
from tests.server.test_console_browser_acting import full, shop
from tests.server.windows import SECONDS, browser, link, window
from tests.tiers import gate, nightly
from tools.console.shots import PHONE, WIDE

__all__ = ["browser", "full", "link", "shop"]
ASK = "axe.run(document).then((found) => arguments[0](found.violations.map((one) => [one.id, one.nodes[0].html])))"


@pytest.mark.parametrize(
    ("size", "is_dark"),
    [
        pytest.param(WIDE, False, marks=gate, id="light"),
        pytest.param(WIDE, True, marks=nightly, id="dark"),
        pytest.param(PHONE, False, marks=nightly, id="phone-light"),
        pytest.param(PHONE, True, marks=nightly, id="phone-dark"),
    ],
)
def test_axe_finds_nothing(full: list[str], link: str, browser: Chrome, size: tuple[int, int], is_dark: bool) -> None:
    axe = pytest.importorskip("axe_core_python", reason="it brings axe-core")
    script = (Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
    browser.set_script_timeout(SECONDS)
    with window(browser, link, size, is_dark=is_dark) as seen:
        for page in full:
            seen.go(page)
            browser.execute_script("document.querySelectorAll('details').forEach((one) => one.open = true)")
            browser.execute_cdp_cmd("Runtime.evaluate", {"expression": script})
            assert browser.execute_async_script(ASK) == [], page
