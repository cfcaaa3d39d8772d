"""The pages about Spark: their examples run as a reader types them, and their lists are complete."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql.types import StructField
from tests.helpers.pages import PAGES, ROOT, blocks, commands, name_of, needs_spark, run_page

from inorder.cli.pipeline import pipeline
from inorder.spark import spark_schema
from inorder.spark.options import OPTIONS

GUIDE = ROOT / "docs/reference/spark.md"
JOBS = ROOT / "docs/reference/spark/jobs.md"
PARTS = [GUIDE, ROOT / "docs/reference/spark/reading.md", ROOT / "docs/reference/spark/writing.md", JOBS]  # one program
WITH_PROGRAMS = [
    [page]
    for page in PAGES
    if any(of == "python" and "inorder.spark" in text for of, text in blocks(page)) and page not in PARTS
]
WITH_COMMANDS = [page for page in PAGES if needs_spark(page) and page not in PARTS and [page] not in WITH_PROGRAMS]
SECONDS_MAX = 600
RUN = """
import re, sys
from pyspark.sql import SparkSession

settings = {"spark.sql.session.timeZone": "UTC", "spark.driver.memory": "1g"}
SparkSession.builder.master("local[2]").config(map=settings).getOrCreate().sparkContext.setLogLevel("ERROR")
program = {}
for name in sys.argv[1:]:
    page = open(name, encoding="utf-8").read()
    for number, example in enumerate(re.findall(r"^```python\\n(.*?)^```", page, re.M | re.S), 1):
        exec(compile(example, f"<{name}, example {number}>", "exec"), program)
"""


@pytest.mark.spark
@pytest.mark.timeout(SECONDS_MAX)
@pytest.mark.parametrize("pages", [PARTS, *WITH_PROGRAMS], ids=lambda pages: name_of(pages[0]))
def test_the_examples_run_one_after_the_other(pages: list[Path], tmp_path: Path) -> None:
    """In a process of their own, since Spark's JVM works in the folder in which it started."""
    ran = subprocess.run(
        [sys.executable, "-c", RUN, *map(str, pages)],
        cwd=tmp_path,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-5000:]


@pytest.mark.spark
@pytest.mark.parametrize("page", WITH_COMMANDS, ids=name_of)
def test_the_commands_of_a_page_print_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(page, tmp_path, spark=True)


def table(page: Path, *, below: str) -> dict[str, list[str]]:
    """The rows of a heading's table whose first cell is a name in code: name, other cells."""
    text = page.read_text(encoding="utf-8").partition(f"\n## {below}\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:3] == "| `"]
    return {row[0].strip("`"): row[1:] for row in rows}


def test_the_options_are_all_in_the_guide_with_what_they_are_for() -> None:
    uses = {
        "all": ("batch read", "stream read", "batch write", "stream write"),
        "reads": ("batch read", "stream read"),
        "writes": ("batch write", "stream write"),
        "streams": ("stream read",),
        "batch reads": ("batch read",),
        "batch writes": ("batch write",),
    }
    told = {name: uses[cells[0]] for name, cells in table(GUIDE, below="Options").items()}
    assert told == {option.name: option.uses for option in OPTIONS}


def test_the_columns_are_all_in_the_guide_with_their_types() -> None:
    def shown(field: StructField) -> tuple[str, str]:
        return field.name, field.dataType.simpleString()

    told = [(name, cells[0].strip("`")) for name, cells in table(GUIDE, below="Columns").items()]
    assert told == [shown(field) for field in spark_schema()]


def test_the_commands_of_the_pipeline_are_all_in_the_guide() -> None:
    given = {arguments[1] for arguments in commands(JOBS) if arguments[0] == "pipeline"}
    assert given == set(pipeline.commands)
