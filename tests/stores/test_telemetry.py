"""Events of the store: one for each call, on the caller's thread, with the numbers and names that the page lists."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
from tests.helpers.heard import Heard, check, everything, gives_pages, heard, large_group
from tests.helpers.support import Call, bodies, waiting
from tests.stores.sqlite.programs import Program, child, path
from tests.stores.sqlite.programs import qm as file_manager

from inorder import NoMessageAvailable, QueueManager, connect
from inorder.client.bulk import BulkBrowser, ClaimReader
from inorder.client.events import HOOKS
from inorder.client.listening import Arrival, StoreEvent
from inorder.errors import OrderPending, QueueFull, StoreError
from inorder.model.options import FOREVER
from inorder.rules import puts
from inorder.stores.memory import bulk as memory_bulk
from inorder.stores.seam import telemetry
from inorder.stores.seam.changes import Changes, Death
from inorder.stores.seam.gathering import Gathering
from inorder.stores.seam.protocol import LocalStore
from inorder.stores.seam.telemetry import CALL_KEYS, COMMON_KEYS, EVENTS, PREFIX, REPORTERS, Telemetry, event
from inorder.stores.sql import bulk as sql_bulk
from inorder.testing import ManualClock
from inorder.testing.stores import RestartableStore

__all__ = ["child", "file_manager", "heard", "path"]

PAGE = Path(__file__).parents[2] / "docs/reference/events.md"
SOURCES = Path(__file__).parents[2] / "src/inorder/stores"


# Verbs that have no event of their name, each with the reason.
SILENT = {
    "keep_handles": "it cleans up after an interrupted call",
    "leave_lease": "it changes this process's memory only",
    "set_user": "it changes this process's memory only",
    "has_unit": "it looks at this process's memory only",
    "identifier": "it never changes",
    "reserve_numbers": "it reserves numbers, and changes no queue",
    "end_dead_processes": "it backs out the work of dead processes, and reports `inorder.dead_connection`",
    "get_if": "it is a get, and reports `inorder.get`",
    "wait": "it reports its beginning and end, and an `inorder.get` for each look",
    "end_waits": "it looks at this process's memory only; the wait that it ends reports its end",
    "users_of": "it is a part of a call of a client, which has an event of its own",
    "with_bodies": "it is the first part of a receive, which has an event of its own",
    "wait_apart": "as `wait`, for a server",
    "watch_apart": "as `watch`, for a server",
    "watch": "it serves waiting calls, and is none itself",
    "promises": "it changes nothing; the calls inside it have events of their own",
    "refuse_lost": "it only checks whether the store is lost",
    "commits": "it reads a number that processes share",
    "close_store": "all observations have ended with the last connection",
}
CALLS = {name: fields for name, fields in EVENTS.items() if name in REPORTERS}
OTHERS = {name: fields for name, fields in EVENTS.items() if name not in REPORTERS}


# ---- the table, and its page


def verbs_of_store() -> set[str]:
    """The names of all methods of the protocol, including its parts."""
    parts = [part for part in LocalStore.__mro__ if part.__module__.startswith("inorder.stores")]
    return {
        name
        for part in parts
        for name, value in vars(part).items()
        if isinstance(value, FunctionType) and not name.startswith("_")
    }


def test_every_verb_of_the_store_has_an_event_of_its_name_or_a_reason_for_none() -> None:
    assert {"put", "claim", "stage", "look", "backup"} <= verbs_of_store()
    assert not CALLS.keys() & SILENT.keys()
    assert CALLS.keys() | SILENT.keys() == verbs_of_store()
    assert OTHERS.keys() == {"wait_began", "wait_ended", "expired", "dead_connection", "attempt", "worker"}


def rows_of(heading: str) -> dict[str, list[set[str]]]:
    """A table of the page: the words in code quotes of each further cell, keyed by that of the first."""
    section = PAGE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| `")]
    return {re.findall(r"`([^`]+)`", row[0])[0]: [set(re.findall(r"`([^`]+)`", c)) for c in row[1:]] for row in rows}


@pytest.mark.parametrize(("heading", "events"), [("Calls", CALLS), ("Waits, and the store's own work", OTHERS)])
def test_the_page_lists_every_event_with_its_measurements_and_keys(heading: str, events: dict[str, Any]) -> None:
    told = rows_of(heading)
    assert told.keys() == {PREFIX + name for name in events}
    for name, fields in events.items():
        assert told[PREFIX + name][:2] == [set(fields.measurements), set(fields.keys)], name


EXPLAINED = {
    "Measurements": {one for fields in EVENTS.values() for one in fields.measurements} | {"seconds"},
    "Keys": {one for fields in EVENTS.values() for one in fields.keys} | {*COMMON_KEYS, *CALL_KEYS},
    "Hooks": {*HOOKS},
    "Listeners": {*Arrival.__dataclass_fields__},
}


@pytest.mark.parametrize("heading", EXPLAINED)
def test_each_section_of_the_page_lists_exactly_the_existing_names(heading: str) -> None:
    assert rows_of(heading).keys() == EXPLAINED[heading]


def test_the_page_lists_the_silent_verbs_with_their_reasons() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("\n## Calls without an event\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| `")]
    assert {row[0].strip("`"): row[1] for row in rows} == SILENT


# ---- the events


def test_the_events_of_a_put_and_a_get_have_the_numbers_of_messages_and_bytes(
    qm: QueueManager, heard: Heard, store: RestartableStore
) -> None:
    qm.put_many("Q", [b"12345", b"678"])
    qm.get("Q")
    put, got = heard.last("put"), heard.last("get")
    assert put.measurements.items() >= {"messages": 2, "bytes": 8}.items()
    assert put.measurements["seconds"] > 0
    assert put.metadata == {
        "store": store.path, "manager": "TEST", "queue": "Q", "unit": "", "completion": "ok", "reason": 0,
        "reason_name": "NONE", "error": "",
    }  # fmt: skip
    assert got.measurements.items() >= {"messages": 1, "bytes": 5}.items()
    assert got.metadata.items() >= {"queue": "Q", "unit": "", "browse": False, "withheld": False}.items()


@pytest.mark.every_store
def test_every_event_has_exactly_the_fields_in_the_table(
    qm: QueueManager, heard: Heard, tmp_path: Path, clock: ManualClock
) -> None:
    everything(qm, tmp_path, clock)
    told = {event.name.removeprefix(PREFIX) for event in heard}
    not_told = {"stop"} if gives_pages(qm) else {"stop", "read_rest"}
    not_told |= {"rename"}  # it needs a store that nobody has open: see tests/client/test_renaming.py
    not_told |= {"browse_page"}  # reported by loops on a server: see below
    assert CALLS.keys() - told == not_told
    for one in heard:
        check(one)


def test_every_event_of_a_failed_call_has_exactly_the_fields_in_the_table(
    store: Any, qm: QueueManager, tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call is repeated while nothing can be read or written."""
    made: dict[str, Callable[[], object]] = {"stop": store.stop}
    with monkeypatch.context() as recorded:
        for name in CALLS:
            recorded.setattr(store, name, recorder(name, getattr(store, name), made))
        everything(qm, tmp_path, clock)
    qm.put("Q", b"1", syncpoint=True)
    made["settle"] = lambda: store.settle(qm.internals.owner, "commit")
    heard = Heard()
    qm.inspect.observe(heard.append)
    with monkeypatch.context() as broken:
        broken.setattr(store.backend, "begin", fail)
        for name in ("check", "backup"):
            broken.setattr(store.host, name, fail)
        for name, again in made.items():
            with pytest.raises(StoreError):
                again()
            assert heard[-1].name == PREFIX + name
    assert CALLS.keys() - made.keys() == {"browse_page", "rename"} | (set() if gives_pages(qm) else {"read_rest"})
    for one in heard:
        check(one)
        assert one.metadata.items() >= {"completion": "failed", "error": "StoreError"}.items()


