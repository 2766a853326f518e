"""From the tokens of an expression to its checked syntax tree: shape, depth, kinds of values.

Names have no kind before they have a value. simpleeval takes any value for an operand of `and` and
`or`, so a name there stands in the tree as `truth(name)`, which refuses what is no truth.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from lsmtune.errors import InputError
from lsmtune.space.expression_operations import (
    FUNCTION_VALUES,
    GUARD,
    NUMBER,
    TRUTH,
    kind_of,
    mixed,
    wrong_kind,
)
from lsmtune.space.expression_text import ExpressionText

# Each level costs a few frames of Python's stack when it is evaluated.
DEPTH_MAX = 100

_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
_EQUALITY = (ast.Eq, ast.NotEq)
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


_DEPTH_ALLOWED = f"at most {DEPTH_MAX} operations within one another"


def checked_tree(read: ExpressionText) -> tuple[ast.expr, str | None]:
    """The syntax tree, and the kind of its value (None: that of an option, known later).

    Raises `InputError`, with the column, for what is no expression of the grammar.
    """
    tree = _parsed(read)
    kind = _Checker(read).kind(tree, 1)
    guarded: ast.expr = _Guarded().visit(tree)
    return guarded, kind


def unguarded(node: ast.expr) -> ast.expr:
    """`name` for `truth(name)`, all else as it is."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == GUARD:
        return node.args[0]
    return node


class _Guarded(ast.NodeTransformer):
    def visit_BoolOp(self, node: ast.BoolOp) -> ast.BoolOp:
        self.generic_visit(node)
        node.values = [
            ast.Call(func=ast.Name(id=GUARD), args=[value], keywords=[])
            if isinstance(value, ast.Name)
            else value
            for value in node.values
        ]
        return node


def _parsed(read: ExpressionText) -> ast.expr:
    try:
        return ast.parse(read.python, mode="eval").body
    except SyntaxError as error:
        offset = (error.offset or 0) - 1
        if not 0 <= offset < len(read.python) or "never closed" in error.msg:
            end = len(read.text.rstrip()) + 1
            raise read.error("not an expression: something is missing", end) from None
        raise read.error("not an expression", read.token_at(offset).column) from None
    except (MemoryError, RecursionError):  # what a deep tree is to the parser
        why = "too deep an expression"
        raise InputError(read.source, read.field, why=why, allowed=_DEPTH_ALLOWED) from None


class _Checker:
    """Walks a tree; `kind` gives the kind of a node's value, or None where only a value tells."""

    def __init__(self, read: ExpressionText) -> None:
        self._read = read

    def kind(self, node: ast.expr, depth: int) -> str | None:
        if depth > DEPTH_MAX:
            raise self._error("too deep an expression", node, allowed=_DEPTH_ALLOWED)
        if isinstance(node, ast.Constant):
            return kind_of(node.value)
        if isinstance(node, ast.Name):
            return None
        if isinstance(node, ast.BinOp) and isinstance(node.op, _ARITHMETIC):
            return self._all((node.left, node.right), NUMBER, depth)
        if isinstance(node, ast.UnaryOp):
            wanted = TRUTH if isinstance(node.op, ast.Not) else NUMBER
            return self._all((node.operand,), wanted, depth)
        if isinstance(node, ast.BoolOp):
            return self._all(node.values, TRUTH, depth)
        if isinstance(node, ast.Compare):
            return self._comparison(node, depth)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return self._call(node, node.func.id, depth)
        raise self._error("nothing that an expression can hold", node)

    def _all(self, nodes: Iterable[ast.expr], wanted: str, depth: int) -> str:
        for node in nodes:
            kind = self.kind(node, depth + 1)
            if kind not in (wanted, None):
                raise self._error(wrong_kind(wanted, kind), node)
        return wanted

    def _comparison(self, node: ast.Compare, depth: int) -> str:
        sides = [node.left, *node.comparators]
        kinds = [self.kind(side, depth + 1) for side in sides]
        for index, operator in enumerate(node.ops):
            left, right, place = kinds[index], kinds[index + 1], sides[index + 1]
            if not isinstance(operator, _EQUALITY + _ORDER):
                raise self._error("nothing that an expression can hold", place)
            if left is not None and right is not None and left != right:
                raise self._error(mixed(left, right), place)
            if isinstance(operator, _ORDER):
                wrong = next((k for k in (left, right) if k not in (NUMBER, None)), None)
                if wrong is not None:
                    raise self._error(wrong_kind(NUMBER, wrong), place)
        return TRUTH

    def _call(self, node: ast.Call, name: str, depth: int) -> str:
        wanted = FUNCTION_VALUES[name]
        fits = len(node.args) >= 2 if wanted is None else len(node.args) == wanted
        if node.keywords or not fits:
            allowed = f"{name}(x)" if wanted == 1 else f"{name}(x, y) or more"
            raise self._error("the wrong number of values", node, allowed=allowed)
        return self._all(node.args, NUMBER, depth)

    def _error(self, why: str, node: ast.expr, allowed: str = "") -> InputError:
        return self._read.error(why, self._read.token_at(node.col_offset).column, allowed=allowed)
