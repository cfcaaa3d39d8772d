"""The arguments of a task: its parameters as a type, the arguments as a JSON object in a message, and back.

    def pack(order_id: int, note: str = "") -> None        {"order_id": 17}

`msgspec` reads JSON as exactly the types of the annotations. The sender reads the JSON that it has just written, so it
refuses all arguments that a worker would refuse. Arguments are data: nothing in a message names a class or a function.

    an argument is missing           its default applies; without one the arguments do not match
    there is an additional one       the arguments do not match: a worker must not ignore an argument
    no annotation                    any value of JSON
"""

from __future__ import annotations

import inspect
import json
import re
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import SimpleNamespace
from typing import Any, Final

from ..client.manager import QueueManager
from ..errors import ArgumentError, bad_argument
from ..model.message import Got, Message
from ..support.advice import not_installed
from ..support.decoders import building

PUT_KEYWORDS: Final = ("delay", "expiry", "priority", "deduplicate", "keep")  # of a put, so no parameters of a task
MESSAGE_WORD: Final = re.compile(r"\b(Message|Got)\b")
BY_POSITION_OR_NAME: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class TaskArguments:
    """The parameters of a task's function.

    Attributes:
        names: the names of the parameters that a message gives.
        connection: the name of the parameter that takes the connection, annotated as `QueueManager`; "": none.
        message: the name of the parameter that takes the message itself, annotated as `Message`; "": none.

    Raises ArgumentError if an argument could not be given by its name in JSON; CallerError without `msgspec`.
    """

    def __init__(self, function: Callable[..., object], *, is_async: bool) -> None:
        library = _library()
        self.connection = self.message = ""
        hints, fields, kept = _hints(function), list[Any](), list[inspect.Parameter]()
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.kind not in BY_POSITION_OR_NAME:
                raise bad_argument("function", function, f"a function that takes {parameter} by its name")
            hint = hints.get(name, Any)
            if isinstance(hint, type) and issubclass(hint, Message):
                self.message = name
            elif hint in _connections():
                if (hint is QueueManager) == is_async:
                    need = "inorder.aio.QueueManager" if is_async else "inorder.QueueManager"
                    raise bad_argument("function", function, f"annotated with {need} at {name}")
                self.connection = name
            elif name in PUT_KEYWORDS:
                raise bad_argument("function", function, f"without a parameter {name}, which is an option of a put")
            else:
                kept.append(parameter)
                optional = parameter.default is not inspect.Parameter.empty
                fields.append((name, hint | library.UnsetType, library.UNSET) if optional else (name, hint))
        self.names: Sequence[str] = [one.name for one in kept]
        self._signature = inspect.Signature(kept)
        self._defaults = {one.name: one.default for one in kept if one.default is not inspect.Parameter.empty}
        try:
            struct = library.defstruct("arguments", fields, kw_only=True, forbid_unknown_fields=True)
            with building:
                self._decoder = library.json.Decoder(struct, dec_hook=_from_json)
        except (TypeError, ValueError) as error:
            raise bad_argument("function", function, f"annotated with types that JSON can express ({error})") from None
        self._encoder = library.json.Encoder(enc_hook=_to_json)
        self._unset, self._wrong = library.UNSET, (library.MsgspecError, ValueError, TypeError, RecursionError)

    def encode(self, given: Sequence[Any], named: Mapping[str, Any]) -> bytes:
        """The arguments of a call as JSON, in UTF-8. Raises ArgumentError if they do not match the parameters."""
        try:
            bound = self._signature.bind(*given, **named).arguments
        except TypeError as error:
            names = ", ".join(self.names) or "none"
            raise _mismatch(f"{error}; the parameters are {names}", dict(named)) from None
        try:
            body: bytes = self._encoder.encode(bound)
            self._decoder.decode(body)
        except self._wrong as error:
            raise _mismatch(str(error), bound) from None
        return body

    def decode(self, body: bytes) -> dict[str, Any]:
        """The arguments in a message, by name. Raises ArgumentError if they do not match the parameters."""
        try:
            found = self._decoder.decode(body)
        except self._wrong as error:
            raise _mismatch(str(error), body) from None
        return {name: value for name in self.names if (value := getattr(found, name)) is not self._unset}

    def result(self, value: object) -> Any:
        """The value that a function has returned, as JSON values. Raises WrongResult if JSON cannot express it."""
        try:
            return json.loads(self._encoder.encode(value))
        except self._wrong as error:
            raise WrongResult(f"the result of the task cannot be JSON: {error}") from None

    def default_of(self, name: str) -> Any:
        """The default of a parameter as a value of JSON, or as a text if it is none; None if it has none."""
        default = self._defaults.get(name)
        try:
            return json.loads(self._encoder.encode(default))
        except self._wrong:
            return str(default)


class WrongResult(TypeError):
    """A task whose result is to be kept has returned a value that JSON cannot express."""


def _mismatch(why: str, value: object) -> ArgumentError:
    text = f"the arguments do not match the task: {why[:1].lower()}{why[1:]}"
    return ArgumentError(text, argument="arguments", value=value)


def _library() -> Any:
    """Loads `msgspec`. Raises CallerError if it is not installed."""
    try:
        return import_module("msgspec")
    except ModuleNotFoundError as missing:
        raise not_installed("tasks with arguments need a library", "work", missing) from missing


def _to_json(value: Any) -> Any:
    """A value that `msgspec` does not know: a model of pydantic. Raises TypeError for any other."""
    if hasattr(type(value), "model_validate"):
        return value.model_dump(mode="json")
    raise TypeError(f"JSON cannot express an object of type {type(value).__qualname__}")


def _from_json(kind: Any, value: Any) -> Any:
    """A model of pydantic. Raises TypeError for any other type; ValueError if the value is not one."""
    if hasattr(kind, "model_validate_json"):  # as JSON, so that a text may be a date
        return kind.model_validate_json(json.dumps(value))
    raise TypeError(f"JSON cannot express an object of type {getattr(kind, '__qualname__', kind)}")


def _connections() -> tuple[object, ...]:
    """The classes of connections; the class of asyncio only if the program has imported it."""
    return QueueManager, sys.modules.get("inorder.aio", SimpleNamespace(QueueManager=QueueManager)).QueueManager


def _hints(function: Callable[..., object]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception as error:
        raise bad_argument(
            "function", function, f"annotated with types that are defined above it ({type(error).__name__}: {error})"
        ) from error


def takes_messages(function: Callable[..., object], *, has_queue: bool) -> bool:
    """Whether a function takes messages, not arguments.

    Its first parameter is annotated as a message, or as a list or iterator of messages; or it has no annotation, and
    the function was registered for a named queue.
    """
    try:
        first = next(iter(inspect.signature(function).parameters.values()), None)
    except ValueError:  # a built-in function without a signature, as `print` is before Python 3.11
        return has_queue
    if first is None:
        return False
    if first.annotation is inspect.Parameter.empty:
        return has_queue
    try:
        hint = typing.get_type_hints(function).get(first.name, first.annotation)
    except Exception:  # noqa: BLE001 - a type that only type checkers know, an object that can be called
        hint = first.annotation
    if isinstance(hint, str):
        return MESSAGE_WORD.search(hint) is not None
    return _has_message(hint) or (has_queue and hint in (Any, object))


def _has_message(hint: Any) -> bool:
    is_message = isinstance(hint, type) and issubclass(hint, Message | Got)
    return is_message or any(_has_message(one) for one in typing.get_args(hint))
