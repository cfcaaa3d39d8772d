"""`inorder mqi`: programs written for IBM MQ. Rules: M-4 to M-7 of *mqi*."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Command
from tests.mqi.pcf.asking import request

import inorder
from inorder.mq.words import COMMAND_QUEUE
from inorder.mqi import building


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "compiler", lambda: None)


PROGRAM = """
import ctypes, os, sys
name = b"QM1".ljust(48)
hconn, completion, reason = (ctypes.c_int32() for _ in range(3))
given = ctypes.byref(hconn), ctypes.byref(completion), ctypes.byref(reason)
ctypes.CDLL("libmqm_r.so").MQCONN(name, *given)
with open("told", "w") as told:
    print(completion.value, sys.argv[1:], file=told)
sys.exit(7)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A Python program that connects, writes its arguments to the file `told`, and ends with status 7."""
    path = tmp_path / "app.py"
    path.write_text(PROGRAM)
    return path


def test_a_store_for_mq_has_the_defaults_of_mq(run: Command) -> None:
    assert run("create", "mq.db", "--name", "QM1", "--for", "mq").status == 0
    run("mqsc", "--store", "mq.db", given=b"DEFINE QLOCAL(A)\nDEFINE QMODEL(M)\n")
    with inorder.connect("mq.db") as qm:
        for name in ("A", "M"):
            attributes = qm.attributes(name)
            assert (attributes.max_depth, attributes.max_length) == (5_000, 4_194_304)
            assert (attributes.default_persistence, attributes.nonpersistent_class) == (False, "high")
        assert qm.attributes("SYSTEM.ADMIN.COMMAND.QUEUE").max_depth == 3_000


@pytest.mark.parametrize("before", [[], [sys.executable]])
def test_run_gives_a_program_its_arguments_the_library_and_the_store(
    run: Command, program: Path, before: list[str]
) -> None:
    run("create", "mq.db", "--for", "mq")
    ended = run("mqi", "run", "--store", "mq.db", *before, str(program), "--store", "of the program")
    assert (ended.status, Path("told").read_text()) == (7, "0 ['--store', 'of the program']\n")


def test_run_exits_with_the_status_of_a_program_killed_by_a_signal(run: Command) -> None:
    assert run("mqi", "run", "sh", "-c", "kill -TERM $$").status == 128 + 15


@pytest.mark.usefixtures("no_compiler")
def test_without_a_compiler_python_programs_run_with_the_substitutes(run: Command, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("import sys\nassert 'ibmmq.ibmmqc' in sys.modules\nsys.exit(7)\n")
    assert run("mqi", "run", "app.py").status == 7
    for words in ("run -- sh -c true", "env", "build", "install lib", "cflags"):
        ended = run("mqi", *words.split())
        assert (ended.status, "no C compiler was found: install one" in ended.err) == (3, True), ended.err


def test_the_output_of_env_prepares_a_shell(run: Command, program: Path) -> None:
    run("create", "mq.db", "--for", "mq")
    told = run("mqi", "env", "--store", "mq.db").out
    command = f"{told}\n{shlex.quote(sys.executable)} {shlex.quote(str(program))}"
    assert subprocess.run(["sh", "-c", command], check=False).returncode == 7
    assert Path("told").read_text() == "0 []\n"


def test_install_copies_the_library_and_replaces_none_of_another_origin(run: Command, tmp_path: Path) -> None:
    for _ in range(2):
        assert run("mqi", "install", "lib").status == 0
    assert {path.name for path in (tmp_path / "lib").iterdir()} == {*building.LIBRARIES, building.PYTHON_FILE}
    (tmp_path / "lib/libmqic_r.so").write_bytes(b"\x7fELF of another origin")
    (tmp_path / "lib/libmqm_r.so").unlink()
    ended = run("mqi", "install", "lib")
    assert (ended.status, "lib/libmqic_r.so is not a library of inorder" in ended.err) == (3, True)
    assert not (tmp_path / "lib/libmqm_r.so").exists()


def test_cflags_suffice_for_a_program_in_c(run: Command, tmp_path: Path) -> None:
    run("create", "mq.db", "--for", "mq")
    (tmp_path / "app.c").write_text(
        '#include <cmqc.h>\nint main(void) { MQHCONN h; MQLONG cc, rc; MQCONN("QM1", &h, &cc, &rc); return rc; }\n'
    )
    flags = shlex.split(run("mqi", "cflags").out)
    subprocess.run([building.compiler() or "cc", "app.c", *flags, "-o", "app"], check=True)
    assert subprocess.run(["./app"], env={"INORDER_STORE": "mq.db"}, check=False).returncode == 0


def test_a_note_says_that_libpython_is_missing(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "libpython", lambda: None)
    ended = run("mqi", "build")
    assert (ended.status, "has no shared library libpython" in ended.err) == (0, True)


def test_serve_commands_answers_the_requests_that_wait(run: Command, tmp_path: Path) -> None:
    run("create", "mq.db", "--for", "mq")
    with inorder.connect(tmp_path / "mq.db") as qm:
        qm.create_queue("REPLIES")
        body = request("CREATE_Q", {"MQCA_Q_NAME": "NEW", "MQIA_Q_TYPE": 1})
        qm.put(COMMAND_QUEUE, body, format="MQADMIN", message_type=1, reply_to_queue="REPLIES")
        ended = run("mqi", "serve-commands", "--until-empty", "--json", "--store", "mq.db")
        assert (ended.status, json.loads(ended.out)) == (0, {"requests": 1})
        assert (qm.attributes("NEW").max_depth, qm.depth("REPLIES"), qm.depth(COMMAND_QUEUE)) == (5_000, 1, 0)


@pytest.mark.gate
def test_serve_commands_answers_until_a_signal_and_needs_the_queue(run: Command, tmp_path: Path) -> None:
    run("create", "mq.db", "--for", "mq")
    run("create", "other.db")
    assert run("mqi", "serve-commands", "--store", "other.db").status == 2
    command = [sys.executable, "-m", "inorder", "mqi", "serve-commands", "--store", "mq.db"]
    with inorder.connect(tmp_path / "mq.db") as qm, subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        qm.create_queue("REPLIES")
        body = request("PING_Q_MGR", {})
        qm.put(COMMAND_QUEUE, body, format="MQADMIN", message_type=1, reply_to_queue="REPLIES")
        qm.get("REPLIES", wait=600)
        server.send_signal(signal.SIGTERM)
        assert server.stdout is not None
        assert (server.stdout.read(), server.wait()) == (b"answered 1 request\n", 0)
