"""The common parts of commands about channels, processes and connections: reading, and the results of DISPLAY."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from ...client.manager import QueueManager
from ...errors import UnknownObject
from ...model.attribute import Attribute, names_in
from ...model.attributes import DEAD_LETTERS
from ...stores.seam.damage import utc
from ..words import MqWord, words_of
from .commands import Alter, AlterManager, Condition, Define, Delete, Display, ObjectCommand
from .errors import unknown_word
from .filters import LIKE, holds, read_condition
from .parameters import Parameter, ignores_state, refuse_unsupported, without_effect
from .tokens import CommandToken
from .values import Value, allowed_values, comparable, mqsc_value, read_value

Row = Mapping[str, Value]
Found = Mapping[str, Value | tuple[Row, ...]]  # the result of a DISPLAY for one object
OBJECTS: Final = "OBJECTS"  # the handles of a connection, under the name in IBM's JSON answers
NAME: Final = "LIKE(NAME)"
ALL: Final = "ALL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The words for one kind of object.

    Args:
        who: the name of one object in errors.
        keywords: the keywords of its attributes, including its name.
        shown: further keywords that a DISPLAY shows.
        integers: those of `shown` that are numbers.
        unsupported_names: keywords of MQ that are not supported.
        read: reads a value that may be a word.
        compared: further keywords that WHERE compares.
    """

    who: str
    keywords: Mapping[str, Attribute]
    shown: Sequence[str] = ()
    integers: frozenset[str] = frozenset()
    unsupported_names: Mapping[str, MqWord]
    read: Callable[[Attribute, CommandToken], Any] = read_value
    compared: Sequence[str] = ()


def read_define(verb: str, target: str, name: str, parameters: Iterable[Parameter], words: Words) -> ObjectCommand:
    """Reads DEFINE or ALTER. Raises MqscSyntaxError; Unsupported."""
    given: dict[str, Any] = {}
    idle: list[str] = []
    like, replace = None, False
    for each in parameters:
        known = words.keywords.get(each.keyword)
        if verb == "DEFINE" and each.topic == "REPLACE":
            each.refuse_value("REPLACE or NOREPLACE")
            replace = each.keyword == "REPLACE"
        elif verb == "DEFINE" and each.keyword == "LIKE":
            like = each.value(NAME).value
        elif known is not None and known.name != "name":
            given[known.name] = words.read(known, each.value(allowed_values(known)))
        elif each.keyword in words.unsupported_names:
            idle.append(without_effect(each, words.unsupported_names))
        else:
            raise unknown_word(each.token.at, each.keyword, f"an attribute of {words.who}", list(words.keywords))
    return ObjectCommand(
        verb=verb, target=target, name=name, given=given, like=like, replace=replace, without_effect=tuple(idle)
    )


def read_display(target: str, name: str, parameters: Iterable[Parameter], words: Words) -> ObjectCommand:
    """Reads DISPLAY. Raises MqscSyntaxError; Unsupported."""
    asked, where = read_asked([each for each in parameters if not _chooses_all(each, words)], words)
    return ObjectCommand(verb="DISPLAY", target=target, name=name, asked=asked, where=where)


def _chooses_all(parameter: Parameter, words: Words) -> bool:
    """Whether it is a keyword of MQ that chooses what there is anyway."""
    word = words.unsupported_names.get(parameter.keyword)
    return word is not None and word.use == "give" and parameter.values is None and word.is_harmless(None)


def read_asked(parameters: Iterable[Parameter], words: Words) -> tuple[tuple[str, ...], Condition | None]:
    """Reads the keywords that a DISPLAY asks for, and its condition. Raises MqscSyntaxError; Unsupported."""
    known = {**words.keywords, **dict.fromkeys(words.shown)}
    asked: list[str] = []
    where: Condition | None = None
    for each in parameters:
        if each.keyword == "WHERE":
            compared = {**known, **dict.fromkeys(words.compared)}
            where = read_condition(
                each.token, each.values or (), compared, words.unsupported_names, words.integers, words.read
            )
            continue
        if each.keyword not in (*known, ALL):
            if (word := words.unsupported_names.get(each.keyword)) is not None:
                refuse_unsupported(each, word, is_shown=True)
            raise unknown_word(each.token.at, each.keyword, "a keyword to display", [*known, ALL, "WHERE"])
        each.refuse_value(f"{each.keyword} alone; WHERE({each.keyword} EQ ...) chooses")
        asked.append(each.keyword)
    return tuple(asked), where


