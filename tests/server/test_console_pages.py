"""The pages of the console: warnings, both orders of a queue, holders and waiting programs, views of a message."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from contextlib import AsyncExitStack
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.helpers.support import put_group
from tests.server.conftest import AS_NOBODY, Served, Start, alive, on_both, serving, somebody
from tests.server.listening import listening
from tests.tiers import gate

import inorder
from inorder import Flags, QueueManager, Report
from inorder.client.inspection import MessageView
from inorder.client.unit_names import key_of
from inorder.errors import StoreError
from inorder.model.attributes import QUEUE_ATTRIBUTES
from inorder.mq import channels
from inorder.server.api.streaming import Streamed
from inorder.server.console.labels import field_name
from inorder.server.console.queue import LOOKED_MAX
from inorder.server.console.sites import Way, Ways, ways

IN, LAST, SEGMENT, END = Flags.IN_GROUP, Flags.LAST_IN_GROUP, Flags.SEGMENT, Flags.LAST_SEGMENT


def seen(served: Served, *places: str, status: int = 200) -> list[str]:
    """The HTML of these pages."""
    found: list[str] = []

    async def work(client: httpx.AsyncClient) -> None:
        for place in places:
            answer = await client.get(f"/console/{place}")
            assert answer.status_code == status, answer.text
            found.append(answer.text)

    served.run(work)
    return found


def words(page: str) -> str:
    main = page.partition("<main")[2].partition("</main>")[0].partition(">")[2]
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", main)).split())


def one(served: Served, place: str, **given: Any) -> str:
    (page,) = seen(served, place, **given)
    return words(page)


def following(page: str) -> str:
    """The path of the next page, or an empty string."""
    found = re.search(r'href="/console/([^"]*)">Next', page)
    return unescape(found[1]) if found else ""


def place_of(sight: MessageView, queue: str = "Q1") -> str:
    """The path of a message's page."""
    assert sight.message.uid is not None
    return f"queue/{queue}/message/{sight.message.uid.number}-{sight.message.uid.origin}"


# --- warnings


def test_the_overview_says_when_there_are_no_problems(served: Served) -> None:
    assert "Nothing is full, inhibited, incomplete or stuck" in one(served, "")


@on_both
def test_problems_are_listed_first(served: Served, qm: QueueManager) -> None:
    qm.create_queue("FULL", max_depth=1)
    qm.create_queue("NEARLY", max_depth=5)
    qm.create_queue("CLOSED", put_allowed=False, get_allowed=False)
    qm.create_queue("DEAD")
    qm.create_queue("STRICT", read_order="required")
    qm.admin.alter_manager(dead_letter_queue="DEAD")
    qm.put("FULL", b"x")
    qm.put_many("NEARLY", [b"x"] * 4)
    qm.put("Q1", b"x", report=Report.COA, reply_to_queue="FULL")
    qm.put("Q1", b"1", group_id=b"g", flags=IN)
    with qm.connect(program="ledger") as other:
        other.put("Q1", b"y", syncpoint=True)
        other.prepare("unit-7")
        text = one(served, "")
    wrong = [
        "DEAD 1 message could not be delivered",
        "FULL full: 1 of 1 message",
        "CLOSED puts are inhibited",
        "CLOSED gets are inhibited",
        "NEARLY nearly full: 4 of 5 messages",
        "Q1 1 group is incomplete; the oldest began",
        "Q1 prepared unit unit-7 has not been settled for",
    ]
    places = [text.index(each) for each in wrong]
    assert places == sorted(places)
    assert max(places) < text.index("put and got, 5 min"), "the table comes behind what is wrong"


@on_both
def test_a_waiting_strict_reader_is_shown_with_the_put_it_waits_for(served: Served, qm: QueueManager) -> None:
    qm.create_queue("STRICT", read_order="required")
    with qm.connect(program="slow") as slow, qm.connect(program="reader") as reader:
        slow.put("STRICT", b"first", syncpoint=True)
        qm.put("STRICT", b"second")
        got: list[bytes] = []
        thread = threading.Thread(target=lambda: got.append(reader.get("STRICT", wait=300).body))
        thread.start()
        while not any(each.pending is not None for each in qm.inspect.waits()):
            thread.join(0.01)
        overview, page = map(words, seen(served, "", "queue/STRICT"))
        slow.commit()
        thread.join()
    assert got == [b"first"]
    assert "STRICT strict reader reader" in overview
    assert "waits for a put that is not committed, by slow, for" in overview
    assert re.search(
        r"strict reader process \d+ waits for place 1: a put that is not committed, by slow, process", page
    )
    assert "messages wait behind it" in page
    assert "1 message is ready but blocked by an earlier one." in page


