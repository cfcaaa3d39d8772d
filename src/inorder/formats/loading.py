"""Loads the files of a folder with several processes, each file as one group, exactly once.

The work to do is on queues, too::

    QUEUE.TICKETS    a message for each file that is still to be loaded
    QUEUE.LOADED     a message for each file that was loaded, or given up

A process gets a ticket, puts the file on QUEUE, puts a record on QUEUE.LOADED, and commits: one unit of work. If it
dies, the ticket returns to its queue, and no part of the file is on QUEUE. So calling it again continues an interrupted
load, and any number of processes may get tickets at the same time.

One process makes the tickets while no other has the ticket queue open, so it sees all of them: files that have neither
a ticket nor a message on QUEUE.LOADED get one. A file is known by its path; one that was loaded is not loaded again if
it changes. To start over, empty QUEUE.LOADED.
"""

from __future__ import annotations

import contextlib
import json
import logging
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Final, Literal, NamedTuple

from ..client.manager import QueueManager, connect
from ..client.queue import Queue
from ..errors import NoMessageAvailable, ObjectExists, ObjectInUse
from ..model.message import Message
from ..model.options import Match, check_whole
from .errors import FormatError
from .paths import EVERY_FILE, Root, folder
from .splitting import CHUNK_BYTES, RECORD_BYTES_MAX, Rule, rule_of
from .transfer import FilePut, put_file

log = logging.getLogger("inorder.formats.loading")

TICKETS: Final = ".TICKETS"
LOADED: Final = ".LOADED"
PROCESSES_MAX: Final = 256
LOOK_AGAIN_SECONDS: Final = 0.05
TICKETS_AT_ONCE: Final = 1000

Kind = Literal["begun", "loaded", "backed out", "given up", "lost"]
BeforeCommit = Callable[[str, int], None]


class LoadEvent(NamedTuple):
    """An event of a load.

    Args:
        kind: "begun": a process has got a file's ticket. "loaded": the file is on the queue. "backed out": it is not,
            for the reason in `error`; it is tried again. "given up": it failed too often. "lost": a process died;
            another takes its place. "loaded" may be missing if the process died right after the commit.
        path: the path of the file; "" if a process was lost before it began.
        process: the number of the process.
        messages: how many messages the group has, with the manifest.
        size: the size of the file in bytes.
        error: why it failed.
    """

    kind: Kind
    path: str
    process: int
    messages: int = 0
    size: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadResult:
    """The contents of QUEUE.LOADED at the end.

    Args:
        files: how many files were loaded, by this call and earlier ones.
        messages: how many messages they have.
        size: how many bytes they have.
        given_up: files that failed too often, and why. The next call tries them again.
    """

    files: int
    messages: int
    size: int
    given_up: Mapping[str, str] = field(default_factory=dict)


class _Work(NamedTuple):
    """The instructions for a process."""

    store: str
    queue: str
    root: bytes
    rule: Rule
    attempts: int
    options: dict[str, Any]
    before_commit: BeforeCommit | None


