"""MQSC scripts on a queue manager: their changes, answers and refusals, and the export of objects as MQSC."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import inorder
from inorder.model.attribute import Attribute
from inorder.model.attributes import QUEUE_ATTRIBUTES, SYSTEM_QUEUES, QueueAttributes, QueueType
from inorder.mq.mqsc import Answer, export_manager, export_queue, export_queues, run_script
from inorder.mq.mqsc.values import Value, quoted, written
from inorder.testing import ManualClock
from inorder.testing.stores import make_store


@pytest.fixture
def qm() -> Iterator[inorder.QueueManager]:
    with inorder.connect(make_store("memory", ManualClock(0.0))) as connection:
        yield connection


def run(qm: inorder.QueueManager | None, script: str, **how: Any) -> list[Answer]:
    return list(run_script(script.split("\n"), qm, **how))


def answer(qm: inorder.QueueManager, command: str) -> Answer:
    (only,) = run(qm, command)
    return only


def test_a_script_defines_alters_clears_and_deletes(qm: inorder.QueueManager) -> None:
    answers = run(
        qm,
        "DEFINE QLOCAL(A) MAXDEPTH(5) ORDER(COMMIT)\n"
        "DEFINE QALIAS(B) TARGET(A) PUT(DISABLED)\n"
        "DEFINE QMODEL(M) DEFTYPE(PERMDYN)\n"
        "ALTER QALIAS(B) PUT(ENABLED)\n"
        "ALTER QMGR MAXUMSGS(10)\n",
    )
    assert [one.text for one in answers] == [
        "Queue A defined.",
        "Queue B defined.",
        "Queue M defined.",
        "Queue B altered.",
        "Queue manager altered.",
    ]
    assert [(one.name, one.type) for one in qm.queues()] == [("A", "local"), ("B", "alias"), ("M", "model")]
    assert (qm.attributes("A").max_depth, qm.attributes("A").order) == (5, "commit")
    assert qm.admin.manager_attributes().max_uncommitted == 10
    qm.put("B", b"1")
    qm.close_queue("B")
    assert answer(qm, "CLEAR QLOCAL(A)").text == "Queue A cleared: 1 message removed."
    assert [one.outcome for one in run(qm, "DELETE QALIAS(B)\nDELETE QMODEL(M)\nDELETE QLOCAL(A)")] == ["done"] * 3
    assert qm.queues() == []


def test_define_says_that_messages_are_lost_if_they_do_not_last_by_default(qm: inorder.QueueManager) -> None:
    told = answer(qm, "DEFINE QLOCAL(A) DEFPSIST(NO) NPMCLASS(NORMAL) CLUSTER(' ')")
    lost = "Non-persistent messages, its default, are lost when no program has the store open;"
    lost += " NPMCLASS(HIGH) keeps them."
    assert told.text == f"Queue A defined. {lost} Without effect here: CLUSTER."
    assert answer(qm, "DEFINE QLOCAL(A) REPLACE DEFPSIST(NO)").text == f"Queue A replaced; its messages stay. {lost}"
    run(qm, "ALTER QLOCAL(SYSTEM.DEFAULT.LOCAL.QUEUE) DEFPSIST(NO) NPMCLASS(HIGH)")
    for command in ("QLOCAL(B)", "QLOCAL(C) DEFPSIST(YES) NPMCLASS(NORMAL)", "QMODEL(M) DEFPSIST(NO)"):
        assert "lost" not in answer(qm, f"DEFINE {command}").text


def test_like_copies_attributes_and_replace_resets_them_and_keeps_the_messages(qm: inorder.QueueManager) -> None:
    run(qm, "DEFINE QLOCAL(A) MAXDEPTH(5) DESCR('x') NOSHARE\nDEFINE QLOCAL(B) LIKE(A) DESCR('y')")
    b = qm.attributes("B")
    assert (b.max_depth, b.description, b.shareable) == (5, "y", False)
    qm.put("A", b"1")
    told = answer(qm, "DEFINE QLOCAL(A) DESCR('y') REPLACE CLUSTER(' ')")
    assert told.text == "Queue A replaced; its messages stay. Without effect here: CLUSTER."
    assert (qm.attributes("A").max_depth, qm.attributes("A").description) == (999_999_999, "y")
    assert qm.get("A").body == b"1"
    assert answer(qm, "DEFINE QLOCAL(NEW) REPLACE").text == "Queue NEW defined."


@pytest.mark.parametrize(
    ("command", "reason", "text"),
    [
        ("DEFINE QLOCAL(A)", 2100, "queue 'A' already exists"),
        ("DEFINE QALIAS(A) REPLACE", 2043, "A is a QLOCAL, not a QALIAS"),
        ("DEFINE QLOCAL(B) LIKE(NONE)", 2085, "there is no queue 'NONE'"),
        ("DEFINE QLOCAL(B) LIKE(AL)", 2043, "AL is a QALIAS, not a QLOCAL"),
        ("DEFINE QMODEL(B) DEFTYPE(PREDEFINED)", 9017, "definition_type must be"),
        ("DEFINE QMODEL(B) DEFPSIST(YES)", 2048, "default_persistence must be False"),
        ("DEFINE QALIAS(B) TARGET(AL)", 2001, "B cannot be an alias of 'AL'"),
        ("ALTER QALIAS(A) GET(DISABLED)", 2043, "A is a QLOCAL, not a QALIAS"),
        ("DELETE QLOCAL(A)", 2055, "A has messages"),
        ("DISPLAY QUEUE(NONE)", 2085, "there is no queue 'NONE'"),
        ("DISPLAY QSTATUS(NONE)", 2085, "there is no queue 'NONE'"),
    ],
)
def test_a_refused_command_changes_nothing_and_says_why(
    qm: inorder.QueueManager, command: str, reason: int, text: str
) -> None:
    run(qm, "DEFINE QLOCAL(A)\nDEFINE QALIAS(AL) TARGET(A)")
    qm.put("A", b"1")
    qm.close_queue("A")
    before = qm.queues()
    told = answer(qm, command)
    assert (told.outcome, told.text[: len(text)]) == ("refused", text)
    assert told.error is not None
    assert told.error.reason == reason
    assert qm.queues() == before


def test_a_script_continues_after_errors_unless_it_is_to_stop(qm: inorder.QueueManager) -> None:
    script = "DEFINE QLOCAL(A)\nDEFINE QLOCAL(B) NONSENSE\nDEFINE QLOCAL(A)\nDEFINE QLOCAL(C)\nEND\nDEFINE QLOCAL(D)"
    assert [one.outcome for one in run(qm, script)] == ["done", "not valid", "refused", "done", "end"]
    assert [one.name for one in qm.queues()] == ["A", "C"]
    assert [one.outcome for one in run(qm, script, stop=True)] == ["refused"]


# ---- DISPLAY


def rows(qm: inorder.QueueManager, command: str) -> list[dict[str, Any]]:
    told = answer(qm, command)
    assert told.outcome == "done", told.text
    return [dict(row) for row in told.rows]


def names(qm: inorder.QueueManager, command: str) -> list[object]:
    """The queues that a DISPLAY shows, without the system queues."""
    told = answer(qm, command)
    if told.outcome == "refused":
        assert (told.number, told.rows) == ("AMQ8147E", ())
    else:
        assert told.outcome == "done", told.text
    return [row["QUEUE"] for row in told.rows if row["QUEUE"] not in SYSTEM_QUEUES]


QUEUES = """
DEFINE QLOCAL(A.1) MAXDEPTH(5) DESCR('one') EXPIRY(2)
DEFINE QLOCAL(A.2) MAXDEPTH(9) NOSHARE GET(DISABLED)
DEFINE QALIAS(A.3) TARGET(A.1)
DEFINE QMODEL(B)
"""


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("DIS Q(*)", "A.1 A.2 A.3 B"),
        ("DIS Q(A*)", "A.1 A.2 A.3"),
        ("DIS QL(*)", "A.1 A.2"),
        ("DIS QA(*)", "A.3"),
        ("DIS QL(A.3)", ""),
        ("DIS Q(*) TYPE(QMODEL)", "B"),
        ("DIS QS(*)", "A.1 A.2"),
        ("DIS Q(*) WHERE(MAXDEPTH EQ 5)", "A.1"),
        ("DIS Q(*) WHERE(MAXDEPTH LT 9)", "A.1"),
        ("DIS Q(*) WHERE(MAXDEPTH LE 9)", "A.1 A.2"),
        ("DIS Q(*) WHERE(MAXDEPTH GT 9)", "B"),
        ("DIS Q(*) WHERE(MAXDEPTH GE 9)", "A.2 B"),
        ("DIS Q(*) WHERE(DESCR LK 'o*')", "A.1"),
        ("DIS Q(*) WHERE(DESCR NL 'o*')", "A.2 A.3 B"),
        ("DIS Q(*) WHERE(QUEUE GE A.3)", "A.3 B"),
        ("DIS Q(*) WHERE(TYPE NE QLOCAL)", "A.3 B"),
        ("DIS Q(*) WHERE(QTYPE EQ QMODEL)", "B"),
        ("DIS Q(*) WHERE(TARGQ EQ A.1)", "A.3"),
        ("DIS Q(*) WHERE(GET EQ DISABLED)", "A.2"),
        ("DIS Q(*) WHERE(SHARE NE YES)", "A.2 B"),
        ("DIS Q(*) WHERE(EXPIRY LE 2)", "A.1"),
        ("DIS Q(*) WHERE(EXPIRY GT 2)", "A.2 B"),
        ("DIS Q(*) WHERE(CURDEPTH GT 0)", "A.1"),
        ("DIS Q(*) MAXDEPTH WHERE(CURDEPTH EQ 0)", "A.2"),
        ("DIS QS(*) WHERE(OPPROCS EQ 1)", "A.1"),
        ("DIS Q(*) WHERE(CRDATE EQ '1970-01-01')", "A.1 A.2"),
    ],
)
def test_a_display_selects_by_name_type_and_condition(qm: inorder.QueueManager, command: str, found: str) -> None:
    run(qm, QUEUES)
    qm.put("A.1", b"1")
    assert names(qm, command) == found.split()


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("EQ 'X,Y'", "F"), ("NE X", "F G"), ("LK 'X*'", "F"), ("CT Y", "F G"), ("EX Y", ""), ("CT X", "F"),
        ("EX X", "G"), ("CTG 'X*'", "F"), ("EXG 'X*'", "G"),
    ],
)  # fmt: skip
def test_a_condition_on_a_list_looks_at_each_of_its_names(qm: inorder.QueueManager, condition: str, found: str) -> None:
    run(qm, "DEFINE QFORWARD(F) TARGETS('X,Y')\nDEFINE QFORWARD(G) TARGETS('Z,Y')")
    assert names(qm, f"DIS QFORWARD(*) WHERE(TARGETS {condition})") == found.split()


# Whether an object with this value meets a condition with the same value.
MEETS_ITSELF = {
    "EQ": True, "NE": False, "LT": False, "GT": False, "LE": True, "GE": True,
    "CT": True, "EX": False, "LK": True, "NL": False, "CTG": True, "EXG": False,
}  # fmt: skip


@pytest.mark.parametrize("operator", MEETS_ITSELF)
@pytest.mark.parametrize("target", ["QLOCAL(A.1)", "QALIAS(A.3)", "QMODEL(B)", "QSTATUS(A.1)"])
def test_every_operator_compares_every_attribute(qm: inorder.QueueManager, target: str, operator: str) -> None:
    run(qm, QUEUES)
    (row,) = rows(qm, f"DIS {target} ALL")
    for keyword, value in row.items():
        if (keyword, value) == ("TYPE", "QUEUE"):
            continue  # TYPE selects the status that is displayed, and is no value of the queue
        compared = {True: "YES", False: "NO"}[value] if isinstance(value, bool) else value
        found = answer(qm, f"DIS {target} WHERE({keyword} {operator} {quoted(str(compared))})")
        assert found.outcome == ("done" if MEETS_ITSELF[operator] else "refused"), (keyword, found.text)


# ---- system objects


def test_system_queues_are_displayed_although_they_are_not_in_the_store(qm: inorder.QueueManager) -> None:
    shown = [row["QUEUE"] for row in answer(qm, "DIS Q(SYSTEM.*)").rows]
    assert shown == sorted(SYSTEM_QUEUES)
    assert qm.queues() == []


def test_the_defaults_of_a_define_are_those_of_the_default_object(qm: inorder.QueueManager) -> None:
    run(
        qm,
        "DEFINE QLOCAL(BEFORE)\n"
        "ALTER QLOCAL(SYSTEM.DEFAULT.LOCAL.QUEUE) MAXDEPTH(77) DESCR('house')\n"
        "DEFINE QLOCAL(PLAIN) DESCR('own')\n"
        "DEFINE QLOCAL(LIKED) LIKE(BEFORE)\n"
        "DEFINE QLOCAL(NAMED) LIKE(SYSTEM.DEFAULT.LOCAL.QUEUE)\n"
        "DEFINE QMODEL(MODEL)",
    )
    told = {name: (qm.attributes(name).max_depth, qm.attributes(name).description) for name in ("PLAIN", "LIKED")}
    assert told == {"PLAIN": (77, "own"), "LIKED": (999_999_999, "")}
    assert (qm.attributes("NAMED").max_depth, qm.attributes("MODEL").max_depth) == (77, 999_999_999)
    qm.create_queue("PYTHON")
    assert qm.attributes("PYTHON").max_depth == 999_999_999


def test_altered_defaults_are_exported_last_and_change_nothing_before(qm: inorder.QueueManager) -> None:
    run(qm, "DEFINE QLOCAL(Z)\nALTER QLOCAL(SYSTEM.DEFAULT.LOCAL.QUEUE) ORDER(COMMIT)")
    with inorder.connect() as other:
        run(other, "\n".join(export_queues(qm.queues())))
        assert other.queues() == qm.queues()


def test_deleting_a_system_queue_restores_its_original_definition(qm: inorder.QueueManager) -> None:
    run(qm, "ALTER QLOCAL(SYSTEM.DEAD.LETTER.QUEUE) MAXDEPTH(5)")
    assert [one.name for one in qm.queues()] == ["SYSTEM.DEAD.LETTER.QUEUE"]
    assert answer(qm, "DELETE QLOCAL(SYSTEM.DEAD.LETTER.QUEUE)").outcome == "done"
    assert qm.queues() == []
    assert qm.attributes("SYSTEM.DEAD.LETTER.QUEUE") == SYSTEM_QUEUES["SYSTEM.DEAD.LETTER.QUEUE"]


def test_a_display_shows_the_attributes_that_are_asked_for(qm: inorder.QueueManager) -> None:
    run(qm, QUEUES)
    qm.put("A.1", b"1")
    assert rows(qm, "DIS QL(A.1) DESCR CURDEPTH") == [{"QUEUE": "A.1", "TYPE": "QLOCAL", "DESCR": "one", "CURDEPTH": 1}]
    assert rows(qm, "DIS QS(A.1)") == [
        {"QUEUE": "A.1", "TYPE": "QUEUE", "CURDEPTH": 1, "IPPROCS": 0, "MSGAGE": 0, "OPPROCS": 1, "UNCOM": 0}
    ]
    assert rows(qm, "DIS QMGR CCSID") == [{"QMNAME": "TEST", "CCSID": 1208}]
    assert rows(qm, "DIS QA(A.3)") == [
        {
            "QUEUE": "A.3",
            "TYPE": "QALIAS",
            "DESCR": "",
            "DEFPRTY": 0,
            "DEFPSIST": "YES",
            "GET": "ENABLED",
            "PUT": "ENABLED",
            "TARGET": "A.1",
        }
    ]
    everything = rows(qm, "DIS QL(A.1)")[0]
    assert (everything["CRDATE"], everything["CRTIME"], everything["SHARE"]) == ("1970-01-01", "00.00.00", True)
    assert rows(qm, "DIS QL(A.1) ALL MAXDEPTH") == [everything]


# ---- export

TEXTS = st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=64).filter(
    lambda text: not text or bool(text.strip(" "))  # MQSC reads a text of blanks as an empty one
)


def values_of(attribute: Attribute) -> st.SearchStrategy[Any]:
    match attribute.kind:
        case "integer":
            return st.integers(int(attribute.minimum), int(attribute.maximum))
        case "choice":
            return st.sampled_from(attribute.choices)
        case "boolean":
            return st.booleans()
        case "text":
            return TEXTS
        case "name":
            return st.from_regex(r"[A-Za-z0-9./_%]{1,48}", fullmatch=True) | st.just("")
        case "names":
            return st.lists(st.from_regex(r"[A-Za-z0-9./_%]{1,48}", fullmatch=True), unique=True).map(",".join)
        case "seconds":
            return st.none() | st.floats(0, attribute.maximum, exclude_min=True)


@st.composite
def queues(draw: st.DrawFn) -> tuple[str, QueueType, dict[str, Any]]:
    kind = draw(st.sampled_from(QUEUE_ATTRIBUTES["type"].choices))
    name = draw(st.from_regex(r"[A-Za-z0-9./_%]{1,48}", fullmatch=True))
    of_kind = [
        each for each in QUEUE_ATTRIBUTES.values() if kind in each.applies_to and each.name not in ("name", "type")
    ]
    given = draw(st.fixed_dictionaries({}, optional={each.name: values_of(each) for each in of_kind}))
    if given.get("mode") == "synchronous":
        given |= {"transmission_queue": "", "connection": given.get("connection") or "A.CONNECTION"}
    elif kind == "remote":
        given["connection"] = ""
    if kind in ("local", "model"):
        made = {"local": ["predefined", "permanent_dynamic"], "model": ["permanent_dynamic", "temporary_dynamic"]}[kind]
        given["definition_type"] = draw(st.sampled_from(made))
    if given.get("definition_type") == "temporary_dynamic":
        given["default_persistence"] = False
    if given.get("read_order") == "unordered" and given.get("trigger_type") == "depth":
        del given["trigger_type"]
    if given.get("base_queue") == name:
        del given["base_queue"]
    if kind == "remote" and name in (given.get("remote_manager"), given.get("transmission_queue")):
        given |= {"remote_manager": f"{name[:47]}2", "transmission_queue": ""}
    if kind == "home_server":
        given["remote_manager"] = given.get("remote_manager") or "HUB"
    if "targets" in given:
        given["targets"] = ",".join(one for one in given["targets"].split(",") if one != name)
    return name, kind, given  # type: ignore[return-value]


def defined(queue: tuple[str, QueueType, dict[str, Any]]) -> QueueAttributes:
    name, kind, given = queue
    with inorder.connect() as qm:
        qm.create_queue(name, type=kind, **given)
        return qm.attributes(name)


@given(queues())
def test_an_exported_or_displayed_definition_defines_the_same_queue(
    queue: tuple[str, QueueType, dict[str, Any]],
) -> None:
    """DISPLAY shows the values that DEFINE set."""
    original = defined(queue)
    with inorder.connect() as other:
        for _ in "defined", "replaced":
            told = answer(other, export_queue(original))
            assert told.outcome == "done", told.text
            assert other.attributes(original.name) == original
        row = dict(answer(other, f"DIS QUEUE('{original.name}')").rows[0])
        for keyword in "CURDEPTH IPPROCS OPPROCS CRDATE CRTIME ALTDATE ALTTIME".split():
            row.pop(keyword, None)
        name, kind = row.pop("QUEUE"), row.pop("TYPE")
        copied = f"DEFINE {kind}('{name}') +\n" + " +\n".join(
            written(word, cast(Value, value)) for word, value in row.items()
        )
        other.delete_queue(original.name)
        assert answer(other, copied).outcome == "done"
        assert other.attributes(original.name) == original


def test_a_queue_without_attributes_of_ours_is_exported_in_words_of_mq(qm: inorder.QueueManager) -> None:
    qm.create_queue("A", order="commit")
    assert "   ORDER(COMMIT) +\n" in export_queue(qm.attributes("A"))
    qm.alter_queue("A", order="put")
    for keyword in ("ORDER", "READORDER", "EXPIRY", "DEFTYPE", "INDXTYPE"):
        assert f" {keyword}(" not in export_queue(qm.attributes("A"))


def test_aliases_are_exported_after_their_targets_and_temporary_queues_as_comments(qm: inorder.QueueManager) -> None:
    run(qm, "DEFINE QALIAS(A) TARGET(Z)\nDEFINE QLOCAL(Z)\nDEFINE QMODEL(M)")
    with qm.open("M", dynamic_name="TEMP*") as temporary:
        exported = list(export_queues(qm.queues()))
        heads = [one.split(" +")[0] for one in exported]
        assert heads == [
            "DEFINE QMODEL(M)",
            f"* {temporary.name} is a temporary dynamic queue, which ends with its opener",
            "DEFINE QLOCAL(Z)",
            "DEFINE QALIAS(A)",
        ]
    with inorder.connect() as other:
        assert {one.outcome for one in run(other, "\n".join(exported))} == {"done"}
        assert other.queues() == qm.queues()


def test_only_changed_attributes_of_the_queue_manager_are_exported(qm: inorder.QueueManager) -> None:
    assert export_manager(qm.admin.manager_attributes()) is None
    qm.admin.alter_manager(mark_interval=0.0005, description="it's")
    exported = export_manager(qm.admin.manager_attributes())
    assert exported == "ALTER QMGR +\n   DESCR('it''s') +\n   MARKINT(0.5)"
    with inorder.connect(name="TEST") as other:
        assert answer(other, exported).outcome == "done"
        assert other.admin.manager_attributes() == qm.admin.manager_attributes()
