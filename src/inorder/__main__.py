"""python -m inorder: the command."""

from __future__ import annotations

import sys

from inorder_command import main

if __name__ == "__main__":
    sys.exit(main())
