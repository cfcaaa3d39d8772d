"""Rules tables for dead letters: an example as MQ's, the table of patterns and fields, and the next rule."""

from __future__ import annotations

from typing import Any

import pytest

from inorder import FOREVER, Message, MessageType, Reason
from inorder.rules.dead_letters import WhyDead
from inorder.rules.dead_rules import DeadRule, DeadRules, Try, facts, first_try, fits, next_try, sign, target, try_after
from inorder.rules.dead_rules_syntax import DeadRulesError, read_rules

# A table like those in MQ's documents.
TABLE = """
* Control data
inputqm(' ') inputq(' ')

* First what may have passed
REASON(MQRC_Q_FULL) ACTION(RETRY) RETRY(5)
MSGTYPE(MQMT_REQUEST) REPLYQM(AAAA.*) +
* a comment stands anywhere
  ACTION(FWD) FWDQ(DEADQ) FWDQM(&REPLYQM)
DESTQM(bbbb.1) +
ACTION(FWD), FWDQ(&DESTQ) FWDQM(bbbb.2) header(no)
REPLYQM(CCCC.*) ACTION(DISCARD)
PERSIST(MQPER_NOT_PERSISTENT) USERID(?*) ACTION (DISCARD) PUTAUT(DEF)
APPLNAME('ABC+
   D''s x*') FORMAT('a -
  b') ACTION(IGNORE)
ACTION(FWD) FWDQ('Really.Dead')
"""


def rules(*lines: str) -> DeadRules:
    return read_rules(lines)


def test_a_rules_table_in_mqs_format_is_read() -> None:
    table = read_rules(TABLE.splitlines(keepends=True))
    assert (table.queue, table.manager, table.retry_seconds, table.wait) == ("", "", 60, FOREVER)
    assert list(table.rules) == [
        DeadRule(line=6, action="retry", patterns={"REASON": 2053}, tries=5),
        DeadRule(line=7, action="fwd", patterns={"MSGTYPE": 1, "REPLYQM": "AAAA.*"}, queue="DEADQ", manager="&REPLYQM"),
        DeadRule(line=10, action="fwd", patterns={"DESTQM": "BBBB.1"}, queue="&DESTQ", manager="BBBB.2", header=False),
        DeadRule(line=12, action="discard", patterns={"REPLYQM": "CCCC.*"}),
        DeadRule(line=13, action="discard", patterns={"PERSIST": 0, "USERID": "?*"}),
        DeadRule(line=14, action="ignore", patterns={"APPLNAME": "ABCD's x*", "FORMAT": "a   b"}),
        DeadRule(line=17, action="fwd", queue="Really.Dead"),
    ]


@pytest.mark.parametrize(
    ("control", "expected"),
    [
        ("INPUTQ(DEAD) INPUTQM(QM1) RETRYINT(5) WAIT(YES)", ("DEAD", "QM1", 5, FOREVER)),
        ("wait(no)", ("", "", 60, 0.0)),
        ("RETRYINT(999999999),WAIT(30)", ("", "", 999_999_999, 30.0)),
    ],
)
def test_control_data_is_read(control: str, expected: tuple[Any, ...]) -> None:
    table = rules(control, "ACTION(IGNORE)")
    assert (table.queue, table.manager, table.retry_seconds, table.wait) == expected


