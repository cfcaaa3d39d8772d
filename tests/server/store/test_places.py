"""The store objects of a worker."""

from __future__ import annotations

import asyncio
from pathlib import Path

from inorder.server.store.places import Places


def test_they_may_be_closed_twice(tmp_path: Path) -> None:
    async def closed_twice() -> None:
        places = Places(str(tmp_path / "store.db"))
        places.take().begin()
        await places.close()
        await places.close()

    asyncio.run(closed_twice())
