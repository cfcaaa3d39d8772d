"""The messages of a channel are put once: the channel's record decides about each batch (between C-1, C-5)."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest

from inorder import Message, QueueManager, UniqueId
from inorder.errors import ArgumentError, Fenced, InorderError, Reason, SequenceError, StoreError, Undeliverable
from inorder.model.channel_attributes import define
from inorder.model.kinds import Report
from inorder.model.message import Transmission
from inorder.mq.channels.sides import digest
from inorder.rules.channels import HOPS, HOPS_MAX, Last
from inorder.stores.engine.receiving import ReceivingVerbs
from inorder.stores.seam.channel_records import BODIES_MAX, BODY_PIECE_MAX, BodyPiece, ChannelBatch, Receipt, Sender
from inorder.stores.seam.definitions import as_text
from inorder.testing.stores import RestartableStore

from ..helpers.support import bodies

SENDER = Sender("f" * 32, 7, "TO.B", "A")


def to(queue: str, body: bytes = b"x", **fields: Any) -> Message:
    defaults = Message(body, priority=4, persistent=True, message_id=body, **fields)
    return defaults.with_values(transmission=Transmission(queue, "TEST"))


def batch(
    number: int, *messages: Message, epoch: int = 2, made: int | None = None, to_dead_letters: bool = False
) -> ChannelBatch:
    """A batch; with `made`, it has the digest of the batch of that number."""
    first = 100 * (made or number)
    named = [Message().with_values(uid=UniqueId("A", first + n)) for n in range(len(messages) or 1)]
    sent = messages or (to("Q", b"%d" % number),)
    return ChannelBatch(SENDER, number, epoch, digest(named), sent, to_dead_letters=to_dead_letters)


# A batch that arrives after batches 1 and 2 of epoch 2: its number, the number whose digest it has, its epoch, and the
# outcome: whether it is already known, or an error.
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
def test_a_batch_is_put_known_or_refused_by_its_number_digest_and_epoch(
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


def test_batches_of_different_senders_are_distinguished(store: RestartableStore, qm: QueueManager) -> None:
    for field in ({"identifier": "0" * 32}, {"incarnation": 8}, {"channel": "TO.C"}, {}):
        assert not store.receive(batch(1)._replace(sender=SENDER._replace(**field))).already
    assert len(bodies(qm)) == len(store.received()) == 4


def test_a_repeated_batch_puts_nothing_on_a_queue_that_had_refused_its_messages(
    store: RestartableStore, qm: QueueManager
) -> None:
    """C-1, the other reason: a queue that refused all its messages has no record of the batch in its ledger."""
    qm.create_queue("P", put_allowed=False)
    qm.create_queue("DEAD")
    qm.admin.alter_manager(dead_letter_queue="DEAD")
    sent = batch(1, to("Q", b"q"), to("P", b"p"), to_dead_letters=True)
    assert store.receive(sent) == Receipt(False, 1, 1)  # the answer is lost
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
def test_a_message_that_cannot_be_put_is_dead_lettered_discarded_or_stops_the_channel(
    store: RestartableStore, qm: QueueManager, altered: dict[str, Any], queue: str, reason: Reason, fate: str
) -> None:
    """C-5: the batch is sent again; then the message becomes a dead letter, is discarded, or stops the channel."""
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


def test_a_dead_letter_no_longer_counts_the_queue_managers_that_it_has_passed(
    store: RestartableStore, qm: QueueManager
) -> None:
    """A message that went in a circle can travel on when the definitions are right; at its queue it is unchanged."""
    qm.create_queue("DEAD")
    qm.admin.alter_manager(dead_letter_queue="DEAD")
    store.receive(batch(1, to("P", properties={HOPS: HOPS_MAX, "colour": "red"}), to_dead_letters=True))
    qm.create_queue("P")
    assert qm.dead.replay().messages == 1
    assert qm.get("P").properties == {"colour": "red"}


def test_an_invalid_batch_is_refused(store: RestartableStore, qm: QueueManager) -> None:
    for wrong in (
        batch(-1),
        batch(0, epoch=0),
        batch(1, epoch=0),
        batch(1)._replace(messages=()),
        batch(1, Message(b"x")),
    ):
        with pytest.raises(InorderError) as refused:
            store.receive(wrong)
        assert refused.value.reason is Reason.ARGUMENT_ERROR
    assert store.received() == []


@pytest.mark.every_store
def test_messages_received_outside_the_batches_leave_no_record(store: RestartableStore, qm: QueueManager) -> None:
    """C-4: number 0. The run must be the latest; a message that cannot be put is discarded and counted."""
    store.receive(batch(1))
    before = store.received()
    qm.create_queue("FULL", max_depth=1)
    assert store.receive(batch(0, to("Q", b"fast"), to("FULL", b"1"))) == Receipt(False, 2)
    with pytest.raises(Undeliverable):
        store.receive(batch(0, to("Q", b"not alone"), to("FULL", b"2")))
    assert store.receive(batch(0, to("FULL", b"2"), to_dead_letters=True)) == Receipt(False, 0, 0, 1)
    with pytest.raises(Fenced):
        store.receive(batch(0, to("Q", b"late"), epoch=1))
    assert (bodies(qm), bodies(qm, "FULL"), store.received()) == ([b"1", b"fast"], [b"1"], before)
    assert [(one.messages, one.reason) for one in qm.inspect.dropped()] == [(1, Reason.Q_FULL)]


@pytest.mark.every_store
@pytest.mark.parametrize("epoch", [1, 2, 3])  # a sender that was restored from a backup has a lower one
def test_a_batch_number_is_reset_only_if_nothing_arrived_since_it_was_read(
    store: RestartableStore, qm: QueueManager, epoch: int
) -> None:
    def seen() -> Last:
        found = store.bind_channel(SENDER, epoch, resets=True)
        assert found.sender == SENDER
        return Last(found.number, found.epoch, found.digest)

    assert seen() == Last()
    store.receive(batch(1))
    before = seen()
    assert before == Last(1, 2, batch(1).digest)
    for change in (lambda: store.receive(batch(2)), lambda: store.bind_channel(SENDER, 5)):
        change()
        with pytest.raises(Fenced, match="cannot be reset to batch 9: meanwhile a run"):
            store.reset_received(SENDER, epoch, 8, before)
        before = seen()
    for _ in range(2):  # the first answer was lost
        store.reset_received(SENDER, epoch, 8, before)
        assert seen() == Last(8, epoch)


WHOLE = b"0123456789"


def piece(first: int, data: bytes, of: bytes = WHOLE, **given: Any) -> BodyPiece:
    return BodyPiece(batch(1).digest, 0, sha256(of).digest(), len(of), first, data)._replace(**given)


def held() -> ChannelBatch:
    return batch(1)._replace(messages=(to("Q", b"").with_values(length=len(WHOLE)),), held=frozenset({0}))


@pytest.mark.every_store
def test_a_body_received_in_pieces_is_put_once(store: RestartableStore, qm: QueueManager) -> None:
    """Pieces come from one run and from later ones; a repeat, a piece that is too early and a query change nothing."""
    steps = [(0, b"", 0, 2), (0, b"0123", 4, 2), (0, b"0123", 4, 2), (6, b"67", 4, 3), (4, b"45", 6, 3), (6, b"", 6, 3)]
    for first, data, there, epoch in steps:
        assert store.receive_piece(SENDER, epoch, piece(first, data)) == there
    with pytest.raises(StoreError, match="is incomplete: send it again"):
        store.receive(held())
    assert store.receive_piece(SENDER, 3, piece(6, b"6789")) == len(WHOLE)
    assert store.receive(held()) == Receipt(False, 1)
    assert store.receive(held()).already
    assert [(one.body, one.length) for one in qm.browse("Q")] == [(WHOLE, len(WHOLE))]
    assert store.receive_piece(SENDER, 3, piece(0, b"")) == len(WHOLE), "nobody needs to send it again"
    assert store.receive_piece(SENDER, 3, piece(0, b"", batch=b"next")) == 0


def test_a_repeated_batch_without_its_bodies_is_not_put_after_a_reset(
    store: RestartableStore, qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An operator resets the number just after the record was read."""
    store.receive_piece(SENDER, 1, piece(0, WHOLE))
    store.receive(held())
    read = ReceivingVerbs._with_bodies

    def reset(receiver: ReceivingVerbs, repeat: ChannelBatch) -> ChannelBatch | None:
        found = read(receiver, repeat)
        store.reset_received(SENDER, 2, 0)
        return found

    monkeypatch.setattr(ReceivingVerbs, "_with_bodies", reset)
    assert store.receive(held()).already
    with pytest.raises(StoreError, match="is incomplete: send it again"):
        store.receive(held())
    assert bodies(qm) == [WHOLE]


