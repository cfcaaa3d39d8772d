"""Requests to the queue manager of a server: its users do through PCF what they may do there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.mqi.pcf.asking import replies_in, request

import inorder
from inorder import QueueManager
from inorder.client.programs import user_name
from inorder.mq.words import COMMAND_QUEUE
from inorder.mqi.pcf.serving import answer_requests, make_begun_queue, rights_of
from inorder.testing.remote import the_server


def asked(qm: QueueManager, command: str, given: dict[str, object]) -> list[int]:
    """The reasons in the replies to a request that this user puts."""
    fields = {"format": "MQADMIN", "message_type": 1, "reply_to_queue": "REPLIES"}
    sent = qm.put(COMMAND_QUEUE, request(command, given), **fields)  # type: ignore[arg-type]
    answer_requests(qm, [sent.uid], rights_of(qm, user_name()))
    return [replies_in([qm.get("REPLIES").body])[0].reason for _ in range(qm.depth("REPLIES"))]


def test_a_server_asks_for_the_authorities_of_its_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create: dict[str, object] = {"MQCA_Q_NAME": "NEW", "MQIA_Q_TYPE": 1}
    with inorder.connect(tmp_path / "qm.db") as qm:
        for name in (COMMAND_QUEUE, "REPLIES", "OTHER"):
            qm.create_queue(name)
        make_begun_queue(qm)
        for name in ("boss", "runner"):
            qm.accounts.create_user(name, roles=["admin" if name == "boss" else "operator"])
        server = the_server(os.getpid())
        administrators = server.add(str(tmp_path / "qm.db"), qm)
        try:
            for name, wanted in (("runner", [2035]), ("boss", [0])):
                token = qm.accounts.create_token(name, "test")
                server.admit(token, administrators)
                with inorder.connect(server.url, token=token) as there:
                    assert asked(there, "CREATE_Q", create) == wanted
                    assert asked(there, "CLEAR_Q", {"MQCA_Q_NAME": "OTHER"}) == [0]
            assert qm.attributes("NEW").type == "local"
        finally:
            server.remove(administrators)
