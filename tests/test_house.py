"""The house itself: files that can be read at one sitting, and an import that costs next to nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
CODE_FOLDERS = ("src/inorder", "tests", "tools", "benchmarks")
LINES_MAX = 600

HEAVY = frozenset({"numpy", "pandas", "pyarrow", "pyspark", "matplotlib", "sqlite3", "asyncio"})
IMPORT_SECONDS_MAX = 0.15
IMPORT_PROBE = """
import sys, time
start = time.process_time()
import inorder
print(time.process_time() - start, *sys.modules)
"""


def files_of(folder: str) -> list[Path]:
    return [path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts]


def lines_in(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_no_file_is_longer_than_can_be_read_at_one_sitting() -> None:
    lengths = {path.relative_to(ROOT): lines_in(path) for folder in CODE_FOLDERS for path in files_of(folder)}
    assert lengths
    long = [f"{path}: {lines} lines" for path, lines in lengths.items() if lines > LINES_MAX]
    assert not long, f"more than {LINES_MAX} lines; split along the nouns in it:\n" + "\n".join(long)


def test_import_inorder_is_light() -> None:
    """The only timed assertion of the suite: the fastest of five, without the interpreter's own start."""
    probes = [probe_import() for _ in range(5)]
    loaded = HEAVY.intersection(*(modules for _, modules in probes))
    assert not loaded, (
        f"`import inorder` loads {sorted(loaded)}: `python -X importtime -c 'import inorder'` says why. "
        "Leave it to the one file that needs it, and that file out of inorder/__init__.py."
    )
    seconds = min(seconds for seconds, _ in probes)
    assert seconds < IMPORT_SECONDS_MAX, (
        f"`import inorder` takes {seconds:.3f} s, allowed are {IMPORT_SECONDS_MAX} s: "
        "`python -X importtime -c 'import inorder'` shows where they go."
    )


def probe_import() -> tuple[float, frozenset[str]]:
    """A fresh interpreter imports the package: how long that took, and all that is loaded then."""
    done = subprocess.run([sys.executable, "-c", IMPORT_PROBE], check=True, capture_output=True, text=True)
    seconds, *modules = done.stdout.split()
    return float(seconds), frozenset(modules)
