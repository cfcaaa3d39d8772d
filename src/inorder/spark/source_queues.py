"""The queues that one query reads, in all their stores, at this moment.

A queue is recognised by its name and the time of its creation, so a checkpoint contains no address of a store, a store
may move, and a queue that was deleted and created again is another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from ..client.manager import QueueManager
from ..client.queue import Queue
from ..errors import InorderError, QueueDeleted, UnknownQueue, WrongQueueType, nearest_names
from ..model.attributes import QueueAttributes
from ..rules.authorities import fits
from ..stores.seam.records import Claims
from ..stores.seam.views import QueueView
from .opening import check_queue, check_same, made_at, open_though_restarting, side_by_side, store_for_task, two_copies
from .options import STORE, SourceOptions

SYSTEM = "SYSTEM."

T = TypeVar("T")


class SourceQueue(NamedTuple):
    """A queue in a store.

    Args:
        queue: its name; a query on one queue may name an alias, by which the queue is opened.
        made: when the queue was created, as `made_at`.
    """

    url: str
    queue: str
    made: int

    @property
    def key(self) -> str:
        """Its name in offsets."""
        return f"{self.queue}@{self.made}"


def name_in(key: str) -> str:
    """The name of the queue with this key."""
    return key.rpartition("@")[0]


class Seen(NamedTuple):
    """A queue at one moment.

    Args:
        view: the queue as an operator sees it; None: it was never used.
        is_chosen: whether the options name it; the others may still have claims of this application.
        account: the claims of this application there, if it has begun any.
    """

    source: SourceQueue
    view: QueueView | None
    is_chosen: bool
    account: Claims | None

    @property
    def depth(self) -> int:
        """Its messages, including those in units of work and claims."""
        return 0 if self.view is None else self.view.depth

    @property
    def counter(self) -> int:
        """The highest number that the queue has drawn."""
        return 0 if self.view is None else self.view.numbered

    @property
    def settled(self) -> int:
        """The number of the application's last claim there that is over."""
        return 0 if self.account is None else self.account.settled

    @property
    def held(self) -> Sequence[int]:
        """The numbers of the application's claims that hold messages there."""
        return () if self.account is None else [one.number for one in self.account.held]

    @property
    def claimed(self) -> int:
        """The number of messages in claims of the application."""
        return 0 if self.account is None else sum(one.messages for one in self.account.held)

    @property
    def free(self) -> int:
        """The number of messages in no claim of the application."""
        return self.depth - self.claimed


class SourceQueuePartition(InputPartition):
    """The work of one task: parts of one or several queues, one after the other."""

    def __init__(self, parts: Sequence[tuple[SourceQueue, InputPartition]]) -> None:
        super().__init__(None)
        self.parts = parts


