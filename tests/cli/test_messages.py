"""`inorder put`, `get`, `move` and `copy`: messages between the shell, files and queues."""

from __future__ import annotations

import io
import json
import os
import signal
import struct
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Command, told
from tests.helpers.support import bodies_at
from tests.tiers import gate

import inorder
from inorder import Feedback, Flags, Report
from inorder.cli import parts, putting
from inorder.formats.json_lines import FIELDS, FILLED_IN

BINARY = b"\x1b[31m\xff\x00"


def test_a_message_is_put_and_got(run: Command, queue: str) -> None:
    assert run("put", queue, "two apples", "--priority", "7").out == "put 1 message on ORDERS\n"
    assert run("get", queue).out == "two apples\n"
    empty = run("get", queue)
    assert (empty.status, empty.out) == (1, "")
    assert "2033" in empty.err


def test_messages_are_got_and_put_in_the_format_of_dmpmqmsg(
    run: Command, queue: str, tmp_path: Path, store: Path
) -> None:
    run("put", queue, "apples", "--priority", "7", "--message-id", "text:M1", "--body-format", "MQSTR")
    run("put", queue, "--group", "--lines", given=b"a\nb\nc")
    with inorder.connect(store) as qm:
        before = list(qm.browse(queue))
    assert run("get", queue, "--all", "--format", "dmpmqmsg", "--unit-size", "1", "--output", "a.txt").status == 0
    text = (tmp_path / "a.txt").read_bytes()
    assert text.startswith(b"* QLOAD")
    assert text.count(b"* QLOAD") == 1
    assert run("put", queue, "--format", "dmpmqmsg", "--keep-context", given=text).out == "put 4 messages on ORDERS\n"
    with inorder.connect(store) as qm:
        after = list(qm.browse(queue))
    fields = "body priority message_id group_id sequence_number flags format user_identifier persistent".split()
    assert [[getattr(one, name) for name in fields] for one in after] == [
        [getattr(one, name) for name in fields] for one in before
    ]


def test_a_message_that_dmpmqmsg_cannot_represent_stays_on_the_queue(run: Command, queue: str) -> None:
    run("put", queue, "plain")
    run("put", queue, "red", "--property", "colour=red")
    ended = run("get", queue, "--all", "--format", "dmpmqmsg")
    assert (ended.status, ended.out) == (3, "")
    assert "message 2, properties: the format cannot store them: give --leave-out-properties" in ended.err
    assert run("get", queue, "--all", "--format", "dmpmqmsg", "--leave-out-properties").status == 0
    wrong = run("put", queue, "--format", "dmpmqmsg", given=b"* QLOAD\n\nA VER 9\n")
    assert (wrong.status, "standard input, line 3: " in wrong.err) == (2, True), wrong.err


def test_the_properties_of_a_dump_are_those_of_the_message(run: Command, queue: str, store: Path) -> None:
    """MQ writes properties in a header of the body. Other inputs keep such a body unchanged."""
    folder = b"<usr><colour>red</colour></usr>  "[:32]
    body = b"RFH " + struct.pack("<4i8s3i", 2, 36 + 4 + 32, 546, 1208, b"MQSTR   ", 0, 1208, 32) + folder + b"x"
    dump = b"* DMPMQMSG\nA VER 2\nA ENC 546\nA FMT MQHRF2\nX " + body.hex().encode() + b"\n"
    assert run("put", queue, "--format", "dmpmqmsg", given=dump).status == 0
    assert run("put", queue, "--body-format", "MQHRF2", given=body).status == 0
    with inorder.connect(store) as qm:
        dumped, plain = qm.browse(queue)
    assert (dumped.body, dumped.format, dict(dumped.properties)) == (b"x", "MQSTR", {"colour": "red"})
    assert (plain.body, plain.format, dict(plain.properties)) == (body, "MQHRF2", {})


