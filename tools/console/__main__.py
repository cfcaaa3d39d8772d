"""`make console`: the console on sample data, until Ctrl-C; `make screenshots`: the pictures in the docs."""

from __future__ import annotations

import argparse
import contextlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from . import sample

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "console"


@contextlib.contextmanager
def peopled(folder: Path) -> Iterator[Path]:
    """A new sample with programs at work on it, until the block ends."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    store = folder / "shop.db"
    sample.make(store)
    words = [sys.executable, "-m", "tools.console.programs", str(store)]
    programs = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert programs.stdout is not None
    try:
        if programs.stdout.readline() != b"ready\n":
            raise SystemExit("The programs of the sample did not start.")
        yield store
    finally:
        programs.kill()
        programs.communicate()


def main() -> None:
    """Runs one of the two."""
    parser = argparse.ArgumentParser(prog="python -m tools.console", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="the port; 0: one that is free")
    parser.add_argument("--screenshots", type=Path, metavar="FOLDER", help="write the pictures there, and end")
    given = parser.parse_args()
    with peopled(FOLDER) as store:
        if given.screenshots is not None:
            from . import screenshots  # noqa: PLC0415 - it needs selenium, which the console does not

            screenshots.write(store, given.screenshots)
            return
        words = [sys.executable, "-m", "inorder", "serve", str(store), "--port", str(given.port)]
        with contextlib.suppress(KeyboardInterrupt):
            subprocess.run(words, check=False)


if __name__ == "__main__":
    main()
