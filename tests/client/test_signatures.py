"""The keywords of calls as `help()` and type checkers see them."""

from __future__ import annotations

import inspect

import pytest

from inorder import ArgumentError, GetOptions, Match, Message, PutOptions, Queue, QueueManager
from inorder.client.keywords import PutCall

# They pass on the keywords of another call, which their text names; or are for rules and stores.
FREE = {"Queue.set", "QueueManager.put_stream", "Message.replace", "Message.with_values"}


def test_calls_name_their_keywords_with_types_and_defaults(qm: QueueManager) -> None:
    calls = {
        f"{kind.__name__}.{name}": inspect.signature(member)
        for kind in (Match, Message, Queue, QueueManager)
        for name, member in [("", kind), *inspect.getmembers(kind, inspect.isfunction)]
        if not name.startswith("_")
    }
    stars = {
        name for name, call in calls.items() if any(one.kind is one.VAR_KEYWORD for one in call.parameters.values())
    }
    assert stars == FREE
    put = calls["QueueManager.put"].parameters
    assert [*put] == ["self", "queue", "body", "options", "manager", *PutCall.__annotations__]
    assert (put["priority"].annotation, put["context"].default) == ("int | None", PutOptions().context)
    assert calls["Queue.get"].parameters["wait"].default == GetOptions().wait
    assert calls["QueueManager.create_queue"].parameters["read_order"].default == "relaxed"
    with pytest.raises(ArgumentError, match="colour"):
        qm.put("Q", b"", colour="red")  # type: ignore[call-arg]


def test_a_type_checker_knows_that_a_message_that_was_got_has_all_its_values(qm: QueueManager) -> None:
    """Judged by mypy as much as by the test: none of these may be None."""
    qm.put("Q", b"")
    message = qm.get("Q")
    expiry: float = message.expiry
    assert message.priority + message.uid.number + message.place.number + expiry > 0
