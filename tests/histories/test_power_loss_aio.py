"""Brief calls of tasks beside a thread that writes, and the log cut: what was answered holds behind the cut."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import threading
from pathlib import Path
from typing import NamedTuple

import pytest
from tools.proof.power import log_of

import inorder
from inorder import NoMessageAvailable, aio
from inorder.stores.sqlite import SqliteStore

SEED = int(os.environ.get("INORDER_CRASH_SEED", random.SystemRandom().getrandbits(32)))
TASKS, CALLS, CUTS = 8, 24, 25


class Answer(NamedTuple):
    """What a caller knows.

    Args:
        synced: so many bytes of the log were on disk when the answer came, at least.
        what: "put" or "got".
    """

    synced: int
    what: str
    body: bytes


class Writers:
    """Tasks and a thread at work on one store, whose log is never copied into the database.

    Attributes:
        copy: the database without its log.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.answers = path, list[Answer]()
        self.copy = path.with_name("copy.db")
        self._synced = 0

    def sync(self, descriptor: int) -> None:
        length = os.fstat(descriptor).st_size
        os.fdatasync(descriptor)
        self._synced = max(self._synced, length)

    def _note(self, what: str, body: bytes) -> None:
        self.answers.append(Answer(self._synced, what, body))

    async def work(self) -> bytes:
        """The log as it is at the end."""
        store = SqliteStore(self.path, keeps_log=True)
        async with aio.connect(store, connections=2) as qm:
            await qm.create_queue("Q")
            thread = threading.Thread(target=self._thread, args=(store,))
            thread.start()
            await asyncio.gather(*(self._task(qm, number) for number in range(TASKS)))
            await asyncio.to_thread(thread.join)
            shutil.copy(self.path, self.copy)  # before the close, which copies the log into it
            return log_of(self.path).read_bytes()

    def _thread(self, store: SqliteStore) -> None:
        with inorder.connect(store) as qm:
            for number in range(CALLS):
                body = b"thread %d" % number
                qm.put("Q", body)
                self._note("put", body)

    async def _task(self, qm: aio.QueueManager, task: int) -> None:
        chance = random.Random(SEED + task)
        for number in range(CALLS):
            body = b"task %d.%d" % (task, number)
            await chance.choice((self._put, self._put, self._put_and_fail, self._get))(qm, body)
            if chance.random() < 0.2:  # else its next call often shares a sync with those of others
                await asyncio.sleep(0.001)

    async def _put(self, qm: aio.QueueManager, body: bytes) -> None:
        await qm.run(lambda one: one.put("Q", body), is_brief=True)
        self._note("put", body)

    async def _put_and_fail(self, qm: aio.QueueManager, body: bytes) -> None:
        def put(one: inorder.QueueManager) -> None:
            one.put("Q", body)
            raise KeyError

        with pytest.raises(KeyError):
            await qm.run(put, is_brief=True)
        self._note("put", body)

    async def _get(self, qm: aio.QueueManager, _: bytes) -> None:
        try:
            got = await qm.run(lambda one: one.internals.get_if("Q", lambda message: None), is_brief=True)
        except NoMessageAvailable:
            return
        self._note("got", got.body)


def bodies_at(path: Path, log: bytes, folder: Path) -> list[bytes]:
    """What is on the queue if the machine lost its power when so much of the log was on disk."""
    folder.mkdir()
    store = folder / path.name
    shutil.copy(path, store)
    log_of(store).write_bytes(log)
    with inorder.connect(store) as qm:
        return [message.body for message in qm.browse("Q")]


def test_what_was_answered_was_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writers = Writers(tmp_path / "store.db")
    with monkeypatch.context() as patched:
        patched.setattr("inorder.stores.sqlite.log.sync_data", writers.sync)
        log = asyncio.run(writers.work())
    answers = writers.answers
    got = {one.body for one in answers if one.what == "got"}
    assert len(got) < len(answers)
    lengths = sorted({one.synced for one in answers})
    cuts = {*random.Random(SEED).sample(lengths, min(CUTS, len(lengths))), lengths[0], lengths[-1]}
    for cut in cuts:
        found = bodies_at(writers.copy, log[:cut], tmp_path / str(cut))
        known = [one for one in answers if one.synced <= cut]
        lost = {one.body for one in known if one.what == "put"} - got - set(found)
        again = {one.body for one in known if one.what == "got"} & set(found)
        told = f"INORDER_CRASH_SEED={SEED}, cut at {cut:,}"
        assert not lost, f"{told}: puts that were answered are lost"
        assert not again, f"{told}: messages that were got come again"
        assert len(found) == len(set(found)), f"{told}: messages are there twice"
