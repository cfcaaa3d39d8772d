"""Values on the wire: calls, answers and errors as msgpack, with the types of the seam's annotations.

`msgspec` reads each payload as exactly the type in the verb's annotations: nothing is imported by name, and nothing is
called except the constructors of those types. A record is an array of its fields, a dataclass a map, a message its row
in the order of `Message.FIELDS`.

A peer of a newer release may append arguments to a verb and fields to a record: unknown ones are ignored. A peer of an
older release lacks some: they get their defaults.

The values in a call are checked as if the caller had built them here: options and matches by their constructors,
messages by the kinds of their fields. In answers only the types are checked.
"""

from __future__ import annotations

import dataclasses
import functools
import gc
import inspect
import math
import operator
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple, TypeVar

import msgspec

from ... import errors
from ...errors import ArgumentError, InorderError, Reason, StoreError, UnknownQueue, bad_argument, bounded, written
from ...model.attributes import QUEUE_ATTRIBUTES, QueueAttributes, define_queue
from ...model.fields import FLAGS_MAX, GIVEN, INT_MAX, NONE, NUMBER_MAX, Place, Transmission, UniqueId
from ...model.message import Message
from ...model.options import Match
from ...model.parameters import ID_LENGTH, WHOLE_MAX, is_storable
from ...rules.grouping import GroupState
from ...rules.leases import LOCK_SECONDS_MAX, SECONDS_MAX
from ...rules.puts import Program
from ...rules.store_verbs import FILLED_IN, VERBS
from ...support.decoders import building
from ..seam.bulk_page import BulkPage
from ..seam.protocol import Store
from ..seam.records import BULK_COLUMNS, GetOutcome, PutRequest, StageRequest
from .rows import PROPERTIES, ROW, converted, message_of_call, messages_of_answer, named, row_of

T = TypeVar("T")


class WireError(StoreError):
    """The other side of a connection to a store has sent something that is not allowed."""


# ---- the types on the wire, where they differ from the annotations

Plain = None | bool | int | float | str


Whole = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Id = Annotated[int, msgspec.Meta(ge=0)]  # msgpack ends at 2**64 - 1
Number = Annotated[float, msgspec.Meta(ge=-sys.float_info.max)]  # no NaN
IDS: Final = frozenset({"confirm_id", "lock_id"})  # the only integers that may have 64 bits without a sign
NONE_LAST: Final = sys.float_info.min  # leases: above 0
COUNTED: Final = IDS | {"most"}
ID_MAX: Final = 2**64 - 1
PERIODS: Final = {"seconds": SECONDS_MAX, "lease": LOCK_SECONDS_MAX, "lasts": WHOLE_MAX, "delay": INT_MAX}
"""Durations in seconds, from 0, with their limits, so that no caller can lock or hide messages forever."""


class WireState(GroupState):
    """The state of a handle as a caller may send it: only values that messages can have."""

    __slots__ = ()
    group_id: Annotated[bytes, msgspec.Meta(min_length=ID_LENGTH, max_length=ID_LENGTH)]
    sequence_number: Annotated[int, msgspec.Meta(ge=0, le=NUMBER_MAX)]
    offset: Annotated[int, msgspec.Meta(ge=0, le=NUMBER_MAX)]
    length: Annotated[int, msgspec.Meta(ge=0, le=NUMBER_MAX)]
    flags: Annotated[int, msgspec.Meta(ge=0, le=FLAGS_MAX)]


IN_BOTH: Final[Mapping[Any, Any]] = {
    dict[str, Any]: dict[str, Plain],  # attributes
    tuple[Any, ...]: tuple[Plain | tuple[Plain, ...], ...],  # the end of a page: numbers, and pairs of numbers
}
IN_CALLS: Final[Mapping[Any, Any]] = {
    **IN_BOTH,
    Message | bytes: ROW | bytes,
    GroupState: WireState,
    int: Whole,
    float: Number,
}


