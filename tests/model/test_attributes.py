"""The tables of attributes: defaults, refused values with their reasons, and changes that each call may make."""

from __future__ import annotations

import enum
import re
from dataclasses import fields
from typing import Any, get_type_hints

import pytest

from inorder.errors import ArgumentError, Reason
from inorder.model.attribute import Attribute, Change, check_queue_name
from inorder.model.attributes import (
    MANAGER_ATTRIBUTES,
    QUEUE_ATTRIBUTES,
    ManagerAttributes,
    QueueAttributes,
    QueueKeywords,
    QueueType,
    altered,
    altered_manager,
    define_manager,
    define_queue,
)

EVERY_ATTRIBUTE = [*QUEUE_ATTRIBUTES.values(), *MANAGER_ATTRIBUTES.values()]
COMMON = "name type description default_priority default_persistence put_allowed"
OF_REMOTE = {"remote_queue", "remote_manager", "transmission_queue", "mode", "connection"}
OF_COLLECTING = {"targets", "interval_ms", "retry"}


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


def test_the_keywords_are_the_fields_except_name_and_type() -> None:
    hints = get_type_hints(QueueAttributes)
    del hints["name"], hints["type"]
    assert get_type_hints(QueueKeywords) == hints
    assert not QueueKeywords.__required_keys__


def test_every_attribute_is_described_with_its_rule_and_has_a_default_that_is_allowed() -> None:
    for attribute in EVERY_ATTRIBUTE:
        assert re.fullmatch(r"[A-Z][^.]*.*\.", attribute.doc)
        if attribute.kind != "text" and attribute.name not in ("name", "acts_kept"):  # MQ has no log of acts
            assert re.search(r"\((?:[AB]-\d+|R?\d+\.\d+|reason \d+)", attribute.doc), attribute.name
        assert (attribute.mq_name is None) == (attribute.selector is None)
        if attribute is not QUEUE_ATTRIBUTES["name"]:
            assert attribute.check(attribute.default) == attribute.default
    for table in (QUEUE_ATTRIBUTES, MANAGER_ATTRIBUTES):
        selectors = [each.selector for each in table.values() if each.selector]
        assert len(set(selectors)) == len(selectors)


def test_mq_has_one_number_for_each_of_our_values() -> None:
    for attribute in QUEUE_ATTRIBUTES.values():
        has_numbers = attribute.kind in ("choice", "boolean") and attribute.mq_name
        ours = attribute.choices or (True, False) if has_numbers else ()
        assert len(set(attribute.mq_values)) == len(ours)
        assert [attribute.from_mq(attribute.to_mq(value)) for value in ours] == list(ours)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("local", set(QUEUE_ATTRIBUTES) - {"base_queue"} - OF_REMOTE - OF_COLLECTING),
        ("model", set(QUEUE_ATTRIBUTES) - {"base_queue"} - OF_REMOTE - OF_COLLECTING),
        ("alias", {*COMMON.split(), "get_allowed", "base_queue"}),
        ("remote", {*COMMON.split(), *OF_REMOTE}),
        ("store_and_forward", {"name", "type", "description", "targets"}),
        ("home_server", {"name", "type", "description", "remote_manager", "connection", "interval_ms", "retry"}),
    ],
)
def test_each_type_of_queue_has_its_attributes(kind: str, names: set[str]) -> None:
    assert {name for name, each in QUEUE_ATTRIBUTES.items() if kind in each.applies_to} == names


def test_each_attribute_is_changed_by_the_specified_calls() -> None:
    changed_by: dict[str, set[str]] = {}
    for name, each in QUEUE_ATTRIBUTES.items():
        changed_by.setdefault(each.changed_by, set()).add(name)
    assert changed_by["create"] == {"name", "type", "definition_type"}
    triggers = {f"trigger_{name}" for name in ("control", "type", "priority", "depth", "data")}
    assert changed_by["set"] == {"get_allowed", "put_allowed", *triggers}


# ---- defaults


