"""`inorder user`, `inorder token` and `inorder acts`: manages users of a server, and shows the log of acts."""

from __future__ import annotations

import functools
import getpass
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import click

from .. import QueueManager
from ..client.users import DAY_SECONDS, TOKEN_SECONDS, TOKEN_SECONDS_MAX, Token, User
from ..errors import ObjectExists, UnknownObject
from ..formats.json_lines import when
from ..rules.authorities import GRANTABLE, ROLES
from ..stores.seam.records import Act
from ..support import passwords
from .output import line_of_standard_input
from .running import Command, CommandGroup, Run, completes, queue_names, says_yes, takes_store

F = TypeVar("F", bound=Callable[..., Any])

DAYS: Final = click.FloatRange(0, TOKEN_SECONDS_MAX / DAY_SECONDS, min_open=True)
USER_COLUMNS = {
    "user": "user",
    "roles": "roles",
    "enabled": "enabled",
    "password": "password",
    "grants": "queues",
    "subjects": "certificates",
    "description": "description",
}
TOKEN_COLUMNS = {
    "token": "token",
    "user": "user",
    "label": "label",
    "created_at": "created",
    "expires_at": "expires",
}
ACT_COLUMNS = {
    "at": "when",
    "user": "user",
    "address": "from",
    "act": "act",
    "queue": "queue",
    "messages": "messages",
    "outcome": "outcome",
    "error": "trouble",
}
user_names = completes(lambda qm: [one.name for one in qm.accounts.users()])
NAME = click.argument("name", shell_complete=user_names)


def takes_profile(function: F) -> F:
    """Adds the options of a user's profile to a command, and passes those given to its function as `given`."""

    @click.option(
        "--role",
        "roles",
        type=click.Choice(ROLES),
        multiple=True,
        help="A role, which applies to all queues; may be repeated.",
    )
    @click.option(
        "--may", "queues", metavar="AUTHORITY,...=QUEUE", multiple=True,
        help=f"For the role application: allow {', '.join(GRANTABLE)} on a queue, or on all queues that match "
             "NAME*; may be repeated.",
    )  # fmt: skip
    @click.option(
        "--certificate",
        "subjects",
        metavar="SUBJECT",
        multiple=True,
        help="The subject of a client certificate with which the user can log in; may be repeated.",
    )
    @click.option("--description", help="A description of the user.")
    @functools.wraps(function)
    def command(*args: Any, **named: Any) -> Any:
        given = {name: named.pop(name) for name in ("roles", "queues", "subjects", "description")}
        given["queues"] = granted(given["queues"])
        chosen = {name: value for name, value in given.items() if value or (name == "description" and value == "")}
        return function(*args, given=chosen, **named)

    return command  # type: ignore[return-value]


takes_stdin = click.option("--password-stdin", is_flag=True, help="Read the password from standard input, one line.")


@click.group("user", cls=CommandGroup, epilog="Example: inorder user list --store orders.db")
def user() -> None:
    """Define the users of a server and their permissions.

    Users apply only to a server. A program that opens the store directly can do everything, so protect the store with
    the permissions of its file or database.
    """


@user.command("add", example="inorder user add shop --role application --may put,inquire=ORDERS.* --store orders.db")
@click.argument("name")
@takes_profile
@click.option("--password", "asks", is_flag=True, help="Ask for a password, without showing it.")
@takes_stdin
@takes_store
def add(run: Run, name: str, given: dict[str, Any], asks: bool, password_stdin: bool) -> None:
    """Define a user. Without --role the user can only read. Passwords are optional; use tokens for programs."""
    if asks and password_stdin:
        raise click.UsageError("Give --password or --password-stdin, not both.")
    with run.opened() as qm:
        _refuse_known(qm, name)
        kept = passwords.hashed(_password(from_stdin=password_stdin)) if asks or password_stdin else None
        found = qm.accounts.create_user(name, **given, password_hash=kept)
    run.output.tell(_record(found) | {"done": "created"}, f"created user {name}: {', '.join(found.roles)}")