# --- a queue


@pytest.fixture
def groups(qm: QueueManager) -> QueueManager:
    """Two groups and a single message, interleaved: 'whole' is complete, 'torn' lacks its second message."""
    for name, number, flags in ((b"whole", 1, IN), (b"torn", 1, IN), (b"whole", 2, LAST), (b"torn", 3, LAST)):
        qm.put("Q1", name + b"-%d" % number, group_id=name, sequence_number=number, flags=flags)
    qm.put("Q1", b"alone", properties={"colour": "red"})
    return qm


def test_physical_and_logical_order_are_shown_side_by_side(served: Served, groups: QueueManager) -> None:
    text = one(served, "queue/Q1")
    physical, logical = text.split("Logical groups together")
    bodies = r"whole-1|whole-2|torn-1|torn-3|alone"
    assert re.findall(bodies, physical) == ["whole-1", "torn-1", "whole-2", "torn-3", "alone"]
    assert re.findall(bodies, logical) == ["whole-1", "whole-2", "torn-1", "torn-3", "alone"]
    assert re.search(r"whole 2 messages whole", logical)
    assert re.search(r"torn 2 messages missing: sequence 2", logical)


def test_priorities_are_shown_in_a_column_and_in_the_heading_if_they_differ(served: Served, qm: QueueManager) -> None:
    qm.create_queue("FIFO", delivery="fifo")
    qm.put_many("Q1", [b"one", b"two"])
    assert "Messages in order of arrival place state age length body" in one(served, "queue/Q1")
    for queue in ("Q1", "FIFO"):
        for priority in (0, 7):
            qm.put(queue, b"other", priority=priority)
    text = one(served, "queue/Q1")
    assert "Messages by priority, then in order of arrival place state priority age length body" in text
    assert "Messages in order of arrival place state priority" in one(served, "queue/FIFO")
    assert "Physical by priority, then in order of arrival place body" in one(
        served, "queue/Q1?order=physical&show=body"
    )


def test_the_definition_shows_all_attributes_with_changed_ones_first(served: Served, qm: QueueManager) -> None:
    qm.create_queue("OWN", max_depth=5, put_allowed=False)
    (page,) = seen(served, "queue/OWN")
    differs = dict(re.findall(r"<dt[^>]*>([^<]*)</dt><dd class=\"strong\">([^<]*)</dd>", page))
    assert differs == {"maximum depth": "5", "put allowed": "no"}
    definition = words(page).partition("Definition")[2]
    assert definition.index("maximum depth") < definition.index("get allowed yes")
    for each in QUEUE_ATTRIBUTES.values():
        assert (f">{field_name(each.name)}</dt>" in page) == ("local" in each.applies_to and each.name != "name")


def test_queues_are_sorted_by_depth_age_and_name(served: Served, qm: QueueManager) -> None:
    qm.create_queue("B")
    qm.create_queue("C")
    qm.put("C", b"x")
    qm.put_many("B", [b"x", b"x"])
    found = {}
    for sort in ("", "?sort=depth", "?sort=age", "?sort=put", "?sort=got&name=B"):
        (page,) = seen(served, sort)
        found[sort] = [one for one in re.findall(r'<th scope="row">.*?>([^<]*)</a>', page) if one in "BC"]
    assert found == {
        "": ["B", "C"], "?sort=depth": ["B", "C"], "?sort=age": ["C", "B"], "?sort=put": ["B", "C"],
        "?sort=got&name=B": ["B"],
    }  # fmt: skip
    assert "must be one of: name, depth, age, put, got" in one(served, "?sort=size", status=400)


def test_segments_are_flagged(served: Served, qm: QueueManager) -> None:
    qm.put("Q1", b"abc", group_id=b"cut", flags=SEGMENT)
    qm.put("Q1", b"ghi", group_id=b"cut", offset=6, flags=END)
    text = one(served, "queue/Q1")
    assert "cut 2 messages 2 segments missing: bytes 3-5" in text
    assert "+6 last" in text


