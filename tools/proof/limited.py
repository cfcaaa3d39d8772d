"""Kills workers whose tasks have limits and results, over and over, and checks the promises about them.

    python -m tools.proof.limited --kills 300 --seconds 300

A round has a store, and jobs of four tasks: at most one call at once for each of two customers, at most two calls at
once, at most 40 calls in a second, and a task without a limit. Some fail once, some always. All results are kept. There
is a schedule that has not run for hours. Programs with one worker each are killed at random moments, some by one of
their calls, and started again. A last one works until nothing is left. Each call records in a file that it begins and
ends, and each program records that it will be killed. Then

    no more calls ran at once, and no more have begun, than the limits say
    each job has one end, done or dead, and one result, which agrees with it; a job that was not committed has none
    a job is called once for each backout count that it had
    each run of the schedule was put once, in its turn
"""

from __future__ import annotations

import functools
import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tools.proof.working import (
    ALWAYS,
    ATTEMPTS,
    EVERY_SECONDS,
    RUNS,
    Report,
    Round,
    by_the_clock,
    command,
    forked,
    opened,
    repeat,
    schedule,
    seen_first,
)

import inorder
from inorder.work import Backoff, Limit, Tasks
from inorder.work.periodic import standings
from inorder.work.results import RESULTS, JobPlace, status_of

CUSTOMERS = ("anna", "bert")
AT_ONCE = 2
A_SECOND = 40
NAMES = ("each", "few", "slow", "free")
JOBS, TOGETHER, LIVES = 64, 8, 6
LIFE_SECONDS_MAX, CALL_SECONDS_MAX = 0.6, 0.04
LAST_SECONDS = 120.0
CHANCE_OF_DEATH = 0.01  # of a program, in a call


def plan(place: str, log: Path, chance: random.Random) -> Round:
    """A round that follows from the seed."""
    fails = tuple(chance.choice((0, 0, 0, 0, 0, 1, ALWAYS)) for _ in range(JOBS))
    return Round(place, log, False, fails, float(int(time.time()) - RUNS * EVERY_SECONDS), "arguments")


def tasks_of(one: Round, chance_of_death: float) -> Tasks:
    """The tasks, whose calls note when they begin and end."""
    tasks, log = Tasks(), opened(one.log)
    tasks.add(schedule())
    options: dict[str, Any] = {"attempts": ATTEMPTS, "backoff": Backoff(first=0.001, most=0.01), "keep": 3_600.0}

    def worked(number: int, scope: str, message: inorder.Message, qm: inorder.QueueManager) -> int:
        note(log, "begin", number, scope, message.backout_count)
        qm.put("NEXT", str(number).encode())
        if random.random() < chance_of_death:
            kill(log, os.getpid())
        time.sleep(random.uniform(0, CALL_SECONDS_MAX))
        note(log, "end", number, scope, message.backout_count)
        if message.backout_count < one.fails[number]:
            raise ValueError(f"job {number} fails")
        return number

    @tasks.task(name="each", limit=Limit(concurrency=1, key="customer"), **options)
    def each(number: int, customer: str, message: inorder.Message, qm: inorder.QueueManager) -> int:
        return worked(number, customer, message, qm)

    @tasks.task(name="few", limit=Limit(concurrency=AT_ONCE), **options)
    def few(number: int, message: inorder.Message, qm: inorder.QueueManager) -> int:
        return worked(number, "few", message, qm)

    @tasks.task(name="slow", limit=Limit(rate=f"{A_SECOND}/s"), **options)
    def slow(number: int, message: inorder.Message, qm: inorder.QueueManager) -> int:
        return worked(number, "slow", message, qm)

    @tasks.task(name="free", **options)
    def free(number: int, message: inorder.Message, qm: inorder.QueueManager) -> int:
        return worked(number, "free", message, qm)

    del each, few, slow, free
    return tasks


def note(log: int, event: str, number: int, scope: str, seen: int) -> None:
    os.write(log, f"{event} {os.getpid()} {time.time():.6f} {number} {scope} {seen}\n".encode())


def kill(log: int, pid: int) -> None:
    """Kills a program, after recording it."""
    os.write(log, f"kill {pid}\n".encode())
    os.kill(pid, signal.SIGKILL)


