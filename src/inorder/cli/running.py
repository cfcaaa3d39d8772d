"""Shared by every command: its options, its store, and the exit status for each error.

Exit status: 0 done; 1 the answer is no, or not now (`QueueCondition`, findings of a check); 2 a wrong call
(`CallerError`, bad usage); 3 trouble with the store (`StoreError`), or with a file that is read or written (`OSError`);
130 interrupted. The connection of a command ends with it: no messages stay held, and an open unit of work is backed
out.
"""

from __future__ import annotations

import functools
import io
import math
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

import click

from .. import QueueManager
from ..client.manager import connect_to
from ..errors import CallerError, InorderError, QueueCondition, Reason, StoreError
from ..stores.open import Location, OverNetwork, is_of_any_store
from .output import Output, standard_input
from .places import OF_TLS, PlaceType, given_before

DONE, NO, WRONG, TROUBLE, INTERRUPTED = 0, 1, 2, 3, 130
STORE_VARIABLE = "INORDER_STORE"
PROGRAM = "inorder"
STANDARD_INPUT = "-"
TOLD_AFTER_SECONDS = 3.0  # of waiting for a store that another program has locked, before a note
PATIENCE_SECONDS = 300.0
COMPLETION_SECONDS = 1.0
HELP = {"help_option_names": ["-h", "--help"]}
SCRIPT_BYTES_MAX = 256 * 2**20  # /dev/full and other devices never end
SENTENCE_MAX = 1000  # characters: a list of commands shows the first sentence of each whole
BUSY = "another program may have locked it, or may be recovering it after a crash"

F = TypeVar("F", bound=Callable[..., Any])


class Run:
    """One run of a command, with its store and its output."""

    def __init__(self, store: Location | None, *, as_json: bool) -> None:
        self._store = store
        self.output = Output(as_json=as_json)

    @property
    def store(self) -> Location:
        """The place of the store. Raises: click.UsageError, if none was named."""
        if self._store is None:
            raise click.UsageError(f"No store was named: give --store PATH, or set {STORE_VARIABLE}.")
        return self._store

    def use_unless_named(self, store: str | os.PathLike[str] | None) -> None:
        """Uses this store if the command names none. Raises: as `PlaceType.convert`."""
        if self._store is None and store is not None:
            self._store = PlaceType().convert(store, None, click.get_current_context())

    def refuse_own_file(self, path: Path, what: str) -> None:
        """Raises click.UsageError if a file to read or write belongs to the store itself, under any name.

        Args:
            what: the option that names it.
        """
        if self.store.consists_of(path):
            raise click.UsageError(f"{what} {path} is the store itself, or one of its files: name another file.")

    def refuse_target(self, path: Path, what: str) -> None:
        """Raises click.UsageError if a file must not be written because it belongs to a store, or is a pipe or a
        device.
        """
        self.refuse_own_file(path, what)
        if is_of_any_store(path):
            raise click.UsageError(f"{what} {path} is a store, or a file of one: name another file.")
        if path.exists() and not path.is_file():
            raise click.UsageError(f"{what} {path} exists and is not a file: to write to a pipe or a device, use >.")

    def is_there(self) -> bool:
        """Whether the store exists. Raises: StoreError, if that cannot be determined."""
        with _patience(self.store, self.output, PATIENCE_SECONDS):
            return self.store.is_there(PROGRAM)

    @contextmanager
    def opened(self, *, make: bool = False, program: str = PROGRAM) -> Iterator[QueueManager]:
        """Opens a connection to the store. An exception in the block backs out.

        Args:
            make: whether to create a missing store.
            program: the program name that others see.

        Raises: StoreError, if there is no store; click.UsageError.
        """
        is_there = self.is_there()
        if not make and not is_there:
            raise StoreError(f"there is no store at {self.store}: {_remedy(self.store)}", path=str(self.store))
        with _patience(self.store, self.output, PATIENCE_SECONDS):
            qm = connect_to(self.store, program=program)
        with qm:
            if not is_there:
                self.output.note(f"made the store {self.store}: queue manager {qm.admin.manager_attributes().name}")
            yield qm


