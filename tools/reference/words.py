"""The commands and attributes of MQ that inorder has, from the table in `inorder.mq.words`."""

from __future__ import annotations

from collections.abc import Mapping

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
    """The parts of docs/how-to/from-ibm-mq.md."""
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
