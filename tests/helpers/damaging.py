"""A small store with a row in every table, functions that damage it, and calls of every kind on a damaged store."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import apsw
from tests.helpers.claiming import ALL, GROUPS, PHYSICAL, Application, stretch_pages
from tests.helpers.staged import KEY, Writer
from tests.helpers.support import put_group

import inorder
from inorder import Flags, Match, Message, QueueManager, Report
from inorder.errors import InorderError, StoreDamaged
from inorder.model.message import Transmission
from inorder.model.options import GetOptions
from inorder.mq import channels
from inorder.mq.channels.sides import Receiver
from inorder.rules.ordering import UNSET
from inorder.stores.memory import MemoryStore
from inorder.stores.seam.channel_records import BodyPiece, ChannelBatch
from inorder.stores.seam.records import LedgerKey, SurveyRequest
from inorder.stores.seam.tables import Branch
from inorder.stores.sql.attention import EDGES
from inorder.stores.sqlite import SqliteStore
from inorder.stores.sqlite.checking import problems
from inorder.stores.sqlite.database import Database
from inorder.stores.sqlite.statements import LADDER, SCHEMA
from inorder.testing import ManualClock

WHOLE, UNTOUCHED, UNFINISHED, LONG = (name.ljust(24) for name in (b"whole", b"untouched", b"unfinished", b"long"))
IN, LAST = Flags.IN_GROUP, Flags.LAST_IN_GROUP
MANAGER = "INSERT INTO manager (id, attributes) VALUES (1, '{}');"


def fill(path: Path) -> None:
    """Makes the store: messages put in every way, and work in progress of programs that were connected at the copy."""
    made = path.with_suffix(".made")
    store = SqliteStore(made, clock=ManualClock(1000.0))
    qm = inorder.connect(store, program="test")
    qm.create_queue("Q", max_length=1_000_000)
    qm.create_queue("A", type="alias", base_queue="Q")
    qm.create_queue("M", type="model")
    qm.create_queue("COMMIT", order="commit")
    _put_all(qm)
    _report_and_trigger(qm)
    _carry_both_ways(store, qm)
    for last in channels.received(qm):
        store.receive_piece(last.sender, last.epoch, BodyPiece(b"next", 0, b"d" * 32, 9, 0, b"piece"))
    _come_through_a_door(store, qm)
    _hold_some(qm)
    other = qm.connect(program="other")
    reader = other.open("Q", input="shared", browse=True, co_op=True)
    reader.browse_first(match=Match(priority=6), mark_handle=True)
    reader.browse_first(match=Match(priority=7), mark_co_op=True)
    reader.browse_first(match=Match(priority=5), lock=True)
    reader.get(logical=True, match=Match(group_id=WHOLE))
    app = Application(store)
    app.claim(0, PHYSICAL, most=2)
    writer = Writer(store, qm)
    writer.put([b"settled"])
    writer.stage(
        "two",
        [b"s1", b"s2" * 10],
        group_key="aa",
        order_key=[2, 1],
        report=[0, int(Report.COA)],
        reply_to_queue=[None, "A"],
    )
    qm.internals.sample()
    store.begin_global(qm._session.owner, [Branch("OWNER", "PARIS")])
    store.database.connection.execute("VACUUM INTO ?", (str(path),)).fetchall()
    qm.internals.abandon()
    store.close_store()
    _add_what_cannot_be_copied(path)


def _put_all(qm: QueueManager) -> None:
    for group_id, flags in ((WHOLE, LAST), (UNTOUCHED, LAST), (UNFINISHED, IN)):
        qm.put("Q", b"1", group_id=group_id, sequence_number=1, flags=IN)
        qm.put("Q", b"22", group_id=group_id, sequence_number=2, flags=flags)
    for number, flags in ((1, Flags.SEGMENT), (2, Flags.LAST_SEGMENT)):
        offset = 0 if number == 1 else 3
        qm.put("Q", b"abc", group_id=LONG, sequence_number=1, offset=offset, flags=flags)
    qm.put("Q", b"", priority=9)
    for priority in range(1, 8):
        qm.put("Q", b"body %d" % priority, priority=priority, correlation_id=b"c", message_id=b"%d" % priority)
    qm.put("Q", b"z" * 5000, delay=5.0, expiry=10.0)
    qm.put("Q", b"never", persistent=False, put_application_name="app", format="MQSTR")


def _report_and_trigger(qm: QueueManager) -> None:
    """Puts reports and trigger messages, and a report that cannot be delivered."""
    qm.create_queue("INITIATION")
    qm.admin.create_process("P", application_id="program")
    qm.create_queue("TRIGGERS", trigger_control=True, trigger_type="every", initiation_queue="INITIATION", process="P")
    for reply_to in ("A", "NOWHERE"):
        qm.put("TRIGGERS", b"asks", report=Report.COA, reply_to_queue=reply_to)


def _carry_both_ways(store: SqliteStore, qm: QueueManager) -> None:
    """Sends one batch to another queue manager, and receives one from it."""
    there = MemoryStore("OTHER", ManualClock(1000.0))
    with inorder.connect(there, program="there") as other:
        other.create_queue("COMMIT")
        for source, to, target in ((qm, "OTHER", there), (other, store.name, store)):
            source.create_queue(to, usage="transmission")
            source.put("COMMIT", b"carried", manager=to)
            channels.define_channel(source, f"TO.{to}", transmission_queue=to, connection=to)
            _carry(source, f"TO.{to}", target)


def _carry(source: QueueManager, channel: str, target: MemoryStore | SqliteStore) -> None:
    """Runs until there is nothing more, or until the next try would be delayed."""
    channels.run_channel(
        source,
        channel,
        until_empty=True,
        wait=lambda seconds: seconds > 0,
        connects=lambda _: Receiver(inorder.connect(target, program="channel")),
    )


def _come_through_a_door(store: SqliteStore, qm: QueueManager) -> None:
    """Makes a lease that holds a message, a failed log-in, a user, a token and a recorded act."""
    qm.accounts.create_user("alice", roles=["reader"])
    qm.accounts.create_token("alice", "ci")
    store.try_log_in(["user:alice"])
    with qm.accounts.acting("clear", "Q", user="alice", address="::1") as acting:
        acting.messages = 3
    with qm.lease(seconds=60.0):
        qm.put("COMMIT", b"leased")


def _hold_some(qm: QueueManager) -> None:
    qm.put("COMMIT", b"once", deduplicate="key")
    qm.browse_and_lock("Q", Match(priority=1), confirm_id=8, lease=60.0)
    qm.get("Q", match=Match(priority=2), confirm_id=7)
    qm.put("Q", b"unconfirmed", confirm_id=6)
    qm.get("Q", match=Match(priority=3), syncpoint=True)
    qm.put("Q", b"prepared", syncpoint=True)
    qm.prepare("in doubt")
    qm.get("Q", match=Match(priority=4), syncpoint=True)
    qm.put("COMMIT", b"later", syncpoint=True, deduplicate="later")


def _add_what_cannot_be_copied(path: Path) -> None:
    """Adds a waiting call and a content that is to be removed."""
    with contextlib.closing(apsw.Connection(str(path))) as copy:
        one = "(SELECT id FROM connection LIMIT 1)"
        queue = "(SELECT id FROM definition WHERE name = 'Q')"
        pending = json.dumps(["in", [0, 1, 0], 1, "test", 0.0, False])
        copy.execute(f"INSERT INTO wait VALUES ({one}, {queue}, ?, 0, '[[1]]')", (pending,))
        copy.execute(f"UPDATE tally SET attention = attention | {EDGES} WHERE queue = {queue}")
        copy.execute("INSERT INTO leftover VALUES (999999)")
        copy.execute("PRAGMA journal_mode = WAL")


# --- damage


def damage(path: Path, *statements: str) -> bool:
    """Runs statements on a store although its schema forbids them; False if a unique key prevented them."""
    with contextlib.closing(_raw(path)) as raw:
        schema = raw.execute("SELECT rowid, sql FROM sqlite_schema WHERE type = 'table'").fetchall()
        raw.execute("PRAGMA writable_schema = ON")
        raw.executemany(
            "UPDATE sqlite_schema SET sql = ?2 WHERE rowid = ?1", [(row, _loose(str(sql))) for row, sql in schema]
        )
    try:
        with contextlib.closing(_raw(path)) as raw:
            raw.execute("PRAGMA ignore_check_constraints = ON")
            for one in statements:
                raw.execute(one)
        return True
    except (apsw.ConstraintError, apsw.MismatchError):
        return False
    finally:
        with contextlib.closing(_raw(path)) as raw:
            raw.execute("PRAGMA writable_schema = ON")
            raw.executemany("UPDATE sqlite_schema SET sql = ?2 WHERE rowid = ?1", schema)


def _raw(path: Path) -> apsw.Connection:
    raw = apsw.Connection(str(path))
    raw.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    return raw


def _loose(sql: str) -> str:
    """Returns the definition of the same table with untyped, nullable columns."""
    kept = sql.replace("INTEGER PRIMARY KEY", "\0").replace(") STRICT, ", ") ").replace(") STRICT", ")")
    kept = re.sub(r" (INTEGER|REAL|TEXT|BLOB)( NOT NULL)?\b", "", kept)
    return kept.replace("\0", "INTEGER PRIMARY KEY")


# --- calls


def found_by_check(path: Path) -> list[str]:
    """Returns the problems that the check finds in a store that is not open."""
    try:
        database = Database(path, schema=SCHEMA + MANAGER, ladder=LADDER)
    except StoreDamaged as error:
        return [error.args[0]]
    try:
        return problems(database)
    finally:
        database.close()


def troubles(path: Path) -> Iterator[str]:
    """Makes calls of every kind on a store; yields each error that is not one of the package's own."""
    clock = ManualClock(1002.0)
    try:
        store = SqliteStore(path, clock=clock)
    except InorderError:
        return
    except Exception as error:  # noqa: BLE001 - the test asks which error it is
        yield f"opening: {error!r}"
        return
    try:
        for name, call in CALLS.items():
            if name == "later":
                clock.advance(100.0)
            try:
                qm = inorder.connect(store, program="test")
                try:
                    call(store, qm)
                finally:
                    with contextlib.suppress(InorderError):
                        qm.back_out()
                    qm.close()
            except InorderError:
                pass
            except Exception as error:  # noqa: BLE001 - as above
                yield f"{name}: {error!r:.300}"
    finally:
        try:
            store.close_store()
        except InorderError:
            pass
        except Exception as error:  # noqa: BLE001 - as above
            yield f"closing: {error!r}"


