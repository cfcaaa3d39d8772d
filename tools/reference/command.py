"""The pages of the command `inorder`, with the help that Click writes: one for each group, and one that lists them.

Commands outside groups are on pages by their purpose (`TOGETHER`); a new one gets its own page until then."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import NamedTuple

import click

from inorder.cli.app import app

from .markdown import Parts, page, sentence, table

# Commands in no group: the name of their page, its heading, and the commands.
TOGETHER = {
    "messages": ("Messages", ("put", "get", "browse", "watch", "move", "copy")),
    "store": ("The store", ("create", "rename", "check", "backup", "upgrade", "export", "import", "login")),
}

Path = tuple[str, ...]


def commands(command: click.Command = app, path: Path = ("inorder",)) -> Iterator[tuple[Path, click.Command]]:
    """The tree of commands, each command before its subcommands, in the order of the help."""
    yield path, command
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            yield from commands(command.commands[name], (*path, name))


class Topic(NamedTuple):
    """A page: its name, its heading, and its commands below the first word."""

    name: str
    heading: str
    words: tuple[str, ...]


def topics() -> list[Topic]:
    """The pages, in the order in which the help lists the first command of each."""
    together = {word: name for name, (_, words) in TOGETHER.items() for word in words}
    names = dict.fromkeys(together.get(word, word) for word in app.list_commands(click.Context(app)))
    return [Topic(name, *TOGETHER.get(name, (f"inorder {name}", (name,)))) for name in names]


def parts() -> Parts:
    """The parts of docs/reference/command.md: all commands, and their pages."""
    found = topics()
    rows = [
        (f"[`{' '.join(path[1:])}`](command/{topic.name}.md#{'-'.join(path)})", _summary(command))
        for topic in found
        for path, command in commands()
        if path[1:2] and path[1] in topic.words and not isinstance(command, click.Group)
    ]
    pages = ["```{toctree}", ":hidden:", "", *(f"command/{topic.name}" for topic in found), "```"]
    return {"commands": table(("command", "does"), rows), "pages": "\n".join(pages)}


def topic_page(topic: Topic) -> str:
    """The page of a group, or of commands with one purpose: the help of each, as Click writes it."""
    found = ["[Exit status](../command.md#exit-status)"]
    for path, command in commands():
        if path[1:2] and path[1] in topic.words:
            context = click.Context(command, info_name=" ".join(path), terminal_width=80, **command.context_settings)
            heading = [f"## {' '.join(path)}"] if " ".join(path) != topic.heading else []
            found += [*heading, f"```text\n{command.get_help(context)}\n```"]
    return page(topic.heading, *found)


def _summary(command: click.Command) -> str:
    return sentence(escaped(" ".join(inspect.cleandoc(command.help or "").split("\n\n")[0].split())))


def escaped(text: str) -> str:
    """Returns a text of the help, escaped for Markdown."""
    return re.sub(r"(?<![\w`-])(--[a-z][a-z-]*)", r"`\1`", text.replace("*", "\\*").replace("<", "\\<"))
