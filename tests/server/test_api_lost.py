"""Answers that no client reads: the messages stay held and can be recovered, whether or not the server noticed."""

from __future__ import annotations

import base64
import socket
import struct
from typing import Any

import httpx
import pytest
from tests.helpers.support import until
from tests.server.conftest import CSRF, PASSWORD, TOKEN, Running, Served, Start, add, app_of
from tests.server.test_messaging import Client, scope_of
from tests.tiers import gate, nightly

import inorder
from inorder import QueueManager
from inorder.server.calls import Call

Q = "/inorder/v1/queues/Q1"
AT_ONCE = struct.pack("ii", 1, 0)  # SO_LINGER: a close resets the connection and discards unread data


class Asked:
    """A request on its own socket, whose answer is never read; part of its body may be missing."""

    def __init__(self, running: Running, path: str, part: bytes = b"", length: int = 0, **more: str) -> None:
        url = httpx.URL(running.record["url"])
        self._socket = socket.create_connection((url.host, url.port or 0), timeout=60)
        credentials = base64.b64encode(f"me:{running.token}".encode()).decode()
        named = {
            "Host": "localhost",
            "Authorization": f"Basic {credentials}",
            "Content-Length": f"{length}",
            **CSRF,
            **more,
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in named.items())
        self._socket.sendall(f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + part)

    def is_cut(self) -> None:
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
        self._socket.close()


@gate
@pytest.mark.parametrize("wait", [0, 600])
def test_a_get_under_a_confirm_id_with_a_lost_answer_is_undone(start: Start, served: Served, wait: int) -> None:
    running = start()
    with inorder.connect(served.store) as qm, running.client() as client:
        qm.put_many("Q1", [b"first", b"second"])
        asked = Asked(running, f"{Q}/get?confirm_id=7&wait={wait}")
        until(
            lambda: [(one.kind, one.name, one.gets) for one in qm.inspect.units()] == [("confirm", "7", 1)],
            "it is held",
        )
        asked.is_cut()
        held = client.get(f"{Q}/unique_ids", params={"confirm_id": 7}).json()["uids"]
        assert len(held) == 1, "the id finds it"
        assert [message.body for message in qm.browse("Q1")] == [b"second"]
        assert client.post(f"{Q}/undo", json={"confirm_id": 7}).json() == {"messages": 1}
        assert [message.body for message in qm.browse("Q1")] == [b"first", b"second"], "it is back in its place"
        assert client.post(f"{Q}/undo", json={"confirm_id": 7}).status_code == 409, "nothing is held any more"
        again = client.post(f"{Q}/get", params={"confirm_id": 8}).json()
        assert again["uid"] == held[0]
        assert client.post(f"{Q}/confirm_get", json={"uid": again["uid"], "confirm_id": 8}).status_code == 200
        assert [message.body for message in qm.browse("Q1")] == [b"second"]


@gate
@pytest.mark.parametrize("is_killed", [False, pytest.param(True, marks=nightly)], ids=["cut", "server killed"])
def test_a_claim_whose_answer_is_lost_is_answered_once_more(start: Start, served: Served, is_killed: bool) -> None:
    pytest.importorskip("pyarrow", reason="needs the extra inorder[arrow]")
    from tests.server.arrows import rows_in

    running = start()
    reader = f"{Q}/readers/copy"
    with inorder.connect(served.store) as qm, running.client() as client:
        qm.put_many("Q1", [b"first", b"second", b"third"])
        epoch = client.post(reader).json()["epoch"]
        path = f"{reader}/arrow?epoch={epoch}&after=0&messages=2"
        asked = Asked(running, path)
        until(lambda: [unit.gets for unit in qm.inspect.units() if unit.kind == "claim"] == [2], "it is claimed")
        asked.is_cut()
    if is_killed:
        running.kill()
        running = start()
    with inorder.connect(served.store) as qm, running.client() as client:
        answers = [client.post(path) for _ in range(2)]
        assert [answer.headers["Inorder-Claim"] for answer in answers] == ["1", "1"]
        assert [[row["body"] for row in rows_in(answer)] for answer in answers] == [[b"first", b"second"]] * 2
        assert client.post(f"{reader}/release").json() == {"messages": 2}
        assert [message.body for message in qm.browse("Q1")] == [b"first", b"second", b"third"]


@pytest.mark.parametrize("wait", [0, 600])
async def test_a_client_known_to_have_disconnected_takes_nothing_under_a_confirm_id(
    client: httpx.AsyncClient, qm: QueueManager, wait: int
) -> None:
    qm.put("Q1", b"x")
    for _ in range(20):
        gone = Client()
        gone.leave()
        await app_of(client)(
            scope_of("POST", f"{Q}/get", f"confirm_id=7&wait={wait}".encode()), gone.receive, gone.send
        )
        assert {one.get("status", 499) for one in gone.sent} <= {499}, "it was answered"
    assert qm.inspect.units() == []
    assert [message.body for message in qm.browse("Q1")] == [b"x"]


@pytest.mark.parametrize("what", ["get", "claim"])
async def test_a_message_taken_as_its_user_is_disabled_is_not_sent_and_another_user_returns_it(
    client: httpx.AsyncClient, served: Served, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if what == "claim":
        pytest.importorskip("pyarrow", reason="needs the extra inorder[arrow]")
    add(served, "anna", roles=["operator"])
    real, asked = Call.demand_again, list[str]()

    async def just_then(self: Call, *given: Any) -> None:
        asked.append(self.identity.name)
        if len(asked) == 2:  # the message is taken, and not sent yet
            with inorder.connect(served.store) as qm:
                qm.accounts.alter_user("anna", enabled=False)
        await real(self, *given)

    monkeypatch.setattr(Call, "demand_again", just_then)
    client.auth = httpx.BasicAuth("anna", PASSWORD)
    with inorder.connect(served.store) as qm:
        qm.put("Q1", b"secret")
        if what == "get":
            answer = await client.post(f"{Q}/get", params={"confirm_id": 7, "wait": 600})
        else:
            epoch = (await client.post(f"{Q}/readers/copy")).json()["epoch"]
            given = {"epoch": epoch, "after": 0, "wait": 600}
            answer = await client.post(f"{Q}/readers/copy/arrow", params=given)
        assert (answer.status_code, b"secret" in answer.content) == (401, False)
        assert list(qm.browse("Q1")) == [], "it is held"
        client.auth = httpx.BasicAuth("anybody", TOKEN)
        if what == "get":
            answer = await client.post(f"{Q}/undo", json={"confirm_id": 7})
        else:
            answer = await client.post(f"{Q}/readers/copy/release")
        assert answer.json() == {"messages": 1}
        assert [message.body for message in qm.browse("Q1")] == [b"secret"]
