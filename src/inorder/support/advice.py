"""Advice in error texts: how to install a missing library, and our words for those of other libraries.

Nothing here is called unless an error is certain.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from ..errors import IN_MEMORY, ArgumentError, CallerError, Reason, bad_argument, nearest_names

SOURCE: Final = Path(__file__).resolve().parents[3]  # for a copy of the source: its folder

Translations = tuple[tuple[str, str], ...]
# In a task or a schedule of a worker. A schedule has `cron`, a task `attempts`.
PUT_SAYS: Final = "left out: the put of the message says it, as qm.put(QUEUE, BODY, {})"
RUN_LATER: Final[Translations] = (
    ("delay", "delay=SECONDS, the time until the message may be read"),
    ("attempts", PUT_SAYS.format("delay=SECONDS")),
    ("cron", "left out: cron says when"),
)
LIFE: Final[Translations] = (
    ("expiry", "expiry=SECONDS, the message's time to live"),
    ("attempts", PUT_SAYS.format("expiry=SECONDS")),
    ("cron", "left out: the function may return inorder.Message(BODY, expiry=SECONDS)"),
)
TIME_LIMIT: Final[Translations] = (("timeout", "timeout=SECONDS, the longest time that a call may take"), *LIFE)
ATTEMPTS: Final[Translations] = (("attempts", "attempts=NUMBER, after which the message is set aside"),)
BACKOFF: Final[Translations] = (("backoff", "backoff=inorder.work.Backoff(first=SECONDS), the wait between attempts"),)
CRON: Final[Translations] = (("cron", "cron, the first argument, such as '30 2 * * *'"),)
NAMES_AND_VALUES: Final[Translations] = (("properties", "properties={NAME: VALUE}"),)
ONCE: Final[Translations] = (("deduplicate", "deduplicate=KEY: a second put under the key puts nothing"),)
A_WAIT: Final[Translations] = (
    ("wait", "wait=SECONDS, the longest time to wait for a message; or inorder.FOREVER"),
    ("expiry", "left out: a put never waits: a full queue raises QueueFull. expiry=SECONDS is a time to live"),
    ("attempts", "left out: a worker waits for messages as long as it runs"),
    ("cron", "left out: the function only makes a message; the task that handles it has timeout=SECONDS"),
)
ACKNOWLEDGED: Final[Translations] = (
    ("syncpoint", "syncpoint=True for a get that takes effect at the commit: with qm.unit_of_work(): ..."),
)
MQ_OPTIONS: Final[Translations] = (
    ("syncpoint", "left out: each option is a keyword of its own, as syncpoint=True, logical=True"),
)
A_DEPTH: Final[Translations] = (("max_depth", "max_depth, the most messages that the queue holds"),)
OFFSETS: Final[Translations] = (
    ("mode", "left out: mode=drain continues where the application ended, mode=browse begins with the first message"),
)
THE_END: Final[Translations] = (("mode", "left out: a batch reads the messages that exist when it is planned"),)
KEY: Final[Translations] = (
    ("groupBy", "groupBy, with the name of the column that has the key"),
    ("group_id", "group_id, 24 bytes; equal keys become groups with option groupBy, or qm.group(QUEUE)"),
)

# Words of other libraries, in lower case, with our words for them and the advice; an error uses the first of our words
# that exists in its place. "kafka.*" stands for all other words that begin with "kafka.".
FOREIGN_WORDS: Final[Mapping[str, Translations]] = {
    # queue.Queue, redis and RQ
    "timeout": A_WAIT,
    "block": A_WAIT,
    "blocking": A_WAIT,
    "maxsize": A_DEPTH,
    "ttl": LIFE,
    "job_timeout": TIME_LIMIT,
    # Celery
    "countdown": RUN_LATER,
    "eta": RUN_LATER,
    "expires": LIFE,
    "max_retries": ATTEMPTS,
    "retry_backoff": BACKOFF,
    "default_retry_delay": BACKOFF,
    "time_limit": TIME_LIMIT,
    "rate_limit": (("threads", "left out: threads=1 and a pause in the function limit the rate"),),
    "run_every": CRON,
    "crontab": CRON,
    "schedule": CRON,
    # pika and other clients of AMQP
    "expiration": LIFE,
    "delivery_mode": (("persistent", "persistent=True for delivery mode 2, persistent=False for 1"),),
    "durable": (("default_persistence", "default_persistence=True, for messages that set no persistence"),),
    "auto_ack": ACKNOWLEDGED,
    "no_ack": ACKNOWLEDGED,
    # IBM MQ
    "wait_interval": A_WAIT,
    "gmo": MQ_OPTIONS,
    "pmo": MQ_OPTIONS,
    # SQS
    "delayseconds": RUN_LATER,
    "messageattributes": NAMES_AND_VALUES,
    "messagededuplicationid": ONCE,
    "waittimeseconds": A_WAIT,
    # Kafka, as options of Spark, as columns and as keywords
    "subscribe": (("queue", "queue, with names and patterns, separated by commas: ORDERS.*,RETURNS"),),
    "subscribepattern": (("queue", "queue, with names and patterns, separated by commas: ORDERS.*,RETURNS"),),
    "assign": (("queue", "queue, with names separated by commas; a queue has no partitions to choose from"),),
    "topic": (
        ("queueColumn", "queue for one queue, or queueColumn='topic' where each row names its own"),
        ("queue", "queue, with names and patterns, separated by commas: ORDERS.*,RETURNS"),
        ("body", "left out, .drop('topic'): option queue names the queue, or option queueColumn this column"),
    ),
    "kafka.bootstrap.servers": (
        ("url", "url, the path of a store, or a postgresql:// or https:// URL, as load(...) takes it"),
    ),
    "kafka.group.id": (("application", "application, a name under which the queue manager keeps the position"),),
    "startingoffsets": OFFSETS,
    "startingtimestamp": OFFSETS,
    "startingoffsetsbytimestamp": OFFSETS,
    "startingoffsetsbytimestampstrategy": OFFSETS,
    "groupidprefix": (("application", "application, a name under which the queue manager keeps the position"),),
    "minoffsetspertrigger": (("mode", "left out: a micro-batch begins with the first message that waits"),),
    "maxtriggerdelay": (("mode", "left out: the query's trigger says how long it waits"),),
    "maxrecordsperpartition": (("partitions", "partitions, the number of tasks that read in parallel"),),
    "fetchoffset.*": (("mode", "left out: a query waits 30 seconds for a server that restarts"),),
    "kafkaconsumer.*": (("mode", "left out: it is for Kafka's client"),),
    "kafka.*": (("url", "left out: it is for Kafka's client"),),
    "endingoffsets": THE_END,
    "endingoffsetsbytimestamp": THE_END,
    "endingtimestamp": THE_END,
    "failondataloss": (("mode", "left out: a query whose messages are gone always fails"),),
    "includeheaders": (("mode", "left out: the column properties always exists"),),
    "maxoffsetspertrigger": (("maxMessagesPerTrigger", "maxMessagesPerTrigger"),),
    "minpartitions": (("partitions", "partitions"),),
    "key": KEY,
    "value": (("body", "body, for example .withColumnRenamed('value', 'body')"),),
    "headers": NAMES_AND_VALUES,
    "timestamp": (("put_at", "put_at"),),
}


# SQLAlchemy writes three slashes before a path, four before an absolute one; SQLite's URIs have the path with or
# without //.
NOT_A_PATH: Final = re.compile(
    r"(?:(?P<scheme>sqlite3?(?:\+\w+)?:)(?://)?/?|(?P<uri>file:)(?://(?=/))?)(?P<path>[^?#]*)", re.IGNORECASE
)


def translated(word: object, known: Collection[str]) -> str:
    """Our replacement for another library's word, to be read after "must be"; empty if there is none.

    Args:
        known: our words that have a meaning in this place.
    """
    if not isinstance(word, str):
        return ""
    lower = word.lower()
    entries = FOREIGN_WORDS.get(lower) or FOREIGN_WORDS.get(f"{lower.partition('.')[0]}.*", ())
    return next((told for ours, told in entries if ours in known), "")


def check_store_name(store: object, argument: str = "store") -> None:
    """Raises ArgumentError, with the path that is meant, if a store is named like a URI of SQLite or a URL of
    SQLAlchemy.
    """
    found = NOT_A_PATH.match(store) if isinstance(store, str) else None
    if found is not None:
        path = unquote(found["path"])
        meant = f"the path alone, {path!r}" if path else f"a path, or {IN_MEMORY!r}"
        allowed = f"{meant}, without {found['scheme'] or found['uri']} and parameters"
        raise not_shown(argument, allowed)


def not_shown(name: str, allowed: str) -> ArgumentError:
    """As `bad_argument`, without the value: it may be a secret, or a URL with a password."""
    return ArgumentError(f"{name} must be {allowed}", argument=name, value="(not shown)", allowed=allowed)


def unknown_name(
    argument: str, name: object, known: Iterable[str], reason: Reason = Reason.ARGUMENT_ERROR
) -> ArgumentError:
    """Makes the error for a keyword that does not exist: with the most similar names, or with all names.

    A word of another library is translated.
    """
    names = sorted(known)
    if told := translated(name, names):
        return bad_argument(argument, name, told, reason)
    near = nearest_names(name, names) if isinstance(name, str) else []
    allowed = f"one that exists: did you mean {' or '.join(near)}?" if near else f"one of: {', '.join(names)}"
    return bad_argument(argument, name, allowed, reason)


def not_installed(what: str, extra: str, missing: ModuleNotFoundError) -> CallerError:
    """Makes the error for a part whose library is not installed.

    Args:
        what: the part and the library it needs, as the beginning of the text.
    """
    text = f"{what}: {how_to_install(extra)} ({missing.name} is not installed)"
    return CallerError(text, reason=Reason.ENVIRONMENT_ERROR)


def how_to_install(*extras: str) -> str:
    """The command that installs extras of `inorder` in the same way as this copy was installed."""
    import shlex  # noqa: PLC0415 - as json below, only for an error

    named = f"[{','.join(extras)}]"
    origin = _origin()
    url = str(origin.get("url", ""))
    how = "-e " if origin.get("dir_info", {}).get("editable") else ""
    if vcs := origin.get("vcs_info"):
        what = f"inorder{named} @ {vcs['vcs']}+{url}@{vcs['commit_id']}"
    elif url.startswith("file:"):
        what = f"{unquote(urlsplit(url).path)}{named}"
    else:
        what = f"inorder{named} @ {url}" if url else f"inorder{named}"
    return f"pip install {how}{shlex.quote(what)}"


def _origin() -> dict[str, Any]:
    """Where this copy was installed from, as its installer recorded it (PEP 610); empty: from an index.

    A copy of the source that runs without being installed counts as installed from its folder.
    """
    import json  # noqa: PLC0415
    from importlib import metadata  # noqa: PLC0415

    try:
        found = json.loads(metadata.distribution("inorder").read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, OSError, ValueError):
        is_source = (SOURCE / "pyproject.toml").is_file()
        return {"url": SOURCE.as_uri(), "dir_info": {}} if is_source else {}
    return found if isinstance(found, dict) else {}
