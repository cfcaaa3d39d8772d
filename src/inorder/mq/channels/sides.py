"""The two sides of a channel's run: the transmission queue here, and the store of the receiver."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from types import TracebackType
from typing import Any, TypeVar

from ...client.manager import QueueManager, connect_to
from ...client.owners import check_user
from ...errors import Fenced, NotAuthorized, Reason, SequenceError, StoreError, UnknownObject, WrongQueueType
from ...model.attribute import is_name
from ...model.attributes import QueueAttributes
from ...model.channel_attributes import ChannelAttributes
from ...model.fields import EXPIRY_SECONDS_MIN, NONE
from ...model.message import Message, UniqueId
from ...model.options import GetOptions
from ...model.properties import Properties
from ...rules.channels import CHANNEL, Last, collecting
from ...stores.open import locate
from ...stores.seam.bulk_page import BulkPage
from ...stores.seam.channel_records import BODIES_MAX, Carrying, NextBatch, Received
from ...stores.seam.definitions import Connection, channel_of
from ...stores.seam.protocol import Store
from ...stores.seam.records import BULK_COLUMNS, Claim, Claimer, ClaimRequest, Slice
from .connecting import connection, connection_of

T = TypeVar("T")
KILOBYTE = 1000
BATCH_BYTES_MAX = BODIES_MAX // 2
"""Bytes of bodies in a batch of several messages: a server takes it, with their descriptors, in one call."""


def digest(messages: Iterable[Message]) -> bytes:
    """Distinguishes batches with the same number: a hash of the unique ids of their messages, in order (C-1)."""
    uids = [one.uid for one in messages if one.uid is not None]
    return hashlib.sha256("\n".join(f"{origin} {number}" for origin, number in uids).encode()).digest()


class Sending:
    """The sender's side: a handle for the transmission queue, and the channel's claims."""

    def __init__(self, manager: QueueManager, definition: ChannelAttributes) -> None:
        self.manager, self.definition = manager, definition
        self.queue = manager.open(definition.transmission_queue, input="shared", browse=True)
        self.options = GetOptions(read_order=definition.read_order)

    def __enter__(self) -> Sending:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.queue.close()

    def call(self, act: Callable[[Store, int], T]) -> T:
        """Makes a call on the store, with this side's handle."""
        with self.queue.internals.session:
            store, handle = self.queue.internals.opened_for("input")
            return act(store, handle)

    def now(self) -> float:
        """This program's time, seconds since 1970: a store elsewhere may have another one."""
        return self.manager._session.services.now()

    def take(self, *, operates: bool = False) -> Carrying:
        return self.call(lambda store, handle: store.take_channel(handle, self.definition.name, operates=operates))

    def note(self, status: str, *, reason: int = 0, error: str = "", short: int = 0, long: int = 0) -> str:
        """Records the status of the channel; returns how an operator has stopped it, or ""."""
        return self.call(
            lambda store, handle: store.note_channel(
                handle, self.definition.name, status, reason=reason, error=error, short_retries=short, long_retries=long
            )
        )

    def _request(self, handle: int, carrying: Carrying, done: int) -> ClaimRequest:
        claimer = Claimer(handle, CHANNEL + self.definition.name, carrying.epoch)
        most_bytes = min(self.definition.batch_kilobytes * KILOBYTE, BATCH_BYTES_MAX)
        return ClaimRequest(claimer, done, self.options, self.definition.batch_size, most_bytes)

    def next(self, carrying: Carrying, done: int, *, fast: bool = False) -> NextBatch:
        """Confirms all claims up to `done`, and gets the next batch, or the open one."""
        name = self.definition.name
        return self.call(lambda store, handle: store.next_batch(self._request(handle, carrying, done), name, fast=fast))

    def confirm(self, carrying: Carrying, done: int) -> int:
        return self.call(
            lambda store, handle: store.confirm_batch(self._request(handle, carrying, done), self.definition.name)
        )

    def read(self, carrying: Carrying, claim: Claim) -> list[Message]:
        """The messages of a batch; the time since the claim has reduced their expiry (C-4)."""
        part, messages = Slice(claim.number, 1, claim.messages, claim.delivered), list[Message]()
        while len(messages) < claim.messages:
            messages += messages_of(self._page(carrying, part, len(messages) + 1))
        return messages

    def _page(self, carrying: Carrying, part: Slice, first: int) -> BulkPage:
        return self.call(
            lambda store, handle: store.read_claim(self._request(handle, carrying, 0).claimer, part, first)
        )

    def check(self, carrying: Carrying) -> None:
        """Raises Fenced if another run has begun since."""
        self.call(
            lambda store, handle: store.plan_claims(
                self._request(handle, carrying, 0).claimer, carrying.settled, carrying.settled, 1
            )
        )

    def open_batch(self, carrying: Carrying) -> list[Message]:
        """The messages of the open batch, also of a stopped channel."""
        claim = self.call(lambda store, handle: store.claim(self._request(handle, carrying, carrying.settled)))
        return [] if claim is None else self.read(carrying, claim)


