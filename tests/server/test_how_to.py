"""The examples of the pages on HTTP, against a server."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import Start

import inorder

PAGES = Path(__file__).parents[2] / "docs/how-to"
PAGE = PAGES / "http.md"
AT = "http://127.0.0.1:9443"

Home = Callable[[str], object]


@pytest.fixture
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Leaves a token where the examples read it."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return (home / ".inorder-token").write_text


@pytest.mark.nightly
def test_the_examples_in_python_run(start: Start, at_home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    running = start()
    at_home(running.token)
    with inorder.connect(running.store) as qm:
        qm.create_queue("ORDERS")
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
def test_the_example_of_arrow_runs(start: Start, at_home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow", reason="needs the extra inorder[arrow]")
    running = start()
    at_home(running.token)
    with inorder.connect(running.store) as qm:
        qm.create_queue("ORDERS")
    page = (PAGES / "bulk.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```py\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert AT in example
    exec(compile(example.replace(AT, running.record["url"].rstrip("/")), "bulk.md", "exec"), {})
    assert capsys.readouterr().out.splitlines() == ["3", "b'1'", "b'2'", "b'3'"]
    with inorder.connect(running.store) as qm:
        assert qm.depth("ORDERS") == 0
