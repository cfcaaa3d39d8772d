"""The server of the tests: it starts, stops as told, follows and is promoted; and nothing is left of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from benchmarks.servers import ServerError
from tests.postgresql.server import ROOT, Server
from tests.support import until

STARTS = """
import time
from tests.postgresql.server import Server
server = Server()
print(server.folder, server.url(), flush=True)
time.sleep(600)
"""


def test_nothing_is_left_of_a_server_whose_process_is_killed(quick_disk: None) -> None:
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


@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_what_is_committed_outlives_a_stop(own_server: Server, how: str) -> None:
    own_server.sql("CREATE TABLE t (n int)")
    with psycopg.connect(own_server.url()) as connection:
        connection.execute("INSERT INTO t VALUES (1)")
        connection.commit()
        connection.execute("INSERT INTO t VALUES (2)")
        own_server.restart("fast" if how == "fast" else "immediate")
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    assert own_server.sql("SELECT n FROM t") == "1"


def test_backends_are_terminated(own_server: Server) -> None:
    with psycopg.connect(own_server.url()) as victim, psycopg.connect(own_server.url()) as other:
        assert own_server.terminate_backends(f"pid = {victim.info.backend_pid}") == 1
        with pytest.raises(psycopg.OperationalError):
            victim.execute("SELECT 1")
        assert other.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("synchronous", [False, True])
def test_a_standby_follows_and_is_promoted(own_server: Server, synchronous: bool) -> None:
    own_server.sql("CREATE TABLE t (n int)")
    with own_server.make_standby(synchronous=synchronous) as standby:
        own_server.sql("INSERT INTO t VALUES (1)")
        until(lambda: standby.sql("SELECT n FROM t") == "1", "the row is there")
        with pytest.raises(ServerError, match="read-only"):
            standby.sql("INSERT INTO t VALUES (2)")
        own_server.stop("immediate")
        standby.promote()
        standby.sql("INSERT INTO t VALUES (2)")
        assert standby.sql("SELECT n FROM t ORDER BY n") == "1\n2"


def test_a_server_that_cannot_start_shows_its_log(own_server: Server) -> None:
    own_server.stop()
    (own_server.folder / "data/postgresql.conf").write_text("no_such_setting = 1\n")
    with pytest.raises(ServerError, match="no_such_setting"):
        own_server.start()


def test_nothing_is_left_of_a_server(quick_disk: None, own_server: Server) -> None:
    with Server(work_mem="2MB") as server:
        assert server.sql("SHOW work_mem") == "2MB"
    assert not server.folder.exists()
