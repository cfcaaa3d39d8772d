"""The values that a history draws: few queues, ids, groups and priorities, so that they often coincide.

Options and fields are drawn as a short list of settings, without those that contradict an earlier one: every legal
combination is possible, and short ones are frequent.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from inorder import Flags, GetOptions, InorderError, PutOptions, UniqueId
from inorder.model.message import NO_ID

Settings = dict[str, Any]
Strategy = st.SearchStrategy[Any]

A_UID = UniqueId("", 0)
connections = st.integers(0, 2)
handles = st.integers(0, 7)
queues = st.sampled_from(["A", "A", "A", "A", "B", "ALIAS"])
any_name = st.sampled_from(["A", "A", "B", "ALIAS", "ALIAS", "MODEL.T", "MODEL.P", "DYNAMIC", "DYNAMIC", "NONE"])
confirm_ids = st.sampled_from([1, 1, 2])
locks_at_most = st.sampled_from([None, None, 1, 2])
leases = st.sampled_from([None, 1.0, 1.0, 5.0])
references = st.integers(0, 5)
roles = st.sampled_from(["any", "put", "got", "locked", "stale"])
flags = [0, Flags.IN_GROUP, Flags.LAST_IN_GROUP, Flags.SEGMENT, Flags.LAST_SEGMENT, Flags.SEGMENTATION_ALLOWED]


def settings_of(choices: list[tuple[str, list[Any]]], most: int, *, least: int = 0) -> Strategy:
    """From `least` to `most` settings; a later one of a name replaces an earlier one."""
    one = st.sampled_from(choices).flatmap(lambda choice: st.tuples(st.just(choice[0]), st.sampled_from(choice[1])))
    return st.lists(one, min_size=least, max_size=most).map(dict)


def legal(kind: type[PutOptions] | type[GetOptions], **always: Any) -> Any:
    """Omits each setting that contradicts the ones before it."""

    def pick(given: Settings) -> Settings:
        chosen: Settings = {}
        for name, value in given.items():
            stand_in = {"match": GetOptions().match, "uid": A_UID}.get(name, value)
            try:
                kind(**{**always, **_without_references(chosen), name: stand_in})
            except InorderError:
                continue
            chosen[name] = value
        return chosen

    return pick


def _without_references(chosen: Settings) -> Settings:
    return {name: A_UID if name == "uid" else value for name, value in chosen.items() if name != "match"}


# --- puts

PROPERTIES: list[dict[str, Any]] = [{"n": 1}, {"n": True}, {"n": 1.0, "a.b": "x\n", "key": b"\0", "none": None}]
lengths = st.sampled_from([4, 4, 4, 4, 4, 40, 0])
fields = settings_of(
    [
        ("priority", [0, 5, 5, 9, 12]),
        ("persistent", [True, False]),
        ("message_id", [b"i1", b"i2"]),
        ("correlation_id", [b"c1", b"c2"]),
        ("expiry", [5.0, 10.0]),
        ("expiry", [5.0, 10.0]),
        ("delay", [5.0, 10.0]),
        ("coded_character_set_id", [819]),
        ("encoding", [273]),
        ("properties", PROPERTIES),
        ("properties", PROPERTIES),
    ],
    3,
)
by_hand = st.fixed_dictionaries(
    {
        "group_id": st.sampled_from([b"g1", b"g2", NO_ID]),
        "sequence_number": st.sampled_from([1, 1, 2, 3]),
        "offset": st.sampled_from([0, 0, 4, 8]),
        "flags": st.lists(st.sampled_from(flags), min_size=1, max_size=2).map(sum),
    }
)
in_sequence = st.lists(
    st.sampled_from([Flags.IN_GROUP, Flags.IN_GROUP, Flags.LAST_IN_GROUP, Flags.SEGMENT, Flags.LAST_SEGMENT, Flags(1)]),
    max_size=2,
).map(sum)
put_options = settings_of(
    [
        ("syncpoint", [True, True, False]),
        ("confirm_id", [1, 1, 2]),
        ("new_message_id", [True]),
        ("new_correlation_id", [True]),
        ("context", ["none", "set_all", "set_identity"]),
    ],
    2,
).map(legal(PutOptions))

# --- gets

SELECTORS = [
    "n = 1",
    "n IS NULL OR a.b LIKE 'x%'",
    "Root.MQMD.Priority = 5",
    "JMSXDeliveryCount > 1",
    "Root.MQMD.Expiry > 0 OR JMSCorrelationID = 'c1'",
    "n =",
]
_MATCHES: list[tuple[str, list[Any]]] = [
    ("message_id", [b"i1", b"i2"]),
    ("correlation_id", [b"c1", b"c2"]),
    ("group_id", [b"g1", b"g2", "last"]),
    ("sequence_number", [1, 2]),
    ("offset", [0, 4]),
    ("priority", [0, 5]),
    ("persistent", [True, False]),
    ("token", [0, 1, 2]),
    ("uid", [0, 1, 2]),
    ("uid", [0, 0, 3]),
    ("backout_count", [1]),
    ("selector", SELECTORS),
    ("selector", SELECTORS),
]
match_fields = st.sampled_from(_MATCHES).flatmap(lambda field: st.tuples(st.just(field[0]), st.sampled_from(field[1])))
matches = st.lists(match_fields, max_size=2).map(dict)
_reading: list[tuple[str, list[Any]]] = [
    ("logical", [True]),
    ("logical", [True]),
    ("complete", [True]),
    ("all_segments", [True]),
    ("all_messages", [True]),
    ("buffer", [0, 2, 100]),
    ("accept_truncated", [True]),
    ("read_order", ["strict", "strict", "relaxed", "notify"]),
    ("read_order", ["strict", "notify"]),
]
_removing: list[tuple[str, list[Any]]] = [
    ("syncpoint", [True, True, True, False]),
    ("syncpoint", [True]),
    ("syncpoint_if_persistent", [True]),
    ("under_cursor", [True]),
    ("confirm_id", [1, 1, 2]),
    ("lock_id", ["last"]),
]
_browsing: list[tuple[str, list[Any]]] = [
    ("lock", [True]),
    ("lock", [True]),
    ("mark_handle", [True]),
    ("mark_co_op", [True]),
    ("unmarked", [True]),
    ("unmark_handle", [True]),
    ("unmark_co_op", [True]),
]


def _with_match(settings: Strategy) -> Strategy:
    some = st.one_of(st.just({}), st.just({}), matches)
    return st.tuples(settings, some).map(lambda both: {**both[0], **({"match": both[1]} if both[1] else {})})


get_options = _with_match(settings_of([*_reading, *_removing], 4)).map(legal(GetOptions))
logical_gets = settings_of([*_reading[2:5], *_reading[7:], *_removing[:2]], 2).map(lambda one: {**one, "logical": True})
browse_options = _with_match(settings_of([*_reading, *_browsing], 3)).map(legal(GetOptions, browse="next"))
wait_options = _with_match(settings_of([*_reading[:5], *_reading[7:], *_removing[:3]], 3)).map(legal(GetOptions))

# --- queues

queue_attributes = st.fixed_dictionaries(
    {
        "order": st.sampled_from(["put", "prepare", "commit"]),
        "read_order": st.sampled_from(["relaxed", "relaxed", "relaxed", "strict", "required", "unordered"]),
        "delivery": st.sampled_from(["priority", "priority", "fifo"]),
        "default_priority": st.sampled_from([0, 5]),
        "index_type": st.sampled_from(["none", "none", "group_id"]),
        "max_depth": st.sampled_from([1000, 1000, 1000, 8]),
        "max_length": st.sampled_from([1000, 1000, 16]),
        "nonpersistent_class": st.sampled_from(["normal", "normal", "high"]),
        "default_persistence": st.booleans(),
        "default_input": st.sampled_from([*["shared"] * 12, "exclusive"]),
    }
)
changes = settings_of(
    [
        ("delivery", ["priority", "fifo"]),
        ("order", ["put", "prepare", "commit"]),
        ("default_priority", [0, 5]),
        ("max_depth", [1000, 5]),
        ("max_length", [1000, 32, 16, 15]),
        ("read_order", ["relaxed", "strict", "required", "unordered"]),
        ("get_allowed", [True, True, False]),
        ("put_allowed", [True, True, False]),
        ("expiry", [None, 5.0]),
        ("index_type", ["none", "group_id"]),
        ("no_such_attribute", [1]),
    ],
    2,
    least=1,
)
manager_changes = settings_of(
    [
        ("max_uncommitted", [2, 1000]),
        ("max_handles", [5, 256]),
        ("mark_interval", [5.0, None]),
        ("max_length", [32_768]),
    ],
    1,
    least=1,
)
opens = st.fixed_dictionaries(
    {
        "input": st.sampled_from([*["as_queue", "shared"] * 4, "exclusive", None]),
        "output": st.sampled_from([True, True, False]),
        "browse": st.just(True),
        "co_op": st.booleans(),
        "read_order": st.sampled_from([None, None, None, "strict", "relaxed"]),
    }
)

# --- in bulk

applications = st.sampled_from(["app", "app", "app", "other"])
bulk_options = st.sampled_from(
    [
        {},
        {"logical": True},
        {"logical": True, "complete": True},
        {"logical": True, "all_messages": True},
        {"read_order": "strict"},
        {"logical": True, "all_messages": True, "read_order": "strict"},
    ]
)
survey_options = st.sampled_from(
    [
        {},
        {"logical": True, "all_messages": True},
        {"read_order": "strict"},
        {"logical": True, "all_messages": True, "read_order": "strict"},
    ]
)
staging_names = st.sampled_from(["one", "two", "three"])
staging_orders = st.sampled_from([["one", "two", "three"], ["one", "two", "three"], ["two", "one"], ["three"]])
_keys = st.one_of(
    st.none(), st.integers(-2, 2), st.sampled_from([0.5, 1.0, -0.0, 2.0**53]), st.sampled_from(["", "a", "é", b"a"])
)
_staged: dict[str, Strategy] = {
    "group_key": _keys,
    "order_key": _keys,
    "priority": st.one_of(st.none(), st.integers(0, 11)),
    "expiry": st.sampled_from([None, 1.0, 5.0]),
    "delay": st.sampled_from([None, 0.0, 5.0]),
    "persistent": st.sampled_from([None, True, False]),
    "properties": st.sampled_from([None, *PROPERTIES]),
}
_staged_by_hand: dict[str, Strategy] = {
    "group_id": st.sampled_from([None, b"g1", b"g2"]),
    "sequence_number": st.integers(1, 4),
    "offset": st.sampled_from([0, 16, 20]),
    "flags": st.sampled_from([0, 1, 2, 6, 8, 10, 14, 16, 24]),
}


@st.composite
def staged_rows(draw: st.DrawFn) -> tuple[list[int], dict[str, list[Any]]]:
    """Lengths of bodies, and values of some columns."""
    count = draw(st.integers(0, 5))
    chosen = {name: _staged[name] for name in sorted(draw(st.sets(st.sampled_from(sorted(_staged)))))}
    if draw(st.booleans()):
        chosen |= _staged_by_hand
    lengths = st.sampled_from([0, 1, 16, 20, 40])
    columns = {name: [draw(values) for _ in range(count)] for name, values in chosen.items()}
    return [draw(lengths) for _ in range(count)], columns
