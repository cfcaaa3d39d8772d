"""Bulk transfer as Arrow IPC streams in both directions, each message once, even after broken or repeated requests.

**In.** Record batches are staged beside the queue as they arrive, invisible to readers. The end of the stream settles
all of them in one step, under the client's key, which goes into the ledger. A broken stream is undone, and batches that
a killed server had staged expire. A request with a key from the ledger puts nothing, and gets the first answer again.

**Out.** A reader takes numbered claims, as Spark's source does (`rules.claims`). Its checkpoint is the number of the
last claim that it has processed. A request names this number: the server confirms the claims up to it, and sends the
messages of the next claim. The same request again sends the same messages, until a later request confirms or returns
them.

Between two pages or record batches a client costs only a task: no thread waits for a slow client, and memory holds
only a few record batches of a stream.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from starlette.responses import JSONResponse, Response

from ...arrow.framing import END, Broken, Frame, Frames, TooLong
from ...client.bulk import NAME, ClaimReader, LedgerKey, Slice, Staged, Stager
from ...client.manager import QueueManager
from ...errors import CheckpointLost, NoMessageAvailable
from ...model.options import GetOptions
from ...model.parameters import Integer
from ...rules.channels import CHANNEL
from ...stores.seam.records import Noted, Settled
from ..calls import CONTEXT, Call, check_media_type
from ..disconnects import IsWanted, while_wanted
from ..problems import problem
from .describing import ARROW, ApiBody, ApiOperation, ApiParameter, ApiResponse, Given, record, ref, value
from .messages import KEY
from .parameters import flag
from .streaming import Streamed
from .taking import ORDER, WAIT, get_and_hold, wait_of

if TYPE_CHECKING:
    import pyarrow as pa

QUERY: Final = "http"  # the name in the ledger, which keeps the newest batches of each writer
PART_BYTES: Final = 4 * 1_048_576  # bytes of small record batches that are staged in one step
STAGED_SECONDS: Final = 3_600.0  # until the staged rows of a killed server expire
NUMBER_MAX: Final = 2**53 - 1
MESSAGES_MAX, BYTES_MAX = 1_000_000, 2**30


def check_arrow() -> None:
    """Raises: Problem 501, if pyarrow is not installed."""
    if find_spec("pyarrow") is None:
        raise problem("INWB0020E")


# --- in


async def put(call: Call, given: Given) -> Response:
    """Puts the rows of a stream, once for each key."""
    check_arrow()
    check_media_type(call, (ARROW,))
    key = LedgerKey(given["writer"] or call.identity.name, QUERY, given[KEY])
    qm = call.context.qm
    with call.context.transfers.taken():
        done: Noted | Settled | None = await qm.bulk.in_ledger(call.queue, key)
        if done is None:
            done = settled = await Upload(call, key).run()
            if settled.already:  # the same request was sent twice; its entry goes with the queue
                done = await qm.bulk.in_ledger(call.queue, key) or settled
    return JSONResponse({"messages": done.messages})


class Upload:
    """A stream of messages to a queue."""

    def __init__(self, call: Call, key: LedgerKey) -> None:
        self._call, self._key = call, key
        self._name = f"http-{uuid.uuid4()}"
        self._frames = Frames(call.context.settings.limits.batch)
        self._schema: pa.Schema | None = None
        self._rows = 0

    async def run(self) -> Settled:
        """Stages and settles the stream. Raises: Problem 400, 408, 413; ClientDisconnect; errors of `Stager.stage`."""
        qm = self._call.context.qm
        staging: asyncio.Future[None] | None = None
        try:
            async for frames, held in self._parts():
                before, staging = staging, asyncio.ensure_future(self._stage(frames, held, staging))
                if before is not None:
                    await before
            if staging is not None:
                await staging
            staged = Staged(self._name, self._rows)
            return await qm.run(lambda one: one.bulk.settle_staging(self._key, [staged]))
        except BaseException:
            if staging is not None:
                await asyncio.wait({staging})
                staging.exception()  # this error or an earlier one is raised
            await qm.run(lambda one: one.bulk.undo_staging([self._name]))
            raise

    async def _parts(self) -> AsyncIterator[tuple[list[Frame], ExitStack]]:
        """The record batches for each step, and the room that they take."""
        seconds = self._call.context.settings.limits.body_seconds
        pieces = self._call.request.stream()
        while not self._frames.is_over:
            with ExitStack() as held:
                try:
                    found = await asyncio.wait_for(self._part(pieces, held), seconds)
                except asyncio.TimeoutError:
                    raise problem("INWB0007E", f"{seconds:g}", Connection="close") from None
                yield found, held.pop_all()

    async def _part(self, pieces: Any, held: ExitStack) -> list[Frame]:
        found: list[Frame] = []
        size = 0
        try:
            async for piece in pieces:
                held.enter_context(self._call.context.bodies.taken(len(piece)))
                whole = self._frames.feed(piece)
                found += whole
                size += sum(len(one.data) for one in whole)
                if size >= PART_BYTES and not self._frames.is_over:
                    return found
            self._frames.end()
        except Broken as error:
            raise problem("INWB0004E", error) from None
        except TooLong:
            raise problem("INWB0005E", f"{self._call.context.settings.limits.batch:,}", Connection="close") from None
        return found

    async def _stage(self, frames: Sequence[Frame], held: ExitStack, before: asyncio.Future[None] | None) -> None:
        with held:
            if before is not None:
                await asyncio.wait({before})
                if before.exception() is not None:
                    return
            await self._call.demand_again("put", self._call.queue)  # a stream may last for hours
            try:
                await self._call.context.qm.run(lambda one: self._write(one, frames))
            except Broken as error:
                raise problem("INWB0004E", error) from None

    def _write(self, qm: QueueManager, frames: Sequence[Frame]) -> None:
        """Stages rows. It runs in the thread of a connection."""
        from ...arrow.streams import schema_of, staged  # noqa: PLC0415 - an extra

        with qm.open(self._call.queue, output=True) as queue:
            stager = Stager(queue, self._name, lasts=STAGED_SECONDS)
            if self._schema is None and frames:
                self._schema, frames = schema_of(frames[0]), frames[1:]
                stager.stage(0, {"body": []})  # an empty stream goes into the ledger, too
            self._rows += staged(frames, self._schema, stager, self._rows, sign=self._signed)

    def _signed(self, count: int, columns: Mapping[str, Sequence[Any]]) -> Mapping[str, Sequence[Any]]:
        """The columns with the present user; a user who may control the queue manager can name another one."""
        identity = self._call.identity
        given = columns if identity.may("control") else {one: columns[one] for one in columns if one not in CONTEXT}
        named = given.get("user_identifier", [None] * count)
        user = identity.user_identifier
        return {**given, "user_identifier": [user if one is None else one for one in named]}


# --- out


def _reader(call: Call) -> str:
    """The name of the reader. Raises: Problem 400, if it is a channel's: only the channel knows its position."""
    name = call.names["reader"]
    if name.startswith(CHANNEL):
        raise problem("INWB0003E", "reader", f"must not begin with {CHANNEL!r}: such names are those of channels")
    return name


