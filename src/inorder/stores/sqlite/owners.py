"""Who has the store open: processes, their connections and handles, and what is done when they are gone.

A process holds a lock of the operating system as long as it lives. Whoever finds one dead backs out its units of
work, frees its browse locks and closes its handles (B-32, B-48); named units stay.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from ...options import OpenOptions
from ...rules.lifecycle import Event, Lock
from ...rules.puts import Program
from ..base import Opened
from ..catalog import ToOpen
from .catalog import SqliteCatalog
from .codec import Codec
from .handles import SqliteConnection, SqliteHandle
from .home import Home
from .points import reached
from .shelf import NARROW_COLUMNS, SqliteQueue
from .staged import drop_staging
from .statements import by_id, statement
from .transaction import SqliteTransaction
from .units import unit_of
from .verb import Verb

PROCESSES = statement("processes")
BEGIN_PROCESS = statement("begin process")
END_PROCESS = statement("end process")
END_OTHER_PROCESSES = statement("end other processes")
ALL_CONNECTIONS = statement("all connections")
BOOT = statement("boot")
SET_BOOT = statement("set boot")
CONNECTIONS_OF_PROCESS = statement("connections of process")
BEGIN_CONNECTION = statement("begin connection")
END_CONNECTION = statement("end connection")
BEGIN_HANDLE = statement("begin handle")
EXTEND_HANDLE = statement("extend handle")
END_HANDLE = statement("end handle")
HANDLES_OF_CONNECTION = statement("handles of connection")
UNIT_OF_CONNECTION = statement("unit of connection")
LOCKED_BY_HANDLE = statement("locked by handle", columns=NARROW_COLUMNS)
CO_OPERATING = statement("co-operating")
END_MARKS = statement("end marks")
END_MARKS_FOR_ALL = statement("end marks for all")
END_WAIT = statement("end wait")
END_EDGES = statement("end edges")
LEAVE_CONTENTS_OF_QUEUE = statement("leave contents of queue")
REMOVE_MESSAGES_OF_QUEUE = statement("remove messages of queue")
END_UNITS_OF_QUEUE = statement("end units of queue")
END_CLAIMS_OF_QUEUE = statement("end claims of queue")
END_ACCOUNTS_OF_QUEUE = statement("end accounts of queue")
END_ENTRIES_OF_QUEUE = statement("end entries of queue")
END_LOCKS_OF_QUEUE = statement("end locks of queue")
STAGINGS_OF_QUEUE = statement("stagings of queue")
FORGET_LEDGER_OF_QUEUE = statement("forget ledger of queue")
END_TALLY = statement("end tally")
UNDEFINE = statement("undefine")
LOCAL_QUEUES = statement("local queues")
NONPERSISTENT_OF_QUEUE = statement("nonpersistent of queue")
FORGET_MESSAGE = statement("forget message")
REMOVE = by_id("remove")
REMOVE_CONTENT = by_id("remove content")
SKIP_RESERVED = statement("skip reserved")


T = TypeVar("T")


# --- processes


def begin(home: Home) -> None:
    """This process has the store open from now on; if nobody else has, that is a start of the queue manager."""
    with Verb(home, though_stopped=True) as verb:
        home.codec = verb.codec = Codec(SqliteCatalog(verb).manager.name)
        is_start = not home.database.any_owner_alive()
        if is_start:
            _skip_what_may_be_lost(home, verb)
        home.process = next(verb.numbers)
        verb.execute(BEGIN_PROCESS, (home.process,))
        home.database.hold_owner(home.process)
        if is_start:
            start(home, verb)
    if not is_start:
        bury_dead(home)


def end(home: Home) -> None:
    """This process has the store open no more."""
    with Verb(home, though_stopped=True) as verb:
        for owner in list(home.connections):
            abandon(home, verb, owner)
        verb.execute(END_PROCESS, (home.process,))


def _skip_what_may_be_lost(home: Home, verb: SqliteTransaction) -> None:
    """If the machine has lost power, numbers that were told and not synced are passed over (B-2)."""
    boot = _boot()
    if home.database.may_have_lost or not boot or boot != verb.value(BOOT):
        verb.execute(SKIP_RESERVED)
        verb.execute(SET_BOOT, (boot,))


def _boot() -> str:
    """Names the run of this machine; empty where the machine does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def start(home: Home, verb: SqliteTransaction) -> None:
    """What a start of the queue manager does: whoever was connected is dead, non-persistent messages go (R1.5, R5.11).

    Unless their queue keeps them or a named unit holds them: then they go if it is undone.
    """
    for owner, *_ in verb.execute(ALL_CONNECTIONS).fetchall():
        abandon(home, verb, owner)
    verb.execute(END_OTHER_PROCESSES, (home.process,))
    for (number,) in verb.execute(LOCAL_QUEUES).fetchall():
        queue = verb.queue(number)
        verb.touch(queue)
        if queue.attributes.nonpersistent_class == "high":
            continue
        for message, state, is_held in verb.execute(NONPERSISTENT_OF_QUEUE, (number,)).fetchall():
            if is_held:
                verb.change(FORGET_MESSAGE, (message,))
            else:
                verb.change_each(REMOVE, [message], state)
                verb.execute_each(REMOVE_CONTENT, [message])
                queue.count(-1)
    home.has_leftovers = True


