"""What of MQ's commands and attributes inorder has, out of the table in `inorder.mq.words`.

`python -m tools.reference.words` prints how much of each command is covered. With files of IBM's constants, such as
CMQC.py and CMQCFC.py of a client, it also compares the numbers of the table with them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from inorder.mq import words
from inorder.mq.words import MqWord

from .markdown import Parts, codes, table

KINDS: Mapping[str, str] = {
    "queue": "Queues", "manager": "The queue manager", "channel": "Channels", "process": "Processes",
    "qstatus": "DISPLAY QSTATUS", "handle": "DISPLAY QSTATUS TYPE(HANDLE)", "conn": "DISPLAY CONN",
    "chstatus": "DISPLAY CHSTATUS", "qmstatus": "DISPLAY QMSTATUS",
}  # fmt: skip
ZOS = words.reasons()["zos"]


def parts() -> Parts:
    """Of docs/how-to/from-ibm-mq.md."""
    return {"commands": _commands(), "words": "\n".join(_of_kind(kind, title) for kind, title in KINDS.items())}


def _commands() -> str:
    targets = dict.fromkeys(each.target for each in words.commands().values())
    return table(("object", "answered", "refused"), [row for target in targets if (row := _command_row(target))])


def _command_row(target: str) -> tuple[str, ...] | None:
    commands = [each for each in words.commands().values() if each.target == target and each.why != ZOS]
    if not commands:
        return None
    refused: dict[str, list[str]] = {}
    for each in commands:
        refused.setdefault(each.why, []).append(each.verb)
    return target, ", ".join(refused.pop("", [])), "; ".join(f"{', '.join(to)}: {why}" for why, to in refused.items())


def _of_kind(kind: str, title: str) -> str:
    lacking = [word for word in words.lacking(kind).values() if word.why != ZOS]
    idle = [_with_values(word) for word in lacking if word.harmless or word.any_value]
    reasons: dict[str, list[str]] = {}
    for word in lacking:
        if not word.any_value:
            reasons.setdefault(word.why, []).append(word.keyword)
    first = f"**{title}.**" + (f" Without effect: {', '.join(idle)}." if idle else "")
    return "\n".join([first, "", *(f"* {why}: {codes(sorted(found))}" for why, found in reasons.items()), ""])


def _with_values(word: MqWord) -> str:
    if word.any_value:
        return f"`{word.keyword}`"
    values = sorted("' '" if one == "" else str(one) for one in word.harmless if one is not None)
    return f"`{word.keyword}({'|'.join(values)})`" if values else f"`{word.keyword}`"


def coverage() -> Iterable[str]:
    """A line for each command: how many of its words are here, without effect, refused, and only on z/OS."""
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
