"""Dead letters, held messages, MQSC and lists of the console; no page changes anything when it is viewed."""

from __future__ import annotations

import html
import os
import re
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

import apsw
import httpx
import psycopg
import pytest
from tests.helpers.support import bodies_at
from tests.server.conftest import Everybody, Served, on_both, serving, with_role
from tests.server.test_console_acting import HOSTILE, acts, send

import inorder
from inorder import Match, QueueManager, Report
from inorder.client.bulk import ClaimReader, Stager
from inorder.mq import channels
from inorder.server import Identity
from inorder.server.console import dead as dead_letters
from inorder.server.console import labels
from inorder.server.console.console import PAGES
from inorder.server.console.listing import uid_text
from inorder.stores.seam.tables import Branch

TIME = re.compile(r'<time datetime="([^"]*)">(\d[^<]*)</time>')
WITHOUT_ZONE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?! UTC)")
OF_CONNECTIONS = frozenset({"process", "connection", "handle", "wait", "sqlite_sequence"})
OF_EACH_MINUTE = "sample"  # the server adds to it by itself


def rows(store: Path | str) -> dict[str, list[tuple[object, ...]]]:
    """All rows of a store, except those of connections and the samples of depths."""
    if isinstance(store, str):
        return rows_on_server(store)
    with_names = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    db = apsw.Connection(str(store), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        names = [name for (name,) in db.execute(with_names) if name not in {*OF_CONNECTIONS, OF_EACH_MINUTE}]
        return {name: sorted(db.execute(f"SELECT * FROM {name}"), key=repr) for name in names}
    finally:
        db.close()


def rows_on_server(url: str) -> dict[str, list[tuple[object, ...]]]:
    """The same for a store on a server, where waiting calls and numbers drawn ahead belong to connections, too."""
    schema = url.rpartition("schema=")[2]
    with psycopg.connect(url.partition("?")[0]) as db:
        tables = db.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)).fetchall()
        names = [name for (name,) in tables if name not in {*OF_CONNECTIONS, OF_EACH_MINUTE, "listener", "run"}]
        return {name: sorted(db.execute(f'SELECT * FROM {schema}."{name}"').fetchall(), key=repr) for name in names}


@pytest.fixture
def dead(served: Served) -> Served:
    """Two reports that found REPORTS full, and one for a queue that does not exist."""
    with inorder.connect(served.store) as qm:
        qm.create_queue("REPORTS", max_depth=1)
        qm.create_queue("DEAD")
        qm.admin.alter_manager(dead_letter_queue="DEAD")
        qm.put("REPORTS", b"in the way")
        for body, reply_to in ((b"one", "REPORTS"), (b"two", "REPORTS"), (b"three", "GONE")):
            qm.put("Q1", body, report=Report.COA_WITH_FULL_DATA, reply_to_queue=reply_to)
    return served


def letters(served: Served) -> list[str]:
    with inorder.connect(served.store) as qm:
        return [uid_text(one.message.uid) for one in qm.dead.letters() if one.message.uid]


async def test_dead_letters_are_listed_with_reason_and_target(client: httpx.AsyncClient, dead: Served) -> None:
    page = (await client.get("/console/dead")).text
    assert page.count("Q_FULL") == 2
    assert "UNKNOWN_OBJECT_NAME" in page
    assert "GONE" in page
    assert "UNKNOWN_OBJECT_NAME" not in (await client.get("/console/dead?reason=2053")).text
    assert "Q_FULL" not in (await client.get("/console/dead?queue=GONE")).text
    assert "dlh." in (await client.get("/console/dead", params={"selector": "dlh.reason ="})).text


