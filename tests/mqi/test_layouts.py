"""Structures in memory: sizes, alignment, versions. Rules: M-11, section 3 of *mqi*."""

from __future__ import annotations

import ctypes
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from inorder.mqi import constants
from inorder.mqi.constants import of_headers
from inorder.mqi.layouts import MD, OD, TMC2, Charv, LayoutError, layout, names, put_text, text_at

SIZES = """MD 364 GMO 112 PMO 184 OD 424 SD 344 SRO 16 CMHO 12 PD 24 SMPO 20 IMPO 64 CNO 272 CSP 104 BNO 20 SCO 672
STS 280 CBD 168 CBC 64 CTLO 24 DMHO 12 DMPO 12 TM 684 TMC2 732 CD 1992"""
OLDER = """MD 1 324 OD 1 168 OD 2 208 OD 3 344 GMO 1 72 GMO 2 80 GMO 3 100 PMO 1 128 PMO 2 160 CNO 1 12 CNO 2 24
CNO 3 152 CNO 5 200 CNO 6 224 CNO 7 256 CSP 1 56 CSP 2 80 CBC 1 56 STS 1 224 CD 1 984 CD 11 1984"""


@pytest.mark.parametrize(("name", "size"), re.findall(r"(\w+) (\d+)", SIZES))
def test_the_newest_version_has_its_size(name: str, size: str) -> None:
    assert len(layout(name).new()) == layout(name).size() == int(size)


@pytest.mark.parametrize(("name", "version", "size"), re.findall(r"(\w+) (\d+) (\d+)", OLDER))
def test_an_older_version_has_its_size(name: str, version: str, size: str) -> None:
    assert len(layout(name).new(int(version))) == layout(name).size(int(version)) == int(size)


@pytest.mark.parametrize("name", names())
def test_every_version_is_read_back_as_it_was_written(name: str) -> None:
    of = layout(name)
    for version in of.structs:
        first = of.new(version)
        again = bytearray(len(first))
        again[: 24 if name == "CD" else 8] = first[: 24 if name == "CD" else 8]
        of.write(again, of.read(first))
        assert again == first


def test_offsets_are_those_of_natural_alignment() -> None:
    buffer = OD.new(ObjectName=b"ORDERS", ObjectString=Charv(Ptr=2**40, Length=5))
    assert buffer[12:18] == b"ORDERS"
    assert int.from_bytes(buffer[344:352], "little") == 2**40
    assert int.from_bytes(buffer[360:364], "little") == 5


def test_fields_beyond_the_version_are_neither_read_nor_written() -> None:
    buffer = MD.new(GroupId=b"G" * 24, Format=b"MQSTR")
    buffer[4:8] = (1).to_bytes(4, "little")
    values = MD.read(buffer)
    assert values.GroupId == bytes(24)
    assert values.Format == b"MQSTR   "
    values.MsgSeqNumber = 7
    MD.write(buffer, values)
    assert buffer[324:348] == b"G" * 24
    assert int.from_bytes(buffer[348:352], "little") == 1


@pytest.mark.parametrize("name", [name for name in names() if name != "CD"])
def test_a_wrong_identifier_is_refused(name: str) -> None:
    buffer = layout(name).new()
    buffer[:4] = b"XXXX"
    with pytest.raises(LayoutError, match="must begin with") as raised:
        layout(name).read(buffer)
    assert raised.value.reason == layout(name).wrong


@pytest.mark.parametrize(("name", "reason"), [("MD", 2026), ("OD", 2044), ("GMO", 2186), ("PMO", 2173), ("CNO", 2139),
                                              ("SD", 2424), ("CMHO", 2461), ("IMPO", 2464), ("CD", 2277)])  # fmt: skip
@pytest.mark.parametrize("version", [0, -1, 99])
def test_a_version_that_does_not_exist_is_refused(name: str, reason: int, version: int) -> None:
    buffer = layout(name).new()
    at = 20 if name == "CD" else 4
    buffer[at : at + 4] = version.to_bytes(4, "little", signed=True)
    with pytest.raises(LayoutError, match=f"has version {version}") as raised:
        layout(name).version(buffer)
    assert raised.value.reason == reason


def test_the_version_of_a_trigger_message_for_programs_is_text() -> None:
    assert TMC2.new()[4:8] == b"   2"
    assert TMC2.version(TMC2.new()) == 2


def test_strings_elsewhere_in_memory_are_read_and_written() -> None:
    memory = ctypes.create_string_buffer(b"NEWS/SPORT", 32)
    address = ctypes.addressof(memory)
    assert _text(Charv(Ptr=address, Length=4)) == b"NEWS"
    assert _text(Charv(Ptr=address, Length=-1)) == b"NEWS/SPORT"
    assert _text(Charv(Offset=5, Length=5), address) == b"SPORT"
    assert _text(Charv()) == b""
    assert put_text(Charv(Ptr=address, BufSize=4), b"WEATHER").Length == 7
    assert memory.value == b"WEAT/SPORT"
    for length in (-2, 11):
        with pytest.raises(LayoutError, match=f"from 0 to 10, or -1, not {length}"):
            _text(Charv(Ptr=1, Length=length))


def _text(string: Charv, base: int = 0) -> bytes:
    return text_at(string, base, longest=10, wrong=2519)


def test_constants_have_the_values_of_their_sources() -> None:
    assert constants.MQGMO_WAIT == 1
    assert constants.MQRC_NO_MSG_AVAILABLE == 2033  # from our reasons
    assert constants.MQRC_CHANNEL_STOPPED == 2283  # our reason of this name has another number
    assert constants.MQIA_CURRENT_Q_DEPTH == 3  # from the words
    assert constants.MQFMT_STRING == b"MQSTR   "
    with pytest.raises(AttributeError, match="no MQGMO_WAITING"):
        _ = constants.MQGMO_WAITING


FILES = ("CMQC", "_CMQC_linux_x64", "CMQCFC", "CMQXC")
OF_PROGRAMS = re.compile(r"MQ(|(IA|CA)(CF|CH|MO)?|BACF|GACF|CMD|CMDL|AUTH|ENC)_")
LEVEL = re.compile(r"MQCMDL_CURRENT_LEVEL|MQ\w+_(FIRST|LAST)$")
CONSTANT = re.compile(r"^(MQ\w+) *= *\(?(-?(?:0x[0-9a-fA-F]+|\d+))\)? *$", re.MULTILINE)


def test_the_constants_are_those_of_ibmmq() -> None:
    package = find_spec("ibmmq")
    if package is None or package.origin is None:
        pytest.skip("needs ibmmq, which has no wheel for this system")
    folder = Path(package.origin).parent
    theirs = {
        name: int(value, 0)
        for file in FILES
        for name, value in CONSTANT.findall((folder / f"{file}.py").read_text(encoding="utf-8"))
    }
    ours = {name: value for name, value in of_headers().items() if isinstance(value, int)}
    assert not [name for name in theirs.keys() - ours.keys() if OF_PROGRAMS.match(name) and not LEVEL.match(name)]
    del ours["MQCA_LAST_USED"], ours["MQIA_LAST_USED"]  # rises with each release of MQ
    both = ours.keys() & theirs.keys()
    assert len(both) > 1_500
    assert {name: ours[name] for name in both if ours[name] != theirs[name]} == {}
