"""Selectors on the command line: what they choose, and how a fault in one is shown."""

from __future__ import annotations

import pytest
from tests.cli.conftest import Command

RED = "colour = 'red'"


@pytest.fixture
def fruit(run: Command, queue: str) -> str:
    for body, colour in (("one", "red"), ("two", "blue"), ("three", "red")):
        assert run("put", queue, body, "--property", f"colour={colour}").status == 0
    assert run("queue", "create", "RED").status == 0
    return queue


def previews(run: Command, queue: str, *given: str) -> list[str]:
    return [one["preview"] for one in run("browse", queue, "--json", *given).records]


def test_browse_copy_move_and_get_take_what_fits(run: Command, fruit: str) -> None:
    assert previews(run, fruit, "--selector", RED) == ["one", "three"]
    assert previews(run, fruit, "--selector", "colour LIKE 'b%'", "--order", "logical") == ["two"]
    assert "matches" in run("browse", fruit, "--selector", "colour = 'green'").err
    assert run("copy", fruit, "RED", "--selector", "colour = 'blue'").out == f"copied 1 message from {fruit} to RED\n"
    assert run("move", fruit, "RED", "--selector", RED).out == f"moved 2 messages from {fruit} to RED\n"
    assert (previews(run, "RED"), previews(run, fruit)) == (["two", "one", "three"], ["two"])
    assert run("get", fruit, "--selector", RED).status == 1
    assert run("get", "RED", "--all", "--selector", RED).out == "one\nthree\n"
    assert previews(run, "RED") == ["two"]


@pytest.mark.parametrize("command", [["browse"], ["move", "RED"]])
def test_a_fault_is_shown_where_it_is(run: Command, fruit: str, command: list[str]) -> None:
    verb, *to = command
    refused = run(verb, fruit, *to, "--selector", "colour = 'red' AND > 3")
    assert refused.status == 2
    lines = refused.err.splitlines()
    shown = next(number for number, line in enumerate(lines) if "colour = 'red' AND > 3" in line)
    assert lines[shown + 1].index("^") == lines[shown].index("> 3")
    assert "2459" in refused.err
    assert len(previews(run, fruit)) == 3
