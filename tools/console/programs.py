"""Programs at work on the sample: they hold messages, wait, put and work, until standard input ends.

They run in their own process, so that the console shows another process as the holder.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from typing import Final

import inorder
from inorder import Match, NoMessageAvailable, QueueManager

SECONDS: Final = 0.12  # about, for one item


def main(store: str) -> None:
    """Works until it is killed, or standard input ends."""
    with inorder.connect(store, program="shop") as qm, contextlib.ExitStack() as closing:
        _hold(qm, closing)
        for program, work in (("bookkeeping", _read), ("till", _sell)):
            one = closing.enter_context(contextlib.closing(qm.connect(program=program)))
            threading.Thread(target=work, args=(one,), daemon=True).start()
        print("ready", flush=True)
        sys.stdin.read()
        os._exit(0)  # as if it had died, because its reader would continue to wait


def _hold(qm: QueueManager, closing: contextlib.ExitStack) -> None:
    """Puts, gets and locks messages without settling them."""

    def program(name: str) -> QueueManager:
        return closing.enter_context(contextlib.closing(qm.connect(program=name)))

    terminal = program("card terminal")
    terminal.get("PAYMENTS", syncpoint=True)
    terminal.put_json("PAYMENTS", {"customer": "Grimm", "amount": 12}, syncpoint=True)
    program("invoices").get("ORDERS", syncpoint=True, selector="customer = 'Cortez'")
    qm.browse_and_lock("ORDERS", most=1, match=Match(selector="customer = 'Adler'"))
    ledger = program("ledger")
    ledger.put_json("ARCHIVE", {"order": 990}, syncpoint=True)
    ledger.prepare("ledger-2026-11")


def _read(qm: QueueManager) -> None:
    """A strict reader: it waits for a payment that another program has got and not committed."""
    while True:
        with contextlib.suppress(NoMessageAvailable):
            qm.get("PAYMENTS", wait=3600)


def _sell(qm: QueueManager) -> None:
    pause, number = threading.Event(), 0
    while True:
        pause.wait(SECONDS if number % 60 < 45 else 8 * SECONDS)  # customers arrive in waves
        for _ in range(1 + number % 4):
            number += 1
            qm.put_json("PICKING", {"item": f"A-{number}"}, properties={"shelf": number % 9})


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the server, which then kills this process
    main(sys.argv[1])
