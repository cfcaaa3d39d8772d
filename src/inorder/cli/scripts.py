"""`inorder mqsc`: scripts in the language of MQ's administrators, from a file, a pipe or a terminal."""

from __future__ import annotations

import contextlib
import io
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path

import click
from rich.text import Text

from ..mqsc import Answer, Assembler, Source, columns, commands_in, export_manager, export_queues, run_commands
from .output import count, plain, standard_input
from .running import DONE, Command, Run, record_of_error, status_of, takes_store

PROMPT, CONTINUED = "> ", ". "
STANDARD_INPUT = "-"
GREETING = "MQSC. HELP lists the commands; END, or Ctrl-D, ends."
HELP = """\
DEFINE QLOCAL(NAME) ...    also QALIAS, QMODEL; LIKE(OTHER), REPLACE
ALTER QLOCAL(NAME) ...     also QALIAS, QMODEL; ALTER QMGR ...
DISPLAY QUEUE(NAME*) ...   also QLOCAL, QALIAS, QMODEL, QSTATUS; DISPLAY QMGR
                           ALL, keywords, WHERE(CURDEPTH GT 0)
DELETE QLOCAL(NAME)        also QALIAS, QMODEL; PURGE takes the messages too
CLEAR QLOCAL(NAME)         removes the messages
A line that ends with + goes on in the next one. Names in small letters stand in quotes: QLOCAL('orders').
DISPLAY QLOCAL(NAME) shows every attribute as a DEFINE or ALTER writes it."""


@click.command(
    "mqsc",
    cls=Command,
    example="inorder mqsc queues.mqsc --store orders.db",
)
@click.argument("script", type=click.Path(allow_dash=True), required=False)
@click.option("--check", is_flag=True, help="Only read the script; no store is needed.")
@click.option("--stop", is_flag=True, help="End at the first command that fails; without it the next ones are run.")
@click.option("--export", is_flag=True, help="Write all definitions as a script, for another store or for MQ.")
@takes_store
def mqsc(run: Run, script: str | None, check: bool, stop: bool, export: bool) -> int:
    """Run an MQSC script: DEFINE, ALTER, DISPLAY, DELETE, CLEAR.

    SCRIPT is a file, or - for standard input, which is also read without it; at a terminal there is a prompt. Each
    command is a transaction of its own, and a store that is missing is made if the script defines a queue. The exit
    status is that of the worst command: 1 refused for now, 2 wrong, 3 trouble with the store.
    """
    if export:
        if script is not None or check or stop:
            raise click.UsageError("--export writes a script: it takes neither SCRIPT nor --check nor --stop.")
        return _export(run)
    if script in (None, STANDARD_INPUT) and sys.stdin is not None and sys.stdin.isatty() and not run.output.as_json:
        return _converse(run, check=check, stop=stop)
    sources = list(commands_in(_lines(script or STANDARD_INPUT)))
    report = _Report(run, echo=True)
    if check:
        return report.all(run_commands(sources, None, stop=stop))
    with run.opened(make=any(_defines(source) for source in sources)) as qm:
        return report.all(run_commands(sources, qm, stop=stop))


def _defines(source: Source) -> bool:
    """Whether a command looks as if it brought a queue into being."""
    return source.lines[0][1].lstrip().upper().startswith("DEF")


def _lines(script: str) -> Iterable[str]:
    """The lines of a script. Raises: click.UsageError, it cannot be read, or is no text."""
    try:
        content = standard_input().read() if script == STANDARD_INPUT else Path(script).read_bytes()
        return io.StringIO(content.decode("utf-8-sig"), newline=None)
    except OSError as error:
        raise click.UsageError(f"{script} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise click.UsageError(f"{script} is not in UTF-8: byte {content[error.start]:#04x} in line {line}") from error


class _Report:
    """Tells of each answer, and in the end how many there were of which kind.

    Args:
        echo: each command is shown before its answer, with the number of its line.
    """

    def __init__(self, run: Run, *, echo: bool) -> None:
        self._run = run
        self._echo = echo
        self._outcomes: Counter[str] = Counter()
        self._status = 0

    def all(self, answers: Iterable[Answer]) -> int:
        """Tells of each answer, and sums up; the exit status."""
        for answer in answers:
            if answer.outcome != "end":
                self._one(answer)
        self._sum_up()
        return self._status

    def _one(self, answer: Answer) -> None:
        self._outcomes[answer.outcome] += 1
        if self._echo:
            self._show_source(answer.source)
        if answer.error is None:
            self._tell(answer)
        else:
            self._status = max(self._status, status_of(answer.error))
            self._tell_error(answer)

    def _show_source(self, source: Source) -> None:
        if self._run.output.as_json:
            return
        for n, (number, line) in enumerate(source.lines):
            self._say(f"{number if n == 0 else '':>6} : {plain(line)}", style="dim")

    def _tell(self, answer: Answer) -> None:
        record = {
            "line": answer.source.line,
            "command": _written(answer.source),
            "outcome": answer.outcome,
            "text": answer.text,
            "rows": [dict(row) for row in answer.rows],
        }
        if self._run.output.as_json:
            self._run.output.line(record)
            return
        if answer.text:
            self._say(answer.text)
        for row in answer.rows:
            for line in columns(row):
                self._say(plain(line))

    def _tell_error(self, answer: Answer) -> None:
        assert answer.error is not None
        where = {"line": answer.source.line, "command": _written(answer.source), "outcome": answer.outcome}
        text = answer.text if answer.outcome == "not valid" else f"line {answer.source.line}: {answer.text}"
        self._run.output.error(text, {**where, **record_of_error(answer.error)})

    def _sum_up(self) -> None:
        total = self._outcomes.total()
        failed = {kind: self._outcomes[kind] for kind in ("refused", "not valid")}
        told = ", ".join(f"{number:,} {kind}" for kind, number in failed.items() if number)
        done = "all valid" if "read" in self._outcomes else "all done"
        self._run.output.tell(
            {"commands": total, "refused": failed["refused"], "not_valid": failed["not valid"]},
            f"{count(total, 'command')} read: {told or done}." if total else "No commands read.",
        )

    def _say(self, text: str, style: str = "") -> None:
        self._run.output.console.print(Text(text, style=style), soft_wrap=True)


def _written(source: Source) -> str:
    return "\n".join(line for _, line in source.lines)


# ---- at a terminal


def _converse(run: Run, *, check: bool, stop: bool) -> int:
    """Reads commands from a terminal until its end, END, or with `stop` a failure."""
    with contextlib.suppress(ImportError):  # not everywhere; with it a typed line can be edited and called back
        import_module("readline")
    run.output.note(GREETING)
    report = _Report(run, echo=False)
    with contextlib.nullcontext() if check else run.opened(make=True) as qm:
        return report.all(run_commands(_typed(run), qm, stop=stop))


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


# ---- the other way


def _export(run: Run) -> int:
    """Writes the definitions."""
    with run.opened() as qm:
        manager, queues = qm.manager_attributes(), qm.queues()
    altered = export_manager(manager)
    for command in [*([] if altered is None else [altered]), *export_queues(queues)]:
        if run.output.as_json:
            run.output.line({"command": command})
        else:
            _write(command)
    return DONE


def _write(command: str) -> None:
    """Unchanged into a file or pipe; to a terminal nothing that would steer it."""
    for line in command.split("\n"):
        click.echo(plain(line) if sys.stdout.isatty() else line)
