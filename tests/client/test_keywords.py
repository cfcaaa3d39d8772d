"""Keywords made into options: the same ones are made once, and each is checked as what it is."""

from __future__ import annotations

from typing import Any

import pytest

from inorder import ArgumentError, GetOptions, Match, PutOptions
from inorder.client.keywords import BROWSE_NEXT, get_options, split_put
from inorder.errors import MatchError
from inorder.model.options import DEFAULT_GET


def test_the_same_keywords_give_the_same_options() -> None:
    asked: dict[str, Any] = {"wait": 30, "match": Match(priority=3)}
    assert get_options(asked, None, DEFAULT_GET) is get_options(dict(asked), None, DEFAULT_GET)
    assert get_options(asked, None, DEFAULT_GET) == GetOptions(**asked)


def test_keywords_change_the_options_that_were_given() -> None:
    assert get_options({"wait": 30}, GetOptions(logical=True), DEFAULT_GET) == GetOptions(wait=30, logical=True)
    assert get_options({"wait": 30}, None, BROWSE_NEXT) == GetOptions(wait=30, browse="next")
    given = PutOptions(logical=True)
    found = split_put({"priority": 3, "syncpoint": True}, given)
    assert found == ({"priority": 3}, PutOptions(logical=True, syncpoint=True))
    assert split_put({"priority": 3}, given) == ({"priority": 3}, given)


@pytest.mark.parametrize(("good", "bad"), [(True, 1), (False, 0), (True, 1.0)])
def test_a_value_is_refused_though_its_equal_was_taken(good: bool, bad: Any) -> None:
    get_options({"logical": good}, None, DEFAULT_GET)
    with pytest.raises(ArgumentError, match="logical"):
        get_options({"logical": bad}, None, DEFAULT_GET)


def test_a_value_that_has_no_hash_is_told_like_any_other() -> None:
    with pytest.raises((ArgumentError, MatchError), match="match"):
        get_options({"match": {"priority": 3}}, None, DEFAULT_GET)
