"""The clients of servers that are killed: their requests over HTTP, and the promises that they received.

A request whose answer is lost has happened or not. `Client.ask` raises Lost then, and each client uses the remedy of
the interface: it repeats a put with its Idempotency-Key, undoes a confirm id, or backs a lease out.
"""

from __future__ import annotations

import random
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import Any, Final

import httpx

from inorder import Reason

BASE: Final = "/inorder/v1"
LEASE: Final = "Inorder-Lease"
LEASE_SECONDS: Final = 2.0
STOPPING: Final = "INWB0009E"  # the answer of a stopping server, which has done nothing
ANSWER_SECONDS: Final = 60.0  # within which a server answers
PAUSE_SECONDS: Final = 0.01


class Servers:
    """The servers that are running now."""

    def __init__(self, token: str) -> None:
        self.headers = {"Authorization": f"Bearer {token}", "ibm-mq-rest-csrf-token": ""}
        self._lock = Lock()
        self._urls: dict[int, str] = {}

    def add(self, slot: int, url: str) -> None:
        with self._lock:
            self._urls[slot] = url.rstrip("/")

    def remove(self, slot: int) -> None:
        with self._lock:
            self._urls.pop(slot, None)

    def any(self, chance: random.Random) -> str | None:
        """Returns the address of a running server, or None."""
        with self._lock:
            return chance.choice([*self._urls.values()]) if self._urls else None


@dataclass
class Done:
    """The work of clients, and the promises that they received.

    Attributes:
        put: the acknowledged bodies, by queue.
        got: bodies that are gone for good.
        unanswered_gets: the number of gets without an answer, each of which may have taken a message.
        confirm_ids: ids that may still hold messages.
        leases: the end of each, as far as its client knows.
        answers: the number of answers.
    """

    put: dict[str, set[str]] = field(default_factory=lambda: {"PUT": set(), "IN": set()})
    got: list[str] = field(default_factory=list)
    unanswered_gets: int = 0
    confirm_ids: set[int] = field(default_factory=set)
    leases: dict[str, str] = field(default_factory=dict)
    answers: int = 0
    findings: list[str] = field(default_factory=list)

    def add(self, other: Done) -> None:
        """Adds the work of another client."""
        for queue, bodies in other.put.items():
            self.put[queue] |= bodies
        self.got += other.got
        self.unanswered_gets += other.unanswered_gets
        self.confirm_ids |= other.confirm_ids
        self.leases |= other.leases
        self.answers += other.answers
        self.findings += other.findings


class Lost(Exception):
    """The answer to a request is lost: the request has happened, or not."""


class Client:
    """One client, in a separate thread.

    Args:
        number: makes its bodies and ids unique.
        stop: ends its present work, after which it does nothing more.
    """

    def __init__(self, number: int, seed: int, servers: Servers, stop: Event) -> None:
        self.number, self.chance, self.done = number, random.Random(seed), Done()
        self._servers, self._stop = servers, stop
        self.http = httpx.Client(headers=servers.headers, timeout=ANSWER_SECONDS)

    def run(self) -> None:
        """Acts until it is stopped."""
        count = 0
        try:
            with self.http:
                while not self._stop.is_set():
                    self.act(count)
                    count += 1
        except Exception:  # noqa: BLE001 - an exception of a thread is a finding
            self.done.findings.append(f"client {self.number} ({type(self).__name__}): {traceback.format_exc()}")

    def act(self, count: int) -> None:
        raise NotImplementedError

    def ask(
        self, path: str, record: Any = None, *, headers: Mapping[str, str] | None = None, **query: Any
    ) -> httpx.Response:
        """The answer of any server, unless it reports a failure.

        Raises: Lost; TimeoutError, there was no server; AssertionError, a server failed.
        """
        return self.to_any(
            lambda url: self.http.post(f"{url}{BASE}/{path}", json=record, headers=dict(headers or {}), params=query)
        )

    def to_any(self, send: Callable[[str], httpx.Response]) -> httpx.Response:
        """The answer of any server to a request that is made for its address. Raises: as `ask`."""
        ends = time.monotonic() + ANSWER_SECONDS
        while time.monotonic() < ends:
            if (url := self._servers.any(self.chance)) is not None:
                try:
                    answer = send(url)
                except httpx.ConnectError:
                    pass  # nothing was sent
                except httpx.TransportError as error:
                    raise Lost(url) from error
                else:
                    self.done.answers += 1
                    if answer.status_code != 503 or STOPPING not in answer.text:
                        assert answer.status_code < 500, f"{answer.request.url}: {answer.status_code} {answer.text}"
                        return answer
            time.sleep(PAUSE_SECONDS)
        raise TimeoutError(f"no server in {ANSWER_SECONDS:g} s")

    def insist(self, path: str, record: Any = None, **more: Any) -> tuple[httpx.Response, bool]:
        """The answer to a request that may be repeated, and whether the answer to an earlier one was lost."""
        was_lost = False
        while True:
            try:
                return self.ask(path, record, **more), was_lost
            except Lost:
                was_lost = True


