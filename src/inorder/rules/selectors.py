"""Selectors: conditions on properties and fields of messages, in a subset of SQL-92.

The language is the one of Jakarta Messaging (JMS) 3.8 and of IBM MQ. A selector is true, false or unknown for a
message, and matches it if true. A missing property is unknown, and operators treat unknown as in SQL:

    AND      true     false   unknown        OR       true  false    unknown        NOT
    true     true     false   unknown        true     true  true     true           true     false
    false    false    false   false          false    true  false    unknown        false    true
    unknown  unknown  false   unknown        unknown  true  unknown  unknown        unknown  unknown

A comparison of different types is false, also with <>; <, <=, > and >= compare only numbers; LIKE is false for any
value that is not a text. Arithmetic with other values than numbers, and a division by zero, is unknown, and so is a
value that is not a boolean in place of a condition. Integers are exact up to 1,024 bits, and a larger result is
unknown; their division truncates towards zero. An integer and a float are compared by their values, without rounding
first.

Errors that the text alone shows are refused when the selector is compiled, with their place: errors of syntax,
impossible names, `'a' > 3` and `colour > 'red'`. A compiled selector has a closure for each node of the tree; no code
is generated. It reads fields and properties only as it needs them, so a store may fetch only those in `names` and
`fields`, and the properties as late as possible.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from ..errors import ArgumentError, Reason, bad_argument, nearest_names
from ..model.message import Message
from ..model.options import Match
from ..model.parameters import is_storable
from ..model.properties import INTEGER_MAX, PropertyValue, fault_of_name
from .selector_fields import ANY, BOOLEAN, BYTES, FIELDS, JMS, NUMBER, TEXT, SelectorField
from .selector_syntax import Node, SyntaxFault, read

LENGTH_MAX: Final = 10_240  # MQ_SELECTOR_LENGTH
WEIGHING: Final = 128  # characters of a selector that cost about as much as reading a message
BITS_MAX: Final = 1_024  # of the result of arithmetic: as large as a float
KEPT_MAX: Final = 256  # compiled selectors in the cache
SHOWN_BEFORE, SHOWN_MAX = 40, 72  # characters of a line around an error that are shown

Fields = Mapping[str, Any]
Values = Mapping[str, PropertyValue]
Run = Callable[[Fields, Values], Any]

KIND_OF: Final[dict[type, str]] = {bool: BOOLEAN, int: NUMBER, float: NUMBER, str: TEXT, bytes: BYTES}
TYPES: Final = {kind: frozenset(each for each, its in KIND_OF.items() if its == kind) for kind in KIND_OF.values()}
NUMBERS: Final = TYPES[NUMBER]
EQUALITY: Final[dict[str, Callable[[Any, Any], bool]]] = {"=": operator.eq, "<>": operator.ne}
ORDER: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
MIRRORED: Final = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Selector:
    """A compiled selector. It is equal to any other with the same text.

    Attributes:
        text: as it was given.
        names: the properties that it reads.
        fields: the fields of `Message` that it reads.
        matches: the selector as a function of a mapping with those fields, as a message has them, and of the message's
            properties; returns True, False, or None for unknown. Only True matches.
        weight: the factor by which a message costs more to evaluate than with a short selector.
    """

    __slots__ = ("fields", "matches", "names", "text", "weight")

    def __init__(self, text: str, names: frozenset[str], fields: frozenset[str], matches: Run) -> None:
        self.text = text
        self.names = names
        self.fields = fields
        self.weight = 1 + len(text) // WEIGHING
        self.matches: Callable[[Fields, Values], bool | None] = matches

    def fits(self, message: Message) -> bool:
        """Whether the selector is true for a message as a get returns it."""
        fields = {name: getattr(message, name) for name in self.fields}
        return self.matches(fields, message.properties) is True

    def __eq__(self, other: object) -> bool:
        return self.text == other.text if isinstance(other, Selector) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.text)

    def __reduce__(self) -> tuple[Callable[[str], Selector], tuple[str]]:
        return compile_selector, (self.text,)

    def __repr__(self) -> str:
        return f"Selector({self.text!r})"


def compile_selector(text: str) -> Selector:
    """Compiles a selector; selectors that were compiled before are cached.

    Raises:
        ArgumentError: 2459 SELECTOR_SYNTAX_ERROR, with `line` and `column`, both from 1; 2504 SELECTOR_ALWAYS_FALSE,
            if it names nothing and is not true; 2519 SELECTION_STRING_ERROR, if it is not a text, is empty, or has more
            than 10,240 characters.
    """
    if not isinstance(text, str) or not is_storable(text):
        raise bad_argument("selector", text, "a text", Reason.SELECTION_STRING_ERROR)
    if not text.strip():
        raise bad_argument("selector", text, "a condition, or left out", Reason.SELECTION_STRING_ERROR)
    if len(text) > LENGTH_MAX:
        allowed = f"at most {LENGTH_MAX:,} characters"
        raise bad_argument("selector", f"{len(text):,} characters", allowed, Reason.SELECTION_STRING_ERROR)
    return _compiled(str.__str__(text))


def selector_of(match: Match) -> Selector | None:
    """The compiled selector of a match, if it has one. Raises as `compile_selector`."""
    return None if match.selector is None else compile_selector(match.selector)


@lru_cache(KEPT_MAX)
def _compiled(text: str) -> Selector:
    compiler = _Compiler()
    try:
        run = compiler.condition(read(text))
    except SyntaxFault as fault:
        raise _syntax_error(text, fault) from None
    if not (compiler.names or compiler.fields) and run({}, {}) is not True:
        allowed = "a condition that can be true for some message"
        raise bad_argument("selector", text, allowed, Reason.SELECTOR_ALWAYS_FALSE)
    return Selector(text, frozenset(compiler.names), frozenset(compiler.fields), run)


def _syntax_error(text: str, fault: SyntaxFault) -> ArgumentError:
    begin = text.rfind("\n", 0, fault.at) + 1
    line, column = text.count("\n", 0, begin) + 1, fault.at - begin + 1
    shown, under = _excerpt(text[begin:].partition("\n")[0], column - 1)
    message = f"the selector is wrong at line {line}, column {column}: {fault.what}\n    {shown}\n    {' ' * under}^"
    given = {"argument": "selector", "value": text, "allowed": "a selector"}
    return ArgumentError(message, reason=Reason.SELECTOR_SYNTAX_ERROR, **given, line=line, column=column)


def _excerpt(line: str, at: int) -> tuple[str, int]:
    """Cuts a long line around an error, with blanks for invisible characters; also the position of the error in it."""
    begin = max(0, at - SHOWN_BEFORE) if len(line) > SHOWN_MAX else 0
    shown = "".join(each if each.isprintable() else " " for each in line[begin : begin + SHOWN_MAX])
    return shown.rstrip(), at - begin


class Operand(NamedTuple):
    """A compiled node: its type, if the text shows it, and a function for its value."""

    kind: str
    run: Run
    field: SelectorField | None = None  # set if the node is just this field


class _Compiler:
    """Compiles the nodes of one tree, and records the names that they read."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.fields: set[str] = set()

    def operand(self, node: Node) -> Operand:
        made: Operand = getattr(self, f"_{node.kind}")(node)
        return made

    def wanted(self, node: Node, kind: str) -> Run:
        made = self.operand(node)
        if made.kind not in {kind, ANY}:
            raise SyntaxFault(node.at, f"this is {made.kind}, but must be {kind}")
        return made.run

    def condition(self, node: Node) -> Run:
        made = self.operand(node)
        if made.kind == BOOLEAN:
            return made.run
        if made.kind != ANY:
            raise SyntaxFault(node.at, f"this is {made.kind}, but must be a condition")
        return _truth(made.run)

    # --- names and literals

    def _name(self, node: Node) -> Operand:
        name = node.value
        if field := FIELDS.get(name):
            self.fields.add(field.source)
            return Operand(field.kind, _of_field(field), field)
        _check_property(node)
        self.names.add(name)
        return Operand(ANY, lambda fields, values: values.get(name))

    def _literal(self, node: Node) -> Operand:
        constant = _constant(node)
        return Operand(KIND_OF[type(constant)], lambda fields, values: constant)

    # --- conditions

    def _all(self, node: Node) -> Operand:
        return Operand(BOOLEAN, _joined([self.condition(each) for each in node.operands], decides=False))

    def _any(self, node: Node) -> Operand:
        return Operand(BOOLEAN, _joined([self.condition(each) for each in node.operands], decides=True))

    def _not(self, node: Node) -> Operand:
        run = self.condition(node.operands[0])

        def negated(fields: Fields, values: Values) -> bool | None:
            truth = run(fields, values)
            return None if truth is None else not truth

        return Operand(BOOLEAN, negated)

    def _null(self, node: Node) -> Operand:
        run = self.operand(node.operands[0]).run
        return Operand(BOOLEAN, lambda fields, values: run(fields, values) is None)

    def _compare(self, node: Node) -> Operand:
        sign, (first, second) = node.value, node.operands
        if first.kind == "literal" and second.kind != "literal":
            sign, first, second = MIRRORED[sign], second, first
        left, right = self.operand(first), self.operand(second)
        kinds = {left.kind, right.kind} - {ANY}
        if len(kinds) > 1:
            raise SyntaxFault(node.at, f"{left.kind} and {right.kind} cannot be compared")
        if sign in ORDER and kinds - {NUMBER}:
            raise SyntaxFault(node.at, f"{kinds.pop()} can only be compared with = and <>")
        if second.kind == "literal":
            constant = _constant(second, left.field)
            return Operand(BOOLEAN, _comparison_with(left.run, (ORDER | EQUALITY)[sign], constant))
        return Operand(BOOLEAN, _comparison(left.run, sign, right.run))

    def _in(self, node: Node) -> Operand:
        operand = self.operand(node.operands[0])
        run = operand.run
        members = set()
        for each in node.value:
            constant = _constant(each, operand.field)
            kind = KIND_OF[type(constant)]
            if operand.kind not in {kind, ANY}:
                raise SyntaxFault(each.at, f"{operand.kind} cannot be compared with {kind}")
            members.add((kind, constant))

        def is_member(fields: Fields, values: Values) -> bool | None:
            value = run(fields, values)
            return None if value is None else (KIND_OF[type(value)], value) in members

        return Operand(BOOLEAN, is_member)

    def _like(self, node: Node) -> Operand:
        run = self.wanted(node.operands[0], TEXT)
        pattern, escape = node.value
        is_like = _pattern(pattern, escape)

        def matches(fields: Fields, values: Values) -> bool | None:
            value = run(fields, values)
            return None if value is None else type(value) is str and is_like(value)

        return Operand(BOOLEAN, matches)

    # --- arithmetic

    def _chain(self, node: Node) -> Operand:
        first, *rest = (self.wanted(each, NUMBER) for each in node.operands)
        steps = [(OPERATIONS[sign], run) for sign, run in zip(node.value, rest, strict=True)]

        def result(fields: Fields, values: Values) -> float | None:
            total = first(fields, values)
            if type(total) not in NUMBERS:
                return None
            for operation, run in steps:
                value = run(fields, values)
                if type(value) not in NUMBERS:
                    return None
                try:
                    total = operation(total, value)
                except ArithmeticError:  # a division by zero, or an integer that no float can hold
                    return None
                if type(total) is int and total.bit_length() > BITS_MAX:
                    return None  # otherwise a selector of a few thousand factors takes a second for each message
            return total  # type: ignore[no-any-return]

        return Operand(NUMBER, result)

    def _sign(self, node: Node) -> Operand:
        run = self.wanted(node.operands[0], NUMBER)
        negative = node.value == "-"

        def signed(fields: Fields, values: Values) -> float | None:
            value = run(fields, values)
            return None if type(value) not in NUMBERS else -value if negative else value

        return Operand(NUMBER, signed)


