"""Leases: units of work over HTTP, with a token and a deadline. Any worker may serve any request of one."""

from __future__ import annotations

from typing import Final

from starlette.responses import JSONResponse, Response

from ... import aio
from ...errors import UnitNotAvailable
from ...formats.json_lines import when
from ...model.parameters import Seconds, Text
from ...rules.leases import SECONDS_MAX
from ..calls import Call
from ..problems import problem
from .describing import ApiOperation, ApiParameter, ApiResponse, Given, record, ref, value
from .taking import LEASE

TOKEN: Final = ApiParameter(LEASE, "The token of the lease.", Text(200, least=1), where="header", required=True)


async def begin(call: Call, given: Given) -> Response:
    """Begins a lease for the user."""
    qm, user, most = call.context.qm, call.identity.name, call.context.settings.limits.leases
    try:
        lease = await qm.lease(seconds=given["seconds"], user=user, most=most)
    except UnitNotAvailable:
        raise problem("INWB0008E", f"leases of {user}", f"{most:,}", status=429, Retry_After="1") from None
    return JSONResponse({"token": lease.token, **_record(lease)}, 201)


async def show(call: Call, given: Given) -> Response:
    """Answers a lease that has not ended."""
    return JSONResponse(_record(await _lease(call, given)))


async def extend(call: Call, given: Given) -> Response:
    """Sets its deadline."""
    lease = await _lease(call, given)
    await lease.extend(given["seconds"])
    return JSONResponse(_record(lease))


async def commit(call: Call, given: Given) -> Response:
    """Makes its puts visible and its gets final."""
    await (await _lease(call, given)).commit()
    return Response(status_code=204)


async def back_out(call: Call, given: Given) -> Response:
    """Undoes its puts, and returns the messages of its gets."""
    await (await _lease(call, given)).back_out()
    return Response(status_code=204)


async def _lease(call: Call, given: Given) -> aio.Lease:
    return await call.context.qm.resume_lease(given[LEASE], user=call.identity.name)


def _record(lease: aio.Lease) -> dict[str, object]:
    return {"name": lease.name, "user": lease.user, "ends_at": when(lease.ends_at)}


SCHEMAS: Final = {
    "Lease": record(
        {
            "token": value("string", "the secret for later requests; only the answer to `begin` has it"),
            "name": value("string", "the name that operators see"),
            "user": value("string", "its user"),
            "ends_at": value("string", "the deadline, at which it is backed out", format="date-time"),
        },
        optional=["token"],
    )
}
SECONDS: Final = ApiParameter(
    "seconds", "Seconds from now until the deadline.", Seconds(0, SECONDS_MAX, above=True), default=30, example=60
)
OPERATIONS: Final = (
    ApiOperation(
        name="begin_lease",
        method="POST",
        path="leases",
        authority=None,
        summary="Begin a unit of work.",
        text=(
            f"Puts and gets with its token in the header {LEASE} are part of it. It ends with a commit, a back out, "
            "or at its deadline, when it is backed out. Only its user can use it."
        ),
        handler=begin,
        parameters=(SECONDS,),
        answers={201: ApiResponse("The lease, with its token.", ref("Lease"))},
    ),
    ApiOperation(
        name="lease",
        method="GET",
        path="lease",
        authority=None,
        summary="The lease with this token.",
        handler=show,
        parameters=(TOKEN,),
        answers={200: ApiResponse("The lease; 409 with reason 9060 if it has ended.", ref("Lease"))},
    ),
    ApiOperation(
        name="extend_lease",
        method="POST",
        path="lease/extend",
        authority=None,
        summary="Set the deadline of a lease.",
        handler=extend,
        parameters=(TOKEN, SECONDS),
        answers={200: ApiResponse("The lease.", ref("Lease"))},
    ),
    ApiOperation(
        name="commit_lease",
        method="POST",
        path="lease/commit",
        authority=None,
        summary="Commit a lease: its puts become visible, its gets are final.",
        handler=commit,
        parameters=(TOKEN,),
        answers={204: ApiResponse("The lease is committed and on disk; 409 with reason 9060 if it had already ended.")},
    ),
    ApiOperation(
        name="back_out_lease",
        method="POST",
        path="lease/back_out",
        authority=None,
        summary="Back out a lease: its puts are undone, and its gets return to their places.",
        handler=back_out,
        parameters=(TOKEN,),
        answers={204: ApiResponse("The lease is backed out.")},
    ),
)
