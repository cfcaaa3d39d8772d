"""The table of the events of verbs: what each measures, beside "seconds", and what it names.

A test holds it to `stores.base.Store`, and the page docs/reference/events.md to it. A measurement is made of a call
that succeeded; a key is made of any call, so it looks at the answer only where it can do without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from .stores.claims import BULK_COLUMNS


class Call(NamedTuple):
    """A call of a verb that is over.

    Args:
        arguments: by their names in `Store`.
        answer: what it returned; None also if it raised.
        queues: the local queue of each open handle.
    """

    arguments: Mapping[str, Any]
    answer: Any
    queues: Mapping[int, str]


class Verb(NamedTuple):
    """How a call of one verb becomes an event."""

    measurements: Mapping[str, Callable[[Call], float]] = {}
    keys: Mapping[str, Callable[[Call], object]] = {}


LENGTH: Final = BULK_COLUMNS.index("length")


def _argument(name: str) -> Callable[[Call], Any]:
    return lambda call: call.arguments[name]


def _queue_of(handle: Callable[[Call], int]) -> dict[str, Callable[[Call], object]]:
    return {"queue": lambda call: call.queues.get(handle(call), "")}


def _answer(call: Call) -> float:
    return int(call.answer)


def _acted(call: Call) -> bool:
    return bool(call.answer)


def _bytes_of(messages: object) -> int:
    """Bodies that are in memory; what is read from the store later, page by page, is not counted."""
    return sum(message.length for message in messages) if isinstance(messages, list | tuple) else 0


def _opened_queue(call: Call) -> object:
    return call.arguments["queue"] if call.answer is None else call.answer.queue


def _unit_of_put(call: Call) -> str:
    request = call.arguments["request"]
    return "confirm" if request.options.confirm_id else "session" if request.in_unit else ""


def _unit_of_get(call: Call) -> str:
    request = call.arguments["request"]
    return "confirm" if request.options.confirm_id else "session" if request.syncpoint else ""


def _of_claim(name: str) -> Callable[[Call], int]:
    return lambda call: 0 if call.answer is None else getattr(call.answer, name)


def _application_of_key(call: Call) -> object:
    return call.arguments["key"].application


def _unit(kind: str) -> dict[str, Callable[[Call], object]]:
    return {"unit": lambda _: kind}


HANDLE: Final = _queue_of(_argument("handle"))
REQUEST: Final = _queue_of(lambda call: call.arguments["request"].handle)
CLAIMER: Final = {
    **_queue_of(lambda call: call.arguments["claimer"].handle),
    "application": lambda call: call.arguments["claimer"].application,
    **_unit("claim"),
}
NAMED: Final[dict[str, Callable[[Call], object]]] = {"queue": _argument("name")}
APPLICATION: Final = {"queue": _argument("queue"), "application": _argument("application"), **_unit("claim")}
MESSAGES: Final[dict[str, Callable[[Call], float]]] = {"messages": _answer}
GOT: Final[dict[str, Callable[[Call], float]]] = {
    "messages": lambda call: len(call.answer.messages),
    "bytes": lambda call: _bytes_of(call.answer.messages),
}
PAGE: Final[dict[str, Callable[[Call], float]]] = {
    "messages": lambda call: len(call.answer),
    "bytes": lambda call: sum(row[LENGTH] for row in call.answer),
}

VERBS: Final[Mapping[str, Verb]] = {
    # connections and handles
    "connect": Verb(keys={"program": lambda call: call.arguments["program"].name}),
    "disconnect": Verb(),
    "open": Verb(keys={"queue": _opened_queue}),
    "extend": Verb(keys=HANDLE),
    "close": Verb(keys=HANDLE),
    "check_handle": Verb(keys=HANDLE),
    # queues
    "create_queue": Verb(keys={"queue": lambda call: call.arguments["attributes"].name}),
    "alter_queue": Verb(keys=NAMED),
    "clear_queue": Verb(MESSAGES, NAMED),
    "delete_queue": Verb(keys=NAMED),
    "queues": Verb(),
    "queue": Verb(keys=NAMED),
    "status": Verb({"depth": lambda call: call.answer.current_depth}, NAMED),
    "manager": Verb(),
    "alter_manager": Verb(),
    # messages
    "put": Verb(
        {
            "messages": lambda call: len(call.arguments["request"].messages),
            "bytes": lambda call: _bytes_of(call.arguments["request"].messages),
        },
        {**REQUEST, "unit": _unit_of_put},
    ),
    "end_group": Verb(keys=HANDLE),
    "withdraw": Verb(keys=HANDLE),
    "get": Verb(
        GOT,
        {
            **REQUEST,
            "unit": _unit_of_get,
            "browse": lambda call: call.arguments["request"].options.browse is not None,
            "withheld": lambda call: call.answer is not None and call.answer.withheld is not None,
        },
    ),
    "unlock": Verb(keys={**HANDLE, "acted": _acted}),
    # confirmed calls
    "browse_and_lock": Verb(GOT, {**REQUEST, **_unit("lock")}),
    "one_message": Verb(keys={**REQUEST, "act": lambda call: call.arguments["request"].event.name.lower()}),
    "undo": Verb(MESSAGES, {**HANDLE, **_unit("confirm")}),
    "release_lock": Verb(MESSAGES, {**HANDLE, **_unit("lock")}),
    "unique_ids": Verb(
        {"messages": lambda call: len(call.answer)},
        {**HANDLE, "unit": lambda call: "confirm" if call.arguments["confirm_id"] else "lock"},
    ),
    # what an operator looks at
    "look": Verb(
        {"messages": lambda call: len(call.answer)},
        {"queue": lambda call: call.arguments["request"].queue, "order": lambda call: call.arguments["request"].order},
    ),
    "gaps": Verb(keys={"queue": _argument("queue")}),
    "overview": Verb({"queues": lambda call: len(call.answer)}),
    "waits": Verb({"waits": lambda call: len(call.answer)}),
    "locks": Verb({"locks": lambda call: len(call.answer)}),
    "check": Verb({"problems": lambda call: len(call.answer)}),
    # strict reading
    "order_view": Verb(keys={"queue": _argument("queue")}),
    "leave_group": Verb(keys=HANDLE),
    "end_wait": Verb(),
    # units of work
    "settle": Verb(keys={**_unit("session"), "outcome": _argument("outcome"), "acted": _acted}),
    "prepare": Verb(keys={**_unit("prepared"), "name": _argument("name")}),
    "settle_prepared": Verb(keys={**_unit("prepared"), "name": _argument("name"), "outcome": _argument("outcome")}),
    "units": Verb(),
    # time, and the end
    "discard_expired": Verb(MESSAGES),
    "backup": Verb(keys={"path": lambda call: str(call.arguments["path"])}),
    "stop": Verb(),
    # claims and surveys
    "begin_claims": Verb(keys={**HANDLE, "application": _argument("application"), **_unit("claim")}),
    "claim": Verb(
        {"messages": _of_claim("messages"), "bytes": _of_claim("size")},
        {
            **_queue_of(lambda call: call.arguments["request"].claimer.handle),
            "application": lambda call: call.arguments["request"].claimer.application,
            **_unit("claim"),
        },
    ),
    "plan_claims": Verb(keys=CLAIMER),
    "read_claim": Verb(PAGE, CLAIMER),
    "settle_claims": Verb(MESSAGES, CLAIMER),
    "finish_claims": Verb(MESSAGES, APPLICATION),
    "release_claims": Verb(MESSAGES, APPLICATION),
    "leave_claimed_group": Verb(keys={**APPLICATION, "acted": _acted}),
    "claims": Verb(),
    "survey": Verb({"messages": lambda call: call.answer.messages}, REQUEST),
    "read_stretch": Verb(PAGE, HANDLE),
    # staging
    "stage": Verb(
        {
            "messages": lambda call: call.arguments["request"].count,
            "bytes": lambda call: sum(len(body) for body in call.arguments["request"].columns["body"]),
        },
        {**REQUEST, **_unit("staging"), "name": lambda call: call.arguments["request"].name},
    ),
    "settle_staging": Verb(
        {"messages": lambda call: call.answer.messages},
        {
            **_unit("staging"),
            "application": _application_of_key,
            "already": lambda call: call.answer is not None and call.answer.already,
        },
    ),
    "undo_staging": Verb({"stagings": _answer}, _unit("staging")),
    "in_ledger": Verb(keys={"queue": _argument("queue"), "application": _application_of_key}),
}

PAGED: Final = frozenset({"read_claim", "read_stretch"})  # each page is one call

SILENT: Final[Mapping[str, str]] = {  # verbs without an event, and why
    "observe": "it registers, and asks the store nothing",
    "observe_deaths": "it registers, and asks the store nothing",
    "attend": "it is part of a wait, which has events of its own",
    "has_unit": "it looks at this process's memory only",
    "close_store": "the last connection has ended, and with it all observations",
}
