"""A server with several worker processes: kills one of them, or their parent, and checks the consequences.

a killed worker is replaced; the others serve meanwhile
workers whose parent is killed end by themselves
after any kill, no process is left at the end, and the port is free
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import httpx

WORKERS: Final = 3
WORKER, PARENT, ALL = "a worker", "the parent", "all processes"
TOGETHER: Final = (WORKER, PARENT, ALL)
BACK_SECONDS: Final = 60.0  # by then a killed worker has been replaced, even on a busy machine
END_SECONDS: Final = 60.0  # by then workers without a parent have ended: they give requests 30 seconds
POLL_SECONDS: Final = 0.05


class Together:
    """One server with its workers.

    Args:
        process: the parent, which leads a process group.
        url: its address.
    """

    def __init__(self, process: subprocess.Popen[bytes], url: str, chance: random.Random) -> None:
        self._process, self._url, self._chance = process, url.rstrip("/"), chance
        self.findings: list[str] = []

    def kill(self, what: str, seconds: float, gone: Callable[[], None]) -> None:
        """Lets it serve for this long, kills the given process, and checks.

        Args:
            gone: called when it no longer serves.
        """
        if what != ALL or seconds > 0.5:
            self._wait("it did not begin its workers", lambda: len(self.workers()) == WORKERS, BACK_SECONDS)
        time.sleep(seconds)
        if what == WORKER:
            self._kill_workers(seconds)
            self._process.send_signal(signal.SIGTERM)
        elif what == PARENT:
            os.kill(self._process.pid, signal.SIGKILL)
        else:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._wait("processes are left", self._is_gone, END_SECONDS)
        gone()
        expected = 0 if what == WORKER else -signal.SIGKILL
        if self._process.poll() != expected:
            self.findings.append(f"the parent ended with {self._process.returncode}, not {expected}")
        self._check_port()

    def workers(self) -> list[int]:
        """The processes that serve, or are about to."""
        found = []
        for one in Path("/proc").iterdir():
            with suppress(OSError, ValueError, IndexError):
                pid = int(one.name)
                parent = (one / "stat").read_text().rpartition(")")[2].split()
                is_worker = b"spawn_main" in (one / "cmdline").read_bytes()
                if int(parent[1]) == self._process.pid and parent[0] != "Z" and is_worker:
                    found.append(pid)
        return found

    def _kill_workers(self, seconds: float) -> None:
        """Kills one worker after another, so that others serve; each is replaced."""
        for _ in range(2):
            before = self.workers()
            if not before:
                self.findings.append("there is no worker to kill")
                return
            victim = self._chance.choice(before)
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
            self._wait(
                "a killed worker was not replaced",
                partial(self._are_without, victim),
                BACK_SECONDS,
            )
            self._wait("no worker answers after the kill of a worker", self._answers, BACK_SECONDS)
            time.sleep(seconds / 2)

    def _are_without(self, victim: int) -> bool:
        """Whether all workers are running, without this one."""
        now = self.workers()
        return len(now) == WORKERS and victim not in now

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self._url}/ready", timeout=10).status_code == 200
        except httpx.TransportError:
            return False

    def _is_gone(self) -> bool:
        self._process.poll()
        try:
            os.killpg(self._process.pid, 0)
        except ProcessLookupError:
            return True
        return not any(self._is_running(one) for one in Path("/proc").iterdir())

    def _is_running(self, one: Path) -> bool:
        with suppress(OSError, IndexError):
            stat = (one / "stat").read_text().rpartition(")")[2].split()
            return int(stat[2]) == self._process.pid and stat[0] != "Z"
        return False

    def _check_port(self) -> None:
        url = httpx.URL(self._url)
        try:
            socket.create_server((url.host, url.port or 0)).close()
        except OSError as error:
            self.findings.append(f"the port of {self._url} is not free again: {error}")

    def _wait(self, otherwise: str, is_so: Callable[[], bool], seconds: float) -> None:
        ends = time.monotonic() + seconds
        while not is_so():
            if time.monotonic() > ends:
                self.findings.append(f"{otherwise} within {seconds:g} s")
                return
            time.sleep(POLL_SECONDS)