def test_put_says_that_messages_are_lost_because_they_are_not_persistent_and_no_other_program_is_there(
    run: Command, queue: str, store: Path
) -> None:
    def not_kept(*how: str, given: bytes = b"", to: str = "ORDERS") -> bool:
        return "1 message not kept: not persistent" in run("put", to, *how, given=given).err

    assert not_kept("x", "--no-persistent")
    assert run("queue", "show", "ORDERS", "--json").records[0]["current_depth"] == 0
    with inorder.connect(store) as qm:
        assert not not_kept("x", "--no-persistent")
        line = run("get", "ORDERS", "--json").out.encode()
        qm.alter_queue("ORDERS", default_persistence=False)
    assert not_kept("x")
    assert not not_kept("x", "--persistent", "--deduplicate", "KEY")
    assert not not_kept("x", "--deduplicate", "KEY"), "it was put before"
    run("queue", "create", "KEEPS", "--type", "alias", "--base-queue", "ORDERS", "--default-persistence")
    assert not not_kept("x", to="KEEPS")
    run("queue", "alter", "ORDERS", "--default-persistence")
    assert not_kept("--from-json", given=line)
    run("queue", "alter", "ORDERS", "--nonpersistent-class", "high")
    assert not not_kept("--from-json", given=line)


def test_standard_input_is_one_message_or_one_per_line(run: Command, queue: str, store: Path) -> None:
    run("put", queue, given=b"a\nb\n")
    run("put", queue, "--lines", given=b"a\nb")
    assert bodies_at(store, queue) == [b"a\nb\n", b"a", b"b"]


def test_files_are_put_as_messages_and_a_message_is_got_into_a_file(
    run: Command, queue: str, store: Path, tmp_path: Path
) -> None:
    one, two, got = tmp_path / "1", tmp_path / "2", tmp_path / "got"
    one.write_bytes(BINARY)
    two.write_bytes(b"second")
    assert run("put", queue, "--file", str(one), "--file", str(two)).status == 0
    assert bodies_at(store, queue) == [BINARY, b"second"]
    told = run("get", queue, "--json").out
    assert "body" not in json.loads(told)
    run("put", queue, "--from-json", given=told.encode())
    run("get", queue)
    run("get", queue, "--raw", "--output", str(got))
    assert got.read_bytes() == BINARY
    assert run("get", queue, "--output", str(got)).status == 1
    assert got.read_bytes() == BINARY, "there is no message, and the file keeps its content"
    ended = run("get", queue, "--all", "--output", "none")
    assert (ended.status, ended.out, ended.err) == (0, "", "no message on ORDERS\n")
    assert not (tmp_path / "none").exists()


def test_the_descriptor_can_be_given(run: Command, queue: str, store: Path) -> None:
    with inorder.connect(store):  # a message that is not persistent survives while the store is open
        run(
            "put", queue, "x", "--priority", "3", "--no-persistent", "--expiry", "900", "--message-id", "0a0b",
            "--correlation-id", "ff" * 24, "--reply-to-queue", "BACK", "--body-format", "MQSTR",
        )  # fmt: skip
        told = run("get", queue, "--json").records[0]
    assert (told["priority"], told["persistent"], told["reply_to_queue"], told["format"]) == (3, False, "BACK", "MQSTR")
    assert (told["message_id"], told["correlation_id"]) == ("0a0b", "ff" * 24)
    assert 0 < told["expiry"] <= 900


def test_properties_can_be_given_and_are_shown_with_their_types(run: Command, queue: str) -> None:
    words = "colour=red count:int=9007199254740993 weight:float=1 paid:bool=true key:bytes=00ff note:none=".split()
    run("put", queue, "x", *(part for word in words for part in ("--property", word)))
    assert all(word in run("browse", queue).out for word in [*words[:2], "weight:float=1.0"])
    told = '"properties": {"colour": "red", "count": 9007199254740993, "key": ["00ff"], "note": null, "paid": true, '
    assert f'{told}"weight": 1.0}}' in run("browse", queue, "--json").out
    out = run("get", queue, "--json").out
    assert f'{told}"weight": 1.0}}' in out
    run("put", queue, "--from-json", given=out.encode())
    assert f'{told}"weight": 1.0}}' in run("get", queue, "--json").out
    for word, says in (("1a=x", "2442"), ("n:int=9223372036854775808", "2473"), ("a=1 --property a=2", "given twice")):
        refused = run("put", queue, "x", "--property", *word.split())
        assert (refused.status != 0, says in refused.err) == (True, True), refused.err
    assert run("get", queue).status == 1, "nothing was put"


