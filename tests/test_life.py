"""Which process this is: the same as long as it lives, and another one in a child made by fork."""

from __future__ import annotations

import os

import pytest

from inorder import life


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no process is forked here")
def test_a_child_made_by_fork_has_a_life_of_its_own() -> None:
    ours = life.current
    child = os.fork()
    if not child:
        os._exit(int(life.current is ours))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert life.current is ours
