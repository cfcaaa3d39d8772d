"""Transfers messages from a queue of one store to a queue of another, each exactly once, across any interruption.

Two stores cannot share a transaction. So each batch is put at the target together with a line in the ledger there,
which records the progress. A run that resumes reads the ledger first:

    move    claim a batch at the source  ->  stage it, put it with the claim's name in the ledger  ->  confirm the claim
    copy    browse strictly on from the token in the ledger  ->  stage it, put it with the token after it

If the run is killed before the put, the batch is sent again; if it is killed after the put, the ledger has the batch.
The put names the line that must be the last one in the ledger. If two runs use one name, only one succeeds; the other
gets `Fenced`.

The name of the work is its application. The ledger also records the source queue with its creation. A queue that was
created again, another queue, or another selection of messages counts as different work. The claims of a move carry its
name and the target, so that a batch that may have arrived at one target is not put at another.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..errors import (
    Fenced,
    InorderError,
    MessageTooBig,
    NoMessageAvailable,
    ObjectInUse,
    OrderPending,
    PutInhibited,
    Reason,
    SynchronousQueue,
)
from ..model.message import Message
from ..model.options import EVERYTHING, AskedOrder, GetOptions, Match, check_whole
from ..model.properties import Properties
from ..rules.staged_columns import STAGED_COLUMNS
from ..rules.staging import check_room
from .bulk import NAME, NO_LIMIT, BulkPage, ClaimReader, LedgerKey, Slice, Stager
from .defining import local_name
from .manager import QueueManager
from .queue import Queue
from .unit_of_work import UnitOfWork

UNIT_MESSAGES, UNIT_BYTES = 1_000, 64 * 2**20
STAGING_SECONDS = 3_600.0
CLAIMER_MAX, SIGN_LENGTH = 180, 12  # characters of a claim name before the target, and of a hash
COLUMNS = tuple(name for name in STAGED_COLUMNS if name not in ("delay", "group_key", "order_key"))

Columns = dict[str, Sequence[Any]]


def move(
    source: QueueManager,
    queue: str,
    target: QueueManager,
    to: str,
    *,
    application: str = "move",
    logical: bool = False,
    read_order: AskedOrder | None = None,
    most: int = NO_LIMIT,
    unit: int = UNIT_MESSAGES,
    unit_bytes: int = UNIT_BYTES,
) -> Iterator[int]:
    """Moves messages to a queue of another store; yields the number of messages after each batch.

    Messages keep their descriptors, and get new places and unique ids. Messages that others hold and delayed messages
    stay. A stopped run may leave its last batch in a claim; the next run continues with it.

    Args:
        application: the name of the work, 1 to 200 characters. A run that begins under it fences earlier ones.
        most: the largest number of messages in this run. A batch that an earlier run left counts, but is moved whole.
        unit, unit_bytes: messages, and bytes of bodies, of a batch, from 1. Memory holds some 8 MiB, or one message.

    The target's ledger records the progress under the name of the work and the source queue. So the next run continues
    to the same queue of the same store. A run to another target is refused while a batch is left.

    Raises: QueueFull 2053, PutInhibited 2051, MessageTooBig 2030 and 2031, by the target; Fenced, another run has begun
    under this name; ObjectInUse 2042, a run to another queue has left a batch; GetInhibited 2016; SynchronousQueue
    2045, connect to the owner instead; as `QueueManager.open`. A batch that failed stays claimed for the next run.
    """
    options = GetOptions(logical=logical, read_order=read_order)
    _check_sizes(most, unit, unit_bytes)
    refuse_synchronous(source, queue)
    refuse_synchronous(target, to)
    with contextlib.ExitStack() as stack:
        reading = stack.enter_context(source.open(queue, input="as_queue"))
        writing = stack.enter_context(target.open(to, output=True))
        onto = LedgerWriter(target, writing, application, f"move {_made(source, queue)}")
        name = _claimer(application, target, writing.local_name)
        is_left = _is_claimed(source, queue, application, name)
        reader = ClaimReader(reading, name, delivers=False)
        done, rest = reader.begin().settled, most
        while rest > 0 and (is_left or source.depth(queue)):
            room = NO_LIMIT if is_left else onto.room()
            if not room and not _has_some(source, queue, options):
                return
            claim = reader.claim(done, options, most=min(unit, rest, room or onto.full()), most_bytes=unit_bytes)
            if claim is None:
                return
            batch = f"{claim.number} {claim.started_at!r}"  # a restored store assigns the number again
            if batch != onto.last:
                pages = reader.read(Slice(claim.number, 1, claim.messages, claim.delivered))
                onto.put(batch, map(_of_page, pages), may_be_there=True)
            reader.settle(claim.number)
            done, rest, is_left = claim.number, rest - claim.messages, False
            yield claim.messages


def copy(
    source: QueueManager,
    queue: str,
    target: QueueManager,
    to: str,
    *,
    application: str = "copy",
    logical: bool = False,
    match: Match = EVERYTHING,
    most: int = NO_LIMIT,
    unit: int = UNIT_MESSAGES,
    unit_bytes: int = UNIT_BYTES,
) -> Iterator[int]:
    """Copies messages to a queue of another store; yields the number of messages after each batch.

    A strict browse neither misses nor repeats a message. With the same `application`, `logical` and `match`, a later
    copy continues after the messages that were already copied.

    Args:
        application: the name of the work, 1 to 200 characters.
        most: the largest number of messages in this run.
        unit, unit_bytes: messages, and bytes of bodies, of a batch, from 1; memory holds it.

    Raises: OrderPending, after all messages before the pending one are copied; OrderUnsupported, the queue has no
    order; Fenced, another run under this name has put a batch meanwhile; errors of the target as in `move`.
    """
    _check_sizes(most, unit, unit_bytes)
    refuse_synchronous(target, to)
    given = match.fields if match.selector is None else {**match.fields, "selector": match.selector}
    chosen = " ".join(f"{name}={value!r}" for name, value in sorted(given.items()))
    query = f"copy {_made(source, queue)} {'logical' if logical else 'physical'} {chosen}".rstrip()
    with target.open(to, output=True) as writing:
        onto = LedgerWriter(target, writing, application, query)
        browsing = source.browse(queue, after=onto.last or None, read_order="strict", logical=logical, match=match)
        with contextlib.closing(browsing):
            for part in _parts(browsing, most, unit, unit_bytes):
                assert browsing.token is not None, "it is strict"
                onto.put(browsing.token, [_of_messages(part)])
                yield len(part)


def moving(manager: QueueManager) -> UnitOfWork:
    """Returns a unit of work for moving or copying messages to another queue of the store.

    Its gets do not count as deliveries nor its puts as arrivals, so no COD or COA is sent. Messages keep their report
    options.
    """
    return UnitOfWork(manager._session, moves=True)


class LedgerWriter:
    """Puts batches on a queue, each exactly once: a line in the queue's ledger records the last one.

    Args:
        arrives: False if the messages come from another queue; then COA is not reported.

    Attributes:
        last: the batch that was put last; empty: none was.
    """

    def __init__(
        self, manager: QueueManager, queue: Queue, application: str, query: str, *, arrives: bool = False
    ) -> None:
        NAME.check("application", application)
        self._manager, self._queue, self._application, self._query = manager, queue, application, query
        self._arrives = arrives
        self._local = queue.local_name
        self.last = manager.bulk.last_settled(self._local, application, query)

    def room(self) -> int:
        """Returns how many more messages the queue can take now. Raises: PutInhibited 2051."""
        for name in (self._queue.name, self._local):
            if not self._manager.attributes(name).put_allowed:
                raise PutInhibited(f"puts to {name} are inhibited", queue=name)
        return max(0, self._manager.attributes(self._local).max_depth - self._manager.depth(self._local))

    def full(self) -> int:
        """Returns the room after the queue was full, if it now has some. Raises: QueueFull 2053."""
        attributes, depth = self._manager.attributes(self._local), self._manager.depth(self._local)
        check_room(attributes, depth, 1)
        return attributes.max_depth - depth

    def put(self, batch: str, parts: Iterable[Columns], *, may_be_there: bool = False) -> None:
        """Puts a batch as the next one, all or nothing. Raises: Fenced, it is not the next one; and as `move`.

        Args:
            may_be_there: accepts that another run has already put this batch.
        """
        stager = Stager(
            self._queue,
            f"{self._application} {uuid.uuid4()}"[-200:],
            lasts=STAGING_SECONDS,
            checks_numbers=False,
            arrives=self._arrives,
        )
        try:
            for columns in parts:
                self._check_lengths(columns["body"])
                stager.stage(len(columns["body"]), columns)
            key = LedgerKey(self._application, self._query, batch)
            settled = self._manager.bulk.settle_staging(key, [stager.staged], after=self.last)
        except BaseException:
            with contextlib.suppress(InorderError):  # the staging then expires
                self._manager.bulk.undo_staging([stager.name])
            raise
        if settled.already and not may_be_there:
            raise Fenced(
                f"{self._application!r} has another writer on {self._local}, which has just put the same batch. "
                "Only one writer may run under a name; the rows that this one staged were not put",
                application=self._application,
            )
        self.last = batch

    def _check_lengths(self, bodies: Sequence[bytes]) -> None:
        """Raises: MessageTooBig, because staging would cut a longer message into segments."""
        of_queue = self._manager.attributes(self._local).max_length
        of_manager = self._manager.admin.manager_attributes().max_length
        longest, limit = max(map(len, bodies)), min(of_queue, of_manager)
        if longest > limit:
            raise MessageTooBig(
                f"{self._local} takes messages of at most {limit:,} bytes, and one of these has {longest:,}",
                reason=Reason.MSG_TOO_BIG_FOR_Q if of_queue <= of_manager else Reason.MSG_TOO_BIG_FOR_Q_MGR,
                length=longest,
                limit=limit,
            )


def refuse_synchronous(manager: QueueManager, queue: str) -> None:
    """Raises: SynchronousQueue 2045, for such a queue; UnknownQueue 2085."""
    found = manager.attributes(local_name(manager, queue))
    if found.mode == "synchronous":
        raise SynchronousQueue(
            f"{queue} is a synchronous remote queue, and messages are not moved through it: name queue "
            f"{found.remote_queue} in the store of connection {found.connection} instead",
            queue=queue,
            remote_queue=found.remote_queue,
            remote_manager=found.remote_manager,
            connection=found.connection,
        )


def _made(manager: QueueManager, queue: str) -> str:
    """Returns a name for this creation of a queue that is unique among all stores."""
    local = local_name(manager, queue)
    return f"{manager.admin.manager_attributes().origin} {local} {manager.inspect.status(local).created_at!r}"


def _claimer(application: str, target: QueueManager, to: str) -> str:
    """Returns the name under which a move to this target claims: the work's name and a hash of the target."""
    sign = hashlib.sha256(_made(target, to).encode()).hexdigest()[:SIGN_LENGTH]
    return _claiming(application) + sign


