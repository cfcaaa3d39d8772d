"""Authenticates users of the store by password, token, certificate and session. It reads the user anew for each
request.

**Passwords** take time and memory to check on purpose (Argon2). So the server checks one at a time, in the thread of a
connection, and a bounded number of requests waits for that. A program that sends its password with each request pays
only once: the server remembers a correct password for some minutes, as a keyed hash of the user's identifier, the
stored hash and the password. A changed password no longer matches, and the server asks the store each time whether the
user may log in.

**Sessions** are bound to the identifier and the password hash of a user. A new password, or a new user of the same
name, ends older sessions. Roles and grants are always the present ones.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from .. import aio
from ..client.users import TOKEN, USER, Token, User, token_of, user_of
from ..errors import LogInRefused, UnknownObject
from ..model.parameters import is_storable
from ..support import passwords
from .calls import Room
from .identity import Identity, LaunchToken, ReadObject

REMEMBERED_MAX: Final = 1_000
REMEMBERED_SECONDS: Final = 300.0
READ_MAX: Final = 1_000  # users and tokens that are not read again while the store has the same text


class Users:
    """An `Authenticator` over the store.

    Args:
        launch: the launch token, which is valid in addition to the users; None: there is none.
        waiting: how many log-ins by password may wait for their turn.
        now: seconds of a clock that never runs backwards.
    """

    def __init__(
        self, qm: aio.QueueManager, launch: LaunchToken | None, waiting: int, now: Callable[[], float]
    ) -> None:
        self._qm, self._launch = qm, launch
        self._waiting, self._turn = Room("log-ins by password", waiting), asyncio.Lock()
        self._remembered = Remembered(now)

    async def by_password(self, name: str, password: str, *, address: str) -> Identity | None:
        """Raises: TooManyLogIns; Problem 503, if too many log-ins wait."""
        if self._launch is not None and (launched := self._launch.identity_of(password)):
            return launched
        user = await self._find(name)
        if user is not None and self._remembered.has(user, password):
            return _identity(user)
        with self._waiting.taken():
            async with self._turn:  # after the first log-in, others with the same password need no check
                user = await self._find(name)
                if user is None or not self._remembered.has(user, password):
                    user = await self._verified(name, password, address)
        return None if user is None else _identity(user)

    async def _verified(self, name: str, password: str, address: str) -> User | None:
        try:
            user = await self._qm.accounts.identify(name=name, verify=passwords.verifier(password), address=address)
        except LogInRefused:
            return None
        self._remembered.add(user, password)
        return user

    async def by_token(self, token: str, *, address: str) -> Identity | None:
        """Raises: TooManyLogIns."""
        if self._launch is not None and (launched := self._launch.identity_of(token)):
            return launched
        try:
            user = await self._qm.accounts.identify(token=token, address=address)
        except LogInRefused:
            return None
        return _identity(user, token=token.partition(".")[0])

    async def by_link(self, token: str, *, address: str) -> Identity | None:
        """Accepts only the launch token, because tokens of users do not belong in addresses."""
        if self._launch is not None and (launched := self._launch.identity_of(token)):
            return launched
        await self.by_token("", address=address)  # counts as a guess
        return None

    async def by_subject(self, subject: str, *, address: str) -> Identity | None:
        """Raises: TooManyLogIns."""
        try:
            user = await self._qm.accounts.identify(subject=subject, address=address)
        except LogInRefused:
            return None
        return _identity(user, subject=subject)

    async def by_session(self, name: str, session: str) -> Identity | None:
        """The present state of the user of a session."""
        return await self.again(Identity(name=name, roles=frozenset(), session=session))

    async def again(self, identity: Identity) -> Identity | None:
        """The present state of a user. It counts no failures, because the user has already logged in."""
        if self._launch is not None and identity.session == LaunchToken.IDENTITY.session:
            return LaunchToken.IDENTITY
        user = await self._find(identity.name)
        try:
            token = await self._qm.accounts.token(identity.token) if user is not None and identity.token else None
        except UnknownObject:
            return None
        return _still(identity, user, token)

    def now(self, identity: Identity, read: ReadObject) -> Identity | None:
        """The present state of a user, read in this thread."""
        if self._launch is not None and identity.session == LaunchToken.IDENTITY.session:
            return LaunchToken.IDENTITY
        try:
            user = _user_of(read(USER, identity.name))
            token = _token_of(read(TOKEN, identity.token)) if identity.token else None
        except UnknownObject:
            return None
        return _still(identity, user, token)

    async def _find(self, name: str) -> User | None:
        """The identity of a user who may log in."""
        if not is_storable(name):
            return None
        try:
            user = await self._qm.accounts.user(name)
        except UnknownObject:
            return None
        return user if user.enabled else None


class Remembered:
    """Remembers correct passwords for a while, as keyed hashes, which are useless outside this process."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now, self._key = now, secrets.token_bytes(32)
        self._until: OrderedDict[bytes, float] = OrderedDict()

    def has(self, user: User, password: str) -> bool:
        """Whether this password was correct a short time ago, and has not changed since."""
        return self._until.get(self._mark(user, password), 0.0) > self._now()

    def add(self, user: User, password: str) -> None:
        """Remembers a correct password. If there is no room, forgets the oldest."""
        mark = self._mark(user, password)
        self._until[mark] = self._now() + REMEMBERED_SECONDS
        self._until.move_to_end(mark)
        while len(self._until) > REMEMBERED_MAX:
            self._until.popitem(last=False)

    def _mark(self, user: User, password: str) -> bytes:
        digest = hmac.new(self._key, digestmod=hashlib.sha256)
        for part in (user.identifier, user.password_hash or "", password):
            data = part.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "big") + data)
        return digest.digest()


_user_of, _token_of = functools.lru_cache(READ_MAX)(user_of), functools.lru_cache(READ_MAX)(token_of)


def _still(identity: Identity, user: User | None, token: Token | None) -> Identity | None:
    """The present state of a user who has logged in; None, if the user or the credential is no longer valid.

    Args:
        token: the token of the log-in, as the store has it now; no other token ever gets its name.
    """
    if user is None or not user.enabled or (identity.subject and identity.subject not in user.subjects):
        return None
    if token is not None and time.time() >= token.expires_at:
        return None
    found = _identity(user, token=identity.token, subject=identity.subject)
    return found if hmac.compare_digest(found.session, identity.session) else None


def _identity(user: User, *, token: str = "", subject: str = "") -> Identity:
    kept = hashlib.sha256((user.password_hash or "").encode()).hexdigest()
    return Identity(
        name=user.name,
        roles=frozenset(user.roles),
        queues=user.queues,
        session=f"{user.identifier}.{kept[:32]}",
        token=token,
        subject=subject,
    )
