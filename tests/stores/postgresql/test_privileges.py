"""Privileges: the SQL of the how-to page makes an owner, a user and a reader; and a dump restores a store."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.pages import ROOT, blocks, run_page
from tests.helpers.support import put_group
from tests.stores.postgresql.server import Server

import inorder

SQL = [text for language, text in blocks(ROOT / "docs/how-to/postgresql.md") if language == "sql"]
MADE, GRANTED, READING, LOOKED = SQL


@pytest.fixture
def server(own_server: Server) -> Server:
    """A server with the roles of the page, and the store that the owner made."""
    own_server.sql("REVOKE ALL ON SCHEMA public FROM public")
    own_server.sql(MADE)
    inorder.connect(at(own_server, "orders_owner")).close()
    own_server.sql("".join(["SET ROLE orders_owner;", GRANTED]))
    return own_server


def at(server: Server, user: str, database: str = "postgres") -> str:
    return f"{server.url(database, user)}?schema=orders"


def test_a_user_can_do_everything_with_queues_and_nothing_with_tables(server: Server) -> None:
    with inorder.connect(at(server, "orders_user")) as qm:
        qm.create_queue("Q", description="d")
        with qm.unit_of_work(), qm.group("Q") as group:
            group.put(b"1")
            group.put(b"2")
        assert [one.body for one in qm.browse("Q", logical=True)] == [b"1", b"2"]
        assert qm.get("Q", syncpoint=True).body == b"1"
        qm.back_out()
        with pytest.raises(inorder.NoMessageAvailable):
            qm.get("Q", match=inorder.Match(priority=9), wait=0.1)
        qm.put_many("Q", [b"x"] * 100)
        assert qm.admin.check() == []
        qm.close_queue("Q")
        qm.admin.clear_queue("Q")
        qm.delete_queue("Q")
    for text in ("CREATE TABLE orders.t ()", "UPDATE orders.store SET version = 2", "DROP TABLE orders.message"):
        with pytest.raises(Exception, match=r"permission denied|must be owner"):
            server.sql(f"SET ROLE orders_user; {text}")


def test_a_reader_reads_tables_and_cannot_connect(server: Server) -> None:
    with inorder.connect(at(server, "orders_user")) as qm:
        qm.create_queue("Q")
        qm.create_queue("U", read_order="unordered")
        for queue in ("Q", "U"):
            for _ in range(3):
                qm.put(queue, b"x")
        server.sql(READING)
        assert sorted(server.sql(f"SET ROLE orders_reader; {LOOKED}").split()) == ["Q|3", "U|3"]
        with pytest.raises(inorder.StoreError, match="lacks a privilege"):
            inorder.connect(at(server, "orders_reader"))
        server.sql("GRANT SELECT ON ALL TABLES IN SCHEMA orders TO orders_reader")
        with pytest.raises(inorder.StoreError, match="lacks a privilege"):
            inorder.connect(at(server, "orders_reader"))
        assert server.sql("SELECT count(*) FROM orders.process") == "1"


def test_a_user_without_grants_is_refused_and_the_missing_privilege_is_named(server: Server) -> None:
    server.sql("CREATE ROLE stranger LOGIN")
    with pytest.raises(inorder.StoreError, match=r"lacks a privilege.*USAGE on the schema orders"):
        inorder.connect(at(server, "stranger"))


def test_a_dump_of_a_store_in_use_restores_it(server: Server) -> None:
    server.sql("CREATE DATABASE other")
    with inorder.connect(at(server, "orders_owner")) as qm:
        qm.create_queue("Q", order="commit")
        before = [qm.put("Q", body) for body in (b"1", b"2")]
        put_group(qm, b"3", b"4")
        qm.put("Q", b"never", syncpoint=True)
        qm.create_queue("U", read_order="unordered")
        for body in (b"1", b"2", b"3"):
            qm.put("U", body)
        last = server.sql("SELECT last_value FROM orders.number")
        server._run("pg_dump", "-Fc", "-n", "orders", "-f", "orders.dump", server.url())
        server._run("pg_restore", "-d", server.url("other"), "orders.dump")
    with inorder.connect(at(server, "orders_user", "other")) as qm:
        assert qm.admin.check() == []
        assert [one.body for one in qm.browse("Q", logical=True)] == [b"1", b"2", b"3", b"4"]
        assert qm.inspect.overview() != []
        for body in (b"4", b"5"):
            qm.put("U", body)
        assert [one.body for one in qm.get_many("U", 9)] == [b"1", b"2", b"3", b"4", b"5"]
        after = qm.put("Q", b"5")
        assert after.message_id not in {one.message_id for one in before}
        assert qm.get_many("Q", 5)[-1].body == b"5"
        assert server.sql(f"SELECT last_value > {last} FROM orders.number", "other") == "t"
        assert qm.admin.check() == []


PAGE = ROOT / "docs/how-to/postgresql.md"
ON_THE_PAGE = "postgresql://ann@db.example.com/shop?schema=orders"


@pytest.mark.nightly
def test_every_line_of_the_how_to_page_runs(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert f"$ export INORDER_STORE={ON_THE_PAGE}\n" in text
    page = tmp_path / PAGE.name
    page.write_text(text.replace(ON_THE_PAGE, url), encoding="utf-8")
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    run_page(page, folder, spark=False)
