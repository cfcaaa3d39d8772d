"""Tests of the promises in SECURITY.md."""

from __future__ import annotations

import ast
import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import inorder
from inorder import StoreError
from inorder.cli import main
from inorder.cli.running import TROUBLE
from inorder.client.bulk import NAME_LENGTH_MAX as BULK_NAME_LENGTH_MAX
from inorder.errors import StoreDamaged, StoreForeign
from inorder.formats.dmpmqmsg import LINE_BYTES_MAX
from inorder.formats.file_group import TEMPORARY_PREFIX, Rebuilder
from inorder.formats.manifest import MANIFEST_BYTES_MAX, PATH_BYTES_MAX, Manifest
from inorder.formats.splitting import RECORD_BYTES_MAX
from inorder.formats.transfer import get_file, put_file
from inorder.model.attribute import COUNT_MAX, DESCRIPTION_LENGTH_MAX, NAME_LENGTH_MAX
from inorder.model.attributes import MANAGER_ATTRIBUTES, MESSAGE_LENGTH_MAX
from inorder.model.fields import NUMBER_MAX
from inorder.stores.seam.records import LEDGER_BATCHES_MAX
from inorder.stores.sqlite.opening import BESIDE

ROOT = Path(__file__).parents[2]
SECURITY = (ROOT / "SECURITY.md").read_text(encoding="utf-8")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "orders.db"


@contextmanager
def umask(bits: int) -> Iterator[None]:
    before = os.umask(bits)
    try:
        yield
    finally:
        os.umask(before)


def modes(path: Path) -> dict[str, int]:
    """The permissions of the store and the files beside it, by the suffix of the name."""
    return {each.name[len(path.name) :]: each.stat().st_mode & 0o777 for each in path.parent.glob(f"{path.name}*")}


def use(path: Path) -> dict[str, int]:
    """The permissions of the files while the store is in use."""
    with inorder.connect(path) as qm:
        qm.create_queue(f"Q{len(qm.queues())}")
        return modes(path)


# ---- permissions


@pytest.mark.parametrize("bits", [0o000, 0o077])
@pytest.mark.parametrize(
    ("made", "before", "now"),
    [
        (None, None, 0o600),  # a new store
        (0o660, None, 0o660),  # of a group, with all its files
        (0o666, 0o600, 0o600),  # made more private: the files beside it follow
    ],
)
def test_a_store_and_the_files_beside_it_have_the_same_permissions_under_any_umask(
    path: Path, bits: int, made: int | None, before: int | None, now: int
) -> None:
    if made is not None:
        path.touch()
        path.chmod(made)
    with umask(bits):
        if before is not None:
            use(path)
            path.chmod(before)
        assert use(path) == dict.fromkeys(("", "-lock", "-wal", "-shm"), now)


def test_a_sidecar_keeps_its_mode_when_the_store_gets_wider_permissions(path: Path) -> None:
    use(path)
    path.chmod(0o666)
    assert use(path)["-lock"] == 0o600


def test_a_backup_is_private_while_it_grows_and_after(path: Path, tmp_path: Path) -> None:
    path.touch()
    path.chmod(0o666)
    grown: list[int] = []
    with umask(0), inorder.connect(path) as qm:
        qm.admin.backup(
            tmp_path / "copy",
            progress=lambda done, total: grown.extend(
                one.stat().st_mode & 0o777 for one in tmp_path.glob("copy.*part")
            ),
        )
    assert set(grown) == {0o600}
    assert (tmp_path / "copy").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("suffix", BESIDE)
@pytest.mark.parametrize("is_there", [True, False], ids=["to a file", "to nothing"])
def test_a_link_beside_a_store_is_refused_and_not_followed(
    path: Path, tmp_path: Path, suffix: str, is_there: bool
) -> None:
    victim = tmp_path / "victim"
    if is_there:
        victim.write_bytes(b"precious")
    Path(f"{path}{suffix}").symlink_to(victim)
    with pytest.raises(StoreError, match=f"{suffix} belongs to it, and is a link"):
        inorder.connect(path)
    assert not path.exists()
    assert victim.exists() == is_there
    assert not is_there or victim.read_bytes() == b"precious"


