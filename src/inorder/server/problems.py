"""Errors in IBM's form: an HTTP status, and JSON with a number, a text and MQ's codes.

Numbers that begin with MQWB are IBM's, with the meaning in IBM's pages. For errors without a number in those pages, we
use numbers that begin with INWB.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from starlette.responses import JSONResponse

from ..errors import (
    ArgumentError,
    CallerError,
    Completion,
    InorderError,
    NotAuthorized,
    QueueManagerStopping,
    Reason,
    StoreError,
    TooManyLogIns,
    UnitNotFound,
    UnknownObject,
    UnknownQueue,
    written,
)

NOT_AUTHORIZED: Final = 2035


@dataclass(frozen=True, slots=True)
class ProblemKind:
    """The meaning of a number.

    Args:
        status: the HTTP status.
        text: with a placeholder for each insert.
        why: the cause.
        remedy: the advice.
    """

    status: int
    text: str
    why: str
    remedy: str


KINDS: Final[Mapping[str, ProblemKind]] = MappingProxyType(
    {
        "MQWB0000E": ProblemKind(
            500,
            "An unexpected error occurred.",
            "The server's log has the details.",
            "Report it with the details from the log.",
        ),
        "MQWB0009E": ProblemKind(
            404,
            "Could not query the queue manager '{}'.",
            "This server has another queue manager; names are case-sensitive.",
            "GET admin/qmgr for its name.",
        ),
        "MQWB0037E": ProblemKind(
            404,
            "Could not find the queue '{}'.",
            "This queue does not exist.",
            "Give the name of an existing queue, or none to list all.",
        ),
        "MQWB0100E": ProblemKind(
            401,
            "The CSRF header '{}' was omitted from the request.",
            "Requests other than GET need this header, so that other sites cannot forge them.",
            "Send the header; its value may be anything, or empty.",
        ),
        "MQWB0103E": ProblemKind(
            403, "Not authorized to {} '{}'.", "The authenticated user may not do this.", "Ask for the authority."
        ),
        "MQWB0104E": ProblemKind(
            401,
            "The REST API request to '{}' is not authenticated.",
            "The request has no credentials, or wrong ones.",
            "Send a bearer token, or a name and a password by basic authentication, or log in.",
        ),
        "MQWB0112E": ProblemKind(
            401,
            "The '{}' authentication token cookie failed verification.",
            "The session has ended: it expired, the server was restarted, or the user was changed.",
            "Log in again.",
        ),
        "MQWB0120E": ProblemKind(
            400,
            "The command in JSON is not valid: {}",
            "It could not be translated into an MQSC command.",
            "Correct it; nothing was changed.",
        ),
        "MQWB0300E": ProblemKind(
            404,
            "Cannot create messaging connection to {} on {}.",
            "The destination does not exist.",
            "Name a queue that exists; there are no topics.",
        ),
        "MQWB0302E": ProblemKind(
            400,
            "The '{}' request header cannot be set as '{}' is not a valid request header value: {}",
            "A header of the request is not valid, or does not belong to this version of the interface.",
            "Correct the header; nothing was put.",
        ),
        "MQWB0303E": ProblemKind(
            500,
            "The message was not sent, received or browsed: {}",
            "The queue manager refused it; the reason code says why.",
            "Correct the cause, and repeat the request.",
        ),
        "MQWB0304E": ProblemKind(
            501,
            "The '{}' response header cannot be set in the HTTP response.",
            "The message has properties that are too long for a header. The message stays on the queue.",
            "Get the message with a program that uses inorder.",
        ),
        "MQWB0305E": ProblemKind(
            415,
            "The character set '{}' is not acceptable for the request.",
            "Bodies must be UTF-8 text.",
            "Send charset=utf-8.",
        ),
        "MQWB0306E": ProblemKind(
            415,
            "The media type is unsupported for this type of request.",
            "The Content-Type must be one of: {}.",
            "Send one of these types.",
        ),
        "MQWB0309E": ProblemKind(
            501,
            "The message is not a text: its format is '{}', its character set {}.",
            "Only messages of format MQSTR with a readable character set are returned. The message stays on the queue.",
            "Get it with another program, or put it with format MQSTR.",
        ),
        "INWB0001E": ProblemKind(
            404, "There is no resource '{}'.", "This interface has no such address.", "Correct the address."
        ),
        "INWB0002E": ProblemKind(
            405,
            "The method {} is not allowed for this resource.",
            "The resource takes {}.",
            "Use one of these methods.",
        ),
        "INWB0003E": ProblemKind(
            400,
            "The query parameter '{}' {}",
            "The parameter is unknown, or its value is not valid.",
            "Correct the query.",
        ),
        "INWB0004E": ProblemKind(
            400, "The body of the request is not valid: {}", "The body could not be read.", "Correct the body."
        ),
        "INWB0005E": ProblemKind(
            413,
            "The body of the request has more than {} bytes.",
            "The server does not accept a longer body here.",
            "Send less.",
        ),
        "INWB0006E": ProblemKind(
            431,
            "The address and headers of the request have more than {} bytes.",
            "The server does not accept more.",
            "Send less.",
        ),
        "INWB0007E": ProblemKind(
            408,
            "The body of the request did not arrive in {} seconds.",
            "The client was too slow.",
            "Repeat the request.",
        ),
        "INWB0008E": ProblemKind(
            503, "Too many {} at once: the server takes {}.", "The server is busy.", "Repeat the request later."
        ),
        "INWB0009E": ProblemKind(
            503,
            "The server is stopping.",
            "The server ends waiting calls; no message was got.",
            "Repeat the request later.",
        ),
        "INWB0010E": ProblemKind(
            421,
            "This server is not called '{}'.",
            "The Host header or the address names another server, as happens in DNS rebinding.",
            "Use an address that was given when the server was started.",
        ),
        "INWB0011E": ProblemKind(
            403,
            "Requests from the origin '{}' are refused.",
            "A page of another site sent the request.",
            "Use the server's own pages.",
        ),
        "INWB0012E": ProblemKind(
            503,
            "The store cannot be used: {}",
            "The file or database of the queue manager has a problem; see the reason code.",
            "Correct the problem, and repeat the request.",
        ),
        "INWB0013E": ProblemKind(
            501,
            "There are no metrics: the library prometheus-client is not installed.",
            "The server was installed without it.",
            "On the server, install the extra inorder[prometheus].",
        ),
        "INWB0014E": ProblemKind(
            409,
            "{}",
            "The queue manager refused it; the reason code says why.",
            "Correct the cause; nothing was changed.",
        ),
        "INWB0015E": ProblemKind(
            404,
            "There is no message {} on {}.",
            "The message was got or has expired, or the address is not from the console.",
            "Open the page of the queue again.",
        ),
        "INWB0016E": ProblemKind(
            403,
            "The form is not from a page of this session.",
            "The session ended after the page was loaded, or another site sent the form.",
            "Load the page again, and repeat the action.",
        ),
        "INWB0017E": ProblemKind(
            404,
            "{}",
            "It was settled, its program ended, or it never existed.",
            "Open the list of held messages again.",
        ),
        "INWB0018E": ProblemKind(
            400,
            "The request is not valid: {}",
            "The request does not follow HTTP/1.1.",
            "Correct the client; nothing was done.",
        ),
        "INWB0019E": ProblemKind(
            415,
            "The content coding '{}' is not supported.",
            "The server does not decompress bodies.",
            "Send the body uncompressed, without Content-Encoding.",
        ),
        "INWB0020E": ProblemKind(
            501,
            "There are no Arrow streams: the library pyarrow is not installed.",
            "The server was installed without it.",
            "On the server, install the extra inorder[arrow].",
        ),
        "INWB0030E": ProblemKind(
            429,
            "Too many log-ins have failed: try again in {} s.",
            "The limit applies to this user or this address; until then no password is checked.",
            "Wait, or log in with a token or a client certificate.",
        ),
        "INWB0040E": ProblemKind(
            501,
            "There is no export as {}: the library {} is not installed.",
            "The server was installed without it.",
            "On the server, install the extra inorder[arrow], or choose another form.",
        ),
    }
)


@dataclass(slots=True, eq=False)
class Problem(Exception):
    """A request that was refused or failed.

    Args:
        number: one of `KINDS`.
        inserts: for its texts.
        completion, reason: MQ's codes, if any.
        headers: headers of the response.
        status: the HTTP status, if it differs from the number's.
    """

    number: str
    inserts: tuple[object, ...] = ()
    completion: int = 0
    reason: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 0

    @property
    def code(self) -> int:
        """The HTTP status."""
        return self.status or KINDS[self.number].status

    def record(self) -> dict[str, Any]:
        """The problem as JSON. IBM's pages call the number messageId and its server msgId, so both are given."""
        kind = KINDS[self.number]
        shown = [printable(_in_one_line(one) if isinstance(one, InorderError) else str(one)) for one in self.inserts]
        places = kind.text.count("{}")
        return {
            "type": "rest",
            "msgId": self.number,
            "messageId": self.number,
            "message": f"{self.number}: {kind.text.format(*shown[:places])}",
            "explanation": kind.why.format(*shown[places:]),
            "action": kind.remedy,
            "completionCode": self.completion,
            "reasonCode": self.reason,
        }

    def response(self) -> JSONResponse:
        """The response for the client."""
        return JSONResponse({"error": [self.record()]}, self.code, headers=dict(self.headers))


