"""Confirm, lock and undo: puts and gets with a certain outcome, even if an answer was lost.

    python examples/confirm_lock_undo.py tour.db

This program uses no unit of work. Each call acts at once and is on disk when it returns. Any program that knows the id
can confirm or undo its effect later:

* A *confirm id* is a number that the caller chooses and keeps, before the call. Messages that are put or got under it
  are hidden until they are confirmed. If the answer was lost, `undo` with that number undoes everything done under it.
* A *unique id* names one message forever. A confirm uses it to name its message.
* A *lock id* is made by the queue manager. With it a program can get, delete and unlock the messages that a browse has
  locked.

All three outlive the program and a restart of the queue manager: in the middle of the tour the file is closed, with a
message in each of the three hidden states, and opened again.

Shown: seed 004; lifecycle A-6 to A-26.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import inorder
from inorder import Match, UniqueId
from inorder.client.inspection import Unit

TOUR = "TOUR"


def show(qm: inorder.QueueManager, did: str) -> None:
    """Prints the act, the messages that everyone can see now, and the ids that hold others."""
    visible = " ".join(message.body.decode() for message in qm.browse(TOUR)) or "-"
    held = ", ".join(f"{unit.kind} {_name(unit)}" for unit in qm.inspect.units()) or "-"
    print(f"  {did:50} visible: {visible:14} held: {held}")


def _name(unit: Unit) -> str:
    """A confirm id as it is; a lock id is an arbitrary number, so it is shown as "id"."""
    return unit.name if unit.kind == "confirm" else "id"


def refused(did: str, call: Callable[[], object]) -> None:
    """Makes a call that must be refused, and prints its error."""
    try:
        call()
    except inorder.InorderError as error:
        print(f"  {did:50} refused: {type(error).__name__}")
    else:
        raise AssertionError(f"{did}: this should have been refused")


def assured_put(qm: inorder.QueueManager) -> None:
    """Put, put again, confirm, confirm again: this makes one message, even if answers were lost."""
    print("Assured put: put with a confirm id, then confirm")
    put = qm.put(TOUR, b"m1", confirm_id=7)
    show(qm, "put m1 with confirm id 7: hidden")
    refused("put the same message once more", lambda: qm.put(TOUR, b"m1", confirm_id=7, uid=put.uid))
    qm.put(TOUR, b"m1", confirm_id=7, uid=put.uid, resend=True)
    show(qm, "put it once more as a resend: one copy")
    qm.put(TOUR, b"m2")
    show(qm, "put m2, without a confirm id")
    qm.confirm_put(TOUR, put.uid)
    show(qm, "confirm m1: it is placed now, after m2")
    warning = qm.confirm_put(TOUR, put.uid)
    show(qm, f"confirm m1 again: {'a warning' if warning else 'nothing happens'}")
    qm.put(TOUR, b"m3", confirm_id=8)
    qm.put(TOUR, b"m4", confirm_id=8)
    show(qm, "put m3 and m4, both with confirm id 8")
    undone = qm.undo(TOUR, 8)
    show(qm, f"undo 8: {undone} messages are gone")
    print()


def assured_get(qm: inorder.QueueManager) -> None:
    """Get, undo, get again, confirm: the undone message is got again."""
    print("Assured get: get with a confirm id, then confirm")
    qm.get(TOUR, confirm_id=9)
    show(qm, "get with confirm id 9, the answer is lost")
    qm.undo(TOUR, 9)
    show(qm, "undo 9: m2 is back in its place")
    message = qm.get(TOUR, confirm_id=9)
    show(qm, f"get it again, backed out {message.backout_count} time before")
    assert message.uid is not None
    uid = message.uid
    refused("delete it: it is got", lambda: qm.delete(TOUR, uid))
    qm.confirm_get(TOUR, uid)
    show(qm, "confirm: m2 is gone for good")
    warning = qm.confirm_get(TOUR, uid)
    show(qm, f"confirm again: {'a warning' if warning else 'nothing happens'}")
    print()


def locks(qm: inorder.QueueManager) -> None:
    """Browses and locks matching messages; gets, unlocks and deletes by the lock id."""
    print("Browse and lock")
    first, second, third = (qm.put(TOUR, body, correlation_id=b"red").uid for body in (b"r1", b"r2", b"r3"))
    show(qm, "put r1, r2, r3 with the correlation id red")
    locked = qm.browse_and_lock(TOUR, Match(correlation_id=b"red"))
    show(qm, f"lock the red ones: {len(locked.messages)} messages, one lock id")
    refused("delete r1 without the lock id", lambda: qm.delete(TOUR, first))
    refused("unlock r1 with another lock id", lambda: qm.unlock(TOUR, first, lock_id=locked.lock_id + 1))
    message = qm.get(TOUR, lock_id=locked.lock_id)
    show(qm, f"get with the lock id: {message.body.decode()}")
    qm.unlock(TOUR, second, lock_id=locked.lock_id)
    show(qm, "unlock r2: in its old place")
    qm.delete(TOUR, third, lock_id=locked.lock_id)
    show(qm, "delete r3 with the lock id")
    print()


def leave_hidden(qm: inorder.QueueManager) -> UniqueId:
    """Leaves a message in each of the hidden states. Returns the unique id of the put, which must be remembered."""
    print("Before a restart: m5 put, m1 got, and r2 locked and then got")
    put = qm.put(TOUR, b"m5", confirm_id=11)
    qm.get(TOUR, confirm_id=12)
    show(qm, "put m5 with confirm id 11, get m1 with 12")
    locked = qm.browse_and_lock(TOUR, confirm_id=13)
    show(qm, "browse and lock the rest with confirm id 13")
    qm.get(TOUR, lock_id=locked.lock_id, confirm_id=14)
    show(qm, "get it by its lock with confirm id 14")
    print()
    return put.uid


def settle_hidden(qm: inorder.QueueManager, put: UniqueId) -> None:
    """Settles the hidden messages; all ids are still valid."""
    print("After the restart")
    show(qm, "the file is opened again")
    qm.confirm_put(TOUR, put, confirm_id=11)
    show(qm, "confirm m5, naming its confirm id too")
    qm.undo(TOUR, 14)
    show(qm, "undo 14: r2 is locked, as before its get")
    qm.undo(TOUR, 13)
    show(qm, "undo 13: r2 is free")
    qm.undo(TOUR, 12)
    show(qm, "undo 12: m1 is back, before r2")
    refused("undo 12 again: nothing is held under it", lambda: qm.undo(TOUR, 12))
    print()


def plain_calls(qm: inorder.QueueManager) -> None:
    """Without an id, a call is final at once. Fields that select a message are indexed; its body is not read."""
    print("Without ids, by the fields that find a message")
    urgent = qm.put(TOUR, b"m6", priority=9)
    named = qm.put(TOUR, b"m7", message_id=b"seven")
    show(qm, "put m6 with priority 9, and m7")
    qm.get(TOUR, match=Match(message_id=named.message_id))
    show(qm, "get by message id: m7")
    qm.get(TOUR, match=Match(correlation_id=b"red"))
    show(qm, "get by correlation id: r2")
    qm.delete(TOUR, urgent.uid)
    show(qm, "delete by unique id: m6")
    qm.get(TOUR, match=Match(priority=0))
    show(qm, "get by priority: m1")
    qm.get(TOUR)
    show(qm, "get the first one: m5")


def main() -> None:
    """Runs the tour, on its own file."""
    parser = argparse.ArgumentParser(description="A tour of confirm ids, lock ids and unique ids.")
    parser.add_argument("store", type=Path, help="a file that is not there yet")
    path = parser.parse_args().store
    if path.exists():
        parser.error(f"{path} is there already: name a new file")
    with inorder.connect(path) as qm:
        qm.create_queue(TOUR, order="commit")  # a confirmed put gets its place when it is confirmed
        assured_put(qm)
        assured_get(qm)
        locks(qm)
        put = leave_hidden(qm)
    with inorder.connect(path) as qm:
        settle_hidden(qm, put)
        plain_calls(qm)


if __name__ == "__main__":
    main()
