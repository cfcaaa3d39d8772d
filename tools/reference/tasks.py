"""src/inorder/aio/calls.py and queue_calls.py: calls of connections, queues and groups, awaitable."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from functools import cache
from types import FunctionType
from typing import Final, NamedTuple

from inorder import GroupWriter, Queue, QueueManager

HEAD: Final = '''\
"""The calls of {of}, awaitable; `python -m tools.reference` writes it.

Each has the signature of its namesake, where all about it is said, and passes it on: `_call`, or `_get` if it may wait.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

'''
MAKES: Final = "from ..client import groups, queue\nfrom ..client import manager as managing\n"


class Kind(NamedTuple):
    """A class of calls.

    Args:
        calls: plain ones; `gets`: those that take options of a get, with the options that are usual.
        listed: what is an iterator there is a list here.
        get: how `_get` is declared.
    """

    name: str
    original: type
    where: str
    calls: str
    gets: dict[str, str] = {}  # noqa: RUF012 - a default of a tuple
    listed: str = ""
    get: str = ""


KINDS: Final = (
    Kind(
        "ManagerCalls",
        QueueManager,
        "managing.QueueManager",
        "put put_json put_many leave_group confirm_put confirm_get browse_and_lock unlock delete undo release_lock "
        "unique_ids commit back_out prepare reply stop close_queue create_queue create_alias create_model "
        "create_remote_queue alter_queue create_process alter_process delete_process process processes report "
        "delete_queue clear_queue queues attributes status depth inquire manager_attributes alter_manager gaps "
        "overview dropped order_view settle units waits locks connections check discard_expired backup claims "
        "finish_claims release_claims leave_claimed_group settle_staging undo_staging in_ledger last_settled end_lease "
        "create_user alter_user delete_user user users create_token token tokens revoke_token identify bury",
        {"get": "DEFAULT_GET", "get_many": "DEFAULT_GET"},
        "look acts",
        "self, method: Callable[..., T], options: GetOptions, queue: str, /, *given: object",
    ),
    Kind(
        "QueueCalls",
        Queue,
        "queue.Queue",
        "put put_many end_group browse_token resume leave_group unlock attributes status set close confirm_put "
        "confirm_get browse_and_lock unique_ids delete undo release_lock",
        {
            "get": "DEFAULT_GET",
            "get_many": "DEFAULT_GET",
            "browse_first": "BROWSE_FIRST",
            "browse_next": "BROWSE_NEXT",
            "browse_cursor": "BROWSE_FIRST",
        },
        "",
        "self, method: Callable[..., T], options: GetOptions, /, *given: object",
    ),
    Kind("GroupCalls", GroupWriter, "groups.GroupWriter", "put"),
)


def manager_page() -> str:
    """The file of the calls of connections."""
    return _page("`inorder.QueueManager`", KINDS[:1])


def queue_page() -> str:
    """The file of the calls of open queues and groups."""
    return _page("`inorder.Queue` and `GroupWriter`", KINDS[1:])


def _page(of: str, kinds: Sequence[Kind]) -> str:
    names: dict[str, set[str]] = {"..model.options": {"GetOptions", "DEFAULT_GET"}, "..client.keywords": set()}
    names["..client.keywords"] |= {"BROWSE_FIRST", "BROWSE_NEXT", "get_options"}
    names[".lanes"] = {"listed"}
    bodies = [_class(kind, names) for kind in kinds]
    checked = names.pop("typing_extensions", set())
    plain = names.pop("", set())
    imports = [f"import {', '.join(sorted(plain))}"] if plain else []
    imports += [f"from {origin} import {', '.join(sorted(found))}" for origin, found in names.items()]
    text = (
        HEAD.replace("{of}", of)
        + MAKES
        + "\n".join(imports)
        + f"\n\nif TYPE_CHECKING:\n    from typing_extensions import {', '.join(sorted(checked))}\n\n"
        + 'P = ParamSpec("P")\nT = TypeVar("T")\n\n\n'
        + "\n\n\n".join(bodies)
    )
    return _formatted(text)


def _class(kind: Kind, names: dict[str, set[str]]) -> str:
    methods = [_method(kind, name, names) for name in _names(kind)]
    abstract = [
        f"@abstractmethod\nasync def _call(self, method: Callable[Concatenate[{kind.where}, P], T], /, "
        "*given: P.args, **named: P.kwargs) -> T: ..."
    ]
    if kind.get:
        abstract.append(f"@abstractmethod\nasync def _get({kind.get}) -> T: ...")
    body = "\n\n".join([*methods, *abstract])
    doc = f'"""The calls of `inorder.{kind.original.__name__}` that are alike for tasks."""'
    return f"class {kind.name}(ABC):\n" + textwrap.indent(f"{doc}\n\n{body}", "    ")


def _names(kind: Kind) -> list[str]:
    """In the order in which the class has them, its own first."""
    wanted = {*kind.calls.split(), *kind.gets, *kind.listed.split()}
    return [name for base in kind.original.__mro__ for name in vars(base) if name in wanted and _has(kind, base, name)]


def _has(kind: Kind, base: type, name: str) -> bool:
    return vars(base)[name] is getattr(kind.original, name)


def _method(kind: Kind, name: str, names: dict[str, set[str]]) -> str:
    function: FunctionType = getattr(kind.original, name)
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(definition, ast.FunctionDef)
    assert definition.returns is not None, f"{name} says what it returns"
    for used in _used(definition):
        origin = _origins_in(function.__module__).get(used)
        if origin is not None:
            names.setdefault(origin, set()).add(used)
    returns = ast.unparse(definition.returns)
    called = f"{kind.where}.{name}"
    if name in kind.listed.split():
        called, returns = f"listed({called})", returns.replace("Iterator", "list")
    given = [*definition.args.posonlyargs, *definition.args.args][1:]
    if name in kind.gets:
        others = ", ".join(one.arg for one in given if one.arg != "options")
        keywords = definition.args.kwarg.arg if definition.args.kwarg else "{}"
        call = f"self._get({called}, get_options({keywords}, options, {kind.gets[name]}), {others})"
    else:
        by_name = [f"{one.arg}={one.arg}" for one in definition.args.kwonlyargs]
        rest = [f"**{definition.args.kwarg.arg}"] if definition.args.kwarg else []
        call = f"self._call({', '.join([called, *(one.arg for one in given), *by_name, *rest])})"
    told = (function.__doc__ or "").split("\n\n")[0].strip()
    doc = f'"""{told}"""'
    answer = "await" if returns == "None" else "return await"
    head = f"async def {name}({ast.unparse(definition.args)}) -> {returns}:\n"
    return head + textwrap.indent(f"{doc}\n{answer} {call}", "    ")


def _used(definition: ast.FunctionDef) -> Iterator[str]:
    """The names in a signature."""
    for part in (definition.args, definition.returns):
        if part is not None:
            yield from (node.id for node in ast.walk(part) if isinstance(node, ast.Name))


@cache
def _origins_in(name: str) -> dict[str, str]:
    """Where the names of a module come from, as seen from `inorder.aio`."""
    module = sys.modules[name]
    found: dict[str, str] = {}
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.ImportFrom):
            above = name.split(".")[1 : len(name.split(".")) - node.level]
            origin = f"..{'.'.join([*above, *filter(None, [node.module])])}" if node.level else str(node.module)
            found |= {alias.asname or alias.name: origin for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name: "" for alias in node.names}
    own = f"..{name.removeprefix('inorder.')}"
    return found | dict.fromkeys(_defined(module.__dict__, found), own)


def _defined(values: dict[str, object], imported: dict[str, str]) -> list[str]:
    return [name for name in values if name not in imported and not name.startswith("__")]


def _formatted(text: str) -> str:
    for arguments in (["check", "--select", "I,F401", "--fix-only", "--quiet"], ["format", "--quiet"]):
        command = [sys.executable, "-m", "ruff", *arguments, "--stdin-filename", "src/inorder/aio/calls.py", "-"]
        text = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    return text
