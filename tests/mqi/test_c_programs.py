"""Programs in C: the library starts Python inside them. Rules: M-2, M-3, M-9 of *mqi*."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.mqi.conftest import PROGRAMS, Compile

from inorder.mqi import building, c_headers
from inorder.mqi.layouts import Charv, layout, names
from inorder.testing.mq import MqTest

WAYS = PROGRAMS / "ways.c"

pytestmark = pytest.mark.skipif(building.libpython() is None, reason="this Python has no shared library")


def ended(program: Path, way: str, status: int = 0) -> list[str]:
    """Runs the program. Returns the lines that it printed."""
    done = subprocess.run([program, way], capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    return done.stdout.splitlines()


def test_a_program_puts_and_gets(compiled: Compile, mq: MqTest) -> None:
    assert ended(compiled(WAYS), "plain") == [
        "MQCONN 0 MQRC_NONE",
        "MQPUT 0 MQRC_NONE",
        "MQGET 0 MQRC_NONE",
        "5 hello",
        "MQGET 2 MQRC_NO_MSG_AVAILABLE",
        "MQCLOSE 0 MQRC_NONE",
        "MQPUT 2 MQRC_HOBJ_ERROR",
        "MQDISC 0 MQRC_NONE",
        "-1",
    ]


def test_a_program_reads_a_group_up_to_the_message_whose_status_is_last(compiled: Compile, mq: MqTest) -> None:
    assert ended(compiled(PROGRAMS / "groups.c"), "DEV.QUEUE.1") == ["one 1 0", "two 1 1", "% TMC "]


def test_signals_and_locale_of_the_program_are_unchanged(compiled: Compile, mq: MqTest) -> None:
    assert ended(compiled(WAYS), "process")[-1] == "SIGINT kept, locale C"


def test_four_threads_put_with_separate_connections(compiled: Compile, mq: MqTest) -> None:
    ended(compiled(WAYS), "threads")
    assert mq.qm.inspect.status("DEV.QUEUE.1").current_depth == 100


@pytest.mark.parametrize(("way", "status"), [("exit", 0), ("abort", -signal.SIGABRT)])
def test_an_end_without_mqdisc_backs_out_while_another_thread_waits(
    compiled: Compile, mq: MqTest, way: str, status: int
) -> None:
    assert ended(compiled(WAYS), way, status)[-1] == "MQPUT 0 MQRC_NONE"
    assert list(mq.qm.browse("DEV.QUEUE.1")) == []
    assert mq.qm.inspect.status("DEV.QUEUE.1").uncommitted == 0


def test_a_child_gets_2009_for_the_handle_of_its_parent_and_can_connect_itself(compiled: Compile, mq: MqTest) -> None:
    found = ended(compiled(WAYS), "fork")[1:]
    assert found == ["MQPUT 2 MQRC_CONNECTION_BROKEN", "MQCONN 0 MQRC_NONE", "MQPUT 0 MQRC_NONE", "MQCMIT 0 MQRC_NONE"]
    left = {(bytes(message.body), message.put_application_name) for message in mq.qm.browse("DEV.QUEUE.1")}
    assert left == {(b"of the parent", "ways"), (b"of the child", "ways")}


def test_ctrl_c_ends_a_program_that_waits(compiled: Compile, mq: MqTest) -> None:
    with subprocess.Popen(
        [compiled(WAYS), "wait"],
        stdout=subprocess.PIPE,
        text=True,
        # the process that runs the tests may ignore SIGINT
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - this process has no threads
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "MQCONN 0 MQRC_NONE\n"
        program.send_signal(signal.SIGINT)
        assert program.wait() == -signal.SIGINT


@pytest.mark.parametrize("lines", ["", "/no/libpython.so\n/bin/true\n\n", "{python}\n/no/python\n\n"])
def test_a_program_gets_2059_if_python_cannot_start(compiled: Compile, mq: MqTest, tmp_path: Path, lines: str) -> None:
    for name in building.LIBRARIES:
        shutil.copy(building.build() / name, tmp_path)
    if lines:
        (tmp_path / building.PYTHON_FILE).write_text(lines.format(python=building.libpython()))
    done = subprocess.run(
        [compiled(WAYS), "plain"],
        env=os.environ | {"LD_PRELOAD": str(tmp_path / "libmqm_r.so")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (3, "MQCONN 2 MQRC_Q_MGR_NOT_AVAILABLE\n")
    assert done.stderr.startswith("inorder: no queue manager can be reached, because")


def test_sizes_and_offsets_of_the_headers_are_those_of_the_layouts(compiled: Compile, tmp_path: Path) -> None:
    lines = ["#include <cmqc.h>", "#include <cmqxc.h>", "#include <stddef.h>", "#include <stdio.h>", "int main(void) {"]
    for name in names():
        lines += [f'printf("%zu\\n", offsetof(MQ{name}, {each.name}));' for each in layout(name).members]
        lines.append(f'printf("%zu\\n", sizeof(MQ{name}));')
        initial = "MQCD_CLIENT_CONN_DEFAULT" if name == "CD" else f"MQ{name}_DEFAULT"
        lines.append(f"{{ MQ{name} one = {{{initial}}}; fwrite(&one, sizeof one, 1, stderr); }}")
    source = tmp_path / "sizes.c"
    source.write_text("\n".join([*lines, "return 0; }"]))
    done = subprocess.run([compiled(source)], capture_output=True, check=True)
    printed, at = map(int, done.stdout.split()), 0
    for name in names():
        of = layout(name)
        offsets = [next(printed) for _ in of.members]
        size = next(printed)
        assert size == of.size()
        new = of.new(c_headers.CD_VERSION if name == "CD" else of.oldest)
        if name == "XQH":
            new[-layout("MD").size(1) :] = layout("MD").new(1)
        assert of.read(done.stderr[at:]) == of.read(new)
        at += size
        for each, begin, end in zip(of.members, offsets, [*offsets[1:], size], strict=True):
            if each.name not in {"StrucId", "Version"}:
                pairs = zip(of.new(), of.new(**{each.name: another(each.code)}), strict=True)
                changed = {place for place, (one, other) in enumerate(pairs) if one != other}
                assert changed <= set(range(begin, end)), f"{name}.{each.name}"


def another(code: str) -> Any:
    """A value of this type that differs from every default."""
    if code == "V":
        return Charv(1, 1, 1, 1, 1)
    return b"~" * int(code[:-1]) if code[-1] in "bcs" else 77


@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
def test_each_header_compiles_alone_as_cplusplus(tmp_path: Path) -> None:
    c_headers.write(tmp_path)
    for header in c_headers.headers():
        (tmp_path / "one.cc").write_text(f"#include <{header}>\nint main() {{ return 0; }}\n")
        command = [building.compiler() or "cc", "-Wall", "-Werror", "-x", "c++", "-fsyntax-only", f"-I{tmp_path}"]
        subprocess.run([*command, str(tmp_path / "one.cc")], check=True)
