"""The programs in `examples/` print the text of their page, and those for groups survive a kill at every step."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.helpers import stepping
from tests.helpers.support import bodies

import inorder
from inorder.stores.engine.points import POINTS

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PAGE = (EXAMPLES / "README.md").read_text(encoding="utf-8")
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
SECTIONS = {section.partition("\n")[0]: "".join(CONSOLE.findall(section)) for section in PAGE.split("\n## ")[1:]}
LIMIT_SECONDS = 240
LONG = "INORDER_LONG" in os.environ

PUTTER, CHEAPER, GETTER = (EXAMPLES / f"group_{name}.py" for name in ("putter", "putter_cheaper", "getter"))
STATUS = {PUTTER: "PUTTER.STATUS", CHEAPER: "CHEAPER.STATUS", GETTER: "GETTER.STATUS"}
ITEMS = "flour sugar butter eggs milk salt yeast".split()
LINES = [item.encode() for item in ITEMS]
DONE = [b"done: " + line for line in LINES]


# --- output


def environment(**more: str) -> dict[str, str]:
    """The user's environment, with this project in the path, and without buffers that a kill would lose."""
    path = [str(ROOT / more.pop("PYTHONPATH", "")), str(ROOT / "src")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path), "PYTHONUNBUFFERED": "1", **more}


def typed(command: str, folder: Path) -> str:
    """The output in a shell for a command: VARIABLE=VALUE python FILE ARGUMENT..."""
    words = shlex.split(command)
    python = words.index("python")
    variables = dict(word.split("=", 1) for word in words[:python])
    done = subprocess.run(
        [sys.executable, *words[python + 1 :]],
        cwd=folder,
        env=environment(**variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=LIMIT_SECONDS,
    )
    assert done.returncode == (-signal.SIGKILL if variables else 0), f"{command}\n{done.stdout}"
    return done.stdout + ("Killed\n" if variables else "")


@pytest.mark.parametrize("section", SECTIONS)
def test_the_page_shows_what_a_user_sees(section: str, tmp_path: Path) -> None:
    """Each section runs in a folder of its own, command after command."""
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    shown = SECTIONS[section]
    commands = [line for line in shown.splitlines() if line.startswith("$ ")]
    seen = "".join(f"{line}\n{typed(line[2:], tmp_path)}" for line in commands)
    assert seen == shown, f"examples/README.md, section {section!r}: paste\n{seen}"


def test_every_program_is_on_the_page_and_run_from_it() -> None:
    programs = {path.name for path in EXAMPLES.glob("*.py")}
    run = set(re.findall(r"^\$ .*python examples/(\S+)", PAGE, re.MULTILINE))
    listed = set(re.findall(r"^\| \[(\S+)\]\(\1\)", PAGE, re.MULTILINE))
    assert programs == run == listed
    assert programs
    for program in programs:
        text = (EXAMPLES / program).read_text(encoding="utf-8").split('"""')[1]
        assert f"\n    python examples/{program}" in text, "it says how to run it"
        assert "\nShown: seed 00" in text


# --- kills of the programs for groups


@contextlib.contextmanager
def store() -> Iterator[Path]:
    """The path for the store of a new queue manager."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "orders.db"


def prepare(path: Path, program: Path) -> None:
    """Puts the input of the program's first start: a document, or a whole group."""
    with inorder.connect(path) as qm:
        qm.create_queue("DOCUMENTS")
        qm.create_queue("LINES")
        if program == GETTER:
            with qm.group("LINES") as group:
                for line in LINES:
                    group.put(line)
        else:
            qm.put("DOCUMENTS", b"\n".join(LINES))


def check_done(path: Path, program: Path) -> None:
    """Checks that the group is whole, in order and there once, and that no document and no status is left."""
    with inorder.connect(path) as qm:
        assert qm.depth(STATUS[program]) == 0
        assert qm.depth("DOCUMENTS") == 0
        if program == GETTER:
            assert bodies(qm, "DONE") == DONE
        else:
            group = list(qm.get_group("LINES"))
            assert [message.body for message in group] == LINES
            assert [message.sequence_number for message in group] == list(range(1, len(LINES) + 1))
            assert len({message.group_id for message in group}) == 1
        assert qm.depth("LINES") == 0


class Rehearsal(NamedTuple):
    """The steps of a program that is not killed, and its prepared store."""

    program: Path
    prepared: Path
    steps: Sequence[str]

    def again(self, path: Path) -> None:
        """Copies the store as it was before the program's first start."""
        shutil.copy(self.prepared, path)


@pytest.fixture(scope="module")
def rehearsals() -> Iterator[Mapping[Path, Rehearsal]]:
    """Runs each program once without a kill, to record its steps."""
    with tempfile.TemporaryDirectory() as folder:
        rehearsals = {}
        for program in STATUS:
            prepared = Path(folder) / f"{program.stem}.db"
            with store() as path:
                prepare(path, program)
                with inorder.connect(path) as qm:
                    qm.admin.backup(prepared)
            with store() as path:
                shutil.copy(prepared, path)
                life = stepping.run(program, str(path))
                assert not life.killed
                check_done(path, program)
            rehearsals[program] = Rehearsal(program, prepared, life.steps)
        yield rehearsals


def chosen(steps: Sequence[str]) -> list[int]:
    """The steps to kill at: every call, and every sixth of the points inside calls; in the long run all."""
    return [n for n, name in enumerate(steps, 1) if LONG or name not in POINTS or n % 6 == 0]


@pytest.mark.nightly
@pytest.mark.parametrize("program", STATUS, ids=lambda path: path.stem)
def test_a_program_killed_at_any_step_does_its_work_exactly_once_after_a_restart(
    program: Path, rehearsals: Mapping[Path, Rehearsal]
) -> None:
    rehearsal = rehearsals[program]
    for step in chosen(rehearsal.steps):
        with store() as path:
            rehearsal.again(path)
            assert stepping.run(program, str(path), kill_at=step).killed
            again = stepping.run(program, str(path))
            try:
                check_done(path, program)
            except AssertionError as wrong:
                raise AssertionError(f"killed at step {step}, {rehearsal.steps[step - 1]}: {again.told}") from wrong


@pytest.mark.parametrize("program", [CHEAPER, GETTER], ids=lambda path: path.stem)
def test_a_program_opens_its_status_queue_exclusively(program: Path) -> None:
    with store() as path, inorder.connect(path) as qm:
        qm.create_queue(STATUS[program])
        with qm.open(STATUS[program], input="shared"):
            done = subprocess.run(
                [sys.executable, program, path],
                env=environment(),
                capture_output=True,
                text=True,
                check=False,
                timeout=LIMIT_SECONDS,
            )
    assert done.returncode == 1
    assert "ObjectInUse" in done.stderr.splitlines()[-1]
