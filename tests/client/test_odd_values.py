"""Each argument of each public call is given values that are hard to hash, to compare or to print.

The calls are derived from the signatures and the declared keywords. Each succeeds, or raises an error of the product
whose text is short.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.public_calls import GIVEN

from inorder import (
    GetOptions,
    GroupWriter,
    Match,
    Message,
    OpenOptions,
    PutOptions,
    QueueManager,
    UniqueId,
    UnknownQueue,
    connect,
)
from inorder.client.admin import Admin
from inorder.client.bulk import Bulk
from inorder.client.dead_letters import DeadLetters
from inorder.client.inspection import Inspect
from inorder.client.internals import Internals
from inorder.client.keywords import MESSAGE_FIELDS, PUT_OPTIONS
from inorder.client.queue import Queue
from inorder.client.queue_internals import QueueInternals
from inorder.client.users import Accounts
from inorder.errors import TEXT_CHARACTERS_MAX, ArgumentError, InorderError, StoreError

DEEP = 20_000  # deeper than any Python recurses; newer Pythons take seconds to print a depth of 100,000
LONG = 1_000_000
HUGE = 10**5_000  # has more digits than Python prints


class Untold(Exception):
    """Raised when an odd value is printed or compared."""


def refuse(*_: object) -> Any:
    raise Untold


Mute = type("Mute", (), {"__repr__": refuse, "__str__": refuse})
Prickly = type("Prickly", (), {"__eq__": refuse, "__hash__": None})
Mutes = [type("MuteText", (str,), {"__repr__": refuse}), type("MuteNumber", (int,), {"__repr__": refuse})]
Endless = type("Endless", (), {"__repr__": lambda _: "x" * LONG})


def released() -> memoryview:
    view = memoryview(bytearray(b"abc"))
    view.release()
    return view


def nested(wrap: Callable[[Any], Any]) -> Any:
    value: Any = wrap("x")
    for _ in range(DEEP):
        value = wrap(value)
    return value


MUTE = "a text that cannot be written out"
ODD: dict[str, Any] = {
    "a memoryview": memoryview(b"abc"),
    "a memoryview that was released": released(),
    "a bytearray": bytearray(LONG),
    "a deep list": nested(lambda inner: [inner]),
    "a deep dictionary": nested(lambda inner: {"a": inner}),
    "a huge number": HUGE,
    "a unique id of odd parts": UniqueId(nested(lambda inner: [inner]), HUGE),
    "a long text": "n" * LONG,
    "a text with NUL": "a\0b",
    "half a character": "\ud800",
    "long bytes": b"n" * LONG,
    "what cannot be written out": Mute(),
    MUTE: Mutes[0]("a b"),
    "a number that cannot be written out": Mutes[1](-77),
    "what is long when written out": Endless(),
    "what cannot be compared": Prickly(),
    "nan": math.nan,
    "a pair": ("Q", "FAR"),
    "a pair of what cannot be compared": (Prickly(), Prickly()),
}

VIEW, TEXTS = {"a memoryview"}, {"a text with NUL", MUTE}
ACCEPTED: Mapping[str, set[str]] = {  # the odd values that fields and arguments accept; they refuse the others
    "body": {"a memoryview", "a bytearray", "long bytes"},
    **dict.fromkeys(["message_id", "correlation_id", "group_id"], VIEW | TEXTS),
    **dict.fromkeys(["accounting_token", "token"], VIEW),
    **dict.fromkeys(["format", "reply_to_queue", "reply_to_queue_manager", "user_identifier", "deduplicate"], TEXTS),
    **dict.fromkeys(["application_identity_data", "application_origin_data", "put_application_name"], TEXTS),
    "transmission": {"a pair"}, "store": {MUTE}, "program": {"a long text", *TEXTS},
}  # fmt: skip
KEYWORDS: Mapping[str, list[str]] = {  # keywords that no annotation declares
    "put_stream": [*MESSAGE_FIELDS],
    "set": ["get_allowed", "put_allowed"],
}
NAMESPACES = {
    Admin: "admin", Accounts: "accounts", Bulk: "bulk", DeadLetters: "dead", Inspect: "inspect",
    Internals: "internals",
}  # fmt: skip
PASSED_OVER = {
    "Admin.stop": "ends the store for all",
    "Admin.check": "calls what it is given",
    "Admin.backup": "the store is in memory; see tests/stores/sqlite/test_backup.py",
    "DeadLetters.place": "returns what it is given",
    "QueueInternals.read": "takes the options that get_options has checked",
    "QueueInternals.browse_back": "takes what browsed has returned",
    "Internals.end_with": "takes anything that can be referred to weakly",
}


def methods() -> Iterator[tuple[type[Any], str]]:
    for kind in (QueueManager, Queue, GroupWriter, QueueInternals, *NAMESPACES):
        for name, _ in inspect.getmembers(kind, inspect.isfunction):
            if not name.startswith("_") and f"{kind.__name__}.{name}" not in PASSED_OVER:
                yield kind, name


def make_queues(qm: QueueManager) -> None:
    """Creates a local queue, a default transmission queue and a dead-letter queue."""
    qm.create_queue("Q")
    qm.create_queue("DEAD")
    qm.create_queue("XMIT", usage="transmission")
    qm.admin.alter_manager(dead_letter_queue="DEAD", default_transmission_queue="XMIT")


def made(qm: QueueManager, kind: type[Any]) -> Any:
    if kind is QueueManager:
        return qm
    if kind in NAMESPACES:
        return getattr(qm, NAMESPACES[kind])
    if kind is GroupWriter:
        return qm.group("Q")
    queue = qm.open("Q", input="shared", output=True, browse=True)
    return queue if kind is Queue else queue.internals


def arguments_of(kind: type[Any], name: str) -> tuple[list[inspect.Parameter], list[str]]:
    """The parameters, and the names of all arguments including keywords."""
    function = inspect.unwrap(getattr(kind, name))
    parameters = list(inspect.signature(function).parameters.values())[1:]
    names = [one.name for one in parameters if one.kind is not one.VAR_KEYWORD]
    for one in parameters:
        if one.kind is one.VAR_KEYWORD:
            declared = re.fullmatch(r"Unpack\[(\w+)\]", one.annotation)
            names += KEYWORDS[name] if declared is None else function.__globals__[declared[1]].__annotations__
    return parameters, names


def call(method: Callable[..., Any], parameters: list[inspect.Parameter], odd: str, value: object) -> None:
    """Calls a method with one odd argument. Enters a context manager; reads the first items of an iterator."""
    positional, keywords = [], {}
    for one in parameters:
        if one.kind is one.VAR_POSITIONAL:
            positional += [value] if one.name == odd else []
        elif one.name == odd or (one.default is one.empty and one.kind is not one.VAR_KEYWORD):
            given = value if one.name == odd else {**GIVEN, "options": GetOptions}.get(one.name, lambda: "Q")()
            if one.kind is one.KEYWORD_ONLY:
                keywords[one.name] = given
            else:
                positional.append(given)
        elif one.kind is one.POSITIONAL_OR_KEYWORD and odd not in keywords:
            positional.append(one.default)
    if odd not in {one.name for one in parameters}:
        keywords[odd] = value
    result = method(*positional, **keywords)
    if isinstance(result, contextlib.AbstractContextManager) and not hasattr(result, "close"):
        result.__enter__()
    if hasattr(result, "__next__"):
        list(itertools.islice(result, 3))


def check(what: str, attempt: Callable[[], object]) -> InorderError | None:
    """Makes an attempt, and checks its error. Returns the error."""
    found = None
    try:
        attempt()
    except InorderError as error:
        found = error
    except BaseException as raw:
        raise AssertionError(f"{what} raised {type(raw).__name__}: {str(raw)[:200]}") from raw
    text = "" if found is None else str(found)
    assert len(text) <= TEXT_CHARACTERS_MAX + 100, f"{what}: a text of {len(text):,} characters"
    return found


def check_all(what: str, odd: str, attempt: Callable[[dict[str, Any]], object], error: Any = ArgumentError) -> None:
    """Checks that each odd value of an argument is accepted or refused, as `ACCEPTED` says."""
    for told, value in ODD.items():
        found = check(f"{what} with {told} as {odd}", partial(attempt, {odd: value}))
        assert (found is None) == (told in ACCEPTED.get(odd, ())), f"{what} with {told} as {odd}: {found}"
        assert found is None or isinstance(found, error)


@pytest.mark.parametrize(("kind", "name"), [pytest.param(*one, id=f"{one[0].__name__}.{one[1]}") for one in methods()])
def test_an_odd_argument_is_accepted_or_raises_an_inorder_error(kind: type[Any], name: str) -> None:
    parameters, names = arguments_of(kind, name)
    for odd in names:
        with connect(program="test") as qm:
            make_queues(qm)
            for told, value in ODD.items():
                one = made(qm, kind)
                attempt = partial(call, getattr(one, name), parameters, odd, value)
                check(f"{kind.__name__}.{name} with {told} as {odd}", attempt)
                with contextlib.suppress(InorderError):
                    qm.back_out()
                if isinstance(one, Queue) and not one.closed:
                    one.close()


@pytest.mark.parametrize(
    "name", [name for kind, name in methods() if kind is QueueManager and "manager" in arguments_of(kind, name)[1]]
)
def test_an_odd_queue_name_at_another_queue_manager_is_unknown(name: str) -> None:
    parameters, (odd, *_) = arguments_of(QueueManager, name)
    given: dict[str, Any] = {"manager": "FAR"}
    others = [one for one in parameters if one.name not in given]
    with connect(program="test") as qm:
        make_queues(qm)
        for told, value in ODD.items():
            method = partial(getattr(qm, name), **given)
            check(f"{name} with {told} as {odd}, manager='FAR'", partial(call, method, others, odd, value))
            if name != "close_queue":
                with pytest.raises(UnknownQueue):
                    call(method, others, odd, value)


@pytest.mark.every_store
@pytest.mark.parametrize("odd", ["a text with NUL", "half a character", "a long text"])
def test_a_name_that_no_store_can_hold_is_unknown(qm: QueueManager, odd: str) -> None:
    for use in (qm.attributes, qm.get, qm.delete_queue):
        with pytest.raises(UnknownQueue):
            use(ODD[odd])


def told_again(kind: type[Any], given: dict[str, Any]) -> str:
    return repr(kind(**({"body": b""} if kind is Message else {}) | given))


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (Message, ["body", *MESSAGE_FIELDS]),
        (Match, ["token", "uid", *MESSAGE_FIELDS]),
        (PutOptions, list(PUT_OPTIONS)),
        (GetOptions, list(GetOptions.__slots__)),
        (OpenOptions, list(OpenOptions.__slots__)),
    ],
)
def test_an_odd_field_of_a_message_or_options_is_accepted_or_refused_as_listed(
    kind: type[Any], names: list[str]
) -> None:
    for odd in names:
        check_all(kind.__name__, odd, partial(told_again, kind))


def connects(given: dict[str, Any]) -> None:
    connect(**given).close()


@pytest.mark.parametrize("what", ["store", "program", "name"])
def test_an_odd_argument_of_connect_is_accepted_or_refused_as_listed(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check_all("connect", what, connects, (ArgumentError, StoreError))  # no file has a name as long as the long text


def test_a_long_error_text_is_shortened_in_the_middle() -> None:
    error = InorderError("begins " + "n" * LONG + " ends")
    assert str(error).startswith("begins nnn")
    assert " [...] " in str(error)
    assert error.args[0].endswith("nnn ends")
    assert len(error.args[0]) <= TEXT_CHARACTERS_MAX
    short = "n" * TEXT_CHARACTERS_MAX
    assert InorderError(short).args[0] == short
