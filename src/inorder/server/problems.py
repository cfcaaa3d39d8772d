"""What goes wrong, in IBM's form: a status of HTTP, and JSON with a number, a text and MQ's codes.

Numbers that begin with MQWB are IBM's, for what IBM's pages give them to. Where those pages have none that could be
found, the number begins with INWB and is ours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What stands behind a number.

    Args:
        status: of HTTP.
        text: with a place for each insert.
        why: what has happened.
        remedy: what to do.
    """

    status: int
    text: str
    why: str
    remedy: str


def _kind(status: int, text: str, why: str, remedy: str) -> Kind:
    return Kind(status=status, text=text, why=why, remedy=remedy)


KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "MQWB0000E": _kind(
            500, "An unexpected error occurred.", "The server's log has it.", "Report it, with what the log says."
        ),
        "MQWB0009E": _kind(
            404,
            "Could not query the queue manager '{}'.",
            "This server has another queue manager; names are case-sensitive.",
            "GET admin/qmgr for its name.",
        ),
        "MQWB0037E": _kind(
            404,
            "Could not find the queue '{}'.",
            "There is no queue of this name.",
            "Give the name of a queue, or none to list all.",
        ),
        "MQWB0100E": _kind(
            401,
            "The CSRF header '{}' was omitted from the request.",
            "A request that is not a GET needs this header, so that no other site can send one.",
            "Send the header; its value may be anything, or empty.",
        ),
        "MQWB0103E": _kind(
            403, "Not authorized to {} '{}'.", "The authenticated user may not do this.", "Ask for the authority."
        ),
        "MQWB0104E": _kind(
            401,
            "The REST API request to '{}' is not authenticated.",
            "It has no credentials, or wrong ones.",
            "Send a bearer token, or a name and a password by basic authentication, or log in.",
        ),
        "MQWB0112E": _kind(
            401,
            "The '{}' authentication token cookie failed verification.",
            "The session is over: its time is up, the server was restarted, or the user has changed.",
            "Log in again.",
        ),
        "MQWB0120E": _kind(
            400,
            "The command in JSON is not valid: {}",
            "It could not be read as a command in MQSC.",
            "Correct it; nothing was changed.",
        ),
        "MQWB0300E": _kind(
            404,
            "Cannot create messaging connection to {} on {}.",
            "There is no such destination.",
            "Name a queue that exists; there are no topics.",
        ),
        "MQWB0302E": _kind(
            400,
            "The '{}' request header cannot be set as '{}' is not a valid request header value: {}",
            "A header of the request is not valid, or does not belong to this version of the interface.",
            "Correct the header; nothing was put.",
        ),
        "MQWB0303E": _kind(
            500,
            "The message was not sent, received or browsed: {}",
            "The queue manager refused it; the reason code says why.",
            "See to the reason, and repeat the request.",
        ),
        "MQWB0304E": _kind(
            501,
            "The '{}' response header cannot be set in the HTTP response.",
            "The message has properties that are too long for a header. It stays on the queue.",
            "Get it with a program that uses inorder.",
        ),
        "MQWB0305E": _kind(
            415,
            "The character set '{}' is not acceptable for the request.",
            "Bodies are texts in UTF-8.",
            "Send charset=utf-8.",
        ),
        "MQWB0306E": _kind(
            415,
            "The media type is unsupported for this type of request.",
            "The Content-Type is missing, or not one of those that are allowed: {}.",
            "Send one of them.",
        ),
        "MQWB0309E": _kind(
            501,
            "The message is not a text: its format is '{}', its character set {}.",
            "Only messages of format MQSTR whose characters can be read are returned. It stays on the queue.",
            "Get it with another program, or have it put with format MQSTR.",
        ),
        "INWB0001E": _kind(
            404, "There is no resource '{}'.", "The address is not one of this interface.", "Correct the address."
        ),
        "INWB0002E": _kind(
            405,
            "The method {} is not allowed for this resource.",
            "The resource takes {}.",
            "Use one of these methods.",
        ),
        "INWB0003E": _kind(
            400,
            "The query parameter '{}' {}",
            "It is unknown, or its value is not valid.",
            "Correct the query.",
        ),
        "INWB0004E": _kind(
            400, "The body of the request is not valid: {}", "It could not be read.", "Correct the body."
        ),
        "INWB0005E": _kind(
            413,
            "The body of the request has more than {} bytes.",
            "The server does not accept longer ones here.",
            "Send less.",
        ),
        "INWB0006E": _kind(
            431,
            "The address and headers of the request have more than {} bytes.",
            "The server does not accept longer ones.",
            "Send less.",
        ),
        "INWB0007E": _kind(
            408, "The body of the request did not arrive in {} seconds.", "The client is too slow.", "Repeat it."
        ),
        "INWB0008E": _kind(
            503, "Too many {} at once: the server takes {}.", "It is busy.", "Repeat the request later."
        ),
        "INWB0009E": _kind(
            503, "The server is stopping.", "It ends the calls that wait; nothing was got.", "Repeat the request later."
        ),
        "INWB0010E": _kind(
            421,
            "This server is not called '{}'.",
            "The Host header, or the address, names another one, as a page of another site would (DNS rebinding).",
            "Use an address that the server was started for.",
        ),
        "INWB0011E": _kind(
            403,
            "Requests from the origin '{}' are refused.",
            "Another site has sent it.",
            "Use the server's own pages.",
        ),
        "INWB0012E": _kind(
            503,
            "The store cannot be used: {}",
            "The file or database of the queue manager is in trouble; the reason code says which.",
            "See to it, and repeat the request.",
        ),
        "INWB0013E": _kind(
            501,
            "There are no metrics: the library prometheus-client is not installed.",
            "The server was installed without it.",
            "On the server, install the extra inorder[prometheus].",
        ),
        "INWB0014E": _kind(
            409,
            "{}",
            "The queue manager refused it; the reason code says why.",
            "See to the reason; nothing was changed.",
        ),
        "INWB0015E": _kind(
            404,
            "There is no message {} on {}.",
            "It has been got since, or has expired, or the address is not one of the console's.",
            "Look at the queue again.",
        ),
        "INWB0016E": _kind(
            403,
            "The form is not from a page of this session.",
            "The session has ended since the page was loaded, or another site has sent the form.",
            "Load the page again, and repeat what you did.",
        ),
        "INWB0017E": _kind(
            404,
            "{}",
            "It has been settled since, its program has ended, or it has never been.",
            "Look again at what is held.",
        ),
        "INWB0018E": _kind(
            400,
            "The request is not valid: {}",
            "It is not as HTTP/1.1 has requests.",
            "Correct what sends it; nothing was done.",
        ),
        "INWB0019E": _kind(
            415,
            "The content coding '{}' is not supported.",
            "Bodies are taken as they are sent: what is compressed would not be unpacked.",
            "Send the body as it is, without Content-Encoding.",
        ),
        "INWB0020E": _kind(
            501,
            "There are no Arrow streams: the library pyarrow is not installed.",
            "The server was installed without it.",
            "On the server, install the extra inorder[arrow].",
        ),
        "INWB0030E": _kind(
            429,
            "Too many log-ins have failed: try again in {} s.",
            "For this user or from this address; no password is tried until then.",
            "Wait, or come in by a token or a client certificate.",
        ),
        "INWB0040E": _kind(
            501,
            "There is no export as {}: the library {} is not installed.",
            "The server was installed without it.",
            "On the server, install the extra inorder[arrow], or choose another form.",
        ),
    }
)


