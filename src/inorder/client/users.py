"""`qm.accounts`: users, their tokens and authentication, for servers.

Users are kept in the store, so all of its servers share them. They apply only to a server. A program that can open the
store, such as this connection, may do everything, and defines them. Passwords arrive here as hashes. The server
compares them, because it has the library: see `inorder.support.passwords`.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

from ..errors import (
    CallerError,
    ConnectionBroken,
    LogInRefused,
    NotAuthorized,
    ObjectExists,
    Reason,
    TooManyLogIns,
    UnknownObject,
    bad_argument,
)
from ..model.options import check_switch
from ..model.parameters import Seconds, Text, is_storable
from ..rules import authorities, log_ins
from ..stores.seam.damage import decodes
from .operator_log import ActCalls

USER, TOKEN = "user", "token"  # kinds of objects
NAME_LENGTH_MAX: Final = 64
SUBJECT_LENGTH_MAX: Final = 1024
DESCRIPTION_LENGTH_MAX: Final = 256
NAME: Final = Text(NAME_LENGTH_MAX, least=1)
SUBJECT: Final = Text(SUBJECT_LENGTH_MAX, least=1)
DESCRIPTION: Final = Text(DESCRIPTION_LENGTH_MAX, words=f"a text of 0 to {DESCRIPTION_LENGTH_MAX} characters")
SUBJECTS_MAX, GRANTS_MAX, TOKENS_MAX = 16, 1000, 100
ON_BEHALF_OF: Final = Text(256, least=1)
ID_BYTES = 8
DAY_SECONDS: Final = 86_400.0
TOKEN_SECONDS, TOKEN_SECONDS_MAX = 90 * DAY_SECONDS, 3650 * DAY_SECONDS

Verify = Callable[[str | None], bool]
"""Compares the given password with a hash; the hash is None if the user has no password or does not exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A user in the store.

    Attributes:
        roles: some of "admin", "operator", "reader", "application", sorted.
        queues: authorities of the role application, by the name of a queue, or a prefix and `*`.
        subjects: the subjects of this user's client certificates.
        enabled: whether the user may log in.
        has_password: whether the user may log in with a password.
        identifier: changes when the user is disabled, and when it is deleted and created again.
    """

    name: str
    roles: tuple[str, ...]
    queues: Mapping[str, tuple[str, ...]]
    subjects: tuple[str, ...]
    description: str
    enabled: bool
    identifier: str
    password_hash: str | None = field(repr=False)

    @property
    def has_password(self) -> bool:
        return self.password_hash is not None

    def may(self, authority: str, queue: str = authorities.MANAGER) -> bool:
        """Whether the user has an authority on a queue, or on the queue manager if `queue` is ""."""
        return self.enabled and authorities.may(self.roles, self.queues, authority, queue)

    def check(self, authority: str, queue: str = authorities.MANAGER) -> None:
        """Raises: NotAuthorized 2035, the user lacks the authority."""
        if not self.may(authority, queue):
            where = f"queue {queue}" if queue else "the queue manager"
            raise NotAuthorized(
                f"user {self.name} may not {authority} on {where}", user=self.name, authority=authority, queue=queue
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token of a user; the store has only a hash of its secret.

    Attributes:
        name: the beginning of the token.
        label: its purpose, in the owner's words.
        created_at, expires_at: seconds since 1970; the token is refused from `expires_at` on.
    """

    name: str
    user: str
    label: str
    created_at: float
    expires_at: float
    user_identifier: str = field(repr=False)
    secret_hash: str = field(repr=False)


