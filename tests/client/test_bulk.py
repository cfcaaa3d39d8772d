"""Claims, surveys and staged puts, through the classes that programs use and the operations of the store."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from tests.helpers.claiming import (
    ALL,
    BODY,
    DELIVERY,
    GROUPS,
    HEAD,
    PHYSICAL,
    STRICT_GROUPS,
    Application,
    claim_pages,
    interleaved,
    put_all,
    store_of,
    stretch_pages,
)
from tests.helpers.support import Line, check

from inorder import ArgumentError, Flags, GetOptions, Match, QueueManager, Reason, UnknownQueue
from inorder.client.bulk import BULK_COLUMNS, BulkBrowser, BulkPage, ClaimReader, LedgerKey, Staged, Stager
from inorder.errors import CheckpointLost, Fenced, NotFound, NotOpenFor, OptionsError, QueueNotEmpty, StagingGone
from inorder.rules.grouping import NOTHING_OPEN
from inorder.rules.ordering import UNSET
from inorder.stores.seam.records import GetRequest, Stretch, SurveyRequest
from inorder.stores.sql.bulk import Levels, Range
from inorder.testing import ManualClock

TO_SETTLE = LedgerKey("load", "", "monday")


def bodies(pages: object) -> list[bytes]:
    return [row[BODY] for page in pages for row in page]  # type: ignore[attr-defined]


def test_a_reader_that_shares_the_epoch_can_read_and_a_later_start_fences_both(qm: QueueManager) -> None:
    qm.put("Q", b"1")
    with qm.open("Q", input="shared") as queue, qm.connect() as other, other.open("Q", input="shared") as second:
        reader = ClaimReader(queue, "archive")
        reader.begin()
        reader.claim(0)
        (part,) = reader.plan(0, 1)
        twin = ClaimReader(second, "archive", epoch=reader.epoch)
        assert bodies(twin.read(part)) == [b"1"]
        ClaimReader(second, "archive").begin()
        with pytest.raises(Fenced):
            bodies(twin.read(part))
        with pytest.raises(Fenced):
            reader.claim(1)
        assert not qm.bulk.leave_claimed_group("Q", "archive"), "it is inside none"


def test_a_claim_reader_reports_missing_input_a_bad_name_and_a_missing_begin(qm: QueueManager) -> None:
    with qm.open("Q", output=True) as queue:
        with pytest.raises(NotOpenFor):
            ClaimReader(queue, "archive").begin()
        for name in ("", "x" * 201, 7):
            with pytest.raises(ArgumentError, match="application must be a text of 1 to 200 characters"):
                ClaimReader(queue, name)  # type: ignore[arg-type]
    with qm.open("Q", input="shared") as queue, pytest.raises(ArgumentError, match="call begin"):
        ClaimReader(queue, "archive").claim(0)


def test_a_survey_is_read_in_parts_and_continues_from_its_token(qm: QueueManager) -> None:
    qm.put_many("Q", [b"1", b"2", b"3", b"4"])
    strict = GetOptions(read_order="strict")
    with qm.open("Q", browse=True) as queue:
        browser = BulkBrowser(queue)
        survey = browser.survey(strict, most=3, slices=2)
        assert [bodies(browser.read(stretch)) for stretch in survey.stretches] == [[b"1", b"2"], [b"3"]]
        token = browser.token(survey.cursor)
    qm.put("Q", b"5")
    with qm.open("Q", browse=True) as queue:
        browser = BulkBrowser(queue)
        cursor = browser.cursor(token)
        assert cursor is not None
        survey = browser.survey(strict, cursor=cursor)
        assert [bodies(browser.read(stretch)) for stretch in survey.stretches] == [[b"4", b"5"]]
    assert qm.depth("Q") == 5


def test_the_token_of_a_former_queue_of_the_same_name_gives_no_cursor(qm: QueueManager) -> None:
    with qm.open("Q", browse=True) as queue:
        token = BulkBrowser(queue).token(BulkBrowser(queue).survey().cursor)
    qm.delete_queue("Q")
    qm.create_queue("Q")
    with qm.open("Q", browse=True) as queue:
        assert BulkBrowser(queue).cursor(token) is None
        with pytest.raises(ArgumentError, match="token"):
            BulkBrowser(queue).cursor("nonsense")


WRONG = ArgumentError, Reason.ARGUMENT_ERROR
BAD_CALLS = (
    Line(lambda w: w.qm.bulk.finish_claims("Q", "", 1), *WRONG, "application"),
    Line(lambda w: w.qm.bulk.finish_claims("Q", "archive", -1), *WRONG, "upto must be an integer from 0"),
    Line(lambda w: w.qm.bulk.finish_claims("Q", "nobody", 1), NotFound, Reason.NOT_FOUND, "nobody"),
    Line(
        lambda w: w.qm.bulk.finish_claims("ORDERS", "archive", 1), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'"
    ),
    Line(lambda w: w.qm.bulk.finish_claims("Q", "archive", 7), CheckpointLost, Reason.CHECKPOINT_LOST, "claim 7"),
    Line(lambda w: w.qm.bulk.release_claims("Q", "nobody"), NotFound, Reason.NOT_FOUND, "nobody"),
    Line(lambda w: w.qm.bulk.release_claims("ORDERS", "archive"), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'"),
    Line(lambda w: w.qm.bulk.leave_claimed_group("Q", "nobody"), NotFound, Reason.NOT_FOUND, "nobody"),
    Line(
        lambda w: w.qm.bulk.leave_claimed_group("ORDERS", "app"), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'"
    ),
    Line(lambda w: w.qm.bulk.settle_staging(("a", "", "b"), []), *WRONG, "key must be a LedgerKey"),
    Line(lambda w: w.qm.bulk.settle_staging(LedgerKey("a", 5, "b"), []), *WRONG, "query"),  # type: ignore[arg-type]
    Line(lambda w: w.qm.bulk.settle_staging(TO_SETTLE, [("a", 1)]), *WRONG, "stagings must be a list of Staged"),
    Line(lambda w: w.qm.bulk.settle_staging(TO_SETTLE, [Staged("a", 1)]), StagingGone, Reason.STAGING_GONE, "'a'"),
    Line(
        lambda w: w.qm.bulk.settle_staging(TO_SETTLE, [], after="a"), *WRONG, "after must be a batch of the key's query"
    ),
    Line(lambda w: w.qm.bulk.last_settled("ORDERS", "a", "q"), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'"),
    Line(lambda w: w.qm.bulk.last_settled("Q", 5, "q"), *WRONG, "application"),
    Line(lambda w: Stager(w.queue, "s", lasts=1, checks_numbers=1), *WRONG, "checks_numbers"),  # type: ignore[arg-type]
    Line(lambda w: w.qm.bulk.undo_staging("a"), *WRONG, "names must be a list"),
    Line(lambda w: w.qm.bulk.in_ledger("ORDERS", TO_SETTLE), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'"),
    Line(lambda w: w.qm.bulk.in_ledger("Q", "monday"), *WRONG, "key"),
    Line(lambda w: w.reader.claim(-1), *WRONG, "start"),
    Line(lambda w: w.reader.claim(0, {}), *WRONG, "options"),
    Line(lambda w: w.reader.claim(0, most=0), *WRONG, "most must be an integer from 1"),
    Line(lambda w: w.reader.claim(0, most_bytes=0.5), *WRONG, "most_bytes"),
    Line(lambda w: w.reader.claim(0, horizon=-1), *WRONG, "horizon"),
    Line(lambda w: w.reader.claim(7), CheckpointLost, Reason.CHECKPOINT_LOST, "claim 7"),
    Line(lambda w: w.reader.plan(0, 7), CheckpointLost, Reason.CHECKPOINT_LOST, "claim 7"),
    Line(lambda w: w.reader.plan(0, 1, 0), *WRONG, "slices"),
    Line(lambda w: w.reader.settle("1"), *WRONG, "upto"),
    Line(lambda w: w.reader.settle(7), CheckpointLost, Reason.CHECKPOINT_LOST, "claim 7"),
    Line(lambda w: list(w.reader.read((1, 1, 1, 0))), *WRONG, "part must be a Slice"),
    Line(lambda w: w.browser.survey(slices=0), *WRONG, "slices"),
    Line(lambda w: w.browser.survey(cursor="token"), *WRONG, "cursor"),
    Line(lambda w: w.browser.survey({"logical": True}), *WRONG, "options"),
    Line(lambda w: list(w.browser.read(None)), *WRONG, "stretch"),
    Line(lambda w: w.browser.cursor(5), *WRONG, "token"),
    Line(lambda w: w.stager.stage(1, [b"1"]), *WRONG, "columns"),
    Line(lambda w: Stager(w.queue, "", lasts=1), *WRONG, "name must be a text"),
    Line(lambda w: Stager(w.queue, "b", lasts=0).stage(0, {"body": []}), *WRONG, "lasts"),
)


@pytest.mark.parametrize("line", BAD_CALLS)
def test_a_bad_call_in_bulk_gets_a_clear_error_and_changes_nothing(qm: QueueManager, line: Line) -> None:
    qm.put_many("Q", [b"1", b"2"])
    with qm.open("Q") as queue:
        reader = ClaimReader(queue, "archive")
        reader.begin()
        browser, stager = BulkBrowser(queue), Stager(queue, "mine", lasts=60)
        world: Any = SimpleNamespace(qm=qm, queue=queue, reader=reader, browser=browser, stager=stager)
        check(line, world)
        assert stager.count == 0


FORMAT = BULK_COLUMNS.index("format")


def row(body: bytes, format_: str = "MQSTR") -> tuple[Any, ...]:
    values = dict.fromkeys(BULK_COLUMNS, 7) | {"body": body, "format": format_}
    return tuple(values.values())


def test_a_page_is_the_sequence_of_its_rows() -> None:
    rows = [row(b"1"), row(b"2"), row(b"3", "OTHER")]
    page = BulkPage.of_rows(rows)
    assert (len(page), list(page), page[1], page[-1], page[1:]) == (3, rows, rows[1], rows[2], rows[1:])
    with pytest.raises(IndexError):
        page[3]


def test_values_that_all_rows_share_are_kept_once() -> None:
    page = BulkPage.of_rows([row(b"1"), row(b"2"), row(b"1")])
    assert (page.shared["format"], page.shared["rank"]) == ("MQSTR", 7)
    assert {name: list(values) for name, values in page.columns.items()} == {"body": [b"1", b"2", b"1"]}
    assert (page.column("format"), page.column("body")) == (["MQSTR"] * 3, (b"1", b"2", b"1"))


def test_a_page_may_have_no_row() -> None:
    page = BulkPage.of_rows([])
    assert (len(page), list(page), page[:], list(page.column("body"))) == (0, [], [], [])


def test_with_columns_replaces_columns_whether_shared_or_not() -> None:
    page = BulkPage.of_rows([row(b"1"), row(b"2")])
    other = page.with_columns({"body": [b"x", b"x"], "format": ["A", "B"]})
    assert [(one[BODY], one[FORMAT]) for one in other] == [(b"x", "A"), (b"x", "B")]
    assert [(one[BODY], one[FORMAT]) for one in page] == [(b"1", "MQSTR"), (b"2", "MQSTR")], "the first is as it was"


only_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)  # the memory store reads all pages at once


@pytest.mark.every_store
def test_a_claimed_row_reads_the_same_after_the_head_of_its_group_is_got(qm: QueueManager) -> None:
    qm.put("Q", b"2", priority=5, group_id=b"g".ljust(24), sequence_number=2, flags=Flags.IN_GROUP)
    qm.put("Q", b"1", priority=1, group_id=b"g".ljust(24), sequence_number=1, flags=Flags.IN_GROUP)
    app = Application(store_of(qm))
    app.claim(0, most=1)
    before = app.rows(1)
    qm.get("Q")
    assert app.rows(1) == before
    assert before[0][HEAD : HEAD + 3] == (None, None, None)


def test_a_queue_with_an_open_claim_cannot_be_deleted_and_a_new_one_has_no_claims(qm: QueueManager) -> None:
    put_all(qm, [b"a"])
    app = Application(store_of(qm))
    app.claim(0)
    store_of(qm).disconnect(app.owner)
    qm.close_queue("Q")
    with pytest.raises(QueueNotEmpty, match="units of work"):
        qm.delete_queue("Q", purge=True)
    store_of(qm).release_claims("Q", "app")
    qm.delete_queue("Q", purge=True)
    qm.create_queue("Q")
    assert (store_of(qm).claims(), qm.inspect.units()) == ([], [])
    assert Application(store_of(qm)).settled == 0


def test_marks_end_with_the_claim(qm: QueueManager) -> None:
    qm.put("Q", b"a")
    handle = qm.open("Q", browse=True, co_op=True)
    handle.browse_first(mark_handle=True)
    app = Application(store_of(qm))
    app.claim(0)
    store_of(qm).release_claims("Q", "app")
    assert handle.browse_first(unmarked=True).body == b"a"


@pytest.mark.every_store
def test_slices_are_the_same_each_time_and_never_cut_a_group(qm: QueueManager) -> None:
    interleaved(qm, {bytes([65 + n]): 1 + n % 4 for n in range(12)})
    app = Application(store_of(qm))
    app.claim(0, GROUPS)
    parts = app.plan(0, 1, slices=4)
    assert parts == app.plan(0, 1, slices=4)
    assert [one[1:3] for one in parts] == [(1, 10), (11, 20), (21, 30)]
    groups = [
        {row[BULK_COLUMNS.index("group_id")] for page in claim_pages(store_of(qm), app.claimer, part) for row in page}
        for part in parts
    ]
    assert sum(map(len, groups)) == len(set.union(*groups)) == 12
    assert [row[DELIVERY] for row in app.rows(1, 4)] == list(range(1, len(app.rows(1)) + 1))


@pytest.mark.every_store
def test_a_survey_in_physical_order_may_be_cut_inside_a_group(qm: QueueManager) -> None:
    interleaved(qm, {b"x": 3, b"y": 3}, without=[(b"y", 3)])
    put_all(qm, [b"z", b"w"])
    app = Application(store_of(qm))
    for limits, found in [
        ((ALL, ALL, 3), [(1, 3, 3), (4, 6, 3), (7, 7, 1)]),
        ((ALL, ALL, 99), [(number, number, 1) for number in range(1, 8)]),
        ((5, ALL, 2), [(1, 3, 3), (4, 5, 2)]),
        ((5, 10**6, 2), [(1, 3, 3), (4, 5, 2)]),
    ]:
        survey = store_of(qm).survey(SurveyRequest(app.claimer.handle, PHYSICAL, UNSET, *limits))
        assert [(one.first[0], one.last[0], one.messages) for one in survey.stretches] == found, limits


@pytest.mark.every_store
def test_a_group_with_a_member_above_the_horizon_is_in_no_survey(qm: QueueManager) -> None:
    interleaved(qm, {b"x": 2}, without=[(b"x", 2)])
    put_all(qm, [b"z"])
    app = Application(store_of(qm))
    interleaved(qm, {b"x": 2}, without=[(b"x", 1)])
    assert app.survey(GROUPS, horizon=app.horizon)[1] == [b"z"]
    assert app.survey(STRICT_GROUPS, horizon=app.horizon)[1] == []


@pytest.mark.every_store
def test_pages_are_limited_by_rows_and_by_bytes(qm: QueueManager, monkeypatch: pytest.MonkeyPatch) -> None:
    put_all(qm, [b"aaaa", b"bb", b"c", b"d", b"e", b"f"])
    for store in ("memory", "sql"):
        monkeypatch.setattr(f"inorder.stores.{store}.bulk.PAGE_ROWS", 3)
        monkeypatch.setattr(f"inorder.stores.{store}.bulk.PAGE_BYTES", 5)
    app = Application(store_of(qm))
    handle = app.claimer.handle
    (stretch,) = store_of(qm).survey(SurveyRequest(handle, PHYSICAL, UNSET, ALL, ALL, 1)).stretches
    assert [len(page) for page in stretch_pages(store_of(qm), handle, stretch)] == [1, 3, 2]
    assert [app.survey(most_bytes=limit)[1] for limit in (1, 7)] == [[b"aaaa"], [b"aaaa", b"bb", b"c"]]
    app.claim(0)
    (part,) = app.plan(0, 1)
    assert [len(page) for page in claim_pages(store_of(qm), app.claimer, part)] == [1, 3, 2]
    for first, last in [(0, 1), (1, 7), (7, 9)]:
        with pytest.raises(ArgumentError, match="positions from 1 to 6"):
            list(claim_pages(store_of(qm), app.claimer, part._replace(first=first, last=last)))


@pytest.mark.every_store
def test_a_stretch_shows_the_messages_available_when_it_is_read(qm: QueueManager, clock: ManualClock) -> None:
    for body, expiry in [(b"a", 60), (b"short", 5), (b"locked", 60), (b"z", 60)]:
        qm.put("Q", body, expiry=expiry)
    app = Application(store_of(qm))
    handle = app.claimer.handle
    survey = store_of(qm).survey(SurveyRequest(handle, PHYSICAL, UNSET, ALL, ALL, 1))
    options = GetOptions(browse="first", lock=True, match=Match(token=list(qm.browse("Q"))[2].token))
    store_of(qm).get(GetRequest(handle, options, NOTHING_OPEN, UNSET, syncpoint=False))
    clock.advance(5)
    (stretch,) = survey.stretches
    rows = [row for page in stretch_pages(store_of(qm), handle, stretch) for row in page]
    assert [(row[DELIVERY], row[BODY]) for row in rows] == [(1, b"a"), (2, b"z")]


@only_sqlite
def test_a_group_taken_between_two_pages_does_not_cut_another_group(
    qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = interleaved(qm, {b"x": 3, b"y": 3})
    monkeypatch.setattr("inorder.stores.sql.bulk.PAGE_ROWS", 2)
    app = Application(store_of(qm))
    survey = store_of(qm).survey(SurveyRequest(app.claimer.handle, GROUPS, UNSET, ALL, ALL, 1))
    pages = stretch_pages(store_of(qm), app.claimer.handle, survey.stretches[0])
    shown = [row[BODY] for row in next(pages)]
    qm.get("Q", logical=True)
    shown += [row[BODY] for page in pages for row in page]
    assert shown == [*groups[b"x"][:2], *groups[b"y"]]


@only_sqlite
def test_reading_continues_with_the_next_heads_after_a_page_is_full(
    qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_all(qm, [b"aa", b"bb", b"cc", b"dd"])
    groups = interleaved(qm, {b"x": 2})
    monkeypatch.setattr("inorder.stores.sql.bulk.HEADS_AT_ONCE", 2)
    monkeypatch.setattr("inorder.stores.sql.bulk.PAGE_BYTES", 4)
    assert Application(store_of(qm)).survey(GROUPS)[1] == [b"aa", b"bb", b"cc", b"dd", *groups[b"x"]]


LIMITS = [{"PAGE_ROWS": 2}, {"PAGE_ROWS": 5}, {"PAGE_BYTES": 4}, {"PAGE_BYTES": 6}, {"HEADS_AT_ONCE": 2}]


@only_sqlite
@pytest.mark.parametrize("members", [[1, 1, 3], [1, 2, 2, 4]], ids=str)
@pytest.mark.parametrize("page", LIMITS, ids=str)
def test_a_group_that_only_looks_whole_is_in_no_page_however_pages_end(
    members: list[int], page: dict[str, int], qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = interleaved(qm, {b"a": 3 if "HEADS_AT_ONCE" in page else 2})
    for number in members:
        flags = Flags.IN_GROUP | (Flags.LAST_IN_GROUP if number == members[-1] else Flags.NONE)
        qm.put("Q", b"y", group_id=b"y".ljust(24), sequence_number=number, flags=flags)
    groups |= interleaved(qm, {b"z": 3})
    for limit, value in page.items():
        monkeypatch.setattr(f"inorder.stores.sql.bulk.{limit}", value)
    app = Application(store_of(qm))
    stretch = Stretch(logical=True, rank=0, first=(1, 0), last=(99, 0), messages=5)
    rows = [row[BODY] for page in stretch_pages(store_of(qm), app.claimer.handle, stretch) for row in page]
    assert rows == [*groups[b"a"], *groups[b"z"]]


@only_sqlite
def test_groups_whose_members_are_all_read_are_not_searched_for_odd_members(
    qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = interleaved(qm, {b"x": 3, b"y": 40})
    asked = []

    def noted(_: Levels, one: Range) -> Range:
        asked.append(one)
        return one

    monkeypatch.setattr(Levels, "without_odd", noted)
    stretch = Stretch(logical=True, rank=0, first=(1, 0), last=(99, 0), messages=43)
    pages = stretch_pages(store_of(qm), Application(store_of(qm)).claimer.handle, stretch)
    assert [row[BODY] for page in pages for row in page] == [*groups[b"x"], *groups[b"y"]]
    assert asked == []


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (GetOptions(lock_id=3), "bulk reads take only"),
        (GetOptions(match=Match(selector="n = 1")), "bulk reads take only"),
        (GetOptions(all_messages=True), "logical"),
    ],
)
def test_bad_requests_change_nothing(qm: QueueManager, options: GetOptions, text: str) -> None:
    put_all(qm, [b"a"])
    app = Application(store_of(qm))
    for call in (app.survey, partial(app.claim, 0)):
        with pytest.raises(OptionsError, match=text):
            call(options)
        with pytest.raises(ArgumentError, match="most_bytes must be an integer from 1 to"):
            call(most_bytes=0)
    assert qm.inspect.units() == []


@pytest.mark.parametrize("name", ["", "x" * 257, 7])
def test_an_application_needs_a_name_of_1_to_256_characters(qm: QueueManager, name: Any) -> None:
    with pytest.raises(ArgumentError, match="application must be a text of 1 to 256 characters"):
        Application(store_of(qm), name)