def messages_of(page: BulkPage) -> list[Message]:
    """The rows of a claim as messages."""
    made: dict[str, Iterable[Any]] = {
        "expiry": [math.inf if left is None else left for left in page.column("expiry")],
        "persistent": map(bool, page.column("persistent")),
        "properties": map(Properties.from_text, page.column("properties")),
        "uid": map(UniqueId, page.column("uid_origin"), page.column("uid_number")),
        "backout_count": repeat(0, len(page)),  # it begins again
    }
    columns = [made[name] if name in made else _column(page, name) for name in Message.FIELDS]
    return Message.from_rows(zip(*columns, strict=True))


def _column(page: BulkPage, name: str) -> Iterable[Any]:
    if name not in BULK_COLUMNS:
        return repeat(Message.FIELDS[name].default, len(page))
    none = NONE.get(name)
    return page.column(name) if none is None else [none if value is None else value for value in page.column(name)]


def aged(messages: Sequence[Message], seconds: float) -> Sequence[Message]:
    """The messages this many seconds later, which reduces their expiry (C-4)."""
    if all(one.expiry is None for one in messages):
        return messages
    return [
        one if one.expiry is None else one.with_values(expiry=max(EXPIRY_SECONDS_MIN, one.expiry - seconds))
        for one in messages
    ]


class Receiver:
    """The receiver's side: a connection to its store. For a home-server queue it is the sender's side.

    Attributes:
        connection: the connection.
    """

    def __init__(self, manager: QueueManager) -> None:
        self.connection = manager

    def call(self, act: Callable[[Store], T]) -> T:
        """Makes a call on that store."""
        with self.connection._session:
            return act(self.connection._store)

    @property
    def manager(self) -> str:
        """Asks for the name of that queue manager."""
        return self.call(lambda store: store.manager().name)

    def check(self) -> None:
        """Raises StoreError and its subclasses if that store does not answer."""
        self.call(lambda store: store.manager())

    @property
    def user(self) -> str | None:
        """The user as whom that server authenticates this process; None: this process opens the store itself."""
        return getattr(self.connection._store, "user", None)

    def definition(self, name: str) -> ChannelAttributes:
        """The channel's attributes in its definition there; the defaults if it has none."""
        try:
            found = self.call(lambda store: store.object("channel", name))
        except UnknownObject:
            return ChannelAttributes(name=name, type="receiver")
        there = channel_of(found.attributes)
        return there if there.type == "receiver" else ChannelAttributes(name=name, type="receiver")

    def close(self) -> None:
        self.connection.close()


