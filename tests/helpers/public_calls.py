"""The public calls by their names, and a valid argument for each that needs one."""

from __future__ import annotations

import inspect
import io
from collections.abc import Callable, Mapping
from typing import Any

from inorder import OpenOptions, UniqueId

GIVEN: Mapping[str, Callable[[], Any]] = {  # valid arguments, by their names
    "body": lambda: b"x", "messages": lambda: [b"x"], "value": lambda: 1, "count": lambda: 1,
    "uid": lambda: UniqueId("ELSEWHERE", 1), "stream": lambda: io.BytesIO(b"12345678"), "confirm_id": lambda: 7,
    "lock_id": lambda: 7, "group_id": lambda: b"G", "listener": lambda: print, "changed": lambda: print,
    "options": lambda: OpenOptions(output=True),
}  # fmt: skip
BY_NAME = """
    admin.clear_queue admin.release_lock admin.retry_now alter_queue attributes browse browse_and_lock
    confirm_get confirm_put delete delete_queue depth get get_group get_many get_stream group inquire
    inspect.gaps inspect.look inspect.order_view inspect.status inspect.unique_ids
    internals.open_growing internals.watch leave_group listen open put put_json put_many
    put_stream undo unlock
""".split()
ON_A_HANDLE = """
    attributes browse browse_cursor browse_first browse_next close confirm_get delete get get_many leave_group put
    put_many status undo unlock
""".split()


def called(method: Callable[..., Any], *first: object) -> None:
    """Makes a call with the arguments that it requires, and gets the first message of an iterator."""
    required = [
        one
        for one in inspect.signature(method).parameters.values()
        if one.default is one.empty and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
    ]
    more = {one.name: GIVEN[one.name]() for one in required[len(first) :]}
    result = method(*first, **more)
    if hasattr(result, "__next__"):
        next(result)
