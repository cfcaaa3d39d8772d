"""The page for users of IBM MQ: its scripts run, and its tables are complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import inorder
from inorder import Message, Reason, errors
from inorder.model.attribute import Attribute
from inorder.model.attributes import MANAGER_ATTRIBUTES, QUEUE_ATTRIBUTES, QueueStatus
from inorder.model.options import GetKeywords, OpenOptions, PutKeywords
from inorder.mq.mqsc import run_script
from inorder.mq.mqsc.connecting import CONNECTION, HANDLE, STATUS
from inorder.mq.mqsc.words import is_switch

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/how-to/from-ibm-mq.md"
BLOCK = re.compile(r"^```mqsc\n(.*?)^```", re.MULTILINE | re.DOTALL)
SCRIPTS = {
    page: found for page in sorted(ROOT.glob("docs/**/*.md")) if (found := BLOCK.findall(page.read_text("utf-8")))
}
TEXT = PAGE.read_text(encoding="utf-8")
ATTRIBUTES = TEXT.partition("## Attributes")[2].partition("## MQSC")[0]
OF_THE_QUEUE, _, OF_THE_MANAGER = ATTRIBUTES.partition("attributes of the queue m")


def cells(text: str) -> list[list[str]]:
    """The cells of each row of the tables in a text, with their Markdown."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


@pytest.mark.parametrize("page", SCRIPTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_scripts_of_a_page_run_one_after_the_other(page: Path) -> None:
    with inorder.connect() as qm:
        for script in SCRIPTS[page]:
            failed = [answer.text for answer in run_script(script.splitlines(), qm) if answer.outcome != "done"]
            assert not failed


@pytest.mark.parametrize(
    ("table", "text"),
    [(QUEUE_ATTRIBUTES, OF_THE_QUEUE), (MANAGER_ATTRIBUTES, OF_THE_MANAGER)],
    ids=["queue", "manager"],
)
def test_the_tables_of_attributes_are_complete_and_correct(table: dict[str, Attribute], text: str) -> None:
    rows = {row[2].strip("`"): row for row in cells(text)}
    for name, attribute in table.items():
        assert name in rows, f"{PAGE.name} has no row for {name}"
        mq, mqsc = rows[name][0], rows[name][1].replace("\\|", "|")
        assert mq == (attribute.mq_name or "ours")
        assert re.search(rf"`{attribute.mqsc}\b", mqsc)
        assert not attribute.mqsc_words or f"`{attribute.mqsc}({'|'.join(attribute.mqsc_words)})`" in mqsc
        assert not is_switch(attribute) or f"NO{attribute.mqsc}`" in mqsc


def test_the_table_of_attributes_has_the_status_too() -> None:
    told = set(re.findall(r"`(\w+)`", " ".join(row[2] for row in cells(OF_THE_QUEUE))))
    assert told >= set(QueueStatus.__slots__)


def test_the_tables_of_connections_and_handles_are_complete() -> None:
    section = TEXT.partition("### Connections and handles")[2].partition("\nWHERE ")[0]
    told = set(re.findall(r"`([A-Z]+)`", " ".join(" ".join(row) for row in cells(section))))
    assert told == ({*CONNECTION, *HANDLE, *STATUS} - {"QUEUE"})
    for option in ("INPUT_SHARED", "INPUT_EXCLUSIVE", "BROWSE", "OUTPUT", "CO_OP"):
        assert f"MQOO_{option}" in section


def test_the_table_of_the_descriptor_is_complete_and_correct() -> None:
    section = TEXT.partition("## The message descriptor")[2].partition("\n## ")[0]
    told = {name: row[0] for row in cells(section) for name in re.findall(r"`(\w+)`", row[1])}
    assert told.keys() == Message.FIELDS.keys()
    ours = {"uid", "place", "earlier_pending", "warning"}
    assert {name: mq for name, mq in told.items() if name not in ours} == {
        name: field.mq_name for name, field in Message.FIELDS.items() if name not in ours
    }


def test_the_tables_of_options_name_every_option_but_our_own() -> None:
    section = TEXT.partition("## Options")[2].partition("\n## ")[0]
    ours = {"confirm_id", "lock_id", "uid", "resend", "read_order", "deduplicate", "deduplicate_for"}
    options = {*PutKeywords.__annotations__, *GetKeywords.__annotations__, *OpenOptions.__slots__} - ours
    missing = [name for name in options if not re.search(rf"\b{name}[=(]", section)]
    assert not missing


def test_the_reason_codes_on_the_page_are_correct() -> None:
    section = TEXT.partition("## Reason codes")[2].partition("\n## ")[0]
    numbered = re.findall(r"\b(2\d{3}) ([A-Z_]{4,})(?:\b|$)", section)
    named = re.findall(r"`([A-Z][a-z]+\w+)`", section)
    assert numbered
    assert named
    for number, name in numbered:
        assert Reason[name] == int(number)
    for name in named:
        assert hasattr(errors, name)
