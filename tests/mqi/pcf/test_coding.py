"""PCF's structures are read and written in both byte orders; each structural fault has its reason code."""

from __future__ import annotations

import struct

import pytest
from tests.mqi.pcf.asking import number

from inorder.mqi.conversion import character_set
from inorder.mqi.pcf.coding import (
    BYTE_STRING,
    BYTE_STRING_FILTER,
    COMMAND,
    GROUP,
    INTEGER,
    INTEGER64,
    INTEGER64_LIST,
    INTEGER_FILTER,
    INTEGER_LIST,
    STRING,
    STRING_FILTER,
    STRING_LIST,
    Coding,
    Header,
    Padded,
    PcfFault,
    PcfParameter,
    parameter,
    read,
    write,
)

LITTLE, BIG = Coding("<"), Coding(">")
HEADER = Header(COMMAND, 1, 13)

# The words of a structure, with texts and 64-bit numbers apart, and its value.
STRUCTURES = [
    ([INTEGER, 16, 15, -7], b"", PcfParameter(15, -7, INTEGER)),
    ([STRING, 28, 2016, 0, 5], b"A.B  \0\0\0", PcfParameter(2016, "A.B", STRING)),
    ([STRING, 20, 2016, 0, 0], b"", PcfParameter(2016, "", STRING)),
    ([INTEGER_LIST, 24, 1002, 2, 15, 2016], b"", PcfParameter(1002, [15, 2016], INTEGER_LIST)),
    ([INTEGER_LIST, 16, 1002, 0], b"", PcfParameter(1002, [], INTEGER_LIST)),
    ([STRING_LIST, 32, 3011, 0, 2, 4], b"A   BC  ", PcfParameter(3011, ["A", "BC"], STRING_LIST)),
    ([BYTE_STRING, 20, 7006, 3], b"\1\2\3\0", PcfParameter(7006, b"\1\2\3", BYTE_STRING)),
    ([INTEGER_FILTER, 20, 15, 4, 100], b"", PcfParameter(15, 100, INTEGER_FILTER, 4)),
    ([STRING_FILTER, 28, 2013, 18, 0, 2], b"A*\0\0", PcfParameter(2013, "A*", STRING_FILTER, 18)),
    ([BYTE_STRING_FILTER, 24, 7006, 2, 1], b"\1\0\0\0", PcfParameter(7006, b"\1", BYTE_STRING_FILTER, 2)),
]


def packed(coding: Coding, words: list[int], rest: bytes = b"") -> bytes:
    return coding.integers(*words) + rest


def message(coding: Coding, *structures: bytes, count: int | None = None) -> bytes:
    whole = bytearray(write(HEADER, structures, coding))
    if count is not None:
        whole[32:36] = coding.integers(count)
    return bytes(whole)


@pytest.mark.parametrize("coding", [LITTLE, BIG], ids=["reversed", "normal"])
def test_every_structure_is_read_in_both_byte_orders(coding: Coding) -> None:
    wide = [
        (
            coding.integers(INTEGER64, 24, 748, 0) + struct.pack(f"{coding.order}q", 2**40),
            PcfParameter(748, 2**40, INTEGER64),
        ),
        (
            coding.integers(INTEGER64_LIST, 32, 748, 2) + struct.pack(f"{coding.order}2q", 1, -(2**40)),
            PcfParameter(748, [1, -(2**40)], INTEGER64_LIST),
        ),
    ]
    group = packed(coding, [GROUP, 16, 8001, 2]), *(packed(coding, *each[:2]) for each in STRUCTURES[:2])
    structures = [*(packed(coding, words, rest) for words, rest, _ in STRUCTURES), *(each for each, _ in wide), *group]
    wanted = [*(each for *_, each in STRUCTURES), *(each for _, each in wide)]
    header, found = read(message(coding, *structures, count=len(wanted) + 1), coding)
    assert header == HEADER
    assert list(found) == [*wanted, PcfParameter(8001, (STRUCTURES[0][2], STRUCTURES[1][2]), GROUP)]


@pytest.mark.parametrize("coding", [LITTLE, BIG], ids=["reversed", "normal"])
@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (-7, -7),
        (2**40, 2**40),
        ("Größe", "Größe"),
        (Padded("A", 48), "A"),
        (b"\1\2\3\0\5", b"\1\2\3\0\5"),
        ([1, 2, 3], [1, 2, 3]),
        (["A", "LONGER", ""], ["A", "LONGER", ""]),
        ([], []),
    ],
)
def test_written_parameters_are_read_back(coding: Coding, value: object, wanted: object) -> None:
    one = parameter(2016, value, coding)  # type: ignore[arg-type]
    assert len(one) % 4 == 0
    _, (found, other) = read(write(HEADER, [one, parameter(1, 2, coding)], coding), coding)
    assert (found.number, found.value, other.value) == (2016, wanted, 2)


