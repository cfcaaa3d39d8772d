"""`inorder channel`: defines, runs, watches and ends channels, which carry messages to other queue managers."""

from __future__ import annotations

import contextlib
import threading
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

import click

from .. import QueueManager
from ..client.listening import StoreEvent
from ..errors import ChannelStopped, InorderError, ObjectInUse, QueueCondition, StoreError
from ..formats.json_lines import when
from ..model.channel_attributes import CHANNEL_ATTRIBUTES, ChannelAttributes
from ..mq import channels
from ..mq.channels import ChannelNow, Received
from ..mq.channels.exits import check as check_exits
from .connections import connection_names
from .lasting import ends_by_signal, run_all
from .queues import alter_object, takes_attributes_of
from .running import CommandGroup, Run, completes, says_yes, takes_exits, takes_store
from .wording import count, words

COLUMNS = {
    "channel": "channel",
    "type": "type",
    "transmission_queue": "from",
    "connection": "to",
    "description": "description",
}
STATUS_COLUMNS = {
    "channel": "channel",
    "status": "status",
    "queue": "from",
    "waiting": "waiting",
    "oldest_put_at": "oldest put",
    "number": "last batch",
    "in_doubt": "in doubt",
    "messages": "messages sent",
    "sent_at": "last sent",
    "error": "trouble",
}
RECEIVED_COLUMNS = {
    "channel": "channel",
    "manager": "from",
    "number": "last batch",
    "messages": "messages in it",
    "received_at": "received",
}
RESTART_SECONDS = 1.0
IN_THE_WAY = ("retrying", "paused")  # a run notes these before it waits and tries again


channel_names = completes(lambda qm: [one.name for one in channels.channels(qm)])
home_server_names = completes(lambda qm: [one.name for one in qm.queues() if one.type == "home_server"])
NAME = click.argument("name", shell_complete=channel_names)
takes_attributes = takes_attributes_of(
    {name: one for name, one in CHANNEL_ATTRIBUTES.items() if name not in ("name", "type")}
)


@click.group("channel", cls=CommandGroup, epilog="Example: inorder channel run TO.B --store a.db")
def channel() -> None:
    """Define and run channels, which carry messages to other queue managers in order, each exactly once."""


@channel.command(
    "create", example="inorder channel create TO.B --transmission-queue B --connection /var/b.db --store a.db"
)
@click.argument("name")
@click.option("--type", "kind", type=click.Choice(("sender", "receiver")), default="sender", show_default=True,
              help=CHANNEL_ATTRIBUTES["type"].doc)  # fmt: skip
@takes_attributes
@takes_store
def create(run: Run, name: str, kind: Any, changes: dict[str, Any]) -> None:
    """Define a channel. NAME is 1 to 20 characters out of A-Z a-z 0-9 . / _ %"""
    with run.opened() as qm:
        channels.define_channel(qm, name, kind, **changes)
    run.output.tell({"channel": name, "type": kind, "done": "created"}, f"created {kind} channel {name}")


@channel.command("alter", example="inorder channel alter TO.B --batch-size 200 --store a.db")
@NAME
@takes_attributes
@takes_store
def alter(run: Run, name: str, changes: dict[str, Any]) -> None:
    """Change attributes; a running channel uses them from its next start."""
    alter_object(run, "channel", name, changes, channels.alter_channel)


@channel.command("delete", example="inorder channel delete TO.B --store a.db")
@NAME
@takes_store
def delete(run: Run, name: str) -> None:
    """Delete the definition of a channel. It must not be running or have a batch in doubt."""
    with run.opened() as qm:
        channels.delete_channel(qm, name)
    run.output.tell({"channel": name, "done": "deleted"}, f"deleted channel {name}")


@channel.command("show", example="inorder channel show TO.B --store a.db")
@NAME
@takes_store
def show(run: Run, name: str) -> None:
    """Show a channel's attributes."""
    with run.opened() as qm:
        found, identifier = channels.channel(qm, name), channels.identifier(qm)
    values = {one: value for one, value in asdict(found).items() if found.type in CHANNEL_ATTRIBUTES[one].applies_to}
    if run.output.as_json:
        run.output.line({**values, "store": identifier})
        return
    run.output.attributes((one, words(value), CHANNEL_ATTRIBUTES[one].mqsc) for one, value in values.items())
    if found.type == "sender":
        run.output.note(f"the definition of its receiver elsewhere names this store as --sender {identifier}")


