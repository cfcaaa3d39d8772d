"""Loads the tasks named on a command line: `shop.tasks`, or `shop.tasks:jobs` if they have another name."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from ..errors import ArgumentError, bad_argument
from .tasks import Tasks

USUAL_NAME = "tasks"


def load(named: str) -> Tasks:
    """Imports a module, from the current directory too, and returns its `Tasks`.

    Args:
        named: a module, followed by a colon and the name of the object if that is not `tasks`.

    Raises ArgumentError if there is no such module or object; also any exception raised by the import.
    """
    module_name, _, name = named.partition(":")
    if not module_name:
        raise bad_argument("tasks", named, "MODULE or MODULE:OBJECT")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as missing:
        if missing.name is None or not f"{module_name}.".startswith(f"{missing.name}."):
            raise  # the module exists, but a module that it imports is missing
        raise ArgumentError(
            f"there is no module {missing.name}, neither here ({here}) nor on Python's path", argument="tasks"
        ) from missing
    found = getattr(module, name or USUAL_NAME, None)
    if not isinstance(found, Tasks):
        others = [key for key, value in vars(module).items() if isinstance(value, Tasks)]
        hint = f"; it has {', '.join(others)}: say {module_name}:{others[0]}" if others else ""
        raise ArgumentError(f"{module_name} has no Tasks named {name or USUAL_NAME}{hint}", argument="tasks")
    return found
