"""The examples of the pages on HTTP, against a server."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import Running, Start

import inorder

PAGES = Path(__file__).parents[2] / "docs/how-to"
PAGE = PAGES / "http.md"
AT = "http://127.0.0.1:9443"


@pytest.fixture
def running(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Running:
    """A server with the queue ORDERS, whose token is where the examples read it."""
    one = start()
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".inorder-token").write_text(one.token)
    with inorder.connect(one.store) as qm:
        qm.create_queue("ORDERS")
    return one


@pytest.mark.nightly
def test_the_examples_in_python_run(running: Running, capsys: pytest.CaptureFixture[str]) -> None:
    examples = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(examples) == 3, "say here what a new example needs"
    known: dict[str, Any] = {}
    for example in examples:
        assert AT in example
        here = example.replace(AT, running.record["url"].rstrip("/")).replace("qmgr/orders/", "qmgr/QM1/")
        exec(compile(here, str(PAGE), "exec"), known)
    assert known["order"]["body"] == '{"apples":2}'
    assert [one["body"] for one in known["bill"]] == ['bill for {"apples":2}']
    assert [one.get("body") for one in known["whole"]] == ["header", "line 1", None]
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == "1 3"


@pytest.mark.nightly
def test_the_example_of_arrow_runs(running: Running, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow", reason="needs the extra inorder[arrow]")
    page = (PAGES / "bulk.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```py\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert AT in example
    exec(compile(example.replace(AT, running.record["url"].rstrip("/")), "bulk.md", "exec"), {})
    assert capsys.readouterr().out.splitlines() == ["3", "b'1'", "b'2'", "b'3'"]
    with inorder.connect(running.store) as qm:
        assert qm.depth("ORDERS") == 0