@dataclass(slots=True, eq=False)
class Problem(Exception):
    """A request that is refused or fails.

    Args:
        number: one of `KINDS`.
        inserts: for its texts.
        completion, reason: MQ's codes, where there are some.
        headers: of the response.
        status: of HTTP, where it is not the number's.
    """

    number: str
    inserts: tuple[object, ...] = ()
    completion: int = 0
    reason: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 0

    @property
    def code(self) -> int:
        """The status of HTTP."""
        return self.status or KINDS[self.number].status

    def record(self) -> dict[str, Any]:
        """As JSON. IBM's pages call the number messageId, its server msgId: both are there."""
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
        """What the client gets."""
        return JSONResponse({"error": [self.record()]}, self.code, headers=dict(self.headers))


def problem(number: str, *inserts: object, reason: int = 0, status: int = 0, **headers: str) -> Problem:
    """A problem; with a reason of MQ's it is a failed call."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    completion = Completion.FAILED.value if reason else 0
    return Problem(number, inserts, completion=completion, reason=reason, headers=named, status=status)


def wrong_parameter(error: ArgumentError) -> Problem:
    """The value of a query parameter must be another one."""
    return problem("INWB0003E", error.data["argument"], f"{must_be(error)}, not {written(error.data['value'])}")


def must_be(error: ArgumentError) -> str:
    """What an argument must be."""
    return f"must be {error.data['allowed']}"


def stated(error: InorderError) -> str:
    """An error without what a program in Python can do about it: a client of HTTP has no such calls."""
    text, remedy = str(error.args[0]), error.data.get("remedy")
    kept = text if remedy is None else text.removesuffix(f"; {remedy}")
    return f"{kept} [{error.reason.value} {error.reason.name}]"


def _in_one_line(error: InorderError) -> str:
    """An error without the picture that some have below their first line, of the place that is wrong."""
    first, *more = stated(error).splitlines() or [""]
    reason = f" [{error.reason.value} {error.reason.name}]"
    if more and more[-1].strip() == f"^{reason}":
        return f"{first}{reason}"
    return " ".join([first, *more])


def printable(text: str) -> str:
    """A text of the client's as an answer shows it: in one line, and short."""
    shown = "".join(one if one.isprintable() else "?" for one in text)
    return shown if len(shown) <= 500 else f"{shown[:497]}..."


