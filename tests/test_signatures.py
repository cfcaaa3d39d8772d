"""What `help()` shows of calls: their keywords by name, as type checkers know them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import inorder
from inorder import GetOptions, Match, Message, PutOptions, Queue, QueueManager
from inorder.keywords import PutCall

KINDS = (Match, Message, Queue, QueueManager)
# They pass on whatever another call takes, which their text names; or are for rules and stores.
FREE = {"Queue.set", "QueueManager.put_stream", "Message.replace", "Message.with_values"}


def public_calls() -> Iterator[tuple[str, Callable[..., Any]]]:
    for kind in KINDS:
        yield kind.__name__, kind
        for name, member in inspect.getmembers(kind, inspect.isfunction):
            if not name.startswith("_"):
                yield f"{kind.__name__}.{name}", member


@pytest.mark.parametrize(("name", "call"), [*public_calls()], ids=[name for name, _ in public_calls()])
def test_no_call_hides_its_keywords_behind_two_stars(name: str, call: Callable[..., Any]) -> None:
    stars = [one for one in inspect.signature(call).parameters.values() if one.kind is one.VAR_KEYWORD]
    assert bool(stars) == (name in FREE), f"{name} has {stars}"


def test_help_shows_names_types_and_defaults() -> None:
    shown = inspect.signature(QueueManager.put)
    assert [*shown.parameters] == ["self", "queue", "body", "options", "manager", *PutCall.__annotations__]
    assert shown.parameters["priority"].annotation == "int | None"
    assert shown.parameters["context"].default == PutOptions().context
    assert inspect.signature(Queue.get).parameters["wait"].default == GetOptions().wait
    assert inspect.signature(QueueManager.create_queue).parameters["read_order"].default == "relaxed"
    assert [*inspect.signature(QueueManager.request).parameters][1:5] == ["queue", "body", "timeout", "report"]


def test_a_call_is_what_it_was(qm: QueueManager) -> None:
    with pytest.raises(inorder.ArgumentError, match="colour"):
        qm.put("Q", b"", colour="red")  # type: ignore[call-arg]
    qm.put("Q", b"1", priority=3)
    assert qm.get("Q").priority == 3


def test_a_message_that_was_got_has_what_the_queue_manager_fills_in(qm: QueueManager) -> None:
    """Judged by the type checker as much as by the test: none of these may be None."""
    qm.put("Q", b"")
    expiry: float
    for message in (next(qm.browse("Q")), qm.get("Q")):
        assert message.priority + 1 == 1
        assert message.persistent is True
        expiry = message.expiry
        assert expiry > 0
        assert message.uid.number > 0
        assert message.place.number > 0
    assert inorder.Got is Message


def test_short_docstrings_of_what_users_call_cite_no_rule() -> None:
    """The long ones do it in a line of their own, which begins with Rules."""
    cites = re.compile(r"\((?:[A-D]-\d|[RTGP]\d+\.\d|mq-semantics)")
    for kind in KINDS:
        for name, thing in inspect.getmembers(kind):
            told = inspect.getdoc(thing) if not name.startswith("_") else None
            assert told is None or not cites.search(told), f"{kind.__name__}.{name}"