def test_ids_are_shown_without_padding_and_may_be_given_as_text(run: Command, queue: str) -> None:
    told = run("put", queue, "x", "--correlation-id", "text:order-17", "--json").records[0]
    assert told["correlation_id"] == b"order-17".hex()
    for given in ("text:order-17", b"order-17".hex()):
        assert (
            run("browse", queue, "--correlation-id", given, "--json").records[0]["correlation_id"]
            == told["correlation_id"]
        )
    run("put", queue, "--from-json", given=b'{"body": "y", "message_id": "text:one"}')
    assert run("get", queue, "--message-id", "text:one").out == "y\n"
    assert "--message-id must be 2 to 48 hexadecimal digits" in run("get", queue, "--message-id", "text:").err


def test_an_expiry_of_none_overrides_the_expiry_of_the_queue(run: Command, queue: str) -> None:
    run("queue", "alter", queue, "--expiry", "60")
    run("put", queue, "x", "--expiry", "none")
    assert run("get", queue, "--json").records[0]["expiry"] is None


def test_a_group_is_put_and_got_as_a_whole(run: Command, queue: str, store: Path) -> None:
    run("put", queue, "--lines", "--group", given=b"1\n2\n3\n")
    with inorder.connect(store) as qm:
        flags = [message.flags for message in qm.browse(queue)]
    assert [bool(one & Flags.LAST_IN_GROUP) for one in flags] == [False, False, True]
    assert run("get", queue, "--group").out == "1\n2\n3\n"


@pytest.mark.parametrize("body", ["text", "", "ä€\n\t", "\x1b[31m"])
def test_a_message_got_as_json_can_be_put_again_and_is_the_same(run: Command, queue: str, body: str) -> None:
    run("put", queue, body, "--priority", "4")
    told = run("get", queue, "--json").out
    assert run("put", queue, "--from-json", "--keep-context", given=told.encode()).status == 0
    first, again = json.loads(told), run("get", queue, "--json").records[0]
    assert {name for name in first if first[name] != again[name]} == {"token", "uid", "place"}
    assert first.keys() == {*FIELDS, *FILLED_IN, "body"}


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "line 2: not JSON"),
        ("[]", "line 2: not a JSON object"),
        ("[" * 200_000, "line 2: not JSON"),
        ('{"body": "x", "priorty": 1}', "there is no key 'priorty'; did you mean priority"),
        ('{"body": "x", "qqq": 1}', "there is no key 'qqq'; there are body, body_base64, report,"),
        ('{"priority": 1}', "either body or body_base64"),
        ('{"body_base64": "?"}', "body_base64 is not base64"),
        ('{"body": 1}', "body must be a text"),
        ('{"body": "", "message_id": "xyz"}', "message_id must be at most 48 hexadecimal digits"),
        ('{"body": "", "properties": []}', "properties must be an object"),
        ('{"body": "", "properties": {"a": ["0"]}}', "a list of one text, hexadecimal digits"),
        ('{"body": "", "properties": {"a": {}}}', "property 'a' must be a bool"),
        ('{"body": "", "properties": {"1": 1}}', "the name of a property must be"),
        ('{"body": "", "put_at": "today"}', "put_at must be a time"),
        ('{"body": "", "put_at": "2026-01-31T12:00:00"}', "put_at must say its time zone"),
        ('{"body": "", "priority": -1}', "line 2: priority must be"),
        ('{"body": "", "message_type": 1}', "line 2: a request, or a message that asks for reports, needs reply_to_q"),
    ],
)
def test_a_bad_line_is_named_and_puts_nothing(run: Command, queue: str, store: Path, line: str, complaint: str) -> None:
    ended = run("put", queue, "--from-json", given=f'{{"body": "good"}}\n{line}\n'.encode())
    assert (ended.status, bodies_at(store, queue)) == (2, [])
    assert complaint in ended.err


