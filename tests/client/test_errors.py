"""The tree of errors: each has a reason, carries its data, survives copying and says what was wrong."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from collections.abc import Iterator

import pytest
from tests.helpers.support import called

from inorder import errors


def tree_of(root: type[errors.InorderError]) -> Iterator[type[errors.InorderError]]:
    yield root
    for each in root.__subclasses__():
        if each.__module__ == root.__module__:  # `inorder.formats` adds classes of its own
            yield from tree_of(each)


CLASSES = list(tree_of(errors.InorderError))


def test_every_reason_has_its_own_sentence() -> None:
    assert list(errors.REASON_TEXT) == list(errors.Reason)
    assert len(set(errors.REASON_TEXT.values())) == len(errors.Reason)
    for text in errors.REASON_TEXT.values():
        assert re.fullmatch(r"[A-Z].*[^.]\.", text)


def test_reasons_have_the_numbers_and_names_of_mq() -> None:
    some = {0: "NONE", 2001: "ALIAS_BASE_Q_TYPE_ERROR", 2033: "NO_MSG_AVAILABLE", 2087: "UNKNOWN_REMOTE_Q_MGR"}
    some |= {2120: "CONVERTED_MSG_TOO_BIG", 2259: "INCONSISTENT_BROWSE", 2550: "NO_SUBS_MATCHED"}
    assert {number: errors.Reason(number).name for number in some} == some


OWN = """
9001 ORDER_PENDING ORDER_UNSUPPORTED ORDER_SELF_BLOCKED ORDER_DEADLOCK DUPLICATE_MESSAGE NOT_FOUND LOCK_MISMATCH
    CONFIRM_ID_MISMATCH WRONG_STATE UNIT_EXISTS UNIT_NOT_FOUND FENCED FORKED STORE_FOREIGN STORE_NEWER STORE_DAMAGED
    ARGUMENT_ERROR CHECKPOINT_TOO_OLD CHECKPOINT_LOST STAGING_GONE UNIT_OF_ANOTHER WAIT_ENDED
