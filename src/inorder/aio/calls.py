"""The calls of a connection, awaitable.

`awaited` makes each from the ordinary call of the same name, which documents it and has its signature.
The other members of a connection are written by hand: blocks, loops, and calls that wait.
"""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from ..client import admin, bulk, dead_letters, inspection
from ..client import users as accounts
from ..client.keywords import get_options
from ..model.message import Got
from ..model.options import DEFAULT_GET, GetKeywords, GetOptions
from .lanes import Connection

if TYPE_CHECKING:
    from typing_extensions import Unpack

P = ParamSpec("P")
T = TypeVar("T")


class Calls(ABC):
    """The base of objects with awaitable calls."""

    @abstractmethod
    async def _call(self, method: Callable[..., T], /, *given: Any, **named: Any) -> T:
        """Makes a call in a thread on the object that this one wraps."""


def awaited(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Returns the awaitable form of a call, a method of `Calls`."""

    @functools.wraps(method)
    async def call(self: Calls, /, *given: P.args, **named: P.kwargs) -> T:
        return await self._call(method, *given, **named)

    call.__doc__ = (method.__doc__ or "").split("\n\n")[0]
    return call


def listed(call: Callable[P, Iterator[T]]) -> Callable[P, list[T]]:
    """Returns a call that lists the iterator of another call."""

    @functools.wraps(call)
    def as_list(*given: P.args, **named: P.kwargs) -> list[T]:
        return list(call(*given, **named))

    told = str(call.__annotations__["return"]).replace("Iterator", "list", 1)
    as_list.__signature__ = inspect.signature(call).replace(return_annotation=told)  # type: ignore[attr-defined]
    return as_list


class ManagerCalls(Calls):
    """The calls of `inorder.QueueManager` that tasks await unchanged."""

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
    commit = awaited(Connection.commit)
    back_out = awaited(Connection.back_out)
    prepare = awaited(Connection.prepare)
    settle = awaited(Connection.settle)
    create_queue = awaited(Connection.create_queue)
    alter_queue = awaited(Connection.alter_queue)
    delete_queue = awaited(Connection.delete_queue)
    queues = awaited(Connection.queues)
    attributes = awaited(Connection.attributes)
    depth = awaited(Connection.depth)
    inquire = awaited(Connection.inquire)
    reply = awaited(Connection.reply)
    report = awaited(Connection.report)

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
        """Makes a get, which may wait."""


class AwaitedNamespace(Calls):
    """A group of calls under one name."""

    _of: Callable[[Any], Any]

    def __init__(self, owner: Calls) -> None:
        self._owner = owner

    async def _call(self, method: Callable[..., T], /, *given: Any, **named: Any) -> T:
        of = self._of

        def call(one: object, /, *given: Any, **named: Any) -> T:
            return method(of(one), *given, **named)

        return await self._owner._call(call, *given, **named)


class Admin(AwaitedNamespace):
    """Administration, as `qm.admin` of an `inorder.QueueManager`."""

    _of = admin.Admin
    stop = awaited(admin.Admin.stop)
    manager_attributes = awaited(admin.Admin.manager_attributes)
    alter_manager = awaited(admin.Admin.alter_manager)
    create_process = awaited(admin.Admin.create_process)
    alter_process = awaited(admin.Admin.alter_process)
    delete_process = awaited(admin.Admin.delete_process)
    process = awaited(admin.Admin.process)
    processes = awaited(admin.Admin.processes)
    clear_queue = awaited(admin.Admin.clear_queue)
    retry_now = awaited(admin.Admin.retry_now)
    release_lock = awaited(admin.Admin.release_lock)
    settle_in_doubt = awaited(admin.Admin.settle_in_doubt)
    forget_in_doubt = awaited(admin.Admin.forget_in_doubt)
    end_lease = awaited(admin.Admin.end_lease)
    check = awaited(admin.Admin.check)
    check_store = awaited(admin.Admin.check_store)
    discard_expired = awaited(admin.Admin.discard_expired)
    backup = awaited(admin.Admin.backup)


class Accounts(AwaitedNamespace):
    """Users of servers and their tokens, as `qm.accounts` of an `inorder.QueueManager`."""

    _of = accounts.Accounts
    create_user = awaited(accounts.Accounts.create_user)
    alter_user = awaited(accounts.Accounts.alter_user)
    delete_user = awaited(accounts.Accounts.delete_user)
    user = awaited(accounts.Accounts.user)
    users = awaited(accounts.Accounts.users)
    create_token = awaited(accounts.Accounts.create_token)
    tokens = awaited(accounts.Accounts.tokens)
    token = awaited(accounts.Accounts.token)
    revoke_token = awaited(accounts.Accounts.revoke_token)
    identify = awaited(accounts.Accounts.identify)
    acts = awaited(listed(accounts.Accounts.acts))


class Bulk(AwaitedNamespace):
    """Claims and staged rows, as `qm.bulk` of an `inorder.QueueManager`."""

    _of = bulk.Bulk
    claims = awaited(bulk.Bulk.claims)
    finish_claims = awaited(bulk.Bulk.finish_claims)
    release_claims = awaited(bulk.Bulk.release_claims)
    leave_claimed_group = awaited(bulk.Bulk.leave_claimed_group)
    settle_staging = awaited(bulk.Bulk.settle_staging)
    undo_staging = awaited(bulk.Bulk.undo_staging)
    in_ledger = awaited(bulk.Bulk.in_ledger)
    last_settled = awaited(bulk.Bulk.last_settled)


class DeadLetters(AwaitedNamespace):
    """Dead letters, as `qm.dead` of an `inorder.QueueManager`."""

    _of = dead_letters.DeadLetters
    replay = awaited(dead_letters.DeadLetters.replay)
    discard = awaited(dead_letters.DeadLetters.discard)
    add = awaited(dead_letters.DeadLetters.add)
    place = awaited(dead_letters.DeadLetters.place)
    letters = awaited(listed(dead_letters.DeadLetters.letters))


class Inspect(AwaitedNamespace):
    """Inspection, as `qm.inspect` of an `inorder.QueueManager`."""

    _of = inspection.Inspect
    status = awaited(inspection.Inspect.status)
    overview = awaited(inspection.Inspect.overview)
    gaps = awaited(inspection.Inspect.gaps)
    order_view = awaited(inspection.Inspect.order_view)
    unique_ids = awaited(inspection.Inspect.unique_ids)
    units = awaited(inspection.Inspect.units)
    waits = awaited(inspection.Inspect.waits)
    locks = awaited(inspection.Inspect.locks)
    connections = awaited(inspection.Inspect.connections)
    dropped = awaited(inspection.Inspect.dropped)
    look = awaited(listed(inspection.Inspect.look))
