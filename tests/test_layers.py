"""Imports go down the layers only, without cycles, and what is pure stays so.

The checks read the syntax trees of the files under `src/inorder`; nothing is imported. Each returns a list of
complaints, and a complaint says what to do. The last tests feed the checks small texts that must be refused.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"

# A file imports from its own layer and from those above it. A name stands for a file or for a whole package.
LAYERS = (
    ("reasons", "errors", "locks", "life", "streams"),
    ("properties", "kinds"),
    ("field_checks",),
    ("message",),
    ("options",),
    ("attribute",),
    ("attributes", "process_attributes", "channel_attributes", "selecting"),
    ("rules",),
    ("clock",),
    ("stores",),
    ("events", "housekeeping", "callers", "programs"),
    ("secret", "services"),
    ("session", "unit_of_work", "leases"),
    ("keywords", "browsing", "confirming"),
    ("handle",),
    ("groups", "bulk", "operating", "listening", "defining", "processes", "users", "acts"),
    ("requesting", "dead"),
    ("work",),
    ("lending",),
    ("manager", "signatures", "upgrading"),
    ("",),  # inorder/__init__.py: gathers the public names, so it may import anything
    (
        "passwords",
        "across",
        "by_hand",
        "trigger_monitor",
        "dead_letter_handler",
        "labels",
        "channels",
        "formats",
        "mqsc",
        "integrations",
    ),
    ("arrow",),
    ("spark",),
    ("aio",),
    ("server",),
    ("testing", "demo", "cli", "__main__"),
)
LAYER_OF = {name: number for number, names in enumerate(LAYERS) for name in names}

# The same inside `stores`: from the words over the verbs to the stores that are made of them. What is imported for its
# type alone may stand later.
STORES = (
    ("tables", "points", "changes", "gathering", "damage", "migrations"),
    ("queued", "records", "views"),
    ("bulk_page",),
    ("surveying", "looking", "telemetry"),
    ("bulk_protocol",),
    ("protocol", "backend"),
    ("definitions", "waiting"),
    ("process", "entries"),
    ("holders",),
    ("queue",),
    ("entering", "ahead"),
    ("verb",),
    ("arriving", "catalog", "waits", "putkeys"),
    ("delivering",),
    ("reports", "triggering"),
    ("settling", "dead_letters"),
    ("connections", "confirming", "putting", "reading", "staging"),
    ("claiming", "objects", "receiving", "leasing", "people", "expiring"),
    ("carriers",),
    ("operator",),
    ("bulk", "sending", "paging"),
    ("getting",),
    ("store",),
    ("memory", "sql"),
    ("sqlite", "postgresql"),
)
STORE_LAYER_OF = {name: number for number, names in enumerate(STORES) for name in names}
# They know nothing of each other.
APART = {("memory", "sql"), ("sql", "memory"), ("sqlite", "memory"), ("postgresql", "memory"),
         ("sqlite", "postgresql"), ("postgresql", "sqlite")}  # fmt: skip

# Pure: the rules, and the words of the stores.
PURE = (
    "inorder.rules",
    *(f"inorder.stores.{name}" for name in "tables queued records bulk_page views surveying looking".split()),
)
# What they must not touch: clocks, randomness, files, the network, other threads and processes.
IMPURE = frozenset(
    "asyncio datetime io logging multiprocessing os pathlib random secrets shutil signal socket sqlite3 "
    "subprocess tempfile threading time uuid".split()
)
# What may be imported inside a function: it loads a library that most programs do without, or is a demonstration.
LOADED_WHEN_NEEDED = frozenset(
    {
        "inorder.stores.sqlite",
        "inorder.stores.postgresql",
        "inorder.testing.schemas",
        "inorder.arrow.streams",
        "inorder.spark.jobs.charts",
        "inorder.integrations.prometheus",
        "inorder.integrations.prometheus_server",
        "inorder.server.certificates",
        "inorder.server.renewing",
        "inorder.server.running",
        "inorder.server.settings",
        "inorder.secret",
        "inorder.demo",
        "inorder.work.worker",
        "inorder.demo.files",
    }
)
# The one file that imports the demonstrations: their command, when it runs.
SHOWS_THE_DEMONSTRATIONS = "inorder.cli.showing"
IMPURE_CALLS = frozenset({"open", "input", "print"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A file of the package: its dotted name and its syntax tree."""

    name: str
    tree: ast.Module
    is_package: bool

    @property
    def part(self) -> str:
        """The name under `inorder` that decides the layer: "" for `inorder` itself."""
        return self.name.partition(".")[2].partition(".")[0]

    @property
    def layer(self) -> int:
        return LAYER_OF[self.part]

    @property
    def store_part(self) -> str | None:
        """As `part`, of a file inside `stores`; "" for the package itself."""
        return store_part_of(self.name)

    @property
    def package(self) -> str:
        return self.name if self.is_package else self.name.rpartition(".")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """One imported module, and where."""

    target: str
    line: int
    in_function: bool


