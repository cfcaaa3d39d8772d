"""A trigger monitor starts the programs that trigger messages ask for, loses none, and reports the outcome (R4.9)."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.helpers import forked

from inorder import ArgumentError, Feedback, Message, QueueManager, Report, connect
from inorder.client.bulk import Stager
from inorder.errors import Undeliverable
from inorder.mq.trigger_monitor import TriggerEvent, TriggerMessage, run_trigger_monitor
from inorder.rules.dead_letters import why_dead
from inorder.stores.seam.records import LedgerKey

# The program writes its argument and its environment to a file.
WRITES = """
import json, os, sys
with open(sys.argv[1], "a") as file:
    file.write(json.dumps([sys.argv[2:], os.environ.get("INORDER_TEST"), os.getsid(0)]) + "\\n")
"""


class Site:
    """A store with an initiation queue START, and a program that records its calls."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "shop.db")
        self.written = folder / "written"
        self.program = folder / "writes.py"
        self.program.write_text(WRITES)
        self.command = (
            f"{shlex.quote(sys.executable)} {shlex.quote(str(self.program))} {shlex.quote(str(self.written))}"
        )
        self.qm = connect(self.path, name="SHOP")
        self.qm.create_queue("START")
        self.qm.create_queue("DEAD")
        self.qm.admin.alter_manager(dead_letter_queue="DEAD")
        self.events: list[TriggerEvent] = []

    def asks(self, queue: str = "Q", command: str | None = None, **process: Any) -> None:
        """Makes a queue that asks for a program for each message, and puts a message on it."""
        self.qm.admin.create_process(queue, application_id=self.command if command is None else command, **process)
        self.qm.create_queue(
            queue, trigger_control=True, trigger_type="every", initiation_queue="START", process=queue, trigger_data="T"
        )
        self.qm.put(queue, b"work")

    def as_user(self, put: Callable[[], object]) -> None:
        with self.qm.accounts.on_behalf_of("shop"):
            put()

    def stage(self, body: bytes) -> None:
        with self.qm.open("START", output=True) as queue:
            stager = Stager(queue, "forged", lasts=60)
            stager.stage(1, {"body": [body], "format": ["MQTRIG"], "put_application_type": [7]})
            self.qm.bulk.settle_staging(LedgerKey("", "", "1"), [stager.staged])

    def run(self, **options: Any) -> int:
        return run_trigger_monitor(self.qm, "START", until_empty=True, report=self.events.append, **options)

    def calls(self) -> list[Any]:
        text = self.written.read_text() if self.written.exists() else ""
        return [json.loads(line) for line in text.splitlines()]

    def told(self) -> list[tuple[str, int | None]]:
        return [(one.event, one.status) for one in self.events]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    with made.qm:
        yield made


def test_the_program_gets_the_trigger_message_as_one_argument_before_the_environment_data(
    site: Site,
) -> None:
    site.asks(user_data='it\'s "quoted" $HOME `x` \\', environment_data="behind 'two words'")
    assert site.run(environment={"INORDER_TEST": "given"}) == 1
    ((arguments, environment, its_session),) = site.calls()
    (argument, *rest) = arguments
    assert (len(argument), argument[:8], argument[-48:].rstrip()) == (732, "TMC    2", "SHOP")
    assert rest == ["behind", "two words"]
    assert environment == "given"
    assert its_session != os.getsid(0)  # so Ctrl-C at the monitor's terminal does not reach it
    assert TriggerMessage.from_argument(argument) == TriggerMessage(
        queue="Q", process="Q", trigger_data="T", application_id=site.command, user_data="it's \"quoted\" $HOME `x` \\",
        environment_data="behind 'two words'",
    )  # fmt: skip
    assert site.told() == [("started", None), ("ended", 0)]
    assert site.qm.depth("START") == 0


