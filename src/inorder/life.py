"""Which process this is, without a call of the system each time: a child made by fork begins a life of its own."""

from __future__ import annotations

import itertools
import os

current: object = object()
"""Another one in each process; an object that was made in this one keeps it, and compares with `is`."""

# Sets a new `current` at each call. All of it is written in C: an exception from outside (see `locks`) that came into a
# function here would leave the child with the life of its parent.
_begin = map(globals().__setitem__, itertools.repeat("current"), iter(object, None)).__next__

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin)
