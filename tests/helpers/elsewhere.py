"""Queue managers A, in a file, and B, which `inorder serve` serves on the loopback, with a channel for one user."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.helpers.channelled import manager
from tests.helpers.proxy import Proxy
from tests.server.conftest import Running

import inorder
from inorder import QueueManager
from inorder.mq import channels
from inorder.stores.remote import store as remote_store
from inorder.testing.remote import the_server

USER = "london"
RIGHTS = {"Q": ("put",)}


class Elsewhere(NamedTuple):
    """Queue manager A with its channel TO.B, and B, opened only by the server and by `b`, an operator there."""

    a: QueueManager
    b: QueueManager
    server: Running
    credentials: Path

    @property
    def url(self) -> str:
        return str(self.server.record["url"]).partition("?")[0].rstrip("/")

    @property
    def at(self) -> str:
        """The section of the server in the credentials file."""
        return self.url.partition("://")[2]

    def log_in(self, token: str) -> None:
        """Stores the server's token for this process."""
        log_in(self.credentials, {self.at: token})

    def put(self, *bodies: bytes, queue: str = "Q") -> None:
        self.a.put_many(queue, bodies, manager="B")

    def run(self, **given: object) -> channels.ChannelNow:
        return channels.run_channel(self.a, "TO.B", until_empty=True, **given)  # type: ignore[arg-type]


def log_in(file: Path, tokens: dict[str, str]) -> None:
    """Writes a credentials file."""
    file.write_text("".join(f"[{server}]\ntoken = {token}\n" for server, token in tokens.items()))
    file.chmod(0o600)


@contextlib.contextmanager
def proxied(monkeypatch: pytest.MonkeyPatch, credentials: Path, *managers: QueueManager) -> Iterator[list[Proxy]]:
    """Puts a proxy before a server in this process for each manager; `credentials` gets tokens for all of them."""
    monkeypatch.setattr(remote_store, "PAUSES", (0.001, 0.01))
    monkeypatch.setenv("INORDER_CREDENTIALS", str(credentials))
    server = the_server(os.getpid())
    with contextlib.ExitStack() as stack:
        serving = [server.serving(one._session.services.store) for one in managers]  # type: ignore[arg-type]
        tokens = [stack.enter_context(one) for one in serving]
        proxies = [stack.enter_context(Proxy(int(server.url.rpartition(":")[2]))) for _ in managers]
        log_in(credentials, {f"127.0.0.1:{one.port}": token for one, token in zip(proxies, tokens, strict=True)})
        yield proxies


@contextlib.contextmanager
def elsewhere_in(folder: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Iterator[Elsewhere]:
    """Makes both. The receiver names the user and A's store; the credentials file has a token of that user.

    Args:
        arguments: of `inorder serve`.
    """
    here, there, file = str(folder / "a.db"), folder / "b.db", folder / "credentials"
    monkeypatch.setenv("INORDER_CREDENTIALS", str(file))
    manager(here, "A")
    manager(str(there), "B")
    server = Running(there, *arguments)
    try:
        with inorder.connect(here) as a, inorder.connect(there) as b:
            made = Elsewhere(a, b, server, file)
            b.accounts.create_user(USER, roles=["application"], queues=RIGHTS)
            sender = channels.identifier(a)
            channels.define_channel(b, "TO.B", "receiver", message_retry_count=0, user=USER, sender=sender)
            a.create_queue("B", usage="transmission")
            channels.define_connection(a, "THERE", made.url, user=USER)
            channels.define_channel(a, "TO.B", transmission_queue="B", connection="THERE", batch_size=4)
            made.log_in(b.accounts.create_token(USER, "channel"))
            yield made
    finally:
        server.kill()
