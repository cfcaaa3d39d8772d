"""Translates PostgreSQL's errors into ours. None of them shows a password."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import psycopg
from psycopg import errors

from ...errors import ArgumentError, ConnectionBroken, InorderError, StoreDamaged, StoreError, StoreFull
from ..seam.backend import Passing

if TYPE_CHECKING:
    from .address import Address

Kinds = tuple[type[psycopg.Error], ...]
# The operation has changed nothing, and is no longer blocked.
PASSING: Final[Kinds] = (errors.DeadlockDetected, errors.SerializationFailure, errors.LockNotAvailable)
ENDS_SESSION: Final = ("FATAL", "PANIC")  # the severity of errors with which the server closes the connection
FULL: Final[Kinds] = (errors.DiskFull, errors.OutOfMemory, errors.ConfigurationLimitExceeded)
DAMAGED: Final[Kinds] = (
    psycopg.IntegrityError,
    psycopg.DataError,
    errors.DataCorrupted,
    errors.IndexCorrupted,
    errors.UndefinedTable,
    errors.UndefinedColumn,
    errors.UndefinedFunction,
)
# By kind: our error, and its text about the store at an address, with the server's text.
TEXTS: Final[tuple[tuple[Kinds, type[StoreError], str], ...]] = (
    (FULL, StoreFull, "the server of {at} has no room ({said}); the call has changed nothing. Get or delete messages, "
     "or free some space there."),
    (DAMAGED, StoreDamaged, "{at} is not as inorder made it ({said}). `inorder check` lists what is wrong."),
    ((errors.ReadOnlySqlTransaction,), StoreError, "{at} cannot be written ({said}). Name the primary: of several "
     "hosts target_session_attrs=read-write finds it."),
    ((errors.InsufficientPrivilege,), StoreError, "this user lacks a privilege for {at} ({said}). The page on "
     "PostgreSQL has the GRANTs for owners and users."),
)  # fmt: skip


@contextmanager
def told_as_ours(address: Address) -> Iterator[None]:
    """Raises ours instead of PostgreSQL's error; other exceptions pass unchanged."""
    try:
        yield
    except psycopg.Error as error:
        raise fault(address, error) from error


def fault(address: Address, error: psycopg.Error) -> InorderError | Passing:
    """Returns the error to raise instead of one of PostgreSQL's."""
    said = _said(error)
    if isinstance(error, PASSING):
        return Passing(said)
    if isinstance(error, errors.CharacterNotInRepertoire) and said.endswith("0x00"):
        return ArgumentError("a text has the character NUL, which a store on a server cannot keep: leave it out")
    if is_lost(error):
        return ConnectionBroken(f"the connection to {address} was lost ({said}): connect again")
    kind, text = next(
        ((kind, text) for kinds, kind, text in TEXTS if isinstance(error, kinds)), (StoreError, "{at}: {said}")
    )
    return kind(text.format(at=address, said=said), path=str(address))


def replaced(address: Address) -> StoreError:
    """Returns the error for another store, or none, at the address."""
    return StoreError(
        f"{address} was dropped, or restored, while it was open: the store that was opened is gone. Close it, and open "
        "it again.",
        path=str(address),
        must_reopen=True,
    )


def unreachable(address: Address, error: psycopg.Error) -> StoreError:
    """Returns the error for a failed connection, with libpq's reason."""
    return StoreError(f"{address} cannot be reached: {_said(error)}", path=str(address))


def _said(error: psycopg.Error) -> str:
    text = (error.diag.message_primary or str(error)).removeprefix("connection failed: ")
    return ". ".join(" ".join(line.split()) for line in text.splitlines() if line.strip())[:300]


def is_lost(error: psycopg.Error) -> bool:
    """Whether the connection is lost too: the server says so, or libpq has no answer at all."""
    if error.diag.severity_nonlocalized in ENDS_SESSION:
        return True
    return isinstance(error, psycopg.OperationalError) and error.sqlstate is None
