"""`inorder unit` and `lock`: lists units of work and locks, settles units by hand, and releases locks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import click
from rich.table import Table

from ..client.manager import QueueManager
from ..client.unit_names import check_settled_here, coordinator_of, find_unit, key_of, settle_by_hand
from ..errors import WrongState
from ..formats.json_lines import when
from ..stores.seam.records import Outcome
from ..stores.seam.views import LockView, MessageView, Unit
from .listing import Rows, record_of_sight
from .running import CommandGroup, Run, completes, queue_names, says_yes, takes_store
from .wording import count, span

UNIT_COLUMNS = {
    "unit": "unit",
    "puts": "puts",
    "gets": "gets",
    "locks": "locks",
    "age": "age",
    "time_left": "time left",
    "queues": "queues",
    "owners": "owners",
    "outcome": "outcome",
    "user": "user",
    "program": "program",
    "process": "process",
}
LOCK_COLUMNS = {
    "queue": "queue",
    "kind": "kind",
    "lock_id": "lock id",
    "messages": "messages",
    "age": "age",
    "lease_left": "lease left",
    "user": "user",
    "program": "program",
    "process": "process",
}
unit_names = completes(lambda qm: [key_of(one) for one in qm.inspect.units()])
UNIT = click.argument("unit", shell_complete=unit_names)


@click.group("unit", cls=CommandGroup, epilog="Example: inorder unit list --store orders.db")
def unit() -> None:
    """List, show and settle units of work.

    The name of a unit begins with its kind. session:12 is the open unit of work of connection 12. prepared:NAME is a
    prepared one. confirm:QUEUE:7 holds messages under confirm id 7, lock:QUEUE:3 under lock id 3,
    claim:QUEUE:APPLICATION#4 for a bulk reader. staging:NAME holds messages that a bulk writer has not put yet.
    lease:NAME is a unit of work that clients of a server share by a token until a deadline. global:NAME has parts at
    the owners of synchronous remote queues, where each is a prepared unit, and its outcome once that is decided.
    """


@unit.command("list", example="inorder unit list --store orders.db")
@takes_store
def list_units(run: Run) -> None:
    """List all unsettled units, oldest first."""
    with run.opened() as qm:
        records = [_record_of_unit(one) for one in qm.inspect.units()]
    run.output.listing(records, UNIT_COLUMNS, nothing="no unit is open")


@unit.command("show", example="inorder unit show prepared:monday --store orders.db")
@UNIT
@takes_store
def show(run: Run, unit: str) -> None:
    """Show one unit and the messages that it holds."""
    with run.opened() as qm:
        found = find_unit(qm, unit)
        held = [(queue, sight) for queue in found.queues for sight in qm.inspect.look(queue, unit=found)]
    record = _record_of_unit(found)
    if run.output.as_json:
        run.output.line(record | {"messages": [record_of_sight(queue, sight, None) for queue, sight in held]})
        return
    run.output.listing([record], UNIT_COLUMNS, nothing="")
    for queue in found.queues:
        sights = [sight for name, sight in held if name == queue]
        run.output.console.print(f"\n{count(len(sights), 'message')} on {queue}")
        run.output.console.print(_table(run, sights))


def _table(run: Run, sights: Sequence[MessageView]) -> Table:
    console = run.output.console
    rows = Rows(sights, time.time(), console.width, is_terminal=console.is_terminal)
    for sight in sights:
        rows.add(sight)
    return rows.table


@unit.command("commit", example="inorder unit commit prepared:monday --yes --store orders.db")
@UNIT
@says_yes
@takes_store
def commit(run: Run, unit: str, yes: bool) -> None:
    """Commit a prepared unit: its puts become visible, its gets are removed for good.

    If it is a part of a unit of work of another queue manager, that queue manager decides. If the outcomes differ, the
    unit is half committed, and nothing can repair that: look at its outcome there first, with 'inorder unit list'.
    """
    _settle(run, unit, "commit", "Commit", "committed", yes=yes)


@unit.command("backout", example="inorder unit backout confirm:ORDERS:7 --yes --store orders.db")
@UNIT
@says_yes
@takes_store
def backout(run: Run, unit: str, yes: bool) -> None:
    """Back out a prepared unit or a lease, undo a confirm id, or discard staged messages.

    Its puts are discarded and its gets return to their places.

    If a prepared unit is a part of a unit of work of another queue manager, that queue manager decides. If the outcomes
    differ, the unit is half committed, and nothing can repair that: look at its outcome there first, with 'inorder unit
    list'.
    """
    _settle(run, unit, "back_out", "Back out", "backed out", yes=yes)


@unit.command("settle", example="inorder unit settle --store orders.db")
@takes_store
def settle(run: Run) -> None:
    """Carry out the decided outcomes of global units, at every owner that can be reached.

    A global unit whose program has ended without a decision is backed out; others without a decision are left alone.
    Programs do this too, when they connect to an owner. 'inorder unit list' shows the rest.
    """
    with run.opened() as qm:
        before = _global_units(qm)
        errors = qm.admin.settle_in_doubt()
        left = _global_units(qm)
    for error in errors:
        run.output.note(str(error))
    run.output.tell(
        {"settled": len(before - left), "left": len(left), "errors": [str(error) for error in errors]},
        f"settled {count(len(before - left), 'unit')}, {len(left)} left",
    )


def _global_units(qm: QueueManager) -> set[str]:
    return {one.name for one in qm.inspect.units() if one.kind == "global"}


@unit.command("forget", example="inorder unit forget global:0ba3.../5fd20c11/34 --yes --store orders.db")
@UNIT
@says_yes
@takes_store
def forget(run: Run, unit: str, yes: bool) -> None:
    """Forget a global unit without settling its parts, because an owner is gone for good.

    A part that an owner still has stays prepared there, and strict readers wait for it, until an operator settles it.
    If its outcome then differs from the outcome of the unit here, the unit is half committed.
    """
    with run.opened() as qm:
        found = find_unit(qm, unit)
        if found.kind != "global":
            raise WrongState(f"{key_of(found)} has no parts at other queue managers", unit=key_of(found))
        owners = ", ".join(branch.manager for branch in found.branches)
        run.output.confirm(f"Forget {key_of(found)}, which is not settled at {owners}?", yes=yes)
        qm.admin.forget_in_doubt(found.name)
    run.output.tell(_record_of_unit(found) | {"done": "forgotten"}, f"forgot {key_of(found)}")


def _settle(run: Run, unit: str, outcome: Outcome, asks: str, done: str, *, yes: bool) -> None:
    with run.opened() as qm:
        found = find_unit(qm, unit)
        check_settled_here(found, outcome)
        if coordinator := coordinator_of(found):
            run.output.note(
                f"this is a part of a unit of work of the store {coordinator}, which decides: if the outcomes differ, "
                "the unit is half committed"
            )
        run.output.confirm(f"{asks} {_described(found)}?", yes=yes)
        settle_by_hand(qm, found, outcome)
    run.output.tell(_record_of_unit(found) | {"done": done}, f"{done} {key_of(found)}")


def _described(one: Unit) -> str:
    parts = ((one.puts, "put"), (one.gets, "get"), (one.locks, "lock"))
    held = ", ".join(count(number, noun) for number, noun in parts if number) or "nothing in it"
    return f"{key_of(one)} of {one.program.name}, open for {span(_age(one.started_at, one.age))}, with {held}"


def _age(began: float, told: float | None) -> float:
    """The age that the store has told; if it has not, by the clock of this machine."""
    return time.time() - began if told is None else told


def _record_of_unit(one: Unit) -> dict[str, Any]:
    age = _age(one.started_at, one.age)
    return {
        "unit": key_of(one),
        "kind": one.kind,
        "name": one.name,
        "queue": one.queue or None,
        "queues": list(one.queues),
        "owners": [branch.manager for branch in one.branches],
        "outcome": one.outcome or None,
        "user": one.program.user,
        "program": one.program.name,
        "connection": one.connection,
        "process": one.process,
        "started_at": when(one.started_at),
        "age": age,
        "puts": one.puts,
        "gets": one.gets,
        "locks": one.locks,
        "ends_at": when(one.ends_at),
        "time_left": None if one.ends_at is None else max(0.0, one.ends_at - one.started_at - age),
    }


@click.group("lock", cls=CommandGroup, epilog="Example: inorder lock list --store orders.db")
def lock() -> None:
    """List and release the locks that browses have taken on messages."""


@lock.command("list", example="inorder lock list --store orders.db")
@takes_store
def list_locks(run: Run) -> None:
    """List the locks on messages.

    A lock id lasts until it is released, or until its lease ends. A lock of a handle ends with its program.
    """
    with run.opened() as qm:
        records = [_record_of_lock(one) for one in qm.inspect.locks()]
    run.output.listing(records, LOCK_COLUMNS, nothing="nothing is locked")


@lock.command("release", example="inorder lock release ORDERS 3 --yes --store orders.db")
@click.argument("queue", shell_complete=queue_names)
@click.argument("lock_id", type=int)
@says_yes
@takes_store
def release(run: Run, queue: str, lock_id: int, yes: bool) -> None:
    """Unlock all messages under a lock id."""
    with run.opened() as qm:
        run.output.confirm(f"Release lock id {lock_id} on {queue}?", yes=yes)
        released = qm.admin.release_lock(queue, lock_id)
    run.output.tell(
        {"queue": queue, "lock_id": lock_id, "released": released},
        f"unlocked {count(released, 'message')} on {queue}",
    )


def _record_of_lock(one: LockView) -> dict[str, Any]:
    age = _age(one.since, one.age)
    return {
        "queue": one.queue,
        "kind": one.kind,
        "lock_id": one.lock_id,
        "messages": one.messages,
        "user": one.program.user,
        "program": one.program.name,
        "connection": one.connection,
        "process": one.process,
        "since": when(one.since),
        "age": age,
        "lease_ends_at": when(one.lease_ends_at),
        "lease_left": None if one.lease_ends_at is None else max(0.0, one.lease_ends_at - one.since - age),
    }
