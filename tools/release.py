"""Makes this checkout the release of a version; its changes are the last commit of a release.

    python -m tools.release 0.2.0          after everything else is merged; it needs the programs of PostgreSQL

It writes the version into its files (`VERSION_FILE`, the tutorial), gives the changelog's newest section its title and
date, records a session of the release for `tests/stores/remote/sessions` and keeps its store under `tests/releases`. A
second run for the same version repeats everything. It prints the steps that remain.
"""

from __future__ import annotations

import argparse
import datetime
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
VERSION_FILE: Final = "src/inorder/support/release.py"
TUTORIAL: Final = "docs/tutorial/ten-minutes.md"
CHANGELOG: Final = "CHANGELOG.md"
SESSIONS: Final = "tests/stores/remote/sessions"
RELEASES: Final = "tests/releases"
REMAINING: Final = """\
make screenshots        the pictures of the console
make bench              the tables of README.md and of the page on benchmarks
make gate               and then make nightly, which also tries the wheel on every Python
git add -A && git commit -m 'Release {version}' && git tag v{version}"""


def write_version(root: Path, version: str, date: datetime.date) -> str:
    """Writes the version and the date into their files; returns the version before. Raises: ValueError, no place."""
    before = _replace(root / VERSION_FILE, r'(?m)^__version__ = "([^"]+)"$', f'__version__ = "{version}"')
    _replace(root / TUTORIAL, r"inorder-(\d[\d.]*)\.tar\.gz", f"inorder-{version}.tar.gz")
    titles = re.findall(r"(?m)^## (\d\S*) \((.*)\)$", (root / CHANGELOG).read_text(encoding="utf-8"))
    if not titles or (titles[0][1] != "unreleased" and titles[0][0] != version):
        raise ValueError(f"{CHANGELOG}: the first section must be unreleased, or that of {version}")
    _replace(root / CHANGELOG, r"(?m)^## (\d\S*) \(.*\)$", f"## {version} ({date.isoformat()})")
    return before


def _replace(path: Path, pattern: str, text: str) -> str:
    """Replaces the first match in a file; returns the match's first group."""
    page = path.read_text(encoding="utf-8")
    found = re.search(pattern, page)
    if found is None:
        raise ValueError(f"{path}: nothing matches {pattern}")
    path.write_text(page[: found.start()] + text + page[found.end() :], encoding="utf-8")
    return found[1]


def record(root: Path, version: str, before: str, released: list[str]) -> None:
    """Records the session and the store of the version, with its own code; an unreleased version's session goes."""
    if before not in released:
        (root / SESSIONS / f"{before}.json").unlink(missing_ok=True)
    shutil.rmtree(root / RELEASES / version, ignore_errors=True)
    for words in (("tests.stores.remote.test_releases",), ("tools.fixture_store", version)):
        subprocess.run([sys.executable, "-m", *words], cwd=root, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("version", type=_version, help="MAJOR.MINOR.PATCH")
    version = parser.parse_args().version
    before = write_version(ROOT, version, datetime.datetime.now(datetime.timezone.utc).date())
    others = re.findall(r"(?m)^## (\d\S*) \(", (ROOT / CHANGELOG).read_text(encoding="utf-8"))[1:]
    record(ROOT, version, before, [version, *others])
    print(f"This is {version} now. What remains:\n{REMAINING.format(version=version)}")


def _version(text: str) -> str:
    if not re.fullmatch(r"\d+\.\d+\.\d+", text):
        raise argparse.ArgumentTypeError(f"must be MAJOR.MINOR.PATCH, not {text!r}")
    return text


if __name__ == "__main__":
    main()