@on_both
def test_held_messages_are_shown_with_their_holders(served: Served, groups: QueueManager) -> None:
    with groups.connect(program="holder") as holder:
        holder.get("Q1", syncpoint=True)
        lock = groups.browse_and_lock("Q1", match=inorder.Match(selector="colour = 'red'"))
        text = one(served, "queue/Q1")
    assert re.search(r"unit of work holder process \d+", text)
    assert re.search(r"got by unit of holder \(\d+\)", text)
    assert f"locked by lock id {lock.lock_id} of maker" in text
    assert "got, uncommitted 1" in text


@serving(somebody("looker", "browse", "inquire"))
async def test_a_user_who_may_only_browse_sees_no_holders(client: httpx.AsyncClient, groups: QueueManager) -> None:
    groups.create_queue("SECRET")
    with groups.connect(program="ledger-7") as holder:
        holder.get("Q1", syncpoint=True)
        sight = next(one for one in groups.inspect.look("Q1") if one.holder is not None)
        for place in ("", "queue/Q1", place_of(sight)):
            answer = await client.get(f"/console/{place}")
            assert answer.status_code == 200
            assert "ledger-7" not in answer.text
            assert "SECRET" not in answer.text
        assert "got" in words((await client.get("/console/queue/Q1")).text)
        assert (await client.get("/console/queue/SECRET")).status_code == 403


@pytest.mark.parametrize("order", ["physical", "logical"])
@on_both
def test_pages_show_each_message_once(served: Served, qm: QueueManager, order: str) -> None:
    qm.put_many("Q1", [b"body-%03d" % number for number in range(120)])
    found: list[str] = []
    place = f"queue/Q1?order={order}"
    for _ in range(3):
        (page,) = seen(served, place)
        found += re.findall(r"body-\d{3}", page)
        place = following(page)
    assert found == [f"body-{number:03}" for number in range(120)]
    assert not place, "there is no page behind the last message"


def test_only_a_group_that_is_split_by_a_page_says_that_it_continues(served: Served, qm: QueueManager) -> None:
    for count in (50, 120):
        put_group(qm, *(b"%d" % number for number in range(count)), queue="Q1")
    found, place = [], "queue/Q1?order=logical"
    while place:
        (page,) = seen(served, place)
        found += re.findall(r"(\d+ messages) (.*?)\s?whole", words(page))
        place = following(page)
    assert found == [
        ("50 messages", ""),
        ("50 messages", "continues on the next page"),
        ("50 messages", "continues from the previous page and on the next"),
        ("20 messages", "continues from the previous page"),
    ]


def test_the_navigation_marks_the_current_section(served: Served, groups: QueueManager) -> None:
    with groups.connect() as holder:
        holder.get("Q1", syncpoint=True)
        (unit,) = [found for found in groups.inspect.units() if found.gets]
        places = {"": "Queues", "queue/Q1": "Queues", "queue/Q1/put": "Queues", "dead": "Dead letters"}
        for place, name in {**places, f"held/unit/{key_of(unit)}": "Held"}.items():
            (page,) = seen(served, place)
            assert re.findall(r"aria-current=\"(?:page|true)\">([^<]*)</a>", page.partition("</nav>")[0]) == [name], (
                place
            )
    (page,) = seen(served, "nowhere", status=404)
    assert "aria-current" not in page


def test_an_unknown_unit_or_lock_is_reported_as_already_settled(served: Served, qm: QueueManager) -> None:
    for place in ("held/unit/session:77", "held/lock/Q1/3"):
        text = one(served, place, status=404)
        assert "9011" in text
        assert "was settled" in text
        assert "body of the request" not in text


def test_a_selector_filters_messages_and_an_error_in_it_is_reported(served: Served, groups: QueueManager) -> None:
    text = one(served, "queue/Q1?selector=colour+%3D+'red'&order=physical")
    assert "alone" in text
    assert "torn" not in text
    assert "No message matches" in one(served, "queue/Q1?selector=colour+%3D+'blue'")
    assert "2459" in one(served, "queue/Q1?selector=colour+%3D")