def problem(number: str, *inserts: object, reason: int = 0, status: int = 0, **headers: str) -> Problem:
    """Makes a problem. With one of MQ's reasons, its completion code says that the call failed."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    completion = Completion.FAILED.value if reason else 0
    return Problem(number, inserts, completion=completion, reason=reason, headers=named, status=status)


def not_allowed(method: str, allowed: Iterable[str]) -> Problem:
    """The problem for a method that a resource does not take, with the methods that it takes."""
    methods = ", ".join(allowed)
    return problem("INWB0002E", method, methods, Allow=methods)


def wrong_parameter(error: ArgumentError) -> Problem:
    """The problem for a query parameter with a wrong value."""
    return problem("INWB0003E", error.data["argument"], f"{must_be(error)}, not {written(error.data['value'])}")


def must_be(error: ArgumentError) -> str:
    """The allowed values of an argument, after "must be"."""
    return f"must be {error.data['allowed']}"


def stated(error: InorderError) -> str:
    """The text of an error without its remedy for Python programs, because HTTP clients do not have those calls."""
    text, remedy = str(error.args[0]), error.data.get("remedy")
    kept = text if remedy is None else text.removesuffix(f"; {remedy}")
    return f"{kept} [{error.reason.value} {error.reason.name}]"


def _in_one_line(error: InorderError) -> str:
    """The text of an error without the marker line that shows the place of the mistake."""
    first, *more = stated(error).splitlines() or [""]
    reason = f" [{error.reason.value} {error.reason.name}]"
    if more and more[-1].strip() == f"^{reason}":
        return f"{first}{reason}"
    return " ".join([first, *more])


def printable(text: str) -> str:
    """A client's text for an answer: shortened, and in one line."""
    shown = "".join(one if one.isprintable() else "?" for one in text)
    return shown if len(shown) <= 500 else f"{shown[:497]}..."


