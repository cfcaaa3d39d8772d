"""Signatures with the keywords of calls, for `help()` and IPython.

A call that passes its keywords on declares them as `**keywords: Unpack[PutCall]`. Type checkers understand that, but
people only see two stars. This module gives each call a signature with every keyword and its default. This only affects
introspection.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from inspect import Parameter, Signature, signature, unwrap
from types import FunctionType
from typing import Any, Final, ForwardRef

from ..model.attributes import QueueAttributes
from ..model.message import Message
from ..model.options import GetOptions, OpenOptions, PutOptions

UNPACKED: Final = re.compile(r"Unpack\[(\w+)\]")
MESSAGE: Final[Mapping[str, Any]] = {name: field.default for name, field in Message.FIELDS.items()}


def _defaults(kind: Any) -> dict[str, Any]:
    return {one.name: one.default for one in fields(kind)}


# What is shown for a keyword that is not given; of other keywords nothing is to be said.
DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "Descriptor": MESSAGE,
    "PutCall": {**MESSAGE, **_defaults(PutOptions)},
    "GetKeywords": _defaults(GetOptions),
    "BrowseKeywords": _defaults(GetOptions),
    "OpenKeywords": _defaults(OpenOptions),
    "QueueKeywords": _defaults(QueueAttributes),
}


def show_keywords(*kinds: type[Any]) -> None:
    """Gives the methods of these classes, their bases' too, signatures without `**`."""
    for kind in kinds:
        for base in kind.__mro__:
            for function in vars(base).values():
                if isinstance(function, FunctionType):
                    _show_keywords(function)


def _show_keywords(function: FunctionType) -> None:
    found = [name for name, told in function.__annotations__.items() if UNPACKED.fullmatch(str(told))]
    if not found:
        return
    plain = signature(function)
    before = [one for one in plain.parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
    match = UNPACKED.fullmatch(str(function.__annotations__[found[0]]))
    assert match is not None
    known = {one.name for one in before}
    named = [one for one in _parameters(unwrap(function).__globals__[match[1]]) if one.name not in known]
    function.__signature__ = Signature([*before, *named], return_annotation=plain.return_annotation)  # type: ignore[attr-defined]


def _parameters(keywords: Any) -> Iterator[Parameter]:
    for name, told in keywords.__annotations__.items():
        annotation = told.__forward_arg__ if isinstance(told, ForwardRef) else told
        default = DEFAULTS.get(keywords.__name__, {}).get(name, ...)
        yield Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