def _wired(annotation: Any, instead: Mapping[Any, Any]) -> Any:
    """Returns the type with which values of an annotation are read, with these types in place of others."""
    if annotation in instead:
        return instead[annotation]
    origin, members = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return functools.reduce(operator.or_, (_wired(one, instead) for one in members))
    if origin in (tuple, list, dict, frozenset, Sequence, Mapping):
        return origin[tuple(one if one is Ellipsis else _wired(one, instead) for one in members)]
    if instead is IN_CALLS and isinstance(annotation, type) and issubclass(annotation, tuple):
        return _narrowed(annotation)
    return annotation


@functools.cache
def _narrowed(kind: Any) -> Any:
    """Returns the type of a record of a call, with narrower fields; its values are still records of this kind."""
    hints = {name: _field(name, hint) for name, hint in typing.get_type_hints(kind).items()}
    return type(kind.__name__, (kind,), {"__slots__": (), "__annotations__": hints, "__module__": __name__})


def _field(name: str, annotation: Any) -> Any:
    """The type of a field or an argument of a call."""
    if name in IDS and annotation is int:
        return Id
    if name in PERIODS and annotation is float:
        least = NONE_LAST if name == "seconds" else 0.0
        return Annotated[float, msgspec.Meta(ge=least, le=PERIODS[name])]
    return _wired(annotation, IN_CALLS)


def _check_numbers(name: str, value: Any) -> None:
    """Checks numbers in a dataclass, whose type cannot be narrowed."""
    if isinstance(value, float) and not 0 <= value <= PERIODS.get(name, math.inf):
        raise bad_argument(name, value, f"a number from 0 to {PERIODS.get(name, math.inf)}")
    if isinstance(value, int) and not (0 if name in COUNTED else -WHOLE_MAX - 1) <= value <= (
        ID_MAX if name in IDS else WHOLE_MAX
    ):
        raise bad_argument(name, value, f"a number of 64 bits{' from 0' if name in COUNTED else ''}")
    if isinstance(value, tuple):
        for one in value:
            _check_numbers(name, one)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            _check_numbers(field.name, getattr(value, field.name))


def _defined(sent: QueueAttributes) -> QueueAttributes:
    """Returns the attributes of a new queue, made by `define_queue`. Raises: as `define_queue`."""
    made = QueueAttributes(name=sent.name, type=sent.type)
    given: dict[str, Any] = {}
    while differing := {
        name: getattr(sent, name) for name in QUEUE_ATTRIBUTES if getattr(made, name) != getattr(sent, name)
    }:
        if differing.keys() <= given.keys():
            raise bad_argument("attributes", differing, f"values that queue {written(sent.name)} can have")
        given |= differing
        made = define_queue(sent.name, sent.type, **given)
    return made if given else define_queue(sent.name, sent.type)


# ---- messages and matches


class GotRows(GetOutcome):
    """`GetOutcome` as it is read: a message is a row until all are made at once."""

    __slots__ = ()
    messages: list[ROW]


def _match(plain: Any) -> Match:
    fields, selector = converted(plain, tuple[dict[str, Any], str | None])
    given: dict[str, Any] = dict(fields)
    for name, kind in (("uid", UniqueId), ("transmission", Transmission)):
        if isinstance(given.get(name), list):
            given[name] = converted(given[name], kind)
    return Match(selector=selector, **given)


# ---- coding


def _plain(value: Any) -> Any:
    """Returns the form on the wire of a value that `msgspec` does not know."""
    if isinstance(value, Message):
        row = value.row
        return (*row[:PROPERTIES], row[PROPERTIES].text, *row[PROPERTIES + 1 :])
    if isinstance(value, Match):
        return dict(value.fields), value.selector
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, str):  # here and below: a class of the caller's
        return str.__str__(value)
    kinds: tuple[Any, ...] = (int, float, bytes)
    for kind in kinds:
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"a {type(value).__name__}")


def _of_call(kind: type[Any], plain: Any) -> Any:
    if kind is Message:
        return message_of_call(row_of(plain))
    assert kind is Match, kind
    return _match(plain)


