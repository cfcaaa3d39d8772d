"""The tutorial "From another machine": every line that it shows is run, on a port that is free."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path

import pytest
from tests.helpers.pages import ROOT, run_page

PAGE = ROOT / "docs/tutorial/another-machine.md"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        port: int = one.getsockname()[1]
        return port


@pytest.mark.nightly
def test_every_line_runs(tmp_path: Path) -> None:
    assert shutil.which("curl"), "the tutorial needs curl: apt install curl"
    page = tmp_path / PAGE.name
    page.write_text(PAGE.read_text(encoding="utf-8").replace("9443", str(free_port())), encoding="utf-8")
    folder = tmp_path / "folder"
    folder.mkdir()
    run_page(page, folder, spark=False)
