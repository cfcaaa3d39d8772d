"""Events for observers of a store elsewhere: each call of this process has the same event as on a local store.

Only the server reports its own work, such as waits and expiry.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..seam.telemetry import REPORTERS

Verb = Callable[..., Any]


def reporting(verb: str, call: Verb) -> Verb:
    """Returns a verb of `RemoteStore` that reports its calls while there are observers."""

    @functools.wraps(call)
    def made(store: Any, *arguments: Any, **keywords: Any) -> Any:
        if not store.telemetry.observations:
            return call(store, *arguments, **keywords)
        return _reported(verb, call)(store, *arguments, **keywords)

    return made


@functools.cache
def _reported(verb: str, call: Verb) -> Verb:
    from ..engine import store  # noqa: F401, PLC0415 - it declares the events, which only observers need

    if verb in ("get", "wait"):  # a local store reports looks, whose answers have a time
        look = REPORTERS["get"](lambda store, request: (call(store, request), None))
        return lambda store, request: look(store, request)[0]
    return REPORTERS[verb](call) if verb in REPORTERS else call