def test_a_selector_searches_a_limited_number_of_messages_per_page(served: Served, qm: QueueManager) -> None:
    qm.put_many("Q1", [b"other"] * LOOKED_MAX)
    qm.put("Q1", b"the-one", properties={"colour": "red"})
    (page,) = seen(served, "queue/Q1?order=physical&selector=colour+%3D+'red'")
    assert "No message matches so far." in words(page)
    assert f"was applied to {LOOKED_MAX:,} messages" in words(page)
    text = one(served, following(page))
    assert "the-one" in text
    assert "Next" not in text


def test_columns_are_chosen(served: Served, groups: QueueManager) -> None:
    text = one(served, "queue/Q1?show=properties&show=format&order=physical")
    assert "place properties format" in text
    assert "colour='red'" in text
    assert "torn" not in text.partition("place properties format")[2].partition("Definition")[0]


@pytest.mark.parametrize(
    "query",
    [
        "physical=nonsense", "logical=W10", "physical=%C3%A9", "physical=" + "A" * 500, "nowhere=1", "order=both",
        "show=a&" * 40, "a=%ff",
    ],
)  # fmt: skip
def test_a_bad_query_is_an_error_of_the_caller(served: Served, query: str) -> None:
    assert "INWB0003E" in one(served, f"queue/Q1?{query}", status=400)


def test_the_error_of_an_unresolved_remote_queue_does_not_mention_a_body(served: Served, qm: QueueManager) -> None:
    qm.create_queue("RM", type="remote", remote_queue="X", remote_manager="NOWHERE")
    page = one(served, "queue/RM", status=400)
    assert "no transmission queue leads to queue manager 'NOWHERE'" in page
    assert "INWB0014E" in page
    assert "body of the request" not in page


def test_an_alias_shows_its_base_queue_and_a_missing_or_model_queue_is_refused(
    served: Served, qm: QueueManager
) -> None:
    qm.create_queue("ALIAS", type="alias", base_queue="Q1")
    qm.create_queue("MODEL", type="model")
    qm.put("Q1", b"through the alias")
    assert "through the alias" in one(served, "queue/ALIAS")
    seen(served, "queue/NOWHERE", status=404)
    seen(served, "queue/MODEL", status=400)


# --- a message


def put(qm: QueueManager, body: bytes, **fields: Any) -> str:
    uid = qm.put("Q1", body, **fields).uid
    return f"queue/Q1/message/{uid.number}-{uid.origin}"


def test_a_body_has_the_views_that_fit_it(served: Served, qm: QueueManager) -> None:
    place = put(qm, b'{"b": [1, 2], "a": "\xc3\xa9"}')
    pretty, text, raw = seen(served, place, f"{place}?view=text", f"{place}?view=hex")
    assert unescape(pretty.partition('tabindex="0">')[2]).startswith('{\n  "b": [\n    1,\n    2\n  ],\n  "a": "é"\n}<')
    assert '{"b": [1, 2], "a": "é"}' in words(text)
    assert '00000000  7b 22 62 22 3a 20 5b 31  2c 20 32 5d 2c 20 22 61  {"b": [1, 2], "a' in unescape(raw)
    binary = put(qm, bytes(range(256)))
    assert "000000f0 f0 f1 f2" in one(served, binary)


async def test_a_long_body_is_cut_and_saved_whole(client: httpx.AsyncClient, qm: QueueManager) -> None:
    body = b"\xc3\xa9" * 100_001 + b"x"
    place = put(qm, body)
    assert "These are the first 65,536 bytes." in words((await client.get(f"/console/{place}")).text)
    saved = await client.get(f"/console/{place}/body")
    assert saved.content == body
    assert saved.headers["content-type"] == "application/octet-stream"
    assert saved.headers["content-disposition"].startswith("attachment;")


def test_a_message_is_shown_with_its_descriptor_its_properties_and_its_life(served: Served, qm: QueueManager) -> None:
    place = put(
        qm,
        b"x",
        properties={"colour": "red", "data": b"\x01\x02"},
        correlation_id=b"answer-to-7",
        priority=3,
        report=Report.COA | Report.COD,
        reply_to_queue="Q1",
        expiry=3_600,
    )
    with qm.connect(program="trier") as trier:
        trier.get("Q1", syncpoint=True)
        trier.back_out()
        trier.get("Q1", syncpoint=True, selector="colour = 'red'")
        text = one(served, place)
    for expected in ("colour red str", "data 0102 bytes", "616e737765722d746f2d37 “answer-to-7”", "COA COD"):
        assert expected in text
    held = r"unit of trier \(\d+\) began; it has got the message and is not settled"
    assert re.search(rf"put by maker .*got and backed out once .*{held} .*expires", text)


