"""Servers of the two stores of a round, and the network in front of them; both fail again and again.

    python -m tools.proof.carried_served STORE

The process of a store listens, and its children serve, one after another: each is killed at a random moment, or at a
named point inside the store's transactions, and replaced. Programs connect through a proxy, which cuts connections,
also in the middle of a frame, and delays bytes. They find the server's token in a file of credentials.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import select
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import inorder
from inorder.server.running import listening, serve
from inorder.server.settings import Settings
from inorder.stores.remote.credentials import FILE_VARIABLE

from . import crash_points
from .carried import HERE, THERE, URLS
from .limits import make_small

TOKEN = "the-token-of-a-proof"
PAUSES = (0.1, 1.0)  # seconds between two failures; a server takes some tenths of a second to start
HELD_SECONDS_MAX = 0.2
NTH = (1, 3, 10)
POINTS = ("", "", "", "begun", "written", "committed", "before-sync", "synced", "settled", "delivered", "delivered")
KILLED, CUT, CUT_AMID, HELD = "server killed", "connections cut", "cut amid a frame", "bytes held up"
BREAKS = (KILLED, KILLED, KILLED, KILLED, CUT, CUT_AMID, CUT_AMID, HELD)
LOOPBACK = "127.0.0.1"


class ServedStore:
    """The process that listens for one store."""

    def __init__(self, store: Path) -> None:
        with store.with_suffix(".log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tools.proof.carried_served", str(store)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, bufsize=0,
            )  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout
        self.port = int(self._out.readline())

    def again(self, point: str = "") -> None:
        """Kills the present server, and starts another.

        Args:
            point: POINT:NTH, the point at which the new one is killed; empty: none.
        """
        self._in.write(f"{point}\n".encode())

    def close(self) -> None:
        self._in.close()
        self._process.wait()
        self._out.close()


class Breaker(threading.Thread):
    """Breaks the server and the connections of one store until it is stopped."""

    def __init__(self, served: ServedStore, seed: int) -> None:
        from tests.helpers.proxy import Proxy  # noqa: PLC0415 - proofs without servers do without

        super().__init__(name=f"breaker of {served.port}")
        self.served, self.proxy, self.broken = served, Proxy(served.port), Counter[str]()
        self._chance, self._is_over = random.Random(seed), threading.Event()

    def run(self) -> None:
        chance = self._chance
        while not self._is_over.wait(chance.uniform(*PAUSES)):
            what = chance.choice(BREAKS)
            if what == KILLED:
                point = chance.choice(POINTS)
                self.served.again(f"{point}:{chance.choice(NTH)}" if point else "")
            elif what == CUT:
                self.proxy.cut()
            elif what == CUT_AMID:
                self.proxy.cut_after(chance.choice(("to server", "to client")), chance.randrange(2_000))
            else:
                self.proxy.freeze()
                time.sleep(chance.uniform(0, HELD_SECONDS_MAX))
                self.proxy.thaw()
            self.broken[what] += 1

    def stop(self) -> None:
        """Ends it, and leaves a server that is not interrupted."""
        self._is_over.set()
        self.join()
        self.served.again()
        self.proxy.cut()  # and drop the cut that was due


@contextlib.contextmanager
def served(folder: Path, chance: random.Random) -> Iterator[Sequence[Breaker]]:
    """Makes both stores in an empty folder, and serves them; their breakers have not started."""
    stores, tokens, breakers = contextlib.ExitStack(), list[str](), list[Breaker]()
    with stores:
        for name in (HERE, THERE):
            store = folder / f"{name}.db"
            inorder.connect(store, name=name).close()
            one = ServedStore(store)
            stores.callback(one.close)
            breakers.append(Breaker(one, chance.getrandbits(32)))
            stores.callback(breakers[-1].proxy.close)
            at = f"{LOOPBACK}:{breakers[-1].proxy.port}"
            (folder / f"{name}{URLS}").write_text(f"http://{at}")
            tokens.append(f"[{at}]\ntoken = {TOKEN}\n")
        credentials = Path(os.environ[FILE_VARIABLE])
        credentials.touch(0o600)
        credentials.write_text("".join(tokens))
        yield breakers


def main() -> None:
    """Listens, and lets children serve, until its input ends. A line is the point at which the next one dies."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("store", type=Path)
    store = parser.parse_args().store
    listener = listening(LOOPBACK, 0)
    port = listener.getsockname()[1]
    settings = Settings(store=str(store), key=bytes(32), token=TOKEN, port=port)
    print(port, flush=True)
    line = "\n"
    while line:
        pid = os.fork()
        if not pid:
            os.close(0)
            make_small()
            if line.strip():
                crash_points.reach(crash_points.kill_at(line.strip()))
            os._exit(serve(settings, listener))
        has_ended = os.pidfd_open(pid)
        line = sys.stdin.readline() if sys.stdin in select.select([sys.stdin, has_ended], [], [])[0] else "\n"
        os.close(has_ended)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
