"""What an operator does about a query that has ended: confirm its last batch, or give its messages back.

Spark never tells a source that the last batch of a run is done. A query that starts again says so by its checkpoint;
one that has stopped for good cannot. `finish` looks into its checkpoint instead: the last batch in Spark's commit log
is safe in the sink, and the claim of that batch is confirmed. `release` is for a checkpoint that is lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from ..client.bulk import LedgerKey
from ..errors import CheckpointLost, OptionsError
from ..stores.seam.damage import utc
from .drain import claim_of
from .opening import check_queue, made_at, open_store
from .options import DEFAULT_SINK_APPLICATION, SourceOptions, store_place


class Checkpoint(Protocol):
    """The checkpoint of a query, wherever it is."""

    def names(self, folder: str) -> list[str] | None:
        """What is in one of its folders; None: there is no such folder."""
        ...

    def text(self, path: str) -> str | None:
        """The text of one of its files; None: there is no such file."""
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
    """Confirms what a query that has stopped for good has drained, after a look into Spark's commit log.

    Args:
        url: of the store, or its path.
        application: as the query gave it.
        checkpoint: the query's checkpointLocation, a folder of this machine; or one that is elsewhere.

    Returns: how many messages went for good; 0: they had gone before.

    Raises: OptionsError, the folder is not a checkpoint of a query that drained this queue; CheckpointLost, it knows
    claims that the queue never gave; NotFound, the application never claimed. A query that still runs is fenced.
    """
    options = SourceOptions(url=store_place("url", url), queue=queue, application=application, mode="drain")
    with open_store(options.url, application) as qm:
        local = check_queue(qm, queue).name
        found = LocalCheckpoint(checkpoint) if isinstance(checkpoint, str) else checkpoint
        claim = committed_claim(found, options, made_at(qm, local))
        return qm.bulk.finish_claims(local, application, claim)


def release(url: str, queue: str, application: str) -> int:
    """Gives the messages of a query whose checkpoint is lost back to the queue, at their places; how many.

    What the query has done with them before it was lost is done again by the next reader. A query that still runs
    is fenced. Raises: NotFound, the application never claimed.
    """
    with open_store(store_place("url", url), application) as qm:
        return qm.bulk.release_claims(check_queue(qm, queue).name, application)


def transaction_time(
    url: str, queue: str, transaction: str, application: str = DEFAULT_SINK_APPLICATION
) -> datetime | None:
    """When a batch write with option transaction was committed on a queue, in UTC; None: it was not.

    A write under a name that is known here puts nothing.
    """
    with open_store(store_place("url", url), application) as qm:
        noted = qm.bulk.in_ledger(queue, LedgerKey(application, "", transaction))
    return None if noted is None else utc(noted.at)


def committed_claim(checkpoint: Checkpoint, options: SourceOptions, made: int) -> int:
    """The claim of the last batch that Spark's commit log knows; 0: it knows none.

    Raises: OptionsError, as `finish`; CheckpointLost, the log knows a batch whose offsets are not there.
    """
    if checkpoint.names("offsets") is None:
        raise OptionsError(
            f"{checkpoint} is not a checkpoint of a streaming query: it has no folder offsets. Name the query's "
            "checkpointLocation, on this machine; copy it here if it is elsewhere"
        )
    done = [int(name) for name in checkpoint.names("commits") or () if name.isdigit()]
    if not done:
        return 0
    logged = checkpoint.text(f"offsets/{max(done)}")
    if logged is None:
        known = f"Spark's commit log has batch {max(done)}"
        raise CheckpointLost(f"{known}, and there are no offsets of it in {checkpoint}")
    offsets = list(_offsets(logged))
    ours = [
        one for one in offsets if (one.get("queue"), one.get("application")) == (options.queue, options.application)
    ]
    if len(ours) != 1:
        raise OptionsError(
            f"the query of {checkpoint} did not drain queue {options.queue!r} as {options.application!r}; its offsets "
            f"are {offsets}"
        )
    return claim_of(ours[0], options, made) - ("empty" in ours[0])  # nothing is to be confirmed of such a claim


def _offsets(logged: str) -> Iterator[dict[str, Any]]:
    """The offsets of a batch's sources: behind the version and the settings, a line each."""
    for line in logged.splitlines()[2:]:
        try:
            offset = json.loads(line)
        except ValueError:  # "-", a source that had none
            continue
        if isinstance(offset, dict):
            yield offset


__all__ = ["finish", "release", "transaction_time"]
