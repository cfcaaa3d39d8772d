"""Finds and opens stores: the one table of the kinds of stores, and the only file that knows URL schemes.

To add a kind of store, add a class to `KINDS`. Each kind imports its store only when a call needs it, because that may
load a library that programs with other stores do not need.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from ..errors import IN_MEMORY, CallerError, Reason, StoreError, bad_argument
from ..model.attribute import name_made_of
from ..model.options import is_path
from ..support.advice import check_store_name, not_installed, not_shown

if TYPE_CHECKING:
    from ..support.clock import Clock
    from .engine.store import QueueStore
    from .seam.migrations import Upgraded
    from .seam.protocol import LocalStore

Backup = str | os.PathLike[str] | bool
Progress = Callable[[int, int], object]

PATH_OR_URL: Final = "the path of a file, in UTF-8, or a URL"
ANY_STORE: Final = f"the path of a file, in UTF-8, {IN_MEMORY!r} or a store"
URL_LIKE: Final = "a URL like postgresql://user@host/database?schema=name or https://host:9443"
NO_CREDENTIALS: Final[Mapping[str, Any]] = MappingProxyType({})
URL: Final = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
SERVER_URL: Final = re.compile(r"postgres(?:ql)?:", re.IGNORECASE)
REMOTE_URL: Final = re.compile(r"https?:/", re.IGNORECASE)  # a Path has one slash
RECONNECT_SECONDS: Final = 30.0
RECONNECT_SECONDS_MAX: Final = 86_400
REMOTE_LIBRARIES: Final = ("msgspec", "websockets")
SECRETS: Final = ("password", "sslpassword")  # of libpq's parameters


class Location:
    """The location of a store; `str` of it shows no password.

    Attributes:
        given: the location as `inorder.connect` takes it.
        path: the path of the store's file; None: it has no file.
        secret: the name of the secret in `given`; empty: it has none.
        is_in_memory: whether each open creates a new store, which ends with the program.
    """

    path: Path | None = None
    secret = ""
    is_in_memory = False

    def __init__(self, given: Any) -> None:
        self.given: Path | str = given

    def __str__(self) -> str:
        return str(self.given)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    @staticmethod
    def is_named_by(store: object) -> bool:
        """Whether this is a path or URL of this kind, valid or not."""
        raise NotImplementedError

    @property
    def absolute(self) -> str:
        """The location as a text that is valid in any working directory."""
        return str(self.given)

    @property
    def resolved(self) -> Path | None:
        """The path of its file with all links resolved; None: each connection has its own store object.

        Raises: StoreError, the system cannot follow the path.
        """
        return None

    @property
    def default_name(self) -> str:
        """The name of the queue manager of a new store. Raises: as `resolved`."""
        return "INORDER"

    def open(self, name: str, program: str = "", *, clock: Clock | None = None) -> LocalStore:
        """Opens the store, and creates it if it is missing.

        Args:
            name: the name of the queue manager of a new store.
            program: the name that a database server shows for the connection.
            clock: the source of time; default: the system's.

        Raises: StoreError and its kinds: the store cannot be opened or created; the text says why.
        """
        raise NotImplementedError

    def is_there(self, program: str) -> bool:
        """Whether a store, or a file that is not empty, exists here. Raises: StoreError, if that is unknown."""
        return False

    def is_one_with(self, other: Location) -> bool:
        """Whether both locations, which must exist, are the same store. Raises: StoreError."""
        return self is other

    def upgrade(self, program: str, backup: Backup, progress: Progress | None) -> Upgraded:
        """Upgrades a store to the schema of this release; see `inorder.upgrade`."""
        raise bad_argument("store", self.given, PATH_OR_URL)

    def consists_of(self, path: Path) -> bool:
        """Whether a path leads, under any name, to the store's file or to one of its side files."""
        return False

    def problems(self) -> list[str]:
        """Returns the faults in the file of a store that is too damaged to open. Raises: StoreDamaged."""
        return []