def fail(*_: object, **__: object) -> None:
    raise StoreError("nothing can be read or written")


def recorder(name: str, verb: Callable[..., object], made: dict[str, Callable[[], object]]) -> Callable[..., object]:
    """Wraps a verb, and records how to repeat its last call."""

    def call(*given: object, **named: object) -> object:
        made[name] = partial(verb, *given, **named)
        return verb(*given, **named)

    return call


def test_events_say_whether_a_unit_was_open_and_how_it_ended(qm: QueueManager, heard: Heard) -> None:
    qm.create_queue("ALIAS", type="alias", base_queue="Q")
    qm.put("ALIAS", b"1", syncpoint=True)
    assert heard.last("put").metadata.items() >= {"unit": "session", "queue": "Q"}.items()
    qm.back_out()
    qm.commit()
    told = [(one.metadata["outcome"], one.metadata["acted"]) for one in heard.named("settle")]
    assert told == [("back_out", True), ("commit", False)]


def test_the_event_of_a_failed_call_has_its_reason(qm: QueueManager, heard: Heard) -> None:
    qm.alter_queue("Q", max_depth=1)
    qm.put("Q", b"1")
    with pytest.raises(QueueFull):
        qm.put("Q", b"2")
    failed = heard.last("put")
    assert failed.measurements.keys() == {"seconds"}
    told = {"completion": "failed", "reason": 2053, "reason_name": "Q_FULL", "error": "QueueFull", "queue": "Q"}
    assert failed.metadata.items() >= told.items()