def test_a_text_has_the_character_set_that_its_structure_names() -> None:
    one = packed(LITTLE, [STRING, 24, 2013, 819, 1], "ö".encode("latin-1") + b"\0\0\0")
    _, (found,) = read(message(LITTLE, one), LITTLE, character_set)
    assert found.value == "ö"
    for wrong in (one, packed(LITTLE, [STRING, 24, 2013, 0, 1], b"\xff\0\0\0")):
        with pytest.raises(PcfFault, match="MQRCCF_CCSID_ERROR"):
            read(message(LITTLE, wrong), LITTLE)


@pytest.mark.parametrize(
    ("words", "rest", "fault"),
    [
        ([99, 16, 1, 0], b"", "STRUCTURE_TYPE_ERROR"),
        ([INTEGER, 20, 15, 1, 1], b"", "CFIN_LENGTH_ERROR"),
        ([INTEGER, 12, 15], b"", "CFIN_LENGTH_ERROR"),
        ([STRING, 2000, 2016, 0, 1980], b"", "CFST_LENGTH_ERROR"),
        ([STRING, 24, 2016, 0, -1], b"ABCD", "CFST_STRING_LENGTH_ERR"),
        ([STRING, 24, 2016, 0, 9], b"ABCD", "CFST_LENGTH_ERROR"),
        ([INTEGER_LIST, 16, 1002, -1], b"", "CFIL_COUNT_ERROR"),
        ([INTEGER_LIST, 16, 1002, 3], b"", "CFIL_LENGTH_ERROR"),
        ([STRING_LIST, 24, 3011, 0, -1, 0], b"", "CFSL_COUNT_ERROR"),
        ([STRING_LIST, 24, 3011, 0, 2**31 - 1, 0], b"", "CFSL_COUNT_ERROR"),
        ([STRING_LIST, 24, 3011, 0, 1, -1], b"", "CFSL_STRING_LENGTH_ERR"),
        ([STRING_LIST, 24, 3011, 0, 1, 4], b"", "CFSL_LENGTH_ERROR"),
        ([BYTE_STRING, 16, 7006, -1], b"", "CFBS_STRING_LENGTH_ERR"),
        ([BYTE_STRING, 16, 7006, 4], b"", "CFBS_LENGTH_ERROR"),
        ([INTEGER_FILTER, 24, 15, 2, 1, 1], b"", "CFIF_LENGTH_ERROR"),
        ([STRING_FILTER, 24, 2013, 2, 0, -1], b"", "CFSF_FILTER_VAL_LEN_ERR"),
        ([STRING_FILTER, 24, 2013, 2, 0, 4], b"", "CFSF_LENGTH_ERROR"),
        ([BYTE_STRING_FILTER, 20, 7006, 2, -1], b"", "CFBF_FILTER_VAL_LEN_ERR"),
        ([BYTE_STRING_FILTER, 20, 7006, 2, 4], b"", "CFBF_LENGTH_ERROR"),
        ([GROUP, 20, 8001, 0, 0], b"", "CFGR_LENGTH_ERROR"),
        ([GROUP, 16, 8001, -1], b"", "CFGR_PARM_COUNT_ERROR"),
        ([GROUP, 16, 8001, 1], b"", "MSG_LENGTH_ERROR"),
        ([INTEGER, 16], b"", "MSG_LENGTH_ERROR"),
    ],
)
def test_an_invalid_structure_is_refused(words: list[int], rest: bytes, fault: str) -> None:
    with pytest.raises(PcfFault) as refused:
        read(message(LITTLE, packed(LITTLE, words, rest)), LITTLE)
    assert refused.value.reason == number(f"MQRCCF_{fault}"), refused.value
    assert refused.value.header == HEADER


@pytest.mark.parametrize(
    ("place", "value", "fault"),
    [
        (4, 32, "CFH_LENGTH_ERROR"),
        (8, 0, "CFH_VERSION_ERROR"),
        (8, 4, "CFH_VERSION_ERROR"),
        (32, -1, "CFH_PARM_COUNT_ERROR"),
        (32, 1, "MSG_LENGTH_ERROR"),
    ],
)
def test_an_invalid_header_is_refused(place: int, value: int, fault: str) -> None:
    whole = bytearray(message(LITTLE))
    whole[place : place + 4] = LITTLE.integers(value)
    with pytest.raises(PcfFault) as refused:
        read(bytes(whole), LITTLE)
    assert refused.value.reason == number(f"MQRCCF_{fault}")


def test_a_message_without_a_header_or_with_more_than_it_counts_is_refused() -> None:
    with pytest.raises(PcfFault, match="MQRCCF_MSG_LENGTH_ERROR"):
        read(bytes(35), LITTLE)
    with pytest.raises(PcfFault, match="MQRCCF_PARM_COUNT_TOO_BIG"):
        read(message(LITTLE, parameter(1, 2, LITTLE), count=0), LITTLE)


def test_too_deeply_nested_groups_are_refused() -> None:
    with pytest.raises(PcfFault, match="MQRCCF_CFGR_PARM_COUNT_ERROR"):
        read(message(LITTLE, packed(LITTLE, [GROUP, 16, 8001, 1] * 100), count=1), LITTLE)
