"""The console in a browser: headless Chromium as Debian packages it, with a server in a separate process."""

from __future__ import annotations

import pytest
from tests.server.conftest import Served, Start

import inorder
from inorder import Flags

pytest.importorskip("selenium")

from selenium.webdriver import Chrome, Keys
from tests.server.windows import browser, link, window
from tests.tiers import gate, nightly
from tools.console.shots import PHONE

__all__ = ["browser", "link"]
HOSTILE = "<img src=x onerror=document.title='owned'>"


@gate
def test_the_link_opens_a_list_of_queues_that_is_updated_live(served: Served, link: str, browser: Chrome) -> None:
    with inorder.connect(served.store) as qm, window(browser, link) as seen:
        assert seen.browser.current_url == f"{seen.base}/console/"
        seen.wait(lambda: "Q1" in seen.text(".queues"))
        qm.put("Q1", b"first")
        seen.wait(lambda: "1" in seen.text("#queue-1 td"))
        assert seen.complaints() == []


@nightly
def test_an_open_group_stays_open_while_the_page_is_updated(served: Served, link: str, browser: Chrome) -> None:
    with inorder.connect(served.store) as qm, window(browser, link) as seen:
        qm.put("Q1", b"1", group_id=b"one", flags=Flags.IN_GROUP)
        seen.browser.get(f"{seen.base}/console/queue/Q1")
        seen.all("details.group summary")[0].click()
        seen.wait(lambda: seen.all("details.group[open]"))
        qm.put("Q1", b"3", group_id=b"one", sequence_number=3, flags=Flags.LAST_IN_GROUP)
        seen.wait(lambda: "missing: sequence 2" in seen.text("details.group"))
        assert seen.all("details.group[open]"), "the page was loaded again, and what was open is shut"
        assert seen.complaints() == []


@nightly
def test_the_current_row_and_the_ticked_messages_stay_while_the_page_is_updated(
    served: Served, link: str, browser: Chrome
) -> None:
    with inorder.connect(served.store) as qm, window(browser, link) as seen:
        qm.put_many("Q1", [b"1", b"2", b"3"])
        seen.go("queue/Q1?order=physical")
        seen.press("j")
        seen.press("j")
        seen.press("x")
        qm.put("Q1", b"4")
        seen.wait(lambda: len(seen.all(".messages tbody tr")) == 4)
        seen.wait(lambda: [one.is_selected() for one in seen.all(".messages input")] == [False, True, False, False])
        seen.press("j")
        seen.press("x")
        seen.wait(lambda: [one.is_selected() for one in seen.all(".messages input")] == [False, True, True, False])
        assert seen.complaints() == []


@gate
def test_the_pages_can_be_navigated_by_keyboard(served: Served, link: str, browser: Chrome) -> None:
    with inorder.connect(served.store) as qm, window(browser, link) as seen:
        qm.put_many("Q1", [b"one", b"two"])
        seen.press("j")
        seen.press(Keys.ENTER)
        seen.wait(lambda: seen.browser.current_url.endswith("/console/queue/Q1"))
        seen.press("?")
        seen.wait(lambda: seen.all("dialog#keys[open]"))
        seen.press(Keys.ESCAPE)
        seen.wait(lambda: not seen.all("dialog#keys[open]"))
        seen.press("/")
        seen.press("body")
        assert seen.all("input[name=selector]")[0].get_attribute("value") == "body"
        seen.press(Keys.ESCAPE)
        seen.press("j")
        seen.press("j")
        seen.press("k")
        seen.press(Keys.ENTER)
        seen.wait(lambda: "/message/" in seen.browser.current_url)
        seen.wait(lambda: "one" in seen.text(".data"))
        assert seen.complaints() == []


@nightly
def test_a_page_whose_session_has_ended_goes_to_the_log_in(served: Served, link: str, browser: Chrome) -> None:
    with inorder.connect(served.store) as qm, window(browser, link) as seen:
        seen.browser.delete_all_cookies()
        qm.put("Q1", b"something happens")
        seen.wait(lambda: "/console/log-in" in seen.browser.current_url)