def prepare(one: Round) -> dict[int, bytes]:
    """Makes the queues and the jobs; returns the ids of their messages."""
    with inorder.connect(one.place) as qm:
        for queue in ("TASKS", "NEXT", "DEAD", "CLOCK"):
            qm.create_queue(queue)
        qm.admin.alter_manager(dead_letter_queue="DEAD")
        asked: dict[str, Any] = {"reply_to_queue": RESULTS}
        ids = {}
        for number in range(JOBS):
            name = NAMES[number // TOGETHER % len(NAMES)]
            body: dict[str, Any] = {"number": number}
            properties: dict[str, Any] = {"task": name, "job.keep": 3_600.0}
            if name == "each":
                body["customer"] = CUSTOMERS[number % len(CUSTOMERS)]
                if number % 3:  # the others come from a program without keys
                    properties["job.key"] = body["customer"]
            ids[number] = qm.put_json("TASKS", body, properties=properties, **asked).message_id
    seen_first(one.place, schedule(), one.since)
    return ids


def live(one: Round) -> None:
    """Works until it is killed."""
    random.seed()
    tasks = tasks_of(one, CHANCE_OF_DEATH)
    with inorder.connect(one.place) as qm, qm.worker(tasks, threads=4, log=lambda event: None):
        signal.pause()


def finish(one: Round) -> None:
    """Works until nothing is left."""
    ends = time.monotonic() + LAST_SECONDS
    tasks = tasks_of(one, 0.0)
    with inorder.connect(one.place) as qm, qm.worker(tasks, threads=4, log=lambda event: None):
        while (
            qm.depth("TASKS")
            or any(unit.kind == "session" for unit in qm.inspect.units())
            or standings(qm, [schedule()])[0].overdue
        ):
            if time.monotonic() > ends:
                raise TimeoutError(f"after {LAST_SECONDS:g} s {qm.depth('TASKS')} jobs are left, or runs are due")
            time.sleep(0.01)


def run_round(report: Report, one: Round, chance: random.Random) -> None:
    """Kills some workers, lets the last one end, and judges."""
    began, ids, log = time.time(), prepare(one), opened(one.log)
    for _ in range(LIVES):
        pids = [forked(lambda: live(one)) for _ in range(2)]
        time.sleep(chance.uniform(0, LIFE_SECONDS_MAX))
        for pid in pids:
            kill(log, pid)
            _, status = os.waitpid(pid, 0)
            report.kills += os.WIFSIGNALED(status)
            if not os.WIFSIGNALED(status):
                report.findings.append("a worker ended before it was killed")
        report.findings += judge_results(one, ids, has_ended=False)
    _, status = os.waitpid(forked(lambda: finish(one)), 0)
    if status:
        report.findings.append("the last worker did not come to an end")
    report.findings += judge_calls(report, one, began) + judge_results(one, ids, has_ended=True)
    with inorder.connect(one.place) as qm:
        report.findings += by_the_clock(report, qm, one)


def judge_calls(report: Report, one: Round, began: float) -> list[str]:
    """The faults of the calls."""
    found, running, seen_before, started = list[str](), dict[tuple[int, int], str](), set[tuple[int, int]](), 0
    for line in one.log.read_text().splitlines():
        event, process, *rest = line.split()
        pid = int(process)
        if event == "kill":
            running = {call: scope for call, scope in running.items() if call[0] != pid}
            continue
        at, number, scope, seen = float(rest[0]), int(rest[1]), rest[2], int(rest[3])
        if event == "end":
            running.pop((pid, number), None)  # the note of a program that was just killed
            continue
        report.calls += 1
        running[pid, number] = scope
        most = {"few": AT_ONCE, "slow": JOBS, "free": JOBS}.get(scope, 1)
        count = sum(one == scope for one in running.values())
        if count > most:
            found.append(f"{count} calls of {scope} ran at once: {line}")
        if (number, seen) in seen_before:
            found.append(f"job {number} was called twice with backout count {seen}")
        seen_before.add((number, seen))
        started += scope == "slow"
        if scope == "slow" and started > A_SECOND * (at - began + 0.001) + 10:
            found.append(f"{started} calls of slow have begun in {at - began:.3f} s")
    return found


def judge_results(one: Round, ids: dict[int, bytes], *, has_ended: bool) -> list[str]:
    """The faults of the results."""
    with inorder.connect(one.place) as qm:
        try:
            replies = list(qm.browse(RESULTS))
        except inorder.errors.UnknownQueue:
            replies = []
        done = Counter(int(message.body) for message in qm.browse("NEXT"))
        letters = Counter(letter.message.message_id for letter in qm.dead.letters())
        states = {number: status_of(qm, JobPlace(ids[number], "TASKS")) for number in ids} if has_ended else {}
    said = {number: [one.json() for one in replies if one.correlation_id == ids[number]] for number in ids}
    found = list[str]()
    for number, results in said.items():
        ends = [one["status"] for one in results]
        if ends.count("done") > done[number] or ends.count("dead") > letters[ids[number]]:
            found.append(f"job {number} has the results {results}, but was not committed")
        if any(one["status"] == "done" and one["result"] != number for one in results):
            found.append(f"job {number} has another result: {results}")
        if has_ended and (len(ends), done[number] + letters[ids[number]]) != (1, 1):
            found.append(f"job {number} is {done[number]} times done and {letters[ids[number]]} times dead: {results}")
        if has_ended and ends != [states[number].state]:
            found.append(f"job {number} has the state {states[number]}, and the results {results}")
    return found


def _play(report: Report, folder: Path, store: str, chance: random.Random) -> None:
    run_round(report, plan(store, folder / "calls.txt", chance), chance)


run = functools.partial(repeat, _play, "workers with limits")


if __name__ == "__main__":
    sys.exit(command(run, "limited", __doc__))
