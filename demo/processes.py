"""The processes of the demonstration, as their parent sees them.

The parent never waits forever: if a process ends, or does not answer in time, the demonstration ends and shows the
last output of that process.
"""

from __future__ import annotations

import json
import queue as queues
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from inorder.client.manager import connect
from inorder.model.attributes import OrderRule

PATIENCE_SECONDS = 240.0  # a busy machine may take long; a process that has ended is noticed at once
LOOK_SECONDS = 0.005
LAST_WORDS = 8  # lines


class ProcessFailed(Exception):
    """A process of the demonstration failed; the text names it and quotes its last output."""


class Process:
    """Another process with the file open, which does one action at a time."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self._errors = path.with_name(f"{name}.errors".replace(" ", "-"))
        self._act = "start"
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "demo.worker", str(path), name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self._answers: queues.SimpleQueue[str | None] = queues.SimpleQueue()
        self._ears = threading.Thread(target=self._listen, daemon=True)
        self._ears.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put(None)

    def begin(self, act: str, **keywords: Any) -> None:
        """Sends it an action without waiting for the answer."""
        assert self._process.stdin is not None
        self._act = act
        try:
            print(json.dumps([act, keywords]), file=self._process.stdin, flush=True)
        except BrokenPipeError:
            raise self._ended() from None

    def answer(self) -> Any:
        """Returns its next answer. Raises: ProcessFailed, it gives none."""
        try:
            line = self._answers.get(timeout=PATIENCE_SECONDS)
        except queues.Empty:
            raise ProcessFailed(
                f"process {self.name!r} gave no answer to {self._act!r} in {PATIENCE_SECONDS:.0f} s"
            ) from None
        if line is None:
            raise self._ended()
        return json.loads(line)

    def do(self, act: str, **keywords: Any) -> Any:
        """Sends it an action and returns the answer."""
        self.begin(act, **keywords)
        return self.answer()

    def _ended(self) -> ProcessFailed:
        status = self._process.wait()
        words = self._errors.read_text(encoding="utf-8", errors="replace").splitlines()[-LAST_WORDS:]
        said = "".join(f"\n    {line}" for line in words)
        return ProcessFailed(f"process {self.name!r} ended with status {status} in {self._act!r}{said}")

    def kill(self) -> None:
        """Kills it with SIGKILL, so that it cannot tidy up. Harmless when repeated."""
        self._process.kill()
        self._process.wait()
        self._ears.join()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process.stdin.close()


class Cast:
    """The processes that have the demonstration's file open: this one, and the others by name.

    As a context manager it ends the other processes and deletes the file.
    """

    def __init__(self, early: Sequence[str] = ()) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="inorder-demo-")
        self.path = Path(self._folder.name) / "demo.db"
        self._processes: dict[str, Process] = {}
        self._queues = 0
        try:
            self.qm = connect(self.path, program="conductor")
            for name in early:  # they start side by side
                self.process(name)
        except BaseException:
            self._end()
            raise

    def process(self, name: str) -> Process:
        """Returns the process of this name, and starts it if needed."""
        if name not in self._processes:
            self._processes[name] = Process(name, self.path)
        return self._processes[name]

    @property
    def size(self) -> int:
        """The number of processes that have opened the file."""
        return 1 + len(self._processes)

    def new_queue(self, order: OrderRule = "put") -> str:
        """Creates a new queue."""
        self._queues += 1
        name = f"ORDERS.{self._queues}"
        self.qm.create_queue(name, order=order)
        return name

    def await_waiter(self, queue: str) -> None:
        """Returns when a strict reader waits on the queue."""
        self.wait_until(lambda: self.qm.inspect.order_view(queue).strict_waiters > 0, f"no reader waits on {queue}")

    def wait_until(self, done: Callable[[], bool], failure: str) -> None:
        """Returns when the condition is true. Raises: ProcessFailed, it is not in time."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not done():
            if time.monotonic() > deadline:
                raise ProcessFailed(f"{failure}, after {PATIENCE_SECONDS:.0f} s")
            time.sleep(LOOK_SECONDS)

    def _end(self) -> None:
        for process in self._processes.values():
            process.kill()
        self._folder.cleanup()

    def __enter__(self) -> Cast:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.qm.internals.abandon()
        finally:
            self._end()
