"""A misspelt, invalid or useless option is refused, with its name, its value and the allowed values."""

from __future__ import annotations

from pathlib import Path

import pytest

from inorder import ArgumentError
from inorder.errors import OptionsError
from inorder.spark.options import check_source, sink_options, source_options

CREDENTIALS = {"token", "certificate", "key", "ca"}
GIVEN = {"url": "/data/orders.db", "queue": "ORDERS"}
DRAIN = GIVEN | {"mode": "drain", "application": "archive"}


def test_options_that_are_not_given_have_their_defaults() -> None:
    source = source_options(GIVEN, "batch read")
    assert (source.mode, source.order, source.partitions, source.body) == ("browse", "physical", 1, "binary")
    assert (source.max_messages_per_trigger, source.max_bytes_per_trigger, source.read_order) == (None, None, None)
    sink = sink_options(GIVEN | {"checkpointLocation": "/data/spark-adds-it"}, "batch write")
    assert (sink.application, sink.transaction, sink.bad_rows, sink.staging_expiry) == ("spark", None, None, 86_400)


def test_names_and_keywords_of_options_ignore_case() -> None:
    given = {"URL": "/data/orders.db", "QUEUE": "Orders", "Mode": "DRAIN", "APPLICATION": "A", "completegroups": "True"}
    more = {"ORDER": "Logical", "MaxMessagesPerTrigger": "1_000", "prefetch": "FALSE"}
    options = source_options(given | more, "stream read")
    assert (options.queue, options.mode, options.application) == ("Orders", "drain", "A")
    assert (options.complete_groups, options.max_messages_per_trigger, options.prefetch) == (True, 1000, False)
    assert options.wanted.all_messages
    assert options.wanted.logical


def test_a_path_stands_for_the_url_and_becomes_absolute() -> None:
    given = {"path": "orders.db", "queue": "ORDERS"}
    assert source_options(given, "batch read").url == str(Path("orders.db").absolute())
    assert source_options(given | {"url": "orders.db"}, "batch read").url == str(Path("orders.db").absolute())
    assert source_options(GIVEN | {"url": "file:///data/x.db"}, "batch read").url == "/data/x.db"
    url = "postgresql://me@one:5432,two/orders?schema=a&passfile=/etc/inorder/pass"
    assert source_options({"path": url, "queue": "Q"}, "batch read").url == url


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"maxMessagePerTrigger": "5"}, "did you mean maxMessagesPerTrigger"),
        ({"subscribePattern": "A.*"}, r"it must be queue, with names and patterns, separated by commas: ORDERS\.\*"),
        ({"groupIdPrefix": "a"}, "it must be application, a name under which the queue manager keeps the position"),
        (
            {"nonsense": "5"},
            "there is no option 'nonsense' for a read; there are allowNewCheckpoint, application, body",
        ),
        (
            {"transaction": "t"},
            "option transaction has no meaning for a stream read: a stream uses the numbers of its batches",
        ),
        ({"orderBy": "t"}, "option orderBy has no meaning for a stream read; it is for a batch write and a stream"),
        ({"pushdown": "true"}, "option pushdown has no meaning for a stream read: Spark pushes no filters"),
        ({"completeGroups": "true"}, "option completeGroups needs order=logical"),
        ({"readOrder": "relaxed", "mode": "browse"}, "always strict"),
        ({"Prefetch": "true", "mode": None, "application": None}, "prefetch has no meaning for mode=browse"),
        ({"application": None}, "mode=drain needs option application"),
        ({"queue": None}, "option queue is missing"),
        ({"url": None}, "option url is missing: Path of the store file"),
        ({"url": ":memory:"}, "exists in one process"),
        ({"url": "postgresql://me:secret@host/orders"}, "url has a password .*postgresql://me@host/orders.*PGPASSFILE"),
        ({"url": "postgres://host/orders?password=secret"}, "url has a password"),
        ({"url": "postgresql://host/orders?sslpassword=secret"}, "url has a sslpassword"),
        ({"url": "orders.db", "path": "postgresql://me:secret@host/orders"}, "path has a password"),
        *(({name: "=secret"}, f"{name} must not be an option: .*INORDER_CREDENTIALS") for name in sorted(CREDENTIALS)),
        ({"path": "other.db"}, "name two stores"),
        # Kafka's options are refused with a hint at ours.
        ({"subscribe": "x"}, "must be queue, "),
        ({"startingOffsets": "x"}, "must be left out: mode=drain continues"),
        ({"kafka.bootstrap.servers": "x"}, "must be url, "),
        ({"kafka.sasl.jaas.config": "x"}, "must be left out: it is for Kafka's client"),
        ({"fetchOffset.numRetries": "x"}, "must be left out: a query waits 30 seconds"),
        ({"maxOffsetsPerTrigger": "x"}, "must be maxMessagesPerTrigger"),
    ],
)
def test_options_that_do_not_fit_are_refused(given: dict[str, str | None], told: str) -> None:
    merged = {name: value for name, value in (DRAIN | given).items() if value is not None}
    with pytest.raises(OptionsError, match=told) as refused:
        source_options(merged, "stream read")
    assert ":secret" not in str(refused.value)
    assert "=secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("maxMessagesPerTrigger", "0", "an integer from 1 to"),
        ("maxMessagesPerTrigger", "1e3", "an integer from 1 to"),
        ("partitions", "٣", "an integer from 1 to 10,000"),
        ("mode", "read", "one of: browse, drain"),
        ("completeGroups", "yes", "true or false"),
        ("application", " ", "a text of 1 to 200 characters"),
        ("badRows", "queue:", "fail, or queue:NAME"),
        ("stagingExpiry", "1", "a number of seconds from 60 to"),
        ("stagingExpiry", "nan", "a number of seconds from 60 to"),
        ("url", "s3://bucket/orders.db", "on this machine's own disk"),
    ],
)
def test_values_out_of_range_are_refused(name: str, value: str, allowed: str) -> None:
    def ask() -> object:
        if name in ("badRows", "stagingExpiry"):
            return sink_options(GIVEN | {name: value}, "stream write")
        return source_options(DRAIN | {name: value}, "stream read")

    with pytest.raises(ArgumentError, match=f"option {name} must be .*{allowed}") as refused:
        ask()
    assert refused.value.value == value


