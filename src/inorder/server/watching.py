"""Answers about the server itself, for operators and machines: whether it is alive or ready, and its metrics."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ..client.manager import connect
from ..errors import InorderError
from .authentication import identity_of
from .calls import Context
from .logs import LOGGER
from .problems import NOT_AUTHORIZED, problem

if TYPE_CHECKING:
    from ..integrations.prometheus import Exposition

log = logging.getLogger(LOGGER)
READY_SECONDS: Final = 5.0
PROGRAM: Final = "inorder serve"


async def health(_: Request) -> Response:
    """GET /health: answers without a look at the store."""
    return JSONResponse({"status": "ok"})


async def ready(context: Context, _: Request) -> Response:
    """GET /ready: whether the server can use the store and takes requests."""
    if context.stopping.is_set():
        raise problem("INWB0009E", Retry_After="1")
    try:
        await asyncio.wait_for(context.qm.admin.manager_attributes(), READY_SECONDS)
    except InorderError as error:
        log.warning("the store cannot be used: %s", error)  # only for the log, because this address needs no token
        raise problem("INWB0012E", "see the server's log", reason=error.reason.value) from error
    except asyncio.TimeoutError:
        raise problem("INWB0012E", f"it did not answer in {READY_SECONDS:g} seconds") from None
    return JSONResponse({"status": "ready"})


class Metrics:
    """The metrics of `inorder.integrations.prometheus`, where prometheus-client is installed.

    Counters count the actions of one process. With several workers, another worker may answer each scrape, so a page
    then has no counters. The gauges come from the store, and are the same in each worker.
    """

    def __init__(self, store: str, *, workers: int) -> None:
        self._page: Callable[[], tuple[bytes, str]] | None = None
        self._end: Callable[[], None] | None = None
        if find_spec("prometheus_client"):
            self._page, self._end = _pages(store, gauges_only=workers > 1)

    async def answer(self, context: Context, request: Request) -> Response:
        """GET /metrics: the metrics for Prometheus."""
        identity = await identity_of(context, request)
        if not identity.may("display", ""):
            raise problem("MQWB0103E", "display", context.name, reason=NOT_AUTHORIZED)
        if self._page is None:
            raise problem("INWB0013E")
        text, kind = await asyncio.to_thread(self._page)
        return Response(text, media_type=kind)

    def close(self) -> None:
        """Closes its connection to the store."""
        if self._end is not None:
            self._end()


def _pages(store: str, *, gauges_only: bool) -> tuple[Callable[[], tuple[bytes, str]], Callable[[], None]]:
    from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest  # noqa: PLC0415 - an extra

    from ..integrations.prometheus import GAUGES, expose  # noqa: PLC0415 - it loads that library

    registry = CollectorRegistry()
    qm = connect(store, program=PROGRAM)
    exposition: Exposition = expose(qm, registry)
    names = ["inorder_up", *(f"inorder_{name}" for name in GAUGES)]

    def page() -> tuple[bytes, str]:
        shown = registry.restricted_registry(names) if gauges_only else registry
        return generate_latest(shown), CONTENT_TYPE_LATEST

    def end() -> None:
        exposition.cancel()
        qm.close()

    return page, end
