"""The page "A store on another machine": every line that it shows is run, on a port that is free."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.helpers.pages import ROOT, run_page
from tests.server.test_tutorial import free_port
from tests.tiers import gate

PAGE = ROOT / "docs/how-to/elsewhere.md"


@gate
def test_every_line_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shutil.which("curl"), "the page needs curl: apt install curl"
    monkeypatch.setenv("INORDER_CREDENTIALS", str(tmp_path / "credentials"))
    page = tmp_path / PAGE.name
    page.write_text(PAGE.read_text(encoding="utf-8").replace("9443", str(free_port())), encoding="utf-8")
    folder = tmp_path / "folder"
    folder.mkdir()
    run_page(page, folder, spark=False)
