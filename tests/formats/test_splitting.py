"""Split rules: their records at every chunk size, their text, and refusals."""

from __future__ import annotations

import io
import itertools
import re
import tracemalloc
from typing import IO, Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.helpers.support import Raw

from inorder import ArgumentError
from inorder.formats import Delimiter, FormatError, Regex, Rule, Size, Whole, join, parse_rule, split


def records(data: bytes, rule: Rule | str, chunk: int = 1024, record_max: int = 10_000) -> list[bytes]:
    return list(split(io.BytesIO(data), rule, chunk=chunk, record_max=record_max))


@pytest.mark.parametrize(
    ("rule", "data", "expected"),
    [
        (r"delimiter:\n", b"", []),
        (r"delimiter:\n", b"a\nb\n", [b"a\n", b"b\n"]),
        (r"delimiter:\n", b"a\nb", [b"a\n", b"b"]),
        (r"delimiter:\r\n", b"a\r\nb\rc\nd\r\n", [b"a\r\n", b"b\rc\nd\r\n"]),
        ("delimiter:aa", b"aaa", [b"aa", b"a"]),
        (r"delimiter:\x00", b"\0\xff\0", [b"\0", b"\xff\0"]),
        ("delimiter-start:aa", b"aaa", [b"aaa"]),
        ("delimiter-start:aa", b"xaaaay", [b"x", b"aa", b"aay"]),
        ("delimiter-start:>", b"intro>1>>2", [b"intro", b">1", b">", b">2"]),
        ("size:3", b"abcdefgh", [b"abc", b"def", b"gh"]),
        ("regex:^def ", b"import x\ndef a\n  def n\ndef b\n", [b"import x\n", b"def a\n  def n\n", b"def b\n"]),
        ("regex:^def ", b"none", [b"none"]),
        ("regex:(?<=x)y", b"xyxy", [b"x", b"yx", b"y"]),
        (r"regex:[\x80-\xff]", b"a\x80b\xff", [b"a", b"\x80b", b"\xff"]),
        ("regex-end:^end$", b"1\nend\n2\nend", [b"1\nend", b"\n2\nend"]),
        (r"regex-end:\n{2,}", b"1\n\n\n2\n3", [b"1\n\n\n", b"2\n3"]),
        ("regex-end:(?<=a)b|a", b"abc", [b"a", b"b", b"c"]),
        ("regex:ä", "aäb".encode(), [b"a", "äb".encode()]),
        ("whole", b"", []),
    ],
)
@pytest.mark.parametrize("chunk", [1, 3, 1024])
def test_a_rule_splits_data_into_these_records(rule: str, data: bytes, expected: list[bytes], chunk: int) -> None:
    assert records(data, rule, chunk) == expected


# ---- properties: few letters, so that borders and overlaps are common

DATA = st.binary(max_size=60).map(lambda data: bytes(b"ab\n\r\xff"[byte % 5] for byte in data))
DELIMITERS = st.binary(min_size=1, max_size=3).map(lambda data: bytes(b"ab\n\r"[byte % 4] for byte in data))
PATTERNS = st.sampled_from(
    ["a", "ab", "a+", "^a", "a$", "a|ab", "ab?a", r"(?<=b)a", r"\n\n", r"a(?=b)", r"\Aa", "a.*?b|a"]
)
RULES: st.SearchStrategy[Rule] = st.one_of(
    st.builds(Delimiter, DELIMITERS, st.sampled_from(["end", "start"])),
    st.builds(Size, st.integers(1, 20)),
    st.builds(Regex, PATTERNS, st.sampled_from(["start", "end"])),
    st.just(Whole()),
)


@given(data=DATA, rule=RULES, chunk=st.integers(1, 70))
@example(data=b"aaba", rule=Delimiter(b"aba"), chunk=2)
def test_the_joined_records_are_the_same_bytes_and_no_record_is_empty(data: bytes, rule: Rule, chunk: int) -> None:
    found = records(data, rule, chunk)
    copy = io.BytesIO()
    assert join(found, copy) == len(data)
    assert copy.getvalue() == data
    assert all(found)
    if not isinstance(rule, Whole):
        assert found == records(data, rule, 1024), "the same at every chunk size"


def test_records_are_joined_completely_on_a_stream_with_partial_writes() -> None:
    raw = Raw()
    assert join([b"12345", b"6789"], cast("IO[bytes]", raw)) == len(raw.written)
    assert raw.written == b"123456789"


@given(data=DATA, pattern=PATTERNS, side=st.sampled_from(["start", "end"]), chunk=st.integers(1, 70))
def test_an_expression_splits_where_finditer_finds_it(data: bytes, pattern: str, side: str, chunk: int) -> None:
    """With a bound that is larger than the file, the whole file is searched at once."""
    rule = Regex(pattern, side)  # type: ignore[arg-type]
    matches = list(re.finditer(pattern.encode(), data, re.MULTILINE))
    cuts = [0, *(match.start() if side == "start" else match.end() for match in matches), len(data)]
    assert records(data, rule, chunk) == [data[a:b] for a, b in itertools.pairwise(cuts) if a < b]


@given(data=DATA, delimiter=DELIMITERS, chunk=st.integers(1, 70))
def test_a_delimiter_splits_as_python_does(data: bytes, delimiter: bytes, chunk: int) -> None:
    *ended, rest = data.split(delimiter)
    expected = [part + delimiter for part in ended] + [rest] * bool(rest)
    assert records(data, Delimiter(delimiter), chunk) == expected


