"""The calls of `inorder.QueueManager`, awaitable; `python -m tools.reference` writes it.

Each has the signature of its namesake, where all about it is said, and passes it on: `_call`, or `_get` if it may wait.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from ..client import housekeeping
from ..client import manager as managing
from ..client.admin import Progress
from ..client.keywords import PutCall, get_options
from ..client.requesting import Data
from ..client.users import TOKEN_SECONDS, Token, User, Verify
from ..errors import Reason
from ..model.attributes import ManagerAttributes, ManagerKeywords, QueueAttributes, QueueKeywords, QueueStatus
from ..model.message import Got, Message, UniqueId
from ..model.options import DEFAULT_GET, EVERYTHING, GetKeywords, GetOptions, Match, PutOptions
from ..model.process_attributes import ProcessAttributes, ProcessKeywords
from ..model.selecting import Selector
from ..rules.dead_letters import Buried
from ..rules.gaps import Gaps
from ..rules.puts import PutResult
from ..stores.seam.records import Act, Claims, LedgerKey, Locked, Noted, Outcome, Settled, Staged
from ..stores.seam.views import (
    ConnectionView,
    Dropped,
    ListingOrder,
    LockView,
    OrderView,
    Position,
    QueueView,
    Sight,
    Unit,
    Wait,
)
from .lanes import listed

if TYPE_CHECKING:
    from typing_extensions import Unpack

P = ParamSpec("P")
T = TypeVar("T")


class ManagerCalls(ABC):
    """The calls of `inorder.QueueManager` that are alike for tasks."""

    async def close_queue(self, name: str, *, manager: str = "") -> Reason | None:
        """Closes the default handle of a queue; the warning as `Queue.close`, None if it was not open."""
        return await self._call(managing.QueueManager.close_queue, name, manager=manager)

    async def put(
        self,
        queue: str,
        body: Data,
        options: PutOptions | None = None,
        *,
        manager: str = "",
        **keywords: Unpack[PutCall],
    ) -> PutResult:
        """Puts one message through the default handle of a queue; see `Queue.put`."""
        return await self._call(managing.QueueManager.put, queue, body, options, manager=manager, **keywords)

    async def put_json(
        self,
        queue: str,
        value: Any,
        options: PutOptions | None = None,
        *,
        manager: str = "",
        **keywords: Unpack[PutCall],
    ) -> PutResult:
        """Puts a value as JSON, which `Message.json` of the message is again; see `Message.of_json`, `Queue.put`."""
        return await self._call(managing.QueueManager.put_json, queue, value, options, manager=manager, **keywords)

    async def put_many(
        self,
        queue: str,
        messages: Iterable[Data],
        options: PutOptions | None = None,
        *,
        manager: str = "",
        **keywords: Unpack[PutCall],
    ) -> list[PutResult]:
        """Puts messages in order, all or none; see `put` and `Queue.put_many`."""
        return await self._call(managing.QueueManager.put_many, queue, messages, options, manager=manager, **keywords)

    async def get(self, queue: str, options: GetOptions | None = None, **keywords: Unpack[GetKeywords]) -> Got:
        """Removes one message and returns it; see `Queue.get`."""
        return await self._get(managing.QueueManager.get, get_options(keywords, options, DEFAULT_GET), queue)

    async def get_many(
        self, queue: str, count: int, options: GetOptions | None = None, **keywords: Unpack[GetKeywords]
    ) -> list[Got]:
        """Removes up to `count` messages; see `Queue.get_many`."""
        return await self._get(
            managing.QueueManager.get_many, get_options(keywords, options, DEFAULT_GET), queue, count
        )

    async def leave_group(self, queue: str) -> bool:
        """Leaves the group that the default handle of a queue is inside for its gets; see `Queue.leave_group`."""
        return await self._call(managing.QueueManager.leave_group, queue)

    async def confirm_put(self, queue: str, uid: UniqueId, *, confirm_id: int = 0) -> Reason | None:
        """Makes a message that was put under a confirm id visible; see `Queue.confirm_put`."""
        return await self._call(managing.QueueManager.confirm_put, queue, uid, confirm_id=confirm_id)

    async def confirm_get(self, queue: str, uid: UniqueId, *, confirm_id: int = 0) -> Reason | None:
        """Removes for good a message that was got under a confirm id; see `Queue.confirm_get`."""
        return await self._call(managing.QueueManager.confirm_get, queue, uid, confirm_id=confirm_id)

    async def browse_and_lock(
        self,
        queue: str,
        match: Match = EVERYTHING,
        *,
        confirm_id: int = 0,
        most: int | None = None,
        lease: float | None = None,
    ) -> Locked:
        """Copies and locks messages that match, under one new lock id; see `Queue.browse_and_lock`."""
        return await self._call(
            managing.QueueManager.browse_and_lock, queue, match, confirm_id=confirm_id, most=most, lease=lease
        )

    async def unlock(self, queue: str, uid: UniqueId, *, lock_id: int) -> None:
        """Frees one message that `browse_and_lock` locked. Raises: NotFound, WrongState, LockMismatch."""
        await self._call(managing.QueueManager.unlock, queue, uid, lock_id=lock_id)

    async def delete(self, queue: str, uid: UniqueId, *, lock_id: int = 0) -> None:
        """Removes one message, unlocked, or locked under `lock_id`; see `Queue.delete`."""
        await self._call(managing.QueueManager.delete, queue, uid, lock_id=lock_id)

    async def undo(self, queue: str, confirm_id: int) -> int:
        """Takes back everything put, got or locked under a confirm id; see `Queue.undo`."""
        return await self._call(managing.QueueManager.undo, queue, confirm_id)

    async def release_lock(self, queue: str, lock_id: int) -> int:
        """Unlocks all messages that are still locked under a lock id; see `Queue.release_lock`."""
        return await self._call(managing.QueueManager.release_lock, queue, lock_id)

    async def unique_ids(self, queue: str, *, confirm_id: int = 0, lock_id: int = 0) -> list[UniqueId]:
        """The unique ids of what stands under a confirm id or a lock id; see `Queue.unique_ids`."""
        return await self._call(managing.QueueManager.unique_ids, queue, confirm_id=confirm_id, lock_id=lock_id)

    async def commit(self) -> None:
        """Commits the connection's unit of work, whichever caller opened it; nothing happens if it has none."""
        await self._call(managing.QueueManager.commit)

    async def back_out(self, *, delay: float = 0, error: str = "") -> None:
        """Backs out the connection's unit of work, whichever caller opened it; nothing happens if it has none."""
        await self._call(managing.QueueManager.back_out, delay=delay, error=error)

    async def prepare(self, name: str) -> None:
        """Prepares the connection's unit of work under a name; anyone may settle it, also after a restart."""
        await self._call(managing.QueueManager.prepare, name)

    async def stop(self) -> None:
        """Stops the queue manager for everyone: calls that wait, and all later ones, end with 2162."""
        await self._call(managing.QueueManager.stop)

    async def create_queue(self, name: str, *, exist_ok: bool = False, **attributes: Unpack[QueueKeywords]) -> None:
        """Defines a local queue. Attributes: see `inorder.model.attributes.QueueAttributes`."""
        await self._call(managing.QueueManager.create_queue, name, exist_ok=exist_ok, **attributes)

    async def create_alias(self, name: str, *, exist_ok: bool = False, **attributes: Unpack[QueueKeywords]) -> None:
        """Defines another name for a local or remote queue, `base_queue`, with its own defaults and inhibits."""
        await self._call(managing.QueueManager.create_alias, name, exist_ok=exist_ok, **attributes)

    async def create_model(self, name: str, *, exist_ok: bool = False, **attributes: Unpack[QueueKeywords]) -> None:
        """Defines a model: opening it makes a dynamic queue with these attributes."""
        await self._call(managing.QueueManager.create_model, name, exist_ok=exist_ok, **attributes)

    async def create_remote_queue(
        self, name: str, *, exist_ok: bool = False, **attributes: Unpack[QueueKeywords]
    ) -> None:
        """Defines a name for the queue `remote_queue` of the queue manager `remote_manager` (N-2)."""
        await self._call(managing.QueueManager.create_remote_queue, name, exist_ok=exist_ok, **attributes)

    async def alter_queue(self, name: str, **changes: Unpack[QueueKeywords]) -> None:
        """Changes attributes; what is on the queue keeps its place."""
        await self._call(managing.QueueManager.alter_queue, name, **changes)

    async def delete_queue(self, name: str, *, purge: bool = False) -> None:
        """Deletes a queue; `purge` also its messages."""
        await self._call(managing.QueueManager.delete_queue, name, purge=purge)

    async def clear_queue(self, name: str) -> int:
        """Removes all messages of a local queue, locked ones too, as MQSC's CLEAR QLOCAL; returns how many."""
        return await self._call(managing.QueueManager.clear_queue, name)

    async def queues(self) -> list[QueueAttributes]:
        """The attributes of all queues, by name."""
        return await self._call(managing.QueueManager.queues)

    async def attributes(self, name: str) -> QueueAttributes:
        """The attributes of one queue. Raises: UnknownQueue 2085 with the nearest names."""
        return await self._call(managing.QueueManager.attributes, name)

    async def status(self, name: str) -> QueueStatus:
        """Depth and open counts of a queue, after discarding what has expired."""
        return await self._call(managing.QueueManager.status, name)

    async def depth(self, name: str) -> int:
        """How many messages the queue counts: uncommitted puts are in, messages got are out."""
        return await self._call(managing.QueueManager.depth, name)

    async def inquire(self, name: str, *selectors: Selector) -> dict[Any, Any]:
        """Attributes and status of a queue by name (MQINQ); all of them if none is named."""
        return await self._call(managing.QueueManager.inquire, name)

    async def manager_attributes(self) -> ManagerAttributes:
        """The queue manager's own attributes."""
        return await self._call(managing.QueueManager.manager_attributes)

    async def alter_manager(self, **changes: Unpack[ManagerKeywords]) -> None:
        """Changes attributes of the queue manager, for example `max_uncommitted`."""
        await self._call(managing.QueueManager.alter_manager, **changes)

    async def create_process(self, name: str, *, exist_ok: bool = False, **attributes: Unpack[ProcessKeywords]) -> None:
        """Defines what program serves a queue. Attributes: see `inorder.model.process_attributes.ProcessAttributes`."""
        await self._call(managing.QueueManager.create_process, name, exist_ok=exist_ok, **attributes)

    async def alter_process(self, name: str, **changes: Unpack[ProcessKeywords]) -> None:
        """Changes attributes of a process definition. Raises: UnknownObject 2085; ArgumentError."""
        await self._call(managing.QueueManager.alter_process, name, **changes)

    async def delete_process(self, name: str) -> None:
        """Deletes a process definition; queues that name it trigger nothing any more. Raises: UnknownObject 2085."""
        await self._call(managing.QueueManager.delete_process, name)

    async def process(self, name: str) -> ProcessAttributes:
        """A process definition. Raises: UnknownObject 2085."""
        return await self._call(managing.QueueManager.process, name)

    async def processes(self) -> list[ProcessAttributes]:
        """All process definitions, by name."""
        return await self._call(managing.QueueManager.processes)

    async def create_user(
        self,
        name: str,
        *,
        roles: Iterable[str] = ("reader",),
        queues: Mapping[str, Iterable[str]] | None = None,
        subjects: Iterable[str] = (),
        description: str = "",
        password_hash: str | None = None,
    ) -> User:
        """Defines a user, for servers; a program that opens the store is not bound by it."""
        return await self._call(
            managing.QueueManager.create_user,
            name,
            roles=roles,
            queues=queues,
            subjects=subjects,
            description=description,
            password_hash=password_hash,
        )

    async def alter_user(
        self,
        name: str,
        *,
        roles: Iterable[str] | None = None,
        queues: Mapping[str, Iterable[str]] | None = None,
        subjects: Iterable[str] | None = None,
        description: str | None = None,
        password_hash: str | None = None,
        enabled: bool | None = None,
    ) -> User:
        """Changes what is given of a user, and leaves the rest; it binds from the user's next request on."""
        return await self._call(
            managing.QueueManager.alter_user,
            name,
            roles=roles,
            queues=queues,
            subjects=subjects,
            description=description,
            password_hash=password_hash,
            enabled=enabled,
        )

    async def delete_user(self, name: str) -> None:
        """Deletes a user and all its tokens; a later user of the name is another one. Raises: UnknownObject 2085."""
        await self._call(managing.QueueManager.delete_user, name)

    async def user(self, name: str) -> User:
        """A user as it is now. Raises: UnknownObject 2085."""
        return await self._call(managing.QueueManager.user, name)

    async def users(self) -> list[User]:
        """All users, by name."""
        return await self._call(managing.QueueManager.users)

    async def create_token(self, user: str, label: str, *, seconds: float = TOKEN_SECONDS) -> str:
        """A new token for a user, which is shown this once: the store has a hash of it."""
        return await self._call(managing.QueueManager.create_token, user, label, seconds=seconds)

    async def tokens(self, user: str | None = None) -> list[Token]:
        """The tokens of a user, or of all, the oldest first; those that have expired too, until they are replaced."""
        return await self._call(managing.QueueManager.tokens, user)

    async def token(self, name: str) -> Token:
        """A token by its name, as it is now; one that has expired too. Raises: UnknownObject 2085."""
        return await self._call(managing.QueueManager.token, name)

    async def revoke_token(self, token: str) -> None:
        """Ends a token at once; it is named by its id, or given itself. Raises: UnknownObject 2085."""
        await self._call(managing.QueueManager.revoke_token, token)

    async def identify(
        self,
        *,
        name: str | None = None,
        verify: Verify | None = None,
        token: str | None = None,
        subject: str | None = None,
        address: str = "",
    ) -> User:
        """The user who asks: by a name and a password, by a token, or by the subject of a client certificate."""
        return await self._call(
            managing.QueueManager.identify, name=name, verify=verify, token=token, subject=subject, address=address
        )

    async def acts(
        self, *, user: str | None = None, queue: str | None = None, since: float | None = None, most: int | None = None
    ) -> list[Act]:
        """The log, the newest first: as many as the queue manager's attribute `acts_kept` says are kept."""
        return await self._call(listed(managing.QueueManager.acts), user=user, queue=queue, since=since, most=most)

    async def reply(
        self, request: Message, body: Data, options: PutOptions | None = None, **keywords: Unpack[PutCall]
    ) -> PutResult:
        """Puts the reply to a request, where and as the request says."""
        return await self._call(managing.QueueManager.reply, request, body, options, **keywords)

    async def report(
        self,
        message: Message,
        feedback: int,
        /,
        body: Data = b"",
        options: PutOptions | None = None,
        **keywords: Unpack[PutCall],
    ) -> PutResult | None:
        """Puts a report about a message that was got: what has become of it, by `Feedback.PAN`, `Feedback.NAN`, say."""
        return await self._call(managing.QueueManager.report, message, feedback, body, options, **keywords)

    async def look(
        self,
        queue: str,
        *,
        order: ListingOrder = "physical",
        match: Match = EVERYTHING,
        unit: Unit | None = None,
        preview: int = 64,
        most: int | None = None,
        after: Position | None = None,
        numbered_after: int | None = None,
    ) -> list[Sight]:
        """Every message on a queue, whatever its state and its holder; what has expired is passed over."""
        return await self._call(
            listed(managing.QueueManager.look),
            queue,
            order=order,
            match=match,
            unit=unit,
            preview=preview,
            most=most,
            after=after,
            numbered_after=numbered_after,
        )

    async def gaps(self, queue: str, group_id: bytes) -> Gaps:
        """What is missing of a group, or of a message in segments, whatever the state of what is there."""
        return await self._call(managing.QueueManager.gaps, queue, group_id)

    async def overview(self, queue: str | None = None) -> list[QueueView]:
        """All local queues by name, at one moment: depth, what is held, how old. Cheap at any depth; writes nothing."""
        return await self._call(managing.QueueManager.overview, queue)

    async def dropped(self) -> list[Dropped]:
        """Reports and trigger messages that had to be dropped, and why, by the queue that they were about."""
        return await self._call(managing.QueueManager.dropped)

    async def order_view(self, queue: str) -> OrderView:
        """What is pending on a queue, since when and by whom, and how many strict readers wait."""
        return await self._call(managing.QueueManager.order_view, queue)

    async def settle(self, name: str, outcome: Outcome) -> None:
        """Settles a prepared unit: outcome is "commit" or "back_out". Raises: UnitNotFound."""
        await self._call(managing.QueueManager.settle, name, outcome)

    async def end_lease(self, name: str) -> None:
        """Backs out a lease before its deadline; it is named as in `units()`. Raises: LeaseOver 9060, it is over."""
        await self._call(managing.QueueManager.end_lease, name)

    async def units(self) -> list[Unit]:
        """All unsettled units of this queue manager, oldest first."""
        return await self._call(managing.QueueManager.units)

    async def waits(self) -> list[Wait]:
        """The calls that wait for messages, and what the strict ones wait for."""
        return await self._call(managing.QueueManager.waits)

    async def locks(self) -> list[LockView]:
        """What locks messages: browse locks of handles, and lock ids; the oldest first."""
        return await self._call(managing.QueueManager.locks)

    async def connections(self) -> list[ConnectionView]:
        """Who has this queue manager open, and which queues for what: a program, a process, its handles."""
        return await self._call(managing.QueueManager.connections)

    async def check(self, progress: Progress | None = None) -> list[str]:
        """Everything that is wrong with the store, in words; empty: it is sound."""
        return await self._call(managing.QueueManager.check, progress)

    async def discard_expired(self, limit: int = housekeeping.STEP_MESSAGES) -> int:
        """Discards expired messages on all queues, up to `limit`; how many it was."""
        return await self._call(managing.QueueManager.discard_expired, limit)

    async def backup(
        self, path: str | os.PathLike[str], *, replace: bool = False, progress: Progress | None = None
    ) -> None:
        """Copies the queue manager to another file as it is at one instant, while all go on using it."""
        await self._call(managing.QueueManager.backup, path, replace=replace, progress=progress)

    async def claims(self) -> Sequence[Claims]:
        """The claims and the progress of each application, by queue and application."""
        return await self._call(managing.QueueManager.claims)

    async def finish_claims(self, queue: str, application: str, upto: int) -> int:
        """Confirms claims up to `upto` of an application that has stopped for good; of how many messages."""
        return await self._call(managing.QueueManager.finish_claims, queue, application, upto)

    async def release_claims(self, queue: str, application: str) -> int:
        """Returns the messages of open claims to their places, of how many: the checkpoint is lost."""
        return await self._call(managing.QueueManager.release_claims, queue, application)

    async def leave_claimed_group(self, queue: str, application: str) -> bool:
        """The operator's way for an application that claimed groups in parts and has stopped for good."""
        return await self._call(managing.QueueManager.leave_claimed_group, queue, application)

    async def settle_staging(self, key: LedgerKey, stagings: Sequence[Staged], *, after: str | None = None) -> Settled:
        """The put of staged rows, all or none, once for each key: if the key is in the ledger they are dropped."""
        return await self._call(managing.QueueManager.settle_staging, key, stagings, after=after)

    async def undo_staging(self, names: Sequence[str]) -> int:
        """Drops what was staged under these names; of how many rows. Unknown names are passed over."""
        return await self._call(managing.QueueManager.undo_staging, names)

    async def in_ledger(self, queue: str, key: LedgerKey) -> Noted | None:
        """When staged rows were settled under this key on a queue, and how many messages that put; None: never."""
        return await self._call(managing.QueueManager.in_ledger, queue, key)

    async def last_settled(self, queue: str, application: str, query: str) -> str:
        """The batch that was settled last on a queue for an application and query; empty: none was."""
        return await self._call(managing.QueueManager.last_settled, queue, application, query)

    async def bury(
        self,
        message: Got,
        *,
        queue: str,
        reason: int = Reason.BACKOUT_THRESHOLD_REACHED,
        error: str = "",
        attempts: int = 0,
        program: str = "",
    ) -> Buried:
        """Makes a message that was got a dead letter."""
        return await self._call(
            managing.QueueManager.bury,
            message,
            queue=queue,
            reason=reason,
            error=error,
            attempts=attempts,
            program=program,
        )

    @abstractmethod
    async def _call(
        self, method: Callable[Concatenate[managing.QueueManager, P], T], /, *given: P.args, **named: P.kwargs
    ) -> T: ...

    @abstractmethod
    async def _get(self, method: Callable[..., T], options: GetOptions, queue: str, /, *given: object) -> T: ...
