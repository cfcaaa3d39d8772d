"""python -m tools.reference: writes the generated pages of docs/reference."""

from __future__ import annotations

from . import PAGES


def main() -> None:
    for path, page in PAGES.items():
        path.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
