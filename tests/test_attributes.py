"""The tables of attributes: defaults, what is refused and why, what can be changed by whom."""

from __future__ import annotations

import copy
import enum
import pickle
import re
from dataclasses import FrozenInstanceError, fields
from typing import Any, get_type_hints

import pytest

from inorder.attribute import Attribute, Change, check_queue_name
from inorder.attributes import (
    MANAGER_ATTRIBUTES,
    QUEUE_ATTRIBUTES,
    ManagerAttributes,
    QueueAttributes,
    QueueKeywords,
    QueueStatus,
    QueueType,
    altered,
    altered_manager,
    define_manager,
    define_queue,
)
from inorder.errors import ArgumentError, Reason

EVERY_ATTRIBUTE = [*QUEUE_ATTRIBUTES.values(), *MANAGER_ATTRIBUTES.values()]
CHANGES: tuple[Change, ...] = ("alter", "set")
COMMON = "name type description default_priority default_persistence put_allowed"
OF_REMOTE = {"remote_queue", "remote_manager", "transmission_queue"}


def local(**given: object) -> QueueAttributes:
    return define_queue("Q", "local", **given)


def of_type(kind: QueueType) -> QueueAttributes:
    return define_queue("Q", kind)


# ---- the tables


@pytest.mark.parametrize(
    ("table", "declared"), [(QUEUE_ATTRIBUTES, QueueAttributes), (MANAGER_ATTRIBUTES, ManagerAttributes)]
)
def test_a_table_lists_the_fields(table: dict[str, Attribute], declared: type[Any]) -> None:
    assert list(table) == [each.name for each in fields(declared)]
    assert all(attribute.name == name for name, attribute in table.items())


def test_the_keywords_are_the_fields_but_the_name_and_the_type() -> None:
    hints = get_type_hints(QueueAttributes)
    del hints["name"], hints["type"]
    assert get_type_hints(QueueKeywords) == hints
    assert not QueueKeywords.__required_keys__


@pytest.mark.parametrize("attribute", EVERY_ATTRIBUTE, ids=lambda each: each.name)
def test_every_attribute_is_described_with_its_rule(attribute: Attribute) -> None:
    assert re.fullmatch(r"[A-Z][^.]*.*\.", attribute.doc)
    if attribute.kind != "text" and attribute.name not in ("name", "acts_kept"):  # the log of acts is our own
        assert re.search(r"\((?:[AB]-\d+|R?\d+\.\d+|reason \d+)", attribute.doc)
    assert (attribute.mq_name is None) == (attribute.selector is None)


@pytest.mark.parametrize("attribute", QUEUE_ATTRIBUTES.values(), ids=lambda each: each.name)
def test_what_mq_has_in_numbers_has_one_for_each_value(attribute: Attribute) -> None:
    ours = attribute.choices or (True, False) if attribute.kind in ("choice", "boolean") and attribute.mq_name else ()
    assert len(set(attribute.mq_values)) == len(ours)
    assert [attribute.from_mq(attribute.to_mq(value)) for value in ours] == list(ours)


