"""Marks the stop of a worker as soon as the signal arrives.

uvicorn closes the listener, and then each known connection. A connection that was accepted just before becomes known
one turn of the loop later, and would be served for as long as its client likes. So connections check for the stop
themselves.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def set_by_signals(stopping: asyncio.Event) -> Iterator[None]:
    """Sets the event when a signal stops the server, before uvicorn handles the signal.

    It changes nothing if no handler is set for the signals, as in a program that runs the application in its own loop.
    """
    before: dict[int, Callable[[int, FrameType | None], Any]] = {}
    loop = asyncio.get_running_loop()

    def stop(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(stopping.set)
        before[number](number, frame)

    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            handler = signal.getsignal(number)
            if callable(handler) and handler is not signal.default_int_handler:
                before[number] = handler
                signal.signal(number, stop)
    try:
        yield
    finally:
        for caught, handler in before.items():
            signal.signal(caught, handler)
