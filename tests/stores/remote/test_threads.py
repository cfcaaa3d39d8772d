"""Several threads read a type from the wire for the first time, all at once."""

from __future__ import annotations

import subprocess
import sys

from tests.tiers import gate

# `msgspec` examines nested types in Python code, during which another thread may run.
AT_ONCE = """
import dataclasses, sys, threading
from inorder.stores.remote import wire

sys.setswitchinterval(1e-6)


def read():
    begun.wait()
    found.append(wire.WireReader(kind, None, ValueError).read(payload))


for _ in range(50):
    nested = [dataclasses.make_dataclass("Nested", [("x", int)]) for _ in range(20)]
    kind = dataclasses.make_dataclass("Kind", [(f"f{at}", one | None) for at, one in enumerate(nested)])
    value = kind(*(one(1) for one in nested))
    payload, found, begun = wire.encode(value), [], threading.Barrier(8)
    threads = [threading.Thread(target=read) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == [value] * 8, found
"""


@gate
def test_several_threads_can_read_a_new_type_at_the_same_time() -> None:
    ran = subprocess.run([sys.executable, "-c", AT_ONCE], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
