"""QueueManager: connections, definitions (R4.9), system queues, and the handles behind calls by name."""

from __future__ import annotations

import getpass
import io
import math
from collections.abc import Callable, Iterator

import pytest
from tests.helpers.support import Stores, bodies, drained

import inorder
from inorder import Flags, Match, Message, NoMessageAvailable, QueueManager, Reason, UnknownQueue, connect, errors
from inorder.model.attributes import SYSTEM_QUEUES
from inorder.model.message import IN_GROUP
from inorder.stores.engine import clearing
from inorder.stores.engine.clearing import ClearingVerbs
from inorder.stores.engine.operation import Operation
from inorder.stores.engine.queue import LocalQueue
from inorder.stores.engine.store import QueueStore
from inorder.testing import ManualClock
from inorder.testing.stores import RestartableStore

# ---- connections


def test_each_connection_to_memory_is_a_separate_queue_manager() -> None:
    with connect() as one, connect(":memory:") as other:
        one.create_queue("Q")
        assert other.queues() == []
        assert one.admin.manager_attributes().name == "INORDER"


def test_the_putter_is_recorded(store: RestartableStore, clock: ManualClock) -> None:
    with connect(store, program="a name of more than 28 characters") as qm:
        qm.create_queue("Q")
        qm.put("Q", b"m1")
        qm.connect(program="clerk").put("Q", b"m2")
        qm.connect().put("Q", b"m3")
        first, second, third = qm.get_many("Q", 3)
    assert first.put_application_name == "a name of more than 28 chara"
    assert (second.put_application_name, third.put_application_name) == ("clerk", first.put_application_name)
    assert first.user_identifier == getpass.getuser()[:12]
    assert first.put_at == clock.now()


@pytest.mark.parametrize("name", [f"{'a' * 27} blank where it is cut", "blanks behind it  ", "a NUL behind it\0"])
def test_a_putter_whose_name_ends_in_blanks_is_recorded_without_them(name: str, stores: Stores) -> None:
    with connect(stores.make(), program=name) as qm:
        qm.create_queue("Q")
        qm.put("Q", b"m1")
        assert qm.get("Q").put_application_name == name[:28].rstrip(" \0")
        assert qm.admin.check() == []


def test_the_package_root_exports_at_most_40_names_and_dir_lists_them() -> None:
    assert len(set(inorder.__all__)) == len(inorder.__all__) <= 40, "say in docs/explanation/decisions.md, 670, why"
    assert all(hasattr(inorder, name) for name in inorder.__all__)
    assert sorted(name for name in dir(inorder) if not name.startswith("__")) == sorted(inorder.__all__)
    assert {"__version__", "__doc__", "__path__"} < set(dir(inorder))


# ---- definitions


@pytest.mark.every_store
def test_queues_are_listed_by_name(qm: QueueManager) -> None:
    qm.create_queue("B", description="second")
    qm.create_queue("A", type="alias", base_queue="B")
    qm.create_queue("M", type="model")
    found = [(one.name, one.type) for one in qm.queues()]
    assert found == [("A", "alias"), ("B", "local"), ("M", "model"), ("Q", "local")]
    assert qm.attributes("B").description == "second"


@pytest.mark.every_store
def test_queue_names_are_case_sensitive(qm: QueueManager) -> None:
    qm.create_queue("q")
    qm.put("q", b"small")
    assert qm.depth("Q") == 0
    assert qm.depth("q") == 1


def test_an_alteration_takes_effect_at_once(qm: QueueManager, clock: ManualClock) -> None:
    handle = qm.open("Q")
    clock.advance(5)
    qm.alter_queue("Q", put_allowed=False)
    with pytest.raises(errors.PutInhibited):
        handle.put(b"m1")
    status = qm.inspect.status("Q")
    assert status.altered_at == status.created_at + 5


def test_exist_ok_leaves_an_existing_queue_unchanged(qm: QueueManager) -> None:
    qm.create_queue("N", exist_ok=True, max_depth=5)
    qm.alter_queue("N", description="altered")
    qm.put("N", b"1")
    qm.create_queue("N", exist_ok=True, max_depth=5)
    assert (qm.attributes("N").description, qm.depth("N")) == ("altered", 1)
    qm.create_queue("A", type="alias", exist_ok=True, base_queue="N")
    qm.create_queue("A", type="alias", exist_ok=True, base_queue="N")
    qm.create_queue("M", type="model", exist_ok=True)
    qm.create_queue("M", type="model", exist_ok=True)
    with pytest.raises(errors.ObjectExists):
        qm.create_queue("N")