def test_the_numbers_of_mq() -> None:
    """From its header files: MQIA_, MQCA_ and the values that the integers take."""
    assert {name: each.selector for name, each in QUEUE_ATTRIBUTES.items() if each.selector} == {
        "name": 2016,
        "type": 20,
        "description": 2013,
        "delivery": 16,
        "default_priority": 6,
        "default_persistence": 5,
        "index_type": 57,
        "max_depth": 15,
        "max_length": 13,
        "get_allowed": 9,
        "put_allowed": 10,
        "shareable": 23,
        "default_input": 4,
        "definition_type": 7,
        "backout_threshold": 22,
        "backout_requeue_queue": 2019,
        "harden_get_backout": 8,
        "retention_interval": 21,
        "nonpersistent_class": 78,
        "trigger_control": 24,
        "trigger_type": 28,
        "trigger_priority": 26,
        "trigger_depth": 29,
        "trigger_data": 2023,
        "initiation_queue": 2008,
        "process": 2012,
        "base_queue": 2002,
        "usage": 12,
        "remote_queue": 2018,
        "remote_manager": 2017,
        "transmission_queue": 2024,
    }
    mapped = {
        name: {value: each.to_mq(value) for value in each.choices or (True, False)}
        for name, each in QUEUE_ATTRIBUTES.items()
        if each.mq_values
    }
    assert mapped == {
        "type": {"local": 1, "model": 2, "alias": 3, "remote": 6},
        "delivery": {"priority": 0, "fifo": 1},
        "default_persistence": {True: 1, False: 0},
        "index_type": {"none": 0, "message_id": 1, "correlation_id": 2, "message_token": 4, "group_id": 5},
        "get_allowed": {True: 0, False: 1},
        "put_allowed": {True: 0, False: 1},
        "shareable": {True: 1, False: 0},
        "default_input": {"shared": 2, "exclusive": 4},
        "definition_type": {"predefined": 1, "permanent_dynamic": 2, "temporary_dynamic": 3},
        "harden_get_backout": {True: 1, False: 0},
        "nonpersistent_class": {"normal": 0, "high": 10},
        "trigger_control": {True: 1, False: 0},
        "trigger_type": {"none": 0, "first": 1, "every": 2, "depth": 3, "group": 1001},
        "usage": {"normal": 0, "transmission": 1},
    }


@pytest.mark.parametrize("attribute", EVERY_ATTRIBUTE, ids=lambda each: each.name)
def test_every_default_is_allowed(attribute: Attribute) -> None:
    if attribute is not QUEUE_ATTRIBUTES["name"]:
        assert attribute.check(attribute.default) == attribute.default


@pytest.mark.parametrize("table", [QUEUE_ATTRIBUTES, MANAGER_ATTRIBUTES])
def test_no_two_attributes_share_a_selector(table: dict[str, Attribute]) -> None:
    selectors = [each.selector for each in table.values() if each.selector]
    assert len(set(selectors)) == len(selectors)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("local", set(QUEUE_ATTRIBUTES) - {"base_queue"} - OF_REMOTE),
        ("model", set(QUEUE_ATTRIBUTES) - {"base_queue"} - OF_REMOTE),
        ("alias", {*COMMON.split(), "get_allowed", "base_queue"}),
        ("remote", {*COMMON.split(), *OF_REMOTE}),
    ],
)
def test_which_type_has_which_attributes(kind: str, names: set[str]) -> None:
    assert {name for name, each in QUEUE_ATTRIBUTES.items() if kind in each.applies_to} == names


def test_who_may_change_what() -> None:
    changed_by = {name: each.changed_by for name, each in QUEUE_ATTRIBUTES.items()}
    assert {name for name in changed_by if changed_by[name] == "create"} == {
        "name",
        "type",
        "definition_type",
    }
    assert {name for name in changed_by if changed_by[name] == "set"} == {
        "get_allowed",
        "put_allowed",
        "trigger_control",
        "trigger_type",
        "trigger_priority",
        "trigger_depth",
        "trigger_data",
    }


# ---- defaults


def test_the_defaults_of_a_local_queue() -> None:
    assert local() == QueueAttributes(
        name="Q",
        type="local",
        description="",
        delivery="priority",
        default_priority=0,
        default_persistence=True,
        order="put",
        read_order="relaxed",
        index_type="none",
        max_depth=999_999_999,
        max_length=4_194_304,
        get_allowed=True,
        put_allowed=True,
        shareable=True,
        default_input="shared",
        definition_type="predefined",
        backout_threshold=0,
        backout_requeue_queue="",
        harden_get_backout=True,
        retention_interval=999_999_999,
        nonpersistent_class="normal",
        expiry=None,
        base_queue="",
        usage="normal",
        remote_queue="",
        remote_manager="",
        transmission_queue="",
    )


def test_the_defaults_of_the_queue_manager() -> None:
    assert define_manager() == ManagerAttributes(
        name="INORDER",
        description="",
        max_uncommitted=1_000_000,
        max_priority=9,
        max_length=104_857_600,
        max_handles=256,
        coded_character_set_id=1208,
        mark_interval=5.0,
        default_transmission_queue="",
    )


