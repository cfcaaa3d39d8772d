"""A report needs the authority of the user who put the original message, at that put and when the report is made."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, cast

import pytest

import inorder
from inorder import Message, QueueManager, Reason, Report
from inorder.client.bulk import Stager
from inorder.errors import LeaseOver, NotAuthorized, UnitNotFound
from inorder.model.message import Got, Transmission
from inorder.rules.dead_letters import why_dead
from inorder.stores.seam.records import LedgerKey
from inorder.stores.seam.tables import UnitKind
from inorder.testing import ManualClock

from ..helpers.working import dead_letter_queue

ALL = Report.COA_WITH_FULL_DATA | Report.COD_WITH_FULL_DATA | Report.EXPIRATION_WITH_FULL_DATA
SECRET = b"what only the reader of a queue should see"


@pytest.fixture
def shop(qm: QueueManager) -> QueueManager:
    """Queues, and the user shop, who may put on Q and REPORTS but not on all the others."""
    dead_letter_queue(qm)
    for name in ("REPORTS", "START"):
        qm.create_queue(name)
    qm.create_queue("PARIS", usage="transmission")
    qm.create_queue("OUT", type="remote", remote_queue="FAR", remote_manager="PARIS")
    qm.create_queue("HERE", type="remote", remote_manager=qm.admin.manager_attributes().name)
    qm.create_queue("ROME", type="remote", remote_manager="PARIS")
    qm.create_queue("LIKE.REPORTS", type="alias", base_queue="REPORTS")
    qm.create_queue("LIKE.START", type="alias", base_queue="START")
    grants = {"Q": ["put"], "REPORTS": ["put"], "OUT": ["put"], "LIKE.REPORTS": ["put"], "R.*": ["put"]}
    qm.accounts.create_user("shop", roles=["application"], queues=grants)
    return qm


def put(qm: QueueManager, report: int = Report.COD_WITH_FULL_DATA, **given: Any) -> Any:
    with qm.accounts.on_behalf_of("shop"):
        return qm.put("Q", SECRET, report=report, **{"reply_to_queue": "REPORTS"} | given)


def lying(qm: QueueManager, *queues: str) -> dict[str, list[bytes]]:
    return {queue: [one.body for one in qm.browse(queue)] for queue in queues if qm.depth(queue)}


TARGETS: list[tuple[str, dict[str, str], bool]] = [
    ("a queue where they may put", {}, True),
    ("an alias of it, on which they may", {"reply_to_queue": "LIKE.REPORTS"}, True),
    ("a name that they may use and nobody has defined", {"reply_to_queue": "R.NONE"}, True),
    ("the queue manager's own name", {"reply_to_queue_manager": "own"}, True),
    ("another queue", {"reply_to_queue": "START"}, False),
    ("an alias that is not theirs", {"reply_to_queue": "LIKE.START"}, False),
    ("the dead letters", {"reply_to_queue": "DEAD"}, False),
    ("a transmission queue", {"reply_to_queue": "PARIS"}, False),
    ("another site, by its transmission queue", {"reply_to_queue_manager": "PARIS"}, False),
    ("another site, by a remote queue", {"reply_to_queue": "OUT"}, False),
    ("another site, by an alias of its queue manager", {"reply_to_queue_manager": "ROME"}, False),
    ("here, by an alias of the queue manager", {"reply_to_queue": "START", "reply_to_queue_manager": "HERE"}, False),
    ("a queue manager to which nothing leads", {"reply_to_queue_manager": "NOWHERE"}, False),
    ("a queue that nobody has defined", {"reply_to_queue": "NONE"}, False),
]
KINDS = ("COA", "COD", "EXPIRATION", "EXCEPTION")


@pytest.mark.parametrize(("target", "allowed"), [one[1:] for one in TARGETS], ids=[one[0] for one in TARGETS])
@pytest.mark.parametrize("report", KINDS)
def test_a_user_may_not_ask_for_reports_on_a_queue_they_may_not_put_on(
    shop: QueueManager, target: dict[str, str], allowed: bool, report: str
) -> None:
    given = {name: shop.admin.manager_attributes().name if value == "own" else value for name, value in target.items()}
    for asked in (Report[report], Report[f"{report}_WITH_FULL_DATA"]):
        if allowed:
            put(shop, asked, **given)
            continue
        with pytest.raises(NotAuthorized, match="user shop may not put on queue") as refused:
            put(shop, asked, **given)
        assert refused.value.reason == Reason.NOT_AUTHORIZED
    assert shop.depth("Q") == (2 if allowed else 0)
    assert not any(body for bodies in lying(shop, "START", "DEAD", "PARIS").values() for body in bodies)


def test_a_message_that_asks_for_no_report_may_name_any_reply_queue(shop: QueueManager) -> None:
    put(shop, Report.PAN | Report.NAN, reply_to_queue="START")
    with shop.accounts.on_behalf_of("shop"):
        shop.put("Q", b"", reply_to_queue="START", message_type=inorder.MessageType.REQUEST)
    assert shop.depth("Q") == 2


def test_the_authority_for_reports_is_checked_for_each_message_of_every_kind_of_put(shop: QueueManager) -> None:
    shop.alter_queue("Q", max_length=32)
    message = Message(SECRET, report=ALL, reply_to_queue="START", flags=inorder.Flags.SEGMENTATION_ALLOWED)
    short = message.replace(body=b"", flags=0)
    calls: list[Callable[[], object]] = [
        lambda: shop.put_many("Q", [b"1", short]),
        lambda: shop.put("Q", message),
        lambda: shop.put("Q", short, confirm_id=7),
        lambda: shop.put("Q", short, deduplicate="1"),
        lambda: shop.put("Q", short, syncpoint=True),
    ]
    with shop.accounts.on_behalf_of("shop"):
        for call in calls:
            with pytest.raises(NotAuthorized):
                call()
    assert (shop.depth("Q"), shop.depth("START")) == (0, 0)


def _replaced(qm: QueueManager) -> None:
    qm.accounts.delete_user("shop")
    qm.accounts.create_user("shop", roles=["admin"])


CHANGES: dict[str, Callable[[QueueManager], object]] = {
    "they may not put there any more": lambda qm: qm.accounts.alter_user("shop", queues={"Q": ["put"]}),
    "they are disabled": lambda qm: qm.accounts.alter_user("shop", enabled=False),
    "they were disabled, and are enabled again": lambda qm: [
        qm.accounts.alter_user("shop", enabled=enabled) for enabled in (False, True)
    ],
    "they are gone": lambda qm: qm.accounts.delete_user("shop"),
    "another one has their name": _replaced,
}


def make(qm: QueueManager, clock: ManualClock, kind: str, change: Callable[[], object]) -> None:
    """Puts a message, makes a change, and then causes the report."""
    report = Report[f"{kind}_WITH_FULL_DATA"]
    if kind == "COA":
        with qm.unit_of_work():
            put(qm, report, properties={"forged": "1"})
            change()
    elif kind == "COD":
        put(qm, report, properties={"forged": "1"})
        change()
        qm.get("Q")
    elif kind == "EXPIRATION":
        put(qm, report, expiry=1.0, properties={"forged": "1"})
        change()
        clock.advance(2)
        qm.admin.discard_expired()
    else:
        put(qm, report | Report.DISCARD_MESSAGE, properties={"forged": "1"})
        change()
        with qm.unit_of_work():
            qm.dead.add(qm.get("Q"), queue="Q")


@pytest.mark.every_store
@pytest.mark.parametrize("report", KINDS)
def test_a_report_needs_the_users_authority_at_the_time_it_is_made(
    shop: QueueManager, clock: ManualClock, report: str
) -> None:
    for nth, change in enumerate(CHANGES.values(), 1):
        make(shop, clock, report, lambda change=change: change(shop))  # type: ignore[misc]
        letters = list(shop.dead.letters())
        assert [(one.why.reason, one.why.queue) for one in letters] == [(Reason.NOT_AUTHORIZED, "REPORTS")] * nth
        assert [(one.message.body, one.message.original_length) for one in letters] == [(b"", len(SECRET))] * nth
        assert all("forged" not in one.message.properties for one in letters)
        if any(one.name == "shop" for one in shop.accounts.users()):
            shop.accounts.delete_user("shop")
        shop.accounts.create_user("shop", roles=["application"], queues={"Q": ["put"], "REPORTS": ["put"]})
    make(shop, clock, report, lambda: None)
    (made,) = shop.browse("REPORTS")
    assert (made.body, dict(made.properties)) == (SECRET, {"forged": "1"})
    assert shop.admin.check() == []


@pytest.mark.parametrize("may", [False, True])
def test_an_undeliverable_report_is_a_dead_letter_with_its_body_if_the_user_may_put_there(
    shop: QueueManager, may: bool
) -> None:
    if may:
        shop.accounts.alter_user("shop", queues={"Q": ["put"], "REPORTS": ["put"], "DEAD": ["put"]})
    shop.alter_queue("REPORTS", max_depth=1)
    shop.put("REPORTS", b"")
    put(shop, Report.COA_WITH_FULL_DATA)
    (letter,) = shop.dead.letters()
    assert (letter.why.reason, letter.message.body) == (Reason.Q_FULL, SECRET if may else b"")


def test_a_message_got_outside_a_unit_has_no_report_authority_while_users_exist(shop: QueueManager) -> None:
    put(shop, Report.EXCEPTION_WITH_FULL_DATA | Report.DISCARD_MESSAGE)
    message = shop.get("Q")
    shop.dead.add(message, queue="Q")
    assert [(one.why.reason, one.message.body) for one in shop.dead.letters()] == [(Reason.NOT_AUTHORIZED, b"")]
    assert not shop.depth("REPORTS")
    shop.accounts.delete_user("shop")
    shop.dead.add(message, queue="Q")
    assert [one.body for one in shop.browse("REPORTS")] == [SECRET]


def test_a_user_who_reports_an_exception_for_a_message_needs_authority_too(shop: QueueManager) -> None:
    """Otherwise a user could forge a message with the token of one whose putter may put anywhere."""

    def report(user: str | None) -> None:
        shop.put("Q", b"", report=Report.EXCEPTION_WITH_FULL_DATA | Report.DISCARD_MESSAGE, reply_to_queue="START")
        with shop.unit_of_work():
            made_up = cast(Got, shop.get("Q").with_values(body=SECRET))
            with contextlib.nullcontext() if user is None else shop.accounts.on_behalf_of(user):
                shop.dead.add(made_up, queue="Q")

    report("shop")
    assert [(one.why.reason, one.message.body) for one in shop.dead.letters()] == [(Reason.NOT_AUTHORIZED, b"")]
    assert not shop.depth("START")
    report(None)
    assert [one.body for one in shop.browse("START")] == [SECRET]


@pytest.mark.every_store
def test_units_record_the_full_name_of_the_user_who_began_them(shop: QueueManager) -> None:
    user, store = "a user with a long name", shop._session.services.store
    for number in range(2):
        shop.put("Q", str(number).encode())
    with shop.accounts.on_behalf_of(user), shop.open("Q", output=True, input="shared") as queue:
        handle = queue.internals.number
        queue.put(b"", confirm_id=7)
        locked = shop.browse_and_lock("Q", confirm_id=8, most=1)
        Stager(queue, "s", lasts=60).stage(1, {"body": [b""]})
        with shop.unit_of_work() as unit:
            shop.put("Q", b"")
            unit.prepare("p")
        named: dict[tuple[UnitKind, str], int | None] = {
            ("confirm", "7"): handle, ("confirm", "8"): handle, ("lock", str(locked.lock_id)): handle,
        }  # fmt: skip
        named |= {("staging", "s"): None, ("prepared", "p"): None}
        for (kind, name), at in named.items():
            assert store.users_of(kind, name, at) == {user}, kind
        assert store.users_of("confirm", "9", handle) == store.users_of("prepared", "q") == set()
    with pytest.raises(UnitNotFound):
        store.settle_prepared("p", "commit", "shop")
    store.settle_prepared("p", "commit", user)
    with shop.lease(seconds=60, user=user) as lease:
        assert store.users_of("lease", lease.name) == {user}
    with pytest.raises(LeaseOver):
        store.end_lease(lease.name, "shop")
    store.end_lease(lease.name, user)


@pytest.mark.every_store
@pytest.mark.parametrize("keys", [{}, {"order_key": [1, 2]}, {"group_key": [1, 1]}])
def test_staged_rows_have_the_authority_of_the_user_who_staged_them(shop: QueueManager, keys: dict[str, Any]) -> None:
    asks = {"body": [SECRET, SECRET], "report": [ALL, ALL], "reply_to_queue": ["REPORTS", "REPORTS"], **keys}
    with shop.accounts.on_behalf_of("shop"), shop.open("Q", output=True) as queue:
        with pytest.raises(NotAuthorized):
            Stager(queue, "refused", lasts=60).stage(2, {**asks, "reply_to_queue": ["REPORTS", "DEAD"]})
        stager = Stager(queue, "s", lasts=60)
        stager.stage(2, asks)
        shop.bulk.settle_staging(LedgerKey("a", "", "1"), [stager.staged])
    assert shop.depth("REPORTS") == 2, "their arrival"
    shop.accounts.alter_user("shop", queues={"Q": ["put"]})
    shop.get_many("Q", 2)
    assert (shop.depth("REPORTS"), lying(shop, "DEAD")) == (2, {"DEAD": [b"", b""]})
    assert {why_dead(one).reason for one in shop.browse("DEAD")} == {Reason.NOT_AUTHORIZED}


def test_a_message_put_again_has_the_authority_of_its_new_putter(shop: QueueManager) -> None:
    """A user who replays a message, or puts one that was got, needs the authority; a program needs none."""
    shop.put("Q", SECRET, report=Report.COD_WITH_FULL_DATA, reply_to_queue="START", reply_to_queue_manager="")
    with shop.unit_of_work():
        shop.dead.add(shop.get("Q"), queue="Q")
    assert lying(shop, "START") == {"START": [SECRET]}, "it was delivered"
    with shop.accounts.on_behalf_of("shop"):
        (stayed,) = shop.dead.replay().stayed
        assert stayed.error.reason == Reason.NOT_AUTHORIZED
    assert (shop.depth("Q"), shop.dead.replay().messages) == (0, 1)
    with shop.accounts.on_behalf_of("shop"), pytest.raises(NotAuthorized), shop.unit_of_work():
        shop.put("Q", shop.get("Q"), context="set_all")
    shop.accounts.delete_user("shop")
    shop.get("Q")
    assert lying(shop, "START", "DEAD") == {"START": [SECRET, SECRET]}, "it is a program's"


def test_no_field_and_no_transmission_header_can_forge_the_putter(shop: QueueManager) -> None:
    """A message from another store, or with any descriptor, has the mark of its actual putter."""
    shop.accounts.create_user("root", roles=["admin"])
    with shop.accounts.on_behalf_of("shop"), pytest.raises(NotAuthorized):
        shop.put(
            "Q",
            Message(
                b"", report=Report.COA, reply_to_queue="START", user_identifier="root", put_application_type=7,
                transmission=Transmission("Q", "PARIS"),
            ),
            context="set_all",
        )  # fmt: skip
    with pytest.raises(inorder.ArgumentError):
        Message(b"", put_by="root")  # type: ignore[call-arg]