def test_a_body_that_does_not_match_its_digest_is_dropped(store: RestartableStore, qm: QueueManager) -> None:
    assert store.receive_piece(SENDER, 1, piece(0, b"01234")) == 5
    assert store.receive_piece(SENDER, 1, piece(5, b"56788")) == 0
    assert store.receive_piece(SENDER, 1, piece(0, WHOLE)) == len(WHOLE)
    assert store.receive(held()).put == 1


@pytest.mark.parametrize(
    "other",
    [{"batch": b"another"}, {"digest": b"\0" * 32}, {"size": 11}],
    ids=["of another batch", "another body", "another length"],
)
def test_pieces_are_dropped_when_another_body_or_a_reset_follows(
    store: RestartableStore, qm: QueueManager, other: dict[str, Any]
) -> None:
    assert store.receive_piece(SENDER, 1, piece(0, b"0123")) == 4
    assert store.receive_piece(SENDER, 1, piece(0, b"", **other)) == 0
    assert store.receive_piece(SENDER, 1, piece(0, b"")) == 0
    assert store.receive_piece(SENDER._replace(channel="TO.C"), 1, piece(0, b"0123")) == 4
    store.reset_received(SENDER._replace(channel="TO.C"), 1, 0)
    assert store.receive_piece(SENDER._replace(channel="TO.C"), 1, piece(0, b"")) == 0


