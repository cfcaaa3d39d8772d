"""MQ's words, in one table: the commands, objects, attributes and status attributes of MQ 9.4 on Linux, and on z/OS.

MQSC and IBM's HTTP interfaces read it. For each word it has MQ's name, type and PCF number, and says whether inorder
has it or why not. The attributes that inorder has come from the tables in `inorder.model`; the others, and those that
DISPLAY alone shows, are in the text files of this folder:

::

    [KIND USE]                                USE: set, by DEFINE and ALTER; give, to a command; show, by DISPLAY
    KEYWORD  CONSTANT  NUMBER  VALUES  =      the value comes from here
    KEYWORD  CONSTANT  NUMBER  VALUES  REASON HARMLESS...

`REASON` is a key in reasons.txt. `HARMLESS` are the values that have no effect here: words, '' for an empty value,
"alone" for the keyword without a value, "any" for all. A "-" stands for something that MQ does not have, or that we
could not look up. Unsupported kinds of objects, in others.txt, have neither: their reason is the object's, in
commands.txt. Unsupported SYSTEM objects are in system.txt, by name, or by the beginning of a name, with a dot at its
end. The numbers are those of IBM's header files.

values.txt has the constants for words that are values, as KEYWORD PREFIX WORD=CONSTANT; a WORD alone is the name of its
constant. The attributes in `inorder.model` have the numbers themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final, Literal, cast

from ...model.attribute import Attribute, Table
from ...model.attributes import MANAGER_ATTRIBUTES, QUEUE_ATTRIBUTES
from ...model.channel_attributes import CHANNEL_ATTRIBUTES
from ...model.process_attributes import PROCESS_ATTRIBUTES

Use = Literal["set", "give", "show"]
LEVEL: Final = 940
"""MQ's command level: the release whose words these are."""
VERSION: Final = "09040000"
"""The same as MQ writes a version."""
COMMAND_QUEUE: Final = "SYSTEM.ADMIN.COMMAND.QUEUE"
"""The queue for requests in PCF, where there is a command server."""
HERE, OURS, NONE = "=", "ours", "-"
SYNONYMS: Final[Mapping[str, str]] = {"TARGQ": "TARGET", "QTYPE": "TYPE"}  # of keywords
_OURS: Final[Mapping[str, Table]] = {
    "queue": QUEUE_ATTRIBUTES, "manager": MANAGER_ATTRIBUTES, "channel": CHANNEL_ATTRIBUTES,
    "process": PROCESS_ATTRIBUTES,
}  # fmt: skip
_FILES: Final[Mapping[str, str]] = {
    "queue": "queue", "process": "queue", "manager": "manager", "qmstatus": "manager", "channel": "channel",
    "chstatus": "channel", "qstatus": "status", "handle": "status", "conn": "status",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class MqWord:
    """An attribute of an object or of its status, or a parameter of its commands.

    Args:
        keyword: in MQSC; in JSON it is in lower case.
        name: MQ's name, or the name of its constant, MQIA_DEF_BIND; None: MQ does not have it, or it is not a
            parameter.
        number: MQ's number in PCF and MQINQ; None: none, or not known.
        values: MQ's type: its words, the range of an integer, or "char", "bytes", "list", "date", "time".
        attribute: our attribute for it.
        why: the reason why it is not supported; "": it is.
        harmless: values that have no effect; "" is an empty value, None the keyword alone.
        any_value: whether every value is harmless, because it only concerns a feature that is switched off.
        constants: the names of the constants in PCF for words that are values, unless `attribute` has the numbers.
    """

    keyword: str
    use: Use
    name: str | None = None
    number: int | None = None
    values: str = NONE
    attribute: Attribute | None = None
    why: str = ""
    harmless: frozenset[str | None] = frozenset()
    any_value: bool = False
    constants: Mapping[str, str] = field(default_factory=dict, compare=False)

    def is_harmless(self, value: str | None) -> bool:
        """Whether this value, None for the keyword alone, has no effect here."""
        if value is None:
            return None in self.harmless
        return self.any_value or value.strip(" ") in self.harmless

    @property
    def is_ours(self) -> bool:
        """Whether it exists in inorder and not in MQ."""
        return self.name is None and not self.why


@dataclass(frozen=True, slots=True, kw_only=True)
class MqCommand:
    """A command: a verb and an object.

    `number`: in PCF, None if the command is our own; `why` as in `MqWord`; `kind` as for `words_of`.
    """

    verb: str
    target: str
    kind: str
    number: int | None
    why: str


def _sections(file: str) -> Iterator[tuple[str, list[str]]]:
    """The lines of a file, each with the heading that it stands below, in words."""
    heading = ""
    for line in (files(__package__) / f"{file}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            heading = line.strip("[]")
        else:
            yield heading, line.split()


@cache
def reasons() -> Mapping[str, str]:
    """The reasons why words of MQ are not supported, by their keys in the text files."""
    lines = (files(__package__) / "reasons.txt").read_text(encoding="utf-8").splitlines()
    return {key: sentence.strip() for key, _, sentence in (line.partition(" ") for line in lines)}


@cache
def words_of(kind: str) -> Mapping[str, MqWord]:
    """The words for a kind of object or status, by keyword: queue, qstatus, handle, manager, channel ..."""
    found = {each.mqsc: _word_of(each) for each in _OURS.get(kind, {}).values()}
    for heading, columns in _sections(_FILES.get(kind, "others")):
        of, _, use = heading.partition(" ")
        if of == kind and use in ("", "set", "give", "show"):
            word = _read(cast(Use, use or "show"), kind, *columns)
            ours = found.get(word.keyword)
            found[word.keyword] = word if ours is None else replace(word, attribute=ours.attribute)
    for keyword, constants in _values(kind):
        found[keyword] = replace(found[keyword], constants=constants)
    return MappingProxyType(found)


def _values(kind: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    for of, (keyword, prefix, *values) in _sections("values"):
        if of == kind:
            words = (each.partition("=") for each in values)
            yield keyword, {word: prefix + (name or word) for word, _, name in words}


def _word_of(attribute: Attribute) -> MqWord:
    return MqWord(
        keyword=attribute.mqsc,
        use="set",
        name=attribute.mq_name,
        number=attribute.selector,
        values="|".join(attribute.mqsc_words) or attribute.kind,
        attribute=attribute,
    )


def _read(
    use: Use, kind: str, keyword: str, name: str, number: str, values: str, source: str = "", *harmless: str
) -> MqWord:
    special = {"''": "", "alone": None}
    return MqWord(
        keyword=keyword,
        use=use,
        name=keyword if name == NONE and source != OURS else None if name == NONE else name,
        number=None if number == NONE else int(number),
        values=values,
        why="" if source in (HERE, OURS) else reasons()[source or _reason_of(kind)],
        harmless=frozenset(special.get(each, each) for each in harmless if each != "any"),
        any_value="any" in harmless,
    )


def _reason_of(kind: str) -> str:
    return next(columns[3] for heading, columns in _sections("commands") if heading == "objects" and columns[2] == kind)


@cache
def here(kind: str) -> tuple[str, ...]:
    """The keywords whose values come from here."""
    return tuple(word for word, each in words_of(kind).items() if each.use == "show" and not each.why)


@cache
def lacking(kind: str) -> Mapping[str, MqWord]:
    """The words of MQ that are not supported, by keyword."""
    return {word: each for word, each in words_of(kind).items() if each.why}


@cache
def integers(kind: str) -> frozenset[str]:
    """The keywords of status attributes that are numbers."""
    return frozenset(word for word, each in words_of(kind).items() if each.values == "int")


@cache
def channel_types() -> Mapping[str, str]:
    """The reasons why MQ's other types of channels are not supported, by the words of CHLTYPE."""
    rows = (columns for heading, columns in _sections("channel") if heading == "channel types")
    return {word: reasons()[reason] for word, _, reason in rows if reason != HERE}


@cache
def system_objects() -> Mapping[str, str]:
    """The reasons why SYSTEM objects of MQ are not supported, by their names or the beginnings of these."""
    return {name: reasons()[reason] for _, (name, reason) in _sections("system")}


def why_missing(name: str) -> str | None:
    """Why a SYSTEM object of every queue manager of MQ is not supported; None: MQ has no such object, or it is."""
    for known, why in system_objects().items():
        if name == known or (known.endswith(".") and name.startswith(known)):
            return why
    return None


@cache
def paths() -> Mapping[str, str]:
    """The places of queue attributes in version 1 of IBM's administration interface, by keyword."""
    return {word: path for heading, (word, path, *_) in _sections("queue") if heading == "queue paths"}


@cache
def short_forms() -> Mapping[str, str]:
    """The short forms of verbs and objects, with the words that they stand for."""
    return {columns[1]: columns[0] for _, columns in _sections("commands") if len(columns) > 1 and columns[1] != NONE}


@cache
def commands() -> Mapping[tuple[str, str], MqCommand]:
    """All commands of MQ, and our own, by verb and object, in the order of the verbs."""
    order = [columns[0] for heading, columns in _sections("commands") if heading == "verbs"]
    found: dict[tuple[str, str], MqCommand] = {}
    for heading, columns in _sections("commands"):
        if heading != "objects":
            continue
        target, _, kind, reason, *verbs = columns
        for verb, number, *other in (each.split(":") for each in verbs):
            key = other[0] if other else reason
            found[verb, target] = MqCommand(
                verb=verb,
                target=target,
                kind=kind,
                number=None if number == NONE else int(number),
                why="" if key == HERE else reasons()[key],
            )
    return {pair: found[pair] for pair in sorted(found, key=lambda pair: order.index(pair[0]))}


@cache
def objects_of(verb: str) -> tuple[str, ...]:
    """The objects that inorder has for a verb."""
    return tuple(each.target for each in commands().values() if each.verb == verb and not each.why)


@cache
def verbs() -> tuple[str, ...]:
    """The verbs that inorder has for some object."""
    return tuple(dict.fromkeys(each.verb for each in commands().values() if not each.why))
