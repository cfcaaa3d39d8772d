"""Commands put into effect on a queue manager, and the answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, Final, Literal

from ..attributes import QUEUE_ATTRIBUTES, ManagerAttributes, QueueAttributes, QueueType, define_queue
from ..errors import InorderError, StoreError, UnknownQueue, WrongQueueType
from ..manager import QueueManager
from .commands import Alter, AlterManager, Clear, Command, Define, Delete, Display, DisplayManager, End
from .errors import MqscSyntaxError
from .filters import holds, is_like
from .lines import Source, commands_in
from .parsing import parse
from .values import comparable, mqsc_value
from .words import LOCAL_KEYWORDS, MANAGER_KEYWORDS, QUEUE_KEYWORDS, STATUS_KEYWORDS, keywords_of, status_values

TYPE_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    dict(zip(QUEUE_ATTRIBUTES["type"].choices, QUEUE_ATTRIBUTES["type"].mqsc_words, strict=True))
)

Outcome = Literal["done", "read", "refused", "not valid", "end"]
Row = Mapping[str, int | str | bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What became of one command.

    Args:
        outcome: "done"; "read" if it was only to be read; "refused" by the queue manager; "not valid", it is no
            MQSC of ours; "end", it was END and nothing more is read.
        text: a sentence.
        rows: what a DISPLAY found: values by keywords, as MQSC has them; a switch is True or False.
        error: why it was refused or is not valid.
    """

    source: Source
    outcome: Outcome
    text: str = ""
    rows: tuple[Row, ...] = ()
    error: InorderError | None = None


def run_script(lines: Iterable[str], qm: QueueManager | None, *, stop: bool = False) -> Iterator[Answer]:
    """Runs a script; see `run_commands`. Lines come with their ends or without."""
    return run_commands(commands_in(lines), qm, stop=stop)


def run_commands(sources: Iterable[Source], qm: QueueManager | None, *, stop: bool = False) -> Iterator[Answer]:
    """Runs commands one after the other, each a transaction of its own; their answers as they come.

    Args:
        qm: where; None only reads the commands, and changes nothing.
        stop: the first command that fails is the last. Otherwise the next ones are run all the same, as MQ does.

    Trouble with the store always ends the run, and so does END, which is answered too.
    """
    for source in sources:
        answer = run_command(source, qm)
        yield answer
        if answer.outcome == "end" or (stop and answer.error) or isinstance(answer.error, StoreError):
            return


def run_command(source: Source, qm: QueueManager | None) -> Answer:
    """Runs one command, or only reads it; it raises nothing that a command can be blamed for."""
    try:
        command = parse(source)
    except MqscSyntaxError as error:
        return Answer(source=source, outcome="not valid", text=str(error), error=error)
    if isinstance(command, End):
        return Answer(source=source, outcome="end")
    if qm is None:
        return Answer(source=source, outcome="read")
    try:
        text, rows = _perform(qm, command)
    except InorderError as error:
        return Answer(source=source, outcome="refused", text=str(error), error=error)
    return Answer(source=source, outcome="done", text=text, rows=rows)


def _perform(qm: QueueManager, command: Command) -> tuple[str, tuple[Row, ...]]:
    match command:
        case Define():
            return _define(qm, command) + _idle(command.without_effect), ()
        case Alter():
            _check_type(qm, command.name, command.type)
            qm.alter_queue(command.name, **command.changes)
            return f"Queue {command.name} altered.{_idle(command.without_effect)}", ()
        case AlterManager():
            qm.alter_manager(**command.changes)
            return f"Queue manager altered.{_idle(command.without_effect)}", ()
        case Delete():
            _check_type(qm, command.name, command.type)
            qm.delete_queue(command.name, purge=command.purge)
            return f"Queue {command.name} deleted.{_idle(command.without_effect)}", ()
        case Clear():
            removed = qm.clear_queue(command.name)
            return f"Queue {command.name} cleared: {removed:,} message{'' if removed == 1 else 's'} removed.", ()
        case Display():
            rows = tuple(_displayed(qm, command))
            return _found(len(rows), command), rows
        case DisplayManager():
            return "Queue manager:", (_chosen(_manager_row(qm.manager_attributes()), ("QMNAME",), command.keywords),)
        case End():
            return "", ()