def test_exist_ok_refuses_an_existing_queue_with_other_attributes_and_names_them(qm: QueueManager) -> None:
    qm.create_queue("N", max_depth=5)
    with pytest.raises(
        errors.ObjectExists, match="'N' already exists: its max_depth is 5, not 6, its order is 'put', not"
    ) as raised:
        qm.create_queue("N", exist_ok=True, max_depth=6, order="commit", delivery="priority")
    assert raised.value.data["differs"] == {"max_depth": (5, 6), "order": ("put", "commit")}
    with pytest.raises(errors.ObjectExists, match="its type is 'local', not 'model'"):
        qm.create_queue("N", type="model", exist_ok=True)
    assert qm.attributes("N").max_depth == 5


@pytest.mark.every_store
def test_a_queue_is_deleted_when_it_is_empty_and_closed(qm: QueueManager) -> None:
    qm.put("Q", b"m1")
    with qm.open("Q"), pytest.raises(errors.ObjectInUse, match=r"Q is open\b(?s:.)*'inorder connection list Q' shows"):
        qm.delete_queue("Q", purge=True)
    with pytest.raises(errors.QueueNotEmpty):
        qm.delete_queue("Q")
    qm.delete_queue("Q", purge=True)
    with pytest.raises(UnknownQueue):
        qm.attributes("Q")
    qm.create_queue("Q")
    assert qm.depth("Q") == 0


@pytest.mark.parametrize("manager", ["", "TEST"])
def test_a_queue_that_is_open_through_an_alias_is_not_deleted(qm: QueueManager, manager: str) -> None:
    qm.create_queue("A", type="alias", base_queue="Q")
    handle = qm.open("A", browse=True, manager=manager)
    for name in ("A", "Q"):
        with pytest.raises(errors.ObjectInUse):
            qm.delete_queue(name)
    handle.close()
    qm.delete_queue("A")
    qm.delete_queue("Q")


# ---- the handles behind calls by name


def opens(qm: QueueManager, queue: str = "Q") -> tuple[int, int]:
    status = qm.inspect.status(queue)
    return status.open_input_count, status.open_output_count


def test_calls_by_name_open_the_queue_for_what_they_need(qm: QueueManager) -> None:
    assert opens(qm) == (0, 0)
    qm.put("Q", b"m1")
    assert opens(qm) == (0, 1)
    qm.get("Q")
    assert opens(qm) == (1, 1)
    qm.put("Q", b"m2")
    assert opens(qm) == (1, 1)
    assert qm.close_queue("Q") is None
    assert opens(qm) == (0, 0)
    assert qm.close_queue("Q") is None


def test_closing_a_default_handle_warns_of_an_unfinished_group(qm: QueueManager) -> None:
    qm.put("Q", b"m1", flags=IN_GROUP, logical=True)
    assert qm.close_queue("Q") == 2241
    qm.put("Q", b"m2", flags=IN_GROUP, logical=True)
    assert [message.sequence_number for message in qm.browse("Q")] == [1, 1]


# ---- many at once


def test_put_many_puts_all_or_none(qm: QueueManager) -> None:
    qm.alter_queue("Q", max_depth=3)
    with pytest.raises(errors.InorderError, match="2053"):
        qm.put_many("Q", [b"1", b"2", b"3", b"4"])
    assert qm.depth("Q") == 0
    results = qm.put_many("Q", [b"1", Message(b"2", priority=5)], format="MQSTR")
    assert [message.format for message in qm.browse("Q")] == ["MQSTR", "MQSTR"]
    assert bodies(qm) == [b"2", b"1"]
    assert len({result.message_id for result in results}) == 2


READ_ONCE: dict[str, Callable[[QueueManager, str], object]] = {
    "put_many": lambda qm, queue: qm.put_many(queue, iter([b"12", b"34"])),
    "put_stream": lambda qm, queue: qm.put_stream(queue, io.BytesIO(b"1234")),
    "put_stream as a group": lambda qm, queue: qm.put_stream(queue, io.BytesIO(b"1234"), as_group=True, chunk=2),
}


@pytest.mark.parametrize("call", READ_ONCE)
def test_input_that_can_be_read_once_is_put_whole_if_another_handle_is_closed_for_it(
    call: str, qm: QueueManager
) -> None:
    qm.admin.alter_manager(max_handles=1)
    qm.create_queue("OTHER")
    qm.put("OTHER", b"its default handle is the one that is open")
    READ_ONCE[call](qm, "Q")
    assert b"".join(bodies(qm)) == b"1234"


