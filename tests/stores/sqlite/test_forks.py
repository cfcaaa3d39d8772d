"""Forks: the parent goes on, and the child must open the store anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.stores.sqlite.inside import count, opened
from tests.stores.sqlite.programs import Child
from tests.tiers import gate, nightly

pytestmark = gate

ON_A_DATABASE = (
    "write(database)", "count(database)", "database.sync(1)", "database.tidy_log()", "database.shared.seen(1)",
    "database.shared.bell.expect(1)", "database.shared.bell", "database.shared.stopped",
    "setattr(database.shared, 'stopped', True)", "database.hold_owner(1)", "database.shared.is_alive(1)",
    "database.shared.any_owner_alive()",
)  # fmt: skip
ON_A_QUEUE_MANAGER = (
    "qm.put('Q', b'')", "qm.commit()", "qm.connect()", "qm.open('Q')", "queue.get()", "queue.browse_first()",
    "qm._store.status('Q')", "qm._store.stop()", "write(qm._store.database)",
)  # fmt: skip
REFUSAL = "def refusal(call):\n    try: call()\n    except ForkedConnection as error: return error.path, str(error)\n"


@pytest.fixture
def parent(path: Path) -> Iterator[Child]:
    with Child(path) as child:
        child.run("write(database)")
        yield child


def test_a_child_cannot_use_the_parents_database_but_may_close_it(parent: Child) -> None:
    for call in ON_A_DATABASE:
        assert parent.ask(f"forked(lambda: error_of(lambda: {call}))") == "ForkedConnection", call
    assert parent.ask("forked(database.close)") is None
    parent.run("database.sync(write(database))")
    assert parent.ask("count(database)") == 2


def test_the_refusal_names_the_call_that_opens_the_file_in_the_child(path: Path) -> None:
    with Child() as child:
        child.run(f"qm = inorder.connect({str(path)!r}); qm.create_queue('Q'); queue = qm.open('Q', browse=True)")
        child.run(f"qm.put('Q', b'unit', syncpoint=True)\n{REFUSAL}")
        remedy = f"inorder.connect({str(path)!r})"
        for call in ON_A_QUEUE_MANAGER:
            told, text = child.ask(f"forked(lambda: refusal(lambda: {call}))")
            assert told == str(path), call
            assert remedy in text, call
        assert child.ask(f"forked(lambda: {remedy}.depth('Q'))") == 1
        child.run("qm.commit()")
        assert child.ask("qm.get('Q').body") == b"unit"


def test_a_child_opens_the_same_store_again_and_both_processes_can_write(parent: Child) -> None:
    parent.run(
        "def act():\n"
        "    own = opened(database.path)\n"
        "    ticket = write(own); own.sync(ticket); own.hold_owner(9)\n"
        "    return count(own), ticket\n"
    )
    assert parent.ask("forked(act)") == (2, 2)
    parent.run("database.sync(write(database))")
    assert parent.ask("(count(database), database.shared.is_alive(9))") == (3, False)


def test_a_child_sees_the_parents_owners_and_leaves_them_alive(parent: Child, path: Path) -> None:
    parent.run("database.hold_owner(7)")
    assert parent.ask("forked(lambda: opened(database.path).shared.any_owner_alive())")
    parent.run("forked(lambda: opened(database.path).close())")
    with Child(path) as other:
        assert other.ask("database.shared.is_alive(7)")


def test_writes_of_a_child_survive_a_parent_that_closes_first(parent: Child, path: Path) -> None:
    """SQLite in the child must not mistake the parent's locks for its own: the parent would remove its log."""
    parent.run(
        "read_end, write_end = os.pipe(); done, end = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    own = opened(database.path)\n"
        "    write(own)\n"
        "    os.write(end, b'.')\n"
        "    os.read(read_end, 1)\n"
        "    own.sync(write(own)); own.hold_owner(3)\n"
        "    os.write(end, b'.')\n"
        "    os._exit(0)\n"
    )
    parent.run("os.read(done, 1); database.close(); os.write(write_end, b'.'); os.read(done, 1)")
    database = opened(path)
    assert count(database) == 3
    database.close()


def test_a_fork_waits_for_the_transactions_of_other_threads(parent: Child) -> None:
    parent.run(
        "inside, go_on = threading.Event(), threading.Event()\n"
        "def work():\n"
        "    with database.writing():\n"
        "        database.connection.execute('INSERT INTO note (text) VALUES (1)')\n"
        "        inside.set(); go_on.wait()\n"
        "thread = threading.Thread(target=work); thread.start(); inside.wait()\n"
        "threading.Timer(0.05, go_on.set).start()\n"
    )
    assert parent.ask("forked(lambda: count(opened(database.path)))") == 2


def test_a_child_forked_inside_a_transaction_cannot_open_the_file(parent: Child) -> None:
    parent.run(
        "with database.writing():\n"
        "    database.connection.execute('INSERT INTO note (text) VALUES (1)')\n"
        "    said = forked(lambda: (error_of(lambda: opened(database.path)), error_of(lambda: write(database))))\n"
    )
    assert parent.ask("said") == ("ForkedConnection", "ForkedConnection")
    assert parent.ask("count(database)") == 2


def test_a_log_that_another_process_removed_during_a_fork_has_been_synced(parent: Child, path: Path) -> None:
    """Between a commit and its sync, this process forks, and another one closes the store last."""
    parent.run("database.sync(write(database)); ticket = write(database); forked(lambda: None)")
    with Child(path) as other:
        other.run("database.close()")
    assert not Path(f"{path}-wal").exists()
    parent.run("database.sync(ticket)")
    parent.run("synced = []; log.sync_data = lambda descriptor: synced.append(os.fstat(descriptor).st_ino)")
    parent.run("database.sync(write(database))")
    assert parent.ask("synced == [os.stat(f'{database.path}-wal').st_ino]"), "another log was synced than was written"
    assert parent.ask("count(database)") == 4


@nightly
def test_forks_during_checkpoints_and_writes_of_other_processes_lose_nothing(parent: Child, path: Path) -> None:
    parent.run(
        "log.LONG_PAGES = 5; database.log.note_length(database.connection, 'main', 0)\n"
        "stop, failed, written = [], [], []\n"
        "def work():\n"
        "    try:\n"
        "        while not stop:\n"
        "            database.sync(write(database)); database.tidy_log(); written.append(1)\n"
        "    except BaseException as error:\n"
        "        failed.append(repr(error))\n"
        "def forking():\n"
        "    while not stop:\n"
        "        if not forked(lambda: count(opened(database.path)) > 0): failed.append('nothing there')\n"
        "threads = [threading.Thread(target=act, daemon=True) for act in (work, work, forking)]\n"
        "for thread in threads: thread.start()\n"
    )
    with Child() as other:
        other.begin(
            f"for _ in range(150):\n    own = opened({str(path)!r}); own.sync(write(own)); own.close()\n    del own"
        )
        other.answer(240)
    parent.run("stop.append(1)\nfor thread in threads: thread.join()")
    assert parent.ask("failed") == []
    assert parent.ask("count(database) == 1 + len(written) + 150")
