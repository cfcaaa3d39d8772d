"""The console's page about our HTTP interface: it contains the whole description, and its curl lines work."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Callable
from html import unescape
from html.parser import HTMLParser
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from tests.server.conftest import AS_NOBODY, PORT, TOKEN, app_of, client_of

import inorder
from inorder import QueueManager
from inorder.server.api.interface import OPERATIONS, document
from inorder.server.console.api import range_of

DOCUMENT = document()
BY_NAME: dict[str, tuple[str, str, dict[str, Any]]] = {
    one["operationId"]: (method.upper(), path, one)
    for path, methods in DOCUMENT["paths"].items()
    for method, one in methods.items()
}
VOID = {"meta", "link", "img", "input", "br"}
BASE = f"http://localhost:{PORT}/inorder/v1"


class Tags(HTMLParser):
    """Parses the elements of a page. Raises AssertionError if an end tag does not match the last open element."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.feed(text)
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        assert len(named) == len(attrs), f"an attribute comes twice: {tag} {attrs}"
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.links += [value for name, value in attrs if name == "href" and value]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        began = self.open.pop() if self.open else None
        assert began == tag, f"</{tag}> ends another element, at {self.getpos()}"


async def page_of(client: httpx.AsyncClient) -> str:
    answer = await client.get("/console/api")
    assert answer.status_code == 200, answer.text
    return answer.text


