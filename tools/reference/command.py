"""The pages of the command `inorder`, read off its tree of click commands: one for each group, and one that lists them.

What is not in a group stands together by what it is for (`TOGETHER`); a new one has a page of its own until then."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import click

from inorder.cli.app import app

from .markdown import code, codes, page, sentence, table

EXAMPLE = "Example: "
EVERYWHERE = ("store", "as_json", "_click_default_help")  # said once, at the top; the last is Click's name for help

INTRODUCTION = """\
`inorder COMMAND --help` shows the same in a terminal."""

COMMON = """\
These options are the same wherever a command has them."""

STATUS = """\
| status | means |
|---|---|
| 0 | done |
| 1 | the answer is no, or not now: no message, a full queue, an order that is pending; a check found something |
| 2 | a wrong call: an unknown option or queue, a value out of range |
| 3 | trouble with a file, Spark or the store: missing, foreign, newer, locked, full, damaged, replaced, not synced |
| 130 | Ctrl-C, also while the command starts; nothing is held, and what was not committed is backed out |"""

COMPLETION = """\
```sh
eval "$(_INORDER_COMPLETE=bash_source inorder)"        # bash; put it into ~/.bashrc
eval "$(_INORDER_COMPLETE=zsh_source inorder)"         # zsh; ~/.zshrc
_INORDER_COMPLETE=fish_source inorder | source         # fish; ~/.config/fish/config.fish
```"""

# Commands that are in no group: the name of their page, its heading, and which.
TOGETHER = {
    "messages": ("Messages", ("put", "get", "browse", "watch", "move", "copy")),
    "store": ("The store", ("create", "rename", "check", "backup", "upgrade")),
    "scripts": ("Scripts and demonstrations", ("mqsc", "scenarios", "demo")),
}

Path = tuple[str, ...]


def commands(command: click.Command = app, path: Path = ("inorder",)) -> Iterator[tuple[Path, click.Command]]:
    """The tree, each command before what is below it, as the help lists them."""
    yield path, command
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            below = command.commands[name]
            if not below.hidden:
                yield from commands(below, (*path, name))


class Topic(NamedTuple):
    """A page: its name, its heading, and the commands below the first word that are on it."""

    name: str
    heading: str
    words: tuple[str, ...]


def topics() -> list[Topic]:
    """The pages, in the order in which the help lists the first command of each."""
    together = {word: name for name, (_, words) in TOGETHER.items() for word in words}
    names = dict.fromkeys(together.get(word, word) for word in app.list_commands(click.Context(app)))
    return [Topic(name, *TOGETHER.get(name, (f"inorder {name}", (name,)))) for name in names]


def command_page() -> str:
    """The page that lists all commands."""
    found = topics()
    rows = [
        (f"[`{' '.join(path[1:])}`](command/{topic.name}.md#{'-'.join(path)})", _summary(command))
        for topic in found
        for path, command in commands()
        if path[1:2] and path[1] in topic.words and not isinstance(command, click.Group)
    ]
    parts = [text_of(app), INTRODUCTION, table(("command", "does"), rows), "## For every command", COMMON, _common()]
    parts += ["## Exit status", STATUS, "## Completion in a shell", COMPLETION]
    parts.append("\n".join(["```{toctree}", ":hidden:", "", *(f"command/{topic.name}" for topic in found), "```"]))
    return page("The command", *parts)


def topic_page(topic: Topic) -> str:
    """The page of a group, or of what stands together."""
    parts = ["What all commands have in common is [here](../command.md#for-every-command)."]
    for path, command in commands():
        if path[1:2] and path[1] in topic.words:
            parts += section(path, command)[" ".join(path) == topic.heading :]
    return page(topic.heading, *parts)


def _summary(command: click.Command) -> str:
    return sentence(escaped(" ".join(inspect.cleandoc(command.help or "").split("\n\n")[0].split())))


def _common() -> str:
    """The rows of the shared options, from the first command that has them."""
    found: dict[str, click.Parameter] = {}
    for _, command in commands():
        for each in command.get_params(click.Context(command, **command.context_settings)):
            if each.name in EVERYWHERE:
                found.setdefault(each.name, each)
    return table(("option", "meaning"), [(_option(found[name]), _meaning(found[name])) for name in found])


def section(path: Path, command: click.Command) -> list[str]:
    """The parts of one command's section."""
    parts = [f"## {' '.join(path)}"] if len(path) > 1 else []
    parts.append(text_of(command))
    if not isinstance(command, click.Group):
        context = click.Context(command, info_name=" ".join(path))
        usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
        parts += [f"```text\n{usage}\n```", parameters(command)]
    if example := example_of(command):
        parts.append(f"```sh\n{example}\n```")
    return parts


def parameters(command: click.Command) -> str:
    """The table of what a command takes, beside what every command takes."""
    own = [
        each
        for each in command.get_params(click.Context(command, **command.context_settings))
        if each.name not in EVERYWHERE and not getattr(each, "hidden", False)  # hidden: for inorder's own processes
    ]
    if not own:
        return ""
    rows = [(_option(each), _meaning(each), _values(each), _default(each)) for each in own]
    return table(("argument, option", "meaning", "values", "default"), rows)


def text_of(command: click.Command) -> str:
    """The help of a command as paragraphs; what it sets by hand stays as it is."""
    paragraphs = inspect.cleandoc(command.help or "").partition("\f")[0].split("\n\n")
    return "\n\n".join(map(_paragraph, paragraphs))


def _paragraph(text: str) -> str:
    if text.startswith("\b\n"):
        return f"```text\n{text[2:]}\n```"
    return sentence(escaped(" ".join(text.split())))


def escaped(text: str) -> str:
    """A text of a help as it must stand in Markdown."""
    return re.sub(r"(?<![\w`-])(--[a-z][a-z-]*)", r"`\1`", text.replace("*", "\\*").replace("<", "\\<"))


def example_of(command: click.Command) -> str:
    """The example at the end of a command's help."""
    epilog = command.epilog or ""
    return epilog.removeprefix(EXAMPLE) if epilog.startswith(EXAMPLE) else ""


def _option(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Argument):
        return code(parameter.make_metavar(click.Context(app)))
    return codes([*parameter.opts, *parameter.secondary_opts])


def _values(parameter: click.Parameter) -> str:
    if isinstance(parameter.type, click.Choice):
        return codes(map(str, parameter.type.choices))
    if isinstance(parameter, click.Option):
        metavar = code(parameter.make_metavar(click.Context(app)))
        return "" if parameter.is_flag or parameter.count else metavar + (", repeatable" if parameter.multiple else "")
    return "several" if parameter.nargs == -1 else ""


def _default(parameter: click.Parameter) -> str:
    if parameter.required:
        return "required"
    default: Any = parameter.to_info_dict().get("default")
    if isinstance(parameter, click.Option) and isinstance(parameter.show_default, str):
        return parameter.show_default
    if default is None or default is False or default == () or callable(default):
        return ""
    return code(str(default))


def _meaning(parameter: click.Parameter) -> str:
    text = getattr(parameter, "help", None) or ""
    variable = f" Environment: `{parameter.envvar}`." if parameter.envvar else ""
    return (sentence(escaped(" ".join(text.split()))) if text else "") + variable
