"""The stores that a sink puts on: which of them takes a row, and the commit of a batch in all of them.

Two stores cannot share a transaction. Each puts its part of a batch in a separate transaction, and its ledger notes
the batch. If the driver dies between two of them, Spark repeats the batch: a store that has it drops the rows, the
others put them. For that each row must go to the same store again. So rows are divided by their contents and the list
of stores, and another list is refused while a batch may be half committed:

    the list       is known by the creation times of the queue of option `queue` in its stores, not by their addresses
    before a put   each ledger whose last note of the query's list differs notes the present one
    the order      the store with the oldest queue commits first, alone; then the others, side by side
    a new list     is refused if one of its stores has the batch; or if it lacks the store that commits first under the
                   noted list. If that store is present and lacks the batch, no store has it

A transaction's list is noted under its name, a stream's under its query.
"""

from __future__ import annotations

import hashlib
import logging
import uuid
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from ..arrow.columns import Judged
from ..client.bulk import LedgerKey, Settled, Staged, Stager
from ..client.manager import QueueManager
from ..client.queue import Queue
from ..errors import CheckpointLost, CheckpointTooOld, Fenced, InorderError, OptionsError
from ..stores.seam.damage import utc
from . import points
from .opening import check_queue, made_at, side_by_side, store_for_task, two_copies
from .options import SinkOptions

log = logging.getLogger("inorder.spark.sink")


class SinkStore(NamedTuple):
    """A store of a sink.

    Args:
        made: when the queue of option `queue` was created there, as `made_at`.
    """

    url: str
    made: int


class SinkPlace(NamedTuple):
    """The store and the queue of a row."""

    url: str
    queue: str


class StagedAt(NamedTuple):
    """A staging and its place."""

    place: SinkPlace
    staged: Staged


def sink_stores(options: SinkOptions) -> list[SinkStore]:
    """The stores that the options name, in the order of their commits.

    Raises StoreError, UnknownQueue, WrongQueueType; OptionsError if two of them are copies of each other.
    """

    def look(url: str) -> SinkStore:
        with store_for_task(url, options.application, is_check=True) as qm:
            if options.bad_rows is not None:
                check_queue(qm, options.bad_rows)
            return SinkStore(url, made_at(qm, check_queue(qm, options.queue).name))

    found: dict[int, SinkStore] = {}
    for url, one in side_by_side(options.stores, look).items():
        if (other := found.setdefault(one.made, one)) is not one:
            raise two_copies(options.queue, other.url, url)
    return [found[made] for made in sorted(found)]


# --- which store takes a row


def divided_by_contents(found: Judged, count: int) -> list[int]:
    """For each row the number of its store, from 0: by the key or id of its group; in no group, by its body.

    Not by partition and row: Spark may divide the rows of a repeated batch differently.
    """
    if count == 1:
        return [0] * found.rows
    bodies = found.columns["body"].to_pylist()
    groups: Iterable[bytes | None] = [None] * found.rows
    if "group_key" in found.columns:
        groups = map(_key_as_bytes, found.columns["group_key"].to_pylist())
    elif "group_id" in found.columns:
        groups = ((one or b"").rstrip(b"\0") or None for one in found.columns["group_id"].to_pylist())
    texts = (body or b"" if group is None else group for body, group in zip(bodies, groups, strict=True))
    return [zlib.crc32(text) % count for text in texts]


def _key_as_bytes(key: object) -> bytes | None:
    """Equal keys give the same bytes. None: in no group."""
    if key is None or isinstance(key, bytes):
        return key
    return str(key + 0.0 if isinstance(key, float) else key).encode()  # -0.0 and 0.0 are one key


# --- the commit


class Ledger(NamedTuple):
    """The entries of a store's ledger at the commit of a batch.

    Args:
        stores: the list of stores noted last for the query or transaction; empty: none.
        since: the query's batch for which it was noted.
        last: the last batch of the query; -1: none, or it is a transaction.
        has_batch: whether the batch was put there.
        has_elsewhere: another queue of the batch's rows that has it, though it was not put; empty: none.
    """

    stores: str = ""
    since: int = 0
    last: int = -1
    has_batch: bool = False
    has_elsewhere: str = ""