def load_folder(
    store: str | os.PathLike[str],
    queue: str,
    root: Root,
    rule: Rule | str,
    *,
    processes: int = 4,
    patterns: Iterable[str] = EVERY_FILE,
    exclude: Iterable[str] = (),
    attempts: int = 3,
    wait_others: float = 60.0,
    progress: Callable[[LoadEvent], None] | None = None,
    before_commit: BeforeCommit | None = None,
    chunk: int = CHUNK_BYTES,
    record_max: int = RECORD_BYTES_MAX,
    record_format: str = "",
    **fields: Any,
) -> LoadResult:
    """Puts the files of a folder on a queue, each as one group, as `put_file` does; continues an interrupted load.

    It starts new processes, so the calling program must protect its main part with `if __name__ == "__main__":`.

    Args:
        store: the path of the store, a file; or a URL, as `inorder.connect`, with its credentials in the environment or
            in the credentials file.
        queue: an existing local queue; `QUEUE.TICKETS` and `QUEUE.LOADED` are created if they are missing.
        root, patterns, exclude: the files, as for `folder`.
        rule, chunk, record_max, record_format, fields: as for `put_file`.
        processes: how many load at the same time, 1 to 256.
        attempts: how often a file is tried, from 1, before it is given up; the death of its process counts.
        wait_others: seconds to wait for the processes of an earlier call that died.
        progress: called in this process with each `LoadEvent`. An exception from it ends the load, which can be
            continued.
        before_commit: called in the loading process before each commit, with the path and the number of the attempt
            from 1; an exception from it backs the file out. It must be a function of a module, because it is sent to
            the processes.

    Raises ArgumentError; UnknownQueue; ObjectInUse 2042 if another load of this queue is running; FileError if the
    folder cannot be listed; FormatError if a process ends before it has begun a file.
    """
    for name, value, high in (("processes", processes, PROCESSES_MAX), ("attempts", attempts, 1_000_000)):
        check_whole(name, value, 1, high)
    options = {"chunk": chunk, "record_max": record_max, "record_format": record_format, **fields}
    work = _Work(os.fspath(store), queue, os.fsencode(root), rule_of(rule), attempts, options, before_commit)
    with connect(store, program="inorder load") as manager:
        manager.attributes(queue)
        for name in (queue + TICKETS, queue + LOADED):
            with contextlib.suppress(ObjectExists):
                manager.create_queue(name)
        todo = _make_tickets(manager, queue, folder(root, patterns, exclude=exclude), wait_others)
        manager.close_queue(queue + LOADED)
        if todo:
            _Crew(work, min(processes, todo), progress or (lambda event: None)).run()
        return _result(manager, queue)


# ---- tickets and records of loaded files


def _make_tickets(manager: QueueManager, queue: str, paths: Iterator[str], wait_others: float) -> int:
    """Makes a ticket for each file that has none and was not loaded; returns how many tickets there are now."""
    with _alone(manager, queue + TICKETS, wait_others) as tickets, manager.unit_of_work():
        there = {_read(message)["path"] for message in tickets.browse()}
        known = set(there)
        for message in manager.browse(queue + LOADED):
            found = _read(message)
            if found["error"]:
                manager.get(queue + LOADED, match=Match(message_id=message.message_id))
            else:
                known.add(found["path"])
        new = [json.dumps({"path": path}).encode() for path in paths if path not in known]
        for at in range(0, len(new), TICKETS_AT_ONCE):
            tickets.put_many(new[at : at + TICKETS_AT_ONCE])
    return len(there) + len(new)


@contextlib.contextmanager
def _alone(manager: QueueManager, name: str, seconds: float) -> Iterator[Queue]:
    """Opens the queue exclusively, waiting for the processes of a load that was killed: they end after their file."""
    until = time.monotonic() + seconds
    while True:
        try:
            handle = manager.open(name, input="exclusive", output=True, browse=True)
            break
        except ObjectInUse:
            if time.monotonic() >= until:
                raise
        time.sleep(LOOK_AGAIN_SECONDS)
    with handle:
        yield handle


def _read(message: Message) -> dict[str, Any]:
    try:
        found = json.loads(message.body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("path"), str):
        raise FormatError(f"a message on a queue of this load is not from a load: {message.body[:60]!r}")
    return {"error": "", "messages": 0, "size": 0, **found}


def _result(manager: QueueManager, queue: str) -> LoadResult:
    every = [_read(message) for message in manager.browse(queue + LOADED)]
    good = [one for one in every if not one["error"]]
    return LoadResult(
        files=len(good),
        messages=sum(one["messages"] for one in good),
        size=sum(one["size"] for one in good),
        given_up={one["path"]: one["error"] for one in every if one["error"]},
    )


# ---- the processes, seen from the caller


