"""A bell shared by all processes of a store: a change rings it to wake the calls that wait for that change.

It is three words of the memory that the processes share. `RINGS` gets a new number at each ring, and waiting calls
sleep on it: Linux's futex, a sleep that the kernel ends on a wake-up call, and that does not begin if the word has
changed since the sleeper read it. `WAITED` marks the queues on which calls may wait, so that a put without waiting
calls only reads it and makes no system call. Each queue has one of a few bits there; sharing one costs a needless
wake-up. `WAITERS` has the process that has set all the bits, if it was a single one, which wakes its own calls without
the bell (`changes.py`).

    waiter, in the turn         looks at its queue, finds nothing, sets the queue's bit in WAITED
    then, without the turn      reads RINGS; looks again if its queue has changed or its bit is cleared;
                                sleeps on RINGS as long as it has the value that was read
    changer, in the turn        counts the change of its queue; if others have set the bit in WAITED: writes RINGS
                                and wakes all sleepers with this bit; if there were none, clears the bit and
                                repeats both

No wake-up is lost. The turn orders the look and the change: a change that the look has not seen finds the bit. The bit
was set when RINGS was read, so the process that clears it rings after that, and so does the change: the sleep ends, or
does not begin. Processes also ring without the turn, for their own threads, at the same time as others. So each writes
a separate series of numbers to `RINGS`, from a random one on: if they incremented one number together, a process that
is delayed between reading and writing could restore the number on which another is about to sleep.

A dead process leaves nothing: the kernel removes its sleepers, and the next change clears its bit. A stopped process
delays no other. The kernel identifies the word by its file, so the length of the path and the namespaces of the
processes do not matter, and any process that may open the store may ring.

Where there is no futex, waiting calls poll (`watch.py`).
"""

from __future__ import annotations

import ctypes
import errno
import itertools
import os
import platform
import sys
import time
from collections.abc import Iterable
from typing import Final

# The number of the system call; the lower half of the word must come first.
_NUMBERS: Final = {"x86_64": 202, "aarch64": 98, "riscv64": 98, "loongarch64": 98, "ppc64le": 221}
_WAIT_BITSET, _WAKE_BITSET = 9, 10  # among processes; until a time of CLOCK_MONOTONIC, as `time.monotonic` has it
_EVERYBODY: Final = 0x7FFFFFFF
_SLEEP_IS_OVER: Final = frozenset({errno.EAGAIN, errno.ETIMEDOUT, errno.EINTR, errno.EFAULT})  # the last: unmapped

QUEUE_BITS: Final = 24  # the other 8 are for wake-ups inside one process
ALL_BITS: Final = 0xFFFFFFFF
_MANY: Final = 0  # several processes wait


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_int64), ("nanoseconds", ctypes.c_int64))


_system = ctypes.CDLL(None, use_errno=True).syscall
_system.restype = ctypes.c_long
_system.argtypes = (
    *(ctypes.c_long, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32),
    *(ctypes.POINTER(_Timespec), ctypes.c_void_p, ctypes.c_uint32),
)


def _number() -> int:
    """The number of the system call; 0 if it is not known here, or the system refuses it."""
    number = _NUMBERS.get(platform.machine(), 0) if sys.platform == "linux" and sys.maxsize > 1 << 32 else 0
    word = ctypes.c_uint64()
    works = number and _system(number, ctypes.addressof(word), _WAKE_BITSET, 1, None, None, ALL_BITS) == 0
    return number if works else 0


_FUTEX: Final = _number()
WAKES: Final = bool(_FUTEX)  # processes can wake each other here


class SharedBell:
    """See the theory above.

    Args:
        words: the memory that the processes share, in words of eight bytes.
        address: its beginning.
        rings, waited, waiters: the indexes of `RINGS`, `WAITED` and `WAITERS`.
    """

    def __init__(self, words: memoryview, address: int, rings: int, waited: int, waiters: int) -> None:
        self._words, self._rings, self._waited, self._waiters = words, rings, waited, waiters
        self._own = int.from_bytes(os.urandom(7), "little") + _MANY + 1
        self._number = itertools.count(int.from_bytes(os.urandom(4), "little")).__next__
        self._address = address + 8 * rings

    # ---- in the turn

    def expect(self, queue: int) -> None:
        """Notes that a call will wait for this queue."""
        words = self._words
        words[self._waiters] = self._own if words[self._waited] == 0 or words[self._waiters] == self._own else _MANY
        words[self._waited] |= _bit_of(queue)

    def ring_for(self, queues: Iterable[int], *, tells_own: bool) -> bool:
        """Wakes all calls that wait for these queues, which have changed. Returns whether there were any.

        Args:
            tells_own: this process wakes its own waiting calls itself.
        """
        if tells_own and self._words[self._waiters] == self._own:
            return False
        bits = 0
        for queue in queues:
            bits |= _bit_of(queue)
        bits &= self._words[self._waited]
        if not bits:
            return False
        if self.ring(bits):
            return True
        self._words[self._waited] &= ~bits
        return bool(self.ring(bits))

    # ---- without

    def ring(self, bits: int = ALL_BITS) -> int:
        """Wakes all sleepers with one of the bits. Returns their number."""
        self._words[self._rings] = self._number()
        return wake(self._address, bits)

    @property
    def rings(self) -> int:
        """The present value of `RINGS`; read it before the look after which a call sleeps."""
        return int(self._words[self._rings])

    def expects(self, queue: int) -> bool:
        """Whether the next change of this queue rings."""
        return bool(self._words[self._waited] & _bit_of(queue))

    def sleep(self, rings: int, queues: Iterable[int], seconds: float) -> None:
        """Returns after a ring for one of the queues or this process, after this many seconds, or sooner.

        Returns at once if the bell has rung since `rings` was read. Harmless after the memory was unmapped.
        """
        bits = own_bit()
        for queue in queues:
            bits |= _bit_of(queue)
        sleep(self._address, rings, bits, seconds)


def _bit_of(queue: int) -> int:
    return 1 << queue % QUEUE_BITS


def own_bit() -> int:
    """The bit of the sleepers in this process; sleepers in other processes may share it."""
    return 1 << QUEUE_BITS + os.getpid() % (32 - QUEUE_BITS)


def sleep(address: int, value: int, bits: int, seconds: float) -> None:
    """As `SharedBell.sleep`, on the lower half of the word at this address."""
    seconds += time.monotonic()
    until = _Timespec(int(seconds), int(seconds % 1 * 1e9))
    done = _system(_FUTEX, address, _WAIT_BITSET, value & ALL_BITS, until, None, bits)
    if done < 0 and (error := ctypes.get_errno()) not in _SLEEP_IS_OVER:
        raise OSError(error, os.strerror(error))


def wake(address: int, bits: int) -> int:
    """Wakes all sleepers on the word at this address with one of the bits. Returns their number."""
    return int(_system(_FUTEX, address, _WAKE_BITSET, _EVERYBODY, None, None, bits)) if WAKES else 0