class Accounts(ActCalls):
    """The users of a queue manager, their tokens, and the operator log, `qm.accounts`."""

    # --- users

    def create_user(
        self,
        name: str,
        *,
        roles: Iterable[str] = ("reader",),
        queues: Mapping[str, Iterable[str]] | None = None,
        subjects: Iterable[str] = (),
        description: str = "",
        password_hash: str | None = None,
    ) -> User:
        """Creates a user for servers; users do not restrict programs that open the store themselves.

        Args:
            name: 1 to 64 characters, without blanks and colons; not "launch-token".
            roles: "admin", "operator", "reader", "application"; docs/how-to/users.md lists their authorities.
            queues: authorities for the role application, by the name of a queue, or a prefix and `*`: some of "put",
                "get", "browse", "inquire", "set", "display", "alter", "clear".
            subjects: subjects of client certificates, 16 at most; each belongs to one user only.
            password_hash: made by `inorder.support.passwords.hashed`; None: the user has no password.

        Raises: ArgumentError; ObjectExists 2100.
        """
        given = {
            "roles": roles,
            "queues": {} if queues is None else queues,
            "subjects": subjects,
            "description": description,
        }
        user = _checked(_blank(name), **given, password_hash=password_hash)
        self._check_subjects(user)
        with self._session:
            self._store.define_object(USER, name, _as_text(user))
        return user

    def alter_user(
        self,
        name: str,
        *,
        roles: Iterable[str] | None = None,
        queues: Mapping[str, Iterable[str]] | None = None,
        subjects: Iterable[str] | None = None,
        description: str | None = None,
        password_hash: str | None = None,
        enabled: bool | None = None,
    ) -> User:
        """Changes the given attributes of a user; the change takes effect with the user's next request.

        Args:
            queues: replaces all earlier authorities.
            password_hash: "" removes the password.
            enabled: a disabled user cannot log in and may do nothing. Earlier sessions and tokens end for good, and
                reports that the user asked for are not sent, as if the user had been deleted.

        Raises: UnknownObject 2085; ArgumentError; QueueCondition 2041, another program altered the user meanwhile.
        """
        changes = {
            "roles": roles, "queues": queues, "subjects": subjects, "description": description,
            "password_hash": password_hash, "enabled": enabled,
        }  # fmt: skip
        before = self._user_text(name)
        user = _checked(user_of(before), **{key: value for key, value in changes.items() if value is not None})
        if enabled is False:
            user = replace(user, identifier=_new_identifier())
        self._check_subjects(user)
        with self._session:
            self._store.alter_object(USER, name, before, _as_text(user))
        if enabled is False:
            self._forget_tokens(name)
        return user

    def delete_user(self, name: str) -> None:
        """Deletes a user and its tokens; a later user of this name is a new one. Raises: UnknownObject 2085."""
        with self._session:
            self._store.delete_object(USER, name)
        self._forget_tokens(name)

    def user(self, name: str) -> User:
        """Returns a user. Raises: UnknownObject 2085."""
        return user_of(self._user_text(name))

    def users(self) -> list[User]:
        """Returns all users, sorted by name."""
        with self._session:
            return [user_of(one.attributes) for one in self._store.objects(USER)]

    def _user_text(self, name: str) -> str:
        with self._session:
            return self._store.object(USER, name).attributes

    def _check_subjects(self, user: User) -> None:
        """Raises: ArgumentError, another user has one of the subjects."""
        for one in self.users() if user.subjects else ():
            taken = set(one.subjects) & set(user.subjects)
            if taken and one.name != user.name:
                raise bad_argument(
                    "subjects", sorted(taken), f"free of those of other users: user {one.name} has these"
                )

    # --- tokens

    def create_token(self, user: str, label: str, *, seconds: float = TOKEN_SECONDS) -> str:
        """Creates a token for a user and returns it; it cannot be shown again, because the store has only its hash.

        Args:
            label: the purpose, 1 to 64 characters.
            seconds: time until it expires, above 0 up to ten years; default: 90 days.

        Raises: UnknownObject 2085; ArgumentError; ObjectExists 2100, the user has 100 tokens.
        """
        from ..support import secrets  # noqa: PLC0415 - few programs need it

        NAME.check("label", label)
        Seconds(0, TOKEN_SECONDS_MAX, above=True).check("seconds", seconds)
        owner, now = self.user(user), self._now()
        tokens = self.tokens(user)
        for old in [one for one in tokens if one.expires_at <= now]:
            self._forget_token(old.name)
        if sum(one.expires_at > now for one in tokens) >= TOKENS_MAX:
            raise ObjectExists(
                f"user {user} already has {TOKENS_MAX} tokens, the most allowed: revoke one", kind=TOKEN, object=user
            )
        number, text = _new_identifier(), secrets.new_secret()
        token = Token(
            name=number, user=user, label=label, created_at=now, expires_at=now + seconds,
            user_identifier=owner.identifier, secret_hash=secrets.hashed(text),
        )  # fmt: skip
        with self._session:
            self._store.define_object(TOKEN, number, _as_text(token))
        return f"{number}.{text}"

    def tokens(self, user: str | None = None) -> list[Token]:
        """Returns the tokens of a user or of all, oldest first, including expired tokens not yet replaced."""
        with self._session:
            found = [token_of(one.attributes) for one in self._store.objects(TOKEN)]
        chosen = [one for one in found if user is None or one.user == user]
        return sorted(chosen, key=lambda one: (one.created_at, one.name))

    def token(self, name: str) -> Token:
        """Returns a token by its name, even if it has expired. Raises: UnknownObject 2085."""
        with self._session:
            return token_of(self._store.object(TOKEN, name).attributes)

    def revoke_token(self, token: str) -> None:
        """Revokes a token at once; give the token or its name. Raises: UnknownObject 2085."""
        if not isinstance(token, str):
            raise bad_argument("token", "...", "a token or its id, a text")
        with self._session:
            self._store.delete_object(TOKEN, token.partition(".")[0])

    def _forget_tokens(self, user: str) -> None:
        for token in self.tokens(user):
            self._forget_token(token.name)

    def _forget_token(self, number: str) -> None:
        try:
            self.revoke_token(number)
        except UnknownObject:  # it was already revoked
            return

    # --- authentication

    def identify(
        self,
        *,
        name: str | None = None,
        verify: Verify | None = None,
        token: str | None = None,
        subject: str | None = None,
        address: str = "",
    ) -> User:
        """Returns the user with this name and password, this token, or this client certificate.

        Failures are counted by user and by address, for all servers together. After too many failures a password is
        refused without a check. Tokens and certificates cannot be guessed, so they are still checked.

        Args:
            name, verify: a user, and a function that compares the password with a hash, as
                `inorder.support.passwords.verifier` makes it.
            token: as `create_token` returned it.
            subject: the subject of a certificate that the server has verified.
            address: the client's address; "": unknown, and not counted.

        Raises: LogInRefused 2035, which does not say why; TooManyLogIns 9061; ArgumentError.
        """
        ways = (name is not None and verify is not None, token is not None, subject is not None)
        if sum(ways) != 1 or (name is None) is not (verify is None):
            raise CallerError("identify takes one of name and verify, token, or subject", reason=Reason.OPTIONS_ERROR)
        for argument, text in (("name", name), ("token", token), ("subject", subject), ("address", address)):
            if text is not None and not isinstance(text, str):
                raise bad_argument(argument, "..." if argument == "token" else text, "a text")
        if name is not None and verify is not None:
            return self._by_password(name, verify, address)
        found = self._by_token(token) if token is not None else self._by_subject(subject or "")
        if found is None:
            self._count(_keys(None, address))
            raise _refused()
        return found

    @contextlib.contextmanager
    def on_behalf_of(self, user: str) -> Iterator[None]:
        """Returns a block for servers, whose calls are made on behalf of a user.

        A message put in the block that asks for reports has the user's authority: the user needs `put` on the queue for
        the reports, now and when they are sent. New confirm ids and lock ids are listed under the user, as leases are,
        but any caller that knows one may end it. The server checks all other authorities itself.

        Args:
            user: 1 to 256 characters; "launch-token": a client with the server's own authority.

        Raises: ArgumentError. In the block: NotAuthorized 2035, by a put.
        """
        ON_BEHALF_OF.check("user", user)
        self._session.check()
        store, owner = self._session.services.store, self._session.owner
        before = store.set_user(owner, user)
        try:
            yield
        finally:
            with contextlib.suppress(ConnectionBroken):  # the connection was lost with its user
                store.set_user(owner, before)

    def _by_password(self, name: str, verify: Verify, address: str) -> User:
        keys = _keys(name, address)
        self._count(keys)
        user = self._find(name)
        kept = user.password_hash if user is not None else None
        if not verify(kept) or kept is None or user is None:
            raise _refused()
        with self._session:
            self._session.services.store.forgive_log_in(keys)
        return user

    def _by_token(self, token: str) -> User | None:
        from ..support import secrets  # noqa: PLC0415 - few programs need it

        number, _, text = token.partition(".")
        if not is_storable(token):
            return None
        try:
            found = self.token(number)
        except UnknownObject:
            return None
        user = self._find(found.user)
        is_right = secrets.is_hash_of(found.secret_hash, text) and self._now() < found.expires_at
        return user if is_right and user is not None and user.identifier == found.user_identifier else None

    def _by_subject(self, subject: str) -> User | None:
        found = [one for one in self.users() if subject in one.subjects and one.enabled]
        return found[0] if len(found) == 1 else None  # two users created at once may both have it: refuse both

    def _find(self, name: str) -> User | None:
        """Returns a user that exists and is enabled, or None."""
        if not is_storable(name):
            return None
        try:
            user = self.user(name)
        except UnknownObject:
            return None
        return user if user.enabled else None

    def _count(self, keys: Collection[str]) -> None:
        if keys:
            with self._session:
                seconds = self._session.services.store.try_log_in(list(keys))
            if seconds:
                raise TooManyLogIns(f"too many failed log-ins: try again in {seconds:.0f} s", seconds=seconds)

    def _now(self) -> float:
        return self._session.services.now()