@nightly
def test_a_page_reports_a_lost_server_and_reconnects_after_its_restart(
    served: Served, start: Start, browser: Chrome
) -> None:
    first = start()
    port = first.url.rpartition(":")[2]
    with window(browser, f"{first.record['url']}?token={first.token}") as seen:
        seen.wait(lambda: not seen.all("body[data-lost]"))
        first.kill()
        seen.wait(lambda: "The server does not answer" in seen.text("body"))
        start("--port", port)
        seen.wait(lambda: "/console/log-in" in seen.browser.current_url)  # a restart ends all sessions


@gate
def test_hostile_messages_are_shown_as_text(served: Served, link: str, browser: Chrome) -> None:
    with inorder.connect(served.store) as qm, window(browser, link) as seen:
        qm.put("Q1", HOSTILE.encode(), group_id=b"<b>group", flags=Flags.LAST_IN_GROUP, properties={"a": HOSTILE})
        for path in ("/console/", "/console/queue/Q1?show=properties&show=body&show=group"):
            seen.browser.get(seen.base + path)
            assert seen.browser.title != "owned"
        assert HOSTILE in seen.text(".messages")
        seen.browser.get(seen.all(".messages td a")[0].get_attribute("href"))
        assert HOSTILE in seen.text(".data")
        assert seen.browser.title != "owned"
        assert seen.complaints() == []


@gate
def test_a_visitor_can_log_in_by_hand_and_log_out(served: Served, start: Start, browser: Chrome) -> None:
    running = start()
    with window(browser, f"{running.record['url']}console/queue/Q1") as seen:
        seen.wait(lambda: "/console/log-in" in seen.browser.current_url)
        seen.wait(lambda: seen.browser.switch_to.active_element.get_attribute("name") == "name")
        seen.press("ann")
        seen.type_in("input[name=password]", "not the token" + Keys.ENTER)
        seen.wait(lambda: "is not correct" in seen.text(".problem"))
        seen.type_in("input[name=password]", running.token + Keys.ENTER)
        seen.wait(lambda: seen.browser.current_url.endswith("/console/queue/Q1"))
        seen.all(".who button")[0].click()
        seen.wait(lambda: "/console/log-in" in seen.browser.current_url)
        seen.browser.get(f"{running.record['url']}console/")
        assert "/console/log-in" in seen.browser.current_url


CUT_OFF = """
return [...document.querySelectorAll("main .wide, main .scroll")]
  .filter((one) => one.offsetParent && one.scrollWidth > one.clientWidth)
  .map((one) => one.innerText.slice(0, 60));
"""
BROKEN_WORDS = """
document.querySelector(".choice").open = true;
return [...document.querySelectorAll(".sheet label")]
  .filter((one) => one.offsetHeight > 32 || getComputedStyle(one).borderTopWidth !== "0px")
  .map((one) => one.innerText);
"""


@nightly
@pytest.mark.parametrize("size", [(1280, 800), PHONE], ids=["wide", "phone"])
def test_no_column_of_a_table_is_cut_off(served: Served, link: str, browser: Chrome, size: tuple[int, int]) -> None:
    with inorder.connect(served.store) as qm, window(browser, link, size=size) as seen:
        qm.put_many("Q1", [b"1", b"2"])
        qm.get("Q1", confirm_id=7)
        seen.wait(lambda: seen.all(".spark"))  # the widest form of the table
        for page in ("", "queue/Q1", "held", "api"):
            seen.go(page)
            seen.browser.execute_script("document.querySelectorAll('#opened').forEach((one) => { one.open = true; })")
            assert seen.browser.execute_script(CUT_OFF) == [], f"/console/{page} has tables that go on to the right"
        seen.go("queue/Q1")
        assert seen.browser.execute_script(BROKEN_WORDS) == [], "the names of columns are broken, or framed"
