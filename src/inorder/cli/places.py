"""The type of an option or argument that names a store."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from ..errors import bad_argument
from ..stores.open import Location, OverNetwork, locate

OF_TLS: Final = ("ca", "certificate", "key")  # options before the command


class PlaceType(click.Path):
    """The path of a file, or the URL of a PostgreSQL database or of a server elsewhere.

    Args:
        is_second: whether this names a second store. The credentials in the environment apply only to the command's own
            store.
    """

    def __init__(self, *, is_second: bool = False) -> None:
        super().__init__(path_type=Path, readable=False)
        self._is_second = is_second

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Makes a `Location`.

        Raises: ArgumentError, if it is not a URL of a store, or is a store in memory; click.UsageError, if options
        before the command are only for a store elsewhere.
        """
        if isinstance(value, Location):
            return value
        where = locate(value, named_by_program=not self._is_second)
        if where.is_in_memory:
            allowed = "a path or a URL of a store that outlives the command, such as a file in /dev/shm"
            raise bad_argument("store", value, allowed)
        if not self._is_second and not isinstance(where, OverNetwork):
            for name in given_before(ctx, OF_TLS):
                raise click.UsageError(f"--{name} is for a store elsewhere, https://host:9443: leave it out.", ctx)
        return where


def given_before(ctx: click.Context | None, names: tuple[str, ...]) -> list[str]:
    """Those of the options with these names that are given before the command."""
    before = {} if ctx is None or ctx.parent is None else ctx.find_root().params
    return [name for name in names if before.get(name) is not None]
