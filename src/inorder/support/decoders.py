"""The lock under which `msgspec` may read a type for the first time.

`msgspec` keeps its knowledge of a type with the class, and stores it before it is complete. A second thread that reads
the same type at that moment uses the incomplete part, which ends the process with a segmentation fault.
"""

from __future__ import annotations

import os
from typing import Final

from .locks import Lock

building: Final = Lock()
"""Hold it to make a decoder or to call `msgspec.convert`. A fork waits for it, so that no child inherits it held."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=building.acquire, after_in_parent=building.release, after_in_child=building.release)
