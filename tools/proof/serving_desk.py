"""A client at the console while servers are killed: its puts, moves and deletes by forms, and their answers.

A form has no key for a repeat. A lost answer leaves two cases for the whole act, which is one unit of work. So each
body is at one place at most, and after an answer it is where the answer says.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Final

import httpx

from .serving_clients import BASE, Client, Lost, Servers, check_status

DESK, FILED = "DESK", "FILED"
CHOSEN_MAX: Final = 3


@dataclass
class Acts:
    """The work at the console.

    Attributes:
        put, deleted: the bodies of answered acts.
        maybe_put, maybe_deleted: bodies of acts whose answer was lost, or did not name the skipped messages.
    """

    put: set[str] = field(default_factory=set)
    maybe_put: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    maybe_deleted: set[str] = field(default_factory=set)

    def add(self, other: Acts) -> None:
        self.put |= other.put
        self.maybe_put |= other.maybe_put
        self.deleted |= other.deleted
        self.maybe_deleted |= other.maybe_deleted


def found_in(there: Mapping[str, Sequence[str]], acts: Acts) -> list[str]:
    """The contents of the two queues that contradict the answers."""
    counts = Counter([*there.get(DESK, ()), *there.get(FILED, ())])
    found = [f"message {one} of the console is there {count} times" for one, count in counts.items() if count > 1]
    found += [f"message {one} of the console was never put" for one in counts.keys() - acts.put - acts.maybe_put]
    if lost := acts.put - counts.keys() - acts.deleted - acts.maybe_deleted:
        found.append(f"lost from the console's queues: {sorted(lost)[:10]}")
    if back := acts.deleted & counts.keys():
        found.append(f"deleted by the console, and there: {sorted(back)[:10]}")
    return found


class Clerk(Client):
    """Works with the forms of the console."""

    def __init__(self, number: int, seed: int, servers: Servers, stop: Event) -> None:
        super().__init__(number, seed, servers, stop)
        self.acts = Acts()

    def act(self, count: int) -> None:
        """Puts, and sometimes moves and deletes."""
        body = f"{self.number}-{count}"
        self.acts.maybe_put.add(body)
        if self._send(DESK, "put", 303, body=body, kind="text", persistent="yes") is not None:
            self.acts.put.add(body)
        if count % 2:
            self._choose(DESK, "move", target=FILED)
        if count % 3 == 0:
            self._choose(FILED, "delete")

    def _choose(self, queue: str, action: str, **fields: str) -> None:
        """Moves or deletes some of the first messages."""
        found = self.ask_for(f"queues/{queue}/browse", count=10).json()["messages"]
        chosen = self.chance.sample(found, min(len(found), self.chance.randint(1, CHOSEN_MAX)))
        if not chosen:
            return
        bodies = {one["body"] for one in chosen}
        uids = [f"{one['uid']['number']}-{one['uid']['origin']}" for one in chosen]
        if action == "delete":
            self.acts.maybe_deleted |= bodies
        answer = self._send(queue, "act", 303, 200, action=action, uid=uids, step="do", typed=queue, **fields)
        if action == "delete" and answer is not None and answer.status_code == 303:  # all of them were deleted
            self.acts.deleted |= bodies

    def ask_for(self, path: str, **query: Any) -> httpx.Response:
        """The answer to a GET, which may be repeated."""
        while True:
            try:
                return check_status(self.to_any(lambda url: self.http.get(f"{url}{BASE}/{path}", params=query)), 200)
            except Lost:
                continue

    def _send(self, queue: str, form: str, *statuses: int, **fields: Any) -> httpx.Response | None:
        """The answer to a form; None: it was lost. A form belongs to one server; others refuse it."""

        def send(url: str) -> httpx.Response:
            page = self.http.get(f"{url}/console/queue/{queue}/put")
            found = re.search(r'name="csrf" value="([0-9a-f]{64})"', page.text)
            if found is None:
                return page
            return self.http.post(f"{url}/console/queue/{queue}/{form}", data={"csrf": found[1], **fields})

        try:
            return check_status(self.to_any(send), *statuses)
        except Lost:
            return None
