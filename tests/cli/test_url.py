"""Every command with the URL of a store in place of its path: a store in PostgreSQL, and one behind a server.

No command shows a password or a token.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click
import pytest
from tests.cli.conftest import Command
from tests.cli.test_help import CONTEXTS
from tests.helpers.support import Make
from tests.tiers import nightly

import inorder
from inorder import Match
from inorder.client.bulk import ClaimReader, Stager
from inorder.testing.remote import the_server

PASSWORD = "nobody-may-see-this"
# The commands that a remote store refuses, with the machine or the command that their errors name instead.
REFUSED = {
    **dict.fromkeys(
        ("user add", "user alter", "user list", "user password", "user delete", "token create",
         "token list", "token revoke"),
        "run 'inorder user' and 'inorder token' on the machine that has the store",
    ),
    "acts": "run 'inorder acts' on the machine",
    "backup": "run 'inorder backup' on the machine",
    "rename": "run 'inorder rename' on the machine",
    "upgrade": "run inorder upgrade",
}  # fmt: skip
# Commands that use Spark; tests/spark/test_elsewhere.py runs them with a URL.
WITH_SPARK = {"pipeline drain", "pipeline load", "pipeline replay"}
# Runs until it is stopped; tested in tests/server/test_processes.py.
SERVES = {"serve"}
WITHOUT_STORE = {
    "login", "pipeline reorder", "pipeline audit", "pipeline unload", "mqi run", "mqi env", "mqi build", "mqi install",
    "mqi headers", "mqi cflags",
}  # fmt: skip


@pytest.fixture
def url(postgresql: str, make: Make, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a store that does not exist yet; the server accepts every password."""
    one = make("postgresql")
    monkeypatch.setenv("INORDER_STORE", with_password(one))
    return one


def with_password(url: str) -> str:
    """The URL as commands get it."""
    given = url.replace("@", f":{PASSWORD}@", 1)
    assert given != url
    return given


def held(url: str) -> None:
    """Leaves what commands settle by hand: two prepared units, a claim of one message, a lock and a staging."""
    with inorder.connect(url) as qm:
        with qm.open("Q", input="shared", output=True) as handle:
            reader = ClaimReader(handle, "app")
            reader.claim(reader.begin().settled, most=1)
            Stager(handle, "left", lasts=600).stage(1, {"body": [b"staged"]})
        qm.browse_and_lock("Q", Match(message_id=next(qm.browse("Q")).message_id))
        for name in ("monday", "tuesday"):
            qm.put("Q", name.encode(), syncpoint=True)
            qm.prepare(name)


