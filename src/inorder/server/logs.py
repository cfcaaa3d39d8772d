"""The server's log: one JSON object per line on standard error, without any credentials.

A request is logged with its method, its path without the query (a link has the token there), the status, how long it
took, and the name of the user: no header, no body, no message.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import os
import time
from datetime import datetime, timezone
from json.encoder import encode_basestring_ascii as quoted
from typing import TYPE_CHECKING, Any, Final, TextIO

if TYPE_CHECKING:
    TextHandler = logging.StreamHandler[TextIO]
else:
    TextHandler = logging.StreamHandler  # Python 3.10 cannot subscript it

LOGGER: Final = "inorder.server"
ENCODED: Final = json.JSONEncoder(ensure_ascii=True, default=str).encode
FIELDS: Final = ("method", "path", "status", "seconds", "identity", "client")


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, timezone.utc)
        line: dict[str, Any] = {
            "at": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "process": os.getpid(),
            "event": record.getMessage(),
        }
        line |= {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return ENCODED(line)


class JsonLines(TextHandler):
    """Writes records as lines of JSON. It writes the line of a request without a record, which would cost more."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonFormatter())

    def write_request(
        self, method: str, path: str, status: int, seconds: float, identity: str | None, client: str | None
    ) -> None:
        """Writes the line that `JsonFormatter` would make of these fields."""
        now = time.time()
        line = (
            f'{{"at": "{_second(int(now))}.{int(now % 1 * 1000):03}Z", "level": "info", "process": {os.getpid()}, '
            f'"event": "request", "method": {quoted(method)}, "path": {quoted(path)}, "status": {status}, '
            f'"seconds": {seconds!r}, "identity": {_or_null(identity)}, "client": {_or_null(client)}}}\n'
        )
        with self.lock or _NO_LOCK:
            try:
                self.stream.write(line)
                self.flush()
            except (OSError, ValueError):  # a log that is closed or cannot be written stops no request
                self.handleError(logging.makeLogRecord({"msg": "request"}))


_NO_LOCK: Final = contextlib.nullcontext()


@functools.lru_cache(maxsize=2)
def _second(number: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(number))


def _or_null(text: str | None) -> str:
    return "null" if text is None else quoted(text)


def log_request(
    log: logging.Logger,
    method: str,
    path: str,
    status: int,
    seconds: float,
    identity: str | None,
    client: str | None,
) -> None:
    """Logs an answered request. It makes a record only if a handler other than the server's own needs it."""
    if not log.isEnabledFor(logging.INFO):
        return
    seconds = round(seconds, 6)
    handlers = log.handlers
    if len(handlers) == 1 and isinstance(handlers[0], JsonLines) and not log.propagate:
        handlers[0].write_request(method, path, status, seconds, identity, client)
        return
    extra = {
        "method": method,
        "path": path,
        "status": status,
        "seconds": seconds,
        "identity": identity,
        "client": client,
    }
    # Like log.info, but without the costly search for the calling line.
    log.handle(log.makeRecord(log.name, logging.INFO, "", 0, "request", (), None, extra=extra))


CONFIGURATION: Final[dict[str, Any]] = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"standard error": {"class": "inorder.server.logs.JsonLines"}},
    "loggers": {
        LOGGER: {"handlers": ["standard error"], "level": "INFO", "propagate": False},
        "uvicorn": {"handlers": ["standard error"], "level": "WARNING", "propagate": False},
        # Its messages about unreadable forms contain bytes of the body. The answer reports them, too.
        "python_multipart": {"level": "CRITICAL", "propagate": False},
    },
    "root": {"handlers": ["standard error"], "level": "WARNING"},  # warnings of all libraries, as lines of JSON
}
"""For `logging.config.dictConfig`; uvicorn applies it in each worker."""
