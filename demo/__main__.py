"""python -m demo: the demonstrations.

    python -m demo order
    python -m demo files FOLDER --output build/demo
    python -m demo sites

`make order`, `make demo` and `make demo-sites` run them. With `--store postgresql` the queue of `files` is in
PostgreSQL: a server of Debian's package is started on the loopback, in a temporary folder, and is removed at the end.
"""

from __future__ import annotations

import argparse
import sys

import demo

from . import files, sites


def main(arguments: list[str] | None = None) -> int:
    """Runs a demonstration. Returns 0: all results were correct; 1: one was not; 2: it could not run to its end."""
    parser = argparse.ArgumentParser(prog="python -m demo", description="Runs a demonstration.")
    which = parser.add_subparsers(dest="which", required=True)
    which.add_parser("order", help="order on a queue, shown by a dozen processes; some seconds")
    job = which.add_parser("files", help="files through a queue and Spark, with kills; some minutes")
    job.add_argument("folder", nargs="?", help="the folder of the files; default: Python's own modules")
    job.add_argument("--output", default="build/demo", help="the folder for the audit (default: %(default)s)")
    job.add_argument("--store", choices=["sqlite", "postgresql"], default="sqlite", help="the store of the queue")
    between = which.add_parser("sites", help="four sites, and https between them, with kills; a minute")
    between.add_argument("--messages", type=int, default=300, help="how many orders (default: %(default)s)")
    given = parser.parse_args(arguments)
    if given.which == "order":
        return demo.main()
    if given.which == "sites":
        return sites.main(given.messages)
    if given.store == "sqlite":
        return files.main(given.folder, given.output)
    from tests.stores.postgresql.server import Server, missing  # noqa: PLC0415 - psycopg is an extra

    if why := missing():
        print(why, file=sys.stderr)
        return 2
    with Server() as server:
        return files.main(given.folder, given.output, server.url())


if __name__ == "__main__":
    sys.exit(main())
