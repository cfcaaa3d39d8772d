"""The programs of `make console` keep running, and leave Ctrl-C to the server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.tiers import nightly
from tools.console import sample

ROOT = Path(__file__).parents[2]


def test_the_programs_ignore_ctrl_c_at_the_terminal(tmp_path: Path) -> None:
    """The terminal sends it to all foreground processes. These would print tracebacks after the server's last lines."""
    store = tmp_path / "shop.db"
    sample.make(store)
    pipe = subprocess.PIPE
    words = [sys.executable, "-m", "tools.console.programs", str(store)]
    with subprocess.Popen(words, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as programs:
        assert programs.stdout is not None
        assert programs.stdout.readline() == "ready\n"
        programs.send_signal(signal.SIGINT)
        _, told = programs.communicate(timeout=240)
    assert (programs.returncode, told) == (0, "")


@nightly
def test_a_sigterm_ends_all_processes_that_the_console_has_started(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys; from tools.console import __main__ as console; "
        f"console.FOLDER = pathlib.Path({str(tmp_path / 'console')!r}); sys.argv[1:] = []; console.main()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as tool:
        assert tool.stdout is not None
        while "http://" not in tool.stdout.readline():
            assert tool.poll() is None
        tool.terminate()
        try:
            tool.communicate(timeout=240)  # it ends when all processes with its standard output have ended
        except subprocess.TimeoutExpired:
            os.killpg(tool.pid, signal.SIGKILL)
            raise
    assert tool.returncode == 128 + signal.SIGTERM
