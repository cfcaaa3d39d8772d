"""The pages of errors and of reason codes, read off `inorder.errors`, `inorder.reasons` and the calls that use them."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from inorder import errors
from inorder.errors import REASON_TEXT, CallerError, InorderError, QueueCondition, Reason, StoreError

from .markdown import code, page, table
from .remedies import REMEDIES

SOURCE = Path(inspect.getfile(errors)).parent
OWN_FROM = 9000
# Reasons whose error a call does not name beside them; "warning": on the result, nothing is raised.
COMES_AS: dict[str, tuple[str, ...]] = {
    "NONE": (),
    "BACKOUT_THRESHOLD_REACHED": ("reason of a dead letter",),
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
}

FAULTS = {
    CallerError: "The caller's mistakes",
    QueueCondition: "Conditions of the queue",
    StoreError: "Trouble with the store",
}
ERRORS = """\
Every error of this package is an `InorderError`. Its class says whose fault it is and what to do; its `reason` says
exactly what happened, with MQ's number where MQ has one ([all reason codes](reasons.md)). What the caller may want to
act on is data, readable as attributes: `pending.kind`, `unknown.nearest`. A call that fails has changed nothing. A
warning never raises: it is on the result.

```python
import inorder

with inorder.connect() as qm:
    qm.create_queue("ORDERS")
    try:
        qm.get("ORDER")
    except inorder.UnknownQueue as error:
        print(error.reason.value, error.reason_name, error.nearest)
```

[Formats](api/formats.md) and [MQSC](api/mqsc.md) have errors of their own, for what files say that are read.

The command ends with status 1 for a condition of the queue, 2 for a caller's mistake, 3 for trouble with the store."""

REASONS = """\
A reason is an `inorder.Reason`, an integer with a name. Those up to 8999 are IBM MQ's, under MQ's names without
`MQRC_`; those from 9001 are our own. *Comes as* is the [error](errors.md) that carries it; *warning* means that the
call is done and its result says so. A reason without either is MQ's, and no call here has a use for it yet."""


def classes() -> list[type[InorderError]]:
    """The tree of errors, as it is written down."""
    return [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, InorderError)]


def errors_page() -> str:
    parts = [ERRORS]
    for root, title in FAULTS.items():
        members = [each for each in classes() if issubclass(each, root)]
        parts += [f"## {title}", table(("error, reason", "when", "what to do"), map(_error_row, members))]
    return page("Errors", *parts)


def _error_row(kind: type[InorderError]) -> tuple[str, ...]:
    return (
        f"{code(kind.__name__)}<br>{kind.reason.value} {kind.reason.name}",
        (inspect.getdoc(kind) or "").partition("\n")[0],
        REMEDIES[kind.__name__],
    )


def reasons_page() -> str:
    own = [each for each in Reason if each > OWN_FROM]
    theirs = [each for each in Reason if each < OWN_FROM]
    headings = ("number", "name", "meaning", "comes as")
    return page(
        "Reason codes",
        REASONS,
        "## Our own",
        table(headings, map(_reason_row, own)),
        "## MQ's",
        table(headings, map(_reason_row, theirs)),
    )


def _reason_row(reason: Reason) -> tuple[str, ...]:
    comes_as = COMES_AS.get(reason.name) or sorted(raised().get(reason.name, ()))
    shown = [each if " " in each or each == "warning" else code(each) for each in comes_as]
    return str(reason.value), code(reason.name), REASON_TEXT[reason], ", ".join(shown)


@cache
def raised() -> dict[str, set[str]]:
    """The errors of each reason: that of the class, and what calls name side by side."""
    found = {kind.reason.name: {kind.__name__} for kind in reversed(classes())}
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            if kind := _error_of(call):
                for reason in reasons_in(call):
                    found.setdefault(reason, set()).add(kind)
    return found


def _error_of(call: ast.Call) -> str | None:
    return _errors_by_call().get(call.func.id) if isinstance(call.func, ast.Name) else None


@cache
def _errors_by_call() -> dict[str, str]:
    return {kind.__name__: kind.__name__ for kind in classes()} | {"bad_argument": "ArgumentError"}


def reasons_in(tree: ast.AST) -> Iterator[str]:
    """The names in `Reason.NAME`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Reason":
            yield node.attr


def used() -> set[str]:
    """The reasons that any file names, but the list of them."""
    return {
        reason
        for path in SOURCE.rglob("*.py")
        if path.name != "reasons.py"
        for reason in reasons_in(ast.parse(path.read_text(encoding="utf-8")))
        if reason in Reason.__members__
    }
