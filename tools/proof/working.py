"""Kills workers with SIGKILL while they call functions, over and over, and checks the promises of workers.

    python -m tools.proof.working --kills 300 --seconds 300

A round has a store, a queue that is read strictly or not, and messages, some of which fail, a few times or always, or
are given up by `Dead` or `Discard`; a schedule that has not run for hours; and messages that are put under keys.
Programs with one worker each, which also puts the messages of the schedule, are killed at random moments and started
again; each puts all keys meanwhile, alone or in units. Some kill themselves when a call has given up its message and
this is on disk, before the message is set aside. A last one works until nothing is left. Each call of the function
first records, in a file, its message and the backout count that it saw; so does each verdict that is on disk. Then

    each message is done once, or a dead letter once; one that never fails is only dead if it was killed too often
    a message that a call has given up is a dead letter for that reason, or removed, and is not called again
    no attempt is lost from the count: no two calls of one message saw the same backout count
    a dead letter has its reason, its error, its queue, and the allowed number of attempts
    messages of a queue that is read strictly were done in the order of their puts
    each run of the schedule was put once, in its turn
    a message under a key exists once, from the moment of the promise
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn, get_args

import inorder
from inorder import aio
from inorder.stores.postgresql import PostgresStore
from inorder.stores.sqlite import SqliteStore
from inorder.testing import ManualClock
from inorder.work import Backoff, Dead, Discard, Schedule, TaskFunction, Tasks, attempts
from inorder.work.periodic import Periodic, standings

ATTEMPTS, MESSAGES, LIVES = 5, 40, 6
LIFE_SECONDS_MAX = 0.5
LAST_SECONDS = 120.0
RUNS, EVERY_SECONDS = 600, 60  # runs of the schedule, and their distance
KEYS = 400
ALWAYS = 99  # for a message that always fails
DEAD, DISCARDED = 1_000, 1_001  # for a message that its first finished call gives up
Kind = Literal["messages", "arguments", "async"]
KINDS: tuple[Kind, ...] = get_args(Kind)
REASON = 70_000  # the reason of messages given up as dead
CHANCE_OF_DEATH = 0.3  # of a program, between a verdict and its execution


class Round(NamedTuple):
    """A round: its location, the read order of its queue, how often each message fails, when the schedule was first
    seen, and whether its function takes messages, or arguments, or is an `async def` function with arguments.

    Args:
        log: a line for each call, `message count`, and for each verdict that is on disk, `message count given up`.
    """

    place: str
    log: Path
    strict: bool
    fails: tuple[int, ...]
    since: float
    kind: Kind = "messages"

    @property
    def promised(self) -> Path:
        """A line for each key whose put was promised."""
        return self.log.with_suffix(".keys")


@dataclass
class Report:
    seed: int
    kills: int = 0
    calls: int = 0
    verdicts: int = 0
    letters: int = 0
    runs: int = 0
    findings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        found = "\n".join(self.findings) or "nothing found"
        what = f"{self.calls:,} calls, {self.verdicts:,} verdicts, {self.letters:,} dead letters"
        what += f", {self.runs:,} periodic puts"
        return f"seed {self.seed}: {self.kills:,} kills, {what}\n{found}"


@functools.cache
def schedule() -> Schedule:
    """A schedule, all of whose runs must be put."""
    return Schedule(
        name="minutely", cron="* * * * *", queue="CLOCK", missed="all", body=lambda due: due.isoformat().encode()
    )


def plan(place: str, log: Path, chance: random.Random) -> Round:
    """A round that follows from the seed."""
    fails = tuple(chance.choice((0, 0, 0, 0, 1, 2, ALWAYS, DEAD, DEAD, DISCARDED)) for _ in range(MESSAGES))
    strict, kind = chance.random() < 0.5, chance.choice(KINDS)
    return Round(place, log, strict, fails, float(int(time.time()) - RUNS * EVERY_SECONDS), kind)


def seen_first(place: str, one: Schedule, at: float) -> None:
    """Makes the schedule look as if it was seen at this time, and has not run since."""
    clock = ManualClock(at)
    is_url = place.startswith("postgresql:")
    store = PostgresStore(place, "INORDER", clock=clock) if is_url else SqliteStore(place, clock=clock)
    try:
        with inorder.connect(store) as qm:
            Periodic(qm, [one]).put_due()
    finally:
        store.close_store()


def prepare(one: Round) -> None:
    """Makes the queues and their initial messages."""
    with inorder.connect(one.place) as qm:
        qm.create_queue("Q", read_order="strict" if one.strict else "relaxed")
        qm.create_queue("NEXT")
        for queue in ("DEAD", "CLOCK"):
            qm.create_queue(queue)
        qm.create_queue("KEYED", read_order="relaxed" if one.strict else "unordered")
        qm.admin.alter_manager(dead_letter_queue="DEAD")
        numbers = range(len(one.fails))
        work = tasks_of(one)[1]
        qm.put_many("Q", [str(number).encode() if work is None else work.message(number) for number in numbers])
    seen_first(one.place, schedule(), one.since)


def tasks_of(one: Round) -> tuple[Tasks, TaskFunction[..., Any] | None]:
    """A function that records its call, and fails as the round says; and the schedule. If the function takes arguments,
    it is the second result.
    """
    tasks = Tasks()
    tasks.add(schedule())
    log = opened(one.log)
    options: dict[str, Any] = {"attempts": ATTEMPTS, "backoff": Backoff(first=0.001, most=0.01)}

    def decide(number: int, message: inorder.Message) -> None:
        if one.fails[number] == DISCARDED:
            raise Discard(f"message {number} is given up")
        if one.fails[number] == DEAD:
            raise Dead(f"message {number} is given up", reason=REASON)
        if message.backout_count < one.fails[number]:
            raise ValueError(f"message {number} fails")

    def note(number: int, message: inorder.Message) -> None:
        os.write(log, f"{number} {message.backout_count}\n".encode())

    def of_message(message: inorder.Message, qm: inorder.QueueManager) -> None:
        of_argument(number_of(message), message, qm)

    def of_argument(number: int, message: inorder.Message, qm: inorder.QueueManager) -> None:
        note(number, message)
        qm.put("NEXT", str(number).encode())
        decide(number, message)

    async def in_loop(number: int, message: inorder.Message, qm: aio.QueueManager) -> None:
        note(number, message)
        await qm.put("NEXT", str(number).encode())
        decide(number, message)

    if one.kind == "messages":
        tasks.task("Q", **options)(of_message)
        return tasks, None
    if one.kind == "arguments":
        return tasks, tasks.task("Q", name="work", **options)(of_argument)
    return tasks, tasks.task("Q", name="work", concurrency=2, **options)(in_loop)


def number_of(message: inorder.Message) -> int:
    """The number of a message, for the function."""
    body = message.json()
    return int(body["number"] if isinstance(body, dict) else body)


def opened(log: Path) -> int:
    """Opens a log for the lines of several programs."""
    return os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def watch_verdicts(one: Round, chance_of_death: float) -> None:
    """Records each verdict that is on disk, and may kill this program then."""
    log, back_out = opened(one.log), attempts.back_out

    def noted(unit: Any, first: inorder.Got, verdict: attempts.AttemptVerdict) -> None:
        back_out(unit, first, verdict)
        if verdict.is_final:
            os.write(log, f"{number_of(first)} {first.backout_count} given up\n".encode())
            if random.random() < chance_of_death:
                os.kill(os.getpid(), signal.SIGKILL)

    attempts.back_out = noted


def forked(act: Callable[[], None]) -> int:
    """Forks a process that calls a function and ends; returns its id."""
    pid = os.fork()
    if not pid:
        _as_child(act)
    return pid


def _as_child(act: Callable[[], None]) -> NoReturn:
    status = 1
    try:
        act()
        status = 0
    except BaseException as error:  # noqa: BLE001 - a child of a fork never returns into its parent's program
        sys.stderr.write(f"a worker ended by itself: {error!r}\n")
    finally:
        os._exit(status)


def put_keys(one: Round, qm: inorder.QueueManager) -> None:
    """Puts a message under each key that has none, every fourth alone, the others in units of work of three; records
    each promise.
    """
    promised = opened(one.promised)
    for first in range(0, KEYS, 4):
        for keys in (range(first, first + 1), range(first + 1, first + 4)):
            while not _is_put(qm, keys):
                time.sleep(0.001)
            os.write(promised, "".join(f"{key}\n" for key in keys).encode())
    os.close(promised)


def _is_put(qm: inorder.QueueManager, keys: Iterable[int]) -> bool:
    """Whether all of them are put, by this unit of work or before; no, if a unit of another program has a key."""
    try:
        with qm.unit_of_work():
            for key in keys:
                qm.put("KEYED", str(key).encode(), deduplicate=str(key))
    except inorder.errors.DuplicatePending:
        return False
    return True


def live(one: Round) -> None:
    """Works until it is killed."""
    random.seed()
    watch_verdicts(one, CHANCE_OF_DEATH)
    with inorder.connect(one.place) as qm, qm.worker(tasks_of(one)[0], threads=2, log=lambda event: None):
        put_keys(one, qm)
        signal.pause()


def finish(one: Round) -> None:
    """Works until nothing is left."""
    ends = time.monotonic() + LAST_SECONDS
    watch_verdicts(one, 0.0)
    with inorder.connect(one.place) as qm, qm.worker(tasks_of(one)[0], threads=2, log=lambda event: None):
        put_keys(one, qm)
        while (
            qm.depth("Q")
            # Rows that killed programs have staged stay until they expire.
            or any(unit.kind == "session" for unit in qm.inspect.units())
            or standings(qm, [schedule()])[0].overdue
        ):
            if time.monotonic() > ends:
                raise TimeoutError(f"after {LAST_SECONDS:g} s {qm.depth('Q')} messages are left, or runs are due")
            time.sleep(0.01)


def run_round(report: Report, one: Round, chance: random.Random) -> None:
    """Kills some workers, lets the last one end, and judges."""
    prepare(one)
    for _ in range(LIVES):
        pids = [forked(lambda: live(one)) for _ in range(2)]
        time.sleep(chance.uniform(0, LIFE_SECONDS_MAX))
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            if os.WIFSIGNALED(status):
                report.kills += 1
            else:
                report.findings.append("a worker ended before it was killed")
        report.findings += lost_keys(one)
    _, status = os.waitpid(forked(lambda: finish(one)), 0)
    if status:
        report.findings.append("the last worker did not come to an end")
    report.findings += judge(report, one)


def judge(report: Report, one: Round) -> list[str]:
    """The differences from the promises."""
    lines = [line.split() for line in one.log.read_text().splitlines()] if one.log.exists() else []
    calls = [(int(number), int(seen)) for number, seen, *verdict in lines if not verdict]
    verdicts = {int(number): int(seen) for number, seen, *verdict in lines if verdict}
    with inorder.connect(one.place) as qm:
        found = by_the_clock(report, qm, one) + under_keys(qm)
        done = [int(message.body) for message in qm.browse("NEXT")]
        letters = {number_of(letter.message): letter.why for letter in qm.dead.letters()}
        count = qm.depth("DEAD")
    report.calls += len(calls)
    report.verdicts += len(verdicts)
    report.letters += count
    found += [f"message {n} was given up with backout count {verdicts[n]}, and called again with {seen}"
              for n, seen in calls if seen > verdicts.get(n, seen)]  # fmt: skip
    found += [f"message {n} was called twice with backout count {seen}" for (n, seen), times in Counter(calls).items()
             if times > 1]  # fmt: skip
    ends = Counter([*done, *letters])
    found += [f"message {n} has {ends[n]} ends" for n, fails in enumerate(one.fails)
              if ends[n] != (fails != DISCARDED or n in letters)]  # fmt: skip
    if count != len(letters):
        found.append(f"{count} dead letters of {len(letters)} messages")
    for number, why in letters.items():
        is_given_up = number in verdicts or why.reason == REASON
        least, reason = (1, REASON) if is_given_up and one.fails[number] == DEAD else (ATTEMPTS, 2362)
        if why.attempts < least or not why.error or (why.reason, why.queue) != (reason, "Q"):
            found.append(f"the dead letter of message {number} says {why}")
        if is_given_up and why.error != f"message {number} is given up":
            found.append(f"message {number} was given up, and is dead for another reason: {why.error}")
        was_killed = "ended in the middle" in why.error or one.fails[number] == ALWAYS or is_given_up
        if not was_killed and f"message {number} fails" not in why.error:
            found.append(f"message {number} is dead for another reason: {why.error}")
    found += [f"message {n} fails always, and is done" for n in done if one.fails[n] >= ALWAYS]
    found += [f"message {n} was to be removed, and is a dead letter" for n in letters
              if one.fails[n] == DISCARDED and n in verdicts]  # fmt: skip
    if one.strict and done != sorted(done):
        found.append(f"the strict order is broken: {done}")
    return found


def by_the_clock(report: Report, qm: inorder.QueueManager, one: Round) -> list[str]:
    """The faults of the puts of the schedule."""
    puts = [datetime.fromisoformat(message.body.decode()).timestamp() for message in qm.browse("CLOCK")]
    report.runs += len(puts)
    due = list(schedule().times.between(one.since, standings(qm, [schedule()])[0].last or one.since))
    if puts == due:
        return []
    times, runs = Counter(puts), set(due)
    lost, doubled = sorted(runs - times.keys()), sorted(run for run in times if times[run] > 1)
    invented = sorted(times.keys() - runs)
    return [f"periodic puts: lost {lost}, doubled {doubled}, invented {invented}, or not in their turn"]


def lost_keys(one: Round) -> list[str]:
    """Keys with a promised put but no message; the next program would put them again."""
    with inorder.connect(one.place) as qm:
        there = {message.body.decode() for message in qm.browse("KEYED")}
    promised = one.promised.read_text().split() if one.promised.exists() else []
    return [f"the put under key {key} was promised, and is lost" for key in promised if key not in there]


def under_keys(qm: inorder.QueueManager) -> list[str]:
    """The faults of the puts under keys."""
    times = Counter(int(message.body) for message in qm.browse("KEYED"))
    return [f"key {key} has {times[key]} messages" for key in range(KEYS) if times[key] != 1]


Play = Callable[[Report, Path, str, random.Random], object]
"""Runs a round, in a folder, with a store."""


def repeat(play: Play, of: str, *, kills: int, seed: int, seconds: float = float("inf"), parent: Path | None = None,
           place: Callable[[Path], str] = lambda folder: str(folder / "store.db"),
           tell: Callable[[str], object] = lambda _: None) -> Report:  # fmt: skip
    """Runs rounds until the number of kills is reached, the time is over, or a promise was broken.

    Args:
        of: the killed programs, in words.
        place: the location of the store of a round, from its folder.
        tell: called after each round with the progress.
    """
    chance, report, ends = random.Random(seed), Report(seed), time.monotonic() + seconds
    while not report.findings and report.kills < kills and time.monotonic() < ends:
        folder = Path(tempfile.mkdtemp(prefix="working-", dir=parent))
        play(report, folder, place(folder), chance)
        tell(f"{report.kills:,} of {kills:,} kills of {of}, {report.calls:,} calls")
        if report.findings:
            report.findings.append(f"the store and its calls are in {folder}")
        else:
            shutil.rmtree(folder)
    return report


def _play(report: Report, folder: Path, store: str, chance: random.Random) -> None:
    one = plan(store, folder / "calls.txt", chance)
    run_round(report, one, chance)
    if report.findings:
        (folder / "round.json").write_text(json.dumps({"seed": report.seed, "strict": one.strict, "fails": one.fails}))


run = functools.partial(repeat, _play, "workers")


def command(run: Callable[..., Report], program: str, about: str) -> int:
    """Runs from the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog=f"python -m tools.proof.{program}", description=about.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    given = parser.parse_args()
    report = run(kills=given.kills, seed=given.seed, seconds=given.seconds, tell=print)
    print(report)
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(command(run, "working", __doc__))