@channel.command("list", example="inorder channel list --store a.db")
@takes_store
def list_channels(run: Run) -> None:
    """List the channels that are defined here."""
    with run.opened() as qm:
        records = [_defined(one) for one in channels.channels(qm)]
    run.output.listing(records, COLUMNS, nothing="no channel is defined")


def _defined(one: ChannelAttributes) -> dict[str, Any]:
    values = asdict(one)
    return {"channel": one.name} | {name: values[name] for name in COLUMNS if name != "channel"}


@channel.command("status", example="inorder channel status --store a.db")
@click.option(
    "--received",
    is_flag=True,
    help="Show the channels that send to this queue manager instead, and the last batch of each.",
)
@takes_store
def status(run: Run, received: bool) -> None:
    """Show each channel's status, its batch in doubt and the messages that wait for it."""
    with run.opened() as qm:
        if received:
            records, columns = [_received(one) for one in channels.received(qm)], RECEIVED_COLUMNS
        else:
            records, columns = [record_of_channel(one) for one in channels.status(qm)], STATUS_COLUMNS
    run.output.listing(
        records, columns, nothing="no channel has sent anything here" if received else "no channel is defined"
    )


def record_of_channel(one: ChannelNow) -> dict[str, Any]:
    """The status of a channel for programs."""
    values = one._asdict()
    times = {name: values[name] and when(values[name]) for name in ("oldest_put_at", "sent_at", "changed_at")}
    return {"channel": values.pop("name"), **values, **times}


def _received(one: Received) -> dict[str, Any]:
    sender = one.sender
    return {
        "channel": sender.channel,
        "manager": sender.manager,
        "identifier": sender.identifier,
        "incarnation": sender.incarnation,
        "number": one.number,
        "messages": one.messages,
        "epoch": one.epoch,
        "received_at": when(one.received_at),
    }


# --- addresses of MQ


ADDRESS_COLUMNS = {"address": "address of MQ", "connection": "connection"}


@channel.command("map", example="inorder channel map 'paris.example(1414)' PARIS --store london.db")
@click.argument("address", required=False)
@click.argument("name", required=False, metavar="[CONNECTION]", shell_complete=connection_names)
@takes_store
def map_address(run: Run, address: str | None, name: str | None) -> None:
    """Map an address of MQ, CONNAME('host(port)'), to a named connection for channels; without arguments, list the map.

    An MQSC script can then define its channels unchanged.
    """
    if address is not None and name is None:
        raise click.UsageError("Name the connection, too: inorder channel map ADDRESS CONNECTION.")
    with run.opened() as qm:
        if address is None or name is None:
            records = [{"address": key, "connection": value} for key, value in channels.addresses(qm).items()]
            run.output.listing(records, ADDRESS_COLUMNS, nothing="no address is mapped")
            return
        channels.map_address(qm, address, name)
    run.output.tell({"address": address, "connection": name, "done": "mapped"}, f"{address} is connection {name}")


@channel.command("unmap", example="inorder channel unmap 'paris.example(1414)' --store london.db")
@click.argument("address")
@takes_store
def unmap_address(run: Run, address: str) -> None:
    """Remove an address of MQ from the table."""
    with run.opened() as qm:
        channels.unmap_address(qm, address)
    run.output.tell({"address": address, "done": "removed"}, f"removed {address}")


# --- running


@channel.command("run", example="inorder channel run TO.B TO.C --store a.db")
@click.argument("names", nargs=-1, required=True, shell_complete=channel_names)
@click.option(
    "--until-empty", is_flag=True, help="End when nothing is left to send. A channel that is retrying keeps going."
)
@takes_exits
@takes_store
@click.pass_context
def run_channels(
    context: click.Context, run: Run, names: tuple[str, ...], until_empty: bool, exits: tuple[str, ...]
) -> None:
    """Run channels until Ctrl-C, which ends each after its current batch.

    Several processes may run one channel: one sends, and another takes over when it dies. A stopped channel resumes
    when it is started. When a channel retries, standard error gives the reason.
    """
    check_exits(exits)
    with run.opened() as qm, ends_by_signal() as ends, ExitStack() as stack:
        for name in names:
            channels.channel(qm, name)
        alone = len(names) == 1
        carriers = (
            _Carrier(run, stack.enter_context(qm.connect()), name, ends, until_empty, exits, alone=alone)
            for name in names
        )
        failed = run_all([(f"channel {one.name}", one.run) for one in carriers])
    if failed is not None:
        raise failed
    context.exit(0)


