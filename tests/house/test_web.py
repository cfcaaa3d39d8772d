"""The web application in the examples, called as an ASGI server calls it."""

from __future__ import annotations

import asyncio
import importlib.util
import re
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.helpers.support import bodies

from inorder import FOREVER, aio, connect
from inorder.errors import MessageTooBig

EXAMPLE = Path(__file__).parents[2] / "examples/web/web_app.py"
PAGE = EXAMPLE.parents[2] / "docs/how-to/web.md"
Said = MutableMapping[str, Any]


def application(store: Path) -> Any:
    specification = importlib.util.spec_from_file_location("web_app", EXAMPLE)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module.Orders(str(store))


@asynccontextmanager
async def served(app: Any) -> AsyncIterator[None]:
    """Runs the application from the start to the end of a server's process."""
    told, said = asyncio.Queue[Said](), asyncio.Queue[Said]()
    life = asyncio.create_task(app({"type": "lifespan"}, told.get, said.put))
    await told.put({"type": "lifespan.startup"})
    assert (await said.get())["type"] == "lifespan.startup.complete"
    yield
    await told.put({"type": "lifespan.shutdown"})
    assert (await said.get())["type"] == "lifespan.shutdown.complete"
    await life


def client_of(app: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")


async def test_orders_are_accepted_and_processed(tmp_path: Path) -> None:
    store = tmp_path / "orders.db"
    app = application(store)

    async with served(app), client_of(app) as client:
        answers = await asyncio.gather(*(client.post("/orders", content=b"%d" % one) for one in range(50)))
        assert {answer.status_code for answer in answers} == {202}
        assert len({answer.content for answer in answers}) == 50
        for _ in range(50):
            assert (await app.qm.get("DONE", wait=600)).body.startswith(b"done: ")
        nowhere = await client.get("/nowhere")
        assert (nowhere.status_code, nowhere.content) == (404, b"not found")
    with connect(store) as qm:
        assert bodies(qm, "ORDERS") == []


async def test_an_http_request_is_answered_over_a_queue(tmp_path: Path) -> None:
    app = application(tmp_path / "orders.db")

    async def prices() -> None:
        async with aio.connect(app.store) as qm:
            while True:
                async with qm.unit_of_work():
                    request = await qm.get("PRICES", wait=FOREVER)
                    await qm.reply(request, b"price of " + request.body)

    async with served(app), client_of(app) as client:
        server = asyncio.create_task(prices())
        answers = await asyncio.gather(*(client.get(f"/price?{one}") for one in range(10)))
        assert [(one.status_code, one.content) for one in answers] == [(200, b"price of %d" % n) for n in range(10)]
        server.cancel()
        await asyncio.gather(server, return_exceptions=True)


async def test_endpoints_of_the_fastapi_application_on_the_page_put_in_units_of_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The application is the page's. The endpoint uses the unit of work of its dependency."""
    fastapi = pytest.importorskip("fastapi")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for code in re.findall(r"^```py\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        exec(code, names)
    app = names["app"]

    async def unit(request: Any) -> AsyncIterator[None]:
        async with request.app.state.qm.unit_of_work():
            yield

    unit.__annotations__["request"] = fastapi.Request

    async def both(request: Any) -> int:
        await request.app.state.qm.put("ORDERS", b"1")
        await request.app.state.qm.put("ORDERS", b"2")
        in_use: int = request.app.state.qm.connections_in_use
        return in_use

    both.__annotations__["request"] = fastapi.Request
    app.post("/both", dependencies=[fastapi.Depends(unit)])(both)

    async with names["lifespan"](app):
        await app.state.qm.create_queue("ORDERS")
        async with client_of(app) as client:
            answers = await asyncio.gather(*(client.post("/orders", content=b"%d" % one) for one in range(20)))
            assert {answer.status_code for answer in answers} == {202}
            assert (await client.post("/both")).json() == 1
            assert (await client.post("/baskets", content=b"flour,sugar")).json() == 2
            assert (await client.get("/depth")).json() == 24
            with pytest.raises(MessageTooBig):
                await client.post("/baskets", content=b"salt," + b"x" * 5_000_000)
        assert await app.state.qm.depth("ORDERS") == 24
