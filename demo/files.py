"""The main job on real files: loaded by several processes, drained by Spark exactly once, audited, and written back.

    make demo DIR=FOLDER

Each file becomes a group of messages that begins with a manifest. Four processes put them at the same time, so the
groups lie mixed on the queue; one of them is killed in the middle of a file, and one backs a file out. Spark takes the
queue in logical order, whole groups only; its driver is killed on the way, and another goes on. Then the archive is
audited, the files are made of it, and compared byte by byte with the originals.
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
BATCHES = 8  # into about so many micro-batches the files fall
FILES_MIN = 10
TELL_SECONDS = 5.0
PATIENCE_SECONDS = 600.0
LAST_WORDS = 12  # lines
DIFFERENT_SHOWN = 5


class DemoFailed(Exception):
    """A process did not do as it was asked; the text says which, and its last words."""


class Chosen(NamedTuple):
    """A folder, and which of its files; as `formats.folder`."""

    root: Path
    patterns: Sequence[str] = ("**",)
    exclude: Sequence[str] = ()


def standard_library() -> Chosen:
    """The default: Python's own modules, what is installed beside them left out."""
    return Chosen(Path(sysconfig.get_path("stdlib")), ("**/*.py",), ("site-packages/**", "dist-packages/**"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """What goes wrong in the loading processes: at one file the process dies, another is backed out, once each."""

    dies_at: str
    backs_out_at: str

    def __call__(self, path: str, attempt: int) -> None:
        if attempt == 1 and path == self.dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if attempt == 1 and path == self.backs_out_at:
            raise DemoFailed("this was planned")


class JobProcess:
    """A process of the job, with the lines that it tells."""

    def __init__(self, name: str, module: str, log: Path) -> None:
        self.name, self._log = name, log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,  # a driver is killed with all that it has started
            )
        self._lines: queues.SimpleQueue[str | None] = queues.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                if line.startswith("["):  # others may print as well
                    self._lines.put(line)
        self._lines.put(None)

    def order(self, **order: Any) -> None:
        """Tells it what to do."""
        assert self._process.stdin is not None
        print(json.dumps(order), file=self._process.stdin, flush=True)

    def told(self) -> Iterator[list[Any]]:
        """What it tells, until it ends. Raises: DemoFailed, it tells nothing for too long."""
        while True:
            try:
                line = self._lines.get(timeout=PATIENCE_SECONDS)
            except queues.Empty:
                raise DemoFailed(f"{self.name} has said nothing for {PATIENCE_SECONDS:.0f} s") from None
            if line is None:
                return
            yield json.loads(line)

    def kill(self) -> None:
        """SIGKILL for it and all that it has started; harmless when repeated."""
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
        """It has ended well. Raises: DemoFailed."""
        if status := self._wait():
            words = self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-LAST_WORDS:]
            raise DemoFailed(f"{self.name} ended with status {status}\n" + "\n".join(f"    {line}" for line in words))


def members_of_session(leader: int) -> list[int]:
    """The processes that a process which began a session has started, itself among them."""
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
    """What the job has found out."""

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
        """What became of the files and messages, in numbers."""
        return (
            f"{len(self.different):,} of {self.files:,} files differ from the originals; "
            f"{self.audited['messages']:,} of {self.messages:,} messages are in the archive; "
            f"errors in their order: {self.audited['error_count']:,}."
        )


class DemoJob:
    """The whole job, in a folder of its own.

    Args:
        store: the URL of a store elsewhere; None: it is a file in that folder.
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
        """Since it began."""
        return time.monotonic() - self._began

    def say(self, text: str) -> None:
        print(f"{self.seconds:6.1f} s  {text}", flush=True)

    def driver(self, name: str) -> JobProcess:
        """A new process that runs Spark."""
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
        """Several processes at a time; one is killed and replaced, one backs a file out."""
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
        """Spark takes it all; its driver is killed when it has done a part, and another goes on."""
        order = {
            "store": self.store,
            "queue": QUEUE,
            "archive": str(self.work / "archive"),
            "findings": str(self.output / "audit"),
            "rebuilt": str(self.work / "rebuilt"),
            "messages_per_batch": max(1, self.facts.messages // BATCHES),
        }
        next_driver = self.driver("driver 2")  # Spark takes seconds to start
        self._live(driver, order, dies_after=2)
        self.say(f"the driver was killed after {self.facts.killed_at:,} messages; another goes on with its checkpoint")
        self._live(next_driver, order)

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
        self.screen.check("the queue is empty, and nobody holds anything", (left, len(qm.inspect.units())), (0, 0))

    def _compare(self) -> None:
        """Every file byte by byte, and its permissions."""
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
    """Runs the job; 0: all was as promised, 1: something was not, 2: it could not be done.

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