@on_both
async def test_chosen_dead_letters_are_replayed_and_those_that_stay_are_reported(
    client: httpx.AsyncClient, qm: QueueManager, dead: Served
) -> None:
    first, second, third = letters(dead)
    qm.alter_queue("REPORTS", max_depth=2)
    review = await send(client, "dead", action="replay", uid=[first, second])
    assert "Replay 2 dead letters?" in review.text
    assert len(letters(dead)) == 3
    done = await send(client, "dead", action="replay", uid=[first, second], step="do")
    assert done.status_code == 200
    assert "1 dead letter replayed" in done.text
    assert "1 of the chosen messages could not be replayed and is unchanged" in done.text
    assert "could not be acted on" not in done.text
    assert "2053" in done.text
    assert f'name="uid" value="{second} "' in done.text, "it can be replayed again from there"
    moved = await send(client, "dead", action="replay", uid=third, target="Q1", step="do")
    assert moved.headers["location"] == "/console/dead"
    assert letters(dead) == [second]
    assert bodies_at(dead.store, "REPORTS") == [b"in the way", b"one"]
    assert bodies_at(dead.store, "Q1")[-1] == b"three"
    assert [one[1:] for one in acts(dead)] == [("replay", "DEAD", "done", 1)] * 2


def ticked(page: httpx.Response) -> list[str]:
    """The dead letters whose boxes are ticked."""
    boxes = re.findall(r'<input type="checkbox"[^>]* name="uid" value="([^"]*)"[^>]* checked>', page.text)
    return [uid for box in boxes for uid in html.unescape(box).split()]


@pytest.mark.parametrize("step", ["", "do"])
@pytest.mark.parametrize(
    ("target", "status", "said"),
    [("REPORT", 404, "did you mean REPORTS?"), ("NOPE", 404, "NOPE"), ("DEAD", 400, "a queue other than DEAD")],
)
async def test_a_replay_to_an_impossible_target_is_refused_before_the_review(
    client: httpx.AsyncClient, dead: Served, target: str, status: int, said: str, step: str
) -> None:
    first, *_ = letters(dead)
    refused = await send(client, "dead", action="replay", uid=first, target=target, step=step)
    assert refused.status_code == status
    assert said in html.unescape(refused.text)
    assert "Replay 1 dead letter" not in refused.text
    assert len(letters(dead)) == 3
    assert acts(dead) == []


@serving(Everybody(Identity(
    name="clerk", roles=frozenset({"application"}),
    queues={"DEAD": ["get", "browse"], "REPORT": ["put"], "GONE": ["put"]},
)))  # fmt: skip
async def test_a_refused_replay_names_no_queue_that_the_visitor_may_not_see(
    client: httpx.AsyncClient, qm: QueueManager, dead: Served
) -> None:
    qm.create_queue("GONE1")
    first, _, third = letters(dead)
    for uid, target, asked in ((first, "REPORT", "REPORT"), (third, "", "GONE")):
        refused = await send(client, "dead", action="replay", uid=uid, target=target, step="do")
        assert f"there is no queue '{asked}'" in html.unescape(refused.text)
        assert "did you mean" not in refused.text


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"action": "replay", "target": "NOPE"}, 404),
        ({"action": "replay", "target": "Q1", "step": "do"}, 403),
        ({"action": "discard", "step": "do", "typed": "DEAD"}, 409),
    ],
)
def test_chosen_dead_letters_stay_chosen_when_an_act_is_refused(
    dead: Served, monkeypatch: pytest.MonkeyPatch, fields: dict[str, str], status: int, qm: QueueManager
) -> None:
    first, second, third = letters(dead)
    monkeypatch.setattr(dead_letters, "LISTED", 2)
    qm.alter_queue("DEAD", get_allowed=fields["action"] != "discard")

    async def work(client: httpx.AsyncClient) -> None:
        refused = await send(client, "dead", uid=[second, third], **fields)
        assert refused.status_code == status
        assert sorted(ticked(refused)) == sorted([second, third])
        others = "2" if fields["action"] == "discard" else "1"  # a queue without gets cannot be listed
        assert f"{others} chosen but not in this list" in refused.text
        if "target" in fields:
            assert f'name="target" value="{fields["target"]}"' in refused.text
        filtered = await send(client, "dead?queue=GONE", uid=third, **fields)
        assert ticked(filtered) == [third]
        assert first not in filtered.text, "the filter is as it was"

    verbs = ("get", "clear", "browse")
    user = Identity(name="ann", roles=frozenset({"application"}), queues={"DEAD": verbs, "NOPE": ("put",)})
    dead.run(work, Everybody(user))
    qm.alter_queue("DEAD", get_allowed=True)
    assert len(letters(dead)) == 3


