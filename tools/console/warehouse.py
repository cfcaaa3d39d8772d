"""The tasks of the sample's warehouse: run `inorder work warehouse` in this folder."""

from __future__ import annotations

import threading

import inorder
from inorder.work import Tasks

tasks, pause = Tasks(), threading.Event()


@tasks.task("PICKING")
def pick(message: inorder.Message) -> None:
    """Takes about as long as an item takes to come."""
    del message
    pause.wait(0.24)
