"""Msgspec reads a type under one lock if two threads may need it for the first time at once."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from inorder.errors import StoreError
from inorder.stores.remote.rows import BLANK, row_of
from inorder.stores.remote.wire import WireReader
from inorder.support.decoders import building
from inorder.work.arguments import TaskArguments


def task(order_id: int) -> None: ...


@pytest.mark.parametrize(
    ("library", "reader", "call"),
    [
        (msgspec.json, "Decoder", lambda: TaskArguments(task, is_async=False)),
        (msgspec.msgpack, "Decoder", lambda: WireReader(int, lambda _, plain: plain, lambda _: StoreError("no"))),
        (msgspec, "convert", lambda: row_of(list(BLANK))),
    ],
    ids=["of a task", "of a verb", "of a row"],
)
def test_msgspec_reads_a_type_under_the_lock(
    monkeypatch: pytest.MonkeyPatch, library: types.ModuleType, reader: str, call: Callable[[], object]
) -> None:
    real, held = getattr(library, reader), list[bool]()

    def watched(*given: Any, **named: Any) -> Any:
        held.append(building.is_mine)
        return real(*given, **named)

    monkeypatch.setattr(library, reader, watched)
    call()
    assert held == [True]
    assert not building.is_mine
