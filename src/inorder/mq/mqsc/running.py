"""Runs commands on a queue manager, and makes the answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from ...client.manager import QueueManager
from ...errors import (
    InorderError,
    NotAuthorized,
    Reason,
    StoreError,
    UnknownObject,
    UnknownQueue,
    WrongQueueType,
)
from ...model.attributes import (
    QUEUE_ATTRIBUTES,
    SYSTEM_QUEUES,
    QueueAttributes,
    QueueType,
    define_queue,
)
from ..words import COMMAND_QUEUE, LEVEL, VERSION, why_missing
from .channelling import run_channel_command
from .commands import (
    Alter,
    AlterManager,
    Clear,
    Command,
    Define,
    Delete,
    Display,
    DisplayManager,
    End,
    Handles,
    ObjectCommand,
)
from .connecting import OBJECT as CONNECTION
from .connecting import handle_rows, run_display_of_connections
from .errors import MqscSyntaxError, ScriptPosition, Unsupported, unsupported
from .filters import is_like
from .lines import Source, commands_in
from .managing import TARGETS as MANAGER_TARGETS
from .managing import run_manager_command
from .objects import ALL, Found, Row, chosen, meets, no_match, wanted, without
from .parsing import parse
from .processes import OBJECT as PROCESS
from .processes import run_process_command
from .values import mqsc_value
from .words import (
    BY_TYPE,
    LOCAL_KEYWORDS,
    MANAGER_KEYWORDS,
    QUEUE_KEYWORDS,
    STATUS_KEYWORDS,
    age,
    keywords_of,
    status_values,
)

TYPE_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    dict(zip(QUEUE_ATTRIBUTES["type"].choices, QUEUE_ATTRIBUTES["type"].mqsc_words, strict=True))
)

Outcome = Literal["done", "read", "refused", "not valid", "unsupported", "skipped", "end"]

# The message numbers of runmqsc's answers, which scripts and administrators look for. The sentences are ours.
DEFINED, ALTERED, DELETED, CLEARED = "AMQ8006I", "AMQ8008I", "AMQ8007I", "AMQ8022I"
MANAGER_ALTERED, MANAGER_SHOWN = "AMQ8005I", "AMQ8408I"
QUEUE_SHOWN, STATUS_SHOWN = "AMQ8409I", "AMQ8450I"
NOT_VALID, REFUSED, UNREACHABLE = "AMQ8405I", "AMQ8101E", "AMQ9202E"
REFUSED_FOR: Final[Mapping[Reason, str]] = MappingProxyType(
    {
        Reason.UNKNOWN_OBJECT_NAME: "AMQ8147E",
        Reason.OBJECT_ALREADY_EXISTS: "AMQ8150E",
        Reason.OBJECT_IN_USE: "AMQ8148E",
        Reason.Q_NOT_EMPTY: "AMQ8143E",
        Reason.CHL_STATUS_NOT_FOUND: "AMQ8420I",
    }
)
COMMAND_FAILED: Final = 3008  # MQRCCF_COMMAND_FAILED
# MQ's reasons for commands, where our own have one; by their numbers in PCF.
COMMAND_REASONS: Final[Mapping[Reason, int]] = MappingProxyType(
    {
        Reason.ARGUMENT_ERROR: 4005,  # MQRCCF_ATTR_VALUE_ERROR
        Reason.CHANNEL_IN_DOUBT: 4025,  # MQRCCF_CHANNEL_INDOUBT
        Reason.NOT_FOUND: 4064,  # MQRCCF_CHANNEL_NOT_ACTIVE: RESOLVE without a batch in doubt
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to one command.

    Args:
        outcome: "done"; "read" if it was only to be read; "refused" by the queue manager; "not valid", it is not valid
            MQSC; "unsupported", it is in MQ and not here; "skipped", the same, and it was left out; "end", it was END
            and the rest is not read.
        number: the number of runmqsc's message for this answer; empty: none.
        text: a sentence.
        rows: the results of a DISPLAY: MQSC values by keywords; a switch is True or False, a list a tuple. OBJECTS of a
            connection are its handles, each a row.
        skipped: unsupported MQ keywords, without which the command was run.
        error: why it was refused, is not valid, or was skipped.
        messages: how many messages a CLEAR has removed.
    """

    source: Source
    outcome: Outcome
    number: str = ""
    text: str = ""
    rows: tuple[Found, ...] = ()
    skipped: tuple[str, ...] = ()
    error: InorderError | None = None
    messages: int | None = None

    @property
    def reason(self) -> int:
        """MQ's reason for the failure of a command; our own if MQ has none."""
        if self.outcome != "refused" or self.error is None:
            return COMMAND_FAILED if self.failed else 0
        return COMMAND_REASONS.get(self.error.reason, self.error.reason.value)

    @property
    def failed(self) -> bool:
        """Whether it was refused, is not valid or asks for something unsupported."""
        return self.outcome in ("refused", "not valid", "unsupported")


