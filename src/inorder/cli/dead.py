"""`inorder dead`: lists dead letters, puts them where they belong, or discards them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import click

from .. import Match, Reason
from ..client.dead_letters import DeadLetter, Stayed
from ..formats.json_lines import record_of, told_id, when
from ..rules.dead_letters import TASK_FAILED, reason_name, revived
from .choosing import NAMED_ID
from .dead_rules import run_rules
from .running import NO, CommandGroup, Run, queue_names, record_of_error, says_yes, takes_store
from .wording import count

F = TypeVar("F", bound=Callable[..., Any])

COLUMNS = {
    "time": "set aside",
    "reason_name": "reason",
    "queue": "queue",
    "manager": "queue manager",
    "attempts": "attempts",
    "program": "by",
    "message_id": "message id",
    "length": "bytes",
    "error": "error",
}


def reason_of(value: str) -> int:
    """A reason, as its number or its name."""
    name = value.upper().removeprefix("MQRC_")
    if name in Reason.__members__:
        return int(Reason[name])
    if name == reason_name(TASK_FAILED):
        return TASK_FAILED
    try:
        return int(value)
    except ValueError:
        raise ValueError(f"{value!r} is neither the number nor the name of a reason.") from None


def takes_choice(function: F) -> F:
    """Adds the options that choose dead letters to a command, and passes them to its function as `chosen`."""

    @click.option("--reason", type=reason_of, metavar="NUMBER|NAME", help="Only letters with this reason.")
    @click.option("--queue", metavar="NAME", help="Only letters meant for this queue.")
    @click.option("--message-id", type=NAMED_ID, metavar="HEX|text:TEXT", help="Only the letter with this message id.")
    @click.option("--selector", metavar="TEXT", help='Only letters that match, such as "dlh.attempts > 3".')
    @click.option(
        "--dead-letter-queue", shell_complete=queue_names, metavar="NAME",
        help="The queue that holds them; default: the queue manager's.",
    )  # fmt: skip
    @functools.wraps(function)
    def command(*given: Any, **named: Any) -> Any:
        message_id, selector = named.pop("message_id"), named.pop("selector")
        match = Match(selector=selector) if message_id is None else Match(selector=selector, message_id=message_id)
        chosen = {name: named.pop(name) for name in ("reason", "queue", "dead_letter_queue")}
        return function(*given, chosen=chosen | {"match": match}, **named)

    return command  # type: ignore[return-value]


@click.group("dead", cls=CommandGroup, epilog="Example: inorder dead list --store orders.db")
def dead() -> None:
    """List, replay and discard dead letters: messages that could not be delivered."""


@dead.command("list", example="inorder dead list --reason Q_FULL --store orders.db")
@takes_choice
@takes_store
def list_letters(run: Run, chosen: dict[str, Any]) -> None:
    """List dead letters with the reason, the time and the queue each was meant for."""
    with run.opened() as qm:
        dropped = qm.inspect.dropped()
        letters = (_record(run, letter) for letter in qm.dead.letters(**chosen))
        run.output.listing(letters, COLUMNS, nothing="there are no dead letters", wide=("program", "message_id"))
    for one in dropped:
        about = f"messages of {one.queue}" if one.queue else "messages of no queue here"
        went = f"{count(one.messages, 'report')} about {about} could not be put on any queue and were dropped"
        run.output.note(f"{went}: {reason_name(one.reason)}")


@dead.command("replay", example="inorder dead replay --queue ORDERS --store orders.db")
@takes_choice
@click.option(
    "--to",
    shell_complete=queue_names,
    metavar="NAME",
    help="Put them on this queue; default: the queue each was meant for.",
)
@click.option(
    "--count", "-n", "most", type=click.IntRange(1), metavar="N", help="Take at most this many; default: all."
)
@takes_store
def replay(run: Run, chosen: dict[str, Any], to: str | None, most: int | None) -> None:
    """Put dead letters where they belong, each in its own unit of work.

    They keep their ids, group, priority, remaining time to live, and the user and time of the original put. A letter
    that cannot be put stays; exit status 1 means that at least one stayed.
    """
    with run.opened() as qm, run.output.progress("replaying", "dead letters") as advance:
        done = qm.dead.replay(to=to, most=most, progress=advance, **chosen)
    for one in done.stayed:
        run.output.note(f"{_named(one.letter)} stays: {one.error}")
    run.output.tell(
        {"replayed": done.messages, "stayed": [_record_of_stayed(one) for one in done.stayed]},
        f"replayed {count(done.messages, 'dead letter')}",
    )
    if done.stayed:
        raise click.exceptions.Exit(NO)


@dead.command("discard", example="inorder dead discard --queue TEST --yes --store orders.db")
@takes_choice
@says_yes
@takes_store
def discard(run: Run, chosen: dict[str, Any], yes: bool) -> None:
    """Remove dead letters for good."""
    with run.opened() as qm:
        total = sum(1 for _ in qm.dead.letters(**chosen))
        if total:
            run.output.confirm(f"Discard {count(total, 'dead letter')} for good?", yes=yes)
        with run.output.progress("discarding", "dead letters") as advance:
            discarded = qm.dead.discard(progress=advance, **chosen) if total else 0
    run.output.tell({"discarded": discarded}, f"discarded {count(discarded, 'dead letter')}")


def _named(letter: DeadLetter) -> str:
    return f"message {told_id(letter.message.message_id)}"


def _record(run: Run, letter: DeadLetter) -> dict[str, Any]:
    """A dead letter as a JSON object or a row of a table."""
    why = letter.why
    record: dict[str, Any] = {
        "time": when(why.time) if why.time else None,
        "reason": why.reason,
        "reason_name": reason_name(why.reason),
        "queue": why.queue,
        "manager": why.manager,
        "attempts": why.attempts or None,
        "program": why.program,
        "error": why.error,
    }
    if run.output.as_json:
        return record | {"message": record_of(revived(letter.message))}
    return record | {"message_id": told_id(letter.message.message_id), "length": letter.message.length}


def _record_of_stayed(one: Stayed) -> dict[str, Any]:
    return {"message_id": told_id(one.letter.message.message_id), **record_of_error(one.error)}


dead.add_command(run_rules)