class Stores:
    """The connections of the process that plans, one for each store, and its handles; opened by the first call.

    Copies in other processes are empty.

    Attributes:
        gone: the errors of a queue that was deleted since it was seen, if the query continues with others.
    """

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self.gone: tuple[type[InorderError], ...] = (QueueDeleted, UnknownQueue) if options.is_several else ()
        self._managers: dict[str, QueueManager] = {}
        self._handles: dict[str, Queue] = {}
        self._only: SourceQueue | None = None
        self._has_looked = False

    def look(self) -> dict[str, Seen]:
        """All queues that the application may read, by key, sorted by store and name. Writes nothing.

        Raises OptionsError if two of the stores are copies of each other; as `only`. The first look also raises
        UnknownQueue if a name or pattern names no queue; later, queues come and go.
        """
        if not self._options.is_several:
            return {self.only().key: self._look_at_only()}
        found: dict[str, Seen] = {}
        for url, seen in side_by_side(self._options.stores, self._look_at).items():
            for one in seen:
                other = found.setdefault(one.source.key, one)
                if other is not one:
                    raise two_copies(one.source.queue, other.source.url, url)
        if not self._has_looked:
            existing = {one.source.queue for one in found.values()}
            _check_names(self._options, existing, {one.source.queue for one in found.values() if one.is_chosen})
            self._has_looked = True
        return found

    def _look_at(self, url: str) -> list[Seen]:
        qm = self.manager(url)
        views, accounts = qm.inspect.overview(), self._accounts(qm)
        chosen = set(chosen_of(qm, self._options.queues))
        return [
            Seen(
                SourceQueue(url, one.name, round(one.created_at * 1_000_000)),
                one,
                one.name in chosen,
                accounts.get(one.name),
            )
            for one in views
        ]

    def _look_at_only(self) -> Seen:
        source = self.only()
        qm = self.manager(source.url)
        local = check_queue(qm, source.queue).name
        view = next(iter(qm.inspect.overview(local)), None)
        return Seen(source, view, True, self._accounts(qm).get(local))

    def _accounts(self, qm: QueueManager) -> dict[str, Claims]:
        """The claims of the application by queue."""
        application = self._options.application
        return {one.queue: one for one in qm.bulk.claims() if one.application == application} if application else {}

    def only(self) -> SourceQueue:
        """The queue of a query on one queue. Raises UnknownQueue, WrongQueueType."""
        if self._only is None:
            url, name = self._options.url, self._options.queue
            qm = self.manager(url)
            self._only = SourceQueue(url, name, made_at(qm, check_queue(qm, name).name))
        return self._only

    def first(self) -> SourceQueue:
        """The first of the queues that the options name, used or not. Raises UnknownQueue if there is none."""
        if not self._options.is_several:
            return self.only()
        for url in self._options.stores:
            qm = self.manager(url)
            for name in chosen_of(qm, self._options.queues):
                return SourceQueue(url, name, made_at(qm, name))
        raise _nothing(self._options, [])

    def each(self, wanted: Mapping[str, SourceQueue], work: Callable[[str, SourceQueue], T]) -> dict[str, T]:
        """Does the same for several queues, by key: for all of one store in turn, for several stores side by side.

        Its changes to a store are written to disk once, after the last of its queues.
        """
        by_store: dict[str, list[str]] = {}
        for key, source in wanted.items():
            by_store.setdefault(source.url, []).append(key)

        def at(url: str) -> list[tuple[str, T]]:
            if len(by_store[url]) == 1:
                (key,) = by_store[url]
                return [(key, work(key, wanted[key]))]
            promises = self.manager(url).internals.promises()
            try:
                with promises:
                    return [(key, work(key, wanted[key])) for key in by_store[url]]
            finally:
                promises.keep()

        return {key: done for some in side_by_side(list(by_store), at).values() for key, done in some}

    def queue(self, source: SourceQueue, *, browse: bool = False) -> Queue:
        """A handle, which stays open until `close` or `close_unused`."""
        if source.key not in self._handles:
            how: dict[str, Any] = {"browse": True} if browse else {"input": "shared"}
            self._handles[source.key] = self.manager(source.url).open(source.queue, **how)
        return self._handles[source.key]

    def close_unused(self, used: AbstractSet[str]) -> None:
        """Closes the handles of all other queues, so that these may be deleted; the handle of an only queue stays."""
        if self._options.is_several:
            for key in self._handles.keys() - used:
                with suppress(QueueDeleted):
                    self._handles.pop(key).close()

    def manager(self, url: str) -> QueueManager:
        """The connection to a store."""
        if url not in self._managers:
            self._managers[url] = open_though_restarting(url, self._options.application)
        return self._managers[url]

    def close(self) -> None:
        """Ends the connections; claims stay as they are."""
        managers, self._managers, self._handles = self._managers, {}, {}
        for qm in managers.values():
            qm.internals.abandon()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_managers": {}, "_handles": {}, "_only": None}


# --- the names in the options


def chosen_of(qm: QueueManager, patterns: Iterable[str]) -> list[str]:
    """The local queues of a store that names and patterns name, sorted.

    A pattern leaves out temporary dynamic queues, transmission queues, the dead-letter queue and, unless it begins with
    SYSTEM., queues whose names begin so: they belong to other programs. Only their full names select them.

    Raises WrongQueueType for the name of an alias: it and its queue would be two readers of the same messages.
    """
    patterns, dead = list(patterns), qm.admin.manager_attributes().dead_letter_queue
    found = []
    for one in qm.queues():
        if one.name in patterns and one.type != "local":
            raise WrongQueueType(
                f"{one.name} is not a local queue but of type {one.type}: a read of several queues names local ones"
                + (f", here {one.base_queue}" if one.type == "alias" else "")
            )
        if any(_names(pattern, one, dead) for pattern in patterns):
            found.append(one.name)
    return found


def _names(pattern: str, one: QueueAttributes, dead: str) -> bool:
    if one.type != "local" or not fits(pattern, one.name):
        return False
    if pattern == one.name:
        return True
    belongs_to_others = one.definition_type == "temporary_dynamic" or one.usage == "transmission" or one.name == dead
    return not belongs_to_others and (pattern.startswith(SYSTEM) or not one.name.startswith(SYSTEM))


