"""The command `inorder`: a thin layer over calls that any program can make."""

from __future__ import annotations

import sys

import click

from ..errors import InorderError, bounded
from .app import app
from .output import Output, give_up_output, made_writable
from .running import INTERRUPTED, TROUBLE, WRONG, record_of_error, status_of


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; returns its exit status, which `cli.running` explains."""
    given = sys.argv[1:] if arguments is None else arguments
    if not made_writable():
        return TROUBLE
    output = Output(as_json="--json" in given)
    try:
        return app.main(given, prog_name="inorder", standalone_mode=False) or 0
    except InorderError as error:
        output.error(str(error), record_of_error(error))
        return status_of(error)
    except click.ClickException as error:
        return _refused(error, output)
    except (click.Abort, KeyboardInterrupt):
        output.note("interrupted; no messages are held")
        return INTERRUPTED
    except OSError as error:  # from a file that is read or written; Click handles a closed pipe and exits with status 1
        text = bounded(f"{error.filename or 'input or output'}: {error.strerror or error}")
        output.error(text, {"error": text, "class": type(error).__name__, "exit_status": TROUBLE})
        give_up_output()
        return TROUBLE


def _refused(error: click.ClickException, output: Output) -> int:
    """Reports a usage error; outside --json the usage of the command comes first."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return WRONG
    text = bounded(error.format_message().replace("\n\t", " "))  # Click puts each choice on a line of its own
    if isinstance(error, click.UsageError) and error.ctx is not None and not output.as_json:
        for line in error.ctx.get_usage().splitlines():
            output.note(line)
        text = f"{text if text[-1] in '.?!' else text + '.'} See '{error.ctx.command_path} --help'."
    output.error(text, {"error": text, "class": type(error).__name__, "exit_status": WRONG})
    return WRONG
