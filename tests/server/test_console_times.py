"""Times in the console: each is written by one macro and names its zone; test_console_acting_held.py sees all pages."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from inorder.server.console import labels

TEMPLATES = Path(labels.__file__).parent / "templates"


@pytest.mark.parametrize("zone", ["Pacific/Auckland", "America/New_York", "UTC"])
def test_a_time_is_in_utc_and_says_so_wherever_the_server_stands(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        with monkeypatch.context() as changed:
            changed.setenv("TZ", zone)
            time.tzset()
            assert labels.clock(1_795_476_548.25) == "2026-11-23 23:29:08 UTC"
            assert labels.iso(1_795_476_548.25) == "2026-11-23T23:29:08.250Z"
            assert (labels.clock(None), labels.iso(None)) == ("", "")
    finally:
        time.tzset()


def test_templates_have_one_way_to_write_a_time() -> None:
    others = [one.name for one in TEMPLATES.iterdir() if one.name != "parts.html" and "| clock" in one.read_text()]
    assert others == [], "use the macros `when` and `age` of parts.html"
