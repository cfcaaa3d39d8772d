"""A get, from the pieces that a store found to what the caller is given.

The store finds (it knows its rows), this module decides: is the call consistent, is a unit of work needed, is
the buffer large enough, and therefore: what is returned, with which warning, and how many of the pieces found
does the call take.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ..errors import CallerError, InconsistentCall, Reason, UnitNotAvailable
from ..model.message import Message
from ..model.options import EVERYTHING, GetOptions
from . import policy
from .grouping import (
    NOTHING_OPEN,
    GroupState,
    Wanted,
    check_found,
    check_get,
    get_warning,
    state_after,
)
from .ordering import UNSET, Cursor
from .segmentation import join


def rank_of(options: GetOptions) -> int:
    """Who is served first; smaller is earlier (R3.27)."""
    if options.browse and not options.lock:
        return 2
    return 0 if options.match.specific else 1


def check_browse_mode(options: GetOptions, cursor: Cursor, *, strict: bool) -> None:
    """Browse next goes on as the browse began: physical or logical, strict or relaxed (R3.40, B-42).

    Raises: InconsistentCall 2259.
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
            f"the browse began {before} and cannot go on {now}: ask for read_order={before!r}, or browse first again",
            reason=Reason.INCONSISTENT_BROWSE,
        )


def begin(options: GetOptions, state: GroupState, cursor: Cursor) -> tuple[GroupState, Cursor]:
    """Where the call starts from: browse first forgets group and cursor (R3.60, C-14)."""
    return (NOTHING_OPEN, UNSET) if options.browse == "first" else (state, cursor)


def within_group(options: GetOptions, state: GroupState) -> GetOptions:
    """How a get of a whole group goes on after its first message.

    The match chose the group by its first message. Where pieces of a logical message could not all be joined
    (R3.45), the rest of them comes singly.
    """
    return replace(options, match=EVERYTHING, complete=options.complete and not state.message_open)


def check_under_cursor(options: GetOptions, message: Message) -> None:
    """A complete get under the cursor needs the first segment there (R3.48). Raises: CallerError 2246."""
    if options.complete and message.offset:
        raise CallerError(
            f"the message under the cursor is a segment at offset {message.offset}: "
            "a complete message begins at offset 0",
            reason=Reason.INVALID_MSG_UNDER_CURSOR,
        )


class GetVerdict(NamedTuple):
    """What a get returns and does.

    Args:
        message: what the caller is given.
        takes: how many of the pieces found are removed, locked or marked; 0 if the buffer was too small.
        state: where the handle stands afterwards.
        in_unit: what is taken is taken under the unit of work.
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
        MatchError: 2247, it is the next of its group but not what was asked for (R3.23).
        InconsistentCall: 2245, the group was begun otherwise (R3.36).
        UnitNotAvailable: 2255, several persistent pieces outside the open unit of work (R3.46).
    """
    check_found(found, pieces[0])
    in_unit = in_unit_of_work(options, pieces[0], syncpoint=syncpoint)
    if not options.browse:
        if not options.under_cursor:
            check_get(state, options, in_unit=in_unit)
        _check_unit(pieces, in_unit=in_unit, unit_open=unit_open)
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


def _check_unit(pieces: Sequence[Message], *, in_unit: bool, unit_open: bool) -> None:
    if len(pieces) > 1 and unit_open and not in_unit and _needs_unit(pieces[0]):
        raise UnitNotAvailable("a get outside the open unit of work cannot join persistent segments")


def _needs_unit(piece: Message) -> bool:
    return bool(piece.persistent) or not policy.UNIT_NEEDED_FOR_PERSISTENT_PIECES_ONLY


def _fit(message: Message, options: GetOptions) -> tuple[Message, bool, Reason | None]:
    """The message as far as the buffer goes; whether the call takes it; 2079 or 2080 (R3.55 to R3.57)."""
    if options.buffer is None or message.length <= options.buffer:
        return message, True, None
    cut = message.with_values(body=message.body[: options.buffer])
    if options.accept_truncated:
        return cut, True, Reason.TRUNCATED_MSG_ACCEPTED
    return cut, False, Reason.TRUNCATED_MSG_FAILED
