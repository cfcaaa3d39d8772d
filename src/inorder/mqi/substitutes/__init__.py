"""Modules in Python in place of the C modules `ibmmqc` and `pymqe`, for Python programs without the library.

``python -m inorder.mqi.substitutes PROGRAM.py`` runs a program with them.

Rules: M-2, section 3 of *mqi*.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

MODULES: Final = {"ibmmq.ibmmqc": "ibmmqc", "pymqi.pymqe": "pymqe"}


def install() -> None:
    """Makes `import ibmmq` and `import pymqi` use the substitute modules. Call it before the first of these imports."""
    for name, own in MODULES.items():
        sys.modules[name] = importlib.import_module(f".{own}", __package__)


@contextmanager
def installed() -> Iterator[None]:
    """The substitute modules, as long as the block lasts; before and after it the packages are not imported."""
    _forget()
    install()
    try:
        yield
    finally:
        _forget()


def _forget() -> None:
    """Forgets the packages, and modules in their folders that they import under short names."""
    packages = {name.partition(".")[0] for name in MODULES}
    for name, module in tuple(sys.modules.items()):
        folder = Path(getattr(module, "__file__", None) or "").parent.name
        if name.partition(".")[0] in packages or folder in packages:
            del sys.modules[name]
