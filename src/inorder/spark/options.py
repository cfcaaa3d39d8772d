"""Options of the source and the sink: one table of names, kinds, defaults and meanings; an unknown one is an error.

Spark passes options as texts, with their names in lower case. Here they become one frozen value for each use, checked
before any work is planned: an option that is misspelt, out of range, or without effect ends the call with its name, its
value and the allowed values.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ..arrow.schema import Body
from ..client.bulk import NAME_LENGTH_MAX
from ..errors import ArgumentError, OptionsError, Reason, bad_argument, nearest_names
from ..model.options import AskedOrder, GetOptions
from ..model.parameters import Choice, Integer, ParameterKind, Seconds, Switch, Text
from ..stores.open import kind_of
from ..support.advice import check_store_name, translated

Use = Literal["batch read", "stream read", "batch write", "stream write"]
READS: tuple[Use, ...] = ("batch read", "stream read")
WRITES: tuple[Use, ...] = ("batch write", "stream write")
EVERYWHERE: tuple[Use, ...] = READS + WRITES

NO_LIMIT = 2**62
COUNT_MAX = 10**12
PARTITIONS_MAX = 10_000
DAY_SECONDS = 86_400.0
EXPIRY_SECONDS_MAX = 366 * DAY_SECONDS
DEFAULT_SINK_APPLICATION = "spark"

# Spark's own options, which it passes to every source and sink. The argument of `load(PATH)` and `save(PATH)` is
# "path".
SPARKS_OWN = frozenset({"path", "checkpointlocation", "queryname"})

CREDENTIALS = frozenset({"token", "certificate", "key", "ca"})  # of a store elsewhere; none of them is an option

STORE = "store"  # the column that a read of several queues has before all others
PATTERN = re.compile(r"[A-Za-z0-9./_%]{1,48}\*?|\*")
BAD = Reason.OPTIONS_ERROR
NO_TABLE = (
    "Spark never gives the options of a table that CREATE TABLE ... USING inorder makes to the source. Use CREATE "
    "TEMPORARY VIEW ... USING inorder OPTIONS (url '...', queue '...'), or make the table with its columns and no "
    "options, and give these in each statement, SELECT ... FROM t WITH (url = '...', queue = '...')"
)

Check = Callable[[str, str], Any]


@dataclass(frozen=True, slots=True)
class Reads:
    """The check of a kind; as usual in Spark, case and blanks around a word do not matter."""

    kind: ParameterKind[Any]

    def __call__(self, name: str, value: str) -> Any:
        text = value if isinstance(self.kind, Text) else value.strip().lower()
        if isinstance(self.kind, Integer):
            text = text.replace("_", "")
        try:
            return self.kind.read(f"option {name}", text)
        except ArgumentError:
            raise self.kind.refusal(f"option {name}", value) from None


def whole_number(most: int) -> Check:
    """An integer from 1 to `most`."""
    return Reads(Integer(1, most, Reason.OPTIONS_ERROR))


def one_of(*words: str) -> Check:
    """One of these words, in any case."""
    return Reads(Choice(words, Reason.OPTIONS_ERROR))


def name_of(most: int) -> Check:
    """A text that is not blank."""
    return Reads(Text(most, Reason.OPTIONS_ERROR, least=1, fits=lambda text: bool(text.strip()) and "\0" not in text))


switch = Reads(Switch(("true", "false"), Reason.OPTIONS_ERROR))


def store_text(url: str | os.PathLike[str]) -> str:
    """The argument `url` of a function as the option: one store, or a JSON list of several. Raises ArgumentError."""
    text = os.fspath(url) if isinstance(url, str | os.PathLike) else url
    if not isinstance(text, str):
        raise bad_argument("url", url, "a store, or a JSON list of stores, json.dumps(['a.db', 'b.db'])")
    return text


def store_place(name: str, value: str, folder: str = "") -> str:
    """The location of a store: a path, made absolute here for tasks in other folders; or the URL of a database.

    Args:
        folder: the folder of relative paths; default: the current one.

    Raises ArgumentError; OptionsError if no task could reach it, or the URL has a password.
    """
    text = value.strip()
    if text.startswith("file:///"):
        text = text.removeprefix("file://")
    check_store_name(text, f"option {name}")
    text = os.path.expanduser(text)  # noqa: PTH111 - of a URL as well, which it leaves as it is
    kind = kind_of(text)
    if kind is None:
        scheme, is_url, _ = text.partition("://")
        shown = f"{scheme}://..." if is_url and "@" in text else value  # it may contain a password
        here = " on this machine's own disk" if is_url else ""
        allowed = f"the path of a store file{here}, or a URL like postgresql://host/database or https://host:9443"
        raise bad_argument(f"option {name}", shown, allowed, Reason.OPTIONS_ERROR)
    where = kind(text)
    if where.path is not None:
        where = kind(os.path.join(folder, text))  # noqa: PTH118 - as text
    if where.is_in_memory:
        raise OptionsError(
            f"option {name} is ':memory:', but a queue manager in memory exists in one process, and Spark's tasks run "
            "in others: connect to a file, inorder.connect('orders.db'), and give its path"
        )
    if where.secret:
        raise OptionsError(
            f"option {name} has a {where.secret} in its URL, and Spark shows options in query plans and writes them to "
            f"its event log before any source is asked: give {where} and leave the {where.secret} to libpq, which "
            "every process of Spark asks: a file named by PGPASSFILE, a service file, or a certificate (for executors "
            "spark.executorEnv.PGPASSFILE)"
        )
    return where.absolute


def store_places(name: str, value: str) -> tuple[str, ...]:
    """One store, or a JSON list of several. Raises as `store_place`; OptionsError if one is named twice."""
    if not value.lstrip().startswith("["):
        return (store_place(name, value),)
    try:
        listed = json.loads(value)
    except ValueError:
        listed = None
    if not isinstance(listed, list) or not listed or not all(isinstance(one, str) for one in listed):
        raise bad_argument(f"option {name}", value, 'a store, or a JSON list of stores, ["a.db", "b.db"]', BAD)
    return _different(name, [store_place(name, one) for one in listed])


def queue_names(name: str, value: str) -> tuple[str, ...]:
    """One queue, or names and patterns, separated by commas. Raises as `name_of`; OptionsError for a repeated name."""
    names = [one.strip() for one in value.split(",")]
    if len(names) == 1 and "*" not in names[0]:
        return (name_of(48)(name, value),)
    for one in names:
        if not PATTERN.fullmatch(one):
            allowed = "names of 1 to 48 characters from A-Z a-z 0-9 . / _ %, each with a * at its end or none"
            raise bad_argument(f"option {name}", value, f"{allowed}, separated by commas", BAD)
    return _different(name, names)


def _different(name: str, values: list[str]) -> tuple[str, ...]:
    for one in values:
        if values.count(one) > 1:
            raise OptionsError(f"option {name} names {one!r} {values.count(one)} times: name it once")
    return tuple(values)


def bad_rows(name: str, value: str) -> str | None:
    """None: they fail the batch; otherwise the queue that receives them."""
    if value.strip().lower() == "fail":
        return None
    word, separator, queue = value.strip().partition(":")
    if word.lower() != "queue" or not separator or not queue:
        raise bad_argument(f"option {name}", value, "fail, or queue:NAME", Reason.OPTIONS_ERROR)
    return queue


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its name, its values, and the uses for which it is valid.

    Args:
        uses: the uses for which it may be given; elsewhere it is refused, not ignored.
        why_not: the advice in the refusal.
        several: for reads, the check of a value that may name several queues; it returns a tuple.
    """

    name: str
    check: Check
    meaning: str
    uses: tuple[Use, ...] = EVERYWHERE
    why_not: str = ""
    several: Check | None = None

    @property
    def field(self) -> str:
        """Its name in `SourceOptions` or `SinkOptions`."""
        return re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", self.name)


