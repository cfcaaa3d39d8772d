"""What a form carries against forgery, and how a form is read.

A token is an HMAC of the credentials with which the page was asked for, by the server's key: another session has
another one, a page of another site cannot know it, and no worker needs to remember it.
"""

from __future__ import annotations

import hashlib
import hmac

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Receive

from ..calls import Call, Context, check_media_type
from ..problems import problem

FIELD = "csrf"
PURPOSE = b"inorder console form 1\n"
FIELDS_MAX = 1_000
SMALL = 65_536  # bytes of a form that somebody sends who is not known yet
KINDS = ("application/x-www-form-urlencoded", "multipart/form-data")


def token(context: Context, request: Request) -> str:
    """What the forms of this visitor must carry."""
    given = request.headers.get("authorization") or request.cookies.get(context.settings.cookie) or ""
    return hmac.new(context.settings.key, PURPOSE + given.encode(), hashlib.sha256).hexdigest()


async def read(call: Call, most: int) -> FormData:
    """The form in the body, of at most so many bytes; a file of it is on disk from 1 MiB on.

    Raises: Problem 400, 408, 413, 415, 503.
    """
    check_media_type(call, KINDS)
    found: list[FormData] = []

    async def parse(receive: Receive) -> None:
        request = Request(call.request.scope, receive)
        try:
            found.append(await request.form(max_fields=FIELDS_MAX, max_files=1, max_part_size=most))
        except HTTPException as error:  # what Starlette makes of its MultiPartException
            raise problem("INWB0004E", f"it is not a form: {error.detail}") from None

    await call.received(most, parse)
    return found[0]


def check(form: FormData, wanted: str) -> None:
    """Raises: Problem 403, the form is not from a page of this session."""
    given = form.get(FIELD)
    if not isinstance(given, str) or not hmac.compare_digest(given.encode(), wanted.encode()):
        raise problem("INWB0016E")
