"""Decisions where the MQ documents are unclear, each in one place (mq-semantics section 9).

Each name states a decision; if a real queue manager turns out to behave differently, change it here.
"""

from __future__ import annotations

from ..errors import Reason
from ..model.message import Message

# 1, 2: which of several inconsistencies is reported; the first that applies (R2.15, R3.38, T32).
INCONSISTENCY_ORDER = (
    Reason.INCOMPLETE_MSG,
    Reason.INCOMPLETE_GROUP,
    Reason.INCONSISTENT_PERSISTENCE,
    Reason.INCONSISTENT_UOW,
)

# 8: segments that the queue manager makes keep a message id that the caller gave; otherwise each gets its own (R2.25).
PIECES_KEEP_GIVEN_MESSAGE_ID = True


def pieces_need_unit(message: Message) -> bool:
    """7: whether a message of several pieces needs the open unit of work (2255): only a persistent one (R2.26, R3.46).

    Args:
        message: the whole message, or one piece.
    """
    return bool(message.persistent)


# Decided where they are used, without a switch, because no alternative makes sense:
#  3: a get that ended in 2080 took nothing, and leaves the retained group state unchanged (R3.30).
#  4: a complete get finds nothing while a logical message is current: its next segment has offset > 0 (R3.54).
#  5: sequence numbers and offsets out of range are refused when a message is built, used or not (R2.12).
#  6: complete with a match on the offset is 2247 (options.GetOptions).
#  9: the browse that counts for 2259 is the last successful browse first or next (handle.Cursor).
# 10: a logical browse continues at the place of its group's first item, even if that was removed (R3.66).
# 16: topics are not supported.
# 12: MARK_SKIP_BACKOUT does not exist off z/OS.
# 13: the depth is checked once per put, before the message is split (R2.27).
# 14: of two messages with the same place in a group the first in placement order counts.
# 15: a segment that overlaps is skipped: logical order asks for the exact next offset.
