"""A notice for the next page: a signed cookie that an act sets and that is shown once."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

from starlette.requests import Request
from starlette.responses import Response

from ..calls import Context
from .page import BASE

PURPOSE = b"inorder console notice 1\n"
SECONDS = 60
LENGTH_MAX = 1_000


def leave(context: Context, response: Response, text: str) -> Response:
    """Sets a notice for the next page. Returns the response."""
    data = text[:LENGTH_MAX].encode("utf-8", "replace")
    value = f"{base64.urlsafe_b64encode(data).decode()}.{_signature(context, data)}"
    response.set_cookie(
        _name(context),
        value,
        max_age=SECONDS,
        path=BASE,
        secure=context.settings.is_secure,
        httponly=True,
        samesite="strict",
    )
    return response


def left(context: Context, request: Request) -> str:
    """The notice for this page; empty if there is none."""
    data, _, signature = request.cookies.get(_name(context), "").partition(".")
    try:
        text = base64.b64decode(data.encode("ascii"), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        return ""
    if not text or not hmac.compare_digest(signature.encode(), _signature(context, text).encode()):
        return ""
    return text.decode()


def forget(context: Context, response: Response) -> None:
    """The notice was shown."""
    response.delete_cookie(_name(context), path=BASE)


def _name(context: Context) -> str:
    return f"inorder_notice_{context.settings.port}"


def _signature(context: Context, data: bytes) -> str:
    return hmac.new(context.settings.key, PURPOSE + data, hashlib.sha256).hexdigest()
