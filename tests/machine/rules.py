"""The steps of a history, by theme: each rule draws its arguments and does one thing on both sides."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any
from unittest import mock

from hypothesis import strategies as st
from hypothesis.stateful import rule
from tests.machine import choices
from tests.machine.history import ORDERS, History
from tests.machine.pairs import Returned
from tests.machine.side import Failure, Side, listing, opened

from inorder import Flags, Queue, UnitOfWork
from inorder.client import inspection, leases
from inorder.client.leases import Lease
from inorder.rules.browse_token import decode
from inorder.stores.seam.views import ListingOrder

outcomes = st.sampled_from(["commit", "commit", "back_out"])
unit_names = st.sampled_from(["u1", "u2"])


class Puts(History):
    """Single puts, puts of many messages, groups, streams."""

    def _put(self, choice: int, body: bytes, given: Mapping[str, Any]) -> None:
        outcome = self.on_handle(choice, lambda side, queue: queue.put(body, **side.options(given)))
        if isinstance(outcome, Returned):
            self._recall("put" if given.get("confirm_id") else "any", outcome.value.uid)

    @rule(choice=choices.handles, length=choices.lengths, fields=choices.fields, options=choices.put_options)
    def put(self, choice: int, length: int, fields: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        self._put(choice, self.body(length), {**fields, **options})

    @rule(
        choice=choices.handles,
        length=choices.lengths,
        fields=choices.fields,
        numbers=choices.by_hand,
        options=choices.put_options,
    )
    def put_by_hand(
        self,
        choice: int,
        length: int,
        fields: Mapping[str, Any],
        numbers: Mapping[str, Any],
        options: Mapping[str, Any],
    ) -> None:
        self._put(choice, self.body(length), {**fields, **numbers, **options})

    @rule(
        choice=choices.handles,
        length=choices.lengths,
        flags=choices.in_sequence,
        syncpoint=st.booleans(),
        persistent=st.sampled_from([None, None, None, False]),
    )
    def put_in_sequence(
        self, choice: int, length: int, flags: int, syncpoint: bool, persistent: bool | None = None
    ) -> None:
        given = {"logical": True, "flags": flags, "syncpoint": syncpoint, "persistent": persistent}
        self._put(choice, self.body(length), given)

    @rule(choice=choices.handles, length=st.sampled_from([40, 60]), logical=st.booleans(), syncpoint=st.booleans())
    def put_long(self, choice: int, length: int, logical: bool, syncpoint: bool) -> None:
        given = {"flags": Flags.SEGMENTATION_ALLOWED, "logical": logical, "syncpoint": syncpoint}
        self._put(choice, self.body(length), given)

    @rule(choice=choices.handles, count=st.integers(1, 3), fields=choices.fields, options=choices.put_options)
    def put_many(self, choice: int, count: int, fields: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        bodies = [self.body(4) for _ in range(count)]
        self.on_handle(choice, lambda _, queue: queue.put_many(bodies, **{**fields, **options}))

    @rule(
        choice=choices.handles,
        role=choices.roles,
        back=choices.references,
        resend=st.booleans(),
        confirm_id=st.sampled_from([0, 0, 1]),
    )
    def put_again(self, choice: int, role: str, back: int, resend: bool, confirm_id: int) -> None:
        given = {"uid": self.uid(role, back), "resend": resend, "confirm_id": confirm_id}
        self._put(choice, self.body(4), given)

    @rule(choice=choices.handles)
    def end_group(self, choice: int) -> None:
        self.on_handle(choice, lambda _, queue: queue.end_group())

    @rule(
        number=choices.connections,
        name=choices.queues,
        count=st.integers(0, 3),
        last=st.booleans(),
        wreck=st.sampled_from(["", "", "raise", "commit", "back out"]),
    )
    def write_group(self, number: int, name: str, count: int, last: bool, wreck: str) -> None:
        number, bodies = self.free(number), [self.body(4) for _ in range(count)]

        def step(side: Side) -> Any:
            qm, results = side.connections[number], []
            with qm.group(name) as group:
                for n, body in enumerate(bodies, 1):
                    results.append(group.put(body, last=last and n == len(bodies)))
                    if wreck == "commit" and n == 1:
                        qm.commit()
                    elif wreck == "back out" and n == 1:
                        qm.back_out()
                if wreck == "raise":
                    raise Failure
            return results

        self.both(step)

    @rule(
        number=choices.connections,
        name=choices.queues,
        length=st.sampled_from([0, 10, 40]),
        flags=st.sampled_from([0, 0, Flags.IN_GROUP, Flags.LAST_IN_GROUP]),
        breaks=st.sampled_from([False, False, True]),
    )
    def put_stream(self, number: int, name: str, length: int, flags: int, breaks: bool) -> None:
        number, body = self.free(number), self.body(length)

        def step(side: Side) -> Any:
            stream = Breaking(body) if breaks else io.BytesIO(body)
            return side.connections[number].put_stream(name, stream, chunk=16, flags=flags)

        self.both(step)


class Breaking(io.BytesIO):
    """A stream whose third read fails."""

    reads = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.reads += 1
        if self.reads > 2:
            raise Failure
        return super().read(size)


class Gets(History):
    def _get(self, choice: int, given: Mapping[str, Any], count: int | None = None) -> None:
        options = self.resolved(given)

        def step(side: Side, queue: Queue) -> Any:
            own = side.options(options)
            return queue.get(**own) if count is None else queue.get_many(count, **own)

        outcome = self.on_handle(choice, step)
        if isinstance(outcome, Returned) and given.get("confirm_id"):
            for message in [outcome.value] if count is None else outcome.value:
                self._recall("got", message.uid)

    @rule(choice=choices.handles, options=choices.get_options)
    def get(self, choice: int, options: Mapping[str, Any]) -> None:
        self._get(choice, options)

    @rule(choice=choices.handles, options=choices.logical_gets)
    def get_in_sequence(self, choice: int, options: Mapping[str, Any]) -> None:
        self._get(choice, options)

    @rule(choice=choices.handles, syncpoint=st.booleans())
    def get_strictly(self, choice: int, syncpoint: bool) -> None:
        self._get(choice, {"read_order": "strict", "syncpoint": syncpoint})

    @rule(choice=choices.handles, count=st.integers(1, 4), options=choices.get_options)
    def get_many(self, choice: int, count: int, options: Mapping[str, Any]) -> None:
        self._get(choice, options, count)

    @rule(number=choices.connections, name=choices.queues, limit=st.sampled_from([None, None, 1]))
    def get_group(self, number: int, name: str, limit: int | None) -> None:
        number = self.free(number)

        def step(side: Side) -> Any:
            pieces = side.connections[number].get_group(name)
            try:
                return listing(pieces, limit)
            finally:
                pieces.close()

        self.both(step)

    @rule(number=choices.connections, name=choices.queues)
    def get_stream(self, number: int, name: str) -> None:
        number = self.free(number)

        def step(side: Side) -> Any:
            stream = io.BytesIO()
            return side.connections[number].get_stream(name, stream), stream.getvalue()

        self.both(step)

    @rule(
        choice=choices.handles,
        position=st.sampled_from(["first", "next", "next", "next", "cursor"]),
        options=choices.browse_options,
    )
    def browse(self, choice: int, position: str, options: Mapping[str, Any]) -> None:
        chosen = self.resolved(options)
        self.on_handle(choice, lambda side, queue: getattr(queue, f"browse_{position}")(**side.options(chosen)))

    @rule(choice=choices.handles, options=choices.browse_options, limit=st.sampled_from([None, 2]))
    def sweep(self, choice: int, options: Mapping[str, Any], limit: int | None) -> None:
        chosen = self.resolved(options)
        self.on_handle(choice, lambda side, queue: listing(queue.browse(**side.options(chosen)), limit))

    @rule(choice=choices.handles)
    def unlock_cursor(self, choice: int) -> None:
        self.on_handle(choice, lambda _, queue: queue.unlock())

    @rule(choice=choices.handles, browsing=st.booleans())
    def leave_group(self, choice: int, browsing: bool) -> None:
        self.on_handle(choice, lambda _, queue: queue.leave_group(browsing=browsing))

    @rule(choice=choices.handles, logical=st.booleans())
    def take_token(self, choice: int, logical: bool) -> None:
        def step(side: Side, queue: Queue) -> Any:
            shown = listing(iter(lambda: queue.browse_next(read_order="strict", logical=logical), None), 1)
            side.tokens.append(queue.browse_token())
            return shown, decode(side.tokens[-1])

        self.on_handle(choice, step)

    @rule(choice=choices.handles, back=st.integers(1, 2), logical=st.booleans())
    def resume(self, choice: int, back: int, logical: bool) -> None:
        def step(side: Side, queue: Queue) -> Any:
            queue.resume(side.tokens[-back] if len(side.tokens) >= back else "no token")
            return queue.browse_next(read_order="strict", logical=logical)

        self.on_handle(choice, step)


class Confirms(History):
    """Calls on one message by its unique id, on locks by their ids, and on messages under a confirm id."""

    @rule(choice=choices.handles, role=choices.roles, back=choices.references, confirm_id=st.sampled_from([0, 0, 1, 2]))
    def confirm_put(self, choice: int, role: str, back: int, confirm_id: int) -> None:
        uid = self.uid("put" if role == "stale" else role, back)
        self.on_handle(choice, lambda side, queue: queue.confirm_put(side.translate("uid", uid), confirm_id=confirm_id))

    @rule(choice=choices.handles, role=choices.roles, back=choices.references, confirm_id=st.sampled_from([0, 0, 1, 2]))
    def confirm_get(self, choice: int, role: str, back: int, confirm_id: int) -> None:
        uid = self.uid("got" if role == "stale" else role, back)
        self.on_handle(choice, lambda side, queue: queue.confirm_get(side.translate("uid", uid), confirm_id=confirm_id))

    @rule(
        choice=choices.handles,
        match=choices.matches,
        confirm_id=st.sampled_from([0, 0, 1, 2]),
        most=choices.locks_at_most,
        lease=choices.leases,
    )
    def browse_and_lock(
        self, choice: int, match: Mapping[str, Any], confirm_id: int, most: int | None, lease: float | None
    ) -> None:
        wanted = self.resolved({"match": match})["match"]
        how: dict[str, Any] = {"confirm_id": confirm_id, "most": most, "lease": lease}
        self.on_handle(choice, lambda side, queue: queue.browse_and_lock(side.match(wanted), **how))

    @rule(choice=choices.handles, confirm_id=st.sampled_from([0, 1, 1, 2]), back=st.integers(0, 2))
    def unique_ids(self, choice: int, confirm_id: int, back: int) -> None:
        """The unique ids under a confirm id, or under a lock id if that is 0."""
        lock_id = 0 if confirm_id else self.lock_id(back)

        def step(side: Side, queue: Queue) -> Any:
            return queue.unique_ids(confirm_id=confirm_id, lock_id=side.translate("lock", lock_id))

        self.on_handle(choice, step)

    @rule(turns=st.lists(choices.connections, min_size=2, max_size=4), name=st.sampled_from(["A", "B"]))
    def put_and_confirm_in_turns(self, turns: list[int], name: str) -> None:
        """Several connections put under one confirm id; the messages are confirmed in the order of their listing."""
        for number in map(self.free, turns):
            body = self.body(4)
            self.both(
                lambda side, number=number, body=body: side.connections[number].put(name, body, confirm_id=3)  # type: ignore[misc]
            )

        def confirm(side: Side) -> Any:
            uids = side.operator.inspect.unique_ids(name, confirm_id=3)
            return uids, [side.operator.confirm_put(name, uid) for uid in uids]

        self.both(confirm)

    @rule(
        choice=choices.handles,
        options=st.fixed_dictionaries({}, optional={"confirm_id": choices.confirm_ids, "syncpoint": st.just(True)}),
    )
    def get_locked(self, choice: int, options: Mapping[str, Any]) -> None:
        given = {"lock_id": self.lock_id(), **options}
        if {"confirm_id", "syncpoint"} <= options.keys():
            del given["syncpoint"]
        outcome = self.on_handle(choice, lambda side, queue: queue.get(**side.options(given)))
        if isinstance(outcome, Returned):
            self._recall("got", outcome.value.uid)

    @rule(choice=choices.handles, role=choices.roles, back=choices.references, lock=st.sampled_from([None, 0, 0, 1]))
    def delete_message(self, choice: int, role: str, back: int, lock: int | None) -> None:
        uid, lock_id = self.uid(role, back), 0 if lock is None else self.lock_id(lock)

        def step(side: Side, queue: Queue) -> Any:
            return queue.delete(side.translate("uid", uid), lock_id=side.translate("lock", lock_id))

        self.on_handle(choice, step)

    @rule(choice=choices.handles, role=choices.roles, back=choices.references, lock=st.sampled_from([None, 0, 0, 1]))
    def unlock_message(self, choice: int, role: str, back: int, lock: int | None) -> None:
        uid, lock_id = self.uid("locked" if role == "stale" else role, back), 0 if lock is None else self.lock_id(lock)

        def step(side: Side, queue: Queue) -> Any:
            return queue.unlock(side.translate("uid", uid), lock_id=side.translate("lock", lock_id))

        self.on_handle(choice, step)

    @rule(choice=choices.handles, confirm_id=choices.confirm_ids)
    def undo(self, choice: int, confirm_id: int) -> None:
        self.on_handle(choice, lambda _, queue: queue.undo(confirm_id))

    @rule(choice=choices.handles, back=st.integers(0, 1))
    def release_lock(self, choice: int, back: int) -> None:
        lock_id = self.lock_id(back)
        self.on_handle(choice, lambda side, queue: queue.internals.release_lock(side.translate("lock", lock_id)))


class Units(History):
    """Units of work, as calls and as blocks, and prepared ones."""

    @rule(number=choices.connections, outcome=outcomes)
    def settle(self, number: int, outcome: str) -> None:
        number = self.free(number)
        self.both(lambda side: getattr(side.connections[number], outcome)())

    @rule(
        number=choices.connections,
        delay=st.sampled_from([0.0, 2.0, 20.0]),
        error=st.sampled_from(["", "no", "x" * 2_000]),
    )
    def put_off(self, number: int, delay: float, error: str) -> None:
        """Backs out as a program whose work has failed: the messages cannot be read for a while."""
        number = self.free(number)
        self.both(lambda side: side.connections[number].back_out(delay=delay, error=error))

    @rule(number=choices.connections, name=unit_names)
    def prepare(self, number: int, name: str) -> None:
        number = self.free(number)
        self.both(lambda side: side.connections[number].prepare(name))

    @rule(name=unit_names, outcome=outcomes)
    def settle_prepared(self, name: str, outcome: Any) -> None:
        self.both(lambda side: side.operator.settle(name, outcome))

    @rule(number=choices.connections)
    def begin_block(self, number: int) -> None:
        number = self.free(number)

        def step(side: Side) -> None:
            side.blocks[number] = UnitOfWork.__enter__(side.connections[number].unit_of_work())

        self.both(step)

    @rule(number=choices.connections, fails=st.booleans())
    def end_block(self, number: int, fails: bool) -> None:
        number = self.free(number)

        def step(side: Side) -> Any:
            block = side.blocks.pop(number, None)
            if block is not None:
                block.__exit__(Failure if fails else None, None, None)
            return block and block.status

        self.both(step)


class Leases(History):
    """Leases by their tokens, which are the same on both sides."""

    begun = 0

    @rule(number=choices.connections, seconds=st.sampled_from([4.0, 100.0]))
    def begin_lease(self, number: int, seconds: float) -> None:
        number = self.free(number)
        self.begun += 1
        with mock.patch("inorder.support.secrets.secrets.token_urlsafe", return_value=f"token {self.begun}"):
            self.both(lambda side: side.connections[number].lease(seconds=seconds).name)

    @rule(number=choices.connections, back=st.integers(0, 2))
    def enter_lease(self, number: int, back: int) -> None:
        number, token = self.free(number), self.lease_token(back)

        def step(side: Side) -> None:
            side.blocks[number] = Lease.__enter__(side.connections[number].resume_lease(token))

        self.both(step)

    @rule(
        begins=choices.connections,
        turns=st.lists(choices.connections, min_size=2, max_size=4),
        name=st.sampled_from(["A", "B"]),
        many=st.booleans(),
        outcome=outcomes,
    )
    def put_in_turns(self, begins: int, turns: list[int], name: str, many: bool, outcome: str) -> None:
        """Several connections resume one lease in turn and put; then it is settled."""
        self.begin_lease(begins, 100.0)
        token = self.lease_token(0)
        for number in map(self.free, turns):
            sent = [self.body(4) for _ in range(1 + many)]

            def step(side: Side, number: int = number, sent: list[bytes] = sent) -> Any:
                qm = side.connections[number]
                with qm.resume_lease(token):
                    return qm.put_many(name, sent)

            self.both(step)
        self.settle_lease(turns[-1], 0, outcome)

    @rule(number=choices.connections, back=st.integers(0, 2), outcome=outcomes)
    def settle_lease(self, number: int, back: int, outcome: str) -> None:
        number, token = self.free(number), self.lease_token(back)
        self.both(lambda side: getattr(side.connections[number].resume_lease(token), outcome)())

    @rule(number=choices.connections, back=st.integers(0, 2), seconds=st.sampled_from([4.0, 100.0]))
    def extend_lease(self, number: int, back: int, seconds: float) -> None:
        number, token = self.free(number), self.lease_token(back)
        self.both(lambda side: side.connections[number].resume_lease(token).extend(seconds))

    @rule(back=st.integers(0, 2))
    def end_lease(self, back: int) -> None:
        name = leases.name_of(self.lease_token(back))
        self.both(lambda side: side.operator.admin.end_lease(name))

    def lease_token(self, back: int) -> str:
        return f"token {max(0, self.begun - back)}"


class Operator(History):
    """The views of an operator, at any moment."""

    @rule(
        name=choices.queues,
        order=st.sampled_from(ORDERS),
        match=choices.matches,
        behind=st.sampled_from([None, None, 0, 1, 3]),
        page=st.sampled_from([1, 2, 1000]),
        numbered=st.sampled_from([None, None, 1, 3]),
        of_unit=st.sampled_from([None, None, 0, 1]),
    )
    def look(
        self,
        name: str,
        order: ListingOrder,
        match: Mapping[str, Any],
        behind: int | None,
        page: int,
        numbered: int | None,
        of_unit: int | None,
    ) -> None:
        """A listing in pages of this size, which may begin after one of the messages."""
        chosen = self.resolved({"match": match})

        def step(side: Side) -> Any:
            keywords = side.options(chosen)
            listed = list(side.operator.inspect.look(name, order=order))
            units = sorted(
                (one for one in side.operator.inspect.units() if one.kind != "staging"),
                key=lambda one: (one.started_at, one.kind, one.connection or 0, len(one.name), one.name),
            )
            if behind is not None and behind < len(listed):
                keywords["after"] = listed[behind].position
            if numbered is not None and order == "physical":
                keywords["numbered_after"] = numbered
            if of_unit is not None and of_unit < len(units):
                keywords["unit"] = units[of_unit]
            with mock.patch.object(inspection, "PAGE_MESSAGES", page):
                return list(side.operator.inspect.look(name, order=order, **keywords))

        self.both(step)

    @rule(name=choices.queues, group_id=st.sampled_from([b"g1", b"g2", b"none", "last"]))
    def gaps(self, name: str, group_id: Any) -> None:
        match = self.resolved({"match": {"group_id": group_id}})
        self.both(
            lambda side: side.operator.inspect.gaps(name, side.options(match)["match"].fields.get("group_id", b"none"))
        )

    @rule()
    def look_at_all(self) -> None:
        self.both(lambda side: side.operator.inspect.units())
        self.both(lambda side: side.operator.inspect.locks())
        self.both(lambda side: side.operator.inspect.waits())
        self.both(lambda side: opened(side.operator))


class Lives(History):
    """Time, waits, and ends of connections and stores."""

    @rule(seconds=st.sampled_from([1.0, 5.0, 5.0]))
    def advance(self, seconds: float) -> None:
        self.both(lambda side: side.advance(seconds))

    @rule(limit=st.sampled_from([1, 1000]))
    def discard_expired(self, limit: int) -> None:
        self.both(lambda side: side.operator.admin.discard_expired(limit))

    @rule(
        choice=choices.handles,
        seconds=st.sampled_from([4.0, 100.0]),
        options=choices.wait_options,
        verb=st.sampled_from(["get", "get", "get_many", "browse_next"]),
    )
    def wait(self, choice: int, seconds: float, options: Mapping[str, Any], verb: str = "get") -> None:
        """A call that really waits; on one queue at a time, since calls on two queues look in no fixed order."""
        handle = self.handle(choice)
        if handle is None or len(self.left.calls) >= 2:
            return
        name = self.left.handles[handle].name
        if any(name != waiting for waiting in self._waiting_on()):
            return
        chosen = {**self.resolved(options), "wait": seconds}
        if verb == "browse_next":
            chosen = {name: value for name, value in chosen.items() if not name.startswith("syncpoint")}
        counted = [2] if verb == "get_many" else []
        self.begin_wait(
            self.owners[handle],
            name,
            lambda side: getattr(side.handles[handle], verb)(*counted, **side.options(chosen)),
        )

    def _waiting_on(self) -> set[str]:
        return {self.waits[number] for number in self.left.calls}

    @rule(number=choices.connections, orderly=st.booleans())
    def lose_connection(self, number: int, orderly: bool) -> None:
        """Ends a connection, normally or as the death of its program would, and connects again."""
        if not orderly:
            self.replace_connection(number)
        elif isinstance(self.both(lambda side: side.connections[self.free(number)].close()), Returned):
            self.replace_connection(self.free(number))

    @rule(stop=st.booleans())
    def restart(self, stop: bool) -> None:
        if stop:
            self.compare_told()
            self.both(lambda side: side.hooking.admin.stop())
            self.both(lambda side: side.operator.put("A", b""))
        self.restart_store(told=not stop)
