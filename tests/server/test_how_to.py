"""The examples of the HTTP pages, run against a server; pages that start their own server get a free port."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.pages import ROOT, blocks, run_page
from tests.server.conftest import Running, Start
from tests.tiers import gate, nightly

import inorder

PAGES = ROOT / "docs/how-to"
PAGE = PAGES / "http.md"
WHOLE = [
    pytest.param(PAGES / "elsewhere.md", marks=gate),
    pytest.param(ROOT / "docs/tutorial/another-machine.md", marks=nightly),
]
AT = "http://127.0.0.1:9443"
# Put before the lines of the page: the command, and a curl that fails if the answer is an error.
AROUND = """
inorder() { PYTHON -m inorder "$@"; }
curl() { command curl --silent --show-error --fail-with-body --retry 120 --retry-connrefused --retry-delay 1 "$@"; }
"""
# Replacements for steps that the page leaves to people: the server has its own terminal, and passwords are typed.
TYPED = {
    "inorder serve orders.db --token-file ~/.inorder-token\n": "PYTHON -m inorder serve orders.db --port PORT"
    " --token-file ~/.inorder-token > server.log 2>&1 & echo $! > server.pid\ncurl http://127.0.0.1:PORT/health\n",
    " --password ": " --password-stdin ",
}
ELSEWHERE = re.compile(r"curl --cacert|ssh |queues\.pem|shop\.pem|adduser|docker|certbot|proxy")
STEPS = [text for language, text in blocks(PAGE) if language == "sh" and not ELSEWHERE.search(text)]


@pytest.fixture
def running(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Running:
    """A server with the queue ORDERS, whose token is where the examples read it."""
    one = start()
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".inorder-token").write_text(one.token)
    with inorder.connect(one.store) as qm:
        qm.create_queue("ORDERS")
    return one


@nightly
def test_the_examples_in_python_run(running: Running, capsys: pytest.CaptureFixture[str]) -> None:
    examples = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(examples) == 3, "say here what a new example needs"
    known: dict[str, Any] = {}
    for example in examples:
        assert AT in example
        here = example.replace(AT, running.url).replace("qmgr/orders/", "qmgr/QM1/")
        exec(compile(here, str(PAGE), "exec"), known)
    assert known["order"]["body"] == '{"apples":2}'
    assert [one["body"] for one in known["bill"]] == ['bill for {"apples":2}']
    assert [one.get("body") for one in known["whole"]] == ["header", "line 1", None]
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == "1 3"


@nightly
def test_the_example_of_arrow_runs(running: Running, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow", reason="needs the extra inorder[arrow]")
    page = (PAGES / "bulk.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```py\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert AT in example
    exec(compile(example.replace(AT, running.url), "bulk.md", "exec"), {})
    assert capsys.readouterr().out.splitlines() == ["3", "b'1'", "b'2'", "b'3'"]
    with inorder.connect(running.store) as qm:
        assert qm.depth("ORDERS") == 0


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        port: int = one.getsockname()[1]
        return port


@pytest.mark.parametrize("page", WHOLE, ids=lambda page: page.stem)
def test_every_line_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shutil.which("curl"), "the page needs curl: apt install curl"
    monkeypatch.setenv("INORDER_CREDENTIALS", str(tmp_path / "credentials"))
    here, folder = tmp_path / page.name, tmp_path / "folder"
    here.write_text(page.read_text(encoding="utf-8").replace("9443", str(free_port())), encoding="utf-8")
    folder.mkdir()
    run_page(here, folder, spark=False)


def as_typed(steps: list[str], port: int) -> str:
    text = AROUND + "".join(steps)
    for shown, typed in TYPED.items():
        text = text.replace(shown, typed)
    return text.replace("9443", str(port)).replace("PORT", str(port)).replace("PYTHON", shlex.quote(sys.executable))


@nightly
def test_the_steps_at_a_prompt_run_one_after_the_other(tmp_path: Path) -> None:
    """All steps that need no other host, certificate or service manager; a client stays to get the events."""
    assert shutil.which("curl"), "the page needs curl: apt install curl"
    port, (*steps, users) = free_port(), [one for one in STEPS if "curl -N" not in one]
    (watched,) = [one for one in STEPS if "curl -N" in one]
    assert (len(steps), users.count("inorder ")) == (4, 3), "say here what a new step needs"
    assert all(shown in "".join(STEPS) for shown in TYPED), "the page no longer says what is replaced"
    source = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"HOME": str(tmp_path), "PYTHONPATH": source}

    def shell(text: str, given: str = "") -> str:
        ran = subprocess.run(
            ["sh", "-eu", "-c", text],
            cwd=tmp_path,
            env=environment,
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout
        return ran.stdout

    try:
        said = shell(as_typed(steps, port))
        assert "created local queue ORDERS" in said
        assert said.count("two apples") == 3, "the copy, the get that removes it, and our get"
        assert "CURDEPTH(0)" in said
        shell(as_typed([users], port), given="correct horse battery staple\n")
        with inorder.connect(tmp_path / "orders.db") as qm:
            assert {"ORDERS", "BILLS"} <= {one.name for one in qm.queues()}
            assert {one.name for one in qm.accounts.users()} == {"root", "shop"}
            qm.put("ORDERS", b"three melons", format="MQSTR")
        variables = f"token=$(cat ~/.inorder-token)\nat=http://127.0.0.1:{port}/inorder/v1/queues/ORDERS\n"
        with subprocess.Popen(
            ["sh", "-c", variables + f"exec {watched}"],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        ) as client:
            assert client.stdout is not None
            assert any("three melons" in line for line in client.stdout)
            client.terminate()
    finally:
        if (tmp_path / "server.pid").exists():
            os.kill(int((tmp_path / "server.pid").read_text()), signal.SIGTERM)