@channel.command("pull", example="inorder channel pull HUB --until-empty --store a.db")
@click.argument("names", nargs=-1, required=True, metavar="QUEUE...", shell_complete=home_server_names)
@click.option("--until-empty", is_flag=True, help="Collect now, and end when nothing is left to collect.")
@takes_exits
@takes_store
def pull(run: Run, names: tuple[str, ...], until_empty: bool, exits: tuple[str, ...]) -> None:
    """Collect messages for home-server queues until Ctrl-C.

    A queue collects when it is triggered, and with an interval also by itself. If its home server cannot be reached, it
    stops until it is triggered, or with --retry until the interval is over; standard error gives the reason.
    """
    check_exits(exits)
    with run.opened() as qm, ends_by_signal() as ends, ExitStack() as stack:
        pullers = (_Puller(run, stack.enter_context(qm.connect()), name, ends, until_empty, exits) for name in names)
        failed = run_all([(f"home-server queue {one.name}", one.run) for one in pullers], ends)
    if failed is not None:
        raise failed


@channel.command("trigger", example="inorder channel trigger HUB --store a.db")
@click.argument("name", metavar="QUEUE", shell_complete=home_server_names)
@takes_store
def trigger(run: Run, name: str) -> None:
    """Make a home-server queue collect now, also if it was stopped because its home server could not be reached."""
    with run.opened() as qm:
        channels.trigger_transmission(qm, name)
    run.output.tell({"queue": name, "done": "triggered"}, f"triggered {name}")


class _Puller:
    """Collects for one home-server queue until the program ends."""

    def __init__(
        self, run: Run, qm: QueueManager, name: str, ends: threading.Event, until_empty: bool, exits: tuple[str, ...]
    ) -> None:
        self._run, self._qm, self.name, self._ends, self._until_empty = run, qm, name, ends, until_empty
        self._exits, self._noted, self._told = exits, "", ""

    def run(self) -> None:
        observation = self._qm.inspect.observe(self._hear)
        try:
            now = channels.pull(self._qm, self.name, until_empty=self._until_empty, wait=self._wait, exits=self._exits)
            self._run.output.note(f"{self.name}: {now.status}")
        finally:
            observation.cancel()

    def _hear(self, event: StoreEvent) -> None:
        if event.name == "inorder.note_home_server" and event.metadata.get("queue") == self.name:
            self._noted = str(event.metadata.get("status"))

    def _wait(self, seconds: float) -> bool:
        """Prints the status if it has changed, then waits."""
        if self._noted != self._told and (self._noted == "paused" or not self._until_empty):
            self._told = self._noted
            for now in [one for one in channels.status(self._qm) if one.queue == self.name]:
                why = f": {now.error}" if now.error else ""
                then = "; trigger it when the problem is solved" if now.status == "stopped" else ""
                self._run.output.note(f"{self.name}: {now.status}{why}{then}")
        return self._ends.wait(seconds)


class _Carrier:
    """Runs one channel again and again until the program ends."""

    def __init__(
        self, run: Run, qm: QueueManager, name: str, ends: threading.Event, until_empty: bool, exits: tuple[str, ...],
        *, alone: bool,
    ) -> None:  # fmt: skip
        self._exits = exits
        self._run, self._qm, self.name, self._ends, self._until_empty = run, qm, name, ends, until_empty
        self._is_alone = alone  # the command runs no other channel
        self._noted, self._told = "", ""  # the status that the run noted last, and the text that was printed last

    def run(self) -> None:
        observation = self._qm.inspect.observe(self._hear)
        try:
            self._carry()
        finally:
            observation.cancel()

    def _carry(self) -> None:
        while not self._ends.is_set():
            failure: InorderError | None = None
            try:
                now = channels.run_channel(
                    self._qm, self.name, until_empty=self._until_empty, wait=self._wait, exits=self._exits
                )
                text = f"{self.name}: {now.status}, {count(now.messages, 'message')} sent"
            except (ChannelStopped, ObjectInUse) as waits:
                text = str(waits)
                if self._until_empty:
                    failure = waits
            except InorderError as error:
                text = str(error)
                if self._until_empty or not self._may_be_started(error):
                    failure = error
                if error.data.get("must_reopen"):
                    self._ends.set()  # only a new process can recover from it
            if failure is None or not self._is_alone:  # the command prints the error of the first that failed
                self._tell(text)
            if failure is not None:
                raise failure
            if self._until_empty:
                return
            self._ends.wait(RESTART_SECONDS)

    def _hear(self, event: StoreEvent) -> None:
        if event.name == "inorder.note_channel" and event.metadata.get("channel") == self.name:
            self._noted = str(event.metadata.get("status"))

    def _wait(self, seconds: float) -> bool:
        """Prints the problem that the run noted, or that it is over, then waits for the next try."""
        noted, self._noted = self._noted, ""
        if noted in IN_THE_WAY:
            with contextlib.suppress(InorderError):  # only the run itself handles errors of the store
                now = next(one for one in channels.status(self._qm) if one.name == self.name)
                lasts = "; it keeps trying until Ctrl-C" if noted == "retrying" else ""
                self._tell(f"{self.name}: {now.status}: {now.error}{lasts}")
        elif noted and self._told:
            self._tell(f"{self.name}: {noted}")
        return self._ends.wait(seconds)

    def _tell(self, text: str) -> None:
        """Prints a note unless it repeats the last one."""
        if text != self._told:
            self._run.output.note(text)
            self._told = text

    def _may_be_started(self, error: InorderError) -> bool:
        """Whether the channel stopped and waits for an operator; otherwise the problem is on this side."""
        if isinstance(error, QueueCondition):
            return True
        if error.data.get("must_reopen"):
            return False
        with contextlib.suppress(StoreError):
            return any(one.name == self.name and one.stop for one in channels.status(self._qm))
        return False