def test_committed_units_of_work_are_kept_and_the_error_says_so(run: Command, store: Path) -> None:
    run("queue", "create", "SMALL", "--max-depth", "5")
    ended = run("put", "SMALL", "--lines", "--unit-size", "2", given=b"1\n2\n3\n4\n5\n6\n")
    assert (ended.status, bodies_at(store, "SMALL")) == (1, [b"1", b"2", b"3", b"4"])
    assert "4 messages already put on SMALL and kept" in ended.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("put", "ORDERS", "x", "--lines"),
        ("put", "ORDERS", "--keep-context"),
        ("put", "ORDERS", "--group", "--from-json", "--keep-context"),
        ("get", "ORDERS", "--all", "--group"),
        ("get", "ORDERS", "--count", "2", "--all"),
        ("get", "ORDERS", "--raw", "--json"),
        ("get", "ORDERS", "--group", "--order", "logical"),
        ("get", "ORDERS", "--count", "0"),
        ("get", "ORDERS", "--message-id", "0x"),
        ("browse", "ORDERS", "--limit", "99999999999999999999"),
        ("watch", "ORDERS", "--interval", "nan"),
        ("put", "ORDERS", "--file", "no such file"),
        ("get", "ORDERS", "--format", "dmpmqmsg", "--json"),
        ("get", "ORDERS", "--leave-out-properties"),
        ("put", "ORDERS", "--format", "dmpmqmsg", "--lines"),
        ("watch", "ORDERS", "--count", "0"),
    ],
)
def test_conflicting_or_invalid_options_are_refused(
    run: Command, queue: str, store: Path, arguments: tuple[str, ...]
) -> None:
    run("put", queue, "1")
    ended = run(*arguments, given=b"{}")
    assert (ended.status, ended.out, bodies_at(store, queue)) == (2, "", [b"1"])


def test_get_selects_messages_by_field(run: Command, queue: str, store: Path) -> None:
    for body, priority, group in (("a", "1", "01"), ("b", "2", "02"), ("c", "1", "02")):
        run("put", queue, body, "--priority", priority, "--correlation-id", group)
    assert run("get", queue, "--correlation-id", "02", "--count", "5").out == "b\nc\n"
    assert run("get", queue, "--priority", "2").status == 1
    assert bodies_at(store, queue) == [b"a"]


# ---- move and copy


@pytest.mark.parametrize(("command", "left"), [("move", 0), ("copy", 3)])
def test_moved_and_copied_messages_keep_descriptor_and_order_and_cause_no_reports(
    run: Command, queue: str, store: Path, command: str, left: int
) -> None:
    run("queue", "create", "B")
    run("queue", "create", "REPORTS")
    run("put", queue, "--lines", "--group", "--priority", "5", "--expiry", "900", given=b"1\n2\n")
    with inorder.connect(store) as qm:
        qm.put(queue, b"urgent", priority=9, report=Report.COA | Report.COD, reply_to_queue="REPORTS")
        assert qm.get("REPORTS").feedback == Feedback.COA
        before = [message.replace() for message in qm.browse(queue)]
    assert "3 messages from ORDERS to B\n" in run(command, queue, "B", "--count", "3", "--unit-size", "2").out
    with inorder.connect(store) as qm:
        after = list(qm.browse("B"))
        assert (qm.depth(queue), len(after), qm.depth("REPORTS")) == (left, 3, 0)
        assert (qm.get("B").body, qm.get("REPORTS").feedback) == (b"urgent", Feedback.COD)
    same = set(FIELDS) - {"expiry"}
    for one, other in zip(before, after, strict=True):
        assert {name for name in same if getattr(one, name) != getattr(other, name)} == set()
    assert [message.expiry is not None and message.expiry <= 900 for message in after] == [False, True, True]


def test_a_queue_is_not_copied_onto_itself_by_another_name_of_the_store_or_of_the_queue(
    run: Command, queue: str, store: Path, tmp_path: Path
) -> None:
    run("put", queue, "1")
    run("queue", "create", "COPY")
    (tmp_path / "link").symlink_to(tmp_path)
    for other in (str(store), "orders.db", str(tmp_path / "link" / store.name)):
        ended = run("copy", queue, queue, "--to-store", other, "--count", "2")
        assert (ended.status, bodies_at(store, queue)) == (2, [b"1"])
        assert "the same queue" in ended.err
        assert run("copy", queue, "COPY", "--to-store", other).status == 0
    run("queue", "create", "A", "--type", "alias", "--base-queue", queue)
    for command in ("move", "copy"):
        ended = run(command, "A", queue)
        assert (ended.status, "the same queue" in ended.err) == (2, True)