async def test_a_discard_needs_the_typed_name_and_removes_only_the_chosen_letters(
    client: httpx.AsyncClient, dead: Served
) -> None:
    first, second, third = letters(dead)
    for typed in ("", "dead"):
        refused = await send(client, "dead", action="discard", uid=[first, third], step="do", typed=typed)
        assert refused.status_code == 422
    assert len(letters(dead)) == 3
    done = await send(client, "dead", action="discard", uid=[first, third], step="do", typed="DEAD")
    assert done.status_code == 303
    assert (await send(client, "dead", action="discard")).status_code == 400
    assert (await send(client, "dead", action="bury", uid=second)).status_code == 400
    assert letters(dead) == [second]
    assert acts(dead) == [("launch-token", "discard", "DEAD", "done", 2)]


async def test_without_a_named_dead_letter_queue_the_page_shows_that_of_the_system(
    qm: QueueManager, client: httpx.AsyncClient
) -> None:
    assert "There are no dead letters" in (await client.get("/console/dead")).text
    qm.put("Q1", b"m1")
    with qm.unit_of_work():
        qm.dead.add(qm.get("Q1"), queue="Q1", error="torn")
    page = (await client.get("/console/dead")).text
    assert "SYSTEM.DEAD.LETTER.QUEUE" in page
    assert "torn" in page
    assert "1 message could not be delivered" in (await client.get("/console/")).text


@on_both
async def test_units_are_committed_and_backed_out_by_their_names(
    served: Served, qm: QueueManager, client: httpx.AsyncClient
) -> None:
    for name in ("monday", "a/b"):
        qm.put("Q1", name.encode(), syncpoint=True)
        qm.prepare(name)
    qm.put("Q1", b"held", confirm_id=7)
    with qm.open("Q1", output=True) as handle:
        Stager(handle, "batch", lasts=600).stage(1, {"body": [b"staged"]})
    lease = qm.lease(seconds=600)
    name = next(one.name for one in qm.inspect.units() if one.kind == "lease")
    ends = [
        ("prepared:monday", "commit"),
        ("prepared:a/b", "back_out"),
        ("confirm:Q1:7", "back_out"),
        ("staging:batch", "back_out"),
        (f"lease:{name}", "back_out"),
    ]

    page = (await client.get("/console/held")).text
    for key, outcome in ends:
        assert html.escape(key) in page
        path = f"held/unit/{quote(key, safe='')}"
        assert key in html.unescape((await client.get(f"/console/{path}")).text)
        for typed in ("", key.upper()):
            refused = await send(client, path, outcome=outcome, typed=typed)
            assert refused.status_code == 422, key
        done = await send(client, path, outcome=outcome, typed=key)
        assert (done.status_code, done.headers["location"]) == (303, "/console/held"), key
        assert (await send(client, path, outcome=outcome, typed=key)).status_code == 404, "it is settled"
    assert qm.inspect.units() == []
    assert bodies_at(served.store, "Q1") == [b"monday"]
    assert [one[1] for one in reversed(acts(served))] == [f"{end.replace('_', ' ')} {key}" for key, end in ends]
    with pytest.raises(inorder.errors.LeaseOver):
        lease.extend(1)


