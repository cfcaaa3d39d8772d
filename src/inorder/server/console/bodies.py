"""A body as people read it: text, JSON, or bytes in hex; as much of it as a page bears."""

from __future__ import annotations

import codecs
import json
from typing import Final, Literal, NamedTuple

from .labels import visible

View = Literal["json", "text", "hex"]
SHOWN_MAX: Final = 65_536  # bytes of a body that are read
HEX_MAX: Final = 8_192
LINE: Final = 16


class BodyView(NamedTuple):
    """The views that a body has, the one that is shown, and its text.

    Args:
        cut: so many bytes are shown; 0: all of them.
    """

    views: tuple[View, ...]
    view: View
    text: str
    cut: int


def shown(data: bytes, length: int, wanted: str = "") -> BodyView:
    """A body in the view that is wanted, or in the first of those that it has.

    Args:
        data: its beginning, at most `SHOWN_MAX` bytes.
        length: of the whole body.
    """
    found: dict[View, str] = {}
    is_whole = len(data) >= length
    text = _text(data, is_whole=is_whole)
    if text is not None:
        pretty = _json(text) if is_whole else None
        if pretty is not None:
            found["json"] = visible(pretty)
        found["text"] = visible(text)
    found["hex"] = _hex(data[:HEX_MAX])
    view = next((one for one in found if one == wanted), next(iter(found)))
    seen = min(len(data), HEX_MAX) if view == "hex" else len(data)
    return BodyView(tuple(found), view, found[view], 0 if seen >= length else seen)


def _text(data: bytes, *, is_whole: bool) -> str | None:
    """As UTF-8, without a last character that the cut has split; None: it is not a text."""
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(data, final=is_whole)
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _json(text: str) -> str | None:
    """An object or a list with its parts on lines of their own; None: it is neither."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None


def _hex(data: bytes) -> str:
    """Lines of an offset, 16 bytes, and what of them is ASCII."""
    lines = []
    for at in range(0, len(data), LINE):
        piece = data[at : at + LINE]
        letters = "".join(chr(one) if 32 <= one < 127 else "." for one in piece)
        lines.append(f"{at:08x}  {piece[:8].hex(' '):23}  {piece[8:].hex(' '):23}  {letters}")
    return "\n".join(lines)
