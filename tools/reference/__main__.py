"""python -m tools.reference: writes the pages and parts that are made from the program."""

from __future__ import annotations

from . import COMMANDS, PAGES


def main() -> None:
    for path in {*COMMANDS.glob("*.md")} - PAGES.keys():
        path.unlink()
    for path, page in PAGES.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
