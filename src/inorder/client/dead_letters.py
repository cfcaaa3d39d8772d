"""`qm.dead`: lists, replays, discards and adds dead letters.

A dead letter is the original message, with the reason among its properties (`rules.dead_letters`). It is on an ordinary
queue: the queue manager's `dead_letter_queue`, or SYSTEM.DEAD.LETTER.QUEUE if that names none. Only these calls and
readers of that queue remove it. The queue manager's own dead letters, from channels and reports, need a named queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

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
from ..model.fields import NUMBER_MAX
from ..model.kinds import Report
from ..model.message import Got, Message, UniqueId
from ..model.options import EVERYTHING, Match, check_function, check_instance, check_whole
from ..model.parameters import is_integer, is_storable
from ..rules.dead_letters import Buried, WhyDead, buried, revived, why_dead
from .defining import local_attributes
from .namespace import Namespace

Progress = Callable[[int], object]  # how many dead letters were looked at
OF_PROGRESS = "a function of one number"


class DeadLetter(NamedTuple):
    """A message that could not be delivered, and the reason.

    Args:
        message: the message on the dead-letter queue; without the properties that begin with `dlh.` it is the message
            that was put.
        why: the reason; 0: the program that put it there gave none.
    """

    message: Got
    why: WhyDead


class Stayed(NamedTuple):
    """A dead letter that could not be replayed, and the error."""

    letter: DeadLetter
    error: InorderError


class Replayed(NamedTuple):
    """The result of a replay: the number of messages replayed, and the letters that stayed."""

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
        """Lists the dead letters in order, without removing any.

        Args:
            reason: only letters with this reason.
            queue: only letters whose destination was this queue.
            match: only matching messages; its selector may name `dlh.reason` and the other properties of a letter.
            dead_letter_queue: the queue to read; None: the queue manager's `dead_letter_queue`, or
                SYSTEM.DEAD.LETTER.QUEUE.

        Raises: as a browse, for example UnknownQueue 2085.
        """
        if reason is not None and not is_integer(reason):
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
        """Puts dead letters on their destination queues; one unit of work gets and puts each letter.

        Args:
            to: the queue to put them on; None: the destination of each.
            reason, queue, match, dead_letter_queue: select letters, as in `letters`.
            most: the largest number to replay, from 1; None: all.
            progress: called with the number of letters looked at. An exception from it ends the replay.

        A letter that cannot be put stays, and the result lists it with the error. Messages keep their ids, group,
        priority, remaining expiry, and the user and time of their put; unique ids and places are new.

        Raises: CallerError 2128, the connection has a unit of work; as `letters`.
        """
        if most is not None:
            check_whole("most", most, 1)
        check_function("progress", progress, OF_PROGRESS)
        there = self.place(dead_letter_queue)
        done, stayed = 0, list[Stayed]()
        returned = set[UniqueId]()  # the unique ids of its puts, so that none to this queue is replayed again
        found = self.letters(reason=reason, queue=queue, match=match, dead_letter_queue=there)
        letters = (letter for letter in found if letter.message.uid not in returned)
        for looked_at, letter in enumerate(letters, 1):
            if most is not None and done >= most:
                break
            try:
                uid = self._replay_one(there, letter, to)
                if uid is not None:
                    returned.add(uid)
                    done += 1
            except StoreError:
                raise
            except InorderError as error:
                if error.reason is Reason.UOW_IN_PROGRESS:
                    raise
                stayed.append(Stayed(letter, error))
            if progress is not None:
                progress(looked_at)
        return Replayed(done, stayed)

    def _replay_one(self, there: str, letter: DeadLetter, to: str | None) -> UniqueId | None:
        """Replays a letter; returns its new unique id. None: the queue no longer has it."""
        target, manager = self._target(letter, to)
        with self._manager.unit_of_work():
            try:
                message = self._manager.get(there, match=Match(uid=letter.message.uid), read_order="relaxed")
            except NoMessageAvailable:
                return None
            return self._manager.put(target, revived(message), manager=manager, context="set_all").uid

    def _target(self, letter: DeadLetter, to: str | None) -> tuple[str, str]:
        """Returns the destination: a queue and its queue manager."""
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
        """Puts a message that was got on a dead-letter queue, with the reason.

        That is its queue's `backout_requeue_queue`, or else the queue manager's `dead_letter_queue`, or else
        SYSTEM.DEAD.LETTER.QUEUE.

        Args:
            message: the message as it was got. Add all messages of a group, in one unit of work.
            queue: the queue from which it was got; a replay puts it there. From a transmission queue: a replay sends
                it to its destination.
            reason: a Reason, or a number of your own from 65,536 to 999,999,999.
            error: the error as text.
            attempts: the number of attempts; 0: unknown.
            program: the program that reports the failure; empty: this connection's program.

        A message with the report option DISCARD_MESSAGE is not put. One that asks for exception reports gets one.

        Returns: "buried", or "discarded" if nothing was put.

        Raises: Undeliverable 9040: the queue requires strict order, so nothing may overtake the message; or the
        dead-letter queue refuses it, or does not exist. UnknownQueue 2085; ArgumentError.

        Call it in the unit of work of the get: then the message is either on its queue or a dead letter, never both.

        Rules: R6.8, R6.9, B-24.
        """
        _check_letter(message, reason, attempts, error)
        found = local_attributes(self._manager, queue)
        if found.read_order == "required":
            raise Undeliverable(
                f"{queue} requires strict order: no message may overtake another, so this one cannot become a dead "
                "letter; correct the cause and process it where it is",
                queue=queue,
            )
        if not message.report & Report.DISCARD_MESSAGE:
            now, said_by = self._session.services.now(), program or self._manager.inspect.program
            target, manager = message.transmission or (queue, "")
            why = WhyDead(reason, target, manager, now, said_by, attempts, error)
            try:
                self._put_letter(found.backout_requeue_queue, buried(message, why))
            except StoreError:
                raise
            except InorderError as fault:
                text = f"a message of {queue} cannot become a dead letter: {fault}"
                raise Undeliverable(text, queue=queue) from fault
        if message.report & Report.EXCEPTION and message.reply_to_queue:
            self._report(message, reason)
        return "discarded" if message.report & Report.DISCARD_MESSAGE else "buried"

    def _report(self, message: Got, reason: int) -> None:
        session = self._session
        with session:
            in_unit = session.block is not None
            if in_unit:
                session.join_unit()
            self._store.report_exception(session.owner, message, reason, in_unit=in_unit)

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
        """Removes dead letters for good; returns how many. Arguments and errors: as `replay`."""
        check_function("progress", progress, OF_PROGRESS)
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
        """Returns the given queue, or the queue manager's dead-letter queue."""
        if given is not None:
            return given
        with self._session:
            return self._store.manager().dead_letter_queue or DEAD_LETTERS


def _check_letter(message: object, reason: object, attempts: int, error: object) -> None:
    check_instance("message", message, Message, "a message from a get")
    check_whole("reason", reason, 0, NUMBER_MAX)
    check_whole("attempts", attempts)
    if not isinstance(error, str) or not is_storable(error):
        raise bad_argument("error", error, "a text")


__all__ = ["DeadLetter", "DeadLetters", "Replayed", "Stayed", "WhyDead"]
