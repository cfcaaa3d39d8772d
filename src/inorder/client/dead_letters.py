"""`qm.dead`: lists, replays and discards dead letters, and makes a message one.

A dead letter is the original message, with the reason among its properties (`rules.dead_letters`). It is on an ordinary
queue: the queue manager's `dead_letter_queue`, or SYSTEM.DEAD.LETTER.QUEUE if that names none. Only these calls and
readers of that queue remove it. The queue manager's own dead letters, from channels and reports, need a named queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ..errors import (
    REASON_TEXT,
    CallerError,
    InorderError,
    NoMessageAvailable,
    Reason,
    StoreError,
    Undeliverable,
    bad_argument,
)
from ..model.attributes import DEAD_LETTERS
from ..model.kinds import Report
from ..model.message import Got, Message
from ..model.options import (
    EVERYTHING,
    Match,
    check_instance,
    check_whole,
)
from ..model.parameters import is_storable
from ..rules.dead_letters import Buried, WhyDead, buried, revived, why_dead
from .namespace import Namespace

if TYPE_CHECKING:
    pass

Data = bytes | bytearray | memoryview | Message
Progress = Callable[[int], object]  # how many dead letters were looked at


class DeadLetter(NamedTuple):
    """A message that could not be delivered, and why.

    Args:
        message: as it lies there; without the properties that begin with `dlh.` it is the message that was put.
        why: reason 0: it was put there by a program that does not say why.
    """

    message: Got
    why: WhyDead


class Stayed(NamedTuple):
    """A dead letter that could not be replayed, and what stood in its way."""

    letter: DeadLetter
    error: InorderError


class Replayed(NamedTuple):
    """What a replay did: how many went where they belong, and which stayed."""

    messages: int
    stayed: list[Stayed]


class DeadLetters(Namespace):
    """The dead letters of a queue manager, `qm.dead`."""

    def letters(
        self,
        *,
        reason: int | None = None,
        queue: str | None = None,
        match: Match = EVERYTHING,
        dead_letter_queue: str | None = None,
    ) -> Iterator[DeadLetter]:
        """The dead letters, in their order; nothing is taken.

        Args:
            reason: only those that were set aside for this reason.
            queue: only those that should have gone to this queue.
            match: only messages that fit; its selector may name `dlh.reason` and the like.
            dead_letter_queue: where they lie; None: on the queue that the queue manager names, or on
                SYSTEM.DEAD.LETTER.QUEUE.

        Raises: what a browse raises, such as UnknownQueue 2085.
        """
        if reason is not None and (isinstance(reason, bool) or not isinstance(reason, int)):
            raise bad_argument("reason", reason, "a Reason, or an integer")
        if queue is not None and not isinstance(queue, str):
            raise bad_argument("queue", queue, "the name of a queue")
        check_instance("match", match, Match, "a Match")
        return self._letters(self.place(dead_letter_queue), reason, queue, match)

    def _letters(self, there: str, reason: int | None, queue: str | None, match: Match) -> Iterator[DeadLetter]:
        for message in self._manager.browse(there, match=match, read_order="relaxed"):
            why = why_dead(message)
            if reason in (None, why.reason) and queue in (None, why.queue):
                yield DeadLetter(message, why)

    def replay(
        self,
        *,
        to: str | None = None,
        reason: int | None = None,
        queue: str | None = None,
        match: Match = EVERYTHING,
        dead_letter_queue: str | None = None,
        most: int | None = None,
        progress: Progress | None = None,
    ) -> Replayed:
        """Puts dead letters where they belong, each in a unit of work of its own: its get, and its put.

        Args:
            to: the queue where they are put; None: each where it should have gone.
            reason, queue, match, dead_letter_queue: which, as in `letters`.
            most: at most so many, from 1; None: all.
            progress: called with how many were looked at. What it raises ends the replay.

        What cannot be put stays where it is, and is in the answer with the error. The messages keep their ids, group,
        priority, what is left of their life and who put them when; unique ids and places are new.

        Raises: CallerError 2128, the connection has a unit of work. And what `letters` raises.
        """
        if most is not None:
            check_whole("most", most, 1)
        _check_progress(progress)
        there = self.place(dead_letter_queue)
        done, stayed = 0, list[Stayed]()
        letters = self.letters(reason=reason, queue=queue, match=match, dead_letter_queue=there)
        for looked_at, letter in enumerate(letters, 1):
            if most is not None and done >= most:
                break
            try:
                done += self._replay_one(there, letter, to)
            except StoreError:
                raise
            except InorderError as error:
                if error.reason is Reason.UOW_IN_PROGRESS:
                    raise
                stayed.append(Stayed(letter, error))
            if progress is not None:
                progress(looked_at)
        return Replayed(done, stayed)

    def _replay_one(self, there: str, letter: DeadLetter, to: str | None) -> bool:
        """Whether it was there still."""
        target, manager = self._target(letter, to)
        with self._manager.unit_of_work():
            try:
                message = self._manager.get(there, match=Match(uid=letter.message.uid), read_order="relaxed")
            except NoMessageAvailable:
                return False
            self._manager.put(target, revived(message), manager=manager, context="set_all")
        return True

    def _target(self, letter: DeadLetter, to: str | None) -> tuple[str, str]:
        """A queue, and the queue manager that has it."""
        if to is not None:
            return to, ""
        why = letter.why
        if not why.queue:
            raise CallerError(
                "the dead letter does not name its destination: give to=",
                reason=Reason.UNKNOWN_OBJECT_NAME,
                argument="to",
            )
        return why.queue, why.manager

    def add(
        self,
        message: Got,
        *,
        queue: str,
        reason: int = Reason.BACKOUT_THRESHOLD_REACHED,
        error: str = "",
        attempts: int = 0,
        program: str = "",
    ) -> Buried:
        """Makes a message that was got a dead letter.

        It is put on its queue's `backout_requeue_queue`, or on the queue manager's `dead_letter_queue`, or on
        SYSTEM.DEAD.LETTER.QUEUE if neither names one.

        Args:
            message: as it was got. Of a group give all messages, in one unit of work.
            queue: where it was got, and where a replay puts it.
            reason: a Reason, or a number of the program's own from 65,536.
            error: what went wrong, in words.
            attempts: how often it was tried; 0: that is not known.
            program: who says so; empty: this connection's.

        A message that says DISCARD_MESSAGE becomes none; one that asks for exception reports has one made.

        Returns: "buried"; "discarded", nothing was put.

        Raises: Undeliverable 9040: the queue requires the order, so that nothing may pass the message; or the
        dead-letter queue does not take it, or does not exist. UnknownQueue 2085; ArgumentError.

        In the unit of work of its get the message is a dead letter if and only if it has left its queue.

        Rules: R6.8, R6.9, B-24.
        """
        _check_letter(message, reason, attempts, error)
        found = self._manager.attributes(queue)
        if found.type == "alias":
            found = self._manager.attributes(found.base_queue)
        if found.read_order == "required":
            raise Undeliverable(
                f"{queue} requires strict order: no message may overtake another, so this one cannot become a dead "
                "letter; correct the cause and process it where it is",
                queue=queue,
            )
        if message.report & Report.EXCEPTION and message.reply_to_queue:
            session = self._session
            with session:
                in_unit = session.block is not None
                if in_unit:
                    session.join_unit()
                self._store.report_exception(session.owner, message, reason, in_unit=in_unit)
        if message.report & Report.DISCARD_MESSAGE:
            return "discarded"
        now, said_by = self._session.services.now(), program or self._manager.inspect.program
        why = WhyDead(reason, queue, "", now, said_by, attempts, error)
        try:
            self._put_letter(found.backout_requeue_queue, buried(message, why))
        except StoreError:
            raise
        except InorderError as fault:
            raise Undeliverable(f"a message of {queue} cannot become a dead letter: {fault}", queue=queue) from fault
        return "buried"

    def _put_letter(self, queue: str, letter: Message | Reason) -> None:
        if isinstance(letter, Reason):
            raise CallerError(REASON_TEXT[letter], reason=letter)
        self._manager.put(queue or self.place(None), letter, context="set_all")

    def discard(
        self,
        *,
        reason: int | None = None,
        queue: str | None = None,
        match: Match = EVERYTHING,
        dead_letter_queue: str | None = None,
        progress: Progress | None = None,
    ) -> int:
        """Removes dead letters for good; how many. Arguments and errors: as `replay`."""
        _check_progress(progress)
        there = self.place(dead_letter_queue)
        done = 0
        letters = self.letters(reason=reason, queue=queue, match=match, dead_letter_queue=there)
        for looked_at, letter in enumerate(letters, 1):
            done += self._discard_one(there, letter)
            if progress is not None:
                progress(looked_at)
        return done

    def _discard_one(self, there: str, letter: DeadLetter) -> bool:
        try:
            self._manager.get(there, match=Match(uid=letter.message.uid), read_order="relaxed", syncpoint=False)
        except NoMessageAvailable:
            return False
        return True

    def place(self, given: str | None = None) -> str:
        """The queue where dead letters lie, unless the caller gives another."""
        if given is not None:
            return given
        with self._session:
            return self._store.manager().dead_letter_queue or DEAD_LETTERS


def _check_letter(message: object, reason: object, attempts: int, error: object) -> None:
    check_instance("message", message, Message, "a message from a get")
    if isinstance(reason, bool) or not isinstance(reason, int):
        raise bad_argument("reason", reason, "a Reason, or an integer")
    check_whole("attempts", attempts)
    if not isinstance(error, str) or not is_storable(error):
        raise bad_argument("error", error, "a text")


def _check_progress(progress: Progress | None) -> None:
    if progress is not None and not callable(progress):
        raise bad_argument("progress", progress, "a function of one number")


__all__ = ["DeadLetter", "DeadLetters", "Replayed", "Stayed", "WhyDead"]