# --- commands for operators


@channel.command("start", example="inorder channel start TO.B --store a.db")
@NAME
@takes_store
def start(run: Run, name: str) -> None:
    """Let a stopped channel run again; its runner resumes."""
    with run.opened() as qm:
        channels.start_channel(qm, name)
    run.output.tell({"channel": name, "done": "started"}, f"{name} may run")


@channel.command("stop", example="inorder channel stop TO.B --store a.db")
@NAME
@click.option("--mode", type=click.Choice(channels.defining.STOP_MODES), default="quiesce", show_default=True,
              help="End it after its batch, at its next call, or without waiting for it.")  # fmt: skip
@takes_store
def stop(run: Run, name: str, mode: Any) -> None:
    """Stop a channel. It does not run again until you start it."""
    with run.opened() as qm:
        channels.stop_channel(qm, name, mode)
    run.output.tell({"channel": name, "done": "stopped", "mode": mode}, f"asked {name} to stop ({mode})")


@channel.command("ping", example="inorder channel ping TO.B --store a.db")
@NAME
@takes_store
def ping(run: Run, name: str) -> None:
    """Check that a channel reaches its other side, and show that queue manager's name."""
    with run.opened() as qm:
        manager = channels.ping_channel(qm, name)
    run.output.tell({"channel": name, "manager": manager}, f"{name} reached queue manager {manager}")


@channel.command("reset", example="inorder channel reset TO.B --number 1 --store a.db")
@NAME
@click.option("--number", type=int, default=1, show_default=True, help="The number of the next batch.")
@says_yes
@takes_store
def reset(run: Run, name: str, number: int, yes: bool) -> None:
    """Set the number of the next batch, after a sequence error. The other side adopts it when the channel next runs."""
    run.output.confirm(
        f"Reset {name}? Messages that the receiver lacks stay lost, and messages sent again arrive twice.", yes=yes
    )
    with run.opened() as qm:
        channels.reset_channel(qm, name, number)
    run.output.tell({"channel": name, "number": number}, f"the next batch of {name} is {number}")


@channel.command("resolve", example="inorder channel resolve TO.B --store a.db")
@NAME
@click.option(
    "--action",
    type=click.Choice(("commit", "back_out")),
    help="The outcome that you expect. The receiver is still asked.",
)
@click.option(
    "--force", is_flag=True, help="Do --action even if the receiver cannot be reached or does not know the batch."
)
@says_yes
@takes_store
def resolve(run: Run, name: str, action: Any, force: bool, yes: bool) -> None:
    """Ask the receiver about the batch in doubt, then confirm it or return it to its place."""
    if force:
        run.output.confirm(
            f"Resolve {name} without the receiver? Committing loses messages that the receiver lacks; backing out "
            f"duplicates those it has.",
            yes=yes,
        )
    with run.opened() as qm:
        done = channels.resolve_channel(qm, name, action, force=force)
    text = "confirmed" if done == "commit" else "back in its place"
    run.output.tell({"channel": name, "action": done, "forced": force}, f"the batch of {name} is {text}")