def _each(*calls: Callable[[], object]) -> None:
    """Makes all calls, and ignores the package's own errors."""
    for call in calls:
        with contextlib.suppress(InorderError):
            call()


def _look_around(store: SqliteStore, qm: QueueManager) -> None:
    _each(
        qm.queues,
        qm.inspect.overview,
        qm.inspect.dropped,
        qm.internals.sample,
        lambda: qm.internals.history("Q", "day"),
        qm.inspect.units,
        qm.inspect.waits,
        qm.inspect.locks,
        qm.bulk.claims,
        lambda: qm.inspect.order_view("Q"),
        lambda: qm.inspect.status("Q"),
        lambda: qm.depth("A"),
        lambda: list(qm.inspect.look("Q")),
        lambda: list(qm.inspect.look("Q", order="logical")),
        lambda: list(qm.inspect.look("COMMIT")),
        lambda: qm.inspect.gaps("Q", UNFINISHED),
        lambda: qm.bulk.in_ledger("Q", KEY),
        qm.admin.processes,
        lambda: channels.channels(qm),
        lambda: channels.status(qm),
        lambda: channels.received(qm),
    )


def _some(found: Iterable[Message]) -> None:
    """Reads the beginning of a browse, which damage may make endless."""
    for _ in itertools.islice(found, 100):
        pass


