"""What a fork leaves: a parent that goes on, and a child that must open anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.sqlite.children import SCHEMA, VERSION, Child

from inorder.stores.sqlite.database import Database

# Fork, let the child do something, and give what it says.
FORK = """
import signal
def forked(act):
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            said = repr(act())
        except BaseException as error:
            said = repr(f"failed: {error!r}")
        os.write(write_end, said.encode())
        os._exit(0)
    os.close(write_end)
    with open(read_end) as pipe:
        said = eval(pipe.read())
    os.waitpid(child, 0)
    return said
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "orders.db"


@pytest.fixture
def parent(path: Path) -> Iterator[Child]:
    with Child(path) as child:
        child.run(FORK)
        child.run("write(database)")
        yield child


CALLS = (
    "write(database)",
    "count(database)",
    "database.sync(1)",
    "database.tidy_log()",
    "database.seen(1)",
    "database.expect(1)",
    "database.bell",
    "database.stopped",
    "setattr(database, 'stopped', True)",
    "database.hold_owner(1)",
    "database.is_alive(1)",
    "database.any_owner_alive()",
)


@pytest.mark.parametrize("call", CALLS)
def test_a_child_is_refused_the_parents_database(parent: Child, call: str) -> None:
    assert parent.ask(f"forked(lambda: error_of(lambda: {call}))") == "ForkedConnection"
    parent.run("database.sync(write(database))")
    assert parent.ask("count(database)") == 2


def test_a_child_may_close_what_it_cannot_use(parent: Child) -> None:
    assert parent.ask("forked(database.close)") is None
    parent.run("database.sync(write(database))")


def test_a_child_opens_the_same_store_anew_and_both_go_on(parent: Child) -> None:
    parent.run(
        "def act():\n"
        "    own = opened(database.path)\n"
        "    ticket = write(own); own.sync(ticket); own.hold_owner(9)\n"
        "    return count(own), ticket\n"
    )
    assert parent.ask("forked(act)") == (2, 2)
    parent.run("database.sync(write(database))")
    assert parent.ask("count(database), database.is_alive(9)") == (3, False)


def test_a_child_that_ends_leaves_the_parents_owners_alive(parent: Child, path: Path) -> None:
    parent.run("database.hold_owner(7)")
    parent.run("forked(lambda: opened(database.path).close())")
    with Child(path) as other:
        assert other.ask("database.is_alive(7)")


def test_a_child_sees_the_parent_as_another_process(parent: Child) -> None:
    parent.run("database.hold_owner(7)")
    assert parent.ask("forked(lambda: opened(database.path).any_owner_alive())")


def test_what_a_child_writes_survives_a_parent_that_closes_first(parent: Child, path: Path) -> None:
    """SQLite in the child must not take the parent's locks for its own: the parent would remove the log under it."""
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
    database = Database(path, schema=SCHEMA, version=VERSION)
    with database.reading():
        assert database.connection.execute("SELECT count(*) FROM note").get == 3
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


def test_a_fork_among_checkpoints_and_syncs_of_many_threads(parent: Child) -> None:
    parent.run(
        "tidy_at(database, 5); stop = []; lock = threading.Lock()\n"
        "def work():\n"
        "    while not stop:\n"
        "        with lock: ticket = write(database)\n"
        "        database.sync(ticket); database.tidy_log()\n"
        "threads = [threading.Thread(target=work) for _ in range(3)]\n"
        "for thread in threads: thread.start()\n"
        "answer = []\n"
        "for _ in range(10):\n"
        "    answer.append(forked(lambda: count(opened(database.path)) > 0))\n"
        "stop.append(1)\n"
        "for thread in threads: thread.join()\n"
    )
    assert parent.ask("answer or True")


def test_a_log_that_another_process_removed_during_a_fork_has_been_synced(parent: Child, path: Path) -> None:
    """Between a commit and its sync this process forks, and another one closes the store as the last."""
    parent.run("database.sync(write(database)); ticket = write(database); forked(lambda: None)")
    with Child(path) as other:
        other.run("database.close()")
    assert not Path(f"{path}-wal").exists()
    parent.run("database.sync(ticket)")
    parent.run("synced = []; log.sync_data = lambda descriptor: synced.append(os.fstat(descriptor).st_ino)")
    parent.run("database.sync(write(database))")
    assert parent.ask("synced == [os.stat(f'{database.path}-wal').st_ino]"), "another log was synced than was written"
    assert parent.ask("count(database)") == 4


@pytest.mark.nightly
def test_forks_among_puts_opens_and_closes_of_other_processes(parent: Child, path: Path) -> None:
    parent.run(
        "stop, failed, written = [], [], []\n"
        "def work():\n"
        "    try:\n"
        "        while not stop:\n"
        "            database.sync(write(database)); written.append(1)\n"
        "    except BaseException as error:\n"
        "        failed.append(repr(error))\n"
        "threads = [threading.Thread(target=work, daemon=True) for _ in range(2)]\n"
        "for thread in threads: thread.start()\n"
        "import time\n"
        "def forking():\n"
        "    while not stop:\n"
        "        forked(lambda: None)\n"
        "        time.sleep(0.001)\n"
        "threads.append(threading.Thread(target=forking, daemon=True)); threads[-1].start()\n"
    )
    with Child() as other:
        other.run(
            f"for _ in range(150):\n    own = opened({str(path)!r}); own.sync(write(own)); own.close()\n    del own"
        )
    parent.run("stop.append(1)\nfor thread in threads: thread.join()")
    assert parent.ask("failed") == []
    assert parent.ask("count(database) == 1 + len(written) + 150")


REFUSED = (
    "qm.put('Q', b'')",
    "qm.connect()",
    "qm.open('Q')",
    "queue.get()",
    "qm._store.status('Q')",
    "qm._store.stop()",
    "write(qm._store.database)",
)


@pytest.mark.parametrize("call", REFUSED)
def test_the_refusal_names_the_call_that_opens_the_file_in_the_child(path: Path, call: str) -> None:
    with Child() as child:
        child.run(FORK)
        child.run(f"import inorder; qm = inorder.connect({str(path)!r}); qm.create_queue('Q'); queue = qm.open('Q')")
        child.run(
            "def refusal(call):\n    try: call()\n    except ForkedConnection as error: return error.path, str(error)\n"
        )
        refused = child.ask(f"forked(lambda: refusal(lambda: {call}))")
        assert isinstance(refused, tuple)
        told, text = refused
        assert told == str(path)
        remedy = f"inorder.connect({str(path)!r})"
        assert remedy in text
        assert child.ask(f"forked(lambda: {remedy}.depth('Q'))") == 0


def test_the_refusal_for_a_store_in_memory_names_no_file() -> None:
    with Child() as child:
        child.run(FORK)
        child.run("import inorder; qm = inorder.connect(); qm.create_queue('Q')")
        for call in ("qm.put('Q', b'')", "qm.connect()", "qm._store.status('Q')"):
            said = child.ask(f"forked(lambda: {call})")
            assert isinstance(said, str)
            assert "belongs to the process that made it" in said
            assert "inorder.connect(" not in said
