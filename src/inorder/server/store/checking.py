"""Checks each call of a connection against `rules.store_verbs`: whether its user may do this with these objects.

A connection has one `Checker`, which knows the handles that it has opened. For each call the server

1. calls `check`, which raises NotAuthorized or returns the act for the log of acts;
2. makes the call with `filled` arguments, whose identity never comes from the client;
3. calls `note`, which keeps track of handles, and sends the part of the answer that `shown` returns.

The identity is an argument of each of them, because rights may change between two calls.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from ...errors import (
    ConnectionBroken,
    NotAuthorized,
    StoreDamaged,
    UnitExists,
    UnknownObject,
    UnknownQueue,
    bad_argument,
)
from ...model.attributes import QueueAttributes
from ...model.channel_attributes import ChannelAttributes
from ...model.message import UniqueId
from ...model.options import GetOptions, Match, OpenOptions
from ...model.process_attributes import ProcessAttributes
from ...mq.channels.connecting import Connection, MappedAddress, checked_address, checked_connection
from ...rules.authorities import MANAGER, Authority
from ...rules.channels import CHANNEL, COLLECTS, collects
from ...rules.lifecycle import Event
from ...rules.naming import Names
from ...rules.store_verbs import ACTS, EACH, FILLED_IN, OBJECT_KINDS, OTHERS, VERBS, deletes_queue, value_at
from ...stores.seam.channel_records import Sender
from ...stores.seam.definitions import as_text, channel_of, process_of, queue_of
from ...stores.seam.protocol import LocalStore
from ...stores.seam.records import Claimer, GetRequest, LockRequest, OneMessage, Opened, PutRequest, StageRequest
from ...stores.seam.tables import UnitKind
from ...stores.seam.views import LookRequest, MessageView, Unit, WorkerRecord
from ..calls import CONTEXT, DONE_TO
from ..identity import Identity

Arguments = Mapping[str, Any]
Definition = QueueAttributes | ChannelAttributes | ProcessAttributes | Connection | MappedAddress

GENERATED: Final = "AMQ."  # the beginning of the names that the queue manager makes up
ACT_LENGTH_MAX: Final = 256
PAGE_MESSAGES: Final = 256  # of a browse, at once
GOT_MESSAGES: Final = 65_536  # that one call gets or locks
GOT_BYTES: Final = 64 * 2**20  # of their bodies
LOOK_MESSAGES: Final = 1_000  # of a listing, at once


class OpenedFor(NamedTuple):
    """A handle of the connection.

    Args:
        name: the queue whose authority counts: as the client named it, for a model queue the model; for a queue of
            another queue manager the transmission queue.
        queue: the local queue to which the name leads.
        made: whether the open made the queue, from a model.
    """

    name: str
    queue: str
    made: bool


class ActToLog(NamedTuple):
    """An act for the log of acts. Attributes: act: its name; queue: the queue that it concerns; "": the queue
    manager.
    """

    act: str
    queue: str


class Checker:
    """The checks of one connection.

    Args:
        owner: the connection's number in the store.

    Attributes:
        handles: the open handles of the connection, by number.
        reserved: the numbers of the unique ids that were reserved for the connection last.
    """

    def __init__(self, store: LocalStore, owner: int) -> None:
        self._store, self._owner = store, owner
        self.handles: dict[int, OpenedFor] = {}
        self.reserved = range(0)
        self._claiming: dict[tuple[int, str], int] = {}  # epochs known to belong to the user

    # --- before a call

    def check(self, verb: str, arguments: Arguments, identity: Identity) -> ActToLog | None:
        """Checks whether the user may make a call.

        Args:
            arguments: by their names, without those of `FILLED_IN`.

        Returns: the act for the log of acts; None: the call is not logged.

        Raises: NotAuthorized 2035; ConnectionBroken 2009, if the connection does not have the handle; UnitExists, if
        there is a lease of the name; ArgumentError, for a definition that is not valid; the errors of the store.
        """
        if verb not in VERBS:
            raise self._refused(identity, "administer", MANAGER, f"no client can call {verb}")
        row = VERBS[verb]
        self.demand(verb, arguments, identity)
        is_of_others = False
        for word in row.also:
            if word in CHECKS:
                is_of_others |= bool(CHECKS[word](self, arguments, identity))
        if verb not in ACTS or (not is_of_others and not OTHERS.isdisjoint(row.also)):
            return None
        act, _, on = ACTS[verb].partition(" on ")
        return ActToLog(act.format(**arguments)[:ACT_LENGTH_MAX], self._queue(arguments, on) if on else MANAGER)

    def demand(self, verb: str, arguments: Arguments, identity: Identity) -> None:
        """Checks only the authorities of a call, without using the store. Raises: NotAuthorized 2035;
        ConnectionBroken.
        """
        row = VERBS[verb]
        queue = MANAGER if row.of in ("", EACH) else self._queue(arguments, row.of)
        if row.of != EACH:
            self._demand_all(row.asks, arguments, queue, identity)

    def demand_watch(self, handle: int, identity: Identity) -> None:
        """Checks whether the user may be told of changes of a handle's queue. Raises: as `demand`."""
        queue = self._handle(handle).name
        if not identity.may("browse", queue):
            self._demand("get", queue, identity)

    def _queue(self, arguments: Arguments, path: str) -> str:
        """The queue to which a path leads. Raises: ConnectionBroken, if the connection has no such handle."""
        found = value_at(arguments, path)
        if path.endswith("handle"):
            return self._handle(found).name
        return self._named(str(found))

    def _named(self, queue: str) -> str:
        """The name whose authority counts for a queue: the model's, if the connection made it from one."""
        return next((one.name for one in self.handles.values() if one.made and one.queue == queue), queue)

    def _is_here(self, arguments: Arguments) -> bool:
        """Whether an open is for a queue of this queue manager."""
        manager = arguments.get("manager") or ""
        return not manager or manager == self._store.manager().name

    def _handle(self, number: int) -> OpenedFor:
        opened = self.handles.get(number)
        if opened is None:
            raise ConnectionBroken("the connection of this handle was lost: connect again")
        return opened

    def _demand_all(self, asks: str, arguments: Arguments, queue: str, identity: Identity) -> None:
        if asks == "any":
            if not identity.may_see(queue):
                raise self._refused(identity, "inquire", queue)
        elif asks == "carries":
            self._demand("get", queue, identity)
            if not self._collects(arguments["channel"], queue):
                self._demand("control", queue, identity)
        elif asks == "uses":
            self._demand_uses(arguments, queue, identity)
        elif asks == "seen":
            if arguments["kind"] != "channel" or self.receiver(arguments["name"]).user != identity.name:
                self._demand("display", queue, identity)
        else:
            for one in WORDS[asks](arguments) if asks in WORDS else cast(list[Authority], asks.split()):
                self._demand(one, queue, identity)

    def _demand(self, authority: Authority, queue: str, identity: Identity, why: str = "") -> None:
        if not identity.may(authority, queue):
            raise self._refused(identity, authority, queue, why)

    def _refused(self, identity: Identity, authority: Authority, queue: str, why: str = "") -> NotAuthorized:
        what = queue or f"queue manager {self._store.manager().name}"
        text = f"user {identity.name} is not authorized to {DONE_TO[authority]} {what}" + (f": {why}" if why else "")
        return NotAuthorized(text, user=identity.name, authority=authority, queue=queue)

    def _demand_uses(self, arguments: Arguments, queue: str, identity: Identity) -> None:
        name = self._asked_of(queue, arguments.get("manager") or "")
        for one in _uses(arguments["options"]):
            self._demand(one, name, identity)

    def _asked_of(self, queue: str, manager: str) -> str:
        """The queue whose authority counts for an open, see `Names.asked_of`."""
        if not manager:
            return queue
        return Names(self._store.manager(), {one.name: one for one in self._store.queues()}).asked_of(queue, manager)

    # --- further checks: each returns True if the call concerns an object of another user

    def _control(self, identity: Identity, why: str) -> bool:
        self._demand("control", MANAGER, identity, why)
        return True

    def _check_model(self, arguments: Arguments, identity: Identity) -> None:
        if not self._is_here(arguments) or self._store.queue(arguments["queue"]).type != "model":
            return
        name = arguments.get("dynamic_name", "*")
        is_generated = name.endswith("*") and (name == "*" or name.startswith(GENERATED))
        for one in () if is_generated else _uses(arguments["options"]):
            self._demand(one, name, identity)

    def _check_made(self, arguments: Arguments, identity: Identity) -> bool:
        opened = self._handle(arguments["handle"])
        if not deletes_queue(arguments) or opened.made:
            return False
        self._demand("administer", MANAGER, identity, f"this handle did not make the queue {opened.name}")
        return True

    def _check_uid(self, arguments: Arguments, identity: Identity) -> None:
        request: PutRequest = arguments["request"]
        uid, opened = request.options.uid, self._handle(request.handle)
        if uid is None or uid.origin != self._store.manager().origin or identity.may("control"):
            return
        if uid.number not in self.reserved and self._view(opened.queue, uid) is None:
            why = f"the unique id {uid} is not on the queue, and was not reserved for this connection"
            raise self._refused(identity, "put", opened.name, why)

    def _view(self, queue: str, uid: UniqueId) -> MessageView | None:
        wanted = LookRequest(queue=queue, order="physical", after=None, most=1, preview=0, match=Match(uid=uid))
        return next(iter(self._store.look(wanted)), None)

    def _check_ids(self, arguments: Arguments, identity: Identity) -> bool:
        request = arguments.get("request")
        handle = arguments["handle"] if request is None else request.handle
        places = [arguments, _fields(request), _fields(getattr(request, "options", None))]
        is_of_others = False
        for kind, name in IDS:
            for number in {place[name] for place in places if place.get(name)}:
                if self._store.users_of(kind, str(number), handle) - {identity.name}:
                    is_of_others |= self._control(identity, f"{name} {number} belongs to another user")
        return is_of_others

    def _check_holder(self, arguments: Arguments, identity: Identity) -> bool:
        request: OneMessage = arguments["request"]
        if request.confirm_id or request.event not in CONFIRMS:
            return False
        found = self._view(self._handle(request.handle).queue, request.uid)
        holder = None if found is None else found.holder
        if holder is None or holder.program.user == identity.name:
            return False
        return self._control(identity, f"another user holds the message {request.uid}")

    def _check_controlled(self, _: Arguments, identity: Identity) -> bool:
        """With `control` the store looks among the units of all users; see `filled`."""
        return identity.may("control")

    def _check_new(self, arguments: Arguments, _: Identity) -> None:
        if self._store.users_of("lease", arguments["name"]):
            raise UnitExists("there is already a lease of this name", unit=arguments["name"])

    def _check_claims(self, arguments: Arguments, identity: Identity) -> bool:
        claimer: Claimer | None = value_at(arguments, "request.claimer") if "request" in arguments else None
        claimer = claimer or arguments.get("claimer")
        application = arguments["application"] if claimer is None else claimer.application
        if application.startswith(CHANNEL):
            if claimer is not None and self._collects(application[len(CHANNEL) :], self._handle(claimer.handle).queue):
                return False
            return self._control(identity, f"the application {application!r} is a channel")
        handle = arguments.get("handle") if claimer is None else claimer.handle
        if claimer is not None and not claimer.delivers:
            self._demand("control", MANAGER, identity, "delivers=False keeps reports from being made")
        if claimer is not None and self._claiming.get((claimer.handle, application)) == claimer.epoch:
            return False  # the user of an epoch does not change
        queue = self._local(arguments["queue"]) if handle is None else self._handle(handle).queue
        found = [one for one in self._store.claims() if (one.queue, one.application) == (queue, application)]
        if not found:  # the store refuses all but a beginning
            return False
        is_own = found[0].program.user == identity.name
        if not is_own or (claimer is not None and claimer.epoch > found[0].epoch):
            return self._control(identity, f"the claims of {application!r} on {queue} belong to another user")
        if claimer is not None and claimer.epoch == found[0].epoch:
            self._claiming[claimer.handle, application] = claimer.epoch
        return False

    def _collects(self, channel: str, queue: str) -> bool:
        """Whether this is the channel by which a queue manager collects from its transmission queue (K-3)."""
        return COLLECTS in channel and collects(channel, queue, self._found)

    def _found(self, name: str) -> QueueAttributes | None:
        with contextlib.suppress(UnknownQueue):
            return self._store.queue(name)
        return None

    def _local(self, name: str) -> str:
        """The local queue of an alias; any other name is returned as it is."""
        return self._store.queue(name).base_queue or name

    def _check_staging(self, arguments: Arguments, identity: Identity) -> bool:
        names: Iterable[str]
        if "request" in arguments:
            names = [arguments["request"].name]
        else:
            names = arguments["names"] if "names" in arguments else [one.name for one in arguments["stagings"]]
        is_of_others = False
        for name in names:
            if self._store.users_of("staging", name) - {identity.name}:
                is_of_others |= self._control(identity, f"the staging {name!r} belongs to another user")
        return is_of_others

    def _check_moves(self, arguments: Arguments, identity: Identity) -> None:
        if arguments.get("moves"):
            self._control(identity, "moves=True keeps reports from being made")

    def _check_kind(self, arguments: Arguments, identity: Identity) -> None:
        if arguments["kind"] not in OBJECT_KINDS:
            why = f"clients can only reach objects of the kinds {' and '.join(OBJECT_KINDS)}"
            raise self._refused(identity, "administer", MANAGER, why)

    def _check_receiver(self, arguments: Arguments, identity: Identity) -> None:
        sender: Sender = arguments["sender"] if "sender" in arguments else arguments["batch"].sender
        receiver = self.receiver(sender.channel)
        if not receiver.user:
            why = f"no definition of the receiver {sender.channel} names this user and the store {sender.identifier}"
            self._demand("administer", MANAGER, identity, why)
        elif (receiver.user, receiver.sender) != (identity.name, sender.identifier):
            why = f"the receiver {receiver.name} names another user, or another store than {sender.identifier}"
            raise self._refused(identity, "administer", MANAGER, why)

    def _check_works(self, arguments: Arguments, identity: Identity) -> None:
        record: WorkerRecord | None = arguments["record"]
        if record is not None:
            for task in record.tasks:
                self._demand("get", task.queue, identity)
            for schedule in record.schedules:
                self._demand("put", schedule.queue, identity)

    def receiver(self, name: str) -> ChannelAttributes:
        """The definition of a channel's receiver; the defaults if there is none."""
        with contextlib.suppress(UnknownObject):
            found = channel_of(self._store.object("channel", name).attributes)
            if found.type == "receiver":
                return found
        return ChannelAttributes(name=name, type="receiver")

    def _check_valid(self, arguments: Arguments, _: Identity) -> None:
        """Checks a definition, as the client should have: the store accepts any, and a wrong one would damage it."""
        kind, given = arguments.get("kind", "queue"), arguments["attributes"]
        try:
            found = READERS[kind](as_text(given) if kind == "queue" else given)
        except StoreDamaged as error:
            raise bad_argument("attributes", given, f"those of a {kind}") from error
        if found.name != arguments.get("name", found.name):
            raise bad_argument("attributes", given, f"those of the {kind} {arguments['name']}")

    # --- the call itself

    def filled(self, verb: str, arguments: Arguments, identity: Identity, *, leases_max: int) -> dict[str, Any]:
        """The arguments with which the server makes the call.

        They identify the user, and messages get the user's name, unless the user may control the queue manager.
        """
        has_control = identity.may("control")
        user = None if has_control and verb not in ("begin_lease", "receive") else identity.name
        values = {"owner": self._owner, "user": user, "most": leases_max}
        full = {**arguments, **{name: values[name] for name in FILLED_IN.get(verb, ())}}
        also = VERBS[verb].also
        if "context" in also and not has_control:
            full["request"] = _signed(arguments["request"])
        if "identity" in also and not has_control:
            full["message"] = arguments["message"].with_values(**identity.context)
        if "page" in also:
            name = "limit" if "limit" in arguments else "most"
            full[name] = min(arguments[name], PAGE_MESSAGES)
        if "bytes" in also:
            full["request"] = _limited(full["request"])
        if "staged" in also:
            full["request"] = full["request"]._replace(is_bounded=True)
        if "previews" in also:
            wanted: LookRequest = full["request"]
            most = min(wanted.most, LOOK_MESSAGES, max(1, GOT_BYTES // max(1, wanted.preview)))
            full["request"] = dataclasses.replace(wanted, most=most)
        return full

    def note(self, verb: str, arguments: Arguments, answer: Any) -> None:
        """Updates the connection's handles and reserved ids after a successful call."""
        if verb == "open":
            opened: Opened = answer
            name = self._named(arguments["queue"]) if self._is_here(arguments) else opened.queue
            self.handles[opened.handle] = OpenedFor(name, opened.queue, made=opened.name != arguments["queue"])
        elif verb == "close":
            del self.handles[arguments["handle"]]
        elif verb == "keep_handles":
            self.handles = {number: one for number, one in self.handles.items() if number in arguments["handles"]}
        elif verb == "reserve_numbers":
            self.reserved = range(answer.number, answer.number + arguments["count"])

    # --- the answer

    def shown(self, verb: str, arguments: Arguments, answer: Any, identity: Identity) -> Any:
        """The part of an answer that the user may see."""
        row = VERBS[verb]
        if row.of == EACH:
            authority = cast(Authority, row.asks)
            return [one for one in answer if self._is_shown(verb, one, authority, identity)]
        if "holders" in row.also and not identity.may("display", arguments["request"].queue):
            return [_without_holder(one, identity) for one in answer]
        return answer

    def _is_shown(self, verb: str, item: Any, authority: Authority, identity: Identity) -> bool:
        if verb in OWN and OWN[verb](item, self._owner, identity):
            return True
        return all(identity.may(authority, queue) for queue in ITEMS[verb](item) or [MANAGER])


# --- words of the table


def _uses(options: OpenOptions) -> list[Authority]:
    uses: list[tuple[Authority, object]] = [
        ("put", options.output),
        ("get", options.input),
        ("browse", options.browse),
    ]
    return [authority for authority, wanted in uses if wanted]


def _taking(arguments: Arguments) -> Sequence[Authority]:
    options: GetOptions = arguments["request"].options
    if options.browse is None:
        return ("get",)
    return ("browse", "get") if options.lock or options.mark_co_op or options.unmark_co_op else ("browse",)


WORDS: Final[Mapping[str, Callable[[Arguments], Sequence[Authority]]]] = {
    "taking": _taking,
    "event": lambda arguments: ("put",) if arguments["request"].event is Event.CONFIRM_PUT else ("get",),
    "by": lambda arguments: ("set",) if arguments["by"] == "set" else ("alter",),
}
CHECKS: Final[Mapping[str, Callable[[Checker, Arguments, Identity], bool | None]]] = {
    "model": Checker._check_model,
    "made": Checker._check_made,
    "uid": Checker._check_uid,
    "ids": Checker._check_ids,
    "holder": Checker._check_holder,
    "unit": Checker._check_controlled,
    "lease": Checker._check_controlled,
    "new": Checker._check_new,
    "claims": Checker._check_claims,
    "staging": Checker._check_staging,
    "moves": Checker._check_moves,
    "kind": Checker._check_kind,
    "receiver": Checker._check_receiver,
    "valid": Checker._check_valid,
    "works": Checker._check_works,
}
READERS: Final[Mapping[str, Callable[[str], Definition]]] = {
    "queue": queue_of,
    "channel": channel_of,
    "process": process_of,
    "connection": checked_connection,
    "address": checked_address,
}
CONFIRMS: Final = (Event.CONFIRM_PUT, Event.CONFIRM_GET)
IDS: Final[tuple[tuple[UnitKind, str], ...]] = (("confirm", "confirm_id"), ("lock", "lock_id"))


def _fields(of: object) -> Mapping[str, Any]:
    """The ids in a request or in its options."""
    return {name: getattr(of, name, 0) for _, name in IDS}


def _signed(request: PutRequest | StageRequest) -> PutRequest | StageRequest:
    """The request with the user and program of the connection in its messages."""
    if isinstance(request, StageRequest):
        return request._replace(columns={name: one for name, one in request.columns.items() if name not in CONTEXT})
    if request.options.context == "default":
        return request
    return request._replace(options=dataclasses.replace(request.options, context="default"))


def _limited(request: GetRequest | LockRequest) -> GetRequest | LockRequest:
    """The request with a limit on its answer. A group needs none: the rest of a large one is read in pages."""
    if isinstance(request, LockRequest):
        most = GOT_MESSAGES if request.most is None else min(request.most, GOT_MESSAGES)
        return dataclasses.replace(request, most=most, most_bytes=GOT_BYTES)
    most = request.most if request.one_group else min(request.most, GOT_MESSAGES)
    return request._replace(most=most, most_bytes=GOT_BYTES)


# --- items of answers


def _queues_of(unit: Unit) -> Sequence[str]:
    return unit.queues or ((unit.queue,) if unit.queue else ())


def _is_own_unit(unit: Any, owner: int, identity: Identity) -> bool:
    """Whether a unit is of this connection, or a named unit of this user. Programs of sessions have shortened names."""
    return bool(unit.connection == owner if unit.connection is not None else unit.program.user == identity.name)


ITEMS: Final[Mapping[str, Callable[[Any], Sequence[str]]]] = {
    "queues": lambda one: (one.name,),
    "overview": lambda one: (one.name,),
    "dropped": lambda one: (one.queue,),
    "units": _queues_of,
    "claims": lambda one: (one.queue,),
    "waits": lambda one: (one.queue,),
    "locks": lambda one: (one.queue,),
    "list_connections": lambda _: (),
}
"""The queues of an item, on which the user must have the authority; none: the queue manager."""
OWN: Final[Mapping[str, Callable[[Any, int, Identity], bool]]] = {
    "units": _is_own_unit,
    "locks": _is_own_unit,
    "claims": lambda one, _, identity: bool(one.program.user == identity.name),
    "waits": lambda one, owner, _: bool(one.connection == owner),
    "list_connections": lambda one, owner, _: bool(one.connection == owner),
}
"""Whether an item is the user's own."""


def _without_holder(view: MessageView, identity: Identity) -> MessageView:
    if view.holder is None or view.holder.program.user == identity.name:
        return view
    return dataclasses.replace(view, holder=None)
