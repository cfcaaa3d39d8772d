"""The manifest: the same bytes for the same file, any file name, and refusals of bad manifests."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inorder.formats import Manifest, ManifestError, UnsafePath
from inorder.formats.manifest import make, parse, path_text

GOOD: dict[str, Any] = {
    "version": 1,
    "path": "src/a.py",
    "size": 10,
    "mode": 0o644,
    "sha256": "0" * 64,
    "rule": "size:4",
    "messages": 3,
}
NAMES = st.binary(min_size=1, max_size=20).filter(
    lambda name: not set(b"/\0") & set(name) and name not in (b".", b"..")
)
PATHS = st.lists(NAMES, min_size=1, max_size=4).map(lambda parts: path_text(b"/".join(parts)))


def body(**changes: Any) -> bytes:
    return json.dumps({**GOOD, **changes}).encode()


def test_a_manifest_is_written_as_this_json() -> None:
    assert make(Manifest(**GOOD)) == (
        b'{"version": 1, "path": "src/a.py", "size": 10, "mode": 420, '
        b'"sha256": "0000000000000000000000000000000000000000000000000000000000000000", '
        b'"rule": "size:4", "messages": 3}'
    )


@given(
    path=PATHS,
    mode=st.integers(0, 0o777),
    rule=st.sampled_from([r"delimiter:\n", "delimiter:ä", "regex:é", "size:4"]),
)
def test_a_manifest_with_any_path_is_read_back_unchanged(path: str, mode: int, rule: str) -> None:
    manifest = Manifest(**{**GOOD, "path": path, "mode": mode, "rule": rule})
    made = make(manifest)
    assert parse(made) == manifest
    assert made.isascii()


@pytest.mark.parametrize(
    ("given", "word"),
    [
        (b"", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 60_000, "not JSON"),
        (b"[]", "not an object"),
        (b'{"version": 1, "version": 1}', "twice"),
        (b" " * 70_000, "at most 65,536 bytes"),
        (body(version=2), "a newer release"),
        (body(more=1), "unknown: more"),
        (json.dumps({"version": 1}).encode(), "missing: messages, mode, path"),
        (body(size=-1), "size must be"),
        (body(size=10.0), "size must be"),
        (body(mode=0o4755), "mode must be"),
        (body(sha256="0" * 63), "sha256 must be"),
        (body(rule="lines"), "rule: "),
        (body(rule=7), "rule must be"),
        (body(path=7), "path must be"),
        (body(messages=2), "cannot be 2 messages"),
        (body(messages=2, rule="whole"), "cannot be 2 messages"),
        (body(size=1_000_000_000, messages=1, rule="whole"), "cannot be 1 messages"),
    ],
)
def test_a_bad_manifest_is_refused_with_the_reason(given: bytes, word: str) -> None:
    with pytest.raises(ManifestError, match=word):
        parse(given)


@pytest.mark.parametrize(
    "path",
    ["", "/etc/passwd", "..", "../x", "a/..", ".", "./a", "a/./b", "a/.", "a//b", "a/", "a\0b", "\ud800", "x" * 4097],
)
def test_a_path_that_could_lead_elsewhere_is_refused(path: str) -> None:
    with pytest.raises(UnsafePath, match="path must"):
        Manifest(**{**GOOD, "path": path})
    with pytest.raises(UnsafePath):
        parse(body(path=path))


@pytest.mark.parametrize("path", ["a/b", "..a", "a..", ".a", "C:\\x", "~"])
def test_a_path_that_stays_inside_the_folder_is_accepted(path: str) -> None:
    assert Manifest(**{**GOOD, "path": path}).path == path


@pytest.mark.parametrize(
    ("size", "messages", "rule"), [(0, 0, "whole"), (0, 0, "size:4"), (8, 2, "size:4"), (1, 1, "whole")]
)
def test_a_count_of_messages_that_fits_the_size_and_the_rule_is_accepted(size: int, messages: int, rule: str) -> None:
    assert parse(body(size=size, messages=messages, rule=rule)).messages == messages
