"""The main job with its queue in PostgreSQL: `make demo STORE=postgresql`.

A server of Debian's package is started on the loopback, in a folder of its own, and is gone at the end.
"""

from __future__ import annotations

import argparse
import sys

from tests.stores.postgresql.server import Server, missing

from inorder.demo import files


def main() -> int:
    """Runs the job; its exit status."""
    parser = argparse.ArgumentParser(prog="make demo STORE=postgresql", description=__doc__)
    parser.add_argument("folder", nargs="?", help="whose files are taken; default: Python's own modules")
    parser.add_argument("--store", required=True, choices=["postgresql"], help="where the queue is")
    parser.add_argument("--output", required=True, help="where the audit goes")
    given = parser.parse_args()
    if why := missing():
        print(why, file=sys.stderr)
        return 2
    with Server() as server:
        return files.main(given.folder, given.output, server.url())


if __name__ == "__main__":
    sys.exit(main())
