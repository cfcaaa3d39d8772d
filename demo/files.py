"""The main job on real files: loaded by several processes, drained by Spark exactly once, audited, and written back.

    make demo DIR=FOLDER

Each file becomes a group of messages that begins with a manifest. Four processes put them at the same time, so the
groups lie mixed on the queue; one of them is killed in the middle of a file, and one backs a file out. Spark takes the
queue in logical order, whole groups only; its driver is killed on the way, and another one continues. Then the archive
is audited, the files are made of it, and compared byte by byte with the originals.
"""

from __future__ import annotations

import filecmp
import json
import os
import queue as queues
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from inorder.client.manager import QueueManager, connect
from inorder.errors import InorderError, bad_argument
from inorder.formats import folder
from inorder.formats.loading import LoadEvent, load_folder

from .screen import Screen

QUEUE = "FILES"
LOADERS = 4
RULE = "delimiter:\\n\\n"  # paragraphs
BATCHES = 8  # the approximate number of micro-batches
FILES_MIN = 10
TELL_SECONDS = 5.0
PATIENCE_SECONDS = 600.0
LAST_WORDS = 12  # lines
DIFFERENT_SHOWN = 5


class DemoFailed(Exception):
    """A process failed; the text names it and quotes its last output."""


class Chosen(NamedTuple):
    """A folder and a selection of its files; as in `formats.folder`."""

    root: Path
    patterns: Sequence[str] = ("**",)
    exclude: Sequence[str] = ()