@pytest.mark.parametrize(
    ("lines", "line", "text"),
    [
        (["WAIT(NO)"], 1, "no rule; allowed is at least one rule"),
        (["ACTION(IGNORE)", "WAIT(NO)"], 2, "control data after another entry"),
        (["WAIT(NO) ACTION(IGNORE)"], 1, "ACTION among control data"),
        (["* c", "", "REASON(2053)"], 3, "a rule without ACTION; allowed is ACTION(DISCARD) or"),
        (["ACTION(REMOVE)"], 1, "allowed is ACTION(DISCARD) or ACTION(IGNORE)"),
        (["ACTION(FWD)"], 1, "ACTION(FWD) without FWDQ"),
        (["ACTION(RETRY) FWDQ(Q)"], 1, "FWDQ with ACTION(RETRY)"),
        (["ACTION(DISCARD) HEADER(NO)"], 1, "HEADER with ACTION(DISCARD)"),
        (["ACTION(FWD) FWDQ(&DESTQM)"], 1, "allowed is &DESTQ or &REPLYQ"),
        (["ACTION(FWD) FWDQ(A*)"], 1, "at most 48 characters from"),
        (["ACTION(RETRY) PUTAUT(CTX)"], 1, "allowed is PUTAUT(DEF): any program"),
        (["ACTION(RETRY) RETRY(0)"], 1, "a number from 1 to 999,999,999"),
        (["ACTION(RETRY) CONVERT(YES)"], 1, "MQ's keyword CONVERT, which is not supported"),
        (["ACTION(RETRY) ACTION(RETRY)"], 1, "ACTION again"),
        (["ACTION(RETRY)RETRY(2)"], 1, "RETRY right after another value"),
        (["FORMAT('') ACTION(RETRY)"], 1, "FORMAT without a value"),
        (["FORMAT(a-b) ACTION(RETRY)"], 1, "single quotes around a value with other characters"),
        (["FORMAT(ABCDEFGHI) ACTION(RETRY)"], 1, "at most 8 characters"),
        (["MSGTYPE('2*') ACTION(RETRY)"], 1, "*, a name such as MQMT_REQUEST, or a number from 0"),
        (["REASON(MQRC_NONSENSE) ACTION(RETRY)"], 1, "a name such as MQRC_"),
        (["REASON(2053) +"], 1, "the end of the table after +"),
        (["(RETRY)"], 1, "a keyword and its value"),
        (["ACTION(IGNORE)", "ACTION(RETRY) REASON('2053"], 2, "REASON without a value"),
    ],
)
def test_an_error_in_a_rules_table_is_reported_with_its_line(lines: list[str], line: int, text: str) -> None:
    with pytest.raises(DeadRulesError) as refused:
        read_rules(lines)
    assert refused.value.data["line"] == line
    assert text in str(refused.value)


@pytest.mark.parametrize("value", ["'ABCDEFGH'", "'A*C*E*G*I'", "'*A*C*E*G*I*K*M*O*'", "ABC", "' '", "'A'"])
def test_a_pattern_may_be_as_long_as_its_field_not_counting_asterisks(value: str) -> None:
    assert rules(f"FORMAT({value}) ACTION(IGNORE)").rules[0].action == "ignore"


LETTER = Message(
    b"body", message_type=MessageType.REQUEST, feedback=259, format="MQSTR", persistent=True, reply_to_queue="ANSWERS",
    reply_to_queue_manager="AAAA.1",
).with_values(
    application_identity_data="till 5 ", put_application_name="shop.py", put_application_type=6, user_identifier="anna"
)  # fmt: skip
WHY = WhyDead(reason=2053, queue="ORDERS", manager="", program="TO.B")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("APPLIDAT('till 5')", True),
        ("APPLIDAT('till*')", True),
        ("APPLIDAT(TILL*)", False),
        ("APPLNAME('shop.py   ')", True),
        ("APPLNAME('shop?py')", True),
        ("APPLNAME('shopXpy')", False),
        ("USERID('an.a')", False),  # a dot matches only a dot
        ("APPLNAME('shop')", False),
        ("APPLTYPE(MQAT_UNIX)", True),
        ("DESTQ(O*R?)", True),
        ("DESTQ(ORDERS?)", False),
        ("DESTQM(LONDON)", True),  # the default is this queue manager
        ("DESTQM(PARIS)", False),
        ("FEEDBACK(MQFB_COA)", True),
        ("FORMAT(' ')", False),
        ("MSGTYPE(MQMT_REQUEST)", True),
        ("MSGTYPE(*)", True),
        ("PERSIST(MQPER_PERSISTENT)", True),
        ("REASON(MQFB_COA)", False),
        ("REPLYQ(?*)", True),
        ("REPLYQM(AAAA.*)", True),
        ("USERID('*n*n*')", True),
        ("USERID(' ')", False),
        ("REASON(2053), USERID('bert')", False),
        ("REASON(2053), USERID('anna')", True),
        ("", True),
    ],
)
def test_a_rule_applies_to_a_letter_if_all_its_patterns_match(pattern: str, expected: bool) -> None:
    (rule,) = rules(f"{pattern} ACTION(IGNORE)").rules
    assert fits(rule, facts(LETTER, WHY, "LONDON")) is expected
    (blank,) = rules("REPLYQ(' ') ACTION(IGNORE)").rules
    assert fits(blank, facts(Message(b""), WHY, "LONDON"))


