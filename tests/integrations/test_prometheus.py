"""Metrics for Prometheus: calls of this process are counted; the store's depths are read at each scrape."""

from __future__ import annotations

import contextlib
import json
import logging
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from tests.stores.sqlite.programs import Program, child, path
from tests.stores.sqlite.programs import qm as file_manager

from inorder import Flags, QueueFull, QueueManager
from inorder.errors import ConnectionClosed, LogInRefused
from inorder.integrations import prometheus
from inorder.integrations.prometheus import Exposition, expose
from inorder.mq import channels
from inorder.testing import ManualClock

PROMTOOL = shutil.which("promtool")
__all__ = ["child", "file_manager", "path"]


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def exposition(qm: QueueManager, registry: CollectorRegistry) -> Iterator[Exposition]:
    made = expose(qm, registry)
    yield made
    made.cancel()


@pytest.mark.usefixtures("exposition")
def test_calls_per_reason_messages_and_bytes_are_counted(qm: QueueManager, registry: CollectorRegistry) -> None:
    qm.put_many("Q", [b"12345", b"678"])
    qm.get("Q")
    list(qm.browse("Q"))
    value = registry.get_sample_value
    assert value("inorder_calls_total", {"call": "put", "reason": "NONE"}) == 1
    assert value("inorder_call_seconds_count", {"call": "put"}) == 1
    assert value("inorder_messages_total", {"call": "put", "queue": "Q"}) == 2
    assert value("inorder_bytes_total", {"call": "put", "queue": "Q"}) == 8
    assert value("inorder_messages_total", {"call": "get", "queue": "Q"}) == 1
    assert value("inorder_messages_total", {"call": "browse", "queue": "Q"}) == 1
    qm.alter_queue("Q", max_depth=1)
    with pytest.raises(QueueFull):
        qm.put("Q", b"2")
    assert value("inorder_calls_total", {"call": "put", "reason": "Q_FULL"}) == 1
    assert value("inorder_messages_total", {"call": "put", "queue": "Q"}) == 2


@pytest.mark.usefixtures("exposition")
def test_a_scrape_asks_for_all_queues_and_discards_nothing(
    qm: QueueManager, registry: CollectorRegistry, clock: ManualClock
) -> None:
    qm.create_queue("OTHER")
    qm.put_many("Q", [b"1", b"2"], expiry=1)
    clock.advance(2)
    assert registry.get_sample_value("inorder_queue_depth", {"queue": "Q"}) == 2  # nothing was discarded for it
    assert registry.get_sample_value("inorder_queue_depth", {"queue": "OTHER"}) == 0
    assert registry.get_sample_value("inorder_up") == 1
    assert qm.depth("Q") == 0
    assert registry.get_sample_value("inorder_expired_messages_total", {"queue": "Q"}) == 2


@pytest.mark.usefixtures("exposition")
def test_periodic_puts_and_failed_tries_are_counted(qm: QueueManager, registry: CollectorRegistry) -> None:
    about = {"task": "", "schedule": "nightly", "queue": "Q", "error": ""}
    for kind in ("trouble", "put", "put", "stopped"):
        qm.internals.tell("worker", {"seconds": 2.0}, {**about, "kind": kind})
    qm.internals.tell("worker", {"seconds": 0.0}, {**about, "task": "pack", "schedule": "", "kind": "trouble"})
    labels = {"schedule": "nightly", "queue": "Q"}
    assert registry.get_sample_value("inorder_periodic_puts_total", labels) == 2
    assert registry.get_sample_value("inorder_periodic_failures_total", labels) == 1
    assert registry.get_sample_value("inorder_periodic_failures_total", {"schedule": "", "queue": "Q"}) is None
    assert registry.get_sample_value("inorder_periodic_late_seconds_sum", {"schedule": "nightly"}) == 4.0


