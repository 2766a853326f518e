"""From the text of an expression to its checked syntax tree, and what its operators compute.

A value is a *number*, a *text* or a *truth*. `true` is no number here, though Python says so.

The text is taken apart into tokens and rewritten as Python that can be parsed. Only what the
grammar knows becomes a token, so nothing else of Python's syntax (attributes, subscripts, lambdas,
comprehensions, f-strings, assignments) reaches Python's parser. Every name stands in the Python
text as `n0`, `n1` ..., which makes dotted names and Python's own keywords names like any other;
sizes stand there as their bytes. Each token keeps its column in the user's text.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from lsmtune.errors import InputError, nearest_name
from lsmtune.model.config import OptionValue
from lsmtune.space.parameter import OPTION_NAME, short_form
from lsmtune.space.range import Number
from lsmtune.units import UnitError, parse_bytes

NUMBER, TEXT, TRUTH = "number", "text", "truth"
NUMBER_MAX = 1e100  # beyond every size and count; keeps powers and products small
_SHOWN = {NUMBER: "a number", TEXT: "a text", TRUTH: "true or false"}
# What a broken condition counts at the least: `a < b` with both sides equal.
SMALLEST_BREACH = 1e-9
_BREACH_WITHOUT_SIZE = 1.0


class OperationError(Exception):
    """An operation that has no result for its values; `str()` is a short clause without names."""


def kind_of(value: object) -> str:
    """`number`, `text` or `truth`. Raises `OperationError` for anything else."""
    if isinstance(value, bool):
        return TRUTH
    if isinstance(value, int | float):
        return NUMBER
    if isinstance(value, str):
        return TEXT
    raise OperationError(f"{value} is not a value")


def mixed(one: str, other: str) -> str:
    """The clause for two kinds that cannot be compared."""
    return f"{_SHOWN[one]} compared with {_SHOWN[other]}"


def wrong_kind(wanted: str, kind: str | None) -> str:
    """The clause for a value of one kind where another is wanted."""
    return f"{_SHOWN.get(kind or '', 'a value')} where {_SHOWN[wanted]} is wanted"


def truth(value: object) -> bool:
    """`value`, which must be a truth. Raises `OperationError` otherwise."""
    kind = kind_of(value)
    if kind != TRUTH:
        raise OperationError(wrong_kind(TRUTH, kind))
    return bool(value)


def _checked_number(value: object) -> Number:
    kind = kind_of(value)
    if kind != NUMBER or not isinstance(value, int | float):
        raise OperationError(wrong_kind(NUMBER, kind))
    if not math.isfinite(value) or abs(value) > NUMBER_MAX:
        raise OperationError(f"a number beyond {NUMBER_MAX:g}")
    return value


def _on_numbers(compute: Callable[..., Any]) -> Callable[..., Number]:
    """`compute` for checked numbers, with a checked result."""

    def computed(*values: object) -> Number:
        numbers = [_checked_number(value) for value in values]
        try:
            return _checked_number(compute(*numbers))
        except ZeroDivisionError as error:
            raise OperationError("division by zero") from error

    return computed


def _power(base: Number, exponent: Number) -> Number:
    # Before it is computed: an integer's power can be longer than the memory.
    if base != 0 and abs(exponent * math.log10(abs(base))) > math.log10(NUMBER_MAX):
        raise OperationError(f"a number beyond {NUMBER_MAX:g}, or next to zero")
    if base < 0 and exponent != math.floor(exponent):
        raise OperationError("a root of a number below zero")
    result: Number = base**exponent
    return result


def _log2(number: Number) -> float:
    if number <= 0:
        raise OperationError("log2 of a number that is not above zero")
    return math.log2(number)


def _same(left: object, right: object) -> bool:
    one, other = kind_of(left), kind_of(right)
    if one != other:
        raise OperationError(mixed(one, other))
    if one == NUMBER:
        return _checked_number(left) == _checked_number(right)
    return short_form(str(left)) == short_form(str(right)) if one == TEXT else left == right


def _ordered(compare: Callable[[Number, Number], bool]) -> Callable[[object, object], bool]:
    return lambda left, right: compare(_checked_number(left), _checked_number(right))


_COMPARISONS: Mapping[type[ast.AST], Callable[..., bool]] = {
    ast.Lt: _ordered(operator.lt),
    ast.LtE: _ordered(operator.le),
    ast.Gt: _ordered(operator.gt),
    ast.GtE: _ordered(operator.ge),
    ast.Eq: _same,
    ast.NotEq: lambda left, right: not _same(left, right),
}
OPERATORS: Mapping[type[ast.AST], Callable[..., OptionValue]] = MappingProxyType(
    {
        ast.Add: _on_numbers(operator.add),
        ast.Sub: _on_numbers(operator.sub),
        ast.Mult: _on_numbers(operator.mul),
        ast.Div: _on_numbers(operator.truediv),
        ast.FloorDiv: _on_numbers(operator.floordiv),
        ast.Mod: _on_numbers(operator.mod),
        ast.Pow: _on_numbers(_power),
        ast.USub: _on_numbers(operator.neg),
        ast.UAdd: _on_numbers(operator.pos),
        ast.Not: lambda value: not truth(value),
        **_COMPARISONS,
    }
)
# The functions that a user may call: of one value, but for these, which take two or more.
_OF_SEVERAL = frozenset({"min", "max"})
FUNCTIONS: Mapping[str, Callable[..., OptionValue]] = MappingProxyType(
    {
        "min": _on_numbers(min),
        "max": _on_numbers(max),
        "abs": _on_numbers(abs),
        "ceil": _on_numbers(math.ceil),
        "floor": _on_numbers(math.floor),
        "log2": _on_numbers(_log2),
    }
)


def breach(
    comparison: type[ast.cmpop], left: OptionValue, right: OptionValue, *, wanted: bool
) -> float:
    """By how much `left comparison right` fails to be `wanted`: see `Expression.violation`.

    Raises `OperationError` for values that cannot be compared so.
    """
    holds = _COMPARISONS[comparison](left, right) is wanted
    equality = comparison in (ast.Eq, ast.NotEq)
    if kind_of(left) != NUMBER or (equality and (comparison is ast.Eq) is not wanted):
        return 0.0 if holds else _BREACH_WITHOUT_SIZE
    one, other = _checked_number(left), _checked_number(right)
    # How far beyond the bound `left` lies, of the bound's size.
    distance = float((one - other) / max(abs(other), 1))
    if equality:
        distance = abs(distance)
    elif (comparison in (ast.Lt, ast.LtE)) is not wanted:
        distance = -distance
    # Rounding can make a difference vanish, never make it change its side.
    return min(distance, 0.0) if holds else max(distance, SMALLEST_BREACH)


# --- from text to tokens

TEXT_MAX = 2000  # characters
TOKENS_MAX = 400
# Python's parser gives up at 200 open parentheses, and needs stack for each of them.
PARENTHESES_MAX = 40

_TOKEN = re.compile(
    rf"""(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)
       | (?P<name>{OPTION_NAME})
       | (?P<text>"[^"\\\n]*"|'[^'\\\n]*')
       | (?P<sign>\*\*|//|<=|>=|==|!=|[-+*/%<>(),])""",
    re.ASCII | re.VERBOSE,
)
_UNIT = re.compile(r"[ \t]*([A-Za-z]\w*)", re.ASCII)
_BLANKS = re.compile(r"\s+")
_WORDS = frozenset({"and", "or", "not"})
_TRUTHS = {"true": "True", "false": "False"}
# What people write for it in other languages.
_MEANT = {"=": "==", "&": "and", "|": "or", "!": "not", "^": "**", "`": '"'}
_EXCERPT = 20