def _keys(name: str | None, address: str) -> list[str]:
    """Returns the keys under which a log-in is counted; a name is hashed, as it may be a mistyped password."""
    from ..support import secrets  # noqa: PLC0415 - few programs need it

    keys = [] if name is None else [log_ins.key_of("user", secrets.hashed(name)[:32])]
    return [*keys, log_ins.key_of("address", secrets.hashed(address)[:32])] if address else keys


def _refused() -> LogInRefused:
    return LogInRefused("the name, password, token or certificate was not accepted")


# --- values


def _blank(name: str) -> User:
    """Returns a new user of this name without any authority. Raises: ArgumentError."""
    name = NAME.check("name", name)
    if any(one.isspace() or one == ":" for one in name) or not name.isprintable():
        raise bad_argument("name", name, "without blanks, colons and control characters")
    if name == authorities.LAUNCH_TOKEN:
        raise bad_argument("name", name, "another name: this one stands for the launch token of a server")
    return User(
        name=name, roles=(), queues=MappingProxyType({}), subjects=(), description="", enabled=True,
        identifier=_new_identifier(), password_hash=None,
    )  # fmt: skip


def _new_identifier() -> str:
    return os.urandom(ID_BYTES).hex()


def _checked(user: User, **given: Any) -> User:
    """Returns the user with changed attributes. Raises: ArgumentError."""
    changes = {name: CHECKS[name](value) for name, value in given.items()}
    changed = replace(user, **changes)
    if changed.queues and "application" not in changed.roles:
        raise bad_argument("queues", dict(changed.queues), "empty, unless the user has the role 'application'")
    return changed