@pytest.mark.parametrize("call", READ_ONCE)
def test_input_that_can_be_read_once_is_put_whole_on_a_queue_that_was_created_again(
    call: str, qm: QueueManager
) -> None:
    qm.create_queue("M", type="model", definition_type="temporary_dynamic")
    with qm.connect() as other, other.open("M", output=True) as made:
        qm.put(made.name, b"goes with the queue")
    qm.create_queue(made.name)
    READ_ONCE[call](qm, made.name)
    assert b"".join(bodies(qm, made.name)) == b"1234"


def test_put_many_takes_any_iterable_and_puts_nothing_if_it_raises(qm: QueueManager) -> None:
    def some() -> Iterator[bytes]:
        yield b"1"
        yield b"2"

    def broken() -> Iterator[bytes]:
        yield b"3"
        raise ZeroDivisionError

    assert len(qm.put_many("Q", some())) == 2
    with pytest.raises(ZeroDivisionError):
        qm.put_many("Q", broken())
    assert bodies(qm) == [b"1", b"2"]


def test_put_many_of_nothing_does_nothing(qm: QueueManager) -> None:
    assert qm.put_many("Q", []) == []
    assert qm.put_many("Q", [], syncpoint=True) == []
    assert qm.inspect.units() == []


# ---- expiry


@pytest.mark.every_store
def test_expired_messages_are_discarded_in_steps(qm: QueueManager, clock: ManualClock) -> None:
    qm.create_queue("R")
    qm.put_many("Q", [b"1", b"2", b"3"], expiry=5)
    qm.put_many("R", [b"4"], expiry=5)
    qm.put("R", b"5")
    assert qm.admin.discard_expired() == 0
    clock.advance(5)
    found = [qm.admin.discard_expired(limit=3), qm.admin.discard_expired(limit=3), qm.admin.discard_expired()]
    assert found == [3, 1, 0]
    assert bodies(qm, "R") == [b"5"]


def test_a38_a_queue_gives_an_expiry_to_messages_that_set_none(qm: QueueManager, clock: ManualClock) -> None:
    qm.alter_queue("Q", expiry=10)
    qm.put("Q", b"queue's")
    qm.put("Q", b"longer", expiry=20)
    qm.put("Q", b"shorter", expiry=5)
    qm.put("Q", b"for ever", expiry=math.inf)
    clock.advance(5)
    found = [(message.body, message.expiry) for message in qm.browse("Q")]
    assert found == [(b"queue's", 5), (b"longer", 15), (b"for ever", math.inf)]
    clock.advance(5)
    assert bodies(qm) == [b"longer", b"for ever"]
    clock.advance(1e6)
    assert bodies(qm) == [b"for ever"]


def test_a38_a_new_expiry_of_a_queue_applies_to_later_messages_only(qm: QueueManager, clock: ManualClock) -> None:
    qm.put("Q", b"old")
    qm.alter_queue("Q", expiry=10)
    qm.put("Q", b"new")
    qm.alter_queue("Q", expiry=None)
    clock.advance(10)
    assert drained(qm) == [b"old"]


def test_closing_and_connecting_discard_expired_messages(qm: QueueManager, clock: ManualClock) -> None:
    other = qm.connect()
    qm.put("Q", b"1", expiry=1)
    clock.advance(1)
    other.close()
    assert qm.admin.discard_expired() == 0
    qm.put("Q", b"2", expiry=1)
    clock.advance(1)
    qm.connect().internals.abandon()
    assert qm.admin.discard_expired() == 0


@pytest.mark.every_store
def test_r1_5_a_restart_keeps_the_nonpersistent_messages_of_a_queue_of_class_high(store: RestartableStore) -> None:
    qm = connect(store)
    qm.create_queue("Q", nonpersistent_class="high")
    qm.put("Q", Message(b"light", persistent=False))
    qm.put("Q", Message(b"lasting", persistent=True))
    store.restart()
    qm = connect(store)
    assert (bodies(qm), qm.depth("Q")) == ([b"light", b"lasting"], 2)


