"""Public calls that `test_bad_input.py` has no line for, each with the reason."""

from __future__ import annotations

from tests.bad_operator_calls import OPERATOR_EXEMPT

IN_BULK = "in tests/test_bulk.py"
MANAGER_EXEMPT = {
    **dict.fromkeys(
        "finish_claims in_ledger leave_claimed_group release_claims settle_staging undo_staging".split(), IN_BULK
    ),
    **OPERATOR_EXEMPT,
    "abandon": "takes no argument",
    "back_out": "takes no argument",
    "close": "takes no argument",
    "claims": "takes no argument",
    "close_queue": "a queue that is not open is no mistake",
    "commit": "takes no argument",
    "manager_attributes": "takes no argument",
    "open_growing": "for the package itself, which gives options that have been checked",
    "queues": "takes no argument",
    "stop": "takes no argument",
    "unit_of_work": "takes no argument",
}
HANDLE_EXEMPT = {
    "opened_for": "for bulk.py, takes a use that it knows",
    "checked_for": "for the connection, which gives options that have been checked",
    "end_group": "for groups.py, takes no argument",
    "go_on": "for browsing.py, which gives options that have been checked",
    "take_group": "for groups.py, which gives options that have been checked",
    "withdraw": "for groups.py, takes a state that a handle had",
}
