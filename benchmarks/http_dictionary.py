"""A server that answers from a dictionary, to measure the cost of HTTP alone.

Like `inorder serve` it uses uvicorn with h11 and Starlette, in one process. A POST stores the body under a new key, a
DELETE removes the oldest one. It prints its address, as `inorder serve --json` does.
"""

from __future__ import annotations

import itertools
import json
import socket
import sys

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


def application() -> Starlette:
    """Returns the application."""
    kept: dict[int, bytes] = {}
    keys = itertools.count()

    async def put(request: Request) -> Response:
        kept[next(keys)] = await request.body()
        return Response(status_code=201)

    async def get(request: Request) -> Response:
        del request
        first = next(iter(kept), None)
        return Response(status_code=204) if first is None else Response(kept.pop(first), media_type="text/plain")

    return Starlette(
        routes=[Route("/message", put, methods=["POST"]), Route("/message", get, methods=["DELETE"])],
    )


def main() -> None:
    """Serves until it is killed."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        host, port = listener.getsockname()
        json.dump({"url": f"http://{host}:{port}"}, sys.stdout)
        print(flush=True)
        config = uvicorn.Config(application(), http="h11", loop="asyncio", ws="none", lifespan="off", log_config=None)
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
