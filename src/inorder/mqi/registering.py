"""The registrations of MQCB: a function of the program, for the messages of a queue or for events.

Rules: M-13 of *mqi*; the pages of IBM MQ's reference about MQCB and MQCBD.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from . import constants as mq
from .handles import structure
from .layouts import layout
from .opening import object_of
from .options import INPUTS, get_options
from .refusals import Refused

if TYPE_CHECKING:
    from .connections import MqiConnection, OpenObject

Callback = Callable[[int, Any, Any, Any, Any], object]

CALLS: Final = {
    mq.MQCBCT_REGISTER_CALL: mq.MQCBDO_REGISTER_CALL,
    mq.MQCBCT_START_CALL: mq.MQCBDO_START_CALL,
    mq.MQCBCT_STOP_CALL: mq.MQCBDO_STOP_CALL,
    mq.MQCBCT_DEREGISTER_CALL: mq.MQCBDO_DEREGISTER_CALL,
}
"""The calls that a function gets only if its MQCBD asks for them."""
CALL_OPTIONS: Final = sum(CALLS.values()) | mq.MQCBDO_FAIL_IF_QUIESCING | mq.MQCBDO_EVENT_CALL | mq.MQCBDO_MC_EVENT_CALL
"""MQCBDO's bits. Functions are told of events whether they ask for them or not; those of multicast never happen."""
BROWSES: Final = mq.MQGMO_BROWSE_FIRST | mq.MQGMO_BROWSE_NEXT
MARKS: Final = mq.MQGMO_MARK_BROWSE_HANDLE | mq.MQGMO_MARK_BROWSE_CO_OP
CONVERSION_GROWTH_MAX: Final = 4  # from one byte to four
UNDER_CURSOR: Final = mq.MQGMO_MSG_UNDER_CURSOR | mq.MQGMO_BROWSE_MSG_UNDER_CURSOR | mq.MQGMO_LOCK | mq.MQGMO_UNLOCK


@dataclass(slots=True, eq=False)
class Consumer:
    """A function that was registered, for a queue handle or (`hobj` is 0) for events.

    Attributes:
        area: CallbackArea.
        md, gmo: the initial structures of each get; the MQGMO is of the newest version and without a wait.
        interval: seconds after which the function is told that there is no message; infinite: it is not.
        length: the longest buffer; -1: as long as each message.
        is_started: whether it has got its start call.
        is_suspended: by MQCB, or after an error.
        is_over: it is registered no longer.
        has_news: a get may find something.
        due: when the interval is over; by `Clock.monotonic`.
        is_empty: the function has been told that there is no message, or that gets are inhibited, since the last one.
        passed_on: the token of a message that was too long.
    """

    hobj: int
    callback: Callback
    options: int
    area: int
    opened: OpenObject | None = None
    md: bytes = b""
    gmo: Any = None
    interval: float = math.inf
    length: int = -1
    is_started: bool = False
    is_suspended: bool = False
    is_over: bool = False
    has_news: bool = True
    is_watched: bool = False
    due: float = math.inf
    is_empty: bool = False
    passed_on: bytes = b""
    buffer: bytearray = field(default_factory=bytearray)

    @property
    def growth(self) -> int:
        """The ratio of its buffer to the longest message that it takes before a conversion."""
        is_whole = self.length == mq.MQCBD_FULL_MSG_LENGTH
        return CONVERSION_GROWTH_MAX if is_whole and self.gmo.Options & mq.MQGMO_CONVERT else 1

    def is_ready(self, now: float) -> bool:
        """Whether it is its turn to get."""
        return not self.is_suspended and (self.has_news or self.due <= now)


def described(connection: MqiConnection, cbd: Any, hobj: int, md: Any, gmo: Any, callback: Callback | None) -> Consumer:
    """The consumer that MQCB registers. Raises: Refused 2019, 2036, 2037, 2046, 2444, 2483 to 2486."""
    if cbd is None:
        raise Refused(mq.MQRC_CBD_ERROR)
    about = structure("CBD", cbd)
    if about.CallbackType not in (mq.MQCBT_MESSAGE_CONSUMER, mq.MQCBT_EVENT_HANDLER):
        raise Refused(mq.MQRC_CALLBACK_TYPE_ERROR)
    if about.Options & ~CALL_OPTIONS:
        raise Refused(mq.MQRC_CBD_OPTIONS_ERROR)
    if about.MaxMsgLength < mq.MQCBD_FULL_MSG_LENGTH:
        raise Refused(mq.MQRC_MAX_MSG_LENGTH_ERROR)
    if callback is None:
        raise Refused(mq.MQRC_CALLBACK_ROUTINE_ERROR)
    if about.CallbackType == mq.MQCBT_EVENT_HANDLER:
        return Consumer(mq.MQHO_NONE, callback, about.Options, about.CallbackArea)
    made = Consumer(hobj, callback, about.Options, about.CallbackArea, object_of(connection, hobj))
    made.length = about.MaxMsgLength
    _prepare(made, structure("MD", md), structure("GMO", gmo))
    return made


def _prepare(made: Consumer, md: Any, gmo: Any) -> None:
    """Checks and keeps the initial structures of each get."""
    opened, options = made.opened, gmo.Options
    assert opened is not None
    if opened.queue is None or not opened.options & (mq.MQOO_BROWSE if options & BROWSES else INPUTS):
        raise Refused(mq.MQRC_NOT_OPEN_FOR_BROWSE if options & BROWSES else mq.MQRC_NOT_OPEN_FOR_INPUT)
    both = options & BROWSES == BROWSES
    if options & UNDER_CURSOR or (both and options & MARKS):
        raise Refused(mq.MQRC_OPTIONS_ERROR)
    checked = options & ~mq.MQGMO_BROWSE_NEXT if both else options
    get_options(checked, gmo.MatchOptions, gmo.WaitInterval, 0, md.Version, gmo.Version)
    if options & mq.MQGMO_WAIT and gmo.WaitInterval != mq.MQWI_UNLIMITED:
        made.interval = gmo.WaitInterval / 1000
    gmo.Options = options & ~mq.MQGMO_WAIT
    if made.length == mq.MQCBD_FULL_MSG_LENGTH:
        gmo.Options &= ~mq.MQGMO_ACCEPT_TRUNCATED_MSG
    gmo.Version = layout("GMO").newest
    made.gmo = gmo
    about = bytearray(layout("MD").new())
    about[: layout("MD").size(md.Version)] = written("MD", md)
    made.md = bytes(about)


def written(name: str, values: Any) -> bytearray:
    """The structure with these values."""
    made = layout(name).new(values.Version)
    layout(name).write(made, values)
    return made
