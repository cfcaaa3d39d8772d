"""The words of pages, errors, help, docstrings and comments: unidiomatic patterns are refused, each with a remedy.

Pages of rules (docs/spec) quote their sources, and are left out.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from tests.pages import PAGES, ROOT, name_of

SOURCE = ROOT / "src/inorder"
PYTHON = sorted(SOURCE.rglob("*.py"))
SQL = sorted(SOURCE.rglob("*.sql"))
# By pattern: what to write instead.
INSTEAD = {
    r"\b(?:is|are|was|were|been|be) told\b": "is reported, is notified, hears, gets; or say who does it",
    r"(?<!there )(?<!where )\b(?:is|are|was|were) no "
    r"(?!longer|more|other|one\b|less|better|doubt|such|lower|higher|faster|slower|later|earlier)[a-z]":
        "is not a ...",
    r"(?<!there )(?<!where )\b(?:is|are) (?-i:none)\b(?! of)": "is not one",
    r"\bwhom?ever\b": "name the actor: the next process, a reader, anyone who",
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


def texts(file: Path) -> Iterator[str]:
    """The strings of a module, docstrings and errors among them, and its comments, each block as one."""
    source = file.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    yield from blocks((one.start[0], one.string) for one in tokens if one.type == tokenize.COMMENT)


def sql_comments(file: Path) -> Iterator[str]:
    """The comments of a file of statements, each block as one."""
    found = enumerate(map(re.compile("--.*").search, file.read_text(encoding="utf-8").splitlines()))
    yield from blocks((line, comment[0]) for line, comment in found if comment)


def blocks(comments: Iterable[tuple[int, str]]) -> Iterator[str]:
    """Comments by their lines; those of lines that follow one another are one text."""
    last, block = -1, ""
    for line, comment in comments:
        if line != last + 1:
            yield block
            block = ""
        last, block = line, f"{block} {comment.lstrip('#- ')}"
    yield block


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_is_written_as_people_speak(page: Path) -> None:
    found = complaints(page.read_text(encoding="utf-8"))
    assert not found, f"{page.name}:\n" + "\n".join(found)


@pytest.mark.parametrize(("files", "least", "read"), [(PYTHON, 200, texts), (SQL, 15, sql_comments)], ids=["py", "sql"])
def test_code_is_written_as_people_speak(files: list[Path], least: int, read: Callable[[Path], Iterator[str]]) -> None:
    assert len(files) > least
    found = [f"{name_of(file)}: {one}" for file in files for text in read(file) for one in complaints(text)]
    assert not found, "\n".join(found)


def test_strings_docstrings_and_comments_are_read(tmp_path: Path) -> None:
    module, statements = tmp_path / "module.py", tmp_path / "queries.sql"
    module.write_text(
        '"""A docstring."""\nx = f"an {error}"  # it\n# and its\n# lines\n\n# another\n', encoding="utf-8"
    )
    assert [text.strip() for text in texts(module) if text] == ["A docstring.", "an", "it and its lines", "another"]
    statements.write_text("-- one\n-- text\nSELECT 1;  -- another\n\n-- third\n", encoding="utf-8")
    assert [text.strip() for text in sql_comments(statements) if text] == ["one text another", "third"]


@pytest.mark.parametrize(
    "text",
    [
        "The caller is told of it.",
        "A hook has been told.",
        "It is no text.",
        "a message that is none",
        "Whoever reads it",
        "changed by whomever",
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
        "a number that is no lower",
        "The value is None, as `is no text` says.",
        "There are no messages; none of them is here.",
        "```text\nwhoever is told\n```\n",
    ],
)
def test_the_check_leaves_the_rest(text: str) -> None:
    assert not complaints(text)
