"""The peers' servers: installed from Debian's packages if missing, started on the loopback, stopped again.

    python -m benchmarks.servers                starts all, prints their addresses, and waits for Ctrl-C
    python -m benchmarks.servers nats rabbitmq  starts some

The data of a server is in the folder that the benchmark measures, so that all write to the same disk. Existing
installations and the servers that they run on their usual ports are not changed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from tools.ending import ended_by_signals

START_SECONDS = 60
STOP_SECONDS = 30
LOOPBACK = "127.0.0.1"


def free_port() -> int:
    """Returns a free port of the loopback."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


class Server(ABC):
    """One server: its package, the command that runs it in the foreground, the signal that ends it at once."""

    key: ClassVar[str]
    system: ClassVar[str]
    package: ClassVar[str]
    user: ClassVar[str | None] = None
    end: ClassVar[signal.Signals] = signal.SIGKILL  # its data is deleted

    @abstractmethod
    def program(self) -> str | None:
        """The path of the server's program; None: not installed."""

    @abstractmethod
    def command(self, folder: Path, port: int) -> list[str]:
        """Returns the command that runs it in the foreground, on this port of the loopback only."""

    def environment(self, folder: Path, port: int) -> dict[str, str]:
        return {}

    def prepare(self, folder: Path) -> None:  # noqa: B027  # most need nothing
        """Prepares the folder for the command."""

    def finish(self) -> None:  # noqa: B027  # most leave nothing running
        """Ends processes that the program left running."""

    def is_ready(self, port: int) -> bool:
        """Whether it answers."""
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex((LOOPBACK, port)) == 0

    def run_as(self) -> str | None:
        """The user to run as: root starts a server that refuses root as the user that the server names."""
        return self.user if self.user is not None and os.geteuid() == 0 else None


class Redis(Server):
    """Redis with its log of commands, synced before each answer."""

    key, system, package = "redis", "Redis Streams", "redis-server"

    def program(self) -> str | None:
        return shutil.which("redis-server")

    def command(self, folder: Path, port: int) -> list[str]:
        return [
            *(str(self.program()), "--bind", LOOPBACK, "--port", str(port), "--dir", str(folder)),
            *("--appendonly", "yes", "--appendfsync", "always", "--save", ""),
        ]


