"""What every test has at hand: a store of each kind, and Hypothesis profiles.

The fixtures `store` and `qm` are there once for each entry of `STORES`: a test that uses them holds for all stores.
On the store without shortcuts, and on PostgreSQL, whatever runs is in the full gate alone.
PostgreSQL's server starts when the first test needs it, and each process of a run has its own: tests that count or end
sessions never meet those of others. Its URL is then what INORDER_POSTGRESQL says; whoever sets that variable has the
tests run on a database of his own, in one process.
Hypothesis profiles: the everyday one repeats itself; so does the quick one, which `make test` asks for, with a quarter
of the examples; INORDER_LONG=1 searches longer, at random.
"""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import settings
from tests.postgresql.server import missing, of_this_process
from tests.support import Make, Stores

from inorder import QueueManager, connect
from inorder.stores.postgresql import drop, parse
from inorder.testing import STORES, ManualClock
from inorder.testing.stores import POSTGRESQL_URL, RestartableStore

# No deadline in any: no test here judges by the clock. A failure prints the blob that replays it.
settings.register_profile("everyday", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("quick", max_examples=25, derandomize=True, deadline=None, print_blob=True)
settings.register_profile("long", max_examples=10_000, deadline=None, print_blob=True)

PROFILE = "long" if os.environ.get("INORDER_LONG") else "everyday"
settings.load_profile(PROFILE)

# With this in the environment the kind "postgresql" is there to be collected; nobody connects before it is replaced.
NOT_STARTED = "postgresql://the-server-of-the-tests-is-not-started/"
MISSING = missing()
if MISSING is None:
    os.environ.setdefault(POSTGRESQL_URL, NOT_STARTED)


def pytest_report_header(config: pytest.Config) -> str:
    profile = config.getoption("--hypothesis-profile") or PROFILE
    return f"inorder: hypothesis profile {profile} (INORDER_LONG=1 for the long one)"


MEMORY_DISK = Path("/dev/shm")
MEMORY_DISK_FREE_MIN = 2**30


@pytest.fixture(scope="session", autouse=True)
def quick_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Temporary stores lie on a disk in memory where there is one: they sync as ever, and wait five times less.

    What a test keeps in `tmp_path` is on the real disk; and whoever sets TMPDIR has all of it there.
    """
    tmp_path_factory.getbasetemp()
    before = tempfile.tempdir
    is_there = os.access(MEMORY_DISK, os.W_OK) and shutil.disk_usage(MEMORY_DISK).free >= MEMORY_DISK_FREE_MIN
    if is_there and "TMPDIR" not in os.environ:
        tempfile.tempdir = str(MEMORY_DISK)
    yield
    tempfile.tempdir = before


@pytest.fixture(scope="session")
def postgresql(quick_disk: None) -> str:
    """The URL of an empty database on a server that runs; tests have a schema each."""
    if MISSING:
        pytest.skip(MISSING)
    if os.environ[POSTGRESQL_URL] == NOT_STARTED:
        os.environ[POSTGRESQL_URL] = of_this_process().url()
    return os.environ[POSTGRESQL_URL]


LONG_WAY = "sqlite-long-way"
POSTGRESQL = "postgresql"  # the kind, the fixture and the marker
OWN_SERVER = "own_server"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Which are slow, which have the server started first, and of which coverage takes no note.

    It would double the time of those that only repeat on another store what others do.
    """
    for item in items:
        callspec = getattr(item, "callspec", None)
        words = {one for one in callspec.params.values() if isinstance(one, str)} if callspec is not None else set()
        fixtures: list[str] = getattr(item, "fixturenames", [])
        if POSTGRESQL in words and POSTGRESQL not in fixtures:
            fixtures = [POSTGRESQL, *fixtures]  # the list as it was is that of all kinds
            item.fixturenames = fixtures  # type: ignore[attr-defined]
        if {POSTGRESQL, OWN_SERVER} & set(fixtures):
            item.add_marker(pytest.mark.postgresql)
            item.add_marker(pytest.mark.slow)
        elif LONG_WAY in words:
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.no_cover)


def pytest_collection_finish() -> None:
    """The garbage collector passes over the tens of thousands of tests from now on."""
    gc.collect()
    gc.freeze()


@pytest.fixture(params=list(STORES))
def kind(request: pytest.FixtureRequest) -> str:
    """The name of a kind of store."""
    name: str = request.param
    return name


@pytest.fixture
def make(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Make]:
    """Makes a place for a store of a kind; it is gone at the end."""
    with ExitStack() as stack:

        def place(kind: str) -> str:
            if kind == "sqlite":
                return str(tmp_path / f"{uuid.uuid4().hex}.db")
            url = f"{request.getfixturevalue('postgresql')}?schema=inorder_{uuid.uuid4().hex}"
            stack.callback(drop, parse(url))
            return url

        yield place


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def stores(kind: str) -> Iterator[Stores]:
    """Makes stores of this kind, and closes them at the end of the test."""
    with Stores(kind) as made:
        yield made


@pytest.fixture
def store(stores: Stores, clock: ManualClock) -> RestartableStore:
    return stores.make(clock)


@pytest.fixture
def qm(store: RestartableStore) -> Iterator[QueueManager]:
    """A connection, and a queue Q."""
    with connect(store, program="test") as manager:
        manager.create_queue("Q")
        yield manager
