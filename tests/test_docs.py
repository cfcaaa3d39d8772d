"""The documents: their examples run, their links lead somewhere, their lists are whole."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import inorder
from inorder import InorderError, errors

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    page
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md")]
    if not page.is_relative_to(ROOT / "docs/spec")
)
NEEDS_SPARK = "inorder.spark"  # tests/spark/test_pages.py runs pages with such examples, all of them
EXAMPLES = {
    page: re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    for page in PAGES
    if page != ROOT / "docs/reference/spark.md"
}
WITH_EXAMPLES = [page for page, examples in EXAMPLES.items() if examples]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_examples_run_one_after_the_other(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder of their own: a later one finds the files that an earlier one made."""
    monkeypatch.chdir(tmp_path)
    for n, example in enumerate(EXAMPLES[page], 1):
        if NEEDS_SPARK not in example:
            exec(compile(example, f"<{page.name}, example {n}>", "exec"), {})


def test_there_is_an_example_on_the_first_page() -> None:
    assert EXAMPLES[ROOT / "README.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    links = LINK.findall(page.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]
    missing = [link for link in local if not (page.parent / link).exists()]
    assert not missing, f"{page.name} links to what is not there: {missing}"


def test_the_public_names_are_there_and_all_errors_among_them() -> None:
    assert all(hasattr(inorder, name) for name in inorder.__all__)
    tree = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, InorderError)}
    assert not tree - set(inorder.__all__), "add the new error to inorder/__init__.py"


def test_the_page_on_files_names_all_tables_of_a_store() -> None:
    schema = (ROOT / "src/inorder/stores/sqlite/schema.sql").read_text(encoding="utf-8")
    page = (ROOT / "docs/reference/files.md").read_text(encoding="utf-8")
    inside = page.partition("## What is inside")[2].partition("\n## ")[0]
    told = re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in inside.splitlines() if line[:3] == "| `"))
    assert sorted(told) == sorted(re.findall(r"^CREATE TABLE (\w+)", schema, re.MULTILINE))
