"""The words of pages, help and docstrings: patterns that no native engineer writes are refused, each with a remedy.

Pages of rules (docs/spec) quote their sources, and the record of decisions keeps the words in which they were taken.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.pages import PAGES, ROOT, name_of

SOURCE = ROOT / "src/inorder"
PACKAGES = ("cli", "demo", "formats", "integrations", "mqsc", "rules", "spark", "testing")
CODE = sorted([*SOURCE.glob("*.py"), *(file for package in PACKAGES for file in (SOURCE / package).rglob("*.py"))])
RECORD = ROOT / "docs/explanation/decisions.md"
# By pattern: what to write instead.
INSTEAD = {
    r"\b(?:is|are|was|were|been|be) told\b": "is reported, is notified, hears, gets; or say who does it",
    r"(?<!there )(?<!where )\b(?:is|are|was|were) no (?!longer|more|other|one\b|less|better|doubt|such)[a-z]":
        "is not a ...",
    r"(?<!there )(?<!where )\b(?:is|are) (?-i:none)\b(?! of)": "is not one",
    r"\bwhoever\b": "name the actor: the next process, a reader, anyone who",
    r"\bnobody but\b": "only",
    r"\banew\b": "again, over, from the beginning",
    r"\bwhat is there of\b": "what it has, what is left of it",
    r"\bshall\b": "is, must, will",
}  # fmt: skip
PATTERNS = {re.compile(pattern, re.IGNORECASE): remedy for pattern, remedy in INSTEAD.items()}
FENCED = re.compile(r"^(```+)[\w{}-]*\n.*?^\1|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def complaints(text: str) -> list[str]:
    """What is to be written otherwise, in a text whose code is left out."""
    plain = " ".join(FENCED.sub("CODE", text).split())
    return [
        f"...{plain[max(0, found.start() - 40) : found.end() + 30]}...: write {remedy}"
        for pattern, remedy in PATTERNS.items()
        for found in pattern.finditer(plain)
    ]


def docstrings(file: Path) -> Iterator[str]:
    """Those of a file, its functions and its classes."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


@pytest.mark.parametrize("page", [page for page in PAGES if page != RECORD], ids=name_of)
def test_a_page_is_written_as_people_speak(page: Path) -> None:
    found = complaints(page.read_text(encoding="utf-8"))
    assert not found, f"{page.name}:\n" + "\n".join(found)


def test_docstrings_and_help_are_written_as_people_speak() -> None:
    assert len(CODE) > 100
    found = [f"{name_of(file)}: {one}" for file in CODE for text in docstrings(file) for one in complaints(text)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "The caller is told of it.",
        "A hook has been told.",
        "It is no text.",
        "a message that is none",
        "Whoever reads it",
        "nobody but its unit",
        "made anew",
        "what is there of a group",
        "Workers shall\nbe this Python",
    ],
)
def test_the_check_refuses_a_pattern(text: str) -> None:
    assert complaints(text)


@pytest.mark.parametrize(
    "text",
    [
        "There is no text.",
        "if there is none",
        "It is no longer there, and no other is.",
        "The value is None, as `is no text` says.",
        "There are no messages; none of them is here.",
        "```text\nwhoever is told\n```\n",
    ],
)
def test_the_check_leaves_the_rest(text: str) -> None:
    assert not complaints(text)