async def test_a_unit_in_doubt_is_shown_with_its_owners_and_its_part_with_a_warning(
    qm: QueueManager, client: httpx.AsyncClient
) -> None:
    name = qm._store.begin_global(qm.internals.owner, [Branch("TO.PARIS", "PARIS"), Branch("TO.ROME", "ROME")])
    assert "undecided at PARIS, ROME" in (await client.get("/console/held")).text
    qm._store.settle(qm.internals.owner, "back_out", decides=name)
    qm._store.end_global(name, ["TO.PARIS"])
    assert "back out at ROME" in (await client.get("/console/held")).text
    page = (await client.get(f"/console/held/unit/{quote(f'global:{name}', safe='')}")).text
    assert "<dt>Not settled at</dt><dd>ROME</dd>" in page
    assert "inorder unit settle" in page
    assert 'name="outcome"' not in page
    qm.put("Q1", b"1", syncpoint=True)
    qm.prepare(f"{name}/HERE")
    part = f"held/unit/{quote(f'prepared:{name}/HERE', safe='')}"
    assert "it is half committed" in (await client.get(f"/console/{part}")).text


async def test_a_unit_of_work_of_a_connection_cannot_be_ended_by_another(
    served: Served, qm: QueueManager, client: httpx.AsyncClient
) -> None:
    qm.put("Q1", b"1", syncpoint=True)
    (unit,) = qm.inspect.units()
    key = f"session:{unit.connection}"

    page = (await client.get(f"/console/held/unit/{key}")).text
    assert "only its own connection" in page
    assert 'name="outcome"' not in page
    refused = await send(client, f"held/unit/{key}", outcome="back_out", typed=key)
    assert refused.status_code == 409
    assert "only its own connection" in refused.text
    assert (await send(client, f"held/unit/{key}", outcome="burn", typed=key)).status_code == 400
    assert len(qm.inspect.units()) == 1
    assert [one[3] for one in acts(served)] == ["failed"]


@on_both
async def test_a_lock_id_is_released_by_its_name(served: Served, qm: QueueManager, client: httpx.AsyncClient) -> None:
    qm.put_many("Q1", [b"1", b"2"])
    lock_id = qm.browse_and_lock("Q1", Match()).lock_id
    path = f"held/lock/Q1/{lock_id}"

    assert "lock id" in (await client.get("/console/held")).text
    assert "Unlock 2 messages" in (await client.get(f"/console/{path}")).text
    assert (await send(client, path, typed="Q1")).status_code == 422
    assert len(qm.inspect.locks()) == 1
    assert (await send(client, path, typed=f"lock:Q1:{lock_id}")).status_code == 303
    assert (await client.get(f"/console/{path}")).status_code == 404
    assert qm.inspect.locks() == []
    assert acts(served) == [("launch-token", "release lock", "Q1", "done", 2)]


@on_both
async def test_claims_are_released_by_the_name_of_their_application(
    client: httpx.AsyncClient, served: Served, qm: QueueManager
) -> None:
    qm.put_many("Q1", [b"1", b"2"])
    with qm.open("Q1", input="shared") as handle:
        reader = ClaimReader(handle, "spark")
        reader.claim(reader.begin().settled, most=2)
        assert "spark" in (await client.get("/console/held")).text
        path = "held/claim/Q1/spark"
        assert "Return 2 messages" in (await client.get(f"/console/{path}")).text
        assert (await send(client, path, action="release", typed="")).status_code == 422
        assert (await send(client, path, action="burn", typed="spark")).status_code == 400
        assert (await send(client, path, action="release", typed="spark")).status_code == 303
        assert (await send(client, path, action="leave", typed="spark")).status_code == 303
        missing = await client.get("/console/held/claim/Q1/nobody")
        assert missing.status_code == 404
        assert "INWB0017E" in missing.text
        assert "nobody has not read any messages in claims on Q1" in missing.text
    assert bodies_at(served.store, "Q1") == [b"1", b"2"]
    found = [one[1:] for one in acts(served)]
    assert found == [("leave group", "Q1", "done", 0), ("release claims", "Q1", "done", 2)]


def table_below(page: str, heading: str) -> str:
    """The text of the table below a heading, without its tags."""
    below = page.partition(f"<h2>{heading}</h2>")[2].partition("</table>")[0]
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", below)).split())


