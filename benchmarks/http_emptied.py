"""Our server without a store: `inorder serve`, whose puts and gets use a dictionary, over HTTP and elsewhere.

It has the routes, the guard, the log-in, the authorities and the log, so it shows their cost. A store in memory made
the messages of the dictionary. The arguments are those of `inorder`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any, TypeVar

import inorder
import inorder.server.store.connection as elsewhere
from inorder import GetOptions, Got, Message, NoMessageAvailable, PutOptions, PutResult, aio
from inorder_command import main as command

T = TypeVar("T")
QUEUE = "Q"


class Kept:
    """Has `put` and `internals.get_if` of a connection, with a dictionary."""

    def __init__(self) -> None:
        self.internals = self
        self._messages: dict[int, Got] = {}
        self._keys = itertools.count()

    def put(self, queue: str, message: Message, options: PutOptions) -> PutResult:
        del queue, options
        result, got = _through_a_store(message.body, message.persistent)
        self._messages[next(self._keys)] = got
        return result

    def get_if(self, queue: str, accepts: Callable[[Got], object], options: GetOptions | None) -> Got:
        del queue, options
        first = next(iter(self._messages), None)
        if first is None:
            raise NoMessageAvailable("there is none")
        accepts(self._messages[first])
        return self._messages.pop(first)


@functools.lru_cache(maxsize=16)
def _through_a_store(body: bytes, persistent: bool | None) -> tuple[PutResult, Got]:
    with inorder.connect() as qm:
        qm.create_queue(QUEUE)
        message = Message(body, format="MQSTR", coded_character_set_id=1208, persistent=persistent)
        return qm.put(QUEUE, message), qm.get(QUEUE)


class KeptElsewhere:
    """Makes the calls of programs elsewhere; puts and gets use a dictionary, except for the first ones."""

    def __init__(self) -> None:
        self._makes = elsewhere.made
        self._messages: dict[int, Any] = {}
        self._keys = itertools.count()
        self._answers: dict[str, Any] = {}

    def made(self, store: Any, verb: str, arguments: dict[str, Any]) -> Any:
        if verb == "put":
            self._messages[next(self._keys)] = arguments["request"].messages
        elif verb != "get" or not self._messages:
            return self._makes(store, verb, arguments)
        else:
            del self._messages[next(iter(self._messages))]
        if verb not in self._answers:
            self._answers[verb] = self._makes(store, verb, arguments)
        return self._answers[verb]


def main() -> None:
    """Serves until it is killed."""
    kept: Any = Kept()
    ask = aio.QueueManager.run

    async def run(self: aio.QueueManager, work: Callable[[Any], T], *, is_brief: bool = False) -> T:
        return work(kept) if is_brief else await ask(self, work)

    elsewhere._made_short = KeptElsewhere().made
    aio.QueueManager.run = run  # type: ignore[method-assign]
    command()


if __name__ == "__main__":
    main()
