"""Keys of staged rows, as bytes, sort as the keys do in SQLite and in the rules."""

from __future__ import annotations

import math
from itertools import pairwise

import apsw
from hypothesis import given
from hypothesis import strategies as st

from inorder.rules.staging import Key, sort_key
from inorder.stores.postgresql.keys import encoded

ASCENDING: list[list[Key]] = [  # each line is one key, in all its spellings
    [-math.inf],
    [-1e308],
    [-(2**63), -(2.0**63)],
    [-(2**63) + 1],
    [-(2**53) - 1],
    [-(2**53), -(2.0**53)],
    [-1.5],
    [-1, -1.0],
    [-5e-324],
    [0, 0.0, -0.0, False],
    [5e-324],
    [1, 1.0, True],
    [1.5],
    [2**53, 2.0**53],
    [2**53 + 1],
    [2**53 + 2, 2.0**53 + 2],
    [2**63 - 1025],
    [2**63 - 1024, 2.0**63 - 1024],
    [2**63 - 1023],
    [2**63 - 513],
    [2**63 - 512],
    [2**63 - 1],
    [2.0**63],
    [math.inf],
    [""],
    ["\0"],
    ["a"],
    ["a\0"],
    ["aa"],
    ["b"],
    ["é"],
    ["\uffff"],
    ["\U00010000"],
    [b""],
    [b"\0"],
    [b"a"],
    [b"\xff"],
]


def test_equal_keys_have_the_same_bytes_and_greater_ones_greater_bytes() -> None:
    found = [set(encoded(same)) for same in ASCENDING]
    assert [same for same, keys in zip(ASCENDING, found, strict=True) if len(keys) != 1] == []
    in_order = [key for (key,) in found]
    assert [(less, more) for less, more in pairwise(in_order) if not less < more] == []  # type: ignore[operator]
    assert encoded([None]) == [None]


KEYS = (
    st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=3)
    | st.binary(max_size=3)
)
# A number and its neighbours: integers and floats meet where floats have gaps.
CLOSE = st.builds(
    lambda bits, more: max(-(2**63), min(2**63 - 1, (1 << bits) + more)), st.integers(50, 62), st.integers(-2050, 2050)
).flatmap(lambda number: st.sampled_from([number, -number, float(number), -float(number)]))


@given(KEYS | CLOSE, KEYS | CLOSE)
def test_any_two_keys_sort_as_in_sqlite_and_in_the_rules(one: Key, another: Key) -> None:
    with apsw.Connection(":memory:") as connection:
        ((less, same),) = connection.execute("SELECT ?1 < ?2, ?1 = ?2", (one, another))
    ours, others = encoded([one, another])
    assert ours is not None
    assert others is not None
    assert (ours < others, ours == others) == (bool(less), bool(same))
    assert (ours < others) == (sort_key(one) < sort_key(another))
