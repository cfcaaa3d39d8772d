"""PCF and JSON show objects that MQSC defines; PCF creates objects from its own replies; no number is missing."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.mqi.pcf.asking import ask, reason

import inorder
from inorder import QueueManager
from inorder.model.attribute import Attribute, Table
from inorder.model.attributes import MANAGER_ATTRIBUTES, QUEUE_ATTRIBUTES
from inorder.model.channel_attributes import CHANNEL_ATTRIBUTES
from inorder.model.process_attributes import PROCESS_ATTRIBUTES
from inorder.mq import channels, words
from inorder.mq.mqsc import run_command
from inorder.mq.mqsc.json_commands import object_of, source_of
from inorder.mq.mqsc.values import Value
from inorder.mqi.constants import constants
from inorder.mqi.pcf.replies import written
from inorder.mqi.pcf.requests import by_number, numbers_of

NAMES = st.from_regex("[A-Za-z0-9./_%]{0,20}", fullmatch=True)
TEXTS = st.text(st.characters(min_codepoint=32, max_codepoint=0x24F, exclude_categories=("Cc", "Cs")), max_size=30)
OWN = {"queue": "QUEUE", "channel": "CHANNEL", "process": "PROCESS"}
CREATED = {"ALTDATE", "ALTTIME", "CRDATE", "CRTIME", "CURDEPTH", "IPPROCS", "OPPROCS"}


def values_of(attribute: Attribute) -> st.SearchStrategy[Any]:
    match attribute.kind:
        case "integer":
            return st.integers(int(attribute.minimum), int(attribute.maximum))
        case "choice":
            return st.sampled_from(attribute.choices)
        case "boolean":
            return st.booleans()
        case "seconds":
            unit = attribute.mqsc_per_second
            return st.none() | st.integers(1, int(attribute.maximum * unit)).map(lambda value: value / unit)
        case "text":
            return TEXTS.map(str.rstrip)  # a text in a structure loses its trailing blanks
        case _:
            return NAMES


def given_of(table: Table, owner: str, *without: str) -> st.SearchStrategy[dict[str, Any]]:
    """A subset of this owner's PCF attributes; an unordered queue has no trigger by depth."""
    return st.fixed_dictionaries(
        {},
        optional={
            name: values_of(each)
            for name, each in table.items()
            if owner in each.applies_to and each.changed_by != "create" and name not in without
        },
    ).filter(lambda given: (given.get("read_order"), given.get("trigger_type")) != ("unordered", "depth"))


def row_of(qm: QueueManager, kind: str, qualifier: str, name: str) -> dict[str, Any]:
    """The object as MQSC and JSON show it, without its name and times."""
    answer = run_command(source_of("display", qualifier, name, None, ["all"]), qm)
    (row,) = answer.rows
    assert list(object_of(row)) == [word.lower() for word in row]
    return {word: value for word, value in row.items() if word not in (OWN[kind], *CREATED)}


def check_round(qm: QueueManager, kind: str, qualifier: str, commands: tuple[str, str], key: str, **more: Any) -> None:
    """Inquires about A in PCF, creates B from the reply, and checks that MQSC shows the same attributes."""
    row = row_of(qm, kind, qualifier, "A")
    inquired: dict[str, Any] = {key: "A"}
    (reply,) = ask(qm, commands[0], **inquired)
    table = words.words_of(kind)
    shown = {number: reply.values[name] for name, number in _numbers(reply.values).items()}
    for word, value in row.items():
        if (each := table[word]).number is not None:
            expected = written(each, value)
            assert shown[each.number] == (expected.text.rstrip() if hasattr(expected, "text") else expected), word
    again = {
        name.removeprefix("MQ"): reply.values[name]
        for name, number in _numbers(reply.values).items()
        if by_number(kind)[number].use == "set" and _is_settable(by_number(kind)[number])
    }
    assert reason(qm, commands[1], **{**again, key: "B", **more}) == 0
    ours = {word for word in row if table[word].number is None}
    assert {word: value for word, value in row_of(qm, kind, qualifier, "B").items() if word not in ours} == {
        word: value for word, value in row.items() if word not in ours
    }


