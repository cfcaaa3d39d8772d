"""Claims and surveys: reading in bulk, over every store."""

from __future__ import annotations

from functools import partial
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

from inorder import Flags, QueueManager
from inorder.errors import ArgumentError, OptionsError, QueueNotEmpty
from inorder.model.options import GetOptions, Match
from inorder.rules.grouping import NOTHING_OPEN
from inorder.rules.ordering import UNSET
from inorder.stores.seam.records import BULK_COLUMNS, GetRequest, Stretch, SurveyRequest
from inorder.stores.sql.bulk import Levels, Range
from inorder.testing import ManualClock

only_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)  # the memory store reads all pages at once


@pytest.mark.every_store
def test_a_row_of_a_claim_reads_the_same_though_the_head_of_its_group_goes(qm: QueueManager) -> None:
    qm.put("Q", b"2", priority=5, group_id=b"g".ljust(24), sequence_number=2, flags=Flags.IN_GROUP)
    qm.put("Q", b"1", priority=1, group_id=b"g".ljust(24), sequence_number=1, flags=Flags.IN_GROUP)
    app = Application(store_of(qm))
    app.claim(0, most=1)
    before = app.rows(1)
    qm.get("Q")
    assert app.rows(1) == before
    assert before[0][HEAD : HEAD + 3] == (None, None, None)


def test_a_queue_with_an_open_claim_stays_and_a_new_one_knows_no_claims(qm: QueueManager) -> None:
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
def test_a_survey_in_physical_order_is_cut_anywhere_whatever_belongs_to_a_group(qm: QueueManager) -> None:
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
def test_pages_end_by_rows_and_by_bytes(qm: QueueManager, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_a_stretch_shows_what_is_there_when_it_is_read(qm: QueueManager, clock: ManualClock) -> None:
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
def test_of_a_group_that_goes_between_pages_no_other_is_cut(qm: QueueManager, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_a_page_that_is_full_before_the_next_heads_goes_on_with_them(
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
def test_members_that_are_read_show_a_whole_group(qm: QueueManager, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_an_application_has_a_name(qm: QueueManager, name: Any) -> None:
    with pytest.raises(ArgumentError, match="application must be a text of 1 to 256 characters"):
        Application(store_of(qm), name)
