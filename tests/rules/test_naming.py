"""MQ's table of name resolution (between N-1, N-2, mq-semantics R4.1)."""

from __future__ import annotations

from typing import Any

import pytest

from inorder.errors import ArgumentError, InorderError, Reason, WrongQueueType
from inorder.model.attributes import QueueAttributes, define_manager, define_queue
from inorder.model.message import Transmission
from inorder.rules.naming import Names, Route

DEFINED: list[QueueAttributes] = [
    define_queue("LOCAL"),
    define_queue("MODEL", "model"),
    define_queue("XMIT", usage="transmission"),
    define_queue("QM2", usage="transmission"),
    define_queue("ALIAS", "alias", base_queue="LOCAL"),
    define_queue("ALIAS.REMOTE", "alias", base_queue="REMOTE"),
    define_queue("ALIAS.NONE", "alias", base_queue="NONE"),
    define_queue("ALIAS.MODEL", "alias", base_queue="MODEL"),
    define_queue("ALIAS.LOST", "alias", base_queue="LOST"),
    define_queue("REMOTE", "remote", remote_queue="R", remote_manager="QM2"),
    define_queue("BY.XMIT", "remote", remote_queue="R", remote_manager="QM2", transmission_queue="XMIT"),
    define_queue("LOST", "remote", remote_queue="R", remote_manager="QM9"),
    define_queue("OWN", "remote", remote_queue="R", remote_manager="QM1", transmission_queue="XMIT"),
    define_queue("NOWHERE", "remote", remote_queue="R", transmission_queue="XMIT"),
    define_queue("BY.NONE", "remote", remote_queue="R", remote_manager="QM2", transmission_queue="NONE"),
    define_queue("BY.ALIAS", "remote", remote_queue="R", remote_manager="QM2", transmission_queue="ALIAS"),
    define_queue("BY.LOCAL", "remote", remote_queue="R", remote_manager="QM2", transmission_queue="LOCAL"),
    define_queue("AS.ALIAS", "remote", remote_queue="R", remote_manager="ALIAS"),
    define_queue("AS.LOCAL", "remote", remote_queue="R", remote_manager="LOCAL"),
    define_queue("PARIS", "remote", remote_manager="QM2"),
    define_queue("ROME", "remote", remote_manager="QM3", transmission_queue="XMIT"),
    define_queue("HERE", "remote", remote_manager="QM1"),
    define_queue("HERE.TOO", "remote"),
    define_queue("LOST.QM", "remote", remote_manager="QM9"),
    define_queue("AGAIN", "remote", remote_manager="PARIS"),
]
TO_R = Transmission("R", "QM2")


def names(**manager: Any) -> Names:
    return Names(define_manager(name="QM1", **manager), {one.name: one for one in DEFINED})


def told(route: Route) -> tuple[str, str, Transmission | None]:
    return route.queue.name, " ".join(one.name for one in route.over), route.transmission


@pytest.mark.parametrize(
    ("name", "manager", "default", "expected"),
    [
        ("LOCAL", "", "", ("LOCAL", "", None)),
        ("LOCAL", "QM1", "", ("LOCAL", "", None)),
        ("XMIT", "", "", ("XMIT", "", None)),
        ("ALIAS", "", "", ("LOCAL", "ALIAS", None)),
        ("REMOTE", "", "", ("QM2", "REMOTE", TO_R)),
        ("ALIAS.REMOTE", "", "", ("QM2", "ALIAS.REMOTE REMOTE", TO_R)),
        ("BY.XMIT", "", "", ("XMIT", "BY.XMIT", TO_R)),
        ("LOST", "", "XMIT", ("XMIT", "LOST", Transmission("R", "QM9"))),
        ("ALIAS.LOST", "", "XMIT", ("XMIT", "ALIAS.LOST LOST", Transmission("R", "QM9"))),
        ("ANY", "QM2", "XMIT", ("QM2", "", Transmission("ANY", "QM2"))),
        ("ANY", "QM9", "XMIT", ("XMIT", "", Transmission("ANY", "QM9"))),
        ("LOCAL", "QM2", "", ("QM2", "", Transmission("LOCAL", "QM2"))),
        ("ANY", "PARIS", "", ("QM2", "PARIS", Transmission("ANY", "QM2"))),
        ("ANY", "ROME", "", ("XMIT", "ROME", Transmission("ANY", "QM3"))),
        ("ANY", "LOST.QM", "XMIT", ("XMIT", "LOST.QM", Transmission("ANY", "QM9"))),
        ("LOCAL", "HERE", "", ("LOCAL", "HERE", None)),
        ("LOCAL", "HERE.TOO", "", ("LOCAL", "HERE.TOO", None)),
        ("BY.XMIT", "HERE", "", ("XMIT", "HERE BY.XMIT", TO_R)),
        ("ANY", "ALIAS", "XMIT", ("XMIT", "", Transmission("ANY", "ALIAS"))),
    ],
)
def test_a_name_is_resolved_as_in_mqs_table(
    name: str, manager: str, default: str, expected: tuple[str, str, Transmission]
) -> None:
    assert told(names(default_transmission_queue=default).route(name, manager)) == expected


