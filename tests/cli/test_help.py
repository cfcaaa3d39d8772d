"""What every command has alike: -h, --store before it, and errors and help in the words of the command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from tests.cli.conftest import Command

from inorder.cli.app import app

RULE = re.compile(r"\b(?:[A-D]-\d+|[RTGP]\d+\.\d+)\b|\(\d\.\d\)")


def every(command: click.Command, context: click.Context) -> Iterator[click.Context]:
    """The contexts of a command and of all below it."""
    yield context
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            yield from every(below, below.make_context(name, [], parent=context, resilient_parsing=True))


CONTEXTS = list(every(app, app.make_context("inorder", [], resilient_parsing=True)))


@pytest.mark.parametrize("context", CONTEXTS, ids=lambda context: context.command_path)
def test_help_cites_no_rule_and_no_python(context: click.Context) -> None:
    told = context.get_help()
    assert not RULE.search(told)
    assert not re.search(r"\bNone\b|\bTrue\b|\w=\w+\)", told)


@pytest.mark.parametrize("context", CONTEXTS, ids=lambda context: context.command_path)
def test_minus_h_is_help(run: Command, context: click.Context) -> None:
    words = context.command_path.split()[1:]
    assert run(*words, "-h") == run(*words, "--help")
    assert run(*words, "-h").status == 0


def test_the_store_may_stand_before_the_command(run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = str(tmp_path / "one.db"), str(tmp_path / "other.db")
    assert run("--store", one, "queue", "create", "ONE").status == 0
    assert run("-s", one, "queue", "create", "OTHER", "--store", other).status == 0, "the nearer one counts"
    monkeypatch.setenv("INORDER_STORE", other)
    assert [record["queue"] for record in run("-s", one, "queue", "list", "--json").records] == ["ONE"]
    assert [record["queue"] for record in run("queue", "list", "--json").records] == ["OTHER"]


def test_a_command_without_a_store_refuses_one(run: Command) -> None:
    for command in ("scenarios table.txt", "demo order", "pipeline audit a b"):
        ended = run("--store", "x.db", *command.split())
        assert (ended.status, "works on no store: leave --store out." in ended.err) == (2, True)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("queue alter ORDERS --max-depth -3", "--max-depth must be an integer from 0 to 999,999,999, not -3"),
        ("queue create X~", "NAME must be 1 to 48 characters out of A-Z a-z 0-9 . / _ %, not 'X~'"),
        ("get ORDERS --wait -3", "--wait must be seconds from 0, or forever, not -3.0"),
        ("put ORDERS x --expiry 0", "--expiry must be seconds from 0.1 to 99,999,999.9, or none for never, not 0.0"),
        ("backup orders.db", "unless --replace is given"),
    ],
)
def test_an_error_is_in_the_words_of_the_command(run: Command, queue: str, command: str, told: str) -> None:
    ended = run(*command.split())
    assert (ended.status, told in ended.err) == (2, True), ended.err
