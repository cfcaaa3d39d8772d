"""The store that each path or URL names, and what is known of a location before its store is opened."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import inorder
from inorder.mq.channels.sides import open_receiver
from inorder.stores import open as opening
from inorder.stores.open import InFile, InMemory, Location, OnServer, is_of_any_store, is_of_open_store, locate

SERVER = "postgresql://me:secret@host/orders?schema=a"
SHOWN = "postgresql://me@host/orders?schema=a"
HERE = str(Path.cwd())

NAMES: list[tuple[Any, type[Location], str, str, str]] = [
    # given, kind, text for people, text that is valid in any folder, default name of the queue manager
    (":memory:", InMemory, ":memory:", ":memory:", "INORDER"),
    ("orders-1.db", InFile, "orders-1.db", f"{HERE}/orders-1.db", "orders_1"),
    (Path("/data/a b.db"), InFile, "/data/a b.db", "/data/a b.db", "a_b"),
    (Path(":memory:"), InFile, ":memory:", f"{HERE}/:memory:", "_memory_"),
    ("a/b://c.db", InFile, "a/b:/c.db", f"{HERE}/a/b:/c.db", "c"),
    (SERVER, OnServer, SHOWN, SERVER, "a"),
    (
        "postgres://host/orders", OnServer, "postgresql://host/orders?schema=inorder", "postgres://host/orders",
        "inorder",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("given", "kind", "shown", "absolute", "name"), NAMES)
def test_a_path_or_url_names_a_store(given: Any, kind: type[Location], shown: str, absolute: str, name: str) -> None:
    found = locate(given)
    assert (type(found), str(found), found.absolute, found.default_name) == (kind, shown, absolute, name)
    assert repr(found) == f"{kind.__name__}({shown!r})"
    assert found.secret == ("password" if given == SERVER else "")
    assert (found.path is None, found.resolved is None) == (kind is not InFile, kind is not InFile)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("", "store must be the path of a file, in UTF-8, ':memory:' or a store, not ''"),
        ("a\0b", "store must be the path of a file"),
        (b"x", "store must be the path of a file"),
        (None, "store must be the path of a file"),
        ("sqlite:///x", "store must be the path alone, 'x', without sqlite:"),
        (
            "mysql://me:secret@host/orders",
            "the path of a file, or a URL like postgresql://user@host/database[?]schema=name .*or https://host:9443",
        ),
        ("postgresql://me:secret@host/a?schema=B c", "schema must be"),
    ],
)
def test_an_invalid_path_or_url_is_refused_without_showing_its_password(given: Any, words: str) -> None:
    with pytest.raises(inorder.ArgumentError, match=words) as refused:
        locate(given)
    assert "secret" not in f"{refused.value} {refused.value.data}"


def test_a_missing_client_of_a_server_is_named_in_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(opening, "import_module", missing)
    needs: list[Callable[[str], object]] = [inorder.connect, inorder.upgrade, open_receiver]
    for call in needs:
        with pytest.raises(inorder.CallerError, match=r"PostgreSQL needs its client: pip install .*\[postgresql\]"):
            call(SERVER)
    with pytest.raises(inorder.CallerError, match=r"a store elsewhere needs its client: pip install .*\[remote\]"):
        inorder.connect("https://inorder.example")


def test_the_files_of_a_store_are_known_under_any_name(tmp_path: Path) -> None:
    where, other = InFile(tmp_path / "orders.db"), InFile(tmp_path / "other.db")
    assert not where.is_there("test")
    store = where.open("PARIS", "test")
    assert where.is_there("test")
    (tmp_path / "link").symlink_to(where.path)
    assert InFile(tmp_path / "link").is_one_with(where)
    for name, is_own in {"orders.db": True, "orders.db-wal": True, "link": True, "other.db": False}.items():
        path = tmp_path / name
        assert (where.consists_of(path), is_of_open_store(path), is_of_any_store(path)) == (is_own, is_own, is_own)
    assert opening.store_below(tmp_path) is not None
    store.close_store()
    assert not is_of_open_store(where.path)
    assert is_of_any_store(where.path)
    other.open("PARIS", "test").close_store()
    assert not other.is_one_with(where)
    assert not where.is_one_with(InMemory(":memory:"))
    assert where.problems() == []
    assert opening.store_below(tmp_path / "none") is None


def test_a_location_in_memory_has_no_store_before_it_is_opened() -> None:
    where = InMemory(":memory:")
    assert not where.is_there("test")
    assert not where.is_one_with(InMemory(":memory:"))
    assert not where.consists_of(Path(":memory:"))
    assert where.problems() == []
    with inorder.connect(where.open("PARIS", "test")) as qm:
        assert qm.admin.manager_attributes().name == "PARIS"


def rename(store: str) -> object:
    return inorder.rename(store, "LYON")


@pytest.mark.parametrize("call", [rename, open_receiver])
def test_calls_that_need_a_store_create_none_in_an_empty_file(call: Callable[[str], object], tmp_path: Path) -> None:
    empty = tmp_path / "empty.db"
    empty.touch()
    with pytest.raises(inorder.StoreError, match=f"there is no store at {empty}"):
        call(str(empty))
    assert [(path, path.stat().st_size) for path in tmp_path.iterdir()] == [(empty, 0)]
