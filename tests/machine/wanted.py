"""What a long run must reach: every branch of the rules that a store can come to, in one table."""

from __future__ import annotations

from collections.abc import Iterator

from tests.machine.branches import Branch, cell_name

from inorder import Reason
from inorder.rules.grouping import PUT_TABLE
from inorder.rules.lifecycle import TABLE, Answer, Event, State
from inorder.rules.ordering import Kind

# Of these a caller is told each answer; of the other events a store asks only where they can happen.
TOLD = frozenset(
    {Event.PUT, Event.PUT_HELD, Event.RESEND, Event.RESEND_HELD}
    | {Event.CONFIRM_PUT, Event.CONFIRM_GET, Event.UNLOCK, Event.DELETE}
)
# No store asks: a browse that does not lock and a restart change nothing, a repeat of what is not there is a put, a
# handle that has a message locked does not lock it again.
UNASKED = frozenset(
    {
        *((Event.BROWSE, state) for state in State),
        *((Event.RESTART, state) for state in State),
        (Event.RESEND, State.ABSENT),
        (Event.RESEND_HELD, State.ABSENT),
        (Event.BROWSE_LOCK, State.LOCKED),
    }
)


def _cells() -> Iterator[Branch]:
    for (event, state), cell in TABLE.items():
        for step in dict.fromkeys(cell):
            if (event, state) not in UNASKED and (event in TOLD or step.answer is Answer.DONE):
                yield "cell", cell_name(event, state, step)


