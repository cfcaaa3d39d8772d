"""Values on the wire: round trips of every verb and error, other releases, and hostile payloads."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import inspect
import math
import random
import re
import tracemalloc
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inorder import errors
from inorder.errors import ArgumentError, InorderError, OptionsError, Reason
from inorder.model.attributes import ManagerAttributes, QueueAttributes
from inorder.model.fields import EarlierPending
from inorder.model.message import Message, Place, Transmission, UniqueId
from inorder.model.options import GetOptions, Match, OpenOptions, PutOptions
from inorder.model.properties import Properties
from inorder.rules.grouping import GroupState
from inorder.rules.puts import PutResult
from inorder.rules.store_verbs import FILLED_IN, STAYS, VERBS
from inorder.stores.remote import frames, wire
from inorder.stores.remote.frames import HEADER, PIECE_MAX, FrameAssembler, FrameKind, WireFrame, pieces
from inorder.stores.remote.wire import WireError, decode_answer, decode_call, encode, encode_call
from inorder.stores.seam.bulk_page import BulkPage
from inorder.stores.seam.protocol import Store
from inorder.stores.seam.records import BULK_COLUMNS, GetOutcome, GetRequest, PutOutcome, PutRequest, StageRequest

WHOLE = st.one_of(st.integers(0, 9), st.sampled_from([2**31, 2**63 - 1, -(2**63)]))
IDS = st.sampled_from([0, 1, 2**64 - 1])
TEXTS = st.sampled_from(["", "ORDERS.IN", "Größe \U0001f40a", "x" * 300, "\0"])
OCTETS = st.sampled_from([b"", bytes(24), b"\xff" * 24, b"x" * 70_000])
FLOATS = st.sampled_from([0.0, 0.1, 1.7e9, math.inf])
PERIODS = st.sampled_from([0.1, 86_400.0])
UIDS = st.builds(UniqueId, st.sampled_from(["QM1", "É"]), st.sampled_from([1, 2**63 - 1]))
PLACES = st.builds(Place, st.integers(-9, 0), st.sampled_from([1, 2**63 - 1]), st.integers(0, 3))
GIVEN_MESSAGES = st.builds(
    Message,
    OCTETS,
    priority=st.sampled_from([None, 0, 9, 999_999_999]),
    expiry=st.sampled_from([None, 0.1, 5, math.inf]),
    persistent=st.sampled_from([None, True, False]),
    format=st.sampled_from(["", "MQSTR"]),
    correlation_id=st.sampled_from([b"", b"\xff" * 24]),
    put_at=st.sampled_from([0.0, 1.7e9]),
    flags=st.integers(0, 31),
    transmission=st.sampled_from([None, Transmission("Q", "QM2")]),
    properties=st.sampled_from([{}, {"a": 1, "b": "zwei", "c": b"\0", "d": None, "e": 1.5, "f": True, "g": 2**63 - 1}]),
)


def got(message: Message, uid: UniqueId, place: Place, warning: Reason | None, pending: bool) -> Any:
    earlier = EarlierPending(3, place, "in") if pending else None
    return message.with_values(
        uid=uid, place=place, warning=warning, earlier_pending=earlier, token=bytes(range(16)), backout_count=7
    )


MESSAGES = st.one_of(
    GIVEN_MESSAGES, st.builds(got, GIVEN_MESSAGES, UIDS, PLACES, st.sampled_from([None, *Reason]), st.booleans())
)
MATCHES = st.sampled_from(
    [Match(), Match(uid=UniqueId("QM1", 5)), Match(priority=3, group_id=b"g", selector="a > 1"), Match(token=bytes(16)),
     Match(transmission=Transmission("Q", "M"))]
)  # fmt: skip
PAGES = st.sampled_from(
    [
        BulkPage.of_rows([]),
        BulkPage.of_rows(
            [
                tuple(
                    None if name == "properties" else Transmission("Q", "M") if name == "transmission" and row else row
                    for name in BULK_COLUMNS
                )
                for row in range(3)
            ]
        ).with_columns({"transmission": [None, Transmission("Q", "M"), None], "delivery": range(1, 4)}),
        BulkPage.of_rows([tuple(Transmission("Q", "M") if name == "transmission" else 1 for name in BULK_COLUMNS)]),
    ]
)
OPTIONS: Mapping[Any, st.SearchStrategy[Any]] = {
    PutOptions: st.sampled_from([PutOptions(), PutOptions(confirm_id=2**64 - 1),
                                 PutOptions(uid=UniqueId("Q", 4), resend=True),
                                 PutOptions(deduplicate="k", deduplicate_for=5)]),
    GetOptions: st.sampled_from([GetOptions(), GetOptions(wait=math.inf, match=Match(priority=1)),
                                 GetOptions(browse="next", lock=True, read_order="strict", buffer=0)]),
    OpenOptions: st.sampled_from([OpenOptions(input="shared"), OpenOptions(browse=True, co_op=True)]),
    QueueAttributes: st.sampled_from([QueueAttributes(name="Q"),
                                      QueueAttributes(name="A", type="alias", base_queue="Q")]),
    ManagerAttributes: st.sampled_from([ManagerAttributes(), ManagerAttributes(name="QM2", mark_interval=None)]),
    Message: MESSAGES, Match: MATCHES, BulkPage: PAGES, UniqueId: UIDS,
    int: WHOLE, str: TEXTS, bytes: OCTETS, float: FLOATS, bool: st.booleans(), type(None): st.none(),
    dict[str, Any]: st.sampled_from([{}, {"max_depth": 5, "description": "x", "get_allowed": False, "expiry": None}]),
    tuple[Any, ...]: st.sampled_from([(), (3, (5, 0)), (3, 5, 7, (1, 2, 3))]),
}  # fmt: skip
OWN_RANGE = {
    "lease": st.one_of(st.none(), PERIODS), "delay": PERIODS, "confirm_id": IDS, "lock_id": IDS,
    "most": st.sampled_from([0, 1, 2**63 - 1]),
}  # fmt: skip
STAGED: dict[str, list[Any]] = {
    "body": [b"", b"x"], "properties": [Properties({"b": 2}), {"a": 1}], "transmission": [("Q", "M"), None],
    "expiry": [None, math.inf],
    "group_key": ["g", -(2**63)], "order_key": [1.5, b"k"],
}  # fmt: skip


def values(annotation: Any) -> st.SearchStrategy[Any]:  # noqa: PLR0911
    """Generates values of an annotation, without the code under test."""
    if annotation in OPTIONS:
        return OPTIONS[annotation]
    origin, members = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return st.one_of(*map(values, members))
    if origin is Literal:
        return st.sampled_from(members)
    if origin is tuple and members[-1] is not Ellipsis:
        return st.tuples(*map(values, members))
    if origin is tuple:
        return st.lists(values(members[0]), max_size=2).map(tuple)
    if origin is frozenset:
        return st.frozensets(values(members[0]), max_size=2)
    if origin in (list, Sequence):
        return st.lists(values(members[0]), max_size=2)
    if issubclass(annotation, enum.Enum):
        return st.sampled_from(list(annotation))
    if annotation is GroupState:
        return st.sampled_from([GroupState(), GroupState(b"g" * 24, 999_999_999, 999_999_999, 5, 31, True, True, True)])
    if annotation is StageRequest:
        return st.builds(StageRequest, WHOLE, TEXTS, st.just(2), st.just(STAGED), PERIODS)
    hints = typing.get_type_hints(annotation)
    names = annotation._fields if issubclass(annotation, tuple) else [f.name for f in dataclasses.fields(annotation)]
    return st.builds(annotation, **{name: OWN_RANGE.get(name, values(hints[name])) for name in names})


def parameters(verb: str) -> dict[str, Any]:
    hints = typing.get_type_hints(getattr(Store, verb))
    names = inspect.signature(getattr(Store, verb)).parameters
    return {name: hints[name] for name in names if name not in ("self", *FILLED_IN.get(verb, ()))}


def like(one: Any) -> Any:
    """A form of a value to compare: lists and tuples are alike, but the types of records must be the same."""
    if isinstance(one, Properties):
        return dict(one)
    if isinstance(one, Message | Match) or not isinstance(one, tuple | list | dict | BulkPage):
        return one
    if isinstance(one, BulkPage):
        return one.messages, like(dict(one.shared)), {name: like(list(column)) for name, column in one.columns.items()}
    if isinstance(one, dict):
        return {name: like(value) for name, value in one.items()}
    plain = [like(value) for value in one]
    return (
        (
            type(one).__name__.replace("WireState", "GroupState")
            if type(one).__name__ == "WireState"
            else type(one).__name__,
            plain,
        )
        if hasattr(one, "_fields")
        else plain
    )


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_the_arguments_and_answer_of_every_verb_survive_a_round_trip(verb: str) -> None:
    @settings(max_examples=12, database=None, deadline=None)
    @given(st.fixed_dictionaries({name: IDS if name in wire.IDS else PERIODS if name == "seconds" else values(kind)
                                  for name, kind in parameters(verb).items()}),
           values(typing.get_type_hints(getattr(Store, verb))["return"]))  # fmt: skip
    def goes(arguments: dict[str, Any], answer: Any) -> None:
        called, read = decode_call(encode_call(verb, [], arguments))
        assert called == verb
        assert like(read) == like(arguments)
        assert like(decode_answer(verb, encode(answer))) == like(answer)

    goes()


def test_no_argument_of_a_call_names_the_acting_connection() -> None:
    assert decode_call(encode_call("settle", ["commit"], {})) == (
        "settle", {"outcome": "commit", "later": None, "moves": False, "decides": ""}
    )  # fmt: skip


@pytest.mark.parametrize("verb", ["", "__init__", "set_user", "watch", "page_messages", *sorted(STAYS)])
def test_names_that_are_not_verbs_are_refused(verb: str) -> None:
    with pytest.raises(WireError, match="no verb"):
        decode_call(msgspec.msgpack.encode((verb, [])))


# ---- values that a caller may not send

PUT = PutRequest(3, [Message(b"x")], PutOptions(), GroupState(), False)


def called(verb: str, *arguments: Any) -> bytes:
    return msgspec.msgpack.encode((verb, arguments), enc_hook=wire._plain)


@pytest.mark.parametrize(
    ("field", "value", "kind"),
    [
        ("priority", -1, ArgumentError),
        ("format", "x" * 9, ArgumentError),
        ("message_id", bytes(25), ArgumentError),
        ("flags", 32, ArgumentError),
        ("expiry", math.nan, ArgumentError),
        ("expiry", -1.0, ArgumentError),
        ("report", 4, ArgumentError),
        ("message_type", 1, errors.CallerError),
        ("uid", UniqueId("Q", 0), ArgumentError),
        ("place", Place(0, 2**63, 0), ArgumentError),
        ("priority", "5", ArgumentError),
        ("persistent", 1, ArgumentError),
        ("warning", 1, ArgumentError),
        ("body", "text", ArgumentError),
    ],
)
def test_a_message_of_a_call_is_checked_as_by_its_constructor(field: str, value: Any, kind: type[InorderError]) -> None:
    with pytest.raises(kind) as caught:
        decode_call(called("put", PUT._replace(messages=[Message(b"x").with_values(**{field: value})])))
    assert type(caught.value) is kind


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"a":[1]}', '{"a b":1}', '{"a":' + "[" * 5_000, '{"a":{"b":1}}'])
def test_properties_of_a_call_are_checked(text: str) -> None:
    row = list(Message(b"x").row)
    row[Message.properties.index] = text
    with pytest.raises(ArgumentError):
        decode_call(called("put", PUT._replace(messages=[row])))  # type: ignore[list-item]


def test_a_message_that_was_got_may_be_put_again() -> None:
    again: Any = Message(b"x", properties={"a": 1}).with_values(
        expiry=0.01, uid=UniqueId("Q", 4), place=Place(-1, 2, 3), length=100, backout_count=3
    )
    assert decode_call(encode_call("put", [PUT._replace(messages=[again])], {}))[1]["request"].messages == [again]


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"confirm_id": -1}, ArgumentError),
        ({"resend": True}, OptionsError),
        ({"deduplicate": ""}, ArgumentError),
        ({"deduplicate_for": math.nan, "deduplicate": "k"}, ArgumentError),
        ({"context": "mine"}, ArgumentError),
    ],
)
def test_options_of_a_call_are_checked(options: dict[str, Any], kind: type[InorderError]) -> None:
    with pytest.raises(kind) as caught:
        decode_call(called("put", [3, [b"x"], options, GroupState(), False]))
    assert type(caught.value) is kind


@pytest.mark.parametrize(
    "state",
    [
        GroupState(sequence_number=10**9), GroupState(group_id=bytes(25)), GroupState(offset=-1),
        GroupState(length=2**40), GroupState(flags=64),
    ],
)  # fmt: skip
def test_a_group_state_that_no_handle_can_have_is_refused(state: GroupState) -> None:
    with pytest.raises(ArgumentError):
        decode_call(called("put", PUT._replace(state=state)))


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("close", []),
        ("close", ["3"]),
        ("close", [True]),
        ("close", [2**63]),
        ("settle", ["undo"]),
        ("begin_lease", ["n", "u", math.nan, None]),
        ("alter_queue", ["Q", "alter", {"max_depth": [[]]}]),
        ("read_stretch", [3, [False, 0, [1, 0], [2, 0], 2], [[[1]]]]),
        ("browse_and_lock", [{"handle": 3, "match": [{}, None], "confirm_id": 0, "lease": math.nan}]),
        ("browse_and_lock", [{"handle": 2**63, "match": [{}, None], "confirm_id": 0}]),
        ("one_message", [{"handle": 3, "event": "confirm put", "uid": ["Q", 2**63]}]),
        ("browse_and_lock", [{"handle": 3, "match": [{}, None], "confirm_id": -1}]),
        ("browse_and_lock", [{"handle": 3, "match": [{}, None], "confirm_id": 0, "most": -1}]),
        ("extend_lease", ["n", None, -1.0]),
        ("extend_lease", ["n", None, 0.0]),
        ("create_queue", [{"name": "no name"}]),
        ("create_queue", [{"name": "Q", "max_depth": -1}]),
        ("create_queue", [{"name": "Q", "type": "alias", "remote_queue": "R"}]),
        ("browse_and_lock", [{"handle": 3, "match": [{"body": b"x"}, None], "confirm_id": 0}]),
    ],
)
def test_arguments_of_wrong_types_or_out_of_range_are_refused(verb: str, arguments: list[Any]) -> None:
    with pytest.raises(ArgumentError):
        decode_call(called(verb, *arguments))


@pytest.mark.parametrize("value", [2**64, "\ud800", object()])
def test_a_value_that_cannot_be_sent_raises_an_argument_error(value: Any) -> None:
    with pytest.raises(ArgumentError, match="must have a sendable value"):
        encode_call("alter_queue", ["Q", "alter", {"max_depth": value}], {})


@pytest.mark.parametrize(
    ("verb", "arguments"), [("open", [5, OpenOptions(output=True)]), ("queue", [b"Q"]), ("status", [None])]
)
def test_a_queue_whose_name_is_not_text_is_reported_as_unknown(verb: str, arguments: list[Any]) -> None:
    with pytest.raises(errors.UnknownQueue, match=re.escape(repr(arguments[0]))):
        encode_call(verb, arguments, {})


def test_the_error_names_the_argument() -> None:
    with pytest.raises(
        ArgumentError, match="begin_claims must have its types: Expected `str`, got `int` - at `application`"
    ):
        decode_call(called("begin_claims", 3, 7))


# ---- other releases


def test_fields_and_arguments_of_a_newer_release_are_ignored() -> None:
    row = [*wire._plain(Message(b"x", priority=3)), "later", [1]]
    options = {"confirm_id": 7, "of_later": [{}]}
    newer = called("put", [3, [row, b"y"], options, [*GroupState(), 9], False, 0, "later"], "an argument")
    request = decode_call(newer)[1]["request"]
    assert request == PutRequest(3, [Message(b"x", priority=3), b"y"], PutOptions(confirm_id=7), GroupState(), False)
    result = PutResult(bytes(24), bytes(24), bytes(24), 1, 0, 0, UniqueId("Q", 1), None)
    answer = msgspec.msgpack.encode(([[*result[:6], ["Q", 1, 5], None, None, 0.0, 8]], GroupState(), True))
    read = decode_answer("put", answer)
    assert read == PutOutcome([result], GroupState())
    assert type(read.results[0]) is PutResult
    listed = dataclasses.asdict(QueueAttributes(name="Q")) | {"of_later": 5}
    assert decode_answer("queues", msgspec.msgpack.encode([listed])) == [QueueAttributes(name="Q")]


def test_values_that_an_older_release_does_not_send_have_their_defaults() -> None:
    row = wire._plain(Message(b"x"))[: Message.warning.index]
    verb, arguments = decode_call(called("get", [3, {}, [], [], True]))
    assert (verb, arguments) == ("get", {"request": GetRequest(3, GetOptions(), GroupState(), no_cursor(), True)})
    got_one: Any = Message(b"x")
    answer = msgspec.msgpack.encode(([row], [], []), enc_hook=wire._plain)
    assert decode_answer("get", answer) == GetOutcome([got_one], GroupState(), no_cursor())
    assert decode_call(called("close", 3)) == ("close", {"handle": 3, "delete": False, "purge": False})
    page = {"messages": 2, "shared": {"rank": 0}, "columns": {"body": [b"a", b"b"]}}
    read = decode_answer("read_claim", msgspec.msgpack.encode(page))
    assert [row[BULK_COLUMNS.index("body")] for row in read] == [b"a", b"b"]


def no_cursor() -> Any:
    return typing.get_type_hints(GetRequest)["cursor"]()


@pytest.mark.parametrize("page", [
    {"messages": 2, "shared": {}, "columns": {"body": [b"a"]}},
    {"messages": 1, "shared": {"body": b"a"}, "columns": {"body": [b"a"]}},
    {"messages": 1, "shared": {"transmission": 5}, "columns": {}},
])  # fmt: skip
def test_a_page_whose_columns_do_not_fit_is_refused(page: dict[str, Any]) -> None:
    with pytest.raises(WireError):
        decode_answer("read_claim", msgspec.msgpack.encode(page))


# ---- errors

ALL = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, InorderError)]


@pytest.mark.parametrize("kind", [*ALL, WireError], ids=lambda kind: kind.__name__)
def test_every_error_survives_a_round_trip(kind: type[InorderError]) -> None:
    data = {"uids": [UniqueId("Q", 1)], "place": Place(1, 2, 3), "value": b"\xff", "age": 1.5, "nearest": ["A"],
            "differs": {"max_depth": (1, None)}, "remedy": "try again",
            "handles": {1, 2}, "kinds": frozenset("a")}  # fmt: skip
    error = kind("it failed", reason=Reason.Q_FULL, **data)
    read = wire.decode_error(wire.encode_error(error))
    assert type(read) is kind
    assert (str(read), read.reason, read.data) == (str(error), Reason.Q_FULL, data)
    assert type(read.place) is Place
    plain = wire.decode_error(wire.encode_error(kind("it failed")))
    assert (plain.reason, plain.data) == (kind("it failed").reason, {})


def test_an_unknown_error_class_becomes_its_nearest_known_base_class() -> None:
    class OfLater(errors.QueueFull):
        pass

    read = wire.decode_error(wire.encode_error(OfLater("full")))
    assert type(read) is errors.QueueFull
    foreign = msgspec.msgpack.encode((["Popen", "Exception"], "no\x1b[2J", 99_999, {"cls": 1}))
    read = wire.decode_error(foreign)
    assert (type(read), read.reason, read.args) == (InorderError, Reason.UNEXPECTED_ERROR, ("no\\x1b[2J",))


def test_data_of_an_error_that_cannot_be_sent_is_sent_as_text() -> None:
    error = ArgumentError("bad", value=object, big=2**70, words="\ud800", both={1, 2}, key={"\ud800": 1})
    data: dict[str, Any] = wire.decode_error(wire.encode_error(error)).data
    assert data["big"] == str(2**70)
    assert data["words"] == repr("\ud800")
    assert sorted(data["both"]) == [1, 2]
    assert "object" in data["value"]


# ---- hostile payloads

OWN = (WireError, errors.CallerError)  # CallerError: raised by the constructors of options, matches and messages


def samples() -> list[bytes]:
    got_one: Any = Message(b"x" * 50, properties={"a": 1}).with_values(uid=UniqueId("Q", 1), place=Place(0, 1, 0))
    return [
        encode_call("put", [PUT], {}),
        encode_call("put", [PUT._replace(messages=[got_one, b"abc"])], {}),
        encode_call("get", [GetRequest(3, GetOptions(match=Match(priority=3)), GroupState(), no_cursor(), True)], {}),
        encode_call("stage", [StageRequest(3, "n", 2, STAGED, 5.0)], {}),
        encode_call("create_queue", [QueueAttributes(name="Q")], {}),
        encode(GetOutcome([got_one], GroupState(), no_cursor())),
        encode(BulkPage.of_rows([(1,) * (len(BULK_COLUMNS) - 13) + (None,) * 13] * 2)),
        wire.encode_error(errors.OutcomeUnknown("x", uids=[UniqueId("Q", 1)])),
    ]


READERS: list[Callable[[bytes], object]] = [
    decode_call,
    *(functools.partial(decode_answer, verb) for verb in ("get", "read_claim", "read_stretch", "look")),
    wire.decode_error,
]


def read_any(payload: bytes) -> None:
    for read in READERS:
        with contextlib.suppress(*OWN):
            read(payload)


def refuse_all(payload: bytes) -> None:
    for read in READERS:
        with pytest.raises(OWN):
            read(payload)


def test_damaged_payloads_raise_only_our_own_errors() -> None:
    chance = random.Random(37)
    for sample in samples():
        for cut in range(len(sample)):
            read_any(sample[:cut])
        for _ in range(150):
            changed = bytearray(sample)
            for _ in range(chance.randint(1, 4)):
                changed[chance.randrange(len(changed))] = chance.randrange(256)
            read_any(bytes(changed))
    for _ in range(300):
        read_any(chance.randbytes(chance.randint(0, 60)))


BOMBS = {
    "lists": b"\x91" * 200_000,
    "maps": b"\x81\xa0" * 100_000,
    "list": b"\xdd\xff\xff\xff\xff",
    "map": b"\xdf\xff\xff\xff\xff",
    "bytes": b"\xc6\xff\xff\xff\xff",
    "text": b"\xdb\xff\xff\xff\xff",
    "extension": b"\xc9\xff\xff\xff\xff\x01",
    "nested extensions": b"\xc7\x07\x00" * 1_000,
}
BEFORE = {
    "alone": b"",
    "arguments": b"\x92\xa3put\x91",
    "messages": b"\x92\xa3put\x91\x95\x03\x91",
    "column": b"\x92\xa5stage\x91\x95\x03\xa1n\x02\x81\xa4body",
    "data of an error": b"\x94\x90\xa0\x00\x81\xa1a",
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE)
def test_payload_bombs_raise_only_our_own_errors_and_use_little_memory(bomb: bytes, before: bytes) -> None:
    refuse_all(before + bomb)  # the first read fills the caches
    tracemalloc.start()
    try:
        refuse_all(before + bomb)
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("start", [
    b"\x92\xa3put\x91\x95\x03",  # messages
    b"\x92\xa3put\x91\x95\x03\x91",  # the fields of one message
    b"\x92\xa5stage\x91\x95\x03\xa1n\x02\x81\xa4body",
    b"\x92\xa5close\x92\x03",  # an argument of a newer release
])  # fmt: skip
@pytest.mark.parametrize("one", [b"\x80", b"\x90", b"\xc0"])
def test_reading_a_payload_takes_at_most_two_hundred_times_its_length_in_memory(start: bytes, one: bytes) -> None:
    many = 20_000
    payload = start + b"\xdd" + many.to_bytes(4, "big") + one * many
    rest = b"\x80" + msgspec.msgpack.encode(GroupState()) + b"\xc2" if b"put" in start else b""
    read_any(payload + rest)
    tracemalloc.start()
    try:
        read_any(payload + rest)
        assert tracemalloc.get_traced_memory()[1] < 200 * len(payload)
    finally:
        tracemalloc.stop()


def test_deeply_nested_extensions_are_refused() -> None:
    data: Any = 5
    for _ in range(5_000):
        data = msgspec.msgpack.Ext(0, msgspec.msgpack.encode([data]))
    with pytest.raises(WireError):
        wire.decode_error(msgspec.msgpack.encode((["InorderError"], "x", 2195, {"a": data})))


# ---- frames


def joined(given: Any, most: int = 2**30, most_calls: int = 8) -> list[WireFrame]:
    assembler = FrameAssembler(most, most_calls)
    return [found for one in given if (found := assembler.add(one))]


@pytest.mark.parametrize("size", [0, 1, PIECE_MAX, PIECE_MAX + 1, 2 * PIECE_MAX, 5 * PIECE_MAX + 7])
def test_payloads_are_sent_in_pieces_and_joined_again(size: int) -> None:
    payload = random.Random(1).randbytes(size)
    sent = list(pieces(FrameKind.CALL, 2**32 - 1, payload))
    assert len(sent) == max(1, math.ceil(size / PIECE_MAX))
    assert joined(sent) == [WireFrame(FrameKind.CALL, 2**32 - 1, payload)]


def test_pieces_of_several_requests_may_alternate() -> None:
    first, second = (list(pieces(FrameKind.CALL, number, bytes([number]) * (PIECE_MAX + 1))) for number in (1, 2))
    done = joined([first[0], second[0], *pieces(FrameKind.END_WAITS, 3, b""), second[1], first[1]])
    assert [(one.number, len(one.payload)) for one in done] == [(3, 0), (2, PIECE_MAX + 1), (1, PIECE_MAX + 1)]


def test_an_assembler_refuses_more_payloads_or_bytes_than_its_limits() -> None:
    begun = [next(pieces(FrameKind.CALL, number, bytes(PIECE_MAX + 1))) for number in range(3)]
    with pytest.raises(WireError, match="at most 2 payloads"):
        joined(begun, most_calls=2)
    with pytest.raises(WireError, match="2,097,152 bytes"):
        joined(begun, most=2 * PIECE_MAX)
    with pytest.raises(WireError, match="5 bytes"):
        joined(pieces(FrameKind.CALL, 1, b"123456"), most=5)
    assembler = FrameAssembler(PIECE_MAX + 1, 1)
    for _ in range(3):  # complete messages no longer count
        assert [assembler.add(one) for one in pieces(FrameKind.CALL, 1, bytes(PIECE_MAX + 1))][1] is not None


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ([b""], "at least 8 bytes"),
        ([HEADER.pack(0, 0, 0, 1)], "known kind"),
        ([HEADER.pack(10, 0, 0, 1)], "known kind"),
        ([HEADER.pack(2, 2, 0, 1)], "known kind"),
        ([HEADER.pack(2, 0, 1, 1)], "known kind"),
        ([HEADER.pack(2, 1, 0, 1)], "unless it is the last"),
        ([HEADER.pack(2, 0, 0, 1) + bytes(PIECE_MAX + 1)], "at most 1,048,576"),
        ([HEADER.pack(2, 1, 0, 1) + bytes(PIECE_MAX), HEADER.pack(3, 0, 0, 1)], "one kind"),
    ],
)
def test_invalid_frames_are_refused(sent: list[bytes], told: str) -> None:
    with pytest.raises(WireError, match=told):
        joined(sent)


def test_the_kinds_of_frames_have_fixed_numbers() -> None:
    assert {kind.name: kind.value for kind in frames.FrameKind} == {
        "HELLO": 1, "CALL": 2, "ANSWER": 3, "ERROR": 4, "END_WAITS": 5, "BYE": 6, "EVENT": 7,
        "REOPEN": 8, "WATCH": 9,
    }  # fmt: skip
    assert next(pieces(FrameKind.ANSWER, 258, b"x")) == b"\x03\x00\x00\x00\x00\x00\x01\x02x"
