"""Measures the resources of a process, and the files of a store; and finds growth."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.children import memory_mb

# A leak grows with each call. But the allocator has ups and downs; the thread that watches for waits, the
# connection for checkpoints and the log's descriptor are made when first needed; SQLite maps more for a longer log.
ALLOWED_MORE = {"memory_mb": 8.0, "descriptors": 4, "threads": 1, "shared": 2}
LOG_MB_MAX = 64.0  # a log that had to grow for a long reader shrinks to this

SHARED = ("-shm", "-lock")


class Usage(NamedTuple):
    """The resources of a process at one moment; `shared`: its mappings of memory that a store's processes share."""

    memory_mb: float
    descriptors: int
    threads: int
    shared: int


class Files(NamedTuple):
    """The lengths of the files of a store, in MB (10^6 bytes)."""

    store_mb: float
    log_mb: float
    shared_mb: float


def usage() -> Usage:
    """The resources of this process now."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    return Usage(
        memory_mb("VmRSS"),
        len(os.listdir("/proc/self/fd")),  # noqa: PTH208 - names alone
        len(os.listdir("/proc/self/task")),  # noqa: PTH208 - names alone
        sum(line.endswith(SHARED) for line in maps),
    )


def files_of(store: Path) -> Files:
    """The files of this store now; a missing file has no length."""

    def length_mb(*suffixes: str) -> float:
        paths = [Path(f"{store}{suffix}") for suffix in suffixes]
        return sum(path.stat().st_size for path in paths if path.exists()) / 1e6

    return Files(length_mb(""), length_mb("-wal"), length_mb(*SHARED))


def grown(who: str, samples: Sequence[Usage]) -> list[str]:
    """The growth of a process: compares the second half of its samples with the peak of the first."""
    half = len(samples) // 2
    before, after = peak(samples[:half]), peak(samples[half:])
    return [
        f"{who}: {name} grew from {getattr(before, name):g} to {getattr(after, name):g}"
        for name, more in ALLOWED_MORE.items()
        if getattr(after, name) > getattr(before, name) + more
    ]


def peak(samples: Iterable[Usage]) -> Usage:
    """The maximum of each value."""
    return Usage(*map(max, zip(*samples, strict=True)))


def figures_of(name: str, samples: Sequence[Usage]) -> dict[str, float]:
    """The peaks of the first half and of the second, as figures."""
    half = len(samples) // 2
    before, after = peak(samples[:half]), peak(samples[half:])
    return {
        f"{name}: {what.replace('_mb', ' MB')}, {when}": getattr(found, what)
        for what in Usage._fields
        for when, found in (("first half", before), ("second half", after))
    }
