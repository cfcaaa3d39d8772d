"""Exceptions from outside, raised at a chosen place in a call.

CPython raises one where a function written in Python begins, after a call has returned, and where a loop goes round.
`Interruption` counts these places in a call, and raises at one of them, so that each can be tested.
"""

from __future__ import annotations

import dis
import functools
import gc
import sys
import weakref
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

CALLS = frozenset(dis.opmap[name] for name in ("CALL", "CALL_FUNCTION_EX") if name in dis.opmap)
BEGINNINGS = frozenset({dis.opmap.get("RESUME", -1)})
BACKWARD = frozenset(code for name, code in dis.opmap.items() if "JUMP_BACKWARD" in name and "NO_INTERRUPT" not in name)
CHECKS = CALLS | BEGINNINGS | BACKWARD
# Callbacks of weak references: Python prints an exception that they raise, and continues.
CALLBACKS = frozenset({(sys.modules[weakref.WeakSet.__module__].__file__, "_remove"), (weakref.__file__, "remove")})
IS_KNOWN = sys.implementation.name == "cpython" and sys.version_info[:2] == (3, 11)


class Outside(BaseException):
    """An exception from outside that no code expects."""


class Late(TimeoutError):
    """A time-out of the caller, of the same kind as errors of the operating system."""


OUTSIDE = (Outside, Late)


@functools.cache
def _handlers(code: CodeType) -> tuple[tuple[int, int, int], ...]:
    entries = dis._parse_exception_table(code)  # type: ignore[attr-defined]
    return tuple((entry.start, entry.end, entry.target) for entry in entries)


@functools.cache
def _has_one_handler(code: CodeType, one: int, other: int) -> bool:
    """Whether the same handler catches an exception at both instructions."""

    def at(offset: int) -> int | None:
        return next((target for start, end, target in _handlers(code) if start <= offset < end), None)

    return at(one) == at(other)


class Interruption:
    """Raises one of `OUTSIDE` at one of the places in a call where an exception from outside may be raised.

    Args:
        at: the number of the place, from 0; None: the places are only counted.
    """

    def __init__(self, at: int | None = None) -> None:
        self._at = at
        self._kind = OUTSIDE[(at or 0) % 2]
        self.places = 0
        self.where = ""

    def during(self, call: Callable[[], Any]) -> Any:
        """Makes the call, and returns its result. Raises: one of `OUTSIDE`, or the error of the call."""
        traced = sys.gettrace()  # by a measurement of coverage
        gc.disable()  # Python discards an exception in a finalizer that the collector calls
        sys.settrace(self._begun)
        try:
            return call()
        finally:
            sys.settrace(traced)
            gc.enable()

    def _begun(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if event != "call" or code.co_filename == __file__ or (code.co_filename, code.co_name) in CALLBACKS:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        last = frame.f_lasti  # where it begins or resumes

        def step(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal last
            if event == "opcode":
                code, now = frame.f_code, frame.f_lasti
                if last >= 0 and code.co_code[last] in CHECKS and _has_one_handler(code, last, now):
                    if self.places == self._at:
                        self.places += 1
                        self.where = f"{code.co_filename}:{frame.f_lineno}, in {code.co_name}"
                        raise self._kind
                    self.places += 1
                last = now
            return step

        return step
