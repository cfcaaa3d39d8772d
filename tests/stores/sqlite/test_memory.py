"""Memory stays bounded at any depth, and at any length of a message, a stream or a group.

Each case is a separate process that reports the most by which its memory has grown. The bounds are generous: a tenth to
a half of what the case moves.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

MIB = 1 << 20

PRELUDE = """
import io, resource, sys
from pathlib import Path
import inorder
from inorder import Match, Message
from inorder.model.message import IN_GROUP, LAST_IN_GROUP

MIB = 1 << 20

def most_used():
    status = Path("/proc/self/status")
    if status.exists():  # a child's ru_maxrss begins with its parent's on Linux
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

class Source:
    def __init__(self, length):
        self.left = length
    def read(self, size):
        size = min(size, self.left)
        self.left -= size
        return bytes(size)

class Sink:
    length = 0
    def write(self, data):
        self.length += len(data)

def finds_nothing(**options):
    try:
        qm.get("Q", **options)
    except inorder.NoMessageAvailable:
        return
    raise AssertionError(options)

qm = inorder.connect(sys.argv[1])
"""

MAKE_LONG = """
qm.create_queue("Q", max_length=32 * MIB)
qm.admin.alter_manager(max_length=32 * MIB)
for number in range(4):
    qm.put("Q", bytes(16 * MIB), expiry=1e6, priority=number)
"""

MAKE_GROUP = """
qm.create_queue("Q")
with qm.unit_of_work(), qm.open("Q", output=True) as queue:
    for page in range(10):
        flags = [LAST_IN_GROUP if (page, number) == (9, 499) else IN_GROUP for number in range(500)]
        queue.put_many([Message(bytes(8192), flags=one) for one in flags], logical=True)
"""

CASES = {
    "a stream": (
        "qm.create_queue('Q')",
        "qm.put_stream('Q', Source(64 * MIB)); sink = Sink(); qm.get_stream('Q', sink); assert sink.length == 64 * MIB",
        24,
    ),
    "a stream as a group": (
        "qm.create_queue('Q')",
        "qm.put_stream('Q', Source(64 * MIB), as_group=True, most=20 * MIB); sink = Sink()\n"
        "qm.get_stream('Q', sink, as_group=True); assert sink.length == 64 * MIB",
        24,
    ),
    "a queue of 40,000 messages": (
        "qm.create_queue('Q')",
        "for _ in range(40): qm.put_many('Q', [bytes(1024)] * 1000)\n"
        "next(qm.browse('Q')); finds_nothing(match=Match(format='NONE')); assert len(qm.get_many('Q', 1000)) == 1000",
        20,
    ),
    "a search passes over long messages": (
        MAKE_LONG,
        "for match in ({'format': 'NONE'}, {'put_application_name': 'none'}, {'sequence_number': 2}):\n"
        "    for how in ({}, {'complete': True}, {'all_segments': True}, {'read_order': 'strict'}):\n"
        "        finds_nothing(match=Match(**match), **how)\n"
        "finds_nothing(match=Match(format='NONE'), logical=True, all_messages=True)",
        12,
    ),
    "of long messages only what fits the buffer is read": (
        MAKE_LONG,
        "assert [len(one.body) for one in qm.browse('Q', buffer=10, accept_truncated=True)] == [10] * 4\n"
        "assert qm.get('Q', buffer=10).warning == 2080\n"
        "assert qm.get('Q', buffer=10, accept_truncated=True).length == 16 * MIB",
        12,
    ),
    "long messages are looked at, settled and deleted": (
        MAKE_LONG,
        "qm.put('Q', b'', syncpoint=True); qm.inspect.status('Q'); qm.inspect.order_view('Q'); qm.inspect.units()\n"
        "qm.admin.discard_expired()\n"
        "for _ in range(2): qm.get('Q', buffer=10, accept_truncated=True, syncpoint=True)\n"
        "qm.commit(); qm.close_queue('Q'); qm.delete_queue('Q', purge=True)",
        12,
    ),
    "a large group": (MAKE_GROUP, "assert sum(one.length for one in qm.get_group('Q')) == 5000 * 8192", 16),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", CASES)
def test_memory_is_bounded(name: str, tmp_path: Path) -> None:
    made, done, growth_mib = CASES[name]
    path = str(tmp_path / "store.db")
    run(f"{PRELUDE}\n{made}\nqm.close()\nprint(0)", path)
    assert run(f"{PRELUDE}\nbefore = most_used()\n{done}\nprint(most_used() - before)", path) < growth_mib * MIB


def run(program: str, path: str) -> int:
    child = subprocess.run(
        [sys.executable, "-c", program, path], capture_output=True, text=True, check=False, timeout=240
    )
    assert child.returncode == 0, child.stderr
    return int(child.stdout)