REASONS = (
    Reason.ALIAS_BASE_Q_TYPE_ERROR,
    Reason.CHECKPOINT_LOST,
    Reason.CHECKPOINT_TOO_OLD,
    Reason.CONFIRM_ID_MISMATCH,
    Reason.CONNECTION_BROKEN,
    Reason.DUPLICATE_PENDING,
    Reason.DUPLICATE_MESSAGE,
    Reason.DYNAMIC_Q_NAME_ERROR,
    Reason.FENCED,
    Reason.GET_INHIBITED,
    Reason.HANDLE_NOT_AVAILABLE,
    Reason.INCOMPLETE_GROUP,
    Reason.INCOMPLETE_MSG,
    Reason.INCONSISTENT_BROWSE,
    Reason.INCONSISTENT_PERSISTENCE,
    Reason.INCONSISTENT_UOW,
    Reason.INVALID_MSG_UNDER_CURSOR,
    Reason.LEASE_OVER,
    Reason.LOCK_MISMATCH,
    Reason.MATCH_OPTIONS_ERROR,
    Reason.MSG_MARKED_BROWSE_CO_OP,
    Reason.MSG_TOO_BIG_FOR_Q,
    Reason.NOT_FOUND,
    Reason.NOT_OPEN_FOR_INPUT,
    Reason.NOT_OPEN_FOR_OUTPUT,
    Reason.NO_MSG_AVAILABLE,
    Reason.NO_MSG_UNDER_CURSOR,
    Reason.OBJECT_ALREADY_EXISTS,
    Reason.OBJECT_CHANGED,
    Reason.OBJECT_IN_USE,
    Reason.OBJECT_TYPE_ERROR,
    Reason.OPTIONS_ERROR,
    Reason.OPTION_NOT_VALID_FOR_TYPE,
    Reason.ORDER_DEADLOCK,
    Reason.ORDER_PENDING,
    Reason.ORDER_SELF_BLOCKED,
    Reason.ORDER_UNSUPPORTED,
    Reason.PERSISTENT_NOT_ALLOWED,
    Reason.PUT_INHIBITED,
    Reason.Q_DELETED,
    Reason.Q_FULL,
    Reason.Q_MGR_STOPPING,
    Reason.Q_NOT_EMPTY,
    Reason.SEGMENT_LENGTH_ZERO,
    Reason.SELECTOR_ERROR,
    Reason.SELECTOR_NOT_FOR_TYPE,
    Reason.STAGING_GONE,
    Reason.SYNCPOINT_LIMIT_REACHED,
    Reason.UNIT_EXISTS,
    Reason.UNIT_NOT_FOUND,
    Reason.UNKNOWN_ALIAS_BASE_Q,
    Reason.UNKNOWN_OBJECT_NAME,
    Reason.UOW_IN_PROGRESS,
    Reason.UOW_NOT_AVAILABLE,
    Reason.WRONG_STATE,
)
WARNINGS = (
    Reason.DUPLICATE_PUT,
    Reason.INCOMPLETE_GROUP,
    Reason.INCOMPLETE_MSG,
    Reason.INCONSISTENT_CCSIDS,
    Reason.INCONSISTENT_ENCODINGS,
    Reason.NOT_FOUND,
    Reason.NO_MSG_LOCKED,
    Reason.PRIORITY_EXCEEDS_MAXIMUM,
    Reason.TRUNCATED_MSG_ACCEPTED,
    Reason.TRUNCATED_MSG_FAILED,
)
OTHERS = {
    "get": ("G1", "G2", "G3", "G4", "G5"),
    "needs": ("segments: there", "segments: missing", "group: there", "group: missing"),
    "join": ("one", "several"),
    "split": ("done",),
    "whole group": ("further message",),
    "number": (
        "order put at put: drawn",
        "order put at commit: drawn",
        "order prepare at put: not yet",
        "order prepare at prepare: drawn",
        "order prepare at commit: drawn",
        "order commit at put: not yet",
        "order commit at prepare: not yet",
        "order commit at commit: drawn",
    ),
    "pending": tuple(kind.name for kind in Kind),
    "strict": (
        "taken",
        "taken, a level passed over",
        "withheld",
        "withheld at several levels",
        "nothing, but pending",
        "nothing",
        "passed over: the call's own unit got it",
        "does not take part",
        "an entered group stands there",
        "an incomplete group stands there",
        "next member: taken",
        "next member: in",
        "next member: in-doubt",
        "next member: out",
        "next member: locked",
        "next member: delayed",
        "next member: group-incomplete",
        "self-blocked",
        "deadlock",
    ),
    "lock id": ("presented: right", "presented: other"),
    "marks": ("marked", "unmarked"),
    "undo": ("BACK_OUT", "UNDO_LOCK", "UNDO_BOTH"),
    "back out": ("counted",),
    "told": ("put", "visible", "expired", "duplicate"),
    "claim": (
        "begun",
        "begun again",
        "messages",
        "members",
        "whole groups",
        "strictly, messages",
        "strictly, whole groups",
        "given again",
        "taken ahead",
        "returned ahead",
        "nothing",
        "settled",
        "finish",
        "release",
        "leave group",
    ),
    "survey": ("relaxed, messages", "relaxed, groups", "strictly, messages", "strictly, groups", "nothing"),
    "staging": ("with group_key", "with order_key", "with group_id", "settled", "settled already", "undone"),
    "lease": ("entered", "commit", "back_out", "extended", "ended", "over"),
    "report": ("COA", "COD", "EXPIRATION"),
    "way": ("message", "report", "dead letter"),
    "key": (
        "put: nobody has it",
        "put: it is kept until later, or was",
        "duplicate: it is kept until later, or was",
        "duplicate: a unit has it",
        "refused: a unit has it",
    ),
    "schedule": (
        "one: nothing",
        "one: one",
        "all: nothing",
        "all: one",
        "all: several",
        "none: nothing",
        "none: one",
    ),
    "wait": ("asleep", "given something", "ended without"),
}

WANTED: tuple[Branch, ...] = (
    *_cells(),
    *(("put", row.name) for row in PUT_TABLE),
    *((group, name) for group, names in OTHERS.items() for name in names),
    *(("reason", reason.name) for reason in REASONS),
    *(("warning", reason.name) for reason in WARNINGS),
)
