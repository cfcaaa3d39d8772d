"""The programs of `make console`: they are at work, and leave Ctrl-C to the server."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tools.console import sample

ROOT = Path(__file__).parents[1]


def test_ctrl_c_at_the_terminal_is_not_for_the_programs(tmp_path: Path) -> None:
    """The terminal sends it to all processes in front. They would end with tracebacks, behind the server's own end."""
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
