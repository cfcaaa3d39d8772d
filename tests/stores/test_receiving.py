"""What a channel brings is put once: the record of the channel judges each batch (between C-1, C-5), on every store."""

from __future__ import annotations

from typing import Any

import pytest

from inorder import Message, QueueManager, UniqueId
from inorder.errors import Fenced, InorderError, Reason, SequenceError, Undeliverable
from inorder.model.kinds import Report
from inorder.model.message import Transmission
from inorder.mq.channels.sides import digest
from inorder.stores.seam.records import ChannelBatch, Receipt, Sender
from inorder.testing.stores import RestartableStore

from ..helpers.support import bodies

SENDER = Sender("f" * 32, 7, "TO.B", "A")


def to(queue: str, body: bytes = b"x", **fields: Any) -> Message:
    defaults = Message(body, priority=4, persistent=True, message_id=body, **fields)
    return defaults.with_values(transmission=Transmission(queue, "TEST"))


def batch(
    number: int, *messages: Message, epoch: int = 2, made: int | None = None, to_dead_letters: bool = False
) -> ChannelBatch:
    """A batch; `made`: of the messages of another number."""
    first = 100 * (made or number)
    named = [Message().with_values(uid=UniqueId("A", first + n)) for n in range(len(messages) or 1)]
    sent = messages or (to("Q", b"%d" % number),)
    return ChannelBatch(SENDER, number, epoch, digest(named), sent, to_dead_letters=to_dead_letters)


# What comes after batches 1 and 2 of epoch 2: number, the number whose messages it has, epoch; what becomes of it.
TABLE: list[tuple[int, int, int, type[InorderError] | bool]] = [
    (3, 3, 2, False),
    (3, 3, 3, False),
    (2, 2, 2, True),
    (2, 2, 3, True),
    (2, 9, 2, SequenceError),
    (3, 3, 1, Fenced),
    (2, 2, 1, Fenced),
    (1, 1, 2, SequenceError),
    (4, 4, 2, SequenceError),
    (900, 4, 2, SequenceError),
]


@pytest.mark.parametrize(("number", "made", "epoch", "outcome"), TABLE)
def test_what_comes_after_two_batches(
    store: RestartableStore, qm: QueueManager, number: int, made: int, epoch: int, outcome: type[InorderError] | bool
) -> None:
    for before in (1, 2):
        assert store.receive(batch(before)) == Receipt(False, 1)
    coming = batch(number, epoch=epoch, made=made)
    if isinstance(outcome, bool):
        assert store.receive(coming).already is outcome
    else:
        with pytest.raises(outcome):
            store.receive(coming)
    added = [b"3"] if outcome is False else []
    assert bodies(qm) == [b"1", b"2", *added]
    (known,) = store.received()
    assert (known.number, known.digest) == ((3, coming.digest) if outcome is False else (2, batch(2).digest))


def test_senders_are_known_apart(store: RestartableStore, qm: QueueManager) -> None:
    for field in ({"identifier": "0" * 32}, {"incarnation": 8}, {"channel": "TO.C"}, {}):
        assert not store.receive(batch(1)._replace(sender=SENDER._replace(**field))).already
    assert len(bodies(qm)) == len(store.received()) == 4


def test_a_queue_that_refused_takes_messages_at_the_second_try(store: RestartableStore, qm: QueueManager) -> None:
    """C-1, the other reason: the ledger of a queue that took nothing does not know the batch."""
    qm.create_queue("P", put_allowed=False)
    qm.create_queue("DEAD")
    qm.admin.alter_manager(dead_letter_queue="DEAD")
    sent = batch(1, to("Q", b"q"), to("P", b"p"), to_dead_letters=True)
    assert store.receive(sent) == Receipt(False, 1, 1)  # and the answer is lost
    qm.alter_queue("P", put_allowed=True)
    assert store.receive(sent).already
    assert (bodies(qm), bodies(qm, "P"), bodies(qm, "DEAD")) == ([b"q"], [], [b"p"])


@pytest.mark.parametrize(
    ("altered", "queue", "reason"),
    [
        ({"put_allowed": False}, "Q", Reason.PUT_INHIBITED),
        ({"max_depth": 1}, "Q", Reason.Q_FULL),
        ({"max_length": 1}, "Q", Reason.MSG_TOO_BIG_FOR_Q),
        ({}, "NOWHERE", Reason.UNKNOWN_OBJECT_NAME),
        ({}, "TRANSMISSION", Reason.XQH_ERROR),
    ],
)
@pytest.mark.parametrize("fate", ["again", "buried", "discarded", "required", "nowhere"])
def test_a_message_that_cannot_be_put(
    store: RestartableStore, qm: QueueManager, altered: dict[str, Any], queue: str, reason: Reason, fate: str
) -> None:
    """C-5: the batch comes again; then it is a dead letter, or is discarded; or the channel is to stop."""
    qm.create_queue("P")
    qm.create_queue("TRANSMISSION", usage="transmission")
    qm.create_queue("DEAD")
    if fate != "nowhere":
        qm.admin.alter_manager(dead_letter_queue="DEAD")
    qm.alter_queue("Q", **altered)
    if fate == "required":
        qm.alter_queue("Q", read_order="required")
    report = Report.DISCARD_MESSAGE if fate == "discarded" else 0
    messages = [to("P", b"first"), to("Q", b"1"), to(queue, b"long", report=report), to("P", b"last")]
    if not altered.get("put_allowed", True):
        messages.pop(1)
    sent = batch(1, *messages, to_dead_letters=fate != "again")
    if fate in ("again", "nowhere") or (fate == "required" and queue == "Q"):
        with pytest.raises(Undeliverable) as refused:
            store.receive(sent)
        assert (refused.value.reason, refused.value.queue) == (reason, queue)
        assert bodies(qm, "P") == bodies(qm) == bodies(qm, "DEAD") == []
        assert not store.received()
        return
    receipt = store.receive(sent)
    assert bodies(qm, "P") == [b"first", b"last"]
    assert bodies(qm, "DEAD") == ([] if fate == "discarded" else [b"long"])
    assert receipt == Receipt(False, len(messages) - 1, int(fate != "discarded"), int(fate == "discarded"))


def test_a_batch_that_is_none_is_refused(store: RestartableStore, qm: QueueManager) -> None:
    for wrong in (batch(0), batch(1, epoch=0), batch(1)._replace(messages=()), batch(1, Message(b"x"))):
        with pytest.raises(InorderError) as refused:
            store.receive(wrong)
        assert refused.value.reason is Reason.ARGUMENT_ERROR
    assert store.received() == []
