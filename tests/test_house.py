"""The house itself: files to be read at one sitting that say what is in them, an import that costs next to nothing."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CODE_FOLDERS = ("src/inorder", "tests", "tools", "benchmarks", "examples")
LINES_MAX = 600
NO_TOPICS = frozenset({"from", "misc", "more", "new", "rest", "various"})

HEAVY = frozenset({"apsw", "numpy", "pandas", "psycopg", "pyarrow", "pyspark", "matplotlib", "sqlite3", "asyncio"})
IMPORTED_MAX = 205  # in Python 3.11
IMPORT_PROBE = """
import sys
from importlib import import_module
before = set(sys.modules)
import_module(sys.argv[1])
print(*set(sys.modules) - before)
"""


def files_of(folder: str) -> list[Path]:
    """What people write there: not what Python compiles, nor the stores of releases, which a tool keeps."""
    files = (path for path in (ROOT / folder).rglob("*") if path.is_file())
    return [path for path in files if not {"__pycache__", "releases"} & set(path.parts)]


def lines_in(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_no_file_is_longer_than_can_be_read_at_one_sitting() -> None:
    lengths = {path.relative_to(ROOT): lines_in(path) for folder in CODE_FOLDERS for path in files_of(folder)}
    assert lengths
    long = [f"{path}: {lines} lines" for path, lines in lengths.items() if lines > LINES_MAX]
    assert not long, f"more than {LINES_MAX} lines; split along the nouns in it:\n" + "\n".join(long)


def test_files_of_tests_say_their_topic() -> None:
    names = {path.relative_to(ROOT): path.stem.split("_") for path in files_of("tests")}
    vague = [str(path) for path, words in names.items() if NO_TOPICS & set(words)]
    assert not vague, f"named after where the cases came from, not what they are about: {vague}"


def test_import_inorder_is_light() -> None:
    """What it costs is what it loads: no heavy module, and not many."""
    loaded = modules_of_import()
    heavy = HEAVY & loaded
    assert not heavy, (
        f"`import inorder` loads {sorted(heavy)}: `python -X importtime -c 'import inorder'` says why. "
        "Leave it to the one file that needs it, and that file out of inorder/__init__.py."
    )
    assert len(loaded) <= IMPORTED_MAX, (
        f"`import inorder` loads {len(loaded)} modules, allowed are {IMPORTED_MAX}: "
        "`python -X importtime -c 'import inorder'` shows which."
    )


@pytest.mark.parametrize(
    "name",
    [
        "inorder",
        "inorder.cli",
        "inorder.testing",
        "inorder.formats",
        "inorder.mqsc",
        "inorder.integrations",
        "inorder.spark.jobs",
    ],
)
def test_no_door_loads_the_demonstrations_or_draws(name: str) -> None:
    """Those are loaded by the command that shows them, and matplotlib by an audit that runs."""
    if name == "inorder.spark.jobs" and not find_spec("pyspark"):
        pytest.skip("needs the extra inorder[spark]")
    loaded = modules_of_import(name)
    assert name in loaded
    demonstrations = sorted(module for module in loaded if module.startswith("inorder.demo"))
    assert not demonstrations, (
        f"`import {name}` loads {demonstrations}: import them in the function of cli/showing.py that runs them."
    )
    assert "matplotlib" not in loaded, f"`import {name}` loads matplotlib: leave it to spark/jobs/charts.py."


def modules_of_import(name: str = "inorder") -> frozenset[str]:
    """What a fresh interpreter has loaded once it has imported a module, and had not before."""
    done = subprocess.run([sys.executable, "-c", IMPORT_PROBE, name], check=True, capture_output=True, text=True)
    return frozenset(done.stdout.split())
