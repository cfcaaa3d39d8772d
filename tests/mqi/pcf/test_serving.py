"""The command server: its replies, their readers, and what remains when it dies."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.helpers import forked
from tests.helpers.support import Make, until
from tests.mqi.pcf.asking import Reply, number, replies_in, request

import inorder
from inorder import Got, Match, QueueManager, Report
from inorder.client.programs import user_name
from inorder.mq.words import COMMAND_QUEUE
from inorder.mqi.conversion import CharacterSet
from inorder.mqi.pcf.coding import Coding
from inorder.mqi.pcf.serving import BEGUN_QUEUE, CommandServer, answer_requests, make_begun_queue, rights_of
from inorder.testing.remote import the_server

CREATE = {"MQCA_Q_NAME": "NEW", "MQIA_Q_TYPE": 1}
FIELDS: dict[str, Any] = {"format": "MQADMIN", "message_type": 1, "reply_to_queue": "REPLIES"}


@pytest.fixture
def server(qm: QueueManager) -> Iterator[CommandServer]:
    qm.create_queue(COMMAND_QUEUE)
    qm.create_queue("REPLIES")
    with qm.connect() as serving, qm.connect() as running:
        yield CommandServer(serving, running)


def serve(server: CommandServer) -> int:
    """Answers all requests. Returns their number."""
    served = 0
    while server.answer_next(Match()):
        served += 1
    return served


def put(qm: QueueManager, command: str, given: dict[str, Any], **fields: Any) -> bytes:
    """Puts a request. Returns its message id."""
    return qm.put(COMMAND_QUEUE, request(command, given), **{**FIELDS, **fields}).message_id


def replies(qm: QueueManager, message_id: bytes) -> list[Got]:
    found = []
    while True:
        try:
            found.append(qm.get("REPLIES", match=Match(correlation_id=message_id)))
        except inorder.NoMessageAvailable:
            return found


def answers(qm: QueueManager, message_id: bytes) -> list[Reply]:
    return replies_in([one.body for one in replies(qm, message_id)])


def test_replies_have_the_fields_that_the_request_asks_for(qm: QueueManager, server: CommandServer) -> None:
    qm.create_queue("A.ONE")
    qm.create_queue("A.TWO")
    plain = put(qm, "INQUIRE_Q", {"MQCA_Q_NAME": "A.*"}, expiry=60.0, priority=7, persistent=False)
    passed = put(
        qm, "PING_Q_MGR", {}, correlation_id=b"C" * 24,
        report=Report.PASS_CORRELATION_ID | Report.PASS_MESSAGE_ID | Report.PASS_DISCARD_AND_EXPIRY,
    )  # fmt: skip
    assert serve(server) == 2
    one, two = replies(qm, plain)
    for reply in (one, two):
        assert (reply.format, reply.message_type, reply.priority, reply.persistent) == ("MQADMIN", 2, 7, False)
        assert reply.expiry is not None
        assert 0 < reply.expiry <= 60
        assert reply.message_id != plain
    assert [each.values["MQCA_Q_NAME"] for each in replies_in([one.body, two.body])] == ["A.ONE", "A.TWO"]
    (reply,) = replies(qm, b"C" * 24)
    assert reply.message_id == passed
    assert serve(server) == 0


def test_a_request_in_another_byte_order_and_character_set_is_answered(qm: QueueManager, server: CommandServer) -> None:
    qm.create_queue("A", description="Größe")
    texts = CharacterSet(lambda data: data.decode("cp273"), lambda text: text.encode("cp273"))
    coding = Coding(">", texts)
    body = request("INQUIRE_Q", {"MQCA_Q_NAME": "A"}, coding)
    sent = qm.put(COMMAND_QUEUE, body, **FIELDS, encoding=273, coded_character_set_id=273).message_id
    serve(server)
    (reply,) = replies(qm, sent)
    assert (reply.encoding, reply.coded_character_set_id) == (273, 273)
    (answer,) = replies_in([reply.body], coding)
    assert answer.values["MQCA_Q_DESC"] == "Größe"


@pytest.mark.parametrize(
    ("fields", "wanted"), [({"format": "MQSTR"}, "MD_FORMAT_ERROR"), ({"coded_character_set_id": 9999}, "CCSID_ERROR")]
)
def test_a_message_that_is_not_a_request_is_answered_with_a_reason(
    qm: QueueManager, server: CommandServer, fields: dict[str, Any], wanted: str
) -> None:
    sent = put(qm, "CREATE_Q", CREATE, **fields)
    serve(server)
    assert [one.reason for one in answers(qm, sent)] == [number(f"MQRCCF_{wanted}")]
    assert not [queue for queue in qm.queues() if queue.name == "NEW"]


def test_unanswerable_requests_do_not_stop_the_server(qm: QueueManager, server: CommandServer) -> None:
    put(qm, "CREATE_Q", CREATE, reply_to_queue="GONE")
    put(qm, "CREATE_Q", CREATE | {"MQCA_Q_NAME": "OTHER"}, reply_to_queue="", message_type=8)
    qm.put(COMMAND_QUEUE, b"nothing", **FIELDS)
    assert serve(server) == 3
    assert {"NEW", "OTHER"} <= {queue.name for queue in qm.queues()}


def test_a_program_answers_only_its_own_requests(qm: QueueManager, server: CommandServer) -> None:
    other = put(qm, "CREATE_Q", CREATE)
    with qm.unit_of_work():
        mine = qm.put(COMMAND_QUEUE, request("PING_Q_MGR", {}), **FIELDS)
    answer_requests(qm, [mine.uid], lambda authority, queue: True)
    assert [one.reason for one in answers(qm, mine.message_id)] == [0]
    assert replies(qm, other) == []
    assert qm.depth(COMMAND_QUEUE) == 1


def test_a_command_whose_server_has_died_is_not_run_again(qm: QueueManager, server: CommandServer) -> None:
    class Dead(Exception):
        """Stands for the death of the server."""

    def die(*_: object, **__: object) -> None:
        raise Dead

    sent = put(qm, "CREATE_Q", CREATE)
    with qm.connect() as serving, qm.connect() as running:
        dying = CommandServer(serving, running)
        dying._reply = die  # type: ignore[method-assign]
        with pytest.raises(Dead):
            serve(dying)
    assert (qm.depth(COMMAND_QUEUE), qm.depth(BEGUN_QUEUE)) == (1, 1)
    qm.delete_queue("NEW")
    serve(server)
    assert [one.reason for one in answers(qm, sent)] == [2549]
    assert (qm.depth(COMMAND_QUEUE), qm.depth(BEGUN_QUEUE)) == (0, 0)
    assert "NEW" not in {queue.name for queue in qm.queues()}


# ---- rights


def test_users_of_a_store_have_their_rights_and_other_users_have_none(qm: QueueManager, server: CommandServer) -> None:
    create: dict[str, Any] = {"format": "MQADMIN", "reply_to_queue": "REPLIES", "context": "set_identity"}

    def asked(user: str, name: str) -> list[int]:
        body = request("CREATE_Q", CREATE | {"MQCA_Q_NAME": name})
        sent = qm.put(COMMAND_QUEUE, body, user_identifier=user, **create).message_id
        serve(server)
        return [one.reason for one in answers(qm, sent)]

    assert asked("nobody", "A") == [0]
    qm.accounts.create_user("boss", roles=["admin"])
    qm.accounts.create_user("looker", roles=["reader"])
    assert [asked(user, "B") for user in ("nobody", "looker", "boss")] == [[2035], [2035], [0]]
    assert asked(user_name(), "C") == [0]
    qm.accounts.alter_user("boss", enabled=False)
    assert asked("boss", "D") == [2035]
    assert rights_of(qm, "looker")("inquire", "A")


# ---- deaths

PROGRAM = """
import inorder
from inorder.mqi.pcf.serving import serve_commands

