"""Users and their tokens: a list, and forms for administrators.

Each form asks for the password of the visitor again, so that a browser that was left open cannot be used to create a
user. The log of acts has each act.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from starlette.responses import Response

from ...client.manager import QueueManager
from ...client.users import DAY_SECONDS, NAME_LENGTH_MAX, TOKEN_SECONDS, User
from ...errors import ArgumentError, InorderError, bad_argument
from ...model.parameters import Seconds
from ...rules.authorities import GRANTABLE, ROLES
from ...support import passwords
from ..authentication import of_password
from ..identity import LaunchToken
from ..operator_log import acted
from ..problems import Problem
from . import acting, forms
from .page import Page, Visit
from .rendering import shown

T = TypeVar("T")

DAYS: Final = Seconds(0, 3650, above=True)
ACTS: Final = ("alter", "password", "disable", "enable", "delete", "create token", "revoke token")


class WrongPassword(ArgumentError):
    """The password that confirms a form is not the visitor's."""


async def _confirm(visit: Visit) -> None:
    """Checks the visitor's password. Raises: WrongPassword; Problem 429, after too many failures."""
    known = await of_password(visit.context, visit.request, visit.identity.name, visit.text("confirm"))
    if known is None or known.name != visit.identity.name:
        is_launched = visit.identity == LaunchToken.IDENTITY
        text = f"{'The launch token' if is_launched else 'Your password'} is not correct. Nothing was changed."
        raise WrongPassword(text, argument="confirm", value="...", allowed="your password")


async def _done(visit: Visit, act: str, work: Callable[[QueueManager], T]) -> T:
    """Checks the visitor's password, runs an act, and logs it."""
    await _confirm(visit)
    return await acted(visit.context, visit.request, act, "", lambda qm, _: work(qm))


def _grants(text: str) -> dict[str, list[str]]:
    """Reads grants, one per line: AUTHORITY,...=QUEUE. Raises: ArgumentError."""
    found: dict[str, list[str]] = {}
    for line in filter(str.strip, text.splitlines()):
        verbs, equals, queue = line.partition("=")
        if not equals or not queue.strip():
            raise bad_argument("queues", line, "lines such as put,get=ORDERS.*")
        found.setdefault(queue.strip(), []).extend(verb.strip() for verb in verbs.split(","))
    return found


async def _hashed(visit: Visit) -> str | None:
    """The hash of the new password; None: the field is empty. Raises: ArgumentError."""
    new = visit.text("password")
    if new != visit.text("again"):
        raise bad_argument("again", "...", "the same password")
    return await asyncio.to_thread(passwords.hashed, new) if new else None


def _given(visit: Visit, user: User | None) -> dict[str, Any]:
    """The fields of the forms: as sent, if the form was sent; otherwise the user's present values."""
    grants = [] if user is None else [f"{','.join(verbs)}={queue}" for queue, verbs in user.queues.items()]
    usual: dict[str, Any] = {
        "name": "", "queues": "\n".join(grants), "subjects": "" if user is None else "\n".join(user.subjects),
        "description": "" if user is None else user.description, "roles": ["reader"] if user is None else user.roles,
        "label": "", "days": f"{TOKEN_SECONDS / DAY_SECONDS:g}",
    }  # fmt: skip
    sent: dict[str, Any] = {name: visit.text(name) for name in usual if name != "roles" and name in visit.form}
    if visit.request.method == "POST" and visit.text("action") in ("", "alter"):  # a browser sends no empty list
        sent["roles"] = visit.texts("roles")
    return usual | sent


def _profile(visit: Visit) -> dict[str, Any]:
    return {
        "roles": visit.texts("roles"), "queues": _grants(visit.text("queues")),
        "subjects": [line.strip() for line in visit.text("subjects").splitlines() if line.strip()],
        "description": visit.text("description").strip(),
    }  # fmt: skip


# --- all users


async def show(visit: Visit) -> Mapping[str, Any]:
    """GET users: the users, their ways to log in and their authorities, without secrets; the form for a new one."""
    visit.query()
    return await _list(visit)


