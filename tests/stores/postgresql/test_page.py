"""The page "A store in PostgreSQL": what is typed gives what is shown, with the URL of a server of the tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.pages import ROOT, run_page

PAGE = ROOT / "docs/how-to/postgresql.md"
ON_THE_PAGE = "postgresql://ann@db.example.com/shop?schema=orders"


@pytest.mark.nightly
def test_every_line_runs(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert f"$ export INORDER_STORE={ON_THE_PAGE}\n" in text
    page = tmp_path / PAGE.name
    page.write_text(text.replace(ON_THE_PAGE, url), encoding="utf-8")
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    run_page(page, folder, spark=False)
