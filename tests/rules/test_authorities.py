"""Who may do what: the whole table once more, written by hand, and grants."""

from __future__ import annotations

import itertools

import pytest

from inorder.rules.authorities import AUTHORITIES, GRANTABLE, MANAGER, ROLES, TABLE, fits, may

# Columns: admin, operator, reader; an application that was granted it on this queue.
MAY = {
    "put": (True, True, False, True),
    "get": (True, True, False, True),
    "browse": (True, True, True, True),
    "inquire": (True, True, True, True),
    "set": (True, True, False, True),
    "display": (True, True, True, True),
    "alter": (True, True, False, True),
    "clear": (True, True, False, True),
    "control": (True, True, False, False),
    "administer": (True, False, False, False),
}


def test_the_table_has_every_authority() -> None:
    assert tuple(MAY) == tuple(TABLE) == AUTHORITIES
    assert tuple(name for name, row in MAY.items() if row[3]) == GRANTABLE


@pytest.mark.parametrize("queue", ["ORDERS", MANAGER])
@pytest.mark.parametrize(("authority", "role"), list(itertools.product(MAY, ROLES)))
def test_what_each_role_may_do(authority: str, role: str, queue: str) -> None:
    grants = {"ORDERS": [authority]}
    expected = MAY[authority][ROLES.index(role)] and (role != "application" or queue == "ORDERS")
    assert may([role], grants, authority, queue) is expected


@pytest.mark.parametrize("authority", ["", "PUT", "everything", "delete", "*"])
def test_what_the_table_does_not_know_nobody_may(authority: str) -> None:
    assert not may(ROLES, {"*": [authority]}, authority, "ORDERS")


@pytest.mark.parametrize("authority", AUTHORITIES)
def test_who_has_no_role_or_an_unknown_one_may_nothing(authority: str) -> None:
    assert not may([], {"*": [authority]}, authority, "ORDERS")
    assert not may(["root"], {"*": [authority]}, authority, "ORDERS")
    assert not may(["reader"], {"*": ["put"]}, "put", "ORDERS"), "grants are those of applications"


def test_several_roles_give_what_each_gives() -> None:
    grants = {"ORDERS": ["put"]}
    assert may(["application", "reader"], grants, "browse", "ANY")
    assert may(["application", "reader"], grants, "put", "ORDERS")
    assert not may(["application", "reader"], grants, "put", "ANY")


@pytest.mark.parametrize(
    ("pattern", "queue", "is_it"),
    [
        ("ORDERS", "ORDERS", True),
        ("ORDERS", "ORDERS.NEW", False),
        ("ORDERS", "orders", False),
        ("ORDERS.*", "ORDERS.NEW", True),
        ("ORDERS.*", "ORDERS.", True),
        ("ORDERS.*", "ORDERS", False),
        ("ORDERS*", "ORDERS", True),
        ("ORDERS*", "XORDERS", False),
        ("*", "ANY", True),
    ],
)
def test_which_queues_a_grant_names(pattern: str, queue: str, is_it: bool) -> None:
    assert fits(pattern, queue) is is_it
    assert may(["application"], {pattern: ["get"]}, "get", queue) is is_it


def test_a_grant_of_all_queues_is_none_on_the_queue_manager() -> None:
    assert not may(["application"], {"*": GRANTABLE, "": GRANTABLE}, "inquire", MANAGER)
