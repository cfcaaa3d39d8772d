"""Reads, runs and writes MQSC, the script language of IBM MQ's administrators.

`parse` reads a command and does nothing else; `run_script` runs a script on a queue manager; `export_queues` writes
definitions as a script. The command `inorder mqsc` uses these. `import inorder` does not load this package.
"""

from __future__ import annotations

from .commands import Command
from .errors import MqscSyntaxError, Unsupported
from .export import export_channel, export_manager, export_process, export_queue, export_queues
from .lines import Assembler, Source, commands_in
from .parsing import parse
from .running import Answer, run_command, run_commands, run_script
from .showing import columns

__all__ = [
    "Answer",
    "Assembler",
    "Command",
    "MqscSyntaxError",
    "Source",
    "Unsupported",
    "columns",
    "commands_in",
    "export_channel",
    "export_manager",
    "export_process",
    "export_queue",
    "export_queues",
    "parse",
    "run_command",
    "run_commands",
    "run_script",
]