# ---- the end of a command


def started(*arguments: str) -> subprocess.Popen[bytes]:
    """Starts a command that can be interrupted, even if these tests run in a background that cannot."""
    return subprocess.Popen(
        [sys.executable, "-m", "inorder", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - here are no threads
    )


def test_ctrl_c_leaves_nothing_held(run: Command, queue: str, store: Path) -> None:
    waiting = started("get", queue, "--all", "--wait", "forever")
    run("put", queue, "1")
    assert waiting.stdout is not None
    assert waiting.stdout.readline() == b"1\n"
    waiting.send_signal(signal.SIGINT)
    _, told = waiting.communicate(timeout=240)
    last = told.decode().splitlines()[-1]  # on a busy machine it first says that another program had the lock
    assert (waiting.returncode, last) == (130, "interrupted; no messages are held")
    with inorder.connect(store) as qm:
        assert not qm.inspect.units()
        assert qm.inspect.status(queue).open_input_count == 0


BUFFERING = [pytest.param({}, id="buffered", marks=gate), pytest.param({"PYTHONUNBUFFERED": "1"}, id="unbuffered")]


@pytest.mark.parametrize("environment", BUFFERING)
def test_a_broken_pipe_backs_out_the_messages_that_were_not_written_completely(
    run: Command, queue: str, store: Path, environment: dict[str, str]
) -> None:
    """An unbuffered stream writes what the pipe takes, and returns how much: that is not everything."""
    whole = [bytes([65 + number]) * 100_000 for number in range(10)]  # more than a pipe holds
    run("put", queue, "--lines", given=b"\n".join(whole))
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONUNBUFFERED"} | environment
    command = [sys.executable, "-m", "inorder", "get", queue, "--all"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as getting:
        assert getting.stdout is not None
        assert os.read(getting.stdout.fileno(), 1) == b"A"
        getting.stdout.close()
        assert getting.wait(240) == 1
    assert bodies_at(store, queue) == whole, "none of them was written whole: their unit of work must be backed out"


def test_an_output_file_that_cannot_be_written_is_an_error_and_the_message_stays(
    run: Command, queue: str, store: Path
) -> None:
    run("put", queue, "1")
    ended = run("get", queue, "--output", "no folder/file", "--json")
    text = "no folder/file: No such file or directory"
    assert (ended.status, bodies_at(store, queue)) == (3, [b"1"])
    assert json.loads(ended.err) == {"error": text, "class": "FileNotFoundError", "exit_status": 3}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
@pytest.mark.parametrize("environment", BUFFERING)
@pytest.mark.parametrize("arguments", [("get", "ORDERS"), ("queue", "list", "--json")], ids=" ".join)
def test_a_full_output_device_is_an_error_and_the_message_stays(
    run: Command, queue: str, store: Path, arguments: tuple[str, ...], environment: dict[str, str]
) -> None:
    run("put", queue, "1")
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONUNBUFFERED"} | environment
    command = [sys.executable, "-m", "inorder", *arguments]
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=environment)
    assert (ended.returncode, bodies_at(store, queue)) == (3, [b"1"])
    assert "No space left on device" in ended.stderr
    assert told(ended.stderr).count("\n") == 1, ended.stderr


@pytest.mark.parametrize(("suffix", "linked"), [("", False), ("-lock", False), ("-wal", True), ("-journal", True)])
def test_the_files_of_the_store_are_neither_written_nor_read(
    run: Command, queue: str, store: Path, tmp_path: Path, suffix: str, linked: bool
) -> None:
    """Opening and closing one of them would release the locks that this process has on it."""
    name = tmp_path / f"{store.name}{suffix}"
    run("put", queue, "1")
    with inorder.connect(store):  # so that the other files exist
        if linked:
            (tmp_path / "link").symlink_to(name)
            name = tmp_path / "link"
        for refused, ended in (
            ("the store itself", run("get", queue, "--output", str(name))),
            *([("the store itself", run("put", queue, "--file", str(name)))] if name.exists() else []),
            ("must be a file other than those of a store", run("backup", str(name), "--replace")),
        ):
            assert ended.status == 2
            assert refused in ended.err
    assert bodies_at(store, queue) == [b"1"]


def test_a_pipe_is_not_replaced_and_not_written(run: Command, queue: str, store: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    run("put", queue, "1")
    assert run("get", queue, "--output", "pipe").status == 2
    assert run("backup", "pipe", "--replace").status == 2
    assert (tmp_path / "pipe").is_fifo()
    assert bodies_at(store, queue) == [b"1"]


def test_a_user_whose_name_is_not_valid_text_can_put(
    run: Command, queue: str, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "\udcffme")
    assert run("put", queue, "1").status == 0
    with inorder.connect(store) as qm:
        assert [one.user_identifier for one in qm.browse(queue)] == ["?me"]


class Endless(io.RawIOBase):
    """An endless stream of letters that counts the bytes that are read, and fails after too many."""

    def __init__(self, before: bytes = b"") -> None:
        self.given, self._before = 0, before

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        assert self.given < 2**22, "it reads on, however long the message is"
        part = self._before or b"x" * min(len(buffer), 4096)
        self._before = b""
        buffer[: len(part)] = part
        self.given += len(part)
        return len(part)


@pytest.mark.parametrize(
    ("option", "before", "named"), [((), b"", "standard input"), (("--lines",), b"first\n", "standard input, line 2")]
)
def test_a_message_that_is_too_long_is_not_read_to_its_end(
    option: tuple[str, ...], before: bytes, named: str, run: Command, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("queue", "alter", queue, "--max-length", "1000")
    endless = Endless(before)
    monkeypatch.setattr(putting, "standard_input", lambda: io.BufferedReader(endless))
    ended = run("put", queue, *option)
    assert (ended.status, ended.out) == (1, "")
    assert f"{named} has more than 1,000 bytes, the most that {queue} takes" in ended.err
    assert endless.given < 2**16


@pytest.mark.parametrize("option", ["--lines", "--group"])
def test_a_message_may_be_as_long_as_the_queue_takes(option: str, run: Command, queue: str, store: Path) -> None:
    run("queue", "alter", queue, "--max-length", "5")
    run("queue", "create", "A", "--type", "alias", "--base-queue", queue)
    assert run("put", "A", option, given=b"12345" + b"\n" * (option == "--lines")).status == 0
    assert bodies_at(store, queue) == [b"12345"]


def test_a_line_of_json_is_not_read_to_its_end(run: Command, queue: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(putting, "LINE_BYTES_MAX", 1_000)
    monkeypatch.setattr(putting, "standard_input", lambda: io.BufferedReader(Endless()))
    ended = run("put", queue, "--from-json")
    assert (ended.status, "line 1 is longer than 1,000 bytes" in ended.err) == (2, True)


def test_lines_are_put_without_line_ends_and_byte_order_mark(run: Command, queue: str, store: Path) -> None:
    run("queue", "create", "SHORT", "--max-length", "2")
    assert run("put", "SHORT", "--lines", given=b"\xef\xbb\xbfaa\r\nbb\r\n\rc\nd").status == 0
    assert bodies_at(store, "SHORT") == [b"aa", b"bb", b"\rc", b"d"]
    assert run("put", "SHORT", "--lines", given=b"aaa\r\n").status == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        *(('{"body": "1"}\n'.encode(f"utf-16{one}"), "must be in UTF-8, not in UTF-16") for one in ("", "-le", "-be")),
        (b'{"body": "\xff"}\n', "not JSON"),
    ],
)
def test_json_that_is_not_utf_8_is_refused(run: Command, queue: str, given: bytes, said: str) -> None:
    ended = run("put", queue, "--from-json", given=given)
    assert (ended.status, f"line 1: {said}" in ended.err) == (2, True), ended.err


# --- selectors

RED = "colour = 'red'"


@pytest.fixture
def fruit(run: Command, queue: str) -> str:
    for body, colour in (("one", "red"), ("two", "blue"), ("three", "red")):
        assert run("put", queue, body, "--property", f"colour={colour}").status == 0
    assert run("queue", "create", "RED").status == 0
    return queue


def previews(run: Command, queue: str, *given: str) -> list[str]:
    return [one["preview"] for one in run("browse", queue, "--json", *given).records]


def test_browse_copy_move_and_get_take_only_messages_that_match_a_selector(run: Command, fruit: str) -> None:
    assert previews(run, fruit, "--selector", RED) == ["one", "three"]
    assert previews(run, fruit, "--selector", "colour LIKE 'b%'", "--order", "logical") == ["two"]
    assert "matches" in run("browse", fruit, "--selector", "colour = 'green'").err
    assert run("copy", fruit, "RED", "--selector", "colour = 'blue'").out == f"copied 1 message from {fruit} to RED\n"
    assert run("move", fruit, "RED", "--selector", RED).out == f"moved 2 messages from {fruit} to RED\n"
    assert (previews(run, "RED"), previews(run, fruit)) == (["two", "one", "three"], ["two"])
    assert run("get", fruit, "--selector", RED).status == 1
    assert run("get", "RED", "--all", "--selector", RED).out == "one\nthree\n"
    assert previews(run, "RED") == ["two"]


@pytest.mark.parametrize("command", [["browse"], ["move", "RED"]])
def test_an_error_in_a_selector_is_shown_at_its_place(run: Command, fruit: str, command: list[str]) -> None:
    verb, *to = command
    refused = run(verb, fruit, *to, "--selector", "colour = 'red' AND > 3")
    assert refused.status == 2
    lines = refused.err.splitlines()
    shown = next(number for number, line in enumerate(lines) if "colour = 'red' AND > 3" in line)
    assert lines[shown + 1].index("^") == lines[shown].index("> 3")
    assert "2459" in refused.err
    assert len(previews(run, fruit)) == 3


# ---- units of work fit into memory, however long the messages are


LENGTH = 100


@pytest.fixture
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit has room for three messages, which are got one by one."""
    monkeypatch.setattr(parts, "UNIT_BYTES", 3 * LENGTH)
    monkeypatch.setattr(parts, "STEP_MESSAGES", 1)


@pytest.fixture
def long(run: Command, queue: str, little_room: None) -> str:
    run("put", queue, "--lines", given=b"\n".join([b"x" * LENGTH] * 8))
    run("queue", "create", "B")
    return queue


@pytest.mark.usefixtures("little_room")
def test_a_part_ends_at_the_limit_of_bytes_or_of_messages() -> None:
    bodies = [b"x" * LENGTH] * 4 + [b""] * 5 + [b"x" * 9 * LENGTH, b""]
    assert [len(part) for part in parts.parts(bodies, 4)] == [3, 4, 3, 1]
    assert not list(parts.parts([], 4))


def units_of(store: Path, queue: str) -> list[int]:
    """The numbers of messages that units of work have put on a queue in COMMIT order, where each unit has a number."""
    with inorder.connect(store) as qm:
        numbers = [message.place.number for message in qm.browse(queue) if message.place]
    return [numbers.count(number) for number in sorted(set(numbers))]


@pytest.mark.parametrize("command", ["move", "copy"])
def test_a_unit_of_work_has_as_many_messages_as_there_is_room_for(
    run: Command, long: str, store: Path, command: str
) -> None:
    run("queue", "alter", "B", "--order", "commit")
    assert run(command, long, "B", "--count", "7").status == 0
    with inorder.connect(store) as qm:
        assert qm.depth("B") == 7
        assert qm.depth(long) == (1 if command == "move" else 8)
    if command == "move":
        assert units_of(store, "B") == [3, 3, 1]


def test_all_messages_are_got_although_a_unit_of_work_has_room_for_only_some(
    run: Command, long: str, store: Path
) -> None:
    assert len(run("get", long, "--all").out.splitlines()) == 8
    assert run("get", long, "--all", "--wait", "0.01").status == 0
