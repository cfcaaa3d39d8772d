"""An actor of a scenario: a connection, its handles, and the calls for its steps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from inorder.client.manager import QueueManager
from inorder.client.queue import Queue
from inorder.errors import InorderError, NoMessageAvailable, OrderPending, Reason
from inorder.formats.property_text import read_property, write_property
from inorder.model.fields import GIVEN, PropertySets, ReportOptions
from inorder.model.kinds import Feedback, Report
from inorder.model.message import (
    IN_GROUP,
    LAST_IN_GROUP,
    LAST_SEGMENT,
    NO_ID,
    SEGMENT,
    SEGMENTATION_ALLOWED,
    Message,
    UniqueId,
)
from inorder.model.options import FOREVER, GetOptions, Match, OpenOptions, PutOptions
from inorder.model.parameters import Integer, Octets, Seconds, Switch, Text
from inorder.model.properties import PropertyValue
from inorder.rules.puts import PutResult
from inorder.work.periodic import Schedule

from .language import NO_PROPERTIES, ScenarioStep

FLAGS = {
    "in-group": IN_GROUP,
    "last-in-group": LAST_IN_GROUP,
    "segment": SEGMENT,
    "last-segment": LAST_SEGMENT,
    "segmentation": SEGMENTATION_ALLOWED,
}
MATCHES = {
    "match-id": "message_id",
    "match-correlation": "correlation_id",
    "match-group": "group_id",
    "match-seq": "sequence_number",
    "match-offset": "offset",
    "match-priority": "priority",
}
FEEDBACKS: Mapping[int, str] = {int(one): one.name.lower() for one in Feedback}
PAD = b"."
TEXTS = [name for name, field in GIVEN.items() if isinstance(field.kind, Text)]
PLAIN = (None, "no", NO_ID, NO_PROPERTIES, ("no", NO_ID))  # values that a failure does not show
FOR_BROWSE = OpenOptions(browse=True)
FOR_INPUT = OpenOptions(input="as_queue")
READ_ORDERS = frozenset({"strict", "relaxed", "notify"})


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """The outcome of a step, in the words of the table.

    Attributes:
        message: a message to be named once all puts are known: a call that waited may end before the put for which it
            waited.
    """

    kind: str
    value: str = ""
    items: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    ending: tuple[str, ...] = ()
    message: Message | None = None

    def __str__(self) -> str:
        head = f"[{' '.join(self.items)}] {self.value}".strip() if self.kind == "list" else self.value or self.kind
        if self.kind == "error":
            head = f"error={self.value} ({self.text})"
        facts = (f"{key}={_shown(value)}" for key, value in self.facts.items() if value not in PLAIN)
        return " ".join([head, *facts])


def _shown(value: object) -> str:
    if isinstance(value, tuple):  # a message's group: its status
        return str(value[0])
    return value.rstrip(b"\0").hex() if isinstance(value, bytes) else str(value)


def translate_error(error: InorderError) -> StepOutcome:
    """An error as an outcome: none, pending, or error with its number and name."""
    if isinstance(error, NoMessageAvailable | OrderPending):
        kind = "none" if isinstance(error, NoMessageAvailable) else "pending"
        return StepOutcome(kind, facts={key: error.data[key] for key in ("kind", "by") if key in error.data})
    return StepOutcome("error", str(error.reason.value), (error.reason_name,), text=str(error))


def number(value: str) -> int:
    """Reads a number from a table."""
    try:
        return int(value)
    except ValueError:
        raise ValueError(f"{value!r} is not a number") from None


def yes(name: str, value: str) -> bool:
    """Reads yes or no."""
    if value not in ("yes", "no"):
        raise ValueError(f"{name} takes yes or no, not {value!r}")
    return value == "yes"


def report_options(words: str) -> int:
    """Reads report options."""
    try:
        return sum(int(Report[one.upper().replace("-", "_")]) for one in words.split("+"))
    except KeyError as unknown:
        raise ValueError(f"there is no report option {unknown}") from None


def properties(words: str) -> dict[str, PropertyValue]:
    """Reads properties."""
    return dict(map(read_property, words.split()))


@dataclass(slots=True)
class NameTable:
    """The names that a scenario has used so far at a queue manager.

    Attributes:
        first_queue: the queue of steps that name none.
        ids: the values of $names, at all queue managers.
        uids: the actors that have put messages, by queue and name.
        read: the last message of each name that was read from a queue.
        puts: the puts under each number, at all queue managers.
        schedules: the schedules that every actor may put when they are due, by name.
        elsewhere: the queue manager, as the table calls it, of each synchronous remote queue.
    """

    first_queue: str = ""
    ids: dict[str, bytes | int | str] = field(default_factory=dict)
    uids: dict[tuple[str, str], list[tuple[str, UniqueId]]] = field(default_factory=dict)
    read: dict[tuple[str, str], UniqueId] = field(default_factory=dict)
    puts: dict[tuple[bytes, int, int], list[tuple[str, int]]] = field(default_factory=dict)
    schedules: dict[str, Schedule] = field(default_factory=dict)
    elsewhere: dict[str, str] = field(default_factory=dict)

    def queue(self, name: str | None = None) -> str:
        if not (name or self.first_queue):
            raise ValueError("no queue has been defined yet: begin with qm queue NAME")
        return name or self.first_queue

    def id_of(self, text: str) -> bytes:
        """Returns the bytes of an id in a table."""
        if not text.startswith("$"):
            return text.encode("ascii").ljust(len(NO_ID), b"\0")
        bound = self.bound(text)
        if not isinstance(bound, bytes):
            raise ValueError(f"{text} is not an id of a message or group")
        return bound

    def bound(self, text: str) -> bytes | int | str:
        """Returns the value of a $name."""
        if text not in self.ids:
            raise ValueError(f"{text} stands for nothing yet: an outcome binds it first")
        return self.ids[text]

    def lock_of(self, text: str | None) -> int:
        """A lock id: a name, a number, or a name and a difference, so that a table can give a wrong one."""
        if text is None:
            return 0
        if not text.startswith("$"):
            return number(text)
        bound = self.bound(text)
        if not isinstance(bound, int):
            raise ValueError(f"{text} is not a lock id")
        return bound

    def uid_of(self, actor: str, queue: str, name: str) -> UniqueId:
        """Returns the unique id of this actor's latest message with that body, else of the only such message.

        If no actor has put that body there, it is the unique id of the message with it that was read last.
        """
        known = self.uids.get((queue, name), [])
        own = [uid for by, uid in known if by == actor]
        others = {uid for _, uid in known}
        if own:
            return own[-1]
        if not others and (queue, name) in self.read:
            return self.read[queue, name]
        if len(others) != 1:
            raise ValueError(f"{'no message' if not others else 'several messages'} {name!r} on {queue}")
        return others.pop()

    def name_of_uid(self, queue: str, uid: UniqueId) -> str:
        """Returns the body of the message with this unique id."""
        known = ((name, one) for (on, name), put in self.uids.items() if on == queue for _, one in put)
        return next((name for name, one in known if one == uid), str(uid))

    def agrees(self, key: str, said: str, got: Any) -> bool:
        """Whether a fact is as the table says; a `$name` that is new is bound."""
        if key in ("id", "group") and isinstance(got, tuple):
            status, value = got
            return said == status or self._same_id(said, value)
        if key == "property" and NO_PROPERTIES not in (said, got):
            return {write_property(*one) for one in properties(said).items()} <= set(got.split())
        if isinstance(got, bytes) or said.startswith("$"):
            return got is not None and self._same_id(said, got)
        return said == str(got)

    def _same_id(self, said: str, got: bytes | int | str) -> bool:
        if not said.startswith("$"):
            return self.id_of(said) == got
        if said not in self.ids:
            if got == NO_ID or got in self.ids.values():
                return False  # a name stands for an id of its own
            self.ids[said] = got
        return self.ids[said] == got

    # --- names of messages

    def remember(self, name: str, length: int, result: PutResult) -> None:
        where = result.group_id, result.sequence_number, result.offset
        self.puts.setdefault(where, []).append((name, length))

    def name_of(self, message: Message) -> str:
        """The table's name for a message: its body, the parts it was joined from, or `BODY@OFFSET`."""
        plain = message.body.rstrip(PAD).decode("ascii", "replace")
        if message.segment_status == "no" or len(message.body) < message.length:
            return plain
        parts: list[str] = []
        offset, end = message.offset, message.offset + message.length
        while offset < end or not parts:
            put = self._put_at(message, offset, end)
            if put is None:
                break
            name, start, length = put
            if start != message.offset or length > message.length:
                return f"{name}@{message.offset}" if length > message.length else plain
            parts.append(name)
            if length == 0:
                break
            offset = start + length
            message = message.with_values(offset=offset, length=end - offset)
        return "+".join(parts) or plain

    def _put_at(self, message: Message, offset: int, end: int) -> tuple[str, int, int] | None:
        """The put whose data lies at this offset of a logical message: its name, start and length."""
        found = []
        for (group_id, sequence_number, start), puts in self.puts.items():
            if (group_id, sequence_number) != (message.group_id, message.sequence_number):
                continue
            for name, length in puts:
                if start == offset or start < offset < start + length:
                    found.append((start != offset, name, start, length))
        named = [one for one in found if message.body.startswith(one[1].encode()) or one[0]]
        best = min(named or found, default=None, key=lambda one: one[0])
        return None if best is None else best[1:]


