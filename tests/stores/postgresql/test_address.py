"""URLs: what they mean, which are refused, and that no password is ever shown."""

from __future__ import annotations

import json
import logging
import pickle
import re
import traceback
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import conninfo_to_dict

import inorder
from inorder.cli import main
from inorder.stores.postgresql import parse

SECRET = "correct-horse-7261"
ENCODED = SECRET.replace("-", "%2D")

PLAIN = {
    "postgresql://host/db": "postgresql://host/db?schema=inorder",
    "postgres://host/db?schema=orders": "postgresql://host/db?schema=orders",
    "postgresql://": "postgresql:///?schema=inorder",
    "postgresql:///db?host=/run/pg&schema=a_1": "postgresql://%2Frun%2Fpg/db?schema=a_1",
    f"postgresql://ann:{SECRET}@host:5433/db": "postgresql://ann@host:5433/db?schema=inorder",
    f"postgresql://ann:{ENCODED}@[::1]:5433/db": "postgresql://ann@[::1]:5433/db?schema=inorder",
    f"postgresql://a,b:5433/db?user=ann&password={SECRET}": "postgresql://ann@a,b:5433/db?schema=inorder",
    f"postgresql://a,b/db?port=1&sslpassword={SECRET}": "postgresql://a:1,b:1/db?schema=inorder",
    f"postgresql://h/db?schema=s&scram_client_key={SECRET}&sslmode=require":
        "postgresql://h/db?sslmode=require&schema=s",
    f"postgresql://ann%40home:{SECRET}%40%2F%3F%23@h/d%20b": "postgresql://ann%40home@h/d%20b?schema=inorder",
    f"postgresql://ann:{SECRET}?#@h/db": "postgresql://ann@h/db?schema=inorder",
}  # fmt: skip


@pytest.mark.parametrize("url", PLAIN)
def test_libpq_gets_the_parameters_of_the_url_and_no_secret_is_shown(url: str) -> None:
    address = parse(url)
    assert (str(address), repr(address)) == (PLAIN[url], f"Address({PLAIN[url]!r})")
    assert str(parse(str(address))) == str(address)
    without = re.sub(r"(?<=\?)schema=\w+&?|&schema=\w+", "", url).rstrip("?")
    assert address.parameters == conninfo_to_dict(without)


REFUSED = [
    f"postgresql://ann:{SECRET[:4]}@{SECRET}@host/db",
    f"postgresql://ann:x/{SECRET}@host/db",
    f"postgresql://ann:{SECRET}/db",  # the host is missing, so this is read as a port
    f"postgresql://ann:{SECRET}%zz@host/db",
    f"postgresql://ann:{SECRET}%ff@host/db",
    f"postgresql://ann:{SECRET}%00@host/db",
    f"postgresql://host/db?password=a&{SECRET}=b",
    f"postgresql://host/db?password=a&{SECRET}",
    f"postgresql://host/db?password={SECRET}&options=-csearch_path%3Dx",
    f"postgresql://host/db?password={SECRET}&replication=database",
    f"postgresql://host:0/db?password={SECRET}",
    f"postgresql://host/db?port=65536&password={SECRET}",
    f"postgresql:/ann:{SECRET}@host/db",
    f"postgresql:ann:{SECRET}@host/db",
    f"PostgreSQL://ann:{SECRET}@host/db",
    f"postgre://ann:{SECRET}@host/db",
    f"mysql://ann:{SECRET}@host/db",
    f"postgresql://ann:{SECRET}\n@host/db",
    f"postgresql://ann:{SECRET}\udc80@host/db",
]
NUMBERS = count(1)
NAMES = ["Orders", '"orders"', "", "1x", "pg_x", "a" * 64, "a&schema=b", "a;drop", "%C3%A9"]


@pytest.mark.parametrize("url", REFUSED, ids=range(len(REFUSED)))
def test_an_invalid_url_is_refused_and_its_password_is_not_shown(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    allowed = r"store must be (the path of a file, or )?a URL like postgresql://"
    with pytest.raises(inorder.ArgumentError, match=allowed) as told:
        inorder.connect(url)
    shown = [*traceback.format_exception(told.value, chain=True)][-1] + repr(told.value) + str(told.value.data)
    assert told.value.__cause__ is told.value.__context__ is None
    assert main(["queue", "list", "--store", url]) == 2
    assert main(["queue", "list", "--json", "--store", url]) == 2
    assert SECRET not in shown + "".join(capsys.readouterr())


def test_a_url_given_as_a_path_is_refused_and_its_password_is_not_shown() -> None:
    with pytest.raises(inorder.ArgumentError) as told:
        inorder.connect(Path(f"postgresql://ann:{SECRET}@host/db"))
    assert SECRET not in str(told.value)


def test_a_schema_must_have_a_plain_name() -> None:
    for name in NAMES:
        with pytest.raises(inorder.ArgumentError, match="schema must be"):
            parse(f"postgresql://host/db?schema={name}")


def test_an_unknown_parameter_is_named_in_the_error_if_the_url_has_no_secret() -> None:
    with pytest.raises(inorder.ArgumentError, match="without 'sslmod'"):
        parse("postgresql://host/db?sslmod=require")


@pytest.fixture
def secret_url(postgresql: str) -> str:
    """The URL of a store that does not exist, with a password that the server does not check."""
    user, _, rest = postgresql.partition("@")
    return f"{user}:{ENCODED}@{rest}?schema=secret_store_{next(NUMBERS)}&password={SECRET}"


TRIED = [
    ["queue", "list"], ["queue", "create", "A"], ["queue", "list", "--json"], ["queue", "create", "A"],
    ["put", "A", "text"], ["check", "--json"], ["backup", "copy.db"], ["browse", "A"], ["claim", "list"],
    ["mqsc", "--export"], ["get", "NONE"],
]  # fmt: skip


def test_no_command_shows_the_password(
    secret_url: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("INORDER_STORE", secret_url)
    statuses = [main(arguments) for arguments in TRIED]
    assert statuses[:4] == [3, 0, 0, 1], capsys.readouterr()
    shown = "".join(capsys.readouterr()) + caplog.text
    assert "schema=secret_store" in shown
    assert SECRET not in shown
    assert ENCODED not in shown


def test_no_error_log_or_event_shows_the_password(secret_url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    told: list[object] = []
    urls = [secret_url, secret_url.replace("/postgres?", "/nowhere?"), f"postgresql://a:{SECRET}@127.0.0.1:1/x"]
    for url in urls:
        try:
            with inorder.connect(url) as qm:
                qm.inspect.observe(told.append)
                qm.create_queue("B")
                qm.put("B", b"x")
                store: Any = qm._store
                told += [
                    repr(qm), repr(vars(store)), store.path, qm.inspect.overview(), qm.inspect.units(),
                    qm.inspect.locks(),
                ]  # fmt: skip
                qm.get("B", wait=0.01)
                qm.admin.backup("x.db")
        except inorder.InorderError as error:
            told += [str(error), repr(error), error.data, pickle.dumps(error), *traceback.format_exception(error)]
    assert SECRET not in json.dumps(told, default=repr) + caplog.text
