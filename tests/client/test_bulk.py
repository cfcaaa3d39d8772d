"""Claims, surveys and staged puts through the classes that programs use; what the verbs mean is tested elsewhere."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.helpers.support import Line, check

from inorder import ArgumentError, GetOptions, QueueManager, Reason, UnknownQueue
from inorder.client.bulk import BULK_COLUMNS, BulkBrowser, BulkPage, ClaimReader, LedgerKey, Staged, Stager
from inorder.errors import CheckpointLost, Fenced, NotFound, NotOpenFor, StagingGone

BODY = BULK_COLUMNS.index("body")
TO_SETTLE = LedgerKey("load", "", "monday")


def bodies(pages: object) -> list[bytes]:
    return [row[BODY] for page in pages for row in page]  # type: ignore[attr-defined]


def test_a_reader_that_shares_the_epoch_reads_and_a_later_start_ends_both(qm: QueueManager) -> None:
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


def test_what_a_reader_needs_it_says(qm: QueueManager) -> None:
    with qm.open("Q", output=True) as queue:
        with pytest.raises(NotOpenFor):
            ClaimReader(queue, "archive").begin()
        for name in ("", "x" * 201, 7):
            with pytest.raises(ArgumentError, match="application must be a text of 1 to 200 characters"):
                ClaimReader(queue, name)  # type: ignore[arg-type]
    with qm.open("Q", input="shared") as queue, pytest.raises(ArgumentError, match="call begin"):
        ClaimReader(queue, "archive").claim(0)


def test_a_survey_is_read_in_parts_and_goes_on_from_its_token(qm: QueueManager) -> None:
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


def test_a_token_of_another_queue_of_this_name_is_none(qm: QueueManager) -> None:
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


def test_what_all_rows_share_is_kept_once() -> None:
    page = BulkPage.of_rows([row(b"1"), row(b"2"), row(b"1")])
    assert (page.shared["format"], page.shared["rank"]) == ("MQSTR", 7)
    assert {name: list(values) for name, values in page.columns.items()} == {"body": [b"1", b"2", b"1"]}
    assert (page.column("format"), page.column("body")) == (["MQSTR"] * 3, (b"1", b"2", b"1"))


def test_a_page_may_have_no_row() -> None:
    page = BulkPage.of_rows([])
    assert (len(page), list(page), page[:], list(page.column("body"))) == (0, [], [], [])


def test_columns_take_the_place_of_others_shared_or_not() -> None:
    page = BulkPage.of_rows([row(b"1"), row(b"2")])
    other = page.with_columns({"body": [b"x", b"x"], "format": ["A", "B"]})
    assert [(one[BODY], one[FORMAT]) for one in other] == [(b"x", "A"), (b"x", "B")]
    assert [(one[BODY], one[FORMAT]) for one in page] == [(b"1", "MQSTR"), (b"2", "MQSTR")], "the first is as it was"