def check_source_queues(options: SourceOptions) -> None:
    """Checks, before a query begins, that all stores open, and that each name exists in one of them.

    Raises StoreError; UnknownQueue, with similar names; WrongQueueType.
    """
    existing: set[str] = set()
    chosen: set[str] = set()
    for url in options.stores:
        with store_for_task(url, options.application, is_check=True) as qm:
            existing |= {one.name for one in qm.queues() if one.type == "local"}
            chosen.update(chosen_of(qm, options.queues))
    _check_names(options, existing, chosen)


def _check_names(options: SourceOptions, existing: Iterable[str], chosen: AbstractSet[str]) -> None:
    for name in options.queues:
        if not chosen or ("*" not in name and name not in chosen):
            raise _nothing(options, existing, name)


def _nothing(options: SourceOptions, existing: Iterable[str], name: str = "") -> UnknownQueue:
    named = name or ",".join(options.queues)
    near = nearest_names(named.rstrip("*."), existing)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    where = options.stores[0] if len(options.stores) == 1 else f"any of {len(options.stores)} stores"
    return UnknownQueue(f"option queue: no local queue of {where} is named {named}{hint}", queue=named)


# --- sharing


def fair_shares(waiting: Mapping[str, int], most: int, served: Mapping[str, int]) -> dict[str, int]:
    """Divides the limit of a micro-batch among queues, so that a deep queue never keeps the others out.

    Each gets an equal share; the unused part of a shallow queue's share goes to deeper ones. If the limit is smaller
    than the number of sources, those come first that were served longest ago, with one message each.

    Args:
        waiting: how many messages each has, at least 1.
        served: a number for each that grows with its last turn.
    """
    first = sorted(waiting, key=lambda key: (served.get(key, 0), waiting[key], key))[:most]
    shares, left = {}, most
    for index, key in enumerate(sorted(first, key=lambda key: (waiting[key], key))):
        shares[key] = max(1, min(waiting[key], left // (len(first) - index)))
        left -= shares[key]
    return shares


def slices_of(sizes: Mapping[str, int], partitions: int) -> dict[str, int]:
    """Into how many slices to cut each queue so that all together make about `partitions`; at least 1."""
    counted = {key: max(1, size) for key, size in sizes.items()}
    total = sum(counted.values())
    return {key: max(1, partitions * size // total) for key, size in counted.items()}


def packed(parts: Iterable[tuple[SourceQueue, InputPartition, int]], partitions: int) -> list[SourceQueuePartition]:
    """Divides the parts of several queues, with their sizes, among at most `partitions` tasks of similar size.

    The same parts are always divided in the same way. Parts of one queue that share a task keep their order.
    """
    all_parts = list(parts)
    tasks: list[list[int]] = [[] for _ in range(min(partitions, len(all_parts)))]
    loads = [0] * len(tasks)
    for index in sorted(range(len(all_parts)), key=lambda index: (-all_parts[index][2], index)):
        least = loads.index(min(loads))
        tasks[least].append(index)
        loads[least] += max(1, all_parts[index][2])
    return [SourceQueuePartition([all_parts[index][:2] for index in sorted(task)]) for task in tasks]


# --- rows


def rows_of(
    partition: InputPartition,
    schema: pa.Schema,
    read: Callable[[QueueManager, SourceQueue, Any], Iterator[pa.RecordBatch]],
    application: str = "",
) -> Iterator[pa.RecordBatch]:
    """Reads the parts of a task, one queue after the other, in the requested columns.

    Args:
        read: reads one part, with the connection to its store.
        application: the application of the connection.
    """
    assert isinstance(partition, SourceQueuePartition)
    for url, parts in groupby(partition.parts, key=lambda one: one[0].url):
        with store_for_task(url, application) as qm:
            for source, part in parts:
                check_same(qm, source.queue, source.made)
                for batch in read(qm, source, part):
                    yield _fitted(batch, schema, url)


def _fitted(batch: pa.RecordBatch, schema: pa.Schema, url: str) -> pa.RecordBatch:
    """The columns that Spark asked for, `store` among them if the query reads several queues."""
    if STORE in schema.names:
        batch = batch.append_column(STORE, pa.repeat(pa.scalar(url, pa.string()), batch.num_rows))
    return batch.select(schema.names).cast(schema) if batch.schema != schema else batch
