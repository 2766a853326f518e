"""Every error is one line, whatever went into it."""

from __future__ import annotations

import errno
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmtune.errors import (
    ExitStatus,
    FieldError,
    InputError,
    LsmtuneError,
    disk_trouble,
    nearest_name,
)
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


@pytest.mark.parametrize(
    "error",
    [
        LsmtuneError("the run failed"),
        InputError("/data/worker", "engine", found="x", allowed="y", nearest="y", why="no"),
        FieldError("space.a.low", found=3, allowed="less than high (2)"),
    ],
)
def test_an_error_of_another_process_is_as_it_was(error: LsmtuneError) -> None:
    """Those of a fleet's hosts ended with a colon, as the whole line was taken for a source."""
    error.in_document = True
    came = pickle.loads(pickle.dumps(error))
    assert (type(came), str(came), vars(came)) == (type(error), str(error), vars(error))


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


def test_a_read_that_fails_names_the_file_that_was_open(tmp_path: Path) -> None:
    """The operating system names no file where an open one cannot be read."""
    (tmp_path / "a.log").write_text("")

    def read(_file: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    def tail(path: Path) -> None:
        with path.open("rb") as file:
            read(file)

    with pytest.raises(OSError, match="Input/output error") as caught:
        tail(tmp_path / "a.log")
    assert str(disk_trouble(caught.value)) == f"{tmp_path}/a.log: Input/output error"


def test_a_copy_that_fails_names_both_files() -> None:
    """The one that could not be read, or the one that could not be written."""
    error = OSError(errno.EIO, "Input/output error", "a/db", None, "b/db")
    assert str(disk_trouble(error)) == "a/db, to b/db: Input/output error"