def test_programs_run_one_after_the_other_or_in_parallel_with_an_ampersand(site: Site, tmp_path: Path) -> None:
    site.asks("FIRST")
    site.qm.put("FIRST", b"more")
    assert site.run() == 2
    assert [one.event for one in site.events] == ["started", "ended"] * 2
    site.events.clear()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)  # the reader of a pipe ends only after the writer, so both programs must run at once
    site.asks("READS", f"cat {shlex.quote(str(pipe))}", environment_data="> /dev/null #", user_data="&")
    site.qm.admin.alter_process("READS", application_id=f"sh -c 'cat {pipe} > /dev/null'", environment_data=" & ")
    site.qm.put("READS", b"as altered")
    site.qm.get("START")
    site.asks("WRITES", f"sh -c 'echo > {pipe}'")
    assert site.run() == 2
    assert [(one.event, one.trigger and one.trigger.queue) for one in site.events if one.event == "started"] == [
        ("started", "READS"), ("started", "WRITES")
    ]  # fmt: skip
    assert [one.status for one in site.events if one.event == "ended"] == [0, 0]


@pytest.mark.parametrize(
    ("command", "status"), [("exit 7", 7), ("kill -9 $$", -9), ("nonsense '", 2), ("no_such_program; exit 3", 3)]
)
def test_the_exit_status_of_a_program_is_reported(site: Site, command: str, status: int) -> None:
    site.asks("Q", command, environment_data="2> /dev/null #" if "'" not in command else "")
    site.run(output=os.open(os.devnull, os.O_WRONLY))
    assert site.told() == [("started", None), ("ended", status)]


@pytest.mark.parametrize(
    ("command", "process", "feedback", "words"),
    [
        ("/no/such/program --fast", {}, Feedback.APPL_CANNOT_BE_STARTED, "there is no program /no/such/program"),
        ("", {}, Feedback.APPL_CANNOT_BE_STARTED, "process Q names no program"),
        ("true", {"application_type": 11}, Feedback.APPL_TYPE_ERROR, "is of type 11"),
    ],
)
def test_a_program_that_cannot_be_started_makes_its_trigger_message_a_dead_letter(
    site: Site, command: str, process: dict[str, Any], feedback: int, words: str
) -> None:
    site.asks("Q", command, **process)
    assert site.run() == 0
    (event,) = site.events
    assert (event.event, event.reason, event.trigger and event.trigger.queue) == ("set aside", feedback, "Q")
    assert words in event.error
    (letter,) = site.qm.dead.letters()
    assert (letter.why.reason, letter.why.queue, letter.why.program) == (feedback, "START", "trigger-monitor")
    assert TriggerMessage.from_bytes(letter.message.body).queue == "Q"
    site.qm.admin.alter_process("Q", application_id=site.command, application_type=6)
    assert site.qm.dead.replay().messages == 1  # the letter contains the definition as it was then


def test_a_message_that_is_not_a_trigger_is_a_dead_letter_and_the_next_is_started(site: Site) -> None:
    site.qm.put("START", b"what is this?")
    site.asks()
    assert site.run() == 1
    assert [one.event for one in site.events] == ["set aside", "started", "ended"]
    (letter,) = site.qm.dead.letters()
    assert (letter.why.reason, letter.message.body) == (Feedback.TM_ERROR, b"what is this?")


FORGED: dict[str, Callable[[Site, bytes], object]] = {
    "a program puts it": lambda site, body: site.qm.put("START", body, format="MQTRIG"),
    "it says that the queue manager has put it": lambda site, body: site.qm.put(
        "START", Message(body, format="MQTRIG", put_application_type=7, put_application_name="SHOP"), context="set_all"
    ),
    "a user puts it, who may": lambda site, body: site.as_user(lambda: site.qm.put("START", body)),
    "it is a report with data": lambda site, body: site.as_user(
        lambda: site.qm.put("R", body, report=Report.COA_WITH_FULL_DATA, reply_to_queue="START")
    ),
    "it is such a report to a program": lambda site, body: site.qm.put(
        "R", body, report=Report.COA_WITH_FULL_DATA, reply_to_queue="START"
    ),
    "it is put again, moved or replayed": lambda site, body: [
        site.qm.put("START", site.qm.get("START"), context="set_all", syncpoint=False),
    ],
    "it is staged": lambda site, body: site.stage(body),
}


