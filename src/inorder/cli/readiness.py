"""Checks the prerequisites of a Spark job before a JVM starts, because that takes seconds and Spark's own errors fill
pages.

Paths outside the local file system are left to Spark.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import click

from ..errors import ArgumentError
from ..formats import parse_rule
from ..stores.open import is_of_any_store
from ..support.advice import how_to_install

EXTRAS: Final = ("pyspark", "pyarrow")
JAVA_VERSION_MIN: Final = 17
JAVA_SECONDS_MAX: Final = 60
JAVA: Final = f"install Java {JAVA_VERSION_MIN} or later (apt install openjdk-17-jre-headless), or set JAVA_HOME to it"
VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')
MEMORY: Final = re.compile(r"[1-9]\d*[kmgt]", re.IGNORECASE)
ELSEWHERE: Final = (
    "HADOOP_CONF_DIR",
    "YARN_CONF_DIR",
    "SPARK_CONF_DIR",
)  # with one of these set, plain paths may not be local
PARQUET: Final = ".parquet"


def check_extras() -> None:
    """Checks that PySpark is installed. Raises: click.ClickException, with the remedy."""
    for name in EXTRAS:
        if find_spec(name) is None:
            raise click.ClickException(f"This needs Spark, and {name} is not installed: {how_to_install('spark')}.")


def check_java() -> None:
    """Checks that Spark can find a Java that it can use. Raises: click.ClickException, with the remedy."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(str(Path(home) / "bin" / "java") if home else "java")
    if java is None:
        where = f"JAVA_HOME is {home!r}, which has no bin/java" if home else "there is no java in PATH"
        raise click.ClickException(f"Spark needs Java, and {where}: {JAVA}.")
    try:
        told = subprocess.run([java, "-version"], check=False, capture_output=True, text=True, timeout=JAVA_SECONDS_MAX)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise click.ClickException(f"Spark needs Java, and {java} does not start ({error}): {JAVA}.") from error
    found = VERSION.search(told.stderr + told.stdout)
    if found is None or int(found[1]) < JAVA_VERSION_MIN:
        which = f"is Java {found[1]}" if found else "does not print its version"
        raise click.ClickException(f"Spark needs Java {JAVA_VERSION_MIN}, and {java} {which}: {JAVA}.")


def check_log(log: str) -> None:
    """Checks that Spark's log is not written into a store. Raises: click.ClickException."""
    if is_of_any_store(Path(log)):
        raise click.ClickException(f"--spark-log {log} is a store, or a file of one: name another file.")


def memory(value: str) -> str:
    """An amount of memory, as Java writes it."""
    if MEMORY.fullmatch(value) is None:
        raise ValueError(f"{value!r} must be a number with a unit, such as 2g or 512m.")
    return value


def split_rule(value: str) -> str:
    """A rule for splitting files, as `inorder.formats.parse_rule` reads it."""
    try:
        parse_rule(value)
    except ArgumentError as error:
        raise ValueError(error.args[0].replace("rule must", "it must", 1)) from error
    return value


def bad_rows(value: str) -> str:
    """A place for rows that cannot be messages, as the sink's option reads it."""
    word, _, queue = value.partition(":")
    if word.lower() == "fail" and word == value:
        return "fail"
    if word.lower() != "queue" or not queue:
        raise ValueError(f"{value!r} must be fail, or queue:NAME.")
    return f"queue:{queue}"


def check_archive(archive: str) -> None:
    """Checks that the archive exists and has data. Raises: click.ClickException."""
    place = local(archive)
    if place is None:
        return
    if not place.exists():
        raise click.ClickException(f"There is no archive {archive}: 'inorder pipeline drain' creates one.")
    if not place.is_dir():
        raise click.ClickException(
            f"{archive} is a file: an archive must be a folder that 'inorder pipeline drain' wrote."
        )
    if not any(name.endswith(PARQUET) for name in _files(place)):
        raise click.ClickException(f"{archive} is not an archive: it has no Parquet files.")


def _files(place: Path) -> Iterator[str]:
    return (name for _, _, names in os.walk(place) for name in names)


def check_source(source: str) -> None:
    """Checks that the file or folder to load exists. Raises: click.ClickException."""
    place = local(source)
    if place is not None and not place.exists():
        raise click.ClickException(f"There is no file or folder {source}.")


def check_target(what: str, target: str | None, *, overwrite: bool) -> None:
    """Checks that a folder can be written. Raises: click.ClickException, if it exists already, is a file, or is not
    writable.

    Args:
        what: the name of the argument.
    """
    place = None if target is None else local(target)
    if place is None:
        return
    check_writable(what, target, place)
    if not place.exists():
        return
    if not place.is_dir():
        raise click.ClickException(f"{what} {target} must be a folder, and is a file.")
    if not overwrite:
        raise click.ClickException(f"{what} {target} exists already: name another folder, or give --overwrite.")


def check_writable(what: str, target: str | None, place: Path) -> None:
    """Checks that this user may create the folder or write to it. Raises: click.ClickException."""
    there = next(folder for folder in (place.absolute(), *place.absolute().parents) if folder.exists())
    if not there.is_dir() and there != place.absolute():
        raise click.ClickException(f"{what} {target} cannot be created: {there} is a file.")
    if there.is_dir() and not os.access(there, os.W_OK | os.X_OK):
        raise click.ClickException(f"{what} {target} cannot be written: this user may not write to {there}.")


def local(path: str) -> Path | None:
    """The path in this machine's file system, or None if it is or may be in another one."""
    if path.startswith("file:"):
        return Path(re.sub("^file:(//)?", "", path))
    return None if "://" in path or any(map(os.environ.get, ELSEWHERE)) else Path(path)
