"""`inorder export` and `inorder import`: definitions as a script, and its changes to another store."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Command

import inorder
from inorder.cli import main
from inorder.mq import channels
from inorder.support import passwords

SCRIPT = b"""\
* inorder connection define OSLO https://oslo:9443 --user london --replace
DEFINE QLOCAL(ORDERS) DESCR('all of them') MAXDEPTH(100) REPLACE
DEFINE QALIAS(SALES) TARGET(ORDERS) REPLACE
DEFINE QLOCAL(X) USAGE(XMITQ) REPLACE
DEFINE CHANNEL(TO.OSLO) CHLTYPE(SDR) CONNAME('nowhere.db') XMITQ(X) REPLACE
DEFINE PROCESS(P) APPLICID('run') REPLACE
ALTER QMGR MAXUMSGS(7)
* inorder user add shop --role application --may put,inquire=ORDERS* --certificate 'CN=the shop' --description 'a b'
* inorder user alter shop --disable
* inorder user add root --role admin
"""


def test_an_import_shows_what_it_changes_and_a_second_one_changes_nothing(run: Command, store: Path) -> None:
    inorder.connect(store).close()
    ended = run("import", "-", "--dry-run", given=SCRIPT)
    assert ended.status == 1, ended.err
    assert "new: queue ORDERS\n  + DEFINE QLOCAL(ORDERS) +\n" in ended.out
    assert "changed: queue manager\n" not in ended.out
    with inorder.connect(store) as qm:
        assert "ORDERS" not in {one.name for one in qm.queues()}
    assert run("import", "-", given=SCRIPT).status == 2, "there is no terminal to ask at"
    ended = run("import", "-", "--yes", given=SCRIPT)
    assert ended.status == 0, ended.err
    assert "user shop has no password" in ended.err
    for more in ("--dry-run", "--yes"):
        ended = run("import", "-", more, given=SCRIPT)
        assert (ended.status, ended.out) == (0, f"{store} has these definitions already\n"), ended.err
    with inorder.connect(store) as qm:
        assert qm.attributes("ORDERS").max_depth == 100
        assert [one.name for one in channels.channels(qm)] == ["TO.OSLO"]
        assert qm.admin.manager_attributes().max_uncommitted == 7
        shop = qm.accounts.user("shop")
        assert (shop.enabled, shop.subjects, dict(shop.queues)) == (
            False, ("CN=the shop",), {"ORDERS*": ("put", "inquire")},
        )  # fmt: skip


def test_an_export_makes_the_same_definitions_in_another_store(run: Command, store: Path, tmp_path: Path) -> None:
    compared = run("import", "-", "--dry-run", given=SCRIPT)
    assert compared.status == 1, compared.err
    assert "new: queue ORDERS\n" in compared.out
    assert not store.exists()
    assert run("import", "-", "--yes", given=SCRIPT).status == 0, "which creates the store"
    exported = run("export")
    again = str(tmp_path / "again.db")
    assert run("import", "-", "--yes", "--store", again, given=exported.out.encode()).status == 0
    assert run("export", "--store", again) == exported
    assert "".join(f"{one['command']}\n" for one in run("export", "--json").records) == exported.out


def test_an_alias_whose_base_queue_became_a_model_or_an_alias_is_exported_and_imported(
    run: Command, store: Path, tmp_path: Path
) -> None:
    with inorder.connect(store) as qm:
        for name, base in (("C", "B"), ("B", "A"), ("A", "M"), ("D", "M")):
            qm.create_queue(name, type="alias", base_queue=base)
        qm.create_queue("M", type="model")
    exported, again = run("export"), str(tmp_path / "again.db")
    ended = run("import", "-", "--yes", "--store", again, given=exported.out.encode())
    assert ended.status == 0, ended.err
    assert run("export", "--store", again) == exported
    ended = run("import", "-", "--dry-run", given=exported.out.encode())
    assert (ended.status, ended.out) == (0, f"{store} has these definitions already\n"), ended.err


def test_an_import_changes_only_what_differs_and_keeps_secrets(run: Command, store: Path) -> None:
    run("import", "-", "--yes", given=SCRIPT)
    with inorder.connect(store) as qm:
        qm.accounts.alter_user("root", password_hash=passwords.hashed("correct horse"))
        shop = qm.accounts.user("shop").identifier
        with qm.open("ORDERS", input="exclusive"):
            changed = SCRIPT.replace(b"all of them", b"some").replace(b"--role admin", b"--role reader")
            records = run("import", "-", "--yes", "--json", given=changed).records
        assert [(one["kind"], one["name"], one["is_new"]) for one in records] == [
            ("queue", "ORDERS", False), ("user", "root", False),
        ]  # fmt: skip
        assert records[0]["removed"] == ["   DESCR('all of them') +"]
        assert records[0]["added"] == ["   DESCR('some') +"]
        assert (qm.accounts.user("root").roles, qm.accounts.user("root").has_password) == (("reader",), True)
        assert qm.accounts.user("shop").identifier == shop, "it was not disabled again"
        run("import", "-", "--yes", given=SCRIPT.replace(b"* inorder user alter shop --disable\n", b""))
        assert qm.accounts.user("shop").enabled


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("CLEAR QLOCAL(ORDERS)", "Line 2: import takes DEFINE and ALTER, not CLEAR"),
        ("DEFINE QLOCAL(B) MAXDEPTH(NO)", "MAXDEPTH"),
        ("ALTER QLOCAL(NONE) MAXDEPTH(1)", "line 2"),
        ("* inorder user add a --role king", "Line 2: inorder user add a --role king"),
        ("* inorder user add a --password", "a script has no passwords"),
        ("* inorder user add a --help", "No such option '--help'"),
        ("* inorder user add a 'b", "No closing quotation"),
        ("* inorder queue clear ORDERS", "Line 2: inorder queue clear ORDERS: import takes 'user add'"),
        ("* inorder user add a --may put=ORDERS", "application"),
    ],
)
def test_a_script_with_a_mistake_changes_nothing(run: Command, store: Path, line: str, said: str) -> None:
    inorder.connect(store).close()
    before = run("export")
    ended = run("import", "-", "--yes", given=f"DEFINE QLOCAL(A)\n{line}\n".encode())
    assert (ended.status, ended.out) == (2, "")
    assert said in ended.err
    assert run("export") == before


def test_answering_no_at_a_terminal_changes_nothing(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.mqsc").write_bytes(SCRIPT)
    monkeypatch.setattr("inorder.cli.output.click.confirm", lambda question, **_: print(question))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    assert main(["import", str(tmp_path / "a.mqsc"), "--store", str(store)]) == 1
    assert "Change 9 definitions in" in capsys.readouterr().out
    assert not store.exists()


def test_control_characters_of_a_description_survive(run: Command, store: Path, tmp_path: Path) -> None:
    described = "two\nlines, \t\\n \x1b[0m \u2028 'and' \"quotes\""
    with inorder.connect(store) as qm:
        qm.accounts.create_user("ada", roles=["reader"], description=described)
    exported = run("export").out
    assert len(exported.splitlines()) == 1
    again = tmp_path / "again.db"
    assert run("import", "-", "--yes", "--store", str(again), given=exported.encode()).status == 0
    with inorder.connect(again) as qm:
        assert qm.accounts.user("ada").description == described


def test_names_like_options_and_texts_that_stand_for_the_queue_manager_survive(
    run: Command, store: Path, tmp_path: Path
) -> None:
    text = "of +QMNAME+QMNAME+ and +MQ_Q_MGR_NAME+"
    with inorder.connect(store) as qm:
        qm.create_queue("ORDERS", description=text)
        qm.create_queue("FAR", type="store_and_forward", targets=",".join(f"OTHER{n:043}" for n in range(200)))
        qm.admin.alter_manager(description=text)
        qm.admin.create_process("P", user_data=text)
        channels.define_connection(qm, "HERE", "-here.db")
        channels.define_channel(qm, "IN", "receiver", description=text)
        qm.accounts.create_user("--ada", roles=["reader"], description="--role")
        qm.accounts.alter_user("--ada", enabled=False)
    exported = run("export").out
    again = tmp_path / "again.db"
    ended = run("import", "-", "--yes", "--store", str(again), given=exported.encode())
    assert ended.status == 0, ended.err
    assert run("export", "--store", str(again)).out == exported
    with inorder.connect(again) as qm:
        assert qm.attributes("ORDERS").description == text
        assert not qm.accounts.user("--ada").enabled
