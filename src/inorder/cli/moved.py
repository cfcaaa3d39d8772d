"""`inorder demo` and `inorder scenarios`: commands of 0.1.0 that 0.3 will remove. No help lists them."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

import click

ANYTHING: Final = {"ignore_unknown_options": True, "help_option_names": []}


@click.command("demo", hidden=True, context_settings=ANYTHING)
@click.argument("given", nargs=-1, type=click.UNPROCESSED)
def demo(given: tuple[str, ...]) -> int:
    """Says where the demonstrations are."""
    del given
    raise click.ClickException("the demonstrations are only in the repository: 'make order' and 'make demo' run them")


@click.command("scenarios", hidden=True, context_settings=ANYTHING)
@click.argument("given", nargs=-1, type=click.UNPROCESSED)
def scenarios(given: tuple[str, ...]) -> int:
    """Runs scenario tables."""
    click.echo(
        "inorder: scenarios ends with 0.3; in the repository, 'python -m inorder_scenarios' does the same", err=True
    )
    runner: Any = import_module("inorder_scenarios.__main__")
    status: int = runner.main([*given], program="inorder scenarios")
    return status
