"""Process definitions in MQSC: DEFINE, ALTER, DISPLAY, DELETE, and their export."""

from __future__ import annotations

import re

import pytest

from inorder import QueueManager, connect
from inorder.model.process_attributes import SYSTEM_PROCESS
from inorder.mq.mqsc import Answer, export_process, run_script

SCRIPT = """
DEFINE PROCESS(SERVE) APPLICID('python serve.py') ENVRDATA('> serve.log &') USERDATA('--fast') DESCR('Serves orders')
DEF PRO(OTHER) LIKE(SERVE) APPLTYPE(65536) USERDATA(' ')
ALTER PROCESS(OTHER) APPLTYPE(WINDOWSNT) DESCR('On the other machine')
DEFINE PROCESS(OLD) APPLICID(OLD) APPLTYPE(DEF) CMDSCOPE(' ') SKIPPED
"""


@pytest.fixture
def defined(qm: QueueManager) -> QueueManager:
    answers = run(qm, *SCRIPT.strip().splitlines()[:3])
    assert [(one.outcome, one.number) for one in answers] == [
        ("done", "AMQ8010I"), ("done", "AMQ8010I"), ("done", "AMQ8011I")
    ]  # fmt: skip
    return qm


def run(qm: QueueManager | None, *commands: str) -> list[Answer]:
    return list(run_script(commands, qm))


def test_a_script_defines_processes_with_the_fields_of_trigger_messages(defined: QueueManager) -> None:
    serve, other = defined.admin.process("SERVE"), defined.admin.process("OTHER")
    assert (serve.application_id, serve.environment_data) == ("python serve.py", "> serve.log &")
    assert (serve.user_data, serve.application_type, serve.description) == ("--fast", 6, "Serves orders")
    assert (other.application_id, other.user_data, other.application_type) == ("python serve.py", "", 11)
    assert other.description == "On the other machine"


def test_a_process_is_displayed_with_mqs_keywords_in_their_order(defined: QueueManager) -> None:
    (answer,) = run(defined, "DISPLAY PROCESS(SERVE)")
    (row,) = answer.rows
    assert (answer.number, answer.text) == ("AMQ8407I", "Display Process details.")
    assert list(row) == ["PROCESS", "ALTDATE", "ALTTIME", "APPLICID", "APPLTYPE", "DESCR", "ENVRDATA", "USERDATA"]
    assert (row["APPLTYPE"], row["APPLICID"]) == ("UNIX", "python serve.py")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", str(row["ALTDATE"]))
    assert re.fullmatch(r"\d\d\.\d\d\.\d\d", str(row["ALTTIME"]))
    (answer,) = run(defined, "DIS PRO(SERVE) USERDATA")
    assert answer.rows == ({"PROCESS": "SERVE", "USERDATA": "--fast"},)


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("APPLTYPE EQ 6", ["SERVE"]),
        ("APPLTYPE NE DEF", ["OTHER"]),
        ("APPLICID LK 'python*'", ["OTHER", "SERVE"]),
        ("USERDATA EQ ' '", ["OTHER"]),
    ],
)
def test_where_selects_processes(defined: QueueManager, where: str, found: list[str]) -> None:
    (answer,) = run(defined, f"DISPLAY PROCESS(*) WHERE({where})")
    assert [row["PROCESS"] for row in answer.rows if row["PROCESS"] != SYSTEM_PROCESS.name] == found


def test_replace_resets_attributes_that_are_not_given_to_their_defaults(defined: QueueManager) -> None:
    (refused,) = run(defined, "DEFINE PROCESS(SERVE) APPLICID(NEW)")
    assert (refused.outcome, refused.number) == ("refused", "AMQ8150E")
    (replaced,) = run(defined, "DEFINE PROCESS(SERVE) APPLICID(NEW) REPLACE")
    assert (replaced.outcome, replaced.text) == ("done", "Process SERVE replaced.")
    serve = defined.admin.process("SERVE")
    assert (serve.application_id, serve.user_data, serve.description) == ("NEW", "", "")


def test_a_missing_process_is_reported_with_mqs_message_number(defined: QueueManager) -> None:
    answers = run(
        defined, "DELETE PROCESS(SERVE)", "DELETE PROCESS(SERVE)", "ALTER PRO(SERVE) DESCR(X)", "DIS PRO(SERVE)",
        "DIS PRO(SE*)", "DEFINE PROCESS(NEW) LIKE(SERVE)",
    )  # fmt: skip
    assert [one.number for one in answers] == ["AMQ8012I", *["AMQ8147E"] * 5]


def test_an_export_defines_the_same_processes(defined: QueueManager) -> None:
    defined.admin.create_process("ODD", application_id="it's 'quoted'", application_type=77)
    script = [line for one in defined.admin.processes() for line in export_process(one).split("\n")]
    with connect() as other:
        for _ in range(2):  # the script says REPLACE
            assert [one.text for one in run_script(script, other) if one.outcome != "done"] == []
        assert other.admin.processes() == defined.admin.processes()
