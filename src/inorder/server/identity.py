"""Identities and their authorities: the seam between users and the server.

Every request asks an `Authenticator`. The usual one is in `users.py` and reads the store. This module has the other
one, for the launch token of a server on loopback, which prints it as a link at its start. The holder of that token may
do everything.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Protocol, cast

from ..errors import InorderError, UnknownQueue, written
from ..rules import authorities
from ..rules.authorities import LAUNCH_TOKEN, MANAGER, Authority, Grants

__all__ = ["IBM_ROLES", "NOBODY", "Authenticator", "Authority", "Identity", "LaunchToken"]

USER_IDENTIFIER_LENGTH: Final = 12
NO_ACCOUNTING_TOKEN: Final = bytes(32)
USES: Final[tuple[Authority, ...]] = ("put", "get", "browse", "inquire", "display")

IBM_ROLES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "admin": ("MQWebAdmin", "MQWebUser"),
        "operator": ("MQWebUser",),
        "reader": ("MQWebAdminRO",),
        "application": ("MQWebUser",),
    }
)
"""The roles of IBM's interface."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A user, or the launch token.

    Args:
        name: the name in logs.
        roles: a subset of `rules.authorities.ROLES`.
        queues: the grants of the role application: authorities by the name of a queue, or by a prefix and a `*`.
        session: the value to which the user's sessions are bound; a session with another value has ended.
        token: the name of the token by which the user logged in; "": none.
        subject: the subject of the client certificate by which the user logged in; "": none.
    """

    name: str
    roles: frozenset[str]
    queues: Grants = field(default_factory=dict)
    session: str = ""
    token: str = ""
    subject: str = ""

    @property
    def user_identifier(self) -> str:
        """The user identifier in message descriptors: as much of the name as MQ's field can hold."""
        return self.name[:USER_IDENTIFIER_LENGTH]

    @property
    def context(self) -> Mapping[str, Any]:
        """The identity context of the user's messages, as fields of `Message`."""
        return {
            "user_identifier": self.user_identifier,
            "accounting_token": NO_ACCOUNTING_TOKEN,
            "application_identity_data": "",
        }

    def may(self, authority: Authority, queue: str = MANAGER) -> bool:
        """Whether the user has an authority on a queue; '' is the queue manager."""
        return authorities.may(self.roles, self.queues, authority, queue)

    def may_see(self, queue: str) -> bool:
        """Whether the user may know that there is a queue of this name."""
        return any(self.may(one, queue) for one in USES)

    def shown(self, error: InorderError) -> InorderError:
        """The error without names of queues that the user may not see."""
        near = cast("Sequence[str]", error.data.get("nearest", ())) if type(error) is UnknownQueue else ()
        if all(map(self.may_see, near)):
            return error
        queue = error.data["queue"]
        return UnknownQueue(f"there is no queue {written(queue)}", queue=queue, nearest=[])


NOBODY: Final = Identity(name="", roles=frozenset())
ReadObject = Callable[[str, str], str]
"""Reads the attributes of an object, by its kind and name. Raises: UnknownObject."""


class Authenticator(Protocol):
    """Identifies users. Its calls must not block the loop.

    Log-ins take the client's address, by which failures are counted. They raise TooManyLogIns after too many failures.
    """

    async def by_password(self, name: str, password: str, *, address: str) -> Identity | None:
        """The user with this name and password; None if there is none."""
        ...

    async def by_token(self, token: str, *, address: str) -> Identity | None:
        """The user of this token; None if it is not valid."""
        ...

    async def by_link(self, token: str, *, address: str) -> Identity | None:
        """The user of the token in the printed link; None if it is not valid."""
        ...

    async def by_subject(self, subject: str, *, address: str) -> Identity | None:
        """The user of client certificates with this subject; None if there is none."""
        ...

    async def by_session(self, name: str, session: str) -> Identity | None:
        """The present state of the user of a session; None if the user was deleted or replaced."""
        ...

    def now(self, identity: Identity, read: ReadObject) -> Identity | None:
        """As `again`, but blocks while `read` reads the user and the token."""
        ...

    async def again(self, identity: Identity) -> Identity | None:
        """The present state of a user; None if the user, or the credential of the log-in, is no longer valid."""
        ...


class LaunchToken:
    """The launch token, for a server on loopback.

    A program that can only send names and passwords sends any name, and the token as the password.
    """

    IDENTITY: Final = Identity(name=LAUNCH_TOKEN, roles=frozenset({"admin"}), session=LAUNCH_TOKEN)

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    def identity_of(self, token: str) -> Identity | None:
        """The identity of this token; None if it is another token."""
        given = token.encode("utf-8", "surrogatepass")
        return self.IDENTITY if hmac.compare_digest(given, self._token) else None