def of_log_ins(error: TooManyLogIns) -> Problem:
    """The problem for too many failed log-ins."""
    seconds = str(max(1, math.ceil(error.seconds)))
    return problem("INWB0030E", seconds, reason=error.reason.value, Retry_After=seconds)


def _of_any(error: InorderError) -> Problem | None:
    """The problem that all interfaces share for an error, or None if each has its own."""
    if isinstance(error, NotAuthorized):  # to put on the reply queue of the reports that the message asks for
        return problem("MQWB0103E", "have reports put to", error.data.get("queue", ""), reason=NOT_AUTHORIZED)
    if isinstance(error, StoreError | QueueManagerStopping):
        return problem("INWB0012E", error, reason=error.reason.value)
    return None


def of_error(error: InorderError, queue: str, manager: str) -> Problem:
    """The problem that the messaging interface answers for an error of the queue manager."""
    reason = error.reason.value
    if (found := _of_any(error)) is not None:
        return found
    if isinstance(error, UnknownObject):
        return problem("MQWB0300E", queue, manager, reason=Reason.UNKNOWN_OBJECT_NAME.value)
    status = 400 if isinstance(error, ArgumentError) else 0
    return problem("MQWB0303E", error, reason=reason, status=status)


def of_admin_error(error: InorderError) -> Problem:
    """The problem that the administration interface answers for an error of the queue manager."""
    reason = error.reason.value
    if (found := _of_any(error)) is not None:
        return found
    if isinstance(error, UnknownQueue):
        return problem("MQWB0037E", error.data.get("queue", ""), reason=reason)
    if isinstance(error, UnknownObject | UnitNotFound):
        return problem("INWB0017E", error, reason=reason)
    return problem("INWB0014E", error, reason=reason, status=400 if isinstance(error, CallerError) else 409)


def of_our_error(error: InorderError) -> Problem:
    """The problem that our own interface answers for an error of the queue manager, with the error's reason."""
    reason = error.reason.value
    if (found := _of_any(error)) is not None:
        return found
    status = 404 if isinstance(error, UnknownObject) else 400 if isinstance(error, CallerError) else 409
    return problem("INWB0014E", error, reason=reason, status=status)
