"""The store for which a queue manager's name stands: `mqi.toml` and the variables of the environment.

::

    [QM1]
    store = "orders.db"                 # a path, from the folder of mqi.toml, or a URL
    default = true                      # this is the queue manager of the blank name
    user = "billing"                    # of the store, for programs that name none: no password is asked for

    ["mq.example(1414)"]                # a client's HOST(PORT), instead of a queue manager's name
    store = "https://orders.example:9443"
    token = "..."                       # or certificate, key and ca: see `inorder.connect`

The file is in the folder that INORDER_MQI names, else in ~/.config/inorder. A name that it does not have stands for the
store that INORDER_STORE names.

Rules: M-7.
"""

from __future__ import annotations

import logging
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from ..errors import CallerError, Reason
from ..stores.open import URL, Location, locate
from .refusals import Refused

log = logging.getLogger("inorder.mqi")

FILE: Final = "mqi.toml"
FOLDER_VARIABLE: Final = "INORDER_MQI"
STORE_VARIABLE: Final = "INORDER_STORE"
SERVER_VARIABLE: Final = "MQSERVER"
CREDENTIALS: Final = ("token", "certificate", "key", "ca")
PATHS: Final = ("certificate", "key", "ca")
KEYS: Final = frozenset({"store", "default", "user", *CREDENTIALS})
READERS: Final = ("tomllib", "tomli")  # Python 3.10 has none of its own
EVERYBODY: Final = stat.S_IRWXG | stat.S_IRWXO
SERVER: Final = re.compile(r"([^/]+)/([^/]+)/(.+)")  # channel, transport, connection name


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """A store, and the credentials for it; `user` is the user of programs that name none; empty: the process's user."""

    store: str
    credentials: Mapping[str, Any] = field(repr=False)
    user: str = ""

    @property
    def location(self) -> Location:
        """The location of the store. Raises: ArgumentError, CallerError."""
        return locate(self.store, credentials=self.credentials)


def settings_file() -> Path:
    """The path of mqi.toml, which need not exist."""
    folder = os.environ.get(FOLDER_VARIABLE)
    return (Path(folder) if folder else Path("~/.config/inorder").expanduser()) / FILE


def settings_of(name: str, connection: str = "") -> StoreSettings:
    """The settings for a queue manager.

    Args:
        name: the name of the queue manager; empty: the default one.
        connection: a client's HOST(PORT); empty: the program names none.

    Raises: Refused 2058, nothing names a store; CallerError 2012, the file is not usable.
    """
    path = settings_file()
    sections = _read(path) if path.exists() else {}
    section = sections.get(connection) if connection else None
    if section is None:
        if connection:
            log.info("%s has no section for %s: its host and port are ignored", path, connection)
        default = (one for one in sections.values() if one.get("default"))
        section = sections.get(name) if name else next(default, None)
    if section is not None:
        return _settings(section, path.parent)
    store = os.environ.get(STORE_VARIABLE)
    if not store:
        log.error("no store: neither %s has a section for queue manager %r, nor is INORDER_STORE set", path, name)
        raise Refused(Reason.Q_MGR_NAME_ERROR)
    return StoreSettings(store, {})


def server_connection() -> str:
    """The connection name in MQSERVER; empty: it is not set. Raises: Refused 2058."""
    server = os.environ.get(SERVER_VARIABLE)
    if not server:
        return ""
    parts = SERVER.fullmatch(server)
    if parts is None:
        log.error("MQSERVER must be CHANNEL/TCP/HOST(PORT), not %r", server)
        raise Refused(Reason.Q_MGR_NAME_ERROR)
    return parts[3]


def _settings(section: Mapping[str, Any], folder: Path) -> StoreSettings:
    store = section["store"]
    credentials = {name: section[name] for name in CREDENTIALS if name in section}
    for name in credentials.keys() & set(PATHS):
        credentials[name] = folder / Path(credentials[name]).expanduser()
    if URL.match(store) is None:
        store = str(folder / Path(store).expanduser())
    return StoreSettings(store, credentials, section.get("user", ""))


def _read(path: Path) -> Mapping[str, Mapping[str, Any]]:
    reader = next((name for name in READERS if find_spec(name)), None)
    if reader is None:
        raise _unusable(path, "cannot be read by Python 3.10: install tomli, or use INORDER_STORE")
    try:
        mode = path.stat().st_mode
        sections: dict[str, Any] = import_module(reader).loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:  # tomllib's error is a ValueError
        raise _unusable(path, f"cannot be read: {error}") from None
    for name, section in sections.items():
        if not isinstance(section, dict) or not section.keys() <= KEYS or not _is_right(section):
            raise _unusable(
                path, f"[{name}] must have store and may have {', '.join(sorted(KEYS - {'store'}))}: texts in quotes"
            )
        if "token" in section and os.name == "posix" and mode & EVERYBODY:
            raise _unusable(path, "has a token, so only its owner may have access: chmod 600 it")
    return sections


def _is_right(section: Mapping[str, Any]) -> bool:
    texts = [section.get("store"), *(section[name] for name in (*CREDENTIALS, "user") if name in section)]
    return all(isinstance(one, str) for one in texts) and isinstance(section.get("default", False), bool)


def _unusable(path: Path, why: str) -> CallerError:
    return CallerError(f"{path} {why}", reason=Reason.ENVIRONMENT_ERROR)
