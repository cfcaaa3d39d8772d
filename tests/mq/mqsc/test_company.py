"""A script of the kind that companies keep: each command, and its answer, as they stand in `company.txt`."""

from __future__ import annotations

import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

import inorder
from inorder.cli import main

HERE = Path(__file__).parent


def test_a_script_of_a_company_is_answered_as_runmqsc_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is displayed is paid.db with three messages on a queue; dates are not asked for."""
    store = tmp_path / "paid.db"
    with inorder.connect(store, name="PAYMENTS") as qm:
        qm.create_queue("PAY.OLD")
        qm.put_many("PAY.OLD", [b"1", b"2", b"3"])
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO((HERE / "company.mqsc").read_bytes()), encoding="utf-8"))
    status = main(["mqsc", "--skip-unsupported", "--store", str(store)])
    told = capsys.readouterr()
    assert told.out == (HERE / "company.txt").read_text(encoding="utf-8")
    assert (status, told.err) == (2, "")
