"""Finds the task for a message: the threads of a queue get its messages for all tasks that share it.

    the message has the property `task`     the task with arguments of that name
    it has none                             the function of messages of that queue
    neither exists                          no task takes it: see `LaneTasks.unknown`

A function of messages that has its queue for itself gets all messages, with any properties.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from ..errors import nearest_names
from ..model.message import Message
from .sending import TASK
from .tasks import Task, Tasks, Unknown


class LaneTasks(NamedTuple):
    """The tasks whose messages a lane gets.

    Args:
        first: the task whose queue and options the gets use; those of all tasks are the same.
        tasks: all of them.
        unknown: the treatment of a message that none of them takes, as in `Tasks`.
    """

    first: Task
    tasks: tuple[Task, ...]
    unknown: Unknown

    @property
    def name(self) -> str:
        """The name of the only task, or one for all of them."""
        return self.first.name if len(self.tasks) == 1 else f"tasks of {self.first.queue}"

    def calls_at_once(self, threads: int) -> int:
        """The number of simultaneous calls in each process: the largest number of a task, or the worker's number."""
        return max(one.threads or threads for one in self.tasks)

    def without_waits(self) -> LaneTasks:
        """The same, whose gets return at once if there is no message."""
        return self._replace(first=replace(self.first, options=replace(self.first.options, wait=0)))

    def task_of(self, message: Message) -> Task | None:
        """The task that takes a message; None: there is none."""
        if len(self.tasks) == 1 and self.first.arguments is None:
            return self.first
        text = message.properties.text
        name = message.properties.get(TASK) if text is not None and TASK in text else None
        for one in self.tasks:
            if one.name == name if one.arguments else name is None:
                return one
        return None

    def why_unknown(self, message: Message) -> str:
        """Why no task takes a message."""
        name, names = message.properties.get(TASK), [one.name for one in self.tasks if one.arguments]
        if name is None:
            return f"the message has no property {TASK}, and no function here takes plain messages of the queue"
        near = nearest_names(name, names) if isinstance(name, str) else []
        hint = f"; did you mean {near[0]}?" if near else ""
        return f"no task here that takes messages of the queue is named {name!r:.200}{hint}"


def shared(tasks: Tasks) -> Iterable[LaneTasks]:
    """The tasks of each lane: the tasks of a queue together, unless their options choose messages."""
    by_queue: dict[str, list[Task]] = {}
    with_arguments = {one.queue for one in tasks if one.arguments}
    for one in tasks:
        if one.arguments is None and (one.is_alone or one.queue not in with_arguments):
            yield LaneTasks(one, (one,), tasks.unknown)
        else:
            by_queue.setdefault(one.queue, []).append(one)
    for found in by_queue.values():
        yield LaneTasks(found[0], tuple(found), tasks.unknown)