def words(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def sections(page: str) -> dict[str, str]:
    """The sections of the page by their ids."""
    parts = re.split(r'<(?:div|section) class="(?:card )?inside" id="([\w-]+)">', page)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


class Request(NamedTuple):
    """The request that a curl line makes."""

    method: str
    url: str
    headers: dict[str, str]
    body: str | None


def lines_of(part: str) -> str:
    found = re.search(r'<pre class="line"[^>]*>(.*?)</pre>', part, re.DOTALL)
    assert found, "there is no example"
    return unescape(found[1])


def request_in(line: str) -> Request:
    """Parses a line as a shell and curl do."""
    method, url, body, headers = "", "", None, {}
    taken = iter(shlex.split(line.replace("\\\n", " "))[1:])
    for word in taken:
        match word:
            case "-H":
                header = next(taken)
                name, _, value = header.partition(":") if ":" in header else (header.removesuffix(";"), "", "")
                headers[name] = value.strip()
            case "-X":
                method = next(taken)
            case "--data" | "--data-binary":
                body = next(taken)
            case "--output":
                next(taken)
            case "-N":
                pass
            case _:
                assert not url, f"curl would ask for {word}, too"
                url = word
    return Request(method or ("GET" if body is None else "POST"), url, headers, body)


async def test_every_operation_and_every_parameter_of_the_description_is_on_the_page(client: httpx.AsyncClient) -> None:
    page = await page_of(client)
    parts = sections(page)
    assert [name for name in parts if name in BY_NAME] == [one.name for one in OPERATIONS]
    for name, (method, path, one) in BY_NAME.items():
        assert f"{method} {path} {one['summary']}" in words(page)
        text = words(parts[name])
        for expected in (one["summary"], one.get("description", "").replace("`", " ")):
            assert " ".join(expected.split()) in text, name
        for each in one["parameters"]:
            assert re.search(rf"(?<!\w){re.escape(each['name'])}(?!\w)", text), (name, each["name"])
            assert words(each["description"].replace("`", " ")) in text, (name, each["name"])
        for authority in one.get("x-authorities", ()):
            assert re.search(rf"authorit(y|ies) .*\b{authority}\b", text), (name, authority)
        for status, answer in one["responses"].items():
            assert status == "default" or f"{status} {answer['description']}" in text, (name, status)


async def test_every_field_of_every_schema_is_on_the_page(client: httpx.AsyncClient) -> None:
    parts = sections(await page_of(client))
    for name, schema in DOCUMENT["components"]["schemas"].items():
        text = words(parts[f"json-{name}"])
        for field, each in schema["properties"].items():
            assert re.search(rf"(?<!\w){field}(?!\w)", text), (name, field)
            assert words(each.get("description", "").replace("`", " ")) in text, (name, field)
    assert "message_id" in parts["put"], "the fields of a body stand with the operation"
    assert "backout_count" in parts["get"], "and so do those of an answer"
    assert "lock_id" in parts["unlock"]
    assert 'href="#json-UniqueId"' in parts["unlock"]


async def test_ranges_types_defaults_and_roles_are_on_the_page(client: httpx.AsyncClient) -> None:
    parts = {name: words(part) for name, part in sections(await page_of(client)).items()}
    assert "wait query number 0 to 3,600 0 Seconds to wait for a message." in parts["get"]
    assert "count query integer 1 to 10,000 100 How many at most." in parts["get_many"]
    assert "read_order query string strict or relaxed strict The read order." in parts["browse"]
    assert "confirm_id query integer 1 to 18,446,744,073,709,551,615 Hold the" in parts["put"]
    assert "Idempotency-Key header string 1 to 200 characters required" in parts["put_arrow"]
    assert "message_id query string 1 to 24 bytes in hex" in parts["get"]
    assert "uid query string ORIGIN:NUMBER Only" in parts["get"]
    assert "correlation_id string or null in hex required 24 bytes" in parts["json-GotMessage"]
    assert range_of({"pattern": "^(([0-9a-fA-F]{2}){1,24}|text:.{1,24})$"}) == "1 to 24 bytes in hex, or text:TEXT"
    assert not re.search(r"matches \^", " ".join(parts.values())), "a pattern is no word for people"
    assert "deduplicate_for query number above 0, at most" in parts["put"]
    assert "authority get on the queue: roles admin, operator; application where it is granted for" in parts["get"]
    assert "authority browse on the queue: roles admin, operator, reader; application where" in parts["browse"]
    assert "authorities get and put on the queue: roles admin, operator; application where they" in parts["undo"]
    assert "For every user who has logged in." in parts["queues"]


async def test_every_error_is_on_the_page_with_its_number(client: httpx.AsyncClient) -> None:
    text = words((await page_of(client)).partition('id="errors"')[2])
    errors = DOCUMENT["components"]["responses"]["Error"]["x-errors"]
    assert len(errors) > 15
    for number, one in errors.items():
        said = f"{number} {', '.join(map(str, one['status']))} {one['message']} {one['explanation']} {one['action']}"
        assert said in text


async def test_the_page_is_well_formed_and_every_link_in_it_leads_somewhere(client: httpx.AsyncClient) -> None:
    tags = Tags(await page_of(client))
    assert len(tags.ids) == len(set(tags.ids)), "an id comes twice"
    wanted = {link.removeprefix("#") for link in tags.links if link.startswith("#")}
    assert wanted <= set(tags.ids)
    assert BY_NAME.keys() <= wanted, "the table of contents has all operations"
    assert "/inorder/v1/openapi.json" in tags.links


async def test_the_address_is_the_one_that_the_browser_used(client: httpx.AsyncClient) -> None:
    for host in ("localhost:9443", "127.0.0.1:9443", "[::1]:9443"):
        page = (await client.get("/console/api", headers={"Host": host})).text
        assert f"http://{host}/inorder/v1" in page
        assert request_in(lines_of(sections(page)["queues"])).url == f"http://{host}/inorder/v1/queues"


def longer_lines_of(part: str) -> str:
    """The second curl line, or an empty string."""
    found = re.findall(r'<pre class="line"[^>]*>(.*?)</pre>', part, re.DOTALL)
    return unescape(found[1]) if len(found) > 1 else ""


async def test_the_longer_curl_command_has_the_optional_parameters_that_have_an_example(
    client: httpx.AsyncClient,
) -> None:
    parts = sections(await page_of(client))
    shown = {}
    for name, (method, _, one) in BY_NAME.items():
        examples = {each["name"]: each for each in one["parameters"] if "example" in each or each["required"]}
        line = longer_lines_of(parts[name])
        if all(each["required"] for each in examples.values()):
            assert line == "", name
            continue
        asked = request_in(line)
        query = urlsplit(asked.url).query  # Python 3.10 rejects an empty one
        given = dict(parse_qsl(query, strict_parsing=True) if query else ()) | asked.headers
        assert asked.method == method
        wanted = {name for name, each in examples.items() if each["in"] != "path"}
        assert given.keys() - {"Authorization", "Content-Type"} == wanted
        for operation in (each for each in OPERATIONS if each.name == name):
            for each in operation.parameters:
                if each.name in given:
                    each.kind.read(each.name, given[each.name])  # raises ValueError for a wrong example
        shown[name] = given
    assert (shown["get"]["wait"], shown["get"]["selector"]) == ("5", "colour = 'red'")
    assert shown["put"]["Idempotency-Key"] == "order-17"
    assert shown["message_events"]["bodies"] == "true"


async def test_each_curl_command_sends_the_request_that_is_described(client: httpx.AsyncClient) -> None:
    parts = sections(await page_of(client))
    lines = {name: lines_of(parts[name]) for name in BY_NAME}
    checked = subprocess.run(
        ["bash", "-n"], input="\n".join(lines.values()), capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, "")
    operations = {one.name: one for one in OPERATIONS}
    for name, (method, path, one) in BY_NAME.items():
        asked = request_in(lines[name])
        place = urlsplit(asked.url)
        assert asked.method == method
        assert re.fullmatch(re.sub(r"{\w+}", "[^/{}]+", f"{BASE}{path}"), asked.url.partition("?")[0])
        assert asked.headers.pop("Authorization") == "Bearer $token"
        kind = asked.headers.pop("Content-Type", None)
        given = {"query": dict(parse_qsl(place.query, strict_parsing=bool(place.query))), "header": asked.headers}
        for where, values in given.items():
            required = {each["name"] for each in one["parameters"] if each["in"] == where and each["required"]}
            assert values.keys() == required
        for parameter in operations[name].parameters:
            if parameter.required:
                parameter.kind.read(parameter.name, given[parameter.where][parameter.name])  # raises ValueError
        if "requestBody" not in one:
            assert (asked.body, kind) == (None, None)
            continue
        ((media, content),) = one["requestBody"]["content"].items()
        assert kind == media
        if media == "application/json":
            assert asked.body is not None
            whole = {**content["schema"], "components": DOCUMENT["components"]}
            Draft202012Validator(whole).validate(json.loads(asked.body))
        else:
            assert (asked.body or "").startswith("@"), "a file"


# The operations whose short and longer lines are sent, in this order.
DONE_IN_ORDER: dict[Callable[[str], str], str] = {
    lines_of: "openapi queues queue put put_many browse get get_many begin_lease browse_and_lock begin_reader"
    " settle_claims release_claims",
    longer_lines_of: "put put_many browse browse_and_lock unique_ids begin_lease get_many",
}


@pytest.mark.parametrize("line_of", DONE_IN_ORDER)
async def test_the_requests_of_the_curl_commands_are_answered_as_described(
    client: httpx.AsyncClient, qm: QueueManager, line_of: Callable[[str], str]
) -> None:
    parts = sections(await page_of(client))
    qm.create_queue("ORDERS")
    if line_of is longer_lines_of:
        qm.put_many("ORDERS", [inorder.Message(b"x", properties={"colour": "red"}) for _ in range(20)])
    async with client_of(app_of(client), auth=AS_NOBODY, headers={}) as other:
        for name in DONE_IN_ORDER[line_of].split():
            asked = request_in(line_of(parts[name]))
            headers = {key: value.replace("$token", TOKEN) for key, value in asked.headers.items()}
            answer = await other.request(asked.method, asked.url, headers=headers, content=asked.body)
            least = min(int(one) for one in BY_NAME[name][2]["responses"] if one != "default")
            assert answer.status_code == least, (name, answer.text)