def test_an_object_is_altered_only_if_it_has_the_expected_attributes(store: QueueStore) -> None:
    store.define_object("channel", "TO.B", "{}")
    with pytest.raises(errors.ObjectExists):
        store.define_object("channel", "TO.B", '{"x": 1}')
    with pytest.raises(errors.QueueCondition) as changed:
        store.alter_object("channel", "TO.B", '{"x": 1}', '{"x": 2}')
    assert changed.value.reason is Reason.OBJECT_CHANGED
    with pytest.raises(errors.UnknownObject) as unknown:
        store.alter_object("channel", "TO.C", "{}", "{}")
    assert unknown.value.reason is Reason.UNKNOWN_OBJECT_NAME
    with pytest.raises(errors.UnknownObject):
        store.delete_object("process", "TO.B")
    assert [one.attributes for one in store.objects("channel")] == ["{}"]


DEAD = "SYSTEM.DEAD.LETTER.QUEUE"
MODEL = "SYSTEM.DEFAULT.MODEL.QUEUE"


def kept(qm: QueueManager) -> list[str]:
    return [one.name for one in qm.queues() if one.name.startswith("SYSTEM.")]


def test_unused_system_queues_have_attributes_and_are_not_stored(qm: QueueManager) -> None:
    for name, attributes in SYSTEM_QUEUES.items():
        assert qm.attributes(name) == attributes
    status = qm.inspect.status(DEAD)
    assert (status.current_depth, status.open_output_count) == (0, 0)
    assert kept(qm) == []


def test_a_put_on_a_system_queue_stores_its_definition(qm: QueueManager) -> None:
    qm.put(DEAD, b"1")
    assert (kept(qm), qm.depth(DEAD), qm.get(DEAD).body) == ([DEAD], 1, b"1")


def test_a_get_from_an_unused_system_queue_finds_nothing_and_stores_its_definition(qm: QueueManager) -> None:
    with pytest.raises(NoMessageAvailable):
        qm.get(DEAD)
    assert kept(qm) == [DEAD]


def test_the_system_model_makes_queues_without_being_stored(qm: QueueManager) -> None:
    with qm.open(MODEL, input="shared") as made:
        assert qm.attributes(made.name).definition_type == "temporary_dynamic"
    assert kept(qm) == []


@pytest.mark.every_store
def test_altering_a_system_queue_stores_it_and_deleting_it_restores_its_defaults(qm: QueueManager) -> None:
    qm.alter_queue(DEAD, max_depth=5)
    other = qm.connect()
    assert (kept(other), other.attributes(DEAD).max_depth) == ([DEAD], 5)
    other.delete_queue(DEAD)
    assert (kept(qm), qm.attributes(DEAD)) == ([], SYSTEM_QUEUES[DEAD])


@pytest.mark.every_store
def test_looking_at_an_unused_system_queue_finds_nothing_and_stores_nothing(qm: QueueManager) -> None:
    qm.create_queue("A", type="alias", base_queue=DEAD)
    qm.create_queue("EMPTY")
    for name in (DEAD, "A"):
        assert list(qm.inspect.look(name)) == []
        assert list(qm.inspect.look(name, order="logical")) == []
        assert qm.inspect.gaps(name, b"group") == qm.inspect.gaps("EMPTY", b"group")
        assert qm.inspect.order_view(name) == qm.inspect.order_view("EMPTY")
    assert kept(qm) == []
    with pytest.raises(UnknownQueue):
        qm.inspect.look("SYSTEM.NOT.THERE")
    qm.put("A", b"1")
    assert (kept(qm), qm.depth("A"), qm.depth(DEAD)) == ([DEAD], 1, 1)


@pytest.mark.every_store
def test_a_clear_removes_all_messages_and_the_queue_still_works(qm: QueueManager) -> None:
    qm.put_many("Q", [b"1", b"2", b"3"])
    qm.put("Q", b"later", delay=1000)
    qm.put("Q", b"large" * 100_000, priority=7)
    qm.close_queue("Q")
    assert (qm.admin.clear_queue("Q"), qm.depth("Q")) == (5, 0)
    assert qm.admin.clear_queue("Q") == 0
    qm.put("Q", b"again")
    message = qm.get("Q")
    assert (message.body, message.place and message.place.number) == (b"again", 6), "numbers do not return (B-2)"


@pytest.mark.parametrize("act", ["clear", "delete"])
def test_handles_opened_for_calls_by_name_do_not_prevent_a_clear_or_delete(qm: QueueManager, act: str) -> None:
    qm.create_queue("A", type="alias", base_queue="Q")
    qm.put("Q", b"1")
    qm.put("A", b"2")
    if act == "delete":
        qm.delete_queue("Q", purge=True)
        assert [queue.name for queue in qm.queues()] == ["A"]
        return
    assert qm.admin.clear_queue("Q") == 2
    qm.put("A", b"3")
    assert qm.get("Q").body == b"3"


