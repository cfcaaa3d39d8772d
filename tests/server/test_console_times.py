"""Times in the console: each names its zone, on every page alike."""

from __future__ import annotations

import re
import time
from datetime import datetime
from pathlib import Path

import httpx
import pytest
from tests.server.conftest import Served

import inorder
from inorder.client.unit_names import key_of
from inorder.server.console import labels

TEMPLATES = Path(labels.__file__).parent / "templates"
SHOWN = re.compile(r'<time datetime="([^"]*)">(\d[^<]*)</time>')
OF_PEOPLE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?! UTC)")


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


async def test_each_time_on_each_page_names_its_zone(client: httpx.AsyncClient, served: Served) -> None:
    with inorder.connect(served.store) as qm, qm.connect(program="holder") as holder:
        qm.create_queue("DEAD")
        qm.admin.alter_manager(dead_letter_queue="DEAD")
        for body in (b"1", b"2", b"3"):
            qm.put("Q1", body)
        with qm.unit_of_work():
            qm.dead.add(qm.get("Q1"), queue="Q1", error="it was torn")
        holder.get("Q1", confirm_id=7)
        lock = holder.browse_and_lock("Q1")
        (letter,), unit = (
            qm.inspect.look("DEAD"),
            key_of(next(one for one in qm.inspect.units() if one.kind == "confirm")),
        )
        uid = letter.message.uid
        assert uid is not None
        with qm.accounts.acting("clear", "Q1", user="anna"):
            pass
        pages = [
            f"queue/DEAD/message/{uid.number}-{uid.origin}",
            f"held/unit/{unit}",
            f"held/lock/Q1/{lock.lock_id}",
            "dead",
            "log",
        ]
        for place in pages:
            answer = await client.get(f"/console/{place}")
            assert answer.status_code == 200, f"{place}: {answer.text}"
            assert not OF_PEOPLE.search(answer.text), f"{place} has a time without a zone"
            found = SHOWN.findall(answer.text)
            assert found, f"{place} shows a time"
            for machine, shown in found:
                exact = datetime.fromisoformat(machine.replace("Z", "+00:00")).timestamp()
                assert shown == labels.clock(exact), place


def test_templates_have_one_way_to_write_a_time() -> None:
    others = [one.name for one in TEMPLATES.iterdir() if one.name != "parts.html" and "| clock" in one.read_text()]
    assert others == [], "use the macros `when` and `age` of parts.html"
