"""One Spark session for all tests here, since a JVM takes seconds to start."""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="needs the extra inorder[spark]")

from pyspark.sql import SparkSession
from tests.spark import jvm

import inorder

NEEDS_SPARK = frozenset({"spark", "queues", "successor", "world"})
IN_MAKE_TEST = "test_small_run.py"


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks tests that start Spark as nightly, except those of the gate and of `make test`.

    Groups make them run one session and one driver at a time. A test that starts Spark without one of the fixtures in
    NEEDS_SPARK is marked spark itself.
    """
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            own_drivers = here / "kills" in item.path.parents or item.path.name == "test_cluster.py"
            item.add_marker(pytest.mark.xdist_group("drivers" if own_drivers else "session"))
            if NEEDS_SPARK & set(getattr(item, "fixturenames", ())):
                item.add_marker(pytest.mark.spark)
            is_quick = item.get_closest_marker("gate") or item.path.name == IN_MAKE_TEST
            if item.get_closest_marker("spark") and not is_quick:
                item.add_marker(pytest.mark.nightly)


@pytest.fixture(scope="session", autouse=True)
def short_life(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Sets the options of all JVMs."""
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", jvm.arguments(tmp_path_factory.mktemp("spark")))


@pytest.fixture(scope="session")
def credentials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The credentials file of the session's workers, which a test writes if it needs one."""
    return tmp_path_factory.mktemp("home") / "credentials"


@pytest.fixture(scope="session")
def spark(short_life: None, credentials: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("tests of inorder")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
    )
    with pytest.MonkeyPatch.context() as environment:  # the JVM's environment, which its workers inherit
        environment.setenv("INORDER_CREDENTIALS", str(credentials))
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")  # the errors that tests provoke would fill pages
    yield session
    session.stop()


@pytest.fixture(scope="session")
def queues(spark: SparkSession) -> SparkSession:
    """The session, with the format "inorder"."""
    import inorder.spark

    inorder.spark.register(spark)
    return spark


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder, which may be on a faster disk than tmp_path."""
    with tempfile.TemporaryDirectory(prefix="inorder-spark-") as name:
        yield Path(name)


@pytest.fixture
def url(folder: Path) -> str:
    """The path of a store with a queue Q."""
    path = str(folder / "store.db")
    with inorder.connect(path) as qm:
        qm.create_queue("Q")
    return path


@pytest.fixture
def qm(url: str) -> Iterator[inorder.QueueManager]:
    """A connection to that store."""
    with inorder.connect(url) as manager:
        yield manager


@pytest.fixture
def in_postgresql(postgresql: str) -> Iterator[str]:
    """The URL of a store with a queue Q, in a schema that is dropped at the end."""
    from inorder.stores.postgresql import drop, parse

    at = f"{postgresql}{'&' if '?' in postgresql else '?'}schema=spark_{secrets.token_hex(4)}"
    with inorder.connect(at) as qm:
        qm.create_queue("Q")
    yield at
    drop(parse(at))


@pytest.fixture
def at_server(credentials: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a served store with a queue Q; this process and the session's workers have all rights there."""
    from tests.spark.serving import ServedFile

    with ServedFile(tmp_path / "server", "Q", role="admin") as one:
        one.log_in(credentials, monkeypatch)
        yield one.url


@pytest.fixture
def made(url: str) -> Iterator[Callable[..., Any]]:
    """Makes stream readers, as each process of a query does, and stops them at the end."""
    from inorder.spark.source import InorderSource

    readers = []

    def make(**options: object) -> Any:
        given = {"url": url, "queue": "Q"} | {name: str(value) for name, value in options.items()}
        source = InorderSource(given)
        readers.append(source.streamReader(source.schema()))
        return readers[-1]

    yield make
    for reader in readers:
        reader.stop()


@pytest.fixture
def drain(made: Callable[..., Any]) -> Callable[..., Any]:
    return lambda **options: made(mode="drain", application="archive", **options)
