"""Everything that takes a store's path takes the URL of a store elsewhere, and with which credentials."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.stores.remote.conftest import Reached, Tried

import inorder
from inorder import aio
from inorder.errors import ArgumentError, CallerError, OptionsError
from inorder.formats.loading import load_folder
from inorder.mq.channels.sides import open_receiver
from inorder.spark.opening import open_store
from inorder.spark.options import source_options
from inorder.stores.open import OverNetwork, locate
from inorder.stores.remote.credentials import Credentials, keep

SECRET = "nobody-may-see-this"
URL, SERVER = "https://orders.example:9443", "orders.example:9443"


def tokens(tried: Tried) -> set[str | None]:
    return {found.token for _, found in tried}


def test_the_url_names_a_store_elsewhere() -> None:
    found = locate("HTTPS://Orders.Example:9443/", credentials={"token": SECRET})
    assert isinstance(found, OverNetwork)
    assert (str(found), found.absolute, str(found.given), found.secret) == (URL, URL, URL, "")
    assert (repr(found), found.default_name) == (f"OverNetwork('{URL}')", "INORDER")
    assert (found.path, found.resolved, found.is_in_memory) == (None, None, False)
    assert found.is_there("test")
    assert found.is_one_with(locate(URL))
    assert not found.is_one_with(locate("https://orders.example"))
    assert not found.is_one_with(locate("orders.db"))
    with pytest.raises(ArgumentError, match="store must be a URL like https://host:9443"):
        locate(Path("https://orders.example"))
    with pytest.raises(ArgumentError, match=r"or a URL like postgresql://.* or https://host:9443"):
        locate(f"mysql://{SECRET}")


def test_a_program_passes_credentials_or_the_environment_does(tried: Tried, monkeypatch: pytest.MonkeyPatch) -> None:
    given: Any = {"token": SECRET, "ca": "ca.pem", "certificate": "c.pem", "key": "k.pem"}
    wanted = URL, Credentials(SECRET, Path("c.pem"), Path("k.pem"), Path("ca.pem"))
    with pytest.raises(Reached):
        inorder.connect(URL, **given)
    assert tried.pop() == wanted

    async def connected() -> None:
        await aio.connect(URL, **given)

    with pytest.raises(Reached):
        asyncio.run(connected())
    assert tried == [wanted] * len(tried)
    tried.clear()
    monkeypatch.setenv("INORDER_TOKEN", SECRET)
    for call in (inorder.connect, open_store, lambda url: load_folder(url, "Q", ".", "whole")):
        with pytest.raises(Reached):
            call(URL)
    assert (tokens(tried), len(tried)) == ({SECRET}, 3)


def test_a_host_that_a_definition_names_gets_what_the_file_has_for_it(
    tried: Tried, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INORDER_TOKEN", SECRET)
    with pytest.raises(Reached):
        open_receiver(URL)
    keep(SERVER, Credentials("of-file"))
    with pytest.raises(Reached):
        open_receiver(URL)
    assert [found.token for _, found in tried] == [None, "of-file"]


@pytest.mark.parametrize("name", ["token", "ca", "certificate", "key"])
def test_credentials_are_refused_for_other_stores(name: str, tmp_path: Path) -> None:
    words = f"{name} must be left out unless the store is a URL like https://host:9443"
    with inorder.connect() as qm:
        for kind in (tmp_path / "orders.db", ":memory:", "postgresql://host/a", qm._store):
            with pytest.raises(ArgumentError, match=words) as refused:
                inorder.connect(kind, **{name: SECRET})  # type: ignore[arg-type]
            assert SECRET not in f"{refused.value!r} {refused.value.data}"
    with pytest.raises(ArgumentError, match=words):
        aio.connect(**{name: SECRET})  # type: ignore[arg-type]


def test_it_is_upgraded_where_it_is() -> None:
    with pytest.raises(CallerError, match=f"the store of {URL} is upgraded on the machine that has it"):
        inorder.upgrade(URL)


def test_spark_takes_the_url_and_no_token() -> None:
    assert source_options({"path": f"{URL}/", "queue": "Q"}, "batch read").url == URL
    for given in ({"token": SECRET}, {"Token": SECRET}):
        with pytest.raises(OptionsError, match="in the credentials file") as refused:
            source_options({"url": URL, "queue": "Q", **given}, "batch read")
        assert SECRET not in f"{refused.value!r} {refused.value.data}"
    with pytest.raises(ArgumentError, match="store must be a URL") as wrong:
        source_options({"url": f"https://me:{SECRET}@host", "queue": "Q"}, "batch read")
    assert SECRET not in f"{wrong.value!r} {wrong.value.data}"


def test_a_url_is_understood_without_the_libraries_of_the_connection() -> None:
    text = f"import sys; from inorder.stores.open import locate; locate({URL!r}); print(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, text=True)
    assert {"inorder.stores.remote.address", "websockets", "msgspec"} & {*ended.stdout.split()} == {
        "inorder.stores.remote.address"
    }