def test_the_defaults_are_those_of_the_tables() -> None:
    for made, table in ((local(), QUEUE_ATTRIBUTES), (define_manager(), MANAGER_ATTRIBUTES)):
        differs = {name for name, each in table.items() if getattr(made, name) != each.default}
        assert differs <= {"name", "origin"}
    assert (local().default_persistence, local().order, local().read_order) == (True, "put", "relaxed")
    assert (local().max_depth, local().max_length) == (999_999_999, 4_194_304)
    assert (define_manager().name, define_manager().max_uncommitted) == ("INORDER", 1_000_000)


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
def test_some_defaults_depend_on_the_type_and_the_definition_type(
    kind: QueueType, given: dict[str, Any], definition_type: str, persistence: bool
) -> None:
    queue = define_queue("Q", kind, **given)
    found = (queue.type, queue.definition_type, queue.default_persistence)
    assert found == (kind, definition_type, persistence)


# ---- values

TEXT, NAME, YES_OR_NO = "a text of at most 64", "1 to 48 characters", "True or False"
BAD: list[tuple[str, list[object], Reason, str]] = [
    ("description", ["x" * 65, "a\nb", "\ud800", b"x", None], Reason.ARGUMENT_ERROR, TEXT),
    ("delivery", ["FIFO", "", 0, None, ["fifo"]], Reason.ARGUMENT_ERROR, "one of: priority, fifo"),
    ("default_priority", [-1, 10, "5", 5.0, True, None], Reason.PRIORITY_ERROR, "an integer from 0 to 9"),
    ("default_persistence", [1, "yes", None], Reason.ARGUMENT_ERROR, YES_OR_NO),
    ("order", ["PUT"], Reason.ARGUMENT_ERROR, "one of: put, prepare, commit"),
    ("read_order", ["notify"], Reason.ARGUMENT_ERROR, "one of: required, strict, relaxed, uno"),
    ("index_type", ["group"], Reason.ARGUMENT_ERROR, "one of: none, message_id"),
    ("max_depth", [-1, 10**400], Reason.ARGUMENT_ERROR, "an integer from 0 to 999,999,999"),
    ("max_length", [-1, 104_857_601], Reason.ARGUMENT_ERROR, "an integer from 0 to 104,857,600"),
    ("get_allowed", [0], Reason.INHIBIT_VALUE_ERROR, YES_OR_NO),
    ("put_allowed", [0], Reason.INHIBIT_VALUE_ERROR, YES_OR_NO),
    ("shareable", [1], Reason.ARGUMENT_ERROR, YES_OR_NO),
    ("default_input", ["browse"], Reason.ARGUMENT_ERROR, "one of: shared, exclusive"),
    ("definition_type", ["dynamic"], Reason.ARGUMENT_ERROR, "one of: predefined, permanent_dynamic"),
    ("backout_threshold", [-1, 10**9], Reason.ARGUMENT_ERROR, "an integer from 0 to"),
    ("backout_requeue_queue", ["a b", "x" * 49, None], Reason.ARGUMENT_ERROR, NAME),
    ("harden_get_backout", ["yes"], Reason.ARGUMENT_ERROR, YES_OR_NO),
    ("retention_interval", [-1], Reason.ARGUMENT_ERROR, "an integer from 0 to"),
    ("nonpersistent_class", ["low"], Reason.ARGUMENT_ERROR, "one of: normal, high"),
    (
        "expiry",
        [0, 100_000_000, 10**400, float("nan"), float("inf"), "5", True],
        Reason.ARGUMENT_ERROR,
        "a number of seconds above 0 and up to 99,999,999.9, or None",
    ),
    ("trigger_control", [1], Reason.TRIGGER_CONTROL_ERROR, YES_OR_NO),
    ("trigger_type", ["FIRST"], Reason.TRIGGER_TYPE_ERROR, "one of: none, first, every, depth"),
    ("trigger_priority", [-1, 10], Reason.TRIGGER_MSG_PRIORITY_ERR, "an integer from 0 to 9"),
    ("trigger_depth", [0, 10**9], Reason.TRIGGER_DEPTH_ERROR, "an integer from 1 to 999,999,999"),
    ("trigger_data", ["x" * 65], Reason.ARGUMENT_ERROR, TEXT),
    ("initiation_queue", ["a b"], Reason.ARGUMENT_ERROR, NAME),
    ("process", ["a b"], Reason.ARGUMENT_ERROR, NAME),
    ("usage", ["xmitq"], Reason.ARGUMENT_ERROR, "one of: normal, transmission"),
]
BAD_OF_REMOTE: list[tuple[str, list[object], Reason, str]] = [
    ("mode", ["sync", None], Reason.ARGUMENT_ERROR, "one of: asynchronous, synchronous")
]
BAD_OF_REMOTE += [(name, ["a b", None], Reason.ARGUMENT_ERROR, NAME) for name in sorted(OF_REMOTE - {"mode"})]
BAD_OF_HOME: list[tuple[str, list[object], Reason, str]] = [
    ("remote_manager", [""], Reason.ARGUMENT_ERROR, "the name of the home server"),
    ("interval_ms", [-1, 10**9, 0.5], Reason.ARGUMENT_ERROR, "an integer from 0 to 999,999,999"),
    ("retry", [1, "yes"], Reason.ARGUMENT_ERROR, YES_OR_NO),
]
BAD_OF_MANAGER: list[tuple[str, list[object], Reason, str]] = [
    ("name", ["", "a b", None], Reason.ARGUMENT_ERROR, NAME),
    ("origin", ["a b", None], Reason.ARGUMENT_ERROR, NAME),
    ("description", [1], Reason.ARGUMENT_ERROR, TEXT),
    ("max_uncommitted", [0, 10**9], Reason.ARGUMENT_ERROR, "an integer from 1 to 999,999,999"),
    ("acts_kept", [0, 10**6 + 1], Reason.ARGUMENT_ERROR, "an integer from 1 to 1,000,000"),
    ("max_priority", [8, 10], Reason.ARGUMENT_ERROR, "9, not"),
    ("max_length", [32_767, 104_857_601], Reason.ARGUMENT_ERROR, "an integer from 32,768 to 104,857,600"),
    ("max_handles", [0, 10**9], Reason.ARGUMENT_ERROR, "an integer from 1 to"),
    ("coded_character_set_id", [0, 65_536], Reason.ARGUMENT_ERROR, "an integer from 1 to 65,535"),
    ("trigger_interval", [0, 10**6], Reason.ARGUMENT_ERROR, "a number of seconds above 0"),
    ("mark_interval", [0, 10**6], Reason.ARGUMENT_ERROR, "a number of seconds above 0"),
    ("dead_letter_queue", ["a b"], Reason.ARGUMENT_ERROR, NAME),
    ("default_transmission_queue", ["a b"], Reason.ARGUMENT_ERROR, NAME),
]
MAKERS: list[tuple[Any, Any]] = [
    (BAD, lambda name, value: local(**{name: value})),
    (BAD_OF_REMOTE, lambda name, value: define_queue("R", "remote", **{name: value})),
    (BAD_OF_HOME, lambda name, value: define_queue("H", "home_server", **{"remote_manager": "A", name: value})),
    (BAD_OF_MANAGER, lambda name, value: define_manager(**{name: value})),
]