def read_module(path: Path) -> Module:
    is_package = path.name == "__init__.py"
    parts = path.relative_to(SOURCE).with_suffix("").parts
    name = ".".join(parts[:-1] if is_package else parts)
    return Module(name=name, tree=ast.parse(path.read_text(encoding="utf-8"), str(path)), is_package=is_package)


def imports_of(module: Module, known: frozenset[str]) -> Iterator[Import]:
    """Every import statement, also those under TYPE_CHECKING."""
    for node, in_function in import_statements(module):
        for target in targets_of(node, module, known):
            yield Import(target=target, line=node.lineno, in_function=in_function)


@cache
def import_statements(module: Module) -> list[tuple[ast.Import | ast.ImportFrom, bool]]:
    return [(node, inside) for node, inside in walk(module.tree) if isinstance(node, ast.Import | ast.ImportFrom)]


def walk(node: ast.AST, *, in_function: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Every node below, and whether it stands inside a function."""
    yield node, in_function
    inside = in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    for child in ast.iter_child_nodes(node):
        yield from walk(child, in_function=inside)


def targets_of(node: ast.Import | ast.ImportFrom, module: Module, known: frozenset[str]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    else:
        origin = absolute_origin(node, module)
        for alias in node.names:
            # `from inorder import message` depends on that module, not on the package around it.
            submodule = f"{origin}.{alias.name}"
            yield submodule if submodule in known else origin


def absolute_origin(node: ast.ImportFrom, module: Module) -> str:
    if node.level == 0:
        return node.module or ""
    parts = module.package.split(".")
    parts = parts[: len(parts) - node.level + 1]
    return ".".join([*parts, node.module] if node.module else parts)


def is_ours(target: str) -> bool:
    return target.partition(".")[0] == "inorder"


def misplaced_files(modules: Iterable[Module]) -> list[str]:
    return [
        f"{module.name} has no layer. Give {module.part!r} its place in LAYERS, tests/test_layers.py."
        for module in modules
        if module.part not in LAYER_OF
    ]


def imports_against_the_layers(modules: Iterable[Module]) -> list[str]:
    modules = list(modules)
    known = frozenset(module.name for module in modules)
    return [
        f"{module.name}, line {found.line}: imports {found.target}, which lies in a later layer. "
        "Move what both need into an earlier file, or pass it in as an argument."
        for module in modules
        if module.part  # inorder/__init__.py may import anything
        for found in imports_of(module, known)
        if is_ours(found.target) and LAYER_OF[part_of(found.target)] > module.layer
    ]


def part_of(target: str) -> str:
    """As Module.part, for a name that is imported: a name that the package lacks is mypy's to report."""
    part = target.partition(".")[2].partition(".")[0]
    return part if part in LAYER_OF else ""


def store_part_of(target: str) -> str | None:
    """The name under `inorder.stores` that decides the layer there; None: it is not of the stores."""
    _, part, *names = [*target.split("."), "", ""]
    return names[0] if target.startswith("inorder.stores") and part == "stores" else None


def misplaced_files_of_stores(modules: Iterable[Module]) -> list[str]:
    return [
        f"{module.name} has no layer. Give {module.store_part!r} its place in STORES, tests/test_layers.py."
        for module in modules
        if module.store_part and module.store_part not in STORE_LAYER_OF
    ]


def imports_against_the_layers_of_stores(modules: Iterable[Module]) -> list[str]:
    modules = list(modules)
    known = frozenset(module.name for module in modules)
    return [
        f"{module.name}, line {found.line}: imports {found.target}, which lies in a later layer of the stores, or is "
        "of another store. Move what both need into an earlier file, or pass it in as an argument."
        for module in modules
        if module.store_part
        for found in imports_of(module, known)
        if not is_earlier(module.store_part, store_part_of(found.target))
    ]


def is_earlier(part: str, imported: str | None) -> bool:
    """Whether a file in this part of the stores may import that part."""
    if not imported or (part, imported) in APART:
        return not imported
    return STORE_LAYER_OF.get(imported, -1) <= STORE_LAYER_OF[part]


def imports_inside_functions(modules: Iterable[Module]) -> list[str]:
    modules = list(modules)
    known = frozenset(module.name for module in modules)
    return [
        f"{module.name}, line {found.line}: imports {found.target} inside a function. Import it at the top; "
        "if that makes a cycle, a noun is missing: give what both files need a file of its own."
        for module in modules
        for found in imports_of(module, known)
        if is_ours(found.target) and found.in_function and found.target not in LOADED_WHEN_NEEDED
    ]


def imports_of_the_demonstrations(modules: Iterable[Module]) -> list[str]:
    modules = list(modules)
    known = frozenset(module.name for module in modules)
    return [
        f"{module.name}, line {found.line}: imports {found.target}. Only {SHOWS_THE_DEMONSTRATIONS} may, inside the "
        "function that is their command. Move what both need out of inorder/demo."
        for module in modules
        if module.part != "demo"
        for found in imports_of(module, known)
        if is_ours(found.target)
        and part_of(found.target) == "demo"
        and not (module.name == SHOWS_THE_DEMONSTRATIONS and found.in_function)
    ]


def import_cycles(modules: Iterable[Module]) -> list[str]:
    modules = list(modules)
    known = frozenset(module.name for module in modules)
    graph = {
        module.name: {found.target for found in imports_of(module, known) if is_ours(found.target)}
        for module in modules
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [f"{' <- '.join(error.args[1])}: a cycle. Give what these files share a file of its own."]
    return []


def impure_files(modules: Iterable[Module]) -> list[str]:
    return [complaint for module in modules if module.name.startswith(PURE) for complaint in impurities(module)]


def impurities(module: Module) -> Iterator[str]:
    for found in imports_of(module, frozenset()):
        if found.target.partition(".")[0] in IMPURE:
            yield (
                f"{module.name}, line {found.line}: imports {found.target}. Rules, and the words of the "
                "stores, have no I/O, clock or randomness: let the caller pass the value in."
            )
    for node, _ in walk(module.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IMPURE_CALLS:
            yield f"{module.name}, line {node.lineno}: calls {node.func.id}(). Its caller may."


@pytest.fixture(scope="module")
def modules() -> list[Module]:
    return [read_module(path) for path in sorted(SOURCE.rglob("*.py"))]


def complain(complaints: list[str]) -> None:
    assert not complaints, "\n" + "\n".join(complaints)


def test_every_file_has_a_layer(modules: list[Module]) -> None:
    assert modules, f"no files under {SOURCE}: correct SOURCE in tests/test_layers.py"
    complain(misplaced_files(modules))


def test_a_file_imports_only_from_its_own_layer_and_those_above(modules: list[Module]) -> None:
    complain(imports_against_the_layers(module for module in modules if module.part in LAYER_OF))


def test_inside_the_stores_too(modules: list[Module]) -> None:
    complain(misplaced_files_of_stores(modules))
    complain(imports_against_the_layers_of_stores(modules))
    assert STORE_LAYER_OF.keys() <= {module.store_part for module in modules}, "STORES names what is gone"


def test_no_import_of_ours_hides_inside_a_function(modules: list[Module]) -> None:
    complain(imports_inside_functions(modules))


def test_nothing_imports_the_demonstrations_but_their_command(modules: list[Module]) -> None:
    complain(imports_of_the_demonstrations(modules))


def test_imports_make_no_cycle(modules: list[Module]) -> None:
    complain(import_cycles(modules))


def test_rules_and_words_touch_neither_io_nor_clock_nor_randomness(modules: list[Module]) -> None:
    complain(impure_files(modules))


# The checks themselves: each must refuse what it is there to refuse.


def module_of(name: str, text: str, *, is_package: bool = False) -> Module:
    return Module(name=name, tree=ast.parse(text), is_package=is_package)


EMPTY = [module_of(f"inorder.{name}", "") for name in ("errors", "message", "options", "handle", "manager")]
DEMO = [module_of(f"inorder.{name}", "") for name in ("demo", "demo.files", "demo.screen")]


@pytest.mark.parametrize(
    "text",
    [
        "import inorder.manager",
        "from inorder.manager import QueueManager",
        "from inorder import manager",
        "from inorder import connect",
        "from . import manager",
        "from .manager import QueueManager",
        "if TYPE_CHECKING:\n    from inorder.manager import QueueManager",
        "def late():\n    from inorder.manager import QueueManager",
    ],
)
def test_the_check_refuses_an_import_from_a_later_layer(text: str) -> None:
    assert imports_against_the_layers([*EMPTY, module_of("inorder.options", text)])


@pytest.mark.parametrize("text", ["from inorder.message import Message", "from .. import errors", "import enum"])
def test_the_check_accepts_an_import_from_an_earlier_layer(text: str) -> None:
    assert not imports_against_the_layers([*EMPTY, module_of("inorder.rules.ordering", text)])


def test_the_check_refuses_an_unknown_file() -> None:
    assert misplaced_files([module_of("inorder.helpers", "")])


def test_the_check_refuses_an_import_inside_a_method() -> None:
    text = "class Handle:\n    def get(self):\n        from .message import Message"
    assert imports_inside_functions([*EMPTY, module_of("inorder.handle", text)])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("inorder", "from . import demo"),
        ("inorder.manager", "from .demo.screen import Screen"),
        ("inorder.testing.runner", "from .. import demo"),
        ("inorder.spark.jobs.audit", "def late():\n    import inorder.demo.files"),
        ("inorder.cli.app", "def late():\n    from .. import demo"),
        ("inorder.cli.showing", "from .. import demo"),
    ],
)
def test_the_check_refuses_an_import_of_the_demonstrations(name: str, text: str) -> None:
    assert imports_of_the_demonstrations([*DEMO, module_of(name, text, is_package=name == "inorder")])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("inorder.cli.showing", "def order():\n    from .. import demo\n    from ..demo import files"),
        ("inorder.demo.lives", "from .screen import Screen"),
    ],
)
def test_the_check_accepts_the_command_that_shows_them(name: str, text: str) -> None:
    assert not imports_of_the_demonstrations([*DEMO, module_of(name, text)])