class Actor:
    """A connection and its handles, one for each queue under each number."""

    def __init__(self, manager: QueueManager, table: NameTable) -> None:
        self.manager = manager
        self._table = table
        self.got: dict[str, Message] = {}  # the last message of each name, for replies
        self._handles: dict[tuple[str, str], Queue] = {}

    def act(self, handle: str, step: ScenarioStep) -> StepOutcome:
        """Does one step. Raises: ValueError, a fault of the table."""
        try:
            done: StepOutcome = getattr(self, f"_{step.verb.replace('-', '_')}")(handle, step)
            return done
        except InorderError as error:
            return translate_error(error)

    def _queue(self, handle: str, step: ScenarioStep, options: OpenOptions) -> Queue:
        name, manager = self._table.queue(step.keys.get("on")), step.keys.get("manager", "")
        key = (handle, f"{name}@{manager}" if manager else name)
        if key not in self._handles:
            self._handles[key] = self.manager.internals.open_growing(name, options, manager=manager)
        return self._handles[key]

    # --- puts

    def _put(self, handle: str, step: ScenarioStep) -> StepOutcome:
        name = step.names[0]
        queue = self._queue(handle, step, OpenOptions(output=True))
        body = name.encode("ascii")
        length = number(step.keys.get("length", str(len(body))))
        if length < len(body):
            raise ValueError(f"length={length} is below the {len(body)} bytes of {name!r}")
        actor, _, _ = step.actor.partition(".")
        repeats = "resend" in step.flags or "again" in step.flags
        options = PutOptions(
            **key_of(step),
            logical="logical" in step.flags,
            syncpoint=True if "syncpoint" in step.flags else None,
            confirm_id=number(step.keys.get("confirm", "0")),
            uid=self._table.uid_of(actor, queue.name, name) if repeats else None,
            resend="resend" in step.flags,
        )
        result = queue.put(body.ljust(length, PAD), options, **self._fields(step))
        if result.duplicate_of is not None:
            return self.duplicate(queue, result.duplicate_of)
        self._table.remember(name, length, result)
        self._table.uids.setdefault((queue.name, name), []).append((actor, result.uid))
        facts = {
            "id": result.message_id,
            "group": result.group_id,
            "seq": result.sequence_number,
            "offset": result.offset,
            "flags": result.flags,
            "warning": _warning(result.warning),
        }
        return StepOutcome("ok", facts=facts)

    def duplicate(self, queue: Queue, uid: UniqueId) -> StepOutcome:
        return StepOutcome("ignored", facts={"of": self._table.name_of_uid(queue.name, uid)})

    def _fields(self, step: ScenarioStep) -> Any:
        keys, fields = step.keys, {"flags": sum(FLAGS[flag] for flag in step.flags if flag in FLAGS)}
        given = {name: keys[field.word] for name, field in GIVEN.items() if field.word in keys}
        return fields | {name: self.read_field(name, text) for name, text in given.items()}

    def read_field(self, name: str, text: str) -> Any:
        """The value of a field, as a table writes it."""
        match GIVEN[name].kind:
            case Octets():
                return self._table.id_of(text)
            case ReportOptions():
                return report_options(text)
            case Integer() as kind:
                return None if text == "-1" and None in kind.also.values() else number(text)
            case Seconds():
                return float(text)
            case Switch():
                return yes(name, text)
            case PropertySets():
                return properties(text)
        return text

    # --- gets and browses

    def _get(self, handle: str, step: ScenarioStep) -> StepOutcome:
        return self._message(self._getting(handle, step).get(self._options(step)))

    def _get_all(self, handle: str, step: ScenarioStep) -> StepOutcome:
        queue, options = self._getting(handle, step), self._options(step)
        return self._until_none(lambda: queue.get(options))

    def _getting(self, handle: str, step: ScenarioStep) -> Queue:
        return self._queue(handle, step, OpenOptions(input="as_queue", browse="under-cursor" in step.flags))

    def _browse(self, handle: str, step: ScenarioStep) -> StepOutcome:
        queue = self._queue(handle, step, FOR_BROWSE)
        if step.names[0] == "first":
            return self._message(queue.browse_first(self._options(step, "first")))
        if step.names[0] == "next":
            if "token" in step.keys:
                queue.resume(str(self._table.bound(step.keys["token"])))
            return self._message(queue.browse_next(self._options(step, "next")))
        if step.names[0] == "cursor":
            return self._message(queue.browse_cursor(self._options(step, "cursor")))
        raise ValueError(f"browse takes first, next or cursor, not {step.names[0]!r}")

    def _browse_all(self, handle: str, step: ScenarioStep) -> StepOutcome:
        queue = self._queue(handle, step, FOR_BROWSE)
        positions = iter(["first"])

        def browse() -> Message:
            if next(positions, "next") == "first":
                return queue.browse_first(self._options(step, "first"))
            return queue.browse_next(self._options(step, "next"))

        return self._until_none(browse)

    def _until_none(self, read: Any) -> StepOutcome:
        names: list[str] = []
        while True:
            try:
                message = read()
                if message.warning is Reason.TRUNCATED_MSG_FAILED:
                    raise ValueError("with a buffer, reading all needs accept-truncated")
                names.append(self._table.name_of(message))
            except NoMessageAvailable as error:
                return StepOutcome("list", "", tuple(names), facts=translate_error(error).facts)
            except OrderPending as error:
                return StepOutcome("list", "pending", tuple(names), facts=translate_error(error).facts)
            except InorderError as error:
                reason = str(error.reason.value), error.reason_name
                return StepOutcome("list", f"error={reason[0]}", tuple(names), ending=reason)

    def _options(self, step: ScenarioStep, browse: Literal["first", "next", "cursor"] | None = None) -> GetOptions:
        flags: dict[str, Any] = {flag.replace("-", "_"): True for flag in step.flags - READ_ORDERS - {"syncpoint"}}
        if order := step.flags & READ_ORDERS:
            flags["read_order"] = one_of(order)
        buffer = step.keys.get("buffer")
        # A step outside the unit leaves syncpoint unset, so that the call judges combinations as the caller wrote them.
        return GetOptions(
            browse=browse,
            wait=_seconds(step.keys.get("wait", "0")),
            syncpoint=True if "syncpoint" in step.flags else None,
            buffer=None if buffer is None else number(buffer),
            match=self._match(step),
            confirm_id=number(step.keys.get("confirm", "0")),
            lock_id=self._table.lock_of(step.keys.get("lock")),
            **flags,
        )

    def _match(self, step: ScenarioStep) -> Match:
        wanted: dict[str, Any] = {}
        for key, name in MATCHES.items():
            if key in step.keys:
                text = step.keys[key]
                wanted[name] = self._table.id_of(text) if name.endswith("_id") else number(text)
        if "match-uid" in step.keys:
            actor, queue = step.actor.partition(".")[0], self._table.queue(step.keys.get("on"))
            wanted["uid"] = self._table.uid_of(actor, queue, step.keys["match-uid"])
        if "match-token" in step.keys:
            wanted["token"] = self.got[step.keys["match-token"]].token
        return Match(selector=step.keys.get("selector"), **wanted)

    def _message(self, message: Message) -> StepOutcome:
        facts = {GIVEN[name].word: getattr(message, name) or None for name in TEXTS} | {
            "group": (message.group_status, message.group_id),
            "segment": message.segment_status,
            "seq": message.sequence_number,
            "original-length": message.original_length,
            "offset": message.offset,
            "flags": message.flags,
            "backouts": message.backout_count,
            "priority": message.priority,
            "length": message.length,
            "warning": _warning(message.warning),
            "earlier-pending": "no" if message.earlier_pending is None else "yes",
            "transmission": "none" if message.transmission is None else "@".join(message.transmission),
            "feedback": FEEDBACKS.get(message.feedback, message.feedback),
            "id": message.message_id,
            "correlation": message.correlation_id,
            "property": " ".join(write_property(*one) for one in message.properties.items()) or NO_PROPERTIES,
        }
        return StepOutcome("message", facts=facts, message=message)

    def name(self, step: ScenarioStep, message: Message) -> str:
        """The table's name for a message that a step has read; later steps can use it."""
        name = self._table.name_of(message)
        self.got[name] = message
        if message.uid is not None:
            self._table.read[self._table.queue(step.keys.get("on")), name] = message.uid
        return name

    # --- requests and replies

    def _request(self, handle: str, step: ScenarioStep) -> StepOutcome:
        timeout = _seconds(step.keys.get("timeout", "forever"))
        fields, body = self._fields(step), step.names[0].encode("ascii")
        return self._message(
            self.manager.request(self._table.queue(step.keys.get("on")), body, timeout=timeout, **fields)
        )

    def _reply(self, handle: str, step: ScenarioStep) -> StepOutcome:
        request, body = self._got(step), step.names[1].encode("ascii")
        self.manager.reply(request, body, syncpoint=True if "syncpoint" in step.flags else None)
        return StepOutcome("ok")

    def _report(self, handle: str, step: ScenarioStep) -> StepOutcome:
        about, feedback = self._got(step), step.names[1]
        said = Feedback[feedback.upper()] if feedback.upper() in Feedback.__members__ else number(feedback)
        put = self.manager.report(about, said, about.body, syncpoint=True if "syncpoint" in step.flags else None)
        return StepOutcome("ignored" if put is None else "ok")

    def _got(self, step: ScenarioStep) -> Message:
        if step.names[0] not in self.got:
            raise ValueError(f"{step.actor.partition('.')[0]} has got no message {step.names[0]!r}")
        return self.got[step.names[0]]

    # --- handles, units, the end

    def _open(self, handle: str, step: ScenarioStep) -> StepOutcome:
        name = self._table.queue(step.keys.get("on"))
        if (handle, name) in self._handles:
            raise ValueError(f"this handle of {name} is open already")
        order: Any = one_of(step.flags & READ_ORDERS) if step.flags & READ_ORDERS else None
        if "co-op" in step.flags:
            options = OpenOptions(browse=True, co_op=True, read_order=order)
        else:
            options = OpenOptions(input="exclusive" if "exclusive" in step.flags else "shared", read_order=order)
        self._queue(handle, step, options)
        return StepOutcome("ok")

    def _listen(self, handle: str, step: ScenarioStep) -> StepOutcome:
        self.manager.listen(self._table.queue(step.keys.get("on")), lambda _: None).cancel()
        return StepOutcome("ok")

    def _close(self, handle: str, step: ScenarioStep) -> StepOutcome:
        name = self._table.queue(step.keys.get("on"))
        if (handle, name) not in self._handles:
            raise ValueError(f"this handle of {name} is not open")
        return StepOutcome("ok", facts={"warning": _warning(self._handles.pop((handle, name)).close())})

    def _leave_group(self, handle: str, step: ScenarioStep) -> StepOutcome:
        self._queue(handle, step, FOR_BROWSE).leave_group()
        return StepOutcome("ok")

    def _unlock(self, handle: str, step: ScenarioStep) -> StepOutcome:
        queue = self._queue(handle, step, FOR_BROWSE)
        if not step.names:
            return StepOutcome("ok", facts={"warning": _warning(queue.unlock())})
        queue.unlock(self._uid(step, queue), lock_id=self._table.lock_of(step.keys.get("lock")))
        return StepOutcome("ok")

    def _token(self, handle: str, step: ScenarioStep) -> StepOutcome:
        return StepOutcome("token", facts={"token": self._queue(handle, step, FOR_BROWSE).browse_token()})

    # --- confirmed calls

    def _uid(self, step: ScenarioStep, queue: Queue) -> UniqueId:
        return self._table.uid_of(step.actor.partition(".")[0], queue.name, step.names[0])

    def _confirm_put(self, handle: str, step: ScenarioStep) -> StepOutcome:
        queue = self._queue(handle, step, OpenOptions(output=True))
        return _ignored(queue.confirm_put(self._uid(step, queue), confirm_id=number(step.keys.get("confirm", "0"))))

    def _confirm_get(self, handle: str, step: ScenarioStep) -> StepOutcome:
        queue = self._queue(handle, step, FOR_INPUT)
        return _ignored(queue.confirm_get(self._uid(step, queue), confirm_id=number(step.keys.get("confirm", "0"))))

    def _undo(self, handle: str, step: ScenarioStep) -> StepOutcome:
        self._queue(handle, step, FOR_BROWSE).undo(number(step.names[0]))
        return StepOutcome("ok")

    def _delete(self, handle: str, step: ScenarioStep) -> StepOutcome:
        queue = self._queue(handle, step, FOR_INPUT)
        queue.delete(self._uid(step, queue), lock_id=self._table.lock_of(step.keys.get("lock")))
        return StepOutcome("ok")

    def _browse_lock(self, handle: str, step: ScenarioStep) -> StepOutcome:
        queue = self._queue(handle, step, FOR_INPUT)
        locked = queue.browse_and_lock(
            self._match(step),
            confirm_id=number(step.keys.get("confirm", "0")),
            most=number(step.keys["most"]) if "most" in step.keys else None,
            lease=float(step.keys["lease"]) if "lease" in step.keys else None,
        )
        names = tuple(self.name(step, message) for message in locked.messages)
        return StepOutcome("list", "", names, facts={"lock": locked.lock_id})

    def _unique_ids(self, handle: str, step: ScenarioStep) -> StepOutcome:
        queue = self._queue(handle, step, FOR_BROWSE)
        found = queue.unique_ids(
            confirm_id=number(step.keys.get("confirm", "0")), lock_id=self._table.lock_of(step.keys.get("lock"))
        )
        return StepOutcome("list", "", tuple(self._table.name_of_uid(queue.name, uid) for uid in found))

    def _commit(self, handle: str, step: ScenarioStep) -> StepOutcome:
        self.manager.commit()
        return StepOutcome("ok")

    def _backout(self, handle: str, step: ScenarioStep) -> StepOutcome:
        self.manager.back_out()
        return StepOutcome("ok")

    def _prepare(self, handle: str, step: ScenarioStep) -> StepOutcome:
        self.manager.prepare(step.names[0])
        return StepOutcome("ok")

    def _disconnect(self, handle: str, step: ScenarioStep) -> StepOutcome:
        self.manager.close()
        return StepOutcome("ok")


def key_of(step: ScenarioStep) -> dict[str, Any]:
    """The arguments of a put about its key."""
    lasts = step.keys.get("deduplicate-for")
    key: dict[str, Any] = {"deduplicate": step.keys.get("deduplicate")}
    return key if lasts is None else key | {"deduplicate_for": float(lasts)}


def _ignored(warning: Reason | None) -> StepOutcome:
    return StepOutcome("ok") if warning is None else StepOutcome("ignored")


def one_of(orders: frozenset[str]) -> str:
    """The single read order that a step asks for."""
    if len(orders) > 1:
        raise ValueError(f"{' and '.join(sorted(orders))} exclude each other")
    return next(iter(orders))


def _warning(reason: Reason | None) -> str:
    return "no" if reason is None else str(reason.value)


def _seconds(text: str) -> float:
    if text == "forever":
        return FOREVER
    if not re.fullmatch(r"-?\d+(\.\d+)?", text):
        raise ValueError(f"wait takes seconds or forever, not {text!r}")
    return float(text)
