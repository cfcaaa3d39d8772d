"""A call that waits in one process is woken by another process: each rule of B-28, and relaxed waits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.helpers.support import waiting
from tests.helpers.waking import BROWSING, WAKING
from tests.stores.sqlite.programs import Program, programs
from tests.tiers import gate

import inorder
from inorder import FOREVER as WITHOUT_END
from inorder import QueueManager
from inorder.errors import GetInhibited, QueueDeleted
from inorder.stores.sqlite import watch

pytestmark = [gate, pytest.mark.usefixtures("woken")]


@pytest.fixture
def woken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A waiting process is woken or times out; it does not poll each second."""
    monkeypatch.setattr(watch, "DEAD_CHECK_SECONDS", 1e6)


@pytest.mark.parametrize("what", WAKING)
def test_a_waiting_get_is_woken_by(qm: QueueManager, child: Program, what: str) -> None:
    before, how, act = WAKING[what]
    child.run(before)
    call = waiting(qm, lambda: qm.get("Q", wait=WITHOUT_END, **how))
    child.run(act)
    assert call.result().body == b"2"


@pytest.mark.parametrize("what", BROWSING)
def test_a_waiting_browse_is_woken_by(qm: QueueManager, child: Program, what: str) -> None:
    before, how, act = WAKING[what]
    child.run(before)
    with qm.open("Q", browse=True) as queue:
        call = waiting(qm, lambda: queue.browse_first(wait=WITHOUT_END, **how))
        child.run(act)
        assert call.result().body == b"2"


@pytest.mark.parametrize(
    "code",
    [
        "other = qm.connect(); other.put('Q', b'1', expiry=0.3, syncpoint=True); qm.put('Q', b'2')",
        "qm.put('Q', b'2', delay=0.2); qm.put('Q', b'3')",
    ],
    ids=["a pending put expires", "a delayed message is due"],
)
def test_a_strict_get_receives_its_message_when(qm: QueueManager, child: Program, code: str) -> None:
    """The get waits for that, unless this process was slow to call it."""
    child.run(code)
    assert qm.get("Q", wait=WITHOUT_END, read_order="strict").body == b"2"


def test_a_delayed_message_of_another_process_ends_a_wait_when_it_is_due(qm: QueueManager, child: Program) -> None:
    call = waiting(qm, lambda: qm.get("Q", wait=WITHOUT_END))
    child.run("qm.put('Q', b'2', delay=0.1)")
    assert call.result().body == b"2"


def test_a_wait_ends_when_gets_are_inhibited(qm: QueueManager, child: Program) -> None:
    call = waiting(qm, lambda: qm.get("Q", wait=WITHOUT_END))
    child.run("qm.alter_queue('Q', get_allowed=False)")
    assert isinstance(call.error(), GetInhibited)


def test_a_wait_on_a_queue_that_is_deleted_through_its_creators_handle_ends(qm: QueueManager, child: Program) -> None:
    qm.create_queue("MODEL", type="model", shareable=True, default_input="shared")
    name = child.ask("(handle := qm.open('MODEL', input='shared')).name")
    with qm.open(name, input="shared") as other:
        call = waiting(qm, lambda: other.get(wait=WITHOUT_END))
        child.run("handle.close()")
        assert isinstance(call.error(), QueueDeleted)


# ---- several that wait


def test_a_change_seen_by_a_later_waiter_still_wakes_earlier_ones(qm: QueueManager, child: Program) -> None:
    """The second begins to wait between the put and the moment at which the first is woken."""
    child.run("other = qm.connect(); sleep = bell.sleep; come = threading.Event(); slept = threading.Semaphore(0)")
    child.run("bell.sleep = lambda *given: (slept.release(), sleep(*given), come.wait())")
    child.run("first = Waiting(qm, lambda: qm.get('Q', wait=600), slept.acquire)")
    qm.put("Q", b"1")
    child.run("none = inorder.Match(correlation_id=b'none')")
    child.run("second = Waiting(other, lambda: other.get('Q', wait=600, match=none), slept.acquire)")
    child.run("come.set()")
    assert child.ask("first.end()") == b"1"
    qm.put("Q", b"2", correlation_id=b"none")
    assert child.ask("second.end()") == b"2"


def test_each_message_goes_to_one_of_many_calls_that_wait_in_three_processes(path: Path, qm: QueueManager) -> None:
    with programs(path, 3) as each:
        for one in each:
            one.run("own = [qm.connect() for _ in range(4)]")
            one.run("waits = [Waiting(m, lambda m=m: m.get('Q', wait=600)) for m in own]")
        qm.put_many("Q", [b"%d" % number for number in range(12)])
        got = [body for one in each for body in one.ask("[wait.end() for wait in waits]")]
    assert sorted(got, key=int) == [b"%d" % number for number in range(12)]
    assert qm.depth("Q") == 0


# ---- strict readers that wait for each other: circles are found at once, and only those


@pytest.fixture
def ring(qm: QueueManager, path: Path) -> Iterator[list[Program]]:
    """Three processes; each has got the first message of its own queue: A, B or C."""
    with programs(path, 3) as each:
        for one, queue in zip(each, "ABC", strict=True):
            qm.create_queue(queue)
            qm.put_many(queue, [b"%s1" % queue.encode(), b"%s2" % queue.encode()])
            one.run(f"watch.DEAD_CHECK_SECONDS = 0.05; apart(lambda: qm.get({queue!r}, syncpoint=True))")
        yield each


def wait_on(one: Program, queue: str) -> None:
    one.run(f"wait = Waiting(qm, lambda: qm.get({queue!r}, syncpoint=True, read_order='strict', wait=600))")


def is_refused(one: Program, queue: str) -> None:
    said = one.ask(f"error_of(lambda: qm.get({queue!r}, syncpoint=True, read_order='strict', wait=600))")
    assert said == "OrderDeadlock"


def test_a_deadlock_of_two_is_refused_and_the_refused_process_keeps_its_unit(
    ring: Sequence[Program], path: Path
) -> None:
    one, other, third = ring
    wait_on(one, "B")
    is_refused(other, "A")
    found = other.ask("[(unit.gets, unit.program.name) for unit in qm.inspect.units()]")
    assert found == [(1, "child 0"), (1, "child 1"), (1, "child 2")]
    third.run("qm.back_out()")
    other.run("qm.commit()")
    assert one.ask("wait.end()") == b"B2"
    with inorder.connect(path) as manager:
        assert [manager.depth(queue) for queue in "ABC"] == [1, 0, 2]


def test_a_killed_process_causes_no_deadlock(ring: Sequence[Program]) -> None:
    one, other, _ = ring
    wait_on(one, "B")
    one.kill()
    assert other.ask("qm.get('A', syncpoint=True, read_order='strict', wait=600).body") == b"A1"


def test_a_waiter_gets_its_message_when_the_process_that_blocks_it_is_killed(ring: Sequence[Program]) -> None:
    one, other, _ = ring
    wait_on(one, "B")
    other.kill()
    assert one.ask("wait.end()") == b"B1"
