"""What a new field costs: a line of the table, one of the keywords, and a column. All doors have it then."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from tests.tiers import ON_BOTH, gate

import inorder
from inorder.stores.postgresql import drop, parse

SOURCE = Path(inorder.__file__).parent
ROW = """
    campaign = Field(
        "(campaign)",
        "",
        "The campaign that it belongs to.",
        text(16),
        since="0.2.0",
        form=("Campaign", "16 characters"),
        option=Option("NAME", "The campaign that it belongs to."),
    )

"""
COLUMNS = {
    "sqlite": ("    body BLOB NOT NULL\n", "    campaign TEXT NOT NULL DEFAULT ''\n"),
    "postgresql": ("    body bytea NOT NULL\n", "    campaign text COLLATE \"C\" NOT NULL DEFAULT ''\n"),
}
DOORS = """
import sys

import inorder
from inorder import GetOptions, Match, Message
from inorder.arrow.columns import COLUMNS
from inorder.arrow.pages import Origin, batches
from inorder.cli import main
from inorder.client.bulk import BulkBrowser, ClaimReader, LedgerKey, Stager
from inorder.errors import ArgumentError
from inorder.formats import FormatError, dmpmqmsg
from inorder.formats.json_lines import lines_of, message_of
from inorder.mq.channels.sides import messages_of
from inorder.server.api.schemas import SCHEMAS
from inorder.server.console.putting import FIELDS
from inorder.server.console.putting import message_of as of_form

with inorder.connect(sys.argv[1]) as qm:
    def got(**options):
        return qm.get("Q", **options).campaign

    qm.create_queue("Q")
    for way in ({}, {"logical": True}, {"match": Match(campaign="spring")}, {"selector": "Root.MQMD.Priority = 0"}):
        qm.put("Q", b"", campaign="spring")
        qm.put("Q", Message(b"", campaign="autumn"))
        qm.put("Q", b"")
        assert got(**way) == "spring", way
        assert [one.campaign for one in qm.browse("Q")] == ["autumn", ""]
        assert [one.campaign for one in qm.get_many("Q", 9)] == ["autumn", ""]
    with qm.unit_of_work(), qm.group("Q") as group:
        group.put(b"1", campaign="spring")
        group.put(b"2")
    with qm.open("Q", input="shared", browse=True, output=True) as queue:
        assert queue.get(logical=True).campaign == "spring"  # the group that is read now is kept with its head
        assert queue.get(logical=True).campaign == ""
        stager = Stager(queue, "rows", lasts=60.0)
        stager.stage(2, {"body": [b"1", b"2"], "campaign": ["spring", None]})
        qm.settle_staging(LedgerKey("app", "", "1"), [stager.staged])
        browser = BulkBrowser(queue)
        (stretch,) = browser.survey(GetOptions()).stretches
        (batch,) = batches(browser.read(stretch), Origin("Q", None, 0))
        assert batch.column("campaign").to_pylist() == ["spring", ""]
        reader = ClaimReader(queue, "app")
        reader.begin()
        claim = reader.claim(0, GetOptions())
        (part,) = reader.plan(0, 1, 1)
        (page,) = reader.read(part)
        assert [one.campaign for one in messages_of(page, 0.0)] == ["spring", ""]
        reader.settle(1)
    assert "campaign" in COLUMNS
    made = message_of(lines_of([Message(b"", campaign="spring")]), "line 1")
    assert made.campaign == "spring"
    try:
        list(dmpmqmsg.write([made.replace(expiry=1)], sys.stdout.buffer, goes_on=True))
    except FormatError as error:
        assert "campaign: there is no code for it, so 'spring' cannot be written" in str(error)
    else:
        raise AssertionError("it was left out")
    assert SCHEMAS["Message"]["properties"]["campaign"]["type"] == "string"
    assert of_form({"body": "", "campaign": "spring"}).campaign == "spring"
    assert "campaign" in FIELDS
    try:
        Message(b"", campaign="x" * 17)
    except ArgumentError as error:
        assert "campaign must be a text of at most 16 characters" in str(error)
    if sys.argv[1] != ":memory:":
        assert main(["put", "Q", "body", "--campaign", "spring", "--store", sys.argv[1]]) == 0
        assert got() == "spring"
        assert qm.check() == []
"""
SCENARIO = """
scenario: a message says to which campaign it belongs
qm queue Q                          -> ok
P put m1 campaign=spring            -> ok
P stage rows m2 campaign=autumn     -> ok
P settle-staging 1 rows             -> 1
B browse first                      -> m1 campaign=spring
C get                               -> m1 campaign=spring
C get                               -> m2 campaign=autumn
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as it is with one more field."""
    folder = tmp_path_factory.mktemp("source")
    made = folder / "inorder"
    shutil.copytree(SOURCE, made, ignore=shutil.ignore_patterns("__pycache__"))
    table = made / "model" / "fields.py"
    text = table.read_text(encoding="utf-8")
    for end, line in (("\n\nclass Descriptor", ROW), ("\n\nGIVEN: Final", "    campaign: str\n")):
        before, found, after = text.partition(end)
        assert found, end
        text = before.rstrip("\n") + "\n" + line.lstrip("\n") + found + after
    table.write_text(text, encoding="utf-8")
    for kind, (last, column) in COLUMNS.items():
        schema = made / "stores" / kind / "schema.sql"
        text = schema.read_text(encoding="utf-8")
        assert text.count(last) == 1
        schema.write_text(text.replace(last, f"{last.rstrip()},\n{column}"), encoding="utf-8")
    return folder


def run(source: Path, *words: str) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(source), *sys.path])}
    ended = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@gate
@pytest.mark.parametrize("kind", [*ON_BOTH, "memory"])
def test_a_line_and_a_column_are_a_field_at_every_door(
    source: Path, tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    if kind != "postgresql":
        run(source, "-c", DOORS, {"sqlite": str(tmp_path / "store.db"), "memory": ":memory:"}[kind])
        return
    url = f"{request.getfixturevalue('postgresql')}?schema=campaign_{uuid.uuid4().hex}"
    try:
        run(source, "-c", DOORS, url)
    finally:
        drop(parse(url))


@gate
def test_a_scenario_says_it(source: Path, tmp_path: Path) -> None:
    table = tmp_path / "campaign.txt"
    table.write_text(SCENARIO, encoding="utf-8")
    run(source, "-m", "inorder.testing", str(table), "--store", "sqlite")