def _of_answer(kind: type[Any], plain: Any) -> Any:
    if kind is Message:
        return messages_of_answer([row_of(plain)])[0]
    assert kind is Match, kind
    return _match(plain)


encode: Final = msgspec.msgpack.Encoder(enc_hook=_plain, uuid_format="bytes").encode


class WireReader:
    """Reads payloads of one type. Raises the error that `refuse` makes from a fault, or a constructor's error."""

    def __init__(
        self, kind: Any, hook: Callable[[type[Any], Any], Any], refuse: Callable[[object], InorderError]
    ) -> None:
        self.kind, self._refuse = kind, refuse
        with building:
            self._decode = msgspec.msgpack.Decoder(kind, dec_hook=hook).decode

    def read(self, payload: Any) -> Any:
        try:
            return self._decode(payload)
        except msgspec.ValidationError as error:
            _raise_own(error)
            first = str(error)  # the error itself would keep all data read so far
        except TROUBLE as error:
            raise self._refuse(error) from None
        return self._read_known(payload, first)

    def _read_known(self, payload: Any, first: str) -> Any:
        """Reads a newer release's payload, without unknown fields."""
        collects = gc.isenabled()
        gc.disable()  # a deeply nested payload takes the whole stack, which leaves no room for finalizers
        try:
            plain = msgspec.msgpack.decode(payload)
            known = _known(plain, msgspec.inspect.type_info(self.kind))
            if known != plain:
                return self._decode(encode(known))
        except msgspec.ValidationError as error:
            _raise_own(error)
            raise self._refuse(error) from None
        except TROUBLE as error:
            raise self._refuse(error) from None
        finally:
            if collects:
                gc.enable()
        raise self._refuse(first)


TROUBLE: Final = (msgspec.MsgspecError, ValueError, RecursionError, OverflowError, TypeError)


def _refused(error: object) -> WireError:
    return WireError(f"the other side of the connection has sent something that is not allowed: {error}")


def _raise_own(error: BaseException) -> None:
    """Raises the error of the constructor that has refused a value, if there is one."""
    if isinstance(error.__cause__, InorderError):
        raise error.__cause__


def _known(plain: Any, kind: Any) -> Any:
    """Returns the plain value without fields at the end of records that their type lacks."""
    mi = msgspec.inspect
    if isinstance(kind, mi.UnionType):
        return next((found for one in kind.types if (found := _known(plain, one)) != plain), plain)
    if isinstance(plain, list):
        if isinstance(kind, mi.NamedTupleType):
            return [_known(one, field.type) for one, field in zip(plain, kind.fields, strict=False)]
        if isinstance(kind, mi.TupleType) and len(plain) == len(kind.item_types):
            return [_known(one, member) for one, member in zip(plain, kind.item_types, strict=True)]
        if isinstance(kind, mi.CollectionType):
            return [_known(one, kind.item_type) for one in plain]
    if isinstance(plain, dict):
        if isinstance(kind, mi.DataclassType):
            members = {field.encode_name: field.type for field in kind.fields}
            return {name: _known(one, members[name]) for name, one in plain.items() if name in members}
        if isinstance(kind, mi.DictType):
            return {name: _known(one, kind.value_type) for name, one in plain.items()}
    return plain


# ---- calls


@functools.cache
def _shape(verb: str) -> tuple[tuple[str, ...], Mapping[str, Any]]:
    """Returns the arguments of a verb that travel, by position, and the defaults of those that have one."""
    if verb not in VERBS:
        raise WireError(f"there is no verb {written(verb)}")
    parameters = inspect.signature(getattr(Store, verb)).parameters.values()
    stays = ("self", *FILLED_IN.get(verb, ()))
    travel = [one for one in parameters if one.name not in stays]
    defaults = {one.name: one.default for one in travel if one.default is not one.empty}
    return tuple(one.name for one in travel), defaults


