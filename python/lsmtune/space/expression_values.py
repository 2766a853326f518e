"""What the operators and functions of an expression do, each checked for kind and size.

A value is a *number*, a *text* or a *truth*. `true` is no number here, though Python says so.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from lsmtune.model.config import OptionValue
from lsmtune.space.range import Number

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


def _number(value: object) -> Number:
    kind = kind_of(value)
    if kind != NUMBER or not isinstance(value, int | float):
        raise OperationError(wrong_kind(NUMBER, kind))
    if not math.isfinite(value) or abs(value) > NUMBER_MAX:
        raise OperationError(f"a number beyond {NUMBER_MAX:g}")
    return value


def _on_numbers(compute: Callable[..., Any]) -> Callable[..., Number]:
    """`compute` for checked numbers, with a checked result."""

    def computed(*values: object) -> Number:
        numbers = [_number(value) for value in values]
        try:
            return _number(compute(*numbers))
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
    return _number(left) == _number(right) if one == NUMBER else left == right


def _ordered(compare: Callable[[Number, Number], bool]) -> Callable[[object, object], bool]:
    return lambda left, right: compare(_number(left), _number(right))


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
# The functions that a user may call, and how many values each takes: None for any from 2 on.
FUNCTION_VALUES: Mapping[str, int | None] = MappingProxyType(
    {"min": None, "max": None, "abs": 1, "ceil": 1, "floor": 1, "log2": 1}
)
GUARD = "truth"  # no user can call it: the tokens admit only the functions above
FUNCTIONS: Mapping[str, Callable[..., OptionValue]] = MappingProxyType(
    {
        "min": _on_numbers(min),
        "max": _on_numbers(max),
        "abs": _on_numbers(abs),
        "ceil": _on_numbers(math.ceil),
        "floor": _on_numbers(math.floor),
        "log2": _on_numbers(_log2),
        GUARD: truth,
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
    one, other = _number(left), _number(right)
    # How far beyond the bound `left` lies, of the bound's size.
    distance = float((one - other) / max(abs(other), 1))
    if equality:
        distance = abs(distance)
    elif (comparison in (ast.Lt, ast.LtE)) is not wanted:
        distance = -distance
    # Rounding can make a difference vanish, never make it change its side.
    return min(distance, 0.0) if holds else max(distance, SMALLEST_BREACH)