def _numbers(values: Any) -> dict[str, int]:
    return {name: int(constants()[name]) for name in values}


def _is_settable(word: words.MqWord) -> bool:
    return word.attribute is not None and (word.attribute.changed_by != "create" or word.attribute.name == "type")


@given(given_of(QUEUE_ATTRIBUTES, "local"))
def test_pcf_shows_and_recreates_a_local_queue(given_values: dict[str, Any]) -> None:
    with inorder.connect(":memory:") as qm:
        qm.create_queue("A", **given_values)
        check_round(qm, "queue", "qlocal", ("INQUIRE_Q", "CREATE_Q"), "CA_Q_NAME", IA_DEFINITION_TYPE=1)


@given(given_of(QUEUE_ATTRIBUTES, "model"), st.sampled_from(["permanent_dynamic", "temporary_dynamic"]))
def test_pcf_shows_and_recreates_a_model_queue(given_values: dict[str, Any], definition: Any) -> None:
    with inorder.connect(":memory:") as qm:
        if definition == "temporary_dynamic":
            given_values["default_persistence"] = False
        qm.create_queue("A", type="model", definition_type=definition, **given_values)
        more = {"IA_DEFINITION_TYPE": 2 if definition == "permanent_dynamic" else 3}
        check_round(qm, "queue", "qmodel", ("INQUIRE_Q", "CREATE_Q"), "CA_Q_NAME", **more)


@given(given_of(CHANNEL_ATTRIBUTES, "sender", "transmission_queue", "connection"), NAMES, TEXTS)
def test_pcf_shows_and_recreates_a_sender_channel(given_values: dict[str, Any], queue: str, connection: str) -> None:
    with inorder.connect(":memory:") as qm:
        place = {"transmission_queue": queue or "X", "connection": connection.strip() or "x"}
        channels.define_channel(qm, "A", "sender", **place, **given_values)
        check_round(qm, "channel", "channel", ("INQUIRE_CHANNEL", "CREATE_CHANNEL"), "CACH_CHANNEL_NAME")


@given(given_of(PROCESS_ATTRIBUTES, "process"))
def test_pcf_shows_and_recreates_a_process(given_values: dict[str, Any]) -> None:
    with inorder.connect(":memory:") as qm:
        qm.admin.create_process("A", **given_values)
        check_round(qm, "process", "process", ("INQUIRE_PROCESS", "CREATE_PROCESS"), "CA_PROCESS_NAME")


@given(given_of(MANAGER_ATTRIBUTES, "manager"))
def test_pcf_shows_the_queue_manager_as_mqsc_does(given_values: dict[str, Any]) -> None:
    with inorder.connect(":memory:") as qm:
        qm.admin.alter_manager(**given_values)
        answer = run_command(source_of("display", "qmgr", None, None, ["all"]), qm)
        (reply,) = ask(qm, "INQUIRE_Q_MGR")
        table = words.words_of("manager")
        shown = {number: reply.values[name] for name, number in _numbers(reply.values).items()}
        for word, value in answer.rows[0].items():
            if (number := table[word].number) is not None:
                expected = written(table[word], cast(Value, value))
                assert shown[number] == (expected.text.rstrip() if hasattr(expected, "text") else expected), word


# ---- the table


@pytest.mark.parametrize("kind", ["queue", "process", "manager", "qmstatus", "channel", "chstatus", "conn", "handle"])
def test_keywords_with_named_values_have_numbers_for_them(kind: str) -> None:
    """Without its number, a word would be answered as a text where MQ has an integer."""
    for word in words.words_of(kind).values():
        is_choice = word.attribute.kind == "choice" if word.attribute is not None else word.values.isupper()
        if word.number is None or word.why or not is_choice or word.values in ("-",) or word.number > 2000:
            continue
        numbers = numbers_of(word)
        known = word.attribute.mqsc_words if word.attribute is not None else word.values.split("|")
        assert {*known} <= {*numbers} | {"MVS", "OS400", "NSK", "APPLIANCE", "WINDOWSNT"}, word.keyword
        assert len({*numbers.values()}) == len(numbers), word.keyword
