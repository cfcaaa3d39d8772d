"""Use of the console in a browser: by keys alone, on a phone, in dark mode, without script, on paper.

axe-core finds no fault in the labels, headings, roles and contrast of any page.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from tests.helpers.support import bodies_at
from tests.server.conftest import Served
from tests.server.windows import SECONDS, browser, link, window
from tests.tiers import gate, nightly
from tools.console.shots import PHONE, WIDE

import inorder
from inorder import QueueManager, Report
from inorder.client.bulk import ClaimReader
from inorder.mq import channels
from inorder.stores.seam.views import ScheduleRecord, TaskMinute, TaskRecord, WorkerRecord
from inorder.stores.sqlite import SqliteStore
from inorder.testing import ManualClock

pytest.importorskip("selenium")

from selenium.webdriver import Keys
from tests.server.windows import Window
from tools.console.screenshots import dress

__all__ = ["browser", "link"]
LONG = "A.QUEUE.WITH.A.NAME.AS.LONG.AS.NAMES.MAY.EVER.BE"
REFUSED = re.compile(r"the server responded with a status of (400|422) ")  # the answers to wrong forms
PAPER = (760, 1000)  # about the width of a printed page


@pytest.fixture
def shop(served: Served) -> Served:
    """Four queues, and two dead letters: reports of puts to Q1 that found REPORTS full."""
    with inorder.connect(served.store, program="maker") as qm:
        qm.create_queue("Q2")
        qm.create_queue("REPORTS", max_depth=1)
        qm.create_queue("DEAD")
        qm.admin.alter_manager(dead_letter_queue="DEAD")
        qm.put("REPORTS", b"in the way")
        for body in (b"one", b"two"):
            qm.put("Q1", body, report=Report.COA_WITH_FULL_DATA, reply_to_queue="REPORTS")
            qm.get("Q1")
    return served


def choose(seen: Window, action: str, target: str = "") -> None:
    """Selects the first row and presses the button of an act, by keys."""
    seen.press("j")
    seen.press("x")
    seen.wait(lambda: len(seen.all("input[name=uid]:checked")) == 1)
    if target:
        seen.type_in("#chosen input[name=target]", target)
    seen.tab_to(f"#chosen button[value={action}]")
    seen.press(Keys.ENTER)
    seen.is_at("queue/Q1/act")


def confirm(shop: Served, seen: Window) -> None:
    """Types a wrong name, which changes nothing, then the name of the queue."""
    seen.type_in("input[name=typed]", "Q2")
    seen.press(Keys.ENTER)
    seen.wait(lambda: seen.all(".problem") and "Type the name of the queue, Q1" in seen.text(".problem"))
    assert len(bodies_at(shop.store, "Q1")) == 1, "a name that is not the queue's has taken something away"
    seen.type_in("input[name=typed]", "Q1")
    seen.tab_to("main form button")
    seen.press(Keys.ENTER)
    seen.is_at("queue/Q1")
    seen.wait(lambda: seen.all(".notice"))
    assert bodies_at(shop.store, "Q1") == []


@gate
def test_messages_can_be_put_copied_moved_and_deleted_by_keyboard_alone(
    shop: Served, link: str, browser: Chrome
) -> None:
    with window(browser, link) as seen:
        seen.go("queue/Q1")
        seen.tab_to("a[href$='/Q1/put']")
        seen.press(Keys.ENTER)
        seen.is_at("queue/Q1/put")
        seen.type_in("select[name=kind]", "J")
        seen.type_in("textarea[name=body]", '{"colour":')
        seen.type_in("textarea[name=properties]", "size:int=3")
        seen.tab_to("form.sides button.main")
        seen.press(Keys.ENTER)
        seen.wait(lambda: "JSON" in seen.text(".problem"))  # and the typed text is kept
        seen.tab_to("textarea[name=body]")
        seen.press(Keys.CONTROL + Keys.END)
        seen.press(' "red"}')
        seen.tab_to("form.sides button.main")
        seen.press(Keys.ENTER)
        seen.is_at("queue/Q1")
        seen.wait(lambda: '{"colour": "red"}' in seen.text(".messages"))

        choose(seen, "copy", "Q2")
        seen.tab_to("main form button")
        seen.press(Keys.ENTER)
        seen.is_at("queue/Q1")
        seen.wait(lambda: "1 message copied to Q2" in seen.text(".notice"))

        choose(seen, "move", "Q2")
        confirm(shop, seen)
        with inorder.connect(shop.store) as qm:
            qm.put("Q1", b"not wanted")
        seen.go("queue/Q1")
        choose(seen, "delete")
        confirm(shop, seen)
        assert [one for one in seen.complaints() if not REFUSED.search(one)] == []
    assert bodies_at(shop.store, "Q2") == [b'{"colour": "red"}'] * 2
    with inorder.connect(shop.store) as qm:
        assert qm.get("Q2").properties == {"size": 3}
        assert [one.act for one in qm.accounts.acts()] == ["delete", "move", "copy"]


@gate
def test_an_export_is_saved_and_an_import_puts_it(shop: Served, link: str, browser: Chrome, tmp_path: Path) -> None:
    with inorder.connect(shop.store) as qm:
        qm.put_many("Q1", [b"first", b"second"])
    with window(browser, link, downloads=tmp_path) as seen:
        seen.go("queue/Q1/export")
        seen.all("button.main")[0].click()
        saved = tmp_path / "Q1.jsonl"
        seen.wait(saved.exists)
        seen.wait(lambda: [json.loads(line)["body"] for line in saved.read_text().splitlines()] == ["first", "second"])
        seen.go("queue/Q2/import")
        seen.all("input[type=file]")[0].send_keys(str(saved))
        seen.all("button.main")[0].click()
        seen.is_at("queue/Q2")
        seen.wait(lambda: "2 messages put" in seen.text(".notice"))
        assert seen.complaints() == []
    assert bodies_at(shop.store, "Q1") == bodies_at(shop.store, "Q2") == [b"first", b"second"]


@gate
def test_a_message_can_be_deleted_without_javascript(shop: Served, link: str, browser: Chrome) -> None:
    with inorder.connect(shop.store) as qm:
        qm.put("Q1", b"1")
    with window(browser, link) as seen:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        try:
            seen.go("queue/Q1")
            seen.all("input[name=uid]")[0].click()
            seen.all("button[value=delete]")[0].click()
            seen.wait(lambda: seen.all("input[name=typed]"))
            seen.all("input[name=typed]")[0].send_keys("Q1" + Keys.ENTER)
            seen.wait(lambda: bodies_at(shop.store, "Q1") == [])
        finally:
            browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def _work(qm: QueueManager) -> None:
    """Leaves a message that waits for its next attempt, and the record of a worker that ends with this connection."""
    qm.put(LONG, b"w")
    with qm.unit_of_work() as unit:
        qm.get(LONG)
        unit.back_out(delay=600, error="E" * 300)
    now = qm.internals.clock.now()
    task = TaskRecord("T" * 64, LONG, [TaskMinute(int(now // 60), 10, 1, 1.0, 0.5)], 1, 65.0, 2, "E" * 300, now - 5)
    schedule = ScheduleRecord("S" * 64, LONG, "0 6 * * MON-FRI", "Europe/Berlin", now - 60, now + 60, False, "F" * 200)
    owner = qm.internals.owner
    record = WorkerRecord(owner, "P" * 28, 7, now, now, [task], [schedule])
    with qm._session:
        qm._store.note_worker(owner, record)


@pytest.fixture
def full(shop: Served) -> Iterator[list[str]]:
    """Fills the shop with names of the greatest length. Yields the paths of all its pages, with forms."""
    with inorder.connect(shop.store, program="P" * 28) as worker:
        yield _filled(shop, worker)


def _filled(shop: Served, worker: QueueManager) -> list[str]:
    with inorder.connect(shop.store, program="P" * 28) as qm:
        qm.accounts.create_user("N" * 64, queues={LONG: ["put"]}, roles=["application"], subjects=["CN=" + "S" * 200])
        qm.accounts.create_token("N" * 64, "L" * 64)
        qm.create_queue(LONG, description="D" * 64)
        _work(worker)
        qm.create_queue("X", usage="transmission")
        channels.define_channel(qm, "C" * 20, transmission_queue="X", connection=f"https://{'c' * 60}.example")
        uid = qm.put(LONG, b"x" * 5_000, group_id=b"G" * 24, sequence_number=2).uid
        qm.put_many(LONG, [b"y" * 900, b"z"])
        qm.put(LONG, b"held", confirm_id=2**64 - 1)
        lock_id = qm.browse_and_lock(LONG, most=1).lock_id
        with qm.open(LONG, input="shared") as handle:
            reader = ClaimReader(handle, "R" * 64)
            reader.claim(reader.begin().settled, most=1)
        qm.put(LONG, b"in a unit", syncpoint=True)
        qm.prepare("U" * 64)
    clock = ManualClock(time.time() - 180)
    with inorder.connect(SqliteStore(shop.store, clock=clock)) as qm:
        for _ in range(3):
            qm.internals.sample()
            clock.advance(60)
    queue = [f"queue/{LONG}{one}" for one in ("", f"/message/{uid.number}-{uid.origin}")]
    acts = [f"queue/{LONG}/{one}" for one in ("put", "get", "import", "export", "act", "act?selector=TRUE", "alter")]
    held = ["held", f"held/unit/prepared:{'U' * 64}", f"held/lock/{LONG}/{lock_id}", f"held/claim/{LONG}/{'R' * 64}"]
    return [
        "", *queue, *acts, *held, "define", "tasks", "dead", "mqsc", "channels", "users", f"user/{'N' * 64}", "log",
        "api", "nowhere",
    ]  # fmt: skip


def reviewed(seen: Window, action: str) -> None:
    """Goes to the page that asks for confirmation of a delete or a discard."""
    seen.go("dead" if action == "discard" else f"queue/{LONG}")
    seen.all("input[name=uid][type=checkbox]")[0].click()
    seen.all(f"button[value={action}]")[0].click()
    seen.wait(lambda: seen.all("input[name=typed]"))


@nightly
@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
def test_pages_fit_a_phone_and_violate_no_security_policy(
    full: list[str], link: str, browser: Chrome, is_dark: bool
) -> None:
    pages: list[Callable[[Window], object]] = [lambda seen, page=page: seen.go(page) for page in full]  # type: ignore[misc]
    pages += [lambda seen: reviewed(seen, "delete"), lambda seen: reviewed(seen, "discard")]
    with window(browser, link, PHONE, is_dark=is_dark) as seen:
        for page in pages:
            page(seen)
            assert seen.width() <= PHONE[0], f"{seen.path} is {seen.width()} pixels wide"
            colours = "return getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).map(Number)"
            assert (max(seen.browser.execute_script(colours)[:3]) < 128) == is_dark, seen.path
        assert [one for one in seen.complaints() if "nowhere" not in one] == []


@nightly
@pytest.mark.parametrize("size", [WIDE, PHONE, PAPER], ids=["wide", "phone", "paper"])
def test_a_link_of_the_http_page_opens_its_section(link: str, browser: Chrome, size: tuple[int, int]) -> None:
    is_shown = "return document.getElementById(arguments[0]).checkVisibility()"
    with window(browser, link, WIDE) as seen:
        seen.go("api")
        dress(browser, size, media="print" if size == PAPER else "")
        assert browser.execute_script(is_shown, "put") == (size == PAPER)
        browser.execute_script("document.querySelector('a[href=\"#put\"]').click()")
        seen.wait(lambda: browser.execute_script(is_shown, "put"))
        browser.execute_script("for (const one of document.querySelectorAll('details')) one.open = true")
        assert seen.width() <= size[0], f"{seen.width()} pixels wide with everything open"
        assert seen.complaints() == []


@nightly
def test_printed_pages_fit_the_paper_and_have_no_controls(full: list[str], link: str, browser: Chrome) -> None:
    with window(browser, link, PAPER, is_dark=True) as seen:
        for page in full:
            dress(browser, WIDE, is_dark=True)
            seen.go(page)
            dress(browser, PAPER, is_dark=True, media="print")
            assert seen.width() <= PAPER[0], f"{seen.path} is {seen.width()} pixels wide on paper"
            for one in seen.all("nav, button, .button, input, select, textarea"):
                assert not one.is_displayed(), f"{one.get_attribute('outerHTML')} of {seen.path}"
            paper = "return [getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
            assert seen.browser.execute_script(paper) == ["rgb(0, 0, 0)", "rgb(255, 255, 255)"], seen.path


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
def test_axe_finds_no_accessibility_problem(
    full: list[str], link: str, browser: Chrome, size: tuple[int, int], is_dark: bool
) -> None:
    axe = pytest.importorskip("axe_core_python", reason="it brings axe-core")
    script = (Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
    browser.set_script_timeout(SECONDS)
    with window(browser, link, size, is_dark=is_dark) as seen:
        for page in full:
            seen.go(page)
            browser.execute_script("document.querySelectorAll('details').forEach((one) => one.open = true)")
            browser.execute_cdp_cmd("Runtime.evaluate", {"expression": script})
            assert browser.execute_async_script(ASK) == [], page
