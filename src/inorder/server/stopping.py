"""When a worker stops: it is known as soon as the signal comes.

uvicorn closes the listener, and then each connection that it knows. One that was accepted just before is made known a
turn of the loop later, and would be served as long as its client likes. So connections ask for themselves.
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
    """Has the event set by the signals that stop a server, in front of what uvicorn does at them.

    Where nobody handles them, as in a program that has the application in a loop of its own, nothing is changed.
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
