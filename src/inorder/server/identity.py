"""Identities and their authorities: the seam between users and the server.

Every request asks an `Authenticator`. The usual one is in `users.py` and reads the store. This module has the other
one, for the launch token of a server on loopback, which prints it as a link at its start. The holder of that token may
do everything.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Protocol

from ..rules import authorities
from ..rules.authorities import LAUNCH_TOKEN, MANAGER, Authority, Grants

__all__ = ["IBM_ROLES", "Authenticator", "Authority", "Identity", "LaunchToken"]

USER_IDENTIFIER_LENGTH: Final = 12
NO_ACCOUNTING_TOKEN: Final = bytes(32)

IBM_ROLES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "admin": ("MQWebAdmin", "MQWebUser"),
        "operator": ("MQWebUser",),
        "reader": ("MQWebAdminRO",),
        "application": ("MQWebUser",),
    }
)
"""What IBM's interface calls a role."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who asks.

    Args:
        name: as logs and acts have it.
        roles: out of `rules.authorities.ROLES`.
        queues: what the role application may do: authorities by the name of a queue, or its beginning and a `*`.
        session: what a session of theirs is bound to; a session that is bound to something else is over.
        token: the name of the token that they have shown; "": none.
        subject: of the client certificate that they have shown; "": none.
    """

    name: str
    roles: frozenset[str]
    queues: Grants = field(default_factory=dict)
    session: str = ""
    token: str = ""
    subject: str = ""

    @property
    def user_identifier(self) -> str:
        """As the descriptor of a message has it, whose field is MQ's: the beginning of a long name."""
        return self.name[:USER_IDENTIFIER_LENGTH]

    @property
    def context(self) -> Mapping[str, Any]:
        """The identity context of the messages that they put, as fields of `Message`."""
        return {
            "user_identifier": self.user_identifier,
            "accounting_token": NO_ACCOUNTING_TOKEN,
            "application_identity_data": "",
        }

    def may(self, authority: Authority, queue: str = MANAGER) -> bool:
        """Whether they may do this with a queue; '' is the queue manager."""
        return authorities.may(self.roles, self.queues, authority, queue)


class Authenticator(Protocol):
    """Says who somebody is. Its calls must not block the loop.

    Each takes the address from which the request came, by which failures are counted.

    Raises, all of them: TooManyLogIns.
    """

    async def by_password(self, name: str, password: str, *, address: str) -> Identity | None:
        """Who has this name and password; None: nobody."""
        ...

    async def by_token(self, token: str, *, address: str) -> Identity | None:
        """Who has this token; None: nobody."""
        ...

    async def by_link(self, token: str, *, address: str) -> Identity | None:
        """Who has opened the printed link with this token; None: nobody."""
        ...

    async def by_subject(self, subject: str, *, address: str) -> Identity | None:
        """Whose client certificate has this subject; None: nobody's."""
        ...

    async def by_session(self, name: str, session: str) -> Identity | None:
        """Who has logged in under this name, as they are now; None: there is no such user any more, or another one."""
        ...

    async def again(self, identity: Identity) -> Identity | None:
        """Who this is now; None: there is no such user any more, or what they have shown does not count any more."""
        ...


class LaunchToken:
    """One token, one identity: for loopback.

    A program that can only send names and passwords sends any name, and the token as the password.
    """

    IDENTITY: Final = Identity(name=LAUNCH_TOKEN, roles=frozenset({"admin"}), session=LAUNCH_TOKEN)

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    def identity_of(self, token: str) -> Identity | None:
        """Who has this token; None: it is another one."""
        given = token.encode("utf-8", "surrogatepass")
        return self.IDENTITY if hmac.compare_digest(given, self._token) else None
