"""For queries that have ended: confirms the last batch, or returns the messages to the queue.

Spark never tells a source that the last batch of a run is done. A query that starts again confirms it from its
checkpoint; one that has stopped for good cannot. Instead `finish` reads its checkpoint: the last batch in Spark's
commit log is safe in the sink, and the claim of that batch is confirmed. `release` is for a lost checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from ..client.bulk import LedgerKey
from ..errors import CheckpointLost, OptionsError
from ..stores.seam.damage import utc
from .drain import claim_of
from .opening import check_queue, made_at, open_store
from .options import DEFAULT_SINK_APPLICATION, SourceOptions, source_options, store_places, store_text
from .source_queues import chosen_of


class Checkpoint(Protocol):
    """The checkpoint of a query, wherever it is."""

    def names(self, folder: str) -> list[str] | None:
        """The names in one of its folders; None if there is no such folder."""
        ...

    def text(self, path: str) -> str | None:
        """The text of one of its files; None if there is no such file."""
        ...


class LocalCheckpoint:
    """A checkpoint in a folder of this machine."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder.removeprefix("file://"))

    def __str__(self) -> str:
        return str(self._folder)

    def names(self, folder: str) -> list[str] | None:
        place = self._folder / folder
        return [path.name for path in place.iterdir()] if place.is_dir() else None

    def text(self, path: str) -> str | None:
        place = self._folder / path
        return place.read_text(encoding="utf-8") if place.is_file() else None


def finish(url: str, queue: str, application: str, checkpoint: str | Checkpoint) -> int:
    """Confirms the messages that a stopped query has drained, according to Spark's commit log.

    Args:
        url, queue: as the options of the query; of several queues, those are finished that the query has drained.
        application: the application name of the query.
        checkpoint: the query's checkpointLocation, a folder on this machine; or a `Checkpoint` elsewhere.

    Returns: how many messages were removed; 0: they were removed before.

    Raises OptionsError if the folder is not a checkpoint of a query that drained this queue; CheckpointLost if it knows
    claims that the queue never had; NotFound if the application never claimed. A query that still runs is fenced.
    """
    options = _drain_options(url, queue, application)
    found = LocalCheckpoint(checkpoint) if isinstance(checkpoint, str) else checkpoint
    if options.is_several:
        offsets = committed_offsets(found)
        return sum(_finish_all(where, options, offsets) for where in options.stores)
    with open_store(options.url, application) as qm:
        local = check_queue(qm, queue).name
        claim = committed_claim(found, options, made_at(qm, local))
        return qm.bulk.finish_claims(local, application, claim)


def _finish_all(url: str, options: SourceOptions, offsets: Sequence[dict[str, Any]]) -> int:
    """Confirms the claims of committed batches, on all queues of a store that the options name."""
    total = 0
    with open_store(url, options.application) as qm:
        made = {one: made_at(qm, one) for one in chosen_of(qm, options.queues)}
        for offset in offsets:
            name = offset.get("queue")
            if offset.get("application") == options.application and name in made and made[name] == offset["made"]:
                claim = offset["claim"] - ("empty" in offset)
                total += qm.bulk.finish_claims(name, options.application, claim)
    return total


def release(url: str, queue: str, application: str) -> int:
    """Returns the messages of a query whose checkpoint is lost to their places on the queue; returns how many.

    The next reader repeats the work that the query has done with them. A query that still runs is fenced.

    Args:
        url, queue: as the options of the query.

    Raises NotFound if the application never claimed on one queue; of several, those are released where it did.
    """
    options = _drain_options(url, queue, application)
    if options.is_several:
        return sum(_release_all(where, options) for where in options.stores)
    with open_store(options.url, application) as qm:
        return qm.bulk.release_claims(check_queue(qm, queue).name, application)


def _release_all(url: str, options: SourceOptions) -> int:
    with open_store(url, options.application) as qm:
        chosen = set(chosen_of(qm, options.queues))
        known = [one.queue for one in qm.bulk.claims() if one.application == options.application]
        return sum(qm.bulk.release_claims(one, options.application) for one in known if one in chosen)


def _drain_options(url: str, queue: str, application: str) -> SourceOptions:
    given = {"url": store_text(url), "queue": queue, "application": application, "mode": "drain"}
    return source_options(given, "stream read")


def transaction_time(
    url: str, queue: str, transaction: str, application: str = DEFAULT_SINK_APPLICATION
) -> datetime | None:
    """When a batch write with option transaction was committed on a queue, in UTC; None if it was not.

    Another write under a committed name puts nothing. Of several stores, all must have committed it.

    Args:
        url: as the option of the write.
    """
    times = []
    for where in store_places("url", store_text(url)):
        with open_store(where, application) as qm:
            noted = qm.bulk.in_ledger(queue, LedgerKey(application, "", transaction))
        if noted is None:
            return None
        times.append(noted.at)
    return utc(max(times))


def committed_offsets(checkpoint: Checkpoint) -> list[dict[str, Any]]:
    """The offsets of the last batch in Spark's commit log; none if the log is empty.

    Raises OptionsError if the folder is no checkpoint; CheckpointLost if the log has a batch without offsets.
    """
    if checkpoint.names("offsets") is None:
        raise OptionsError(
            f"{checkpoint} is not a checkpoint of a streaming query: it has no folder offsets. Name the query's "
            "checkpointLocation, on this machine; copy it here if it is elsewhere"
        )
    done = [int(name) for name in checkpoint.names("commits") or () if name.isdigit()]
    if not done:
        return []
    logged = checkpoint.text(f"offsets/{max(done)}")
    if logged is None:
        known = f"Spark's commit log has batch {max(done)}"
        raise CheckpointLost(f"{known}, and there are no offsets of it in {checkpoint}")
    return list(_offsets(logged))


def committed_claim(checkpoint: Checkpoint, options: SourceOptions, made: int) -> int:
    """The claim of the last batch in Spark's commit log; 0 if the log is empty. Raises as `finish`."""
    offsets = committed_offsets(checkpoint)
    if not offsets:
        return 0
    ours = [
        one for one in offsets if (one.get("queue"), one.get("application")) == (options.queue, options.application)
    ]
    ours = [one for one in ours if one.get("made") == made] or ours  # several stores may have a queue of that name
    if len(ours) != 1:
        raise OptionsError(
            f"the query of {checkpoint} did not drain queue {options.queue!r} as {options.application!r}; its offsets "
            f"are {offsets}",
        )
    return claim_of(ours[0], options, made) - ("empty" in ours[0])  # such a claim has nothing to confirm


def _offsets(logged: str) -> Iterator[dict[str, Any]]:
    """The offsets of a batch's sources: after the version and the settings, one line each. The offset of a query on
    several queues counts as one for each.
    """
    for line in logged.splitlines()[2:]:
        try:
            offset = json.loads(line)
        except ValueError:  # "-" for a source without an offset
            continue
        if isinstance(offset, dict) and isinstance(offset.get("queues"), dict):
            for key, entry in offset["queues"].items():
                queue, _, made = key.rpartition("@")
                yield {"application": offset.get("application"), "queue": queue, "made": int(made), **entry}
        elif isinstance(offset, dict):
            yield offset
