"""Imported by Python when it starts, if this folder is on PYTHONPATH (see `crash_points.environment`)."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Files beside this file are imported as parts of its package.
sys.path[:] = [path for path in sys.path if Path(path).resolve() != HERE]
sys.path.append(str(HERE.parents[1]))

try:
    from tools.proof import crash_points

    crash_points.install()
except Exception:  # noqa: BLE001 - Python would continue without it
    traceback.print_exc()
    os._exit(1)
