"""Imported by Python when it starts, if this folder is on PYTHONPATH (see `holding.environment`)."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[4]))

try:
    from tests.spark.kills import holding

    holding.install()
except Exception:  # noqa: BLE001 - Python would ignore it
    traceback.print_exc()
    os._exit(1)
