"""`make demo-sites`: four sites, whose programs are killed in turn; every message arrives once, in order."""

from __future__ import annotations

import pytest
from demo import sites
from demo.__main__ import main

import inorder


@pytest.mark.gate
def test_each_message_arrives_once_and_in_order_although_every_program_is_killed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["sites", "--messages", "25"]) == 0
    told = capsys.readouterr().out
    assert told.count("  killed ") == len(sites.PROGRAMS)
    for text in ("orders were collected by SHOP", "tasks were answered by DESK"):
        assert f"as documented: 25 {text}, each once, in the order of the puts" in told


def test_messages_that_do_not_arrive_end_the_demonstration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sites, "PATIENCE_SECONDS", 0.01)
    with inorder.connect() as qm:
        qm.create_queue("ORDERS")
        qm.put("ORDERS", b"0")
        assert sites.arrived(qm, "ORDERS", 1) == [0]
        with pytest.raises(sites.SiteFailed, match="1 of 2 messages came to ORDERS"):
            sites.arrived(qm, "ORDERS", 2)
