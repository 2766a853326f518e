"""Expressions: values, the place of an error, limits; violation agrees with evaluate."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Mapping

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lsmtune.errors import InputError
from lsmtune.model.config import OptionValue
from lsmtune.space.expression import Expression, make_expression

Values = Mapping[str, OptionValue]


def made(text: str) -> Expression:
    return make_expression(text, "study.yaml", "constraints[0]")


def refused(text: str) -> str:
    with pytest.raises(InputError) as caught:
        made(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "values", "value"),
    [
        ("1 + 2 * 3 - 4 / 2", {}, 5.0),
        ("7 // 2 + 7 % 4 + 2 ** 3", {}, 14),
        ("2 ** -1", {}, 0.5),
        ("-2 ** 2", {}, -4),
        ("1GiB", {}, 2**30),
        ("4 MiB + 1.5 KiB", {}, 2**22 + 1536),
        ("1e3 * .5", {}, 500.0),
        ("a.b.c * 4 + lambda", {"a.b.c": 2, "lambda": 1}, 9),
        ("a <= 2 <= 3", {"a": 1}, True),
        ("a <= 2 <= 1", {"a": 1}, False),
        ("on == true and not off", {"on": True, "off": False}, True),
        ("kind == 'level' or kind == \"fifo\"", {"kind": "fifo"}, True),
        ("min(3, a, 2) + max(1, a) + abs(0 - a)", {"a": 5}, 12),
        ("ceil(a) - floor(a) + log2(8)", {"a": 1.5}, 4.0),
        ("a\n <= 3", {"a": 3}, True),
        # Two spellings of one value, as the space and the engine have it.
        ("a == 'bloomfilter:10'", {"a": "bloomfilter:10:false"}, True),
        ("a != 'fixed:4'", {"a": "rocksdb.FixedPrefix.4"}, False),
        ("(a < b) == (b < c)", {"a": 1, "b": 2, "c": 3}, True),
        ("008 + a", {"a": 1}, 9),
    ],
)
def test_values(text: str, values: Values, value: OptionValue) -> None:
    found = made(text).evaluate(values)
    assert found == value
    assert type(found) is type(value)


def test_names_are_those_of_the_text() -> None:
    assert made("a.b * min(2, c) <= 4MiB and not true").names == {"a.b", "c"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a * * b", 'not an expression at column 5: "* b"'),
        ("1GiB + a.b.c <= * d", 'not an expression at column 17: "* d"'),
        ("4 M < a", 'at column 1: "4 M < a"'),
        ("a < 3kb", 'column 5: "3kb"; allowed: a whole number of bytes'),
        ("a < 4 M", "did you mean 4MiB?"),
        ("a = 3", 'column 3: "= 3"; did you mean ==?'),
        ("a && b", "did you mean and?"),
        ("!a", "did you mean not?"),
        ("a <  ", "something is missing at column 4, the end"),
        ("(a < 3", "something is missing at column 7, the end"),
        ("a < 3)", 'at column 6: ")"'),
        ("fool(a) < 2", "no such function at column 1"),
        ("flor(a) < 2", "did you mean floor?"),
        ("abs(a, b) < 2", "the wrong number of values at column 1"),
        ("min(a) < 2", "allowed: min(x, y) or more"),
        ("a b", "an operator is missing at column 3"),
        ('"a" "b"', "an operator is missing at column 5"),
        ("(1)(2)", "an operator is missing at column 4"),
        ("a < b, c", "nothing that an expression can hold at column 1"),
        ("'abc < a", "without its closing quote at column 1"),
        ("'a' < 3", "a text compared with a number at column 7"),
        ("a < 'b'", "a text where a number is wanted at column 5"),
        ("true + 1", "true or false where a number is wanted at column 1"),
        ("not 5", "a number where true or false is wanted at column 5"),
        ("a < 3 and 4", "a number where true or false is wanted at column 11"),
        ("-'a'", "a text where a number is wanted at column 2"),
        ('"éééééé" == a and (true + 1) < b', 'wanted at column 20: "true'),
        ("", "is empty"),
        ("a < 1e999", "a number too large at column 5"),
    ],
)
def test_an_error_points_at_the_place(text: str, told: str) -> None:
    line = refused(text)
    assert line.startswith("study.yaml: constraints[0]: ")
    assert told in line


@pytest.mark.parametrize(
    "text",
    [
        "().__class__",
        "'x'.upper()",
        "a.b()",
        "open('f')",
        "truth(a)",
        "n0(a)",
        "lambda: 1",
        "(lambda x: x)(1)",
        "[x for x in y]",
        "{1: 2}",
        "a[0]",
        "a := 3",
        "(a := 3)",
        "f'{a}'",
        "a if b else c",
        "a in b",
        "a is b",
        "min(*a)",
        "min(x=1, y=2)",
        "a @ b",
        "a << 3",
        "a ~ b",
        "a; b",
        "import os",
        "await a",
        "é",
        "\x00",
        "a\\\n+ 1",
        "1_000 < a",
        "0x10 < a",
        "1j < a",
    ],
)
def test_what_is_python_and_not_the_grammar_is_refused(text: str) -> None:
    assert "\n" not in refused(text)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000,
        "((" * 30 + "1" + "))" * 30,
        "-" * 1500 + "1",
        "not " * 300 + "a",
        "2" + "**2" * 390,
        "a" + " + a" * 199,
        "a" * 2001,
        "9" * 1999,
        "min(" * 100,
        "1e" + "9" * 1000,
    ],
)
def test_what_is_too_much_is_refused_quickly(text: str) -> None:
    began = time.process_time()
    refused(text)
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize(
    ("text", "values", "told"),
    [
        ("a / b < 1", {"a": 1, "b": 0}, 'division by zero in "a / b < 1" with a = 1, b = 0'),
        ("a % 0 < 1", {"a": 1}, "division by zero"),
        ("0 ** (0 - a) < 1", {"a": 1}, "division by zero"),
        ("a ** a < 1", {"a": 10**6}, "a number beyond 1e+100"),
        ("9 ** 9 ** 9 ** 9 < a", {"a": 1}, "a number beyond 1e+100"),
        ("a * a < 1", {"a": 10**60}, "a number beyond 1e+100"),
        ("a < 1", {"a": math.inf}, "a number beyond 1e+100"),
        ("a < 1", {"a": math.nan}, "a number beyond 1e+100"),
        ("(0 - 1) ** 0.5 < a", {"a": 1}, "a root of a number below zero"),
        ("log2(a) < 1", {"a": 0}, "log2 of a number that is not above zero"),
        ("a < 1", {}, "a has no value"),
        ("a < 1", {"a": "4M"}, "a text where a number is wanted"),
        ("a == 1", {"a": True}, "true or false compared with a number"),
        ("a == 'x'", {"a": 1}, "a number compared with a text"),
        ("a and b", {"a": True, "b": 3}, "a number where true or false is wanted"),
        ("not a", {"a": "x"}, "a text where true or false is wanted"),
        ("a + 1 < 2", {"a": False}, "true or false where a number is wanted"),
    ],
)
def test_what_has_no_value_is_one_line(text: str, values: Values, told: str) -> None:
    for compute in (made(text).evaluate, made(text).violation):
        with pytest.raises(InputError) as caught:
            compute(values)
        assert str(caught.value).startswith("study.yaml: constraints[0]: ")
        assert told in str(caught.value)
        assert "\n" not in str(caught.value)


def test_what_is_not_looked_at_needs_no_value() -> None:
    guarded = made("b != 0 and a / b < 3")
    assert guarded.evaluate({"a": 1, "b": 0}) is False
    assert guarded.violation({"a": 1, "b": 0}) == 1.0
    either = made("kind == 'skiplist' or buckets <= 5")
    assert either.evaluate({"kind": "skiplist"}) is True
    assert either.violation({"kind": "skiplist"}) == 0.0
    with pytest.raises(InputError, match="buckets has no value"):
        either.violation({"kind": "hash"})


@pytest.mark.parametrize(
    ("text", "values", "violation"),
    [
        ("a <= b", {"a": 150, "b": 100}, 0.5),
        ("a <= b", {"a": 50, "b": 100}, -0.5),
        ("a <= b", {"a": 100, "b": 100}, 0.0),
        ("a < b", {"a": 100, "b": 100}, 1e-9),
        ("a >= b", {"a": 50, "b": 100}, 0.5),
        ("a <= 0.5", {"a": 0.75}, 0.25),
        ("a == b", {"a": 150, "b": 100}, 0.5),
        ("a == b", {"a": 100, "b": 100}, 0.0),
        ("a != b", {"a": 100, "b": 100}, 1.0),
        ("a <= 100 and b <= 100", {"a": 150, "b": 300}, 2.0),
        ("a <= 100 or b <= 100", {"a": 150, "b": 300}, 0.5),
        ("10 <= a <= 100", {"a": 300}, 2.0),
        ("10 <= a <= 100", {"a": 50}, -0.5),
        ("not a <= 100", {"a": 50}, 0.5),
        ("not (a <= 100 or b <= 100)", {"a": 50, "b": 300}, 0.5),
        ("not (10 <= a <= 100)", {"a": 55}, 0.45),
        ("on", {"on": False}, 1.0),
        ("not on", {"on": False}, 0.0),
        ("kind == 'x'", {"kind": "y"}, 1.0),
    ],
)
def test_violations(text: str, values: Values, violation: float) -> None:
    assert made(text).violation(values) == pytest.approx(violation, abs=1e-12)


def test_a_copy_is_the_same_expression() -> None:
    expression = made("a <= 2 * b")
    again = copy.deepcopy(expression)
    assert again == expression
    assert again.violation({"a": 3, "b": 1}) == expression.violation({"a": 3, "b": 1}) > 0


NUMBERS = st.one_of(
    st.integers(-5, 5),
    st.integers(-(2**70), 2**70),
    st.floats(-1e60, 1e60),
    st.sampled_from([5e-324, 1e-300, 2**53, 2**53 + 1, float(2**53), 1e60]),
)
NUMERIC = ("a", "b", "c")
TERMS = st.recursive(
    st.sampled_from([*NUMERIC, "1", "0", "2.5", "4MiB"]),
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "*", "/", "//"]), inner),
        st.builds("{}({}, {})".format, st.sampled_from(["min", "max"]), inner, inner),
    ),
    max_leaves=4,
)
COMPARISONS = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
CONDITIONS = st.recursive(
    st.one_of(
        st.sampled_from(["on", "off", "true", "kind == 'x'", "kind != 'x'"]),
        st.builds("{} {} {}".format, TERMS, COMPARISONS, TERMS),
        st.builds("{} {} {} {} {}".format, TERMS, COMPARISONS, TERMS, COMPARISONS, TERMS),
    ),
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(["and", "or"]), inner),
        st.builds("({0} and {1} or {0})".format, inner, inner),
        st.builds("(not {})".format, inner),
        st.builds("(({}) == ({}))".format, inner, inner),
    ),
    max_leaves=4,
)
VALUES = st.fixed_dictionaries(
    dict.fromkeys(NUMERIC, NUMBERS)
    | {"on": st.booleans(), "off": st.booleans(), "kind": st.sampled_from("xy")}
)


@given(CONDITIONS, VALUES)
@example("a < b", {"a": 1e60, "b": 1e60, "c": 0, "on": True, "off": True, "kind": "x"})
@example("a > b", {"a": 2**53 + 1, "b": 2.0**53, "c": 0, "on": True, "off": True, "kind": "x"})
def test_a_violation_is_above_zero_exactly_where_the_condition_is_false(
    text: str, values: Values
) -> None:
    expression = made(text)
    assert expression.is_condition
    try:
        holds = expression.evaluate(values)
    except InputError:
        with pytest.raises(InputError):
            expression.violation(values)
        return
    violation = expression.violation(values)
    assert math.isfinite(violation)
    assert (violation <= 0) is holds


PIECES = st.sampled_from(
    [
        *"+-*/%<>=(),.;[]{}'\"\n\\é_",
        *("a", "b.c", "1", "0", "2.5", "1e9", "4MiB", "3", "KiB", "99999999", "'x'", '"y"'),
        *("//", "**", "<=", ">=", "==", "!=", ":=", "and", "or", "not", "true", "false"),
        *("min", "max", "abs", "ceil", "floor", "log2", "lambda", "if", "else", "for", "in"),
        *("f'x'", "__class__"),
    ]
)


@given(st.one_of(st.text(), st.lists(PIECES, max_size=60).map(" ".join)))
@example("9**9**9**9**9")
@example("a" + "*9" * 300)
def test_no_text_raises_anything_but_an_input_error_or_takes_long(text: str) -> None:
    began = time.process_time()
    told = ""
    try:
        expression = made(text)
        expression.evaluate({"a": 3, "b.c": 0.5})
        expression.violation({"a": 3, "b.c": 0.5})
    except InputError as error:
        told = str(error)
    assert "\n" not in told
    assert len(told) < 1000
    assert time.process_time() - began < 1.0