@pytest.fixture
def works_on_q(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module `works_on_q` for `work`, and an application's database for `outbox`."""
    (store.parent / "shop.db").touch()
    text = 'from inorder.work import Tasks\n\ntasks = Tasks()\ntasks.task("Q", name="see")(lambda message: None)\n'
    (store.parent / "works_on_q.py").write_text(text)
    monkeypatch.syspath_prepend(str(store.parent))
    monkeypatch.delitem(sys.modules, "works_on_q", raising=False)


# The order matters: each step finds what the earlier ones have left.
STEPS: list[tuple[str, list[str], bytes, int]] = [
    ("queue create", ["Q", "--max-depth", "100"], b"", 0),
    ("queue alter", ["Q", "--description", "ours"], b"", 0),
    ("queue show", ["Q"], b"", 0),
    ("put", ["Q", "--lines"], b"1\n2\n3\n4\n5\n", 0),
    ("get", ["Q"], b"", 0),
    ("queue list", [], b"", 0),
    ("browse", ["Q"], b"", 0),
    ("watch", ["--count", "1"], b"", 0),
    ("held", [], b"", 0),
    ("unit list", [], b"", 0),
    ("unit show", ["prepared:monday"], b"", 0),
    ("unit settle", [], b"", 0),
    ("unit forget", ["prepared:monday", "--yes"], b"", 1),
    ("unit commit", ["prepared:monday", "--yes"], b"", 0),
    ("unit backout", ["prepared:tuesday", "--yes"], b"", 0),
    ("unit backout", ["staging:left", "--yes"], b"", 0),
    ("lock list", [], b"", 0),
    ("lock release", ["Q", "LOCK", "--yes"], b"", 0),
    ("connection list", ["Q"], b"", 0),
    ("claim list", [], b"", 0),
    ("claim leave", ["Q", "app", "--yes"], b"", 0),
    ("claim release", ["Q", "app", "--yes"], b"", 0),
    ("claim finish", ["Q", "app", "--upto", "1"], b"", 0),
    ("mqsc", [], b"DEFINE QLOCAL(R) DESCR('theirs')\nDISPLAY QLOCAL(*)\n", 0),
    ("mqsc", ["--export"], b"", 0),
    ("mqsc", [], b"DEFINE QLOCAL(X) USAGE(XMITQ)\nDEFINE QLOCAL(DEAD)\nALTER QMGR DEADQ(DEAD)\n", 0),
    ("connection define", ["THERE", "nowhere.db"], b"", 0),
    ("connection defined", [], b"", 0),
    ("channel map", ["there(1414)", "THERE"], b"", 0),
    ("channel unmap", ["there(1414)"], b"", 0),
    ("queue create", ["NORTH", "--type", "home_server", "--remote-manager", "THERE"], b"", 0),
    ("channel trigger", ["NORTH"], b"", 0),
    ("channel pull", ["NORTH", "--until-empty"], b"", 3),
    ("queue delete", ["NORTH"], b"", 0),
    ("connection delete", ["THERE"], b"", 0),
    ("channel create", ["TO.B", "--transmission-queue", "X", "--connection", "nowhere.db"], b"", 0),
    ("channel alter", ["TO.B", "--batch-size", "5"], b"", 0),
    ("channel show", ["TO.B"], b"", 0),
    ("channel list", [], b"", 0),
    ("channel status", [], b"", 0),
    ("channel ping", ["TO.B"], b"", 3),
    ("channel reset", ["TO.B", "--yes"], b"", 0),
    ("channel resolve", ["TO.B", "--yes"], b"", 1),
    ("channel stop", ["TO.B"], b"", 0),
    ("channel run", ["TO.B", "--until-empty"], b"", 1),
    ("channel start", ["TO.B"], b"", 0),
    ("channel delete", ["TO.B"], b"", 0),
    ("trigger-monitor", ["R", "--until-empty"], b"", 0),
    ("mqi serve-commands", ["--until-empty"], b"", 2),
    ("work", ["works_on_q", "--list"], b"", 0),
    ("outbox", ["shop.db", "--create", "--until-empty"], b"", 0),
    ("dead list", [], b"", 0),
    ("dead replay", [], b"", 0),
    ("dead discard", ["--yes"], b"", 0),
    ("dead run", ["-"], b"WAIT(NO)\nACTION(RETRY)\n", 0),
    ("user add", ["alice", "--role", "admin", "--password-stdin"], b"correct horse\n", 0),
    ("user alter", ["alice", "--description", "ours"], b"", 0),
    ("user list", [], b"", 0),
    ("user password", ["alice", "--remove"], b"", 0),
    ("token create", ["alice", "ci"], b"", 0),
    ("token list", [], b"", 0),
    ("token revoke", ["none"], b"", 2),
    ("user delete", ["alice", "--yes"], b"", 0),
    ("acts", [], b"", 0),
    ("export", [], b"", 0),
    ("import", ["-", "--yes"], b"DEFINE QLOCAL(NEW)\n", 0),
    ("move", ["Q", "R", "--count", "1"], b"", 0),
    ("copy", ["Q", "R"], b"", 0),
    ("check", [], b"", 0),
    ("backup", ["copy.db"], b"", 2),
    ("rename", ["LYON"], b"", 0),
    ("upgrade", [], b"", 2),
    ("upgrade", ["--no-backup"], b"", 0),
    ("queue retry", ["Q"], b"", 0),
    ("queue clear", ["Q", "--yes"], b"", 0),
    ("queue delete", ["R", "--purge", "--yes"], b"", 0),
]


def test_every_command_that_takes_a_store_is_tried() -> None:
    every = {one.command_path.partition(" ")[2] for one in CONTEXTS if not isinstance(one.command, click.Group)}
    assert {name for name, *_ in STEPS} - {"held"} == every - WITH_SPARK - WITHOUT_STORE - SERVES - {"create"}


def test_create_takes_a_url_and_shows_no_password(run: Command, url: str) -> None:
    for status in (0, 3):
        ended = run("create", with_password(url), "--name", "PARIS")
        assert (ended.status, PASSWORD in ended.out + ended.err) == (status, False)
    with inorder.connect(url) as qm:
        assert qm.admin.manager_attributes().name == "PARIS"


@pytest.mark.parametrize("as_json", [pytest.param(False, id="words"), pytest.param(True, id="json", marks=nightly)])
@pytest.mark.usefixtures("works_on_q")
def test_every_command_takes_a_url_and_shows_no_password(run: Command, url: str, as_json: bool) -> None:
    every_step(run, url, url, PASSWORD, {}, *(["--json"] if as_json else []))


@pytest.mark.usefixtures("works_on_q")
def test_every_command_takes_the_url_of_a_server_or_says_what_to_do_instead(
    run: Command, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inorder.connect(store).close()
    server = the_server(os.getpid())
    monkeypatch.setenv("INORDER_STORE", server.url)
    with server.serving(str(store)) as token:
        monkeypatch.setenv("INORDER_TOKEN", token)
        every_step(run, server.url, str(store), token, REFUSED)


def every_step(run: Command, place: str, store: str, secret: str, refused: dict[str, str], *more: str) -> None:
    """Runs all commands on the store at a place; those that are refused end with status 2 and these words."""
    lock = ""
    for name, arguments, given, status in STEPS:
        if name == "held":
            held(place)
            with inorder.connect(place) as qm:
                lock = str(qm.inspect.locks()[0].lock_id)
            continue
        ended = run(*name.split(), *[lock if word == "LOCK" else word for word in arguments], *more, given=given)
        assert ended.status == (2 if name in refused else status), f"{name}: {ended}"
        assert refused.get(name, "") in ended.err, f"{name}: {ended}"
        assert secret not in ended.out + ended.err, name
        assert "Traceback" not in ended.err, name
    with inorder.connect(store) as qm:
        assert (qm.depth("Q"), qm.inspect.units(), qm.admin.check()) == (0, [], [])


@pytest.mark.parametrize("command", ["move", pytest.param("copy", marks=nightly)])
def test_a_queue_is_transferred_to_a_database_and_back(run: Command, url: str, tmp_path: Path, command: str) -> None:
    there_and_back(run, str(tmp_path / "file.db"), with_password(url), command)


@pytest.mark.parametrize("command", ["move", pytest.param("copy", marks=nightly)])
def test_a_queue_is_transferred_to_a_server_and_back(
    run: Command, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    inorder.connect(store).close()
    server = the_server(os.getpid())
    monkeypatch.setenv("INORDER_CREDENTIALS", str(tmp_path / "credentials"))
    with server.serving(str(store)) as token:
        assert run("login", server.url, given=token.encode()).status == 0
        there_and_back(run, str(tmp_path / "file.db"), server.url, command)


def there_and_back(run: Command, file: str, server: str, command: str) -> None:
    run("queue", "create", "Q", "--store", file)
    run("put", "Q", "--lines", "--group", "--store", file, given=b"1\n2\n3\n")
    for store, to, queue, target in ((file, server, "Q", "Q"), (server, file, "Q", "BACK")):
        ended = run(command, queue, target, "--create", "--store", store, "--to-store", to)
        assert ended.status == 0, ended.err
        assert "3 messages" in ended.out
        assert PASSWORD not in ended.out + ended.err
    with inorder.connect(file) as qm:
        assert [message.body for message in qm.get_group("BACK")] == [b"1", b"2", b"3"]