# Fields of JMS whose values are here under other names.
ELSEWHERE: Final[Mapping[str, str]] = {
    "JMSDestination": "every message of a queue has this queue as its destination",
    "JMSExpiration": "Root.MQMD.Expiry has the time that is left, in tenths of a second, or -1 without a limit",
    "JMSRedelivered": "JMSXDeliveryCount is more than 1 for a message that was got before",
    "JMSReplyTo": "Root.MQMD.ReplyToQ and Root.MQMD.ReplyToQMgr have the queue for replies",
}


def _check_property(node: Node) -> None:
    name = node.value
    if name.startswith(("Root.", JMS)) and (fault := fault_of_name(name)):
        if name in ELSEWHERE:
            raise SyntaxFault(node.at, f"there is no field {name}: {ELSEWHERE[name]}")
        near = nearest_names(name, FIELDS)
        alike = [each for each in FIELDS if each.partition(".")[0][:3] == name[:3]]
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(alike)}"
        raise SyntaxFault(node.at, f"there is no field {name[:60]}: {hint}")
    if fault := fault_of_name(name):
        raise SyntaxFault(node.at, f"the name of a property must be {fault[1]}")


def _of_field(field: SelectorField) -> Run:
    source, convert = field.source, field.value
    if convert is None:
        return lambda fields, values: fields[source]
    return lambda fields, values: convert(fields[source])