def _browse(store: SqliteStore, qm: QueueManager) -> None:
    _each(
        lambda: _some(qm.browse("Q")),
        lambda: _some(qm.browse("Q", read_order="strict")),
        lambda: _some(qm.browse("Q", logical=True)),
        lambda: _some(qm.browse("Q", logical=True, complete=True, all_segments=True)),
        lambda: _some(qm.browse("Q", buffer=1, accept_truncated=True)),
    )


def _put(store: SqliteStore, qm: QueueManager) -> None:
    def group() -> None:
        put_group(qm, b"a", b"b")

    def unit() -> None:
        qm.put("COMMIT", b"in a unit", syncpoint=True)
        qm.get("Q", syncpoint=True)
        qm.commit()

    _each(
        lambda: qm.put("Q", b"one more"),
        lambda: qm.put_many("A", [Message(b"x", priority=n) for n in range(3)]),
        group,
        unit,
        lambda: qm.put("Q", b"x", group_id=UNFINISHED, sequence_number=3, flags=LAST),
        lambda: qm.put("Q", b"x", confirm_id=6),
    )


def _get(store: SqliteStore, qm: QueueManager) -> None:
    _each(
        lambda: qm.get("Q", read_order="strict"),
        lambda: qm.get("Q", logical=True),
        lambda: qm.get("Q", logical=True, read_order="strict"),
        lambda: list(qm.get_group("Q")),
        lambda: qm.get("Q", match=Match(correlation_id=b"c")),
        lambda: qm.get("Q", match=Match(priority=7), read_order="notify"),
        lambda: qm.get_many("Q", 100, syncpoint=True),
        qm.back_out,
        lambda: qm.get("Q", buffer=1, accept_truncated=True),
    )


