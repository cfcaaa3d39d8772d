"""Operations on channels: define, alter, delete, list; start, stop, reset, resolve, ping (C-6)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Literal

from ...client.manager import QueueManager
from ...errors import (
    ArgumentError,
    Fenced,
    NotAuthorized,
    NotFound,
    ObjectExists,
    Reason,
    SequenceError,
    StoreError,
    UnknownObject,
    UnknownQueue,
    bad_argument,
)
from ...model.attribute import COUNT_MAX, names_in
from ...model.channel_attributes import SYSTEM_CHANNELS, ChannelAttributes, ChannelType, altered, define
from ...model.options import check_whole
from ...model.parameters import Choice
from ...rules.channels import COLLECTS, collecting
from ...stores.seam.channel_records import Carrying, ChannelNow, Received
from ...stores.seam.definitions import CHANNEL, as_text, channel_of
from .connecting import connection_of
from .sides import (
    Connect,
    Receiver,
    Sending,
    bound,
    collecting_channel,
    digest,
    last_of,
    open_receiver,
    reach,
    reach_home,
)

StopMode = Literal["quiesce", "force", "terminate"]
STOP_MODES = ("quiesce", "force", "terminate")
Action = Literal["commit", "back_out"]


def define_channel(qm: QueueManager, name: str, type: ChannelType = "sender", **attributes: Any) -> ChannelAttributes:
    """Defines a channel. Raises ArgumentError; ObjectExists 2100."""
    made = define(name, type, **attributes)
    with qm._session:
        qm._store.define_object(CHANNEL, name, as_text(made))
    return made


def alter_channel(qm: QueueManager, name: str, **changes: Any) -> ChannelAttributes:
    """Changes attributes; a running channel uses them from its next run on.

    Raises UnknownObject 2085; ArgumentError; ObjectInUse 2042 for another transmission queue while the channel runs or
    has a batch in doubt.
    """
    if (default := channel(qm, name)) is SYSTEM_CHANNELS.get(name):
        with contextlib.suppress(ObjectExists):
            define_channel(qm, name, default.type)
    with qm._session:
        row = qm._store.object(CHANNEL, name)
        there = channel_of(row.attributes)
        made = altered(there, **changes)
        if made.transmission_queue != there.transmission_queue:
            _check_free(qm, there)
        qm._store.alter_object(CHANNEL, name, row.attributes, as_text(made))
    return made


def delete_channel(qm: QueueManager, name: str) -> None:
    """Deletes a definition. Raises UnknownObject 2085; ObjectInUse 2042 if the channel runs or has a batch in doubt."""
    with qm._session:
        there = channel_of(qm._store.object(CHANNEL, name).attributes)
        _check_free(qm, there)
        qm._store.delete_object(CHANNEL, name)


def _check_free(qm: QueueManager, there: ChannelAttributes) -> None:
    """The store checks this again with the change; a server of 0.2.0 does not."""
    (now,) = qm._store.channels([(there.name, there.transmission_queue)])
    now.check_free()


def channel(qm: QueueManager, name: str) -> ChannelAttributes:
    """One channel, also SYSTEM.DEF.SENDER and SYSTEM.DEF.RECEIVER. Raises UnknownObject 2085 with the most similar
    names.
    """
    with qm._session:
        try:
            return channel_of(qm._store.object(CHANNEL, name).attributes)
        except UnknownObject:
            if name in SYSTEM_CHANNELS:
                return SYSTEM_CHANNELS[name]
            raise


def channels(qm: QueueManager) -> list[ChannelAttributes]:
    """All channels, by name."""
    with qm._session:
        return [channel_of(row.attributes) for row in qm._store.objects(CHANNEL)]


def status(qm: QueueManager) -> list[ChannelNow]:
    """The status of the sender channels, by name: DISPLAY CHSTATUS.

    They are followed by channels by which other queue managers collect here, NAME:MANAGER, and by home-server queues.
    """
    senders = [(one.name, one.transmission_queue) for one in channels(qm) if one.type == "sender"]
    with qm._session:
        me, queues = qm._store.manager().name, qm._store.queues()
        collected = [(collecting(one.name, to), to) for one in queues for to in names_in(one.targets)]
        homes = [(collecting(one.name, me), one.name) for one in queues if one.type == "home_server"]
        return qm._store.channels([*senders, *collected, *homes])


def other_ends(qm: QueueManager) -> dict[str, str]:
    """The destination of the messages on each transmission queue, a queue manager; "" if there are several.

    A transmission queue that no remote queue names has the name of its queue manager.
    """
    found: dict[str, str] = {}
    for each in qm.queues():
        if each.transmission_queue:
            name = each.remote_manager
            found[each.transmission_queue] = name if found.get(each.transmission_queue, name) == name else ""
    return found


def now_of(qm: QueueManager, definition: ChannelAttributes) -> ChannelNow:
    """The status of one sender channel."""
    with qm._session:
        return qm._store.channels([(definition.name, definition.transmission_queue)])[0]


def received(qm: QueueManager) -> list[Received]:
    """The channels that have sent messages to this queue manager, with the last batch of each."""
    with qm._session:
        return qm._store.received()


def identifier(qm: QueueManager) -> str:
    """Returns the identifier of this store, which the definition of a receiver elsewhere gives as its `sender`."""
    with qm._session:
        return qm._session.services.store.identifier()


def start_channel(qm: QueueManager, name: str) -> None:
    """Lets a stopped channel run again: a program that waits to run it then does.

    The name may also be the name of a channel by which another queue manager collects here, QUEUE:MANAGER.

    Raises UnknownObject 2085; UnknownQueue 2085, there is no such store-and-forward queue, or it has no such target.
    """
    _sender_here(qm, name)
    with qm._session:
        qm._store.start_channel(name)


def stop_channel(qm: QueueManager, name: str, mode: StopMode = "quiesce") -> None:
    """Ends the run of a channel; no other begins until the channel is started.

    Args:
        mode: "quiesce": end after the current batch. "force": end at the next call; a batch may stay in doubt.
            "terminate": the same, without waiting for the program that runs the channel.

    The name may also be the name of a channel by which another queue manager collects here, QUEUE:MANAGER.

    Raises ArgumentError; otherwise as `start_channel`.
    """
    Choice(STOP_MODES).check("mode", mode)
    definition = _sender_here(qm, name)
    with qm._session:
        qm._store.stop_channel(definition.transmission_queue, name, mode)


def ping_channel(qm: QueueManager, name: str, connects: Connect = open_receiver) -> str:
    """Asks the other side of a channel for its name.

    Raises UnknownObject 2085 if its address of MQ has no connection; StoreError and its subclasses, with `channel`, if
    the other side cannot be reached.
    """
    definition = _sender(qm, name)
    with _at_the_other_side(name), contextlib.closing(reach(qm, definition, connects)) as receiver:
        return receiver.manager


@contextlib.contextmanager
def _at_the_other_side(name: str) -> Iterator[None]:
    """Adds the name of the channel to errors of the other side's store, so that callers can tell them from their
    own.
    """
    try:
        yield
    except StoreError as error:
        error.data["channel"] = name
        raise


def reset_channel(qm: QueueManager, name: str, number: int = 1, connects: Connect = open_receiver) -> None:
    """Sets the number of the next batch of a channel: RESET CHANNEL SEQNUM.

    For a sender channel the other side, which need not be reachable now, adopts the number when the channel next runs.
    For a receiver, the number of every sender that has used the channel is set only here. The name may also be that
    of a home-server queue: its number is set at the home server, and this side adopts it with the next collection.

    Raises QueueCondition 9032 if a batch is in doubt: resolve it first; ObjectInUse 2042 if the channel runs;
    StoreError if a home server cannot be reached; Fenced if the channel began a run, or brought a batch, just while the
    number of a receiver was set: set it again.
    """
    check_whole("number", number, 1, COUNT_MAX)
    if not _is_home(qm, name) and channel(qm, name).type == "receiver":
        for one in received(qm):
            if one.sender.channel == name:
                with qm._session:
                    qm._store.reset_received(one.sender, one.epoch, number - 1, last_of(one))
        return
    with _operating(qm, name, connects) as (sending, _, _):
        sender = sending.definition.name
        sending.call(lambda store, handle: store.reset_channel(handle, sender, number - 1))


def resolve_channel(
    qm: QueueManager, name: str, action: Action | None = None, *, force: bool = False, connects: Connect = open_receiver
) -> Action:
    """Confirms the batch in doubt if the receiver has it, otherwise returns it to its place: RESOLVE CHANNEL.

    The name may also be the name of a home-server queue.

    Args:
        action: the expected action; it must agree with the receiver.
        force: do `action` even if the receiver cannot be asked, or does not know the batch. Backing out duplicates
            messages that the receiver has; committing loses messages that it lacks.

    Returns: the action that was done.

    Raises NotFound if no batch is in doubt; SequenceError if the receiver does not know the batch; StoreError if it
    cannot be reached; ArgumentError if the receiver requires the other action.
    """
    if action not in (None, "commit", "back_out"):
        raise bad_argument("action", action, "one of: commit, back_out")
    if force and action is None:
        raise bad_argument("action", action, "commit or back_out if force is given")
    with _operating(qm, name, connects) as (sending, carrying, reach_receiver):
        if not carrying.is_open:
            raise NotFound(f"channel {name} has no batch in doubt", channel=name)
        try:
            with _at_the_other_side(name), contextlib.closing(reach_receiver()) as receiver:
                said = _asked(sending, carrying, receiver)
        except (StoreError, SequenceError, UnknownObject, NotAuthorized):
            if not force or action is None:
                raise
            said = action
        if action not in (None, said):
            raise ArgumentError(
                f"the receiver of channel {name} requires {said}, not {action}: "
                + ("it has put the batch" if said == "commit" else "it has not put the batch"),
                reason=Reason.CHANNEL_IN_DOUBT,
                argument="action",
                value=action,
                allowed=said,
            )
        channel = sending.definition.name
        sending.call(lambda store, handle: store.resolve_channel(handle, channel, said))
    return said


def _asked(sending: Sending, carrying: Carrying, receiver: Receiver) -> Action:
    """The action for the open batch, from the receiver's record; also fences earlier runs there."""
    last = bound(sending, carrying, receiver)
    if last.number == carrying.number:
        return "back_out"
    batch = sending.open_batch(carrying)
    if last.number == carrying.number + 1 and last.digest == digest(batch):
        return "commit"
    raise SequenceError(
        f"channel {carrying.sender.channel} has confirmed batch {carrying.number}, and the receiver's last "
        f"one is {last.number}, which is not the one in doubt: one side was restored to an older state",
        channel=carrying.sender.channel,
        number=carrying.number + 1,
        expected=last.number + 1,
    )