def _remedy(where: Location) -> str:
    """Says how to create a store there."""
    if where.path is not None and not where.path.absolute().parent.is_dir():
        return f"there is no folder {where.path.absolute().parent}"
    named = "with this URL" if where.path is None else f"--store {where}"
    return f"'inorder queue create NAME {named}' creates one"


@contextmanager
def _patience(place: Location, output: Output | None, most: float) -> Iterator[None]:
    """Limits the wait while a store is opened: prints a note if another program has locked it, and at last raises an
    error.

    Opening a store writes, so a write lock delays it, and so does a suspended process that is next in line. A timer
    signal ends such a wait, as Ctrl-C does. Only the main thread receives signals; in other threads the wait has no
    limit.

    Args:
        output: prints the note after `TOLD_AFTER_SECONDS`; None for no note.
        most: seconds before it raises StoreError.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    begun = time.monotonic()

    def due(*_: object) -> None:
        if time.monotonic() - begun >= most:
            raise StoreError(
                f"{place} could not be opened within {most:.0f} s: {BUSY}. End that program, or let it finish.",
                path=str(place),
            )
        if output is not None:
            why = "it has not answered yet" if isinstance(place, OverNetwork) else BUSY
            output.note(f"waiting for {place}: {why}; press Ctrl-C to stop")
        signal.setitimer(signal.ITIMER_REAL, begun + most - time.monotonic())

    before = signal.signal(signal.SIGALRM, due)
    signal.setitimer(signal.ITIMER_REAL, min(TOLD_AFTER_SECONDS, most))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def leaving(run: Run, what: Callable[[], str]) -> Iterator[None]:
    """If the work in the block fails half-way, prints a note of its partial result; an empty text prints none."""
    try:
        yield
    except BaseException:
        if left := what():
            run.output.note(left)
        raise


class Command(click.Command):
    """A command whose help ends with an example, and whose errors name its options."""

    def __init__(self, name: str | None, *, example: str, **named: Any) -> None:
        named["epilog"] = f"Example: {example}"
        super().__init__(name, context_settings=HELP, **named)
        self.example = example

    def invoke(self, ctx: click.Context) -> Any:
        for name in given_before(ctx, ("store", *OF_TLS)) if "store" not in ctx.params else ():
            raise click.UsageError(f"{ctx.command_path} does not use a store: leave --{name} out.", ctx)
        try:
            return super().invoke(ctx)
        except InorderError as error:
            error.args = (self._in_own_words(error), *error.args[1:])
            raise

    def _in_own_words(self, error: InorderError) -> str:
        """The text of an error, with the arguments of the call replaced by the options of this command."""
        text: str = error.args[0]
        for parameter in self.params:
            if isinstance(parameter, StoreOption):  # it was read before: a store in an error now is another one
                continue
            name, longest = parameter.name or "", max(parameter.opts, key=len)
            is_option = isinstance(parameter, click.Option)
            if error.data.get("argument") == name:
                text = re.sub(rf"^{name}\b", longest if is_option else name.upper(), text)
            if is_option:
                text = re.sub(rf"(?<![\w-]){name}=True\b", longest, text)
        return text


class CommandGroup(click.Group):
    """A group of commands, listed in the order of declaration, with their first sentences.

    Args:
        sections: the names of the commands under each heading of the help; None: all under one.
    """

    command_class = Command

    def __init__(self, *given: Any, sections: Mapping[str, Iterable[str]] | None = None, **named: Any) -> None:
        super().__init__(*given, context_settings=HELP, **named)
        self._sections = sections

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        shown = self.list_commands(ctx)
        width = max(map(len, shown))
        for heading, names in (self._sections or {"Commands": shown}).items():
            with formatter.section(heading):
                formatter.write_dl(
                    [
                        (f"{name:{width}}", self.commands[name].get_short_help_str(SENTENCE_MAX))
                        for name in names
                        if name in shown
                    ]
                )

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name, command in self.commands.items() if not command.hidden]


STORE_HELP = "The store: an SQLite file of inorder, postgresql://host/database?schema=name, or https://host:9443."


class StoreOption(click.Option):
    """--store after the command, otherwise --store before the command, otherwise the environment variable."""

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        before = _store_before(ctx)
        return super().resolve_envvar_value(ctx) if before is None else before


def _store_before(ctx: click.Context) -> str | None:
    """The value of --store before the command, as in: inorder --store PATH queue list."""
    before: str | None = ctx.find_root().params.get("store") if ctx.parent is not None else None
    return before


def takes_store(function: F) -> F:
    """Adds --store and --json to a command, and passes a `Run` to its function as the first argument."""

    @click.option(
        "--store",
        "-s",
        cls=StoreOption,
        type=PlaceType(),
        envvar=STORE_VARIABLE,
        show_envvar=True,
        metavar="PATH|URL",
        help=STORE_HELP,
    )
    @tells_json
    @functools.wraps(function)
    def command(*given: Any, store: Location | None, as_json: bool, **named: Any) -> Any:
        return function(Run(store, as_json=as_json), *given, **named)

    return command  # type: ignore[return-value]


def tells_json(function: F) -> F:
    """Adds --json to a command, as the keyword `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line, for programs.")(
        function
    )


def says_yes(function: F) -> F:
    """Adds --yes to a command, as the keyword `yes`."""
    return click.option("--yes", "-y", is_flag=True, help="Do not ask.")(function)


def takes_exits(function: F) -> F:
    """Adds --exits to a command, as the keyword `exits`: the names of modules."""
    return click.option(
        "--exits", multiple=True, metavar="MODULE",
        help="A module whose functions this process may call as message exits of channels; may be repeated. "
        "No other module is imported for a definition.",
    )(function)  # fmt: skip


def completions(context: click.Context, names: Callable[[QueueManager], list[str]], incomplete: str) -> list[str]:
    """Names in the chosen store, for completion in a shell. It never raises an error, because a shell calls it."""
    try:
        named = context.params.get("store") or _store_before(context) or os.environ.get(STORE_VARIABLE)
        if not named:
            return []
        place = PlaceType().convert(named, None, context)
        with _patience(place, None, COMPLETION_SECONDS):
            if not place.is_there(PROGRAM):
                return []
            qm = connect_to(place, program=PROGRAM)
        with qm:
            return [name for name in names(qm) if name.startswith(incomplete)]
    except (InorderError, click.UsageError):
        return []


def completes(names: Callable[[QueueManager], list[str]]) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Makes a completion of names in the chosen store, for `shell_complete`."""

    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
        return completions(context, names, incomplete)

    return complete


queue_names = completes(lambda qm: [one.name for one in qm.queues()])


def status_of(error: InorderError) -> int:
    """The exit status for an error."""
    if isinstance(error, StoreError):
        return TROUBLE
    if isinstance(error, CallerError):
        return WRONG
    return NO if isinstance(error, QueueCondition) else TROUBLE


def record_of_error(error: InorderError) -> dict[str, Any]:
    """An error as a record for programs."""
    reason: Reason = error.reason
    return {
        "error": error.args[0],
        "class": type(error).__name__,
        "reason": reason.value,
        "reason_name": reason.name,
        "exit_status": status_of(error),
        "data": {name: as_json_value(value) for name, value in error.data.items()},
    }


def as_json_value(value: object) -> Any:
    """A value in the form that JSON can hold: bytes as hex, infinity as null."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        return {str(key): as_json_value(one) for key, one in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return as_json_value(value._asdict())
    if isinstance(value, list | tuple | set | frozenset):
        return [as_json_value(one) for one in value]
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def script_lines(script: str) -> Iterable[str]:
    """The lines of a file, or of standard input for -.

    Raises: click.UsageError, if it cannot be read, is too long, or is not UTF-8.
    """
    named = "standard input" if script == STANDARD_INPUT else script
    try:
        with nullcontext(standard_input()) if script == STANDARD_INPUT else Path(script).open("rb") as file:
            content = file.read(SCRIPT_BYTES_MAX + 1)
        if len(content) > SCRIPT_BYTES_MAX:
            raise click.UsageError(f"{named} is not read: it has more than {SCRIPT_BYTES_MAX:,} bytes")
        return io.StringIO(content.decode("utf-8-sig"), newline=None)
    except OSError as error:
        raise click.UsageError(f"{named} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise click.UsageError(f"{named} is not in UTF-8: byte {content[error.start]:#04x} in line {line}") from error
