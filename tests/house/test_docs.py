"""The examples of the documents run, their links have targets, and their lists are complete."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest
from tests.helpers.pages import (
    PAGES,
    ROOT,
    blocks,
    check_mention,
    commands,
    mentioned,
    name_of,
    needs_spark,
    parse,
    prose,
    run_page,
    runs,
)

from inorder import InorderError, errors

FIRST = ROOT / "README.md"
OF_A_SERVER = ROOT / "docs/tutorial/another-machine.md"  # tests/server/test_how_to.py
OF_POSTGRESQL = ROOT / "docs/how-to/postgresql.md"  # tests/stores/postgresql/test_privileges.py
OF_A_STORE_ELSEWHERE = ROOT / "docs/how-to/elsewhere.md"  # tests/server/test_how_to.py
WITH_SERVERS = {OF_A_SERVER, OF_POSTGRESQL, OF_A_STORE_ELSEWHERE}
ELSEWHERE = {page for page in PAGES if page != FIRST and needs_spark(page)} | {
    FIRST,  # by section
    ROOT / "examples/README.md",
    *WITH_SERVERS,
}
WITH_EXAMPLES = [page for page in PAGES if runs(page) and page not in ELSEWHERE]
OF_QUICK_GATE = {*(ROOT / "docs/tutorial").iterdir()}
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
ANCHORED = re.compile(r"\]\(([^)#\s]*)#([^)]+)\)")
ADDRESS = re.compile(r"https://[a-z0-9.-]+\.[a-z]+(/\S*)?")
PICTURE = re.compile(r"<img [^>]*src=\"([^\"]+)\"")


@pytest.mark.parametrize(
    "page",
    [page if page in OF_QUICK_GATE else pytest.param(page, marks=pytest.mark.nightly) for page in WITH_EXAMPLES],
    ids=name_of,
)
def test_the_examples_run_one_after_the_other(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a new folder, in which later examples find the files of earlier ones. Pages in ELSEWHERE have other tests."""
    monkeypatch.chdir(tmp_path)
    run_page(page, tmp_path, spark=False)


SECTIONS = [
    pytest.param(text, id=text.partition("\n")[0])
    for text in FIRST.read_text(encoding="utf-8").split("\n## ")
    if re.search("^```(python|console)$", text, re.MULTILINE)
]


@pytest.mark.parametrize("section", SECTIONS)
def test_the_examples_of_a_section_of_the_readme_run(
    section: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "README.md"
    page.write_text(section, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    run_page(page, tmp_path, spark=False)


# Steps at a prompt that no test runs, with the reasons.
NOT_RUN = {
    "CONTRIBUTING.md": "make, in a clone",
    "docs/how-to/channels.md": "two machines: tests/mq/test_channels_elsewhere.py. All other steps are run",
    "docs/how-to/console.md": "a browser",
    "docs/how-to/exactly-once-spark.md": "Spark's jobs: the reference runs them in Python",
    "docs/how-to/files.md": "Spark's jobs, as above",
    "docs/how-to/from-ibm-mq.md": "IBM MQ",
    "docs/how-to/http.md": "certificates, services, containers; tests/server/test_how_to.py runs all other steps",
    "docs/reference/json.md": "jq, and a store with all kinds of things",
    "docs/reference/spark.md": "Spark's jobs: their page runs them in Python",
    "docs/reference/spark/jobs.md": "the same jobs in Python are run",
}


def test_consecutive_commands_on_a_page_are_in_blocks_that_are_run() -> None:
    """A page with two or more commands in a row has them in `console` blocks, whose lines are run in order."""
    with_steps = {
        name_of(page)
        for page in PAGES
        for language, text in blocks(page)
        if language == "sh" and len(re.findall(r"^(?:[\w ]*\| )?inorder (?!serve)", text, re.MULTILINE)) > 1
    }
    assert with_steps <= set(NOT_RUN), "console blocks run, sh blocks do not"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_on_a_page_are_valid(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder with empty TLS files of the names on the page; no command reads them."""
    monkeypatch.chdir(tmp_path)
    for arguments in commands(page):
        for name in filter(re.compile(r"[\w.-]+\.(pem|key)").fullmatch, arguments):
            Path(name).touch()
        try:
            parse(arguments)
        except click.ClickException as error:
            pytest.fail(f"inorder {' '.join(arguments)}: {error.format_message()}")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_named_in_sentences_exist(page: Path) -> None:
    for words in mentioned(prose(page)):
        check_mention(words)


def test_commands_named_in_errors_and_docstrings_exist() -> None:
    files = sorted((ROOT / "src").rglob("*.py"))
    found = [words for file in files for words in mentioned(file.read_text(encoding="utf-8"))]
    assert len(found) > 20
    for words in found:
        check_mention(words)


@pytest.mark.parametrize("words", ["fly", "pipeline finish", "queue list --colour", "queue NAME --colour"])
def test_the_check_refuses_a_mention_of_an_unknown_command(words: str) -> None:
    with pytest.raises(click.UsageError):
        check_mention(words)


@pytest.mark.parametrize("arguments", [["fly"], ["queue", "create"], ["queue", "list", "--colour"], ["get", "A", "B"]])
def test_the_check_refuses_an_invalid_command(arguments: list[str]) -> None:
    with pytest.raises(click.ClickException):
        parse(arguments)


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub and the site make it."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-")


def anchors(page: Path) -> set[str]:
    text = prose(page)
    named = re.findall(r"^\(([\w-]+)\)=$", text, re.MULTILINE)
    return {*map(slug, re.findall(r"^#+ (.*)$", text, re.MULTILINE)), *named}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files_and_headings_that_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = LINK.findall(text) + PICTURE.findall(text)
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    missing += [link for link in LINK.findall(prose(page)) if "://" in link and not ADDRESS.fullmatch(link)]
    for link, anchor in ANCHORED.findall(prose(page)):
        target = page.parent / link if link else page
        if "://" not in link and target.suffix == ".md" and anchor not in anchors(target):
            missing.append(f"{link}#{anchor}")
    assert not missing, f"{page.name} links to what is not there: {missing}"


def test_all_errors_are_public() -> None:
    tree = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, InorderError)}
    assert not tree - set(errors.__all__), "add the new error to __all__ of inorder/errors.py"


def test_the_page_on_files_names_all_tables_of_a_store() -> None:
    schema = (ROOT / "src/inorder/stores/sqlite/schema.sql").read_text(encoding="utf-8")
    page = (ROOT / "docs/reference/files.md").read_text(encoding="utf-8")
    inside = page.partition("## The tables")[2].partition("\n## ")[0]
    told = re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in inside.splitlines() if line[:3] == "| `"))
    assert sorted(told) == sorted(re.findall(r"^CREATE TABLE (\w+)", schema, re.MULTILINE))


def test_each_number_of_a_decision_is_used_once() -> None:
    page = (ROOT / "docs/explanation/decisions.md").read_text(encoding="utf-8")
    numbers = re.findall(r"^\* \*\*(\d+)\. ", page, re.MULTILINE)
    lines = re.findall(r"^\* Moved: (.+\n(?:  .+\n)*)", page, re.MULTILINE)
    moved = [(re.findall(r"\d+", old), to) for line in lines for old, to in re.findall(r"([\d, \n]+)→ (\d+)\.", line)]
    assert {to for _, to in moved} < set(numbers)
    everything = numbers + [number for old, _ in moved for number in old]
    assert sorted(everything) == sorted(set(everything))
