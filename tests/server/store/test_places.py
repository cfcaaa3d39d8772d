"""The store objects of a worker."""

from __future__ import annotations

from pathlib import Path

from inorder.server.store.places import Places


async def test_they_may_be_closed_twice(tmp_path: Path) -> None:
    places = Places(str(tmp_path / "store.db"))
    places.take().begin()
    await places.close()
    await places.close()
