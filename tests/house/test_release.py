"""The version of a release is written in all its places, any number of times."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from tests.helpers.pages import ROOT
from tools.release import CHANGELOG, TUTORIAL, VERSION_FILE, write_version

import inorder

TODAY = datetime.date(2030, 2, 3)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name in (CHANGELOG, TUTORIAL, VERSION_FILE):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    log = tmp_path / CHANGELOG
    log.write_text(log.read_text(encoding="utf-8").replace("\n## ", "\n## 8.9.9 (unreleased)\n\nNew.\n\n## ", 1))
    return tmp_path


def test_the_version_and_the_date_may_be_written_a_second_time(copy: Path) -> None:
    assert write_version(copy, "9.0.0", TODAY) == inorder.__version__
    assert write_version(copy, "9.0.0", TODAY) == "9.0.0"
    assert '__version__ = "9.0.0"' in (copy / VERSION_FILE).read_text(encoding="utf-8")
    assert "inorder-9.0.0.tar.gz" in (copy / TUTORIAL).read_text(encoding="utf-8")
    log = (copy / CHANGELOG).read_text(encoding="utf-8")
    assert "## 9.0.0 (2030-02-03)\n\nNew." in log
    assert "8.9.9" not in log


def test_a_released_section_is_not_renamed(copy: Path) -> None:
    write_version(copy, "9.0.0", TODAY)
    with pytest.raises(ValueError, match="must be unreleased"):
        write_version(copy, "9.0.1", TODAY)
