"""Every error is one line, whatever went into it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmtune.errors import ExitStatus, InputError, LsmtuneError, nearest_name
from lsmtune.model.measurement import RunError


@given(st.text(), st.text(), st.text())
def test_an_error_is_one_line(source: str, found: str, why: str) -> None:
    for error in (LsmtuneError(why), InputError(source, "field", found=found, why=why)):
        assert len(str(error).splitlines()) <= 1


def test_the_parts_stand_in_their_order() -> None:
    error = InputError("a.yaml", "x.y", found="b", allowed="c, d", nearest="c", why="no")
    assert str(error) == "a.yaml: x.y: no; found 'b'; allowed: c, d; did you mean c?"
    assert error.exit_status is ExitStatus.BAD_INPUT
    assert LsmtuneError("x").exit_status is ExitStatus.FAILED


def test_a_long_value_is_cut() -> None:
    line = str(InputError("a", found="x" * 10_000))
    assert len(line) < 200
    assert "(10002 characters)" in line


@pytest.mark.parametrize(("name", "nearest"), [("rocksbd", "rocksdb"), ("qqq", "")])
def test_the_nearest_name(name: str, nearest: str) -> None:
    assert nearest_name(name, ["rocksdb", "leveldb"]) == nearest


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (RunError("unknown_option", "m", nearest=("b", "c")), "unknown option; did you mean b, c?"),
        (RunError("bad_value", "m", found="x", allowed="y"), "found 'x'; allowed: y"),
        (RunError("bad_value", "the\nengine says no", found="x"), "the engine says no"),
    ],
)
def test_what_an_engine_refuses_is_an_error_of_the_input(error: RunError, line: str) -> None:
    assert str(error.input_error("a.yaml:3", "options.x")) == f"a.yaml:3: options.x: {line}"