with inorder.connect(arguments[0]) as qm:
    list(serve_commands(qm, until_empty=True))
"""
KILLS_MAX = 60


def judged(place: str, kill_at: str) -> bool:
    """Runs a command server once, killed at this point, and checks the rest. Returns whether it ended by itself."""
    with inorder.connect(place) as qm:
        qm.create_queue(COMMAND_QUEUE)
        qm.create_queue("REPLIES")
        made = put(qm, "CREATE_Q", CREATE)
        looked = put(qm, "INQUIRE_Q", {"MQCA_Q_NAME": "REPLIES"})
    status = forked.run(PROGRAM, place, kill_at=kill_at)
    assert status in (0, -signal.SIGKILL), f"killed at {kill_at} it ended with {status}"
    with inorder.connect(place) as qm, inorder.connect(place) as running:
        until(lambda: not qm.inspect.units(), "the dead server's unit of work is backed out")
        serve(CommandServer(qm, running))
        (reason,) = [one.reason for one in answers(qm, made)]
        is_there = "NEW" in {queue.name for queue in qm.queues()}
        assert (reason, is_there) in ((0, True), (2549, True), (2549, False)), f"killed at {kill_at}"
        assert [one.reason for one in answers(qm, looked)] == [0], f"killed at {kill_at}"
        assert qm.depth(COMMAND_QUEUE) == 0
        assert BEGUN_QUEUE not in {queue.name for queue in qm.queues()} or qm.depth(BEGUN_QUEUE) == 0
    return status == 0


@pytest.mark.parametrize(
    "point", [pytest.param("committed", marks=pytest.mark.gate), pytest.param("written", marks=pytest.mark.nightly)]
)
def test_a_server_killed_anywhere_runs_no_command_twice_and_loses_none(make: Make, point: str) -> None:
    lives = 0
    while lives < KILLS_MAX and not judged(make("sqlite"), f"{point}:{lives + 1}"):
        lives += 1
    assert 8 < lives < KILLS_MAX, f"it was killed {lives} times"


# ---- authorities of the users


def asked(qm: QueueManager, command: str, given: dict[str, Any]) -> list[int]:
    """The reasons in the replies to a request of this user."""
    sent = qm.put(COMMAND_QUEUE, request(command, given), **FIELDS)
    answer_requests(qm, [sent.uid], rights_of(qm, user_name()))
    return [one.reason for one in answers(qm, sent.message_id)]


def test_a_server_checks_the_authorities_of_its_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with inorder.connect(tmp_path / "qm.db") as qm:
        for name in (COMMAND_QUEUE, "REPLIES", "OTHER"):
            qm.create_queue(name)
        make_begun_queue(qm)
        for name in ("boss", "runner"):
            qm.accounts.create_user(name, roles=["admin" if name == "boss" else "operator"])
        server = the_server(os.getpid())
        with server.serving(str(tmp_path / "qm.db"), qm) as administrators:
            for name, wanted in (("runner", [2035]), ("boss", [0])):
                token = qm.accounts.create_token(name, "test")
                server.admit(token, administrators)
                with inorder.connect(server.url, token=token) as there:
                    assert asked(there, "CREATE_Q", CREATE) == wanted
                    assert asked(there, "CLEAR_Q", {"MQCA_Q_NAME": "OTHER"}) == [0]
            assert qm.attributes("NEW").type == "local"
