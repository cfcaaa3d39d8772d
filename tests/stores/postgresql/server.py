"""PostgreSQL's server for tests: a cluster in its own folder, on a free port of the loopback.

A process that starts a server holds a lock on its folder. A separate process, the keeper, waits until no process holds
it, then stops the server at once and removes the folder. The kernel releases the locks of a process that is killed, so
no server is left running, however the tests end.

`benchmarks/servers.py` finds the programs, and runs them as the user postgres if we are root.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import pwd
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal

from benchmarks.servers import LOOPBACK, PostgreSQL, ServerError

ROOT = Path(__file__).parents[3]
PROGRAMS = PostgreSQL()
LIMIT_SECONDS = 240
PORTS = range(20_000, 32_000)  # below the ports that the kernel gives to connections
LOG_LINES = 30

SETTINGS: Final[dict[str, object]] = {
    "listen_addresses": LOOPBACK, "fsync": "on", "max_connections": 200, "shared_buffers": "32MB",
    "min_wal_size": "32MB", "max_wal_size": "256MB", "log_min_messages": "warning",
}  # fmt: skip
# Texts sort as in a dictionary, unlike Python's: statements that need another order must say so.
INITDB = (
    *("--username", "postgres", "--auth", "trust", "--encoding", "UTF8", "--locale", "C.UTF-8"),
    *("--locale-provider", "icu", "--icu-locale", "en", "--no-sync", "--no-instructions"),
)

Stop = Literal["fast", "immediate"]


def missing() -> str | None:
    """The reason why tests cannot have a server on this machine; None: they can."""
    if PROGRAMS.program() is None:
        return "nothing runs on PostgreSQL: its server is not here (apt install postgresql)"
    if not find_spec("psycopg"):
        return "nothing runs on PostgreSQL: its client is not here (pip install './inorder[postgresql]')"
    return None


class Server:
    """A running server with nothing in it, until it is closed or its process ends.

    Args:
        standby_of: the primary that it follows; it is read only until it is promoted.
        settings: of its configuration, besides `SETTINGS`.
    """

    def __init__(self, standby_of: Server | None = None, **settings: object) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="inorder-postgresql-"))
        self.port = own_port()
        if user := PROGRAMS.run_as():
            shutil.chown(self.folder, user)
        self._hold = os.open(self.folder, os.O_RDONLY)
        fcntl.flock(self._hold, fcntl.LOCK_SH)
        self._keeper = subprocess.Popen(
            [sys.executable, "-m", "tests.stores.postgresql.server", str(self.folder)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C does not reach it
        )
        self.settings: dict[str, object] = settings if standby_of is None else standby_of.settings | settings
        self._settings = SETTINGS | {"port": self.port, "unix_socket_directories": self.folder} | self.settings
        if standby_of is None:
            self._run("initdb", "--pgdata", "data", *INITDB)
        else:
            source = ("--dbname", f"{standby_of.url()}?application_name={self.name}")
            slot = ("--create-slot", "--slot", self.name)
            self._run("pg_basebackup", *source, *slot, "--pgdata", "data", "-R", "--checkpoint", "fast", "--no-sync")
        self.start()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def name(self) -> str:
        """The name under which the primary knows this standby."""
        return f"port_{self.port}"

    def url(self, database: str = "postgres", user: str = "postgres") -> str:
        return f"postgresql://{user}@{LOOPBACK}:{self.port}/{database}"

    def url_of(self, primary: Server) -> str:
        """The URL for libpq of this server and its primary: it connects to the one that takes writes."""
        hosts = f"{LOOPBACK}:{primary.port},{LOOPBACK}:{self.port}"
        return f"postgresql://postgres@{hosts}/postgres?target_session_attrs=read-write"

    def start(self) -> None:
        """Starts it, and returns when it answers.

        Raises: ServerError, with the end of its log.
        """
        options = " ".join(f"-c {shlex.quote(f'{name}={value}')}" for name, value in self._settings.items())
        self._run("pg_ctl", "start", "--pgdata", "data", "--log", "server.log", "--options", options)

    def stop(self, how: Stop = "fast") -> None:
        """Stops it: "fast" in order, "immediate" as if the machine failed, though everything it wrote stays."""
        self._run("pg_ctl", "stop", "--pgdata", "data", "--mode", how)

    def crash(self) -> None:
        """Stops it at once, and sooner than `pg_ctl` would: data that it has not written yet is lost."""
        note = self.folder / "data/postmaster.pid"
        os.kill(int(note.read_text().split()[0]), signal.SIGQUIT)
        deadline = time.monotonic() + LIMIT_SECONDS
        while note.exists():
            if time.monotonic() > deadline:
                raise ServerError(f"it does not stop; its log:\n{self.log()}")
            time.sleep(0.005)

    def restart(self, how: Stop = "fast") -> None:
        self.stop(how)
        self.start()

    def configure(self, name: str, value: str) -> None:
        """Changes a setting of the running server; all of its processes have it when this returns."""
        self.sql(f"ALTER SYSTEM SET {name} = '{value}'")
        self.sql("SELECT pg_reload_conf()")
        deadline = time.monotonic() + LIMIT_SECONDS
        while self.sql(f"SHOW {name}") != value:  # new connections have it, the other processes are notified
            if time.monotonic() > deadline:
                raise ServerError(f"it does not take {name}; its log:\n{self.log()}")
        for _ in range(2):  # by the second one, the checkpointer, on which commits depend, has read the setting
            self.sql("CHECKPOINT")

    def sql(self, text: str, database: str = "postgres") -> str:
        """Executes statements as superuser. Returns a line for each row, with | between its columns."""
        return self._run("psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-c", text, self.url(database)).strip()

    def dump(self, schema: str) -> str:
        return self._run("pg_dump", "--schema", schema, self.url())

    def terminate_backends(self, where: str = "true") -> int:
        """Ends the connections of clients that match a condition on pg_stat_activity. Returns their number."""
        chosen = (
            f"FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND ({where})"
        )
        told = self.sql(f"SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) {chosen}")
        return int(told.splitlines()[-1])  # after warnings about connections that have ended meanwhile

    def make_standby(self, *, synchronous: bool = False) -> Server:
        """A server that follows this one, by streaming replication through a slot; the caller must close it.

        Args:
            synchronous: from now on, a commit here is acknowledged when the standby has it on disk.
        """
        standby = Server(standby_of=self)
        if synchronous:
            self.configure("synchronous_standby_names", standby.name)
        state = "sync" if synchronous else "async"
        following = f"application_name = '{standby.name}' AND state = 'streaming' AND sync_state = '{state}'"
        deadline = time.monotonic() + LIMIT_SECONDS
        while self.sql(f"SELECT count(*) FROM pg_stat_replication WHERE {following}") != "1":
            if time.monotonic() > deadline:
                raise ServerError(f"the standby does not follow; its log:\n{standby.log()}")
            time.sleep(0.02)
        return standby

    def promote(self) -> None:
        self._run("pg_ctl", "promote", "--pgdata", "data")

    def log(self) -> str:
        """The end of the server's log, oldest line first."""
        file = self.folder / "server.log"
        lines = file.read_text(errors="replace").splitlines() if file.exists() else []
        return "\n".join(lines[-LOG_LINES:])

    def close(self) -> None:
        """Releases the folder, and returns when the server is gone."""
        os.close(self._hold)
        self._keeper.wait(LIMIT_SECONDS)

    def _run(self, program: str, *arguments: str) -> str:
        try:
            return _run(self.folder, program, *arguments)
        except ServerError as error:
            raise ServerError(f"{error}\nThe end of the server's log:\n{self.log()}") from None


