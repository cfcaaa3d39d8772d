"""`inorder outbox`: moves messages from a table of an application's database to their queues."""

from __future__ import annotations

import click

from ..formats.errors import FormatError
from ..integrations.outbox import Moved, Outbox
from .choosing import UNIT_SIZE
from .lasting import ends_by_signal
from .running import Command, Run, record_of_error, status_of, takes_store
from .wording import count


@click.command("outbox", cls=Command, example="inorder outbox postgresql://shop@localhost/shop --store queues.db")
@click.argument("database")
@click.option("--table", default="inorder_outbox", show_default=True, metavar="NAME", help="The table of messages.")
@click.option("--application", default="outbox", show_default=True, metavar="NAME",
              help="Identifies this outbox at the queues. Two databases that fill the same queue must have different "
              "names.")  # fmt: skip
@click.option("--create", "creates", is_flag=True, help="Create the table if it does not exist.")
@click.option("--until-empty", is_flag=True, help="End when all messages have been tried, with the exit status of "
              "the first error if queues have refused some.")  # fmt: skip
@UNIT_SIZE
@takes_store
def outbox(
    run: Run, database: str, table: str, application: str, creates: bool, until_empty: bool, unit_size: int
) -> None:
    """Move messages that an application inserts into its own database to their queues, until Ctrl-C.

    DATABASE is an SQLite file of the application, or the URL of its PostgreSQL database. The application inserts the
    messages in its own transactions (inorder.integrations.outbox). Each is put on its queue exactly once after the
    commit, in the order of moving, even if processes are killed. A queue that refuses messages, or whose next row is
    not a message, is tried again every 5 seconds, and holds up no other queue.
    """
    box, status = Outbox(table), 0
    with run.opened(program="inorder outbox") as qm, ends_by_signal() as ends:
        if creates:
            box.create(database)
        ended = None if until_empty else ends.is_set
        for step in box.move(database, qm, application=application, unit=unit_size, ends=ended):
            _tell(run, step)
            status = status or (0 if step.error is None else status_of(step.error))
            if ends.is_set():
                break
    if until_empty and status:
        raise click.exceptions.Exit(status)


def _tell(run: Run, step: Moved) -> None:
    record = {"queue": step.queue, "messages": step.messages}
    if step.error is None:
        run.output.tell({**record, "done": "moved"}, f"moved {count(step.messages, 'message')} to {step.queue}")
    else:
        why = "is held up by a row" if isinstance(step.error, FormatError) else "takes no messages now"
        run.output.tell({**record, **record_of_error(step.error)}, f"{step.queue} {why}: {step.error}")
