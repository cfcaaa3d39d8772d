"""The identity of a process: constant during its life, and different in a forked child."""

from __future__ import annotations

import os
import sys
from types import FrameType

import pytest

from inorder.support import forks


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no process is forked here")
def test_a_child_and_a_grandchild_each_have_their_own_identity() -> None:
    ours = forks.current
    child = os.fork()
    if not child:
        of_child = forks.current
        grandchild = os.fork()
        if not grandchild:
            os._exit(int(forks.current is of_child))
        os._exit(int(of_child is ours) + os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1]))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert forks.current is ours


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no process is forked here")
def test_a_forked_child_has_its_own_identity_despite_an_exception_from_outside() -> None:
    def interrupt(frame: FrameType, _event: str, _argument: object) -> None:
        if frame.f_code.co_filename == forks.__file__:
            raise KeyboardInterrupt

    ours, traced = forks.current, sys.gettrace()
    sys.settrace(interrupt)
    try:
        child = os.fork()
        if not child:
            os._exit(int(forks.current is ours))
    finally:
        sys.settrace(traced)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