def test_the_event_of_an_error_that_is_not_ours_has_its_class(
    qm: QueueManager, heard: Heard, store: RestartableStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    qm.put("Q", b"1")
    with monkeypatch.context() as broken:
        broken.setattr(store.clock, "now", lambda: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            qm.put("Q", b"2")
    failed = heard.last("put")
    assert failed.measurements.keys() == {"seconds"}
    assert failed.metadata.items() >= {"reason_name": "UNEXPECTED_ERROR", "error": "ZeroDivisionError"}.items()


def test_each_page_of_a_browse_loop_is_one_event(
    store: Any, qm: QueueManager, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "page_messages", 256)
    qm.put_many("Q", [b"12"] * 4)
    list(qm.browse("Q"))
    pages = heard.named("browse_page")
    assert [(one.measurements["messages"], one.measurements["bytes"]) for one in pages] == [(3, 6), (0, 0)]
    for one in pages:
        check(one)


def test_nothing_is_kept_of_closed_handles_and_connections(store: Any, qm: QueueManager) -> None:
    before = dict(store.handles), dict(store.connections)
    with qm.connect() as other:
        known = dict(store.handles), dict(store.connections)
        assert known[1].keys() > before[1].keys()
        other.open("Q", output=True).close()
        assert (store.handles, store.connections) == known
        other.open("Q", output=True)
        other.put("Q", b"1")
        assert store.handles.keys() > before[0].keys()
    assert (store.handles, store.connections) == before


def test_the_event_of_a_withheld_strict_get_says_so(qm: QueueManager, heard: Heard) -> None:
    qm.connect().put("Q", b"1", syncpoint=True)
    other = qm.connect()
    other.put("Q", b"held", syncpoint=True)
    qm.put("Q", b"2")
    with pytest.raises(OrderPending):
        qm.get("Q", read_order="strict")
    assert heard.last("get").metadata["withheld"] is True
    assert heard.last("get").measurements["messages"] == 0


def test_each_page_of_a_claim_and_of_a_stretch_is_one_event(
    qm: QueueManager, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (memory_bulk, sql_bulk):
        monkeypatch.setattr(module, "PAGE_ROWS", 2)
    qm.put_many("Q", [b"12", b"3", b"4567"])
    with qm.open("Q", input="as_queue", browse=True) as handle:
        browser = BulkBrowser(handle)
        [stretch] = browser.survey().stretches
        assert heard.named("read_stretch") == []
        list(browser.read(stretch))
        reader = ClaimReader(handle, "app")
        reader.begin()
        claim = reader.claim(0)
        assert claim is not None
        [part] = reader.plan(0, claim.number)
        assert heard.named("read_claim") == []
        list(reader.read(part))
    assert sizes(heard.named("read_stretch")) == sizes(heard.named("read_claim")) == [(2, 3), (1, 4)]
    assert {page.metadata["queue"] for page in heard.named("read_stretch")} == {"Q"}
    for page in heard.named("read_claim"):
        assert page.metadata.items() >= {"queue": "Q", "application": "app", "unit": "claim"}.items()


def test_each_page_of_a_large_group_is_one_event(file_manager: QueueManager) -> None:
    heard = Heard()
    file_manager.inspect.observe(heard.append)
    assert large_group(file_manager, 600) == [b"12"] * 600
    pages = [*heard.named("get"), *heard.named("read_rest")]
    assert len(heard.named("get")) == 1
    assert sizes(pages) == [(600, 512), (256, 512), (88, 176)]  # the get removes all messages, and reads the first page
    assert {page.metadata["queue"] for page in pages} == {"GROUPS"}


def sizes(pages: list[StoreEvent]) -> list[tuple[float, float]]:
    return [(page.measurements["messages"], page.measurements["bytes"]) for page in pages]


# ---- waits, and the store's own work


def test_a_wait_is_reported_when_it_begins_and_when_it_ends(qm: QueueManager, heard: Heard, clock: ManualClock) -> None:
    call = waiting(qm, lambda: qm.get("Q", wait=FOREVER))
    assert [one.metadata["queue"] for one in heard.named("wait_began")] == ["Q"]
    assert not heard.named("wait_ended")
    qm.connect().put("Q", b"1")
    assert call.result().body == b"1"
    [ended] = heard.named("wait_ended")
    assert ended.metadata.items() >= {"queue": "Q", "browse": False, "found": True}.items()
    assert ended.measurements["seconds"] > 0
    call = waiting(qm, lambda: qm.get("Q", wait=1))
    clock.advance(2)
    assert isinstance(call.error(), NoMessageAvailable)
    assert heard.last("wait_ended").metadata["found"] is False


def test_the_number_of_expired_messages_is_reported(qm: QueueManager, heard: Heard, clock: ManualClock) -> None:
    qm.put_many("Q", [b"1", b"2"], expiry=1)
    qm.put("Q", b"3")
    clock.advance(2)
    assert qm.inspect.overview()[0].depth == 3
    assert qm.depth("Q") == 1
    [expired] = heard.named("expired")
    assert (expired.measurements["messages"], expired.metadata["queue"]) == (2, "Q")
    assert qm.inspect.overview()[0].depth == 1


def test_a_dead_process_is_reported_with_its_program(file_manager: QueueManager, child: Program) -> None:
    told = Heard()
    file_manager.inspect.observe(told.append)
    child.run("qm.put('Q', b'1', syncpoint=True)")
    child.kill()
    assert file_manager.inspect.units() == []
    assert len(told.named("dead_connection")) == 1
    assert told.last("dead_connection").metadata["program"]


def test_a_time_out_during_the_report_of_a_death_reaches_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    changes, told, errors = Changes(), Heard(), [TimeoutError()]
    telling = Telemetry(changes, Gathering(), lambda: {"store": "S", "manager": "M"})
    telling.observe(told.append)
    report = telling.report

    def interrupted(*given: Any) -> None:
        if errors:
            raise errors.pop()
        report(*given)

    monkeypatch.setattr(telling, "report", interrupted)
    with pytest.raises(TimeoutError):
        changes.report([Death(puts.Program("u", "p"))])
    changes.hand_out()
    assert len(told.named("dead_connection")) == 1


# ---- observers


def test_an_observer_is_called_on_the_thread_of_the_call_when_it_is_over(qm: QueueManager) -> None:
    other, threads, depths = qm.connect(), list[object](), list[int]()

    def observer(event: StoreEvent) -> None:
        if event.name == "inorder.put":
            threads.append(threading.current_thread())
            depths.append(other.depth("Q"))

    qm.inspect.observe(observer)
    qm.put("Q", b"1")
    assert (threads, depths) == ([threading.current_thread()], [1])


def test_an_exception_in_an_observer_is_logged_and_harmless(qm: QueueManager, caplog: pytest.LogCaptureFixture) -> None:
    def fail(event: StoreEvent) -> None:
        raise ZeroDivisionError

    told = Heard()
    qm.inspect.observe(fail)
    qm.inspect.observe(told.append)
    with caplog.at_level(logging.ERROR, "inorder.telemetry"):
        qm.put("Q", b"1")
    assert bodies(qm) == [b"1"]
    assert "observer failed at inorder.put" in caplog.text
    assert told.named("put")


def test_an_event_that_cannot_be_made_is_logged_and_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(telemetry, "EVENTS", {})

    class Odd:
        telemetry = Telemetry(Changes(), Gathering(), lambda: {"store": "odd", "manager": "ODD"})

        @event("undo", "messages", measured=lambda answer: [len(answer)])
        def undo(self) -> object:
            return 5

    told, odd = Heard(), Odd()
    odd.telemetry.observe(told.append)
    with caplog.at_level(logging.ERROR, "inorder.telemetry"):
        assert odd.undo() == 5
    assert "the event of undo could not be made" in caplog.text
    assert told == []


def test_calls_of_an_observer_report_nothing(qm: QueueManager) -> None:
    other, told = qm.connect(), Heard()

    def observer(event: StoreEvent) -> None:
        told.append(event)
        other.put("Q", b"more")

    qm.inspect.observe(observer)
    qm.put("Q", b"1")
    assert [event.name for event in told] == ["inorder.queue", "inorder.open", "inorder.put"]


def test_all_connections_of_the_process_are_observed_until_the_observation_is_cancelled(qm: QueueManager) -> None:
    told, other = Heard(), qm.connect()
    observation = other.inspect.observe(told.append)
    other.close()
    qm.put("Q", b"1")
    assert told.named("put")
    observation.cancel()
    observation.cancel()
    told.clear()
    qm.put("Q", b"2")
    assert told == []


def test_an_observation_ends_with_the_last_connection(store: RestartableStore) -> None:
    told = Heard()
    with connect(store) as qm:
        qm.create_queue("Q")
        qm.inspect.observe(told.append)
    assert told[-1].name == "inorder.disconnect"
    told.clear()
    with connect(store) as qm:
        qm.put("Q", b"1")
    assert told == []


def test_other_threads_can_use_the_store_while_observers_are_called(
    store: RestartableStore, qm: QueueManager, tmp_path: Path, clock: ManualClock
) -> None:
    """No lock of the store or of the waiting room is held while any event is reported."""
    told, ended = set[str](), set[str]()

    def elsewhere() -> None:
        with connect(store) as other:
            other.put("OTHER", b"1")
            other.get("OTHER")

    def observer(event: StoreEvent) -> None:
        if event.name not in told:
            told.add(event.name)
            Call(elsewhere).result()
            ended.add(event.name)

    qm.create_queue("OTHER")
    observation = qm.inspect.observe(observer)
    qm.put("Q", b"old", expiry=1)
    everything(qm, tmp_path, clock)
    observation.cancel()
    assert ended == told
    assert told >= {PREFIX + name for name in ("put", "get", "wait_began", "wait_ended", "expired", "disconnect")}


def test_another_file_can_be_opened_while_an_observer_is_called_for_a_connection(tmp_path: Path) -> None:
    """The lock for opening files is not held while observers are told of a connection."""
    told, file = list[str](), tmp_path / "q.db"
    with connect(file) as first:

        def observer(event: StoreEvent) -> None:
            if event.name == "inorder.connect":
                call = Call(lambda: connect(tmp_path / "other.db").close())
                call.result()
                told.append(event.name)

        first.inspect.observe(observer)
        connect(file).close()
    assert told == ["inorder.connect"]