@user.command("list", example="inorder user list --store orders.db")
@takes_store
def list_users(run: Run) -> None:
    """List the users and their permissions."""
    with run.opened() as qm:
        records = [_record(one) for one in qm.accounts.users()]
    run.output.listing(records, USER_COLUMNS, nothing="no user is defined")


@user.command("alter", example="inorder user alter shop --may put=ORDERS.* --may get=REPLIES --store orders.db")
@NAME
@takes_profile
@click.option(
    "--enable/--disable",
    "enabled",
    default=None,
    help="Allow the user to log in, or not; --disable also ends sessions and tokens.",
)
@takes_store
def alter(run: Run, name: str, given: dict[str, Any], enabled: bool | None) -> None:
    """Change the given properties of a user. Roles, grants and certificates replace the old ones."""
    if not given and enabled is None:
        raise click.UsageError("Nothing to change: name at least one option.")
    if "application" not in given.get("roles", ["application"]):
        given.setdefault("queues", {})
    with run.opened() as qm:
        found = qm.accounts.alter_user(name, **given, enabled=enabled)
    run.output.tell(_record(found) | {"done": "altered"}, f"altered user {name}")


@user.command("delete", example="inorder user delete shop --yes --store orders.db")
@NAME
@says_yes
@takes_store
def delete(run: Run, name: str, yes: bool) -> None:
    """Delete a user, with its tokens."""
    with run.opened() as qm:
        qm.accounts.user(name)
        run.output.confirm(f"Delete user {name} and its tokens?", yes=yes)
        qm.accounts.delete_user(name)
    run.output.tell({"user": name, "done": "deleted"}, f"deleted user {name}")


@user.command("password", example="inorder user password alice --store orders.db")
@NAME
@takes_stdin
@click.option("--remove", is_flag=True, help="Remove the password; tokens and certificates still work.")
@takes_store
def password(run: Run, name: str, password_stdin: bool, remove: bool) -> None:
    """Set a user's password. The command prompts for it or reads it from standard input."""
    if remove and password_stdin:
        raise click.UsageError("Give --remove or --password-stdin, not both.")
    with run.opened() as qm:
        qm.accounts.user(name)
        qm.accounts.alter_user(
            name, password_hash="" if remove else passwords.hashed(_password(from_stdin=password_stdin))
        )
    done = "removed" if remove else "set"
    run.output.tell({"user": name, "done": f"password {done}"}, f"{done} the password of {name}")


def _refuse_known(qm: QueueManager, name: str) -> None:
    """Checks the name before the password prompt. Raises: ObjectExists."""
    if name in [one.name for one in qm.accounts.users()]:
        raise ObjectExists(f"there is a user {name!r} already", kind="user", object=name)


def _password(*, from_stdin: bool) -> str:
    if from_stdin:
        return line_of_standard_input()
    with warnings.catch_warnings():
        warnings.simplefilter("error", getpass.GetPassWarning)
        try:
            found: str = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
        except getpass.GetPassWarning:
            raise click.UsageError(
                "Give --password-stdin, because there is no terminal to ask for a password at."
            ) from None
    return found


def granted(grants: Sequence[str]) -> dict[str, list[str]]:
    """The grants of `--may`, by queue. Raises: UsageError."""
    found: dict[str, list[str]] = {}
    for one in grants:
        verbs, equals, queue = one.partition("=")
        if not equals or not queue:
            raise click.UsageError(f"--may {one} must be AUTHORITY,...=QUEUE, such as put,get=ORDERS.*")
        found.setdefault(queue, []).extend(verb.strip() for verb in verbs.split(","))
    return found


def _record(one: User) -> dict[str, Any]:
    return {
        "user": one.name,
        "roles": list(one.roles),
        "enabled": one.enabled,
        "password": one.has_password,
        "grants": _grants(one),
        "subjects": list(one.subjects),
        "description": one.description,
    }