def _confirm(store: SqliteStore, qm: QueueManager) -> None:
    for confirm_id, call in ((7, qm.confirm_get), (6, qm.confirm_put)):
        for uid in qm.inspect.unique_ids("Q", confirm_id=confirm_id):
            with contextlib.suppress(InorderError):
                call("Q", uid, confirm_id=confirm_id)
    _each(
        lambda: qm.browse_and_lock("Q", confirm_id=9),
        lambda: qm.undo("Q", 9),
        lambda: qm.undo("Q", 8),
        *(
            lambda one=one: qm.admin.release_lock("Q", one.lock_id)
            for one in qm.inspect.locks()
            if one.lock_id is not None
        ),
        lambda: qm.settle("in doubt", "commit"),
    )


def _claim(store: SqliteStore, qm: QueueManager) -> None:
    app = Application(store)
    _each(
        lambda: app.rows(app.settled + 1),
        lambda: _survey(app, GROUPS),
        lambda: _survey(app, PHYSICAL),
        lambda: app.settle(app.settled + 1),
        lambda: app.claim(app.settled + 1, GROUPS),
        lambda: qm.bulk.release_claims("Q", "app"),
        lambda: store.disconnect(app.owner),
    )


def _survey(app: Application, options: GetOptions) -> None:
    survey = app.store.survey(SurveyRequest(app.claimer.handle, options, UNSET, ALL, ALL, 1))
    for one in survey.stretches:
        list(stretch_pages(app.store, app.claimer.handle, one))


def _stage(store: SqliteStore, qm: QueueManager) -> None:
    writer = Writer(store, qm)
    writer.counts["two"] = 2
    _each(
        lambda: writer.settle("two", key=LedgerKey("app", "query", "1")),
        lambda: writer.put([b"x"], LedgerKey("app", "query", "2")),
    )


def _receive_more(store: SqliteStore, qm: QueueManager) -> None:
    going = Message(b"brought", transmission=Transmission("COMMIT", store.name))
    for last in channels.received(qm):
        store.bind_channel(last.sender, last.epoch + 1)
        store.receive(ChannelBatch(last.sender, last.number + 1, last.epoch + 1, b"digest", [going]))


def _trigger_and_send(store: SqliteStore, qm: QueueManager) -> None:
    there = MemoryStore("OTHER", ManualClock(1002.0))
    with inorder.connect(there, program="there") as other:
        other.create_queue("COMMIT")
        other.create_queue("AWAY", usage="transmission")
        _each(
            lambda: qm.put("TRIGGERS", b"asks", report=Report.COA, reply_to_queue="NOWHERE"),
            lambda: qm.put("COMMIT", b"once more", manager="OTHER"),
            lambda: _carry(qm, "TO.OTHER", there),
            lambda: channels.stop_channel(qm, "TO.OTHER"),
            lambda: channels.start_channel(qm, "TO.OTHER"),
            lambda: channels.alter_channel(qm, "TO.OTHER", description="altered"),
            lambda: _receive_more(store, qm),
            lambda: channels.delete_channel(qm, "TO.OTHER"),
            lambda: qm.admin.alter_process("P", description="altered"),
            lambda: qm.admin.delete_process("P"),
        )


def _at_a_door(store: SqliteStore, qm: QueueManager) -> None:
    def act() -> None:
        with qm.accounts.acting("clear", "Q", user="alice"):
            pass

    _each(
        qm.accounts.users,
        qm.accounts.tokens,
        lambda: list(qm.accounts.acts()),
        act,
        lambda: store.try_log_in(["user:alice", "user:bob"]),
        lambda: store.forgive_log_in(["user:alice"]),
        lambda: qm.accounts.alter_user("alice", enabled=False),
        *(lambda one=one: store.extend_lease(one.name, None, 5.0) for one in qm.inspect.units() if one.kind == "lease"),
        lambda: qm.lease(seconds=5.0).commit(),
    )


def _end(store: SqliteStore, qm: QueueManager) -> None:
    _each(
        qm.admin.discard_expired,
        lambda: qm.alter_queue("Q", description="altered"),
        lambda: qm.get_many("Q", 1000),
        qm.admin.check,
        lambda: qm.close_queue("Q"),
        lambda: qm.admin.clear_queue("Q"),
        lambda: qm.delete_queue("Q", purge=True),
    )


CALLS: dict[str, Callable[[SqliteStore, QueueManager], None]] = {
    "looking around": _look_around,
    "browsing": _browse,
    "putting": _put,
    "claiming": _claim,
    "getting": _get,
    "staging": _stage,
    "triggering and sending": _trigger_and_send,
    "at a door": _at_a_door,
    "confirming": _confirm,
    "looking around again": _look_around,
    "later": _look_around,
    "ending": _end,
}