def test_the_life_of_a_message_says_why_attempts_failed_and_who_made_it_a_dead_letter(
    served: Served, qm: QueueManager
) -> None:
    qm.create_queue("DEAD")
    qm.admin.alter_manager(dead_letter_queue="DEAD")
    place = put(qm, b"x")
    with qm.unit_of_work() as unit:
        qm.get("Q1")
        unit.back_out(error="<b>no shelf</b>")
    text = one(served, place)
    assert "got and backed out once" in text
    assert re.search(r"\d\d:\d\d UTC attempt 1 failed: <b>no shelf</b>", text)
    assert "without an error text" not in text
    for _ in range(2):
        with qm.unit_of_work() as unit:
            qm.get("Q1")
            unit.back_out()
    assert "since then 2 attempts have ended without an error text" in one(served, place)
    with qm.unit_of_work():
        qm.dead.add(qm.get("Q1"), queue="Q1", reason=inorder.Reason.Q_FULL)
    text = one(served, place_of(next(qm.inspect.look("DEAD")), "DEAD"))
    assert re.search(r"set aside as a dead letter by \w+: Q_FULL", text)
    assert "Not recorded: browses" in text


def prepared(qm: QueueManager) -> None:
    qm.put("Q1", b"2", syncpoint=True)
    qm.prepare("monday")


HOLDS: dict[str, tuple[Callable[[QueueManager], object], str, str]] = {
    "put": (
        lambda qm: qm.put("Q1", b"2", confirm_id=7),
        "confirm id 7 of maker began; it has put the message",
        "unit/confirm",
    ),
    "prepared": (
        prepared,
        "prepared unit monday of maker began; it has put the message and is prepared",
        "unit/prepared",
    ),
    "got": (lambda qm: (qm.put("Q1", b"2"), qm.get("Q1", confirm_id=8)), "confirm id 8 of maker began", "unit/confirm"),
    "locked": (lambda qm: (qm.put("Q1", b"2"), qm.browse_and_lock("Q1")), "locked by lock id", "lock/Q1"),
}


@pytest.mark.parametrize(("hold", "said", "page"), HOLDS.values(), ids=HOLDS)
async def test_the_life_of_a_message_names_its_holder_with_a_link(
    client: httpx.AsyncClient, qm: QueueManager, hold: Callable[[QueueManager], object], said: str, page: str
) -> None:
    hold(qm)
    place = place_of(next(qm.inspect.look("Q1")), "Q1")
    text = (await client.get(f"/console/{place}")).text
    assert said in text
    found = re.search(rf'"(/console/held/{page}[^"]*)"', text)
    assert found
    assert (await client.get(unescape(found[1]))).status_code == 200


@pytest.mark.parametrize("uid", ["1-", "x-QM1", "999999-QM1", "1", "-1-QM1", "99999999999999999999-QM1", "1-%00"])
def test_a_missing_message_is_reported_as_not_found(served: Served, uid: str) -> None:
    assert "INWB0015E" in one(served, f"queue/Q1/message/{uid}", status=404)


# --- live


@gate
def test_events_report_a_change_and_end_when_the_server_stops(served: Served, qm: QueueManager, start: Start) -> None:
    running = start()
    with running.client() as client, client.stream("GET", "/console/live") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = answer.iter_lines()
        assert next(lines) == "data: look"
        qm.put("Q1", b"x")
        assert [next(lines), next(lines)] == ["", "data: look"]
        running.process.terminate()
        list(lines)  # reads to the end of the stream
    assert running.process.wait(60) == 0