def _grants(one: User) -> list[str]:
    return [f"{','.join(verbs)}={queue}" for queue, verbs in one.queues.items()]


def options_of_user(one: User) -> list[str]:
    """The options of `inorder user add` that define this user, without a password."""
    options = {"--role": one.roles, "--may": sorted(_grants(one)), "--certificate": sorted(one.subjects)}
    words = [word for option, values in options.items() for value in values for word in (option, value)]
    return [*words, *(["--description", one.description] if one.description else [])]


# --- tokens


@click.group("token", cls=CommandGroup, epilog="Example: inorder token list --store orders.db")
def token() -> None:
    """Create, list and revoke tokens, with which programs log in to a server."""


@token.command("create", example="inorder token create shop nightly --days 30 --store orders.db")
@NAME
@click.argument("label")
@click.option(
    "--days",
    type=DAYS,
    metavar="DAYS",
    default=TOKEN_SECONDS / DAY_SECONDS,
    show_default=True,
    help="Days until the token expires.",
)
@takes_store
def create(run: Run, name: str, label: str, days: float) -> None:
    """Create a token for a user and print it. It cannot be shown again, because the store keeps only a hash. LABEL
    describes its purpose.
    """
    with run.opened() as qm:
        made = qm.accounts.create_token(name, label, seconds=days * DAY_SECONDS)
        found = next(one for one in qm.accounts.tokens(name) if made.startswith(f"{one.name}."))
    run.output.tell(_token_record(found) | {"secret": made}, made)


@token.command("list", example="inorder token list --user shop --store orders.db")
@click.option("--user", "name", shell_complete=user_names, metavar="NAME", help="List only this user's tokens.")
@takes_store
def list_tokens(run: Run, name: str | None) -> None:
    """List tokens by id, without their secrets."""
    with run.opened() as qm:
        records = [_token_record(one) for one in qm.accounts.tokens(name)]
    run.output.listing(records, TOKEN_COLUMNS, nothing="there is no token")


@token.command("revoke", example="inorder token revoke 5f0c1d2e3a4b5c6d --store orders.db")
@click.argument("token")
@takes_store
def revoke(run: Run, token: str) -> None:
    """Revoke a token by its id, with immediate effect."""
    name = token.partition(".")[0]
    with run.opened() as qm:
        try:
            qm.accounts.revoke_token(name)
        except UnknownObject:
            raise UnknownObject(f"there is no token {name!r}", kind="token", object=name) from None
    run.output.tell({"token": name, "done": "revoked"}, f"revoked token {name}")


def _token_record(one: Token) -> dict[str, Any]:
    return {
        "token": one.name,
        "user": one.user,
        "label": one.label,
        "created_at": when(one.created_at),
        "expires_at": when(one.expires_at),
    }


# --- acts


@click.command("acts", cls=Command, example="inorder acts --user alice --store orders.db")
@click.option("--user", "name", metavar="NAME", help="Show only acts of this user.")
@click.option("--queue", shell_complete=queue_names, metavar="NAME", help="Show only acts on this queue.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=100, show_default=True, metavar="N", help="Show only the newest N."
)
@takes_store
def acts(run: Run, name: str | None, queue: str | None, limit: int) -> None:
    """Show the log of acts through servers that cannot be undone, with user, time and address.

    The newest act comes first. An act with outcome begun is still running, or its server was killed. Acts of programs
    that open the store directly are not in the log.
    """
    with run.opened() as qm:
        records = [_act_record(one) for one in qm.accounts.acts(user=name, queue=queue, most=limit)]
    run.output.listing(records, ACT_COLUMNS, nothing="the log is empty")


def _act_record(one: Act) -> dict[str, Any]:
    return {
        "at": when(one.at),
        "user": one.user,
        "address": one.address,
        "act": one.act,
        "queue": one.queue,
        "messages": one.messages,
        "outcome": one.outcome,
        "error": one.error,
    }
