"""Who asks, and what they may do: the seam at which users are bound to the server.

`Authenticator` is asked by every request. Here is the one that works without users: the launch token of a server on
loopback, which is printed as a link when it starts. Who has it may do everything.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, Protocol

Authority = Literal["put", "get", "browse", "inquire", "display", "administer"]
"""What is asked of a queue, or of the queue manager: its queue is ''."""

EVERYTHING: Final[frozenset[Authority]] = frozenset({"put", "get", "browse", "inquire", "display", "administer"})
READING: Final[frozenset[Authority]] = frozenset({"browse", "inquire", "display"})
ROLES: Final[Mapping[str, frozenset[Authority]]] = MappingProxyType({"admin": EVERYTHING, "reader": READING})
"""What a role may do on every queue, and on the queue manager."""

IBM_ROLES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"admin": ("MQWebAdmin", "MQWebUser"), "reader": ("MQWebAdminRO",)}
)
"""What IBM's interface calls a role."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who asks.

    Args:
        name: as logs and audits have it.
        roles: names in `ROLES`; others give nothing by themselves.
    """

    name: str
    roles: frozenset[str]

    def may(self, authority: Authority, queue: str) -> bool:
        """Whether they may do this with a queue; '' is the queue manager."""
        del queue  # roles are alike for all queues
        return any(authority in ROLES.get(role, ()) for role in self.roles)


class Authenticator(Protocol):
    """Says who somebody is. Its calls must not block the loop."""

    async def by_password(self, name: str, password: str) -> Identity | None:
        """Who has this name and password; None: nobody."""
        ...

    async def by_token(self, token: str) -> Identity | None:
        """Who has this token; None: nobody."""
        ...

    async def by_session(self, name: str) -> Identity | None:
        """Who has logged in under this name, as they are now; None: there is no such name any more."""
        ...


class LaunchToken:
    """One token, one identity: for loopback, where there are no users.

    A program that can only send names and passwords sends any name, and the token as the password.
    """

    IDENTITY: Final = Identity(name="launch-token", roles=frozenset({"admin"}))

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    async def by_password(self, name: str, password: str) -> Identity | None:
        del name
        return await self.by_token(password)

    async def by_token(self, token: str) -> Identity | None:
        given = token.encode("utf-8", "surrogatepass")
        return self.IDENTITY if hmac.compare_digest(given, self._token) else None

    async def by_session(self, name: str) -> Identity | None:
        return self.IDENTITY if name == self.IDENTITY.name else None
