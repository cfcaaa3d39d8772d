"""`inorder mqsc`: runs scripts of MQ's administration language from a file, a pipe or a terminal."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

import click
from rich.text import Text

from ..mq.mqsc import (
    Answer,
    Assembler,
    Source,
    columns,
    commands_in,
    run_commands,
)
from .definitions import definitions, print_definitions
from .running import STANDARD_INPUT, Command, Run, record_of_error, script_lines, status_of, takes_store
from .wording import plain

PROMPT, CONTINUED = "> ", ". "
SKIPPING = "--skip-unsupported passes over it"
GREETING = "MQSC. HELP lists the commands; END or Ctrl-D leaves."
HELP = """\
DEFINE QLOCAL(NAME) ...    also QALIAS, QMODEL, QREMOTE, QFORWARD, QHOME, CHANNEL, PROCESS; LIKE(OTHER), REPLACE
ALTER QLOCAL(NAME) ...     also QALIAS, QMODEL, QREMOTE, CHANNEL, PROCESS; ALTER QMGR ...
DISPLAY QUEUE(NAME*) ...   also QLOCAL, QALIAS, QMODEL, QREMOTE, QSTATUS, CHANNEL, CHSTATUS, PROCESS; DISPLAY QMGR
                           ALL, keywords, WHERE(CURDEPTH GT 0)