def run_script(
    lines: Iterable[str], qm: QueueManager | None, *, stop: bool = False, skip: bool = False
) -> Iterator[Answer]:
    """Runs a script; see `run_commands`. Lines come with their ends or without."""
    return run_commands(commands_in(lines), qm, stop=stop, skip=skip)


def run_commands(
    sources: Iterable[Source], qm: QueueManager | None, *, stop: bool = False, skip: bool = False
) -> Iterator[Answer]:
    """Runs commands one after the other, each in its own transaction; yields each answer when it is made.

    Args:
        qm: the queue manager; None only reads the commands, and changes nothing.
        stop: end at the first command that fails. Otherwise the following ones are run, as in MQ.
        skip: leave out unsupported commands of MQ, and unsupported attributes of commands that are then run without
            them.

    `+QMNAME+` in a command stands for the name of the queue manager. An error of the store always ends the run, and so
    does END, which gets an answer too; trouble of the store at the other side of a channel does not.
    """
    for source in sources:
        given = source
        if source.has_inserts:
            given = source.with_inserts("QMNAME" if qm is None else qm.admin.manager_attributes().name)
        answer = run_command(given, qm, skip=skip)
        yield answer
        if answer.outcome == "end" or (stop and answer.failed) or is_fatal(answer.error):
            return


def is_fatal(error: InorderError | None) -> bool:
    """Whether the store of this queue manager is in trouble, so that no other command would succeed."""
    return isinstance(error, StoreError) and "channel" not in error.data


def run_command(source: Source, qm: QueueManager | None, *, skip: bool = False) -> Answer:
    """Runs one command, or only reads it; errors in the command become its answer and are not raised."""
    skipped: list[str] = []
    try:
        command = parse(source, skip=skipped if skip else None)
    except MqscSyntaxError as error:
        if not isinstance(error, Unsupported):
            text = source.text_of(error)
            return Answer(source=source, outcome="not valid", number=NOT_VALID, text=text, error=error)
        return _unsupported(source, error, skip=skip)
    if isinstance(command, End):
        return Answer(source=source, outcome="end")
    if qm is None:
        return Answer(source=source, outcome="read", skipped=tuple(skipped))
    try:
        done = _DOES[type(command)](qm, command)
    except InorderError as error:
        missing = _missing_in_mq(source, error)
        if missing is not None:
            return _unsupported(source, missing, skip=skip)
        return Answer(source=source, outcome="refused", number=_number_of(error), text=str(error), error=error)
    text = f"{done.text} Skipped: {', '.join(skipped)}." if skipped else done.text
    return Answer(
        source=source, outcome="done", number=done.number, text=text, rows=done.rows, skipped=tuple(skipped),
        messages=done.messages,
    )  # fmt: skip


def _unsupported(source: Source, error: Unsupported, *, skip: bool) -> Answer:
    text = source.text_of(error)
    if skip:
        return Answer(source=source, outcome="skipped", text=text, error=error)
    return Answer(source=source, outcome="unsupported", number=REFUSED, text=text, error=error)


def _number_of(error: InorderError) -> str:
    """The number of the answer to a failure; a channel that leads nowhere is not a missing object."""
    if isinstance(error, StoreError | UnknownObject) and "channel" in error.data:
        return UNREACHABLE
    return REFUSED_FOR.get(error.reason, REFUSED)


def _missing_in_mq(source: Source, error: InorderError) -> Unsupported | None:
    """The error for an object that every queue manager of MQ has, and that is not supported."""
    if not isinstance(error, UnknownObject):
        return None
    name = str(error.data.get("queue") or error.data.get("object"))
    if (why := why_missing(name)) is None:
        return None
    at = ScriptPosition(source.line, 1)
    return unsupported(at, f"MQ's object {name}", why, "a command without it")


class Done(NamedTuple):
    """The parts of an answer for a command that was run."""

    number: str
    text: str
    rows: tuple[Found, ...] = ()
    messages: int | None = None


def _do_define(qm: QueueManager, command: Define) -> Done:
    return Done(DEFINED, define(qm, command) + without(command))


def _do_alter(qm: QueueManager, command: Alter) -> Done:
    _check_type(qm, command.name, command.type)
    qm.alter_queue(command.name, **command.changes)
    return Done(ALTERED, f"Queue {command.name} altered.{without(command)}")


