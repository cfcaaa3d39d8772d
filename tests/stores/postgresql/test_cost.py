"""The statements that plain calls send, exactly, by name, and where the client waits for answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.helpers.support import Call, until
from tests.stores.postgresql.conftest import Connect
from tests.stores.postgresql.server import administrating

from inorder import QueueManager
from inorder.errors import GetInhibited, NoMessageAvailable, PutInhibited, QueueFull
from inorder.stores.engine import operation
from inorder.stores.postgresql.engine import FOLLOW_FRONTS
from inorder.stores.postgresql.link import SYNCHRONOUSLY
from inorder.stores.postgresql.making import PUTS, PUTS_TOGETHER, counted, in_arrays
from inorder.stores.postgresql.pipeline import Pipeline, StatementResult
from inorder.stores.postgresql.statements import STATEMENTS
from inorder.stores.sql.attention import IN_VAIN_MAX, LOOKED_FOR

WAITS, ASKS = "...", "?"  # for the end of the transaction; for an answer before that
NAMES = {text: name for name, text in STATEMENTS.items()} | {
    **dict.fromkeys(PUTS.values(), "put"),
    **dict.fromkeys(PUTS_TOGETHER.values(), "put together"),
    **{
        in_arrays(STATEMENTS[name], appends=appends, alike=True).text: f"{name} of many"
        for name in ("insert plain message", "insert content")
        for appends in (False, name == "insert plain message")
    },
    SYNCHRONOUSLY: "synchronously",
    counted(STATEMENTS["restart unit"], 3): "restart unit",
}
BODY = b"b" * 100
MOVES_FRONTS = FOLLOW_FRONTS
UPDATES = "UPDATE tally SET counter = counter + 1"


@pytest.fixture
def qm(connect: Connect) -> QueueManager:
    """A program with an ordered queue Q and an unordered queue U, both open and empty."""
    one = connect("test")
    one.create_queue("Q", read_order="relaxed")
    one.create_queue("U", read_order="unordered")
    for queue in ("Q", "U"):
        one.put(queue, BODY)
        one.get(queue)
    return one


@contextmanager
def sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Logs the statements that are executed in the block, and where the client waits."""
    log: list[str] = []
    execute, sync, ask = Pipeline.execute, Pipeline.sync, Pipeline.ask

    def executed(self: Pipeline, text: str, values: Any = ()) -> StatementResult:
        log.append(NAMES.get(text, text))
        return execute(self, text, values)

    def synced(self: Pipeline, *given: Any) -> int:
        log.append(WAITS)
        return sync(self, *given)

    def asked(self: Pipeline) -> None:
        log.append(ASKS)
        ask(self)

    with monkeypatch.context() as patch:
        patch.setattr(Pipeline, "ask", asked)
        patch.setattr(Pipeline, "execute", executed)
        patch.setattr(Pipeline, "sync", synced)
        yield log


def set_fronts(url: str, queue: str) -> None:
    """Sets fronts, as a get does that has read too much."""
    with administrating(url) as connection:
        found = connection.execute("SELECT id FROM definition WHERE name = %s", [queue]).fetchone()
        assert found
        connection.execute(STATEMENTS["set fronts"].replace("?1", str(found[0])).encode())


def put(qm: QueueManager, queue: str) -> None:
    qm.put(queue, BODY)


def get(qm: QueueManager, queue: str) -> None:
    assert qm.get(queue).body == BODY


def put_many(qm: QueueManager, queue: str) -> None:
    qm.put_many(queue, [BODY] * 10)


def get_many(qm: QueueManager, queue: str) -> None:
    assert len(qm.get_many(queue, 10)) == 10


END = ["synchronously", WAITS]
MANY = ["insert plain message of many", "insert content of many"]
COSTS: dict[str, tuple[Callable[[QueueManager, str], None], list[str]]] = {
    "put to Q": (put, ["put", WAITS]),
    "put to U": (put, ["enter unordered queue", "put together", WAITS]),
    "get from Q": (get, ["get and remove one as known", ASKS, WAITS]),
    "get from U": (get, ["enter unordered queue", "get and remove one together as known", ASKS, WAITS]),
    "put of many to Q": (put_many, ["queue state to append", ASKS, *MANY, "update queue counters", *END]),
    "put of many to U": (
        put_many,
        [
            "enter unordered queue", "queue state together to append", "draw places", ASKS, *MANY,
            "update queue counters together", *END,
        ],
    ),
    "get of many from Q": (get_many, ["queue state as known", "get and remove", ASKS, *END]),
    "get of many from U": (get_many, ["enter unordered queue", "get and remove together as known", ASKS, *END]),
}  # fmt: skip


