"""Invalid selectors: each is refused with MQ's reason, and a fault in the text is told with its place."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inorder.errors import ArgumentError, Reason
from inorder.model.properties import RESERVED
from inorder.rules.selectors import LENGTH_MAX, compile_selector


def refusal(text: Any) -> ArgumentError:
    with pytest.raises(ArgumentError) as refused:
        compile_selector(text)
    return refused.value


def rows(text: str) -> list[Any]:
    """The parameters of each line: the selector, with ^ before the fault, and the text of the error."""
    lines = (line.split(" :: ") for line in text.strip().splitlines())
    return [pytest.param(marked.strip(), said.strip(), id=marked.strip()) for marked, said in lines]


@pytest.mark.parametrize(
    ("marked", "said"),
    rows(
        r"""
        colour = ^AND urgent :: found AND, expected a name, a literal or (
        colour =^ :: the selector ends here, but a name, a literal or ( is missing
        (colour = 'red'^ :: the selector ends here, but ) is missing
        colour = 'red'^) :: found ), expected an operator, ) or the end
        ^= 1 :: found =, expected a name
        colour ^red :: found red, expected an operator
        age BETWEEN 1 ^OR 2 :: found OR, expected AND
        age BETWEEN 1^ :: the selector ends here, but AND is missing
        age IS ^3 :: found 3, expected NOT or NULL
        age NOT ^= 3 :: found =, expected BETWEEN or IN or LIKE
        age IN ^3 :: found 3, expected (
        age IN (^x) :: found x, expected a literal
        age IN (1^ :: the selector ends here, but ) or , is missing
        age = ^NULL :: found NULL, expected a name
        word LIKE ^x :: found x, expected a text in single quotation marks
        word LIKE 'x' ESCAPE ^1 :: found 1, expected a text
        word LIKE 'x' ESCAPE ^'xy' :: ESCAPE must be followed by one character
        word LIKE ^'\x' ESCAPE '\' :: in this pattern \ must be followed by %, _ or itself
        word LIKE ^'x\' ESCAPE '\' :: in this pattern \ must be followed by
        20 < b ^< 30 :: found <, expected
        a =^= b :: equal is written =
        a ^!= b :: not equal is written <>
        a = 1 ^&& b = 1 :: and is written AND
        a = 1 ^|| b = 1 :: or is written OR
        a = ^'red :: the text that begins here is not closed
        a = ^"red" :: double quotation marks are for bytes
        a = ^"0xAFC" :: double quotation marks are for bytes
        a = ^"0x0A :: the byte string that begins here is not closed
        a = 1^; :: ';' has no place in a selector
        a = 1 -- x ^= 2 :: found =, expected
        a = ^09 :: 09 is not a number
        a = ^17red b :: 17red is not a number
        a = ^9223372036854775808 :: not an integer of 64 bits
        a = -^9223372036854775809 :: not an integer of 64 bits
        a = ^0xFFFFFFFFFFFFFFFF :: not an integer of 64 bits
        a = ^1e400 :: larger than any float
        ^'red' :: this is a text, but must be a condition
        ^5 :: this is a number, but must be a condition
        urgent AND ^Root.MQMD.Priority :: this is a number, but must be a condition
        colour ^> 'red' :: a text can only be compared with = and <>
        urgent ^>= TRUE :: a boolean can only be compared with = and <>
        Root.MQMD.Format ^< x :: a text can only be compared with = and <>
        'a' ^> 3 :: a text and a number cannot be compared
        'a' BETWEEN ^1 AND 2 :: a text and a number cannot be compared
        Root.MQMD.Priority IN (1, ^'high') :: a number cannot be compared with a text
        JMSDeliveryMode ^= 2 :: a text and a number cannot be compared
        ^'a' + 1 = 2 :: this is a text, but must be a number
        1 + ^TRUE = 2 :: this is a boolean, but must be a number
        ^5 LIKE '5' :: this is a number, but must be a text
        ^Root.MQMD.Foo = 1 :: there is no field Root.MQMD.Foo: did you mean
        ^Root.MQMD.priority = 1 :: there is no field Root.MQMD.priority: did you mean Root.MQMD.Priority
        ^Root.XYZ = 1 :: there are Root.MQMD.AccountingToken, Root.MQMD.ApplIdentityData
        ^JMSQ = 'x' :: there are JMSCorrelationID, JMSDeliveryMode
        ^a..b = 1 :: the name of a property must be parts of letters
        ^“red” = 1 :: the name of a property must be parts of letters
        ^usr.colour = 1 :: the name of a property must be written without usr.
        ^mq.a.b = 1 :: the name of a property must be one with a single dot
        ^Body.a = 1 :: the name of a property must be one outside Root and Body
        Root.MQMD.MsgId = ^"0x00000000000000000000000000000000000000000000000000" :: the field has 24 bytes
        JMSMessageID = ^'ID:x' :: after ID: there must be pairs of hex digits
        JMSCorrelationID IN ('a', ^'longer than twenty-four bytes') :: the field has 24 bytes
        """
    ),
)
def test_a_fault_is_reported_with_its_place(marked: str, said: str) -> None:
    at = marked.index("^")
    error = refusal(marked.replace("^", "", 1))
    message, shown, under = str(error.args[0]).split("\n")
    assert error.reason is Reason.SELECTOR_SYNTAX_ERROR
    assert said in message
    assert (error.line, error.column) == (1, at + 1)
    if len(marked) < 72:
        assert (shown.strip(), under.index("^") - 4) == (marked.replace("^", "", 1), at)


def test_the_whole_text_of_an_error() -> None:
    assert str(refusal("colour = 'red'\n  AND age => 3")) == (
        "the selector is wrong at line 2, column 12: found >, expected a name, a literal or (\n"
        "      AND age => 3\n"
        "               ^ [2459 SELECTOR_SYNTAX_ERROR]"
    )


def test_a_long_line_is_shown_around_the_fault() -> None:
    text = " OR ".join(["a = 1"] * 200) + " OR = 3" + " OR a = 2" * 200
    error = refusal(text)
    _, shown, under = str(error.args[0]).split("\n")
    assert text[error.column - 1] == "="
    assert len(shown) <= 80
    assert shown[under.index("^")] == "="
    assert (error.value, error.argument) == (text, "selector")


def test_an_error_does_not_show_control_characters_of_the_selector() -> None:
    error = refusal("a = 'x\x1b[2J\u202e' b")
    assert "\x1b" not in str(error)
    assert "\u202e" not in str(error)


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_no_property_name_may_be_a_reserved_word(word: str) -> None:
    for written in (word, word.lower(), word.title()):
        if word not in {"TRUE", "FALSE"}:
            assert refusal(f"{written} = 1").reason is Reason.SELECTOR_SYNTAX_ERROR
        assert refusal(f"usr.{written} = 1").reason is Reason.SELECTOR_SYNTAX_ERROR
        assert compile_selector(f"x{written} = 1").names == {f"x{written}"}
        assert compile_selector(f"{written}.x = 1").names == {f"{written}.x"}
        looks_alike = written.replace("I", "\u0131").replace("S", "\u017f")  # their capitals are I and S
        assert looks_alike == written or compile_selector(f"{looks_alike} = 1").names == {looks_alike}


@pytest.mark.parametrize(
    "text", ["FALSE", "1 = 2", "NOT TRUE", "1 / 0 = 1", "'a' IN ('b')", "'a' IS NULL", "TRUE AND 1 > 2"]
)
def test_a_selector_that_can_match_no_message_is_refused(text: str) -> None:
    assert refusal(text).reason is Reason.SELECTOR_ALWAYS_FALSE


@pytest.mark.parametrize("text", [None, 1, b"a = 1", "", " \n", "a = '\ud800'", "a = " + "1" * (LENGTH_MAX - 3)])
def test_a_value_that_cannot_be_a_selector_is_refused(text: Any) -> None:
    assert refusal(text).reason is Reason.SELECTION_STRING_ERROR


@pytest.mark.parametrize(
    "text",
    [
        "NOT " * 2_000 + "a",
        "-" * 9_000 + "a = 1",
        "(NOT " * 1_500 + "a" + ")" * 1_500,
        "1+(" * 2_500 + "a" + ")" * 2_500 + "=1",
        "(a=1 AND " * 1_000 + "a=1" + ")" * 1_000,
        "a BETWEEN 0 AND (" * 500 + "1" + ")" * 500,
    ],
    ids=range(6),
)
def test_a_selector_that_is_nested_too_deep_is_refused(text: str) -> None:
    error = refusal(text)
    assert error.reason is Reason.SELECTOR_SYNTAX_ERROR
    assert "nested more than 100 deep" in str(error) or "cannot be compared" in str(error)


PARTS = """a b.c Root.MQMD.Priority JMSMessageID 1 -7.5 'x' '%_' "0x00" TRUE null NULL
    AND or NOT = <> < >= + - * / ( ) , IN LIKE ESCAPE IS BETWEEN""".split()


@given(
    st.one_of(
        st.text(),
        st.lists(st.sampled_from(PARTS), max_size=12).map(" ".join),
        st.lists(st.sampled_from(PARTS)).map("".join),
    )
)
def test_any_text_is_a_selector_or_is_refused_with_its_place(text: str) -> None:
    try:
        selector = compile_selector(text)
    except ArgumentError as refused:
        error = refused
    else:
        assert selector.matches({"priority": 1, "message_id": bytes(24)}, {}) in {True, False, None}
        return
    if error.reason is Reason.SELECTOR_SYNTAX_ERROR:
        lines = text.split("\n")
        assert 1 <= error.line <= len(lines)
        assert 1 <= error.column <= len(lines[error.line - 1]) + 1


def test_the_parser_is_imported_with_the_first_selector() -> None:
    code = (
        "import sys, inorder.rules.selectors as selectors\n"
        "assert 'lark' not in sys.modules\n"
        "selectors.compile_selector('a = 1')\n"
        "assert 'lark' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