@on_both
async def test_connected_programs_are_shown_with_the_queues_they_have_open(
    client: httpx.AsyncClient, qm: QueueManager
) -> None:
    other = qm.connect(program="inorder work <b>shop</b>")
    other.put("Q1", b"1")
    with qm.open("Q1", input="exclusive"), other.unit_of_work():
        other.put("Q1", b"2")
        page = (await client.get("/console/held")).text
        assert "<b>shop</b>" not in page
        table = table_below(page, "Workers and programs")
        assert "inorder work <b>shop</b> worker" in table
        assert "inorder serve this server" in table
        assert "get exclusive" in table
        assert str(os.getpid()) in table
        queue = (await client.get("/console/queue/Q1")).text
        who = html.unescape(re.sub(r"<[^>]*>", " ", queue.partition('id="opened"')[2].partition("</details>")[0]))
        assert " ".join(who.split()).startswith("> Programs that have it open 2")
        assert "get exclusive" in who
    other.close()
    qm.close_queue("Q1")
    assert 'id="opened"' not in (await client.get("/console/queue/Q1")).text


@serving(with_role("reader"))
async def test_a_reader_sees_held_units_and_cannot_settle_them(qm: QueueManager, client: httpx.AsyncClient) -> None:
    qm.put("Q1", b"1", syncpoint=True)
    qm.prepare("monday")

    page = (await client.get("/console/held/unit/prepared:monday")).text
    assert "Settle by hand" not in page
    refused = await send(client, "held/unit/prepared:monday", outcome="commit", typed="prepared:monday")
    assert refused.status_code == 403
    assert (await client.get("/console/users")).status_code == 403
    assert (await client.get("/console/log")).status_code == 403
    menu = (await client.get("/console/")).text
    assert "Held" in menu
    assert "/console/users" not in menu
    assert len(qm.inspect.units()) == 1


@serving(with_role("operator"))
async def test_an_operator_settles_units_of_others_and_is_named_in_the_log(
    client: httpx.AsyncClient, served: Served, qm: QueueManager
) -> None:
    qm.put("Q1", b"1", syncpoint=True)
    qm.prepare("monday")
    qm.close_queue("Q1")  # a queue that is open cannot be cleared
    done = await send(client, "held/unit/prepared:monday", outcome="commit", typed="prepared:monday")
    assert done.status_code == 303
    assert (await client.get("/console/log")).status_code == 403
    assert (await send(client, "mqsc", command="DEFINE QLOCAL(NEW)")).status_code == 403
    assert (await send(client, "mqsc", command="CLEAR QLOCAL(Q1)", typed="Q1")).status_code == 200
    assert [one[:3] for one in acts(served)] == [("mqadmin", "clear", "Q1"), ("mqadmin", "commit prepared:monday", "")]


GRANTS = {"Q1": ("get", "browse"), "Q3": ("put",)}


@serving(Everybody(Identity(name="mqadmin", roles=frozenset({"application"}), queues=GRANTS)))
async def test_a_grant_is_valid_only_for_its_queue_and_verb(
    client: httpx.AsyncClient, qm: QueueManager, served: Served
) -> None:
    qm.create_queue("Q2")
    qm.create_queue("Q3")
    uid = uid_text(qm.put("Q1", b"1").uid)
    held = uid_text(qm.put("Q1", b"2", confirm_id=7).uid)
    review = await send(client, "queue/Q1/act", action="move", uid=held, target="Q3")
    assert "is not available now" in review.text
    assert "confirm" not in review.text.replace("to confirm", ""), "who may not display does not see who holds it"
    for fields in ({"action": "move", "target": "Q2"}, {"action": "copy", "target": "Q2"}, {"action": "delete"}):
        refused = await send(client, "queue/Q1/act", uid=uid, step="do", typed="Q1", **fields)
        assert refused.status_code == 403, fields
    assert (await client.get("/console/queue/Q1/export?form=jsonl")).status_code == 200
    for path in ("queue/Q2/export?form=jsonl", "queue/Q2/act", "queue/Q1/put", "held", "mqsc"):
        assert (await client.get(f"/console/{path}")).status_code == 403, path
    assert bodies_at(served.store, "Q1") == [b"1"]