STREAMS_ONLY = "a batch reads all messages"
OPTIONS = (
    Option(
        "url",
        store_places,
        "Path of the store file, or URL of a database or server, or a JSON list of several. `load(PATH)` and "
        "`save(PATH)` give it too.",
    ),
    Option(
        "queue",
        name_of(48),
        "The queue, local or alias. Reads: also several local queues and patterns, as ORDERS.*,RETURNS",
        several=queue_names,
    ),
    Option(
        "application",
        name_of(NAME_LENGTH_MAX),
        "Name of the reader (drain: required, one live query each) or writer (in the ledger's key; default: spark).",
    ),
    Option("mode", one_of("browse", "drain"), "browse removes nothing; drain removes, exactly once.", READS),
    Option("order", one_of("physical", "logical"), "physical: by place. logical: groups together.", READS),
    Option("completeGroups", switch, "Read only complete groups.", READS),
    Option("joinSegments", switch, "Join the segments of a message into one row.", READS),
    Option(
        "maxMessagesPerTrigger",
        whole_number(COUNT_MAX),
        "The most messages in one micro-batch; default: all.",
        ("stream read",),
        STREAMS_ONLY,
    ),
    Option(
        "maxBytesPerTrigger",
        whole_number(COUNT_MAX),
        "The most bytes of bodies in one micro-batch, but always at least one message or group.",
        ("stream read",),
        STREAMS_ONLY,
    ),
    Option(
        "prefetch",
        switch,
        "Drain: claim the next micro-batch while this one is read, if a limit left messages on the queue; true.",
        ("stream read",),
        STREAMS_ONLY,
    ),
    Option(
        "allowNewCheckpoint",
        switch,
        "Drain: a new checkpoint may continue where an earlier one ended. Its output must be new, too; false.",
        ("stream read",),
        STREAMS_ONLY,
    ),
    Option("readOrder", one_of("strict", "relaxed"), "Default: the read order of the queue.", READS),
    Option("partitions", whole_number(PARTITIONS_MAX), "Tasks that read in parallel; 1.", READS),
    Option("body", one_of("binary", "string"), "The type of the column body; string decodes UTF-8.", READS),
    Option(
        "pushdown",
        switch,
        "Filters on ids, numbers, priority, queue and store are applied before rows reach Spark.",
        ("batch read",),
        "Spark pushes no filters into a streaming source",
    ),
    Option(
        "transaction",
        name_of(NAME_LENGTH_MAX),
        "The name of this write: a second one with the same name puts nothing.",
        ("batch write",),
        "a stream uses the numbers of its batches",
    ),
    Option("orderBy", name_of(1000), "The column that sets the order of the messages.", WRITES),
    Option("groupBy", name_of(1000), "The column whose equal values become groups.", WRITES),
    Option(
        "queueColumn",
        name_of(1000),
        "The column with the name of each row's queue; null: the queue of option queue.",
        WRITES,
    ),
    Option(
        "storeColumn",
        name_of(1000),
        "The column with the store of each row, as url names it; null, or without it: by the group, else the body.",
        WRITES,
    ),
    Option("badRows", bad_rows, "fail (default), or queue:NAME for rows that cannot be messages.", WRITES),
    Option(
        "stagingExpiry",
        Reads(Seconds(60, EXPIRY_SECONDS_MAX, Reason.OPTIONS_ERROR)),
        "Seconds after which staged rows that were never committed are undone; one day.",
        WRITES,
    ),
)
REPORT = Option("report", name_of(10_000), "A file that the commit makes if it puts nothing.", ("batch write",))  # ours
BY_KEY: Mapping[str, Option] = {option.name.lower(): option for option in (*OPTIONS, REPORT)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The options of a reader; see `OPTIONS`."""

    stores: tuple[str, ...]
    queues: tuple[str, ...]
    application: str = ""
    mode: Literal["browse", "drain"] = "browse"
    order: Literal["physical", "logical"] = "physical"
    complete_groups: bool = False
    join_segments: bool = False
    max_messages_per_trigger: int | None = None
    max_bytes_per_trigger: int | None = None
    prefetch: bool = True
    allow_new_checkpoint: bool = False
    read_order: AskedOrder | None = None
    partitions: int = 1
    body: Body = "binary"
    pushdown: bool = False

    @property
    def is_several(self) -> bool:
        """Whether the options name several queues or stores, or a pattern."""
        return len(self.stores) > 1 or len(self.queues) > 1 or "*" in self.queues[0]

    @property
    def url(self) -> str:
        """The store; the first one of several."""
        return self.stores[0]

    @property
    def queue(self) -> str:
        """The queue, local or alias; of several, the first name or pattern."""
        return self.queues[0]

    @property
    def wanted(self) -> GetOptions:
        """The same as options of a get."""
        return GetOptions(
            logical=self.order == "logical",
            complete=self.join_segments,
            all_messages=self.complete_groups,
            read_order=self.read_order,
        )

    @property
    def wanted_strictly(self) -> GetOptions:
        """The same, read strictly: required for a browse that continues from a token."""
        return replace(self.wanted, read_order="strict")


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """The options of a writer; see `OPTIONS`.

    Args:
        report: for our jobs: a path on the driver's machine, where the commit runs.
        folder: the folder of the process that plans; paths in rows are relative to it.
    """

    stores: tuple[str, ...]
    queue: str
    application: str = DEFAULT_SINK_APPLICATION
    transaction: str | None = None
    order_by: str | None = None
    group_by: str | None = None
    queue_column: str | None = None
    store_column: str | None = None
    bad_rows: str | None = None
    staging_expiry: float = DAY_SECONDS
    report: str | None = None
    folder: str = field(default_factory=os.getcwd)


def source_options(given: Mapping[str, str], use: Use) -> SourceOptions:
    """Checks the options of a reader.

    Raises OptionsError if an option does not exist, has no effect here, or is missing; ArgumentError for its value.
    """
    values = _checked(given, use)
    options = SourceOptions(stores=values.pop("url"), queues=values.pop("queue"), **values)
    if options.is_several and "prefetch" in {key.lower() for key in given}:
        raise OptionsError("option prefetch has no meaning for several queues, whose messages are never claimed ahead")
    if options.mode == "drain" and not options.application:
        raise OptionsError(
            "mode=drain needs option application: a name under which the queue manager keeps this reader's position "
            "over restarts. Only one live query may run under one name",
        )
    for name, is_set in (("completeGroups", options.complete_groups), ("joinSegments", options.join_segments)):
        if is_set and options.order != "logical":
            raise OptionsError(
                f"option {name} needs order=logical: in physical order other messages lie between the parts"
            )
    for name in ("prefetch", "allowNewCheckpoint"):
        if options.mode == "browse" and name.lower() in {key.lower() for key in given}:
            raise OptionsError(f"option {name} has no meaning for mode=browse, which claims nothing")
    if use == "stream read" and options.mode == "browse" and options.read_order == "relaxed":
        raise OptionsError(
            "a stream that browses is always strict, so that it neither misses nor repeats a message: leave out "
            "readOrder=relaxed, or read with mode=drain"
        )
    return options


def check_source(given: Mapping[str, str]) -> SourceOptions:
    """Checks the options of a reader as far as possible before it is known whether it is a batch or a stream."""
    streams = {one.name.lower() for one in OPTIONS if one.why_not == STREAMS_ONLY}
    is_stream = any(key.lower() in streams for key in given)
    return source_options(given, "stream read" if is_stream else "batch read")


def sink_options(given: Mapping[str, str], use: Use) -> SinkOptions:
    """Checks the options of a writer. Raises as `source_options`."""
    if any(re.search(r"[,*]", value) for key, value in given.items() if key.lower() == "queue"):
        raise OptionsError("a write names one queue; for several, option queueColumn names a column with their names")
    values = _checked(given, use)
    options = SinkOptions(stores=values.pop("url"), **values)
    if len(options.stores) > 1 and use == "batch write" and options.transaction is None:
        raise OptionsError(
            "a write to several stores needs option transaction: each store commits for itself, and if the write fails "
            "between two of them, a second one with that name finishes it"
        )
    return options


def _checked(given: Mapping[str, str], use: Use) -> dict[str, Any]:
    values: dict[str, Any] = {}
    named = _with_path(given)
    if "provider" in named:  # from CREATE TABLE without columns, which asks for them
        raise OptionsError(NO_TABLE)
    for key, value in named.items():
        option = BY_KEY.get(key)
        if option is None:
            raise _unknown(key, use)
        if use not in option.uses:
            why = f": {option.why_not}" if option.why_not else f"; it is for a {' and a '.join(option.uses)}"
            raise OptionsError(f"option {option.name} has no meaning for a {use}{why}")
        check = option.several if option.several is not None and use in READS else option.check
        values[option.field] = check(option.name, value)
    for name in ("url", "queue"):
        if name not in values:
            raise OptionsError(f"option {name} is missing: {BY_KEY[name].meaning}" + ("" if values else f" {NO_TABLE}"))
    return values


def _with_path(given: Mapping[str, str]) -> dict[str, str]:
    """The options by their names in lower case, without Spark's own; a path counts as url."""
    values = {key.lower(): str(value) for key, value in given.items()}
    path = values.pop("paths", values.get("path"))  # load([ONE, OTHER]) gives paths, as a JSON list
    if path is not None and values.setdefault("url", path) != path:
        told = (store_places(name, text) for name, text in (("url", values["url"]), ("path", path)))
        one, other = (stores[0] if len(stores) == 1 else list(stores) for stores in told)
        raise OptionsError(f"url={one!r} and the path {other!r} name two stores: give one of them")
    return {key: value for key, value in values.items() if key not in SPARKS_OWN}


def _unknown(key: str, use: Use) -> OptionsError:
    # Whether a read is a batch or a stream is not known yet when Spark asks for the columns.
    word, uses = ("read", READS) if use in READS else (use, (use,))
    known = [option.name for option in OPTIONS if not set(uses).isdisjoint(option.uses)]
    if key in CREDENTIALS:
        return OptionsError(
            f"{key} must not be an option: Spark shows options in query plans and writes them to its event log, and "
            "each machine has credentials of its own. Every process of Spark finds them by the URL, in the credentials "
            "file that inorder login writes (for another file: INORDER_CREDENTIALS, and for executors "
            "spark.executorEnv.INORDER_CREDENTIALS)"
        )
    if told := translated(key, known):
        return OptionsError(f"there is no option {key!r} for a {word}; it must be {told}", option=key, nearest=[])
    near = nearest_names(key, known)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(sorted(known))}"
    return OptionsError(f"there is no option {key!r} for a {word}; {hint}", option=key, nearest=near)
