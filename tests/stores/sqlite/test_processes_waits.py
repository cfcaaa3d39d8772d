"""A call that waits in one process is woken by what another one does: each rule of B-28, and relaxed waits."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.support import waiting
from tests.helpers.waking import BROWSING, WAKING
from tests.stores.sqlite.programs import Program, programs
from tests.tiers import gate

from inorder import FOREVER as WITHOUT_END
from inorder import QueueManager
from inorder.errors import GetInhibited, QueueDeleted, QueueManagerStopping
from inorder.stores.sqlite import watch

pytestmark = [gate, pytest.mark.usefixtures("woken")]


@pytest.fixture
def woken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits is woken or waits in vain: it does not look when a second has gone by."""
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
def test_a_strict_get_comes_to_its_message_when(qm: QueueManager, child: Program, code: str) -> None:
    """It waits for that, unless this process was slow to call it."""
    child.run(code)
    assert qm.get("Q", wait=WITHOUT_END, read_order="strict").body == b"2"


def test_a_delayed_message_of_another_process_ends_a_wait_when_it_is_due(qm: QueueManager, child: Program) -> None:
    call = waiting(qm, lambda: qm.get("Q", wait=WITHOUT_END))
    child.run("qm.put('Q', b'2', delay=0.1)")
    assert call.result().body == b"2"


@pytest.mark.parametrize(
    ("act", "error"),
    [
        ("qm.alter_queue('Q', get_allowed=False)", GetInhibited),
        ("qm.admin.stop()", QueueManagerStopping),
    ],
)
def test_a_wait_ends_with(qm: QueueManager, child: Program, act: str, error: type[Exception]) -> None:
    call = waiting(qm, lambda: qm.get("Q", wait=WITHOUT_END))
    child.run(act)
    assert isinstance(call.error(), error)


def test_a_wait_on_a_queue_that_is_deleted_through_its_creators_handle_ends(qm: QueueManager, child: Program) -> None:
    qm.create_queue("MODEL", type="model", shareable=True, default_input="shared")
    name = child.ask("(handle := qm.open('MODEL', input='shared')).name")
    with qm.open(name, input="shared") as other:
        call = waiting(qm, lambda: other.get(wait=WITHOUT_END))
        child.run("handle.close()")
        assert isinstance(call.error(), QueueDeleted)


# ---- several that wait


def test_what_a_later_waiter_has_seen_is_still_told_to_earlier_ones(qm: QueueManager, child: Program) -> None:
    """The second comes to wait between the put and the moment at which the first one is woken."""
    child.run("import threading; other = qm.connect(); sleep = bell.sleep; come = threading.Event()")
    child.run("bell.sleep = lambda *given: (sleep(*given), come.wait())")
    child.run("first = Waiting(qm, lambda: qm.get('Q', wait=60))")
    qm.put("Q", b"1")
    child.run("second = Waiting(other, lambda: other.get('Q', wait=60, match=inorder.Match(correlation_id=b'none')))")
    child.run("come.set()")
    assert child.ask("first.end()") == b"1"
    qm.put("Q", b"2", correlation_id=b"none")
    assert child.ask("second.end()") == b"2"


def test_of_many_that_wait_in_three_processes_each_message_goes_to_one(path: Path, qm: QueueManager) -> None:
    with programs(path, 3) as each:
        for one in each:
            one.run("own = [qm.connect() for _ in range(4)]")
            one.run("waits = [Waiting(m, lambda m=m: m.get('Q', wait=60)) for m in own]")
        qm.put_many("Q", [b"%d" % number for number in range(12)])
        got = [body for one in each for body in one.ask("[wait.end() for wait in waits]")]
    assert sorted(got, key=int) == [b"%d" % number for number in range(12)]
    assert qm.depth("Q") == 0
