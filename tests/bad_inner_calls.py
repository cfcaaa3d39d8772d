"""Bad calls of what a handle has for the package's own files: lines of the table of `test_bad_input.py`."""

from __future__ import annotations

from collections.abc import Sequence

from tests.support import Line

from inorder import GetOptions, Reason
from inorder.errors import ArgumentError, HandleError, NotOpenFor, OptionsError, WrongState

FIRST = GetOptions(browse="first")
INNER_CALLS: dict[str, Sequence[Line]] = {
    "take_group": [
        Line(lambda w: list(w.queue.take_group(None)), ArgumentError, Reason.ARGUMENT_ERROR, "options"),
        Line(lambda w: list(w.queue.take_group({"wait": 1})), ArgumentError, Reason.ARGUMENT_ERROR, "GetOptions"),
        Line(lambda w: list(w.queue.take_group(FIRST)), OptionsError, Reason.OPTIONS_ERROR, "browse"),
        Line(lambda w: list(w.closed.take_group(GetOptions())), HandleError, Reason.HOBJ_ERROR, "Q"),
    ],
    "checked_for": [
        Line(lambda w: w.queue.checked_for("often"), ArgumentError, Reason.ARGUMENT_ERROR, "use"),
        Line(lambda w: w.queue.checked_for([]), ArgumentError, Reason.ARGUMENT_ERROR, "input or output or browse"),
        Line(lambda w: w.browser.checked_for("input"), NotOpenFor, Reason.NOT_OPEN_FOR_INPUT, "input"),
        Line(lambda w: w.closed.checked_for("browse"), HandleError, Reason.HOBJ_ERROR, "Q"),
    ],
    "opened_for": [
        Line(lambda w: w.queue.opened_for("often"), ArgumentError, Reason.ARGUMENT_ERROR, "'often'"),
        Line(lambda w: w.browser.opened_for("output"), NotOpenFor, Reason.NOT_OPEN_FOR_OUTPUT, "output"),
    ],
    "withdraw": [
        Line(lambda w: w.queue.withdraw(None), ArgumentError, Reason.ARGUMENT_ERROR, "before"),
        Line(lambda w: w.queue.withdraw(w.queue.put_state, whole_group=1), ArgumentError, Reason.OPTIONS_ERROR, "who"),
        Line(lambda w: w.queue.withdraw(w.queue.put_state), WrongState, Reason.WRONG_STATE, "nothing open"),
    ],
}