def _constant(node: Node, compared_with: SelectorField | None = None) -> Any:
    """The value of a literal, converted to the form of the field that it is compared with."""
    value = node.value
    if type(value) is int and value > INTEGER_MAX:
        raise SyntaxFault(node.at, "this is not an integer of 64 bits")
    if compared_with is None or compared_with.literal is None or KIND_OF[type(value)] != compared_with.kind:
        return value
    try:
        return compared_with.literal(value)
    except ValueError as error:
        raise SyntaxFault(node.at, str(error)) from None


def _truth(run: Run) -> Run:
    """Makes a condition of a value: a value that is not a boolean is unknown."""

    def truth(fields: Fields, values: Values) -> bool | None:
        value = run(fields, values)
        return value if value is True or value is False else None

    return truth


def _joined(parts: list[Run], *, decides: bool) -> Run:
    """Joins conditions by AND, where a false one decides, or by OR, where a true one does."""
    otherwise = not decides

    def joined(fields: Fields, values: Values) -> bool | None:
        result: bool | None = otherwise
        for part in parts:
            truth: object = part(fields, values)
            if truth is decides:
                return decides
            if truth is not otherwise:
                result = None
        return result

    return joined


def _comparison_with(run: Run, test: Callable[[Any, Any], bool], constant: Any) -> Run:
    like_types = TYPES[KIND_OF[type(constant)]]

    def comparison(fields: Fields, values: Values) -> bool | None:
        value = run(fields, values)
        return None if value is None else type(value) in like_types and test(value, constant)

    return comparison