@functools.cache
def _arguments(verb: str) -> WireReader:
    names, defaults = _shape(verb)
    hints = typing.get_type_hints(getattr(Store, verb))
    kind: Any = NamedTuple(verb, [(name, _field(name, hints[name])) for name in names])  # type: ignore[misc]
    kind.__new__.__defaults__ = tuple(defaults.values())
    kind._field_defaults = dict(defaults)

    def refuse(fault: object) -> InorderError:
        return ArgumentError(f"the arguments of {verb} must have its types: {named(fault, names)}", argument=verb)

    return WireReader(kind, _of_call, refuse)


@functools.cache
def _answer(verb: str) -> WireReader:
    assert verb in VERBS, verb
    returned = typing.get_type_hints(getattr(Store, verb))["return"]
    return WireReader(_wired(returned, IN_ANSWERS), _of_answer, _refused)


IN_ANSWERS: Final[Mapping[Any, Any]] = {**IN_BOTH, GetOutcome: GotRows}


@functools.cache
def _queue_at(verb: str) -> int | None:
    """The index of the argument that names an existing queue, if there is one."""
    names, _ = _shape(verb)
    wanted = "name" if verb in BY_NAME else "queue"
    return names.index(wanted) if wanted in names else None


BY_NAME: Final = frozenset("queue status alter_queue delete_queue clear_queue retry_now".split())
CALL: Final = WireReader(tuple[str, msgspec.Raw], _of_call, _refused)


def encode_call(verb: str, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> bytes:
    """Writes a call: the verb, and its arguments by position up to the last given one, without `owner`.

    Raises: ArgumentError, if an argument has a value that cannot be sent; UnknownQueue 2085, for a queue whose name
    cannot.
    """
    values = list(arguments)
    if keywords:
        names, defaults = _shape(verb)
        rest = names[len(values) :]
        unknown = keywords.keys() - set(rest)
        assert not unknown, unknown
        last = max(rest.index(name) for name in keywords)
        values += [keywords[name] if name in keywords else defaults[name] for name in rest[: last + 1]]
    at = _queue_at(verb)
    if at is not None and at < len(values) and not (isinstance(values[at], str) and is_storable(values[at])):
        raise UnknownQueue(f"there is no queue {written(values[at])}", queue=values[at], nearest=[])
    try:
        return encode((verb, values))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ArgumentError(f"an argument of {verb} must have a sendable value: {error}", argument=verb) from error


def _staged(request: StageRequest) -> StageRequest:
    """The rows with transmissions as pairs."""
    if "transmission" not in request.columns:
        return request
    sent = [tuple(one) if type(one) is list else one for one in request.columns["transmission"]]
    return request._replace(columns={**request.columns, "transmission": sent})


def _put(request: PutRequest) -> PutRequest:
    rows: Sequence[Any] = request.messages
    try:
        return request._replace(messages=[one if type(one) is bytes else message_of_call(one) for one in rows])
    except InorderError:
        raise
    except TROUBLE as error:
        raise ArgumentError(f"the messages of put must have fields of their types: {error}", argument="put") from None


def _checked(request: T) -> T:
    _check_numbers("request", request)
    return request


FINISHED: Final[Mapping[str, Callable[[Any], Any]]] = {
    "put": _put,
    "stage": _staged,
    "create_queue": _defined,
    "browse_and_lock": _checked,
    "one_message": _checked,
    "look": _checked,
}
"""Further steps for the only argument of a verb, where its types do not suffice."""


def _read(payload: bytes) -> tuple[str, Any]:
    verb, raw = CALL.read(payload)
    _shape(verb)
    return verb, _arguments(verb).read(raw)


GET: Final = encode(("get", ()))[:-1]
AGAIN_MAX: Final = 1_024  # bytes
_read_again = functools.lru_cache(maxsize=256)(_read)  # a program gets in the same way again and again


def decode_call(payload: bytes) -> tuple[str, dict[str, Any]]:
    """Reads a call: the verb, and its arguments by name, without `owner`.

    Raises: WireError, if this is no call or there is no such verb; ArgumentError, for arguments of other types or out
    of their ranges; the errors of the constructors of options and messages (OptionsError, MatchError, CallerError
    2027).
    """
    verb, read = (_read_again if payload.startswith(GET) and len(payload) <= AGAIN_MAX else _read)(payload)
    arguments = read._asdict()
    finish = FINISHED.get(verb)
    if finish is not None:
        for name, value in arguments.items():
            arguments[name] = finish(value)
    return verb, arguments


# ---- answers


def decode_answer(verb: str, payload: bytes) -> Any:
    """Reads the answer of a verb. Raises: WireError."""
    value = _answer(verb).read(payload)
    if isinstance(value, GotRows):
        return _outcome(value)
    if verb == "browse_page":
        return list(map(_outcome, value))
    if isinstance(value, BulkPage):
        return _page(value)
    if verb == "read_stretch":
        page, after = value
        return _page(page), after
    return value


def _outcome(read: GotRows) -> GetOutcome:
    return GetOutcome(messages_of_answer(read.messages), *read[1:])


def _page(page: BulkPage) -> BulkPage:
    """Adds to a page the columns that an older release lacks, and its transmissions."""
    messages, shared, columns = page.messages, page.shared, page.columns
    if not columns.keys().isdisjoint(shared) or any(len(one) != messages for one in columns.values()):
        raise WireError(f"a page must have each column once, with {messages:,} values")
    for name in BULK_COLUMNS:
        if name not in shared and name not in columns:
            shared[name] = NONE.get(name, GIVEN[name].default) if name in GIVEN else None
    try:
        if "transmission" in columns:
            columns["transmission"] = converted(columns["transmission"], list[Transmission | None])
        else:
            shared["transmission"] = converted(shared["transmission"], Transmission | None)
    except msgspec.ValidationError as error:
        raise _refused(error) from None
    return page


# ---- errors

ERRORS: Final[Mapping[str, type[InorderError]]] = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, InorderError)
} | {WireError.__name__: WireError}
KNOWN: Final = (tuple, set, frozenset, UniqueId, Place, Program, Transmission, Reason)
"""The types of data of errors that are not plain; the code on the wire is the index in this list."""