@pytest.mark.parametrize("name", COSTS)
def test_a_call_on_a_queue_with_one_user_sends_exactly_the_expected_statements(
    qm: QueueManager, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    act, statements = COSTS[name]
    queue = name[-1]
    if act in (get, get_many):
        qm.put_many(queue, [BODY] * 100)
        get_many(qm, queue)
    for _ in range(2):
        act(qm, queue)
    with sent(monkeypatch) as log:
        act(qm, queue)
    assert log == statements


def test_a_put_after_one_by_another_program_commits_before_it_waits_for_the_disk(
    qm: QueueManager, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = connect("other")
    for _ in range(2):
        put(other, "Q")
        put(qm, "Q")
    with sent(monkeypatch) as log:
        put(qm, "Q")
        put(qm, "Q")
    found = log
    assert found == [*("put", WAITS, "flush commits", WAITS), *("put", WAITS)]
    assert list(qm.admin.check()) == []


@pytest.mark.parametrize(("queue", "comes"), [("Q", []), ("U", ["enter unordered queue"])])
def test_a_commit_locks_its_queues_and_counts_its_messages_in_one_round_trip(
    qm: QueueManager, monkeypatch: pytest.MonkeyPatch, queue: str, comes: list[str]
) -> None:
    put = "put" if queue == "Q" else "put together"
    here = "queue state locked" if queue == "Q" else "queue state together"
    for _ in range(3):
        qm.put(queue, BODY, syncpoint=True)
        qm.commit()
    with sent(monkeypatch) as log:
        for seconds, restarts in ((0.0, ["restart unit"]), (60.0, [])):
            monkeypatch.setattr(operation, "SAME_START_SECONDS", seconds)
            log.clear()
            qm.put(queue, BODY, syncpoint=True)
            assert log == [*comes, put, *restarts, WAITS]
            log.clear()
            qm.commit()
    assert log[:6] == ["queues of unit", ASKS, "lock queues", here, "shares of unit", ASKS]
    assert ASKS not in log[6:]
    assert list(qm.admin.check()) == []


def test_puts_and_gets_on_queues_with_fronts_send_few_statements(
    qm: QueueManager, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for queue in ("Q", "U"):
        qm.put_many(queue, [BODY] * 100)
        set_fronts(url, queue)
        for act in (put, get, put, get):
            act(qm, queue)
    with sent(monkeypatch) as log:
        for queue in ("Q", "U"):
            put(qm, queue)
            get(qm, queue)
    assert log == [
        *(MOVES_FRONTS, "put", WAITS),
        *(MOVES_FRONTS, "queue state as known", "get and remove one after fronts", ASKS, *END),
        *("enter unordered queue", "put together", WAITS),
        *("enter unordered queue", "get and remove one together as known after fronts", ASKS, WAITS),
    ]
    assert list(qm.admin.check()) == []


def test_a_put_that_waited_is_not_sent_again(qm: QueueManager, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the row of the queue gets another serial meanwhile, and so is moved."""
    for _ in range(2):
        put(qm, "Q")
    with administrating(url, autocommit=False) as other, sent(monkeypatch) as log:
        other.execute("UPDATE tally SET serial = serial + 1, arrived = arrived WHERE unordered = 0")
        call = Call(lambda: put(qm, "Q"))
        with administrating(url) as looking:
            waits = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE %s AND wait_event_type = 'Lock'"
            until(lambda: looking.execute(waits, [f"%{UPDATES}%"]).fetchone() == (1,), "the put waits")
        other.commit()
        call.result()
    assert log == ["put", WAITS]
    assert list(qm.admin.check()) == []


@pytest.mark.parametrize("queue", ["Q", "U"])
def test_puts_look_for_listeners_only_while_there_are_some(
    qm: QueueManager, url: str, connect: Connect, monkeypatch: pytest.MonkeyPatch, queue: str
) -> None:
    other = connect("other")
    call = Call(lambda: other.get(queue, wait=600))
    with administrating(url) as looking:
        until(lambda: looking.execute("SELECT 1 FROM listener").fetchone() == (1,), "somebody listens")
        put(qm, queue)
        assert call.result().body == BODY
        with sent(monkeypatch) as log:
            put(qm, queue)
        assert "notify listeners" in log
        looking.execute("DELETE FROM listener")
        for _ in range(1 + IN_VAIN_MAX * LOOKED_FOR):
            put(qm, queue)
        assert looking.execute("SELECT sum(attention) FROM tally").fetchone() == (0,)
    put(qm, queue)
    with sent(monkeypatch) as log:
        put(qm, queue)
    assert log == COSTS[f"put to {queue}"][1]


@pytest.mark.parametrize("touch", ["revision = revision", None])
def test_a_get_that_waited_for_a_lock_sees_the_changes_made_meanwhile(
    qm: QueueManager, url: str, touch: str | None
) -> None:
    """Another session has changed the row of the queue, or only those of messages."""
    qm.put_many("Q", [b"first", b"second", b"third"])
    assert qm.get("Q").body == b"first"
    with administrating(url, autocommit=False) as other, administrating(url) as looking:
        other.execute("SELECT FROM tally FOR NO KEY UPDATE")
        other.execute("UPDATE message SET backouts = 7 WHERE number = (SELECT min(number) FROM message)")
        if touch is not None:
            other.execute("UPDATE message SET rank = -9 WHERE number = (SELECT max(number) FROM message)")
            other.execute(f"UPDATE tally SET {touch}".encode())
        call = Call(lambda: qm.get("Q"))
        waits = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%%seen.made_by%%' AND wait_event_type = 'Lock'"
        until(lambda: looking.execute(waits).fetchone() == (1,), "the get waits")
        other.commit()
        got = call.result()
    assert (got.body, got.backout_count) == ((b"second", 7) if touch is None else (b"third", 0))


def test_numbers_are_reserved_for_many_puts_and_no_put_is_sent_twice(
    qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_many(qm, "Q")
    with sent(monkeypatch) as log:
        for _ in range(200):
            qm.put_many("Q", [BODY] * 100)
    assert log.count("insert plain message of many") == 200
    assert log.count("draw numbers") <= 200 * 100 / 1000
    assert log.count("queue state locked") <= 200 * 100 / 1000


@pytest.mark.parametrize("queue", ["Q", "U"])
def test_a_program_sees_the_changes_of_another_program_to_a_queue(
    qm: QueueManager, connect: Connect, queue: str
) -> None:
    other = connect("other")
    for _ in range(2):
        put(qm, queue)
        get(qm, queue)
    other.alter_queue(queue, get_allowed=False)
    with pytest.raises(GetInhibited):  # even while the queue is empty
        qm.get(queue)
    other.alter_queue(queue, get_allowed=True, put_allowed=False)
    with pytest.raises(PutInhibited):
        put(qm, queue)
    other.alter_queue(queue, put_allowed=True, max_depth=2)
    put(qm, queue)
    put(other, queue)
    with pytest.raises(QueueFull):
        put(qm, queue)
    get(other, queue)
    get(qm, queue)
    with pytest.raises(NoMessageAvailable):
        qm.get(queue)
    assert list(qm.admin.check()) == []


@pytest.mark.parametrize(("queue", "order"), [("Q", "unordered"), ("U", "relaxed")])
def test_puts_and_gets_stay_in_order_after_another_program_changes_the_read_order(
    qm: QueueManager, connect: Connect, queue: str, order: Any
) -> None:
    other = connect("other")
    for _ in range(2):
        put(qm, queue)
        get(qm, queue)
    other.alter_queue(queue, read_order=order)
    bodies = [str(number).encode() for number in range(6)]
    for body in bodies:
        qm.put(queue, body)
    assert [qm.get(queue).body for _ in bodies[:3]] == bodies[:3]
    assert [other.get(queue).body for _ in bodies[3:]] == bodies[3:]
    assert list(qm.admin.check()) == []
