"""`make console`: the console on sample data, until Ctrl-C; `make screenshots`: the pictures in the docs."""

from __future__ import annotations

import argparse
import contextlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.ending import ended_by_signals

from . import sample

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "console"


@contextlib.contextmanager
def peopled(folder: Path) -> Iterator[Path]:
    """Makes a new sample, with programs at work on it until the block ends."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    store = folder / "shop.db"
    sample.make(store)
    words = [sys.executable, "-m", "tools.console.programs", str(store)]
    programs = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert programs.stdout is not None
    working = [sys.executable, "-m", "inorder", "work", "warehouse", "--processes", "2", "--store", str(store)]
    try:
        if programs.stdout.readline() != b"ready\n":
            raise SystemExit("The programs of the sample did not start.")
        with subprocess.Popen(working, cwd=Path(__file__).parent, stderr=subprocess.DEVNULL) as workers:
            try:
                yield store
            finally:
                workers.terminate()
    finally:
        programs.kill()
        programs.communicate()


def serve(store: Path, port: int) -> int:
    """Serves until Ctrl-C; returns the exit status. It prints the link; its log, a line a request, goes to a file."""
    words = [sys.executable, "-m", "inorder", "serve", str(store), "--port", str(port)]
    path = FOLDER / "serve.log"
    print(f"Ctrl-C ends. The log is in {path}.", flush=True)
    with path.open("wb") as log, subprocess.Popen(words, stderr=log) as server:
        try:
            status = server.wait()
        except KeyboardInterrupt:  # the terminal has sent the signal to the server, too
            return 0
        finally:
            server.terminate()
    if status > 0:
        sys.stderr.write(path.read_text(encoding="utf-8"))
    return status


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.console", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="the port; 0: one that is free")
    parser.add_argument("--screenshots", type=Path, metavar="FOLDER", help="write the pictures there, and end")
    given = parser.parse_args()
    with ended_by_signals(), peopled(FOLDER) as store:
        if given.screenshots is not None:
            from . import screenshots  # noqa: PLC0415 - it needs selenium, which the console does not

            screenshots.write(store, given.screenshots)
            return
        sys.exit(serve(store, given.port))


if __name__ == "__main__":
    main()
