"""The demonstration shows what the documents say, and would notice if it did not."""

from __future__ import annotations

import pytest

from inorder import demo
from inorder.cli import main


def test_everything_is_as_documented(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main() == 0
    told = capsys.readouterr().out
    assert told.rstrip().endswith("All as documented.")
    assert "\033[" not in told, "no colours where nobody looks"
    rows = {line.split()[0]: line for line in told.splitlines() if line.startswith("  t")}
    assert rows["t4"].split("commits")[1].split() == ["A1", "A2", "A1", "A2"]
    assert rows["t6"].split()[-1] == "B2"


def test_what_differs_from_the_documents_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "LOGICAL", demo.PHYSICAL)
    assert demo.main() == 1
    assert "NOT AS DOCUMENTED" in capsys.readouterr().out


def test_the_command_runs_the_demonstration_and_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo"]) == 0
    assert main(["scenarios", "tests/scenarios/backout.txt"]) == 0
    assert " passed, 0 failed" in capsys.readouterr().out


@pytest.mark.parametrize(("arguments", "status"), [(["--version"], 0), (["--help"], 0), ([], 2), (["fly"], 2)])
def test_the_command_says_what_it_takes(arguments: list[str], status: int) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == status
