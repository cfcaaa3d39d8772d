"""Calls that IBM's pages and samples publish, sent to a server process as they are written.

Each is a curl line of IBM's documentation (9.0 to 9.3) or of its samples on GitHub (cp4i-mq-samples, mq-dev-patterns),
with this server's address in place of IBM's. The answer is compared with the one that the page shows.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
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
    """A server of QM1 with TLS, as IBM's examples use it."""
    store = tmp_path / "qm1.db"
    with inorder.connect(store, name="QM1") as qm:
        for name in ("MSGQ", "DEV.QUEUE.1"):
            qm.create_queue(name)
    running = Running(store, "--self-signed")
    yield running
    running.kill()


class Curl:
    """Runs curl in a folder for its cookies, with our server and token in place of IBM's."""

    def __init__(self, server: Running, folder: Path) -> None:
        self._server, self._folder = server, folder

    def __call__(self, line: str) -> tuple[int, str, httpx.Headers]:
        """Runs a curl line. Returns the status, the body and the headers."""
        line = line.replace("PASSWORD", self._server.token).replace(OURS, self._server.url)
        words = shlex.split(re.sub(r"(-u \w+):\w+", rf"\1:{self._server.token}", line))[1:]
        told = ("-s", "-D", "head", "-o", "body", "-w", "%{http_code}")
        (self._folder / "body").write_text("")
        ran = subprocess.run(
            ["curl", *told, *(one for one in words if one != "-i")],
            cwd=self._folder, capture_output=True, text=True, check=True,
        )  # fmt: skip
        lines = [one.partition(":") for one in (self._folder / "head").read_text().splitlines() if ":" in one]
        headers = httpx.Headers([(name, value.strip()) for name, _, value in lines])
        return int(ran.stdout), (self._folder / "body").read_text(), headers


# The line, the status, and the answer that the page shows: a text, an object, or None if it shows none.
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
    # "POST - plain text MQSC command", and "POST - JSON formatted command", with a channel type of inorder
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
@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_calls_that_ibm_publishes_are_answered_as_it_says(server: Running, tmp_path: Path) -> None:
    curl = Curl(server, tmp_path)
    for line, status, shown in LINES:
        found, body, headers = curl(line)
        assert found == status, f"{line}: {body}"
        if shown is not None:
            assert (body if isinstance(shown, str) else json.loads(body)) == shown, line
        if status == 201 and "/messaging/" in line:
            assert re.fullmatch(r"(ID:)?[0-9a-f]{48}", headers["ibm-mq-md-messageId"]), line
        assert re.match(r"application/json|text/plain", headers.get("content-type", "text/plain"))