def test_the_check_finds_a_cycle_in_one_layer() -> None:
    pair = [
        module_of("inorder.handle", "from . import browsing"),
        module_of("inorder.browsing", "import inorder.handle"),
    ]
    assert import_cycles(pair)


def test_the_check_finds_a_cycle_of_types() -> None:
    types = "if TYPE_CHECKING:\n    from . import {}"
    pair = [
        module_of("inorder.stores.entering", types.format("verb")),
        module_of("inorder.stores.verb", "from . import entering"),
    ]
    assert import_cycles(pair)
    assert imports_against_the_layers_of_stores(pair)


STORE_FILES = [
    module_of(f"inorder.stores.{name}", "") for name in ("tables", "verb", "store", "memory.bulk", "sql.bulk", "sqlite")
]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("inorder.stores.tables", "from .verb import Verb"),
        ("inorder.stores.verb", "from . import store"),
        ("inorder.stores.store", "from .memory.bulk import MemoryBulk"),
        ("inorder.stores.sql.records", "from ..memory import bulk"),
        ("inorder.stores.sql.records", "from ..sqlite import SqliteStore"),
        ("inorder.stores.memory.host", "from ..sql.bulk import SqlBulk"),
        ("inorder.stores.sqlite.host", "import inorder.stores.memory.bulk"),
    ],
)
def test_the_check_refuses_an_import_from_a_later_layer_of_the_stores(name: str, text: str) -> None:
    assert imports_against_the_layers_of_stores([*STORE_FILES, module_of(name, text)])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("inorder.stores.verb", "from .tables import UnitRow\nfrom ..errors import Reason"),
        ("inorder.stores.sqlite.host", "from ..sql.bulk import SqlBulk\nfrom .. import store"),
    ],
)
def test_the_check_accepts_an_import_from_an_earlier_layer_of_the_stores(name: str, text: str) -> None:
    assert not imports_against_the_layers_of_stores([*STORE_FILES, module_of(name, text)])


def test_the_check_refuses_an_unknown_file_of_the_stores() -> None:
    assert misplaced_files_of_stores([module_of("inorder.stores.helpers", "")])


@pytest.mark.parametrize(
    "text",
    ["import time", "from os import path", "import os.path", "def read():\n    import random", "open('x')"],
)
@pytest.mark.parametrize("name", ["inorder.rules.ordering", "inorder.stores.queued"])
def test_the_check_refuses_an_impure_rule_or_word(name: str, text: str) -> None:
    assert impure_files([module_of(name, text)])
