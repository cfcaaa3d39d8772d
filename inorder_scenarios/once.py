"""Puts that happen once although several actors try: groups under keys, and messages of schedules."""

from __future__ import annotations

from inorder.model.message import IN_GROUP, LAST_IN_GROUP, Message
from inorder.model.options import OpenOptions, PutOptions
from inorder.testing.clock import START
from inorder.work.periodic import Periodic, Schedule

from .actors import Actor, NameTable, StepOutcome, key_of
from .language import ScenarioStep


class OnceActor(Actor):
    """An actor that puts groups under keys, and due messages of schedules."""

    def _put_group(self, handle: str, step: ScenarioStep) -> StepOutcome:
        queue, last = self._queue(handle, step, OpenOptions(output=True)), len(step.names) - 1
        members = [
            Message(name.encode("ascii"), flags=LAST_IN_GROUP if n == last else IN_GROUP)
            for n, name in enumerate(step.names)
        ]
        how = PutOptions(**key_of(step), logical=True, syncpoint=True if "syncpoint" in step.flags else None)
        results = queue.put_many(members, how)
        if results[0].duplicate_of is not None:
            return self.duplicate(queue, results[0].duplicate_of)
        for name, result in zip(step.names, results, strict=True):
            self._table.remember(name, len(name), result)
            self._table.uids.setdefault((queue.name, name), []).append((step.actor.partition(".")[0], result.uid))
        return StepOutcome("ok", facts={"group": results[0].group_id})

    def _put_due(self, handle: str, step: ScenarioStep) -> StepOutcome:
        known = self._table.schedules
        if unknown := [name for name in step.names if name not in known]:
            raise ValueError(f"there is no schedule {unknown[0]!r}")
        chosen = [known[name] for name in step.names or sorted(known)]
        runs = Periodic(self.manager, chosen).put_due()
        return StepOutcome("list", "", tuple(due_name(run.schedule.name, run.due) for run in runs))


def define_schedule(table: NameTable, step: ScenarioStep) -> None:
    """Adds a schedule whose due messages any actor may put from now on."""
    name, keys = step.names[0], {key: value for key, value in step.keys.items() if key in ("zone", "missed")}
    if "cron" not in step.keys:
        raise ValueError("a schedule needs cron=")
    table.schedules[name] = Schedule(
        name=name,
        cron=step.keys["cron"],
        queue=table.queue(step.keys.get("on")),
        body=lambda due: due_name(name, due.timestamp()).encode("ascii"),
        **keys,  # type: ignore[arg-type]
    )


def due_name(schedule: str, due: float) -> str:
    """The table's name for the message of a schedule that is due at an instant, seconds since 1970."""
    return f"{schedule}@{due - START:.0f}"
