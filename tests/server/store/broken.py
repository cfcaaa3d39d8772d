"""A remote store whose connection a test can cut, a call of each verb, and the state of the store afterwards."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tests.helpers.proxy import Proxy
from tests.server.store import matrix
from tests.server.store.matrix import MADE, MATRIX, Side, World

from inorder.errors import InorderError
from inorder.model.attributes import define_queue
from inorder.model.channel_attributes import define
from inorder.model.message import Message
from inorder.model.options import GetOptions, OpenOptions
from inorder.rules.channels import CHANNEL
from inorder.rules.grouping import NOTHING_OPEN
from inorder.rules.lifecycle import Event
from inorder.rules.ordering import UNSET
from inorder.rules.puts import Program
from inorder.rules.store_verbs import FILLED_IN, lost_of
from inorder.stores.memory import MemoryStore
from inorder.stores.remote.address import parse
from inorder.stores.remote.store import RemoteStore
from inorder.stores.seam import tables
from inorder.stores.seam.channel_records import ChannelBatch
from inorder.stores.seam.definitions import as_text
from inorder.stores.seam.records import Act, Claimer, ClaimRequest, GetRequest
from inorder.stores.seam.views import WORKER
from inorder.testing import ManualClock
from inorder.testing.remote import the_server

OF_ONE_CONNECTION = {Act, tables.ConnectionRow, tables.EnteredRow, tables.MarkRow, tables.ProcessRow, tables.WaitRow}
NUMBERS = {*"id unit connection process handle carrier epoch revision identifier uid_number message_id".split()}


class Far(World):
    """A world whose side `me` is a remote program that reaches the server through a proxy."""

    proxy: Proxy
    far: RemoteStore


class _Elsewhere(Side):
    def _connected(self) -> int:
        return self.store.connect(Program("program's", "test"))


@contextmanager
def elsewhere() -> Iterator[Far]:
    """A store in memory with two sides, one of them connected through a proxy."""
    inner = MemoryStore("QM1", clock=ManualClock())
    for one in (define_queue("Q"), define_queue("OTHER.Q"), define_queue("MODEL", "model")):
        inner.create_queue(one)
    server = the_server(os.getpid())
    with Proxy(int(server.url.rpartition(":")[2])) as proxy, server.serving(inner) as token:
        far: Any = RemoteStore(parse(f"http://127.0.0.1:{proxy.port}", {"token": token}), "test")
        try:
            found = Far(inner, _Elsewhere(far, "me", 71), Side(inner, "other", 81))
            found.proxy, found.far = proxy, far
            for _ in range(2):
                found.other.put()
            yield found
        finally:
            far.close_store()
            inner.stop()


# --- a call of each verb


class Call(NamedTuple):
    """A call, and a preparation that runs before it in the same connection."""

    title: str
    verb: str
    arguments: Callable[[Far], dict[str, Any]]
    before: Callable[[Far], object] = lambda _: None

    def lost(self, at: Far) -> str:
        """The result of `lost_of` for this call."""
        return lost_of(self.verb, self.arguments(at))

    def made(self, at: Far) -> Any:
        """Makes the call. Returns its answer, or the class of its error."""
        given = {"owner": 0, "user": "me", "most": None}
        filled = {name: given[name] for name in FILLED_IN.get(self.verb, ())}
        try:
            return getattr(at.far, self.verb)(**filled, **self.arguments(at))
        except InorderError as error:
            return type(error)


def calls() -> dict[str, Call]:
    """Calls by their titles, at least one of each verb."""
    found: dict[str, Call] = {}
    for verb, title, arguments, who in [*MATRIX, *MADE]:
        if "admin" in who.split() and "other" not in title and "channel's" not in title:
            found[f"{verb}: {title}"] = Call(f"{verb}: {title}", verb, arguments)
    return found | {one.title: one for one in MORE}


def _claimed(at: Far) -> None:
    at.far.claim(**matrix.claim(at, at.me))


def _carrying(at: Far) -> None:
    at.store.create_queue(define_queue("XMIT", usage="transmission"))
    at.store.define_object("channel", "C", as_text(define("C", transmission_queue="XMIT", connection="b.db")))
    at.me.handle = at.far.open(0, "XMIT", OpenOptions(input="shared", browse=True)).handle


def _taken(at: Far) -> None:
    _carrying(at)
    at.far.take_channel(at.me.handle, "C")


def _of_channel(at: Far) -> dict[str, Any]:
    by = Claimer(at.me.handle, f"{CHANNEL}C", 1)
    return {"channel": "C", "request": ClaimRequest(by, 0, GetOptions(), 1, 1000)}


def _defined(at: Far) -> None:
    at.store.define_object("process", "P", "{}")
    at.store.create_queue(define_queue("GONE"))


def _made_from_model(at: Far) -> None:
    at.store.create_queue(define_queue("KEPT", "model", definition_type="permanent_dynamic"))
    at.me.handle = at.far.open(0, "KEPT", OpenOptions(input="shared")).handle


def _plan(at: Far) -> dict[str, Any]:
    return {"claimer": matrix.claimer(at, at.me), "after": 0, "upto": 1, "slices": 1}


def _on_channel(**more: Any) -> Callable[[Far], dict[str, Any]]:
    return lambda at: {"handle": at.me.handle, "channel": "C", **more}


def _got(at: Far) -> None:
    got = at.far.get(GetRequest(at.me.handle, GetOptions(confirm_id=99), NOTHING_OPEN, UNSET, False)).messages[0]
    assert got.uid is not None
    at.me.held = got.uid


def _confirm_get(at: Far) -> Any:
    return matrix.one(at, Event.CONFIRM_GET, at.me.held, confirm_id=99)


def _arrived(at: Far) -> dict[str, Any]:
    return {"batch": ChannelBatch(matrix.SENDER, 1, 1, b"digest", [Message(b"x").replace(transmission=("Q", "QM1"))])}


MINE = {"queue": "Q", "application": "me application"}
P = {"kind": "process", "name": "P"}
ALTERED = {"name": "GONE", "by": "alter", "changes": {"description": "d"}}
MORE = [
    Call("put: under a key", "put", lambda at: matrix.put(at, deduplicate="key")),
    Call("put: many", "put", lambda at: {"request": matrix.put(at)["request"]._replace(messages=[b"1", b"2"])}),
    Call("delete_queue: unused", "delete_queue", lambda _: {"name": "GONE", "purge": False}, _defined),
    Call("clear_queue: unused", "clear_queue", lambda _: {"name": "GONE"}, _defined),
    Call("alter_queue: changed", "alter_queue", lambda _: ALTERED, _defined),
    Call("alter_object: there", "alter_object", lambda _: {**P, "before": "{}", "attributes": "{ }"}, _defined),
    Call("delete_object: there", "delete_object", lambda _: P, _defined),
    Call("close: deleted", "close", lambda at: {"handle": at.me.handle, "delete": True}, _made_from_model),
    Call("plan_claims: claimed", "plan_claims", _plan, _claimed),
    Call(
        "settle_claims: claimed",
        "settle_claims",
        lambda at: {"claimer": matrix.claimer(at, at.me), "upto": 1},
        _claimed,
    ),
    Call("finish_claims: claimed", "finish_claims", lambda _: {**MINE, "upto": 1}, _claimed),
    Call("release_claims: claimed", "release_claims", lambda _: MINE, _claimed),
    Call("take_channel: there", "take_channel", _on_channel(), _carrying),
    Call("note_channel: taken", "note_channel", _on_channel(status="retrying"), _taken),
    Call("reset_channel: there", "reset_channel", _on_channel(number=4), _taken),
    Call("one_message: confirm a get", "one_message", _confirm_get, _got),
    Call("receive: bound", "receive", _arrived, lambda at: at.far.bind_channel(matrix.SENDER, 1)),
    Call("next_batch: taken", "next_batch", _of_channel, _taken),
]


# --- the state


def state(store: MemoryStore) -> Counter[str]:
    """The rows of a store, counted, without those of single connections and without generated numbers."""
    backend: Any = store.backend
    rows = [row for kind, table in backend._records.items() if kind not in OF_ONE_CONNECTION for row in table.values()]
    found = Counter(f"{type(row).__name__} {_named(row)}" for row in rows)
    units = {one.id: one.kind for one in backend._records[tables.UnitRow].values()}
    for row in backend._messages.values():
        found[f"message on {row.queue} {row.state} in {units.get(row.unit)} {units.get(row.lock)}"] += 1
    return found


def _named(row: Any) -> dict[str, Any]:
    names = NUMBERS | {tables.HandleRow: {"queue"}, tables.GlobalUnitRow: {"name"}}.get(type(row), set())
    if isinstance(row, tables.ObjectRow) and row.type == WORKER:  # both contain the number of the worker's connection
        names |= {"name", "attributes"}
    return {name: one for name, one in row._asdict().items() if name not in names and "AMQ." not in str(one)}