def test_a_link_made_between_the_check_and_the_opening_is_not_followed_either(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    monkeypatch.setattr("inorder.stores.sqlite.opening.BESIDE", ())
    Path(f"{path}-lock").symlink_to(victim)
    with pytest.raises(StoreError, match="-lock"):
        inorder.connect(path)
    assert victim.read_bytes() == b"precious"


def test_a_removed_message_may_stay_in_the_file(path: Path) -> None:
    """Documented, so that no user relies on the opposite."""
    with inorder.connect(path) as qm:
        qm.create_queue("Q")
        qm.put("Q", b"the secret that was got")
        qm.get("Q")
        files = [each.read_bytes() for each in path.parent.iterdir() if each.name != f"{path.name}-lock"]
    assert any(b"the secret that was got" in each for each in files)


# ---- a store that an attacker wrote


def tampered(path: Path, *statements: str) -> bytes:
    """Makes a store and changes it with SQLite itself; returns its bytes."""
    with inorder.connect(path) as qm:
        qm.create_queue("Q")
        qm.put("Q", b"1")
    with closing(sqlite3.connect(path, isolation_level=None)) as outside:
        for statement in ("PRAGMA ignore_check_constraints = ON", *statements):
            outside.execute(statement)
        outside.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path.read_bytes()


EVIL = "CREATE TRIGGER evil AFTER INSERT ON message BEGIN DELETE FROM message; END"
EVIL_VIEW = "CREATE VIEW evil AS SELECT load_extension('x')"
GOES = "CREATE TRIGGER member_goes AFTER DELETE ON message BEGIN SELECT 1; END"
UNDER_ANOTHER_NAME = "UPDATE sqlite_schema SET name = '{0}', sql = replace(sql, 'evil', '{0}') WHERE name = 'evil'"
STRANGE: dict[str, tuple[str, list[str]]] = {  # the name in the error, and the changes
    "a trigger": ("evil", [EVIL]),
    "a view": ("evil", [EVIL_VIEW]),
    "a table": ("evil", ["CREATE TABLE evil (a)"]),
    "an index": ("evil", ["CREATE INDEX evil ON content (body)"]),
    "a trigger that is gone": ("member_comes", ["DROP TRIGGER member_comes"]),
    "a trigger of ours that was changed": ("member_goes", ["DROP TRIGGER member_goes", GOES]),
    "a trigger named like figures": ("sqlite_stat9", [EVIL, UNDER_ANOTHER_NAME.format("sqlite_stat9")]),
    "a trigger named as figures": ("sqlite_stat1", [EVIL, UNDER_ANOTHER_NAME.format("sqlite_stat1")]),
    "a view named as figures": ("sqlite_stat4", [EVIL_VIEW, UNDER_ANOTHER_NAME.format("sqlite_stat4")]),
    "figures with one column more": (
        "sqlite_stat1",
        ["CREATE TABLE evil (tbl, idx, stat, more)", UNDER_ANOTHER_NAME.format("sqlite_stat1")],
    ),
    "two tables on one page": (
        "content",
        [
            "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'content')"
            " WHERE name = 'message'"
        ],
    ),
    "a trigger of ours on another table": (
        "member_comes",
        ["UPDATE sqlite_schema SET tbl_name = 'content' WHERE name = 'member_comes'"],
    ),
}


@pytest.mark.parametrize(("name", "statements"), STRANGE.values(), ids=STRANGE)
def test_a_foreign_schema_is_refused_by_connect_and_check_and_the_file_is_unchanged(
    path: Path, name: str, statements: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    is_crafted = "sqlite_schema" in statements[-1]  # in the table of the schema
    before = tampered(path, *["PRAGMA writable_schema = ON"] * is_crafted, *statements)
    with pytest.raises((StoreForeign, StoreDamaged) if is_crafted else StoreForeign, match=name) as caught:
        inorder.connect(path)
    assert is_crafted or str(path) in str(caught.value)
    assert main(["check", "--store", str(path)]) == TROUBLE
    assert name in capsys.readouterr().err
    assert path.read_bytes() == before


def test_the_tables_of_analyze_are_not_taken_for_a_foreign_schema(path: Path) -> None:
    tampered(path, "ANALYZE")
    with inorder.connect(path) as qm:
        assert qm.get("Q").body == b"1"


@pytest.mark.parametrize(
    "definition",
    [
        "no JSON",
        '{"name": "Q\\u001b[2J", "type": "local"}',
        '{"name": "Q", "type": "local", "max_depth": -1}',
        '{"name": "Q", "type": "local", "evil": 1}',
        "[" * 100_000,
    ],
)
def test_an_invalid_definition_is_reported_as_damage(path: Path, definition: str) -> None:
    tampered(path, f"UPDATE definition SET attributes = '{definition}'", "UPDATE manager SET revision = revision + 1")
    with pytest.raises(StoreDamaged, match="definition"), inorder.connect(path) as qm:
        qm.put("Q", b"2")


def test_sqlite_runs_defensively(path: Path) -> None:
    with inorder.connect(path) as qm:
        qm.create_queue("Q")
        connection = qm._store.database.connection  # type: ignore[attr-defined]
        assert connection.execute("PRAGMA trusted_schema").get == 0
        assert connection.execute("PRAGMA mmap_size").get == 0
        connection.execute("PRAGMA writable_schema = ON")
        with pytest.raises(Exception, match="sqlite_master may not be modified"):
            connection.execute("UPDATE sqlite_schema SET sql = ''")
        with pytest.raises(Exception, match=r"not authorized|no such function"):
            connection.execute("SELECT load_extension('x')")


UNSAFE_MODULES = frozenset(
    "pickle cPickle marshal shelve dill cloudpickle yaml socket socketserver http asyncio urllib ssl xmlrpc".split()
)
SAFE_PARTS = frozenset({"urllib.parse"})  # it only splits texts
UNSAFE_CALLS = frozenset("eval exec __import__ compile".split())


def unsafe_acts(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] in UNSAFE_MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module not in SAFE_PARTS:
            if (node.module or "").partition(".")[0] in UNSAFE_MODULES:
                yield str(node.module)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in UNSAFE_CALLS:
            yield node.func.id


def test_no_module_executes_what_it_reads_and_only_server_and_client_use_the_network() -> None:
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")}
    named = re.compile("|".join(UNSAFE_MODULES | UNSAFE_CALLS))  # to parse all files takes seconds
    found = {path: list(unsafe_acts(ast.parse(text))) for path, text in texts.items() if named.search(text)}
    assert found
    of_loops = {
        path
        for path, acts in found.items()
        if path.startswith(("src/inorder/aio/", "src/inorder/work/looping.py", "src/inorder/work/sending.py"))
        and set(acts) <= {"asyncio"}
    }
    of_server = {  # the only part that listens
        path
        for path, acts in found.items()
        if path.startswith(("src/inorder/server/", "src/inorder/cli/serve.py"))
        and set(acts) <= {"asyncio", "socket", "ssl"}
    }
    of_client = {  # connects to a server; and a server for tests
        path
        for path, acts in found.items()
        if path.startswith(
            ("src/inorder/stores/remote/", "src/inorder/support/sockets.py", "src/inorder/testing/remote")
        )
        and set(acts) <= {"asyncio", "socket", "ssl"}
    }
    assert {path: acts for path, acts in found.items() if acts and path not in of_loops | of_server | of_client} == {}
    assert list(unsafe_acts(ast.parse("import pickle\neval('1')"))) == ["pickle", "eval"]


# ---- output from messages


def test_a_file_got_from_a_queue_is_private_until_it_is_complete(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source/tool").write_bytes(b"#!/bin/sh\n")
    (tmp_path / "source/tool").chmod(0o755)
    with umask(0), inorder.connect(":memory:") as qm:
        qm.create_queue("Q")
        put_file(qm, "Q", tmp_path / "source", "tool", "whole")
        (tmp_path / "target").mkdir()
        other = Manifest(path="other", size=0, mode=0o644, sha256="0" * 64, rule="whole", messages=0)
        with Rebuilder(other, tmp_path / "target"):
            [growing] = (tmp_path / "target").glob(f"{TEMPORARY_PREFIX}*")
            assert growing.stat().st_mode & 0o777 == 0o600
        got = get_file(qm, "Q", tmp_path / "target")
    assert got.path.stat().st_mode & 0o7777 == 0o755


ESCAPE = "\x1b[2J\nQ"


@pytest.mark.parametrize(
    "call",
    [
        lambda qm: qm.put(ESCAPE, b""),
        lambda qm: qm.create_queue(ESCAPE),
        lambda qm: qm.settle(ESCAPE, "commit"),
        lambda qm: qm.alter_queue("Q", description=ESCAPE),
        lambda qm: qm.alter_queue("Q", **{ESCAPE: 1}),
        lambda qm: qm.put("Q", b"", format=ESCAPE * 9),
        lambda qm: qm.inspect.hook(ESCAPE, print),
    ],
)
def test_an_error_shows_no_control_character(call: Callable[[inorder.QueueManager], object]) -> None:
    with inorder.connect(":memory:") as qm:
        qm.create_queue("Q")
        with pytest.raises(inorder.InorderError) as caught:
            call(qm)
    assert not re.search(r"[\x00-\x1f\x7f-\x9f]", str(caught.value)), str(caught.value)


@pytest.mark.parametrize("command", [["browse", "Q"], ["unit", "list"], ["lock", "list"]])
def test_the_command_shows_no_control_character(
    path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    with inorder.connect(path, program=ESCAPE) as qm:
        qm.create_queue("Q")
        qm.put("Q", ESCAPE.encode(), syncpoint=True, application_identity_data=ESCAPE)
        qm.prepare(ESCAPE)
        qm.put("Q", ESCAPE.encode())
        qm.browse_and_lock("Q")
        assert main([*command, "--store", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "[2J" in shown
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", shown), shown


# ---- limits on input


LIMITS = {
    "bytes of a message, or of a segment": MESSAGE_LENGTH_MAX,
    "bytes of a message in segments": NUMBER_MAX,
    "messages on a queue": COUNT_MAX,
    "puts and gets in one unit of work": MANAGER_ATTRIBUTES["max_uncommitted"].default,
    "open handles of a connection": MANAGER_ATTRIBUTES["max_handles"].default,
    "characters of a queue's name": NAME_LENGTH_MAX,
    "characters of a description": DESCRIPTION_LENGTH_MAX,
    "characters of the name of an application, staging or batch": BULK_NAME_LENGTH_MAX,
    "bytes of a message id, correlation id or group id": 24,
    "batches that the ledger keeps of one streaming query": LEDGER_BATCHES_MAX,
    "bytes of a manifest": MANIFEST_BYTES_MAX,
    "bytes of a path in a manifest": PATH_BYTES_MAX,
    "bytes of a record of a file": RECORD_BYTES_MAX,
    "bytes of a line of a dmpmqmsg text": LINE_BYTES_MAX,
}


def names_of_tests() -> set[str]:
    """The names of all tests, and the paths of their files below tests/."""
    found: set[str] = set()
    for file in (ROOT / "tests").rglob("test_*.py"):
        found.add(file.relative_to(ROOT / "tests").as_posix())
        found |= set(re.findall(r"^ *(?:async )?def (\w+)", file.read_text(encoding="utf-8"), re.MULTILINE))
    return found


def test_the_tests_that_are_named_exist() -> None:
    """When the test of a promise has been renamed or deleted, name its present test."""
    named = re.findall(r"`(?:tests/)?((?:\w+/)*test_\w+(?:\.py)?)`", SECURITY)
    assert len(named) > 30
    assert set(named) - names_of_tests() == set()


def test_each_promise_of_a_table_has_a_test() -> None:
    tables = re.findall(r"^\| promise \| test \|\n\|---\|---\|\n((?:\|.*\n)+)", SECURITY, re.MULTILINE)
    assert len(tables) >= 2
    for row in "".join(tables).splitlines():
        assert "test_" in row.rpartition(" | ")[2], f"name the test behind this promise: {row}"


def test_the_table_of_limits_agrees_with_the_code() -> None:
    section = SECURITY.partition("## Limits on input")[2]
    rows = dict(re.findall(r"^\| ([^|]+) \| ([\d,]+)[^|]* \|$", section, re.MULTILINE))
    assert {what: int(limit.replace(",", "")) for what, limit in rows.items()} == LIMITS