def _claiming(application: str) -> str:
    """Returns the prefix of the claim names of this work; a long name is cut and ends with a hash."""
    if len(application) > CLAIMER_MAX:
        sign = hashlib.sha256(application.encode()).hexdigest()[:SIGN_LENGTH]
        application = f"{application[: CLAIMER_MAX - SIGN_LENGTH]}{sign}"
    return f"{application} to "


def _is_claimed(manager: QueueManager, queue: str, application: str, name: str) -> bool:
    """Whether an earlier run has left a batch. Raises: ObjectInUse, a run to another target has."""
    local, begins = local_name(manager, queue), _claiming(application)
    left = {one.application for one in manager.bulk.claims() if one.queue == local and one.open is not None}
    for other in sorted(left - {name}):
        if other.startswith(begins) and len(other) == len(name):
            raise ObjectInUse(
                f"an earlier run of {application!r} has left a batch of {local} that was on its way to another queue, "
                "and may have arrived there: run it again to that queue. If that queue is gone, or does not have the "
                f"batch, release_claims({local!r}, {other!r}) returns it to {local}",
                queue=local,
                application=other,
            )
    return name in left


def _has_some(manager: QueueManager, queue: str, options: GetOptions) -> bool:
    """Whether a message can be got now."""
    with manager.open(queue, browse=True) as browsing:
        try:
            browsing.browse_first(logical=options.logical, read_order=options.read_order)
        except (NoMessageAvailable, OrderPending):
            return False
    return True


