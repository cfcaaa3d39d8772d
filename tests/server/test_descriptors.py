"""Headers that describe a message, and what is said of wrong ones."""

from __future__ import annotations

import httpx
import pytest
from tests.server.conftest import TEXT, Served
from tests.server.test_messaging import V3, number_of


@pytest.mark.parametrize("given", [["1a;5;i4"], ["ok;1;i1", "1a;5;i4"]])
def test_what_the_queue_manager_refuses_of_a_header_is_shown_with_it(served: Served, given: list[str]) -> None:
    async def work(client: httpx.AsyncClient) -> None:
        headers = [*TEXT.items(), *(("ibm-mq-usr", one) for one in given), ("ibm-mq-rest-csrf-token", "")]
        answer = await client.post(f"{V3}/message", content="x", headers=headers)
        assert number_of(answer) == (400, "MQWB0302E", 0)
        said = answer.json()["error"][0]["message"]
        assert f"'ibm-mq-usr' request header cannot be set as '{', '.join(given)}' is not" in said
        assert "not '1a'" in said

    served.run(work)