@pytest.mark.parametrize("way", FORGED.values(), ids=FORGED.keys())
def test_a_trigger_message_that_the_queue_manager_did_not_put_starts_nothing(
    site: Site, way: Callable[[Site, bytes], object]
) -> None:
    site.qm.create_queue("R")
    site.qm.accounts.create_user("shop", roles=["application"], queues={"START": ["put"], "R": ["put"]})
    site.asks()
    (asked,) = site.qm.browse("START")
    way(site, asked.body)
    while site.qm.depth("START") > 1:  # the forged one is left
        site.qm.get("START", syncpoint=False)
    assert (site.run(), site.calls()) == (0, [])
    (letter,) = site.qm.dead.letters()
    assert (letter.why.reason, letter.message.body) == (Feedback.TM_ERROR, asked.body)
    assert "the queue manager did not put it" in letter.why.error
    site.qm.put("Q", b"more")
    assert (site.run(), len(site.calls())) == (1, 1)


@pytest.mark.parametrize("dead", ["", "NONE"])
def test_without_a_usable_dead_letter_queue_the_monitor_stops_and_the_message_stays(site: Site, dead: str) -> None:
    site.qm.admin.alter_manager(dead_letter_queue=dead)
    site.qm.put("START", b"what is this?")
    with pytest.raises(Undeliverable, match="dead-letter queue" if not dead else "NONE does not accept it"):
        site.run()
    assert [message.body for message in site.qm.browse("START")] == [b"what is this?"]
    assert why_dead(next(site.qm.browse("START"))).reason == 0


def test_a_monitor_that_ends_leaves_its_programs_running(site: Site, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    site.asks("Q", f"sh -c 'cat {pipe} > /dev/null'")
    ends, started = threading.Event(), threading.Event()

    def report(event: TriggerEvent) -> None:
        site.events.append(event)
        started.set()

    monitor = threading.Thread(
        target=run_trigger_monitor, args=(site.qm, "START"), kwargs={"ends": ends.is_set, "report": report}
    )
    monitor.start()
    assert started.wait(60)
    ends.set()
    monitor.join(60)
    assert [one.event for one in site.events] == ["started", "goes on"]
    pipe.write_bytes(b"end")  # the program reads it and ends


KILLED = """
import os
from inorder import connect
from inorder.mq import trigger_monitor

class Dies(trigger_monitor._Monitor):
    def _begin(self, command):
        if arguments[1] == "before":
            os.kill(os.getpid(), 9)
        started = super()._begin(command)
        started.wait()
        os.kill(os.getpid(), 9)

trigger_monitor._Monitor = Dies
with connect(arguments[0]) as qm:
    trigger_monitor.run_trigger_monitor(qm, "START", until_empty=True)
"""


@pytest.mark.parametrize(("when", "calls"), [("before", 1), ("after", 2)])
def test_a_monitor_that_is_killed_loses_no_trigger(site: Site, when: str, calls: int) -> None:
    site.asks()
    assert forked.run(KILLED, site.path, when) == -signal.SIGKILL
    assert site.run() == 1
    assert len(site.calls()) == calls  # killed after the start, it starts again: at least once, never not at all


def test_while_gets_are_inhibited_nothing_is_started(site: Site) -> None:
    site.asks()
    site.qm.alter_queue("START", get_allowed=False)
    assert (site.run(), site.events) == (0, [])
    site.qm.alter_queue("START", get_allowed=True)
    assert site.run() == 1


def test_a_wrong_argument_is_named_in_the_error(qm: QueueManager) -> None:
    wrong: dict[str, Any] = {"until_empty": 1, "ends": 5, "report": "x", "environment": ["A=1"], "output": "file"}
    for argument, value in wrong.items():
        with pytest.raises(ArgumentError) as refused:
            run_trigger_monitor(qm, "Q", **{argument: value})
        assert refused.value.data["argument"] == argument
