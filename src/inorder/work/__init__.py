"""Workers call functions with the messages of queues, each in a unit of work, and put messages on a schedule.

    from inorder.work import Tasks

    tasks = Tasks("shop.db")

    @tasks.task
    def pack(order_id: int, qm: QueueManager) -> None:
        qm.put_json("PARCELS", order_id)

    pack.put(order_id=17, delay=60)

`inorder work shop.tasks` runs them in processes and threads, `qm.worker(tasks)` in threads of a program.
"""

from __future__ import annotations

from ..rules.retries import Backoff, Failure, failure_of
from .job import Job
from .limits import Limit
from .outcomes import Ended, JobFailed, Outcome
from .periodic import Schedule
from .reporting import WorkerEvent
from .results import JobAttempt, JobError, JobStatus
from .sending import TaskFunction
from .tasks import Dead, Discard, Retry, Task, Tasks
from .worker import Worker

__all__ = [
    "Backoff",
    "Dead",
    "Discard",
    "Ended",
    "Failure",
    "Job",
    "JobAttempt",
    "JobError",
    "JobFailed",
    "JobStatus",
    "Limit",
    "Outcome",
    "Retry",
    "Schedule",
    "Task",
    "TaskFunction",
    "Tasks",
    "Worker",
    "WorkerEvent",
    "failure_of",
]
