"""Modules in Python in place of the C modules `ibmmqc` and `pymqe`, for Python programs where the library is not there.

``python -m inorder.mqi.substitutes PROGRAM.py`` runs a program with them.

Rules: M-2, section 3 of *mqi*.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

MODULES: Final = {"ibmmq.ibmmqc": "ibmmqc", "pymqi.pymqe": "pymqe"}


def install() -> None:
    """Makes `import ibmmq` and `import pymqi` use the substitute modules. Call it before the first of these imports."""
    for name, own in MODULES.items():
        sys.modules[name] = importlib.import_module(f".{own}", __package__)


@contextmanager
def installed() -> Iterator[None]:
    """The substitute modules, as long as the block lasts; programs that it imports are forgotten after it."""
    packages = {name.partition(".")[0] for name in MODULES}
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in packages}
    for name in before:
        del sys.modules[name]
    install()
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] in packages]:
            del sys.modules[name]
        sys.modules.update(before)
