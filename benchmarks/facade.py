"""What a call costs above the store: microseconds, the best of several rounds. Run by hand:

    .venv/bin/python benchmarks/facade.py

The store's `put` and `get` answer at once with what they answered first, so what is left is the facade: options,
checks, requests, the session, the handle. The rules that a store calls are timed by themselves. A machine that others
use shows more, never less: compare figures of one run, or the smallest of several.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Callable, Mapping

import inorder
from inorder.model.attributes import define_manager, define_queue
from inorder.model.message import Message
from inorder.model.options import GetOptions, PutOptions
from inorder.rules.gets import judge
from inorder.rules.grouping import ANYTHING, NOTHING_OPEN
from inorder.rules.puts import Program, PutCircumstances, PutPlan
from inorder.stores.memory import MemoryStore
from inorder.stores.seam.records import GetOutcome, GetRequest, PutOutcome, PutRequest

BODY = bytes(1024)
BATCH = 100
ROUNDS = 15
CALLS = 2_000


class AnsweredStore(MemoryStore):
    """A store whose puts and gets cost nothing: each number of messages is really put and got once."""

    def __init__(self) -> None:
        super().__init__()
        self._puts: dict[int, PutOutcome] = {}
        self._gets: dict[int, GetOutcome] = {}

    def put(self, request: PutRequest) -> PutOutcome:
        answer = self._puts.get(len(request.messages))
        if answer is None:
            answer = self._puts[len(request.messages)] = super().put(request)
        return answer

    def get(self, request: GetRequest) -> GetOutcome:
        answer = self._gets.get(request.most)
        if answer is None:
            answer = self._gets[request.most] = super().get(request)
        return answer

    def wait(self, request: GetRequest) -> GetOutcome:
        return self.get(request)


def best_us(call: Callable[[], object], *, calls: int = CALLS, messages: int = 1) -> float:
    """Microseconds per message of the fastest round."""
    call()
    seconds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        seconds.append(time.perf_counter() - start)
    return min(seconds) / calls / messages * 1e6


def calls_us() -> Mapping[str, float]:
    """The calls of a connection and of a handle."""
    qm = inorder.connect(AnsweredStore())
    qm.create_queue("Q")
    queue = qm.open("Q")
    options = PutOptions(logical=True)
    asked = GetOptions(logical=True)
    bodies = [BODY] * BATCH
    many = CALLS // BATCH
    qm.put_many("Q", bodies)
    found = {
        "qm.put(body)": best_us(lambda: qm.put("Q", BODY)),
        "qm.put(body, priority=5)": best_us(lambda: qm.put("Q", BODY, priority=5)),
        "qm.put(body, logical=True)": best_us(lambda: qm.put("Q", BODY, logical=True)),
        "queue.put(body)": best_us(lambda: queue.put(BODY)),
        "queue.put(body, options)": best_us(lambda: queue.put(BODY, options)),
        "qm.get()": best_us(lambda: qm.get("Q")),
        "qm.get(wait=1)": best_us(lambda: qm.get("Q", wait=1)),
        "queue.get()": best_us(queue.get),
        "queue.get(options)": best_us(lambda: queue.get(asked)),
        "qm.put_many(100 bodies), a message": best_us(lambda: qm.put_many("Q", bodies), calls=many, messages=BATCH),
        "qm.get_many(100), a message": best_us(lambda: qm.get_many("Q", BATCH), calls=many, messages=BATCH),
    }
    qm.internals.abandon()
    return found


def rules_us() -> Mapping[str, float]:
    """The calls of a store for each message."""
    at = PutCircumstances(in_unit=False, unit_open=False, now=1.7e9, new_number=itertools.count(1).__next__)
    definitions = define_queue("Q"), define_manager(name="INORDER"), Program("user", "program")
    plain, grouped = Message(BODY), Message(BODY, flags=inorder.Flags.IN_GROUP)
    usual, logical, asked = (
        PutPlan(PutOptions(), *definitions),
        PutPlan(PutOptions(logical=True), *definitions),
        GetOptions(),
    )
    rows = usual.puts([BODY], NOTHING_OPEN, at).arriving
    pieces = [Message.from_row(row) for row in rows]
    return {
        "Message(body)": best_us(lambda: Message(BODY)),
        "PutPlan": best_us(lambda: PutPlan(PutOptions(), *definitions)),
        "PutPlan.puts of 100 bodies, a message": best_us(
            lambda: usual.puts([BODY] * BATCH, NOTHING_OPEN, at), calls=CALLS // BATCH, messages=BATCH
        ),
        "PutPlan.puts, a message that says nothing": best_us(lambda: usual.puts([plain], NOTHING_OPEN, at)),
        "PutPlan.put, in a group, logical": best_us(lambda: logical.puts([grouped], NOTHING_OPEN, at)),
        "judge, plain": best_us(lambda: judge(pieces, asked, NOTHING_OPEN, ANYTHING, syncpoint=False, unit_open=False)),
    }


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description="Microseconds that a call costs above the store.")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    found = {**calls_us(), **rules_us()}
    if options.json:
        print(json.dumps({name: round(us, 2) for name, us in found.items()}, indent=2))
        return
    for name, us in found.items():
        print(f"{us:8.2f} us  {name}")


if __name__ == "__main__":
    main()