def test_a_clear_does_not_close_a_default_handle_inside_a_group(qm: QueueManager) -> None:
    qm.put("Q", b"1", logical=True, flags=Flags.IN_GROUP)
    with pytest.raises(errors.ObjectInUse, match="close_queue"):
        qm.admin.clear_queue("Q")
    qm.put("Q", b"2", logical=True, flags=Flags.LAST_IN_GROUP)
    assert qm.admin.clear_queue("Q") == 2


@pytest.mark.every_store
def test_a_clear_removes_nothing_if_a_unit_of_work_holds_a_message(qm: QueueManager) -> None:
    qm.put("Q", b"plain")
    qm.put("Q", b"uncommitted", confirm_id=7)
    qm.close_queue("Q")
    with pytest.raises(errors.QueueNotEmpty):
        qm.admin.clear_queue("Q")
    assert qm.depth("Q") == 2


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Callable[[], object]]]:
    """Makes a clear take two messages per step, and call the functions in this list before its second step."""
    calls: list[Callable[[], object]] = []
    more = ClearingVerbs._clear_more

    def clear_more(self: ClearingVerbs, number: int, upto: int) -> int:
        while calls:
            calls.pop()()
        return more(self, number, upto)

    monkeypatch.setattr(clearing, "STEP", 2)
    monkeypatch.setattr(ClearingVerbs, "_clear_more", clear_more)
    yield calls
    assert not calls


@pytest.mark.every_store
def test_others_can_work_between_the_steps_of_a_clear(qm: QueueManager, between: list[Callable[[], object]]) -> None:
    qm.put_many("Q", [b"1", b"2", b"3", b"4", b"5"])
    qm.close_queue("Q")
    other = qm.connect()

    def work() -> None:
        assert other.depth("Q") == 3
        assert other.get("Q", syncpoint=True).body == b"3"
        other.put("Q", b"new", priority=9)

    between.append(work)
    assert qm.admin.clear_queue("Q") == 4, "what another one holds stays, and what has come"
    other.back_out()
    assert [one.body for one in qm.browse("Q")] == [b"new", b"3"]
    assert qm.admin.check() == []


@pytest.mark.every_store
def test_an_interrupted_clear_leaves_the_rest(qm: QueueManager, between: list[Callable[[], object]]) -> None:
    qm.put_many("Q", [b"1", b"2", b"3", b"4"])
    qm.close_queue("Q")

    def interrupt() -> None:
        raise KeyboardInterrupt

    between.append(interrupt)
    with pytest.raises(KeyboardInterrupt):
        qm.admin.clear_queue("Q")
    assert (qm.depth("Q"), qm.admin.check()) == (2, [])
    qm.close_queue("Q")
    assert qm.admin.clear_queue("Q") == 2


@pytest.mark.every_store
def test_a_lock_whose_messages_are_cleared_in_steps_ends_with_the_last(
    qm: QueueManager, between: list[Callable[[], object]]
) -> None:
    qm.put_many("Q", [b"1", b"2", b"3", b"4"])
    qm.browse_and_lock("Q", Match())
    qm.close_queue("Q")
    between.append(lambda: None)
    assert qm.admin.clear_queue("Q") == 4
    assert (qm.inspect.units(), qm.admin.check()) == ([], [])


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_queue_is_purged_in_steps(qm: QueueManager, monkeypatch: pytest.MonkeyPatch, dynamic: bool) -> None:
    depths: list[int] = []
    clear = clearing._clear

    def step(verb: Operation, queue: LocalQueue, upto: int) -> int:
        depths.append(queue.depth)
        return clear(verb, queue, upto)

    monkeypatch.setattr(clearing, "STEP", 2)
    monkeypatch.setattr(clearing, "_clear", step)
    qm.create_queue("M", type="model", definition_type="permanent_dynamic")
    with qm.open("M", output=True, dynamic_name="D") as handle:
        handle.put_many([b"x"] * 7)
        if dynamic:
            handle.close(purge=True)
    if not dynamic:
        qm.delete_queue("D", purge=True)
    assert depths == [7, 5, 3]
    assert [one.name for one in qm.queues()] == ["M", "Q"]
    assert qm.admin.check() == []