class InMemory(Location):
    """A store in this process's memory."""

    is_in_memory = True

    @staticmethod
    def is_named_by(store: object) -> bool:
        return isinstance(store, str) and store == IN_MEMORY

    def open(self, name: str, program: str = "", *, clock: Clock | None = None) -> QueueStore:
        from .memory import MemoryStore

        return MemoryStore(name, clock)


class InFile(Location):
    """A store in a SQLite file."""

    path: Path

    def __init__(self, given: Any) -> None:
        self.given = self.path = Path(given)

    @staticmethod
    def is_named_by(store: object) -> bool:
        return isinstance(store, str | os.PathLike) and URL.match(str(store)) is None and is_path(store)

    @property
    def absolute(self) -> str:
        return str(self.path.absolute())

    @cached_property
    def resolved(self) -> Path:
        from .sqlite import resolved

        return resolved(self.path)

    @property
    def default_name(self) -> str:
        return name_made_of(self.resolved.stem)

    def open(self, name: str, program: str = "", *, clock: Clock | None = None, shortcuts: bool = True) -> QueueStore:
        from .sqlite import SqliteStore

        return SqliteStore(self.resolved, name, clock, shortcuts=shortcuts)

    def is_there(self, program: str) -> bool:
        try:
            return self.path.exists() and (not self.path.is_file() or self.path.stat().st_size > 0)
        except OSError as error:
            raise StoreError(f"{self} cannot be opened: {error.strerror}", path=str(self)) from error

    def is_one_with(self, other: Location) -> bool:
        return isinstance(other, InFile) and self.path.samefile(other.path)

    def upgrade(self, program: str, backup: Backup, progress: Progress | None) -> Upgraded:
        from .sqlite import upgrade_file

        return upgrade_file(self.path, backup=backup, progress=progress)

    def consists_of(self, path: Path) -> bool:
        from .sqlite import is_of_store

        return is_of_store(path, self.path)

    def problems(self) -> list[str]:
        from .sqlite import problems_in_file

        return problems_in_file(self.path)


class OnServer(Location):
    """A store in a schema of a PostgreSQL database. Raises: ArgumentError; CallerError, its client is not installed."""

    def __init__(self, given: Any) -> None:
        self.given = str(given)
        try:
            import_module("psycopg")
        except ModuleNotFoundError as missing:
            raise not_installed("PostgreSQL needs its client", "postgresql", missing) from missing
        from .postgresql import parse

        self._address = parse(self.given)
        self.secret = next((one for one in SECRETS if one in self._address.parameters), "")

    def __str__(self) -> str:
        return str(self._address)

    @staticmethod
    def is_named_by(store: object) -> bool:
        return isinstance(store, str | os.PathLike) and SERVER_URL.match(str(store)) is not None

    @property
    def default_name(self) -> str:
        return name_made_of(self._address.schema)

    def open(self, name: str, program: str = "", *, clock: Clock | None = None) -> QueueStore:
        from .postgresql import PostgresStore

        return PostgresStore(str(self.given), name, clock, program=program)

    def is_there(self, program: str) -> bool:
        from .postgresql import is_there

        return is_there(self._address, program)

    def is_one_with(self, other: Location) -> bool:
        from .postgresql import are_one

        return isinstance(other, OnServer) and are_one(self._address, other._address)

    def upgrade(self, program: str, backup: Backup, progress: Progress | None) -> Upgraded:
        from .postgresql import upgrade_schema

        if backup is not False:
            raise CallerError(
                f"back up {self} with PostgreSQL's own tools first: pg_dump -n {self._address.schema}. Then pass "
                "backup=False (in the shell: --no-backup)",
                reason=Reason.FUNCTION_NOT_SUPPORTED,
            )
        return upgrade_schema(self._address, program=program)


