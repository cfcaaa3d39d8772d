"""The environment of a run: machine, kernel, file system, versions, and the cost of one sync."""

from __future__ import annotations

import os
import platform
import sqlite3
import statistics
import subprocess
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

SYNCS = 200
KIBIBYTE = 1024


def facts(folder: Path) -> dict[str, str]:
    """Returns the facts by name; `folder` is the folder of the run."""
    return {
        "processor": f"{_field('/proc/cpuinfo', 'model name') or platform.machine()}, {os.cpu_count()} cores",
        "memory": f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.1f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "system": platform.freedesktop_os_release().get("PRETTY_NAME", ""),
        "file system": file_system(folder),
        "sync": f"{sync_seconds(folder) * 1e6:.0f} us: median fdatasync after an append of 1 KiB",
        "load before": " ".join(f"{load:.1f}" for load in os.getloadavg()),
        "Python": platform.python_version(),
        "SQLite": f"{sqlite3.sqlite_version} in Python, APSW {version('apsw')} with its own",
        "inorder": f"{version('inorder')}, {_revision()}",
    }


def _field(path: str, name: str) -> str:
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return next((value.strip() for key, _, value in (line.partition(":") for line in lines) if key.strip() == name), "")


def file_system(folder: Path) -> str:
    """Returns the type, device and options of the mount that has the folder."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()]
    inside = [mount for mount in mounts if folder.resolve().is_relative_to(mount[1])]
    unknown = ["an unknown device", "/", "an unknown file system", "in a changed root"]
    device, place, kind, options, *_ = max(inside, key=lambda mount: len(mount[1]), default=unknown)
    return f"{kind} on {device} at {place} ({options})"


def sync_seconds(folder: Path) -> float:
    """Measures one fdatasync after an append, as in writing a log."""
    block, taken = bytes(KIBIBYTE), []
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        for _ in range(SYNCS):
            file.write(block)
            start = time.perf_counter()
            os.fdatasync(file.fileno())
            taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def _revision() -> str:
    git = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    done = subprocess.run(git, check=False, capture_output=True, text=True)
    return f"revision {done.stdout.strip()}" if done.returncode == 0 else "revision unknown"
