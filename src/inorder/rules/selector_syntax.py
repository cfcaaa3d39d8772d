"""Parses the text of a selector: the grammar, the literals, and the place of an error.

The grammar is that of Jakarta Messaging 3.8 with IBM MQ's byte strings. It does not know types: conditions and
values are both expressions, and `selectors.py` checks the types. The result is a tree of `Node`s. BETWEEN and the
operators with NOT are expanded on the way, as the specification defines them, so the tree has no nodes for them.

Lark parses the text with tables (LALR), so no text overflows the stack; only nesting deeper than `DEPTH_MAX`
is refused, for the code that walks the tree. Lark is loaded, and its tables made, with the first selector.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..model.properties import INTEGER_MAX, is_reserved

if TYPE_CHECKING:
    from lark import Lark, Token

DEPTH_MAX: Final = 100
INTEGER_LIMIT: Final = INTEGER_MAX + 1  # after a minus sign it becomes the smallest integer
SHOWN_MAX: Final = 60  # characters of a wrong part that the error shows
INTEGER_DIGITS_MAX: Final = 64  # more than any integer of 64 bits has, in octal digits and zeros

GRAMMAR: Final = r"""
?start: any_of
?any_of: all_of (_OR all_of)*
?all_of: negation (_AND negation)*
?negation: NOT negation -> negated
    | comparison
?comparison: sum
    | sum COMPARE sum -> compared
    | sum [NOT] _BETWEEN sum _AND sum -> between
    | sum [NOT] _IN "(" member ("," member)* ")" -> among
    | sum [NOT] _LIKE TEXT [_ESCAPE TEXT] -> like
    | sum _IS [NOT] _NULL -> is_null
?sum: product (SIGN product)*
?product: signed (FACTOR signed)*
?signed: SIGN signed -> sign
    | value
?value: "(" any_of ")"
    | NAME -> name
    | literal
?member: SIGN NUMBER -> sign_of_number
    | literal
?literal: NUMBER -> number
    | TEXT -> text
    | BYTES -> bytes_
    | TRUE -> true
    | FALSE -> false

