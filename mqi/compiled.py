"""Compiles the library while the wheel is built. The wheel serves every Python of the platform."""

from __future__ import annotations

import importlib
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = Path(__file__).parents[1] / "src/inorder"


class Compiled(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the libraries to the wheel, and gives it the tag of the platform."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compiles with the module of the package itself, without what the package depends on."""
        del version
        sys.path.insert(0, str(PACKAGE))
        building = importlib.import_module("mqi.building")
        self._folder = tempfile.TemporaryDirectory(prefix="inorder-")
        building.compile_into(Path(self._folder.name))
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"
        build_data["pure_python"] = False
        build_data["force_include"] |= {
            f"{self._folder.name}/{name}": f"inorder_mqi/{name}" for name in building.LIBRARIES
        }
