"""Parses a command in MQSC into a `Command`, without any I/O.

::

    command     = verb object [ "(" name ")" ] parameter* [ ";" ]
    parameter   = KEYWORD | KEYWORD "(" value+ ")"          only WHERE has more than one value
    value       = word | 'text'

Keywords and words may be written in lower case. Values are checked here too, against the table of attributes, so that a
script that parses completely can only fail because of the objects on the queue manager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NoReturn, cast, get_args

from ...errors import ArgumentError, nearest_names
from ...model.attribute import Attribute, changed_by, check_queue_name
from ...model.attributes import QueueType
from ..words import commands, here, integers, lacking
from . import channelling, connecting, managing, processes
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
from .errors import Unsupported, syntax_error, unknown_word, unsupported
from .lines import Source, together
from .objects import Words, read_asked
from .parameters import Parameter, Tokens, ignores_state, refuse_all, without_effect
from .tokens import CommandToken, tokens_of
from .values import allowed_values, read_value
from .words import (
    BY_TYPE,
    ENDS,
    INTEGER_STATUS,
    LOCAL_KEYWORDS,
    OBJECTS,
    QUEUE_KEYWORDS,
    SHORT,
    STATUS_KEYWORDS,
    TYPES,
    VERBS,
    is_switch,
    keywords_of,
)

NAMES: Final = "a name of 1 to 48 characters from A-Z a-z 0-9 . / _ %"
OWNER_WORDS: Final[Mapping[str, str]] = {each.type: each.who for each in BY_TYPE.values()} | {
    "manager": "the queue manager"
}
STATUS_WORDS: Final = Words(
    who="a queue's status",
    keywords={"QUEUE": QUEUE_KEYWORDS["QUEUE"]},
    shown=STATUS_KEYWORDS,
    integers=INTEGER_STATUS,
    unsupported_names=lacking("qstatus"),
)
HANDLE_WORDS: Final = Words(
    who="a handle",
    keywords={},
    shown=tuple(connecting.STATUS),
    integers=integers("handle"),
    unsupported_names=lacking("handle"),
)


def parse(source: Source, *, skip: list[str] | None = None) -> Command:
    """Parses a piece of script into a command.

    Args:
        skip: collects MQ keywords that are not supported, and leaves them out; None: they are errors.

    Raises MqscSyntaxError, with line and column, the text found and the allowed text; Unsupported for a feature of MQ
    that is not supported here.
    """
    tokens = Tokens(list(tokens_of(together(source))))
    verb = _verb(tokens)
    if verb in ENDS:
        tokens.take_end()
        return End()
    target = _object(tokens, verb)
    name = "" if target in managing.TARGETS else _name(tokens, target, generic=verb == "DISPLAY")
    parameters = tokens.take_parameters()
    while True:
        try:
            return _command(verb, target, name, parameters)
        except Unsupported as error:
            keyword = error.data["keyword"]
            if skip is None or keyword is None:
                raise
            skip.append(str(keyword))
            parameters = [each for each in parameters if each.keyword != keyword]


def _command(verb: str, target: str, name: str, parameters: Sequence[Parameter]) -> Command:
    if target in channelling.OBJECTS:
        return channelling.read_channel_command(verb, target, name, parameters)
    if target == connecting.OBJECT:
        return connecting.read_display_of_connections(name, parameters)
    if target == processes.OBJECT:
        return processes.read_process_command(verb, name, parameters)
    if target == managing.STATUS or (verb == "PING" and target == "QMGR"):
        return managing.read_manager_command(verb, target, parameters)
    if target == "QMGR":
        return _alter_manager(parameters) if verb == "ALTER" else _display_manager(parameters)
    if verb == "DISPLAY":
        return _display_status(name, parameters) if target == "QSTATUS" else _display(target, name, parameters)
    if verb in _ON_QUEUES:
        return _ON_QUEUES[verb](TYPES[target], name, parameters)
    refuse_all(parameters)
    return Clear(name=name) if verb == "CLEAR" else ObjectCommand(verb=verb, target=target, name=name)


def _verb(tokens: Tokens) -> str:
    token = tokens.take()
    verb = SHORT.get(token.value, token.value)
    if token.kind == "word" and (verb in VERBS or verb in ENDS):
        return verb
    allowed = f"{', '.join(VERBS)} or END"
    if token.kind == "word":
        _refuse_command(token, verb, tokens.next, allowed)
    if token.value == "DEL":
        allowed = "DELETE, which has no short form, as in MQ"
    raise token.refused(allowed, nearest=nearest_names(token.value, VERBS))


def _object(tokens: Tokens, verb: str) -> str:
    token = tokens.take()
    target = SHORT.get(token.value, token.value)
    if token.kind == "word" and target in OBJECTS[verb]:
        return target
    allowed = " or ".join(f"{verb} {each}" for each in OBJECTS[verb])
    _refuse_command(token, verb, token, allowed)
    raise token.refused(allowed, nearest=nearest_names(token.value, OBJECTS[verb]))


def _refuse_command(at: CommandToken, verb: str, token: CommandToken, allowed: str) -> None:
    """Raises Unsupported for a command of MQ that is not here. `token` is its object, `at` the word to be shown."""
    target = SHORT.get(token.value, token.value)
    command = commands().get((verb, target))
    if command is None or token.kind != "word":
        return
    is_here = verb not in VERBS or any(target in objects for objects in OBJECTS.values())
    what = f"MQ's command {verb} {target}" if is_here else f"MQ's object {target}"
    raise unsupported(at.at, what, command.why, allowed)


def _name(tokens: Tokens, target: str, *, generic: bool) -> str:
    values = tokens.take_values(target)
    if len(values) > 1:
        raise values[1].refused(f"one name, as in {target}(NAME)")
    if target == connecting.OBJECT:
        return connecting.connection_number(values[0])
    return _checked_name(values[0], generic=generic)


def _checked_name(token: CommandToken, *, generic: bool = False) -> str:
    name = token.value
    if generic and name.endswith("*"):
        if name != "*":
            _check(name[:-1], token, f"{NAMES}, or its beginning and *")
        return name
    _check(name, token, f"{NAMES}, or its beginning and *" if generic else NAMES)
    return name


def _check(name: str, token: CommandToken, allowed: str) -> None:
    try:
        check_queue_name(name)
    except ArgumentError:
        raise token.refused(allowed) from None


# ---- DEFINE, ALTER, DELETE, CLEAR


def _define(kind: QueueType, name: str, parameters: Sequence[Parameter]) -> Define:
    like, replace = None, False
    rest = []
    for each in parameters:
        if each.keyword == "LIKE":
            like = _checked_name(each.value(f"LIKE({NAMES})"))
        elif each.topic == "REPLACE":
            each.refuse_value("REPLACE or NOREPLACE")
            replace = each.keyword == "REPLACE"
        else:
            rest.append(each)
    attributes, idle = _attributes(rest, kind, "DEFINE", "LIKE REPLACE NOREPLACE".split())
    return Define(name=name, type=kind, attributes=attributes, like=like, replace=replace, without_effect=idle)


def _alter(kind: QueueType, name: str, parameters: Sequence[Parameter]) -> Alter:
    changes, idle = _attributes(parameters, kind, "ALTER")
    return Alter(name=name, type=kind, changes=changes, without_effect=idle)


def _alter_manager(parameters: Sequence[Parameter]) -> AlterManager:
    changes, idle = _attributes(parameters, "manager", "ALTER")
    return AlterManager(changes=changes, without_effect=idle)


def _delete(kind: QueueType, name: str, parameters: Sequence[Parameter]) -> Delete:
    purge, ignores, idle = False, False, []
    for each in parameters:
        if each.topic == "PURGE" and kind == "local":
            each.refuse_value("PURGE or NOPURGE")
            purge = each.keyword == "PURGE"
        elif each.keyword == "IGNSTATE":
            ignores = ignores_state(each)
        elif each.keyword == "AUTHREC":
            idle.append(without_effect(each, lacking("queue")))
        else:
            allowed = "PURGE, NOPURGE or IGNSTATE(...)" if kind == "local" else "IGNSTATE(...)"
            raise each.token.refused(allowed)
    return Delete(name=name, type=kind, purge=purge, ignores_state=ignores, without_effect=tuple(idle))


_ON_QUEUES: Final[Mapping[str, Callable[[QueueType, str, Sequence[Parameter]], Command]]] = {
    "DEFINE": _define,
    "ALTER": _alter,
    "DELETE": _delete,
}


def _attributes(
    parameters: Iterable[Parameter], owner: str, verb: str, also: Sequence[str] = ()
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The given attributes, by our names, and the keywords without effect."""
    keywords = {word: each for word, each in keywords_of(owner).items() if _is_open(each, owner, verb)}
    unsupported_names = lacking("manager" if owner == "manager" else "queue")
    given: dict[str, Any] = {}
    idle: list[str] = []
    for each in parameters:
        if (found := _switched(keywords, each)) is not None:
            each.refuse_value(f"{each.topic} or NO{each.topic}")
            given[found.name] = not each.keyword.startswith("NO")
        elif (found := keywords.get(each.keyword)) is not None and not is_switch(found):
            given[found.name] = read_value(found, each.value(allowed_values(found)))
        elif each.keyword in unsupported_names:
            idle.append(without_effect(each, unsupported_names))
        else:
            _refuse(each, owner, verb, [*_spelled(keywords), *also])
    return given, tuple(idle)


