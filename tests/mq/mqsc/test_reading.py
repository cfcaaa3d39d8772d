"""Reading MQSC: lines become commands, tokens, the grammar, and the text of each error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inorder.errors import CallerError, Reason
from inorder.mq.mqsc import Assembler, MqscSyntaxError, commands, commands_in, parse


def read(script: str) -> commands.Command:
    (source,) = commands_in(script.split("\n"))
    return parse(source)


def refused(script: str) -> MqscSyntaxError:
    with pytest.raises(MqscSyntaxError) as caught:
        read(script)
    return caught.value


# ---- commands


@pytest.mark.parametrize(
    ("script", "command"),
    [
        ("def ql(a);", commands.Define(name="A", type="local")),
        ("DEF QL ( 'a' ) ;", commands.Define(name="a", type="local")),
        ("DEFINE QLOCAL(A) REPLACE LIKE(B)", commands.Define(name="A", type="local", like="B", replace=True)),
        ("DEFINE QLOCAL(A), NOREPLACE,,LIKE(B)", commands.Define(name="A", type="local", like="B")),
        ("DEFINE QALIAS(A) TARGQ(B)", commands.Define(name="A", type="alias", attributes={"base_queue": "B"})),
        (
            "DEF QM(A) DEFTYPE(PERMDYN)",
            commands.Define(name="A", type="model", attributes={"definition_type": "permanent_dynamic"}),
        ),
        ("ALTER QL(A) MAXDEPTH(5)", commands.Alter(name="A", type="local", changes={"max_depth": 5})),
        ("ALT QA(A)", commands.Alter(name="A", type="alias", changes={})),
        ("ALT QMGR MARKINT(1500)", commands.AlterManager(changes={"mark_interval": 1.5})),
        (
            "ALT QMGR MARKINT(NOLIMIT) FORCE",
            commands.AlterManager(changes={"mark_interval": None}, without_effect=("FORCE",)),
        ),
        ("DELETE QL(A) PURGE", commands.Delete(name="A", type="local", purge=True)),
        ("DELETE QL(A) NOPURGE AUTHREC(NO)", commands.Delete(name="A", type="local", without_effect=("AUTHREC",))),
        ("DELETE QA(A) IGNSTATE(YES)", commands.Delete(name="A", type="alias", ignores_state=True)),
        ("CLEAR QL(A)", commands.Clear(name="A")),
        ("DISPLAY QUEUE(*)", commands.Display(name="*")),
        ("DIS Q(AB*) TYPE(QA)", commands.Display(name="AB*", type="alias")),
        ("DIS QUEUE(A) TYPE(ALL) TYPE", None),
        ("DIS QL(A) MAXDEPTH GET", commands.Display(name="A", type="local", keywords=("MAXDEPTH", "GET"))),
        ("DIS QL(A) MAXDEPTH ALL", commands.Display(name="A", type="local", keywords=("MAXDEPTH", "ALL"))),
        ("DIS QUEUE(*) QTYPE", commands.Display(name="*", keywords=("TYPE",))),
        ("PING QMGR", commands.ObjectCommand(verb="PING", target="QMGR", name="")),
        (
            "DIS Q('a*') WHERE(CURDEPTH GT 3)",
            commands.Display(name="a*", where=commands.Condition(keyword="CURDEPTH", operator="GT", value=3)),
        ),
        (
            "DIS Q(*) WHERE(SHARE EQ NO)",
            commands.Display(name="*", where=commands.Condition(keyword="SHARE", operator="EQ", value=False)),
        ),
        ("DIS QS(*) TYPE(QUEUE) UNCOM", commands.Display(name="*", keywords=("UNCOM",), is_status=True)),
        ("DIS QMGR MAXHANDS CCSID", commands.DisplayManager(keywords=("MAXHANDS", "CCSID"))),
        ("end", commands.End()),
        ("EXIT", commands.End()),
    ],
)
def test_a_command_is_read(script: str, command: commands.Command | None) -> None:
    if command is None:
        assert refused(script).found == "TYPE again"
    else:
        assert read(script) == command


@pytest.mark.parametrize(
    ("parameter", "name", "value"),
    [
        ("DESCR('it''s')", "description", "it's"),
        ("DESCR(word)", "description", "WORD"),
        ("DESCR(' ')", "description", ""),
        ("DESCR(' x ')", "description", " x "),
        ("DESCR('a, (b) ; * + -')", "description", "a, (b) ; * + -"),
        ("DEFPSIST(NO)", "default_persistence", False),
        ("INDXTYPE(CORRELID)", "index_type", "correlation_id"),
        ("MAXDEPTH(0)", "max_depth", 0),
        ("SHARE", "shareable", True),
        ("NOSHARE", "shareable", False),
        ("EXPIRY(0.25)", "expiry", 0.25),
        ("EXPIRY(NOLIMIT)", "expiry", None),
    ],
)
def test_a_keyword_becomes_an_attribute(parameter: str, name: str, value: object) -> None:
    assert read(f"DEFINE QLOCAL(A) {parameter}") == commands.Define(name="A", type="local", attributes={name: value})


def test_a_dump_of_mq_is_read_and_attributes_without_effect_are_reported() -> None:
    command = read(
        "DEFINE QLOCAL('APP.IN') +\n   ACCTQ(QMGR) +\n*  ALTDATE(2025-01-01) +\n   BOQNAME(' ') +\n   BOTHRESH(0) +\n"
        "   CLUSTER(' ') +\n*  CURDEPTH(7) +\n   DEFBIND(OPEN) +\n   DESCR('It''s in') +\n   HARDENBO +\n"
        "   NOTRIGGER SCOPE(QMGR) CUSTOM('') CAPEXPRY(NOLIMIT) QDEPTHHI(80) DEFREADA(NO) +\n"
        "   MAXDEPTH(5000) +\n   PROPCTL(COMPAT) +\n   QDPMAXEV(ENABLED) +\n   USAGE(NORMAL) +\n   REPLACE"
    )
    assert isinstance(command, commands.Define)
    assert command.replace
    assert command.attributes == {
        "backout_requeue_queue": "",
        "backout_threshold": 0,
        "description": "It's in",
        "harden_get_backout": True,
        "max_depth": 5000,
        "trigger_control": False,
        "usage": "normal",
    }
    without_effect = "ACCTQ CLUSTER DEFBIND PROPCTL QDPMAXEV SCOPE CUSTOM CAPEXPRY QDEPTHHI DEFREADA"
    assert set(command.without_effect) == set(without_effect.split())


# ---- lines


@pytest.mark.parametrize(
    "script",
    [
        "DEFINE QLOCAL(FRED) DESCR('Fred')",
        "DEFINE QLOCAL(FR+\n    ED) DESCR('Fr+\n   ed')",
        "DEFINE QLOCAL(FR-\nED) -\nDESCR('Fr-\ned')",
        "\n* a comment\n  DEFINE QLOCAL(FRED) +  \n* another -\n\n  \t\nDESCR('Fred')\t",
        "DEFINE\tQLOCAL(FRED) +\n DESCR('Fred') +\n;",
        "DEFINE QLOCAL (FRED)+\n  DESCR ('Fred')+\n;",
        "DEFINE QLOCAL(FRED)DESCR('Fred')",
    ],
)
def test_continued_lines_are_joined(script: str) -> None:
    assert read(script) == commands.Define(name="FRED", type="local", attributes={"description": "Fred"})


def test_a_minus_keeps_the_blanks_of_the_next_line_and_a_plus_does_not() -> None:
    for sign, said in (("-", "a   b"), ("+", "a b")):
        joined = read(f"DEFINE QLOCAL(A) DESCR('a {sign}\n  b')")
        assert joined == commands.Define(name="A", type="local", attributes={"description": said})


def test_commands_know_their_lines() -> None:
    sources = list(commands_in(["* c\n", "END\n", "\n", "DIS +\n", "* c\n", "QMGR\n"]))
    assert [source.lines for source in sources] == [((2, "END"),), ((4, "DIS +"), (6, "QMGR"))]


def test_an_assembler_says_whether_a_command_continues() -> None:
    assembler = Assembler()
    states = [(assembler.feed(line) is not None, assembler.is_continued) for line in ("DIS +", "* c", "QMGR")]
    assert states == [(False, True), (False, True), (True, False)]
    assert assembler.finish() is None


# ---- errors


@pytest.mark.parametrize(
    ("script", "line", "column", "text"),
    [
        (
            "DEFIN QLOCAL(A)",
            1,
            1,
            "found 'DEFIN'; allowed is DEFINE, ALTER, DISPLAY, DELETE, CLEAR, START, STOP, PING, RESET, RESOLVE, "
            "TRIGGER or END",
        ),
        ("DEL QL(A)", 1, 1, "allowed is DELETE, which has no short form"),
        ("START LISTENER(A)", 1, 7, "found MQ's object LISTENER, which is not supported: channels do not need it"),
        ("DEFINE", 1, 7, "found the end of the command; allowed is DEFINE QLOCAL or"),
        ("DEFINE QUEUE(A)", 1, 8, "found 'QUEUE'; allowed is DEFINE QLOCAL or DEFINE QALIAS or DEFINE QMODEL"),
        ("CLEAR QALIAS(A)", 1, 7, "allowed is CLEAR QLOCAL"),
        ("DEFINE QLOCAL A", 1, 15, "found 'A'; allowed is QLOCAL(...)"),
        ("DEFINE QLOCAL()", 1, 15, "found ')'; allowed is a value in QLOCAL(...)"),
        ("DEFINE QLOCAL(A", 1, 16, "found the end of the command; allowed is a closing parenthesis after QLOCAL(A"),
        ("DEFINE QLOCAL(A B)", 1, 17, "found 'B'; allowed is one name"),
        ("DEFINE QLOCAL(A*)", 1, 15, "found 'A*'; allowed is a name of 1 to 48 characters"),
        ("DIS QLOCAL(*A*)", 1, 12, "or its beginning and *"),
        ("DEFINE QLOCAL(A) DESCR('x", 1, 24, "found a single quote that is never closed"),
        ("DEFINE QLOCAL(A) DESCR(a-b)", 1, 25, "found '-'; allowed is A-Z a-z 0-9 . / _ % * outside single quotes"),
        ("DEFINE QLOCAL(A) +\n   MAXDEPT(3)", 2, 4, "allowed is an attribute of a local queue (nearest: MAXDEPTH"),
        ("DEFINE QLOCAL(A) MAXDEPTH", 1, 18, "found MAXDEPTH without a value; allowed is MAXDEPTH(an integer from 0"),
        ("DEFINE QLOCAL(A) MAXDEPTH(1 2)", 1, 29, "found '2'; allowed is one value, as in MAXDEPTH(an integer"),
        ("DEFINE QLOCAL(A) MAXDEPTH(1000000000)", 1, 27, "found '1000000000'; allowed is MAXDEPTH(an integer"),
        ("DEFINE QLOCAL(A) GET(YES)", 1, 22, "found 'YES'; allowed is GET(ENABLED) or GET(DISABLED)"),
        ("DEFINE QLOCAL(A) EXPIRY(0)", 1, 25, "allowed is EXPIRY(seconds above 0 and up to 99,999,999.9) or"),
        ("DEFINE QLOCAL(A) SHARE(YES)", 1, 24, "found a value after SHARE; allowed is SHARE or NOSHARE"),
        ("DEFINE QLOCAL(A) SHARE NOSHARE", 1, 24, "found NOSHARE again; allowed is SHARE only once"),
        ("DEFINE QLOCAL(A) TARGET(B)", 1, 18, "found TARGET, which a local queue does not have; allowed is one of"),
        ("ALTER QMGR MAXDEPTH(1)", 1, 12, "found MAXDEPTH, which the queue manager does not have"),
        ("ALTER QLOCAL(A) DEFTYPE(PERMDYN)", 1, 17, "found DEFTYPE, which ALTER cannot give to a local queue"),
        ("DEFINE QLOCAL(A) CLUSTER(C)", 1, 18, "MQ's attribute CLUSTER, which is not supported: there are no clusters"),
        ("DEFINE QLOCAL(A) SCOPE(CELL)", 1, 18, "allowed is a command without it, or SCOPE(QMGR)"),
        ("DEFINE QLOCAL(A) CAPEXPRY(600)", 1, 18, "our EXPIRY is for messages that set none"),
        ("DELETE QALIAS(A) PURGE", 1, 18, "found 'PURGE'; allowed is IGNSTATE(...)"),
        ("DELETE QLOCAL(A) FORCE", 1, 18, "found 'FORCE'; allowed is PURGE, NOPURGE or IGNSTATE(...)"),
        ("DELETE QLOCAL(A) IGNSTATE(MAYBE)", 1, 27, "found 'MAYBE'; allowed is IGNSTATE(NO) or IGNSTATE(YES)"),
        ("DIS Q(A) MAXDEPTH(3)", 1, 19, "found a value after MAXDEPTH; allowed is MAXDEPTH alone"),
        ("DIS Q(A) MAXDEPT", 1, 10, "found 'MAXDEPT'; allowed is a keyword to display (nearest: MAXDEPTH"),
        ("DIS Q(A) TYPE(QCLUSTER)", 1, 15, "allowed is TYPE(ALL) or TYPE(QLOCAL) or TYPE(QALIAS) or TYPE(QMODEL)"),
        ("DIS Q(*) WHERE(CURDEPTH GT)", 1, 10, "found WHERE with 2 instead of 3 words; allowed is WHERE("),
        ("DIS Q(*) WHERE(CURDEPT GT 1)", 1, 16, "found 'CURDEPT'; allowed is a keyword to compare (nearest: CURDEPTH"),
        ("DIS Q(*) WHERE(CURDEPTH IS 1)", 1, 25, "found 'IS'; allowed is EQ, NE, LT, GT, LE, GE, CT, EX, LK, "),
        ("DIS Q(*) WHERE(CURDEPTH GT X)", 1, 28, "found 'X'; allowed is CURDEPTH and an integer"),
        ("DIS Q(*) WHERE(SHARE EQ X)", 1, 25, "found 'X'; allowed is YES or NO"),
        ("END OF", 1, 5, "found 'OF'; allowed is the end of the command"),
        ("DIS QMGR; DIS QMGR", 1, 11, "found 'DIS'; allowed is nothing after the semicolon"),
        ("DIS +", 1, 5, "found the end of the script; allowed is a further line, because this one ends with '+'"),
        (f"DIS QMGR{' ' * 2041}X", 1, 2049, "found a line of 2,050 characters; allowed is at most 2,048"),
        ("DIS +\n" + "(" * 2000 + "+\n", 2, 2001, "found the end of the script"),
        ("DIS +\n" + ("(" * 2000 + "+\n") * 17, 18, 1, "found a command that is too long"),
    ],
)
def test_a_syntax_error_has_its_place_what_was_found_and_what_is_allowed(
    script: str, line: int, column: int, text: str
) -> None:
    error = refused(script)
    assert (error.line, error.column) == (line, column)
    assert f"line {line}, column {column}: found {error.found}; allowed is {error.allowed}" in str(error)
    assert text in str(error)
    assert isinstance(error, CallerError)
    assert error.reason is Reason.ARGUMENT_ERROR


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("DEFINE CHANNEL(A) CHLTYPE(SVR)", "CHLTYPE(SDR) or CHLTYPE(RCVR)"),
        ("DEFINE CHANNEL(A) SSLCIPH(X)", "MQ's attribute SSLCIPH, which is not supported: encryption is"),
        ("ALTER CHANNEL(A) RCVEXIT('lib(f)')", "RCVEXIT, which is not supported: no exit changes the bytes"),
        ("DEFINE CHANNEL(A) CHLTYPE(CLUSSDR)", "MQ's channel type CLUSSDR, which is not supported: there are no cl"),
        ("DIS CHANNEL(A) WHERE(BATCHSZ GT MANY)", "BATCHSZ(an integer"),
        ("STOP CHANNEL(A) MODE(SOON)", "MODE(QUIESCE)"),
        ("RESET CHANNEL(A) SEQNUM(0)", "SEQNUM(1 to 999999999)"),
        ("PING CHANNEL(A) MODE(QUIESCE)", "nothing more"),
        ("STOP CHANNEL(A) STATUS(INACTIVE)", "STATUS, which is not supported: a stopped channel stays so until"),
        ("DEFINE PROCESS(A) APPLTYPE(SOLARIS)", "or one of CICS, MVS"),
        ("DEFINE PROCESS(A) APPLTYPE(1000000000)", "an integer from 0"),
        ("DEFINE PROCESS(A) QSGDISP(GROUP)", "MQ's attribute QSGDISP, which is not supported: it exists only on z/OS"),
        ("ALTER PROCESS(A) REPLACE", "an attribute of a process definition"),
        ("DIS PROCESS(A) WHERE(APPLTYPE EQ SOLARIS)", "or one of CICS, MVS"),
        ("DIS CONN(00000000000000001)", "1 to 16 hexadecimal digits"),
        ("DIS CONN(*) TYPE(QUEUE)", "TYPE(CONN) or TYPE(HANDLE) or TYPE(ALL) or TYPE(*)"),
        ("DIS CONN(*) EXTCONN(*)", "EXTCONN, which is not supported"),
        ("DIS CONN(*) TYPE(HANDLE) PID", "a keyword to display"),
        ("DIS CONN(*) WHERE(TYPE EQ CONN)", "a keyword to compare"),
        ("DIS CONN(*) WHERE(PID EQ many)", "PID and an integer"),
        ("DIS QS(*) TYPE(HANDLE) OPENTYPE(BROWSE)", "OPENTYPE(ALL) or OPENTYPE(INPUT) or OPENTYPE(OUTPUT)"),
        ("DIS QS(*) OPENTYPE(INPUT)", "TYPE(HANDLE)"),
        ("DIS QS(*) TYPE(BOTH)", "TYPE(QUEUE) or TYPE(HANDLE)"),
        ("STOP CONN(0000000000000001)", "MQ's command STOP CONN, which is not supported"),
        ("RESET QSTATS(Q)", "MQ's object QSTATS, which is not supported: there are no accounting"),
        ("CLEAR LISTENER(A)", "found 'LISTENER'; allowed is CLEAR QLOCAL"),
        ("DIS CHSTATUS(*) JOBNAME", "MQ's attribute JOBNAME, which is not supported: `inorder channel run` is"),
        ("DIS CHANNEL(*) TYPE(SVRCONN)", "MQ's channel type SVRCONN, which is not supported"),
        ("DIS QMGR REPOS", "MQ's attribute REPOS, which is not supported: there are no clusters"),
        ("DIS QMSTATUS LOGPATH", "MQ's attribute LOGPATH, which is not supported: the store manages its log itself"),
    ],
)
def test_unsupported_words_of_channels_processes_and_connections_are_refused_by_name(command: str, text: str) -> None:
    assert text in str(refused(command))


def test_the_nearest_names_are_an_attribute_of_the_error() -> None:
    assert refused("DEFINE QLOCAL(A) MAXDEPT(3)").nearest[0] == "MAXDEPTH"


PIECES = """DEFINE DEF ALTER DISPLAY DIS DELETE CLEAR QLOCAL QALIAS QMODEL QMGR QUEUE QSTATUS END LIKE REPLACE
    NOREPLACE WHERE ALL TYPE PURGE SHARE NOSHARE MAXDEPTH DESCR GET ENABLED EQ 5 A A* * ( ( ) ) (A) (5) 'a' ' '' ; , + -
    TRIGGER USAGE CURDEPTH EXPIRY NOLIMIT CONN HANDLE OPENTYPE OPENOPTS OBJNAME CT EXG PID""".split()


def scripts() -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from([*PIECES, " ", " ", "\n", "+\n", "-\n"]), max_size=25).map("".join) | st.text()


@given(scripts())
def test_any_invalid_script_is_a_syntax_error_within_its_command(script: str) -> None:
    for source in commands_in(script.split("\n")):
        lengths = {number: len(line) for number, line in source.lines}
        try:
            parse(source)
        except MqscSyntaxError as error:
            line, column = error.line, error.column
        else:
            continue
        assert 1 <= column <= lengths[line] + 1
