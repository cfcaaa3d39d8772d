"""The files of ``static``. Their addresses have a hash of their contents, so browsers keep them for good."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from starlette.responses import Response

from ..problems import problem
from .page import BASE

FOLDER: Final = Path(__file__).parent / "static"
TYPES: Final[Mapping[str, str]] = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
FOR_GOOD: Final = {"Cache-Control": "public, max-age=31536000, immutable"}


class StaticFile(NamedTuple):
    """A file with the hash that its address has."""

    data: bytes
    kind: str
    mark: str


@cache
def files() -> Mapping[str, StaticFile]:
    """All files by name."""
    return {path.name: _read(path) for path in sorted(FOLDER.iterdir()) if path.suffix in TYPES}


def _read(path: Path) -> StaticFile:
    data = path.read_bytes()
    return StaticFile(data, TYPES[path.suffix], hashlib.sha256(data).hexdigest()[:16])


def static(name: str) -> str:
    """The address of a file."""
    return f"{BASE}/static/{files()[name].mark}/{name}"


def answer(mark: str, name: str) -> Response:
    """A file. Raises: Problem 404, there is none of this name with these contents."""
    found = files().get(name)
    if found is None or found.mark != mark:
        raise problem("INWB0001E", f"{BASE}/static/{mark}/{name}")
    return Response(found.data, headers=FOR_GOOD, media_type=found.kind)