def _is_open(attribute: Attribute, owner: str, verb: str) -> bool:
    """Whether the command may set this attribute: the name is given separately, the type by the object."""
    if attribute.name in ("name", "type"):
        return False
    return verb == "DEFINE" or changed_by(attribute, owner) != "create"


def _switched(keywords: Mapping[str, Attribute], parameter: Parameter) -> Attribute | None:
    found = keywords.get(parameter.topic)
    return found if found is not None and is_switch(found) else None


def _spelled(keywords: Mapping[str, Attribute]) -> list[str]:
    return [*keywords, *(f"NO{word}" for word, each in keywords.items() if is_switch(each))]


def _refuse(parameter: Parameter, owner: str, verb: str, known: Sequence[str]) -> NoReturn:
    """Raises the error for a keyword that is not allowed here."""
    who, word = OWNER_WORDS[owner], parameter.topic
    if word in keywords_of(owner):
        raise syntax_error(
            parameter.token.at, f"{word}, which {verb} cannot give to {who}", "an attribute that can change"
        )
    if word in QUEUE_KEYWORDS:
        raise syntax_error(parameter.token.at, f"{word}, which {who} does not have", f"one of {', '.join(known)}")
    raise unknown_word(parameter.token.at, parameter.keyword, f"an attribute of {who}", known)


