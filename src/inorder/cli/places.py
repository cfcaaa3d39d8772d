"""The type of an option or argument that names a store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..errors import bad_argument
from ..stores.open import Location, locate


class PlaceType(click.Path):
    """The path of a file, or the URL of a PostgreSQL database."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, readable=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Makes a `Location`. Raises: ArgumentError, if it is not a URL of a store, or is a store in memory."""
        if isinstance(value, Location):
            return value
        where = locate(value)
        if where.is_in_memory:
            allowed = "a path or a URL of a store that outlives the command, such as a file in /dev/shm"
            raise bad_argument("store", value, allowed)
        return where
