"""Groups and logical messages: how puts are numbered, what gets look for, what is consistent and complete.

A *group* is logical messages 1..n with one group id; a *logical message* is one message, or segments that follow
each other by offset. A handle keeps its position in both in a `GroupState`: one for puts, one for removing gets, one
for browses, each independent of the others (R2.6, R3.29). Every successful call sets the state of its kind to the
message it put or got; a failed call does not change it (R2.7, R3.30). A group is *open* from a message in the group to
its last one, a logical message from a segment to its last one (R2.8, R3.31).

In logical order the queue manager numbers the messages. Two tables say how; they are MQ's own, row by row: P1 to P12
for puts (2.3), G1 to G5 for gets (3.6). In logical order a call that contradicts an open group is refused; a call
without logical order after one with it only gets a warning (2.4, R3.37).

In logical order a group has the place of its first item, the *head*: sequence number 1 and offset 0. Messages in no
group are heads too. Outside a group a reader looks for heads only (R3.33, R3.34); inside one, only for the next member
(R3.22, R3.35).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Literal, NamedTuple

from ..errors import InconsistentCall, MatchError, Reason, bad_argument
from ..model.fields import NUMBER_MAX
from ..model.message import ANY_GROUP, ANY_SEGMENT, LAST_IN_GROUP, LAST_SEGMENT, NO_ID, SEGMENTATION_ALLOWED, Message
from ..model.options import EVERYTHING, GetOptions, Match
from . import policy
from .selectors import Selector, selector_of

# --- the position of a handle ----------------------------------------------------------------------------------


class Numbers(NamedTuple):
    """The numbers that identify a message within its group."""

    group_id: bytes
    sequence_number: int
    offset: int


UNGROUPED = Numbers(NO_ID, 1, 0)


class GroupState(NamedTuple):
    """The position of a handle in a group and a logical message, for one kind of call (R2.6, R3.29)."""

    group_id: bytes = NO_ID
    sequence_number: int = 1
    offset: int = 0
    length: int = 0
    flags: int = 0
    persistent: bool = False
    in_unit: bool = False
    logical: bool = False

    @property
    def group_open(self) -> bool:
        """Whether a member was put or got that was not the end of the group (R2.8, R3.31)."""
        if not self.flags & ANY_GROUP:
            return False
        return not self.flags & LAST_IN_GROUP or self.message_open

    @property
    def message_open(self) -> bool:
        """Whether a segment was put or got that was not the last one."""
        return bool(self.flags & ANY_SEGMENT) and not self.flags & LAST_SEGMENT


NOTHING_OPEN = GroupState()


def data_length(message: Message) -> int:
    """The step to the next offset: a report about a segment counts like that segment (R2.14)."""
    return message.length if message.original_length == -1 else message.original_length


def state_after(message: Message, *, in_unit: bool, logical: bool) -> GroupState:
    """The state of the handle after this message was put or got."""
    flags = message.flags
    if not flags & (ANY_GROUP | ANY_SEGMENT):
        return NOTHING_OPEN
    return GroupState(
        message.group_id,
        message.sequence_number,
        message.offset,
        data_length(message),
        flags,
        bool(message.persistent),
        in_unit,
        logical,
    )


def unfinished(state: GroupState) -> Reason | None:
    """The warning for closing a handle in this state (2.4, R3.37); 2242 before 2241 (R2.15)."""
    if not state.logical:
        return None
    if state.message_open:
        return Reason.INCOMPLETE_MSG
    return Reason.INCOMPLETE_GROUP if state.group_open else None


# --- puts: the table of 2.3 --------------------------------------------------------------------------------

YES, NO, ANY = True, False, None


class PutRow(NamedTuple):
    """One row: its condition, and the source of the three fields."""

    name: str
    logical: bool
    in_group: bool | None
    segment: bool | None
    splittable: bool | None
    group_open: bool | None
    message_open: bool | None
    group_id: Literal["none", "new", "previous", "field or new"]
    sequence_number: Literal["one", "previous", "next", "field"]
    offset: Literal["zero", "next", "field"]


PUT_TABLE = (
    PutRow("P1", YES, NO, NO, NO, NO, NO, "none", "one", "zero"),
    PutRow("P2", YES, NO, NO, YES, NO, NO, "new", "one", "zero"),
    PutRow("P3", YES, NO, YES, ANY, NO, NO, "new", "one", "zero"),
    PutRow("P4", YES, NO, YES, ANY, NO, YES, "previous", "one", "next"),
    PutRow("P5", YES, YES, ANY, ANY, NO, NO, "new", "one", "zero"),
    PutRow("P6", YES, YES, ANY, ANY, YES, NO, "previous", "next", "zero"),
    PutRow("P7", YES, YES, YES, ANY, YES, YES, "previous", "previous", "next"),
    PutRow("P8", NO, NO, NO, NO, ANY, ANY, "none", "one", "zero"),
    PutRow("P9", NO, NO, NO, YES, ANY, ANY, "field or new", "one", "zero"),
    PutRow("P10", NO, NO, YES, ANY, ANY, ANY, "field or new", "one", "field"),
    PutRow("P11", NO, YES, NO, ANY, ANY, ANY, "field or new", "field", "zero"),
    PutRow("P12", NO, YES, YES, ANY, ANY, ANY, "field or new", "field", "field"),
)


def _every_case() -> Mapping[tuple[bool, ...], PutRow]:
    cases = {}
    for case in product((NO, YES), repeat=6):
        for row in PUT_TABLE:
            if all(wanted is ANY or wanted is given for wanted, given in zip(row[1:7], case, strict=True)):
                cases[case] = row
    return cases


_PUT_CASES = _every_case()


def put_row(state: GroupState, flags: int, *, logical: bool) -> PutRow:
    """Finds the row of the table for a put with these flags, on a handle in this state."""
    return _PUT_CASES[
        logical,
        bool(flags & ANY_GROUP),
        bool(flags & ANY_SEGMENT),
        bool(flags & SEGMENTATION_ALLOWED),
        state.group_open,
        state.message_open,
    ]


def number_put(state: GroupState, message: Message, *, logical: bool, new_id: Callable[[], bytes]) -> Numbers:
    """Sets the group id, sequence number and offset of a put (R2.10 to R2.12).

    Raises: ArgumentError 2250 or 2251, if the number would exceed 999,999,999 (R1.8, R1.9).
    """
    row = put_row(state, message.flags, logical=logical)
    sequence_number = _sequence_number(row, state, message)
    offset = _offset(row, state, message)
    return Numbers(_group_id(row, state, message, new_id), sequence_number, offset)


def _group_id(row: PutRow, state: GroupState, message: Message, new_id: Callable[[], bytes]) -> bytes:
    if row.group_id == "previous":
        return state.group_id
    if row.group_id == "field or new" and message.group_id != NO_ID:
        return message.group_id
    return NO_ID if row.group_id == "none" else new_id()


def _sequence_number(row: PutRow, state: GroupState, message: Message) -> int:
    if row.sequence_number == "field":
        return message.sequence_number
    if row.sequence_number == "one":
        return 1
    number = state.sequence_number + (row.sequence_number == "next")
    if number > NUMBER_MAX:
        allowed = f"at most {NUMBER_MAX:,}: the group is full"
        raise bad_argument("sequence_number", number, allowed, Reason.MSG_SEQ_NUMBER_ERROR)
    return number


def _offset(row: PutRow, state: GroupState, message: Message) -> int:
    previous_end = state.offset + state.length
    offset = {"zero": 0, "field": message.offset, "next": previous_end}[row.offset]
    if offset + message.length > NUMBER_MAX:
        allowed = f"at most {NUMBER_MAX - message.length:,}, because the segment has {message.length:,} bytes"
        raise bad_argument("offset", offset, allowed, Reason.OFFSET_ERROR)
    return offset


# --- puts: consistency, the table of 2.4 -------------------------------------------------------------------


def check_put(state: GroupState, message: Message, *, logical: bool, persistent: bool, in_unit: bool) -> Reason | None:
    """Checks that a put continues the group or logical message that its handle has open.

    Returns: the warning for a put without logical order after one with it (R2.16), otherwise None.

    Raises: InconsistentCall in logical order, with reason 2242, 2241, 2185 or 2245, the first that applies.
    """
    if not (state.group_open or state.message_open):
        return None
    if logical:
        wrong = _contradictions(state, message.flags, persistent, in_unit)
        for reason in policy.INCONSISTENCY_ORDER:
            if reason in wrong:
                raise InconsistentCall(_PUT_TEXTS[reason], reason=reason)
        return None
    return unfinished(state)


def _contradictions(state: GroupState, flags: int, persistent: bool, in_unit: bool) -> set[Reason]:
    wrong = set()
    in_group, was_in_group = bool(flags & ANY_GROUP), bool(state.flags & ANY_GROUP)
    is_last, was_last = bool(flags & LAST_IN_GROUP), bool(state.flags & LAST_IN_GROUP)
    if state.message_open and (not flags & ANY_SEGMENT or is_last != was_last or in_group != was_in_group):
        wrong.add(Reason.INCOMPLETE_MSG)
    if state.group_open and not in_group:
        wrong.add(Reason.INCOMPLETE_GROUP)
    if persistent != state.persistent:
        wrong.add(Reason.INCONSISTENT_PERSISTENCE)
    if in_unit != state.in_unit:
        wrong.add(Reason.INCONSISTENT_UOW)
    return wrong


_PUT_TEXTS = {
    Reason.INCOMPLETE_MSG: "the handle has a logical message open: put its next segment, with the same group flags",
    Reason.INCOMPLETE_GROUP: "the handle has a group open: put its next message, or its last one",
    Reason.INCONSISTENT_PERSISTENCE: "the messages of a group must all be persistent or all non-persistent",
    Reason.INCONSISTENT_UOW: "the messages of a group must all be put in units of work or all outside",
}


# --- gets: the table of 3.6 --------------------------------------------------------------------------------

Needs = Literal["nothing", "segments", "group"]


class Wanted(NamedTuple):
    """The messages that a get or a browse looks for.

    Args:
        heads: whether only messages with sequence number 1 and offset 0 count.
        member: exactly these numbers; None: any.
        match: the filter that chooses; `selector`: the one in it.
        must: a condition on the chosen message; if it fails, the call fails with 2247 (R3.23).
        needs: the further messages that must have arrived: its segments, its group.
        joins: whether whole logical messages are returned.
    """

    heads: bool = False
    member: Numbers | None = None
    match: Match = EVERYTHING
    selector: Selector | None = None
    must: Match = EVERYTHING
    needs: Needs = "nothing"
    joins: bool = False


ANYTHING = Wanted()


def wanted_by(match: Match) -> Wanted:
    """The search of a call with only a match. Raises ArgumentError if its selector is not valid."""
    return Wanted(match=match, selector=selector_of(match))


def next_member(state: GroupState) -> Numbers | None:
    """The next member that a reader inside a group or a message in segments looks for (G2 to G4); None outside."""
    if state.message_open:
        return Numbers(state.group_id, state.sequence_number, state.offset + state.length)
    return Numbers(state.group_id, state.sequence_number + 1, 0) if state.group_open else None


def wanted(state: GroupState, options: GetOptions) -> Wanted:
    """The search of a call, given the position of its handle (G1 to G5, R3.21 to R3.23, R3.49, R3.50).

    Raises: MatchError 2247, in logical order for a criterion that the next message cannot match.
    """
    if not options.logical:
        if not (options.match or options.complete or options.all_segments or options.all_messages):
            return ANYTHING
        return wanted_by(options.match)._replace(needs=_needs(options), joins=options.complete)  # G5
    numbers = next_member(state)
    if numbers is None:
        _must_agree(options.match, sequence_number=1, offset=0)
        choice = options.match.without("sequence_number", "offset")
        return wanted_by(choice)._replace(heads=True, needs=_needs(options), joins=options.complete)  # G1
    whole = not state.message_open and (options.complete or options.all_segments)
    return _member(numbers, options, needs="segments" if whole else "nothing")  # G2 to G4


def _needs(options: GetOptions) -> Needs:
    if options.all_messages:
        return "group"
    return "segments" if options.complete or options.all_segments else "nothing"


def _member(numbers: Numbers, options: GetOptions, *, needs: Needs) -> Wanted:
    _must_agree(options.match, **numbers._asdict())
    must = options.match.selecting(None).without("group_id", "sequence_number", "offset")  # the selector chose the head
    return Wanted(member=numbers, must=must, needs=needs, joins=options.complete)


def _must_agree(match: Match, **known: object) -> None:
    for name, value in known.items():
        if match.fields.get(name, value) != value:
            raise MatchError(
                f"in logical order the next message has {name}={value!r}, not {match.fields[name]!r}",
                argument=name,
                value=match.fields[name],
            )


def check_get(state: GroupState, options: GetOptions, *, in_unit: bool) -> None:
    """Checks that a removing get suits the group that its handle has open (R3.36).

    Raises: InconsistentCall 2245, in logical order if the first member was got inside a unit of work and this one would
    be got outside, or the other way round.
    """
    if options.logical and (state.group_open or state.message_open) and state.in_unit != in_unit:
        raise InconsistentCall(
            "the messages of a group must all be got in units of work or all outside", reason=Reason.INCONSISTENT_UOW
        )


def check_found(found: Wanted, message: Message) -> None:
    """Checks that the message that a get is about to return matches the get's criteria (R3.23)."""
    if found.must and not found.must.accepts(message):
        raise MatchError(f"the next message of the group does not match {found.must!r}")