COMPARE: "<>" | "<=" | ">=" | "<" | ">" | "="
SIGN: "+" | "-"
FACTOR: "*" | "/"
TEXT: /'(?:[^']|'')*'/
BYTES: /"[^"]*"/
NUMBER: /0[xX][0-9A-Za-z_.$]*|\.?[0-9](?:[eE][+-](?=[0-9])|[0-9A-Za-z_.$])*/
NAME: /[A-Za-z_$\u0080-\U0010ffff][0-9A-Za-z_$.\u0080-\U0010ffff]*/
%declare NOT TRUE FALSE _OR _AND _BETWEEN _IN _LIKE _ESCAPE _IS _NULL
%ignore /[ \t\f\r\n]+/
"""
_KEPT: Final = frozenset({"NOT", "TRUE", "FALSE"})  # The tree is made from these; other keywords only guide the parser

_INTEGER = re.compile(r"(?:(0[xX][0-9a-fA-F]+)|(0[0-7]*)|([1-9][0-9]*))[lL]?")
_FLOAT = re.compile(r"((?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eEfFdD]))(?:[eE][+-]?[0-9]+)?)[fFdD]?")
_BYTES = re.compile(r'"0[xX]((?:[0-9a-fA-F]{2})+)"')
# Common mistakes, and the correction.
_HINTS: Final = {
    "!=": "not equal is written <>",
    "==": "equal is written =",
    "&": "and is written AND",
    "|": "or is written OR",
    "'": "the text that begins here is not closed",
    '"': "the byte string that begins here is not closed",
}
_SIGNS: Final = {"LPAR": "(", "RPAR": ")", "COMMA": ",", "TEXT": "a text in single quotation marks"}


class SyntaxFault(Exception):
    """A syntax error in a selector: its place, and a description."""

    def __init__(self, at: int, what: str) -> None:
        super().__init__(what)
        self.at = at
        self.what = what


class Node(NamedTuple):
    """A part of a selector: its kind, its place in the text, and its own parts."""

    kind: str
    at: int
    value: Any
    operands: tuple[Node, ...] = ()
    depth: int = 1


def _node(kind: str, at: int, value: Any, *operands: Node) -> Node:
    depth = 1 + max(each.depth for each in operands)
    if depth > DEPTH_MAX:
        raise SyntaxFault(at, f"this is nested more than {DEPTH_MAX} deep")
    return Node(kind, at, value, operands, depth)


def _negated(given: object, node: Node) -> Node:
    """The node, or its negation if NOT was given."""
    return node if given is None else _node("not", node.at, None, node)


def _at(token: Token) -> int:
    assert token.start_pos is not None
    return token.start_pos


def _comparison(operator: str, at: int, left: Node, right: Node) -> Node:
    return _node("compare", at, operator, left, right)


class Builder:
    """The methods that Lark calls for the parts it has parsed: one for each name in the grammar."""

    @staticmethod
    def any_of(parts: list[Node]) -> Node:
        return _node("any", parts[0].at, None, *parts)

    @staticmethod
    def all_of(parts: list[Node]) -> Node:
        return _node("all", parts[0].at, None, *parts)

    @staticmethod
    def negated(parts: list[Any]) -> Node:
        return _node("not", _at(parts[0]), None, parts[1])

    @staticmethod
    def compared(parts: list[Any]) -> Node:
        left, operator, right = parts
        return _comparison(str(operator), _at(operator), left, right)

    @staticmethod
    def between(parts: list[Any]) -> Node:
        value, no, low, high = parts
        if no is None:
            pair = (_comparison(">=", low.at, value, low), _comparison("<=", high.at, value, high))
            return _node("all", value.at, None, *pair)
        pair = (_comparison("<", low.at, value, low), _comparison(">", high.at, value, high))
        return _node("any", value.at, None, *pair)

    @staticmethod
    def among(parts: list[Any]) -> Node:
        value, no, *members = parts
        return _negated(no, _node("in", value.at, tuple(members), value))

    @staticmethod
    def like(parts: list[Any]) -> Node:
        value, no, pattern, escape = parts
        given = Builder.text([pattern]), None if escape is None else Builder.text([escape])
        return _negated(no, _node("like", value.at, given, value))

    @staticmethod
    def is_null(parts: list[Any]) -> Node:
        value, no = parts
        return _negated(no, _node("null", value.at, None, value))

    @staticmethod
    def chain(parts: list[Any]) -> Node:
        operators = tuple(str(each) for each in parts[1::2])
        return _node("chain", parts[0].at, operators, *parts[::2])

    sum = product = chain

    @staticmethod
    def sign(parts: list[Any]) -> Node:
        sign, operand = parts
        if operand.kind == "literal" and type(operand.value) in {int, float}:
            return Node("literal", _at(sign), -operand.value if sign == "-" else operand.value)
        return _node("sign", _at(sign), str(sign), operand)

    @staticmethod
    def sign_of_number(parts: list[Any]) -> Node:
        return Builder.sign([parts[0], Builder.number(parts[1:])])

    @staticmethod
    def name(parts: list[Token]) -> Node:
        return Node("name", _at(parts[0]), str(parts[0]))

    @staticmethod
    def number(parts: list[Token]) -> Node:
        return Node("literal", _at(parts[0]), parts[0].value)

    @staticmethod
    def text(parts: list[Token]) -> Node:
        return Node("literal", _at(parts[0]), parts[0][1:-1].replace("''", "'"))

    bytes_ = number

    @staticmethod
    def true(parts: list[Token]) -> Node:
        return Node("literal", _at(parts[0]), True)

    @staticmethod
    def false(parts: list[Token]) -> Node:
        return Node("literal", _at(parts[0]), False)


def _number(token: Token) -> Token:
    """Gives the token its number as value; called before the builder, so that errors come in the order of the text."""
    return token.update(value=_value_of(token))


def _value_of(token: Token) -> int | float:
    if found := _INTEGER.fullmatch(token):
        hexadecimal, octal, decimal = found.groups()
        digits, base = (hexadecimal, 16) if hexadecimal else (octal, 8) if octal else (decimal, 10)
        value = int(digits, base) if len(digits) <= INTEGER_DIGITS_MAX else INTEGER_LIMIT + 1
        if value > INTEGER_LIMIT:
            raise SyntaxFault(_at(token), "this is not an integer of 64 bits")
        return value
    if found := _FLOAT.fullmatch(token):
        approximate = float(found[1])
        if approximate == math.inf:
            raise SyntaxFault(_at(token), "this is larger than any float")
        return approximate
    raise SyntaxFault(_at(token), f"{token[:SHOWN_MAX]} is not a number")


def _byte_string(token: Token) -> Token:
    if found := _BYTES.fullmatch(token):
        return token.update(value=bytes.fromhex(found[1]))
    raise SyntaxFault(_at(token), 'double quotation marks are for bytes, such as "0x2F1C"; a text needs single ones')


def _word(token: Token) -> Token:
    """Returns a name unchanged, and a keyword, in any case, as the keyword."""
    if not is_reserved(token):
        return token
    word = token.upper()
    return token.update(type=word if word in _KEPT else f"_{word}")


@lru_cache(1)
def _reader() -> Lark:
    import lark  # noqa: PLC0415 - most programs use no selector, and loading it and making the tables takes a while

    of_tokens = {"NAME": _word, "NUMBER": _number, "BYTES": _byte_string}
    of_rules: Any = Builder()
    return lark.Lark(GRAMMAR, parser="lalr", lexer="basic", transformer=of_rules, lexer_callbacks=of_tokens)


def read(text: str) -> Node:
    """Parses a selector into a tree. Raises Fault."""
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken  # noqa: PLC0415 - as above

    try:
        return _reader().parse(text)  # type: ignore[return-value]
    except UnexpectedCharacters as error:
        at = error.pos_in_stream or 0
        raise SyntaxFault(at, _hint(text, at) or f"{text[at]!r} has no place in a selector") from None
    except UnexpectedToken as error:
        if error.token.type == "$END":
            raise SyntaxFault(
                len(text), f"the selector ends here, but {_expected(error.expected)} is missing"
            ) from None
        at = error.token.start_pos or 0
        wrong = f"found {error.token[:SHOWN_MAX]}, expected {_expected(error.expected)}"
        raise SyntaxFault(at, _hint(text, at) or wrong) from None


def _hint(text: str, at: int) -> str | None:
    if text[at : at + 1] == "=" and text[at - 1 : at] == "=":
        at -= 1
    return _HINTS.get(text[at : at + 2]) or _HINTS.get(text[at : at + 1])


def _expected(names: set[str]) -> str:
    if "NAME" in names:
        return "a name, a literal or ("
    if "NUMBER" in names:
        return "a literal"
    if "$END" in names:
        return "an operator, ) or the end"
    return " or ".join(sorted(_SIGNS.get(name) or name.lstrip("_") for name in names))
