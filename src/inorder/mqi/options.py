"""MQPMO and MQGMO: from their option words to `PutOptions` and `GetOptions`; MQOO to `OpenOptions`.

Each combination of words is checked and translated once. IBM's rules about options are applied here where inorder
cannot say the combination at all; the others `inorder.model.options` applies.

Rules: R1.16, R2.1, R2.2, 3.1, R3.18 to R3.24, R4.4.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

from ..errors import Reason
from ..model.fields import NO_ID
from ..model.options import FOREVER, Browse, Context, GetOptions, Match, OpenOptions, PutOptions
from . import constants as mq
from .descriptor import GROUP_AT, IDS, IDS_AT, NUMBERS
from .refusals import Refused

WORDS_KEPT: Final = 1_024  # combinations of option words

INPUTS: Final = mq.MQOO_INPUT_AS_Q_DEF | mq.MQOO_INPUT_SHARED | mq.MQOO_INPUT_EXCLUSIVE
OPEN_FOR: Final = INPUTS | mq.MQOO_BROWSE | mq.MQOO_OUTPUT | mq.MQOO_INQUIRE | mq.MQOO_SET
BINDS: Final = mq.MQOO_BIND_ON_OPEN | mq.MQOO_BIND_NOT_FIXED | mq.MQOO_BIND_ON_GROUP
OUTPUT_CONTEXTS: Final = (
    mq.MQOO_PASS_IDENTITY_CONTEXT | mq.MQOO_PASS_ALL_CONTEXT | mq.MQOO_SET_IDENTITY_CONTEXT | mq.MQOO_SET_ALL_CONTEXT
)
OPENS: Final = (
    OPEN_FOR | BINDS | OUTPUT_CONTEXTS | mq.MQOO_SAVE_ALL_CONTEXT | mq.MQOO_ALTERNATE_USER_AUTHORITY
    | mq.MQOO_FAIL_IF_QUIESCING | mq.MQOO_RESOLVE_NAMES | mq.MQOO_CO_OP | mq.MQOO_RESOLVE_LOCAL_Q
    | mq.MQOO_NO_READ_AHEAD | mq.MQOO_READ_AHEAD | mq.MQOO_NO_MULTICAST
)  # fmt: skip

CONTEXTS: Final = (
    mq.MQPMO_DEFAULT_CONTEXT | mq.MQPMO_NO_CONTEXT | mq.MQPMO_PASS_ALL_CONTEXT | mq.MQPMO_PASS_IDENTITY_CONTEXT
    | mq.MQPMO_SET_ALL_CONTEXT | mq.MQPMO_SET_IDENTITY_CONTEXT
)  # fmt: skip
PASSES: Final = mq.MQPMO_PASS_ALL_CONTEXT | mq.MQPMO_PASS_IDENTITY_CONTEXT
SETS: Final = mq.MQPMO_SET_ALL_CONTEXT | mq.MQPMO_SET_IDENTITY_CONTEXT
PUTS: Final = (
    CONTEXTS | mq.MQPMO_SYNCPOINT | mq.MQPMO_NO_SYNCPOINT | mq.MQPMO_NEW_MSG_ID | mq.MQPMO_NEW_CORREL_ID
    | mq.MQPMO_ALTERNATE_USER_AUTHORITY | mq.MQPMO_FAIL_IF_QUIESCING | mq.MQPMO_LOGICAL_ORDER | mq.MQPMO_ASYNC_RESPONSE
    | mq.MQPMO_SYNC_RESPONSE | mq.MQPMO_RESOLVE_LOCAL_Q | mq.MQPMO_MD_FOR_OUTPUT_ONLY | mq.MQPMO_WARN_IF_NO_SUBS_MATCHED
    | mq.MQPMO_RETAIN | mq.MQPMO_SCOPE_QMGR | mq.MQPMO_SUPPRESS_REPLYTO | mq.MQPMO_NOT_OWN_SUBS
)  # fmt: skip
NEEDED_FOR: Final = (
    (mq.MQPMO_PASS_ALL_CONTEXT, mq.MQOO_PASS_ALL_CONTEXT | mq.MQOO_SET_IDENTITY_CONTEXT | mq.MQOO_SET_ALL_CONTEXT,
        Reason.NOT_OPEN_FOR_PASS_ALL),
    (mq.MQPMO_PASS_IDENTITY_CONTEXT, OUTPUT_CONTEXTS, Reason.NOT_OPEN_FOR_PASS_IDENT),
    (mq.MQPMO_SET_ALL_CONTEXT, mq.MQOO_SET_ALL_CONTEXT, Reason.NOT_OPEN_FOR_SET_ALL),
    (mq.MQPMO_SET_IDENTITY_CONTEXT, mq.MQOO_SET_IDENTITY_CONTEXT | mq.MQOO_SET_ALL_CONTEXT,
        Reason.NOT_OPEN_FOR_SET_IDENT),
)  # fmt: skip
"""For each option of the context: the open options of which the handle needs one, and the reason if it has none."""

LOOKS: Final = mq.MQGMO_BROWSE_FIRST | mq.MQGMO_BROWSE_NEXT | mq.MQGMO_BROWSE_MSG_UNDER_CURSOR
BROWSES: Final[dict[int, Browse]] = {
    mq.MQGMO_BROWSE_FIRST: "first", mq.MQGMO_BROWSE_NEXT: "next", mq.MQGMO_BROWSE_MSG_UNDER_CURSOR: "cursor",
}  # fmt: skip
SYNCPOINTS: Final = mq.MQGMO_SYNCPOINT | mq.MQGMO_NO_SYNCPOINT | mq.MQGMO_SYNCPOINT_IF_PERSISTENT
POSITIONS: Final = sum(BROWSES) | mq.MQGMO_MSG_UNDER_CURSOR
HEADERS: Final = (
    mq.MQGMO_PROPERTIES_FORCE_MQRFH2 | mq.MQGMO_NO_PROPERTIES | mq.MQGMO_PROPERTIES_IN_HANDLE
    | mq.MQGMO_PROPERTIES_COMPATIBILITY
)  # fmt: skip
SWITCHES: Final = {
    mq.MQGMO_LOGICAL_ORDER: "logical", mq.MQGMO_COMPLETE_MSG: "complete", mq.MQGMO_ALL_MSGS_AVAILABLE: "all_messages",
    mq.MQGMO_ALL_SEGMENTS_AVAILABLE: "all_segments", mq.MQGMO_MSG_UNDER_CURSOR: "under_cursor", mq.MQGMO_LOCK: "lock",
    mq.MQGMO_MARK_BROWSE_HANDLE: "mark_handle", mq.MQGMO_MARK_BROWSE_CO_OP: "mark_co_op",
    mq.MQGMO_UNMARK_BROWSE_CO_OP: "unmark_co_op", mq.MQGMO_UNMARK_BROWSE_HANDLE: "unmark_handle",
    mq.MQGMO_UNMARKED_BROWSE_MSG: "unmarked", mq.MQGMO_ACCEPT_TRUNCATED_MSG: "accept_truncated",
    mq.MQGMO_SYNCPOINT_IF_PERSISTENT: "syncpoint_if_persistent",
}  # fmt: skip
GETS: Final = (
    sum(SWITCHES) | SYNCPOINTS | POSITIONS | HEADERS
    | mq.MQGMO_WAIT | mq.MQGMO_UNLOCK | mq.MQGMO_FAIL_IF_QUIESCING | mq.MQGMO_CONVERT
)  # fmt: skip
GROUPED: Final = (
    mq.MQGMO_LOGICAL_ORDER | mq.MQGMO_COMPLETE_MSG | mq.MQGMO_ALL_MSGS_AVAILABLE | mq.MQGMO_ALL_SEGMENTS_AVAILABLE
)
UNLOCKS: Final = mq.MQGMO_UNLOCK | mq.MQGMO_NO_SYNCPOINT
MATCH_GROUPS: Final = mq.MQMO_MATCH_GROUP_ID | mq.MQMO_MATCH_MSG_SEQ_NUMBER | mq.MQMO_MATCH_OFFSET
MATCHES: Final = MATCH_GROUPS | mq.MQMO_MATCH_MSG_ID | mq.MQMO_MATCH_CORREL_ID | mq.MQMO_MATCH_MSG_TOKEN
VERSION_1_MATCHES: Final = mq.MQMO_MATCH_MSG_ID | mq.MQMO_MATCH_CORREL_ID


def _several(options: int, of: int) -> bool:
    """Whether more than one of these bits are set."""
    chosen = options & of
    return bool(chosen & (chosen - 1))


# ---- opens


@lru_cache(WORDS_KEPT)
def open_options(options: int) -> OpenOptions:
    """The options with which the queue is opened. Raises: Refused 2046."""
    inputs = options & INPUTS
    if (
        options & ~OPENS
        or not options & OPEN_FOR
        or _several(options, INPUTS)
        or _several(options, BINDS)
        or _several(options, mq.MQOO_READ_AHEAD | mq.MQOO_NO_READ_AHEAD)
        or (options & mq.MQOO_CO_OP and not options & mq.MQOO_BROWSE)
        or (options & mq.MQOO_SAVE_ALL_CONTEXT and not inputs)
        or (options & (OUTPUT_CONTEXTS | mq.MQOO_NO_MULTICAST) and not options & mq.MQOO_OUTPUT)
    ):
        raise Refused(Reason.OPTIONS_ERROR)
    kinds: Any = {
        mq.MQOO_INPUT_AS_Q_DEF: "as_queue",
        mq.MQOO_INPUT_SHARED: "shared",
        mq.MQOO_INPUT_EXCLUSIVE: "exclusive",
    }
    return OpenOptions(
        input=kinds.get(inputs),
        output=bool(options & mq.MQOO_OUTPUT),
        browse=bool(options & mq.MQOO_BROWSE) or not options & (INPUTS | mq.MQOO_OUTPUT),
        co_op=bool(options & mq.MQOO_CO_OP),
    )


# ---- puts


class Putting(NamedTuple):
    """An MQPMO, translated.

    Args:
        passes: PASS_ALL_CONTEXT, PASS_IDENTITY_CONTEXT or 0.
        sets: the same for SET.
        needed: the open options of which the handle needs one, with the reason if it has none; None: any will do.
        ignores_descriptor: whether the descriptor is for output only.
        is_counted: whether MQSTAT counts the put.
        resolves_locally: whether the answer names the local queue, of a remote one the transmission queue.
    """

    options: PutOptions
    passes: int
    sets: int
    needed: tuple[int, Reason] | None
    ignores_descriptor: bool
    is_counted: bool
    resolves_locally: bool


@lru_cache(WORDS_KEPT)
def put_options(options: int, version: int, one: bool) -> Putting:
    """The options of a put.

    Args:
        options: the sum of MQPMO's bits.
        version: the version of the descriptor.
        one: whether the call is MQPUT1.

    Raises: Refused 2046, 2257.
    """
    wrong = mq.MQPMO_LOGICAL_ORDER if one else mq.MQPMO_ALTERNATE_USER_AUTHORITY
    if (
        options & ~PUTS
        or options & wrong
        or _several(options, CONTEXTS)
        or _several(options, mq.MQPMO_SYNCPOINT | mq.MQPMO_NO_SYNCPOINT)
        or _several(options, mq.MQPMO_ASYNC_RESPONSE | mq.MQPMO_SYNC_RESPONSE)
    ):
        raise Refused(Reason.OPTIONS_ERROR)
    if options & mq.MQPMO_LOGICAL_ORDER and version == 1:
        raise Refused(Reason.WRONG_MD_VERSION)
    context: Context = "default"
    if options & (mq.MQPMO_PASS_ALL_CONTEXT | mq.MQPMO_SET_ALL_CONTEXT):
        context = "set_all"
    elif options & (mq.MQPMO_PASS_IDENTITY_CONTEXT | mq.MQPMO_SET_IDENTITY_CONTEXT):
        context = "set_identity"
    elif options & mq.MQPMO_NO_CONTEXT:
        context = "none"
    return Putting(
        PutOptions(
            syncpoint=True if options & mq.MQPMO_SYNCPOINT else None,
            logical=bool(options & mq.MQPMO_LOGICAL_ORDER),
            new_message_id=bool(options & mq.MQPMO_NEW_MSG_ID),
            new_correlation_id=bool(options & mq.MQPMO_NEW_CORREL_ID),
            context=context,
        ),
        options & PASSES,
        options & SETS,
        None if one else next(((of, why) for bit, of, why in NEEDED_FOR if options & bit), None),
        bool(options & mq.MQPMO_MD_FOR_OUTPUT_ONLY),
        bool(options & mq.MQPMO_ASYNC_RESPONSE),
        bool(options & mq.MQPMO_RESOLVE_LOCAL_Q),
    )


# ---- gets


class Getting(NamedTuple):
    """An MQGMO, translated.

    Args:
        options: with the match on everything.
        match: MQMO's bits.
        headers: MQGMO's bits about the form of properties.
    """

    options: GetOptions
    match: int
    unlocks: bool
    converts: bool
    headers: int
    accepts_truncated: bool


@lru_cache(WORDS_KEPT)
def get_options(options: int, match: int, wait: int, length: int, md_version: int, gmo_version: int) -> Getting:
    """The options of a get.

    Args:
        options: the sum of MQGMO's bits.
        match: the sum of MQMO's bits; of version 1 it does not count.
        wait: WaitInterval.
        length: the length of the buffer; -1: the caller checks whether a message fits.
        md_version, gmo_version: the versions of the structures.

    Raises: Refused 2046, 2090, 2247, 2256, 2257; as `GetOptions`.
    """
    if gmo_version == 1:
        match = VERSION_1_MATCHES
    if options & mq.MQGMO_UNLOCK and options & ~UNLOCKS:
        raise Refused(Reason.OPTIONS_ERROR)
    if options & ~GETS or _several(options, SYNCPOINTS) or _several(options, POSITIONS) or _several(options, HEADERS):
        raise Refused(Reason.OPTIONS_ERROR)
    if match & ~MATCHES:
        raise Refused(Reason.MATCH_OPTIONS_ERROR)
    waits = options & mq.MQGMO_WAIT
    if waits and wait < mq.MQWI_UNLIMITED:
        raise Refused(Reason.WAIT_INTERVAL_ERROR)
    if (options & GROUPED and gmo_version == 1) or (match & mq.MQMO_MATCH_MSG_TOKEN and gmo_version < 3):
        raise Refused(Reason.WRONG_GMO_VERSION)
    if (options & GROUPED or match & MATCH_GROUPS) and md_version == 1:
        raise Refused(Reason.WRONG_MD_VERSION)
    named: Any = {name: True for bit, name in SWITCHES.items() if options & bit}
    if length < 0:
        named.pop("accept_truncated", None)
    made = GetOptions(
        browse=next((name for bit, name in BROWSES.items() if options & bit), None),
        wait=0 if not waits else FOREVER if wait == mq.MQWI_UNLIMITED else wait / 1000,
        syncpoint=True if options & mq.MQGMO_SYNCPOINT else None,
        buffer=None if length < 0 else length,
        **named,
    )
    return Getting(
        made,
        match,
        bool(options & mq.MQGMO_UNLOCK),
        bool(options & mq.MQGMO_CONVERT),
        options & HEADERS,
        bool(options & mq.MQGMO_ACCEPT_TRUNCATED_MSG),
    )


def matching(options: GetOptions, wanted: int, selector: str | None, md: Any, token: bytes) -> GetOptions:
    """The options with a match on the descriptor's fields that MQMO's bits name (R3.18 to R3.24)."""
    fields: Any = {}
    message_id, correlation_id = IDS.unpack_from(md, IDS_AT)
    if wanted & mq.MQMO_MATCH_MSG_ID and message_id != NO_ID:
        fields["message_id"] = message_id
    if wanted & mq.MQMO_MATCH_CORREL_ID and correlation_id != NO_ID:
        fields["correlation_id"] = correlation_id
    if wanted & MATCH_GROUPS:
        group_id, number, offset = NUMBERS.unpack_from(md, GROUP_AT)
        if wanted & mq.MQMO_MATCH_GROUP_ID and group_id != NO_ID:
            fields["group_id"] = group_id
        if wanted & mq.MQMO_MATCH_MSG_SEQ_NUMBER:
            fields["sequence_number"] = number
        if wanted & mq.MQMO_MATCH_OFFSET:
            fields["offset"] = offset
    if wanted & mq.MQMO_MATCH_MSG_TOKEN and any(token):
        fields["token"] = token
    if not fields and selector is None:
        return options
    return with_match(options, Match(selector=selector, **fields))


_names: Final = tuple(name for name in GetOptions.__slots__ if name != "match")


def with_match(options: GetOptions, match: Match) -> GetOptions:
    """A copy with another match, not checked again: a match excludes only `complete` with an offset."""
    if options.complete and "offset" in match.fields:
        return replace(options, match=match)  # raises MatchError
    made = object.__new__(GetOptions)
    for name in _names:
        object.__setattr__(made, name, getattr(options, name))
    object.__setattr__(made, "match", match)
    return made