9030 SEQUENCE_ERROR CHANNEL_STOPPED CHANNEL_IN_DOUBT TOO_MANY_HOPS VETOED EXIT_FAILED
9040 UNDELIVERABLE
9050 DUPLICATE_PUT DUPLICATE_PENDING
9060 LEASE_OVER TOO_MANY_LOG_INS
9070 STORE_OLDER
9080 TASK_UNKNOWN TASK_ARGUMENTS JOB_FAILED
"""


def test_our_own_reasons_keep_their_numbers() -> None:
    kept: dict[int, str] = {}
    for first, names in re.findall(r"(\d+) (\D+)", OWN):
        kept |= dict(enumerate(names.split(), int(first)))
    assert {each.value: each.name for each in errors.Reason if each >= 9000} == kept


def test_every_error_class_has_a_docstring_and_a_reason() -> None:
    for kind in CLASSES:
        assert isinstance(vars(kind)["reason"], errors.Reason), kind
        assert inspect.getdoc(kind), kind
        assert (kind("no").reason, kind("no").completion) == (kind.reason, errors.Completion.FAILED)


def test_no_two_leaves_share_a_reason() -> None:
    leaves = [each for each in CLASSES if not each.__subclasses__()]
    assert len({each.reason for each in leaves}) == len(leaves)


def test_every_class_has_one_party_at_fault() -> None:
    for kind in CLASSES[1:]:
        assert (
            sum(issubclass(kind, party) for party in (errors.CallerError, errors.QueueCondition, errors.StoreError))
            == 1
        )


def test_the_docstring_draws_the_tree() -> None:
    drawn = re.findall(r"^[ │├└─]+([A-Z]\w+)  ", errors.__doc__ or "", re.MULTILINE)
    assert drawn == [each.__name__ for each in CLASSES[1:]]


def test_a_wrong_argument_is_a_value_error_too() -> None:
    with pytest.raises(ValueError, match="priority must be"):
        raise errors.bad_argument("priority", "x", "an integer from 0 to 9")


def test_a_reason_given_wins_over_the_reason_of_the_class() -> None:
    error = errors.NotOpenFor("no", reason=errors.Reason.NOT_OPEN_FOR_BROWSE)
    assert (error.reason, error.reason_name) == (2036, "NOT_OPEN_FOR_BROWSE")
    assert errors.NotOpenFor.reason is errors.Reason.NOT_OPEN_FOR_INPUT


@pytest.mark.parametrize("text", ["Q1 is open", "x" * 10_000, ""], ids=["short", "long", "none"])
def test_a_text_ends_with_the_remedy_and_the_reason(text: str) -> None:
    error = errors.InorderError(text, remedy="close it")
    assert str(error).endswith("; close it [2195 UNEXPECTED_ERROR]")
    for one in (error, copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert one.remedy == "close it"
        assert str(one) == str(error)


def test_error_data_can_be_read_as_attributes_and_other_attributes_do_not_exist() -> None:
    error = errors.OrderPending("withheld", kind="PENDING_IN", age=1.5)
    assert (error.kind, error.age, error.data) == ("PENDING_IN", 1.5, {"kind": "PENDING_IN", "age": 1.5})
    with pytest.raises(AttributeError, match="'OrderPending' object has no attribute 'unit'"):
        _ = error.unit


def test_an_error_survives_copying_and_pickling() -> None:
    for kind in CLASSES:
        error = kind("no", reason=errors.Reason.OBJECT_CHANGED, queue="Q", nearest=["R"])
        deep = copy.deepcopy(error)
        for again in (copy.copy(error), deep, pickle.loads(pickle.dumps(error))):
            assert type(again) is kind
            assert (str(again), again.reason, again.data) == (str(error), error.reason, error.data)
            assert again.queue == "Q"
        assert deep.nearest is not error.nearest


def test_the_error_for_a_wrong_argument_names_the_argument_the_value_and_the_range() -> None:
    error = errors.bad_argument("priority", "x", "an integer from 0 to 9", errors.Reason.PRIORITY_ERROR)
    assert str(error) == "priority must be an integer from 0 to 9, not 'x' [2050 PRIORITY_ERROR]"
    assert (error.argument, error.value, error.allowed) == ("priority", "x", "an integer from 0 to 9")


class Unwritable:
    def __repr__(self) -> str:
        raise RuntimeError


LARGE = ["x" * 61, b"\xff" * 10_000_000, memoryview(bytes(1000)), "\N{SNOWMAN}" * 1000, -(10**10_000), [10**10_000]]


@pytest.mark.parametrize(
    "value", [*LARGE, {"k" * 20: "v" * 99}, Unwritable(), None], ids=lambda one: type(one).__name__
)
def test_a_value_is_shortened_in_the_text_and_whole_in_the_data(value: object) -> None:
    error = errors.bad_argument("a", value, "b")
    shown = str(error).removeprefix("a must be b, not ").removesuffix(" [9017 ARGUMENT_ERROR]")
    assert 0 < len(shown) <= 60
    assert error.value is value


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("ORDRES", ["ORDERS", "ORDERS.IN"]),
        ("orders", ["ORDERS", "ORDERS.IN"]),
        ("Audit2", ["audit"]),
        ("ORDERS.IM", ["ORDERS.IN", "ORDERS"]),
        ("ZZZ", []),
        ("", []),
    ],
)
def test_nearest_names_finds_similar_names(name: str, nearest: list[str]) -> None:
    assert errors.nearest_names(name, ["ORDERS", "ORDERS.IN", "audit"]) == nearest


def test_among_many_names_only_the_next_ones_in_the_alphabet_are_compared() -> None:
    names = [f"ORDERS.{n:05}" for n in range(5_000)]
    found: list[str] = []
    calls = called(lambda: found.extend(errors.nearest_names("ORDERS.O4321", names)))
    assert found
    assert calls["real_quick_ratio"] <= 400
    assert errors.nearest_names("ZORDERS.00007", names[:400])[0] == "ORDERS.00007"
