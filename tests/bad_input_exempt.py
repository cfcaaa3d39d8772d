"""Public calls that `test_bad_input.py` has no line for, each with the reason."""

from __future__ import annotations

from tests.bad_operator_calls import OPERATOR_EXEMPT

IN_BULK = "in tests/test_bulk.py"
MANAGER_EXEMPT = {
    **dict.fromkeys(
        "finish_claims in_ledger last_settled leave_claimed_group release_claims settle_staging undo_staging".split(),
        IN_BULK,
    ),
    **OPERATOR_EXEMPT,
    "abandon": "takes no argument",
    "tell": "for workers, which give what stores/telemetry.py lists",
    **dict.fromkeys("back_out give_up".split(), "in tests/test_retries.py"),
    "worker": "in tests/test_work.py",
    "close": "takes no argument",
    "claims": "takes no argument",
    "close_queue": "a queue that is not open is no mistake",
    "commit": "takes no argument",
    "manager_attributes": "takes no argument",
    "queues": "takes no argument",
    **dict.fromkeys("request replies reply serve".split(), "in tests/test_requesting.py"),
    **dict.fromkeys(
        "create_process alter_process delete_process process processes".split(), "in tests/test_processes.py"
    ),
    **dict.fromkeys("dead_letters replay discard_dead report".split(), "in tests/test_dead_letters.py"),
    "bury": "in tests/test_burying.py",
    **dict.fromkeys("lease resume_lease end_lease".split(), "in tests/test_leased_units.py"),
    **dict.fromkeys(
        "create_user alter_user delete_user user users create_token token tokens revoke_token identify".split(),
        "in tests/test_users.py",
    ),
    **dict.fromkeys("acting acts".split(), "in tests/test_acts.py"),
    "stop": "takes no argument",
    "end_waits": "takes no argument",
    "promises": "takes no argument",
    "close_unused_queues": "takes no argument",
    "get_if": "in tests/test_at_once.py",
    "on_behalf_of": "in tests/test_on_behalf.py",
    "unit_of_work": "takes no argument",
}
HANDLE_EXEMPT = {
    "get_if": "for lending.py, which has checked what it gives",
    "given": "for the connection, takes no argument",
    "end_group": "for groups.py, takes no argument",
    "browse_on": "for browsing.py, which gives options that have been checked",
    "go_on": "for browsing.py, which gives options that have been checked",
}