@contextlib.contextmanager
def administrating(url: str, *, autocommit: bool = True) -> Iterator[Any]:
    """An administrator's session, in the schema of a store if the URL names one."""
    import psycopg

    from inorder.stores.postgresql import parse

    with psycopg.connect(url.partition("?")[0], autocommit=autocommit) as connection:
        connection.execute(f"SET search_path TO {parse(url).schema}, pg_catalog")
        yield connection


def sessions(url: str, program: str, what: str = "pid", where: str = "true") -> int:
    """The number of connections that our programs of a name have on a server; `what` is evaluated for each."""
    asked = f"SELECT {what} FROM pg_stat_activity WHERE application_name LIKE %s AND ({where})"
    with administrating(url) as connection:
        return len(connection.execute(asked, (f"inorder %: {program}",)).fetchall())


def end_session(url: str, program: str) -> None:
    """Makes the server end the one connection of a program; returns when it is gone."""
    from tests.helpers.support import until

    assert sessions(url, program, "pg_terminate_backend(pid)") == 1
    until(lambda: not sessions(url, program), "the server has ended the session")


def port_of(url: str) -> int:
    return int(url.partition(f"{LOOPBACK}:")[2].partition("/")[0])


def waits_for_a_lock(url: str, program: str) -> bool:
    return bool(sessions(url, program, where="wait_event_type = 'Lock'"))


@functools.cache
def _ports() -> int:
    """The file in which each process locks the bytes with the numbers of its ports; the same for every TMPDIR."""
    return os.open(f"/tmp/inorder-ports-{os.getuid()}", os.O_RDWR | os.O_CREAT, 0o600)


_taken = set[int]()


def own_port() -> int:
    """A free port that only this process uses until it ends, even while nothing listens there."""
    for port in PORTS:
        with contextlib.suppress(OSError):
            if port not in _taken:
                fcntl.lockf(_ports(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
                _taken.add(port)
                socket.create_server((LOOPBACK, port)).close()
                return port
    raise ServerError("no port is free")


def _run(folder: Path, program: str, *arguments: str) -> str:
    user, identity = PROGRAMS.run_as(), dict[str, Any]()
    if user is not None:
        identity = {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}
    done = subprocess.run(
        [str(Path(str(PROGRAMS.program())).resolve().with_name(program)), *arguments],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if not name.startswith("PG")},  # libpq reads them
        **identity,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    if done.returncode:
        raise ServerError(f"{program} {' '.join(arguments)} failed:\n{done.stdout}")
    answer: str = done.stdout
    return answer


def _keep(folder: Path) -> None:
    """Waits until no process holds the folder, then ends its server and removes it."""
    fcntl.flock(os.open(folder, os.O_RDONLY), fcntl.LOCK_EX)
    if (folder / "data/postmaster.pid").exists():
        _run(folder, "pg_ctl", "stop", "--pgdata", "data", "--mode", "immediate")
    shutil.rmtree(folder)


@functools.cache
def of_this_process() -> Server:
    """The server that the tests of this process share; it ends with the process, after all exit handlers."""
    return Server()


if __name__ == "__main__":
    _keep(Path(sys.argv[1]))
