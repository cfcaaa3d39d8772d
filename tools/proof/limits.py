"""Makes the store's limits small, so that short work reaches them: steps, reserved numbers, a long log."""

from __future__ import annotations

from inorder.stores.engine import operation
from inorder.stores.sql import backend, leftovers
from inorder.stores.sqlite import log


def make_small() -> None:
    """Applies to the stores that this process opens from now on."""
    operation.RESERVE, backend.DRAWN_MAX = 20, 5
    leftovers.STEP_CONTENTS = 2
    log.LONG_PAGES = 200