# ---- DISPLAY


def _display(target: str, name: str, parameters: Sequence[Parameter]) -> Display:
    kind = TYPES.get(target)
    rest = []
    for each in parameters:
        if each.keyword == "TYPE" and each.values is not None and target == "QUEUE":
            kind = _type(each)
        else:
            rest.append(each)
    words = Words(
        who="a queue",
        keywords=QUEUE_KEYWORDS if kind is None else keywords_of(kind),
        shown=LOCAL_KEYWORDS if kind in (None, "local") else (),
        integers=INTEGER_STATUS,
        unsupported_names=lacking("queue"),
    )
    asked, where = read_asked(rest, words)
    return Display(name=name, type=kind, keywords=asked, where=where)


def _type(parameter: Parameter) -> QueueType | None:
    allowed = " or ".join(f"TYPE({each})" for each in ("ALL", *TYPES))
    token = parameter.value(allowed)
    word = SHORT.get(token.value, token.value)
    if word != "ALL" and word not in TYPES:
        raise token.refused(allowed)
    return TYPES.get(word)


def _display_status(name: str, parameters: Sequence[Parameter]) -> Display:
    kind, handles, rest = "QUEUE", "ALL", []
    opening: Parameter | None = None
    for each in parameters:
        if each.keyword == "TYPE" and each.values is not None:
            kind = each.word(("QUEUE", "HANDLE"))
        elif each.keyword == "OPENTYPE":
            opening, handles = each, each.word(get_args(Handles))
        else:
            rest.append(each)
    if kind == "HANDLE":
        asked, where = read_asked(rest, HANDLE_WORDS)
        return Display(name=name, keywords=asked, where=where, is_status=True, handles=cast(Handles, handles))
    if opening is not None:
        raise opening.token.refused("OPENTYPE beside TYPE(HANDLE)")
    asked, where = read_asked(rest, STATUS_WORDS)
    return Display(name=name, keywords=asked, where=where, is_status=True)


def _display_manager(parameters: Sequence[Parameter]) -> DisplayManager:
    words = Words(
        who="the queue manager",
        keywords=keywords_of("manager"),
        shown=here("manager"),
        unsupported_names=lacking("manager"),
    )
    for each in parameters:
        if each.keyword == "WHERE":
            raise each.token.refused(f"ALL, or one of {', '.join((*words.keywords, *words.shown))}")
    asked, _ = read_asked(parameters, words)
    return DisplayManager(keywords=asked)