async def _list(visit: Visit) -> dict[str, Any]:
    def look(qm: QueueManager) -> dict[str, Any]:
        now, tokens = qm.internals.clock.now(), qm.accounts.tokens()
        valid = [one.user for one in tokens if one.expires_at > now]
        return {"users": qm.accounts.users(), "tokens": {name: valid.count(name) for name in set(valid)}}

    found = await visit.context.qm.run(look)
    return {**found, "given": _given(visit, None), "role_names": ROLES, "verbs": GRANTABLE}


async def create(visit: Visit) -> Response:
    """POST users: creates a user."""
    name = visit.text("name").strip()
    try:
        if not name:
            raise acting.left_out("name", "the name of the user is missing: fill it in")
        profile, kept = _profile(visit), await _hashed(visit)
        await _done(
            visit,
            f"create user {name[:NAME_LENGTH_MAX]}",
            lambda qm: qm.accounts.create_user(name, **profile, password_hash=kept),
        )
    except (InorderError, Problem) as error:
        return acting.refused(visit, error, await _list(visit))
    return forms.done(visit, f"User {name} created.", "user", name)


# --- one user


async def show_user(visit: Visit) -> Mapping[str, Any]:
    """GET user/NAME: its form and its tokens."""
    visit.query()
    return await _user(visit)


async def _user(visit: Visit) -> dict[str, Any]:
    name = visit.names["user"]

    def look(qm: QueueManager) -> dict[str, Any]:
        return {"user": qm.accounts.user(name), "tokens": qm.accounts.tokens(name), "now": qm.internals.clock.now()}

    found = await visit.context.qm.run(look)
    return {
        "secret": "", "given": _given(visit, found["user"]), "role_names": ROLES, "verbs": GRANTABLE,
        "one": found.pop("user"), **found,
    }  # fmt: skip


async def act(visit: Visit) -> Response:
    """POST user/NAME: alters the user, or creates or revokes a token; a new token is shown once."""
    name, what = visit.names["user"], visit.choice("action", ACTS)
    try:
        if what == "create token":
            seconds = DAY_SECONDS * DAYS.read("days", visit.text("days").strip())
            label = visit.text("label").strip()
            secret = await _done(
                visit,
                f"create token for user {name}",
                lambda qm: qm.accounts.create_token(name, label, seconds=seconds),
            )
            return shown(visit, await _user(visit) | {"secret": secret})
        await _done(visit, f"{what} of user {name}" if what == "password" else f"{what} user {name}",
                    await _change(visit, name, what))  # fmt: skip
    except (InorderError, Problem) as error:
        return acting.refused(visit, error, await _user(visit))
    if what == "delete":
        return forms.done(visit, f"User {name} deleted.", "users")
    said = {"revoke token": "Token revoked.", "password": "The password was changed."}.get(
        what, f"User {name} altered."
    )
    return forms.done(visit, said, "user", name)


async def _change(visit: Visit, name: str, what: str) -> Callable[[QueueManager], object]:
    """The call that an action makes. Raises: ArgumentError."""
    if what == "alter":
        profile = _profile(visit)
        return lambda qm: qm.accounts.alter_user(name, **profile)
    if what == "password":
        kept = await _hashed(visit) or ""
        return lambda qm: qm.accounts.alter_user(name, password_hash=kept)
    if what == "delete":
        if visit.text("typed") != name:
            raise acting.left_out("typed", f"type the name of the user, {name}, to confirm")
        return lambda qm: qm.accounts.delete_user(name)
    if what == "revoke token":
        token = visit.text("token")
        return lambda qm: _revoke(qm, name, token)
    return lambda qm: qm.accounts.alter_user(name, enabled=what == "enable")


def _revoke(qm: QueueManager, user: str, token: str) -> None:
    if token not in [one.name for one in qm.accounts.tokens(user)]:
        raise bad_argument("token", token, f"the id of a token of user {user}")
    qm.accounts.revoke_token(token)


PAGES: Final = (
    Page(path="users", title="Users", authority="administer", template="users.html", show=show, act=create,
         menu="Users"),
    Page(path="user/{user}", title="User {user}", authority="administer", template="user.html", show=show_user,
         act=act),
)  # fmt: skip