@dataclass(frozen=True)
class Token:
    """`python` is what stands for the token in the Python text; `column` begins at 1."""

    kind: str
    text: str
    python: str
    column: int


@dataclass(frozen=True)
class ExpressionText:
    """What the user wrote, where, and its tokens; `names` are its names, `nI` the I-th of them."""

    text: str
    source: str
    field: str
    tokens: tuple[Token, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def python(self) -> str:
        """The Python expression: the tokens with a blank between each two."""
        return " ".join(token.python for token in self.tokens)

    def token_at(self, offset: int) -> Token:
        """The token at `offset` (from 0) of `python`; the last one for what lies behind it."""
        end = 0
        for token in self.tokens:
            end += len(token.python) + 1
            if offset < end:
                return token
        return self.tokens[-1]

    def error(self, why: str, column: int, **facts: str) -> InputError:
        """The error that says `why` at `column`, with what stands there."""
        rest = " ".join(self.text[column - 1 :].split())
        shown = rest if len(rest) <= _EXCERPT else f"{rest[:_EXCERPT]}..."
        place = f'at column {column}: "{shown}"' if shown else f"at column {column}, the end"
        return InputError(self.source, self.field, why=f"{why} {place}", **facts)


def read_text(text: str, source: str, field: str) -> ExpressionText:
    """`text` as tokens.

    Raises `InputError`, with the column, for characters and numbers that the grammar lacks, for
    text that is too long, and for values with nothing between them.
    """
    whole = ExpressionText(text, source, field)
    if len(text) > TEXT_MAX:
        why = f"is too long an expression ({len(text)} characters)"
        raise InputError(source, field, why=why, allowed=f"at most {TEXT_MAX} characters")
    if not text.strip():
        raise InputError(source, field, why="is empty", allowed="an expression such as a <= 2 * b")
    names: dict[str, int] = {}  # each with its index
    tokens = list(_tokens(whole, names))
    _check_order(whole, tokens)
    return ExpressionText(text, source, field, tuple(tokens), tuple(names))


def _tokens(whole: ExpressionText, names: dict[str, int]) -> Iterator[Token]:
    """The tokens of the text; a name that is not among `names` is added to them."""
    text, start = whole.text, _skip_blanks(whole.text, 0)
    while start < len(text):
        match, column = _TOKEN.match(text, start), start + 1
        if match is None or match.lastgroup is None:
            if text[start] in "\"'":
                why = "text without its closing quote"
                raise whole.error(why, column, allowed="no \\ in it")
            meant = _MEANT.get(text[start], "")
            raise whole.error("nothing that an expression can hold", column, nearest=meant)
        kind, word, end = match.lastgroup, match.group(), match.end()
        if kind == "number":
            unit = _UNIT.match(text, end)
            if unit is not None and unit.group(1) not in _WORDS:
                word, end = word + unit.group(1), unit.end()
            yield Token(kind, word, _number(whole, word, column), column)
        elif kind == "text":
            # In ASCII, as Python counts the columns of its tree in bytes.
            yield Token(kind, word, ascii(word[1:-1]), column)
        elif kind == "sign" or word in _WORDS:
            yield Token("sign", word, word, column)
        elif word in _TRUTHS:
            yield Token("truth", word, _TRUTHS[word], column)
        elif not text[_skip_blanks(text, end) :].startswith("("):
            yield Token("name", word, f"n{names.setdefault(word, len(names))}", column)
        elif word in FUNCTIONS:
            yield Token("function", word, word, column)
        else:
            allowed, nearest = ", ".join(FUNCTIONS), nearest_name(word, FUNCTIONS)
            raise whole.error("no such function", column, allowed=allowed, nearest=nearest)
        start = _skip_blanks(text, end)


def _skip_blanks(text: str, start: int) -> int:
    blanks = _BLANKS.match(text, start)
    return start if blanks is None else blanks.end()


def _number(whole: ExpressionText, text: str, column: int) -> str:
    """A number or a size as Python reads it."""
    if text[-1].isalpha() or not set(text) <= set("0123456789.eE+-"):
        try:
            return str(parse_bytes(text))
        except UnitError as error:
            raise whole.error(
                "not a number or a size", column, allowed=error.allowed, nearest=error.nearest
            ) from error
    value = float(text)
    if value > NUMBER_MAX:
        raise whole.error("a number too large", column, allowed=f"at most {NUMBER_MAX:g}")
    return str(int(text)) if text.isdigit() else repr(value)


def _check_order(whole: ExpressionText, tokens: list[Token]) -> None:
    """What Python's parser would report less clearly, or take: `4 b`, `"a" "b"`, `(a)(b)`."""
    if len(tokens) > TOKENS_MAX:
        allowed = f"at most {TOKENS_MAX} names, numbers and signs"
        raise whole.error("too long", tokens[TOKENS_MAX].column, allowed=allowed)
    depth, after_value = 0, False
    for token in tokens:
        opens = token.text == "(" and token.kind == "sign"
        closes = token.text == ")" and token.kind == "sign"
        begins_value = token.kind != "sign" or opens or token.text == "not"
        if after_value and begins_value:
            raise whole.error("an operator is missing", token.column)
        depth += opens - closes
        if depth > PARENTHESES_MAX:
            allowed = f"at most {PARENTHESES_MAX} open at a time"
            raise whole.error("too many parentheses", token.column, allowed=allowed)
        # The parenthesis after a function's name belongs to it.
        after_value = closes or token.kind in ("number", "name", "text", "truth")


# --- the tree

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
    try:
        tree = ast.parse(read.python, mode="eval").body
    except SyntaxError as error:
        offset = (error.offset or 0) - 1
        if not 0 <= offset < len(read.python) or "never closed" in error.msg:
            end = len(read.text.rstrip()) + 1
            raise read.error("not an expression: something is missing", end) from None
        raise read.error("not an expression", read.token_at(offset).column) from None
    except (MemoryError, RecursionError):  # what a deep tree is to the parser
        why = "too deep an expression"
        raise InputError(read.source, read.field, why=why, allowed=_DEPTH_ALLOWED) from None
    return tree, _Checker(read).kind(tree, 1)


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
            kind = TRUTH if isinstance(node.op, ast.Not) else NUMBER
            return self._all((node.operand,), kind, depth)
        if isinstance(node, ast.BoolOp):
            return self._all(node.values, TRUTH, depth)
        if isinstance(node, ast.Compare):
            return self._comparison(node, depth)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            name, several = node.func.id, node.func.id in _OF_SEVERAL
            fits = len(node.args) >= 2 if several else len(node.args) == 1
            if node.keywords or not fits:
                allowed = f"{name}(x, y) or more" if several else f"{name}(x)"
                raise self._error("the wrong number of values", node, allowed=allowed)
            return self._all(node.args, NUMBER, depth)
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
        for index, compare in enumerate(node.ops):
            left, right, place = kinds[index], kinds[index + 1], sides[index + 1]
            if not isinstance(compare, _EQUALITY + _ORDER):
                raise self._error("nothing that an expression can hold", place)
            if left is not None and right is not None and left != right:
                raise self._error(mixed(left, right), place)
            if isinstance(compare, _ORDER):
                wrong = next((k for k in (left, right) if k not in (NUMBER, None)), None)
                if wrong is not None:
                    raise self._error(wrong_kind(NUMBER, wrong), place)
        return TRUTH

    def _error(self, why: str, node: ast.expr, allowed: str = "") -> InputError:
        return self._read.error(why, self._read.token_at(node.col_offset).column, allowed=allowed)
