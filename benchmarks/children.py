"""Child processes: new interpreters that carry out orders and answer with figures.

A child is started once and runs `serve(pipe, *arguments)`, a function at the top of a module, which takes orders from
the pipe until it receives None, and answers each.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks.harness import Cannot

ANSWER_SECONDS = 600
END_SECONDS = 10

Serve = Callable[..., None]


class Child:
    """A process that serves orders. A Cannot in it is raised here."""

    def __init__(self, serve: Serve, *arguments: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_child, args=(serve, theirs, *arguments), daemon=True)
        self._process.start()
        theirs.close()

    def order(self, order: Any) -> None:
        """Sends the child an order."""
        self._pipe.send(order)

    def answer(self, seconds: float = ANSWER_SECONDS) -> Any:
        """Returns the child's answer to its oldest order. Raises: Cannot, if the child raised it or does not answer."""
        if not self._pipe.poll(seconds):
            raise Cannot(f"no answer from another process within {seconds:g} s")
        try:
            answer = self._pipe.recv()
        except EOFError:
            raise RuntimeError("another process of the benchmark died: its traceback is above") from None
        if isinstance(answer, Cannot):
            raise answer
        return answer

    def kill(self) -> None:
        """Kills the child; `end` must follow."""
        self._process.kill()
        self._process.join()

    def end(self) -> None:
        """Lets the child end, or kills it."""
        if self._process.is_alive():
            with contextlib.suppress(BrokenPipeError):  # it is ending by itself
                self._pipe.send(None)
            self._process.join(END_SECONDS)
        if self._process.is_alive():
            self.kill()
        self._pipe.close()


@contextmanager
def child(serve: Serve, *arguments: Any) -> Iterator[Child]:
    """Yields a child until the block ends."""
    own = Child(serve, *arguments)
    try:
        yield own
    except (KeyboardInterrupt, SystemExit):  # its present measurement is no longer needed
        own.kill()
        raise
    finally:
        own.end()


def orders(pipe: Connection) -> Iterator[Any]:
    """Yields the orders to a child until the last one."""
    return iter(pipe.recv, None)


def _child(serve: Serve, pipe: Connection, *arguments: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends this process
    try:
        serve(pipe, *arguments)
    except Cannot as reason:
        pipe.send(reason)
    except EOFError:  # the parent died
        return


def memory_mb(field: str) -> float:
    """The memory of this process in MB (10^6 bytes): "VmRSS" is its present memory, "VmHWM" the peak."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024 / 1e6
    raise ValueError(f"no {field} in /proc/self/status")
