"""The public calls: how many there are, what `help()` shows of them, and the names that they had in 0.1.0."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import pytest

from inorder import GetOptions, GroupWriter, Match, Message, OpenOptions, PutOptions, Queue, QueueManager
from inorder.client.admin import Admin
from inorder.client.bulk import Bulk
from inorder.client.dead_letters import DeadLetters
from inorder.client.inspection import Inspect
from inorder.client.keywords import PutCall
from inorder.client.users import Accounts
from inorder.model.options import EVERYTHING, BrowseKeywords, GetKeywords, OpenKeywords
from inorder.work import Tasks

NAMESPACES = (Admin, Accounts, Bulk, DeadLetters, Inspect)
OF_0_1_0 = {  # all that its reference lists
    QueueManager: """
    abandon acting acts alter_manager alter_process alter_queue alter_user attributes back_out backup browse
    browse_and_lock bury check claims clear_queue clock close close_queue commit confirm_get confirm_put connect
    create_alias create_model create_process create_queue create_remote_queue create_token create_user
    dead_letters delete delete_process delete_queue delete_user depth discard_dead discard_expired dropped
    end_lease end_waits finish_claims gaps get get_group get_many get_stream give_up group has_unit hook identify
    in_ledger inquire is_idle is_observed last_settled lease leave_claimed_group leave_group listen locks look
    manager_attributes observe open open_growing order_view overview owner path prepare process processes program
    put put_json put_many put_stream queues release_claims release_lock replay replies reply report request
    resume_lease revoke_token serve settle settle_staging status stop tell tokens undo undo_staging unique_ids
    unit_of_work units unlock user users waits watch worker
    """,
    Queue: """
    attributes browse browse_and_lock browse_cursor browse_first browse_next browse_on browse_token checked_for
    close confirm_get confirm_put delete end_group get get_many get_state given go_on incarnation is_idle
    leave_group number opened_for put put_many put_state release_lock resume session set standing status
    take_group undo unique_ids unlock withdraw
    """,
}


def public(one: object) -> set[str]:
    return {name for name in dir(one) if not name.startswith("_")}


def test_the_number_of_public_names_is_limited(qm: QueueManager) -> None:
    assert len(public(QueueManager)) <= 49
    assert len(public(Queue)) <= 24
    assert public(qm) == public(QueueManager)
    for kind in NAMESPACES:
        assert not public(kind) & public(QueueManager), "each call has one place"


def test_every_old_name_of_0_1_0_is_found_with_a_deprecation_warning(qm: QueueManager) -> None:
    with qm.open("Q") as queue:
        for one in (qm, queue):
            for name in set(OF_0_1_0[type(one)].split()) - public(type(one)):
                told = rf"^{name}\b.* is now .*; the old name ends with 0\.3$"
                with pytest.warns(DeprecationWarning, match=told) as warned:
                    getattr(one, name)
                assert [one.filename for one in warned] == [__file__]


def test_an_old_call_does_what_the_new_one_does(qm: QueueManager) -> None:
    with pytest.warns(DeprecationWarning, match=r"create_alias\(\.\.\.\) is now create_queue\(\.\.\., type='alias'\)"):
        qm.create_alias("A", base_queue="Q")  # type: ignore[attr-defined]
    assert (qm.attributes("A").type, qm.attributes("A").base_queue) == ("alias", "Q")
    with pytest.warns(DeprecationWarning, match=r"units is now inspect\.units"):
        assert qm.units() == qm.inspect.units() == []  # type: ignore[attr-defined]
    renamed = {"bury": DeadLetters.add, "dead_letters": DeadLetters.letters, "discard_dead": DeadLetters.discard}
    for old, now in renamed.items():
        with pytest.warns(DeprecationWarning, match=f"^{old} is now dead"):
            assert getattr(qm, old).__func__ is now


@pytest.mark.parametrize("name", ["colour", "create_queues", "_units"])
def test_a_name_that_never_existed_raises_attribute_error(qm: QueueManager, name: str) -> None:
    with pytest.raises(AttributeError, match=f"'QueueManager' object has no attribute '{name}'"):
        getattr(qm, name)


def test_signatures_are_not_overridden_and_are_readable() -> None:
    for kind in (QueueManager, Queue, GroupWriter, Match, Message, Tasks, *NAMESPACES):
        for name, call in inspect.getmembers(kind, inspect.isfunction):
            if name.startswith("_") and name != "__init__":
                continue
            assert not hasattr(call, "__signature__"), f"{kind.__name__}.{name}"
            shown = str(inspect.signature(call))
            assert not re.search(r"Ellipsis|\\x00| at 0x", shown), f"{kind.__name__}.{name}{shown}"


def defaults_of(*kinds: type) -> dict[str, Any]:
    return {one.name: one.default for kind in kinds for one in fields(kind)}


KEYWORDS: Mapping[Callable[..., object], tuple[type, dict[str, Any]]] = {
    QueueManager.put: (PutCall, {**{n: f.default for n, f in Message.FIELDS.items()}, **defaults_of(PutOptions)}),
    QueueManager.get: (GetKeywords, {**defaults_of(GetOptions), "selector": None}),
    QueueManager.browse: (BrowseKeywords, {**defaults_of(GetOptions), "selector": None}),
    QueueManager.open: (OpenKeywords, defaults_of(OpenOptions)),
}


@pytest.mark.parametrize("call", KEYWORDS, ids=lambda call: call.__name__)
def test_help_lists_each_keyword_with_its_default(call: Callable[..., object]) -> None:
    kind, defaults = KEYWORDS[call]
    doc = inspect.getdoc(call) or ""
    text = re.split(r"\*\*(?:keywords|options):", doc)[1].split("\n\n")[0]
    shown = dict(re.findall(r"(\w+)=([^,\s]+?)\.?(?=[,\s]|$)", text))
    assert shown.keys() == kind.__annotations__.keys()
    for name, value in shown.items():
        told, default = eval(value, {"EVERYTHING": EVERYTHING}), defaults[name]
        if name == "properties":
            default = dict(default)
        elif isinstance(default, bytes):
            default = default.rstrip(b"\0")
        assert told == default, name


def test_a_type_checker_knows_that_a_message_that_was_got_has_all_its_values(qm: QueueManager) -> None:
    """Mypy checks this test, too: none of these may be None."""
    qm.put("Q", b"")
    message = qm.get("Q")
    expiry: float = message.expiry
    assert message.priority + message.uid.number + message.place.number + expiry > 0
