"""How fast does a channel carry messages to another store, compared with a local copy of the same batches?

The stores are two files, or two schemas of a PostgreSQL server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psycopg

import inorder
from benchmarks.bars import POSTGRESQL
from benchmarks.harness import RATE, Bar, Contestant, Figures, Question, Ready, Site, Work, rate
from benchmarks.systems import BLOCK, BODY
from benchmarks.systems.ours import QUEUE, settings_of
from benchmarks.systems.postgresql import LOOPBACK
from benchmarks.systems.postgresql import settings_of as postgresql_settings_of
from inorder.mq import channels

BATCHES = 20  # in one run, because a channel connects at its beginning
CHANNEL, COPY = "a channel", "get_many and put_many in a unit"


def carried(qm: inorder.QueueManager) -> Work:
    """Returns the work of a channel: runs of some batches each."""

    def run() -> None:
        left = BATCHES

        def ends(_: float) -> bool:
            nonlocal left
            left -= 1
            return not left

        channels.run_channel(qm, "TO.THERE", wait=ends)

    def stock(count: int) -> None:
        qm.put_many(QUEUE, [BODY] * (count * BATCHES * BLOCK), manager="THERE")

    return Work(operation=run, size=BATCHES * BLOCK, before=stock)


def copied(qm: inorder.QueueManager) -> Work:
    """Returns the work of a copy from queue to queue in one store."""

    def run() -> None:
        for _ in range(BATCHES):
            with qm.unit_of_work():
                qm.put_many("COPY", qm.get_many(QUEUE, BLOCK))

    def stock(count: int) -> None:
        qm.put_many(QUEUE, [BODY] * (count * BATCHES * BLOCK))

    return Work(operation=run, size=BATCHES * BLOCK, before=stock)


Settings = Callable[[inorder.QueueManager], str]
Place = Callable[[Path, str], str]
"""Returns the location of the store with this name, for the contestant with this folder."""


def file_of(folder: Path, name: str) -> str:
    """Returns the path of a file with this name."""
    return str(folder / f"{name}.db")


def schema_of(port: int) -> Place:
    """Returns a function that names a schema after the contestant's folder, so that each contestant has its own."""

    def place(folder: Path, name: str) -> str:
        schema = f"bench_{folder.parent.name}_{folder.name}_{name}".lower()
        return f"postgresql://postgres@{LOOPBACK}:{port}/postgres?schema={schema}"

    return place


@contextmanager
def carrying(folder: Path, place: Place, settings: Settings) -> Iterator[Ready]:
    """Opens two stores, and a channel from one to the other."""
    there = place(folder, "there")
    with inorder.connect(place(folder, "here")) as qm, inorder.connect(there, name="THERE") as other:
        other.create_queue(QUEUE)
        qm.create_queue("THERE", usage="transmission")
        channels.define_channel(qm, "TO.THERE", transmission_queue="THERE", connection=there, batch_size=BLOCK)
        yield Ready(measure=partial(_measure, carried(qm)), settings=settings(qm))


@contextmanager
def copying(folder: Path, place: Place, settings: Settings) -> Iterator[Ready]:
    """Opens two queues of one store."""
    with inorder.connect(place(folder, "both")) as qm:
        for queue in (QUEUE, "COPY"):
            qm.create_queue(queue)
        yield Ready(measure=partial(_measure, copied(qm)), settings=settings(qm))


def _measure(work: Work, seconds: float) -> Figures:
    return {RATE: rate(work, seconds)}


def on_files(site: Site) -> list[Contestant]:
    """Returns a channel and a copy, in files."""
    return _contestants(file_of, settings_of)


def on_postgresql(site: Site) -> list[Contestant]:
    """Returns a channel and a copy on PostgreSQL, or none if no server runs."""
    if POSTGRESQL not in site.ports:
        return []
    port = site.ports[POSTGRESQL]

    def settings(_: inorder.QueueManager) -> str:
        with psycopg.connect(f"postgresql://postgres@{LOOPBACK}:{port}/postgres") as connection:
            return f"inorder {inorder.__version__}, {postgresql_settings_of(connection)}"

    return _contestants(schema_of(port), settings)


def _contestants(place: Place, settings: Settings) -> list[Contestant]:
    return [
        Contestant(name=name, role="ours", open=partial(opened, place=place, settings=settings))
        for name, opened in ((CHANNEL, carrying), (COPY, copying))
    ]


BARS = [Bar(figure=RATE, of=CHANNEL, against=COPY, first=0.5, goal=0.7)]
QUESTION = Question(
    name="channel",
    title="a channel between two files, beside a local copy, batches of 100",
    unit="messages/s",
    contestants=on_files,
    bars=BARS,
)
BETWEEN_SCHEMAS = Question(
    name="channel_on_postgresql",
    title="a channel between two stores, beside a local copy, batches of 100, on PostgreSQL",
    unit="messages/s",
    contestants=on_postgresql,
    bars=BARS,
)