@pytest.mark.parametrize(
    ("kind", "given", "definition_type", "persistence"),
    [
        ("local", {}, "predefined", True),
        ("local", {"definition_type": "permanent_dynamic"}, "permanent_dynamic", True),
        ("local", {"definition_type": "temporary_dynamic"}, "temporary_dynamic", False),
        ("model", {}, "temporary_dynamic", False),
        ("model", {"definition_type": "permanent_dynamic"}, "permanent_dynamic", True),
        ("model", {"default_persistence": False}, "temporary_dynamic", False),
        ("alias", {}, "predefined", True),
        ("alias", {"default_persistence": False}, "predefined", False),
    ],
)
def test_defaults_that_hang_on_how_the_queue_comes_to_be(
    kind: QueueType, given: dict[str, Any], definition_type: str, persistence: bool
) -> None:
    queue = define_queue("Q", kind, **given)
    assert (queue.type, queue.definition_type, queue.default_persistence) == (
        kind,
        definition_type,
        persistence,
    )


def test_given_values_are_kept() -> None:
    given: QueueKeywords = {"order": "commit", "read_order": "strict", "max_depth": 0, "description": "Größe"}
    queue = define_queue("a./_%9", **given)
    assert (queue.name, queue.order, queue.read_order, queue.max_depth) == ("a./_%9", "commit", "strict", 0)
    assert queue.description == "Größe"


def test_attributes_are_values() -> None:
    queue = local(max_depth=7)
    assert queue == pickle.loads(pickle.dumps(queue)) == copy.deepcopy(queue)
    with pytest.raises(FrozenInstanceError):
        queue.max_depth = 8  # type: ignore[misc]


# ---- values

