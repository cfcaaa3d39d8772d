"""Kills servers with SIGKILL while clients work over HTTP, over and over, and checks all acknowledged requests.

    python -m tools.proof.serving --kills 200 --seconds 300

A round has a store and some processes of `inorder serve`, each killed at a random moment or at a named point inside the
store's transactions (`crash_points`), and started again. In some rounds one of them has several workers, and one
worker, their parent, or all of them are killed (`serving_workers`). Clients send each request to any running server,
and repeat it to another if the answer is lost and the interface allows that; one client uses the console
(`serving_desk`). Then

    a message that was put with an Idempotency-Key and acknowledged is on its queue once, however often it was sent
    a message is got once; at most one message is missing for each get without an answer that could not be repeated
    a message that was got under a confirm id and confirmed is gone; an undone one is back
    a lease continues with another server: it is over before its deadline only if its client has ended it
    a lease that was committed has happened wholly, one that was backed out or left to its deadline not at all
    the puts, moves and deletes that the console reported have happened, and nothing is at two places
    no server reports a failure, and none leaves a unit of work, a process or a used port
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import NamedTuple

import inorder

from . import crash_points, serving_desk
from .lives import NTH_OF_RARE, POINTS, RANDOM, RARE
from .serving_clients import ANSWER_SECONDS, CLIENTS, Client, Done, Servers
from .serving_desk import Acts, Clerk
from .serving_workers import TOGETHER, WORKERS, Together

SLOTS, LIVES = 2, 5  # servers at once, and lives of each in a round
SERVED_SECONDS_MAX = 1.5
POINT_SECONDS_MAX = 4.0  # by then the server has reached its point, or will not reach it
REST_SECONDS_MAX = 60.0  # by then all leases have ended
NTH = (1, 4, 12)
QUEUES = ("PUT", "IN", "OUT", serving_desk.DESK, serving_desk.FILED)
LIVES_TOGETHER = 3  # of servers with workers, in a round that has one


class Life(NamedTuple):
    """The life of a server, and its end: a point, at the nth time that the server reaches it, or else a moment.

    A life with an end in `TOGETHER` is of a server with several workers.
    """

    end: str
    nth: int
    seconds: float


@dataclass
class Report:
    seed: int
    kills: Counter[str] = field(default_factory=Counter)
    promises: int = 0
    leases: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        kills = ", ".join(f"{point}: {count}" for point, count in sorted(self.kills.items()))
        leases = ", ".join(f"{fate}: {count}" for fate, count in sorted(self.leases.items()))
        found = "\n".join(self.findings) or "nothing found"
        what = f"{self.promises:,} answers over HTTP, {self.kills.total():,} kills of servers ({kills})"
        return f"seed {self.seed}: {what}, leases ({leases})\n{found}"


def lives_of(chance: random.Random, lives: int) -> list[Life]:
    """The lives of one server after another; half of them end at a point."""
    ends = [RANDOM if chance.random() < 0.5 else chance.choice(POINTS) for _ in range(lives)]
    return [
        Life(end, chance.choice(NTH_OF_RARE if end in RARE else NTH), chance.uniform(0, SERVED_SECONDS_MAX))
        for end in ends
    ]


def lives_together(chance: random.Random) -> list[Life]:
    """The lives of a server with several workers."""
    ends = chance.sample(TOGETHER, LIVES_TOGETHER)
    return [Life(end, 1, chance.uniform(0, SERVED_SECONDS_MAX)) for end in ends]


class Slot:
    """A place where one server runs after another."""

    def __init__(self, place: str, folder: Path, number: int, servers: Servers) -> None:
        self._place, self._folder, self._number, self._servers = place, folder, number, servers
        self.log = folder / f"server-{number}.log"
        self.kills: Counter[str] = Counter()
        self.findings: list[str] = []

    def live(self, life: Life, is_over: Callable[[], bool] = lambda: False) -> None:
        """Starts a server, lets it serve for its life, and kills it."""
        is_point = life.end in POINTS
        environment = crash_points.environment(f"{life.end}:{life.nth}") if is_point else dict(os.environ)
        command = [sys.executable, "-m", "inorder", "serve", "--store", self._place, "--port", "0", "--json"]
        command += ["--token-file", str(self._folder / "token")]
        if life.end in TOGETHER:
            command += ["--workers", str(WORKERS)]
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, env=environment, start_new_session=True
            )
        assert process.stdout is not None
        try:
            if line := process.stdout.readline():
                self._servers.add(self._number, json.loads(line)["url"])
            if life.end in TOGETHER:
                self._live_together(process, life, json.loads(line)["url"])
                return
            ends = time.monotonic() + (POINT_SECONDS_MAX if is_point else life.seconds)
            while process.poll() is None and time.monotonic() < ends and not is_over():
                time.sleep(0.01)
            came_to_it = process.returncode is not None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            process.stdout.close()
            self._servers.remove(self._number)
        if process.returncode != -signal.SIGKILL or (came_to_it and not is_point):
            self.findings.append(f"a server ended by itself with status {process.returncode}; see {self.log}")
        self.kills[life.end if came_to_it else RANDOM] += 1

    def _live_together(self, process: subprocess.Popen[bytes], life: Life, url: str) -> None:
        together = Together(process, url, random.Random(life.seconds))
        together.kill(life.end, life.seconds, lambda: self._servers.remove(self._number))
        self.findings += [f"{found} (killed: {life.end}); see {self.log}" for found in together.findings]
        self.kills[life.end] += 1

    def run(self, lives: list[Life]) -> None:
        """Runs one life after another."""
        try:
            for life in lives:
                self.live(life)
        except Exception:  # noqa: BLE001 - an exception of a thread is a finding
            self.findings.append(f"the life of a server could not be run: {traceback.format_exc()}")


def run_round(
    report: Report, place: str, folder: Path, chance: random.Random, lives: int, *, has_workers: bool = False
) -> None:
    """Kills servers while clients work, lets a last server finish the open work, and judges."""
    with inorder.connect(place) as qm:
        for queue in QUEUES:
            qm.create_queue(queue)
    (folder / "token").write_text(f"{chance.getrandbits(256):064x}")
    (folder / "token").chmod(0o600)
    servers, stop = Servers((folder / "token").read_text()), Event()
    kinds = (*CLIENTS, Clerk, Clerk)
    clients = [kind(number, chance.getrandbits(32), servers, stop) for number, kind in enumerate(kinds)]
    slots = [Slot(place, folder, number, servers) for number in range(SLOTS + 1)]
    working = [Thread(target=client.run) for client in clients]
    plans = [lives_of(chance, lives) for _ in range(SLOTS)]
    if has_workers:
        plans[0] = lives_together(chance)
    serving = [Thread(target=slot.run, args=(plan,)) for slot, plan in zip(slots, plans, strict=False)]
    for thread in (*working, *serving):
        thread.start()
    for thread in serving:
        thread.join()
    stop.set()
    while any(thread.is_alive() for thread in working):
        slots[-1].live(Life(RANDOM, 1, ANSWER_SECONDS), lambda: not any(thread.is_alive() for thread in working))
    for slot in slots:
        report.kills += slot.kills
        report.findings += slot.findings
        if slot.log.exists() and "Traceback" in (text := slot.log.read_text()):
            report.findings.append(f"a server failed: {text[text.index('Traceback') :][:2000]}")
    judge(report, place, clients)


def judge(report: Report, place: str, clients: list[Client]) -> None:
    """Returns the broken promises."""
    done, acts = Done(), Acts()
    for client in clients:
        done.add(client.done)
        if isinstance(client, Clerk):
            acts.add(client.acts)
    report.findings += done.findings
    report.promises += done.answers
    report.leases += Counter(done.leases.values())
    with inorder.connect(place) as qm:
        ends = time.monotonic() + REST_SECONDS_MAX
        while (units := qm.inspect.units()) and time.monotonic() < ends:
            time.sleep(0.05)
        report.findings += [f"a unit of work is left: {unit}" for unit in units]
        for confirm_id in done.confirm_ids:  # held for a client that has ended, so it is not lost
            with suppress(inorder.errors.NotFound):
                qm.undo("PUT", confirm_id)
        there = {queue: [bytes(message.body).decode() for message in qm.browse(queue)] for queue in QUEUES}
        report.findings += [f"the store is damaged: {finding}" for finding in qm.admin.check()]
    report.findings += found_in(there, done) + serving_desk.found_in(there, acts)


def found_in(there: dict[str, list[str]], done: Done) -> list[str]:
    """The contents of the queues that contradict the promises."""
    taken = Counter(done.got)
    moved = [body.partition("@") for body in there["OUT"]]
    ends = {
        "PUT": Counter(there["PUT"]) + taken,
        "IN": Counter(there["IN"]) + Counter(message for message, _, _ in moved),
    }
    found: list[str] = []
    for queue, counts in ends.items():
        found += [f"message {one} of {queue} has {count} ends" for one, count in counts.items() if count != 1]
        found += [f"message {one} of {queue} was never put" for one in counts.keys() - done.put[queue]]
    if lost := done.put["IN"] - ends["IN"].keys():
        found.append(f"lost from IN: {sorted(lost)[:10]}")
    if len(lost := done.put["PUT"] - ends["PUT"].keys()) > done.unanswered_gets:
        found.append(f"lost from PUT, with {done.unanswered_gets} gets without an answer: {sorted(lost)[:10]}")
    of_lease = Counter(lease for _, _, lease in moved)
    for lease, fate in done.leases.items():
        if (fate == "committed" and of_lease[lease] != 1) or (fate == "backed out" and of_lease[lease]):
            found.append(f"lease {lease} is {fate}, and {of_lease[lease]} of its messages have arrived")
    return found


def run(*, kills: int, seed: int, seconds: float = float("inf"), parent: Path | None = None, lives: int = LIVES,
        workers: bool = False,
        place: Callable[[Path], str] = lambda folder: str(folder / "store.db"),
        tell: Callable[[str], object] = lambda _: None) -> Report:  # fmt: skip
    """Runs rounds until the number of kills is reached, the time is over, or a promise was broken.

    Args:
        lives: the lives of each server in a round.
        workers: every second round has a server with several workers.
        place: the location of the store of a round, from its folder.
        tell: called after each round with the progress.
    """
    chance, report, ends, rounds = random.Random(seed), Report(seed), time.monotonic() + seconds, 0
    while not report.findings and report.kills.total() < kills and time.monotonic() < ends:
        folder = Path(tempfile.mkdtemp(prefix="serving-", dir=parent))
        run_round(report, place(folder), folder, chance, lives, has_workers=workers and rounds % 2 == 0)
        rounds += 1
        tell(f"{report.kills.total():,} of {kills:,} kills of servers, {report.promises:,} answers")
        if report.findings:
            report.findings.append(f"the store and the logs of its servers are in {folder}")
        else:
            shutil.rmtree(folder)
    return report


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.proof.serving", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    given = parser.parse_args()
    report = run(kills=given.kills, seed=given.seed, seconds=given.seconds, workers=True, tell=print)
    print(report)
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
