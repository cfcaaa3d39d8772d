"""The tasks of the sample's warehouse: run `inorder work warehouse` in this folder."""

from __future__ import annotations

import threading
from datetime import datetime

import inorder
from inorder.work import Tasks

EMPTY_SHELF = 7
tasks, pause = Tasks(), threading.Event()


@tasks.task("PICKING")
def pick(message: inorder.Message) -> None:
    """Takes about as long as the time between two items; one shelf is empty at the first attempt."""
    pause.wait(0.24)
    if message.properties.get("shelf") == EMPTY_SHELF and not message.backout_count:
        raise LookupError("the shelf is empty")


@tasks.periodic("0 6 * * MON-FRI", queue="PICKING", name="stocktaking", zone="Europe/Berlin")
def stocktaking(due: datetime) -> bytes:
    """Returns the first item of a working day."""
    return f'{{"count": "{due:%Y-%m-%d}"}}'.encode()