def _roles(value: object) -> tuple[str, ...]:
    allowed = f"one or more of {', '.join(authorities.ROLES)}"
    found = _texts("roles", value, allowed)
    if not found or not set(found) <= set(authorities.ROLES):
        raise bad_argument("roles", value, allowed)
    return tuple(sorted(set(found)))


def _queues(value: object) -> Mapping[str, tuple[str, ...]]:
    if not isinstance(value, Mapping) or len(value) > GRANTS_MAX:
        raise bad_argument("queues", value, f"a mapping of at most {GRANTS_MAX:,} names to authorities")
    return MappingProxyType({_pattern(name): _verbs(verbs) for name, verbs in value.items()})


def _pattern(name: object) -> str:
    is_name = isinstance(name, str) and is_storable(name) and 0 < len(name) <= NAME_LENGTH_MAX
    if not is_name or "*" in str(name)[:-1]:
        raise bad_argument("queues", name, "the name of a queue, or the beginning of names followed by *")
    return str(name)


def _verbs(value: object) -> tuple[str, ...]:
    allowed = f"one or more of {', '.join(authorities.GRANTABLE)}"
    found = _texts("queues", value, allowed)
    if not found or not set(found) <= set(authorities.GRANTABLE):
        wrong = next((one for one in found if one not in authorities.GRANTABLE), value)
        raise bad_argument("queues", wrong, allowed)
    return tuple(one for one in authorities.GRANTABLE if one in found)


def _subjects(value: object) -> tuple[str, ...]:
    found = _texts("subjects", value, f"at most {SUBJECTS_MAX} texts")
    if len(found) > SUBJECTS_MAX:
        raise bad_argument("subjects", value, f"at most {SUBJECTS_MAX} subjects")
    for one in found:
        SUBJECT.check("subjects", one)
    return tuple(sorted(set(found)))


def _texts(argument: str, value: object, allowed: str) -> list[str]:
    """Returns a list of texts; refuses a single text, which would be read as its characters."""
    if isinstance(value, str | bytes | bytearray | memoryview) or not isinstance(value, Iterable):
        raise bad_argument(argument, value, f"a list: {allowed}")
    found = list(value)
    if not all(isinstance(one, str) for one in found):
        raise bad_argument(argument, value, allowed)
    return found


def _password_hash(value: object) -> str | None:
    if value is None or (isinstance(value, str) and not value):
        return None
    if not isinstance(value, str) or not value.startswith("$") or len(value) > SUBJECT_LENGTH_MAX:
        raise bad_argument(
            "password_hash", "...", "a hash from inorder.support.passwords.hashed, never a password itself"
        )
    return value


CHECKS: Final[Mapping[str, Callable[[object], Any]]] = MappingProxyType(
    {
        "roles": _roles,
        "queues": _queues,
        "subjects": _subjects,
        "description": functools.partial(DESCRIPTION.check, "description"),
        "password_hash": _password_hash,
        "enabled": functools.partial(check_switch, "enabled"),
    }
)


# --- stored form


def _as_text(value: User | Token) -> str:
    fields = {name: getattr(value, name) for name in type(value).__slots__}
    return json.dumps({name: dict(one) if isinstance(one, Mapping) else one for name, one in fields.items()})


@decodes("a user")
def user_of(text: str) -> User:
    """Reads a user in its stored form. Raises: StoreDamaged."""
    kept = json.loads(text)
    queues = {name: tuple(verbs) for name, verbs in kept.pop("queues").items()}
    kept |= {name: tuple(kept[name]) for name in ("roles", "subjects")}
    return User(queues=MappingProxyType(queues), **kept)


@decodes("a token")
def token_of(text: str) -> Token:
    """Reads a token in its stored form. Raises: StoreDamaged."""
    return Token(**json.loads(text))
