"""Many waiters in three processes, writers in two more: each message to one of them, and nobody is left waiting.

Readers of odd numbers each wait for messages of their own; those of even numbers all wait for the same ones.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.sqlite.programs import programs

from inorder import QueueManager

LIMIT_SECONDS = 240.0
THREADS = 3
WRITES = 150

READ = f"""
from inorder import FOREVER, Match
got = []
def read(own, number):
    match = Match(correlation_id=b"%d" % (number if number % 2 else 8))
    while True:
        message = own.get("Q", wait=FOREVER, match=match, **how)
        own.commit()
        if message.body == b"end":
            return
        got.append(message.body)
threads = [
    threading.Thread(target=read, args=(qm.connect(), first + number), daemon=True) for number in range({THREADS})
]
for thread in threads: thread.start()
"""
JOIN = """
for thread in threads: thread.join()
answer = got
"""
WRITE = f"""
import random
order, put = random.Random(seed), []
for number in range({WRITES}):
    body = b"%d.%d" % (seed, number)
    to = b"%d" % order.choice((1, 3, 5, 7, 8, 8, 8))
    qm.put("Q", body, correlation_id=to, syncpoint=True)
    if order.random() < 0.2:
        qm.back_out()
        continue
    put.append(body)
    qm.commit()
answer = put
"""


@pytest.mark.nightly
@pytest.mark.parametrize("how", ["{}", "{'syncpoint': True}", "{'syncpoint': True, 'read_order': 'strict'}"])
def test_each_message_is_got_once_and_no_reader_hangs(path: Path, qm: QueueManager, how: str) -> None:
    with programs(path, 5) as each:
        readers, writers = each[:3], each[3:]
        for number, reader in enumerate(readers):
            reader.run(f"how, first = {how}, {number * THREADS}" + READ)
        for seed, writer in enumerate(writers):
            writer.begin(f"seed = {seed}\n{WRITE}")
        put = [body for writer in writers for body in writer.answer(LIMIT_SECONDS)]
        for number in range(3 * THREADS):
            qm.put("Q", b"end", correlation_id=b"%d" % (number if number % 2 else 8))
        for reader in readers:
            reader.begin(JOIN)
        got = [body for reader in readers for body in reader.answer(LIMIT_SECONDS)]
    assert Counter(got) == Counter(put)
