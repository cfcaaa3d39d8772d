"""When a test runs, and on which stores.

`make test` runs the unmarked tests, on SQLite. `make gate` adds those marked `gate`, which start servers or processes,
and runs those marked `every_store` on PostgreSQL, in memory and on a remote store, too. `make nightly` runs the rest,
marked `nightly`.

A test that takes the fixture `kind`, `store` or `qm` runs on SQLite, and each night on SQLite without the store's
shortcuts. Mark it `every_store` only if a store's own statements, locks or lists could break it and no scenario table
would notice.
"""

from __future__ import annotations

import pytest
from _pytest.mark import ParameterSet

gate = pytest.mark.gate
nightly = pytest.mark.nightly
every_store = pytest.mark.every_store

LONG_WAY = "sqlite-long-way"
REMOTE = "remote"  # a server on the loopback over SQLite
ONCE: list[ParameterSet] = [pytest.param("sqlite"), pytest.param(LONG_WAY, marks=nightly)]
EVERY: list[ParameterSet] = [
    *ONCE,
    pytest.param("memory", marks=gate),
    pytest.param("postgresql", marks=gate),
    pytest.param(REMOTE, marks=gate),
]
ON_BOTH: list[ParameterSet] = [pytest.param("sqlite"), pytest.param("postgresql", marks=gate)]

# Tests marked `every_store` that do not run on a remote store: files, or single tests, with the reason.
OBJECT = "it makes calls of two connections on one store object; a store elsewhere has one object for each connection"
INSIDE = "it reaches into the engine or breaks it; the server's engine is that of SQLite"
OF_SERVERS = "only servers make these calls, with the store itself"
RESTART = "it goes on with a connection that a restart of the queue manager has ended"
USERS = "it creates users, which never travel"
HOOKS = "hooks are called in the server's process"
NOT_REMOTE = {
    "tests/client/test_at_once.py": OF_SERVERS,
    "tests/client/test_authority.py": OF_SERVERS,
    "tests/client/test_history.py": OF_SERVERS,
    "tests/client/test_users.py": OF_SERVERS,
    "tests/client/test_bulk.py": OBJECT,
    "tests/client/test_manager.py::test_an_interrupted_clear_leaves_the_rest": INSIDE,
    "tests/client/test_confirmed.py::test_message_ids_that_the_duplicate_hook_has_seen_are_not_reused": HOOKS,
    "tests/client/test_dead_letters.py::test_letters_are_chosen_by_reason_queue_and_selector": INSIDE,
    "tests/client/test_duplicates.py::test_keys_are_forgotten_in_bounded_steps": INSIDE,
    "tests/client/test_failing_calls.py": INSIDE,
    "tests/client/test_leased_units.py::test_the_number_of_leases_of_a_user_is_limited": "the server has the limit",
    "tests/client/test_leased_units.py::test_the_limit_on_leases_holds_for_those_that_begin_at_once": "the same",
    "tests/client/test_leased_units.py::test_a_waiting_get_looks_again_when_the_next_lease_ends": INSIDE,
    "tests/client/test_looking.py::test_connections_are_listed_with_the_queues_they_have_open": "the server is listed",
    "tests/client/test_strict.py::test_b28_a_strict_wait_looks_again_when_a_blocker_expires_or_is_due": INSIDE,
    "tests/stores/test_agreement.py::test_a_finished_claim_is_held_until_more_is_claimed_ahead": OBJECT,
    "tests/stores/test_agreement.py::test_a_hook_receives_the_bodies_of_staged_messages": HOOKS,
    "tests/stores/test_agreement.py::test_a_hook_is_called_for_several_queues_in_the_order_of_their_names": HOOKS,
    "tests/stores/test_agreement.py::test_r6_2_the_hook_receives_expired_messages_in_the_order_of_their_expiry": HOOKS,
    "tests/stores/test_reserved_ids.py": OBJECT,
    "tests/stores/test_staging.py::test_nonpersistent_messages_survive_a_restart_only_while_they_are_staged": RESTART,
    "tests/stores/test_staging_outside.py::test_a_staging_outlives_its_connection_and_a_restart": RESTART,
    "tests/stores/test_telemetry.py::test_every_event_has_exactly_the_fields_in_the_table": USERS,
    "tests/stores/test_stored_bounds.py": USERS,
}


def kinds_of(test: str) -> list[ParameterSet]:
    """The stores of a test marked `every_store`.

    Args:
        test: the file and the name of the test, as in `NOT_REMOTE`.
    """
    is_left_out = test in NOT_REMOTE or test.partition("::")[0] in NOT_REMOTE
    return [one for one in EVERY if not (is_left_out and one.values == (REMOTE,))]