class _Crew:
    """Processes that load; a lost one is replaced."""

    def __init__(self, work: _Work, processes: int, progress: Callable[[LoadEvent], None]) -> None:
        self._work, self._count, self._progress = work, processes, progress
        self._context = multiprocessing.get_context("spawn")  # a store cannot be used after a fork
        self._at_work: dict[Connection, tuple[BaseProcess, str]] = {}

    def run(self) -> None:
        """Returns when nothing is left to load."""
        try:
            for _ in range(self._count):
                self._start()
            while self._at_work:
                for connection in wait(list(self._at_work)):
                    assert isinstance(connection, Connection)
                    self._hear(connection)
        finally:
            for connection, (process, _) in self._at_work.items():
                process.terminate()
                process.join()
                connection.close()

    def _start(self) -> None:
        ours, theirs = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_work, args=(self._work, theirs), daemon=True)
        # Ctrl-C at a terminal reaches every process. This one ends the others, which keep the signal blocked. Starting
        # the tracker, which the first process of a program would do, unblocks the signal.
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        self._at_work[ours] = process, ""

    def _hear(self, connection: Connection) -> None:
        process, path = self._at_work[connection]
        try:
            event: LoadEvent = connection.recv()
        except (EOFError, OSError):  # the process has ended
            del self._at_work[connection]
            connection.close()
            process.join()
            if process.exitcode:
                self._replace(process, path)
            return
        self._at_work[connection] = process, event.path
        self._progress(event)

    def _replace(self, process: BaseProcess, path: str) -> None:
        """Replaces a lost process even if no ticket seems to be left: the next get of a ticket backs out the ticket of
        the lost one.
        """
        how = f"it ended with {process.exitcode}"
        log.warning("a process that loads files was lost at %r: %s", path, how)
        if not path:
            raise FormatError(f"a process that should load files could not start: {how}")
        self._start()
        self._progress(LoadEvent("lost", path, process.pid or 0, error=how))


# ---- one process


def _work(work: _Work, told: Connection) -> None:
    """Loads files until there is no ticket, or the caller is gone."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "runs in a process of its own"
    with (
        connect(work.store, program="inorder load") as manager,
        manager.open(work.queue + TICKETS, input="shared", read_order="relaxed") as tickets,
        contextlib.suppress(BrokenPipeError),
    ):
        while parent.is_alive() and _next(work, manager, tickets, told.send):
            pass


def _next(work: _Work, manager: QueueManager, tickets: Queue, tell: Callable[[LoadEvent], None]) -> bool:
    """Handles one ticket; returns whether there was one."""
    ticket = None
    try:
        with manager.unit_of_work():
            try:
                ticket = tickets.get()
            except NoMessageAvailable:
                return False
            path = _read(ticket)["path"]
            tell(LoadEvent("begun", path, os.getpid()))
            if ticket.backout_count >= work.attempts:
                event = _give_up(work, manager, path, f"its process was lost, {ticket.backout_count} times")
            else:
                event = _load(work, manager, path, ticket.backout_count + 1)
    except BrokenPipeError:
        raise
    except Exception as trouble:  # the faults of one file must not keep others from being loaded
        if ticket is None:
            raise
        log.warning("%r is backed out: %s", _read(ticket)["path"], trouble)
        event = _failed(work, manager, tickets, ticket, f"{type(trouble).__name__}: {trouble}")
    tell(event)
    return True


def _load(work: _Work, manager: QueueManager, path: str, attempt: int) -> LoadEvent:
    put: FilePut = put_file(manager, work.queue, work.root, path, work.rule, **work.options)
    event = LoadEvent("loaded", path, os.getpid(), put.manifest.messages + 1, put.manifest.size)
    body = {"path": path, "messages": event.messages, "size": event.size, "sha256": put.manifest.sha256}
    manager.put(work.queue + LOADED, json.dumps(body).encode())
    if work.before_commit is not None:
        work.before_commit(path, attempt)
    return event


def _give_up(work: _Work, manager: QueueManager, path: str, why: str) -> LoadEvent:
    manager.put(work.queue + LOADED, json.dumps({"path": path, "error": why}).encode())
    return LoadEvent("given up", path, os.getpid(), error=why)


def _failed(work: _Work, manager: QueueManager, tickets: Queue, ticket: Message, why: str) -> LoadEvent:
    """Reports a file that was backed out. Its ticket is on the queue again, unless this was the last attempt."""
    path = _read(ticket)["path"]
    if ticket.backout_count + 1 >= work.attempts:
        with contextlib.suppress(NoMessageAvailable), manager.unit_of_work():  # another process may have got it already
            tickets.get(match=Match(message_id=ticket.message_id))
            return _give_up(work, manager, path, why)
    return LoadEvent("backed out", path, os.getpid(), error=why)