def _check_sizes(most: int, unit: int, unit_bytes: int) -> None:
    for name, value in (("most", most), ("unit", unit), ("unit_bytes", unit_bytes)):
        check_whole(name, value, 1)


def _parts(browsing: Iterator[Message], most: int, unit: int, unit_bytes: int) -> Iterator[list[Message]]:
    """Yields messages in batches; an OrderPending is raised after the messages before it."""
    part: list[Message] = []
    size, withheld = 0, None
    while most > 0:
        try:
            message = next(browsing)
        except StopIteration:
            break
        except OrderPending as pending:
            withheld = pending
            break
        part.append(message)
        most, size = most - 1, size + message.length
        if len(part) >= unit or size >= unit_bytes:
            yield part
            part, size = [], 0
    if part:
        yield part
    if withheld is not None:
        raise withheld


def _of_page(page: BulkPage) -> Columns:
    """Returns the columns to stage for a page of a claim."""
    columns = {name: page.column(name) for name in COLUMNS}
    columns["persistent"] = list(map(bool, columns["persistent"]))
    columns["properties"] = [None if text is None else Properties.from_text(text) for text in columns["properties"]]
    columns["expiry"] = [math.inf if left is None else left for left in columns["expiry"]]
    return columns


def _of_messages(messages: Sequence[Message]) -> Columns:
    columns: Columns = {name: [getattr(message, name) for message in messages] for name in COLUMNS}
    columns["expiry"] = [math.inf if left is None else left for left in columns["expiry"]]
    return columns


__all__ = ["LedgerWriter", "copy", "move", "moving"]
