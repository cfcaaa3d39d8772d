"""Events as lines of a log."""

from __future__ import annotations

import logging

import pytest

from inorder import ArgumentError, QueueFull, QueueManager
from inorder.client.listening import StoreEvent
from inorder.integrations.log import log_events, text_of


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "inorder.store"]


def test_each_event_is_a_log_record_that_has_the_event_attached(
    qm: QueueManager, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "inorder.store"):
        observation = log_events(qm)
        qm.put_many("Q", [b"12345", b"678"])
        observation.cancel()
        qm.put("Q", b"untold")
    put = caplog.records[-1]
    assert put.getMessage().startswith("inorder.put queue='Q' messages=2 bytes=8 seconds=0.")
    assert put.levelno == logging.DEBUG
    assert isinstance(put.event, StoreEvent)  # type: ignore[attr-defined]


def test_a_call_that_fails_is_a_warning_with_its_reason(qm: QueueManager, caplog: pytest.LogCaptureFixture) -> None:
    qm.alter_queue("Q", max_depth=1)
    qm.put("Q", b"1")
    with caplog.at_level(logging.WARNING, "inorder.store"):
        log_events(qm)
        with pytest.raises(QueueFull):
            qm.put("Q", b"2")
    [line] = lines(caplog)
    assert line.startswith("inorder.put queue='Q' seconds=")
    assert line.endswith("failed: 2053 Q_FULL (QueueFull)")


def test_a_slow_call_is_a_warning(qm: QueueManager, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "inorder.store"):
        log_events(qm, slow_seconds=0.0)
        qm.depth("Q")
        with pytest.raises(ArgumentError, match="slow_seconds"):
            log_events(qm, slow_seconds=-1)
    assert [line.split()[0] for line in lines(caplog)] == ["inorder.status"]


def test_the_program_chooses_the_logger_and_the_level(qm: QueueManager, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "shop"):
        log_events(qm, logging.getLogger("shop"), level=logging.INFO)
        qm.depth("Q")
    assert [(record.name, record.levelno) for record in caplog.records] == [("shop", logging.INFO)]


def test_control_characters_and_line_ends_in_names_are_escaped() -> None:
    event = StoreEvent(name="inorder.connect", metadata={"program": "a\x1b[2J\nb"})
    assert text_of(event) == r"inorder.connect program='a\x1b[2J\nb'"
