"""Commands in PCF: effects, replies, and the reason codes of refused commands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.mqi.pcf.asking import Filter, ask, number, reason, replies_in, request

import inorder
from inorder import QueueManager
from inorder.mqi.pcf.answering import PcfCommand
from inorder.mqi.pcf.coding import COMMAND, NATIVE, Coding, Header, parameter, write
from inorder.mqi.pcf.requests import ESCAPE, known_commands

LOCAL, MODEL, ALIAS, REMOTE, ANY = 1, 2, 3, 6, 1001
SENDER, RECEIVER = 1, 3
A, B, ONE = {"CA_Q_NAME": "A*"}, {"CA_Q_NAME": "B", "IA_Q_TYPE": LOCAL}, Filter("EQUAL", 1)
WORDS = (-(2**31), -1, *range(7), 9, *range(12, 17), 20, 23, 24, 25, 28, 36, 48, 1002, 2016, 7006, 2**31 - 1)
INSTANCE = "IACH_CHANNEL_INSTANCE_TYPE"


def names(qm: QueueManager, command: str, key: str, **asked: Any) -> list[str]:
    """The names in the replies to an inquiry; none if it finds no object."""
    replies = ask(qm, command, **asked)
    assert replies[0].reason in (0, 2085, 3065)
    return [each.values[f"MQ{key}"] for each in replies if not each.reason]


@pytest.fixture
def queues(qm: QueueManager) -> QueueManager:
    qm.create_queue("A.ONE", max_depth=10, description="The first")
    qm.create_queue("A.TWO", max_depth=20, usage="transmission", put_allowed=False)
    qm.create_queue("A.NAME", type="alias", base_queue="A.ONE")
    return qm


# ---- queues


def test_a_queue_is_created_changed_copied_inquired_and_deleted(qm: QueueManager) -> None:
    made = {"CA_Q_NAME": "A", "IA_Q_TYPE": LOCAL}
    assert reason(
        qm, "CREATE_Q", **made, CA_Q_DESC="Größe'", IA_MAX_Q_DEPTH=7, IA_INHIBIT_PUT=1, IA_SHAREABILITY=0, IA_USAGE=1,
        IA_DEF_PERSISTENCE=0, IA_MSG_DELIVERY_SEQUENCE=1, IA_DEF_INPUT_OPEN_OPTION=4, IA_TRIGGER_CONTROL=1,
    ) == 0  # fmt: skip
    there = qm.attributes("A")
    assert (there.description, there.max_depth, there.put_allowed, there.shareable) == ("Größe'", 7, False, False)
    assert (there.usage, there.default_persistence, there.delivery) == ("transmission", False, "fifo")
    assert (there.default_input, there.trigger_control) == ("exclusive", True)
    assert reason(qm, "CHANGE_Q", **made, IA_INHIBIT_PUT=0, CA_Q_DESC=" " * 64) == 0
    assert (qm.attributes("A").put_allowed, qm.attributes("A").description) == (True, "")
    assert reason(qm, "COPY_Q", CACF_FROM_Q_NAME="A", CACF_TO_Q_NAME="b", IA_Q_TYPE=LOCAL, IA_MAX_Q_DEPTH=9) == 0
    assert (qm.attributes("b").max_depth, qm.attributes("b").usage) == (9, "transmission")
    (reply,) = ask(qm, "INQUIRE_Q", CA_Q_NAME="A")
    assert list(reply.values)[:2] == ["MQCA_Q_NAME", "MQIA_Q_TYPE"]
    assert {key: reply.values[key] for key in ("MQIA_Q_TYPE", "MQIA_INHIBIT_PUT", "MQIA_USAGE", "MQCA_Q_DESC")} == {
        "MQIA_Q_TYPE": LOCAL, "MQIA_INHIBIT_PUT": 0, "MQIA_USAGE": 1, "MQCA_Q_DESC": ""
    }  # fmt: skip
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", reply.values["MQCA_CREATION_DATE"])
    assert re.fullmatch(r"\d\d\.\d\d\.\d\d", reply.values["MQCA_ALTERATION_TIME"])
    assert reason(qm, "DELETE_Q", CA_Q_NAME="A") == 0
    assert reason(qm, "DELETE_Q", CA_Q_NAME="b", IA_Q_TYPE=LOCAL) == 0
    assert names(qm, "INQUIRE_Q", "CA_Q_NAME", CA_Q_NAME="A*", IA_Q_TYPE=LOCAL) == []


def test_every_type_of_queue_is_created(qm: QueueManager) -> None:
    assert reason(qm, "CREATE_Q", CA_Q_NAME="L", IA_Q_TYPE=LOCAL) == 0
    assert reason(qm, "CREATE_Q", CA_Q_NAME="M", IA_Q_TYPE=MODEL, IA_DEFINITION_TYPE=2) == 0
    assert reason(qm, "CREATE_Q", CA_Q_NAME="N", IA_Q_TYPE=ALIAS, CA_BASE_Q_NAME="L") == 0
    assert reason(qm, "CREATE_Q", CA_Q_NAME="R", IA_Q_TYPE=REMOTE, CA_REMOTE_Q_NAME="L", CA_REMOTE_Q_MGR_NAME="Z") == 0
    assert [qm.attributes(name).type for name in "LMNR"] == ["local", "model", "alias", "remote"]
    assert qm.attributes("M").definition_type == "permanent_dynamic"
    assert qm.attributes("R").remote_manager == "Z"


def test_create_replaces_and_delete_purges_only_if_asked(queues: QueueManager) -> None:
    again = {"CA_Q_NAME": "A.ONE", "IA_Q_TYPE": LOCAL}
    assert reason(queues, "CREATE_Q", **again, IACF_REPLACE=0) == 4001
    assert reason(queues, "CREATE_Q", **again, IACF_REPLACE=1, IA_MAX_Q_DEPTH=11) == 0
    assert queues.attributes("A.ONE").max_depth == 11
    queues.put("A.ONE", b"x")
    assert reason(queues, "DELETE_Q", CA_Q_NAME="A.ONE", IACF_PURGE=0) == 2055
    assert reason(queues, "DELETE_Q", CA_Q_NAME="A.ONE", IACF_PURGE=1) == 0


def test_a_queue_is_cleared_unless_a_unit_of_work_holds_messages(queues: QueueManager) -> None:
    queues.put("A.ONE", b"x")
    with queues.unit_of_work():
        queues.put("A.ONE", b"y")
        assert reason(queues.connect(), "CLEAR_Q", CA_Q_NAME="A.ONE") == 2042
    assert reason(queues, "CLEAR_Q", CA_Q_NAME="A.ONE") == 0
    assert queues.inspect.status("A.ONE").current_depth == 0


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, ["A.NAME", "A.ONE", "A.TWO"]),
        ({"IA_Q_TYPE": ANY}, ["A.NAME", "A.ONE", "A.TWO"]),
        ({"IA_Q_TYPE": LOCAL}, ["A.ONE", "A.TWO"]),
        ({"IA_Q_TYPE": ALIAS}, ["A.NAME"]),
        ({"IA_Q_TYPE": MODEL}, []),
        ({"IA_MAX_Q_DEPTH": Filter("GREATER", 10)}, ["A.TWO"]),
        ({"IA_MAX_Q_DEPTH": Filter("NOT_GREATER", 10)}, ["A.ONE"]),
        ({"IA_MAX_Q_DEPTH": Filter("LESS", 10)}, []),
        ({"IA_MAX_Q_DEPTH": Filter("NOT_LESS", 20)}, ["A.TWO"]),
        ({"IA_USAGE": Filter("EQUAL", 1)}, ["A.TWO"]),
        ({"IA_INHIBIT_PUT": Filter("NOT_EQUAL", 1)}, ["A.NAME", "A.ONE"]),
        ({"IA_SHAREABILITY": Filter("EQUAL", 1)}, ["A.ONE", "A.TWO"]),
        ({"CA_Q_DESC": Filter("LIKE", "The*")}, ["A.ONE"]),
        ({"CA_Q_DESC": Filter("NOT_LIKE", "The*")}, ["A.NAME", "A.TWO"]),
        ({"CA_Q_DESC": Filter("EQUAL", " ")}, ["A.NAME", "A.TWO"]),
        ({"CA_BASE_Q_NAME": Filter("CONTAINS", "A.ONE")}, ["A.NAME"]),
        ({"IA_CURRENT_Q_DEPTH": Filter("EQUAL", 0)}, ["A.ONE", "A.TWO"]),
    ],
)
def test_an_inquiry_finds_by_name_type_and_filter(
    queues: QueueManager, given: dict[str, Any], found: list[str]
) -> None:
    assert names(queues, "INQUIRE_Q", "CA_Q_NAME", CA_Q_NAME="A.*", **given) == found


def test_an_inquiry_answers_with_the_attributes_in_its_list(queues: QueueManager) -> None:
    wanted = [number("MQCA_Q_NAME"), number("MQIA_MAX_Q_DEPTH"), number("MQCA_BASE_Q_NAME")]
    alias, one, two = ask(queues, "INQUIRE_Q", CA_Q_NAME="A.*", IACF_Q_ATTRS=wanted)
    assert alias.values == {"MQCA_Q_NAME": "A.NAME", "MQIA_Q_TYPE": ALIAS, "MQCA_BASE_Q_NAME": "A.ONE"}
    assert (one.values["MQIA_MAX_Q_DEPTH"], two.values["MQIA_MAX_Q_DEPTH"]) == (10, 20)
    (every,) = ask(queues, "INQUIRE_Q", CA_Q_NAME="A.ONE", IACF_Q_ATTRS=[number("MQIACF_ALL")])
    assert len(every.values) > 30
    (named,) = ask(queues, "INQUIRE_Q", CA_Q_NAME="A.ONE", IACF_Q_ATTRS=[number("MQCA_Q_NAME")])
    assert named.values == {"MQCA_Q_NAME": "A.ONE", "MQIA_Q_TYPE": LOCAL}


def test_an_attribute_that_another_type_of_queue_has_is_left_out(queues: QueueManager) -> None:
    wanted = [number("MQCA_BASE_Q_NAME"), number("MQIA_MAX_Q_DEPTH"), number("MQIA_CURRENT_Q_DEPTH")]
    one, _ = ask(queues, "INQUIRE_Q", CA_Q_NAME="A.*", IA_Q_TYPE=LOCAL, IACF_Q_ATTRS=wanted)
    assert list(one.values) == ["MQCA_Q_NAME", "MQIA_Q_TYPE", "MQIA_CURRENT_Q_DEPTH", "MQIA_MAX_Q_DEPTH"]
    (alias,) = ask(queues, "INQUIRE_Q", CA_Q_NAME="A.*", IA_Q_TYPE=ALIAS, IACF_Q_ATTRS=wanted[1:])
    assert list(alias.values) == ["MQCA_Q_NAME", "MQIA_Q_TYPE"]
    names_alone: dict[str, Any] = {
        "BACF_GENERIC_CONNECTION_ID": b"",
        "IACF_CONNECTION_ATTRS": [number("MQCACF_OBJECT_NAME")],
    }
    assert ask(queues, "INQUIRE_CONNECTION", **names_alone)[0].reason == 0


def test_names_of_queues_channels_and_processes_are_inquired(queues: QueueManager) -> None:
    (reply,) = ask(queues, "INQUIRE_Q_NAMES", CA_Q_NAME="A.*")
    assert reply.values == {"MQCACF_Q_NAMES": ["A.NAME", "A.ONE", "A.TWO"], "MQIACF_Q_TYPES": [ALIAS, LOCAL, LOCAL]}
    (reply,) = ask(queues, "INQUIRE_Q_NAMES", CA_Q_NAME="A.*", IA_Q_TYPE=ALIAS)
    assert reply.values["MQCACF_Q_NAMES"] == ["A.NAME"]
    (reply,) = ask(queues, "INQUIRE_Q_NAMES", CA_Q_NAME="Z.*")
    assert reply.values == {"MQCACF_Q_NAMES": []}
    (reply,) = ask(queues, "INQUIRE_CHANNEL_NAMES", CACH_CHANNEL_NAME="SYSTEM.DEF.*")
    assert reply.values == {
        "MQCACH_CHANNEL_NAMES": ["SYSTEM.DEF.RECEIVER", "SYSTEM.DEF.SENDER"], "MQIACH_CHANNEL_TYPES": [RECEIVER, SENDER]
    }  # fmt: skip
    (reply,) = ask(queues, "INQUIRE_PROCESS_NAMES", CA_PROCESS_NAME="*")
    assert reply.values == {"MQCACF_PROCESS_NAMES": ["SYSTEM.DEFAULT.PROCESS"]}


def test_the_status_of_queues_and_of_their_handles_is_inquired(queues: QueueManager) -> None:
    queues.put("A.ONE", b"x")
    with queues.open("A.ONE", input="shared", output=True):
        one, two = ask(queues, "INQUIRE_Q_STATUS", CA_Q_NAME="A.*")
        assert one.values == {
            "MQCA_Q_NAME": "A.ONE", "MQIACF_Q_STATUS_TYPE": number("MQIACF_Q_STATUS"), "MQIA_CURRENT_Q_DEPTH": 1,
            "MQIA_OPEN_INPUT_COUNT": 1, "MQIA_OPEN_OUTPUT_COUNT": 2, "MQIACF_UNCOMMITTED_MSGS": 0,
            "MQIACF_OLDEST_MSG_AGE": 0,
        }  # fmt: skip
        assert two.values["MQIA_CURRENT_Q_DEPTH"] == 0
        handles: dict[str, Any] = {"CA_Q_NAME": "A.ONE", "IACF_Q_STATUS_TYPE": number("MQIACF_Q_HANDLE")}
        assert len(ask(queues, "INQUIRE_Q_STATUS", **handles)) == 2
        (reader,) = ask(queues, "INQUIRE_Q_STATUS", **handles, IACF_OPEN_TYPE=number("MQQSOT_INPUT"))
        assert {
            "MQCA_Q_NAME": "A.ONE", "MQIACF_Q_STATUS_TYPE": number("MQIACF_Q_HANDLE"),
            "MQIACF_OPEN_INPUT_TYPE": number("MQQSO_SHARED"), "MQIACF_OPEN_OUTPUT": number("MQQSO_YES"),
            "MQIACF_HANDLE_STATE": number("MQHSTATE_INACTIVE"), "MQIA_APPL_TYPE": number("MQAT_USER"),
        }.items() <= reader.values.items()  # fmt: skip
    for kind in (LOCAL, ANY):  # monitoring programs give a type, though local queues alone have a status
        assert [one.reason for one in ask(queues, "INQUIRE_Q_STATUS", CA_Q_NAME="A.ONE", IA_Q_TYPE=kind)] == [0]
    (reply,) = ask(queues, "INQUIRE_Q_STATUS", CA_Q_NAME="A.ONE", IACF_Q_STATUS_ATTRS=[number("MQIA_CURRENT_Q_DEPTH")])
    assert reply.values["MQIA_CURRENT_Q_DEPTH"] == 1
    assert "MQIA_OPEN_INPUT_COUNT" not in reply.values


# ---- the queue manager and its connections


def test_the_queue_manager_is_inquired_changed_and_pinged(qm: QueueManager) -> None:
    assert reason(qm, "CHANGE_Q_MGR", CA_Q_MGR_DESC="Ours", IA_MAX_HANDLES=99, IA_MSG_MARK_BROWSE_INTERVAL=-1) == 0
    (reply,) = ask(qm, "INQUIRE_Q_MGR")
    assert {
        "MQCA_Q_MGR_NAME": qm.admin.manager_attributes().name, "MQCA_Q_MGR_DESC": "Ours", "MQIA_MAX_HANDLES": 99,
        "MQIA_MSG_MARK_BROWSE_INTERVAL": -1, "MQIA_PLATFORM": number("MQPL_UNIX"), "MQIA_SYNCPOINT": 1,
    }.items() <= reply.values.items()  # fmt: skip
    (reply,) = ask(qm, "INQUIRE_Q_MGR", IACF_Q_MGR_ATTRS=[number("MQIA_MAX_HANDLES")])
    assert list(reply.values) == ["MQCA_Q_MGR_NAME", "MQIA_MAX_HANDLES"]
    assert reason(qm, "PING_Q_MGR") == 0
    (reply,) = ask(qm, "INQUIRE_Q_MGR_STATUS")
    assert reply.values["MQIACF_Q_MGR_STATUS"] == number("MQQMSTA_RUNNING")
    assert reply.values["MQIACF_CONNECTION_COUNT"] >= 1


def test_connections_and_their_handles_are_inquired(queues: QueueManager) -> None:
    every: dict[str, Any] = {"BACF_GENERIC_CONNECTION_ID": b""}
    before = {each.values["MQBACF_CONNECTION_ID"] for each in ask(queues, "INQUIRE_CONNECTION", **every)}
    with queues.connect() as other, other.open("A.ONE", input="shared"):
        found = ask(queues, "INQUIRE_CONNECTION", **every)
        (identifier,) = {each.values["MQBACF_CONNECTION_ID"] for each in found} - before
        assert len(identifier) == 24
        assert identifier.startswith(b"AMQC")
        one, handle = ask(
            queues,
            "INQUIRE_CONNECTION",
            BACF_CONNECTION_ID=identifier,
            IACF_CONN_INFO_TYPE=number("MQIACF_CONN_INFO_ALL"),
        )
        assert one.values["MQIACF_CONN_INFO_TYPE"] == number("MQIACF_CONN_INFO_CONN")
        assert one.values["MQIACF_UOW_STATE"] == number("MQUOWST_NONE")
        assert handle.values == {
            "MQBACF_CONNECTION_ID": identifier, "MQIACF_CONN_INFO_TYPE": number("MQIACF_CONN_INFO_HANDLE"),
            "MQCACF_OBJECT_NAME": "A.ONE", "MQIACF_OBJECT_TYPE": number("MQOT_Q"),
            "MQIACF_HANDLE_STATE": number("MQHSTATE_INACTIVE"), "MQIACF_OPEN_OPTIONS": number("MQOO_INPUT_SHARED"),
        }  # fmt: skip
    assert ask(queues, "INQUIRE_CONNECTION", BACF_CONNECTION_ID=identifier)[0].reason == 2085


# ---- channels and processes


def test_channels_are_administered_with_pcf(qm: QueueManager) -> None:
    made = {"CACH_CHANNEL_NAME": "TO.B", "IACH_CHANNEL_TYPE": SENDER}
    qm.create_queue("B", usage="transmission")
    assert reason(qm, "CREATE_CHANNEL", **made, CACH_XMIT_Q_NAME="B", CACH_CONNECTION_NAME="b.db") == 0
    assert reason(qm, "CREATE_CHANNEL", **made, CACH_XMIT_Q_NAME="B", CACH_CONNECTION_NAME="b.db") == 4042
    assert reason(qm, "CHANGE_CHANNEL", **made, IACH_BATCH_SIZE=3, IACH_NPM_SPEED=2) == 0
    copied = {"CACF_FROM_CHANNEL_NAME": "TO.B", "CACF_TO_CHANNEL_NAME": "TO.C"}
    assert reason(qm, "COPY_CHANNEL", **copied, IACH_CHANNEL_TYPE=SENDER, CACH_XMIT_Q_NAME="C") == 0
    (reply,) = ask(qm, "INQUIRE_CHANNEL", CACH_CHANNEL_NAME="TO.C")
    assert {"MQIACH_BATCH_SIZE": 3, "MQIACH_NPM_SPEED": 2, "MQCACH_XMIT_Q_NAME": "C"}.items() <= reply.values.items()
    assert names(qm, "INQUIRE_CHANNEL", "CACH_CHANNEL_NAME", CACH_CHANNEL_NAME="TO.*") == ["TO.B", "TO.C"]
    receivers = {"CACH_CHANNEL_NAME": "*", "IACH_CHANNEL_TYPE": RECEIVER}
    assert names(qm, "INQUIRE_CHANNEL", "CACH_CHANNEL_NAME", **receivers) == ["SYSTEM.DEF.RECEIVER"]
    assert reason(qm, "INQUIRE_CHANNEL_STATUS", CACH_CHANNEL_NAME="*") == 3065
    assert reason(qm, "STOP_CHANNEL", CACH_CHANNEL_NAME="TO.B", IACF_MODE=1) == 0
    (reply,) = ask(qm, "INQUIRE_CHANNEL_STATUS", CACH_CHANNEL_NAME="TO.*", IACH_CHANNEL_INSTANCE_TYPE=1011)
    assert reply.values["MQIACH_CHANNEL_STATUS"] == number("MQCHS_STOPPED")
    assert reply.values["MQCACH_XMIT_Q_NAME"] == "B"
    for queue, found in (("B", ["TO.B"]), ("C", [])):
        given = {"CACH_CHANNEL_NAME": "*", "CACH_XMIT_Q_NAME": queue}
        assert names(qm, "INQUIRE_CHANNEL_STATUS", "CACH_CHANNEL_NAME", **given) == found
    assert reason(qm, "START_CHANNEL", CACH_CHANNEL_NAME="TO.B") == 0
    assert reason(qm, "RESET_CHANNEL", CACH_CHANNEL_NAME="TO.B", IACH_MSG_SEQUENCE_NUMBER=5) == 0
    assert reason(qm, "RESOLVE_CHANNEL", CACH_CHANNEL_NAME="TO.B", IACH_IN_DOUBT=1) == 4064
    assert reason(qm, "PING_CHANNEL", CACH_CHANNEL_NAME="TO.B") != 0  # b.db does not exist
    assert reason(qm, "DELETE_CHANNEL", CACH_CHANNEL_NAME="TO.B") == 0
    for command in ("DELETE_CHANNEL", "INQUIRE_CHANNEL", "START_CHANNEL", "PING_CHANNEL"):
        assert reason(qm, command, CACH_CHANNEL_NAME="TO.B") == 4032
    assert reason(qm, "CREATE_CHANNEL", CACH_CHANNEL_NAME="X", IACH_CHANNEL_TYPE=7) == 3034


def test_processes_are_administered_with_pcf(qm: QueueManager) -> None:
    made = {"CA_PROCESS_NAME": "SERVE"}
    assert reason(qm, "CREATE_PROCESS", **made, CA_APPL_ID="serve", IA_APPL_TYPE=11) == 0
    assert reason(qm, "CREATE_PROCESS", **made) == 4001
    assert reason(qm, "CHANGE_PROCESS", **made, CA_USER_DATA="--fast", IA_APPL_TYPE=65536) == 0
    assert reason(qm, "COPY_PROCESS", CACF_FROM_PROCESS_NAME="SERVE", CACF_TO_PROCESS_NAME="OTHER", IA_APPL_TYPE=6) == 0
    (reply,) = ask(qm, "INQUIRE_PROCESS", CA_PROCESS_NAME="SERVE")
    assert {
        "MQCA_APPL_ID": "serve",
        "MQIA_APPL_TYPE": 65536,
        "MQCA_USER_DATA": "--fast",
    }.items() <= reply.values.items()
    found = ask(qm, "INQUIRE_PROCESS", CA_PROCESS_NAME="*", IA_APPL_TYPE=Filter("EQUAL", 6))
    assert [each.values["MQCA_PROCESS_NAME"] for each in found] == ["OTHER", "SYSTEM.DEFAULT.PROCESS"]
    assert reason(qm, "DELETE_PROCESS", **made) == 0
    assert reason(qm, "INQUIRE_PROCESS", **made) == 2085


# ---- MQSC in PCF


def test_escape_runs_a_command_in_mqsc(queues: QueueManager) -> None:
    replies = ask(queues, "ESCAPE", IACF_ESCAPE_TYPE=1, CACF_ESCAPE_TEXT="DISPLAY QL(A.ONE) MAXDEPTH")
    assert [each.values["MQCACF_ESCAPE_TEXT"] for each in replies] == [
        "AMQ8409I: Display Queue details.",
        "   QUEUE(A.ONE)                            TYPE(QLOCAL)",
        "   MAXDEPTH(10)",
    ]
    (reply,) = ask(queues, "ESCAPE", IACF_ESCAPE_TYPE=1, CACF_ESCAPE_TEXT="DELETE QL(A.ONE) NOTHING")
    assert reply.reason == 3008
    assert reply.values["MQCACF_ESCAPE_TEXT"].startswith("AMQ8405I")
    assert reason(queues, "ESCAPE", IACF_ESCAPE_TYPE=2, CACF_ESCAPE_TEXT="x") == 3054
    assert reason(queues, "ESCAPE", IACF_ESCAPE_TYPE=1) == 3019


# ---- refusals


@pytest.mark.parametrize(
    ("command", "given", "wanted", "at"),
    [
        (9999, {}, "CFH_COMMAND_ERROR", None),
        ("CREATE_NAMELIST", {}, "CFH_COMMAND_ERROR", None),
        ("RESET_Q_STATS", {"CA_Q_NAME": "A.ONE"}, "CFH_COMMAND_ERROR", None),
        ("STOP_CONNECTION", {}, "CFH_COMMAND_ERROR", None),
        ("INQUIRE_Q", {}, "PARM_COUNT_TOO_SMALL", "CA_Q_NAME"),
        ("CREATE_Q", {"CA_Q_NAME": "B"}, "PARM_COUNT_TOO_SMALL", "IA_Q_TYPE"),
        ("COPY_Q", {"CACF_TO_Q_NAME": "B", "IA_Q_TYPE": 1}, "PARM_COUNT_TOO_SMALL", "CACF_FROM_Q_NAME"),
        ("CREATE_Q", {"CA_Q_NAME": "B", "IA_Q_TYPE": 9}, "Q_TYPE_ERROR", "IA_Q_TYPE"),
        ("CREATE_Q", {"CA_Q_NAME": "B", "IA_Q_TYPE": ANY}, "Q_TYPE_ERROR", "IA_Q_TYPE"),
        ("CREATE_Q", {"CA_Q_NAME": "B?", "IA_Q_TYPE": 1}, "OBJECT_NAME_ERROR", "CA_Q_NAME"),
        ("CREATE_CHANNEL", {"CACH_CHANNEL_NAME": "B?"}, "CHANNEL_NAME_ERROR", "CACH_CHANNEL_NAME"),
        ("CREATE_Q", B | {"IA_MAX_Q_DEPTH": -5}, "ATTR_VALUE_ERROR", "IA_MAX_Q_DEPTH"),
        ("CREATE_Q", B | {"IA_USAGE": 2}, "ATTR_VALUE_ERROR", "IA_USAGE"),
        ("CREATE_Q", B | {"CA_Q_DESC": "x" * 65}, "ATTR_VALUE_ERROR", "CA_Q_DESC"),
        ("CREATE_Q", B | {"IA_Q_TYPE": ALIAS, "IA_MAX_Q_DEPTH": 5}, "CFIN_PARM_ID_ERROR", "IA_MAX_Q_DEPTH"),
        ("CREATE_Q", B | {"IA_MAX_Q_DEPTH": "5"}, "CFST_PARM_ID_ERROR", "IA_MAX_Q_DEPTH"),
        ("CREATE_Q", B | {"CA_Q_DESC": 5}, "CFIN_PARM_ID_ERROR", "CA_Q_DESC"),
        ("CREATE_Q", B | {"CA_CLUSTER_NAME": "C"}, "CFST_PARM_ID_ERROR", "CA_CLUSTER_NAME"),
        ("CREATE_Q", B | {"IA_DIST_LISTS": 1}, "CFIN_PARM_ID_ERROR", "IA_DIST_LISTS"),
        ("CHANGE_Q", B | {"IA_CURRENT_Q_DEPTH": 1}, "CFIN_PARM_ID_ERROR", "IA_CURRENT_Q_DEPTH"),
        ("CHANGE_Q", {"CA_Q_NAME": "A.ONE", "IA_Q_TYPE": ALIAS}, "Q_WRONG_TYPE", None),
        ("INQUIRE_Q", A | {"IA_CLWL_Q_RANK": Filter("EQUAL", 1)}, "CFIF_PARM_ID_ERROR", "IA_CLWL_Q_RANK"),
        ("INQUIRE_Q", A | {"IA_USAGE": Filter("EQUAL", "x")}, "CFSF_PARM_ID_ERROR", "IA_USAGE"),
        ("INQUIRE_Q", A | {"IA_USAGE": Filter("EQUAL", 2)}, "ATTR_VALUE_ERROR", "IA_USAGE"),
        ("INQUIRE_Q", A | {"IA_USAGE": ONE, "IA_MAX_Q_DEPTH": ONE}, "FILTER_ERROR", None),
        ("DELETE_Q", A | {"IA_USAGE": ONE}, "CFIF_PARM_ID_ERROR", "IA_USAGE"),
        ("INQUIRE_Q_STATUS", A | {"IA_Q_TYPE": MODEL}, "Q_TYPE_ERROR", "IA_Q_TYPE"),
        ("INQUIRE_Q_STATUS", A | {"IACF_Q_STATUS_TYPE": 5}, "PARM_VALUE_ERROR", "IACF_Q_STATUS_TYPE"),
        ("INQUIRE_CHANNEL_STATUS", {INSTANCE: 5}, "CHL_INST_TYPE_ERROR", INSTANCE),
        ("INQUIRE_Q_MGR", A, "CFST_PARM_ID_ERROR", "CA_Q_NAME"),
    ],
)
def test_an_invalid_request_is_refused(
    queues: QueueManager, command: str | int, given: dict[str, Any], wanted: str, at: str | None
) -> None:
    (reply,) = ask(queues, command, **given)
    assert reply.reason == number(f"MQRCCF_{wanted}")
    assert reply.values == ({} if at is None else {"MQIACF_PARAMETER_ID": number(f"MQ{at}")})


def test_an_unknown_attribute_in_an_inquiry_is_a_selector_error_that_names_it(queues: QueueManager) -> None:
    for wrong in ("MQIA_Q_DEPTH_HIGH_LIMIT", "MQIACF_PURGE", "MQIA_MAX_HANDLES"):
        (reply,) = ask(queues, "INQUIRE_Q", CA_Q_NAME="A.*", IACF_Q_ATTRS=[number("MQCA_Q_DESC"), number(wrong)])
        assert (reply.reason, reply.values) == (2067, {"MQIACF_PARAMETER_ID": number(wrong)})


def test_attributes_of_mq_that_have_no_effect_here_are_accepted(qm: QueueManager) -> None:
    idle = {
        "IA_DIST_LISTS": 0,
        "IA_SCOPE": 1,
        "CA_CLUSTER_NAME": "",
        "IA_Q_DEPTH_HIGH_LIMIT": 80,
        "IA_ACCOUNTING_Q": -3,
    }
    assert reason(qm, "CREATE_Q", CA_Q_NAME="A", IA_Q_TYPE=LOCAL, **idle) == 0
    assert reason(qm, "CHANGE_Q", CA_Q_NAME="A", IA_Q_TYPE=LOCAL, IACF_FORCE=1) == 0


@pytest.mark.parametrize(
    ("header", "wanted"),
    [
        (Header(2, 1, 13), "CFH_TYPE_ERROR"),
        (Header(COMMAND, 1, 13, sequence=2), "CFH_MSG_SEQ_NUMBER_ERR"),
        (Header(COMMAND, 1, 13, control=0), "CFH_CONTROL_ERROR"),
    ],
)
def test_a_message_that_is_not_one_request_is_refused(qm: QueueManager, header: Header, wanted: str) -> None:
    coding = Coding("<")
    (reply,) = replies_in(PcfCommand(write(header, [], coding), coding).answer(qm), coding)
    assert reply.reason == number(f"MQRCCF_{wanted}")


def test_a_repeated_parameter_is_refused(qm: QueueManager) -> None:
    coding = Coding("<")
    for value, wanted in (("A", "CFST_DUPLICATE_PARM"), (1, "CFIN_DUPLICATE_PARM"), ([1], "CFIL_DUPLICATE_VALUE")):
        twice = [parameter(2016, value, coding)] * 2
        (reply,) = replies_in(PcfCommand(write(Header(COMMAND, 1, 13), twice, coding), coding).answer(qm), coding)
        assert reply.reason == number(f"MQRCCF_{wanted}")


def test_replies_have_the_byte_order_and_the_version_of_the_request(queues: QueueManager) -> None:
    for order, version in (("<", 3), (">", 1)):
        coding = Coding(order)
        data = write(Header(COMMAND, version, 13), [parameter(2016, "A.*", coding)], coding)
        replies = PcfCommand(data, coding).answer(queues)
        assert [coding.integers(2, 36, version, 13, place) for place in (1, 2, 3)] == [each[:20] for each in replies]


def test_the_authorities_of_the_user_are_checked(queues: QueueManager) -> None:
    def may(authority: str, queue: str) -> bool:
        return (authority, queue) == ("inquire", "A.ONE")

    assert names(queues, "INQUIRE_Q", "CA_Q_NAME", CA_Q_NAME="A.*", may=may) == ["A.ONE"]
    (reply,) = ask(queues, "INQUIRE_Q_NAMES", CA_Q_NAME="A.*", may=may)
    assert reply.values["MQCACF_Q_NAMES"] == ["A.ONE"]
    for command, refused in (
        ("INQUIRE_Q", {"CA_Q_NAME": "A.TWO"}),
        ("DELETE_Q", {"CA_Q_NAME": "A.ONE", "IA_Q_TYPE": LOCAL}),
        ("CHANGE_Q_MGR", {"CA_Q_MGR_DESC": "x"}),
        ("INQUIRE_Q_MGR", {}),
        ("ESCAPE", {"IACF_ESCAPE_TYPE": 1, "CACF_ESCAPE_TEXT": "DISPLAY QMGR"}),
    ):
        assert reason(queues, command, may=may, **refused) == 2035
    assert qm_description(queues) == ""


def qm_description(qm: QueueManager) -> str:
    return qm.admin.manager_attributes().description


def test_the_page_lists_the_commands_that_are_supported() -> None:
    page = (Path(__file__).parents[3] / "docs/how-to/from-ibm-mq.md").read_text(encoding="utf-8")
    section = page.partition("## Administration by PCF")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ") and "MQCMD_" not in line]
    listed = re.findall(r"`([A-Z_]+)`", "".join(rows))
    assert sorted(number(f"MQCMD_{name}") for name in listed) == sorted([*known_commands(), ESCAPE])


REQUESTS = [
    request("CREATE_Q", {"MQCA_Q_NAME": "A", "MQIA_Q_TYPE": 1, "MQIA_MAX_Q_DEPTH": 5, "MQCA_Q_DESC": "text"}),
    request("INQUIRE_Q", {"MQCA_Q_NAME": "*", "MQIACF_Q_ATTRS": [2016], "MQIA_MAX_Q_DEPTH": Filter("EQUAL", 5)}),
    request("INQUIRE_CONNECTION", {"MQBACF_GENERIC_CONNECTION_ID": b"AMQC", "MQIACF_CONN_INFO_TYPE": 1113}),
    request("ESCAPE", {"MQIACF_ESCAPE_TYPE": 1, "MQCACF_ESCAPE_TEXT": "DEFINE QL(B) +"}),
    request("COPY_CHANNEL", {"MQCACF_FROM_CHANNEL_NAME": "SYSTEM.DEF.SENDER", "MQCACF_TO_CHANNEL_NAME": "C"}),
]


@given(st.sampled_from(REQUESTS), st.lists(st.tuples(st.integers(0, 39), st.sampled_from(WORDS))), st.integers(0, 200))
def test_a_request_with_any_words_is_answered(data: bytes, changed: list[tuple[int, int]], end: int) -> None:
    """The reply is well formed."""
    wrong = bytearray(data)
    for place, word in changed:
        at = place * 4 % len(wrong)
        wrong[at : at + 4] = NATIVE.integers(word)
    with inorder.connect(":memory:") as qm:
        assert replies_in(PcfCommand(bytes(wrong[: max(end, 36)]), NATIVE).answer(qm))
