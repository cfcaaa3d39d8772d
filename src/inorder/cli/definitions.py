"""`inorder export` and `inorder import`: the definitions of a store, with its users and connections, as one script.

The script is MQSC. MQSC has no commands for users and connections, so these are comments with the calls of `inorder`
that define them, and MQ can run the script too. `import` first runs the script on a copy of the definitions in memory.
It shows the differences, and runs on the store only the commands that make them.
"""

from __future__ import annotations

import difflib
import json
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import click

from ..client.manager import QueueManager, connect_to
from ..client.users import User
from ..errors import IN_MEMORY, CallerError, Reason, UnknownObject
from ..mq import channels
from ..mq.mqsc import (
    Source,
    commands_in,
    export_channel,
    export_manager,
    export_process,
    export_queues,
    parse,
    run_command,
)
from ..mq.mqsc.commands import Alter, AlterManager, Define, ObjectCommand
from ..stores.open import locate
from .connections import define_connection
from .running import DONE, NO, Command, Run, says_yes, script_lines, takes_store
from .users import add, granted, options_of_user
from .wording import count, plain

CALL: Final = "* inorder "
USER, CONNECTION, DISABLED = ["user", "add"], ["connection", "define"], ["user", "alter"]


class ObjectName(NamedTuple):
    """An object that a script defines. `name`: empty for the queue manager."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}" if self.name else self.kind


MANAGER: Final = ObjectName("queue manager", "")


@dataclass(slots=True, kw_only=True)
class DefinitionScript:
    """A script that was read.

    Args:
        commands: of MQSC, with the object that each defines.
        connections, users: the arguments of the calls that define them.
    """

    commands: list[tuple[ObjectName, Source]] = field(default_factory=list)
    connections: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    users: dict[str, dict[str, Any]] = field(default_factory=dict)


# ---- writing


def definitions(qm: QueueManager) -> list[str]:
    """Writes all definitions of a queue manager: its connections as comments, then commands of MQSC."""
    altered = export_manager(qm.admin.manager_attributes())
    return [
        *map(_defined, channels.connections(qm)),
        *([] if altered is None else [altered]),
        *export_queues(qm.queues()),
        *map(export_process, qm.admin.processes()),
        *map(export_channel, channels.channels(qm)),
    ]


def _users(qm: QueueManager) -> list[User] | None:
    """The users of a store; None for a store elsewhere, which does not show them."""
    try:
        return qm.accounts.users()
    except CallerError as error:
        if error.reason != Reason.FUNCTION_NOT_SUPPORTED:
            raise
        return None


def _of_users(users: Iterable[User] | None) -> Iterator[str]:
    for one in users or ():
        disabled = [] if one.enabled else [_call(DISABLED, [one.name], ["--disable"])]
        yield "\n".join([_call(USER, [one.name], options_of_user(one)), *disabled])


def _defined(one: channels.Connection) -> str:
    options = [*(["--user", one.user] if one.user else []), "--replace"]
    return _call(CONNECTION, [one.name, one.location], options)


def _call(command: Sequence[str], names: Sequence[str], options: Sequence[str]) -> str:
    """A comment with a call of this program: as in a shell, or, if it has control characters, as a JSON list."""
    is_like_option = any(one.startswith("-") for one in names)
    words = [*command, *options, "--", *names] if is_like_option else [*command, *names, *options]
    text = shlex.join(words)
    return CALL + (text if text.isprintable() else json.dumps(words))


def print_definitions(run: Run, commands: Iterable[str]) -> int:
    """Prints commands unchanged to a file or pipe; for a terminal it escapes control characters."""
    for command in commands:
        if run.output.as_json:
            run.output.line({"command": command})
            continue
        for line in command.split("\n"):
            click.echo(plain(line) if sys.stdout.isatty() else line)
    return DONE


@click.command("export", cls=Command, example="inorder export --store orders.db")
@takes_store
def export(run: Run) -> int:
    """Print all definitions as a script for 'inorder import': queues, channels, processes, connections, users.

    The script is MQSC. Users with their roles, grants and certificates, and connections, are comments in it, so that MQ
    can run it, too. It has no messages, passwords or tokens. The same definitions always give the same text. The users
    of a store elsewhere are left out.
    """
    with run.opened() as qm:
        users = _users(qm)
        if users is None:
            run.output.note("users are left out: run 'inorder export' on the machine that has the store")
        return print_definitions(run, [*definitions(qm), *_of_users(users)])


# ---- reading


def _read(lines: Iterable[str], name: str) -> DefinitionScript:
    """Reads a script. `name`: the name of the queue manager. Raises: click.UsageError, MqscSyntaxError."""
    script, text = DefinitionScript(), [line.rstrip("\r\n") for line in lines]
    for number, line in enumerate(text, 1):
        if line.startswith(CALL):
            _take(script, number, line[len(CALL) :])
    for source in commands_in(text):
        given = source.with_inserts(name)
        script.commands.append((_key(given), given))
    return script


def _key(source: Source) -> ObjectName:
    """The object that a command defines. Raises: click.UsageError, if it defines none; MqscSyntaxError."""
    command = parse(source)
    if isinstance(command, AlterManager):
        return MANAGER
    if isinstance(command, Define | Alter):
        return ObjectName("queue", command.name)
    if isinstance(command, ObjectCommand) and command.verb in ("DEFINE", "ALTER"):
        return ObjectName(command.target.lower(), command.name)
    verb = source.lines[0][1].split()[0].upper()
    raise click.UsageError(
        f"Line {source.line}: import takes DEFINE and ALTER, not {verb}. 'inorder mqsc' runs every command."
    )


def _take(script: DefinitionScript, number: int, text: str) -> None:
    """Reads a call from a comment. Raises: click.UsageError, if export does not write such a call."""
    try:
        words = [*map(str, json.loads(text))] if text.startswith("[") else shlex.split(text)
        match words:
            case ["user", "add", *given]:
                options = _parsed(add, given)
                if options["asks"] or options["password_stdin"]:
                    raise click.UsageError("a script has no passwords")
                script.users[options["name"]] = {
                    "roles": options["roles"] or ("reader",), "queues": granted(options["queues"]),
                    "subjects": options["subjects"], "description": options["description"] or "", "enabled": True,
                }  # fmt: skip
            case ["user", "alter", one, "--disable"] | ["user", "alter", "--disable", "--", one] if one in script.users:
                script.users[one]["enabled"] = False
            case ["connection", "define", *given]:
                options = _parsed(define_connection, given)
                script.connections[options["name"]] = {key: options[key] for key in ("location", "user")}
            case _:
                raise click.UsageError(
                    "import takes 'user add', then 'user alter NAME --disable', and 'connection define'"
                )
    except (click.UsageError, ValueError) as error:
        said = error.message if isinstance(error, click.UsageError) else str(error)
        raise click.UsageError(f"Line {number}: inorder {text}: {said}") from None


def _parsed(command: click.Command, words: list[str]) -> dict[str, Any]:
    return command.make_context(command.name, words, help_option_names=[]).params


# ---- applying


def _apply(qm: QueueManager, script: DefinitionScript, chosen: Iterable[ObjectName] | None = None) -> None:
    """Defines what a script says, or only these objects of it. Raises: the error of the first call that fails."""
    wanted = None if chosen is None else frozenset(chosen)
    for name, given in script.connections.items():
        if wanted is None or ObjectName("connection", name) in wanted:
            channels.define_connection(qm, name, **given, replace=True)
    for key, source in script.commands:
        answer = run_command(source, qm) if wanted is None or key in wanted else None
        if answer is not None and answer.error is not None:
            answer.error.args = (f"line {source.line}: {answer.text}",)
            raise answer.error
    for name, given in script.users.items():
        if wanted is None or ObjectName("user", name) in wanted:
            _define_user(qm, name, given)


def _define_user(qm: QueueManager, name: str, given: Mapping[str, Any]) -> None:
    """Creates a user without a password or token, or alters an existing user, who keeps both.

    Raises: ArgumentError.
    """
    try:
        is_enabled = qm.accounts.user(name).enabled
    except UnknownObject:
        qm.accounts.create_user(name, **{key: value for key, value in given.items() if key != "enabled"})
        is_enabled = True
    changed = given["enabled"] if given["enabled"] != is_enabled else None  # disabling again would mean a new user
    qm.accounts.alter_user(name, **{**given, "enabled": changed})


class DefinitionChange(NamedTuple):
    """A difference between a store and a script: the removed and the added lines of one definition."""

    key: ObjectName
    removed: list[str]
    added: list[str]


def _changes(before: Mapping[ObjectName, str], after: Mapping[ObjectName, str]) -> list[DefinitionChange]:
    found = []
    for key, text in after.items():
        old, new = before.get(key, "").splitlines(), text.splitlines()
        lines = list(difflib.ndiff(old, new)) if old != new else []
        removed, added = ([line[2:] for line in lines if line.startswith(mark)] for mark in ("- ", "+ "))
        if lines:
            found.append(DefinitionChange(key, removed, added))
    return found


def _by_object(qm: QueueManager, name: str) -> dict[ObjectName, str]:
    """The text of each definition of a queue manager."""
    found = {}
    for text in [*definitions(qm), *_of_users(_users(qm))]:
        script = _read(text.split("\n"), name)
        keys = [
            *(key for key, _ in script.commands),
            *(ObjectName("connection", one) for one in script.connections),
            *(ObjectName("user", one) for one in script.users),
        ]
        found.update(dict.fromkeys(keys, text))
    return found


@click.command("import", cls=Command, example="inorder import definitions.mqsc --dry-run --store orders.db")
@click.argument("script", type=click.Path(allow_dash=True))
@click.option("--dry-run", is_flag=True, help="Only show what would change. Exit status: 0 nothing; 1 something.")
@says_yes
@takes_store
def import_definitions(run: Run, script: str, dry_run: bool, yes: bool) -> int:
    """Define what a script of 'inorder export' defines; show what changes, and ask first.

    SCRIPT is a file, or - for standard input. It may be written by hand: DEFINE and ALTER of MQSC, and the comments in
    which export writes users and connections. A second import changes nothing. Objects that the script does not name
    stay, and so do passwords and tokens; a new user has none. If a command of the script is wrong, nothing changes. A
    missing store is created. Each definition is a separate transaction: after a failure, run the import again. Users
    cannot be defined in a store elsewhere.
    """
    lines = list(script_lines(script))
    with run.opened() if run.is_there() else connect_to(locate(IN_MEMORY), name=run.store.default_name) as qm:
        name = qm.admin.manager_attributes().name
        wanted, before = _read(lines, name), _by_object(qm, name)
        if wanted.users:
            qm.accounts.users()  # elsewhere this is refused, with the remedy
    with connect_to(locate(IN_MEMORY), name=name) as copy:
        _apply(copy, _read("\n".join(before.values()).split("\n"), name))
        _apply(copy, wanted)
        changes = _changes(before, _by_object(copy, name))
    for one in changes:
        _show(run, one, is_new=one.key not in before)
    if not changes:
        run.output.say(f"{run.store} has these definitions already")
    if dry_run or not changes:
        return NO if changes else DONE
    run.output.confirm(f"Change {count(len(changes), 'definition')} in {run.store}?", yes=yes)
    with run.opened(make=True) as qm:
        _apply(qm, wanted, [one.key for one in changes])
    for one in changes:
        if one.key.kind == "user" and one.key not in before:
            run.output.note(f"user {one.key.name} has no password: inorder user password, or inorder token create")
    run.output.say(f"changed {count(len(changes), 'definition')}")
    return DONE


def _show(run: Run, change: DefinitionChange, *, is_new: bool) -> None:
    kind, name = change.key
    record = {"kind": kind, "name": name, "is_new": is_new, "removed": change.removed, "added": change.added}
    lines = [*(f"  - {line}" for line in change.removed), *(f"  + {line}" for line in change.added)]
    if run.output.as_json:
        run.output.line(record)
        return
    run.output.say(f"{'new' if is_new else 'changed'}: {change.key}")
    for line in lines:
        run.output.say(line)
