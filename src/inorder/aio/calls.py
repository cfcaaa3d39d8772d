"""The calls of a connection, awaitable.

`awaited` makes one of its namesake, where all about it is said; type checkers and `help()` see the signature of that.
What a connection has, and is not among these calls, is written by hand: blocks, loops, and what waits.
"""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from ..client.keywords import get_options
from ..model.message import Got
from ..model.options import DEFAULT_GET, GetKeywords, GetOptions
from .lanes import Connection

if TYPE_CHECKING:
    from typing_extensions import Unpack

P = ParamSpec("P")
T = TypeVar("T")


class Calls(ABC):
    """What has awaitable calls."""

    @abstractmethod
    async def _call(self, method: Callable[..., T], /, *given: Any, **named: Any) -> T:
        """Has a thread make a call on what this stands for."""


def awaited(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """The same call for tasks; a method of `Calls`."""

    @functools.wraps(method)
    async def call(self: Calls, /, *given: P.args, **named: P.kwargs) -> T:
        return await self._call(method, *given, **named)

    call.__doc__ = (method.__doc__ or "").split("\n\n")[0]
    return call


def listed(call: Callable[P, Iterator[T]]) -> Callable[P, list[T]]:
    """The call of an iterator that is gone through at once."""

    @functools.wraps(call)
    def as_list(*given: P.args, **named: P.kwargs) -> list[T]:
        return list(call(*given, **named))

    told = str(call.__annotations__["return"]).replace("Iterator", "list", 1)
    as_list.__signature__ = inspect.signature(call).replace(return_annotation=told)  # type: ignore[attr-defined]
    return as_list


class ManagerCalls(Calls):
    """The calls of `inorder.QueueManager` that are alike for tasks."""

    put = awaited(Connection.put)
    put_json = awaited(Connection.put_json)
    put_many = awaited(Connection.put_many)
    leave_group = awaited(Connection.leave_group)
    confirm_put = awaited(Connection.confirm_put)
    confirm_get = awaited(Connection.confirm_get)
    browse_and_lock = awaited(Connection.browse_and_lock)
    unlock = awaited(Connection.unlock)
    delete = awaited(Connection.delete)
    undo = awaited(Connection.undo)
    release_lock = awaited(Connection.release_lock)
    unique_ids = awaited(Connection.unique_ids)
    commit = awaited(Connection.commit)
    back_out = awaited(Connection.back_out)
    prepare = awaited(Connection.prepare)
    stop = awaited(Connection.stop)
    create_queue = awaited(Connection.create_queue)
    create_alias = awaited(Connection.create_alias)
    create_model = awaited(Connection.create_model)
    create_remote_queue = awaited(Connection.create_remote_queue)
    alter_queue = awaited(Connection.alter_queue)
    delete_queue = awaited(Connection.delete_queue)
    clear_queue = awaited(Connection.clear_queue)
    queues = awaited(Connection.queues)
    attributes = awaited(Connection.attributes)
    status = awaited(Connection.status)
    depth = awaited(Connection.depth)
    inquire = awaited(Connection.inquire)
    manager_attributes = awaited(Connection.manager_attributes)
    alter_manager = awaited(Connection.alter_manager)
    create_process = awaited(Connection.create_process)
    alter_process = awaited(Connection.alter_process)
    delete_process = awaited(Connection.delete_process)
    process = awaited(Connection.process)
    processes = awaited(Connection.processes)
    create_user = awaited(Connection.create_user)
    alter_user = awaited(Connection.alter_user)
    delete_user = awaited(Connection.delete_user)
    user = awaited(Connection.user)
    users = awaited(Connection.users)
    create_token = awaited(Connection.create_token)
    tokens = awaited(Connection.tokens)
    token = awaited(Connection.token)
    revoke_token = awaited(Connection.revoke_token)
    identify = awaited(Connection.identify)
    reply = awaited(Connection.reply)
    report = awaited(Connection.report)
    gaps = awaited(Connection.gaps)
    overview = awaited(Connection.overview)
    dropped = awaited(Connection.dropped)
    order_view = awaited(Connection.order_view)
    settle = awaited(Connection.settle)
    end_lease = awaited(Connection.end_lease)
    units = awaited(Connection.units)
    waits = awaited(Connection.waits)
    locks = awaited(Connection.locks)
    connections = awaited(Connection.connections)
    check = awaited(Connection.check)
    discard_expired = awaited(Connection.discard_expired)
    backup = awaited(Connection.backup)
    claims = awaited(Connection.claims)
    finish_claims = awaited(Connection.finish_claims)
    release_claims = awaited(Connection.release_claims)
    leave_claimed_group = awaited(Connection.leave_claimed_group)
    settle_staging = awaited(Connection.settle_staging)
    undo_staging = awaited(Connection.undo_staging)
    in_ledger = awaited(Connection.in_ledger)
    last_settled = awaited(Connection.last_settled)
    bury = awaited(Connection.bury)
    check_store = awaited(Connection.check_store)
    acts = awaited(listed(Connection.acts))
    look = awaited(listed(Connection.look))

    async def get(self, queue: str, options: GetOptions | None = None, **keywords: Unpack[GetKeywords]) -> Got:
        """Removes one message and returns it; see `Queue.get`."""
        return await self._get(Connection.get, get_options(keywords, options, DEFAULT_GET), queue)

    async def get_many(
        self, queue: str, count: int, options: GetOptions | None = None, **keywords: Unpack[GetKeywords]
    ) -> list[Got]:
        """Removes up to `count` messages; see `Queue.get_many`."""
        return await self._get(Connection.get_many, get_options(keywords, options, DEFAULT_GET), queue, count)

    @abstractmethod
    async def _get(self, method: Callable[..., T], options: GetOptions, queue: str, /, *given: object) -> T:
        """The same of a get, which may wait."""
