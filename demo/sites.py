"""Four sites with a file each, and https between them: every process is killed once, and each message arrives once.

    make demo-sites

::

    FACTORY --- channel ---> HUB <--- home-server queue --- SHOP
                              ^
                              +------ synchronous queue ---- DESK ---- synchronous queue ---> FACTORY

The factory puts orders for the shop and tasks for the desk. A channel brings both to the hub, which is served. The shop
collects its orders there. The desk takes each task at the hub, and puts its answer at the factory, whose file it opens,
in the same unit of work: over two owners, in two phases. All four programs are killed in turn while messages are on
their way, and started again. At the end the orders and the answers are counted, and their order is compared with that
of the puts.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from inorder.client.manager import QueueManager, connect
from inorder.errors import InorderError, NoMessageAvailable
from inorder.mq import channels
from inorder.server import certificates
from inorder.server.running import listening
from inorder.stores.remote.credentials import FILE_VARIABLE

from .screen import Screen

LOOPBACK = "127.0.0.1"
PATIENCE_SECONDS = 120.0
RETRY_MAX = 999_999
PROGRAMS = ("the channel of FACTORY", "the server of HUB", "the collection of SHOP", "the reader at DESK")


class SiteFailed(Exception):
    """Something that the demonstration needs did not happen; the text has the details."""


class Program:
    """A program of a site, which can be killed and started again.

    Args:
        words: after `python -m`.
        credentials: its file of credentials.
        says: whether it prints a line when it is ready.
    """

    def __init__(self, words: Sequence[str], credentials: Path, *, says: bool = False) -> None:
        self._words, self._credentials, self._says = words, credentials, says
        self.start()

    def start(self) -> None:
        with self._credentials.with_suffix(".log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *self._words],
                stdout=subprocess.PIPE if self._says else log,
                stderr=log,
                env={**os.environ, FILE_VARIABLE: str(self._credentials)},
                start_new_session=True,  # a kill of a server includes its workers
            )
        if self._process.stdout is not None and not self._process.stdout.readline():
            raise SiteFailed(f"{' '.join(self._words)} ended: {self._credentials.with_suffix('.log').read_text()}")

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, 9)
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


class Sites:
    """The four files with their definitions, and the programs that run on them, in the order of `PROGRAMS`."""

    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        self._folder = folder
        self.factory, self.hub, self.shop, self.desk = (
            stack.enter_context(connect(folder / f"{name.lower()}.db", name=name))
            for name in ("FACTORY", "HUB", "SHOP", "DESK")
        )
        with contextlib.closing(listening(LOOPBACK, 0)) as listener:
            port = listener.getsockname()[1]
        self.url = f"https://{LOOPBACK}:{port}"
        made = certificates.make(folder, [LOOPBACK])
        self._authority = made.certificate
        self._define()
        serve = f"serve {folder}/hub.db --port {port} --certificate {made.certificate} --key {made.key} --json"
        self.programs: list[Program] = []
        for name, words, says in (
            ("hub", f"inorder {serve} --token-file {folder}/token", True),
            ("factory", f"inorder channel run TO.HUB --store {folder}/factory.db", False),
            ("shop", f"inorder channel pull SHOPS --store {folder}/shop.db", False),
            ("desk", f"demo.sites {folder}/desk.db", False),
        ):
            self.programs.append(Program(words.split(), self._credentials(name), says=says))
            stack.callback(self.programs[-1].kill)
        self.programs[:2] = reversed(self.programs[:2])

    def _credentials(self, user: str) -> Path:
        """Writes the file of credentials for a program, which is a user of the hub."""
        token = "" if user == "hub" else f"token = {self.hub.accounts.create_token(user, 'demo')}\n"
        path = self._folder / f"{user}.credentials"
        path.touch(0o600)
        path.write_text(f"[{self.url.removeprefix('https://')}]\n{token}ca = {self._authority}\n")
        return path

    def _define(self) -> None:
        hub = self.hub
        hub.create_queue("SHOPS", type="store_and_forward", targets="SHOP")
        hub.create_queue("TASKS", order="commit")
        self.factory.create_queue("ANSWERS", order="commit")
        rights: dict[str, dict[str, tuple[str, ...]]] = {
            "factory": {"SHOP": ("put",), "TASKS": ("put",)},
            "shop": {"SHOP": ("get", "browse")},
            "desk": {"TASKS": ("get",)},
        }
        for user, queues in rights.items():
            hub.accounts.create_user(user, roles=["application"], queues=queues)
        channels.define_channel(hub, "TO.HUB", "receiver", user="factory", sender=channels.identifier(self.factory))
        for qm, user in ((self.factory, "factory"), (self.shop, "shop"), (self.desk, "desk")):
            channels.define_connection(qm, "HUB", self.url, user=user)

        self.factory.create_queue("HUB", usage="transmission")
        self.factory.create_queue("SHOP", type="remote", remote_manager="SHOP", transmission_queue="HUB")
        channels.define_channel(
            self.factory, "TO.HUB", transmission_queue="HUB", connection="HUB", batch_size=10,
            short_retry_count=RETRY_MAX, short_retry_interval=1,
        )  # fmt: skip

        self.shop.create_queue("ORDERS")
        self.shop.create_queue("SHOPS", type="home_server", remote_manager="HUB", interval_ms=100, retry=True)

        channels.define_connection(self.desk, "FACTORY", str(self._folder / "factory.db"))
        for name, owner in (("TASKS", "HUB"), ("ANSWERS", "FACTORY")):
            self.desk.create_queue(
                name, type="remote", remote_queue=name, remote_manager=owner, mode="synchronous", connection=owner
            )

    def put(self, numbers: Sequence[int]) -> None:
        """Puts these orders at the factory, and a task for each."""
        for number in numbers:
            with self.factory.unit_of_work():
                self.factory.put("ORDERS", b"%d" % number, manager="SHOP")
                self.factory.put("TASKS", b"%d" % number, manager="HUB")


def arrived(qm: QueueManager, queue: str, count: int) -> list[int]:
    """Waits until this many messages are on a queue; returns the numbers of all, in order. Raises: SiteFailed."""
    found: list[int] = []
    with qm.open(queue, browse=True) as handle:
        try:
            found.append(int(handle.browse_first(wait=PATIENCE_SECONDS, read_order="strict").body))
            while len(found) < count:
                found.append(int(handle.browse_next(wait=PATIENCE_SECONDS, read_order="strict").body))
            while True:
                found.append(int(handle.browse_next(read_order="strict").body))
        except NoMessageAvailable as error:
            if len(found) < count:
                raise SiteFailed(f"{len(found)} of {count} messages came to {queue}") from error
    return found


def main(messages: int) -> int:
    """Runs the demonstration. Returns 0: all orders and answers arrived once, in order; 1: they did not; 2: it
    failed.
    """
    screen = Screen()
    numbers = range(messages)
    steps = len(PROGRAMS) + 1
    parts = [numbers[messages * one // steps : messages * (one + 1) // steps] for one in range(steps)]
    try:
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
            sites = Sites(Path(folder), stack)
            print(f"Four queue managers with a file each, and {sites.url} between them.", flush=True)
            for part, name, program in zip(parts, PROGRAMS, sites.programs, strict=False):
                sites.put(part)
                arrived(sites.shop, "ORDERS", part.start + 1)
                program.kill()
                print(f"  killed {name}, with messages on their way, and started it again", flush=True)
                program.start()
            sites.put(parts[-1])
            orders, answers = arrived(sites.shop, "ORDERS", messages), arrived(sites.factory, "ANSWERS", messages)
    except (SiteFailed, InorderError) as error:
        print(f"\n{screen.alarm('The demonstration failed')}: {error}", file=sys.stderr)
        return 2
    for text, found in (("orders were collected by SHOP", orders), ("tasks were answered by DESK", answers)):
        screen.check(f"{len(found)} {text}, each once, in the order of the puts", found == list(numbers), True)
    return 1 if screen.wrong else 0


# ---- the program at DESK


def answer(store: str) -> None:
    """Answers the tasks at the hub, each in a unit of work over two owners, until it is killed."""
    with connect(store) as qm:
        while True:
            try:
                with qm.unit_of_work():
                    task = qm.get("TASKS", wait=PATIENCE_SECONDS, read_order="strict", syncpoint=True)
                    qm.put("ANSWERS", task.body, syncpoint=True)
            except InorderError as error:  # a server may be away for a while
                print(json.dumps({"failed": str(error)}), flush=True)


if __name__ == "__main__":
    answer(sys.argv[1])