def test_a_scrape_does_not_change_the_files_of_the_store(path: Path, file_manager: QueueManager) -> None:
    registry = CollectorRegistry()
    exposition = expose(file_manager, registry)
    file_manager.put("Q", b"1")
    before = path.read_bytes(), Path(f"{path}-wal").read_bytes()
    assert b'inorder_queue_depth{queue="Q"} 1.0' in generate_latest(registry)
    assert (path.read_bytes(), Path(f"{path}-wal").read_bytes()) == before
    exposition.cancel()


def test_depths_include_messages_put_by_other_processes(file_manager: QueueManager, child: Program) -> None:
    registry = CollectorRegistry()
    exposition = expose(file_manager, registry)
    child.run("qm.put('Q', b'1'); qm.put('Q', b'2', syncpoint=True)")
    assert registry.get_sample_value("inorder_queue_depth", {"queue": "Q"}) == 2
    assert registry.get_sample_value("inorder_queue_uncommitted_puts", {"queue": "Q"}) == 1
    child.kill()
    assert registry.get_sample_value("inorder_queue_uncommitted_puts", {"queue": "Q"}) == 0
    assert registry.get_sample_value("inorder_dead_connections_total") == 1
    exposition.cancel()


@pytest.mark.usefixtures("exposition")
def test_a_store_that_cannot_be_read_is_reported_as_down(
    qm: QueueManager, registry: CollectorRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    qm.admin.stop()
    with caplog.at_level(logging.ERROR, "inorder.integrations"):
        assert registry.get_sample_value("inorder_up") == 0
    assert "cannot be read" in caplog.text


def test_a_cancelled_exposition_is_removed_from_the_registry(
    qm: QueueManager, registry: CollectorRegistry, exposition: Exposition
) -> None:
    connections = qm._services.connections
    exposition.cancel()
    exposition.cancel()
    qm.put("Q", b"1")
    assert generate_latest(registry) == b""
    assert qm._services.connections == connections - 1
    expose(qm, registry).cancel()


def test_a_failed_exposition_leaves_nothing_in_the_registry(qm: QueueManager, registry: CollectorRegistry) -> None:
    closed = qm.connect()
    closed.close()
    with pytest.raises(ConnectionClosed):
        expose(closed, registry)
    assert generate_latest(registry) == b""
    exposition, connections = expose(qm, registry), qm._services.connections
    with pytest.raises(ValueError, match="Duplicated"):
        expose(qm, registry)
    assert qm._services.connections == connections
    assert registry.get_sample_value("inorder_up") == 1, "the first one goes on"
    exposition.cancel()


@pytest.mark.usefixtures("exposition")
def test_the_number_of_queues_with_their_own_label_is_limited(
    qm: QueueManager, registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prometheus, "QUEUES_MAX", 3)
    qm.create_queue("REPLIES", type="model", definition_type="temporary_dynamic")
    qm.put("Q", b"1")
    for _ in range(5):
        with qm.open("REPLIES") as queue:
            queue.put(b"1")
    qm.put("Q", b"2")
    counter = next(one for one in registry.collect() if one.name == "inorder_messages")
    puts = [one for one in counter.samples if one.name.endswith("_total") and one.labels["call"] == "put"]
    told = {one.labels["queue"]: one.value for one in puts}
    assert len(told) <= 4
    assert told["Q"] == 2
    assert sum(told.values()) == 7, "those without a label of their own are counted together"


PAGE = Path(__file__).parents[2] / "docs/how-to/monitoring.md"


@pytest.mark.usefixtures("exposition")
def test_the_page_lists_every_metric(registry: CollectorRegistry) -> None:
    told = set(re.findall(r"^\| `(inorder_\w+)`", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    there = {one.name + "_total" * (one.type == "counter") for one in registry.collect()}
    assert told == there


def test_channels_dead_letters_and_the_disk_are_shown(path: Path, file_manager: QueueManager) -> None:
    registry = CollectorRegistry()
    exposition = expose(file_manager, registry)
    value = registry.get_sample_value
    assert value("inorder_dead_letters") == 0
    file_manager.put_many("SYSTEM.DEAD.LETTER.QUEUE", [b"", b""])
    assert value("inorder_dead_letters") == 2, "no other queue is named"
    file_manager.create_queue("DEAD")
    file_manager.admin.alter_manager(dead_letter_queue="DEAD")
    file_manager.create_queue("TO.B.XMITQ", usage="transmission", max_depth=7)
    file_manager.create_queue(
        "THERE", type="remote", remote_queue="R", remote_manager="B", transmission_queue="TO.B.XMITQ"
    )
    file_manager.put("DEAD", b"")
    channels.define_connection(file_manager, "B", str(path.with_name("b.db")))
    channels.define_channel(file_manager, "TO.B", transmission_queue="TO.B.XMITQ", connection="B")
    file_manager.put_many("THERE", [b"1", b"2"])
    channels.stop_channel(file_manager, "TO.B")
    assert value("inorder_dead_letters") == 1
    assert value("inorder_queue_max_depth", {"queue": "TO.B.XMITQ"}) == 7
    assert value("inorder_channel_waiting", {"channel": "TO.B"}) == 2
    assert value("inorder_channel_status", {"channel": "TO.B", "status": "stopped"}) == 1
    assert value("inorder_channel_in_doubt", {"channel": "TO.B"}) == 0
    assert value("inorder_channel_messages_total", {"channel": "TO.B"}) == 0
    oldest = value("inorder_channel_oldest_put_timestamp_seconds", {"channel": "TO.B"})
    assert oldest == value("inorder_queue_oldest_put_timestamp_seconds", {"queue": "TO.B.XMITQ"})
    size = value("inorder_store_bytes")
    assert size == path.stat().st_size + Path(f"{path}-wal").stat().st_size
    assert value("inorder_store_free_bytes")
    exposition.cancel()


@pytest.mark.usefixtures("exposition")
def test_incomplete_groups_are_counted_with_the_age_of_the_oldest(
    qm: QueueManager, registry: CollectorRegistry
) -> None:
    for name in (b"one", b"two"):
        qm.put("Q", b"1", group_id=name, flags=Flags.IN_GROUP)
    value, of = registry.get_sample_value, {"queue": "Q"}
    assert value("inorder_queue_incomplete_groups", of) == 2
    since = value("inorder_queue_oldest_incomplete_group_timestamp_seconds", of)
    assert since == value("inorder_queue_oldest_put_timestamp_seconds", of)


@pytest.mark.usefixtures("exposition")
def test_tried_log_ins_and_forgiven_ones_are_counted(qm: QueueManager, registry: CollectorRegistry) -> None:
    qm.accounts.create_user("ann", password_hash="$right")
    for password in ("wrong", "wrong", "$right"):
        with contextlib.suppress(LogInRefused):
            qm.accounts.identify(name="ann", verify=lambda kept, given=password: kept == given)  # type: ignore[misc]
    calls = [registry.get_sample_value("inorder_calls_total", {"call": call, "reason": "NONE"}) for call in LOG_INS]
    assert calls == [3, 1]


LOG_INS = ("try_log_in", "forgive_log_in")
ROOT = Path(__file__).parents[2]
RULES, DASHBOARD = ROOT / "contrib/prometheus/inorder.yml", ROOT / "contrib/grafana/inorder.json"


def test_rules_and_dashboard_use_only_documented_metrics() -> None:
    listed = set(re.findall(r"^\| `(inorder_\w+)`", PAGE.read_text(), re.MULTILINE))
    asked = [target["expr"] for panel in json.loads(DASHBOARD.read_text())["panels"] for target in panel["targets"]]
    asked += re.findall(r"expr: ((?:.*\n {10,})*.*)", RULES.read_text())
    used = {name.removesuffix("_bucket") for text in asked for name in re.findall(r"inorder_\w+", text)}
    assert len(used) > 15
    assert used <= listed


def test_the_page_says_what_to_do_about_each_alarm() -> None:
    told = re.findall(r"^\| `(Inorder\w+)`", PAGE.read_text(), re.MULTILINE)
    assert told == re.findall(r"alert: (\w+)", RULES.read_text())


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed")
def test_promtool_accepts_the_rules() -> None:
    done = subprocess.run([str(PROMTOOL), "check", "rules", str(RULES)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
