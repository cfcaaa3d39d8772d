"""Runs a Python program with the substitute modules: ``python -m inorder.mqi.substitutes PROGRAM.py ARGUMENTS``."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from . import install

if __name__ == "__main__":
    install()
    del sys.argv[0]
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    runpy.run_path(sys.argv[0], run_name="__main__")