async def test_a_command_is_answered_as_by_runmqsc_and_kept_on_the_page(
    client: httpx.AsyncClient, qm: QueueManager
) -> None:
    shown = await send(client, "mqsc", command="DISPLAY QLOCAL(Q1) MAXDEPTH")
    assert "AMQ8409I" in shown.text
    assert "QUEUE(Q1)" in shown.text
    made = await send(client, "mqsc", command="define qlocal(NEW) +\n descr('x')", earlier="DISPLAY QLOCAL(Q1)")
    assert made.status_code == 200
    assert "AMQ8006I" in made.text
    assert "DISPLAY QLOCAL(Q1)" in made.text
    recalled = await send(client, "mqsc", command="half", recall="CLEAR QLOCAL(Q1)", earlier="DISPLAY QLOCAL(Q1)")
    assert ">\nCLEAR QLOCAL(Q1)</textarea>" in recalled.text
    assert "DISPLAY QLOCAL(Q1)" in recalled.text
    wrong = await send(client, "mqsc", command="FROBNICATE")
    assert wrong.status_code == 422
    assert "AMQ8405I" in wrong.text
    assert ">\nFROBNICATE</textarea>" in wrong.text, "it is there to be corrected"
    assert qm.attributes("NEW").description == "x"


@pytest.mark.parametrize(
    "command", ["CLEAR QLOCAL(Q1)", "DELETE QLOCAL(Q1) PURGE", "DEFINE QLOCAL(Q1) REPLACE MAXDEPTH(1)"]
)
async def test_a_destructive_command_asks_for_the_name_of_the_queue(
    client: httpx.AsyncClient, qm: QueueManager, served: Served, command: str
) -> None:
    qm.put("Q1", b"1")
    qm.close_queue("Q1")  # a queue that is open cannot be cleared
    await client.get("/console/mqsc")
    before = rows(served.store)
    asked = await send(client, "mqsc", command=command)
    assert asked.status_code == 200
    assert 'name="typed"' in asked.text
    assert (await send(client, "mqsc", command=command, typed="q1")).status_code == 422
    assert rows(served.store) == before
    done = await send(client, "mqsc", command=command, typed="Q1")
    assert done.status_code == 200
    assert re.search("AMQ80(22|07|06)I", done.text)
    assert rows(served.store) != before


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("", "Give a command."),
        ("DISPLAY QMGR\nDISPLAY QMGR", "Give one command at a time, not 2."),
        ("DISPLAY QMGR" + " " * 10 + "x" * 69_978, "at most 32,768 characters, with all its lines, not 70,000."),
    ],
)
async def test_only_one_command_of_limited_length_is_accepted(
    client: httpx.AsyncClient, command: str, said: str
) -> None:
    refused = await send(client, "mqsc", command=command)
    assert refused.status_code == 422
    assert said in refused.text


async def test_channels_users_and_acts_are_listed_without_secrets(client: httpx.AsyncClient, qm: QueueManager) -> None:
    qm.create_queue("X", usage="transmission")
    channels.define_channel(qm, "TO.B", transmission_queue="X", connection="postgresql://u:secret@h/db")
    qm.accounts.create_user("ann", roles=("application",), queues={"A.*": ["put"]}, description=HOSTILE)
    token = qm.accounts.create_token("ann", "nightly")
    with qm.accounts.acting("clear", "Q1", user="ann", address="127.0.0.1") as note:
        note.messages = 12_345
    channel = (await client.get("/console/channels")).text
    assert "TO.B" in channel
    assert "secret" not in channel
    assert 'class="sites"' in channel
    users = (await client.get("/console/users")).text
    assert "ann" in users
    assert "1 token" in users
    assert "A.*" in users
    assert token.partition(".")[2] not in users
    assert "<script>alert" not in users
    assert "12,345" in (await client.get("/console/log")).text
    assert "12,345" not in (await client.get("/console/log?user=bob")).text


