"""Strict mypy finds no error in the examples of the pages."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.helpers.pages import FILE, PAGES, ROOT, blocks, name_of, needs_spark

ONE_PROGRAM = [ROOT / f"docs/reference/{name}.md" for name in ("spark", "spark/reading", "spark/writing", "spark/jobs")]
IMPORTED = re.compile(r"^from (\w+) import", re.MULTILINE)
SECONDS_MAX = 600
BROKEN = 'import inorder\n\nwith inorder.connect() as qm:\n    qm.put("Q", "a text")\n    qm.get("Q").no_field\n'

pytestmark = pytest.mark.nightly


def programs() -> dict[str, str]:
    """The python blocks of all pages, by module name; the blocks of a page about Spark are one program.

    A block for a file has the name of the file if another block of its page imports it.
    """
    found: dict[str, str] = {}
    for page in [*ONE_PROGRAM, *(page for page in PAGES if page not in ONE_PROGRAM)]:
        stem = re.sub(r"\W", "_", name_of(page).removesuffix(".md"))
        texts = [text for language, text in blocks(page) if language == "python"]
        if page in ONE_PROGRAM:
            found["docs_reference_spark"] = found.get("docs_reference_spark", "") + "".join(texts)
        elif needs_spark(page):
            found[stem] = "".join(texts)
        else:
            imported = {name for text in texts for name in IMPORTED.findall(text)}
            for number, text in enumerate(texts, 1):
                file = FILE.match(text)
                name = file[1].removesuffix(".py") if file else ""
                found[name if name in imported else f"{stem}_{number}"] = text
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in programs().items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    return tmp_path


def mypy(folder: Path) -> tuple[int, str]:
    settings = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(folder / ".cache")]
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", *settings, *map(str, sorted(folder.glob("*.py")))],
        cwd=folder,
        env=os.environ | {"MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    return ran.returncode, ran.stdout + ran.stderr


def test_the_examples_are_typed(folder: Path) -> None:
    assert len(programs()) > 60
    status, told = mypy(folder)
    assert status == 0, f"give the examples of the pages types that fit:\n{told}"


def test_the_check_finds_a_wrong_type_and_an_unknown_name(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(BROKEN)
    status, told = mypy(tmp_path)
    assert status == 1
    assert "no_field" in told
    assert "put" in told