def _do_alter_manager(qm: QueueManager, command: AlterManager) -> Done:
    qm.admin.alter_manager(**command.changes)
    return Done(MANAGER_ALTERED, f"Queue manager altered.{without(command)}")


def _do_delete(qm: QueueManager, command: Delete) -> Done:
    try:
        _check_type(qm, command.name, command.type)
        qm.delete_queue(command.name, purge=command.purge)
        text = f"Queue {command.name} deleted."
    except UnknownQueue:
        if not command.ignores_state:
            raise
        text = f"Queue {command.name} does not exist, so nothing was deleted."
    return Done(DELETED, text + without(command))


def _do_clear(qm: QueueManager, command: Clear) -> Done:
    removed = qm.admin.clear_queue(command.name)
    text = f"Queue {command.name} cleared: {removed:,} message{'' if removed == 1 else 's'} removed."
    return Done(CLEARED, text, messages=removed)


def _do_display(qm: QueueManager, command: Display) -> Done:
    number, text = (
        (STATUS_SHOWN, "Display queue status details.")
        if command.is_status
        else (QUEUE_SHOWN, "Display Queue details.")
    )
    return Done(number, text, _displayed(qm, command))


def _do_display_manager(qm: QueueManager, command: DisplayManager) -> Done:
    row = chosen("manager", _manager_row(qm, command.keywords), command.keywords or (ALL,), ("QMNAME",))
    return Done(MANAGER_SHOWN, "Display Queue Manager details.", (row,))


def _do_object(qm: QueueManager, command: ObjectCommand) -> Done:
    return Done(*_ON_OBJECTS.get(command.target, run_channel_command)(qm, command))


_ON_OBJECTS: Final = MappingProxyType(
    {
        PROCESS: run_process_command,
        CONNECTION: run_display_of_connections,
        **dict.fromkeys(MANAGER_TARGETS, run_manager_command),
    }
)
_DOES: Final[Mapping[type[Command], Callable[[QueueManager, Any], Done]]] = MappingProxyType(
    {
        Define: _do_define,
        Alter: _do_alter,
        AlterManager: _do_alter_manager,
        Delete: _do_delete,
        Clear: _do_clear,
        Display: _do_display,
        DisplayManager: _do_display_manager,
        ObjectCommand: _do_object,
    }
)


def _check_type(qm: QueueManager, name: str, kind: QueueType) -> None:
    there = qm.attributes(name).type
    if there != kind:
        raise WrongQueueType(f"{name} is a {TYPE_WORDS[there]}, not a {TYPE_WORDS[kind]}", queue=name)


# ---- DEFINE


def define(qm: QueueManager, command: Define) -> str:
    """Creates a queue, or replaces its attributes; returns a sentence about it.

    Raises UnknownQueue, WrongQueueType; as the call that creates a queue, and `alter_queue`.
    """
    given = {**_taken_over(qm, command), **command.attributes}
    there = _definition(qm, command.name) if command.replace else None
    if there is None:
        qm.create_queue(command.name, type=command.type, **given)
        return f"Queue {command.name} defined.{_discards(define_queue(command.name, command.type, **given))}"
    _check_type(qm, command.name, command.type)
    if command.type == "local":  # its definition type does not change
        given.setdefault("definition_type", there.definition_type)
    wanted = define_queue(command.name, command.type, **given)
    qm.alter_queue(command.name, **_differences(there, wanted))
    return f"Queue {command.name} replaced; its messages stay.{_discards(wanted)}"


def _discards(queue: QueueAttributes) -> str:
    """A sentence if the messages of a queue do not last by default. In MQ they last while its programs come and go."""
    if queue.type != "local" or queue.default_persistence or queue.nonpersistent_class == "high":
        return ""
    how = "are lost when no program has the store open; NPMCLASS(HIGH) keeps them"
    return f" Non-persistent messages, its default, {how}."


def _taken_over(qm: QueueManager, command: Define) -> dict[str, Any]:
    """The attributes of the object that LIKE names, or of the default object, without those that another object may not
    copy.
    """
    name = command.like or BY_TYPE[command.type].default
    if not name:
        return {}
    like = qm.attributes(name)
    if command.like:
        _check_type(qm, command.like, command.type)
    elif like.type != command.type or like.name == command.name:
        return {}
    left_out = {"name", "type", *(("definition_type",) if command.type == "local" else ())}
    return {
        each.name: getattr(like, each.name) for each in keywords_of(command.type).values() if each.name not in left_out
    }


def _definition(qm: QueueManager, name: str) -> QueueAttributes | None:
    try:
        return qm.attributes(name)
    except UnknownQueue:
        return None


