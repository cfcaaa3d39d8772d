"""Calls that IBM's pages and samples publish, as they are written there, against a server process.

Each is a curl line of IBM's documentation (9.0 to 9.3) or of its samples on GitHub (cp4i-mq-samples, mq-dev-patterns),
with this server's address in place of theirs. What a page shows as the answer is compared.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.server.conftest import Running

import inorder

OURS = "https://localhost:9443"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    """A server of QM1, with TLS as theirs has it."""
    store = tmp_path / "qm1.db"
    with inorder.connect(store, name="QM1") as qm:
        for name in ("MSGQ", "DEV.QUEUE.1"):
            qm.create_queue(name)
    running = Running(store, "--self-signed")
    yield running
    running.kill()


class Curl:
    """What these lines need of curl: -k -i -X -u -H -b -c --data, and cookies in a jar for each file."""

    def __init__(self, server: Running) -> None:
        self._server = server
        self._jars: dict[str, httpx.Cookies] = {}

    def __call__(self, line: str) -> httpx.Response:
        words = iter(shlex.split(line.replace("+\n", " "))[1:])
        method, url, content = "", "", None
        headers: list[tuple[str, str]] = []
        auth: tuple[str, str] | None = None
        jar: str | None = None
        keeps: str | None = None
        for word in words:
            match word:
                case "-k" | "-i" | "-s" | "-v":
                    pass
                case "-X" | "--request":
                    method = next(words)
                case "-u" | "--user":
                    name, _, password = next(words).partition(":")
                    auth = (name, self._server.token if password != "wrong" else password)
                case "-H" | "--header":
                    name, _, value = next(words).partition(":")
                    headers.append((name, value.strip()))
                case "--data" | "-d":
                    content = next(words).replace("PASSWORD", self._server.token)
                case "-b":
                    jar = next(words)
                case "-c":
                    keeps = next(words)
                case _:
                    url = word
        if content is not None and not any(name.lower() == "content-type" for name, _ in headers):
            headers.append(("Content-Type", "application/x-www-form-urlencoded"))  # as curl does
        address = url.replace(OURS, self._server.record["url"].rstrip("/"))
        cookies = self._jars.get(jar or "")
        with httpx.Client(verify=False, timeout=60, cookies=cookies) as client:
            answer = client.request(
                method or ("POST" if content else "GET"), address, headers=headers, content=content, auth=auth
            )
            if keeps is not None:
                self._jars[keeps] = httpx.Cookies(client.cookies)
        return answer


# The line, the status, and what the page shows of the answer: a text, an object, or nothing.
LINES: list[tuple[str, int, Any]] = [
    # "Using token-based authentication with the REST API"
    (f"""curl -k {OURS}/ibmmq/rest/v1/login -X POST -H "Content-Type: application/json"
        --data '{{"username":"mqadmin","password":"PASSWORD"}}' -c cookiejar.txt""", 204, ""),
    (f"""curl -k {OURS}/ibmmq/rest/v1/admin/qmgr/QM1/queue -X POST -b cookiejar.txt -H "ibm-mq-rest-csrf-token: value"
        -H "Content-Type: application/json" --data "{{\\"name\\":\\"Q1\\"}}" """, 201, ""),
    (f"""curl -k {OURS}/ibmmq/rest/v1/login -X DELETE -H "ibm-mq-rest-csrf-token: value" -b cookiejar.txt
        -c cookiejar.txt""", 204, ""),
    (f"curl -k {OURS}/ibmmq/rest/v1/admin/qmgr -b cookiejar.txt", 401, None),
    # "Using HTTP basic authentication with the REST API"
    (f"""curl -k {OURS}/ibmmq/rest/v1/admin/qmgr/QM1/queue -X POST -u mqadmin:mqadmin
        -H "ibm-mq-rest-csrf-token: value" -H "Content-Type: application/json" --data "{{\\"name\\":\\"Q2\\"}}" """,
     201, ""),
    # cp4i-mq-samples, 12-rest-token
    (f"curl -k {OURS}/ibmmq/rest/v2/admin/qmgr -u mqadmin:x", 200, {"qmgr": [{"name": "QM1", "state": "running"}]}),
    (f"""curl -k -i {OURS}/ibmmq/rest/v2/messaging/qmgr/QM1/queue/Q1/message -u app1:passw0rd
        -H "Content-Type: text/plain;charset=utf-8" -H "ibm-mq-rest-csrf-token: blank"
        --data 'Test message 1 - put using MQ REST API'""", 201, ""),
    (f"""curl -k {OURS}/ibmmq/rest/v2/messaging/qmgr/QM1/queue/Q1/message -u app1:passw0rd
        -H "ibm-mq-rest-csrf-token: blank" """, 200, "Test message 1 - put using MQ REST API"),
    (f"""curl -k {OURS}/ibmmq/rest/v2/messaging/qmgr/QM1/queue/Q1/message -X DELETE -u app1:passw0rd
        -H "ibm-mq-rest-csrf-token: blank" """, 200, "Test message 1 - put using MQ REST API"),
    # "Getting started with the messaging REST API"
    (f"""curl -k {OURS}/ibmmq/rest/v1/messaging/qmgr/QM1/queue/MSGQ/message -X POST -u myuser:mypassword
        -H "ibm-mq-rest-csrf-token: value" -H "Content-Type: text/plain;charset=utf-8" --data "Hello World!" """,
     201, ""),
    (f"""curl -k {OURS}/ibmmq/rest/v1/messaging/qmgr/QM1/queue/MSGQ/message -X DELETE -u myuser:mypassword
        -H "ibm-mq-rest-csrf-token: value" """, 200, "Hello World!"),
    (f"""curl -k {OURS}/ibmmq/rest/v3/messaging/qmgr/QM1/queue/MSGQ/message -u app:x
        -H "accept: application/json; charset=utf-8" -H "ibm-mq-rest-csrf-token: blank"
        -H "content-type: text/plain; charset=utf-8" -H "ibm-mq-md-expiry: unlimited" -H "ibm-mq-md-priority: 9"
        -H "ibm-mq-md-persistence: persistent" -d "Test message" """, 201, ""),
    # "POST - plain text MQSC command", and "POST - JSON formatted command", with a type of channel that is here
    (f"""curl -k {OURS}/ibmmq/rest/v2/admin/action/qmgr/QM1/mqsc -X POST -u mqadmin:mqadmin
        -H "ibm-mq-rest-csrf-token: value" -H "Content-Type: application/json"
        --data '{{"type": "runCommand", "parameters": {{"command": "DEFINE CHANNEL(NEWSVRCONN) CHLTYPE(RCVR)"}}}}'""",
     200, {"commandResponse": [{"completionCode": 0, "reasonCode": 0,
                                "text": ["AMQ8014I: Channel NEWSVRCONN defined."]}],
           "overallCompletionCode": 0, "overallReasonCode": 0}),
    (f"""curl -k {OURS}/ibmmq/rest/v2/admin/action/qmgr/QM1/mqsc -X POST -u mqadmin:mqadmin
        -H "ibm-mq-rest-csrf-token: value" -H "Content-Type: application/json"
        --data '{{"type": "runCommandJSON", "command": "define", "qualifier": "channel", "name": "NEW2",
                  "parameters": {{"chltype": "rcvr"}}}}'""",
     200, None),
    (f"""curl -k {OURS}/ibmmq/rest/v2/admin/action/qmgr/QM1/mqsc -X POST -u mqadmin:mqadmin
        -H "ibm-mq-rest-csrf-token: value" -H "Content-Type: application/json"
        --data '{{"type": "runCommandJSON", "command": "display", "qualifier": "qlocal", "name": "DEV.QUEUE.1",
                  "responseParameters": ["CURDEPTH"]}}'""",
     200, {"commandResponse": [{"completionCode": 0, "reasonCode": 0,
                                "parameters": {"curdepth": 0, "type": "QLOCAL", "queue": "DEV.QUEUE.1"}}],
           "overallCompletionCode": 0, "overallReasonCode": 0}),
    # GET /admin/qmgr/{qmgrName}/queue
    (f"curl -k {OURS}/ibmmq/rest/v1/admin/qmgr/QM1/queue/MSGQ?status=status.currentDepth -u mqadmin:mqadmin",
     200, {"queue": [{"name": "MSGQ", "type": "local", "status": {"currentDepth": 1}}]}),
    (f"curl -k {OURS}/ibmmq/rest/v1/admin/qmgr/QM1/queue/Q1 -X DELETE -H 'ibm-mq-rest-csrf-token: blank' -u mqadmin:x",
     204, ""),
    # "REST API error handling"
    (f"curl -k {OURS}/ibmmq/rest/v1/admin/qmgr/QM7 -u mqadmin:x", 404, None),
]  # fmt: skip


@pytest.mark.nightly
def test_calls_that_ibm_publishes_are_answered_as_it_says(server: Running) -> None:
    curl = Curl(server)
    for line, status, shown in LINES:
        answer = curl(line)
        assert answer.status_code == status, f"{line}: {answer.text}"
        if isinstance(shown, str):
            assert answer.text == shown, line
        elif shown is not None:
            assert answer.json() == shown, line
        if status == 201 and "/messaging/" in line:
            assert re.fullmatch(r"(ID:)?[0-9a-f]{48}", answer.headers["ibm-mq-md-messageId"]), line
        assert re.match(r"application/json|text/plain", answer.headers.get("content-type", "text/plain"))
