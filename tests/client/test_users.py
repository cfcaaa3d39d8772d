"""Users, tokens, identification, acting on behalf of a user, and the log of irreversible acts; on every store."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from tests.helpers.support import Call, Stores

import inorder
from inorder import QueueManager, connect
from inorder.client.users import TOKENS_MAX, Verify
from inorder.errors import (
    ArgumentError,
    CallerError,
    LogInRefused,
    NotAuthorized,
    ObjectExists,
    Reason,
    TooManyLogIns,
    UnknownObject,
)
from inorder.rules.log_ins import BUCKETS_MAX, LIMITS
from inorder.stores.seam.backend import OperationKind
from inorder.stores.seam.tables import AttemptRow
from inorder.testing import ManualClock

HASH = "$plain$secret"


def verifies(password: str) -> Verify:
    """A password check that does not hash."""
    return lambda kept: kept == f"$plain${password}"


def buckets(qm: QueueManager) -> int:
    store: Any = qm._services.store
    store.backend.begin(OperationKind(writes=False))
    try:
        return len(store.backend.select(AttemptRow))
    finally:
        store.backend.commit((), (), reserves=False, durable=False)


@pytest.mark.every_store
def test_users_are_defined_altered_listed_and_deleted(qm: QueueManager) -> None:
    qm.accounts.create_user("bob")
    made = qm.accounts.create_user(
        "alice",
        roles=["reader", "application"],
        queues={"ORDERS.*": ["get", "put"], "REPLIES": ["get"]},
        subjects=["CN=alice"],
        description="the shop",
        password_hash=HASH,
    )
    assert [one.name for one in qm.accounts.users()] == ["alice", "bob"]
    assert (made, made.roles) == (qm.accounts.user("alice"), ("application", "reader"))
    assert dict(made.queues) == {"ORDERS.*": ("put", "get"), "REPLIES": ("get",)}
    altered = qm.accounts.alter_user("alice", queues={"X": ["browse"]}, description="")
    assert (altered.roles, dict(altered.queues), altered.has_password) == (made.roles, {"X": ("browse",)}, True)
    assert not qm.accounts.alter_user("alice", password_hash="").has_password
    qm.accounts.delete_user("alice")
    assert [one.name for one in qm.accounts.users()] == ["bob"]
    assert (qm.accounts.user("bob").roles, qm.admin.check()) == (("reader",), [])
    for call in (
        lambda: qm.accounts.user("alice"),
        lambda: qm.accounts.alter_user("alice", enabled=False),
        lambda: qm.accounts.delete_user("al"),
    ):
        with pytest.raises(UnknownObject):
            call()
    with pytest.raises(ObjectExists):
        qm.accounts.create_user("bob")


def test_an_act_that_a_user_has_no_authority_for_is_refused_with_2035(qm: QueueManager) -> None:
    user = qm.accounts.create_user("shop", roles=["application"], queues={"ORDERS.*": ["put"]})
    user.check("put", "ORDERS.NEW")
    for authority, queue in (("get", "ORDERS.NEW"), ("put", "OTHER"), ("inquire", ""), ("administer", "")):
        with pytest.raises(NotAuthorized, match="user shop may not") as refused:
            user.check(authority, queue)
        assert (refused.value.reason, refused.value.data["queue"]) == (Reason.NOT_AUTHORIZED, queue)
    disabled = qm.accounts.alter_user("shop", enabled=False)
    assert not disabled.may("put", "ORDERS.NEW")
    assert not qm.accounts.alter_user("shop", roles=["admin"], queues={}).may("put", "X"), "enabled is as it was"


def test_no_password_hash_or_token_is_shown_and_no_token_is_stored(qm: QueueManager) -> None:
    user = qm.accounts.create_user("alice", password_hash="$argon2id$v=19$deep-secret")
    token = qm.accounts.create_token("alice", "ci")
    secret = token.partition(".")[2]
    shown = f"{user!r} {qm.accounts.users()!r} {qm.accounts.tokens()!r}"
    assert "deep-secret" not in shown
    assert secret not in shown
    store: Any = qm._services.store
    kept = " ".join(one.attributes for kind in ("user", "token") for one in store.objects(kind))
    assert secret not in kept


def test_only_the_right_password_identifies_a_user(qm: QueueManager) -> None:
    qm.accounts.create_user("alice", password_hash=HASH)
    qm.accounts.create_user("token-only")
    assert qm.accounts.identify(name="alice", verify=verifies("secret"), address="10.0.0.1").name == "alice"
    told = set()
    for name, password in (("alice", "wrong"), ("nobody", "secret"), ("token-only", "secret"), ("", "secret")):
        with pytest.raises(LogInRefused) as refused:
            qm.accounts.identify(name=name, verify=verifies(password), address="10.0.0.1")
        told.add(str(refused.value))
    qm.accounts.alter_user("alice", enabled=False)
    with pytest.raises(LogInRefused) as refused:
        qm.accounts.identify(name="alice", verify=verifies("secret"), address="10.0.0.1")
    assert told == {str(refused.value)}, "the answer does not say what was wrong"


def test_the_password_check_is_also_made_for_unknown_users(qm: QueueManager) -> None:
    """Otherwise the response time would reveal which users exist."""
    qm.accounts.create_user("alice", password_hash=HASH)
    asked: list[str | None] = []

    def verify(kept: str | None) -> bool:
        asked.append(kept)
        return True

    with pytest.raises(LogInRefused):
        qm.accounts.identify(name="nobody", verify=verify)
    assert qm.accounts.identify(name="alice", verify=verify).name == "alice"
    assert asked == [None, HASH]


@pytest.mark.every_store
def test_tokens_expire_can_be_revoked_and_end_when_their_user_is_disabled_or_deleted(
    qm: QueueManager, clock: ManualClock
) -> None:
    qm.accounts.create_user("alice")
    qm.accounts.create_user("bob")
    first, second = (
        qm.accounts.create_token("alice", "ci", seconds=100),
        qm.accounts.create_token("alice", "laptop", seconds=200),
    )
    other = qm.accounts.create_token("bob", "x")
    assert {(one.user, one.label) for one in qm.accounts.tokens("alice")} == {("alice", "ci"), ("alice", "laptop")}
    assert qm.accounts.identify(token=first).name == qm.accounts.identify(token=second).name == "alice"
    clock.advance(99.9)
    qm.accounts.identify(token=first)
    clock.advance(0.1)
    with pytest.raises(LogInRefused):
        qm.accounts.identify(token=first)
    qm.accounts.revoke_token(second)
    with pytest.raises(LogInRefused):
        qm.accounts.identify(token=second)
    with pytest.raises(UnknownObject):
        qm.accounts.revoke_token(second)
    third = qm.accounts.create_token("alice", "again")
    assert [one.label for one in qm.accounts.tokens("alice")] == ["again"], "what has expired is replaced"
    before = qm.accounts.user("alice")
    for enabled in (False, True):
        assert qm.accounts.alter_user("alice", enabled=enabled).identifier != before.identifier
        assert qm.accounts.tokens("alice") == []
        with pytest.raises(LogInRefused):
            qm.accounts.identify(token=third)
    third = qm.accounts.create_token("alice", "once more")
    assert qm.accounts.alter_user("alice", enabled=True).name == qm.accounts.identify(token=third).name, (
        "that changes nothing"
    )
    qm.accounts.delete_user("alice")
    qm.accounts.create_user("alice", roles=["admin"])
    with pytest.raises(LogInRefused):
        qm.accounts.identify(token=third)
    assert ([one.user for one in qm.accounts.tokens()], qm.accounts.identify(token=other).name) == (["bob"], "bob")


def test_a_leftover_token_is_not_valid_for_a_later_user_of_the_same_name(qm: QueueManager) -> None:
    """A program may be killed between the deletion of a user and that of its tokens."""
    qm.accounts.create_user("alice")
    token = qm.accounts.create_token("alice", "ci")
    qm._store.delete_object("user", "alice")
    qm.accounts.create_user("alice", roles=["admin"])
    with pytest.raises(LogInRefused):
        qm.accounts.identify(token=token)


@pytest.mark.parametrize("odd", ["", "x.y", "\ud800.x", "a" * 10_000], ids=lambda text: ascii(text[:9]))
def test_odd_tokens_are_refused(qm: QueueManager, odd: str) -> None:
    user = qm.accounts.create_user("alice")
    real = qm.accounts.create_token(user.name, "ci")
    with pytest.raises(LogInRefused):
        qm.accounts.identify(token=odd)
    with pytest.raises(LogInRefused):
        qm.accounts.identify(token=f"{real.partition('.')[0]}.{odd}")


@pytest.mark.every_store
def test_certificates_are_mapped_to_users(qm: QueueManager) -> None:
    qm.accounts.create_user("alice", subjects=["CN=alice", "CN=laptop"])
    with pytest.raises(ArgumentError, match="user alice has these"):
        qm.accounts.create_user("bob", subjects=["CN=laptop"])
    assert qm.accounts.identify(subject="CN=laptop").name == "alice"
    qm.accounts.alter_user("alice", subjects=["CN=alice"])
    qm.accounts.create_user("bob", subjects=["CN=laptop"])
    assert qm.accounts.identify(subject="CN=laptop").name == "bob"
    for subject in ("CN=nobody", "", "cn=alice"):
        with pytest.raises(LogInRefused):
            qm.accounts.identify(subject=subject)
    qm.accounts.alter_user("bob", enabled=False)
    with pytest.raises(LogInRefused):
        qm.accounts.identify(subject="CN=laptop")


@pytest.mark.every_store
def test_failed_log_ins_are_limited_by_user_for_all_processes(stores: Stores, clock: ManualClock) -> None:
    store = stores.make(clock)
    with connect(store, program="one") as one, connect(store, program="two") as two:
        one.accounts.create_user("alice", password_hash=HASH)
        for number in range(LIMITS["user"].failures):
            with pytest.raises(LogInRefused):
                (one, two)[number % 2].accounts.identify(
                    name="alice", verify=verifies("wrong"), address=f"10.0.0.{number}"
                )
        with pytest.raises(TooManyLogIns) as refused:
            two.accounts.identify(name="alice", verify=verifies("secret"), address="10.9.9.9")
        assert refused.value.data["seconds"] == pytest.approx(LIMITS["user"].seconds)
        one.accounts.create_user("bob", password_hash=HASH)
        assert two.accounts.identify(name="bob", verify=verifies("secret"), address="10.9.9.9").name == "bob"
        token = one.accounts.create_token("alice", "ci")
        assert two.accounts.identify(token=token, address="10.9.9.9").name == "alice", (
            "who is attacked can still come in"
        )
        clock.advance(LIMITS["user"].seconds)
        assert two.accounts.identify(name="alice", verify=verifies("secret"), address="10.9.9.9").name == "alice"


def test_failed_log_ins_are_limited_by_address_and_successful_ones_are_not(qm: QueueManager) -> None:
    qm.accounts.create_user("alice", password_hash=HASH)
    right: Any = {"name": "alice", "verify": verifies("secret")}
    for _ in range(2 * LIMITS["address"].failures):
        qm.accounts.identify(**right, address="10.0.0.1")
    assert buckets(qm) == 0
    for number in range(LIMITS["address"].failures):
        with pytest.raises(LogInRefused):
            qm.accounts.identify(name=f"guess {number}", verify=verifies("x"), address="10.0.0.1")
    for shown in (right, {"token": "x.y"}):
        with pytest.raises(TooManyLogIns):
            qm.accounts.identify(**shown, address="10.0.0.1")
    assert qm.accounts.identify(**right, address="10.0.0.2").name == "alice"


@pytest.mark.every_store
def test_concurrent_log_ins_are_limited_too(qm: QueueManager) -> None:
    """They are counted before the password is checked."""
    qm.accounts.create_user("alice", password_hash=HASH)
    most = LIMITS["user"].failures
    inside, outcomes, go_on = threading.Semaphore(0), list[str](), threading.Event()

    def slow(kept: str | None) -> bool:
        del kept
        inside.release()
        go_on.wait()
        return False

    def attempt() -> None:
        with qm.connect() as own:
            try:
                own.accounts.identify(name="alice", verify=slow)
            except (LogInRefused, TooManyLogIns) as error:
                outcomes.append(type(error).__name__)

    calls = [Call(attempt) for _ in range(most)]
    for _ in range(most):
        inside.acquire()
    Call(attempt).ends()
    assert outcomes == ["TooManyLogIns"]
    go_on.set()
    for call in calls:
        call.ends()
    assert outcomes.count("LogInRefused") == most


def test_made_up_names_do_not_fill_the_store(qm: QueueManager, clock: ManualClock) -> None:
    qm.accounts.create_user("alice", password_hash=HASH)
    store: Any = qm._services.store
    for number in range(BUCKETS_MAX + 50):
        store.try_log_in([f"user:{number}"])
    assert buckets(qm) <= BUCKETS_MAX + 2
    with pytest.raises(TooManyLogIns):
        qm.accounts.identify(name="alice", verify=verifies("secret"))
    clock.advance(3600)
    assert qm.accounts.identify(name="alice", verify=verifies("secret")).name == "alice"
    assert buckets(qm) == 0


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"name": ""}, "name must be a text of 1 to 64"),
        ({"name": 5}, "name must be a text"),
        ({"name": "a:b"}, "name must be without blanks, colons"),
        ({"roles": []}, "roles must be one or more of admin, operator"),
        ({"roles": "admin"}, "roles must be a list"),
        ({"roles": ["root"]}, "roles must be one or more of admin, operator"),
        ({"roles": [5]}, "roles must be one or more"),
        ({"queues": {"Q": ["put"]}}, "queues must be empty, unless the user has the role 'application'"),
        ({"roles": ["application"], "queues": ["Q"]}, "queues must be a mapping"),
        ({"roles": ["application"], "queues": {"Q": "put"}}, "queues must be a list"),
        ({"roles": ["application"], "queues": {"Q": []}}, "queues must be one or more of put, get"),
        ({"roles": ["application"], "queues": {"Q": ["administer"]}}, "queues must be one or more of put, get"),
        (
            {"roles": ["application"], "queues": {"A*B": ["put"]}},
            "queues must be the name of a queue, or the beginning",
        ),
        ({"subjects": "CN=x"}, "subjects must be a list"),
        ({"subjects": [f"CN={number}" for number in range(17)]}, "subjects must be at most 16"),
        ({"description": "x" * 257}, "description must be a text of 0 to 256"),
        ({"password_hash": "correct horse"}, "password_hash must be a hash from inorder.support.passwords.hashed"),
    ],
    ids=repr,
)
def test_bad_users_are_refused(qm: QueueManager, given: dict[str, Any], told: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        qm.accounts.create_user(**{"name": "alice", **given})
    assert str(refused.value).startswith(told)
    assert "horse" not in str(refused.value)
    assert qm.accounts.users() == []


def test_bad_changes_change_nothing(qm: QueueManager) -> None:
    before = qm.accounts.create_user("alice", roles=["application"], queues={"Q": ["put"]})
    for bad in ({"roles": ["reader"]}, {"enabled": 1}, {"roles": ["root"]}, {"description": 5}):
        with pytest.raises(ArgumentError):
            qm.accounts.alter_user("alice", **bad)
    assert qm.accounts.user("alice") == before


def test_bad_tokens_are_refused(qm: QueueManager) -> None:
    qm.accounts.create_user("alice")
    for label in ("", "x" * 65, 5):
        with pytest.raises(ArgumentError, match="label must be a text of 1 to 64"):
            qm.accounts.create_token("alice", label)  # type: ignore[arg-type]
    for seconds in (0, -1, True, "5", float("nan"), 1e12):
        with pytest.raises(ArgumentError, match="seconds must be a number of seconds above 0"):
            qm.accounts.create_token("alice", "ci", seconds=seconds)  # type: ignore[arg-type]
    with pytest.raises(UnknownObject):
        qm.accounts.create_token("nobody", "ci")
    with pytest.raises(ArgumentError, match="token must be"):
        qm.accounts.revoke_token(5)  # type: ignore[arg-type]
    assert qm.accounts.tokens() == []


def test_the_number_of_tokens_of_a_user_is_limited(qm: QueueManager) -> None:
    qm.accounts.create_user("alice")
    for number in range(TOKENS_MAX):
        qm.accounts.create_token("alice", str(number))
    with pytest.raises(ObjectExists, match="revoke one"):
        qm.accounts.create_token("alice", "one more")
    assert len(qm.accounts.tokens("alice")) == TOKENS_MAX


def test_identify_takes_exactly_one_kind_of_credential_and_only_texts(qm: QueueManager) -> None:
    token, password = {"token": "x"}, {"verify": verifies("x")}
    ways: list[dict[str, Any]] = [{}, {"name": "a"}, password, {**token, "subject": "y"}, {**token, **password}]
    for given in [*ways, {"name": "a", **password, **token}]:
        with pytest.raises(CallerError, match="identify takes one of"):
            qm.accounts.identify(**given)
    texts: dict[str, dict[str, Any]] = {"name": password, "token": {}, "subject": {}, "address": token}
    for argument, others in texts.items():
        with pytest.raises(ArgumentError, match=f"{argument} must be a text"):
            qm.accounts.identify(**{**others, argument: 5})


def holders(qm: QueueManager) -> dict[str, str]:
    """The user of each confirm id and lock id, by kind and name."""
    return {f"{one.kind} {one.name}": one.program.user for one in qm.inspect.units() if one.kind in ("confirm", "lock")}


def test_ids_begun_on_behalf_of_a_user_are_listed_under_that_user(qm: QueueManager) -> None:
    qm.put_many("Q", [b"1", b"2", b"3"])
    with qm.accounts.on_behalf_of("ada"):
        qm.get("Q", confirm_id=7)
        lock_id = qm.browse_and_lock("Q", most=1).lock_id
        with qm.accounts.on_behalf_of("bob"):
            qm.put("Q", b"4", confirm_id=8)
        qm.put("Q", b"5", confirm_id=9)
    assert holders(qm) == {"confirm 7": "ada", f"lock {lock_id}": "ada", "confirm 8": "bob", "confirm 9": "ada"}
    (lock,) = qm.inspect.locks()
    assert (lock.program.user, lock.program.name) == ("ada", "test")


def test_after_the_block_and_in_units_of_work_the_user_of_the_program_is_listed(qm: QueueManager) -> None:
    qm.put_many("Q", [b"1", b"2"])
    own = {one.program.user for one in qm.inspect.connections()}
    with qm.accounts.on_behalf_of("ada"), qm.unit_of_work():
        qm.get("Q")
        assert {one.program.user for one in qm.inspect.units()} == own
    qm.get("Q", confirm_id=7)
    assert set(holders(qm).values()) == own


def test_an_id_keeps_the_user_who_began_it(qm: QueueManager) -> None:
    qm.put_many("Q", [b"1", b"2"])
    for user in ("ada", "bob"):
        with qm.accounts.on_behalf_of(user):
            qm.get("Q", confirm_id=7)
    assert holders(qm) == {"confirm 7": "ada"}


def test_a_bad_user_name_is_refused(qm: QueueManager) -> None:
    wrong: list[Any] = ["", "x" * 257, None, b"ada", "\ud800"]
    for user in wrong:
        with (
            pytest.raises(inorder.ArgumentError, match="user must be a text of 1 to 256"),
            qm.accounts.on_behalf_of(user),
        ):
            raise AssertionError("the block has begun")


def test_an_act_is_logged_before_it_is_done_with_time_user_address_and_queue(
    qm: QueueManager, clock: ManualClock
) -> None:
    qm.put_many("Q", [b"1", b"2"])
    clock.advance(5)
    with qm.accounts.acting("clear", "Q", user="alice", address="10.0.0.1") as act:
        [begun] = qm.connect().accounts.acts()
        assert (begun.outcome, begun.messages) == ("begun", None), "before it is done"
        act.messages = qm.admin.clear_queue("Q")
    [noted] = qm.accounts.acts()
    assert noted[1:] == (clock.now(), "alice", "10.0.0.1", "clear", "Q", "done", 2, "")


def test_an_act_that_fails_is_logged_with_its_error(qm: QueueManager) -> None:
    with pytest.raises(ZeroDivisionError), qm.accounts.acting("divide", user="alice"):
        raise ZeroDivisionError("nothing to divide by")
    [noted] = qm.accounts.acts()
    assert (noted.outcome, noted.error) == ("failed", "ZeroDivisionError: nothing to divide by")


def test_a_back_out_keeps_the_log_entry_of_an_act(qm: QueueManager) -> None:
    with qm.accounts.acting("discard", "Q", user="alice"):
        qm.put("Q", b"1", syncpoint=True)
    qm.back_out()
    assert [(one.outcome, one.messages) for one in qm.accounts.acts()] == [("done", None)]


@pytest.mark.every_store
def test_the_log_keeps_the_newest_acts(qm: QueueManager, clock: ManualClock) -> None:
    qm.admin.alter_manager(acts_kept=3)
    for number in range(7):
        with qm.accounts.acting(f"act {number}", user="alice"):
            clock.advance(1)
    assert [one.act for one in qm.accounts.acts()] == ["act 6", "act 5", "act 4"]
    qm.admin.alter_manager(acts_kept=1)
    with qm.accounts.acting("last", user="alice"):
        pass
    assert [one.act for one in qm.accounts.acts()] == ["last"]


def test_a_long_act_is_dropped_from_the_log_if_later_acts_fill_it(qm: QueueManager) -> None:
    qm.admin.alter_manager(acts_kept=1)
    with qm.accounts.acting("long", user="alice"), qm.accounts.acting("short", user="bob"):
        pass
    assert [one.act for one in qm.accounts.acts()] == ["short"]


@pytest.mark.every_store
def test_the_log_is_read_in_parts_and_can_be_filtered(qm: QueueManager, clock: ManualClock) -> None:
    for number in range(1203):
        qm._services.store.begin_act(("alice", "bob")[number % 2], "", f"{number}", ("Q", "")[number % 3 == 0])
        clock.advance(1 if number % 5 == 0 else 0)
    acts = [one.act for one in qm.accounts.acts()]
    assert sorted(acts, key=int, reverse=True) == [str(number) for number in reversed(range(1203))]
    at = [one.at for one in qm.accounts.acts()]
    assert at == sorted(at, reverse=True)
    assert [one.act for one in qm.accounts.acts(most=2)] == acts[:2]
    assert {one.user for one in qm.accounts.acts(user="bob")} == {"bob"}
    assert len(list(qm.accounts.acts(queue=""))) == 401
    assert list(qm.accounts.acts(most=0)) == []
    since = clock.now() - 10
    assert list(qm.accounts.acts(since=since)) == [one for one in qm.accounts.acts() if one.at >= since]


@pytest.mark.every_store
def test_the_log_survives_a_restart(stores: Stores) -> None:
    store = stores.make()
    with connect(store) as qm, qm.accounts.acting("clear", "Q", user="alice"):
        pass
    store.restart()
    with connect(store) as qm:
        assert [(one.act, one.outcome) for one in qm.accounts.acts()] == [("clear", "done")]


@pytest.mark.parametrize(
    "bad",
    [{"act": ""}, {"act": 5}, {"act": "x" * 257}, {"queue": None}, {"user": ""}, {"user": None}, {"address": 5}],
    ids=repr,
)
def test_bad_acts_are_refused_and_not_done(qm: QueueManager, bad: dict[str, Any]) -> None:
    given = {"act": "clear", "queue": "Q", "user": "alice", **bad}
    with pytest.raises(ArgumentError, match=f"{next(iter(bad))} must be a text"), qm.accounts.acting(**given):
        raise AssertionError("it was done all the same")
    assert list(qm.accounts.acts()) == []


@pytest.mark.parametrize("bad", [{"most": -1}, {"most": "x"}, {"user": 5}, {"queue": b"Q"}, {"since": "now"}], ids=repr)
def test_bad_filters_of_the_log_are_refused(qm: QueueManager, bad: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=next(iter(bad))):
        qm.accounts.acts(**bad)