def get_warning(state: GroupState, options: GetOptions) -> Reason | None:
    """The warning for a removing get without logical order while a group is open (R3.37); browses get none."""
    return None if options.logical or options.browse or options.under_cursor else unfinished(state)


# --- completeness: 3.7 -------------------------------------------------------------------------------------


def is_head(message: Message) -> bool:
    """Whether its group, or the message alone, has its place in logical order (R3.33)."""
    return message.sequence_number == 1 and message.offset == 0


def is_end(message: Message) -> bool:
    """Whether this is the last piece of its group, or of its message in segments."""
    flags = message.flags
    if flags & ANY_GROUP:
        return bool(flags & LAST_IN_GROUP) and (not flags & ANY_SEGMENT or bool(flags & LAST_SEGMENT))
    return bool(flags & LAST_SEGMENT)


class Members:
    """The retrievable messages of one group id; of several with the same numbers the first counts."""

    def __init__(self, messages: Iterable[Message]) -> None:
        self._at: dict[tuple[int, int], Message] = {}
        for message in messages:
            self._at.setdefault((message.sequence_number, message.offset), message)

    def logical_message(self, sequence_number: int) -> Sequence[Message]:
        """All pieces of a logical message in order; empty if one is missing (R3.43, R3.51)."""
        pieces: list[Message] = []
        offset = 0
        while (piece := self._at.get((sequence_number, offset))) is not None:
            pieces.append(piece)
            if not piece.flags & ANY_SEGMENT or piece.flags & LAST_SEGMENT:
                return pieces
            offset += data_length(piece)
            if data_length(piece) == 0:
                break
        return ()

    def group_is_complete(self) -> bool:
        """Whether the group has all logical messages 1..n, and n is the last of the group (R3.51)."""
        sequence_number = 1
        while pieces := self.logical_message(sequence_number):
            if pieces[0].flags & LAST_IN_GROUP:
                return True
            sequence_number += 1
        return False

    def beginning_with(self, head: Message) -> Sequence[Message]:
        """Returns the messages that a logical reader gets from `head` to the end of its group (R3.22, R3.31).

        Others may have the group's id: a message in no group (R2.13), or a second one with the same numbers.
        """
        found = [head]
        while (numbers := next_member(state_after(found[-1], in_unit=False, logical=True))) is not None:
            last, following = found[-1], self._at.get((numbers.sequence_number, numbers.offset))
            if following is None or numbers[1:] <= (last.sequence_number, last.offset):
                break
            found.append(following)
        return found


def has_what_it_needs(message: Message, needs: Needs, members: Callable[[bytes], Members]) -> bool:
    """Whether everything that the call needs besides `message` has arrived (R3.42, R3.43, R3.49 to R3.51).

    This function decides whether a group, or a message in segments, is whole. Three copies of it work on
    many groups at the same time; `tests/stores/sqlite/test_wholeness.py` compares them with this one: the triggers of
    `gathering` in schema.sql note for each head whether its group *may* be whole (they count, and never say "no" for a
    whole one); "doubtful groups" in queries_claims.sql finds those that only look whole; `shortcuts._are_a_group` is
    for plain groups.
    """
    if needs == "group" and message.flags & ANY_GROUP:
        return members(message.group_id).group_is_complete()
    if needs != "nothing" and message.flags & ANY_SEGMENT:
        return bool(members(message.group_id).logical_message(message.sequence_number))
    return True
