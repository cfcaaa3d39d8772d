"""The server of the tests: nothing is left of it, whatever becomes of the process that has started it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psycopg
from tests.helpers.support import until
from tests.stores.postgresql.server import ROOT

STARTS = """
import time
from tests.stores.postgresql.server import Server
server = Server()
print(server.folder, server.url(), flush=True)
time.sleep(600)
"""


def test_nothing_is_left_of_a_server_whose_process_is_killed(postgresql: str) -> None:
    with subprocess.Popen([sys.executable, "-c", STARTS], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        noted, url = process.stdout.readline().split()
        folder = Path(noted)
        pid = int((folder / "data/postmaster.pid").read_text().splitlines()[0])
        with psycopg.connect(url) as connection:
            assert connection.execute("SHOW fsync").fetchone() == ("on",)
            process.kill()
    until(lambda: not folder.exists(), "its folder is gone")
    until(lambda: not runs(pid), "it is gone")


def runs(pid: int) -> bool:
    """Whether a process lives: one that nobody has asked for its status does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