def read_delete(target: str, name: str, parameters: Iterable[Parameter], words: Words) -> ObjectCommand:
    """Reads DELETE. Raises MqscSyntaxError; Unsupported."""
    ignores, idle = False, []
    for each in parameters:
        if each.keyword == "IGNSTATE":
            ignores = ignores_state(each)
        elif each.keyword in words.unsupported_names:
            idle.append(without_effect(each, words.unsupported_names))
        else:
            raise each.token.refused("IGNSTATE(...)")
    return ObjectCommand(verb="DELETE", target=target, name=name, ignores_state=ignores, without_effect=tuple(idle))


def deleted(command: ObjectCommand, kind: str, delete: Callable[[str], None]) -> str:
    """Deletes an object, and describes that. Raises UnknownObject 2085 unless the state is to be ignored."""
    try:
        delete(command.name)
    except UnknownObject:
        if not command.ignores_state:
            raise
        return f"{kind} {command.name} does not exist, so nothing was deleted."
    return f"{kind} {command.name} deleted."


def alteration(qm: QueueManager, altered_at: float | None) -> dict[str, str]:
    """ALTDATE and ALTTIME of an object; None: a SYSTEM object that was never altered, which is as old as the store."""
    at = utc(qm.inspect.status(DEAD_LETTERS).created_at if altered_at is None else altered_at)
    return {"ALTDATE": f"{at:%Y-%m-%d}", "ALTTIME": f"{at:%H.%M.%S}"}


def meets(
    condition: Condition | None, thing: object, row: Row, keywords: Mapping[str, Attribute] = MappingProxyType({})
) -> bool:
    """Whether the condition holds; it does not for values that the object lacks.

    Args:
        keywords: the keywords of the attributes of `thing`, which are compared by their values; others as in the row.
    """
    if condition is None:
        return True
    word = condition.keyword
    if word not in row:
        return False
    attribute = keywords.get(word)
    if attribute is not None and attribute.kind == "names":
        return holds(condition, names_in(getattr(thing, attribute.name)))
    if attribute is None or condition.operator in LIKE:
        return holds(condition, row[word])
    return holds(condition, comparable(attribute, getattr(thing, attribute.name)))


def no_match(what: str, command: Display | ObjectCommand) -> str:
    """The text of the error of a DISPLAY that finds nothing."""
    return f"no {what} matches {command.name}{' and the condition' if command.where else ''}"


def wanted(name: str, asked: Sequence[str], where: Condition | None) -> tuple[str, ...]:
    """The keywords that a DISPLAY shows besides the name: those asked for and compared; for one object without any,
    ALL.
    """
    default = () if name.endswith("*") else (ALL,)
    return (*(asked or default), *([where.keyword] if where else ()))


def chosen(kind: str, row: Row, asked: Sequence[str], always: Sequence[str]) -> dict[str, Value]:
    """The values that were asked for; with ALL, our own only if they are not at their defaults.

    Args:
        kind: as in `inorder.mq.words`.
        always: keywords that come first and are always shown; the others follow in the order of the alphabet.
    """
    words = [word for word in (*always, *sorted(row.keys() - {*always})) if word in row]
    return {
        word: row[word]
        for word in words
        if word in always or word in asked or (ALL in asked and not _is_ours_by_default(kind, word, row))
    }


def _is_ours_by_default(kind: str, word: str, row: Row) -> bool:
    known = words_of(kind).get(word)
    if known is None or not known.is_ours:
        return False
    if known.attribute is None:
        return True
    # By default the first name of a queue manager is its present name.
    return row[word] in (mqsc_value(known.attribute, known.attribute.default), row.get("QMNAME"))


def without(command: Define | Alter | AlterManager | Delete | ObjectCommand) -> str:
    """The sentence in an answer about keywords without effect here."""
    return f" Without effect here: {', '.join(command.without_effect)}." if command.without_effect else ""