class BatchCommit:
    """The commit of one batch in all stores of a sink.

    Args:
        stores: in the order of their commits.
        key: the batch; without a name in a write that is not repeated, which has one store.
    """

    def __init__(self, options: SinkOptions, stores: Sequence[SinkStore], key: LedgerKey) -> None:
        self._options, self._stores, self._key = options, stores, key
        self._list = _name_of(stores)
        self._writer = f"query {key.query}" if key.query else f"transaction {key.batch}"
        self._batch = f"batch {key.batch} of {self._writer}" if key.query else self._writer
        self._noted_under = f"stores of {self._writer}"

    def run(self, staged: Sequence[StagedAt]) -> Settled:
        """Puts the staged messages, in each store once; a store that has the batch drops its part.

        Raises OptionsError, CheckpointTooOld, CheckpointLost, Fenced: this call has put nothing. After another error
        some stores may have put their parts, and the batch must be repeated.
        """
        application = self._options.application
        with ExitStack() as handles:
            managers = {one.url: handles.enter_context(store_for_task(one.url, application)) for one in self._stores}
            ledgers = dict.fromkeys(managers, Ledger())
            if self._key.batch:
                places = {one.place for one in staged if one.place.queue != self._options.queue}
                queues = {url: sorted(one.queue for one in places if one.url == url) for url in managers}
                ledgers = side_by_side(list(managers), lambda url: self._ledger(managers[url], queues[url]))
                self._check(ledgers)
                differ = [url for url, one in ledgers.items() if not self._is_ours(one.stores)]
                side_by_side(differ, lambda url: self._note_list(managers[url]))

            def settle(url: str) -> Settled:
                here = [one for one in staged if one.place.url == url]
                return self._settle(managers[url], here, has_batch=ledgers[url].has_batch)

            first, *others = managers
            settled = {first: settle(first)}
            if others and settled[first].already and not ledgers[first].has_batch:
                raise Fenced(
                    f"another process has put {self._batch} since this one began, which has put nothing: only one "
                    "query may run on a checkpoint",
                    application=application,
                )
            if others:
                points.at("settled first")
            try:
                settled |= side_by_side(others, settle)
            except InorderError:
                log.warning("%s is not on all of %d stores: repeat it, which puts the rest", self._batch, len(managers))
                raise
        had = sum(one.already for one in settled.values())
        if 0 < had < len(settled):
            log.warning("%s was on %d of %d stores before; the others have it now", self._batch, had, len(settled))
        return Settled(had == len(settled), sum(one.messages for one in settled.values()))

    def _ledger(self, qm: QueueManager, queues: Iterable[str]) -> Ledger:
        local, key = check_queue(qm, self._options.queue).name, self._key
        stores, since = "", "0"
        if noted := qm.bulk.last_settled(local, key.application, self._noted_under):
            stores, since, _ = noted.rsplit(" ", 2)
        last = qm.bulk.last_settled(local, key.application, key.query) if key.query else ""
        has_batch = qm.bulk.in_ledger(local, key) is not None
        other = "" if has_batch else next((one for one in queues if qm.bulk.in_ledger(one, key) is not None), "")
        return Ledger(stores, int(since), int(last or -1), has_batch, other)

    def _is_ours(self, noted: str) -> bool:
        """Whether a noted list is the present one; a single store needs no note."""
        return noted == self._list or (not noted and len(self._stores) == 1)

    def _check(self, ledgers: Mapping[str, Ledger]) -> None:
        """Checks that the batch is the query's next or last one, in all stores, under the present list.

        Raises CheckpointTooOld, OptionsError, CheckpointLost.
        """
        queue = self._options.queue
        for url, one in ledgers.items():
            if one.has_elsewhere:
                raise OptionsError(
                    f"{url} has {self._batch} on queue {one.has_elsewhere}, from a write whose option queue was not "
                    f"{queue}. Rows for {one.has_elsewhere} would be dropped: restore option queue, or give this write "
                    "another name"
                )
            if self._key.query and one.last > int(self._key.batch):
                raise CheckpointTooOld(
                    f"the ledger of queue {queue} in {url} has batch {one.last} of {self._writer}, and this is batch "
                    f"{self._key.batch}: the checkpoint is an old copy. Take the newest one, or begin with a new one",
                    queue=queue,
                )
        if others := [one.stores for one in ledgers.values() if not self._is_ours(one.stores)]:
            self._check_new_list(ledgers, others)
        elif behind := self._behind(ledgers):
            raise CheckpointLost(
                f"the ledger of queue {queue} in {behind} lacks a batch of {self._writer} that a later store has: the "
                "store was restored from a backup. Messages of the query may be missing there: put them by a query of "
                "its own, and begin with a new checkpoint",
                queue=queue,
            )

    def _check_new_list(self, ledgers: Mapping[str, Ledger], others: Iterable[str]) -> None:
        for url, one in ledgers.items():
            if one.has_batch:
                raise OptionsError(
                    f"{self._batch} is on {url}, which put it under another list of stores than option url gives. "
                    "Divided by this list, other rows would be put twice or not at all: restore the list until Spark "
                    "has committed the batch, and change it afterwards"
                )
        made = {one.made for one in self._stores}
        for noted in filter(None, others):
            if (first := int(noted.partition(" ")[0])) not in made:
                when = utc(first / 1_000_000)
                raise OptionsError(
                    f"option url lacks a store that the sink has put on, the one whose queue {self._options.queue} was "
                    f"created at {when:%Y-%m-%d %H:%M:%S.%f} UTC. It commits first, so it alone knows whether "
                    f"{self._batch} was begun: name it again. To do without it, or if it was replaced, begin with a "
                    "new checkpoint"
                )

    def _behind(self, ledgers: Mapping[str, Ledger]) -> str | None:
        """A store that lacks a batch of the present list that others have, though it must have committed it."""
        lacking = {url: one for url, one in ledgers.items() if not one.has_batch}
        first = self._stores[0].url
        if first in lacking and len(lacking) < len(ledgers):
            return first
        newest = max((one.last for one in lacking.values()), default=-1)
        if newest < max(one.since for one in ledgers.values()):
            return None
        return next((url for url, one in lacking.items() if one.last < newest), None)

    def _note_list(self, qm: QueueManager) -> None:
        since = self._key.batch if self._key.query else "0"
        name = f"{self._list} {since} {uuid.uuid4().hex}"  # a list that comes again is a new note
        qm.bulk.settle_staging(LedgerKey(self._key.application, self._noted_under, name), [self._empty(qm)])

    def _settle(self, qm: QueueManager, staged: Sequence[StagedAt], *, has_batch: bool) -> Settled:
        """Puts the part of one store. The ledger of the queue of option `queue` decides for all of it, because a
        repeated batch may name other queues.
        """
        stagings = [one.staged for one in staged]
        if has_batch:
            qm.bulk.undo_staging([one.name for one in stagings])
            return Settled(True, 0)
        if self._key.batch and all(one.place.queue != self._options.queue for one in staged):
            stagings.append(self._empty(qm))
        return qm.bulk.settle_staging(self._key, stagings) if stagings else Settled(False, 0)

    def _empty(self, qm: QueueManager) -> Staged:
        """A staging without messages, on the queue of option `queue`."""
        with qm.open(self._options.queue, output=True) as queue:
            stager = stager_on(queue, self._options)
            stager.stage(0, {"body": []})
        return stager.staged


def stager_on(queue: Queue, options: SinkOptions) -> Stager:
    """A new staging, with a name of its own."""
    return Stager(queue, f"spark-{uuid.uuid4()}", lasts=options.staging_expiry)


def _name_of(stores: Sequence[SinkStore]) -> str:
    """The name of a list of stores in the ledger: the queue that commits first, and a digest of all."""
    digest = hashlib.sha256(",".join(str(one.made) for one in stores).encode()).hexdigest()[:32]
    return f"{stores[0].made} {digest}"
