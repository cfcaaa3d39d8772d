"""Queues as this session left them, so that a verb need not wait for the answer to its first statement.

Who works alone on a queue finds it as it was. Then the statement that locks the queue says so too (`here as known`),
all others follow at once, and the server lets none of them happen if somebody has been there in between.

What only appends needs to know less (`here to append`): its numbers are counted from 0, the server adds the counter
that it finds under the lock, and nobody who appends waits for an answer while others wait for the lock.

A verb that took a queue to be what it was not runs again, and looks. The more often that was so, the longer nothing is
taken for granted of that queue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ..backend import QueueState, Tally
from ..sql.attention import QUIET
from ..sql.shapes import COUNTED_MAX
from .pipeline import Answer

DOUBLINGS: Final = 6  # of how many verbs look after one that took a queue to be another than it was
OTHERS: Final = 1000  # messages that others may have put since a queue was seen


class Guess(NamedTuple):
    """What a queue is taken to be: its attention is in `QUIET`.

    Args:
        appends: its counter begins at 0, its depth is the highest that it may have.
    """

    state: QueueState
    attention: int
    appends: bool = False


class Known:
    """See the module."""

    def __init__(self) -> None:
        self._left: dict[int, Guess] = {}  # queues as the last verbs left them
        self._seen: dict[int, Guess] = {}  # as this verb found them, or takes them to be
        self._told: dict[int, Answer] = {}  # what the server says of those that are taken to be so
        self._placed: dict[int, int] = {}  # how many messages it appends
        self._misses: dict[int, int] = {}
        self._pauses: dict[int, int] = {}
        self._may_guess = self._may_append = False

    def begin(self, *, may_guess: bool, may_append: bool) -> None:
        """A transaction."""
        self._may_guess, self._may_append = may_guess, may_append
        if self._seen or self._told or self._placed:
            self._seen, self._told, self._placed = {}, {}, {}

    def guess(self, queue: int, *, looks: bool) -> Guess | None:
        """What the queue is taken to be. None: look.

        Args:
            looks: it is time to see whether what the attention says is there still.
        """
        if not self._may_guess or queue not in self._left or queue in self._seen:
            return None
        if pause := self._pauses.get(queue, 0):
            self._pauses[queue] = pause - 1
            return None
        guess = self._left[queue]
        if guess.attention and looks:
            return None
        if self._may_append:
            most = guess.state.depth + OTHERS
            guess = Guess(guess.state._replace(counter=0, reserved=COUNTED_MAX, depth=most), guess.attention, True)
        self._seen[queue] = guess
        return guess

    def told(self, queue: int, answer: Answer) -> None:
        """The server is going to say whether it is so, and what it is."""
        self._told[queue] = answer

    def see(self, queue: int, state: QueueState, attention: int) -> None:
        """This is how it is."""
        self._seen[queue] = Guess(state, attention)

    def appends(self, queue: int) -> bool:
        """Whether the numbers of what arrives are counted from 0."""
        return queue in self._seen and self._seen[queue].appends

    def place(self, queue: int, count: int) -> None:
        """So many messages arrive with numbers."""
        self._placed[queue] = self._placed.get(queue, 0) + count

    def placed(self, queue: int) -> int:
        return self._placed.get(queue, 0)

    def keep(self) -> None:
        """What this verb has found so far is not what it leaves."""
        self._seen = {}

    def forget(self) -> None:
        """Nothing is known."""
        self._left = {}

    def commit(self, tallies: Sequence[Tally], attention: Mapping[int, int]) -> None:
        """All has happened; `attention`: of the queues that the verb came to."""
        after = {queue: self._found(queue, guess) for queue, guess in self._seen.items()}
        for queue, counter, reserved, added, _ in tallies:
            if queue in after:
                before = after[queue]
                is_whole = not self._seen[queue].appends
                after[queue] = before._replace(
                    counter=counter if is_whole else before.counter + counter,
                    reserved=reserved if is_whole else before.reserved,
                    depth=before.depth + added,
                )
        for queue, state in after.items():
            noted = attention.get(queue, 0)
            if noted in QUIET and noted == self._seen[queue].attention:
                self._left[queue] = Guess(state, noted)
            else:
                self._left.pop(queue, None)
        for queue in self._told:
            if self._misses.get(queue):
                self._misses[queue] -= 1

    def _found(self, queue: int, guess: Guess) -> QueueState:
        """The queue as it was when this verb came to it."""
        if not guess.appends:
            return guess.state
        ((counter, reserved, depth, _),) = self._told[queue].fetchall()
        return guess.state._replace(counter=counter, reserved=reserved, depth=depth)

    def abort(self) -> bool:
        """Nothing has happened. Returns: whether the verb has seen a queue that was not known to be so."""
        for queue in self._seen:
            self._left.pop(queue, None)
        for queue, answer in self._told.items():
            if not answer.has_come or self.appends(queue):
                misses = self._misses[queue] = min(self._misses.get(queue, 0) + 1, DOUBLINGS)
                self._pauses[queue] = 1 << misses
                return True
        return False
