"""Every time and name that a store keeps for a caller is bounded; the longest that it accepts do not damage it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.tiers import every_store

from inorder import QueueManager
from inorder.client.bulk import LedgerKey, Stager
from inorder.errors import ArgumentError, InorderError
from inorder.mq.channels import define_channel

Call = Callable[[Any, Any], object]


def leased(qm: Any, seconds: float) -> None:
    with qm.lease(seconds=seconds):
        qm.put("Q", b"leased")


def staged(qm: Any, name: str, lasts: float) -> None:
    with qm.open("Q", output=True) as queue:
        Stager(queue, name, lasts=lasts).stage(1, {"body": [b"x"]})


def channel(qm: Any, **attribute: Any) -> None:
    define_channel(qm, "C", transmission_queue="T", connection="there.db", **attribute)


# The longest time or name, and the call.
SECONDS: dict[str, tuple[float, Call]] = {
    "the lease of locks": (31_536_000, lambda qm, value: qm.browse_and_lock("Q", lease=value)),
    "a lease": (86_400, leased),
    "an expiry": (99_999_999.9, lambda qm, value: qm.put("Q", b"", expiry=value)),
    "a delay": (99_999_999.9, lambda qm, value: qm.put("Q", b"", delay=value)),
    "a put key": (31_622_400, lambda qm, value: qm.put("Q", b"", deduplicate="key", deduplicate_for=value)),
    "a back out": (99_999_999.9, lambda qm, value: (qm.get("Q", syncpoint=True), qm.back_out(delay=value))),
    "a token": (315_360_000, lambda qm, value: qm.accounts.create_token("user", "label", seconds=value)),
    "marks": (999_999.999, lambda qm, value: qm.admin.alter_manager(mark_interval=value)),
    "triggers": (999_999.999, lambda qm, value: qm.admin.alter_manager(trigger_interval=value)),
    "a channel's tries": (999_999_999, lambda qm, value: channel(qm, short_retry_interval=value)),
    "a channel's batches": (999_999.999, lambda qm, value: channel(qm, batch_interval=value)),
    "a staging": (1_000_000_000, lambda qm, value: staged(qm, "staging", value)),
}
NAMES: dict[str, tuple[int, Call]] = {
    "a unit": (256, lambda qm, name: (qm.get("Q", syncpoint=True), qm.prepare(name))),
    "a put key": (200, lambda qm, name: qm.put("Q", b"", deduplicate=name)),
    "a user": (64, lambda qm, name: qm.accounts.create_user(name)),
    "a token": (64, lambda qm, name: qm.accounts.create_token("user", name)),
    "a staging": (200, lambda qm, name: staged(qm, name, 60.0)),
    "a transaction": (2_000, lambda qm, name: qm.bulk.settle_staging(LedgerKey("application", "", name), [])),
    "an application": (256, lambda qm, name: qm.bulk.settle_staging(LedgerKey(name, "", "batch"), [])),
}


def bounded(qm: QueueManager, call: Call, longest: float, values: Sequence[Any]) -> None:
    """Shows that the first value is accepted, that the others are refused, and that the store is sound after both."""
    qm.put_many("Q", [b"x"] * len(values))
    qm.accounts.create_user("user")
    call(qm, values[0])
    assert qm.admin.check() == []
    for value in values[1:]:
        with pytest.raises(ArgumentError, match=f"{longest:,}.*, not "):
            call(qm, value)
    assert qm.admin.check() == []


@pytest.mark.parametrize(("longest", "call"), SECONDS.values(), ids=SECONDS)
def test_the_longest_time_is_accepted_and_a_longer_one_is_refused(qm: QueueManager, longest: float, call: Call) -> None:
    bounded(qm, call, longest, [longest, longest + 1, 1e12, sys.float_info.max, 10**30])


@every_store
@pytest.mark.parametrize(("longest", "call"), NAMES.values(), ids=NAMES)
def test_the_longest_name_is_accepted_and_a_longer_one_is_refused(qm: QueueManager, longest: int, call: Call) -> None:
    name = "".join(chr(0x20000 + number * 7919 % 40_000) for number in range(100_000))
    bounded(qm, call, longest, [name[:longest], name[: longest + 1], name])


def test_an_error_shows_control_characters_as_python_escapes(qm: QueueManager) -> None:
    with pytest.raises(InorderError) as raised:
        qm.admin.end_lease("\x1b[2J\nname\x9b\u202e")
    assert str(raised.value).isprintable()
    assert r"\x1b[2J\nname\x9b\u202e" in str(raised.value)
    assert str(InorderError("one\n" + "\0" * 5_000)).startswith("one\n\\x00\\x00")  # a message may have lines
    assert len(InorderError("\0" * 9_000).args[0]) <= 4_000