class TakenClaim(NamedTuple):
    """A claim for an answer."""

    part: Slice
    reader: str
    epoch: int


async def begin(call: Call, _: Given) -> Response:
    """Begins a reader."""

    def work(qm: QueueManager) -> dict[str, int]:
        with qm.open(call.queue, input="shared") as queue:
            started = ClaimReader(queue, _reader(call)).begin()
        return {"epoch": started.epoch, "settled": started.settled}

    return JSONResponse(await call.context.qm.run(work))


async def claim(call: Call, given: Given) -> Response:
    """Confirms, takes the next claim, and sends it."""
    check_arrow()
    wait = wait_of(call, given)
    with ExitStack() as held:
        held.enter_context(call.context.transfers.taken())
        if not wait:
            taken = await _taken(call, given, 0)
            return Response(status_code=204) if taken is None else _sent(call, taken, held.pop_all())

    async def look(is_wanted: IsWanted) -> Response:
        del is_wanted  # the same request would get the same messages
        taken = await _taken(call, given, wait)
        if taken is None:
            return Response(status_code=204)
        with ExitStack() as held:
            held.enter_context(call.context.transfers.taken())
            return _sent(call, taken, held.pop_all())

    with call.context.waits.taken():
        return await while_wanted(call, look)


async def _taken(call: Call, given: Given, wait: float) -> TakenClaim | None:
    async def look() -> TakenClaim:
        return await get_and_hold(call, lambda one: _take(one, call, given), waits=wait > 0)

    with suppress(NoMessageAvailable):
        return await call.context.qm.awaited(call.queue, look, wait=wait)
    return None


