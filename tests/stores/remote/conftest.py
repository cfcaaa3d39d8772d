"""An environment without credentials, a home folder of the test's own, and connections that fail."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

from inorder.errors import StoreError
from inorder.stores.remote.address import RemoteAddress
from inorder.stores.remote.credentials import Credentials

Tried = list[tuple[str, Credentials]]


class Reached(StoreError):
    """Raised in place of a connection to a server."""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [one for one in os.environ if one.startswith("INORDER_")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> Tried:
    """The URL and the credentials of each attempt to connect to a store elsewhere; all attempts fail."""
    found = Tried()

    class RemoteStore:
        def __init__(self, address: RemoteAddress, program: str, *, reconnects: float) -> None:
            del reconnects
            found.append((address.url, address.credentials()))
            raise Reached(f"{address} is not there")

    module = ModuleType("inorder.stores.remote.store")
    module.RemoteStore = RemoteStore  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return found
