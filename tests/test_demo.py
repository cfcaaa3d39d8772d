"""The demonstration shows what the documents say, and would notice if it did not."""

from __future__ import annotations

from pathlib import Path

import pytest

from inorder import demo
from inorder.attributes import OrderRule
from inorder.cli import main
from inorder.options import AskedOrder


def test_everything_is_as_documented(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main() == 0
    told = capsys.readouterr().out
    assert told.rstrip().endswith("All as documented.")
    assert "\033[" not in told, "no colours where nobody looks"
    assert told.count("  as documented: ") == 16


@pytest.mark.parametrize(("order", "asked"), demo.DOCUMENTED)
def test_the_tables_in_the_docs_are_drawn_from_a_run(order: OrderRule, asked: AskedOrder) -> None:
    page = (Path(__file__).parents[1] / "docs" / "order.md").read_text(encoding="utf-8")
    drawn = "\n".join(demo.table(demo.four_readers(order, asked)))
    assert drawn in page, f"paste into docs/order.md, {order} order, {asked}:\n{drawn}"


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
