"""A store in PostgreSQL is upgraded wholly or not at all, by its owner, while nobody else has it open."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.helpers import invented
from tests.helpers.forked import SERVER
from tests.helpers.support import until
from tests.stores.postgresql.server import Server, sessions
from tests.tiers import nightly
from tools.fixture_store import RELEASES, TABLES, keep, missing, put_rows

import inorder
from inorder import StoreError
from inorder.errors import StoreNewer, StoreOlder
from inorder.stores.engine import points
from inorder.stores.postgresql import drop, parse, upgrade_schema
from inorder.stores.postgresql.opening import open_link
from inorder.stores.postgresql.statements import LADDER, VERSION
from inorder.stores.seam.migrations import Ladder, MigrationStep, Upgraded

NEXT = invented.POSTGRESQL.newest
POINTS = [
    *(one for one in points.UPGRADE_POINTS if one not in ("upgrade-step", "upgrade-backed-up")),
    *(f"upgrade-step {version}" for version in range(VERSION + 1, NEXT + 1)),
]
KILLED_AT = f"upgrade-step {NEXT}"
COLUMNS = "SELECT count(*) FROM information_schema.columns WHERE table_schema = %s AND column_name = 'note'"

Connection = psycopg.Connection[tuple[Any, ...]]


def upgraded(url: str, ladder: Ladder = invented.POSTGRESQL) -> Upgraded:
    """Upgrades the store to the next, invented release."""
    return upgrade_schema(parse(url), program="test", ladder=ladder)


@pytest.fixture
def store(url: str) -> str:
    with inorder.connect(url) as qm:
        qm.create_queue("Q")
        qm.put_many("Q", [b"1", b"2", b"3"])
        qm.put("Q", b"prepared", syncpoint=True)
        qm.prepare("monday")
    return url


@pytest.fixture(autouse=True)
def again_of_this_release(url: str, admin: Connection) -> Iterator[None]:
    yield
    points.reached = None
    schema = parse(url).schema
    if admin.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [schema]).fetchone():
        admin.execute(f"UPDATE {schema}.store SET version = {VERSION}")  # so that it can be dropped


def check_is_older(store: str, admin: Connection) -> None:
    assert admin.execute(COLUMNS, [parse(store).schema]).fetchone() == (0,)
    with inorder.connect(store) as qm:
        assert (qm.depth("Q"), qm.admin.check()) == (4, [])


def check_is_newer(store: str, admin: Connection) -> None:
    assert admin.execute(COLUMNS, [parse(store).schema]).fetchone() == (1,)
    assert admin.execute(f"SELECT count(*) FROM {parse(store).schema}.message").fetchone() == (4,)
    with pytest.raises(StoreNewer):
        inorder.connect(store)


def test_an_upgrade_applies_all_steps_and_a_second_one_finds_the_new_version(store: str, admin: Connection) -> None:
    assert upgraded(store) == Upgraded(found=VERSION, version=NEXT)
    check_is_newer(store, admin)
    assert upgraded(store) == Upgraded(found=NEXT, version=NEXT)


def test_a_store_of_this_release_is_left_alone(store: str) -> None:
    assert inorder.upgrade(store, backup=False) == Upgraded(found=VERSION, version=VERSION)


def test_an_upgrade_with_a_backup_is_refused_with_the_advice_to_use_pg_dump(store: str) -> None:
    with pytest.raises(inorder.CallerError, match=r"pg_dump -n inorder_.*backup=False"):
        inorder.upgrade(store)


def test_an_older_store_is_refused_with_the_remedy(store: str, admin: Connection) -> None:
    admin.execute(f"UPDATE {parse(store).schema}.store SET version = {LADDER.oldest - 1}")
    with pytest.raises(StoreOlder, match=f"too old to upgrade.*is {LADDER.oldest}") as caught:
        inorder.connect(store)
    assert (caught.value.version, caught.value.upgradable) == (LADDER.oldest - 1, False)
    with pytest.raises(StoreOlder, match="too old"):
        upgraded(store)


def test_an_upgrade_of_a_missing_store_is_refused_and_makes_none(url: str, admin: Connection) -> None:
    with pytest.raises(StoreError, match="no store at"):
        inorder.upgrade(url, backup=False)
    assert admin.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [parse(url).schema]).fetchone() is None


@pytest.mark.parametrize("wrong", ["CREATE NONSENSE", "ALTER TABLE process ADD CHECK (id < 0)", "DROP TABLE unknown"])
def test_a_step_that_fails_changes_nothing(store: str, admin: Connection, wrong: str) -> None:
    steps = invented.POSTGRESQL.from_version(VERSION)
    admin.execute(f"INSERT INTO {parse(store).schema}.process VALUES (1)")
    with pytest.raises(StoreError):
        upgraded(store, Ladder(NEXT + 1, [*steps, MigrationStep(version=NEXT + 1, statements=wrong)]))
    check_is_older(store, admin)


# --- other programs


def test_an_upgrade_is_refused_while_others_have_the_store_open(store: str, admin: Connection) -> None:
    with inorder.connect(store) as qm:
        with pytest.raises(StoreError, match="others have it open"):
            upgraded(store)
        qm.put("Q", b"more")
        qm.get("Q")
    check_is_older(store, admin)
    upgraded(store)


@pytest.mark.parametrize("table", ["process", "definition"])
def test_an_upgrade_is_refused_while_a_session_reads_a_table(store: str, admin: Connection, table: str) -> None:
    with admin.transaction():
        admin.execute(f"SELECT count(*) FROM {parse(store).schema}.{table}")
        with pytest.raises(StoreError, match=r"others have it open.*pg_dump"):
            upgraded(store)
    upgraded(store)


def test_a_process_that_connects_during_an_upgrade_waits_and_finds_the_new_version(
    store: str, admin: Connection
) -> None:
    began: list[Any] = []

    def let_in(point: str) -> None:
        if point == "upgrade-begun":
            theirs, ours = SERVER.Pipe()
            process = SERVER.Process(target=connect_and_tell, args=(store, theirs), daemon=True)
            process.start()
            began.extend([process, ours])
            assert ours.recv() == "begins"

    points.reached = let_in
    upgraded(store)
    points.reached = None
    process, ours = began
    assert ours.recv() == "StoreNewer"
    process.join()
    check_is_newer(store, admin)


def connect_and_tell(url: str, pipe: Any) -> None:
    pipe.send("begins")
    try:
        inorder.connect(url)
    except StoreError as error:
        pipe.send(type(error).__name__)


def test_a_program_that_read_the_old_version_checks_it_again_when_it_registers(
    store: str, admin: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:

    def open_link_and_wait(*given: Any) -> Any:
        link = open_link(*given)
        upgraded(store)
        return link

    monkeypatch.setattr("inorder.stores.postgresql.open_link", open_link_and_wait)
    with pytest.raises(StoreNewer):
        inorder.connect(store)
    monkeypatch.undo()
    assert admin.execute(f"SELECT count(*) FROM {parse(store).schema}.process").fetchone() == (0,)
    check_is_newer(store, admin)


def test_an_upgrade_by_a_role_that_does_not_own_the_store_is_refused(own_server: Server) -> None:
    own_server.sql("CREATE ROLE owner LOGIN; CREATE ROLE other LOGIN; GRANT CREATE ON DATABASE postgres TO owner")
    mine, theirs = (f"{own_server.url('postgres', role)}?schema=orders" for role in ("owner", "other"))
    inorder.connect(mine).close()
    own_server.sql("GRANT USAGE ON SCHEMA orders TO other; GRANT ALL ON ALL TABLES IN SCHEMA orders TO other")
    with pytest.raises(StoreError, match="only be upgraded by the role that owns it"):
        upgraded(theirs)
    assert upgraded(mine).version == NEXT


# --- kills


def upgrade_and_die(url: str, at: str) -> None:
    points.reached = lambda point: os.kill(os.getpid(), signal.SIGKILL) if point == at else None
    upgraded(url)


@pytest.mark.parametrize(
    "point", [KILLED_AT, *(pytest.param(one, marks=nightly) for one in POINTS if one != KILLED_AT)]
)
def test_a_kill_at_any_point_of_an_upgrade_leaves_a_store_of_one_release(
    store: str, admin: Connection, point: str
) -> None:
    process = SERVER.Process(target=upgrade_and_die, args=(store, point), daemon=True)
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    if point == "upgrade-committed":
        check_is_newer(store, admin)
    else:
        check_is_older(store, admin)
        until(lambda: not sessions(store, "test"), "the server has noticed")
        upgraded(store)
        check_is_newer(store, admin)


@nightly
@pytest.mark.parametrize("point", [one for one in POINTS if one != "upgrade-committed"])
def test_an_upgrade_whose_session_the_server_ends_leaves_the_store_unchanged(
    store: str, admin: Connection, point: str
) -> None:
    def end(reached: str) -> None:
        if reached == point:
            admin.execute(
                "SELECT pg_terminate_backend(pid, 240000) FROM pg_stat_activity WHERE application_name LIKE %s",
                [f"inorder {os.getpid()}: test"],
            )

    points.reached = end
    with pytest.raises(inorder.ConnectionBroken):
        upgraded(store)
    points.reached = None
    check_is_older(store, admin)


# --- releases

CATALOG = """
SELECT 'column', table_name, concat_ws(' ', column_name, data_type, is_nullable, column_default)
FROM information_schema.columns WHERE table_schema = ?1
UNION ALL SELECT 'index', tablename, indexdef FROM pg_indexes WHERE schemaname = ?1
UNION ALL SELECT 'constraint', conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = ?1::regnamespace
UNION ALL SELECT 'function', proname, pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = ?1::regnamespace
UNION ALL SELECT 'trigger', tgrelid::regclass::text, pg_get_triggerdef(oid) FROM pg_trigger
    WHERE NOT tgisinternal AND tgrelid IN (SELECT oid FROM pg_class WHERE relnamespace = ?1::regnamespace)