def _differences(there: QueueAttributes, wanted: QueueAttributes) -> dict[str, Any]:
    both = ((each.name, getattr(there, each.name), getattr(wanted, each.name)) for each in fields(QueueAttributes))
    return {name: new for name, old, new in both if old != new}


# ---- DISPLAY


def _displayed(qm: QueueManager, command: Display) -> tuple[Row, ...]:
    """The rows of a DISPLAY. Raises UnknownQueue if no queue matches, as in MQ."""
    rows = tuple(_rows(qm, command))
    if not rows:
        raise nothing_fits(command)
    return rows


def nothing_fits(command: Display) -> UnknownQueue:
    """Makes the error for a DISPLAY that finds nothing, or nothing that its user may see."""
    return UnknownQueue(no_match("queue" if command.handles is None else "open handle", command))


def _rows(qm: QueueManager, command: Display) -> Iterator[Row]:
    found = _queues(qm, command) if command.handles is None else _handles(qm, command, command.handles)
    for queue, whole in found:
        if meets(command.where, queue, whole, QUEUE_KEYWORDS if command.handles is None else {}):
            kind = "qstatus" if command.is_status else "queue"
            yield chosen(kind, whole, wanted(command.name, command.keywords, command.where), ("QUEUE", "TYPE"))


def _queues(qm: QueueManager, command: Display) -> Iterator[tuple[QueueAttributes, Row]]:
    ages = _ages(qm) if command.is_status else {}
    for queue in _matching(qm, command):
        try:
            whole = _status_row(qm, queue, ages) if command.is_status else _queue_row(qm, queue, command)
        except UnknownQueue:  # another program has deleted it meanwhile
            continue
        yield queue, whole


def _handles(qm: QueueManager, command: Display, handles: Handles) -> Iterator[tuple[QueueAttributes, Row]]:
    queues = _matching(qm, command)
    rows = list(handle_rows(qm, handles))
    return ((queue, row) for queue in queues for row in rows if row["QUEUE"] == queue.name)


def _matching(qm: QueueManager, command: Display) -> list[QueueAttributes]:
    if command.name.endswith("*"):
        every = {**SYSTEM_QUEUES, **{queue.name: queue for queue in qm.queues()}}
        queues = [queue for name, queue in sorted(every.items()) if is_like(name, command.name)]
    else:
        queues = [qm.attributes(command.name)]
    if command.is_status:
        return [queue for queue in queues if queue.type == "local"]
    return [queue for queue in queues if command.type in (None, queue.type)]


def _queue_row(qm: QueueManager, queue: QueueAttributes, command: Display) -> Row:
    row = {word: mqsc_value(each, getattr(queue, each.name)) for word, each in keywords_of(queue.type).items()}
    asked = {*wanted(command.name, command.keywords, command.where)}
    if queue.type == "local" and asked & {ALL, *LOCAL_KEYWORDS}:
        row |= _some(status_values(qm.inspect.status(queue.name)), LOCAL_KEYWORDS)
    return row


def _ages(qm: QueueManager) -> dict[str, int]:
    """The age of the oldest message of each queue, in seconds."""
    now = qm._session.services.now()
    return {one.name: age(one.oldest_put_at, now) for one in qm.inspect.overview()}


def _status_row(qm: QueueManager, queue: QueueAttributes, ages: Mapping[str, int]) -> Row:
    values = status_values(qm.inspect.status(queue.name)) | {"MSGAGE": ages.get(queue.name, 0)}
    return {"QUEUE": queue.name, "TYPE": "QUEUE", **_some(values, STATUS_KEYWORDS)}


def _some(values: Mapping[str, int | str], keywords: Iterable[str]) -> dict[str, int | str | bool]:
    return {word: values[word] for word in keywords}


def _manager_row(qm: QueueManager, asked: tuple[str, ...]) -> Row:
    manager = qm.admin.manager_attributes()
    return {
        **_creation(qm, asked),
        **{word: mqsc_value(each, getattr(manager, each.name)) for word, each in MANAGER_KEYWORDS.items()},
        **{"DISTL": "NO", "PLATFORM": "UNIX", "SYNCPT": "AVAILABLE"},
        **{"CMDLEVEL": LEVEL, "VERSION": VERSION, "COMMANDQ": COMMAND_QUEUE},
        "QMID": f"{manager.name}_{qm._session.services.store.identifier()}",
    }


def _creation(qm: QueueManager, asked: tuple[str, ...]) -> Row:
    """The date of the store, from its first queues; left out for a user who may not see them."""
    words = ("CRDATE", "CRTIME")
    try:
        return _some(status_values(qm.inspect.status(BY_TYPE["local"].default)), words)
    except NotAuthorized:
        if {*asked} & {*words}:
            raise
        return {}
