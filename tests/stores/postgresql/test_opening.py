"""Opening a store: each obstacle has one clear error, and nothing is made then."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import re
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql
from tests.helpers.support import Call, put_group, until
from tests.stores.postgresql.server import Server

import inorder
from inorder.mq.channels.sides import open_receiver
from inorder.stores.engine.store import new_manager
from inorder.stores.open import InMemory, locate
from inorder.stores.postgresql import PostgresStore, are_one, drop, is_there, parse
from inorder.stores.postgresql.link import Link
from inorder.stores.postgresql.opening import open_link
from inorder.testing.schemas import STORES_MAX, Schemas

Connection = psycopg.Connection[Any]


@pytest.fixture
def role(admin: Connection) -> Iterator[str]:
    """A role that may connect and make schemas."""
    name = f"role_{uuid.uuid4().hex[:12]}"
    admin.execute(f"CREATE ROLE {name} LOGIN")
    admin.execute(f"GRANT CREATE ON DATABASE postgres TO {name}")
    yield name
    admin.execute(f"DROP OWNED BY {name} CASCADE; DROP ROLE {name}")


def as_user(url: str, role: str) -> str:
    return re.sub(r"//[^@]*@", f"//{role}@", url)


def schema_of(url: str) -> str:
    return url.rpartition("=")[2]


def refused(url: str, kind: type[inorder.StoreError], text: str) -> None:
    with pytest.raises(kind, match=text) as told:
        inorder.connect(url)
    assert told.type is kind
    assert told.value.path == str(parse(url))


def test_missing_databases_roles_and_hosts_are_reported_in_the_words_of_libpq(url: str) -> None:
    refused(
        re.sub(r"/\w+\?", "/nowhere?", url), inorder.StoreError, 'cannot be reached.*database "nowhere" does not exist'
    )
    refused(as_user(url, "nobody_here"), inorder.StoreError, 'cannot be reached.*role "nobody_here" does not exist')
    refused(re.sub(r":\d+/", ":1/", url), inorder.StoreError, "port 1 failed: Connection refused[.] Is the")
    refused(re.sub(r"@[^/]*/", "@host.invalid/", url), inorder.StoreError, "cannot be reached.*host.invalid")


def test_a_user_with_too_many_connections_is_refused(url: str, role: str, admin: Connection) -> None:
    admin.execute(f"ALTER ROLE {role} CONNECTION LIMIT 1")
    with inorder.connect(as_user(url, role)):
        refused(as_user(url, role), inorder.StoreError, "cannot be reached.*too many connections")


def test_a_wrong_password_and_a_stopped_server_are_reported(own_server: Server) -> None:
    own_server.sql("CREATE ROLE ann LOGIN PASSWORD 'right'")
    rules = own_server.folder / "data/pg_hba.conf"
    rules.write_text("local all all trust\nhost all ann all scram-sha-256\nhost all all all trust\n")
    own_server.sql("SELECT pg_reload_conf()")
    refused(own_server.url(user="ann:wrong"), inorder.StoreError, "cannot be reached.*password authentication failed")
    refused(own_server.url(user="ann"), inorder.StoreError, "cannot be reached.*no password supplied")
    own_server.stop()
    refused(own_server.url(), inorder.StoreError, "cannot be reached.*refused")


def test_a_server_with_fsync_off_and_a_database_with_another_encoding_are_refused(own_server: Server) -> None:
    own_server.sql("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' LOCALE_PROVIDER libc TEMPLATE template0")
    refused(own_server.url("latin"), inorder.StoreError, "encoded as LATIN1")
    assert own_server.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'inorder'", "latin") == "0"
    with Server(fsync="off") as loose:
        refused(loose.url(), inorder.StoreError, "fsync=off")
        assert loose.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'inorder'") == "0"


def test_a_standby_is_refused_with_or_without_a_store(own_server: Server) -> None:
    with inorder.connect(own_server.url()) as qm:
        qm.create_queue("Q")
    with own_server.make_standby() as standby:
        refused(standby.url(), inorder.StoreError, "is a standby.*target_session_attrs")
        refused(f"{standby.url()}?schema=other", inorder.StoreError, "is a standby")
        both = f"postgresql://postgres@127.0.0.1:{standby.port},127.0.0.1:{own_server.port}/postgres"
        with inorder.connect(f"{both}?target_session_attrs=read-write") as qm:
            assert qm.depth("Q") == 0


def test_a_pooler_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Link, "server_pid", property(lambda _: 1))
    refused(url, inorder.StoreError, "pooler such as PgBouncer")
    link = Link(parse(url), "test")
    assert link.script(psycopg.sql.SQL("SHOW enable_seqscan")) == [("on",)], "whoever gets that session next has it so"
    link.close()
    monkeypatch.undo()
    assert not is_there(parse(url), "test")


def test_an_old_server_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inorder.stores.postgresql.opening.OLDEST_SERVER", 990000)
    refused(url, inorder.StoreError, "needs 99 or later")


FOREIGN = ["TABLE t (n int)", "TABLE store (made_by text)", "VIEW store AS SELECT 'inorder' AS made_by, 1 AS version",
           "SEQUENCE number", "FUNCTION draw(bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 1'"]  # fmt: skip


@pytest.mark.parametrize("made", FOREIGN)
def test_a_schema_with_other_contents_is_refused_and_left_unchanged(
    made: str, postgresql: str, admin: Connection
) -> None:
    schema = f"s_{uuid.uuid4().hex[:12]}"
    admin.execute(f"CREATE SCHEMA {schema}; SET search_path TO {schema}; CREATE {made}")
    count = "SELECT count(*) FROM pg_class WHERE relnamespace = %s::regnamespace"
    before = admin.execute(count, [schema]).fetchone()
    refused(f"{postgresql}?schema={schema}", inorder.errors.StoreForeign, "has other contents")
    with pytest.raises(inorder.errors.StoreForeign):
        drop(parse(f"{postgresql}?schema={schema}"))
    assert admin.execute(count, [schema]).fetchone() == before
    admin.execute(f"DROP SCHEMA {schema} CASCADE")


def test_a_newer_store_is_refused_and_left_unchanged(url: str, postgresql: str, admin: Connection) -> None:
    inorder.connect(url).close()
    admin.execute(f"UPDATE {schema_of(url)}.store SET version = 99")
    before = content(postgresql, schema_of(url))
    refused(url, inorder.errors.StoreNewer, "newer release.*version 99")
    assert content(postgresql, schema_of(url)) == before
    admin.execute(f"UPDATE {schema_of(url)}.store SET version = 1")  # so that it can be dropped


@pytest.mark.parametrize("name", [None, "PARIS"])
def test_a_new_store_is_named_after_its_schema_or_as_asked(url: str, name: str | None) -> None:
    with inorder.connect(url, name=name) as qm:
        assert qm.admin.manager_attributes().name == (name or schema_of(url))


def test_an_empty_schema_owned_by_the_role_is_used_for_the_store(url: str, role: str, admin: Connection) -> None:
    admin.execute(f"REVOKE CREATE ON DATABASE postgres FROM {role}")
    refused(as_user(url, role), inorder.StoreError, "lacks a privilege")
    assert not is_there(parse(url), "test")
    admin.execute(f"CREATE SCHEMA {schema_of(url)} AUTHORIZATION {role}")
    with inorder.connect(as_user(url, role)) as qm:
        qm.create_queue("Q")
    assert is_there(parse(url), "test")


SETTINGS = {
    "statement_timeout": "10min", "lock_timeout": "10min", "idle_in_transaction_session_timeout": "10min",
    "idle_session_timeout": "10min", "default_transaction_isolation": "serializable",
    "default_transaction_read_only": "on", "timezone": "Asia/Kathmandu", "datestyle": "SQL, DMY",
    "search_path": "pg_temp", "client_encoding": "LATIN1", "bytea_output": "escape", "enable_nestloop": "off",
    "enable_indexscan": "off", "transform_null_equals": "on", "exit_on_error": "on", "extra_float_digits": "-15",
    "standard_conforming_strings": "off", "synchronous_commit": "off",
}  # fmt: skip


def test_settings_of_roles_change_nothing(
    url: str, role: str, admin: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SETTINGS.items():
        admin.execute(f"ALTER ROLE {role} SET {name} = '{value}'")
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    monkeypatch.setenv("PGOPTIONS", "-c search_path=public -c timezone=America/Lima")
    with inorder.connect(as_user(url, role)) as qm:
        qm.create_queue("Q", description="żółw")
        with qm.unit_of_work():
            qm.put("Q", b"\\000'x", group_id=b"g")
        with pytest.raises(inorder.NoMessageAvailable):
            qm.get("Q", match=inorder.Match(priority=9), wait=0.01)
        assert qm.get("Q").body == b"\\000'x"
        assert qm.attributes("Q").description == "żółw"
        assert qm.admin.check() == []
        link = qm._store.host._link  # type: ignore[attr-defined]
        assert link.flush_level == "on"
        for name in [name for name in SETTINGS if name.endswith("_timeout")]:
            assert link.execute(f"SHOW {name}").fetchall() == [("0",)]


def test_two_stores_in_one_database_do_not_affect_each_other(url: str, postgresql: str) -> None:
    second = f"{postgresql}?schema=s_{uuid.uuid4().hex[:12]}"
    with inorder.connect(url) as one, inorder.connect(second) as other:
        one.create_queue("Q")
        other.create_queue("Q")
        reader = Call(lambda: _got(second))
        with one.unit_of_work():
            one.put("Q", b"first")
            other.put("Q", b"second")  # the open unit of the other store does not affect it
            assert reader.result() == b"second"
        assert (one.depth("Q"), other.depth("Q")) == (1, 0)
    again = second.replace("127.0.0.1", "localhost")
    assert [are_one(parse(second), parse(named)) for named in (second, again, url)] == [True, True, False]
    drop(parse(second))


def _got(url: str) -> bytes:
    with inorder.connect(url) as qm:
        return bytes(qm.get("Q", wait=600).body)


def _begin(url: str, start: object, told: object) -> None:
    start.wait()  # type: ignore[attr-defined]
    try:
        PostgresStore(url).close_store()
        told.put("made")  # type: ignore[attr-defined]
    except BaseException as error:  # noqa: BLE001 - the parent shows it
        told.put(repr(error))  # type: ignore[attr-defined]


def test_processes_that_create_the_store_at_the_same_time_can_all_open_it(url: str) -> None:
    spawn = multiprocessing.get_context("spawn")
    start, told = spawn.Barrier(4), spawn.Queue()
    processes = [spawn.Process(target=_begin, args=(url, start, told)) for _ in range(4)]
    for process in processes:
        process.start()
    assert [told.get(timeout=240) for _ in processes] == ["made"] * 4
    for process in processes:
        process.join()


LOCKS = """
SELECT DISTINCT granted FROM pg_locks
WHERE mode = 'AccessExclusiveLock' AND relation IN (SELECT oid FROM pg_class WHERE relnamespace = %s::regnamespace)
ORDER BY granted
"""


def test_a_store_is_dropped_although_its_tables_are_locked_in_another_order(
    url: str, postgresql: str, admin: Connection
) -> None:
    """The two sessions deadlock, and the server ends the call that has waited for a second: the drop."""
    schema = schema_of(url)

    def waits_and_has() -> list[tuple[bool]]:
        return admin.execute(LOCKS, (schema,)).fetchall()

    for number in (-1, -2):  # the server drops the tables in its own order: only one of these two can be its first
        inorder.connect(url).close()
        found = admin.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s ORDER BY 1", (schema,)).fetchall()
        tables = [f"{schema}.{name}" for (name,) in found]
        with psycopg.connect(postgresql, options="-c deadlock_timeout=60s") as other:
            other.execute(f"LOCK TABLE {tables[number]} IN ACCESS SHARE MODE")
            dropping = Call(lambda: drop(parse(url)))
            until(lambda: (False,) in waits_and_has(), "it waits for one table")
            if has_some := (True,) in waits_and_has():
                with contextlib.suppress(psycopg.errors.DeadlockDetected):  # if this thread was slower than that second
                    other.execute(f"LOCK TABLE {', '.join(tables)} IN ACCESS SHARE MODE")
                    assert not dropping.done
            other.rollback()
            dropping.result()
        assert not is_there(parse(url), "test")
        if has_some:
            return
    pytest.fail("it waited for its first table twice, and had none")


def test_a_location_knows_whether_its_store_exists_and_which_store_it_is(url: str) -> None:
    where = locate(url)
    assert not where.is_there("test")
    with inorder.connect(url):
        assert where.is_there("test")
        assert where.is_one_with(locate(url))
        assert not where.is_one_with(locate(f"{url}_other"))
        assert not where.is_one_with(InMemory(":memory:"))


def test_errors_about_a_missing_store_do_not_show_the_password(url: str) -> None:
    given = url.replace("@", ":secret@", 1)
    assert given != url
    calls: list[Callable[[], object]] = [lambda: inorder.rename(given, "LYON"), lambda: open_receiver(given)]
    for call in calls:
        with pytest.raises(inorder.StoreError) as missed:
            call()
        assert "secret" not in f"{missed.value} {missed.value.data}"


def test_a_store_is_renamed_only_while_no_program_is_connected_and_keeps_its_ids(url: str) -> None:
    with pytest.raises(inorder.StoreError, match="there is no store at"):
        inorder.rename(url, "LYON")
    with inorder.connect(url, program="worker.py", name="PARIS") as qm:
        qm.create_queue("Q")
        before = qm.put("Q", b"before")
        with pytest.raises(inorder.errors.ObjectInUse, match=r"worker\.py"):
            inorder.rename(url, "LYON")
    assert inorder.rename(url, "LYON") == "PARIS"
    with inorder.connect(url) as qm:
        assert qm.admin.manager_attributes().name == "LYON"
        after = qm.put("Q", b"after")
        found = list(qm.browse("Q"))
        assert [(one.message_id, one.uid) for one in found] == [(one.message_id, one.uid) for one in (before, after)]
        assert {one.uid and one.uid.origin for one in found} == {"PARIS"}


@pytest.fixture
def schemas(postgresql: str) -> Schemas:
    return Schemas(postgresql, os.getpid())


def use(url: str, schema: str, messages: int = 3) -> None:
    """Makes a store with messages, a group and a unit of work that ends with its connection."""
    store = PostgresStore(f"{url}?schema={schema}", name="ONE")
    with inorder.connect(store) as qm:
        qm.create_queue("Q")
        qm.put_many("Q", [b"x"] * messages)
        put_group(qm, b"1", b"2")
        qm.get("Q", syncpoint=True)
    store.stop()
    store.close_store()


def content(url: str, schema: str) -> dict[str, list[Any]]:
    """All rows of all tables and sequences, without the identifier of the store."""
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind IN ('r', 'S')", (schema,)
        )
        names = sorted(name for (name,) in found)
        rows = {
            name: connection.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(schema, name))).fetchall()
            for name in names
        }
    ((*manager, identifier, created_at),) = rows["manager"]
    assert len(identifier) == 32
    return rows | {"manager": [*manager, created_at]}


def schema_exists(url: str, schema: str) -> bool:
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT to_regnamespace(%s)", (schema,)).fetchone() != (None,)


def test_an_emptied_schema_equals_a_new_one(postgresql: str, schemas: Schemas) -> None:
    new, used = f"{postgresql}?schema=inorder_new", schemas.take("ONE")
    open_link(parse(new), new_manager("ONE"), "test").close()
    use(postgresql, used)
    assert content(postgresql, used) != content(postgresql, "inorder_new")
    schemas.give_back(used, "ONE")
    assert content(postgresql, used) == content(postgresql, "inorder_new")
    drop(parse(new))
    assert schemas.take("TWO") != used, "it has a queue manager already"
    assert schemas.take("ONE") == used
    use(postgresql, used)
    schemas.give_back(used, "ONE")
    schemas.drop_all()
    assert not schema_exists(postgresql, used)


def test_a_schema_that_is_still_in_use_is_dropped_instead_of_reused(postgresql: str, schemas: Schemas) -> None:
    schema = schemas.take("ONE")
    store = PostgresStore(f"{postgresql}?schema={schema}", name="ONE")
    schemas.give_back(schema, "ONE")
    assert not schema_exists(postgresql, schema)
    assert schemas.take("ONE") != schema
    store.close_store()


def test_a_schema_is_dropped_after_many_messages_and_after_many_stores(postgresql: str, schemas: Schemas) -> None:
    large = schemas.take("ONE")
    use(postgresql, large, 10_000)
    schemas.give_back(large, "ONE")
    assert not schema_exists(postgresql, large)
    taken = []
    for _ in range(STORES_MAX + 1):
        taken.append(schemas.take("ONE"))
        open_link(parse(f"{postgresql}?schema={taken[-1]}"), new_manager("ONE"), "test").close()
        schemas.give_back(taken[-1], "ONE")
    assert taken == [taken[0]] * STORES_MAX + [taken[-1]]
    assert not schema_exists(postgresql, taken[0])
    schemas.drop_all()


def test_a_child_made_by_fork_leaves_the_schemas_to_its_parent(postgresql: str) -> None:
    theirs = Schemas(postgresql, os.getpid() + 1)
    schema = theirs.take("ONE")
    open_link(parse(f"{postgresql}?schema={schema}"), new_manager("ONE"), "test").close()
    theirs.give_back(schema, "ONE")
    assert schema_exists(postgresql, schema)
    drop(parse(f"{postgresql}?schema={schema}"))
