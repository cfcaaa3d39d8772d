"""The table of operations that are sent to servers: complete, and the meaning of lost answers, again by hand."""

from __future__ import annotations

import inspect
from types import FunctionType
from typing import Any

import pytest

from inorder.model.message import UniqueId
from inorder.model.options import GetOptions, PutOptions
from inorder.rules.authorities import AUTHORITIES
from inorder.rules.grouping import NOTHING_OPEN
from inorder.rules.lifecycle import Event
from inorder.rules.ordering import UNSET
from inorder.rules.store_verbs import ACTS, ALSO, ASKED, EACH, FILLED_IN, LOST_IF, OTHERS, STAYS, VERBS, lost_of
from inorder.stores.seam.protocol import LocalStore, Store
from inorder.stores.seam.records import GetRequest, LedgerKey, OneMessage, PutRequest

OF_SEAM = {name for name, _ in inspect.getmembers(Store, inspect.isfunction) if not name.startswith("_")}
LOCAL = {name for name, value in vars(LocalStore).items() if isinstance(value, FunctionType) and name[0] != "_"}

READ = set(
    "check_handle queues queue status manager object objects browse_page read_rest unique_ids units has_unit lease "
    "read_claim claims survey read_stretch in_ledger last_settled channels received is_own look gaps order_view waits "
    "locks list_connections overview dropped check".split()
)
HARMLESS = set(
    "open extend close keep_handles reserve_numbers unlock leave_group end_waits extend_lease enter_lease leave_lease "
    "end_global begin_claims claim plan_claims settle_claims return_ahead finish_claims leave_claimed_group "
    "release_claims undo_staging take_channel note_channel note_home_server note_worker next_batch confirm_batch "
    "stop_channel start_channel reset_channel receive receive_piece bind_channel reset_received discard_expired".split()
)
UNKNOWN = set(
    "create_queue alter_queue delete_queue clear_queue retry_now alter_manager define_object alter_object "
    "delete_object put end_group withdraw get wait browse_and_lock one_message undo release_lock settle prepare "
    "settle_prepared begin_global begin_lease end_lease stage settle_staging resolve_channel report_exception".split()
)


def test_every_operation_of_a_store_has_a_row_or_a_reason_not_to_be_sent() -> None:
    assert set(VERBS) | set(STAYS) == OF_SEAM
    assert not set(VERBS) & (set(STAYS) | LOCAL)


def test_rows_are_written_in_the_words_of_the_table() -> None:
    for verb, row in VERBS.items():
        assert row.asks in ASKED or set(row.asks.split()) <= set(AUTHORITIES), verb
        assert set(row.also) <= set(ALSO), verb
    used = {word for row in VERBS.values() for word in (row.asks, *row.also)}
    assert set(ASKED) | set(ALSO) <= used
    assert set(ALSO) >= OTHERS


def test_paths_begin_with_an_argument_of_their_verb() -> None:
    for verb, row in VERBS.items():
        arguments = set(inspect.signature(getattr(Store, verb)).parameters) - {"self", *FILLED_IN.get(verb, ())}
        paths = {row.of} - {"", EACH} | {path for path, *_ in LOST_IF.get(verb, ())}
        assert {path.split(".")[0] for path in paths} <= arguments, verb
    assert set(LOST_IF) | set(ACTS) | set(FILLED_IN) <= set(VERBS)


def test_no_argument_that_says_who_acts_is_sent() -> None:
    for verb in VERBS:
        names = inspect.signature(getattr(Store, verb)).parameters
        said = {name for name in names if name in ("owner", "user")} | ({"most"} if verb == "begin_lease" else set())
        assert set(FILLED_IN.get(verb, ())) == said, verb


def test_the_meaning_of_a_lost_answer_is_as_specified_for_each_operation() -> None:
    found = {verb: row.lost for verb, row in VERBS.items()}
    assert found == dict.fromkeys(READ, "read") | dict.fromkeys(HARMLESS, "harmless") | dict.fromkeys(
        UNKNOWN, "unknown"
    )


def _put(in_unit: bool = False, **options: Any) -> dict[str, Any]:
    return {"request": PutRequest(1, [b"x"], PutOptions(**options), NOTHING_OPEN, in_unit)}


def _get(syncpoint: bool = False, **options: Any) -> dict[str, Any]:
    return {"request": GetRequest(1, GetOptions(**options), NOTHING_OPEN, UNSET, syncpoint)}


def _one(event: Event) -> dict[str, Any]:
    return {"request": OneMessage(handle=1, event=event, uid=UniqueId("A", 1))}


@pytest.mark.parametrize(
    ("verb", "arguments", "lost", "in_lease"),
    [
        ("put", _put(), "unknown", "unknown"),
        ("put", _put(in_unit=True), "harmless", "unknown"),
        ("put", _put(deduplicate="k"), "harmless", "harmless"),
        ("put", _put(uid=UniqueId("A", 1)), "unknown", "unknown"),
        ("put", _put(uid=UniqueId("A", 1), resend=True), "harmless", "harmless"),
        ("get", _get(), "unknown", "unknown"),
        ("get", _get(syncpoint=True), "harmless", "unknown"),
        ("wait", _get(browse="next"), "read", "read"),
        ("one_message", _one(Event.CONFIRM_PUT), "harmless", "harmless"),
        ("one_message", _one(Event.CONFIRM_GET), "harmless", "harmless"),
        ("one_message", _one(Event.DELETE), "unknown", "unknown"),
        ("close", {"handle": 1}, "harmless", "harmless"),
        ("close", {"handle": 1, "delete": True}, "unknown", "unknown"),
        ("settle", {"outcome": "commit"}, "unknown", "unknown"),
        ("settle", {"outcome": "back_out"}, "harmless", "unknown"),
        ("settle_staging", {"key": LedgerKey("a", "", "b"), "stagings": []}, "harmless", "harmless"),
        ("settle_staging", {"key": LedgerKey("a", "", ""), "stagings": []}, "unknown", "unknown"),
        ("report_exception", {"in_unit": True}, "harmless", "unknown"),
        ("report_exception", {"in_unit": False}, "unknown", "unknown"),
    ],
)
def test_the_meaning_of_a_lost_answer_depends_on_these_arguments(
    verb: str, arguments: dict[str, Any], lost: str, in_lease: str
) -> None:
    assert lost_of(verb, arguments) == lost
    assert lost_of(verb, arguments, leased=True) == in_lease