BAD: list[tuple[str, list[object], Reason, str]] = [
    (
        "description",
        ["x" * 65, "a\nb", "a\0", "\ud800", b"x", None],
        Reason.ARGUMENT_ERROR,
        "a text of at most 64",
    ),
    ("delivery", ["FIFO", "", "lifo", 0, None, ["fifo"]], Reason.ARGUMENT_ERROR, "'priority' or 'fifo'"),
    ("default_priority", [-1, 10, "5", 5.0, True, None], Reason.PRIORITY_ERROR, "an integer from 0 to 9"),
    ("default_persistence", [1, 0, "yes", None], Reason.ARGUMENT_ERROR, "True or False"),
    ("order", ["PUT", "", None], Reason.ARGUMENT_ERROR, "'put' or 'prepare' or 'commit'"),
    ("read_order", ["notify", None, 1], Reason.ARGUMENT_ERROR, "'required' or 'strict' or 'relaxed' or 'uno"),
    ("index_type", ["group", None], Reason.ARGUMENT_ERROR, "'none' or 'message_id'"),
    (
        "max_depth",
        [-1, 10**9, 10**400, 1.0, True, "1"],
        Reason.ARGUMENT_ERROR,
        "an integer from 0 to 999,999,999",
    ),
    ("max_length", [-1, 104_857_601], Reason.ARGUMENT_ERROR, "an integer from 0 to 104,857,600"),
    ("get_allowed", [1, 0, 2, "no", None], Reason.INHIBIT_VALUE_ERROR, "True or False"),
    ("put_allowed", [1, 0, 2, "no", None], Reason.INHIBIT_VALUE_ERROR, "True or False"),
    ("shareable", [1, None], Reason.ARGUMENT_ERROR, "True or False"),
    ("default_input", ["browse", None], Reason.ARGUMENT_ERROR, "'shared' or 'exclusive'"),
    ("definition_type", ["dynamic", 1], Reason.ARGUMENT_ERROR, "'predefined' or 'permanent_dynamic'"),
    ("backout_threshold", [-1, 10**9, None], Reason.ARGUMENT_ERROR, "an integer from 0 to"),
    ("backout_requeue_queue", ["a b", "x" * 49, " ", None], Reason.ARGUMENT_ERROR, "1 to 48 characters"),
    ("harden_get_backout", ["yes"], Reason.ARGUMENT_ERROR, "True or False"),
    ("retention_interval", [-1, 0.5], Reason.ARGUMENT_ERROR, "an integer from 0 to"),
    ("nonpersistent_class", ["low"], Reason.ARGUMENT_ERROR, "'normal' or 'high'"),
    (
        "expiry",
        [0, 0.0, -1, 100_000_000, 10**400, float("nan"), float("inf"), "5", True],
        Reason.ARGUMENT_ERROR,
        "a number of seconds above 0 and up to 99,999,999.9, or None",
    ),
    ("trigger_control", [1, 0, "yes", None], Reason.TRIGGER_CONTROL_ERROR, "True or False"),
    ("trigger_type", ["FIRST", "", 1, None], Reason.TRIGGER_TYPE_ERROR, "'none' or 'first' or 'every' or 'depth'"),
    ("trigger_priority", [-1, 10, "5", None], Reason.TRIGGER_MSG_PRIORITY_ERR, "an integer from 0 to 9"),
    ("trigger_depth", [0, 10**9, "1", None], Reason.TRIGGER_DEPTH_ERROR, "an integer from 1 to 999,999,999"),
    ("trigger_data", ["x" * 65, "a\nb", None], Reason.ARGUMENT_ERROR, "a text of at most 64"),
    ("initiation_queue", ["a b", "x" * 49, None], Reason.ARGUMENT_ERROR, "1 to 48 characters"),
    ("process", ["a b", "x" * 49, None], Reason.ARGUMENT_ERROR, "1 to 48 characters"),
    ("usage", ["xmitq", None, 1], Reason.ARGUMENT_ERROR, "'normal' or 'transmission'"),
]
BAD_OF_REMOTE: list[tuple[str, list[object], Reason, str]] = [
    ("remote_queue", ["a b", "x" * 49, None], Reason.ARGUMENT_ERROR, "1 to 48 characters"),
    ("remote_manager", ["a b", "x" * 49, None], Reason.ARGUMENT_ERROR, "1 to 48 characters"),
    ("transmission_queue", ["a b", "x" * 49, None], Reason.ARGUMENT_ERROR, "1 to 48 characters"),
]
BAD_OF_MANAGER: list[tuple[str, list[object], Reason, str]] = [
    ("name", ["", "a b", "é", "x" * 49, None], Reason.ARGUMENT_ERROR, "1 to 48 characters"),
    ("description", [1], Reason.ARGUMENT_ERROR, "a text of at most 64"),
    ("max_uncommitted", [0, 10**9], Reason.ARGUMENT_ERROR, "an integer from 1 to 999,999,999"),
    ("acts_kept", [0, 10**6 + 1], Reason.ARGUMENT_ERROR, "an integer from 1 to 1,000,000"),
    ("max_priority", [8, 10, "9"], Reason.ARGUMENT_ERROR, "9, not"),
    ("max_length", [32_767, 104_857_601], Reason.ARGUMENT_ERROR, "an integer from 32,768 to 104,857,600"),
    ("max_handles", [0, 10**9], Reason.ARGUMENT_ERROR, "an integer from 1 to"),
    ("coded_character_set_id", [0, 65_536], Reason.ARGUMENT_ERROR, "an integer from 1 to 65,535"),
    ("trigger_interval", [0, -1.0, 10**6, "5"], Reason.ARGUMENT_ERROR, "a number of seconds above 0"),
    ("mark_interval", [0, -1.0, 10**6, "5"], Reason.ARGUMENT_ERROR, "a number of seconds above 0"),
    ("dead_letter_queue", ["a b", "é", "x" * 49, None], Reason.ARGUMENT_ERROR, "1 to 48 characters"),
    ("default_transmission_queue", ["a b", "x" * 49, None], Reason.ARGUMENT_ERROR, "1 to 48 characters"),
]


def cases(table: list[tuple[str, list[object], Reason, str]]) -> list[tuple[str, object, Reason, str]]:
    return [(name, value, reason, allowed) for name, values, reason, allowed in table for value in values]


