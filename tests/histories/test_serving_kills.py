"""Servers killed with SIGKILL while clients work over HTTP lose and double nothing that was acknowledged.

`make crash` kills hundreds of servers.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest
from tests.helpers.support import Make
from tools.proof import serving, serving_desk
from tools.proof.lives import POINTS, RANDOM
from tools.proof.serving import Life, Report, Slot, found_in, judge, lives_of
from tools.proof.serving_clients import CLIENTS, Client, Done, Leaser, Putter, Servers
from tools.proof.serving_desk import Acts
from tools.proof.serving_workers import ALL, PARENT, WORKER

import inorder

SEED = int(os.environ.get("INORDER_CRASH_SEED", random.SystemRandom().getrandbits(32)))


def kept(**asked: Any) -> Report:
    """Runs, and checks that all promises were kept."""
    report = serving.run(seed=SEED, **asked)
    assert not report.findings, f"INORDER_CRASH_SEED={SEED} tries the same plan\n{report}"
    assert report.kills.total() >= asked["kills"]
    assert report.promises > 0
    return report


@pytest.mark.gate
def test_killed_servers_break_no_promise(tmp_path: Path) -> None:
    kept(kills=5, lives=2, parent=tmp_path)


@pytest.mark.nightly
def test_servers_killed_often_break_no_promise(tmp_path: Path) -> None:
    report = kept(kills=24, parent=tmp_path)
    assert report.leases["committed"] > 0, report


@pytest.fixture
def schemas(postgresql: str, make: Make) -> Callable[[Path], str]:
    """Gives each round a schema of its own."""
    return lambda _: make("postgresql")


@pytest.mark.nightly
@pytest.mark.postgresql
def test_killed_servers_of_a_database_break_no_promise(tmp_path: Path, schemas: Callable[[Path], str]) -> None:
    kept(kills=10, parent=tmp_path, place=schemas)


@pytest.mark.nightly
@pytest.mark.parametrize("where", ["file", "database"])
def test_killed_workers_and_parents_break_no_promise(
    tmp_path: Path, where: str, request: pytest.FixtureRequest
) -> None:
    given = {"place": request.getfixturevalue("schemas")} if where == "database" else {}
    report = kept(kills=3, parent=tmp_path, lives=1, workers=True, **given)
    assert {WORKER, PARENT, ALL} <= report.kills.keys()


def test_the_plan_of_a_round_follows_from_its_seed_and_has_every_point() -> None:
    plans = [lives_of(random.Random(SEED), 1000) for _ in range(2)]
    assert plans[0] == plans[1]
    assert {life.end for life in plans[0]} == {RANDOM, *POINTS}


AS_PROMISED = {"PUT": ["0-0"], "IN": ["0-3"], "OUT": ["0-1@4-0"]}


def done(**others: object) -> Done:
    made = Done(put={"PUT": {"0-0", "0-2"}, "IN": {"0-1", "0-3"}}, got=["0-2"], leases={"4-0": "committed"})
    for name, value in others.items():
        setattr(made, name, value)
    return made


def test_kept_promises_give_no_finding() -> None:
    assert found_in(AS_PROMISED, done()) == []
    assert found_in(AS_PROMISED, done(got=[], unanswered_gets=1)) == []
    assert found_in(AS_PROMISED, done(leases={"4-0": "unknown", "4-1": "unknown"})) == []


BROKEN: list[tuple[dict[str, list[str]], dict[str, object], str]] = [
    ({}, {"got": []}, "lost from PUT, with 0 gets without an answer: ['0-2']"),
    ({"IN": []}, {}, "lost from IN: ['0-3']"),
    ({"IN": ["0-3", "0-1"]}, {}, "message 0-1 of IN has 2 ends"),
    ({}, {"got": ["0-2", "0-2"]}, "message 0-2 of PUT has 2 ends"),
    ({"PUT": ["0-0", "9"]}, {}, "message 9 of PUT was never put"),
    ({}, {"leases": {"4-0": "backed out"}}, "lease 4-0 is backed out, and 1 of its messages have arrived"),
    ({"IN": ["0-3", "0-1"], "OUT": []}, {}, "lease 4-0 is committed, and 0 of its messages have arrived"),
]


def test_each_broken_promise_is_a_finding() -> None:
    for there, others, finding in BROKEN:
        assert finding in found_in(AS_PROMISED | there, done(**others))


FILES = {serving_desk.DESK: ["1"], serving_desk.FILED: ["2"]}
ACTS = {"put": {"1", "2", "3"}, "maybe_put": {"1", "2", "3", "4"}, "deleted": {"3"}, "maybe_deleted": {"3"}}


def test_a_console_that_kept_its_promises_gives_no_finding() -> None:
    assert serving_desk.found_in(FILES, Acts(**ACTS)) == []
    assert serving_desk.found_in(FILES | {"FILED": ["2", "4"]}, Acts(**ACTS)) == []
    assert serving_desk.found_in({"DESK": ["1"]}, Acts(**ACTS | {"maybe_deleted": {"2", "3"}})) == []


def test_each_broken_promise_of_the_console_is_a_finding() -> None:
    broken: tuple[tuple[str, list[str], str], ...] = (
        ("DESK", [], "lost from the console's queues: ['1']"),
        ("FILED", ["2", "1"], "message 1 of the console is there 2 times"),
        ("DESK", ["1", "3"], "deleted by the console, and there: ['3']"),
        ("DESK", ["1", "9"], "message 9 of the console was never put"),
    )
    for queue, there, finding in broken:
        assert serving_desk.found_in(FILES | {queue: there}, Acts(**ACTS)) == [finding]


def test_a_unit_of_work_left_in_the_store_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "REST_SECONDS_MAX", 0.0)
    store = tmp_path / "store.db"
    with inorder.connect(store) as qm:
        for queue in serving.QUEUES:
            qm.create_queue(queue)
        with qm.lease(seconds=600):
            qm.put("PUT", b"1")
        judge(report := Report(0), str(store), [])
    assert len(report.findings) == 1
    assert report.findings[0].startswith("a unit of work is left: ")


def findings_of(kind: type[Client], *answers: httpx.Response) -> str:
    """The findings of a client whose server answers so; the last answer is repeated."""
    left = [*answers]
    servers = Servers("token")
    servers.add(0, "http://localhost")
    client = kind(4, SEED, servers, Event())
    client.http = httpx.Client(transport=httpx.MockTransport(lambda _: left.pop(0) if len(left) > 1 else left[0]))
    client.run()
    return "\n".join(client.done.findings)


def test_a_server_that_fails_is_a_finding() -> None:
    for kind in CLIENTS:
        assert "500" in findings_of(kind, httpx.Response(500, text="of ours"))
    assert "400" in findings_of(Putter, httpx.Response(400, text="not understood"))


@pytest.mark.nightly
def test_a_server_that_ends_by_itself_is_a_finding(tmp_path: Path) -> None:
    """This one ends because its store is no database."""
    (tmp_path / "store.db").write_bytes(b"this is no database" * 1000)
    slot = Slot(str(tmp_path / "store.db"), tmp_path, 0, Servers("token"))
    slot.run([Life(RANDOM, 1, 60)])
    assert len(slot.findings) == 1
    assert slot.findings[0].startswith("a server ended by itself with status ")


def test_a_lease_that_ends_before_its_deadline_is_a_finding() -> None:
    over = {"error": [{"reasonCode": inorder.Reason.LEASE_OVER.value}]}
    begun = httpx.Response(201, json={"token": "of a lease"})
    assert "before its deadline" in findings_of(Leaser, begun, httpx.Response(409, json=over))