def _take(qm: QueueManager, call: Call, given: Given) -> TakenClaim:
    """The claim after `after`. Raises: NoMessageAvailable, if there is none; the errors of `ClaimReader.claim`."""
    after = given["after"]
    options = GetOptions(
        logical=given["logical"] or given["whole_groups"],
        all_messages=given["whole_groups"],
        read_order=given["read_order"],
    )
    with qm.open(call.queue, input="shared") as queue:
        reader = ClaimReader(queue, _reader(call), epoch=given["epoch"])
        try:
            found = reader.claim(after, options, most=given["messages"], most_bytes=given["bytes"])
            if found is None:
                raise NoMessageAvailable("there is no message to claim")
        except CheckpointLost as lost:
            if lost.data.get("claim") != after + 1:
                raise  # otherwise this reader got the claim before, and repeats its request
        (part,) = reader.plan(after, after + 1)
        return TakenClaim(part, reader.application, given["epoch"])


def _sent(call: Call, taken: TakenClaim, held: ExitStack) -> Response:
    part = taken.part
    shown = {"Inorder-Claim": str(part.claim), "Inorder-Messages": str(part.last - part.first + 1)}
    seconds = call.context.settings.limits.body_seconds
    return Streamed(_parts_of(call, taken), held, seconds=seconds, media_type=ARROW, headers=shown)


async def _parts_of(call: Call, taken: TakenClaim) -> AsyncIterator[bytes]:
    """The claim as a stream. It reads each page after the previous one was sent."""
    from ...arrow.streams import head  # noqa: PLC0415 - an extra

    yield head()
    part = taken.part
    while part.first <= part.last:
        if part is not taken.part:  # a slow reader may have lost the authority by now
            await call.demand_again("get", call.queue)
        rows, found = await call.context.qm.run(lambda one, now=part: _page(one, call.queue, taken, now))  # type: ignore[misc]
        for each in found:
            yield each
        part = part._replace(first=part.first + rows)
    yield END


def _page(qm: QueueManager, queue: str, taken: TakenClaim, part: Slice) -> tuple[int, list[bytes]]:
    """The next page as record batches, and its number of rows."""
    from ...arrow.streams import parts  # noqa: PLC0415 - an extra

    with qm.open(queue, input="shared") as opened:
        page = next(ClaimReader(opened, taken.reader, epoch=taken.epoch).read(part))
    return len(page), list(parts(page, queue, part))


async def settle(call: Call, given: Given) -> Response:
    """Confirms claims."""

    def work(qm: QueueManager) -> int:
        with qm.open(call.queue, input="shared") as queue:
            return ClaimReader(queue, _reader(call), epoch=given["epoch"]).settle(given["upto"])

    return JSONResponse({"messages": await call.context.qm.run(work)})


async def release(call: Call, _: Given) -> Response:
    """Returns claimed messages to the queue."""
    return JSONResponse({"messages": await call.context.qm.bulk.release_claims(call.queue, _reader(call))})


# --- the description