def bound(sending: Sending, carrying: Carrying, receiver: Receiver) -> Last:
    """The last batch that the receiver has; also fences earlier runs there.

    Raises Fenced if another run has taken the channel since; SequenceError if none has, but the receiver knows a later
    run.
    """
    try:
        known = receiver.call(lambda store: store.bind_channel(carrying.sender, carrying.epoch))
    except Fenced as later:
        sending.check(carrying)
        raise SequenceError(
            f"the receiver of channel {carrying.sender.channel} knows a later run of it: this side was restored to an "
            "older state; find out which messages the receiver already has, then reset the channel",
            channel=carrying.sender.channel,
            number=carrying.number + 1,
            expected=None,
        ) from later
    return last_of(known)


def last_of(known: Received) -> Last:
    """The last batch in a receiver's record."""
    return Last(known.number, known.epoch, known.digest)


def reset(sending: Sending, carrying: Carrying, receiver: Receiver) -> None:
    """Gives the receiver the number that an operator has set; also fences earlier runs there.

    It reads the receiver's record before it looks whether this run is the latest: a later run changes the record.

    Raises Fenced if another run has taken the channel since.
    """
    try:
        seen = last_of(receiver.call(lambda store: store.bind_channel(carrying.sender, carrying.epoch, resets=True)))
    except Fenced:  # a server of 0.2.0, which knows a run with a higher epoch, and does not check
        seen = None
    sending.check(carrying)
    receiver.call(lambda store: store.reset_received(carrying.sender, carrying.epoch, carrying.number, seen))


Connect = Callable[[str], Receiver]
"""Connects to the store at a path or URL."""


def open_receiver(location: str) -> Receiver:
    """Connects to the other side's store, which must exist. Raises StoreError and its subclasses."""
    where = locate(location, named_by_program=False)
    if not where.is_there("channel"):
        lack = f", and no connection {location} is defined: 'inorder connection define {location} LOCATION' defines one"
        raise StoreError(f"there is no store at {where}{lack if is_name(location) else ''}", path=str(where))
    return Receiver(connect_to(where, program="channel"))


def reach(qm: QueueManager, definition: ChannelAttributes, connects: Connect) -> Receiver:
    """Connects to the other side of a channel, by its connection.

    Raises UnknownObject 2085, its address of MQ has no connection; NotAuthorized 2035, the server authenticates
    this side as another user than the connection names; StoreError and its subclasses.
    """
    return reach_by(connection_of(qm, definition), connects)


def reach_by(connection: Connection, connects: Connect) -> Receiver:
    """Connects to a store. Raises: as `reach`, if there is a connection."""
    receiver = connects(connection.location)
    try:
        check_user(connection.name, connection.location, connection.user, receiver.user)
    except NotAuthorized:
        receiver.close()
        raise
    return receiver


def home_server(qm: QueueManager, queue: str) -> QueueAttributes:
    """Returns the definition of a home-server queue. Raises UnknownQueue 2085; WrongQueueType 2043."""
    found = qm.attributes(queue)
    if found.type != "home_server":
        raise WrongQueueType(f"{queue} is a queue of type {found.type}: only a home-server queue collects", queue=queue)
    return found


def collecting_channel(manager: str, queue: str) -> ChannelAttributes:
    """Returns the channel by which a queue manager collects from a store-and-forward queue: it has no definition."""
    return ChannelAttributes(name=collecting(queue, manager), transmission_queue=manager)


def reach_home(qm: QueueManager, queue: str, connects: Connect) -> Receiver:
    """Connects to the home server of a home-server queue.

    Raises UnknownQueue 2085, UnknownObject 2085, the queue or its connection does not exist; WrongQueueType 2043, 2087,
    another queue manager answers there; otherwise as `reach`.
    """
    found = home_server(qm, queue)
    name = found.connection or found.remote_manager
    home = reach_by(connection(qm, name), connects)
    try:
        if home.manager != found.remote_manager:
            text = f"connection {name} leads to queue manager {home.manager}, not to {found.remote_manager}"
            raise WrongQueueType(text, reason=Reason.UNKNOWN_REMOTE_Q_MGR, queue=queue)
    except BaseException:
        home.close()
        raise
    return home
