"""The package itself has short files, pure rules, and an import that costs next to nothing.

The layers of imports are contracts in `pyproject.toml`, for `lint-imports`.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

from inorder import aio
from inorder.cli.app import CommandModules

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
CODE_FOLDERS = ("src/inorder", "inorder_scenarios", "demo", "tests", "tools", "benchmarks", "examples")
ENDINGS = ("*.py", "*.sql", "*.txt", "*.html", "*.css")
LINES_MAX = 600

OF_A_SERVER = frozenset("anyio h11 starlette uvicorn".split())
HEAVY = OF_A_SERVER | set(
    "apsw asyncio click matplotlib msgspec numpy pandas psycopg pyarrow pyspark rich sqlite3 ssl websockets".split()
)
IMPORTED_MAX = 92  # our modules; the number of Python's own differs between releases
IMPORT_PROBE = """
import sys
from importlib import import_module
before = set(sys.modules)
import_module(sys.argv[1])
print(*set(sys.modules) - before)
"""


PURE = [f"stores/seam/{name}.py" for name in "tables queued records bulk_page views surveying looking".split()]


def test_no_file_is_longer_than_can_be_read_at_one_sitting() -> None:
    files = [path for folder in CODE_FOLDERS for ending in ENDINGS for path in (ROOT / folder).rglob(ending)]
    assert files
    lines = {path.relative_to(ROOT): len(path.read_text(encoding="utf-8").splitlines()) for path in files}
    long = {str(path): count for path, count in lines.items() if count > LINES_MAX and "releases" not in path.parts}
    assert not long, f"more than {LINES_MAX} lines; split along the nouns in it"


CLASS = re.compile(r"^[ \t]*class (\w+)", re.MULTILINE)  # to parse all files would take seconds


def test_no_two_classes_have_the_same_name() -> None:
    """Only `inorder.aio` repeats public names of the client, so that a program changes only its import."""
    texts = [(path.read_text(encoding="utf-8"), path.parent.name) for path in (SOURCE / "inorder").rglob("*.py")]
    found = [(name, part) for text, part in texts for name in CLASS.findall(text)]
    assert found
    times = Counter(name for name, part in found if part != "aio" or name not in aio.__all__)
    assert [name for name in times if times[name] > 1] == []


def test_rules_and_the_records_of_stores_open_and_print_nothing() -> None:
    """`lint-imports` also prevents them from importing modules that do."""
    files = [*(SOURCE / "inorder/rules").glob("*.py"), *(SOURCE / "inorder" / path for path in PURE)]
    for file in files:
        calls = (node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.Call))
        called = {call.func.id for call in calls if isinstance(call.func, ast.Name)}
        assert not called & {"open", "input", "print"}, file


def test_import_inorder_is_light() -> None:
    """Its cost is its imports: no heavy module, and not many modules."""
    loaded = modules_of_import()
    heavy = HEAVY & loaded
    assert not heavy, (
        f"`import inorder` loads {sorted(heavy)}: `python -X importtime -c 'import inorder'` says why. "
        "Leave it to the one file that needs it, and that file out of inorder/__init__.py."
    )
    python = sys.stdlib_module_names | {"_missing_stdlib_info"}  # which 3.15 has, but does not list
    ours = {name for name in loaded if name.partition(".")[0] not in python}
    assert len(ours) <= IMPORTED_MAX, (
        f"`import inorder` loads {len(ours)} modules besides Python's, allowed are {IMPORTED_MAX}: "
        "`python -X importtime -c 'import inorder'` shows which."
    )


@pytest.mark.parametrize(
    "name", "inorder.cli inorder.cli.app inorder.testing inorder.formats inorder.mq.mqsc inorder.spark.jobs".split()
)
def test_no_entry_point_loads_the_runner_of_scenarios_a_server_or_matplotlib(name: str) -> None:
    """Only the command of release 0.1.0 loads the runner, and only a running audit loads matplotlib."""
    if name == "inorder.spark.jobs" and not find_spec("pyspark"):
        pytest.skip("needs the extra inorder[spark]")
    loaded = modules_of_import(name)
    assert name in loaded
    assert not OF_A_SERVER & loaded
    assert "inorder_scenarios" not in loaded, f"`import {name}` loads the runner: leave it to cli/moved.py."
    assert "matplotlib" not in loaded, f"`import {name}` loads matplotlib: leave it to spark/jobs/charts.py."


def test_the_root_command_loads_no_module_of_its_subcommands_but_login() -> None:
    """It loads `login` for a type of option that the root also takes."""
    modules = {f"inorder.cli.{place.split('.')[0]}" for place in CommandModules.places.values()}
    assert len(modules) > 20
    assert modules & modules_of_import("inorder.cli.app") == {"inorder.cli.login"}


@pytest.mark.parametrize("name", ["mqi", "upkeep"])
def test_importing_a_command_loads_no_headers_and_no_command_server_of_the_mqi(name: str) -> None:
    loaded = modules_of_import(f"inorder.cli.{name}")
    assert {name for name in loaded if name.startswith(("inorder.mqi.pcf", "inorder.mqi.c_headers"))} == set()


def modules_of_import(name: str = "inorder") -> frozenset[str]:
    """The modules that a fresh interpreter loads when it imports this one."""
    done = subprocess.run([sys.executable, "-c", IMPORT_PROBE, name], check=True, capture_output=True, text=True)
    return frozenset(done.stdout.split())
