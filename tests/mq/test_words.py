"""The table of MQ's words is consistent, and each value that it lists as supported has its source."""

from __future__ import annotations

import pytest

from inorder.mq import words
from inorder.mq.mqsc.channelling import STATUS as CHANNEL_STATUS
from inorder.mq.mqsc.connecting import CONNECTION, HANDLE
from inorder.mq.mqsc.connecting import STATUS as HANDLE_STATUS

KINDS = sorted({each.kind for each in words.commands().values() if each.kind != words.NONE} | {"handle"})
RANGES = {  # ranges of the numbers; MQIA_ and MQCA_ are also those of MQINQ
    "MQIA": (1, 999), "MQIACF": (1001, 1500), "MQIACH": (1501, 2000), "MQCA": (2001, 3000), "MQCACF": (3001, 3500),
    "MQCACH": (3501, 4000), "MQBACF": (7001, 7999),
}  # fmt: skip


def test_a_constant_has_one_number_in_its_range_and_a_number_one_constant() -> None:
    numbers: dict[str, int] = {}
    for kind in KINDS:
        for word in words.words_of(kind).values():
            if word.name is None or not word.name.startswith("MQ") or "_" not in word.name:
                continue
            assert word.number is not None, word
            low, high = RANGES[word.name.partition("_")[0]]
            assert low <= word.number <= high, word
            assert numbers.setdefault(word.name, word.number) == word.number
    assert len(numbers) > 400
    assert len(set(numbers.values())) == len(numbers)


def test_an_attribute_and_a_constant_of_the_same_number_have_the_same_keyword() -> None:
    for kind in ("queue", "manager", "process"):
        table = words.words_of(kind)
        numbers = [word.number for word in table.values() if word.number is not None]
        assert len(set(numbers)) == len(numbers), kind


@pytest.mark.parametrize(
    ("kind", "sources"),
    [
        ("conn", {*CONNECTION, *HANDLE}),
        ("handle", {*HANDLE_STATUS}),
        ("chstatus", {*CHANNEL_STATUS}),
    ],
)
def test_the_table_and_the_sources_of_status_values_agree(kind: str, sources: set[str]) -> None:
    assert set(words.here(kind)) == sources


def test_every_unsupported_word_has_a_reason_and_every_reason_is_used() -> None:
    given = {word.why for kind in KINDS for word in words.lacking(kind).values()}
    given |= {each.why for each in words.commands().values()} | {*words.channel_types().values()}
    given |= {*words.system_objects().values()}
    assert given - {""} == set(words.reasons().values())