class ErrorOnWire(NamedTuple):
    """An error: the names of its class and the bases of that, nearest first."""

    names: list[str]
    text: str
    reason: int
    data: dict[str, Any]


def _data(value: Any) -> Any:
    """Returns a value of an error's data in its form on the wire; other types become text."""
    if type(value) in KNOWN:
        plain = int(value) if type(value) is Reason else [_data(one) for one in value]
        return msgspec.msgpack.Ext(KNOWN.index(type(value)), encode(plain))
    if isinstance(value, Mapping):
        return {name if is_storable(name) else written(name): _data(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_data(one) for one in value]
    try:
        encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return written(value)
    return value


def _extended(code: int, content: memoryview) -> Any:
    if not 0 <= code < len(KNOWN):
        return None
    kind = KNOWN[code]
    found = msgspec.msgpack.decode(content, ext_hook=_extended)
    return converted(found, kind)


ERROR: Final = msgspec.msgpack.Decoder(ErrorOnWire, ext_hook=_extended)


def encode_error(error: InorderError) -> bytes:
    """Writes an error: its class, text, reason and data."""
    names = [kind.__name__ for kind in type(error).__mro__ if issubclass(kind, InorderError)]
    return encode((names, str(error.args[0]), int(error.reason), _data(error.data)))


def decode_error(payload: bytes) -> InorderError:
    """Reads an error. Its class is the first of the named classes that this release has.

    Raises: WireError.
    """
    try:
        sent = ERROR.decode(payload)
    except TROUBLE as error:
        raise _refused(error) from None
    kind = next((ERRORS[name] for name in sent.names if name in ERRORS), InorderError)
    found = kind.__new__(kind, bounded(sent.text))
    found.data = sent.data
    if sent.reason in REASONS and sent.reason != kind.reason:
        found.reason = Reason(sent.reason)
    return found


REASONS: Final = frozenset(map(int, Reason))
