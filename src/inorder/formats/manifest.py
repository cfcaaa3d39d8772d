r"""The manifest: the first message of a file's group, which describes the file and the other messages.

Its body is JSON in ASCII, always with these keys in this order; the descriptor's format is `FORMAT`::

    {"version": 1, "path": "src/a.py", "size": 812, "mode": 420, "sha256": "9f86...", "rule": "size:100", "messages": 9}

==========  ===========================================================================================================
key         meaning
==========  ===========================================================================================================
version     1
path        the place of the file below a folder: relative, with "/", without ".", ".." and empty parts. Each byte
            that is not UTF-8 is written as U+DC80 to U+DCFF, in JSON ``\udc80`` to ``\udcff``: Python's
            "surrogateescape", so any name survives
size        bytes
mode        permission bits, 0 to 511 (0o777); never set-user-id, set-group-id or sticky
sha256      of the bytes, 64 hexadecimal digits in lower case
rule        the split rule, as text: see `inorder.formats.splitting`
messages    how many logical messages follow in the group; 0 for an empty file
==========  ===========================================================================================================
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from ..errors import ArgumentError
from ..model.fields import NUMBER_MAX
from .errors import ManifestError, UnsafePath
from .splitting import Rule, Size, Whole, parse_rule

FORMAT: Final = "INOFILE"
"""The format in the descriptor of a manifest."""
VERSION: Final = 1
MANIFEST_BYTES_MAX: Final = 64 * 1024
PATH_BYTES_MAX: Final = 4096
SIZE_MAX: Final = 2**63 - 1
MODE_MAX: Final = 0o777
MESSAGES_MAX: Final = NUMBER_MAX - 1  # the manifest is number 1 of its group


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The contents of a manifest; the fields are its keys.

    Raises ManifestError if a value is not allowed, or two contradict each other; UnsafePath.
    """

    version: int = VERSION
    path: str
    size: int
    mode: int
    sha256: str
    rule: str
    messages: int

    def __post_init__(self) -> None:
        for name, (good, allowed) in _CHECKS.items():
            value = getattr(self, name)
            if not good(value):
                raise ManifestError(f"{name} must be {allowed}, not {value!r:.80}", key=name, value=value)
        check_path(self.path)
        _check_together(self, self.split_rule)

    @property
    def split_rule(self) -> Rule:
        """The rule. Raises ManifestError."""
        try:
            return parse_rule(self.rule)
        except ArgumentError as wrong:
            raise ManifestError(f"rule: {wrong.args[0]}", key="rule", value=self.rule) from None


def make(manifest: Manifest) -> bytes:
    """Writes the body of a manifest: the same bytes for the same values."""
    return json.dumps(asdict(manifest), ensure_ascii=True).encode("ascii")


def parse(body: bytes) -> Manifest:
    """Reads the body of a manifest.

    Raises ManifestError if it is something else, or a key is missing, unknown or wrong; UnsafePath.
    """
    if len(body) > MANIFEST_BYTES_MAX:
        raise ManifestError(f"a manifest must have at most {MANIFEST_BYTES_MAX:,} bytes, not {len(body):,}")
    try:
        found = json.loads(body.decode("ascii"), object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as wrong:
        raise ManifestError(f"this is not a manifest, because it is not JSON: {wrong}") from None
    if not isinstance(found, dict):
        raise ManifestError("this is not a manifest: it is JSON, but not an object")
    if "version" in found and found["version"] != VERSION:
        raise ManifestError(f"version must be {VERSION}, not {found['version']!r:.80}: a newer release wrote it")
    for problem, keys in (("missing", KEYS - found.keys()), ("unknown", found.keys() - KEYS)):
        if keys:
            raise ManifestError(f"keys of a manifest are {', '.join(_ORDER)}; {problem}: {', '.join(sorted(keys))}")
    return Manifest(**found)


def check_path(path: str) -> str:
    """Checks that a path stays below a folder, and returns it.

    Raises UnsafePath if it is empty, absolute, too long, or has a part that is empty, "." or "..", or a NUL.
    """
    if not isinstance(path, str):
        raise UnsafePath(f"a path must be a text, not {path!r:.80}", path=path)
    parts = path.split("/")
    if not path or "\0" in path or any(part in ("", ".", "..") for part in parts):
        raise UnsafePath(
            f"a path must be relative, with '/' between its parts, none of them empty, '.' or '..', not {path!r:.80}",
            path=path,
        )
    try:
        length = len(path_bytes(path))
    except UnicodeEncodeError:
        raise UnsafePath(f"a path must be text, or bytes by surrogateescape, not {path!r:.80}", path=path) from None
    if length > PATH_BYTES_MAX:
        raise UnsafePath(f"a path must have at most {PATH_BYTES_MAX:,} bytes, not {length:,}", path=path)
    return path


def path_bytes(path: str) -> bytes:
    """A path as bytes for the file system."""
    return path.encode("utf-8", "surrogateescape")


def path_text(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> str:
    """A path as text, without loss, whatever the system's encoding is."""
    return os.fsencode(path).decode("utf-8", "surrogateescape")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _integer(low: int, high: int) -> tuple[Callable[[object], bool], str]:
    def good(value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high

    return good, f"an integer from {low:,} to {high:,}"


def _text(value: object) -> bool:
    return isinstance(value, str)


_CHECKS: Final[Mapping[str, tuple[Callable[[object], bool], str]]] = {
    "version": _integer(VERSION, VERSION),
    "path": (_text, "a text"),
    "size": _integer(0, SIZE_MAX),
    "mode": _integer(0, MODE_MAX),
    "sha256": (lambda value: isinstance(value, str) and bool(re.fullmatch("[0-9a-f]{64}", value)), "64 hex digits"),
    "rule": (_text, "a text"),
    "messages": _integer(0, MESSAGES_MAX),
}
_ORDER: Final = tuple(_CHECKS)
KEYS: Final = frozenset(_ORDER)


def _check_together(manifest: Manifest, rule: Rule) -> None:
    """Checks that this many bytes can make this many messages."""
    size, messages = manifest.size, manifest.messages
    if isinstance(rule, Size):
        good = messages == -(-size // rule.size)
    elif isinstance(rule, Whole):
        good = messages == min(1, size) and size <= NUMBER_MAX
    else:
        good = min(1, size) <= messages <= size
    if not good:
        raise ManifestError(
            f"{size:,} bytes by the rule {manifest.rule!r:.80} cannot be {messages:,} messages",
            key="messages",
            value=messages,
        )
