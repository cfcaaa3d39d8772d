"""The server's log: a JSON object a line on standard error, without anything that somebody could log in with.

A request is logged with its method, its path without the query (a link has the token there), the status, how long it
took, and the name of the user: no header, no body, no message.
"""

from __future__ import annotations

import json
import logging
import os
from datetime import datetime, timezone
from typing import Any, Final

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


CONFIGURATION: Final[dict[str, Any]] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "inorder.server.logs.JsonFormatter"}},
    "handlers": {"standard error": {"class": "logging.StreamHandler", "formatter": "json"}},
    "loggers": {
        LOGGER: {"handlers": ["standard error"], "level": "INFO", "propagate": False},
        "uvicorn": {"handlers": ["standard error"], "level": "WARNING", "propagate": False},
        "inorder.integrations": {"handlers": ["standard error"], "level": "WARNING", "propagate": False},
    },
}
"""For `logging.config.dictConfig`; uvicorn applies it in each worker."""
