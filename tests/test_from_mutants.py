"""Rules that `make mutants` could break unnoticed and that no table can express: one test for each.

The language has no empty message, and no table may depend on which of several waiters wakes first.
"""

from __future__ import annotations

import pytest

from inorder import QueueManager
from inorder.errors import CallerError, Reason
from inorder.message import LAST_SEGMENT, SEGMENT
from inorder.testing import run_scenario
from inorder.testing.language import parse

T74 = """
scenario: of two waiters the one that names the message is served, though it came later
qm queue Q                        -> ok
C get wait=forever                -> waits
D get wait=forever match-id=x     -> waits
P put m1 id=x                     -> ok
D resumes                         -> m1
C resumes                         -> waits
P put m2                          -> ok
C resumes                         -> m2
"""


def test_t74_the_waiter_that_names_the_message_is_preferred(kind: str) -> None:
    """R3.27."""
    [scenario] = parse(T74)
    assert run_scenario(scenario, kind) is None


def test_t17_the_last_segment_of_a_message_may_be_empty(qm: QueueManager) -> None:
    """R2.19, T17: it ends the message at the length that the others have."""
    qm.put("Q", b"0123456789", logical=True, flags=SEGMENT)
    assert qm.put("Q", b"", logical=True, flags=LAST_SEGMENT).offset == 10
    assert qm.get("Q", complete=True).body == b"0123456789"
    assert qm.depth("Q") == 0


def test_t28_no_other_segment_may_be_empty(qm: QueueManager) -> None:
    """R2.19, T28."""
    with pytest.raises(CallerError) as refused:
        qm.put("Q", b"", logical=True, flags=SEGMENT)
    assert refused.value.reason is Reason.SEGMENT_LENGTH_ZERO
    assert qm.depth("Q") == 0