"""


def catalog(admin: Connection, schema: str) -> list[tuple[str, ...]]:
    """The tables and all that belongs to them, without the order of columns."""
    rows = admin.execute(CATALOG.replace("?1", f"'{schema}'")).fetchall()
    return sorted(tuple(text.replace(f"{schema}.", "") for text in row) for row in rows)


def made_by_release(folder: Path, url: str, admin: Connection) -> None:
    text, schema = (folder / TABLES).read_text(encoding="utf-8"), parse(url).schema
    version = int(text.splitlines()[0].removeprefix("-- version "))
    with admin.transaction():
        admin.execute(f"CREATE SCHEMA {schema}; SET LOCAL search_path TO {schema}, pg_catalog")
        admin.execute(text)
        put_rows(folder, admin)
        assert admin.execute("SELECT version FROM store").fetchone() == (version,)


def test_an_upgrade_gives_the_store_of_every_release_the_tables_of_a_new_store(
    url: str, store: str, admin: Connection, tmp_path: Path
) -> None:
    drop(parse(url))
    kept = [keep("9.9.9", tmp_path, url), *(sorted(RELEASES.iterdir()) if RELEASES.exists() else [])]
    wanted = catalog(admin, parse(store).schema)
    assert len(wanted) > 100
    for folder in kept:
        drop(parse(url))
        made_by_release(folder, url, admin)
        inorder.upgrade(url, backup=False)
        assert catalog(admin, parse(url).schema) == wanted, folder.name
        with inorder.connect(url) as qm:
            assert missing(qm) == [], folder.name
