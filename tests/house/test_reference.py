"""The generated pages of the reference agree with the program, and every public name has an entry."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
from tools.reference import PAGES, ROOT
from tools.reference.errors import COMES_AS, classes, raised, used
from tools.reference.remedies import REMEDIES

from inorder import errors

API = ROOT / "docs/reference/api"
PUBLIC = (
    "inorder",
    "inorder.aio",
    "inorder.client.bulk",
    "inorder.client.inspection",
    "inorder.errors",
    "inorder.testing",
    "inorder.formats",
    "inorder.mq.mqsc",
    "inorder.spark",
    "inorder.spark.jobs",
)
ENTRY = re.compile(r"^\.\. (?:auto\w+|py:data):: (\w+)$", re.MULTILINE)
MODULE = re.compile(r"^\.\. currentmodule:: ([\w.]+)$", re.MULTILINE)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_generated_page_is_up_to_date(path: Path) -> None:
    made = PAGES[path]()
    assert path.read_text(encoding="utf-8") == made, f"{path.name} is stale: make reference"


def test_every_used_reason_is_documented_with_its_error_or_as_a_warning() -> None:
    told = {*COMES_AS, *raised()}
    assert not used() - told, "say in COMES_AS, tools/reference/errors.py, with which error, or as a warning"


def test_every_error_has_a_remedy() -> None:
    names = [kind.__name__ for kind in classes()[1:]]
    assert sorted(REMEDIES) == sorted(names), "say in tools/reference/remedies.py what to do about a new error"


def test_no_page_of_a_command_is_left_over() -> None:
    assert {*(ROOT / "docs/reference/command").iterdir()} <= PAGES.keys(), "make reference"


def entries() -> dict[str, set[str]]:
    """The names with an entry in the API's pages, by module."""
    found: dict[str, set[str]] = {}
    for page in API.glob("*.md"):
        parts = MODULE.split(page.read_text(encoding="utf-8"))
        for module, text in zip(parts[1::2], parts[2::2], strict=True):
            found.setdefault(module, set()).update(ENTRY.findall(text))
    return found


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_has_its_entry(module: str) -> None:
    if module.startswith("inorder.spark"):
        pytest.importorskip("pyspark", reason="needs the extra inorder[spark]")
    elsewhere = set(errors.__all__) if module == "inorder" else set()
    missing = set(importlib.import_module(module).__all__) - entries()[module] - elsewhere
    assert not missing, f"add .. auto...:: directives for {sorted(missing)} to a page of docs/reference/api"
