"""Guesses that a queue is as this session left it, so that an operation need not wait for its first answer.

A session that works alone on a queue finds it unchanged. So the statement that locks the queue contains the guess
(`queue state as known`), and all others follow at once. If another session has changed the queue in between, the answer
to that statement says so, and the transaction is rolled back; it is never committed before that answer has arrived. No
statement raises an error for this, because the server would log it. A put that is one statement needs no such wait: if
the guess is wrong it changes nothing (making.py).

An operation that only appends needs less (`queue state to append`): its numbers are counted from 0, the server adds the
counter that it finds under the lock, and no appending operation waits for an answer while others wait for the lock.
That statement is held back until another is sent: if that one inserts one message, a single statement does everything
(`count one arrival`). On a queue that keeps no order there is no lock to take, and plain puts and gets begin in the
same way.

After a wrong guess the operation runs again without a guess. The more often guesses about a queue were wrong, the
longer none is made.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple

from ..seam.backend import QueueCounters, QueueState
from ..sql.attention import FRONTS, QUIET
from ..sql.shapes import COUNTED_MAX
from .pipeline import Pipeline, StatementResult

DOUBLINGS: Final = 6  # the most doublings of the number of operations without a guess, after wrong guesses
OTHERS: Final = 1000  # messages that others may have put since the queue was last seen


_tuple = tuple.__new__  # makes a named tuple without an extra call: each operation makes some


class Guess(NamedTuple):
    """The assumed state of a queue, whose attention is in `QUIET`.

    Args:
        is_alone: the last operation found it as this session had left it.
        is_shared: it keeps no order, and the operation is together with others on it.
        appends: its counter begins at 0, and its depth is the highest possible.
    """

    state: QueueState
    attention: int
    is_alone: bool = False
    is_shared: bool = False
    appends: bool = False


class Known:
    """The guesses of one session; see the module."""

    def __init__(self) -> None:
        self._left: dict[int, Guess] = {}  # queues as the last operations left them
        self._seen: dict[int, Guess] = {}  # queues as this operation found or guessed them
        self._told: dict[int, StatementResult | None] = {}  # the server's answers about guesses; None: not yet
        self._placed: dict[int, int] = {}  # how many messages it appends
        self._block: dict[int, int] = {}  # how many messages the last put to a queue had
        self._misses: dict[int, int] = {}
        self._pauses: dict[int, int] = {}
        self._may_guess = self._may_append = False

    def begin(self, *, may_guess: bool, may_append: bool) -> None:
        self._may_guess, self._may_append = may_guess, may_append
        if self._seen or self._told or self._placed:
            self._seen, self._told, self._placed = {}, {}, {}

    def guess(self, queue: int, *, looks: bool, may_share: Callable[[], bool]) -> Guess | None:
        """Returns the guess about a queue. None: look.

        Args:
            looks: it is time to check whether the attention bits are still right.
            may_share: whether the operation may be together with others on the queue.
        """
        guess = self._left.get(queue)
        if guess is None or not self._may_guess or queue in self._seen:
            return None
        if pause := self._pauses.get(queue, 0):
            self._pauses[queue] = pause - 1
            return None
        if (guess.attention & ~FRONTS and looks) or (guess.is_shared and not may_share()):
            return None
        if self._may_append:
            state = guess.state
            if state.counter + self._block.get(queue, 1) > state.reserved:
                return None  # more numbers must be reserved
            state = _tuple(QueueState, (0, COUNTED_MAX, state.depth + OTHERS, *state[3:]))
            guess = _tuple(Guess, (state, *guess[1:-1], True))
        self._seen[queue] = guess
        self._told[queue] = None
        return guess

    def told(self, queue: int, answer: StatementResult) -> None:
        """Records the statement whose answer will confirm the guess. Raises: as `hear`, if the answer has already
        arrived.
        """
        answer.state_what_is_known()
        self._told[queue] = answer

    def ask(self, queue: int, pipeline: Pipeline) -> None:
        """Asks the server for the answer now: the caller has other work before it waits."""
        if (answer := self._told.get(queue)) is not None:
            pipeline.ask()
            answer.is_asked = True

    def hear(self) -> None:
        """Waits for the answers about all queues. Raises: SerializationFailure, if a guess was wrong."""
        for answer in self._told.values():
            if answer is not None and not answer.has_come:
                answer.fetchall()

    def see(self, queue: int, state: QueueState, attention: int, *, is_shared: bool = False) -> None:
        """Records the state of a queue as read."""
        left = self._left.get(queue)
        is_alone = left is not None and left.is_alone and left.state.counter == state.counter
        self._seen[queue] = Guess(state, attention, is_alone, is_shared)

    def appends(self, queue: int) -> bool:
        """Whether the numbers of arrivals are counted from 0."""
        guess = self._seen.get(queue)
        return guess is not None and guess.appends

    def counters(self, queue: int) -> tuple[int, int]:
        """Returns a queue's counter and reservation as the operation found them; zeros if they are unknown."""
        state = self._seen[queue].state if queue in self._seen else None
        return (0, 0) if state is None else (state.counter, state.reserved)

    def is_alone(self, queues: Collection[int]) -> bool:
        """Whether no other session seems to be working on these queues."""
        for queue in queues:
            guess = self._seen.get(queue)
            if guess is None or not guess.is_alone:
                return False
        return True

    def place(self, queue: int, count: int) -> None:
        """Counts messages that arrive with numbers."""
        self._placed[queue] = self._block[queue] = self._placed.get(queue, 0) + count

    def placed(self, queue: int) -> int:
        return self._placed.get(queue, 0)

    def keep(self) -> None:
        """Drops the states that this operation has found so far, because it changes them."""
        self._seen = {}

    def forget(self) -> None:
        self._left = {}

    def commit(self, counts: Sequence[QueueCounters], attention: Mapping[int, int]) -> None:
        """Keeps the states of the queues after a commit; `attention`: of the queues that the operation read."""
        counted = {each[0]: each for each in counts}
        for queue, guess in self._seen.items():
            noted = attention.get(queue, 0)
            if noted in QUIET and noted == guess.attention:
                left = self._left.get(queue)
                counter, reserved, depth = found = self.found(queue)
                if queue in counted:
                    _, counter, reserved, added, _ = counted[queue]
                    depth += added
                    if guess.appends:
                        counter, reserved = found[0] + counter, found[1]
                is_alone = left is not None and left.state.counter == found[0]
                state = _tuple(QueueState, (counter, reserved, depth, *guess.state[3:]))
                self._left[queue] = _tuple(Guess, (state, noted, is_alone, guess.is_shared, False))
            else:
                self._left.pop(queue, None)
        if self._misses:
            for queue in self._told:
                if self._misses.get(queue):
                    self._misses[queue] -= 1

    def found(self, queue: int) -> tuple[int, int, int]:
        """Returns the counters and the depth that this operation found on a queue. Raises: as `hear`."""
        guess = self._seen[queue]
        if not guess.appends:
            return guess.state[:3]
        answer = self._told[queue]
        assert answer is not None, queue
        ((counter, reserved, depth, *_),) = answer.fetchall()
        return counter, reserved, depth

    def abort(self) -> bool:
        """Forgets this transaction. Returns whether the operation read a queue that was not guessed."""
        for queue in self._seen:
            self._left.pop(queue, None)
        for queue, answer in self._told.items():
            if answer is None or not answer.has_come or self.appends(queue):
                misses = self._misses[queue] = min(self._misses.get(queue, 0) + 1, DOUBLINGS)
                self._pauses[queue] = 1 << misses
                return True
        return False
