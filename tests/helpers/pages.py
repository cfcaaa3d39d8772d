"""The pages of the documents, for tests: their blocks, and the commands in them.

Blocks run in the order of the page, in a folder of the page's own:

* `python`: a block that begins with `# NAME.py` is written into that file, for a command to run; others are run.
* `console`: a shell runs each line that begins with `$ `; it finds `inorder` and `python`, and the variables that
  `export` has set. The output must be the text after the line, where `...` stands for any text and an age such as
  `0.4 s` for any age. A command may fail only if the page shows its error, `inorder: ...`.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import click

from inorder.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md")]
    if not page.is_relative_to(ROOT / "docs/spec")
)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FENCED = re.compile(r"^(```+)[\w{}-]*\n.*?^\1", re.MULTILINE | re.DOTALL)
MENTIONED = re.compile(r"[`']inorder ([a-z][^`'{}|]*?)[`']")
FILE = re.compile(r"# (\w+\.py)\n")
EXPORT = re.compile(r"export (\w+)=(\S+)")
SPARK = re.compile(r"inorder\.spark|inorder pipeline|\bspark\.(create|read)")
SLOW = re.compile(r"^waiting for .*; press Ctrl-C to stop\n", re.MULTILINE)  # appears on a busy machine
AGE = re.compile(r"\b\d\.\d s\b")
SECONDS_MAX = 600


class Typed(NamedTuple):
    """A shell command of a page, and the output after it."""

    command: str
    shown: str


def blocks(page: Path) -> list[tuple[str, str]]:
    """Returns language and text of each fenced block."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def runs(page: Path) -> bool:
    return any(language in ("python", "console") for language, _ in blocks(page))


def needs_spark(page: Path) -> bool:
    return any(language in ("python", "console") and SPARK.search(text) for language, text in blocks(page))


def typed(console: str) -> Iterator[Typed]:
    """Yields the commands of a console block."""
    for part in re.split(r"^\$ ", console.replace("\\\n", ""), flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield Typed(command, shown)


def commands(page: Path) -> Iterator[list[str]]:
    """Yields the arguments of each `inorder` in the page's shell and console blocks."""
    for language, text in blocks(page):
        lines = [one.command for one in typed(text)] if language == "console" else text.replace("\\\n", "").splitlines()
        for line in lines if language in ("console", "sh") else ():
            for part in re.split(r"\s[|]\s|;\s|\s&&\s", line):
                if part.startswith("inorder "):
                    words = shlex.split(part, comments=True)[1:]
                    yield list(itertools.takewhile(lambda word: word.strip("2") not in ("<", ">"), words))


def prose(page: Path) -> str:
    """The text of a page without its blocks."""
    return FENCED.sub("", page.read_text(encoding="utf-8"))


def mentioned(text: str) -> list[str]:
    """The words after `inorder` in each command that a text names in its sentences."""
    return [" ".join(found.split()) for found in MENTIONED.findall(text)]


def check_mention(words: str) -> None:
    """Checks a command in a sentence, which may lack arguments. Raises: click.UsageError, no such command or option."""
    command: click.Command = app
    for word in words.split():
        if word.startswith("-"):
            options = {"-h", "--help", *(one for each in command.params for one in (*each.opts, *each.secondary_opts))}
            if word.partition("=")[0] not in options:
                raise click.UsageError(f"inorder {words}: {command.name} has no option {word}")
        elif isinstance(command, click.Group) and not word.isupper():  # in capitals: any command
            if word not in command.commands:
                raise click.UsageError(f"inorder {words}: {command.name} has no command {word}")
            command = command.commands[word]


def parse(arguments: list[str]) -> click.Context:
    """Parses the arguments without running the command. Raises: click.ClickException, they are wrong."""
    command: click.Command = app
    names = ["inorder"]
    while isinstance(command, click.Group):
        found = command.commands.get(arguments[0])
        if found is None:
            raise click.UsageError(f"{' '.join(names)} has no command {arguments[0]!r}")
        command, arguments = found, arguments[1:]
        names.append(command.name or "")
    return command.make_context(" ".join(names), [*arguments])


def run_console(console: str, folder: Path, exported: dict[str, str]) -> None:
    """Runs the commands of a block, and compares their output with the page."""
    for one in typed(console):
        if found := EXPORT.fullmatch(one.command):
            exported[found[1]] = found[2]
            continue
        came, status = _run(one.command, folder, exported)
        pattern = ".*".join(map(re.escape, AGE.sub("0.0 s", _tidy(one.shown)).split("...")))
        came = SLOW.sub("", AGE.sub("0.0 s", came))
        assert re.fullmatch(pattern, came, re.DOTALL), f"$ {one.command}\n{came}\n-- but the page shows\n{one.shown}"
        assert status == 0 or "inorder: " in one.shown, f"$ {one.command}\n{came}\n-- exit status {status}"


def _run(command: str, folder: Path, exported: Mapping[str, str]) -> tuple[str, int]:
    tools = folder / ".bin"
    tools.mkdir(exist_ok=True)
    for name, call in (("inorder", "-m inorder"), ("python", "")):
        if not (tools / name).exists():  # a command in the background may be reading it
            (tools / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {call} "$@"\n')
            (tools / name).chmod(0o755)
    source = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    path = os.pathsep.join([str(tools), os.environ["PATH"]])
    ran = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env={**unmeasured(), **exported, "PATH": path, "PYTHONPATH": source, "PYSPARK_PYTHON": sys.executable},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        # Spark logs to stderr, differently on every machine.
        stderr=subprocess.PIPE if "pipeline" in command else subprocess.STDOUT,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    return _tidy(ran.stdout), ran.returncode


def unmeasured() -> dict[str, str]:
    """The environment without the measurement of coverage, which doubles the time that each command takes to start."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_PROCESS_")}


def _tidy(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


# The port that a page names may be in use here: a free one is used instead.
FIXED_PORT = re.compile(r"(start_http_server\()\d+")


def run_page(page: Path, folder: Path, *, spark: bool) -> None:
    """Runs the page's python and console blocks in order, in this process and folder; Spark's only if asked.

    Programs that a page starts in the background and notes in a file `NAME.pid` are terminated at the end.
    """
    try:
        _run_blocks(page, folder, spark=spark)
    finally:
        for noted in folder.glob("*.pid"):
            with suppress(ProcessLookupError):
                os.kill(int(noted.read_text()), signal.SIGTERM)


def _run_blocks(page: Path, folder: Path, *, spark: bool) -> None:
    exported: dict[str, str] = {}
    for n, (language, text) in enumerate(blocks(page), 1):
        if SPARK.search(text) and not spark:
            continue
        if language == "console":
            run_console(text, folder, exported)
        elif language == "python" and (found := FILE.match(text)):
            (folder / found[1]).write_text(text, encoding="utf-8")
        elif language == "python":
            exec(compile(FIXED_PORT.sub(r"\g<1>0", text), f"<{page.name}, block {n}>", "exec"), {})
