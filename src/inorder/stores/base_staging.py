"""The part of the seam that puts in bulk: messages are staged outside their queue, and put all together (spark 3).

Many writers stage, each under a name of its own; one of them, or another, settles all the names in one transaction:
that is the put. Until then the messages have no number, no place and no unique id that anybody could ask for, and they
are in no depth. A ledger notes what was settled, so that a batch that is written once more is put once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

STAGED_COLUMNS = (
    "report",
    "message_type",
    "expiry",
    "feedback",
    "encoding",
    "coded_character_set_id",
    "format",
    "priority",
    "persistent",
    "message_id",
    "correlation_id",
    "reply_to_queue",
    "reply_to_queue_manager",
    "user_identifier",
    "accounting_token",
    "application_identity_data",
    "put_application_type",
    "put_application_name",
    "put_at",
    "application_origin_data",
    "group_id",
    "sequence_number",
    "flags",
    "original_length",
    "offset",
    "delay",
    "body",
    "group_key",
    "order_key",
)

LEDGER_BATCHES_MAX = 1000  # of one streaming query on one queue; older ones are forgotten


class StageRequest(NamedTuple):
    """Rows to stage under a name; what is staged under one name goes to one queue.

    Args:
        handle: opened for output.
        name: of the staging, unique in the store; it begins with the first request.
        count: rows in this request, 0 or more.
        columns: by names out of `STAGED_COLUMNS`, each with `count` values. A column that is missing, and None in any
            but `body`, is the put's default; `body` must be there. As context the caller's columns stand, as in a put
            that sets all context. `group_key` and `order_key`: int of 64 bits, float, str or bytes; None: in no group,
            and first in the order.
        lasts: seconds from now until the staging expires, above 0; each request says it anew.
    """

    handle: int
    name: str
    count: int  # type: ignore[assignment]  # a method of tuples that nobody misses
    columns: Mapping[str, Sequence[Any]]
    lasts: float


class Staged(NamedTuple):
    """A staging as its writer knows it: its name, and how many rows it staged in all."""

    name: str
    count: int  # type: ignore[assignment]  # a method of tuples that nobody misses


class LedgerKey(NamedTuple):
    """Names a batch for ever, on each queue.

    Args:
        application: who writes.
        query: of a streaming query; empty for a transaction of an application (a load).
        batch: the number of the batch, or the name of the transaction; empty: the settle is not noted.
    """

    application: str
    query: str
    batch: str


class Settled(NamedTuple):
    """What a settle did.

    Args:
        already: the ledger had the key, for every queue concerned: the stagings were dropped.
        messages: put by this call; a body that was split counts as its segments.
    """

    already: bool
    messages: int


class StagingVerbs(Protocol):
    """The verbs; errors common to all verbs as in `base.Store`."""

    def stage(self, request: StageRequest) -> None:
        """Writes rows under a staging, on disk when it returns; nobody sees them.

        Bodies longer than the queue takes are split into segments, be that allowed in the flags or not. A staging whose
        time is over is dropped and begins anew: its count will tell.

        A database writes contents where they stay, and narrow rows beside them. Raises: ArgumentError, naming row
        (from 0, in this request), column, value and range; CallerError 2027, 2253; NotOpenFor 2039; MessageTooBig
        2030, 2031, headers are longer than the queue takes; UnitExists, the name is another queue's; PutInhibited
        2051, the alias through which it was opened.
        """
        ...

    def settle_staging(self, key: LedgerKey, stagings: Sequence[Staged]) -> Settled:
        """Puts all that is staged under these names, all or nothing, perhaps on several queues; notes it in the ledger.

        Stagings for queues where the ledger has the key already are dropped. Numbers are drawn in the order (order_key,
        staging, row): one for each message, or, where the order rule draws it later than at the put, one for all, with
        ordinals. Messages with one `group_key` on a queue become a group in that order, its last one closed. Expiry and
        delay begin now.

        A database moves narrow rows in one statement. Raises, and nothing has changed: StagingGone, one is missing, its
        time is over, or it has another count; PutInhibited 2051; QueueFull 2053; InconsistentCall, the numbers of a
        group of the caller's own have a gap or a repeat.
        """
        ...

    def undo_staging(self, names: Sequence[str]) -> int:
        """Drops stagings; how many there were. Unknown names are passed over, so it may come twice."""
        ...

    def in_ledger(self, queue: str, key: LedgerKey) -> float | None:
        """When this was settled on a queue, or the queue of an alias; None: not, or long ago.

        Of one streaming query the newest 1,000 batches are kept, transactions for ever. Raises: UnknownQueue 2085.
        """
        ...
