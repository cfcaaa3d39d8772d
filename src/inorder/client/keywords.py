"""Turns the keywords of a put, get or browse into messages and options.

A call takes its options as one value, as keywords, or as a value with some fields replaced by keywords.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any, TypeVar

from ..errors import ArgumentError, OptionsError, Reason, bad_argument
from ..model.message import Descriptor, Message
from ..model.options import BrowseKeywords, GetKeywords, GetOptions, Match, PutKeywords, PutOptions, no_wait
from ..rules.selectors import selector_of
from ..support.advice import unknown_name

Data = bytes | bytearray | memoryview | Message
DEFAULT_PUT = PutOptions()
BROWSE_FIRST = GetOptions(browse="first")
BROWSE_NEXT = GetOptions(browse="next")
MESSAGE_FIELDS, PUT_OPTIONS = Descriptor.__annotations__.keys(), PutKeywords.__annotations__.keys()
GET_OPTIONS, BROWSE_OPTIONS = GetKeywords.__annotations__.keys(), BrowseKeywords.__annotations__.keys()
Options = TypeVar("Options", PutOptions, GetOptions)


class PutCall(Descriptor, PutKeywords, total=False):
    """Everything a put takes by keyword: fields of the descriptor, and options."""


def message_of(body: bytes | bytearray | memoryview | Message, fields: dict[str, Any]) -> Message | bytes:
    """Returns a body as a message, or a message with some fields replaced; bytes without fields stay bytes."""
    if not fields and (type(body) is bytes or isinstance(body, Message)):
        return body
    return body.replace(**fields) if isinstance(body, Message) else Message(body, **fields)


def split_put(keywords: Any, options: PutOptions | None) -> tuple[dict[str, Any], PutOptions]:
    """Splits keywords into fields of the message and options of the put."""
    if options is not None and not isinstance(options, PutOptions):
        raise bad_argument("options", options, "PutOptions, or keywords", Reason.OPTIONS_ERROR)
    if not keywords:
        return {}, options or DEFAULT_PUT
    fields: dict[str, Any] = {}
    chosen: dict[str, Any] = {}
    for name, value in keywords.items():
        if name in PUT_OPTIONS:
            chosen[name] = value
        elif name in MESSAGE_FIELDS:
            fields[name] = value
        elif name == "selector":
            raise OptionsError(
                "a put does not select messages: use a selector in a get or browse",
                reason=Reason.SELECTOR_INVALID_FOR_TYPE,
            )
        else:
            raise unknown_name("field or option", name, PutCall.__annotations__)
    return fields, changed(options or DEFAULT_PUT, chosen)


def changed(options: Options, chosen: dict[str, Any]) -> Options:
    """Returns the options with some values replaced. Raises: as the options themselves."""
    if not chosen:
        return options
    try:
        made: Options = _changed(options, **chosen)
    except ArgumentError:
        raise
    except (TypeError, ValueError):  # an unhashable value: the options raise the right error
        return replace(options, **chosen)
    return made


# Options are immutable, so repeated keywords are built and checked once.
_changed = functools.lru_cache(maxsize=256, typed=True)(replace)


def sweep_options(options: GetOptions | None, keywords: Any) -> GetOptions:
    """Returns the options of a browse of all messages. Raises: OptionsError, its cursor could stop for ever."""
    chosen = get_options(keywords, options, BROWSE_FIRST)
    if chosen.buffer is not None and not chosen.accept_truncated:
        raise OptionsError("a browse of all messages with a buffer needs accept_truncated=True")
    return chosen


def get_options(keywords: Any, options: GetOptions | None, default: GetOptions) -> GetOptions:
    """Returns the options of a get, or of a browse if `default` is for one, with a valid selector."""
    if options is not None and not isinstance(options, GetOptions):
        raise bad_argument("options", options, "GetOptions, or keywords", Reason.OPTIONS_ERROR)
    if options is not None and options.browse and not default.browse:
        raise OptionsError("a get removes messages: to browse, use browse_first, browse_next or browse_cursor")
    allowed = BROWSE_OPTIONS if default.browse else GET_OPTIONS
    for name in keywords:
        if name not in allowed:
            raise unknown_name("option", name, allowed, Reason.OPTIONS_ERROR)
    chosen = options or default
    if "selector" in keywords:
        keywords = _with_selector(chosen.match, **keywords)
    if "wait" in keywords and keywords["wait"] is None:  # `no_wait` warns
        keywords = {**keywords, "wait": no_wait()}
    chosen = changed(chosen, keywords)
    if chosen.match.selector is not None:
        selector_of(chosen.match)
    return chosen


def _with_selector(usual: Match, *, selector: str | None, match: Any = None, **keywords: Any) -> dict[str, Any]:
    """Returns the keywords with the selector moved into the match."""
    match = usual if match is None else match
    return {**keywords, "match": match.selecting(selector) if isinstance(match, Match) else match}