def test_an_invalid_url_is_refused_without_its_password_in_the_error() -> None:
    begins = ("mysql://me:secret@host", "postgresql://me:secret@host/orders?schema=a b", "https://me:secret@host:9443")
    for url in begins:
        with pytest.raises(ArgumentError) as refused:
            source_options(DRAIN | {"url": url}, "stream read")
        assert "secret" not in str(refused.value)


def test_a_writer_takes_no_options_of_a_reader_and_a_batch_none_of_a_stream() -> None:
    with pytest.raises(OptionsError, match="option mode has no meaning for a batch write"):
        sink_options(GIVEN | {"mode": "browse"}, "batch write")
    with pytest.raises(OptionsError, match="option transaction has no meaning for a stream write"):
        sink_options(GIVEN | {"transaction": "t"}, "stream write")
    with pytest.raises(OptionsError, match="a batch reads all messages"):
        source_options(GIVEN | {"maxMessagesPerTrigger": "5"}, "batch read")
    assert sink_options(GIVEN | {"badRows": "queue:BAD"}, "batch write").bad_rows == "BAD"
    assert sink_options(GIVEN | {"badRows": "fail"}, "batch write").bad_rows is None


def test_a_read_of_unknown_kind_accepts_the_options_of_batches_and_of_streams() -> None:
    assert check_source(GIVEN | {"maxMessagesPerTrigger": "5"}).max_messages_per_trigger == 5
    assert check_source(GIVEN | {"pushdown": "true"}).pushdown


def test_a_uri_of_sqlite_is_refused_with_its_path() -> None:
    with pytest.raises(ArgumentError, match=r"option url must be the path alone, 'x', without file:"):
        source_options({"url": "file:x?mode=ro", "queue": "Q"}, "batch read")


def test_an_sql_table_without_options_is_refused_with_the_statements_to_use() -> None:
    told = r"CREATE TABLE \.\.\. USING inorder .* Use CREATE TEMPORARY VIEW .* WITH \(url = "
    with pytest.raises(OptionsError, match=rf"option url is missing: .*{told}"):
        check_source({})
    with pytest.raises(OptionsError, match=told):
        check_source({"provider": "inorder"})
    with pytest.raises(OptionsError) as told_of_one:
        check_source({"queue": "Q"})
    assert "CREATE TABLE" not in str(told_of_one.value)
