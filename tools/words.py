"""python -m tools.words: the supported part of each command of MQ, from the table in `inorder.mq.words`.

With files of IBM's constants, such as CMQC.py and CMQCFC.py of a client, it also compares the numbers of the table with
them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

from inorder.mq import words

ZOS = words.reasons()["zos"]


def coverage() -> Iterable[str]:
    """A line for each command: the number of its words that are supported, without effect, refused, and only on
    z/OS.
    """
    yield f"{'':<20} {'here':>5} {'idle':>5} {'not':>5} {'z/OS':>5}"
    for (verb, target), command in words.commands().items():
        shows = verb == "DISPLAY"
        found = [
            each
            for each in (words.words_of(command.kind).values() if command.kind != words.NONE else ())
            if each.use == "set" or (each.use == "show") == shows
        ]
        counts = dict.fromkeys(("here", "idle", "not", "z/OS"), 0)
        for each in found:
            idle = not shows and (each.harmless or each.any_value)
            counts["z/OS" if each.why == ZOS else "idle" if idle else "not" if each.why or command.why else "here"] += 1
        yield f"{f'{verb} {target}':<20} " + " ".join(f"{count:>5}" for count in counts.values()) + f"  {command.why}"


def differences(constants: str) -> Iterable[str]:
    """The words whose number is not that of their constant in this text of lines like MQIA_SCOPE = 45."""
    known = {name: int(number) for name, number in re.findall(r"^(MQ\w+)\s*=\s*(\d+)", constants, re.MULTILINE)}
    for kind in {each.kind for each in words.commands().values()} | {"handle"}:
        for word in words.words_of(kind).values():
            if word.name in known and known[word.name] != word.number:
                yield f"{kind} {word.keyword}: {word.number} is not {word.name}, {known[word.name]}"
            elif word.name and word.name.startswith("MQ") and "_" in word.name and word.name not in known:
                yield f"{kind} {word.keyword}: there is no {word.name}"


if __name__ == "__main__":
    print(*coverage(), sep="\n")
    if sys.argv[1:]:
        print(*differences("\n".join(Path(each).read_text("utf-8") for each in sys.argv[1:])), sep="\n")
