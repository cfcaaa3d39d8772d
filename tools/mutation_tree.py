"""Finds what can be broken in Python code, in its syntax tree: a change for each decision of the code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

TURNED: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
# The reverse of these is their opposite: a mutant with `not` would be the same.
OPPOSITES = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)
SWAPPED = {"min": "max", "max": "min"}
FOR_EYES = ("__repr__", "__str__")

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Change(NamedTuple):
    """One change to a file.

    Args:
        function: the function that contains it, with its class; in SQL the statement.
        what, how: the kind of decision, counted in the function for the name of the mutant, and the change.
        start, end: the text to replace, in characters.
        new: its replacement.
    """

    function: str
    what: str
    how: str
    start: int
    end: int
    new: str


def changes(source: str) -> Iterator[Change]:
    """All changes to a module that are looked for, in the order of the tree."""
    yield from _Tree(source).of_children(ast.parse(source), "top level", None)


class _Tree:
    def __init__(self, source: str) -> None:
        self._source = source
        self._lines = source.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def of_children(self, node: ast.AST, function: str, returns: ast.expr | None) -> Iterator[Change]:
        for child in ast.iter_child_nodes(node):
            yield from self._of(child, function, returns)

    def _of(self, node: ast.AST, function: str, returns: ast.expr | None) -> Iterator[Change]:
        """The changes of a node and its children; `returns` is the annotation of the function's result."""
        if isinstance(node, ast.Assert | ast.Raise | ast.JoinedStr | ast.arg) or _is_for_types(node):
            return  # texts, and checks that can fail only if our own code is wrong
        if isinstance(node, Function | ast.ClassDef):
            inner = node.name if function == "top level" else f"{function}.{node.name}"
            if node.name not in FOR_EYES:
                yield from self._of_children_named(node, inner)
            return
        for what, how, start, end, new in self._here(node, returns):
            yield Change(function, what, how, start, end, new)
        yield from self.of_children(node, function, returns)

    def _of_children_named(self, node: Function | ast.ClassDef, name: str) -> Iterator[Change]:
        returns = node.returns if isinstance(node, Function) else None
        for default in _defaults(node):
            start, end = self._span(default)
            yield Change(name, "default", "flipped", start, end, str(not default.value))
        parts = [node.args, *node.body] if isinstance(node, Function) else node.body
        for part in parts:
            yield from self._of(part, name, returns)

    # --- each kind of node

    def _here(self, node: ast.AST, returns: ast.expr | None) -> Iterator[tuple[str, str, int, int, str]]:
        """The changes of one node alone."""
        if isinstance(node, ast.Compare):
            yield from self._of_compare(node)
        elif isinstance(node, ast.BoolOp):
            old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            start, end = self._span(node)
            yield "choice", f"{old} to {new}", start, end, self._joined(node, old, new)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield "not", "dropped", *self._span(node), f"({self._text(node.operand)})"
        elif isinstance(node, ast.If | ast.While | ast.IfExp):
            yield from self._of_test(node.test, with_always=isinstance(node, ast.If))
        elif isinstance(node, ast.comprehension):
            for test in node.ifs:
                yield from self._of_test(test, with_always=False)
        elif isinstance(node, ast.match_case) and node.guard is not None:
            yield from self._of_test(node.guard, with_always=False)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield "call", "dropped", *self._span(node), "pass"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in SWAPPED:
            yield "min or max", "swapped", *self._span(node.func), SWAPPED[node.func.id]
        elif isinstance(node, ast.Return) and node.value is not None:
            yield from self._of_return(node.value, returns)

    def _of_compare(self, node: ast.Compare) -> Iterator[tuple[str, str, int, int, str]]:
        operands = [node.left, *node.comparators]
        for operator, (left, right) in zip(node.ops, pairwise(operands), strict=True):
            old, new = TURNED[type(operator)]
            start, end = self._span(left)[1], self._span(right)[0]
            yield "comparison", f"{old} to {new}", start, end, self._source[start:end].replace(old, new, 1)
        for operand in operands:
            if isinstance(operand, ast.Constant) and type(operand.value) is int:
                yield "constant", "off by one", *self._span(operand), str(operand.value + 1)

    def _of_test(self, test: ast.expr, *, with_always: bool) -> Iterator[tuple[str, str, int, int, str]]:
        start, end = self._span(test)
        if not _is_turned_elsewhere(test):
            yield "condition", "negated", start, end, f"not ({self._source[start:end]})"
        if with_always and not any(isinstance(inner, ast.NamedExpr) for inner in ast.walk(test)):
            yield "condition", "always true", start, end, "True"

    def _of_return(self, value: ast.expr, returns: ast.expr | None) -> Iterator[tuple[str, str, int, int, str]]:
        start, end = self._span(value)
        declared = ast.unparse(returns) if returns is not None else ""
        if isinstance(value, ast.Constant) and isinstance(value.value, bool):
            yield "return", "flipped", start, end, str(not value.value)
        elif declared == "bool" and not _is_turned_elsewhere(value):
            yield "return", "negated", start, end, f"not ({self._source[start:end]})"
        elif declared.endswith("| None") and not (isinstance(value, ast.Constant) and value.value is None):
            yield "return", "to None", start, end, "None"

    def _joined(self, node: ast.BoolOp, old: str, new: str) -> str:
        """The text of a choice with each `and` or `or` replaced; between its values there is only that word."""
        start, end = self._span(node)
        parts, here = [], start
        for left, right in pairwise(node.values):
            after, before = self._span(left)[1], self._span(right)[0]
            parts += [self._source[here:after], self._source[after:before].replace(old, new, 1)]
            here = before
        return "".join([*parts, self._source[here:end]])

    # --- the text

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno or 0, node.end_col_offset or 0)

    def _at(self, line: int, octets: int) -> int:
        """A place that the tree gives in bytes of a line, in characters of the text."""
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:octets].decode())

    def _text(self, node: ast.expr) -> str:
        start, end = self._span(node)
        return self._source[start:end]


def _defaults(node: Function | ast.ClassDef) -> list[ast.Constant]:
    """True or False as a default: of parameters, and of the fields of a class."""
    if isinstance(node, ast.ClassDef):
        values = [part.value for part in node.body if isinstance(part, ast.AnnAssign)]
    else:
        values = [*node.args.defaults, *node.args.kw_defaults]
    return [value for value in values if isinstance(value, ast.Constant) and isinstance(value.value, bool)]


def _is_turned_elsewhere(test: ast.expr) -> bool:
    """Whether another mutant already has the opposite condition."""
    if isinstance(test, ast.Compare):
        return len(test.ops) == 1 and isinstance(test.ops[0], OPPOSITES)
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)


def _is_for_types(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING"
    return isinstance(node, Function) and any(ast.unparse(mark) == "overload" for mark in node.decorator_list)