async def test_pages_that_open_at_once_do_not_exceed_the_limit(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inorder.server.console.watching.LISTENERS_MAX", 3)
    begun, may_go = [], asyncio.Event()
    real = Streamed.__call__

    async def slow(self: Streamed, *given: Any) -> None:
        begun.append(self)
        await may_go.wait()  # admitted, and nothing is sent yet
        await real(self, *given)

    monkeypatch.setattr(Streamed, "__call__", slow)
    async with alive(served.app()) as app, AsyncExitStack() as held:
        pages = [await held.enter_async_context(listening(app, "/console/live")) for _ in range(5)]
        while len(begun) + sum(one.task.done() for one in pages) < 5:
            await asyncio.sleep(0)
        refused = [one for one in pages if one.task.done()]
        assert (len(begun), len(refused)) == (3, 2)
        may_go.set()
        for one in pages:
            if one not in refused:
                assert (await one.next() or pytest.fail("it has ended")).data == "look"
            await one.leave()
        async with listening(app, "/console/live") as another:
            assert (await another.next() or pytest.fail("it has ended")).data == "look"


async def test_unauthenticated_requests_for_events_are_refused_without_a_page(client: httpx.AsyncClient) -> None:
    client.auth = AS_NOBODY
    answer = await client.get("/console/live", headers={"Accept": "text/event-stream"})
    assert (answer.status_code, answer.text) == (401, "")
    answer = await client.get("/console/queue/Q1", headers={"HX-Request": "true"})
    found = (answer.status_code, answer.headers["hx-redirect"])
    assert found == (401, "/console/log-in?to=%2Fconsole%2Fqueue%2FQ1")


@pytest.fixture
def hub(tmp_path: Path) -> QueueManager:
    return inorder.connect(tmp_path / "hub.db", name="HUB")


def test_an_isolated_queue_manager_has_no_routes_to_others(hub: QueueManager) -> None:
    assert ways(hub) == Ways([], [])


def test_channels_are_routes_with_their_lag_and_status(hub: QueueManager, tmp_path: Path) -> None:
    oslo = inorder.connect(tmp_path / "oslo.db", name="OSLO")
    oslo.create_queue("Q")
    channels.define_connection(hub, "OSLO", str(tmp_path / "oslo.db"))
    hub.create_queue("TO.OSLO.XMITQ", usage="transmission")
    hub.create_queue("FAR", type="remote", remote_queue="Q", remote_manager="OSLO", transmission_queue="TO.OSLO.XMITQ")
    channels.define_channel(hub, "TO.OSLO", transmission_queue="TO.OSLO.XMITQ", connection="OSLO")
    hub.put("FAR", b"1")
    [view] = hub.inspect.overview("TO.OSLO.XMITQ")
    assert ways(hub).go == [Way("OSLO", "TO.OSLO", "channel", "idle", "inactive", 1, view.oldest_put_at)]
    channels.run_channel(hub, "TO.OSLO", until_empty=True)
    assert ways(hub).go == [Way("OSLO", "TO.OSLO", "channel", "idle", "inactive")]
    assert ways(oslo).come == [Way("HUB", "TO.OSLO", "channel", "idle", "batch 1 has arrived")]
    channels.stop_channel(hub, "TO.OSLO")
    assert [(one.state, one.text) for one in ways(hub).go] == [("bad", "stopped")]


def test_a_collection_is_a_route_on_both_sides(hub: QueueManager, tmp_path: Path) -> None:
    shop = inorder.connect(tmp_path / "shop.db", name="SHOP.1")
    hub.create_queue("SHOPS", type="store_and_forward", targets="SHOP.1")
    hub.put("PRICES", b"1", manager="SHOP.1")
    [waits] = ways(hub).go
    assert (waits.manager, waits.name, waits.kind, waits.waiting) == ("SHOP.1", "SHOPS", "collection", 1)
    channels.define_connection(shop, "HUB", str(tmp_path / "none.db"))
    shop.create_queue("SHOPS", type="home_server", remote_manager="HUB")
    assert ways(shop).come == [Way("HUB", "SHOPS", "collection", "idle", "inactive")]
    with pytest.raises(StoreError):
        channels.pull(shop, "SHOPS", until_empty=True)
    assert [(one.state, one.text) for one in ways(shop).come] == [("bad", "stopped")]


def test_synchronous_queues_are_one_route_per_connection(hub: QueueManager, tmp_path: Path) -> None:
    for queue in ("A", "B"):
        hub.create_queue(queue, type="remote", remote_queue="Q", mode="synchronous", connection="OSLO")
    assert ways(hub).go == [Way("OSLO", "OSLO", "synchronous", "bad", "not defined")]
    channels.define_connection(hub, "OSLO", str(tmp_path / "oslo.db"))
    assert ways(hub).go == [Way("OSLO", "OSLO", "synchronous", "idle", "2 queues")]
