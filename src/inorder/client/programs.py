"""The names of the program and its user for message descriptors."""

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
WORKER = "inorder work"  # the prefix of the program names of `inorder work`


def running_script() -> str:
    """Returns the name of the running script."""
    name = Path(sys.argv[0] or _executable()).name
    return _kept(name.encode(errors="replace").decode(), PROGRAM_LENGTH)


def _executable() -> str:
    """Python by the name under which it was started; or the program in which it is only a library."""
    program = Path("/proc/self/exe")
    try:
        return sys.executable if program.samefile(sys.executable or "") else str(program.readlink())
    except OSError:
        return sys.executable


def program_name(name: object) -> str:
    """Returns a caller's program name, cut to its length. Raises: ArgumentError."""
    if not isinstance(name, str) or not is_storable(name):
        raise bad_argument("program", name, "a text")
    return _kept(name, PROGRAM_LENGTH)


def user_name() -> str:
    """Returns the name of the user that owns the process."""
    return _user_name(os.getuid() if hasattr(os, "getuid") else 0, *map(os.environ.get, NAMED_BY))


@functools.lru_cache(maxsize=4)
def _user_name(_: int, *__: str | None) -> str:
    """Looks up the name, possibly in a remote directory; cached while the user and the variables stay the same."""
    try:
        return _kept(getpass.getuser().encode(errors="replace").decode(), USER_LENGTH)
    except (OSError, KeyError, ImportError):  # no such user in the system's list
        return str(os.getuid()) if hasattr(os, "getuid") else ""


def _kept(name: str, length: int) -> str:
    """Returns a name cut to the length of its field in the descriptor."""
    return name[:length].rstrip(" \0")
