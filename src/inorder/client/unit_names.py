"""The names of units for operators, and ways to settle units by hand; for the server and the command.

The name of a unit has its kind, its queue or connection, and its own name::

    session:12                  the open unit of work of connection 12
    prepared:NAME               a unit that was prepared
    confirm:QUEUE:7             messages held under confirm id 7
    lock:QUEUE:3                messages locked under lock id 3
    claim:QUEUE:APPLICATION#4   messages claimed by a bulk reader
    staging:NAME                rows that a bulk writer has not put yet
    lease:NAME                  puts and gets of server clients under a token, until a deadline
    global:NAME                 a unit of work with parts at other queue managers
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ..errors import UnitNotFound, WrongState, nearest_names, written
from ..stores.seam.records import Outcome
from ..stores.seam.views import Holder, Unit
from .manager import QueueManager

INSTEAD: Final[Mapping[tuple[Outcome, str], str]] = MappingProxyType(
    {
        ("commit", "session"): "only its own connection can commit it; if that ends first, the unit is backed out",
        ("back_out", "session"): "only its own connection can back it out; ending that process does so too",
        ("commit", "confirm"): "its messages are confirmed one by one, with confirm_put and confirm_get",
        ("commit", "staging"): "its writer puts the staged rows when it commits",
        ("commit", "lease"): "only its token can commit it; at its deadline it is backed out",
        ("commit", "lock"): "a lock id has nothing to commit; use 'inorder lock release'",
        ("back_out", "lock"): "use 'inorder lock release'",
        ("commit", "claim"): "use 'inorder claim finish'",
        ("back_out", "claim"): "use 'inorder claim release'",
        ("commit", "global"): "its program decides; 'inorder unit settle' then carries that out at the owners",
        ("back_out", "global"): "its program decides; 'inorder unit settle' then carries that out at the owners",
    }
)
"""For each outcome and kind of unit that an operator cannot settle by name: how such a unit ends."""
PART: Final = re.compile(r"([0-9a-f]{32})/[0-9a-f]{8}/[0-9]+/.+")
"""The name of a prepared part of a global unit (`two_phases.branch_name`), which begins with the id of a store."""


def key_of(one: Unit) -> str:
    """Returns the name of a unit."""
    return key_in(one.queue, one)


def key_in(queue: str | None, one: Unit | Holder) -> str:
    """Returns the name of a unit, or of the holder of a message of that queue."""
    if one.kind == "session":
        return f"session:{one.connection}"
    name = f"{queue}:{one.name}" if one.kind in ("confirm", "lock", "claim") else one.name
    return f"{one.kind}:{name}"


def find_unit(qm: QueueManager, name: str) -> Unit:
    """Returns the unit of that name; a prepared unit needs no prefix. Raises: UnitNotFound, with similar names."""
    units = {key_of(one): one for one in qm.inspect.units()}
    found = units.get(name) or units.get(f"prepared:{name}")
    if found is None:
        near = nearest_names(name, units)
        hint = f"; did you mean {' or '.join(near)}?" if near else ": 'inorder unit list' lists them"
        raise UnitNotFound(f"there is no unit {written(name)}{hint}", unit=name, nearest=near)
    return found


def coordinator_of(one: Unit) -> str:
    """Returns the id of the store that decides a unit; empty: this one, or any program that knows its name."""
    found = PART.fullmatch(one.name) if one.kind == "prepared" else None
    return found[1] if found else ""


def check_settled_here(one: Unit, outcome: Outcome) -> None:
    """Raises: WrongState, this kind of unit is settled in another way."""
    if (outcome, one.kind) in INSTEAD:
        process = f" (process {one.process})" if one.process else ""
        raise WrongState(f"{key_of(one)}{process}: {INSTEAD[outcome, one.kind]}", unit=key_of(one))


def settle_by_hand(qm: QueueManager, one: Unit, outcome: Outcome) -> None:
    """Commits or backs out a prepared unit, backs out a lease, undoes a confirm id, or drops staged rows.

    Raises: WrongState, this kind of unit is settled in another way; UnitNotFound and others, it is already settled.
    """
    check_settled_here(one, outcome)
    if one.kind == "prepared":
        qm.settle(one.name, outcome)
    elif one.kind == "confirm":
        qm.undo(one.queue, int(one.name))
    elif one.kind == "lease":
        qm.admin.end_lease(one.name)
    else:
        qm.bulk.undo_staging([one.name])
