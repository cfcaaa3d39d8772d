"""Protects forms against forgery, and reads them.

A token is an HMAC, with the server's key, of the user and the credentials of the page request. Each session has a
different token, another site cannot know it, and no worker has to remember it.

A form with text that is not UTF-8 is refused. Starlette would silently replace each wrong byte, and put a message that
no client sent. So plain forms are read here. In a form with a file, Starlette decodes texts as Latin-1, in which each
byte is a character, and this module decodes them again.

An act that succeeds redirects to a page, and leaves a notice for it in a signed cookie. The page shows the notice once.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from typing import Final
from urllib.parse import unquote_to_bytes

from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import Receive

from ..calls import AT_ONCE, Call, Context, check_media_type
from ..problems import Problem, printable, problem
from ..sessions import read_signed, signed
from .page import BASE, Visit, address

FIELD = "csrf"
PURPOSE = b"inorder console form 1\n"
FIELDS_MAX = 1_000
SMALL = 65_536  # bytes of a form before log-in
KINDS = ("application/x-www-form-urlencoded", "multipart/form-data")
LATIN_1: Final = b"; charset=latin-1"
NOTICE = b"inorder console notice 1\n"
NOTICE_SECONDS = 60
NOTICE_MAX = 1_000


def token(context: Context, request: Request) -> str:
    """The token that the forms of this visitor must carry."""
    given = request.headers.get("authorization") or request.cookies.get(context.settings.cookie) or ""
    user = request.scope["inorder.identity"].name  # a client certificate is in no header
    return hmac.new(context.settings.key, PURPOSE + f"{user}\0{given}".encode(), hashlib.sha256).hexdigest()


async def read(call: Call, most: int) -> FormData:
    """Reads the form in the body, up to a number of bytes. Files from 1 MiB are kept on disk.

    Raises: Problem 400, if it is not a form or has text that is not UTF-8; 408, 413, 415, 503.
    """
    check_media_type(call, KINDS)
    kind = (call.header("content-type") or "").partition(";")[0].strip().lower()
    found: list[FormData] = []

    async def parse(receive: Receive) -> None:
        if kind == KINDS[0]:
            found.append(await _of_fields(Request(call.request.scope, receive)))
        else:
            found.append(await _with_file(call, receive, most))

    await call.received(most, parse)
    return found[0]


async def _of_fields(request: Request) -> FormData:
    data = await request.body()
    if data.count(b"&") >= FIELDS_MAX:
        raise problem("INWB0004E", f"must be a form of at most {FIELDS_MAX:,} fields")
    return FormData(await asyncio.to_thread(_fields, data) if len(data) > AT_ONCE else _fields(data))


def _fields(data: bytes) -> list[tuple[str, str | UploadFile]]:
    pairs = (piece.replace(b"+", b" ").partition(b"=") for piece in data.split(b"&") if piece)
    return [_decoded(unquote_to_bytes(name), unquote_to_bytes(value)) for name, _, value in pairs]


async def _with_file(call: Call, receive: Receive, most: int) -> FormData:
    headers = [
        (name, value + LATIN_1 if name == b"content-type" else value) for name, value in call.request.scope["headers"]
    ]
    request = Request({**call.request.scope, "headers": headers}, receive)
    try:
        form = await request.form(max_fields=FIELDS_MAX, max_files=1, max_part_size=most)
    except MultiPartException as error:
        raise problem("INWB0004E", f"must be a form: {error.message}") from None
    try:
        return FormData([_part(name, value) for name, value in form.multi_items()])
    except Problem:
        await form.close()
        raise


def _part(name: str, value: UploadFile | str) -> tuple[str, UploadFile | str]:
    if isinstance(value, str):
        return _decoded(name.encode("latin-1"), value.encode("latin-1"))
    return _decoded(name.encode("latin-1"), b"")[0], value


def _decoded(name: bytes, value: bytes) -> tuple[str, str]:
    """A field of the form. Raises: Problem 400, if it is not UTF-8."""
    try:
        return name.decode(), value.decode()
    except UnicodeDecodeError as error:
        field = printable(name.decode("utf-8", "replace"))
        raise problem(
            "INWB0004E",
            f"the field {field!r} must be text in UTF-8, not byte 0x{error.object[error.start]:02x} at "
            f"{error.start:,}; for a binary body use hexadecimal digits",
        ) from None


def check(form: FormData, wanted: str) -> None:
    """Raises: Problem 403, if the form is not from a page of this session."""
    given = form.get(FIELD)
    if not isinstance(given, str) or not hmac.compare_digest(given.encode(), wanted.encode()):
        raise problem("INWB0016E")


# --- notices


def done(visit: Visit, text: str, *pieces: str) -> Response:
    """Redirects to a page of the console, which shows this notice."""
    response, settings = RedirectResponse(address(*pieces), 303), visit.context.settings
    response.set_cookie(
        _cookie(visit.context),
        signed(settings.key, NOTICE, text[:NOTICE_MAX].encode("utf-8", "replace")),
        max_age=NOTICE_SECONDS,
        path=BASE,
        secure=settings.is_secure,
        httponly=True,
        samesite="strict",
    )
    return response


def notice_in(context: Context, request: Request) -> str:
    """The notice for this page; empty if there is none."""
    return (read_signed(context.settings.key, NOTICE, request.cookies.get(_cookie(context), "")) or b"").decode()


def forget_notice(context: Context, response: Response) -> None:
    """Deletes the notice, because the page has shown it."""
    response.delete_cookie(_cookie(context), path=BASE)


def _cookie(context: Context) -> str:
    return f"inorder_notice_{context.settings.port}"
