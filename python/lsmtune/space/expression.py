"""Expressions over options, facts and metrics: `write_buffer_size * 4 + block_cache <= 1GiB`.

| part | written |
|---|---|
| values | numbers, sizes (`1GiB`, `4 MiB`), `"text"`, `true`, `false`, names (also dotted ones) |
| arithmetic | `+ - * / // % **` |
| functions | `min(a, b)`, `max(a, b)` of two or more, `abs(a)`, `ceil(a)`, `floor(a)`, `log2(a)` |
| conditions | `< <= > >= == !=`, chains (`a <= b <= c`), `and`, `or`, `not` |

Numbers, texts and truths do not mix: `"a" < 3` and `true + 1` are errors. Texts are equal that are
one value to an engine: `bloomfilter:10` and `bloomfilter:10:false`. What is nested too deep,
and numbers beyond 1e100, are refused, so no expression can take long or much memory. Values are
computed by the library simpleeval, which walks the syntax tree and never calls Python's `eval`.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from itertools import pairwise

from simpleeval import InvalidExpression, NameNotDefined, SimpleEval

from lsmtune.errors import InputError
from lsmtune.model.config import OptionValue, option_text
from lsmtune.space.expression_parse import (
    FUNCTIONS,
    NUMBER,
    OPERATORS,
    TEXT,
    OperationError,
    breach,
    checked_tree,
    read_text,
    truth,
)

_TEXT_SHOWN = 100


@dataclass(frozen=True)
class Expression:
    """A checked expression; made by `make_expression`. `names` are as written.

    `source` and `field` are for messages. `is_condition` is false for what is never true or false;
    a name alone may be. In the tree stands `n0` for the name `_written["n0"]`.
    """

    text: str
    source: str
    field: str
    names: frozenset[str]
    is_condition: bool
    _tree: ast.expr = dataclass_field(repr=False, compare=False)
    _written: Mapping[str, str] = dataclass_field(repr=False, compare=False)

    @property
    def compared_texts(self) -> list[tuple[str, str]]:
        """Each name that is compared with a text, beside that text."""
        compared = []
        for node in ast.walk(self._tree):
            sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
            for pair in pairwise(sides):
                for one, other in (pair, pair[::-1]):
                    text = other.value if isinstance(other, ast.Constant) else None
                    if isinstance(one, ast.Name) and isinstance(text, str):
                        compared.append((self._written[one.id], text))
        return compared

    def evaluate(self, values: Mapping[str, OptionValue]) -> OptionValue:
        """The value of the expression for these `values` of its names.

        Raises `InputError` for a name without a value, a value of the wrong kind, a division by
        zero, and a number that is too large or not real. What `and` and `or` do not look at needs
        no value.
        """
        return self._value(self._tree, self._evaluator(values))

    def violation(self, values: Mapping[str, OptionValue]) -> float:
        """By how much the condition is broken: 0 or less where it holds, else above 0.

        | condition | violation |
        |---|---|
        | `a <= b`, `a < b` | `(a - b) / max(abs(b), 1)` |
        | `a >= b`, `a > b` | `(b - a) / max(abs(b), 1)` |
        | `a == b` | `abs(a - b) / max(abs(b), 1)` |
        | `a and b`, `a <= b <= c` | the largest of its parts |
        | `a or b` | the smallest of its parts |
        | `not a` | that of the opposite condition |
        | what else is false: `!=`, texts, truths | 1 |

        Whether it holds decides the sign: a condition that is false counts
        `SMALLEST_BREACH` at the least (`a < b` with equal sides), one that is true 0 at the most.
        Parts that `evaluate` would not look at count where they can be computed. Raises as
        `evaluate`, and for an expression that is no condition.
        """
        return self._violation(self._tree, self._evaluator(values), wanted=True)

    def _violation(self, node: ast.expr, evaluator: SimpleEval, *, wanted: bool) -> float:
        """The violation of `node` being `wanted`."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self._violation(node.operand, evaluator, wanted=not wanted)
        if isinstance(node, ast.BoolOp):
            parts = node.values
        elif isinstance(node, ast.Compare) and len(node.ops) > 1:
            sides = [node.left, *node.comparators]
            parts = [
                ast.Compare(left=left, ops=[operator], comparators=[right])
                for left, operator, right in zip(sides, node.ops, sides[1:], strict=False)
            ]
        else:
            return self._violation_of_one(node, evaluator, wanted=wanted)
        any_will_do = isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or)
        worst = min if any_will_do is wanted else max
        violation = self._violation(parts[0], evaluator, wanted=wanted)
        for part in parts[1:]:
            decided = violation > 0 if worst is max else violation <= 0
            try:
                violation = worst(violation, self._violation(part, evaluator, wanted=wanted))
            except InputError:
                # `b != 0 and a / b < 3` guards its second half; only what `evaluate` would look
                # at has to be computable.
                if not decided:
                    raise
        return violation

    def _violation_of_one(self, node: ast.expr, evaluator: SimpleEval, *, wanted: bool) -> float:
        """The violation of a condition that joins no others."""
        sides = [node.left, node.comparators[0]] if isinstance(node, ast.Compare) else [node]
        values = [self._value(side, evaluator) for side in sides]
        try:
            if isinstance(node, ast.Compare):
                return breach(type(node.ops[0]), *values, wanted=wanted)
            return 0.0 if truth(values[0]) is wanted else 1.0
        except OperationError as error:
            raise self._error(error, evaluator) from error

    def _evaluator(self, values: Mapping[str, OptionValue]) -> SimpleEval:
        known = {n: values[name] for n, name in self._written.items() if name in values}
        evaluator = SimpleEval(operators=OPERATORS, functions=FUNCTIONS, names=known)
        # simpleeval takes any value for an operand of `and` and `or`; here it must be a truth.
        evaluator.nodes[ast.BoolOp] = lambda node: _joined(node, evaluator)
        return evaluator

    def _value(self, node: ast.expr, evaluator: SimpleEval) -> OptionValue:
        try:
            value: OptionValue = evaluator.eval(self.text, previously_parsed=node)
        except NameNotDefined as error:
            why = f"{self._written[error.name]} has no value in {self._shown()}"
            raise InputError(self.source, self.field, why=why) from error
        except (OperationError, InvalidExpression) as error:
            raise self._error(error, evaluator) from error
        return value

    def _error(self, error: Exception, evaluator: SimpleEval) -> InputError:
        known = [
            f"{name} = {option_text(evaluator.names[n])}"
            for n, name in self._written.items()
            if n in evaluator.names
        ]
        where = f" with {', '.join(known)}" if known else ""
        return InputError(self.source, self.field, why=f"{error} in {self._shown()}{where}")

    def _shown(self) -> str:
        text = " ".join(self.text.split())
        return f'"{text}"' if len(text) <= _TEXT_SHOWN else f'"{text[:_TEXT_SHOWN]}..."'


def _joined(node: ast.BoolOp, evaluator: SimpleEval) -> bool:
    """The value of `a and b`, `a or b`; what does not decide it any more is not looked at."""
    parts = (truth(evaluator.eval("", previously_parsed=part)) for part in node.values)
    return any(parts) if isinstance(node.op, ast.Or) else all(parts)


def make_expression(text: str, source: str, field: str) -> Expression:
    """A checked expression; `field` is its dotted name in `source` (`constraints[0]`).

    Raises `InputError`, one line that names the column, for everything that is not in the grammar
    of this module, is too long or too deep, or mixes kinds of values.
    """
    read = read_text(text, source, field)
    tree, kind = checked_tree(read)
    is_condition = kind not in (NUMBER, TEXT)
    written = {f"n{index}": name for index, name in enumerate(read.names)}
    return Expression(text, source, field, frozenset(read.names), is_condition, tree, written)