def standard_library() -> Chosen:
    """Returns the default: Python's own modules without installed packages."""
    return Chosen(Path(sysconfig.get_path("stdlib")), ("**/*.py",), ("site-packages/**", "dist-packages/**"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """The planned failures of the loading processes: one process dies at a file, and one file is backed out."""

    dies_at: str
    backs_out_at: str

    def __call__(self, path: str, attempt: int) -> None:
        if attempt == 1 and path == self.dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if attempt == 1 and path == self.backs_out_at:
            raise DemoFailed("this was planned")


class JobProcess:
    """A process of the job, with its output lines."""

    def __init__(self, name: str, module: str, log: Path) -> None:
        self.name, self._log = name, log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,  # a kill of the driver includes its child processes
            )
        self._lines: queues.SimpleQueue[str | None] = queues.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                if line.startswith("["):  # libraries may print other lines
                    self._lines.put(line)
        self._lines.put(None)

    def order(self, **order: Any) -> None:
        assert self._process.stdin is not None
        print(json.dumps(order), file=self._process.stdin, flush=True)

    def told(self) -> Iterator[list[Any]]:
        """Yields its lines until it ends. Raises: DemoFailed, no line came for too long."""
        while True:
            try:
                line = self._lines.get(timeout=PATIENCE_SECONDS)
            except queues.Empty:
                raise DemoFailed(f"{self.name} has said nothing for {PATIENCE_SECONDS:.0f} s") from None
            if line is None:
                return
            yield json.loads(line)

    def kill(self) -> None:
        """Kills it and its child processes with SIGKILL; harmless when repeated."""
        for pid in members_of_session(self._process.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self._wait()

    def _wait(self) -> int:
        status = self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()
        return status

    def end(self) -> None:
        """Waits for its end. Raises: DemoFailed, it did not end well."""
        if status := self._wait():
            words = self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-LAST_WORDS:]
            raise DemoFailed(f"{self.name} ended with status {status}\n" + "\n".join(f"    {line}" for line in words))


def members_of_session(leader: int) -> list[int]:
    """Returns the processes of a session, including its leader."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(fields[3]) == leader:
            found.append(int(status.parent.name))
    return found or [leader]


@dataclass
class Facts:
    """The results of the job."""

    files: int = 0
    messages: int = 0
    size: int = 0
    loaded: int = 0
    deaths: list[str] = field(default_factory=list)
    backed_out: list[str] = field(default_factory=list)
    killed_at: int = 0
    lives: int = 0
    audited: dict[str, Any] = field(default_factory=dict)
    different: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """Returns the numbers of files and messages by outcome."""
        return (
            f"{len(self.different):,} of {self.files:,} files differ from the originals; "
            f"{self.audited['messages']:,} of {self.messages:,} messages are in the archive; "
            f"errors in their order: {self.audited['error_count']:,}."
        )


class DemoJob:
    """The whole job, in its own folder.

    Args:
        store: the URL of a store; None: a file in that folder.
    """

    def __init__(self, chosen: Chosen, output: Path, work: Path, screen: Screen, store: str | None = None) -> None:
        self.root, self.patterns, self.exclude = chosen
        self.paths = paths = list(folder(self.root, patterns=self.patterns, exclude=self.exclude))
        if len(paths) < FILES_MIN:
            raise bad_argument("DIR", str(self.root), f"a folder with at least {FILES_MIN} files, not {len(paths)}")
        self.output, self.work, self.screen = output, work, screen
        self.store = store or str(work / "files.db")
        self.facts = Facts(files=len(paths), size=sum((self.root / path).stat().st_size for path in paths))
        self._children: list[JobProcess] = []
        self._done = 0
        self._began = self._told_at = time.monotonic()

    @property
    def seconds(self) -> float:
        """Returns the seconds since the beginning."""
        return time.monotonic() - self._began

    def say(self, text: str) -> None:
        print(f"{self.seconds:6.1f} s  {text}", flush=True)

    def driver(self, name: str) -> JobProcess:
        """Starts a process that runs Spark."""
        child = JobProcess(name, "demo.driver", self.work / f"{name.replace(' ', '-')}.log")
        self._children.append(child)
        return child

    def end(self) -> None:
        for child in self._children:
            child.kill()

    def run(self) -> Facts:
        driver = self.driver("driver 1")  # Spark starts while the files are loaded
        with connect(self.store, program="conductor") as qm:
            qm.create_queue(QUEUE)
            self._load()
            self.facts.messages = qm.inspect.status(QUEUE).current_depth
            self.say(f"{self.facts.messages:,} messages of {self.facts.files:,} files are on the queue, mixed")
            self._drain(driver)
            self._check_empty(qm)
        self._compare()
        return self.facts

    # --- loading

    def _load(self) -> None:
        """Loads with several processes at a time; one is killed and replaced, one backs a file out."""
        facts, count = self.facts, len(self.paths)
        planted = Planted(dies_at=self.paths[count // 3], backs_out_at=self.paths[2 * count // 3])
        self.say(f"{LOADERS} processes put {facts.files:,} files ({facts.size:,} bytes), each as a group")
        facts.loaded = load_folder(
            self.store,
            QUEUE,
            self.root,
            RULE,
            processes=LOADERS,
            patterns=self.patterns,
            exclude=self.exclude,
            progress=self._tell,
            before_commit=planted,
        ).files

    def _tell(self, event: LoadEvent) -> None:
        self._done += event.kind == "loaded"
        if event.kind == "lost":
            self.facts.deaths.append(event.path)
            self.say(f"a loader was killed in the middle of {event.path}; another takes its place")
        elif event.kind == "backed out":
            self.facts.backed_out.append(event.path)
            self.say(f"a loader backed out {event.path}; it is put again")
        elif event.kind == "loaded" and time.monotonic() - self._told_at > TELL_SECONDS:
            self._told_at = time.monotonic()
            self.say(f"{self._done:,} files of {self.facts.files:,}")

    # --- draining

    def _drain(self, driver: JobProcess) -> None:
        """Drains the queue with Spark; the driver is killed halfway, and another one continues."""
        order: dict[str, Any] = {
            "store": self.store,
            "queue": QUEUE,
            "archive": str(self.work / "archive"),
            "findings": str(self.output / "audit"),
            "rebuilt": str(self.work / "rebuilt"),
            "messages_per_batch": max(1, self.facts.messages // BATCHES),
            "history": self._history(),
        }
        next_driver = self.driver("driver 2")  # Spark takes seconds to start
        self._live(driver, order, dies_after=2)
        self.say(f"the driver was killed after {self.facts.killed_at:,} messages; another uses its checkpoint")
        self._live(next_driver, order | {"history": self._history()})

    def _history(self) -> list[str]:
        """The kills so far, for the report of the audit."""
        facts = self.facts
        told = [
            f"A loader was killed in the middle of {path}, and another put the file again." for path in facts.deaths
        ]
        told += [f"A loader backed out {path} and put it again." for path in facts.backed_out]
        if facts.killed_at:
            told.append(
                f"Spark's driver was killed with all its processes after {facts.killed_at:,} messages, and another "
                "continued with its checkpoint."
            )
        return told

    def _live(self, driver: JobProcess, order: dict[str, Any], dies_after: int | None = None) -> None:
        self.facts.lives += 1
        for what, value in driver.told():
            if what == "ready":
                self.say("Spark drains the queue in logical order, whole groups only")
                driver.order(**order)
            elif what == "drained":
                batch, messages = value
                self.say(f"micro-batch {batch}: {messages:,} messages in this life")
                if dies_after is not None and batch + 1 >= dies_after:
                    self.facts.killed_at = messages
                    driver.kill()
                    return
            elif what == "archived":
                self.say("the queue is drained; the archive is audited")
            elif what == "audited":
                self.facts.audited = value
                self.say("audited; the files are written back")
        driver.end()
        if dies_after is not None:
            raise DemoFailed("the driver had ended before it could be killed: give it more files")

    # --- proof

    def _check_empty(self, qm: QueueManager) -> None:
        left = qm.inspect.status(QUEUE).current_depth
        self.screen.check("the queue is empty, and no program holds anything", (left, len(qm.inspect.units())), (0, 0))

    def _compare(self) -> None:
        """Compares every file byte by byte, and its permissions."""
        rebuilt = self.work / "rebuilt"
        for path in self.paths:
            ours, theirs = rebuilt / path, self.root / path
            same = ours.is_file() and filecmp.cmp(ours, theirs, shallow=False)
            if not same or (ours.stat().st_mode ^ theirs.stat().st_mode) & 0o777:
                self.facts.different.append(path)
        written = sum(1 for path in rebuilt.rglob("*") if path.is_file())
        facts, audited = self.facts, self.facts.audited
        check = self.screen.check
        check("files loaded, one killed and one backed out on the way", self._loaded(), (facts.files, 1, 1))
        check("files written back", written, facts.files)
        check(f"files different from the original, of {facts.files:,}", len(facts.different), 0)
        for path in facts.different[:DIFFERENT_SHOWN]:
            print(f"    different: {path}", flush=True)
        check("messages in the archive, each once", audited["messages"], facts.messages)
        check("groups in the archive, whole", audited["groups"], facts.files)
        check("errors that the audit found", audited["error_count"], 0)
        check("lives of Spark's driver", facts.lives, 2)

    def _loaded(self) -> tuple[int, int, int]:
        return self.facts.loaded, len(self.facts.deaths), len(self.facts.backed_out)


def main(root: str | None = None, output: str = "build/demo", store: str | None = None) -> int:
    """Runs the job. Returns 0: all results were correct; 1: one was not; 2: the job could not run to its end.

    Args:
        store: the URL of an empty store; None: a file that is removed at the end.
    """
    screen = Screen()
    chosen = standard_library() if root is None else Chosen(Path(root).resolve())
    target, work = Path(output).resolve(), Path(tempfile.mkdtemp(prefix="inorder-demo-"))
    try:
        if not chosen.root.is_dir():
            raise bad_argument("DIR", root, "a folder")
        target.mkdir(parents=True, exist_ok=True)
        job = DemoJob(chosen, target, work, screen, store)
        print(f"The main job on {chosen.root}{'' if store is None else ', with the queue in PostgreSQL'}", flush=True)
        try:
            facts = job.run()
        finally:
            job.end()
    except (DemoFailed, InorderError, OSError) as error:
        print(f"\n{screen.alarm('The job failed')}: {error}", file=sys.stderr)
        return 2
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"\n{screen.alarm('NOT all is right')}" if screen.wrong else "")
    print(
        f"{facts.files:,} files ({facts.size:,} bytes) went through the queue as {facts.messages:,} messages in "
        f"{job.seconds:.0f} s.\nA loader and Spark's driver were killed, a unit of work was backed out.\n"
        f"{facts.verdict}\nThe report of the audit: {target / 'audit' / 'report.html'}"
    )
    return 1 if screen.wrong else 0
