"""Where a store is, as a command is given it: the path of a file, or the URL of a PostgreSQL database."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import click

from ..client.manager import check_client
from ..errors import IN_MEMORY, StoreError, bad_argument, is_url
from ..support.advice import check_store_name


class Place(NamedTuple):
    """A store's place; as a text it has no password.

    Args:
        given: what `inorder.connect` takes.
        shown: what people are shown.
    """

    given: Path | str
    shown: str

    def __str__(self) -> str:
        return self.shown

    def __repr__(self) -> str:
        return f"Place({self.shown!r})"

    def has_store(self, program: str) -> bool:
        """Whether a store is there, or for a file at least something. Raises: StoreError, that cannot be found out."""
        if isinstance(self.given, str):
            from ..stores.postgresql import is_there, parse  # noqa: PLC0415 - it loads a client, as below

            return is_there(parse(self.given), program)
        try:
            return self.given.exists() and (not self.given.is_file() or self.given.stat().st_size > 0)
        except OSError as error:
            raise StoreError(f"{self} cannot be opened: {error.strerror}", path=str(self)) from error

    def remedy(self) -> str:
        """How a store comes into being here."""
        if isinstance(self.given, Path) and not self.given.absolute().parent.is_dir():
            return f"there is no folder {self.given.absolute().parent}"
        named = "with this URL" if isinstance(self.given, str) else f"--store {self}"
        return f"'inorder queue create NAME {named}' makes one"

    def is_one_with(self, other: Place) -> bool:
        """Whether both are one store; both are there."""
        if isinstance(self.given, Path) and isinstance(other.given, Path):
            return self.given.samefile(other.given)
        if isinstance(self.given, str) and isinstance(other.given, str):
            from ..stores.postgresql import are_one, parse  # noqa: PLC0415

            return are_one(parse(self.given), parse(other.given))
        return False


class PlaceType(click.Path):
    """The type of an option that names a store."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, readable=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """A `Place`. Raises: ArgumentError, it is no URL of ours, or in memory."""
        if isinstance(value, Place):
            return value
        if value == IN_MEMORY:
            allowed = "a path or a URL: a store in memory ends with the command. Name a file, in /dev/shm say"
            raise bad_argument("store", value, allowed)
        check_store_name(value)
        if is_url(value):
            check_client()
            from ..stores.postgresql import parse  # noqa: PLC0415

            return Place(str(value), str(parse(value)))
        path = Path(str(super().convert(value, param, ctx)))
        return Place(path, str(path))
