"""A task that stops by itself while others go on is in the metrics, at `/ready`, and in the exit status."""

from __future__ import annotations

import json
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.helpers.support import LIMIT_SECONDS
from tests.tiers import gate, nightly
from tests.work.test_started_processes import Work, reserved_port

import inorder
from inorder import QueueManager
from inorder.work import Tasks
from inorder.work.processes import CANNOT_GO_ON, HAD_STOPPED, serve
from inorder.work.worker import Worker

TASKS = """
from inorder.work import Tasks

tasks = Tasks()

@tasks.task("S", name="fails", attempts=1)
def fails(message):
    raise ValueError("torn")

@tasks.task("Q", name="goes on")
def goes_on(message):
    pass
"""


@pytest.mark.parametrize(("others", "status"), [(False, CANNOT_GO_ON), (True, HAD_STOPPED)])
def test_the_status_of_a_process_says_that_a_task_has_stopped(qm: QueueManager, others: bool, status: int) -> None:
    tasks = Tasks()
    tasks.task("NOWHERE", name="lost")(lambda message: None)
    if others:
        tasks.task("Q", name="see")(lambda message: signal.raise_signal(signal.SIGTERM))
    worker = Worker(qm, tasks, log=lambda event: qm.put("Q", b"1") if event.kind == "stopped" and others else None)
    assert serve(worker, LIMIT_SECONDS) == status
    assert list(worker.stopped) == ["lost"]


@pytest.fixture
def place(tmp_path: Path) -> str:
    (tmp_path / "stopping_tasks.py").write_text(TASKS)
    return str(tmp_path / "shop.db")


@pytest.fixture
def shop(place: str) -> Iterator[QueueManager]:
    with inorder.connect(place, name="QM1") as made:
        made.create_queue("Q")
        made.create_queue("S", read_order="required")
        yield made


@gate
def test_a_stop_is_in_the_exit_status_of_the_command(shop: QueueManager, place: str, tmp_path: Path) -> None:
    shop.put("S", b"1")
    with Work(tmp_path, place, "stopping_tasks") as work:
        work.until(lambda told: any(one["event"] == "stopped" for one in told))
        shop.put("Q", b"1")
        work.has_ended(1)
        assert work.end(signal.SIGTERM) == 1


@nightly
def test_a_stop_is_in_the_metrics_and_at_ready(
    request: pytest.FixtureRequest, shop: QueueManager, place: str, tmp_path: Path
) -> None:
    pytest.importorskip("prometheus_client", reason="without inorder[prometheus] there are no metrics")
    port = reserved_port(request)

    def asked(page: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=LIMIT_SECONDS) as answer:
            return str(answer.read(), "utf-8")

    with Work(tmp_path, place, "stopping_tasks", "--metrics", str(port)) as work:
        shop.put("Q", b"1")
        work.has_ended(1)
        assert json.loads(asked("ready")) == {"status": "ready"}
        shop.put("S", b"1")
        work.until(lambda told: any(one["event"] == "stopped" for one in told))
        with pytest.raises(urllib.error.HTTPError) as refused:
            asked("ready")
        assert refused.value.code == 503
        assert json.loads(refused.value.read()) == {
            "status": "not ready", "error": "fails has stopped by itself: the log says why",
        }  # fmt: skip
        assert 'inorder_worker_stops_total{name="fails",queue="S"} 1.0' in asked("metrics")
        assert work.end(signal.SIGTERM) == 1
