"""Finds brief calls: they take about as long as a put or a get, so the loop's own thread may make them
(`aio.brief`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ...model.message import Got
from ...rules.store_verbs import deletes_queue
from ...stores.seam.protocol import LocalStore
from ...stores.seam.records import GetOutcome, GetRequest, PutRequest

MESSAGES_MAX: Final = 128
BYTES_MAX: Final = 131_072  # of a call, or of the bodies of an answer
BY_INDEX: Final = frozenset(
    {"uid", "message_id", "correlation_id", "group_id"}
)  # fields by which a store finds quickly

ALWAYS: Final = frozenset(
    "check_handle extend in_ledger keep_handles last_settled leave_group manager open queue reserve_numbers "
    "unlock".split()
)


class NotBrief(Exception):
    """Raised, without an effect, for a call that may take too long for the loop's own thread."""


def is_brief(verb: str, arguments: Mapping[str, Any], unit: int) -> bool:
    """Whether a call of at most `BYTES_MAX` bytes is brief.

    Args:
        unit: the number of messages in the connection's unit of work.
    """
    if verb == "put":
        request: PutRequest = arguments["request"]
        return len(request.messages) <= MESSAGES_MAX
    if verb == "get":
        wanted: GetRequest = arguments["request"]
        return wanted.most <= MESSAGES_MAX and _is_found_quickly(wanted)
    if verb == "settle":
        return unit <= MESSAGES_MAX
    return verb in ALWAYS or (verb == "close" and not deletes_queue(arguments))


def messages_of(verb: str, arguments: Mapping[str, Any]) -> int:
    """The number of messages that a call may add to the unit of work; a large number if it is unknown."""
    if verb == "put":
        return len(arguments["request"].messages)
    if verb in ("get", "wait"):
        return int(arguments["request"].most)
    return 0 if verb in ALWAYS else MESSAGES_MAX + 1


def _is_found_quickly(wanted: GetRequest) -> bool:
    options, match = wanted.options, wanted.options.match
    if options.browse is not None or match.selector is not None:
        return False
    if wanted.most > 1:  # one statement takes them all
        return not (match.fields or options.logical or wanted.one_group)
    return match.fields.keys() <= BY_INDEX


def get_short(store: LocalStore, request: GetRequest) -> GetOutcome:
    """Gets as `get`. Raises: as `get`; NotBrief, without an effect."""
    left = BYTES_MAX

    def check_length(message: Got) -> None:
        nonlocal left
        left -= len(message.body)
        if left <= 0:
            raise NotBrief

    return store.get_if(request._replace(most_bytes=BYTES_MAX), check_length)
