"""A client of our own interface that checks every request and answer against the description."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

BASE = "/inorder/v1"


class Described:
    """Calls operations by their names.

    Args:
        client: sends the requests.
        document: the description.
    """

    def __init__(self, client: httpx.AsyncClient, document: dict[str, Any]) -> None:
        self.client, self.document = client, document
        self.operations = {
            one["operationId"]: (path, method.upper(), one)
            for path, methods in document["paths"].items()
            for method, one in methods.items()
        }

    async def __call__(
        self, name: str, given: Any = None, *, queue: str = "Q1", headers: dict[str, str] | None = None, **query: Any
    ) -> httpx.Response:
        """Makes a request, and checks that the description allows it and its answer."""
        path, method, operation = self.operations[name]
        words = {key: str(value).lower() if isinstance(value, bool) else value for key, value in query.items()}
        body = {} if given is None else {"json": given}
        address = BASE + path.replace("{queue}", quote(queue, safe="")).replace("{reader}", "r")
        response = await self.client.request(method, address, params=words, headers=headers, **body)
        self._check(operation, given, {**words, **(headers or {})}, response)
        return response

    def _check(self, operation: dict[str, Any], given: Any, said: dict[str, Any], response: httpx.Response) -> None:
        status = str(response.status_code)
        answer = operation["responses"].get(status)
        if answer is None:
            assert response.is_error, f"{operation['operationId']} does not describe {status}: {response.text}"
            answer = self.document["components"]["responses"]["Error"]
            for error in response.json()["error"]:
                assert response.status_code in answer["x-errors"][error["messageId"]]["status"], response.text
        elif not response.is_error:
            known = {one["name"] for one in operation["parameters"]}
            assert said.keys() <= known, f"accepted, and not described: {said.keys() - known}"
            if "requestBody" in operation:
                self.validate(given, operation["requestBody"]["content"]["application/json"]["schema"])
            else:
                assert given is None, "accepted, and not described"
        if "content" in answer:
            assert response.headers["content-type"] == "application/json"
            self.validate(response.json(), answer["content"]["application/json"]["schema"])
        else:
            assert response.content == b"", response.text

    def validate(self, value: Any, schema: dict[str, Any]) -> None:
        """Raises: jsonschema.ValidationError."""
        whole = {**schema, "components": self.document["components"]}
        Draft202012Validator(whole).validate(value)


async def described(client: httpx.AsyncClient) -> Described:
    """A client with the description that its server publishes."""
    answer = await client.get(f"{BASE}/openapi.json")
    assert answer.status_code == 200, answer.text
    return Described(client, answer.json())


def refusal(response: httpx.Response) -> tuple[int, str, int]:
    """The status, message id and reason code of an error."""
    (error,) = response.json()["error"]
    return response.status_code, error["messageId"], error["reasonCode"]