def check_status(answer: httpx.Response, *statuses: int) -> httpx.Response:
    """The answer, which has one of these statuses. Raises: AssertionError."""
    assert answer.status_code in statuses, f"{answer.request.url.path}: {answer.status_code} {answer.text}"
    return answer


def reason_of(answer: httpx.Response) -> int:
    """The reason code of a refusal; 0 for any other answer."""
    reason: int = answer.json()["error"][0]["reasonCode"] if answer.status_code == 409 else 0
    return reason


class Putter(Client):
    """Puts with an Idempotency-Key, until it is acknowledged."""

    def act(self, count: int) -> None:
        """Puts one message, on either queue."""
        body, queue = f"{self.number}-{count}", ("PUT", "IN")[count % 2]
        answer, _ = self.insist(f"queues/{queue}/put", {"body": body}, headers={"Idempotency-Key": body})
        check_status(answer, 201)
        self.done.put[queue].add(body)


class Getter(Client):
    """Gets at most once."""

    def act(self, count: int) -> None:
        """Gets one message, sometimes with a wait."""
        try:
            answer = self.ask("queues/PUT/get", wait=count % 2)
        except Lost:
            self.done.unanswered_gets += 1
            return
        check_status(answer, 200, 204)
        if answer.status_code == 200:
            self.done.got.append(answer.json()["body"])


class Confirmer(Client):
    """Gets under a confirm id, and confirms or undoes."""

    def act(self, count: int) -> None:
        """Handles one message; if the answer is lost, it undoes the confirm id."""
        confirm_id = self.number * 1_000_000 + count + 1
        self.done.confirm_ids.add(confirm_id)
        try:
            answer = self.ask("queues/PUT/get", confirm_id=confirm_id, wait=1)
        except Lost:
            answer, _ = self.insist("queues/PUT/undo", {"confirm_id": confirm_id})
            assert answer.status_code == 200 or self._is_not_found(answer), answer.text
            return
        check_status(answer, 200, 204)
        if answer.status_code == 204:
            return
        if count % 5:
            record = {"uid": answer.json()["uid"], "confirm_id": confirm_id}
            confirmed, _ = self.insist("queues/PUT/confirm_get", record)
            check_status(confirmed, 200)
            self.done.got.append(answer.json()["body"])
        else:
            undone, was_lost = self.insist("queues/PUT/undo", {"confirm_id": confirm_id})
            assert undone.status_code == 200 or (was_lost and self._is_not_found(undone)), undone.text

    @staticmethod
    def _is_not_found(answer: httpx.Response) -> bool:
        """Whether nothing is held under the confirm id."""
        return reason_of(answer) == Reason.NOT_FOUND.value


class Leaser(Client):
    """Moves messages from one queue to another in leases, each request to any server."""

    def act(self, count: int) -> None:
        """Runs one lease, which its client ends, or leaves to its deadline."""
        begun = time.monotonic()
        answer, _ = self.insist("leases", seconds=LEASE_SECONDS)
        check_status(answer, 201)
        self._headers, self._earliest = {LEASE: answer.json()["token"]}, begun + LEASE_SECONDS
        name = f"{self.number}-{count}"
        self.done.leases[name] = "unknown"
        self.done.leases[name] = self._moved(name)

    def _moved(self, name: str) -> str:
        """Runs a lease; returns how it ended."""
        try:
            answer = self.ask("queues/IN/get", headers=self._headers)
        except Lost:
            return self._end("back_out")
        if self._is_over(answer):
            return "backed out"
        check_status(answer, 200, 204)
        if answer.status_code == 204:
            return self._end("back_out")
        key = {"Idempotency-Key": f"lease {name}"}
        body = {"body": f"{answer.json()['body']}@{name}"}
        answer, _ = self.insist("queues/OUT/put", body, headers=self._headers | key)
        if self._is_over(answer):
            return "backed out"
        check_status(answer, 201)
        fate = self.chance.random()
        if fate < 0.2:
            time.sleep(max(0.0, self._earliest + LEASE_SECONDS / 2 - time.monotonic()))
        return self._end("back_out" if fate > 0.9 else "commit")

    def _end(self, how: str) -> str:
        answer, was_lost = self.insist(f"lease/{how}", headers=self._headers)
        if answer.status_code == 204:
            return "committed" if how == "commit" else "backed out"
        if was_lost:
            check_status(answer, 409)
            return "unknown" if how == "commit" else "backed out"
        assert self._is_over(answer), answer.text
        return "backed out"

    def _is_over(self, answer: httpx.Response) -> bool:
        """Whether the lease has ended; it must not end before its deadline."""
        if reason_of(answer) != Reason.LEASE_OVER.value:
            return False
        early = self._earliest - time.monotonic()
        assert early <= 0, f"a lease was over {early:.3f} s before its deadline"
        return True


CLIENTS: Final = (Putter, Putter, Getter, Confirmer, Leaser, Leaser, Leaser)
