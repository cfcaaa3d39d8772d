"""The output of the demonstration, compared with the documents."""

from __future__ import annotations

import os
import sys

COLOURS = {"Y": "\033[36m", "Z": "\033[35m", "": "\033[0m"}


class Screen:
    """Prints, in colour on a terminal, and counts the differences from the documents."""

    def __init__(self) -> None:
        self.colours = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        self.right = self.wrong = 0

    def title(self, text: str) -> None:
        print(f"\n{text}\n{'-' * len(text)}", flush=True)

    def named(self, name: str, group: str, width: int) -> str:
        padded = name.ljust(width)
        return f"{COLOURS.get(group, '')}{padded}{COLOURS['']}" if self.colours else padded

    def check(self, text: str, got: object, documented: object) -> None:
        same = got == documented
        self.right += same
        self.wrong += not same
        wrong = f"NOT AS DOCUMENTED, which is {documented}, but {got}"
        print(f"  {'as documented' if same else self.alarm(wrong)}: {text}", flush=True)

    def alarm(self, text: str) -> str:
        return f"\033[1;31m{text}\033[0m" if self.colours else text