DISPLAY CONN(*)            the connected programs; TYPE(HANDLE) the queues that they have open
DELETE QLOCAL(NAME)        also QALIAS, QMODEL, QREMOTE, CHANNEL, PROCESS; PURGE removes the messages too
CLEAR QLOCAL(NAME)         removes the messages
START CHANNEL(NAME)        also STOP, PING, RESET, RESOLVE
TRIGGER QHOME(NAME)        triggers the collection of its messages
PING QMGR, DISPLAY QMSTATUS    check that the queue manager answers
A line that ends with + continues on the next one. Names in lower case need quotes: QLOCAL('orders')."""


@click.command(
    "mqsc",
    cls=Command,
    example="inorder mqsc queues.mqsc --store orders.db",
)
@click.argument("script", type=click.Path(allow_dash=True), required=False)
@click.option("--check", is_flag=True, help="Only check the syntax of the script; this needs no store.")
@click.option("--stop", is_flag=True, help="Stop at the first command that fails; the default is to run the rest.")
@click.option(
    "--skip-unsupported", "skip", is_flag=True, help="Skip features of MQ that inorder lacks, and report them."
)
@click.option("--export", is_flag=True, help="Print all definitions as a script, for another store or for MQ.")
@takes_store
def mqsc(run: Run, script: str | None, check: bool, stop: bool, skip: bool, export: bool) -> int:
    """Run a script of MQSC commands.

    They are DEFINE, ALTER, DISPLAY, DELETE, CLEAR, START, STOP, PING, RESET, RESOLVE and TRIGGER.

    SCRIPT is a file. Without it, or with -, the command reads standard input; a terminal gets a prompt. Each command is
    a separate transaction. A missing store is created if the script defines a queue. Answers have the layout and the
    message numbers of runmqsc, and appear on standard output in order. The exit status is the status of the worst
    command: 1 refused for now, 2 wrong, 3 trouble with the store.
    """
    if export:
        if script is not None or check or stop or skip:
            raise click.UsageError("--export writes a script: leave out SCRIPT and the options for reading one.")
        with run.opened() as qm:
            return print_definitions(run, definitions(qm))
    if script in (None, STANDARD_INPUT) and sys.stdin is not None and sys.stdin.isatty() and not run.output.as_json:
        return _converse(run, check=check, stop=stop, skip=skip)
    sources = list(commands_in(script_lines(script or STANDARD_INPUT)))
    report = _Report(run, echo=True)
    if check:
        return report.all(run_commands(sources, None, stop=stop, skip=skip))
    with run.opened(make=any(_defines(source) for source in sources)) as qm:
        run.output.say(f"Starting MQSC for queue manager {qm.admin.manager_attributes().name}.")
        return report.all(run_commands(sources, qm, stop=stop, skip=skip))


def _defines(source: Source) -> bool:
    """Whether a command looks like the definition of a queue."""
    return source.lines[0][1].lstrip().upper().startswith("DEF")


class _Report:
    """Prints each answer, and a summary at the end.

    Args:
        echo: whether to print each command before its answer, with its line number.
    """

    def __init__(self, run: Run, *, echo: bool) -> None:
        self._run = run
        self._echo = echo
        self._outcomes: Counter[str] = Counter()
        self._skipped: dict[str, list[int]] = {}
        self._status = 0

    def all(self, answers: Iterable[Answer]) -> int:
        """Prints each answer and the summary. Returns the exit status."""
        for answer in answers:
            if answer.outcome != "end":
                self._one(answer)
        self._sum_up()
        return self._status

    def _one(self, answer: Answer) -> None:
        self._outcomes[answer.outcome] += 1
        left_out = [f"MQ's attribute {keyword}" for keyword in answer.skipped]
        if answer.outcome == "skipped" and answer.error is not None:
            left_out = [str(answer.error.data["what"])]
        for found in left_out:
            self._skipped.setdefault(found, []).append(answer.source.line)
        if answer.failed and answer.error is not None:
            self._status = max(self._status, status_of(answer.error))
        if self._run.output.as_json:
            self._run.output.line(_record(answer))
            return
        if self._echo:
            self._show_source(answer.source)
        headed = f"{answer.number or 'Skipped'}: {answer.text}"
        if answer.outcome == "unsupported":
            headed += f"; {SKIPPING}"
        if answer.text and not answer.rows:
            self._say(headed)
        for row in answer.rows:
            self._say(headed)
            for line in columns(row):
                self._say(plain(line))

    def _show_source(self, source: Source) -> None:
        for n, (number, line) in enumerate(source.lines):
            self._say(f"{number if n == 0 else '':>6} : {plain(line)}", style="dim")

    def _sum_up(self) -> None:
        total, not_valid, refused = self._outcomes.total(), self._outcomes["not valid"], self._outcomes["refused"]
        unsupported = self._outcomes["unsupported"]
        if self._run.output.as_json:
            counts = {"commands": total, "refused": refused, "not_valid": not_valid, "unsupported": unsupported}
            self._run.output.line({**counts, "skipped": self._skipped})
            return
        has = "has" if not_valid == 1 else "have"
        done = "read; none was run" if self._outcomes["read"] else "processed"
        self._say(f"{_many(total, 'MQSC command')} read.")
        self._say(f"{_many(not_valid, 'command')} {has} a syntax error.")
        if unsupported:
            asks = f"ask{'s' if unsupported == 1 else ''} for features of MQ that are not supported"
            self._say(f"{_many(unsupported, 'command')} {asks}; --skip-unsupported passes over them.")
        if refused:
            self._say(f"{_many(refused, 'valid MQSC command')} could not be processed.")
        else:
            self._say(f"All valid MQSC commands were {done}.")
        for found, numbers in self._skipped.items():
            self._say(
                f"Skipped: {plain(found)}, line{'' if len(numbers) == 1 else 's'} {', '.join(map(str, numbers))}."
            )

    def _say(self, text: str, style: str = "") -> None:
        self._run.output.console.print(Text(text, style=style), soft_wrap=True)


def _many(number: int, noun: str) -> str:
    """No commands, One command, 2 commands: as runmqsc counts."""
    how_many = {0: "No", 1: "One"}.get(number, f"{number:,}")
    return f"{how_many} {noun}{'' if number == 1 else 's'}"


def _record(answer: Answer) -> dict[str, Any]:
    record = {
        "line": answer.source.line,
        "command": _written(answer.source),
        "outcome": answer.outcome,
        "number": answer.number,
        "text": answer.text,
        "rows": [dict(row) for row in answer.rows],
        "skipped": list(answer.skipped),
    }
    return record if answer.error is None else record | record_of_error(answer.error)


def _written(source: Source) -> str:
    return "\n".join(line for _, line in source.lines)


# ---- at a terminal


def _converse(run: Run, *, check: bool, stop: bool, skip: bool) -> int:
    """Reads commands from a terminal until end of file or END, or, with `stop`, until one fails."""
    with contextlib.suppress(ImportError):  # not available everywhere; it adds line editing and history
        import_module("readline")
    run.output.note(GREETING)
    report = _Report(run, echo=False)
    with contextlib.nullcontext() if check else run.opened(make=True) as qm:
        return report.all(run_commands(_typed(run), qm, stop=stop, skip=skip))


def _typed(run: Run) -> Iterator[Source]:
    assembler = Assembler()
    while True:
        try:
            line = input(CONTINUED if assembler.is_continued else PROMPT)
        except EOFError:
            click.echo()
            break
        if line.strip().upper() in ("HELP", "?") and not assembler.is_continued:
            for told in HELP.splitlines():
                run.output.note(told)
            continue
        if (source := assembler.feed(line)) is not None:
            yield source
    if (last := assembler.finish()) is not None:
        yield last
