"""The committed pictures are what the tool draws, and they show what the program says."""

from __future__ import annotations

import re

from tools.console.shots import SHOTS
from tools.pictures import FOLDER, PICTURES, architecture
from tools.pictures.lifecycle import routes
from tools.pictures.svg import WIDTH

from inorder.rules.lifecycle import changes

SMALLEST = 13  # units: at 343 of 480 pixels, the width of a phone, still 9 pixels
ROW_MAX = 48  # characters in the box of a layer


def texts(picture: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", picture)


def test_each_picture_is_what_the_tool_draws() -> None:
    stale = [path.name for path, draw in PICTURES.items() if path.read_text(encoding="utf-8") != draw()]
    assert not stale, "make reference"


def test_the_pictures_of_the_console_are_those_that_are_taken_and_shown() -> None:
    taken = {f"{shot.name}.png" for shot in SHOTS}
    assert {path.name for path in (FOLDER / "console").iterdir()} == taken, "make screenshots"
    shown = (FOLDER.parent / "how-to" / "console.md").read_text(encoding="utf-8")
    assert {name for name in taken if f"(../pictures/console/{name})" not in shown} == set()
    assert max(path.stat().st_size for path in (FOLDER / "console").iterdir()) < 100_000


def test_pictures_can_be_read_on_a_phone_and_load_nothing() -> None:
    pictures = list(FOLDER.glob("*.svg"))
    assert {*PICTURES} < {*pictures}
    for path in pictures:
        picture = path.read_text(encoding="utf-8")
        assert f'viewBox="0 0 {WIDTH} ' in picture
        assert min(map(int, re.findall(r"font(?:-size)?: (\d+)px", picture)), default=0) >= SMALLEST, path
        assert re.findall(r"https?://[^\"]*", picture) == ["http://www.w3.org/2000/svg"]


def test_the_life_cycle_shows_every_transition_of_the_table() -> None:
    assert set(routes()) == set(changes()), "give the new edge its route in tools/pictures/lifecycle.py"
    drawn = " ".join(text.strip() for text in texts((FOLDER / "lifecycle.svg").read_text(encoding="utf-8")))
    for events in changes().values():
        assert all(event in drawn for event in events)


def test_the_layers_are_all_in_the_picture() -> None:
    assert not [row for _, row, _ in architecture.LAYERS if len(row) > ROW_MAX], "two rows, in tools/pictures"
    drawn = " ".join(texts((FOLDER / "layers.svg").read_text(encoding="utf-8")))
    small = {"__main__", "clock", "housekeeping", "locks", "programs", "streams"}
    files = {path.stem for path in (FOLDER.parents[1] / "src/inorder").iterdir() if not path.name.startswith("__py")}
    assert not {name for name in files if name not in drawn} - small - {"__init__", "py"}
