"""`inorder claim`: lists the claims of applications, and ends them by hand."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from ..client.defining import local_name
from ..formats.json_lines import when
from ..stores.seam.records import Claims
from .readiness import check_extras
from .running import CommandGroup, Run, queue_names, says_yes, takes_store
from .wording import count

COLUMNS = {
    "queue": "queue",
    "application": "application",
    "settled": "settled claim",
    "delivered": "delivered",
    "claim": "open claim",
    "messages": "messages held",
    "bytes": "bytes",
    "started_at": "since",
    "ahead": "taken ahead",
    "done": "done, still held",
    "user": "user",
    "program": "program",
}
QUEUE = click.argument("queue", shell_complete=queue_names)
APPLICATION = click.argument("application")


@click.group("claim", cls=CommandGroup, epilog="Example: inorder claim list --store orders.db")
def claim() -> None:
    """List, finish and release claims of bulk readers.

    Spark is a bulk reader. An application works on one claim at a time and confirms it when it asks for the next one,
    which may already have been fetched.
    """


@claim.command("list", example="inorder claim list --store orders.db")
@takes_store
def list_claims(run: Run) -> None:
    """List the applications that read in claims, with their progress and the messages they hold."""
    with run.opened() as qm:
        records = [_record(one) for one in qm.bulk.claims()]
    run.output.listing(records, COLUMNS, nothing="no application has read in claims")


def _record(one: Claims) -> dict[str, Any]:
    return {
        "queue": one.queue,
        "application": one.application,
        "user": one.program.user,
        "program": one.program.name,
        "settled": one.settled,
        "delivered": one.delivered,
        "claim": one.open and one.open.number,
        "messages": one.open and one.open.messages,
        "bytes": one.open and one.open.size,
        "started_at": one.open and when(one.open.started_at),
        "ahead": sum(claim.messages for claim in one.held if claim.number > one.settled + 1),
        "done": sum(claim.messages for claim in one.held if claim.number <= one.settled),
    }


@claim.command("finish", example="inorder claim finish ORDERS drain --checkpoint archive/_checkpoint --store orders.db")
@QUEUE
@APPLICATION
@click.option(
    "--checkpoint", metavar="FOLDER", help="The checkpoint of Spark's query. Claims in its commit log are confirmed."
)
@click.option(
    "--upto", type=int, metavar="N", help="The last claim that the application finished, according to its own records."
)
@takes_store
def finish(run: Run, queue: str, application: str, checkpoint: str | None, upto: int | None) -> None:
    """Confirm the last claim of an application that has stopped for good.

    The messages of the claim are removed from the queue. A reader that is still running is fenced off.
    """
    if (checkpoint is None) == (upto is None):
        raise click.UsageError("Say either --checkpoint FOLDER or --upto N.")
    with run.opened() as qm:
        if upto is not None:
            confirmed = qm.bulk.finish_claims(queue, application, upto)
        else:
            check_extras()
            confirmed = import_module("inorder.spark").finish(str(run.store.given), queue, application, checkpoint)
    run.output.tell(
        {"queue": queue, "application": application, "confirmed": confirmed},
        f"confirmed {count(confirmed, 'message')} of {application} on {queue}",
    )


@claim.command("release", example="inorder claim release ORDERS drain --yes --store orders.db")
@QUEUE
@APPLICATION
@says_yes
@takes_store
def release(run: Run, queue: str, application: str, yes: bool) -> None:
    """Return the messages of an application to the queue, because its checkpoint is lost.

    They go back to their old places. The next reader processes them again.
    """
    with run.opened() as qm:
        local = local_name(qm, queue)
        known = (one for one in qm.bulk.claims() if (one.queue, one.application) == (local, application))
        held = sum(claim.messages for one in known for claim in one.held if claim.number > one.settled)
        if held:
            again = "The next reader processes them again."
            run.output.confirm(f"Return {count(held, 'message')} of {application} to {queue}? {again}", yes=yes)
        released = qm.bulk.release_claims(queue, application)
    run.output.tell(
        {"queue": queue, "application": application, "released": released},
        f"returned {count(released, 'message')} to {queue}",
    )


@claim.command("leave", example="inorder claim leave ORDERS drain --yes --store orders.db")
@QUEUE
@APPLICATION
@says_yes
@takes_store
def leave(run: Run, queue: str, application: str, yes: bool) -> None:
    """Release the group that an application was reading when it stopped for good.

    An application that claims groups in parts makes strict readers in logical order wait at its unfinished group. This
    command lets them go on. The rest of the group stays on the queue.
    """
    with run.opened() as qm:
        rest = "After that, the rest of its group can only be read by group id and sequence number."
        run.output.confirm(f"Take {application} out of its unfinished group on {queue}? {rest}", yes=yes)
        was_inside = qm.bulk.leave_claimed_group(queue, application)
    text = (
        f"{application} has left its group on {queue}"
        if was_inside
        else f"{application} has no unfinished group on {queue}"
    )
    run.output.tell({"queue": queue, "application": application, "left": was_inside}, text)
