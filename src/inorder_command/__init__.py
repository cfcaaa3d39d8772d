"""Where the command `inorder` begins: from here on Ctrl-C ends it without a traceback, also during its imports.

They take most of a short command's time, and those of `inorder` itself come before anything in that package is run: so
this is a package of its own, and imports nothing that the interpreter does not have already, but `signal`.
"""

from __future__ import annotations

import os
import signal
from importlib import import_module
from types import FrameType

INTERRUPTED = 130


def main() -> int:
    """Runs the command; returns its exit status."""
    is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # a shell may have it ignored
    if is_ours:
        signal.signal(signal.SIGINT, _end)
    command = import_module("inorder.cli")
    try:
        if is_ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        status: int = command.main()
    except KeyboardInterrupt:  # before the command can say so, or again while it does
        return INTERRUPTED
    return status


def _end(number: int, frame: FrameType | None) -> None:
    """Ends the process. An exception in an import may come out as another one, or be told and passed over."""
    os._exit(INTERRUPTED)
