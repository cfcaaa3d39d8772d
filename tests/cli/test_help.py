"""Common to all commands: help with an example, -h, --store before the command, errors that name its words."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from tests.cli.conftest import Command

from inorder.cli.app import app
from inorder.cli.running import Command as WithExample

RULE = re.compile(r"\b(?:[A-D]-\d+|[RTGP]\d+\.\d+)\b|\(\d\.\d\)")


def every(command: click.Command, context: click.Context) -> Iterator[click.Context]:
    """The contexts of a command and of all its subcommands."""
    yield context
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            if not below.hidden:
                yield from every(below, below.make_context(name, [], parent=context, resilient_parsing=True))


CONTEXTS = list(every(app, app.make_context("inorder", [], resilient_parsing=True)))


@pytest.mark.parametrize("context", CONTEXTS, ids=lambda context: context.command_path)
def test_help_cites_no_rule_and_no_python_and_ends_with_an_example(run: Command, context: click.Context) -> None:
    words = context.command_path.split()[1:]
    ended = run(*words, "--help")
    assert (ended.status, run(*words, "-h")) == (0, ended)
    assert not RULE.search(ended.out)
    assert not re.search(r"\bNone\b|\bTrue\b|\w=\w+\)", ended.out)
    if isinstance(context.command, click.Group):
        lists = ended.out.partition("Show this message and exit.")[2]
        assert re.findall(r"(?m)^  ([a-z][a-z-]*)  ", lists) == context.command.list_commands(context)
        assert "..." not in lists, "a sentence is cut"
        return
    assert isinstance(context.command, WithExample)
    assert " ".join(ended.out.rsplit("Example:", 1)[1].split()) == context.command.example
    program, *given = shlex.split(context.command.example)
    assert (program, given[: len(words)]) == ("inorder", words)
    context.command.make_context(words[-1], given[len(words) :])


@pytest.mark.parametrize("context", CONTEXTS, ids=lambda context: context.command_path)
def test_every_option_has_a_help_text_and_every_command_has_json_output(context: click.Context) -> None:
    options = [one for one in context.command.params if isinstance(one, click.Option)]
    assert context.command.help
    silent = [one.name for one in options if not one.help]
    assert not silent, f"give them a help text: {silent}"
    of_passwords = [one for one in options if "password" in " ".join(one.opts)]
    assert all(one.is_flag for one in of_passwords), "other users of the machine read the arguments of processes"
    if not isinstance(context.command, click.Group):
        assert "as_json" in {one.name for one in options}


def test_commands_of_0_1_0_that_left_the_package_say_where_they_are(run: Command) -> None:
    assert {"demo", "scenarios"}.isdisjoint(run("--help").out.split())
    ended = run("demo", "files", "folder", "--output", "report")
    assert (ended.status, "'make order' and 'make demo'" in ended.err) == (2, True)
    ended = run("scenarios", str(Path(__file__).parents[1] / "scenarios/backout.txt"), "--kind", "sqlite")
    assert (ended.status, ended.out.endswith(" passed, 0 failed\n")) == (0, True)
    assert "scenarios ends with 0.3; in the repository, 'python -m inorder_scenarios' does the same" in ended.err


def test_the_store_option_may_be_given_before_the_command(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = str(tmp_path / "one.db"), str(tmp_path / "other.db")
    assert run("--store", one, "queue", "create", "ONE").status == 0
    assert run("-s", one, "queue", "create", "OTHER", "--store", other).status == 0, "the nearer one counts"
    monkeypatch.setenv("INORDER_STORE", other)
    assert [record["queue"] for record in run("-s", one, "queue", "list", "--json").records] == ["ONE"]
    assert [record["queue"] for record in run("queue", "list", "--json").records] == ["OTHER"]


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("", "Queues and messages:"),
        ("quue list", "Did you mean 'queue'?"),
        ("queue alter ORDERS", "at least one attribute"),
        ("queue alter ORDERS --max-depth -3", "--max-depth must be an integer from 0 to 999,999,999, not '-3'"),
        ("queue create X~", "NAME must be 1 to 48 characters out of A-Z a-z 0-9 . / _ %, not 'X~'"),
        ("get ORDERS --wait -3", "--wait must be a number of seconds from 0, or forever, not '-3'"),
        ("get ORDERS --wait soon", "--wait must be a number of seconds from 0, or forever, not 'soon'."),
        ("put ORDERS x --expiry 0", "--expiry must be a number of seconds from 0.1 to 99,999,999.9, or none, not '0'"),
        ("put ORDERS x --expiry soon", "or none, not 'soon'."),
        ("get ORDERS --uid 7", "--uid must be ORIGIN:NUMBER, as in QM1:17, not '7'."),
        ("get ORDERS --priority x", "--priority must be an integer from 0 to 999,999,999, not 'x'."),
        ("backup orders.db", "unless --replace is given"),
        ("put ORDRES x", "did you mean ORDERS?"),
        ("move ORDRES ORDERS", "did you mean ORDERS?"),
        ("--store x.db pipeline unload a b", "does not use a store: leave --store out."),
    ],
)
def test_an_error_uses_the_names_of_the_command_line(run: Command, queue: str, command: str, told: str) -> None:
    ended = run(*command.split())
    assert (ended.status, ended.out, told in ended.err) == (2, "", True), ended.err


def test_the_usage_may_take_several_lines(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    first, second, complaint = run("claim", "release").err.splitlines()
    assert (first, second.strip()) == ("Usage: inorder claim release [OPTIONS] QUEUE", "APPLICATION")
    assert "Missing argument 'QUEUE'" in complaint
