"""Every time and name that a store keeps for a caller is bounded; values that it accepts do not damage it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any

import pytest
from tests.tiers import every_store

from inorder import QueueManager
from inorder.client.bulk import LedgerKey, Stager
from inorder.errors import ArgumentError, InorderError
from inorder.mq.channels import define_channel
from inorder.rules.leases import LOCK_SECONDS_MAX

Call = Callable[[Any, Any], object]

SECONDS: dict[str, Call] = {
    "the lease of locks": lambda qm, value: qm.browse_and_lock("Q", lease=value),
    "a lease": lambda qm, value: qm.lease(seconds=value),
    "an expiry": lambda qm, value: qm.put("Q", b"", expiry=value),
    "a delay": lambda qm, value: qm.put("Q", b"", delay=value),
    "a put key": lambda qm, value: qm.put("Q", b"", deduplicate="key", deduplicate_for=value),
    "a back out": lambda qm, value: (qm.get("Q", syncpoint=True), qm.back_out(delay=value)),
    "a token": lambda qm, value: qm.accounts.create_token("user", "label", seconds=value),
    "marks": lambda qm, value: qm.admin.alter_manager(mark_interval=value),
    "triggers": lambda qm, value: qm.admin.alter_manager(trigger_interval=value),
    "a channel's tries": lambda qm, value: define_channel(qm, "C", short_retry_interval=value),
    "a channel's batches": lambda qm, value: define_channel(qm, "C", batch_interval=value),
    "a staging": lambda qm, value: staged(qm, "staging", value),
}
NAMES: dict[str, Call] = {
    "a unit": lambda qm, name: (qm.get("Q", syncpoint=True), qm.prepare(name)),
    "a put key": lambda qm, name: qm.put("Q", b"", deduplicate=name),
    "a user": lambda qm, name: qm.accounts.create_user(name),
    "a token": lambda qm, name: qm.accounts.create_token("user", name),
    "a staging": lambda qm, name: staged(qm, name, 60.0),
    "a transaction": lambda qm, name: qm.bulk.settle_staging(LedgerKey("application", "", name), []),
    "an application": lambda qm, name: qm.bulk.settle_staging(LedgerKey(name, "", "batch"), []),
}


def staged(qm: Any, name: str, lasts: float) -> None:
    with qm.open("Q", output=True) as queue:
        Stager(queue, name, lasts=lasts).stage(1, {"body": [b"x"]})


def tried(qm: QueueManager, call: Call, value: object) -> None:
    qm.put("Q", b"x")
    qm.accounts.create_user("user")
    with contextlib.suppress(ArgumentError):
        call(qm, value)
    assert qm.admin.check() == []


@pytest.mark.parametrize("value", [1e12, sys.float_info.max, 10**30])
@pytest.mark.parametrize("call", SECONDS.values(), ids=SECONDS)
def test_a_huge_time_is_refused_or_does_not_damage_the_store(qm: QueueManager, call: Call, value: float) -> None:
    tried(qm, call, value)


@every_store
@pytest.mark.parametrize("call", NAMES.values(), ids=NAMES)
def test_a_huge_name_is_refused_or_does_not_damage_the_store(qm: QueueManager, call: Call) -> None:
    tried(qm, call, "".join(chr(0x10000 + number * 7919 % 65_000) for number in range(100_000)))


def test_the_longest_lease_of_locks_is_a_year(qm: QueueManager) -> None:
    tried(qm, SECONDS["the lease of locks"], LOCK_SECONDS_MAX)
    with pytest.raises(ArgumentError, match="31,536,000"):
        qm.browse_and_lock("Q", lease=LOCK_SECONDS_MAX + 1)


def test_an_error_shows_control_characters_as_python_escapes(qm: QueueManager) -> None:
    with pytest.raises(InorderError) as raised:
        qm.admin.end_lease("\x1b[2J\nname\x9b\u202e")
    assert str(raised.value).isprintable()
    assert r"\x1b[2J\nname\x9b\u202e" in str(raised.value)
    assert str(InorderError("one\n" + "\0" * 5_000)).startswith("one\n\\x00\\x00")  # a message may have lines
    assert len(InorderError("\0" * 9_000).args[0]) <= 4_000
