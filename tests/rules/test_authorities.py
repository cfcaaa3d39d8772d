"""Authorities: the whole table, written again by hand; and grants."""

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
def test_each_role_has_the_authorities_of_the_table(authority: str, role: str, queue: str) -> None:
    grants = {"ORDERS": [authority]}
    expected = MAY[authority][ROLES.index(role)] and (role != "application" or queue == "ORDERS")
    assert may([role], grants, authority, queue) is expected


def test_several_roles_give_the_authorities_of_each() -> None:
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
def test_a_grant_covers_the_queues_that_fit_its_pattern(pattern: str, queue: str, is_it: bool) -> None:
    assert fits(pattern, queue) is is_it
    assert may(["application"], {pattern: ["get"]}, "get", queue) is is_it


@pytest.mark.parametrize(
    ("roles", "grants", "authority", "queue"),
    [
        *((ROLES, {"*": [unknown]}, unknown, "ORDERS") for unknown in ("", "PUT", "delete", "*")),
        *(([], {"*": [authority]}, authority, "ORDERS") for authority in AUTHORITIES),
        *((["root"], {"*": [authority]}, authority, "ORDERS") for authority in AUTHORITIES),
        (["reader"], {"*": ["put"]}, "put", "ORDERS"),  # only applications have grants
        (["application"], {"*": GRANTABLE, "": GRANTABLE}, "inquire", MANAGER),
    ],
)
def test_authorities_that_are_unknown_or_not_granted_are_denied(
    roles: list[str], grants: dict[str, list[str]], authority: str, queue: str
) -> None:
    assert not may(roles, grants, authority, queue)
