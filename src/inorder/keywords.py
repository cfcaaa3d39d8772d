"""Keywords: what callers may write behind a put, a get or a browse, made into messages and options.

A call takes its options as one value, as keywords, or as a value with some of it replaced by keywords.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .errors import OptionsError, Reason, bad_argument, unknown_name
from .message import Descriptor, Message
from .options import BrowseKeywords, GetKeywords, GetOptions, PutKeywords, PutOptions

DEFAULT_PUT = PutOptions()
DEFAULT_GET = GetOptions()
BROWSE_FIRST = GetOptions(browse="first")
BROWSE_NEXT = GetOptions(browse="next")


class PutCall(Descriptor, PutKeywords, total=False):
    """Everything a put takes by keyword: fields of the descriptor, and options."""


def message_of(body: bytes | bytearray | memoryview | Message, fields: dict[str, Any]) -> Message:
    """The message of a body, or of a message with some fields replaced."""
    if isinstance(body, Message):
        return body.replace(**fields) if fields else body
    return Message(body, **fields)


def split_put(keywords: Any, options: PutOptions | None) -> tuple[dict[str, Any], PutOptions]:
    """Keywords are fields of the message or options of the put."""
    if options is not None and not isinstance(options, PutOptions):
        raise bad_argument("options", options, "PutOptions, or keywords", Reason.OPTIONS_ERROR)
    if not keywords:
        return {}, options or DEFAULT_PUT
    for name in keywords:
        if name not in PutCall.__annotations__:
            raise unknown_name("field or option", name, PutCall.__annotations__, Reason.ARGUMENT_ERROR)
    chosen = {name: value for name, value in keywords.items() if name in PutKeywords.__annotations__}
    fields = {name: value for name, value in keywords.items() if name not in chosen}
    return fields, replace(options or DEFAULT_PUT, **chosen)


def sweep_options(options: GetOptions | None, keywords: Any) -> GetOptions:
    """The options of a browse of all messages. Raises: OptionsError, they would stop its cursor for ever."""
    chosen = get_options(keywords, options, BROWSE_FIRST)
    if chosen.buffer is not None and not chosen.accept_truncated:
        raise OptionsError("a browse of all messages with a buffer needs accept_truncated")
    return chosen


def get_options(keywords: Any, options: GetOptions | None, default: GetOptions) -> GetOptions:
    """The options of a get, or of a browse if `default` is one."""
    if options is not None and not isinstance(options, GetOptions):
        raise bad_argument("options", options, "GetOptions, or keywords", Reason.OPTIONS_ERROR)
    if options is not None and options.browse and not default.browse:
        raise OptionsError("a get removes: browse with browse_first, browse_next or browse_cursor")
    if not keywords:
        return options or default
    allowed = BrowseKeywords.__annotations__ if default.browse else GetKeywords.__annotations__
    for name in keywords:
        if name not in allowed:
            raise unknown_name("option", name, allowed, Reason.OPTIONS_ERROR)
    return replace(options or default, **keywords)