def bury_dead(home: Home) -> bool:
    """Ends the connections of processes that are dead, whose leftovers are ours then; whether there were any."""
    with Verb(home, writes=False, though_stopped=True) as verb:
        others = [number for (number,) in verb.execute(PROCESSES, (home.process,))]
    dead = [number for number in others if not home.database.is_alive(number)]
    for process in dead:
        with Verb(home, though_stopped=True) as verb:
            connections = verb.execute(CONNECTIONS_OF_PROCESS, (process,)).fetchall()
            for owner, *_ in connections:
                abandon(home, verb, owner)
                reached("reaping")
            verb.execute(END_PROCESS, (process,))
        home.has_leftovers = True
        home.teller.tell_of_deaths(Program(user, program) for _, user, program in connections)
    return bool(dead)


# --- connections


def connect(home: Home, verb: SqliteTransaction, program: Program) -> int:
    """A new connection of this process."""
    connection = SqliteConnection(next(verb.numbers), program)
    verb.execute(BEGIN_CONNECTION, (connection.id, home.process, program.user, program.name))
    home.connections[connection.id] = connection
    verb.restore.append(lambda: home.connections.pop(connection.id))
    return connection.id


def abandon(home: Home, verb: SqliteTransaction, owner: int) -> None:
    """A connection ends, of this process or of a dead one: its unit is backed out, its handles are closed."""
    found = next(verb.execute(UNIT_OF_CONNECTION, (owner,)), None)
    if found is not None:
        own = home.session_units.get(found[0])
        verb.settle(unit_of(found) if own is None else own, "back_out")
        _forget(verb, home.session_units, found[0])
    for handle, queue, _, made_temporary in verb.execute(HANDLES_OF_CONNECTION, (owner,)).fetchall():
        _end_handle(home, verb, handle, queue, made_temporary=bool(made_temporary))
    verb.execute(END_WAIT, (owner,))
    verb.execute(END_EDGES, (owner,))
    verb.execute(END_CONNECTION, (owner,))
    _forget(verb, home.connections, owner)


def _forget(verb: SqliteTransaction, kept: dict[int, T], number: int) -> None:
    """This process keeps it no more, if the transaction succeeds."""
    if number in kept:
        one = kept.pop(number)
        verb.restore.append(lambda: kept.__setitem__(number, one))


# --- handles


def open_handle(
    home: Home,
    verb: SqliteTransaction,
    connection: SqliteConnection,
    name: str,
    options: OpenOptions,
    dynamic_name: str,
) -> Opened:
    """Opens a queue (R4.1 to R4.4)."""
    catalog = SqliteCatalog(verb)
    found: ToOpen = catalog.to_open(
        name,
        options,
        dynamic_name,
        open_already=len(connection.by_id),
        handles_max=catalog.manager.max_handles,
    )
    handle = SqliteHandle(
        id=next(verb.numbers),
        connection=connection,
        name=found.name,
        options=options,
        exclusive=found.exclusive,
        made_temporary_queue=found.made_temporary,
        queue=catalog.number(found.queue),
        queue_name=found.queue,
    )
    verb.execute(
        BEGIN_HANDLE,
        (
            handle.id,
            connection.id,
            handle.queue,
            handle.name,
            options.input is not None,
            options.output,
            options.co_op,
            handle.exclusive,
            handle.made_temporary_queue,
        ),
    )
    connection.by_id[handle.id] = home.handles[handle.id] = handle
    verb.restore.append(lambda: (connection.by_id.pop(handle.id), home.handles.pop(handle.id)))
    return Opened(handle.id, found.name, found.queue, options, handle.queue)


