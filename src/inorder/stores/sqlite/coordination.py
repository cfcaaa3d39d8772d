"""The state and the locks that all processes of a store share, besides its database.

A small file beside the database, the *sidecar*, is mapped into the memory of each process and carries locks::

    words       the number of the last commit, and of the last one known to be on disk
                the last round of syncs, its leader, the number of the commit that it brings to disk, how long the
                last sync took, whether a process sleeps until it is over
                whether a commit may be unannounced, whether the queue manager was stopped, whether a sync failed
                the database to which it belongs: device and inode
                a counter for each slot of changes; the bell for calls that wait for one (`bell.py`)
    reserve     disk space that is released when the disk is full (`log.py`)
    locks       presence   held shared by every process: a process that has it alone is the first, and clears the words
                turn       held by the process that writes
                tidying    held by the process that checkpoints
                making     held by the process that lengthens the sidecar for its words, or removes another database's
                rounds     one byte for each round of syncs, held by the process that waits to lead it
                seats      one byte for each process, held as long as it has the store open: whether a leader lives
                owners     one byte for each owner number, held as long as that owner lives

The locks are POSIX record locks: the kernel frees them with the process that took them, and a forked child does not
inherit them, so a surviving child neither keeps the turn nor makes a dead parent look alive. Their price: closing *any*
descriptor of the file drops all locks that the process has on it. So there is one `Coordination` per process and file,
with one descriptor and one mapping (which has a descriptor of its own), and its last user closes it.

Among threads of one process record locks mean nothing; each is paired with a lock of `threading`.

Words are written by the holder of their lock, and read by any process at any time: eight aligned bytes are stored and
loaded in one piece on every machine that Python's 64-bit builds run on. The words of the rounds of syncs may have two
writers, if a stopped leader was skipped, or two processes found at once that none leads: whichever writes last, the
words may say that less is on disk than there is, never more.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import struct
import sys
import time
from collections import deque
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

from ...errors import StoreError
from ...support.locks import Bell, Lock, LockTaken, TryLock
from . import bell
from .bell import SharedBell
from .files import allocate, identity_of, opening_error

COMMITTED, SYNCED, SYNCING, ROUND, UNANNOUNCED, STOPPED, SYNC_FAILED, LOST, RESERVED, SYNC_US, LEADER = range(11)
RINGS, WAITED, WAITERS, SYNC_AWAITED, DEVICE, INODE = range(11, 17)
SLOTS_AT: Final = 64
SLOTS: Final = 1024
WORDS: Final = SLOTS_AT + SLOTS
LENGTH: Final = WORDS * 8

# Far beyond the file's end; a lock needs no bytes there.
PRESENCE, TURN, TIDYING, MAKING = range(1 << 40, (1 << 40) + 4)
ROUNDS_AT: Final = (1 << 40) + (1 << 20)
ROUNDS: Final = 1024  # far more rounds than processes can wait for at once
SEATS_AT: Final = (1 << 40) + (1 << 21)
NOBODY: Final = 0  # a seat that no process takes
OWNERS_AT: Final = 1 << 41

# struct flock: type, whence, start, length, pid; macOS has the first two last.
FLOCK: Final = "qqihh" if sys.platform == "darwin" else "hhqqi"

DEADLOCK_PAUSE_S: Final = 0.0005

LEADER_SECONDS: Final = 1.0  # how long others wait for a leader that may have been stopped
LOOK_SECONDS: Final = 0.01  # how often to check whether it has died
PAUSE_SECONDS: Final = (0.00005, 0.005)  # the shortest and the longest pause between two looks at its progress
SLOW_SYNC_SECONDS: Final = 0.001  # from here on it pays to wait for another process's commit
HOLD_SECONDS_MAX: Final = 0.005


class _Removed(Exception):
    """The sidecar belonged to an earlier database at this path, and has been removed."""


class Coordination:
    """The sidecar of one store, as this process has it. Use `attach` and `detach`.

    Args:
        database: device and inode of the store's file; None: not compared.
    """

    def __init__(self, path: Path, mode: int, database: tuple[int, int] | None) -> None:
        self.path, self._name, self.database = path, str(path), database
        self.users: set[object] = set()
        self._map: mmap.mmap | None = None
        self.words = memoryview(b"").cast("Q")
        # Any user who can create files in the folder could place a link there to make us overwrite another file.
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
        try:
            self._allocate(mode)
            self._map = mmap.mmap(self._descriptor, LENGTH)
            self.words = memoryview(self._map).cast("Q")
            begin = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
            self.bell = SharedBell(self.words, begin, RINGS, WAITED, WAITERS)
            self._synced_at = begin + 8 * SYNCED
            self._enter(database)
            self._seat = self._sit_down()
        except BaseException:
            self.close()  # the mapping too: closing its descriptor later would drop the locks of the next one
            raise
        status = os.fstat(self._descriptor)
        self.identity = (status.st_dev, status.st_ino)
        self._owners: set[int] = set()
        self._threads = {TURN: Lock(), TIDYING: Lock()}
        self._has_turn = False  # of this process: the lock of its threads is taken before, while it waits
        self._leader = TryLock()
        self._sleepers: deque[Bell] = deque()
        self._woken_by = 0  # the last commit of this process that has woken a call

    def _allocate(self, mode: int) -> None:
        # Written, not only made longer: on a full disk, a process that touches a page without space would be killed.
        status = os.fstat(self._descriptor)
        self.is_new = status.st_size < LENGTH
        if self.is_new:
            self._wait(MAKING)
            os.fchmod(self._descriptor, mode)
            # A second process finds words in use, so only missing bytes are written.
            has = os.fstat(self._descriptor).st_size
            if has < LENGTH and os.pwrite(self._descriptor, bytes(LENGTH - has), has) < LENGTH - has:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, MAKING)
        elif status.st_mode & 0o777 & ~mode and status.st_uid == os.geteuid():
            os.fchmod(self._descriptor, mode)  # the store was made more private since

    def _enter(self, database: tuple[int, int] | None) -> None:
        # After a crash of the machine the words may be older than the log, or invalid. The first process clears them;
        # changing the lock from exclusive to shared leaves no moment without one.
        words = self.words
        if self._try(PRESENCE):
            words[:] = memoryview(bytes(LENGTH)).cast("Q")
            words[DEVICE], words[INODE] = database or (0, 0)
        fcntl.lockf(self._descriptor, fcntl.LOCK_SH, 1, PRESENCE)
        if database is not None and (words[DEVICE], words[INODE]) not in (database, (0, 0)):
            self._remove()
        if not os.fstat(self._descriptor).st_nlink:  # another process has removed it since it was opened here
            raise _Removed

    def _remove(self) -> None:
        """Remove this sidecar, which belongs to an earlier database at this path that some processes still have open.

        Those processes are refused from now on, because their commits and syncs must not count for the present
        database.
        """
        self._wait(MAKING)  # if two processes come here, one removes this sidecar, and neither removes the next one
        status = os.fstat(self._descriptor)
        if identity_of(self._name) == (status.st_dev, status.st_ino):
            os.unlink(self._name)  # noqa: PTH108 - the name is a text here
        raise _Removed

    def _sit_down(self) -> int:
        seat = os.getpid()
        while not self._try(SEATS_AT + seat):  # taken by a process with this id in another container
            seat += 1
        return seat

    def close(self) -> None:
        """Close the mapping and the descriptor, which frees all locks of this process on the sidecar. May be
        repeated.
        """
        self.words.release()
        if self._map is not None:
            self._map.close()
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def refuse_removed(self) -> None:
        """Raise StoreError if this file has no name any more; cheaper than `refuse_replaced`."""
        if not os.fstat(self._descriptor).st_nlink:
            raise self._replaced()

    def refuse_replaced(self, database: tuple[int, int] | None) -> None:
        """Raise StoreError if others would find another sidecar, or this one belongs to another database."""
        if identity_of(self._name) != self.identity or self.database != database:
            raise self._replaced()

    def _replaced(self) -> StoreError:
        return StoreError(
            f"{self.path} was deleted or replaced while the store was open, and other processes cannot see "
            "that this one is alive. Close the store in all processes and open it again.",
            path=str(self.path),
            must_reopen=True,
        )

    # ---- the reserve, in the turn

    def reserve(self, least: int, most: int) -> bool:
        """Set aside this many bytes on the disk, and release the rest. Returns whether there is enough room."""
        had = os.fstat(self._descriptor).st_size
        try:
            if had < LENGTH + least:
                allocate(self._descriptor, had, LENGTH + least - had)
            elif had > LENGTH + most:
                os.ftruncate(self._descriptor, LENGTH + most)
        except OSError as error:
            if error.errno is None:  # a time-out of the caller's
                raise
            os.ftruncate(self._descriptor, had)  # it may have grown until the disk was full
            return False
        return True

    @property
    def is_alone(self) -> bool:
        """Whether no other process has the store open."""
        try:
            return self._try(PRESENCE)
        finally:
            fcntl.lockf(self._descriptor, fcntl.LOCK_SH, 1, PRESENCE)

    # ---- locks

    def _try(self, at: int) -> bool:
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, at)
        except OSError as error:
            if error.errno in {errno.EACCES, errno.EAGAIN}:
                return False
            raise opening_error(self.path, error, "locked") from error
        return True

    def _wait(self, at: int) -> None:
        while True:
            try:
                fcntl.lockf(self._descriptor, fcntl.LOCK_EX, 1, at)
            except OSError as error:
                # The kernel looks for circles of processes. A leading thread and one that waits for the turn look like
                # one, but are not: a leader waits only for the leader before it.
                if error.errno != errno.EDEADLK:
                    raise opening_error(self.path, error, "locked") from error
                time.sleep(DEADLOCK_PAUSE_S)
            else:
                return

    def take(self, at: int) -> None:
        """Wait for a lock: TURN or TIDYING. `give` must follow even if this raises."""
        self._threads[at].acquire()
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX, 1, at)
        except OSError as error:
            if error.errno != errno.EDEADLK:
                raise opening_error(self.path, error, "locked") from error
            self._wait(at)
        if at == TURN:
            self._has_turn = True
            if self.words[UNANNOUNCED]:
                self.announce_lost()

    def lock_of(self, at: int) -> Lock:
        """Return the lock that stands for this one among the threads of this process."""
        return self._threads[at]

    def has(self, at: int) -> bool:
        """Whether this thread has a lock."""
        return self._threads[at].is_mine

    def try_take(self, at: int) -> bool:
        """Take a lock if it is free now, also among threads. `give` must follow in either case."""
        lock = self._threads[at]
        if lock._is_owned() or not lock.acquire(blocking=False) or not self._try(at):
            return False
        if at == TURN:
            self._has_turn = True
            if self.words[UNANNOUNCED]:
                self.announce_lost()
        return True

    def give(self, at: int) -> None:
        """Give a lock back. Harmless when repeated, when this thread does not have it, and after `close`."""
        lock = self._threads[at]
        if lock._is_owned():
            if self._descriptor >= 0:  # else its close has dropped the locks
                if at == TURN and self._has_turn:  # else another process has the turn, and may be committing
                    if self.words[UNANNOUNCED]:
                        self.announce_lost()
                    self._has_turn = False
                fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, at)
            lock.release()

    # ---- commits, numbered in the turn

    @property
    def commits(self) -> int | None:
        """See `Host.commits`. Reading it costs no system call."""
        return None if self.words[UNANNOUNCED] else self.words[COMMITTED]

    def after_commit(self, slots: Collection[int], *, reserves: bool = False) -> int:
        """Inside the turn: number the commit and announce the slots that it changed.

        UNANNOUNCED was set before the commit: if that fails, or this process dies, the end of this turn or the next
        turn announces it.

        Args:
            reserves: it reserves numbers, none of which may be given away before it is on disk.

        Returns: the commit's number.
        """
        words = self.words
        number = words[COMMITTED] + 1
        words[COMMITTED] = number
        if reserves:
            words[RESERVED] = number
        for slot in slots:
            words[SLOTS_AT + slot % SLOTS] += 1
        # The first store of this process on the file does not know the changes of a second one.
        if words[WAITED] and self.bell.ring_for(slots, tells_own=len(self.users) == 1):
            self._woken_by = number
        words[UNANNOUNCED] = 0
        return number

    @property
    def is_reservation_open(self) -> bool:
        """Whether a commit of any process, alive or dead, reserves numbers and is not on disk yet."""
        return self.words[SYNCED] < self.words[RESERVED]

    def no_commit(self) -> None:
        """Inside the turn: note that the commit failed and nothing has changed."""
        self.words[UNANNOUNCED] = 0

    def announce_lost(self) -> None:
        """Inside the turn: announce an unknown change, because a process died or failed around a commit.

        Everything then counts as changed, and numbers as reserved.
        """
        self.words[LOST] += 1
        self.bell.ring()
        self.after_commit((), reserves=True)

    def seen(self, slot: int) -> int:
        """A number that grows with each change of this slot, by any process; slots may share one."""
        return self.words[SLOTS_AT + slot % SLOTS] + self.words[LOST]

    # ---- what is on disk, in rounds

    @property
    def syncs_quickly(self) -> bool:
        """Whether this caller would lead the next sync, and the previous one was fast."""
        words = self.words
        return words[SYNCING] <= words[SYNCED] and 0 < words[SYNC_US] < SLOW_SYNC_SECONDS * 1e6

    def sync(self, number: int, act: Callable[[], None]) -> None:
        """Return when the commit of this number is on disk; one waiting thread acts for all.

        Among threads, one syncs and wakes the others; among processes, it leads at once if none is syncing, and
        otherwise continues in `_sync_in_rounds`. If two find no leader at the same moment, both sync, which does no
        harm.

        Args:
            number: of the commit.
            act: brings all earlier commits to disk. If it raises, nothing counts as on disk.
        """
        words, own, listens, leads = self.words, None, False, False
        if self._woken_by == number:
            self._hold(number)
        while words[SYNCED] < number:
            if self._leader._is_owned():  # a finalizer interrupted the sync of its own thread
                act()
                return
            try:
                with self._leader:
                    leads = True
                    if words[SYNCING] <= words[SYNCED] < number:
                        self._lead(words[ROUND] + 1, act)
                    elif words[SYNCED] < number:
                        self._sync_in_rounds(number, act)
            except LockTaken:
                own = own or Bell()
                if listens:
                    own.wait(LEADER_SECONDS)
                else:  # and again: the leader may have finished before it could see the bell
                    self._sleepers.append(own)
                listens = not listens
            finally:
                if leads and self._sleepers:
                    self._wake()

    def _hold(self, number: int) -> None:
        """Delay a slow sync for calls that this commit has woken: their own commits will follow, and one sync can serve
        both.
        """
        words, last_s = self.words, self.words[SYNC_US] / 1e6
        if last_s >= SLOW_SYNC_SECONDS:
            until = time.monotonic() + min(last_s / 2, HOLD_SECONDS_MAX)
            while words[SYNCED] < number == words[COMMITTED] and time.monotonic() < until:
                time.sleep(PAUSE_SECONDS[0])

    def _wake(self) -> None:
        """Wake the threads after the round; each checks whether it was covered."""
        for _ in range(len(self._sleepers)):
            try:
                self._sleepers.popleft().ring()
            except IndexError:  # another leader has begun and ended meanwhile
                return

    def _sync_in_rounds(self, number: int, act: Callable[[], None]) -> None:
        """Wait for the round that covers the commit, or lead it.

        A thread whose commit is not covered by the present round tries to lead the next: it takes that round's byte,
        waits for the present leader, and only then reads how far to sync, so that all commits made meanwhile are
        covered. All others wait for the round that covers them. If another process leads between two rounds, that
        covers all waiters. A leader that dies frees its seat; its round covered no commit, and the waiters look again.
        A stopped leader keeps its seat: after `LEADER_SECONDS` the waiters sync by themselves and skip its round.
        """
        words = self.words
        while words[SYNCED] < number:
            present = words[ROUND]
            if number <= words[SYNCING]:
                self._wait_for(present, number, act, of_leader=True)
                if words[SYNCED] >= number:
                    return
            byte = _round(present + 1)
            leads = True
            try:
                leads = self._try(byte)
                if leads and words[ROUND] == present:
                    if words[SYNCED] < words[SYNCING]:  # the present leader is syncing, or has died
                        self._wait_for(present, words[SYNCING], act, of_leader=True)
                    if words[SYNCED] < number and words[ROUND] == present:
                        self._lead(present + 1, act)
            finally:
                if leads:
                    fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, byte)
            if not leads:
                self._wait_for(present + 1, number, act)

    def _wait_for(self, round_number: int, number: int, act: Callable[[], None], *, of_leader: bool = False) -> None:
        """Wait until the leader of a round has synced up to a number, has finished, or has died. If it is stopped, sync
        instead.

        Args:
            of_leader: the leader is syncing; otherwise it holds the round's byte, and may wait for the round before.
        """
        words = self.words
        last_s = words[SYNC_US] / 1e6
        began = looked_at = time.monotonic()
        while words[SYNCED] < number:
            self._pause(number, last_s)
            now = time.monotonic()
            if now - looked_at >= LOOK_SECONDS:  # it costs a system call; reading the words does not
                looked_at = now
                if self._locked_elsewhere(SEATS_AT + words[LEADER] if of_leader else _round(round_number), 1) is None:
                    return
            if now - began >= max(LEADER_SECONDS, 4 * last_s):
                self._lead(max(words[ROUND], round_number), act)
                return

    def _pause(self, number: int, last_s: float) -> None:
        """Wait briefly for a leader to finish: it may have died, or be stopped."""
        if bell.WAKES:
            self.words[SYNC_AWAITED] = 1
            if (synced := self.words[SYNCED]) < number:
                bell.sleep(self._synced_at, synced, bell.ALL_BITS, LOOK_SECONDS)
        else:
            time.sleep(min(max(last_s / 8, PAUSE_SECONDS[0]), PAUSE_SECONDS[1]))

    def _lead(self, round_number: int, act: Callable[[], None]) -> None:
        words = self.words
        try:
            words[LEADER] = self._seat  # first: others that see a running sync check whether its leader lives
            words[SYNCING] = target = words[COMMITTED]
            words[ROUND] = round_number
            began = time.monotonic()
            act()
            if words[LEADER] == self._seat:  # else it was stopped, so its time has no meaning
                words[SYNC_US] = int((time.monotonic() - began) * 1e6)
            words[SYNCED] = max(words[SYNCED], target)  # another may have synced further while this process was stopped
        finally:
            if words[LEADER] == self._seat:
                words[LEADER] = NOBODY
            if words[SYNC_AWAITED]:
                words[SYNC_AWAITED] = 0
                bell.wake(self._synced_at, bell.ALL_BITS)

    # ---- the queue manager

    @property
    def stopped(self) -> bool:
        """Whether the queue manager was stopped, for all processes; False again when all have closed the store."""
        return bool(self.words[STOPPED])

    @stopped.setter
    def stopped(self, value: bool) -> None:
        self.words[STOPPED] = int(value)

    # ---- owners

    def hold_owner(self, number: int) -> bool:
        """Mark this process as alive under that owner number; see `Database.hold_owner`."""
        if number in self._owners or not self._try(OWNERS_AT + number):
            return False
        self._owners.add(number)
        return True

    def release_owner(self, number: int) -> None:
        """End the mark of `hold_owner`. Harmless when repeated."""
        fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, OWNERS_AT + number)
        self._owners.discard(number)

    def is_alive(self, number: int) -> bool:
        """Whether that owner lives, in this process or another."""
        return number in self._owners or self._locked_elsewhere(OWNERS_AT + number, 1) is not None

    def process_of(self, number: int) -> int | None:
        """The id of the process that holds that owner number; None if none does, or its id is not known here."""
        if number in self._owners:
            return os.getpid()
        return self._locked_elsewhere(OWNERS_AT + number, 1) or None

    def any_owner_alive(self) -> bool:
        """Whether any owner lives, in this process or another."""
        return bool(self._owners) or self._locked_elsewhere(OWNERS_AT, 0) is not None

    def _locked_elsewhere(self, start: int, length: int) -> int | None:
        """The id of another process that holds such a lock, 0 if its id is not known here; None: no other does."""
        # Only a query: trying the lock would make the owner look alive to all processes that check at the same moment.
        if sys.platform == "darwin":
            asked = struct.pack(FLOCK, start, length, 0, fcntl.F_WRLCK, os.SEEK_SET)
        else:
            asked = struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, start, length, 0)
        answer = struct.unpack(FLOCK, fcntl.fcntl(self._descriptor, fcntl.F_GETLK, asked))
        kind, process = (answer[3], answer[2]) if sys.platform == "darwin" else (answer[0], answer[4])
        return None if kind == fcntl.F_UNLCK else max(0, process)


def _round(number: int) -> int:
    return ROUNDS_AT + number % ROUNDS


_attached: dict[Path, Coordination] = {}


def attach(path: Path, mode: int, user: object, database: tuple[int, int] | None = None) -> Coordination:
    """Return the sidecar at this path, one object for all users in this process. `detach` must follow even if this
    raises.

    The caller makes sure that no two threads attach or detach at once.

    Args:
        path: with all links resolved.
        mode: the permissions of a new sidecar.
        user: the object that calls `detach`.
        database: device and inode of the store's file, to which the sidecar must belong; None: not compared.
    Raises: StoreError, if it cannot be opened or was replaced; StoreFull, if the disk is full.
    """
    found = _attached.get(path)
    try:
        if found is None:
            found = _attached[path] = _opened(path, mode, database)
        found.refuse_replaced(database)
    except OSError as error:
        if error.errno == errno.EACCES:
            text = f"{path} cannot be opened: this user cannot read and write it. It belongs to the store"
            raise StoreError(f"{text}: give this user those rights to both.", path=str(path)) from error
        raise opening_error(path, error) from error
    found.users.add(user)
    return found


def _opened(path: Path, mode: int, database: tuple[int, int] | None) -> Coordination:
    while True:
        with contextlib.suppress(_Removed):
            return Coordination(path, mode, database)


def detach(path: Path, user: object) -> None:
    """Release one use of the sidecar; the last one in this process closes it. Harmless when repeated."""
    found = _attached.get(path)
    if found is not None:
        found.users.discard(user)
        if not found.users:
            found.close()
            _attached.pop(path, None)


def attached() -> list[Path]:
    """The sidecars that this process has open."""
    return list(_attached)


def forget_all() -> None:
    """In a forked child: close the inherited files, so that the child can open the same stores again."""
    for inherited in _attached.values():
        inherited.close()
    _attached.clear()