@pytest.mark.parametrize(
    ("name", "manager", "default", "reason"),
    [
        ("NONE", "", "", 2085),
        ("NONE", "HERE", "", 2085),
        ("MODEL", "", "", 2043),
        ("ALIAS.NONE", "", "", 2082),
        ("ALIAS.MODEL", "", "", 2001),
        ("LOST", "", "", 2087),
        ("ALIAS.LOST", "", "", 2087),
        ("OWN", "", "", 2087),
        ("NOWHERE", "", "XMIT", 2087),
        ("ANY", "QM9", "", 2087),
        ("ANY", "LOST.QM", "", 2087),
        ("ANY", "REMOTE", "XMIT", 2087),
        ("ANY", "MODEL", "XMIT", 2087),
        ("ANY", "ALIAS", "", 2087),
        ("PARIS", "", "", 2184),
        ("BY.NONE", "", "XMIT", 2196),
        ("BY.ALIAS", "", "XMIT", 2091),
        ("AS.ALIAS", "", "XMIT", 2091),
        ("ANY", "AGAIN", "XMIT", 2091),
        ("BY.LOCAL", "", "XMIT", 2092),
        ("AS.LOCAL", "", "XMIT", 2092),
        ("ANY", "LOCAL", "XMIT", 2092),
        ("ANY", "QM9", "NONE", 2197),
        ("ANY", "QM9", "ALIAS", 2198),
        ("ANY", "QM9", "LOCAL", 2199),
    ],
)
def test_a_name_that_cannot_be_resolved_raises_the_specified_reason(
    name: str, manager: str, default: str, reason: int
) -> None:
    with pytest.raises(InorderError) as raised:
        names(default_transmission_queue=default).route(name, manager)
    assert raised.value.reason == reason
    assert (name in str(raised.value)) or (manager in str(raised.value)) or (default in str(raised.value))


def test_an_error_on_the_way_to_another_queue_manager_names_this_one() -> None:
    """Names are case-sensitive: a message for PARIS is not for paris."""
    with pytest.raises(InorderError, match="this queue manager is called 'paris'"):
        Names(define_manager(name="paris"), {}).route("Q", "PARIS")


def test_the_attributes_of_a_route_combine_those_of_all_its_definitions() -> None:
    defined = [
        define_queue("AL", "alias", base_queue="R", default_priority=7, default_persistence=False),
        define_queue("R", "remote", remote_queue="Q", remote_manager="QM2", put_allowed=False, default_priority=5),
        define_queue("QM2", usage="transmission", max_length=10, default_priority=3, order="commit"),
    ]
    made = Names(define_manager(name="QM1"), {one.name: one for one in defined}).route("AL").attributes
    assert (made.name, made.max_length, made.order) == ("QM2", 10, "commit")
    assert (made.default_priority, made.default_persistence, made.put_allowed) == (7, False, False)


@pytest.mark.parametrize(
    ("queue", "expected"),
    [
        ("LOCAL", ("LOCAL", "QM1")),
        ("REMOTE", ("R", "QM2")),
        ("PARIS", ("PARIS", "QM2")),
        ("HERE.TOO", ("HERE.TOO", "QM1")),
    ],
)
def test_a_reply_queue_is_resolved_to_a_queue_and_a_queue_manager(queue: str, expected: tuple[str, str]) -> None:
    assert names().reply_to(queue) == expected


@pytest.mark.parametrize(
    "given",
    [
        {"remote_queue": "Q", "remote_manager": "QM2", "transmission_queue": "N"},
        {"remote_queue": "Q", "remote_manager": "N"},
        {"remote_manager": "N"},
    ],
)
def test_a_definition_that_would_lead_to_itself_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        names().check(define_queue("N", "remote", **given))


def test_a_remote_queue_of_this_queue_manager_is_an_alias_for_replies() -> None:
    """It may be defined; an open fails, because it leads nowhere else (2087)."""
    alias = define_queue("ANSWERS", "remote", remote_queue="REPLIES", remote_manager="HERE")
    known = Names(define_manager(name="HERE"), {"ANSWERS": alias})
    known.check(alias)
    assert known.reply_to("ANSWERS") == ("REPLIES", "HERE")
    with pytest.raises(WrongQueueType) as raised:
        known.route("ANSWERS")
    assert raised.value.reason == Reason.UNKNOWN_REMOTE_Q_MGR


@pytest.mark.parametrize(("base", "is_good"), [("LOCAL", 1), ("REMOTE", 1), ("NONE", 1), ("MODEL", 0), ("ALIAS", 0)])
def test_an_alias_may_not_name_a_model_or_another_alias(base: str, is_good: int) -> None:
    alias = define_queue("N", "alias", base_queue=base)
    if is_good:
        names().check(alias)
        return
    with pytest.raises(WrongQueueType) as raised:
        names().check(alias)
    assert raised.value.reason == 2001
