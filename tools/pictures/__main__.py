"""python -m tools.pictures: writes docs/pictures."""

from __future__ import annotations

from . import PICTURES


def main() -> None:
    for path, draw in PICTURES.items():
        path.write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