def extend_handle(verb: SqliteTransaction, handle: SqliteHandle, options: OpenOptions) -> Opened:
    """Opens a handle for more than before."""
    queue = verb.queue(handle.queue, handle.queue_name, handle.name)
    before = handle.options, handle.exclusive

    def restore() -> None:
        handle.options, handle.exclusive = before

    verb.restore.append(restore)
    if options.input and not handle.options.input:
        handle.exclusive = SqliteCatalog(verb).is_exclusive(queue.attributes, options, handle.id)
    handle.options = options
    verb.execute(EXTEND_HANDLE, (options.input is not None, options.output, options.co_op, handle.exclusive, handle.id))
    return Opened(handle.id, handle.name, handle.queue_name, options, handle.queue)


def close_handle(home: Home, verb: SqliteTransaction, handle: SqliteHandle) -> None:
    """Closes a handle of this process."""
    _end_handle(home, verb, handle.id, handle.queue, made_temporary=handle.made_temporary_queue)


def _end_handle(home: Home, verb: SqliteTransaction, handle: int, number: int, *, made_temporary: bool) -> None:
    """With a handle go its locks and marks, the last of the cooperating set's, and its temporary queue."""
    one = home.handles.get(handle)
    if one is not None:
        _forget(verb, home.connections[one.connection.id].by_id, handle)
        _forget(verb, home.handles, handle)
    if verb.exists(number):
        _end_holds(verb, handle, number)
        if made_temporary:
            vanish(home, verb, number)
    verb.execute(END_MARKS, (handle,))  # also on a queue that was deleted under the handle
    verb.execute(END_HANDLE, (handle,))


def _end_holds(verb: SqliteTransaction, handle: int, number: int) -> None:
    """What a handle keeps from others on its queue."""
    queue = verb.queue(number)
    for columns in verb.execute(LOCKED_BY_HANDLE, (handle,)).fetchall():
        verb.step(queue, queue.row_of(columns), Event.UNLOCK, lock=Lock.RIGHT)
    verb.leave_all(queue, handle)
    if next(verb.execute(CO_OPERATING, (number, handle)), None) is None:
        verb.execute(END_MARKS_FOR_ALL, (number,))


# --- queues that go


def vanish(home: Home, verb: SqliteTransaction, number: int) -> None:
    """A queue goes, with all that is on it."""
    clear(home, verb, verb.queue(number))
    verb.execute(END_CLAIMS_OF_QUEUE, (number,))
    verb.execute(END_ACCOUNTS_OF_QUEUE, (number,))
    for unit, messages, size in verb.execute(STAGINGS_OF_QUEUE, (number,)).fetchall():
        drop_staging(verb, unit, messages, size)
    verb.execute(FORGET_LEDGER_OF_QUEUE, (number,))
    verb.execute(END_UNITS_OF_QUEUE, (number,))
    verb.execute(END_ENTRIES_OF_QUEUE, (number,))
    verb.execute(END_TALLY, (number,))
    undefine(verb, SqliteCatalog(verb), number)


def clear(home: Home, verb: SqliteTransaction, queue: SqliteQueue) -> int:
    """All messages of a queue go, in whatever state, with the lock ids that hold them; how many were in its depth."""
    verb.touch(queue)
    verb.execute(LEAVE_CONTENTS_OF_QUEUE, (queue.id,))
    verb.execute(REMOVE_MESSAGES_OF_QUEUE, (queue.id,))
    verb.execute(END_LOCKS_OF_QUEUE, (queue.id,))
    removed = queue.depth
    queue.count(-removed)
    home.has_leftovers = True
    return removed


def undefine(verb: SqliteTransaction, catalog: SqliteCatalog, number: int) -> None:
    """A definition goes."""
    verb.execute(UNDEFINE, (number,))
    catalog.changed()
