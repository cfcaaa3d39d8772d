"""The pictures of docs/pictures that show what the program says, as SVG.

`make reference` writes them; tests/test_pictures.py fails when one is not what is drawn here. The others are written by
hand, in the same style.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from . import architecture, lifecycle, order, readers, retries

FOLDER = Path(__file__).parents[2] / "docs/pictures"
PICTURES: Mapping[Path, Callable[[], str]] = MappingProxyType(
    {
        FOLDER / "order.svg": order.draw,
        FOLDER / "lifecycle.svg": lifecycle.draw,
        FOLDER / "readers.svg": readers.draw,
        FOLDER / "retries.svg": retries.draw,
        FOLDER / "layers.svg": architecture.draw,
    }
)