@pytest.mark.parametrize(("name", "value", "reason", "allowed"), cases(BAD_OF_REMOTE))
def test_a_bad_value_of_a_remote_queue_is_refused(name: str, value: object, reason: Reason, allowed: str) -> None:
    with pytest.raises(ArgumentError) as raised:
        define_queue("R", "remote", **{name: value})
    check_refusal(raised.value, name, value, reason, allowed)


@pytest.mark.parametrize(("name", "value", "reason", "allowed"), cases(BAD))
def test_a_bad_value_is_refused(name: str, value: object, reason: Reason, allowed: str) -> None:
    with pytest.raises(ArgumentError) as at_definition:
        local(**{name: value})
    check_refusal(at_definition.value, name, value, reason, allowed)
    if QUEUE_ATTRIBUTES[name].changed_by != "create":
        with pytest.raises(ArgumentError) as at_change:
            altered(local(), "alter", **{name: value})
        check_refusal(at_change.value, name, value, reason, allowed)


@pytest.mark.parametrize(("name", "value", "reason", "allowed"), cases(BAD_OF_MANAGER))
def test_a_bad_value_of_the_queue_manager_is_refused(name: str, value: object, reason: Reason, allowed: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        define_manager(**{name: value})
    check_refusal(refused.value, name, value, reason, allowed)


def check_refusal(error: ArgumentError, name: str, value: object, reason: Reason, allowed: str) -> None:
    assert str(error).startswith(f"{name} must be {allowed}")
    assert (error.reason, error.argument, error.value) == (reason, name, value)


def test_the_tables_of_bad_values_miss_no_attribute() -> None:
    assert {name for name, *_ in BAD} == set(QUEUE_ATTRIBUTES) - {"name", "type", "base_queue"} - OF_REMOTE
    assert {name for name, *_ in BAD_OF_REMOTE} == OF_REMOTE
    assert {name for name, *_ in BAD_OF_MANAGER} == set(MANAGER_ATTRIBUTES)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("description", "x" * 64),
        ("description", "\N{MAN}\N{ZERO WIDTH JOINER}\N{PERSONAL COMPUTER} prêt :"),
        ("default_priority", 9),
        ("max_depth", 0),
        ("max_depth", 999_999_999),
        ("max_length", 0),
        ("max_length", 104_857_600),
        ("backout_requeue_queue", ""),
        ("backout_requeue_queue", "x" * 48),
        ("expiry", 99_999_999.9),
        ("expiry", 0.001),
        ("expiry", None),
    ],
)
def test_values_at_the_edge_are_allowed(name: str, value: object) -> None:
    assert getattr(local(**{name: value}), name) == value


class Level(enum.IntEnum):
    HIGH = 9


class Way(str, enum.Enum):
    FIFO = "fifo"


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("default_priority", Level.HIGH, 9),
        ("delivery", Way.FIFO, "fifo"),
        ("description", Way.FIFO, "fifo"),
        ("base_queue", Way.FIFO, "fifo"),
        ("expiry", 5, 5.0),
    ],
)
def test_a_value_is_kept_as_what_it_stands_for(name: str, value: object, kept: object) -> None:
    checked = QUEUE_ATTRIBUTES[name].check(value)
    assert checked == kept
    assert type(checked) is type(kept)


@pytest.mark.parametrize("name", ["", "a b", "a-b", "a*", "é", "x\n", "\u0661", "x" * 49, b"Q", None, 1])
def test_a_name_that_no_queue_can_have(name: Any) -> None:
    for make in (check_queue_name, define_queue):
        with pytest.raises(ArgumentError, match="name must be 1 to 48 characters out of A-Z") as refused:
            make(name)
        assert (refused.value.reason, refused.value.value) == (Reason.ARGUMENT_ERROR, name)


def test_a_name_may_have_its_own_argument_and_reason() -> None:
    with pytest.raises(ArgumentError, match="dynamic_name must be") as refused:
        check_queue_name("A B", argument="dynamic_name", reason=Reason.DYNAMIC_Q_NAME_ERROR)
    assert refused.value.reason is Reason.DYNAMIC_Q_NAME_ERROR


