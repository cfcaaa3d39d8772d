"""The calls of `inorder.Queue` and `GroupWriter`, awaitable; `python -m tools.reference` writes it.

Each has the signature of its namesake, where all about it is said, and passes it on: `_call`, or `_get` if it may wait.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from ..client import groups, queue
from ..client.keywords import BROWSE_FIRST, BROWSE_NEXT, PutCall, get_options
from ..errors import Reason
from ..model.attributes import QueueAttributes, QueueStatus
from ..model.message import Descriptor, Got, Message, UniqueId
from ..model.options import DEFAULT_GET, EVERYTHING, BrowseKeywords, GetKeywords, GetOptions, Match, PutOptions
from ..model.selecting import NO_CHANGES, Selector
from ..rules.puts import PutResult
from ..stores.seam.records import Locked

if TYPE_CHECKING:
    from typing_extensions import Unpack

P = ParamSpec("P")
T = TypeVar("T")


class QueueCalls(ABC):
    """The calls of `inorder.Queue` that are alike for tasks."""

    async def put(
        self,
        body: bytes | bytearray | memoryview | Message,
        options: PutOptions | None = None,
        **keywords: Unpack[PutCall],
    ) -> PutResult:
        """Puts one message."""
        return await self._call(queue.Queue.put, body, options, **keywords)

    async def put_many(
        self,
        messages: Iterable[bytes | bytearray | memoryview | Message],
        options: PutOptions | None = None,
        **keywords: Unpack[PutCall],
    ) -> list[PutResult]:
        """Puts messages in this order as one step: all, or none if one is refused."""
        return await self._call(queue.Queue.put_many, messages, options, **keywords)

    async def end_group(self) -> None:
        """Marks the message put last in logical order as the last of its group, all its pieces."""
        await self._call(queue.Queue.end_group)

    async def get(self, options: GetOptions | None = None, **keywords: Unpack[GetKeywords]) -> Got:
        """Removes one message and returns it. Options are given by keyword, or as `GetOptions`."""
        return await self._get(
            queue.Queue.get,
            get_options(keywords, options, DEFAULT_GET),
        )

    async def get_many(
        self, count: int, options: GetOptions | None = None, **keywords: Unpack[GetKeywords]
    ) -> list[Got]:
        """Removes up to `count` messages as one step, as that many gets would; at least one, or it raises."""
        return await self._get(queue.Queue.get_many, get_options(keywords, options, DEFAULT_GET), count)

    async def browse_first(self, options: GetOptions | None = None, **keywords: Unpack[BrowseKeywords]) -> Got:
        """Copies the first suitable message and puts the cursor on it. Errors as `get`, and 2036."""
        return await self._get(
            queue.Queue.browse_first,
            get_options(keywords, options, BROWSE_FIRST),
        )

    async def browse_next(self, options: GetOptions | None = None, **keywords: Unpack[BrowseKeywords]) -> Got:
        """Copies the next suitable message behind the cursor, and moves it there."""
        return await self._get(
            queue.Queue.browse_next,
            get_options(keywords, options, BROWSE_NEXT),
        )

    async def browse_cursor(self, options: GetOptions | None = None, **keywords: Unpack[BrowseKeywords]) -> Got:
        """Copies the message under the cursor again. Raises NoMessageUnderCursor 2034 if it is not there."""
        return await self._get(
            queue.Queue.browse_cursor,
            get_options(keywords, options, BROWSE_FIRST),
        )

    async def leave_group(self, *, browsing: bool = False) -> bool:
        """Leaves the group, or message in segments, that this handle is inside, without closing it."""
        return await self._call(queue.Queue.leave_group, browsing=browsing)

    async def unlock(self, uid: UniqueId | None = None, *, lock_id: int = 0) -> Reason | None:
        """Frees the message that this handle browsed with lock; warning 2209 if there is none."""
        return await self._call(queue.Queue.unlock, uid, lock_id=lock_id)

    async def browse_token(self) -> str:
        """Where a strict browse of this handle stands, to be given to `resume` of any handle of this queue."""
        return await self._call(queue.Queue.browse_token)

    async def resume(self, token: str) -> None:
        """Puts the browse cursor where a token says; the next `browse_next`, strict, goes on from there."""
        await self._call(queue.Queue.resume, token)

    async def attributes(self) -> QueueAttributes:
        """The attributes of the queue as opened; an alias has its own."""
        return await self._call(queue.Queue.attributes)

    async def status(self) -> QueueStatus:
        """Depth and open counts, after discarding what has expired."""
        return await self._call(queue.Queue.status)

    async def set(self, changes: Mapping[Selector, object] = NO_CHANGES, /, **named: Any) -> None:
        """Changes the attributes that a program may change on a queue: `get_allowed`, `put_allowed` (MQSET)."""
        await self._call(queue.Queue.set, changes, **named)

    async def close(self, *, delete: bool = False, purge: bool = False) -> Reason | None:
        """Closes the handle; its lock and marks go, its unit of work goes on."""
        return await self._call(queue.Queue.close, delete=delete, purge=purge)

    async def confirm_put(self, uid: UniqueId, *, confirm_id: int = 0) -> Reason | None:
        """Makes a message that was put under a confirm id visible; on an order=commit queue it is placed now."""
        return await self._call(queue.Queue.confirm_put, uid, confirm_id=confirm_id)

    async def confirm_get(self, uid: UniqueId, *, confirm_id: int = 0) -> Reason | None:
        """Removes for good a message that was got under a confirm id."""
        return await self._call(queue.Queue.confirm_get, uid, confirm_id=confirm_id)

    async def browse_and_lock(
        self, match: Match = EVERYTHING, *, confirm_id: int = 0, most: int | None = None, lease: float | None = None
    ) -> Locked:
        """Copies the available messages that match and locks them all under one new lock id."""
        return await self._call(queue.Queue.browse_and_lock, match, confirm_id=confirm_id, most=most, lease=lease)

    async def unique_ids(self, *, confirm_id: int = 0, lock_id: int = 0) -> list[UniqueId]:
        """The unique ids of what stands under a confirm id, or under a lock id: one of the two is given."""
        return await self._call(queue.Queue.unique_ids, confirm_id=confirm_id, lock_id=lock_id)

    async def delete(self, uid: UniqueId, *, lock_id: int = 0) -> None:
        """Removes one message, unlocked, or locked under `lock_id`. Raises: NotFound, WrongState, LockMismatch."""
        await self._call(queue.Queue.delete, uid, lock_id=lock_id)

    async def undo(self, confirm_id: int) -> int:
        """Takes back everything put, got or locked on this queue under a confirm id; of how many messages."""
        return await self._call(queue.Queue.undo, confirm_id)

    async def release_lock(self, lock_id: int) -> int:
        """The operator's way: unlocks all that a lock id still locks; how many. Raises: NotFound."""
        return await self._call(queue.Queue.release_lock, lock_id)

    @abstractmethod
    async def _call(
        self, method: Callable[Concatenate[queue.Queue, P], T], /, *given: P.args, **named: P.kwargs
    ) -> T: ...

    @abstractmethod
    async def _get(self, method: Callable[..., T], options: GetOptions, /, *given: object) -> T: ...


class GroupCalls(ABC):
    """The calls of `inorder.GroupWriter` that are alike for tasks."""

    async def put(
        self, body: bytes | bytearray | memoryview | Message, *, last: bool = False, **fields: Unpack[Descriptor]
    ) -> PutResult:
        """Puts the next message of the group; the queue manager gives the group id and the sequence number."""
        return await self._call(groups.GroupWriter.put, body, last=last, **fields)

    @abstractmethod
    async def _call(
        self, method: Callable[Concatenate[groups.GroupWriter, P], T], /, *given: P.args, **named: P.kwargs
    ) -> T: ...
