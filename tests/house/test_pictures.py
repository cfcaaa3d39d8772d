"""The pictures of docs/pictures agree with the program. All but that of machines are drawn by hand."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path

import pytest
from benchmarks.spark_machines import drawn, simulate, table
from demo.pictures import LOGICAL, PHYSICAL
from demo.readers import DOCUMENTED, STEPS
from tools.console.shots import SHOTS

from inorder.rules.lifecycle import State, changes

FOLDER = Path(__file__).parents[2] / "docs/pictures"
SOURCE = FOLDER.parents[1] / "src/inorder"
WIDTH = 480  # units
SMALLEST = 13  # units: still 9 pixels on a phone, where 480 units are 343 pixels
TEXT = re.compile(r'<text x="[\d.]+" y="([\d.]+)"(?: class="([\w ]+)")?>([^<]*)</text>')


def picture(name: str) -> str:
    return (FOLDER / f"{name}.svg").read_text(encoding="utf-8")


def texts(name: str) -> list[str]:
    return [text for _, _, text in TEXT.findall(picture(name))]


def rows(name: str) -> list[list[str]]:
    """The texts of the boxes, row by row."""
    boxes = [(float(y), text) for y, kind, text in TEXT.findall(picture(name)) if kind == "mid"]
    boxes.sort(key=lambda box: box[0])
    return [[text for _, text in row] for _, row in groupby(boxes, key=lambda box: box[0])]


def test_the_console_has_just_the_pictures_that_are_taken_and_its_page_shows_them() -> None:
    taken = {f"{shot.name}.png" for shot in SHOTS}
    assert {path.name for path in (FOLDER / "console").iterdir()} == taken, "make screenshots"
    shown = (FOLDER.parent / "how-to" / "console.md").read_text(encoding="utf-8")
    assert {name for name in taken if f"(../pictures/console/{name})" not in shown} == set()
    assert max(path.stat().st_size for path in (FOLDER / "console").iterdir()) < 100_000


def test_pictures_can_be_read_on_a_phone_and_load_nothing() -> None:
    paths = list(FOLDER.glob("*.svg"))
    assert paths
    for path in paths:
        text = path.read_text(encoding="utf-8")
        assert f'viewBox="0 0 {WIDTH} ' in text
        assert min(map(int, re.findall(r"font(?:-size)?: (\d+)px", text)), default=0) >= SMALLEST, path
        assert re.findall(r"https?://[^\"]*", text) == ["http://www.w3.org/2000/svg"]


def test_the_life_cycle_shows_every_transition_of_the_table_and_no_other() -> None:
    states = [state.name.replace("_", " ").lower() for state in State if state is not State.ABSENT]
    events = [event for edge in changes().values() for event in edge]
    assert sorted(" ".join(texts("lifecycle")).split()) == sorted(" ".join([*states, *events]).split())
    assert picture("lifecycle").count('<polygon class="head"') == len(changes())


def test_the_picture_of_orders_shows_what_the_demonstration_finds() -> None:
    assert rows("order") == [PHYSICAL, LOGICAL]


def test_the_picture_of_readers_shows_what_the_demonstration_finds() -> None:
    everything = {step.message for step in STEPS if step.message}
    expected = [
        [*seen.split(), *sorted(everything - set(seen.split()))]  # at the end, the messages that are never seen
        for each in (("put", "relaxed"), ("put", "strict"), ("prepare", "relaxed"))
        for seen in DOCUMENTED[each]
    ]
    writers = [[step.message for step in STEPS if step.message.startswith(name)] for name in "AB"]
    assert rows("readers") == [*writers, *expected]


def page(name: str) -> str:
    return (FOLDER.parent / f"explanation/{name}.md").read_text(encoding="utf-8")


def test_the_page_on_scale_shows_what_the_simulation_of_machines_finds() -> None:
    found = simulate()
    assert picture("machines") == drawn(found), (
        "python -m benchmarks.spark_machines --picture docs/pictures/machines.svg"
    )
    assert table(found) in page("scale")


def test_the_table_of_folders_has_a_row_for_each() -> None:
    rows = re.findall(r"^\|([^|]*)\|", page("architecture").partition("## The folders")[2].partition("\n## ")[0], re.M)
    shown = [name.rstrip("/") for row in rows for name in re.findall(r"`([\w./]+)`", row)]
    found = [*SOURCE.iterdir(), *(SOURCE / "stores").iterdir()]
    there = {path.relative_to(SOURCE).as_posix() for path in found if path.is_dir() or path.suffix == ".py"}
    named = {name for name in there if "__" not in name} - {"stores"}
    assert sorted(shown) == sorted(named)


@pytest.mark.parametrize("name", ["architecture", "inside"])
def test_the_files_named_on_the_pages_on_the_code_exist(name: str) -> None:
    named = set(re.findall(r"`([\w./]+(?:\.\w+|/))`", page(name))) - {"stores/NAME/", "protocol.Store", "Identity.may"}
    files = {path for path in named if re.search(r"/|\.(py|sql|md|toml|txt)$", path)}
    there = {path.name for path in SOURCE.rglob("*")}
    missing = [path for path in files if not any((base / path).exists() for base in (SOURCE, SOURCE.parents[1]))]
    assert len(files) > 50
    assert [path for path in missing if name == "architecture" or path.rstrip("/") not in there] == []


def test_the_architecture_is_read_in_ten_minutes() -> None:
    assert len(page("architecture").split()) <= 2500
