"""Stores of tests take over schemas that were emptied: these must be as if they had just been made."""

from __future__ import annotations

import os
from typing import Any

import psycopg
import pytest
from psycopg import sql
from tests.helpers.support import put_group

import inorder
from inorder.stores.engine.store import new_manager
from inorder.stores.postgresql import PostgresStore, drop, parse
from inorder.stores.postgresql.opening import open_link
from inorder.testing.schemas import STORES_MAX, Schemas


@pytest.fixture
def schemas(postgresql: str) -> Schemas:
    return Schemas(postgresql, os.getpid())


def use(url: str, schema: str, messages: int = 3) -> None:
    """By a queue manager with a bit of everything."""
    store = PostgresStore(f"{url}?schema={schema}", name="ONE")
    with inorder.connect(store) as qm:
        qm.create_queue("Q")
        qm.put_many("Q", [b"x"] * messages)
        put_group(qm, b"1", b"2")
        qm.get("Q", syncpoint=True)
    store.stop()
    store.close_store()


def content(url: str, schema: str) -> dict[str, list[Any]]:
    """All rows of all tables, and where the sequences stand."""
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


def is_there(url: str, schema: str) -> bool:
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT to_regnamespace(%s)", (schema,)).fetchone() != (None,)


def test_an_emptied_schema_is_as_if_it_had_just_been_made(postgresql: str, schemas: Schemas) -> None:
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
    assert not is_there(postgresql, used)


def test_a_schema_that_somebody_uses_still_is_dropped(postgresql: str, schemas: Schemas) -> None:
    schema = schemas.take("ONE")
    store = PostgresStore(f"{postgresql}?schema={schema}", name="ONE")
    schemas.give_back(schema, "ONE")
    assert not is_there(postgresql, schema)
    assert schemas.take("ONE") != schema
    store.close_store()


def test_a_schema_is_dropped_after_many_messages_and_after_many_stores(postgresql: str, schemas: Schemas) -> None:
    large = schemas.take("ONE")
    use(postgresql, large, 10_000)
    schemas.give_back(large, "ONE")
    assert not is_there(postgresql, large)
    taken = []
    for _ in range(STORES_MAX + 1):
        taken.append(schemas.take("ONE"))
        open_link(parse(f"{postgresql}?schema={taken[-1]}"), new_manager("ONE"), "test").close()
        schemas.give_back(taken[-1], "ONE")
    assert taken == [taken[0]] * STORES_MAX + [taken[-1]]
    assert not is_there(postgresql, taken[0])
    schemas.drop_all()


def test_a_child_made_by_fork_leaves_the_schemas_to_its_parent(postgresql: str) -> None:
    theirs = Schemas(postgresql, os.getpid() + 1)
    schema = theirs.take("ONE")
    open_link(parse(f"{postgresql}?schema={schema}"), new_manager("ONE"), "test").close()
    theirs.give_back(schema, "ONE")
    assert is_there(postgresql, schema)
    drop(parse(f"{postgresql}?schema={schema}"))