@pytest.mark.parametrize("name", ["A", "a.b/c_d%9", "x" * 48, "..."])
def test_a_name_that_a_queue_can_have(name: str) -> None:
    assert check_queue_name(name) == define_queue(name).name == name


# ---- what can be named at all


@pytest.mark.parametrize(
    ("kind", "given", "reason", "text"),
    [
        ("local", {"max_dept": 1}, 2067, "there is no attribute 'max_dept' (nearest: max_depth"),
        ("local", {"persistent": True}, 2067, "there is no attribute 'persistent' (nearest: "),
        ("local", {"zzz": 1}, 2067, "there is no attribute 'zzz' [2067"),
        ("alias", {"base_q": "B"}, 2067, "there is no attribute 'base_q' (nearest: base_queue) [2067"),
        ("alias", {"max_dept": 1}, 2067, "there is no attribute 'max_dept' [2067"),
        ("local", {"MaxQDepth": 1}, 2067, "there is no attribute 'MaxQDepth'"),
        ("local", {"base_queue": "B"}, 2068, "a queue of type 'local' has no attribute 'base_queue'"),
        ("model", {"base_queue": "B"}, 2068, "a queue of type 'model' has no attribute 'base_queue'"),
        ("alias", {"max_depth": 1}, 2068, "a queue of type 'alias' has no attribute 'max_depth'"),
        ("alias", {"definition_type": "predefined"}, 2068, "a queue of type 'alias' has no attribute"),
        ("cluster", {}, 9017, "type must be 'local' or 'alias' or 'model' or 'remote', not 'cluster'"),
        ("remote", {"delivery": "fifo"}, 2068, "a queue of type 'remote' has no attribute 'delivery'"),
        (None, {}, 9017, "type must be 'local' or 'alias' or 'model' or 'remote', not None"),
        ("model", {"definition_type": "predefined"}, 9017, "definition_type must be 'permanent_dynamic' or"),
        ("model", {"default_persistence": True}, 2048, "default_persistence must be False for a temporary"),
        (
            "local",
            {"definition_type": "temporary_dynamic", "default_persistence": True},
            2048,
            "default_persistence must be False for a temporary dynamic queue",
        ),
    ],
)
def test_a_definition_that_is_refused(kind: Any, given: dict[str, object], reason: int, text: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        define_queue("Q", kind, **given)
    assert str(refused.value).startswith(text)
    assert refused.value.reason == reason
    assert {"argument", "value", "allowed"} <= set(refused.value.data)


def test_an_unknown_attribute_tells_what_there_is() -> None:
    with pytest.raises(ArgumentError) as refused:
        define_queue("Q", "alias", base_q="B")
    assert refused.value.nearest == ["base_queue"]
    assert refused.value.allowed == ", ".join([*COMMON.replace("put", "get_allowed put", 1).split(), "base_queue"])


@pytest.mark.parametrize(
    ("kind", "by", "changes", "reason", "text"),
    [
        ("local", "alter", {"name": "R"}, 2067, "attribute 'name' cannot be changed after creation"),
        ("local", "alter", {"type": "alias"}, 2067, "attribute 'type' cannot be changed after creation"),
        (
            "local",
            "alter",
            {"definition_type": "permanent_dynamic"},
            2067,
            "attribute 'definition_type' cannot",
        ),
        ("local", "alter", {"max_dept": 1}, 2067, "there is no attribute 'max_dept'"),
        ("local", "alter", {"base_queue": "B"}, 2068, "a queue of type 'local' has no attribute"),
        ("local", "set", {"max_depth": 1}, 2067, "attribute 'max_depth' cannot be set through a handle"),
        ("local", "set", {"delivery": "fifo"}, 2067, "attribute 'delivery' cannot be set through a handle"),
        ("local", "set", {"default_priority": 1}, 2067, "attribute 'default_priority' cannot be set"),
        ("local", "set", {"get_allowed": 0}, 2020, "get_allowed must be True or False, not 0"),
        (
            "model",
            "set",
            {"definition_type": "permanent_dynamic"},
            2067,
            "attribute 'definition_type' cannot",
        ),
        ("model", "alter", {"definition_type": "predefined"}, 9017, "definition_type must be"),
        ("model", "alter", {"default_persistence": True}, 2048, "default_persistence must be False"),
        ("alias", "alter", {"max_depth": 1}, 2068, "a queue of type 'alias' has no attribute"),
        ("local", "alter", {"max_depth": 1, "max_length": -1}, 9017, "max_length must be an integer"),
    ],
)
def test_a_change_that_is_refused(
    kind: QueueType, by: Change, changes: dict[str, object], reason: int, text: str
) -> None:
    queue = of_type(kind)
    with pytest.raises(ArgumentError) as refused:
        altered(queue, by, **changes)
    assert str(refused.value).startswith(text)
    assert refused.value.reason == reason
    assert queue == of_type(kind)


# ---- changes


def test_a_change_makes_a_new_value() -> None:
    queue = local()
    changed = altered(queue, "alter", delivery="fifo", default_priority=5, expiry=10)
    assert (changed.delivery, changed.default_priority, changed.expiry) == ("fifo", 5, 10.0)
    assert (queue.delivery, queue.default_priority, queue.expiry) == ("priority", 0, None)
    assert altered(changed, "alter", delivery="priority", default_priority=0, expiry=None) == queue


@pytest.mark.parametrize("by", CHANGES)
@pytest.mark.parametrize("kind", ["local", "alias", "model"])
def test_getting_and_putting_can_be_switched_off_either_way(kind: QueueType, by: Change) -> None:
    queue = altered(of_type(kind), by, get_allowed=False, put_allowed=False)
    assert (queue.get_allowed, queue.put_allowed) == (False, False)


@pytest.mark.parametrize("by", CHANGES)
def test_no_change_changes_nothing(by: Change) -> None:
    assert altered(local(), by) == local()


def test_a_model_can_be_told_to_make_lasting_queues_and_back() -> None:
    lasting = altered(of_type("model"), "alter", definition_type="permanent_dynamic", default_persistence=True)
    assert (lasting.definition_type, lasting.default_persistence) == ("permanent_dynamic", True)
    with pytest.raises(ArgumentError) as refused:
        altered(lasting, "alter", definition_type="temporary_dynamic")
    assert refused.value.reason is Reason.PERSISTENT_NOT_ALLOWED
    again = altered(lasting, "alter", definition_type="temporary_dynamic", default_persistence=False)
    assert again == of_type("model")


def test_an_alias_can_be_pointed_elsewhere() -> None:
    assert altered(define_queue("A", "alias", base_queue="B"), "alter", base_queue="C").base_queue == "C"


def test_the_queue_manager_is_defined_and_altered_by_the_same_rules() -> None:
    manager = define_manager(name="QM1", max_handles=2)
    assert altered_manager(manager, max_handles=3, mark_interval=None) == define_manager(
        name="QM1", max_handles=3, mark_interval=None
    )
    assert altered_manager(manager, "alter", description="d").description == "d"


@pytest.mark.parametrize(
    ("by", "changes", "text"),
    [
        ("alter", {"name": "QM2"}, "attribute 'name' cannot be changed after creation"),
        ("alter", {"max_priority": 9}, "attribute 'max_priority' cannot be changed after creation"),
        ("alter", {"max_depth": 1}, "there is no attribute 'max_depth'"),
        ("set", {"max_handles": 1}, "attribute 'max_handles' cannot be set through a handle"),
    ],
)
def test_a_change_of_the_queue_manager_that_is_refused(by: Change, changes: dict[str, object], text: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        altered_manager(define_manager(), by, **changes)
    assert str(refused.value).startswith(text)
    assert refused.value.reason is Reason.SELECTOR_ERROR


def test_a_status_is_a_value() -> None:
    status = QueueStatus(
        current_depth=3,
        open_input_count=1,
        open_output_count=0,
        uncommitted=2,
        created_at=0.0,
        altered_at=1.5,
    )
    assert pickle.loads(pickle.dumps(status)) == status