class PostgreSQL(Server):
    """PostgreSQL with its default settings, which sync each commit; the command repeats them."""

    key, system, package = "postgresql", "PostgreSQL", "postgresql"
    user = "postgres"
    end = signal.SIGQUIT  # also ends its children, which are in sessions of their own

    def program(self) -> str | None:
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
        return str(found[-1]) if found else shutil.which("postgres")

    def prepare(self, folder: Path) -> None:
        initdb = Path(str(self.program())).with_name("initdb")
        arguments = ["--pgdata", str(folder / "data"), "--username", "postgres", "--auth", "trust", "--no-instructions"]
        with (folder / "initdb.log").open("wb") as log:
            subprocess.run(
                [str(initdb), *arguments], check=True, user=self.run_as(), cwd=folder, stdout=log, stderr=log
            )

    def command(self, folder: Path, port: int) -> list[str]:
        settings = {
            "listen_addresses": LOOPBACK,
            "port": port,
            "unix_socket_directories": "",
            "fsync": "on",
            "synchronous_commit": "on",
            "full_page_writes": "on",
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return [str(self.program()), "-D", str(folder / "data"), *options]

    def is_ready(self, port: int) -> bool:
        """Whether it accepts connections, according to pg_isready: it listens before that."""
        probe = Path(str(self.program())).with_name("pg_isready")
        return (
            subprocess.run([str(probe), "--quiet", "--host", LOOPBACK, "--port", str(port)], check=False).returncode
            == 0
        )


class Nats(Server):
    """NATS with JetStream, set to sync each message."""

    key, system, package = "nats", "NATS JetStream", "nats-server"

    def program(self) -> str | None:
        return shutil.which("nats-server")

    def prepare(self, folder: Path) -> None:
        version = subprocess.run([str(self.program()), "--version"], check=True, capture_output=True, text=True).stdout
        major, minor, *_ = version.rpartition("v")[2].split(".")
        sync = ", sync_interval: always" if (int(major), int(minor)) >= (2, 10) else ""  # earlier ones refuse it
        (folder / "nats.conf").write_text(f'jetstream {{ store_dir: "{folder}/data"{sync} }}\n')

    def command(self, folder: Path, port: int) -> list[str]:
        return [str(self.program()), "--addr", LOOPBACK, "--port", str(port), "--config", str(folder / "nats.conf")]


class RabbitMQ(Server):
    """RabbitMQ, whose durable queues and confirms the client must ask for."""

    key, system, package = "rabbitmq", "RabbitMQ", "rabbitmq-server"

    def __init__(self) -> None:
        self._names_port = free_port()  # of the daemon that Erlang starts with it

    def program(self) -> str | None:
        found = sorted(Path("/usr/lib/rabbitmq/lib").glob("rabbitmq_server-*/sbin/rabbitmq-server"))
        return str(found[-1]) if found else None

    def command(self, folder: Path, port: int) -> list[str]:
        return [str(self.program())]

    def environment(self, folder: Path, port: int) -> dict[str, str]:
        return {
            "HOME": str(folder),
            "RABBITMQ_NODENAME": f"bench{port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": LOOPBACK,
            "RABBITMQ_NODE_PORT": str(port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "ERL_EPMD_ADDRESS": LOOPBACK,
            "ERL_EPMD_PORT": str(self._names_port),
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        }

    def finish(self) -> None:
        subprocess.run(["epmd", "-port", str(self._names_port), "-kill"], check=False, stdout=subprocess.DEVNULL)


SERVERS: dict[str, Server] = {server.key: server for server in (Redis(), PostgreSQL(), Nats(), RabbitMQ())}


class ServerError(Exception):
    """A server could not be installed or started; the message says what to do."""


@contextlib.contextmanager
def running(keys: Sequence[str], folder: Path) -> Iterator[dict[str, int]]:
    """Runs servers while the block lasts, with their data in `folder`. Yields their ports, by name of the system."""
    with contextlib.ExitStack() as stack:
        yield {SERVERS[key].system: stack.enter_context(_running(SERVERS[key], folder / key)) for key in keys}


@contextlib.contextmanager
def _running(server: Server, folder: Path) -> Iterator[int]:
    install(server)
    folder.mkdir()
    user = server.run_as()
    if user is not None:
        shutil.chown(folder, user)
    server.prepare(folder)
    port = free_port()
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            server.command(folder, port),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=os.environ | server.environment(folder, port),
            user=user,
            start_new_session=True,  # Ctrl-C goes only to us; we then stop the server with its children
        )
    try:
        _await(server, process, port, folder / "server.log")
        yield port
    finally:
        _stop(process, server.end)
        server.finish()


def _await(server: Server, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not server.is_ready(port):
        if process.poll() is not None or time.monotonic() > deadline:
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-10:])
            raise ServerError(f"{server.package} did not start. The end of its log:\n{tail}")
        time.sleep(0.05)


def _stop(process: subprocess.Popen[bytes], end: signal.Signals) -> None:
    if process.poll() is None:
        os.killpg(process.pid, end)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def install(server: Server) -> None:
    """Installs a server from Debian's packages, if it is missing. Raises: ServerError, if it needs root."""
    if server.program() is not None:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise ServerError(f"{server.package} is missing: sudo apt install {server.package}, or leave {server.key} out")
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}  # 1: install, do not start
    for command in (["update"], ["install", "--yes", "--no-install-recommends", server.package]):
        done = subprocess.run(["apt-get", "--quiet", *command], env=quiet, check=False, capture_output=True, text=True)
        if done.returncode:
            raise ServerError(f"apt-get {' '.join(command)} failed:\n{done.stderr}")


def temporary_folder(parent: Path) -> Path:
    """Makes a folder that servers with their own users can enter."""
    folder = Path(tempfile.mkdtemp(prefix="inorder-bench-", dir=parent))
    folder.chmod(0o755)
    return folder


def main() -> int:
    """Runs the chosen servers until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.servers", description="Runs servers until Ctrl-C.")
    parser.add_argument("servers", nargs="*", default=list(SERVERS), help=f"some of {', '.join(SERVERS)}")
    parser.add_argument("--parent", type=Path, default=Path("/var/tmp"), help="where their folder is made")
    arguments = parser.parse_args()
    folder = temporary_folder(arguments.parent)
    try:
        with ended_by_signals(), running(arguments.servers, folder) as ports:
            print(*(f"{system}: {LOOPBACK}:{port}" for system, port in ports.items()), sep="\n", flush=True)
            with contextlib.suppress(KeyboardInterrupt):
                signal.pause()
    finally:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