def _idle(keywords: tuple[str, ...]) -> str:
    return f" Without effect here: {', '.join(keywords)}." if keywords else ""


def _check_type(qm: QueueManager, name: str, kind: QueueType) -> None:
    there = qm.attributes(name).type
    if there != kind:
        raise WrongQueueType(f"{name} is a {TYPE_WORDS[there]}, not a {TYPE_WORDS[kind]}", queue=name)


# ---- DEFINE


def _define(qm: QueueManager, command: Define) -> str:
    given = {**_taken_over(qm, command), **command.attributes}
    there = _definition(qm, command.name) if command.replace else None
    if there is None:
        create = {"local": qm.create_queue, "alias": qm.create_alias, "model": qm.create_model}[command.type]
        create(command.name, **given)
        return f"Queue {command.name} defined."
    _check_type(qm, command.name, command.type)
    if command.type == "local":  # how it came to be stays as it is
        given.setdefault("definition_type", there.definition_type)
    wanted = define_queue(command.name, command.type, **given)
    qm.alter_queue(command.name, **_differences(there, wanted))
    return f"Queue {command.name} replaced; its messages stay."


def _taken_over(qm: QueueManager, command: Define) -> dict[str, Any]:
    """The attributes of the queue named by LIKE, as far as they may be given to another one."""
    if command.like is None:
        return {}
    _check_type(qm, command.like, command.type)
    like = qm.attributes(command.like)
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


def _displayed(qm: QueueManager, command: Display) -> Iterator[Row]:
    always = ("QUEUE",) if command.is_status else ("QUEUE", "TYPE")
    for queue in _matching(qm, command):
        try:
            whole = _status_row(qm, queue) if command.is_status else _queue_row(qm, queue, command)
        except UnknownQueue:  # somebody has deleted it meanwhile
            continue
        if _holds(command, queue, whole):
            yield _chosen(whole, always, command.keywords)


def _matching(qm: QueueManager, command: Display) -> list[QueueAttributes]:
    if command.name.endswith("*"):
        queues = [queue for queue in qm.queues() if is_like(queue.name, command.name)]
    else:
        queues = [qm.attributes(command.name)]
    if command.is_status:
        return [queue for queue in queues if queue.type == "local"]
    return [queue for queue in queues if command.type in (None, queue.type)]


def _queue_row(qm: QueueManager, queue: QueueAttributes, command: Display) -> Row:
    row = {word: mqsc_value(each, getattr(queue, each.name)) for word, each in keywords_of(queue.type).items()}
    asked = {*command.keywords, command.where.keyword if command.where else ""}
    if queue.type == "local" and (not command.keywords or asked & set(LOCAL_KEYWORDS)):
        row |= _some(status_values(qm.status(queue.name)), LOCAL_KEYWORDS)
    return row


def _status_row(qm: QueueManager, queue: QueueAttributes) -> Row:
    return {"QUEUE": queue.name, **_some(status_values(qm.status(queue.name)), STATUS_KEYWORDS)}


def _some(values: Mapping[str, int | str], keywords: Iterable[str]) -> dict[str, int | str | bool]:
    return {word: values[word] for word in keywords}


def _holds(command: Display, queue: QueueAttributes, row: Row) -> bool:
    """Whether the condition holds; it does not for what the queue has not."""
    if command.where is None:
        return True
    word = command.where.keyword
    if word not in row:
        return False
    attribute = QUEUE_KEYWORDS.get(word)
    value = row[word] if attribute is None else comparable(attribute, getattr(queue, attribute.name))
    return holds(command.where, value)


def _manager_row(manager: ManagerAttributes) -> Row:
    return {word: mqsc_value(each, getattr(manager, each.name)) for word, each in MANAGER_KEYWORDS.items()}


def _chosen(row: Row, always: tuple[str, ...], asked: tuple[str, ...]) -> Row:
    """What was asked for, in the order of the row; all of it if nothing was."""
    return {word: value for word, value in row.items() if word in (*always, *asked)} if asked else row


def _found(count: int, command: Display) -> str:
    if count == 0:
        return f"No queue fits {command.name}."
    return "1 queue:" if count == 1 else f"{count:,} queues:"