EPOCH: Final = ApiParameter(
    "epoch", "The epoch from the answer to the reader's start.", Integer(1, NUMBER_MAX), required=True
)
STREAM: Final = {"type": "string", "format": "binary"}
COUNTED: Final = "BulkMessages"
SCHEMAS: Final = {
    COUNTED: record({"messages": value("integer", minimum=0)}),
    "ReaderStart": record(
        {
            "epoch": value("integer", "to send with the requests of this start; earlier epochs are refused"),
            "settled": value("integer", "the last claim that has ended; 0 if none has"),
        }
    ),
}
OPERATIONS: Final = (
    ApiOperation(
        name="put_arrow",
        method="POST",
        path="queues/{queue}/arrow",
        authority="put",
        summary="Put the rows of an Arrow IPC stream, all or none, once for each key.",
        text=(
            "Each row is a message, and its columns are named like the keys of Message; `body`, of type binary or "
            "string, is required. Columns for the former place of a message are ignored, so a stream that was read "
            "from a queue can be put. Columns for the user and time of the put are replaced by the present user and "
            "time, unless the user has the authority `control` on the queue manager and they are not null. Record "
            "batches must be uncompressed and without dictionaries. They are processed as they arrive, and become "
            "visible only at the end of the stream. Repeating a key of the same writer puts nothing and returns the "
            "same answer, whatever the body. The queue remembers the newest 1,000 keys of each writer. Without "
            "pyarrow on the server the answer is 501."
        ),
        handler=put,
        parameters=(
            ApiParameter(
                KEY, "A key that identifies this stream among those of its writer.", NAME, where="header", required=True
            ),
            ApiParameter("writer", "The writer to which the key belongs; default: the user's name.", NAME),
        ),
        body=ApiBody("The complete stream.", STREAM, media_type=ARROW),
        answers={
            200: ApiResponse(
                "The messages are on the queue; the answer has their number. A split body counts as its segments.",
                ref(COUNTED),
            )
        },
    ),
    ApiOperation(
        name="begin_reader",
        method="POST",
        path="queues/{queue}/readers/{reader}",
        authority="get",
        summary="Start to read in claims.",
        text=(
            "Call this once for each start of a reader. From then on, requests with an epoch of an earlier start "
            "are refused. Names that begin with `channel ` belong to channels and are refused with 400."
        ),
        handler=begin,
        answers={200: ApiResponse("The position of the reader.", ref("ReaderStart"))},
    ),
    ApiOperation(
        name="claim_arrow",
        method="POST",
        path="queues/{queue}/readers/{reader}/arrow",
        authority="get",
        summary="Confirm finished claims, and get the next messages as an Arrow IPC stream.",
        text=(
            "Claims up to `after` are confirmed and their messages removed. Then the next messages are claimed and "
            "sent. They stay on the queue, hidden from others, until they are confirmed or given back. Repeating "
            "the request sends the same messages again, whatever its other parameters. A claim takes the next "
            "messages: it has no selector and no match by id. Without pyarrow on the server the answer is 501."
        ),
        handler=claim,
        parameters=(
            EPOCH,
            ApiParameter("after", "The last finished claim.", Integer(0, NUMBER_MAX), required=True),
            ApiParameter(
                "messages", "How many messages at most.", Integer(1, MESSAGES_MAX), default=10_000, example=1_000
            ),
            ApiParameter(
                "bytes",
                "The most bytes of bodies; a claim always has at least one message.",
                Integer(1, BYTES_MAX),
                default=64 * 2**20,
            ),
            flag("logical", "Read in logical order: one group after another."),
            flag("whole_groups", "Read only complete groups, never parts of one."),
            ORDER,
            WAIT,
        ),
        answers={
            200: ApiResponse(
                "The messages, in order.",
                STREAM,
                media_type=ARROW,
                headers={
                    "Inorder-Claim": "the number of the claim, for its confirmation",
                    "Inorder-Messages": "the number of messages in it",
                },
            ),
            204: ApiResponse("There were no messages, and none came in time."),
        },
    ),
    ApiOperation(
        name="settle_claims",
        method="POST",
        path="queues/{queue}/readers/{reader}/settle",
        authority="get",
        summary="Confirm claims, which removes their messages. The request can be repeated safely.",
        handler=settle,
        parameters=(EPOCH, ApiParameter("upto", "The last claim to confirm.", Integer(0, NUMBER_MAX), required=True)),
        answers={200: ApiResponse("The number of messages removed.", ref(COUNTED))},
    ),
    ApiOperation(
        name="release_claims",
        method="POST",
        path="queues/{queue}/readers/{reader}/release",
        authority="get",
        summary="Return the messages of open claims. The reader must start again.",
        handler=release,
        answers={200: ApiResponse("The number of messages returned to their places.", ref(COUNTED))},
    ),
)