def test_a_store_keeps_pieces_of_one_batch_for_all_transmission_queues_of_a_sender(
    store: RestartableStore, qm: QueueManager
) -> None:
    other = SENDER._replace(identifier="e" * 32)
    assert store.receive_piece(other, 1, piece(0, b"01")) == 2
    for incarnation in (7, 8, 7):
        sender = SENDER._replace(incarnation=incarnation)
        assert store.receive_piece(sender, 1, piece(0, b"0123")) == 4
    assert store.receive_piece(SENDER._replace(incarnation=8), 1, piece(0, b"")) == 0
    assert store.receive_piece(other, 1, piece(0, b"")) == 2


def test_the_pieces_of_a_deleted_channel_are_dropped(store: RestartableStore, qm: QueueManager) -> None:
    store.define_object("channel", "TO.B", as_text(define("TO.B", "receiver")))
    others = SENDER._replace(channel="TO.C")
    for sender in (SENDER, others):
        assert store.receive_piece(sender, 1, piece(0, b"0123")) == 4
    store.delete_object("channel", "TO.B")
    assert store.receive_piece(SENDER, 1, piece(0, b"")) == 0
    assert store.receive_piece(others, 1, piece(0, b"")) == 4


def test_an_invalid_piece_is_refused(store: RestartableStore, qm: QueueManager) -> None:
    """Wrong lengths and positions, more bytes than the limit, or a run that is over."""
    store.receive_piece(SENDER, 1, piece(0, b"x", position=1, size=BODIES_MAX - 9))
    for wrong in (
        piece(8, b"890"),
        piece(-1, b"0"),
        piece(0, b"", size=0),
        piece(0, b"", size=BODIES_MAX + 1),
        piece(0, b"", position=-1),
        piece(0, b"", digest=b"short"),
        piece(0, b"", batch=b"x" * 65),
        piece(0, b"x" * (BODY_PIECE_MAX + 1), size=BODIES_MAX),
        piece(0, b""),  # too many bytes together with the piece above
    ):
        with pytest.raises(ArgumentError):
            store.receive_piece(SENDER, 1, wrong)
    with pytest.raises(ArgumentError):
        store.receive(held()._replace(held=frozenset({1})))
    store.bind_channel(SENDER, 5)
    with pytest.raises(Fenced):
        store.receive_piece(SENDER, 4, piece(0, b""))
