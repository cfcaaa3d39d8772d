"""What is made by a call that is awaited, or entered as a block."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from typing_extensions import Self


class Enterable(Protocol):
    """What can be entered."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


B = TypeVar("B", bound=Enterable)


class Entered(Generic[B]):
    """`await` it, or enter it: `async with` makes it and ends it."""

    def __init__(self, make: Callable[[], Awaitable[B]]) -> None:
        self._make = make
        self._made: B | None = None

    def __await__(self) -> Generator[Any, None, B]:
        return self._make().__await__()

    async def __aenter__(self) -> B:
        self._made = await self._make()
        return await self._made.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._made is not None, "it was entered"
        await self._made.__aexit__(kind, error, trace)
