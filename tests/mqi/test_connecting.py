"""MQCONN, MQCONNX, MQDISC: names and stores, threads, forks, ends (M-7 to M-9)."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.support import until
from tests.mqi.program import ALL, OK, Program

from inorder import QueueManager, connect
from inorder.mqi import connections, verbs
from inorder.mqi import constants as mq
from inorder.mqi.layouts import layout
from inorder.stores.engine.store import QueueStore
from inorder.support.passwords import hashed

SHARED = mq.MQCNO_HANDLE_SHARE_BLOCK
SYNCPOINT = mq.MQPMO_SYNCPOINT


def in_thread(call: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


# ---- which store


@pytest.fixture
def tables(tmp_path: Path, mq_store: QueueManager) -> Path:
    with connect(str(tmp_path / "other.db"), name="OTHER"):
        return tmp_path / "mqi.toml"


def own_name(program: Program) -> bytes:
    hobj = program.open("", mq.MQOO_INQUIRE, ObjectType=mq.MQOT_Q_MGR)
    name: bytes = verbs.mqinq(program.hconn, hobj, [mq.MQCA_Q_MGR_NAME], 0, 48)[1]
    return name.strip()


@pytest.mark.parametrize(
    ("name", "expected"), [(b"QM1", b"QM1"), (b"ANY", b"QM1"), (b"", b"QM1"), (b"QM2", b"OTHER"), (b"QM.3", b"OTHER")]
)
def test_the_store_is_named_by_the_table_or_else_by_the_variable(tables: Path, name: bytes, expected: bytes) -> None:
    tables.write_text('[QM2]\nstore = "other.db"\n["QM.3"]\nstore = "other.db"\n')
    program = Program(name)
    assert own_name(program) == expected
    assert program.disconnect() == OK


def test_the_table_may_name_the_default_queue_manager(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables.write_text(f'[QM2]\nstore = "{tables.parent}/other.db"\ndefault = true\n')
    monkeypatch.delenv("INORDER_STORE")
    program = Program(b"")
    assert own_name(program) == b"OTHER"
    assert Program(b"QM3").connected == [2, 2058]
    assert program.disconnect() == OK


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('[QM1]\nstore = "missing.db"\n', 2059),
        ("[QM1]\n", 2012),
        ("[QM1]\nstore = 7\n", 2012),
        ('[QM1]\nstore = "other.db"\nport = "1414"\n', 2012),
        ("store", 2012),
    ],
)
def test_a_wrong_table_makes_the_connect_fail_with_its_reason(tables: Path, text: str, reason: int) -> None:
    tables.write_text(text)
    assert Program().connected == [2, reason]


@pytest.mark.skipif(os.name != "posix", reason="the rights of a file are POSIX's")
def test_a_table_with_a_token_must_be_readable_by_its_owner_alone(tables: Path) -> None:
    tables.write_text('[QM1]\nstore = "https://localhost:1"\ntoken = "secret"\n')
    tables.chmod(0o644)
    assert Program().connected == [2, 2012]
    tables.chmod(0o600)
    assert Program().connected == [2, 2059], "no server is there"


def test_a_client_is_looked_up_by_its_connection_name_too(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables.write_text('["mq.example(1414)"]\nstore = "other.db"\n')
    for address, expected in ((b"mq.example(1414)", b"OTHER"), (b"elsewhere(1414)", b"QM1")):
        cd = layout("CD").new(6, ConnectionName=address, ChannelName=b"DEV.APP")
        program = Program(cd=cd)
        assert own_name(program) == expected
        assert program.disconnect() == OK
    monkeypatch.setenv("MQSERVER", "DEV.APP/TCP/mq.example(1414)")
    program = Program()
    assert own_name(program) == b"OTHER"
    assert program.disconnect() == OK
    monkeypatch.setenv("MQSERVER", "nonsense")
    assert Program().connected == [2, 2058]


def test_structures_are_found_through_the_pointers_of_the_options(tables: Path, mq_store: QueueManager) -> None:
    tables.write_text('["mq.example(1414)"]\nstore = "other.db"\n')
    cd = layout("CD").new(6, ConnectionName=b"mq.example(1414)")
    address = ctypes.addressof((ctypes.c_char * len(cd)).from_buffer(cd))
    program = Program(version=2, ClientConnPtr=address)
    assert own_name(program) == b"OTHER"
    assert program.disconnect() == OK


@pytest.mark.parametrize(
    ("user", "password", "codes"),
    [(b"alice", b"rose garden", [0, 0]), (b"alice", b"wrong", [2, 2035]), (b"bob", b"rose garden", [2, 2035])],
)
def test_a_store_with_users_checks_the_password(
    mq_store: QueueManager, user: bytes, password: bytes, codes: list[int]
) -> None:
    mq_store.accounts.create_user("alice", roles=["admin"], password_hash=hashed("rose garden"))
    texts = user + password
    place = (ctypes.c_char * len(texts)).from_buffer_copy(texts)
    csp = layout("CSP").new(
        1,
        AuthenticationType=1,
        CSPUserIdPtr=ctypes.addressof(place),
        CSPUserIdLength=len(user),
        CSPPasswordPtr=ctypes.addressof(place) + len(user),
        CSPPasswordLength=len(password),
    )
    program = Program(csp=csp)
    assert program.connected == codes
    if codes == [0, 0]:
        assert program.put_one("Q", b"x") == OK
        assert program.md.UserIdentifier == b"alice".ljust(12)
        assert program.disconnect() == OK


def test_a_user_may_do_only_what_it_was_granted(mq_store: QueueManager) -> None:
    queues = {"Q": ("put", "browse")}
    mq_store.accounts.create_user("bob", roles=["application"], queues=queues, password_hash=hashed("rose garden"))
    cd = layout("CD").new(6, UserIdentifier=b"bob", Password=b"rose garden")
    program = Program(cd=cd)
    assert program.connected == [0, 0]
    hobj = program.open("Q", mq.MQOO_OUTPUT | mq.MQOO_BROWSE)
    assert program.put(hobj, b"x") == program.put_one("Q", b"x") == OK
    for options in (mq.MQOO_INPUT_SHARED, mq.MQOO_INQUIRE, mq.MQOO_SET):
        assert program.try_open("Q", options) == (-1, 2, 2035)
    mq_store.create_queue("OTHER")
    assert program.put_one("OTHER", b"x") == (2, 2035)
    assert program.disconnect() == OK


def test_only_its_maker_and_administrators_delete_a_permanent_dynamic_queue(mq_store: QueueManager) -> None:
    mq_store.create_queue("MODEL", type="model", definition_type="permanent_dynamic")
    mq_store.create_queue("ALIAS", type="alias", base_queue="MADE")
    granted = dict.fromkeys(("MODEL", "MADE", "ALIAS"), ("put",))
    for name, roles, queues in (("bob", ["application"], granted), ("amy", ["admin"], {})):
        mq_store.accounts.create_user(name, roles=roles, queues=queues, password_hash=hashed("rose garden"))
    users = (layout("CD").new(6, UserIdentifier=name, Password=b"rose garden") for name in (b"bob", b"amy"))
    bob, amy = (Program(cd=cd) for cd in users)
    for options in (mq.MQCO_DELETE, mq.MQCO_NONE):
        assert bob.close(bob.open("MODEL", mq.MQOO_OUTPUT, DynamicQName=b"MADE"), options) == OK
    assert bob.close(bob.open("MADE", mq.MQOO_OUTPUT), mq.MQCO_DELETE) == (2, 2035)
    assert bob.close(bob.open("ALIAS", mq.MQOO_OUTPUT), mq.MQCO_DELETE) == (2, 2045)
    assert bob.disconnect() == OK
    assert amy.close(amy.open("MADE", mq.MQOO_OUTPUT), mq.MQCO_DELETE) == OK
    assert amy.disconnect() == OK


def test_the_table_may_name_the_user_of_programs_that_name_none(tables: Path, mq_store: QueueManager) -> None:
    tables.write_text(f'[QM1]\nstore = "{tables.parent}/mq.db"\nuser = "carol"\n')
    program = Program()
    assert program.put_one("Q", b"x") == OK
    assert program.md.UserIdentifier == b"carol".ljust(12)
    assert program.disconnect() == OK
    mq_store.accounts.create_user("bob", roles=["admin"])
    assert Program().connected == [2, 2035]
    mq_store.accounts.create_user("carol", roles=["reader"])
    program = Program()
    assert program.put_one("Q", b"x") == (2, 2035)
    program.open("Q", mq.MQOO_BROWSE)
    assert program.disconnect() == OK


def test_connect_options_that_exclude_each_other_are_refused(mq_store: QueueManager) -> None:
    both = layout("CNO").new(1, Options=SHARED | mq.MQCNO_HANDLE_SHARE_NO_BLOCK)
    assert verbs.mqconnx(b"QM1".ljust(48), both) == (-1, 2, 2046)
    assert Program(share=1 << 29).connected == [2, 2046], "MQ has no such option"


def test_the_name_of_the_program_is_that_of_the_options(mq_store: QueueManager) -> None:
    program = Program(version=7, ApplName=b"billing")
    assert program.cno.ConnectionId[:16] == b"AMQCQM1         "
    assert program.put_one("Q", b"x") == OK
    assert program.md.PutApplName == b"billing".ljust(28)
    assert program.disconnect() == OK


# ---- threads


def test_a_thread_that_connects_again_gets_its_connection_back(mq_store: QueueManager) -> None:
    first = Program()
    assert first.connected == [0, 0]
    assert Program(b"QM2").hconn != first.hconn
    for name in (b"QM1", b""):
        again = Program(name)
        assert (again.connected, again.hconn) == ([1, 2002], first.hconn)
    other, shared = in_thread(Program), Program(share=SHARED)
    assert {one.hconn for one in (first, other, shared)} == {first.hconn, other.hconn, shared.hconn}
    assert (other.connected, shared.connected) == ([0, 0], [0, 0])
    for one in (first, shared):
        assert one.disconnect() == OK
    assert again.disconnect() == (2, 2018)


def test_another_thread_may_only_use_a_connection_that_is_shared(mq_store: QueueManager) -> None:
    alone, shared = Program(), Program(share=SHARED)
    assert in_thread(alone.commit) == (2, 2018)
    hobj = shared.open("Q", ALL)
    assert in_thread(lambda: shared.put(hobj, b"x", SYNCPOINT)) == OK
    assert in_thread(lambda: shared.put(hobj, b"y", SYNCPOINT)) == OK
    assert in_thread(shared.commit) == OK
    assert mq_store.depth("Q") == 2
    assert in_thread(shared.disconnect) == OK
    assert alone.disconnect() == OK


@pytest.mark.parametrize("share", [SHARED, mq.MQCNO_HANDLE_SHARE_NO_BLOCK])
def test_a_second_call_waits_for_the_first_one_or_fails(mq_store: QueueManager, share: int) -> None:
    program = Program(share=share)
    hobj = program.open("Q", ALL)
    waiter = threading.Thread(target=lambda: verbs.mqget(program.hconn, hobj, None, wanted, bytearray(10)))
    wanted = layout("GMO").new(1, Options=mq.MQGMO_WAIT, WaitInterval=-1)
    waiter.start()
    until(lambda: bool(mq_store.inspect.waits()), "the get waits")
    if share == SHARED:
        with ThreadPoolExecutor(1) as pool:
            commit = pool.submit(program.commit)
            assert not commit.done()
            mq_store.put("Q", b"x")
            assert commit.result() == OK
    else:
        assert program.commit() == (2, 2219)
        mq_store.put("Q", b"x")
    waiter.join()
    assert program.disconnect() == OK


# ---- the end


def test_disconnecting_commits(mq_store: QueueManager) -> None:
    program = Program()
    hobj = program.open("Q", ALL)
    assert program.put(hobj, b"x", SYNCPOINT) == OK
    assert program.disconnect() == OK
    assert mq_store.depth("Q") == 1
    for call in (program.commit, program.disconnect, lambda: program.put(hobj, b"y"), lambda: program.get(hobj)):
        assert call() == (2, 2018)
    assert verbs.mqcmit(0) == verbs.mqcmit(-1) == (2, 2018)


def test_a_connection_that_ends_without_mqdisc_backs_out(mq_store: QueueManager) -> None:
    program = Program()
    hobj = program.open("Q", ALL)
    assert program.put(hobj, b"x", SYNCPOINT) == OK
    connections.connection_of(program.hconn).manager.internals.abandon()
    assert program.commit() == (2, 2018)
    assert program.disconnect() == OK
    assert mq_store.depth("Q") == 0


def test_a_stopped_queue_manager_ends_connections(mq_store: QueueManager) -> None:
    program = Program()
    hobj = program.open("Q", ALL)
    mq_store.admin.stop()
    assert program.put(hobj, b"x") == (2, 2162)
    assert program.disconnect()[0] in (0, 2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_may_not_use_its_parents_connection_but_may_make_its_own(mq_store: QueueManager) -> None:
    program = Program()
    hobj = program.open("Q", ALL)
    assert program.put(hobj, b"x", SYNCPOINT) == OK
    child = os.fork()
    if not child:
        codes = [program.put(hobj, b"y"), program.commit(), program.disconnect()]
        own = Program()
        good = codes == [(2, 2009)] * 3 and own.connected == [0, 0] and own.put_one("Q", b"z") == OK
        os._exit(0 if good and own.disconnect() == OK else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert program.commit() == OK
    assert mq_store.depth("Q") == 2
    assert program.disconnect() == OK


def test_calls_of_finalizers_inside_another_call_are_made_after_it(
    mq_store: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = Program(share=SHARED), Program(share=SHARED)
    hobj, other = first.open("Q", ALL), first.open("Q", ALL)
    assert second.put(second.open("Q", ALL), b"y", SYNCPOINT) == OK
    connection = connections.connection_of(first.hconn)
    opened = connection.objects[hobj]
    put, store = opened.put, connection.session.services.store
    assert isinstance(store, QueueStore)

    def interrupted(*given: Any) -> Any:
        with connection.session, store.lock:
            assert first.close(other) == second.disconnect() == OK
        return put(*given)

    monkeypatch.setattr(opened, "put", interrupted)
    assert first.put(hobj, b"x") == OK
    assert first.close(other) == (2, 2019)
    assert second.commit() == (2, 2018)
    assert mq_store.depth("Q") == 2
    assert first.disconnect() == OK


def test_an_unexpected_error_is_logged_and_answered_with_2195(
    mq_store: QueueManager, caplog: pytest.LogCaptureFixture
) -> None:
    program = Program()
    assert verbs.mqput(program.hconn, program.open("Q", ALL), b"not writable", None, b"x") == (2, 2195)
    assert "MQPUT failed" in caplog.text
    assert program.disconnect() == OK


def test_an_interrupt_is_passed_on(mq_store: QueueManager, monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("inorder.mqi.putting.read", interrupted)
    with pytest.raises(KeyboardInterrupt):
        program.put(program.open("Q", ALL), b"x")
    assert program.commit() == OK, "the connection is free for the next call"
    assert program.disconnect() == OK
