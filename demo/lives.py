"""Parts 4 and 5: confirm ids and lock ids; processes that wait, and processes that die."""

from __future__ import annotations

import time

from inorder.model.message import UniqueId

from .processes import Cast
from .screen import Screen
from .worker import names


def confirmed_life(screen: Screen, cast: Cast) -> None:
    """Part 4: any program that knows an id can confirm or undo the puts, gets and locks under it."""
    screen.title("4. Confirm, lock and undo")
    qm, queue = cast.qm, cast.new_queue("commit")

    def show(text: str) -> list[str]:
        visible = names(qm.browse(queue))
        print(f"  {text:44} visible: {' '.join(visible) or '-':9} depth: {qm.depth(queue)}")
        return visible

    writer = cast.process("C")
    first = writer.do("put", queues=[queue], name="m1", confirm_id=7)
    second = writer.do("put", queues=[queue], name="m2", confirm_id=8)
    hidden = show("C puts m1 and m2, with confirm ids 7 and 8")
    writer.kill()
    show("C is killed: its ids live on")
    qm.confirm_put(queue, UniqueId(*second))
    qm.confirm_put(queue, UniqueId(*first))
    confirmed = show("another process confirms m2, then m1")
    screen.check("they are hidden until confirmed", hidden, [])
    screen.check("and stand in the order of their confirms", confirmed, ["m2", "m1"])
    qm.get(queue, confirm_id=9)
    got = show("get m2 with confirm id 9")
    qm.undo(queue, 9)
    screen.check("an undone get is back in its place", [got, show("undo 9")], [["m1"], ["m2", "m1"]])
    locked = qm.browse_and_lock(queue, confirm_id=5)
    qm.put(queue, b"m3")
    show("browse and lock both; put m3")
    qm.get(queue, lock_id=locked.lock_id, confirm_id=6)
    qm.undo(queue, 6)
    show("get m2 by its lock with confirm id 6; undo 6")
    screen.check("it is locked as before", len([unit for unit in qm.inspect.units() if unit.kind == "lock"]), 1)
    qm.undo(queue, 5)
    screen.check("undoing the lock frees all", show("undo 5"), ["m2", "m1", "m3"])
    screen.check("the undone gets are counted", [m.backout_count for m in qm.browse(queue)], [2, 0, 0])


def waits_and_deaths(screen: Screen, cast: Cast) -> None:
    """Part 5: waiting processes wake, and no process waits for a dead one."""
    screen.title("5. Processes that wait, and processes that die")
    queue = cast.new_queue()
    writer, reader = cast.process("A"), cast.process("eager getter")

    reader.begin("take", queue=queue, read_order="strict")
    cast.await_waiter(queue)
    begun = time.monotonic()
    writer.do("put", queues=[queue], name="m1")
    woken = reader.answer()
    print(f"  a reader waits, another process puts m1        woken and answered in {_ms(begun)}")
    screen.check("a put wakes a reader in another process", woken, ["m1", 0])

    dying = cast.process("D")
    dying.do("put", queues=[queue], name="d1", syncpoint=True)
    writer.do("put", queues=[queue], name="m2")
    reader.begin("take", queue=queue, read_order="strict")
    cast.await_waiter(queue)
    oldest = cast.qm.inspect.order_view(queue).oldest_put
    waits_for = oldest.by if oldest is not None else None
    print("  D puts d1 in a unit of work, then A puts m2    the strict reader waits: d1 stands first")
    screen.check("it reports the program for which it waits", waits_for, "D")
    begun = time.monotonic()
    dying.kill()
    given = reader.answer()
    print(f"  D is killed                                    the reader is given m2 after {_ms(begun)}")
    screen.check("D's unit is backed out, and no reader waits for it", [given, cast.qm.depth(queue)], [["m2", 0], 0])

    writer.do("put", queues=[queue], name="m3")
    dying = cast.process("E")
    dying.do("take", queue=queue, syncpoint=True)
    dying.kill()
    print("  E gets m3 in a unit of work and is killed      the message comes back")
    again = reader.do("take", queue=queue)
    screen.check("m3 is back, and the back out is counted", again, ["m3", 1])


def _ms(begun: float) -> str:
    return f"{1000 * (time.monotonic() - begun):.0f} ms"
