"""`inorder dead run`: applies a rules table of MQ's runmqdlq to dead letters."""

from __future__ import annotations

from typing import Any

import click

from ..formats.json_lines import told_id
from ..mq.dead_letter_handler import DeadEvent, Handled, handle_dead_letters
from ..rules.dead_letters import reason_name
from ..rules.dead_rules_syntax import read_rules
from .lasting import ends_by_signal, run_all
from .running import Command, Run, queue_names, record_of_error, script_lines, takes_store
from .wording import count

WOULD = {"discarded": "would be discarded", "retried": "would be put", "forwarded": "would be put", "ignored": "stays"}
DONE = {"discarded": "discarded", "retried": "put", "forwarded": "put", "failed": "not put", "ignored": "stays"}


@click.command("run", cls=Command, example="inorder dead run rules.txt --dry-run --store orders.db")
@click.argument("rules", type=click.Path(allow_dash=True))
@click.option(
    "--dry-run", is_flag=True, help="Show what the first matching rule would do with each letter, and change nothing."
)
@click.option(
    "--dead-letter-queue", "queue", shell_complete=queue_names, metavar="NAME",
    help="The queue that holds them; default: INPUTQ in the table, otherwise the queue manager's.",
)  # fmt: skip
@takes_store
def run_rules(run: Run, rules: str, dry_run: bool, queue: str | None) -> None:
    """Apply a table of rules to dead letters: discard, retry, forward or leave each.

    RULES is a file in the syntax of MQ's runmqdlq, or - for standard input. With WAIT(YES), the default, the command
    waits for more letters until Ctrl-C. With WAIT(NO) it ends when nothing is left to do.
    """
    table = read_rules(script_lines(rules))
    handled = Handled()

    def tell(event: DeadEvent) -> None:
        if run.output.as_json:
            run.output.line(_record(event))
        else:
            run.output.note(_text(event, WOULD if dry_run else DONE))

    with run.opened() as qm, ends_by_signal() as ends:

        def work() -> None:
            nonlocal handled
            handled = handle_dead_letters(qm, table, queue=queue, dry_run=dry_run, wait=ends.wait, report=tell)

        failed = run_all([("dead-letter handler", work)])
    if failed is not None:
        raise failed
    run.output.tell({"dry_run": dry_run, **handled._asdict()}, _summary(handled, dry_run=dry_run))


def _record(event: DeadEvent) -> dict[str, Any]:
    why, message = event.letter.why, event.letter.message
    return {
        "event": event.event,
        "line": event.line or None,
        "message_id": told_id(message.message_id),
        "letter_reason": why.reason,
        "letter_reason_name": reason_name(why.reason),
        "letter_queue": why.queue,
        "queue": event.queue,
        "manager": event.manager,
        "error": None if event.error is None else record_of_error(event.error),
    }


def _text(event: DeadEvent, words: dict[str, str]) -> str:
    by = f" by line {event.line}" if event.line else ""
    at = f" on {event.queue}" + (f" of {event.manager}" if event.manager else "") if event.queue else ""
    why = f": {event.error}" if event.error is not None else "" if event.line else ": no rule is left for it"
    return f"message {told_id(event.letter.message.message_id)} {words[event.event]}{at}{by}{why}"


def _summary(handled: Handled, *, dry_run: bool) -> str:
    would = "would have " if dry_run else ""
    put = handled.retried + handled.forwarded
    return f"{would}put {count(put, 'dead letter')} and discarded {handled.discarded:,}; {handled.ignored:,} stay" + (
        f"; {handled.failed:,} {'try' if handled.failed == 1 else 'tries'} failed" if handled.failed else ""
    )