@given(data=DATA, rule=RULES, chunk=st.integers(1, 70), record_max=st.integers(1, 30))
@example(data=b"aab\na", rule=Delimiter(b"b\n", "start"), chunk=3, record_max=2)
@example(data=b"aab\n", rule=Delimiter(b"b\n", "start"), chunk=3, record_max=2)
def test_the_limit_on_records_holds_and_does_not_depend_on_the_chunk_size(
    data: bytes, rule: Rule, chunk: int, record_max: int
) -> None:
    if isinstance(rule, Size):
        record_max = max(record_max, rule.size)

    def outcome(chunk: int) -> list[bytes]:
        found: list[bytes] = []
        try:
            found.extend(split(io.BytesIO(data), rule, chunk=chunk, record_max=record_max))
        except FormatError as refused:
            return [*found, str(refused).encode()]
        return found

    if not isinstance(rule, Whole):
        assert outcome(chunk) == outcome(1024)
        assert all(len(record) <= record_max or b"longer" in record for record in outcome(chunk))


def test_a_record_may_be_exactly_as_long_as_the_limit() -> None:
    assert records(b"abcdefgh", "whole", 3, record_max=1) == [b"abc", b"def", b"gh"]
    assert records(b"aaaa\naaaa\n", r"delimiter:\n", 2, record_max=5) == [b"aaaa\n", b"aaaa\n"]
    assert records(b"aaaa\naaaa", r"delimiter-start:\n", 2, record_max=5) == [b"aaaa", b"\naaaa"]
    with pytest.raises(FormatError, match="record at offset 5 is longer than 4 bytes"):
        records(b"aaa\n\naaaa\n", r"delimiter:\n", 2, record_max=4)


class Short(io.BytesIO):
    """A stream that returns one byte at a time, as a pipe may."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(size or 0, 1))


@given(data=DATA, rule=RULES)
def test_a_stream_with_short_reads_is_read_completely(data: bytes, rule: Rule) -> None:
    assert list(split(Short(data), rule, chunk=7)) == records(data, rule, 7, record_max=2**24)


def test_a_file_much_longer_than_the_limit_on_records_is_split_completely() -> None:
    class Endless:
        left = 200

        def read(self, size: int = -1, /) -> bytes:
            self.left -= 1
            return b"x" * (size - 1) + b"\n" if self.left >= 0 else b""

    tracemalloc.start()
    try:
        for rule in (r"delimiter:\n", "regex-end:\\n", "size:65536"):
            count = sum(len(record) for record in split(Endless(), rule, chunk=65536, record_max=100_000))
            assert count == 200 * 65536
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


# ---- the text of a rule


@given(
    st.one_of(
        st.builds(Delimiter, st.binary(min_size=1, max_size=5), st.sampled_from(["end", "start"])),
        st.builds(Size, st.integers(1, 999_999_999)),
        st.builds(Regex, st.sampled_from(["^def ", "a:b", "ä", "(?i)x", "\\n"]), st.sampled_from(["start", "end"])),
        st.just(Whole()),
    )
)
def test_a_rule_written_as_text_is_read_back(rule: Rule) -> None:
    assert parse_rule(str(rule)) == rule


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (r"delimiter:\n", Delimiter(b"\n")),
        (r"delimiter:\\n", Delimiter(b"\\n")),
        (r"delimiter:\x0Aé:", Delimiter(b"\n" + "é:".encode())),
        ("size:65536", Size(65536)),
        ("regex:^def ", Regex("^def ")),
        ("whole", Whole()),
    ],
)
def test_a_text_is_read_as_a_rule(text: str, rule: Rule) -> None:
    assert parse_rule(text) == rule


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "delimiter:..."),
        ("lines", "size:BYTES"),
        ("delimiter:", "at least one character"),
        ("delimiter:\\q", "escapes"),
        ("delimiter:\udc80", "at least one character"),
        ("size:0", "1 to 999,999,999"),
        ("size:1000000000", "1 to 999,999,999"),
        ("regex:", "not empty"),
        ("regex:(", "regular expression for bytes"),
        ("regex:(?u)x", "regular expression for bytes"),
        ("regex:x*", "does not match zero bytes"),
        (7, "a text"),
    ],
)
def test_a_text_that_is_not_a_rule_is_refused_with_what_is_allowed(text: str, word: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(word)):
        parse_rule(text)


def test_an_expression_that_matches_zero_bytes_is_refused_with_the_offset() -> None:
    with pytest.raises(FormatError, match="zero bytes at offset 4"):
        records(b"ab\ncxx", r"regex:(?=xx)|\n")


def test_bad_arguments_are_refused() -> None:
    for stream, more, word in (
        (io.BytesIO(b"x"), {"chunk": 0}, "chunk"),
        (io.BytesIO(b"x"), {"record_max": 4}, "at least the 5 bytes"),
        (io.StringIO("x"), {}, "binary stream"),
        (b"x", {}, "stream"),
    ):
        with pytest.raises(ArgumentError, match=word):
            list(split(stream, "size:5", **more))  # type: ignore[arg-type]


def test_a_bad_rule_is_refused() -> None:
    given: list[tuple[Any, ...]] = [(Delimiter, b""), (Delimiter, "x"), (Size, True)]
    for make, *values in [*given, (Delimiter, b"x", "middle"), (Regex, "x", "middle")]:
        with pytest.raises(ArgumentError):
            make(*values)
