"""The names of the program and its user, as the descriptor of a message keeps them."""

from __future__ import annotations

import functools
import getpass
import os
import sys
from pathlib import Path

from ..errors import bad_argument
from ..model.parameters import is_storable

NAMED_BY = ("LOGNAME", "USER", "LNAME", "USERNAME")  # where `getpass` looks first
USER_LENGTH, PROGRAM_LENGTH = 12, 28
WORKER = "inorder work"  # how the names of the programs begin that `inorder work` starts


def running_script() -> str:
    """The name of the script that runs."""
    name = Path(sys.argv[0] or sys.executable).name
    return _kept(name.encode(errors="replace").decode(), PROGRAM_LENGTH)


def program_name(name: object) -> str:
    """A name that a caller gives to its program. Raises: ArgumentError."""
    if not isinstance(name, str) or not is_storable(name):
        raise bad_argument("program", name, "a text")
    return _kept(name, PROGRAM_LENGTH)


def user_name() -> str:
    """The name of the user that the process belongs to."""
    return _user_name(os.getuid() if hasattr(os, "getuid") else 0, *map(os.environ.get, NAMED_BY))


@functools.lru_cache(maxsize=4)
def _user_name(_: int, *__: str | None) -> str:
    """The answer may come from a remote directory, so it is asked for only once while the user and its sources are the
    same.
    """
    try:
        return _kept(getpass.getuser().encode(errors="replace").decode(), USER_LENGTH)
    except (OSError, KeyError, ImportError):  # no such user in the system's list
        return str(os.getuid()) if hasattr(os, "getuid") else ""


def _kept(name: str, length: int) -> str:
    """What the text of a message's descriptor keeps of a name."""
    return name[:length].rstrip(" \0")