def _comparison(left: Run, sign: str, right: Run) -> Run:
    orders = sign in ORDER
    test = (ORDER | EQUALITY)[sign]

    def comparison(fields: Fields, values: Values) -> bool | None:
        one, other = left(fields, values), right(fields, values)
        if one is None or other is None:
            return None
        kind = KIND_OF[type(one)]
        return kind == KIND_OF[type(other)] and (kind == NUMBER or not orders) and test(one, other)

    return comparison


def _divided(one: float, other: float) -> float:
    if type(one) is int and type(other) is int:
        quotient = abs(one) // abs(other)
        return quotient if (one < 0) == (other < 0) else -quotient
    return one / other


OPERATIONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divided,
}


# --- LIKE


def _pattern(pattern: Node, escape: Node | None) -> Callable[[str], bool]:
    """Makes a test for a pattern: its pieces between the % are searched one after another, each at its first
    occurrence.

    The first occurrence is always enough, because a later end of a piece leaves less text for the rest. The number of
    steps is at most the length of the text times the length of the pattern.
    """
    pieces = _pieces(pattern, escape)
    first, *rest = map(_expression, pieces)
    if not rest:
        return lambda text: first.fullmatch(text) is not None
    *middle, last = rest
    width = len(pieces[-1])

    def is_like(text: str) -> bool:
        found = first.match(text)
        for piece in middle:
            if found is None:
                return False
            found = piece.search(text, found.end())
        begin = len(text) - width
        return found is not None and begin >= found.end() and last.match(text, begin) is not None

    return is_like


def _expression(piece: list[str | None]) -> re.Pattern[str]:
    return re.compile("".join("." if each is None else re.escape(each) for each in piece), re.DOTALL)


def _pieces(pattern: Node, escape: Node | None) -> list[list[str | None]]:
    """The characters between one % and the next; None stands for any character, written _ in a pattern."""
    mark = None if escape is None else escape.value
    if escape is not None and len(escape.value) != 1:
        raise SyntaxFault(escape.at, "ESCAPE must be followed by one character")
    pieces: list[list[str | None]] = [[]]
    characters = iter(pattern.value)
    for each in characters:
        if each == mark:
            following = next(characters, "")
            if following not in {"%", "_", mark}:
                raise SyntaxFault(pattern.at, f"in this pattern {mark} must be followed by %, _ or itself")
            pieces[-1].append(following)
        elif each == "%":
            pieces.append([])
        else:
            pieces[-1].append(None if each == "_" else each)
    return pieces
