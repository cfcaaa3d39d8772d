"""Ctrl-C while the command starts, at any import: status 130, and no traceback.

A process sends itself the signal at the import with a chosen number, counted from the first module of `inorder`: the
earlier imports are those of the interpreter.
"""

from __future__ import annotations

import importlib
import os
import re
import signal
import subprocess
import sys
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.pages import unmeasured
from tests.tiers import gate, nightly

import inorder_command

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
MOMENTS = 40
COUNTING = """
import os, signal, sys
count, at, first = 0, int(sys.argv[1]), sys.argv[2]

def hook(event, arguments):
    global count
    if event == "import" and (count or arguments[0].startswith(first)):
        count += 1
        if count == at:
            os.kill(os.getpid(), signal.SIGINT)

sys.argv[:] = ["inorder", *sys.argv[3:]]
sys.addaudithook(hook)
"""
AS_SCRIPT = """
from {module} import {function}
try:
    sys.exit({function}())
finally:
    print(count, file=sys.stderr) if not at else None
"""


def moments(count: int) -> list[Any]:
    """The numbers below a count; the gate tries every sixteenth."""
    return [pytest.param(nth, marks=nightly if nth % 16 else gate) for nth in range(count)]


def entry_point() -> tuple[str, str]:
    """The module and function of the console script."""
    found = re.search(r'^inorder = "([\w.]+):(\w+)"$', PYPROJECT.read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None, "pyproject.toml names no console script inorder"
    return found[1], found[2]


def starts(at: int, *arguments: str, interrupt: signal.Handlers = signal.SIG_DFL) -> tuple[int, str]:
    """Interrupts a command at an import; 0: at none, and it prints their number. Returns status and standard error."""
    module, function = entry_point()
    text = COUNTING + AS_SCRIPT.format(module=module, function=function)
    ended = subprocess.run(
        [sys.executable, "-c", text, str(at), "inorder.", *arguments],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=partial(signal.signal, signal.SIGINT, interrupt),
    )
    return ended.returncode, ended.stderr


@cache
def imports(*arguments: str) -> int:
    """The number of imports of a command."""
    status, told = starts(0, *arguments)
    assert status == 0, told
    return int(told.splitlines()[-1])


@pytest.fixture
def listing(tmp_path: Path) -> tuple[str, ...]:
    """A command that imports everything that a command on a store needs."""
    path = str(tmp_path / "orders.db")
    assert importlib.import_module("inorder.cli").main(["queue", "create", "ORDERS", "--store", path]) == 0
    return "queue", "list", "--store", path


@pytest.mark.parametrize("nth", moments(MOMENTS))
def test_an_interrupt_amid_the_imports_ends_the_command(listing: tuple[str, ...], nth: int) -> None:
    at = 1 + nth * (imports(*listing[:2], "--help") - 1) // (MOMENTS - 1)
    status, told = starts(at, *listing)
    assert (status, told) in ((130, ""), (130, "\ninterrupted; no messages are held\n")), f"at import {at}"


@gate
def test_an_interrupt_that_a_shell_has_ignored_stays_ignored(listing: tuple[str, ...]) -> None:
    assert starts(1, *listing, interrupt=signal.SIG_IGN) == (0, "")


def test_the_module_that_starts_the_command_imports_only_light_modules() -> None:
    """Its own imports are made before Ctrl-C is handled."""
    text = "import sys; before = set(sys.modules); import inorder_command; print(*sorted(set(sys.modules) - before))"
    bare = [sys.executable, "-c", text]
    environment = os.environ | {"PYTHONPATH": str(Path(inorder_command.__file__).parents[1])}
    found = subprocess.run(bare, capture_output=True, text=True, check=True, env=environment).stdout.split()
    known = {*"itertools warnings signal enum types functools collections operator keyword reprlib importlib".split()}
    strange = {name for name in found if not name.startswith("_") and name.partition(".")[0] not in known}
    assert strange == {"inorder_command"}


def test_a_put_in_a_script_loads_only_what_it_needs(store: Path, queue: str) -> None:
    """Tables and progress on a terminal need rich; a folder of files needs processes."""
    words = ["-m", "inorder", "put", queue, "1", "--store", str(store)]
    timed = [sys.executable, "-X", "importtime", *words]
    done = subprocess.run(timed, capture_output=True, text=True, check=True, env=unmeasured())
    assert done.stdout.startswith("put ")
    loaded = set(re.findall(r"\| +(\w+)", done.stderr))
    assert "click" in loaded
    assert not loaded & {"rich", "multiprocessing"}


def test_a_second_interrupt_does_not_bring_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("inorder.cli.main", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # the caller of the tests may have ignored it
    try:
        assert inorder_command.main() == 130
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