def full(store: Path | str) -> inorder.QueueManager:
    """A store with things of every kind, many of them named like markup; the connection holds some of them."""
    qm = inorder.connect(store, program=HOSTILE)
    qm.create_queue("DEAD")
    qm.admin.alter_manager(dead_letter_queue="DEAD")
    qm.alter_queue("Q1", description=HOSTILE)
    hostile = f"{HOSTILE}\x1b[31m\u202e".encode()
    qm.put("Q1", hostile, group_id=b"<script>", format="<script>", properties={"p": HOSTILE})
    qm.put_many("Q1", [b"2", b"3", b"4"])
    qm.put("Q1", b"to nowhere", report=Report.COA, reply_to_queue="GONE")
    qm.browse_and_lock("Q1", Match(message_id=next(qm.browse("Q1")).message_id))
    with qm.open("Q1", input="shared") as handle:
        reader = ClaimReader(handle, HOSTILE)
        reader.claim(reader.begin().settled, most=1)
    qm.put("Q1", b"held", confirm_id=7)
    qm.put("Q1", b"prepared", syncpoint=True)
    qm.prepare(HOSTILE)
    qm.lease(seconds=6000)
    with qm.open("Q1", output=True) as handle:
        Stager(handle, "batch", lasts=6000).stage(1, {"body": [b"staged"]})
    with qm.unit_of_work(), qm.group("Q1") as group:
        group.put(b"1", properties={"colour": HOSTILE})
        group.put(b"2")
    qm.accounts.create_user("ann", description=HOSTILE)
    qm.create_queue("X", usage="transmission")
    channels.define_channel(qm, "TO.B", transmission_queue="X", connection="b.db")
    with qm.accounts.acting("clear", "Q1", user="ann"):
        return qm


@on_both
async def test_no_get_request_changes_a_row_and_no_name_is_shown_as_markup(
    client: httpx.AsyncClient, served: Served
) -> None:
    """Visits all pages and everything that they link to. Each time that a page shows names its zone."""
    holder = full(served.store)
    seen, with_times = set[str](), set[str]()
    await client.get("/console/")  # so that the server is connected
    before = rows(served.store)
    places = ["/console/", *(f"/console/{one.path}" for one in PAGES if "{" not in one.path)]
    places += [f"/console/queue/Q1/export?form={form}" for form in ("jsonl", "parquet", "dmpmqmsg-bare")]
    columns = ("group", "state", "body", "properties", "format", "id")
    places += [f"/console/queue/Q1?{'&'.join(f'show={name}' for name in columns)}"]
    places += ["/console/queue/Q1/act?action=delete&selector=", "/console/queue/Q1/put?step=do&typed=Q1"]
    while places:
        place = places.pop()
        if place in seen or place.startswith("/console/static/") or place == "/console/live":
            continue
        seen.add(place)
        answer = await client.get(place)
        assert answer.status_code in (200, 400), place
        if "text/html" in answer.headers["content-type"]:
            for shown in ("<script>", "\x1b", "\u202e"):
                assert shown not in answer.text, place
            assert not WITHOUT_ZONE.search(answer.text), place
            for machine, people in TIME.findall(answer.text):
                assert people == labels.clock(datetime.fromisoformat(machine.replace("Z", "+00:00")).timestamp()), place
                with_times.add(place.removeprefix("/console/").partition("/")[0])
            links = re.findall(r'(?:href|hx-get|formaction)="(/console/[^"#]*)', answer.text)
            places += [html.unescape(link) for link in links]
        assert rows(served.store) == before, place
    for path in (one.path for one in PAGES if one.path != "live"):
        pattern = "/console/" + re.sub(r"\{\w+\}", "[^/?]+", path) + r"(\?.*)?"
        assert any(re.fullmatch(pattern, place) for place in seen), f"no page links to {path}"
    assert {"queue", "held", "dead", "log"} <= with_times
    holder.close()
