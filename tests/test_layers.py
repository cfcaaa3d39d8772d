"""Imports go down the layers only, without cycles, and the rules stay pure.

The checks read the syntax trees of the files under `src/inorder`; nothing is imported. Each returns a list of
complaints, and a complaint says what to do. The last tests feed the checks small texts that must be refused.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"

# A file imports from its own layer and from those above it. A name stands for a file or for a whole package.
LAYERS = (
    ("reasons", "errors"),
    ("message",),
    ("options",),
    ("attributes", "selecting"),
    ("rules",),
    ("clock",),
    ("stores",),
    ("telemetry_verbs", "telemetry"),
    ("events", "waiting", "housekeeping", "callers"),
    ("session", "unit_of_work"),
    ("keywords", "browsing", "confirming"),
    ("handle",),
    ("groups", "bulk", "operating", "listening"),
    ("manager",),
    ("",),  # inorder/__init__.py: gathers the public names, so it may import anything
    ("formats", "mqsc", "integrations"),
    ("spark",),
    ("testing", "demo", "cli", "__main__"),
)
LAYER_OF = {name: number for number, names in enumerate(LAYERS) for name in names}

# What a rule must not touch: clocks, randomness, files, the network, other threads and processes.
IMPURE = frozenset(
    "asyncio datetime io logging multiprocessing os pathlib random secrets shutil signal socket sqlite3 "
    "subprocess tempfile threading time uuid".split()
)
# What may be imported inside a function: it loads a library that most programs do without, or is a demonstration.
LOADED_WHEN_NEEDED = frozenset(
    {"inorder.stores.sqlite", "inorder.spark.jobs.charts", "inorder.demo", "inorder.demo.files"}
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
    """Every import statement, also those under TYPE_CHECKING: a type is a dependency like any other."""
    for node, in_function in walk(module.tree, in_function=False):
        for target in targets_of(node, module, known):
            yield Import(target=target, line=getattr(node, "lineno", 0), in_function=in_function)


def walk(node: ast.AST, *, in_function: bool) -> Iterator[tuple[ast.AST, bool]]:
    yield node, in_function
    inside = in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    for child in ast.iter_child_nodes(node):
        yield from walk(child, in_function=inside)


def targets_of(node: ast.AST, module: Module, known: frozenset[str]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
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


def impure_rules(modules: Iterable[Module]) -> list[str]:
    return [complaint for module in modules if module.part == "rules" for complaint in impurities(module)]


def impurities(module: Module) -> Iterator[str]:
    for found in imports_of(module, frozenset()):
        if found.target.partition(".")[0] in IMPURE:
            yield (
                f"{module.name}, line {found.line}: a rule imports {found.target}. Rules have no I/O, "
                "clock or randomness: let the caller pass the value in."
            )
    for node, _ in walk(module.tree, in_function=False):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IMPURE_CALLS:
            yield f"{module.name}, line {node.lineno}: a rule calls {node.func.id}(). Its caller may."


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


def test_no_import_of_ours_hides_inside_a_function(modules: list[Module]) -> None:
    complain(imports_inside_functions(modules))


def test_nothing_imports_the_demonstrations_but_their_command(modules: list[Module]) -> None:
    complain(imports_of_the_demonstrations(modules))


def test_imports_make_no_cycle(modules: list[Module]) -> None:
    complain(import_cycles(modules))


def test_rules_touch_neither_io_nor_clock_nor_randomness(modules: list[Module]) -> None:
    complain(impure_rules(modules))


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
        module_of("inorder.handle", "from . import waiting"),
        module_of("inorder.waiting", "import inorder.handle"),
    ]
    assert import_cycles(pair)


@pytest.mark.parametrize(
    "text",
    ["import time", "from os import path", "import os.path", "def read():\n    import random", "open('x')"],
)
def test_the_check_refuses_an_impure_rule(text: str) -> None:
    assert impure_rules([module_of("inorder.rules.ordering", text)])
