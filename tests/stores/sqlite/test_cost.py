"""The cost of calls, counted and not timed: steps of SQLite's machine, and calls of Python functions.

Steps do not depend on the messages in front: each case makes the same call twice, with few and with many messages that
must not matter. A table at the end has what each verb sends to SQLite, the system and the disk.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import apsw
import pytest
from tests.helpers.support import put_group
from tests.stores.sqlite.counting import CountingSystem, Counts, counting_system

import inorder
from inorder import Flags, Match, Message, NoMessageAvailable, Queue, QueueManager, UniqueId
from inorder.stores.sqlite import SqliteStore, database
from inorder.testing import ManualClock

FEW, MANY = 20, 1000
RATIO_MAX = 1.3
GROUP = b"G".ljust(24, b"\0")


@contextlib.contextmanager
def counted(store: SqliteStore) -> Iterator[list[int]]:
    """Counts the steps of the statements that run in the block."""
    steps: list[int] = []

    def profiled(event: dict[str, object]) -> None:
        status = event["stmt_status"]
        assert isinstance(status, dict)
        steps.append(status["SQLITE_STMTSTATUS_VM_STEP"])

    tracing = store.database.connection
    tracing.trace_v2(apsw.SQLITE_TRACE_PROFILE, profiled)
    try:
        yield steps
    finally:
        tracing.trace_v2(0, None)


def singles(qm: QueueManager, number: int, **fields: Any) -> None:
    for start in range(0, number, 500):
        qm.put_many("Q", [Message(b"x", **fields)] * min(500, number - start))


of_higher_priority = partial(singles, priority=9)  # in front, because of their priority


def unfinished_groups(qm: QueueManager, number: int) -> None:
    for start in range(0, number, 500):
        heads = [
            Message(b"h", group_id=b"%024d" % n, flags=Flags.IN_GROUP) for n in range(start, min(start + 500, number))
        ]
        qm.put_many("Q", heads)


def long_group(qm: QueueManager, number: int) -> None:
    members = [Message(b"m", group_id=GROUP, sequence_number=n, flags=Flags.IN_GROUP) for n in range(1, number)]
    members.append(Message(b"m", group_id=GROUP, sequence_number=number, flags=Flags.LAST_IN_GROUP))
    qm.put_many("Q", members)


def long_group_with_a_reader_inside(qm: QueueManager, number: int) -> None:
    long_group(qm, number)
    qm.get("Q", logical=True)


def strict_get_of_another_under_a_lock_id(qm: QueueManager) -> Message:
    with qm.connect() as other:
        held = other.browse_and_lock("Q", match=Match(correlation_id=b"c"))
        return other.get("Q", logical=True, read_order="strict", lock_id=held.lock_id)


def held_by_another(qm: QueueManager, number: int) -> None:
    other = qm.connect()
    other.put_many("Q", [Message(b"h", priority=9)] * number)
    other.get_many("Q", number, syncpoint=True)


def held_by_itself(qm: QueueManager, number: int) -> None:
    singles(qm, number)
    assert len(qm.get_many("Q", number, syncpoint=True)) == number


def of_other_priorities_in_order_of_arrival(qm: QueueManager, number: int) -> None:
    qm.alter_queue("Q", delivery="fifo", default_priority=5)
    of_higher_priority(qm, number)
    qm.put("Q", b"wanted", priority=1)


def get_by_unique_id(qm: QueueManager, **options: Any) -> Message:
    (wanted,) = qm.browse("Q", match=Match(correlation_id=b"c"))
    assert wanted.uid is not None
    return qm.get("Q", match=Match(uid=wanted.uid), **options)


Prepare = Callable[[QueueManager, int], None]
CASES: dict[str, tuple[Prepare, Callable[[QueueManager], object]]] = {
    "get, at a depth": (singles, lambda qm: qm.get("Q")),
    "strict get, at a depth": (singles, lambda qm: qm.get("Q", read_order="strict")),
    "get of a correlation id, at a depth": (singles, lambda qm: qm.get("Q", match=Match(correlation_id=b"c"))),
    "get of a unique id, at a depth": (singles, get_by_unique_id),
    "get of a unique id, behind what another unit holds": (
        held_by_another,
        lambda qm: get_by_unique_id(qm, read_order="strict"),
    ),
    "get of a priority, behind others": (of_higher_priority, lambda qm: qm.get("Q", match=Match(priority=0))),
    "strict get of a priority, behind others": (
        of_higher_priority,
        lambda qm: qm.get("Q", match=Match(priority=0), read_order="strict"),
    ),
    "browse of a priority, behind others": (
        of_higher_priority,
        lambda qm: next(qm.browse("Q", match=Match(priority=0))),
    ),
    "get of a priority, in order of arrival": (
        of_other_priorities_in_order_of_arrival,
        lambda qm: qm.get("Q", match=Match(priority=1)),
    ),
    "browse and lock of one, at a depth": (singles, lambda qm: qm.browse_and_lock("Q", most=1)),
    "get in logical order, at a depth": (singles, lambda qm: qm.get("Q", logical=True)),
    "put, at a depth": (singles, lambda qm: qm.put("Q", b"x")),
    "browse, at a depth": (singles, lambda qm: next(qm.browse("Q"))),
    "strict browse, at a depth": (singles, lambda qm: next(qm.browse("Q", read_order="strict"))),
    "get in logical order, behind unfinished groups": (unfinished_groups, lambda qm: qm.get("Q", logical=True)),
    "get of a whole group, behind unfinished groups": (unfinished_groups, lambda qm: list(qm.get_group("Q"))),
    "the next member of a group": (long_group, lambda qm: [qm.get("Q", logical=True) for _ in range(3)]),
    "a put into a group": (
        long_group,
        lambda qm: qm.put("Q", b"x", group_id=GROUP, sequence_number=99_999, flags=Flags.IN_GROUP),
    ),
    "strict get under a lock id, with a reader inside a group": (
        long_group_with_a_reader_inside,
        strict_get_of_another_under_a_lock_id,
    ),
    "get, behind what another unit holds": (held_by_another, lambda qm: qm.get("Q")),
    "strict get, behind what another unit holds": (held_by_another, lambda qm: qm.get("Q", read_order="strict")),
    "strict get, behind what its own unit holds": (
        held_by_itself,
        lambda qm: qm.get("Q", read_order="strict", syncpoint=True),
    ),
    "all queues at once, at a depth": (singles, lambda qm: qm.inspect.overview()),
    "all queues at once, with unfinished groups": (unfinished_groups, lambda qm: qm.inspect.overview()),
    "the first of a listing, at a depth": (singles, lambda qm: list(qm.inspect.look("Q", most=1))),
    "the first of a listing, behind what another unit holds": (
        held_by_another,
        lambda qm: list(qm.inspect.look("Q", most=1)),
    ),
    "what has arrived, at a depth": (
        singles,
        lambda qm: list(qm.inspect.look("Q", numbered_after=qm.inspect.overview()[0].numbered)),
    ),
    "strict logical get, behind what its own unit holds": (
        held_by_itself,
        lambda qm: qm.get("Q", logical=True, read_order="strict", syncpoint=True),
    ),
}


def steps(folder: Path, number: int, prepare: Callable[[QueueManager, int], Any], call: Callable[..., object]) -> int:
    """The steps of a call, which is given the result of `prepare`; `number`: few or many of what must not matter."""
    store = SqliteStore(folder / f"{number}.db")
    with inorder.connect(store) as qm:
        qm.create_queue("Q")
        held = prepare(qm, number)
        with counted(store) as found:
            call(qm, *held)
    store.close_store()
    return sum(found)


def check_costs(
    folder: Path,
    prepare: Callable[[QueueManager, int], Any],
    call: Callable[..., object],
    *,
    few: int = FEW,
    many: int = MANY,
) -> None:
    cheap, dear = (steps(folder, number, prepare, call) for number in (few, many))
    assert 0 < dear <= RATIO_MAX * cheap, f"{cheap:,} steps with {few}, {dear:,} with {many:,}: see the query plans"


@pytest.mark.parametrize("case", CASES)
def test_messages_in_front_do_not_raise_the_cost_of_a_call(case: str, tmp_path: Path) -> None:
    in_front, call = CASES[case]

    def prepare(qm: QueueManager, number: int) -> tuple[()]:
        in_front(qm, number)
        qm.put("Q", b"wanted", correlation_id=b"c")
        put_group(qm, b"a", b"b")
        for _ in range(3):
            qm.put("Q", b"more")
        return ()

    check_costs(tmp_path, prepare, call)


def locked(qm: QueueManager, number: int) -> tuple[UniqueId, int]:
    singles(qm, number)
    found = qm.browse_and_lock("Q")
    assert found.messages[-1].uid is not None
    return found.messages[-1].uid, found.lock_id


def put_under_a_confirm_id(qm: QueueManager, number: int) -> tuple[UniqueId, int]:
    return qm.put_many("Q", [b"x"] * number, confirm_id=7)[-1].uid, 7


def got_under_a_confirm_id(qm: QueueManager, number: int) -> tuple[UniqueId, int]:
    singles(qm, number)
    uid = qm.get_many("Q", number, confirm_id=7)[-1].uid
    assert uid is not None
    return uid, 7


Hold = Callable[[QueueManager, int], tuple[UniqueId, int]]
OF_MANY: dict[str, tuple[Hold, Callable[[QueueManager, UniqueId, int], object]]] = {
    "get with its lock id": (locked, lambda qm, uid, held: qm.get("Q", match=Match(uid=uid), lock_id=held)),
    "unlock": (locked, lambda qm, uid, held: qm.unlock("Q", uid, lock_id=held)),
    "delete": (locked, lambda qm, uid, held: qm.delete("Q", uid, lock_id=held)),
    "confirm of a put": (put_under_a_confirm_id, lambda qm, uid, held: qm.confirm_put("Q", uid, confirm_id=held)),
    "one put more": (put_under_a_confirm_id, lambda qm, _, held: qm.put("Q", b"x", confirm_id=held)),
    "confirm of a get": (got_under_a_confirm_id, lambda qm, uid, held: qm.confirm_get("Q", uid, confirm_id=held)),
}


@pytest.mark.parametrize("case", OF_MANY)
def test_the_cost_for_one_message_does_not_depend_on_how_many_its_id_holds(case: str, tmp_path: Path) -> None:
    check_costs(tmp_path, *OF_MANY[case])


def calls_of(call: Callable[[], object]) -> list[str]:
    """The files of the Python functions that it calls, one for each call, except for its own."""
    calls: list[str] = []

    def profiled(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            calls.append(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(profiled)
    try:
        call()
    finally:
        sys.setprofile(before)
    return calls[1:]


def in_unit(qm: QueueManager, call: Callable[[], object]) -> None:
    with qm.unit_of_work():
        call()


CALLS: dict[str, tuple[Callable[[QueueManager], object], int, int]] = {  # the most calls, and the most files of these
    "put": (lambda qm: qm.put("Q", b"x"), 53, 20),
    "get": (lambda qm: qm.get("Q"), 60, 23),
    "get in a unit that commits": (lambda qm: in_unit(qm, lambda: qm.get("Q")), 150, 33),
}


@pytest.mark.parametrize("case", CALLS)
def test_a_plain_call_calls_few_python_functions_in_few_files(case: str, tmp_path: Path) -> None:
    call, most, files_most = CALLS[case]
    with inorder.connect(SqliteStore(tmp_path / "store.db")) as qm:
        qm.create_queue("Q")
        qm.put_many("Q", [b"x"] * 20)
        call(qm)
        calls = min((calls_of(lambda: call(qm)) for _ in range(3)), key=len)
    files = {file for file in calls if file.startswith(str(Path(inorder.__file__).parent))}
    assert len(calls) <= most
    assert len(files) <= files_most, sorted(files)


CALLS_OF_MANY: dict[str, tuple[Callable[[QueueManager, int], object], int]] = {
    "put_many": (lambda qm, number: qm.put_many("Q", [b"x"] * number), 1),
    "put_many of messages": (lambda qm, number: qm.put_many("Q", [Message(b"x", priority=1)] * number), 6),
    "get_many": (lambda qm, number: qm.get_many("Q", number), 0),
    "get_many in a unit that commits": (lambda qm, number: in_unit(qm, lambda: qm.get_many("Q", number)), 0),
}


@pytest.mark.parametrize("case", CALLS_OF_MANY)
def test_each_message_of_a_large_call_adds_few_calls_of_python_functions(case: str, tmp_path: Path) -> None:
    call, most = CALLS_OF_MANY[case]
    with inorder.connect(SqliteStore(tmp_path / "store.db")) as qm:
        qm.create_queue("Q")
        qm.put_many("Q", [b"x"] * 2000)
        call(qm, 10)
        few, many = (min(len(calls_of(partial(call, qm, number))) for _ in range(3)) for number in (50, 250))
    assert (many - few) / 200 <= most + 0.1, f"{few} calls for 50 messages, {many} for 250"


# ---- the cost of each verb in its steady state
#
# A row of COSTS reads: for a plain put, SQLite runs 6 statements, calls the operating system 17 times, adds 4 pages to
# the log and syncs once. All numbers are exact: a call that needs one more, or one less, fails with the list of what it
# made. An intended change changes the table, and reviewers look at that diff. Other releases of SQLite may call the
# system differently: then the whole column changes, and nothing else.


class Cost(NamedTuple):
    """The cost of one call.

    Args:
        statements: run by SQLite, including BEGIN and COMMIT; a statement for many rows counts once for each.
        calls: of the operating system: reads, writes, locks, syncs and all others.
        pages: the growth of the log, in pages of LOG_PAGE_BYTES.
        syncs: of any file.
    """

    statements: int
    calls: int
    pages: int
    syncs: int


LOG_PAGE_BYTES = 4096 + 24
CONFIRM_ID = 7
UNCOUNTED_CALLS = 2  # the first opens handles, and reads pages into the cache
Prepared = Callable[[QueueManager], Any]


def nothing(_: QueueManager) -> None:
    pass


def one_there(qm: QueueManager) -> UniqueId:
    return qm.put("Q", b"x").uid


def outside_a_unit(qm: QueueManager) -> None:
    qm.back_out()
    one_there(qm)


def got_in_a_unit(qm: QueueManager) -> Message:
    one_there(qm)
    return qm.get("Q", syncpoint=True)


def emptied(qm: QueueManager) -> None:
    with contextlib.suppress(NoMessageAvailable):
        qm.get_many("Q", 100)


def get_of_nothing(qm: QueueManager, _: object) -> None:
    with contextlib.suppress(NoMessageAvailable):
        qm.get("Q")


def browsing(qm: QueueManager, *, has_begun: bool = False) -> Queue:
    qm.put_many("Q", [b"x"] * 3)
    handle = qm.open("Q", browse=True)
    if has_begun:
        handle.browse_first()
    return handle


def got_to_be_confirmed(qm: QueueManager) -> UniqueId | None:
    one_there(qm)
    return qm.get("Q", confirm_id=CONFIRM_ID).uid


def locked_one(qm: QueueManager) -> tuple[UniqueId | None, int]:
    one_there(qm)
    locked = qm.browse_and_lock("Q", most=1)
    return locked.messages[0].uid, locked.lock_id


# The preparation, the call, which is given the result of the preparation, and the cost of the call.
COSTS: dict[str, tuple[Prepared, Callable[[QueueManager, Any], object], Cost]] = {
    "put": (nothing, lambda qm, _: qm.put("Q", b"x"), Cost(6, 17, 4, 1)),
    "put, not persistent": (nothing, lambda qm, _: qm.put("Q", b"x", persistent=False), Cost(6, 18, 5, 0)),
    "put of 100": (emptied, lambda qm, _: qm.put_many("Q", [b"x"] * 100), Cost(11, 27, 9, 1)),
    "get": (one_there, lambda qm, _: qm.get("Q"), Cost(7, 17, 4, 1)),
    "get of 100": (lambda qm: qm.put_many("Q", [b"x"] * 100), lambda qm, _: qm.get_many("Q", 100), Cost(7, 23, 7, 1)),
    "get that finds nothing": (nothing, get_of_nothing, Cost(10, 8, 0, 0)),
    "put in a unit": (QueueManager.back_out, lambda qm, _: qm.put("Q", b"x", syncpoint=True), Cost(6, 18, 5, 0)),
    "get in a unit": (outside_a_unit, lambda qm, _: qm.get("Q", syncpoint=True), Cost(6, 18, 5, 0)),
    "second put in a unit": (
        lambda qm: qm.put("Q", b"x", syncpoint=True),
        lambda qm, _: qm.put("Q", b"x", syncpoint=True),
        Cost(6, 18, 5, 0),
    ),
    "commit of a put": (lambda qm: qm.put("Q", b"x", syncpoint=True), lambda qm, _: qm.commit(), Cost(5, 17, 4, 1)),
    "commit of a get": (got_in_a_unit, lambda qm, _: qm.commit(), Cost(6, 17, 4, 1)),
    "back out of a get": (got_in_a_unit, lambda qm, _: qm.back_out(), Cost(6, 18, 5, 0)),
    "browse first": (browsing, lambda _, handle: handle.browse_first(), Cost(6, 4, 0, 0)),
    "browse next": (partial(browsing, has_begun=True), lambda _, handle: handle.browse_next(), Cost(6, 2, 0, 0)),
    "put under a confirm id": (nothing, lambda qm, _: qm.put("Q", b"x", confirm_id=CONFIRM_ID), Cost(8, 19, 5, 1)),
    "confirm of a put": (
        lambda qm: qm.put("Q", b"x", confirm_id=CONFIRM_ID).uid,
        lambda qm, uid: qm.confirm_put("Q", uid),
        Cost(10, 21, 6, 1),
    ),
    "get under a confirm id": (one_there, lambda qm, _: qm.get("Q", confirm_id=CONFIRM_ID), Cost(8, 17, 4, 1)),
    "confirm of a get": (got_to_be_confirmed, lambda qm, uid: qm.confirm_get("Q", uid), Cost(12, 23, 7, 1)),
    "browse and lock of one": (one_there, lambda qm, _: qm.browse_and_lock("Q", most=1), Cost(13, 23, 6, 1)),
    "unlock": (locked_one, lambda qm, held: qm.unlock("Q", held[0], lock_id=held[1]), Cost(10, 21, 6, 1)),
    "delete of a locked one": (
        locked_one,
        lambda qm, held: qm.delete("Q", held[0], lock_id=held[1]),
        Cost(12, 23, 7, 1),
    ),
    "open and close of a handle": (
        nothing,
        lambda qm, _: qm.open("Q", input="shared", output=True).close(),
        Cost(13, 32, 8, 0),
    ),
    "status": (nothing, lambda qm, _: qm.inspect.status("Q"), Cost(12, 8, 0, 0)),
    "connect and close of a second connection": (nothing, lambda qm, _: qm.connect().close(), Cost(23, 28, 4, 0)),
}


@pytest.fixture
def system() -> Iterator[CountingSystem]:
    with counting_system() as counting:
        yield counting


@pytest.fixture(autouse=True)
def no_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """The looks for the store's files depend on the clock, so none may come while calls are counted."""
    monkeypatch.setattr(database, "LOOK_SECONDS", 3600.0)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that was made and closed: making one is not counted, and would leave its own settings behind."""
    path = tmp_path_factory.mktemp("made") / "store.db"
    store = SqliteStore(path, clock=ManualClock())
    with inorder.connect(store) as qm:
        qm.create_queue("Q")
    store.close_store()
    return path


@pytest.mark.skipif(sys.platform != "linux", reason="system calls are counted as Linux has them")
@pytest.mark.parametrize("verb", COSTS)
def test_each_verb_has_exactly_its_recorded_cost(verb: str, made: Path, tmp_path: Path, system: CountingSystem) -> None:
    prepare, call, wanted = COSTS[verb]
    store = SqliteStore(shutil.copy(made, tmp_path), clock=ManualClock())
    with inorder.connect(store, program="test") as qm:
        for _ in range(UNCOUNTED_CALLS):
            call(qm, prepare(qm))
        held = prepare(qm)
        with system.counting(store) as counts:
            call(qm, held)
        qm.back_out()
    store.close_store()
    assert cost_of(counts) == wanted, f"{verb} was {wanted}, and is {cost_of(counts)}\n{counts}"


def cost_of(counts: Counts) -> Cost:
    pages, rest = divmod(counts.log_bytes, LOG_PAGE_BYTES)
    assert not rest, f"{counts.log_bytes:,} bytes of log are not whole pages"
    return Cost(len(counts.statements), counts.calls.total(), pages, counts.syncs)


# ---- among many queues

FEW_QUEUES, MANY_QUEUES = 5, 200
Plain = Callable[[QueueManager], object]


def after_another_was_altered(call: Plain) -> Plain:
    def both(qm: QueueManager) -> None:
        qm.alter_queue("Q1", max_depth=7)
        call(qm)

    return both


AMONG_QUEUES: dict[str, Plain] = {
    "create": lambda qm: qm.create_queue("NEW"),
    "alter": lambda qm: qm.alter_queue("Q1", description="another"),
    "delete": lambda qm: qm.delete_queue("Q1"),
    "an open after another queue was altered": after_another_was_altered(lambda qm: qm.open("Q2", output=True)),
    "one queue at one moment": lambda qm: qm.inspect.overview("Q1"),
    "stop": lambda qm: qm.admin.stop(),
}


def many_queues(qm: QueueManager, queues: int) -> tuple[()]:
    for number in range(queues):
        qm.create_queue(f"Q{number}")
    qm.put("Q", b"1")
    return ()


@pytest.mark.parametrize("name", AMONG_QUEUES)
def test_a_call_costs_the_same_among_many_queues(name: str, tmp_path: Path) -> None:
    check_costs(tmp_path, many_queues, AMONG_QUEUES[name], few=FEW_QUEUES, many=MANY_QUEUES)


def test_opening_and_closing_a_store_runs_as_many_statements_for_many_queues_as_for_few(tmp_path: Path) -> None:
    def statements(queues: int) -> int:
        path = tmp_path / f"{queues}.db"
        with inorder.connect(path) as qm:
            for number in range(queues):
                qm.create_queue(f"Q{number}")
            qm.put("Q0", b"lost with the last process", persistent=False)
        found: list[str] = []

        def note(_: object, text: str, __: object) -> bool:
            found.append(text)
            return True

        apsw.connection_hooks.append(lambda made: made.set_exec_trace(note))
        try:
            with inorder.connect(path) as qm:
                assert qm.depth("Q0") == 0
        finally:
            apsw.connection_hooks.pop()
        return len(found)

    assert statements(MANY_QUEUES) == statements(FEW_QUEUES)


def test_the_overview_runs_no_statements_for_empty_queues(tmp_path: Path) -> None:
    def statements(queues: int) -> int:
        store = SqliteStore(tmp_path / f"{queues}.db", clock=ManualClock())
        with inorder.connect(store) as qm:
            for number in range(queues):
                qm.create_queue(f"Q{number}")
            qm.put("Q0", b"1")
            with counted(store) as found:
                assert len(qm.inspect.overview()) == queues
        store.close_store()
        return len(found)

    assert statements(MANY_QUEUES) == statements(FEW_QUEUES)


def test_a_retry_by_hand_sends_no_statement_for_each_message_of_a_queue_with_a_trigger(tmp_path: Path) -> None:
    def statements(messages: int) -> int:
        store = SqliteStore(tmp_path / f"{messages}.db", clock=ManualClock())
        with inorder.connect(store) as qm:
            qm.create_queue("START")
            qm.admin.create_process("P", application_id="program")
            qm.create_queue("Q", trigger_control=True, trigger_type="first", process="P", initiation_queue="START")
            singles(qm, messages)
            with qm.unit_of_work() as unit:
                qm.get_many("Q", messages)
                unit.back_out(delay=60)
            with counted(store) as found:
                assert qm.admin.retry_now("Q") == messages
        return len(found)

    assert statements(2) == statements(4)
