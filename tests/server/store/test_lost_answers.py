"""A wire that breaks before the server has a call, or before the client has its answer: nothing happens twice (W-4)."""

from __future__ import annotations

from typing import Any, Final

import pytest
from tests.helpers.proxy import Way
from tests.server.store.broken import Call, calls, elsewhere, state

from inorder.errors import Fenced, OutcomeUnknown, Reason
from inorder.rules.store_verbs import VERBS
from inorder.stores.remote import store

CALLS: Final = calls()
LOCAL: Final = {"settle", "has_unit", "end_waits"}  # the client answers these itself while there is no unit and no wait
RUNS: Final = {"note_channel: taken", "reset_channel: there"}  # the run ends with its connection


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "PAUSES", (0.001, 0.01))


def test_each_verb_has_a_call() -> None:
    assert {one.verb for one in CALLS.values()} == VERBS.keys()


@pytest.mark.parametrize("title", [title for title, one in CALLS.items() if one.verb not in LOCAL])
def test_a_call_whose_connection_breaks_happens_once_or_its_outcome_is_unknown(title: str) -> None:
    call = CALLS[title]
    with elsewhere() as at:
        call.before(at)
        without, lost = state(at.store), call.lost(at)
        answer, once = call.made(at), state(at.store)
    for way in ("to server", "to client"):
        with elsewhere() as at:
            call.before(at)
            at.far._reserve(1)  # so that a put asks for no more
            at.proxy.cut_after(way, 0)
            _check(call, call.made(at), way, lost, answer)
            assert at.far.manager().name == "QM1", "the connection is made again"
            expected = without if lost == "unknown" and way == "to server" else once
            if title in RUNS:
                expected = without if way == "to server" else once
            assert state(at.store) == expected, way


def _check(call: Call, found: Any, way: Way, lost: str, answer: Any) -> None:
    if call.title in RUNS:
        assert found is Fenced
    elif call.title == "settle_staging: an own one" and way == "to client":
        assert found is OutcomeUnknown, "the staging is gone: the ledger must be asked"
    elif call.title == "one_message: confirm a get" and way == "to client":
        assert found is Reason.NOT_FOUND, "a warning: the message is gone"
    elif lost == "unknown":
        assert found is OutcomeUnknown
    elif isinstance(answer, type):
        assert found is answer
    else:
        assert type(found) is type(answer), found