@pytest.mark.parametrize(
    ("make", "name", "value", "reason", "allowed"),
    [(make, name, one, *rest) for table, make in MAKERS for name, values, *rest in table for one in values],
)
def test_a_bad_value_is_refused(make: Any, name: str, value: object, reason: Reason, allowed: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        make(name, value)
    assert str(refused.value).startswith(f"{name} must be {allowed}")
    assert (refused.value.reason, refused.value.argument, refused.value.value) == (reason, name, value)


def test_the_tables_of_bad_values_miss_no_attribute() -> None:
    elsewhere = {"name", "type", "base_queue"} | OF_REMOTE | OF_COLLECTING
    assert {name for name, *_ in BAD} == set(QUEUE_ATTRIBUTES) - elsewhere
    assert {name for name, *_ in BAD_OF_MANAGER} == set(MANAGER_ATTRIBUTES)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("description", "x" * 64),
        ("description", "\N{MAN}\N{ZERO WIDTH JOINER}\N{PERSONAL COMPUTER} prêt :"),
        ("default_priority", 9),
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
def test_a_value_of_another_class_is_kept_as_a_plain_value(name: str, value: object, kept: object) -> None:
    checked = QUEUE_ATTRIBUTES[name].check(value)
    assert checked == kept
    assert type(checked) is type(kept)


@pytest.mark.parametrize("name", ["", "a b", "a-b", "a*", "é", "x\n", "\u0661", "x" * 49, b"Q", None, 1])
def test_invalid_queue_names_are_refused(name: Any) -> None:
    for make in (check_queue_name, define_queue):
        with pytest.raises(ArgumentError, match="name must be 1 to 48 characters out of A-Z") as refused:
            make(name)
        assert (refused.value.reason, refused.value.value) == (Reason.ARGUMENT_ERROR, name)


def test_valid_queue_names_are_accepted() -> None:
    for name in ("A", "a.b/c_d%9", "x" * 48, "..."):
        assert check_queue_name(name) == define_queue(name).name == name


# ---- names of attributes


@pytest.mark.parametrize(
    ("kind", "given", "reason", "text"),
    [
        ("local", {"max_dept": 1}, 2067, "there is no attribute 'max_dept' (nearest: max_depth"),
        ("local", {"zzz": 1}, 2067, "there is no attribute 'zzz' [2067"),
        ("alias", {"base_q": "B"}, 2067, "there is no attribute 'base_q' (nearest: base_queue) [2067"),
        ("local", {"MaxQDepth": 1}, 2067, "there is no attribute 'MaxQDepth'"),
        ("local", {"base_queue": "B"}, 2068, "a queue of type 'local' has no attribute 'base_queue'"),
        ("alias", {"max_depth": 1}, 2068, "a queue of type 'alias' has no attribute 'max_depth'"),
        (
            "cluster",
            {},
            9017,
            "type must be one of: local, alias, model, remote, store_and_forward, home_server, not 'cluster'",
        ),
        ("remote", {"delivery": "fifo"}, 2068, "a queue of type 'remote' has no attribute 'delivery'"),
        (None, {}, 9017, "type must be one of: local, alias, model, remote, store_and_forward, home_server, not None"),
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
def test_a_bad_definition_is_refused_with_its_reason(
    kind: Any, given: dict[str, object], reason: int, text: str
) -> None:
    with pytest.raises(ArgumentError) as refused:
        define_queue("Q", kind, **given)
    assert str(refused.value).startswith(text)
    assert refused.value.reason == reason
    assert {"argument", "value", "allowed"} <= set(refused.value.data)


def test_the_error_for_an_unknown_attribute_lists_the_known_ones() -> None:
    with pytest.raises(ArgumentError) as refused:
        define_queue("Q", "alias", base_q="B")
    assert refused.value.nearest == ["base_queue"]
    assert refused.value.allowed == ", ".join([*COMMON.replace("put", "get_allowed put", 1).split(), "base_queue"])


@pytest.mark.parametrize(
    ("kind", "by", "changes", "reason", "text"),
    [
        ("local", "alter", {"name": "R"}, 2067, "attribute 'name' cannot be changed after creation"),
        ("local", "alter", {"type": "alias"}, 2067, "attribute 'type' cannot be changed after creation"),
        ("local", "alter", {"definition_type": "permanent_dynamic"}, 2067, "attribute 'definition_type' cannot"),
        ("local", "alter", {"max_dept": 1}, 2067, "there is no attribute 'max_dept'"),
        ("local", "alter", {"base_queue": "B"}, 2068, "a queue of type 'local' has no attribute"),
        ("local", "set", {"max_depth": 1}, 2067, "attribute 'max_depth' cannot be set through a handle"),
        ("local", "set", {"get_allowed": 0}, 2020, "get_allowed must be True or False, not 0"),
        ("model", "alter", {"definition_type": "predefined"}, 9017, "definition_type must be"),
        ("model", "alter", {"default_persistence": True}, 2048, "default_persistence must be False"),
        ("alias", "alter", {"max_depth": 1}, 2068, "a queue of type 'alias' has no attribute"),
        ("local", "alter", {"max_depth": 1, "max_length": -1}, 9017, "max_length must be an integer"),
    ],
)
def test_a_bad_change_is_refused_with_its_reason(
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


def test_a_model_can_be_altered_to_make_permanent_queues_and_back() -> None:
    lasting = altered(of_type("model"), "alter", definition_type="permanent_dynamic", default_persistence=True)
    assert (lasting.definition_type, lasting.default_persistence) == ("permanent_dynamic", True)
    with pytest.raises(ArgumentError) as refused:
        altered(lasting, "alter", definition_type="temporary_dynamic")
    assert refused.value.reason is Reason.PERSISTENT_NOT_ALLOWED
    again = altered(lasting, "alter", definition_type="temporary_dynamic", default_persistence=False)
    assert again == of_type("model")


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
def test_a_bad_change_of_the_queue_manager_is_refused(by: Change, changes: dict[str, object], text: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        altered_manager(define_manager(), by, **changes)
    assert str(refused.value).startswith(text)
    assert refused.value.reason is Reason.SELECTOR_ERROR
