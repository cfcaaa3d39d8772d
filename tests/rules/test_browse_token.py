"""Tokens of strict browses: their contents are decoded, and any other text is refused before a store sees it."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from inorder import ArgumentError
from inorder.model.message import Place
from inorder.rules.browse_token import Resumed, decode, encode
from inorder.rules.grouping import GroupState
from inorder.rules.ordering import Cursor

HIGHEST, LOWEST = Place(-9, 2**63 - 1, 7), Place(0, 0, 0)
IN_GROUP = Resumed(
    3,
    Cursor(HIGHEST, 2**63 - 1, LOWEST, True, True, ((-9, HIGHEST), (0, LOWEST))),
    GroupState(b"G".ljust(24, b"\0"), 999_999_999, 999_999_999, 0, 31, True, False, True),
)


def changed(where: str, nth: int, value: Any) -> str:
    """The token with one of its values replaced."""
    held = json.loads(base64.urlsafe_b64decode(encode(*IN_GROUP)))
    held[where][nth] = value
    return base64.urlsafe_b64encode(json.dumps(held).encode()).decode()


def test_b41_a_token_contains_the_position_and_the_group() -> None:
    assert decode(encode(*IN_GROUP)) == IN_GROUP
    assert changed("cursor", 1, 5) != encode(*IN_GROUP)
    assert decode(changed("cursor", 1, 5)).cursor.number == 5


@pytest.mark.parametrize(
    ("where", "nth", "value"),
    [
        ("cursor", 0, [-9, 2**63, 0]),
        ("cursor", 0, [-10, 1, 0]),
        ("cursor", 0, [True, 1, 0]),
        ("cursor", 1, -1),
        ("cursor", 3, 1),
        ("cursor", 5, [[0, [0, 2**70, 0]]]),
        ("cursor", 5, [[1, [0, 1, 0]]]),
        ("state", 0, "ff" * 23),
        ("state", 1, 2**63 - 1),
        ("state", 2, -1),
        ("state", 4, 32),
        ("state", 5, 1),
    ],
)
def test_a_token_with_a_value_that_no_browse_has_is_refused(where: str, nth: int, value: Any) -> None:
    with pytest.raises(ArgumentError):
        decode(changed(where, nth, value))


def test_a_token_with_something_added_is_refused() -> None:
    for text in (encode(*IN_GROUP) + "x", encode(*IN_GROUP) + "\n", "!" + encode(*IN_GROUP)):
        with pytest.raises(ArgumentError):
            decode(text)
