"""The tables of errors and reason codes, read off `inorder.errors`, `inorder.reasons` and the calls that use them."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from inorder import errors
from inorder.errors import REASON_TEXT, CallerError, InorderError, QueueCondition, Reason, StoreError
from inorder.model.parameters import ParameterKind

from .markdown import Parts, code, table
from .remedies import REMEDIES

SOURCE = Path(inspect.getfile(errors)).parent
OWN_FROM = 9000
# Reasons without the name of their error in the same call. "warning": the result has the reason, and nothing is raised.
COMES_AS: dict[str, tuple[str, ...]] = {
    "NONE": (),
    "BACKOUT_THRESHOLD_REACHED": ("reason of a dead letter",),
    "TASK_UNKNOWN": ("reason of a dead letter",),
    "TASK_ARGUMENTS": ("reason of a dead letter",),
    "JOB_FAILED": ("`inorder.work.JobFailed`",),
    "FEEDBACK_ERROR": ("ArgumentError",),
    "TRIGGER_CONTROL_ERROR": ("ArgumentError",),
    "TRIGGER_DEPTH_ERROR": ("ArgumentError",),
    "TRIGGER_MSG_PRIORITY_ERR": ("ArgumentError",),
    "INHIBIT_VALUE_ERROR": ("ArgumentError",),
    "MSG_TOO_BIG_FOR_Q_MGR": ("MessageTooBig",),
    "NOT_OPEN_FOR_BROWSE": ("NotOpenFor",),
    "PRIORITY_EXCEEDS_MAXIMUM": ("warning",),
    "PROPERTY_NAME_LENGTH_ERR": ("ArgumentError",),
    "Q_MGR_NAME_ERROR": ("ArgumentError",),
    "TRUNCATED_MSG_ACCEPTED": ("warning",),
    "TRUNCATED_MSG_FAILED": ("warning",),
    "INCONSISTENT_PERSISTENCE": ("InconsistentCall", "warning"),
    "INCOMPLETE_GROUP": ("InconsistentCall", "warning"),
    "INCOMPLETE_MSG": ("InconsistentCall", "warning"),
    "INCONSISTENT_UOW": ("InconsistentCall", "warning"),
    "NO_MSG_LOCKED": ("warning",),
    "INCONSISTENT_CCSIDS": ("warning",),
    "INCONSISTENT_ENCODINGS": ("warning",),
    "NOT_FOUND": ("NotFound", "warning"),
    "DUPLICATE_PUT": ("warning",),
    "OUTCOME_PENDING": ("warning",),
}

FAULTS = {"caller": CallerError, "queue": QueueCondition, "store": StoreError}


def classes() -> list[type[InorderError]]:
    """The tree of errors, in the order of its definition."""
    return [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, InorderError)]


def error_parts() -> Parts:
    """The parts of docs/reference/errors.md."""
    headings = ("error, reason", "when", "what to do")
    return {
        name: table(headings, (_error_row(each) for each in classes() if issubclass(each, root)))
        for name, root in FAULTS.items()
    }


def _error_row(kind: type[InorderError]) -> tuple[str, ...]:
    return (
        f"{code(kind.__name__)}<br>{kind.reason.value} {kind.reason.name}",
        (inspect.getdoc(kind) or "").partition("\n")[0],
        REMEDIES[kind.__name__],
    )


def reason_parts() -> Parts:
    """The parts of docs/reference/reasons.md: our own reasons, and MQ's."""
    headings = ("number", "name", "meaning", "comes as")
    return {
        "own": table(headings, (_reason_row(each) for each in Reason if each > OWN_FROM)),
        "mq": table(headings, (_reason_row(each) for each in Reason if each < OWN_FROM)),
    }


def _reason_row(reason: Reason) -> tuple[str, ...]:
    comes_as = COMES_AS.get(reason.name) or sorted(raised().get(reason.name, ()))
    shown = [each if " " in each or each == "warning" else code(each) for each in comes_as]
    return str(reason.value), code(reason.name), REASON_TEXT[reason], ", ".join(shown)


@cache
def raised() -> dict[str, set[str]]:
    """The errors of each reason: the class with this reason, and the errors that calls raise with it."""
    found = {kind.reason.name: {kind.__name__} for kind in reversed(classes())}
    for _, tree in files_with_reasons():
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            if kind := _error_of(call):
                for reason in reasons_in(call):
                    found.setdefault(reason, set()).add(kind)
    return found


def _error_of(call: ast.Call) -> str | None:
    return _errors_by_call().get(call.func.id) if isinstance(call.func, ast.Name) else None


@cache
def _errors_by_call() -> dict[str, str]:
    refusing = ("bad_argument", "integer", *(kind.__name__ for kind in _kinds(ParameterKind)))
    return {kind.__name__: kind.__name__ for kind in classes()} | dict.fromkeys(refusing, "ArgumentError")


def _kinds(kind: type[ParameterKind[Any]]) -> Iterator[type[ParameterKind[Any]]]:
    """The kinds of parameters, which refuse wrong values."""
    yield kind
    for one in kind.__subclasses__():
        yield from _kinds(one)


@cache
def files_with_reasons() -> list[tuple[Path, ast.Module]]:
    """The files that name `Reason`, parsed once: most of the source does not."""
    texts = ((path, path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py")))
    return [(path, ast.parse(text)) for path, text in texts if "Reason" in text]


def reasons_in(tree: ast.AST) -> Iterator[str]:
    """The names in `Reason.NAME`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Reason":
            yield node.attr


def used() -> set[str]:
    """The reasons that any file names, except their list and the MQI, whose calls return reasons as numbers."""
    return {
        reason
        for path, tree in files_with_reasons()
        if path.name != "reasons.py" and "mqi" not in path.parts
        for reason in reasons_in(tree)
        if reason in Reason.__members__
    }