class OverNetwork(Location):
    """A store that `inorder serve` on another machine has open.

    Args:
        credentials: see `locate`.
        named_by_program: see `locate`.

    Raises: ArgumentError.
    """

    def __init__(
        self, given: Any, credentials: Mapping[str, Any] = NO_CREDENTIALS, *, named_by_program: bool = True
    ) -> None:
        from .remote.address import parse

        known = {name: value for name, value in credentials.items() if name != "reconnect"}
        self._address = parse(str(given), known, named_by_program=named_by_program)
        self._reconnect = _seconds(credentials.get("reconnect"))
        self.given = str(self._address)

    @staticmethod
    def is_named_by(store: object) -> bool:
        return isinstance(store, str | os.PathLike) and REMOTE_URL.match(str(store)) is not None

    def open(self, name: str, program: str = "", *, clock: Clock | None = None) -> LocalStore:
        try:
            for library in REMOTE_LIBRARIES:
                import_module(library)
        except ModuleNotFoundError as missing:
            raise not_installed("a store elsewhere needs its client", "remote", missing) from missing
        from .remote.store import RemoteStore

        return RemoteStore(self._address, program, reconnects=self._reconnect)

    def is_there(self, program: str) -> bool:
        return True  # its server has it; `open` checks whether the server can be reached

    def is_one_with(self, other: Location) -> bool:
        return isinstance(other, OverNetwork) and self._address == other._address

    def upgrade(self, program: str, backup: Backup, progress: Progress | None) -> Upgraded:
        text = f"the store of {self} is upgraded on the machine that has it: stop the server, then run inorder upgrade"
        raise CallerError(text, reason=Reason.FUNCTION_NOT_SUPPORTED)


def _seconds(reconnect: object) -> float:
    """For how long a lost connection is made again. Raises: ArgumentError."""
    if reconnect is None:
        return RECONNECT_SECONDS
    if isinstance(reconnect, int | float) and type(reconnect) is not bool and 0 <= reconnect <= RECONNECT_SECONDS_MAX:
        return reconnect
    raise bad_argument("reconnect", reconnect, f"seconds from 0 to {RECONNECT_SECONDS_MAX:,}")


KINDS: Final[tuple[type[Location], ...]] = (InMemory, OnServer, OverNetwork, InFile)  # the first match wins


def kind_of(store: object) -> type[Location] | None:
    """Returns the kind of store that a path or URL names, valid or not; None: it names none."""
    return next((kind for kind in KINDS if kind.is_named_by(store)), None)


def locate(
    store: object,
    allowed: str = ANY_STORE,
    credentials: Mapping[str, Any] = NO_CREDENTIALS,
    *,
    named_by_program: bool = True,
) -> Location:
    """Returns the location of the store that a path or URL names.

    Args:
        allowed: the values that an error text lists.
        credentials: token, ca, certificate, key and reconnect of a store elsewhere; None: left out.
        named_by_program: whether the program or command itself names the store, not a definition or a table. Only then
            INORDER_TOKEN and the like count for a store elsewhere.

    Raises: ArgumentError; CallerError, the library for this kind of store is not installed.
    """
    check_store_name(store)
    kind = kind_of(store)
    if kind is OverNetwork:
        return OverNetwork(store, credentials, named_by_program=named_by_program)
    check_no_credentials(credentials)
    if kind is not None:
        return kind(store)
    if isinstance(store, str) and URL.match(store):
        raise not_shown("store", f"the path of a file, or {URL_LIKE}")
    raise bad_argument("store", store, allowed)


def check_no_credentials(credentials: Mapping[str, Any]) -> None:
    """Raises ArgumentError if credentials are given for a store that takes none."""
    for name, value in credentials.items():
        if value is not None:
            raise not_shown(name, "left out unless the store is a URL like https://host:9443")


def is_of_any_store(path: Path) -> bool:
    """Whether a path leads to a file of a store that this process has open, or of any store in the path's folder."""
    from .sqlite import is_of_any_store

    return is_of_any_store(path)


def is_of_open_store(path: Path) -> bool:
    """Whether a path leads to a file of a store that this process has open; closing the file would drop its locks."""
    from .sqlite import is_of_open_store

    return is_of_open_store(path)


def store_below(folder: Path) -> Path | None:
    """Returns a file of a store in a folder or below it, or None."""
    from .sqlite import SIDECAR, is_of_any_store

    return next(filter(is_of_any_store, folder.rglob(f"*{SIDECAR}")), None)