def of_log_ins(error: TooManyLogIns) -> Problem:
    """Too many log-ins have failed."""
    seconds = str(max(1, math.ceil(error.seconds)))
    return problem("INWB0030E", seconds, reason=error.reason.value, Retry_After=seconds)


def _of_any(error: InorderError) -> Problem | None:
    """What an error is to the clients of every interface; None: each has its own answer."""
    if isinstance(error, NotAuthorized):  # where the reports would go that a message asks for, its user may not put
        return problem("MQWB0103E", "have reports put to", error.data.get("queue", ""), reason=NOT_AUTHORIZED)
    if isinstance(error, StoreError | QueueManagerStopping):
        return problem("INWB0012E", error, reason=error.reason.value)
    return None


def of_error(error: InorderError, queue: str, manager: str) -> Problem:
    """What an error of the queue manager is to a client of the messaging interface."""
    reason = error.reason.value
    if (found := _of_any(error)) is not None:
        return found
    if isinstance(error, UnknownObject):
        return problem("MQWB0300E", queue, manager, reason=Reason.UNKNOWN_OBJECT_NAME.value)
    status = 400 if isinstance(error, ArgumentError) else 0
    return problem("MQWB0303E", error, reason=reason, status=status)


def of_admin_error(error: InorderError, queue: str) -> Problem:
    """The same to a client of the administration interface."""
    reason = error.reason.value
    if (found := _of_any(error)) is not None:
        return found
    if isinstance(error, UnknownQueue):
        return problem("MQWB0037E", error.data.get("queue", queue), reason=reason)
    if isinstance(error, UnknownObject | UnitNotFound):
        return problem("INWB0017E", error, reason=reason)
    return problem("INWB0014E", error, reason=reason, status=400 if isinstance(error, CallerError) else 409)


def of_our_error(error: InorderError) -> Problem:
    """The same to a client of our own interface: every error of the queue manager has its reason there."""
    reason = error.reason.value
    if (found := _of_any(error)) is not None:
        return found
    status = 404 if isinstance(error, UnknownObject) else 400 if isinstance(error, CallerError) else 409
    return problem("INWB0014E", error, reason=reason, status=status)
