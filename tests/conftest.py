"""Fixtures for all tests, such as a store of each kind, and Hypothesis profiles.

`tests/tiers.py` says which tests run when, and which stores the fixtures `kind`, `store` and `qm` use.
PostgreSQL's server starts when the first test needs it. Each process of a run has its own server, because some tests
count or end sessions. INORDER_POSTGRESQL then holds its URL. Set that variable to use a database of your own, in one
process.
Hypothesis profiles: `everyday` and `quick` are deterministic; `make test` and `make gate` use `quick`, which has a
quarter of the examples. INORDER_LONG=1 selects `long`, which searches longer and at random.
"""

from __future__ import annotations

import gc
import inspect
import os
import shutil
import tempfile
import uuid
from collections.abc import Generator, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.helpers.cutting import ended
from tests.helpers.support import Make, Stores
from tests.stores.postgresql.server import missing, of_this_process
from tests.tiers import ONCE, kinds_of

from inorder import QueueManager, connect
from inorder.stores.postgresql import drop, parse
from inorder.testing import ManualClock
from inorder.testing.stores import POSTGRESQL_URL, RestartableStore

# No profile has a deadline, as no test depends on its duration. A failure prints the blob that replays it.
settings.register_profile("everyday", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("quick", max_examples=25, derandomize=True, deadline=None, print_blob=True)
settings.register_profile("long", max_examples=10_000, deadline=None, print_blob=True)

PROFILE = "long" if os.environ.get("INORDER_LONG") else "everyday"
settings.load_profile(PROFILE)

# With this URL in the environment, tests of the kind "postgresql" are collected. It is replaced before any connects.
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
    """Puts temporary stores on a disk in memory, if the machine has one: they sync as usual, five times as fast.

    Files in `tmp_path` are on the real disk. If TMPDIR is set, all are in its folder.
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
    """The URL of an empty database on a running server; each test has its own schema."""
    if MISSING:
        pytest.skip(MISSING)
    if os.environ[POSTGRESQL_URL] == NOT_STARTED:
        os.environ[POSTGRESQL_URL] = of_this_process().url()
    return os.environ[POSTGRESQL_URL]


POSTGRESQL = "postgresql"  # the kind, the fixture and the marker
OWN_SERVER = "own_server"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Chooses the stores of a test that takes `kind` without naming its own."""
    named = {name for mark in metafunc.definition.iter_markers("parametrize") for name in _names(mark.args[0])}
    if "kind" in metafunc.fixturenames and "kind" not in named:
        every = metafunc.definition.get_closest_marker("every_store")
        kinds = kinds_of(metafunc.definition.nodeid.partition("[")[0]) if every else ONCE
        metafunc.parametrize("kind", kinds, indirect=True)


def _names(given: str | list[str] | tuple[str, ...]) -> list[str]:
    return [name.strip() for name in given.split(",")] if isinstance(given, str) else [*given]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Makes tests that need PostgreSQL start its server first, and keeps them out of `make test`."""
    for item in items:
        callspec = getattr(item, "callspec", None)
        words = {one for one in callspec.params.values() if isinstance(one, str)} if callspec is not None else set()
        fixtures: list[str] = getattr(item, "fixturenames", [])
        if POSTGRESQL in words and POSTGRESQL not in fixtures:
            fixtures = [POSTGRESQL, *fixtures]  # a new list, because all kinds share the old one
            item.fixturenames = fixtures  # type: ignore[attr-defined]
        if {POSTGRESQL, OWN_SERVER} & set(fixtures):
            item.add_marker(pytest.mark.postgresql)
            item.add_marker(pytest.mark.gate)


PROCESSOR_SECONDS_MAX = 10.0
PROCESSOR = "processor"  # the property of a report
DEAREST = 20


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Records the cost of a test; fails a test of `make test` that costs too much."""
    before = _processor_seconds()
    result = yield
    seconds = _processor_seconds() - before
    item.user_properties.append((PROCESSOR, seconds))
    if seconds > PROCESSOR_SECONDS_MAX and not any(item.get_closest_marker(tier) for tier in ("gate", "nightly")):
        most = f"the most for a test of `make test` is {PROCESSOR_SECONDS_MAX:g}"
        pytest.fail(f"took {seconds:.1f} s of processor, {most}: make it cheaper, or mark it gate")
    return result


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Lists the tests with the most processor time; `--durations` lists the slowest by the clock."""
    reports = (one for key in ("passed", "failed") for one in terminalreporter.stats.get(key, ()) if one.when == "call")
    costs = sorted(((dict(one.user_properties).get(PROCESSOR, 0.0), one.nodeid) for one in reports), reverse=True)
    if len(costs) > DEAREST:
        terminalreporter.write_sep("=", f"dearest {DEAREST} of {sum(cost for cost, _ in costs):.0f} s of processor")
        for cost, name in costs[:DEAREST]:
            terminalreporter.write_line(f"{cost:.2f}s {name}")


def _processor_seconds() -> float:
    """The processor time of this process and its ended children."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def pytest_collection_finish(session: pytest.Session) -> None:
    """Makes the garbage collector ignore the tens of thousands of tests."""
    if any(item.get_closest_marker("hypothesis") for item in session.items):
        _prepare_hypothesis()
    gc.collect()
    gc.freeze()


@settings(max_examples=100, deadline=None, database=None, derandomize=True)
@given(st.floats(), st.from_regex("a"))
def _prepare_hypothesis(_number: float, _text: str) -> None:
    """Makes Hypothesis read the constants of all modules and encode all characters. In a new checkout this takes
    seconds, which would otherwise count as a cost of the first test.
    """


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a test that is `async def`, inside the asynchronous context managers that its fixtures return."""
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None

    async def inside() -> None:
        async with AsyncExitStack() as life:
            given = dict(pyfuncitem.funcargs)
            for name, value in given.items():
                if isinstance(value, AbstractAsyncContextManager):
                    given[name] = await life.enter_async_context(value)
            await test(**{name: given[name] for name in inspect.signature(test).parameters})

    ended(inside())
    return True


@pytest.fixture
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def make(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Make]:
    """Makes places for stores of a kind, as paths or URLs; drops the schemas at the end."""
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
    """A connection to a store with a queue Q."""
    with connect(store, program="test") as manager:
        manager.create_queue("Q")
        yield manager
