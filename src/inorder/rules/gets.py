"""Decides a get: from the pieces that a store found to the message that the caller receives.

The store finds the rows. This module decides whether the call is consistent, whether it needs a unit of work, and
whether the buffer is large enough; and from that the result, its warning, and how many of the found pieces the
call takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ..errors import CallerError, InconsistentCall, Reason, UnitNotAvailable
from ..model.message import Message
from ..model.options import EVERYTHING, GetOptions
from . import policy
from .grouping import NOTHING_OPEN, GroupState, Wanted, check_found, check_get, get_warning, state_after
from .ordering import UNSET, Cursor
from .segmentation import join


def rank_of(options: GetOptions) -> int:
    """The priority among waiting calls; smaller is served earlier (R3.27)."""
    if options.browse and not options.lock:
        return 2
    return 0 if options.match.specific else 1


def check_browse_mode(options: GetOptions, cursor: Cursor, *, strict: bool) -> None:
    """Checks that a browse continues in the mode in which it began: physical or logical, strict or relaxed (R3.40,
    B-42).

    Raises InconsistentCall 2259.
    """
    if options.browse == "next" and cursor.logical not in (None, options.logical):
        now, before = ("logical", "physical") if options.logical else ("physical", "logical")
        raise InconsistentCall(
            f"the browse began in {before} order and cannot go on in {now} order; begin again with browse first",
            reason=Reason.INCONSISTENT_BROWSE,
        )
    if options.browse == "next" and cursor.logical is not None and cursor.strict != strict:
        now, before = ("strict", "relaxed") if strict else ("relaxed", "strict")
        raise InconsistentCall(
            f"the browse began {before} and cannot go on {now}: give read_order={before!r}, or begin with browse first",
            reason=Reason.INCONSISTENT_BROWSE,
        )


def begin(options: GetOptions, state: GroupState, cursor: Cursor) -> tuple[GroupState, Cursor]:
    """The state in which the call starts: browse first resets group and cursor (R3.60, C-14)."""
    return (NOTHING_OPEN, UNSET) if options.browse == "first" else (state, cursor)


def within_group(options: GetOptions, state: GroupState) -> GetOptions:
    """The options with which a get of a whole group continues after its first message.

    The match chose the group by its first message. If the pieces of a logical message could not all be joined
    (R3.45), the remaining ones come one by one.
    """
    return replace(options, match=EVERYTHING, complete=options.complete and not state.message_open)


def check_under_cursor(options: GetOptions, message: Message) -> None:
    """Checks that a complete get under the cursor begins with a first segment (R3.48). Raises CallerError 2246."""
    if options.complete and message.offset:
        raise CallerError(
            f"the message under the cursor is a segment at offset {message.offset}: "
            "a complete message begins at offset 0",
            reason=Reason.INVALID_MSG_UNDER_CURSOR,
        )


class GetVerdict(NamedTuple):
    """The result and the effect of a get.

    Args:
        message: the message for the caller.
        takes: how many of the found pieces are removed, locked or marked; 0 if the buffer was too small.
        state: the state of the handle afterwards.
        in_unit: whether the pieces are taken under the unit of work.
    """

    message: Message
    takes: int
    state: GroupState
    in_unit: bool


def in_unit_of_work(options: GetOptions, message: Message, *, syncpoint: bool) -> bool:
    """Whether a removing get of `message` is part of the unit of work (R3.77, R3.78)."""
    if options.browse:
        return False
    return bool(message.persistent) if options.syncpoint_if_persistent else syncpoint


def judge(
    pieces: Sequence[Message],
    options: GetOptions,
    state: GroupState,
    found: Wanted,
    *,
    syncpoint: bool,
    unit_open: bool,
) -> GetVerdict:
    """Decides about the pieces of one logical message, or one single message, before anything is changed.

    Raises:
        MatchError: 2247, if the next message of the group does not match (R3.23).
        InconsistentCall: 2245, if the group was begun differently (R3.36).
        UnitNotAvailable: 2255, if several persistent pieces would be got outside the open unit of work (R3.46).
    """
    check_found(found, pieces[0])
    in_unit = in_unit_of_work(options, pieces[0], syncpoint=syncpoint)
    if not options.browse:
        if not options.under_cursor:
            check_get(state, options, in_unit=in_unit)
        if len(pieces) > 1 and unit_open and not in_unit and policy.pieces_need_unit(pieces[0]):
            raise UnitNotAvailable("a get outside the open unit of work cannot join persistent segments")
    joined = join(pieces) if found.joins else None
    whole = joined.message if joined else pieces[0]
    takes = joined.used if joined else 1
    warning = (joined.warning if joined else None) or get_warning(state, options)
    message, fits, cut_warning = _fit(whole, options)
    warning = cut_warning or warning
    new_state = state_after(whole, in_unit=in_unit, logical=options.logical)
    if not fits:
        takes, new_state = 0, state
    if warning is not message.warning:
        message = message.with_values(warning=warning)
    return GetVerdict(message, takes, new_state, in_unit)


def _fit(message: Message, options: GetOptions) -> tuple[Message, bool, Reason | None]:
    """Cuts the message to the buffer; also whether the call takes it, and 2079 or 2080 (R3.55 to R3.57)."""
    if options.buffer is None or message.length <= options.buffer:
        return message, True, None
    cut = message.with_values(body=message.body[: options.buffer])
    if options.accept_truncated:
        return cut, True, Reason.TRUNCATED_MSG_ACCEPTED
    return cut, False, Reason.TRUNCATED_MSG_FAILED
