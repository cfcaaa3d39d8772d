"""`make fuzz`: schemathesis against a running server, as an administrator and as a user with few rights.

It reads the description of our interface, `/inorder/v1/openapi.json`, and sends requests that follow it and requests
that do not. A finding is an answer with status 500 or above, an answer that is not described, an answer with another
content type or schema, and an accepted request that the description forbids. IBM's addresses have a short description
here, `fuzz_ibm`, which forbids less than the server does. Arrow streams are in `tests/server/test_arrow_fuzz.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import inorder

from . import fuzz_ibm
from .ending import ended_by_signals

CHECKS: Final = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
    "allow_header_conformance",
)
# IBM's server answers 500 and 501 where a queue is full, or a message is not a text: the server's log has the reason.
CHECKS_OF_ANSWERS: Final = CHECKS[1:5]
ARROW: Final = "/queues/{queue}/arrow"  # its body is not JSON
# The statuses that refuse an invalid request; schemathesis does not know 413, 415 and 431.
CONFIGURATION: Final = """
[checks.negative_data_rejection]
expected-statuses = ["400", "401", "403", "404", "405", "409", "411", "413", "415", "429", "431"]
"""
USERS: Final[dict[str, dict[str, Any]]] = {
    "root": {"roles": ["admin"]},
    "shop": {"roles": ["application"], "queues": {"Q1": ["put", "browse"]}},
}


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Starts a server on a store with some messages; yields its address and a token of each user."""
    store = folder / "fuzzed.db"
    with inorder.connect(store, name="QM1") as qm:
        for queue in ("Q1", "ORDERS"):
            qm.create_queue(queue)
            qm.put_many(queue, [inorder.Message(body=body, format="MQSTR") for body in (b"one", b"two", b"three")])
        for name, given in USERS.items():
            qm.accounts.create_user(name, **given)
        tokens = {name: qm.accounts.create_token(name, "make fuzz", seconds=86_400) for name in USERS}
    words = [sys.executable, "-m", "inorder", "serve", str(store), "--port", "0", "--json"]
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log)
    assert server.stdout is not None
    try:
        line = server.stdout.readline()
        if not line:
            raise SystemExit((folder / "server.log").read_text())
        yield json.loads(line)["url"].partition("?")[0].rstrip("/"), tokens
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()


def fuzz(target: list[str], token: str, folder: Path, checks: tuple[str, ...], given: argparse.Namespace) -> int:
    """Runs schemathesis once; returns its exit status."""
    configuration = folder / "schemathesis.toml"
    configuration.write_text(CONFIGURATION)
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(configuration)]
    command += ["run", *target, "--phases", "examples,coverage,fuzzing"]
    command += ["--header", f"Authorization: Bearer {token}", "--header", "ibm-mq-rest-csrf-token: x"]
    command += ["--checks", ",".join(checks), "--exclude-path", ARROW, "--continue-on-failure", "--no-color"]
    command += ["--max-examples", str(given.examples), "--max-time", str(given.seconds), "--request-timeout", "60"]
    command += ["--warnings", "off", *([] if given.seed is None else ["--seed", str(given.seed)])]
    return subprocess.run(command, cwd=folder, env=os.environ, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--examples", type=int, default=100, help="the number of examples for each operation")
    parser.add_argument("--seconds", type=int, default=600, help="the time for each user and interface")
    parser.add_argument("--seed", type=int, help="the seed of an earlier run, to repeat it")
    given = parser.parse_args()
    found = 0
    with (
        ended_by_signals(),
        tempfile.TemporaryDirectory(prefix="fuzz-") as place,
        served(folder := Path(place)) as (url, tokens),
    ):
        (folder / "ibm.json").write_text(json.dumps(fuzz_ibm.description()))
        targets = {
            "ours": ([f"{url}/inorder/v1/openapi.json"], CHECKS),
            "IBM's": ([str(folder / "ibm.json"), "--url", f"{url}/ibmmq/rest"], CHECKS_OF_ANSWERS),
        }
        for name, (target, checks) in targets.items():
            for user, token in tokens.items():
                print(f"{name}, as {user}:", flush=True)
                found |= fuzz(target, token, folder, checks, given)
        if "Traceback" in (log := (folder / "server.log").read_text()):
            print(f"the server failed:\n{log[log.index('Traceback') :][:4000]}")
            found = 1
    return found


if __name__ == "__main__":
    sys.exit(main())
