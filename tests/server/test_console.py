"""The console: log-in, the browser policy of its pages, protection of its forms, and escaping of names."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import httpx
import pytest
from starlette.responses import Response
from tests.server.conftest import AS_NOBODY, TOKEN, Served, add, alive, app_of, client_of, serving, somebody

import inorder
from inorder.server.console import console
from inorder.server.console.console import PAGES
from inorder.server.console.page import Visit
from inorder.server.logs import LOGGER

HTML = {"Accept": "text/html"}
HOSTILE = "<script>alert(1)</script>"


def csrf_in(text: str) -> str:
    found = re.search(r'name="csrf" value="([0-9a-f]{64})"', text)
    assert found, "the page has no form with a token"
    return found[1]


async def test_an_unexpected_error_is_shown_as_a_page_and_logged(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a secret of the program")

    monkeypatch.setattr("inorder.server.console.held_messages.running", broken)
    page = await client.get("/console/held", headers=HTML)
    assert page.status_code == 500
    assert page.headers["content-type"].startswith("text/html")
    assert "An unexpected error occurred." in page.text
    assert 'href="/console/"' in page.text
    assert "a secret" not in page.text
    (noted,) = (one for one in caplog.records if one.exc_info)
    assert (noted.name, noted.levelname, noted.getMessage()) == (LOGGER, "ERROR", "an unexpected error")
    assert "a secret of the program" in str(noted.exc_info)
    assert (await client.get("/console/")).status_code == 200


async def test_an_unknown_visitor_is_asked_to_log_in_and_is_then_sent_back(client: httpx.AsyncClient) -> None:
    client.auth = AS_NOBODY
    asked = await client.get("/console/nowhere", headers=HTML)
    assert (asked.status_code, asked.headers["location"]) == (303, "/console/log-in?to=%2Fconsole%2Fnowhere")
    form = {"name": "ann", "password": "wrong", "to": "/console/"}
    refused = await client.post("/console/log-in", data=form)
    assert refused.status_code == 401
    assert "is not correct" in refused.text
    entered = await client.post("/console/log-in", data=form | {"password": TOKEN})
    assert (entered.status_code, entered.headers["location"]) == (303, "/console/")
    assert (await client.get("/console/")).status_code == 200


@pytest.mark.parametrize(
    "to", ["https://elsewhere.example/", "//elsewhere.example", "/console/\\evil", "/", "javascript:x"]
)
async def test_the_log_in_redirects_only_to_pages_of_the_console(client: httpx.AsyncClient, to: str) -> None:
    client.auth = AS_NOBODY
    entered = await client.post("/console/log-in", data={"name": "x", "password": TOKEN, "to": to})
    assert entered.headers["location"] == "/console/"


async def test_log_out_needs_the_token_of_the_session_and_ends_it(client: httpx.AsyncClient) -> None:
    client.auth = AS_NOBODY
    await client.get(f"/?token={TOKEN}")
    page = await client.get("/console/")
    for wrong in ({"name": "x"}, {"csrf": "0" * 64}, {"csrf": "é"}):
        refused = await client.post("/console/log-out", data=wrong, headers=HTML)
        assert refused.status_code == 403
        assert "INWB0016E" in refused.text
    left = await client.post("/console/log-out", data={"csrf": csrf_in(page.text)})
    assert (left.status_code, left.headers["location"]) == (303, "/console/log-in")
    assert (await client.get("/console/")).status_code == 303


async def test_a_form_without_its_csrf_token_is_refused(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The form of every page is refused without its token and acts with it."""
    acted: list[str] = []

    async def act(visit: Visit) -> Response:
        acted.append(visit.page.path)
        return Response()

    token = csrf_in((await client.get("/console/")).text)
    forms = [replace(page, act=act) for page in PAGES if page.act is not None]
    monkeypatch.setattr(console, "PAGES", forms)
    for page in forms:
        path = "/console/" + re.sub(r"{\w+}", "Q1", page.path)
        for wrong in ({}, {"csrf": ""}, {"csrf": "0" * 64}):
            refused = await client.post(path, data={"name": "x"} | wrong, headers=HTML)
            assert (refused.status_code, "INWB0016E" in refused.text) == (403, True), path
        assert (await client.post(path, data={"csrf": token})).status_code == 200
    assert acted == [page.path for page in forms]


async def test_each_user_with_a_client_certificate_has_a_different_token_for_forms(served: Served) -> None:
    async with alive(served.app()) as app:

        async def token_of(name: str) -> str:
            add(served, name, roles=["admin"], subjects=[f"CN={name}"])
            extensions = {"tls": {"client_cert_name": f"CN={name}"}}

            async def as_user(scope: Any, receive: Any, send: Any) -> None:
                await app({**scope, "extensions": extensions}, receive, send)

            async with client_of(as_user, auth=AS_NOBODY) as client:
                return csrf_in((await client.get("/console/")).text)

        assert await token_of("anna") != await token_of("bert")


@pytest.mark.parametrize("path", ["", "api"])
async def test_pages_allow_no_script_and_no_style_but_the_servers_files(client: httpx.AsyncClient, path: str) -> None:
    page = await client.get(f"/console/{path}")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert page.headers["cache-control"] == "no-store"
    assert not re.search(r"<script(?![^>]* src=)|<style|\sstyle=|\son\w+=|javascript:", page.text)
    for place in re.findall(r'(?:src|href)="(/console/static/[^"]+)"', page.text):
        file = await client.get(place, auth=AS_NOBODY)
        assert file.status_code == 200
        assert "immutable" in file.headers["cache-control"]
        other = re.sub("static/.{16}", "static/0000000000000000", place)
        assert (await client.get(other)).status_code == 404


async def test_names_are_escaped_in_pages_and_addresses(client: httpx.AsyncClient, served: Served) -> None:
    with inorder.connect(served.store, name="QM1") as qm:
        qm.create_queue("A/B%")
    page = await client.get("/console/")
    assert 'href="/console/queue/A%2FB%25"' in page.text
    for place in (f"/console/{HOSTILE}", f"/console/queue/{HOSTILE}/x/y/z", f"/console/log-in?to={HOSTILE}"):
        assert HOSTILE not in (await client.get(place)).text


@serving(somebody("ann"))
async def test_a_visitor_sees_only_authorized_pages_and_queues(client: httpx.AsyncClient) -> None:
    page = await client.get("/console/")
    assert page.status_code == 200
    assert "Q1" not in page.text
    for one in (page for page in PAGES if page.path != "live"):
        place = "/console/" + re.sub(r"\{\w+\}", "Q1", one.path)
        status = (await client.get(place)).status_code
        needs = one.authority is not None or one.path == "dead"  # it needs browse on the dead-letter queue
        assert needs == (status == 403), one


async def test_unknown_pages_and_methods_get_a_page_that_says_so(client: httpx.AsyncClient) -> None:
    missing = await client.get("/console/nowhere")
    assert missing.status_code == 404
    assert "<html" in missing.text
    refused = await client.delete("/console/")
    assert refused.status_code == 405
    assert (await client.get("/console")).headers["location"] == "/console/"
    assert (await client_of(app_of(client)).get("/console/%ff")).status_code == 404