def test_rules_are_tried_in_their_order_each_as_often_as_it_says() -> None:
    table = rules(
        "REASON(2051) ACTION(DISCARD)", "REASON(2053) ACTION(RETRY) RETRY(2)", "DESTQ(OTHER) ACTION(DISCARD)",
        "DESTQ(ORD*) ACTION(FWD) FWDQ(R)",
    ).rules  # fmt: skip
    letter = facts(LETTER, WHY, "LONDON")
    tries, now = [], first_try(table, letter)
    while now is not None:
        tries.append(now)
        now = next_try(table, letter, now)
    assert tries == [Try(1, 0), Try(1, 1), Try(3, 0)]
    assert first_try(table, facts(LETTER, WHY._replace(reason=2085, queue="X"), "LONDON")) is None
    # the next rule after a number of failures of a rule, perhaps in an earlier run
    found = [try_after(table, letter, sign(table[1]), failed) for failed in (0, 1, 2, 9)]
    assert found == [Try(1, 0), Try(1, 1), Try(3, 0), Try(3, 0)]
    assert try_after(table, letter, sign(table[3]), 1) is None
    assert try_after(table, letter, "rule of another table", 5) == Try(1, 0)


def test_the_identity_of_a_rule_does_not_depend_on_its_line_or_its_number_of_retries() -> None:
    rules = read_rules(
        [
            "REASON(2053) ACTION(RETRY)",
            "REASON(2053) ACTION(RETRY) RETRY(5)",
            "REASON(2051) ACTION(RETRY)",
            "REASON(2053) ACTION(FWD) FWDQ(A)",
            "REASON(2053) ACTION(FWD) FWDQ(B)",
            "REASON(2053) ACTION(FWD) FWDQ(B) HEADER(NO)",
        ]
    ).rules
    signs = [sign(rule) for rule in rules]
    assert signs[0] == signs[1]
    assert len(set(signs)) == len(rules) - 1


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("RETRY)", ("ORDERS", "FAR")),
        ("FWD) FWDQ(R)", ("R", "")),
        ("FWD) FWDQ(R) FWDQM(ROME)", ("R", "ROME")),
        ("FWD) FWDQ(&DESTQ)", ("ORDERS", "")),
        ("FWD) FWDQ(&DESTQ) FWDQM(&DESTQM)", ("ORDERS", "FAR")),
        ("FWD) FWDQ(&REPLYQ) FWDQM(&REPLYQM)", ("ANSWERS", "AAAA.1")),
    ],
)
def test_an_action_puts_a_letter_on_the_specified_queue(action: str, expected: tuple[str, str]) -> None:
    (rule,) = rules(f"ACTION({action}").rules
    assert target(rule, LETTER, WHY._replace(manager="FAR")) == expected


def test_every_reason_can_be_given_by_its_mq_name() -> None:
    for one in Reason:
        assert rules(f"REASON(MQRC_{one.name}) ACTION(IGNORE)").rules[0].patterns == {"REASON": int(one)}


def test_a_wait_of_none_still_means_for_ever_and_warns() -> None:
    wait: Any = None
    with pytest.warns(DeprecationWarning, match="wait=None of DeadRules is now wait=inorder.FOREVER") as warned:
        assert DeadRules(rules=[], wait=wait).wait == FOREVER
    assert warned[0].filename == __file__
