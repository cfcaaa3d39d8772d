"""Runs the tests of Spark on the older versions of PySpark that `inorder[spark]` allows.

``python -m tools.spark_versions 4.0 4.2`` installs these versions from PyPI into build/pyspark, each into its own
folder, unless it is installed there, and runs the tests that they can run. The environment of development does not
change: the folder only comes first in PYTHONPATH, for the tests and for the processes that they start.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build/pyspark"

WRITING = tuple(f"tests/spark/test_{name}.py" for name in "versions sink rows options".split())
STREAMING = tuple(f"tests/spark/test_{name}.py" for name in "source readers small_run several listening files".split())
# The test files that a version can run. Streams from a queue need 4.2.
VERSIONS = {"4.0": WRITING, "4.1": WRITING, "4.2": (*WRITING, *STREAMING)}


def installed(version: str) -> Path:
    """The folder of a version, installed if it is missing. Raises: CalledProcessError, from pip."""
    folder = FOLDER / version
    ready = folder / ".ready"
    if not ready.exists():
        pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade", "--target", str(folder)]
        subprocess.run([sys.executable, *pip, f"pyspark=={version}.*"], check=True)
        ready.touch()
    return folder


def run(version: str) -> int:
    """Runs the tests of a version; returns the status of pytest."""
    paths = [str(installed(version)), str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    chosen = ("-k", "not sqlite-long-way", *VERSIONS[version])
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *chosen], cwd=ROOT, env=environment, check=False
    ).returncode


def main(versions: Sequence[str]) -> int:
    """Runs the tests of each version; 1 if any failed."""
    failed = False
    for version in versions or VERSIONS:
        print(f"PySpark {version}", flush=True)
        failed = run(version) != 0 or failed
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
