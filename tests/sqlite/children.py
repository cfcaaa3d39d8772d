"""Processes of their own, told what to do line by line: so that a test decides who does what when, without sleeping."""

from __future__ import annotations

import subprocess
import sys
from ast import literal_eval
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

SCHEMA = "CREATE TABLE note (id INTEGER PRIMARY KEY, text)"
VERSION = 1

PRELUDE = f"""
import os, sys, threading
import apsw
from inorder.errors import *
from inorder.stores.sqlite import coordination, log
from inorder.stores.sqlite.database import Database

def opened(path):
    return Database(path, schema={SCHEMA!r}, version={VERSION})

def write(database, text="x" * 1000):
    try:
        database.begin(writes=True)
        database.connection.execute("INSERT INTO note (text) VALUES (?)", (text,))
        return database.commit()
    except BaseException as error:
        database.abort(error)
        raise

def tidy_at(database, pages):
    log.LONG_PAGES = pages
    database.log.note_length(database.connection, "main", 0)

def count(database):
    with database.reading():
        return database.connection.execute("SELECT count(*) FROM note").get

def error_of(call):
    try:
        call()
    except InorderError as error:
        return type(error).__name__

names = dict(globals())
for line in sys.stdin:
    names["answer"] = None
    exec(eval(line), names)
    print(repr(names["answer"]), flush=True)
"""


class Child:
    """Another process. What it runs may give its answer to the name `answer`; `database` is open if a path is given."""

    def __init__(self, path: Path | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PRELUDE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        if path is not None:
            self.run(f"database = opened({str(path)!r})")

    def begin(self, code: str) -> None:
        """Let it run this, and do not wait for it."""
        assert self.process.stdin is not None
        print(repr(code), file=self.process.stdin, flush=True)

    def answer(self) -> object:
        """Wait for what it has begun; the answer."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the child has ended"
        value: object = literal_eval(line)
        return value

    def run(self, code: str) -> object:
        """Let it run this; the answer."""
        self.begin(code)
        return self.answer()

    def ask(self, expression: str) -> object:
        """The value of an expression there."""
        return self.run(f"answer = {expression}")

    def kill(self) -> None:
        """As the power does: SIGKILL, and wait until it is gone."""
        self.process.kill()
        self.end()

    def end(self) -> None:
        """Let it end as a program does, and wait for it."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.process.kill()
        if self.process.returncode is None:
            self.end()


@contextmanager
def children(path: Path, count: int) -> Iterator[list[Child]]:
    """Several processes that have the store open, started side by side."""
    each = [Child() for _ in range(count)]
    try:
        for child in each:
            child.begin(f"database = opened({str(path)!r})")
        for child in each:
            child.answer()
        yield each
    finally:
        for child in each:
            child.kill()