def _sender(qm: QueueManager, name: str) -> ChannelAttributes:
    found = channel(qm, name)
    if found.type != "sender":
        raise bad_argument("name", name, "a sender channel: a receiver is run from its sender's side")
    if not found.transmission_queue:
        raise bad_argument(
            "name", name, "a channel with a transmission queue: this one only has the defaults of others"
        )
    return found


def _sender_here(qm: QueueManager, name: str) -> ChannelAttributes:
    """The definition of a sender channel, or the channel by which another queue manager collects here."""
    queue, colon, manager = name.partition(COLLECTS)
    if not colon:
        return _sender(qm, name)
    if manager not in names_in(qm.attributes(queue).targets):
        text = f"{queue} is not a store-and-forward queue for queue manager {manager}"
        raise UnknownQueue(text, queue=queue, nearest=[])
    return collecting_channel(manager, queue)


@contextlib.contextmanager
def _operating(
    qm: QueueManager, name: str, connects: Connect
) -> Iterator[tuple[Sending, Carrying, Callable[[], Receiver]]]:
    """Holds the channel for an operator, so that no program runs it, then releases it. Raises ObjectInUse 2042."""
    with _sender_of(qm, name, connects) as (own, definition, reach_receiver), Sending(own, definition) as sending:
        carrying = sending.take(operates=True)
        before = None if COLLECTS in definition.name else now_of(own, definition)  # a home server need not tell
        try:
            yield sending, carrying, reach_receiver
        finally:
            reason, error = (0, "") if before is None else (before.reason, before.error)
            with contextlib.suppress(Fenced):  # its connection was made again, so it holds the channel no longer
                sending.note("inactive", reason=reason, error=error)


@contextlib.contextmanager
def _sender_of(
    qm: QueueManager, name: str, connects: Connect
) -> Iterator[tuple[QueueManager, ChannelAttributes, Callable[[], Receiver]]]:
    """Connects to the sender's side of a channel, or of a home-server queue. Yields the connection, the channel, and a
    function that connects to the receiver's side.
    """
    if _is_home(qm, name):
        with _at_the_other_side(name):
            home_server = reach_home(qm, name, connects)
        with contextlib.closing(home_server) as home:
            definition = collecting_channel(qm.admin.manager_attributes().name, name)
            yield home.connection, definition, lambda: Receiver(qm.connect())
        return
    definition = _sender(qm, name)

    def reach_receiver() -> Receiver:
        connection_of(qm, definition)
        return reach(qm, definition, connects)

    with qm.connect() as own:
        yield own, definition, reach_receiver


def _is_home(qm: QueueManager, name: str) -> bool:
    return any((one.name, one.type) == (name, "home_server") for one in qm.queues())
