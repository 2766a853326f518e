"""Properties in the form of Java's, as far as YCSB and YCSB-cpp agree on it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmtune.engines.properties import parse_properties, properties_of, read_properties
from lsmtune.errors import InputError


def values(text: str) -> dict[str, str]:
    return {name: found.value for name, found in parse_properties(text, "file").items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb = 2 \n\tc\t=\t3\t", {"a": "1", "b": "2", "c": "3"}),
        ("# a=1\n! b=2\n  # c=3\n\nd=4", {"d": "4"}),
        ("a=b=c", {"a": "b=c"}),
        ("a:1\nb 2\nc : 3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=1\\\n   2\nb=3", {"a": "12", "b": "3"}),
        ("a=#1", {"a": "#1"}),
        ("a=", {"a": ""}),
        ("a\\=b=1\nc=\\u0041\\t", {"a=b": "1", "c": "A"}),
        ("a=1\r\nb=2\r\n", {"a": "1", "b": "2"}),
    ],
)
def test_lines(text: str, expected: dict[str, str]) -> None:
    assert values(text) == expected


def test_a_name_alone_is_an_error_with_its_line() -> None:
    with pytest.raises(
        InputError, match=r"^file:3: is no property; found 'fast'; allowed: name=value"
    ):
        parse_properties("a=1\n# no\nfast\n", "file")


def test_later_files_and_then_settings_win(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text("x=1\ny=1\nz=1\n")
    second.write_text("y=2\nz=2\n")
    found = properties_of([first, second], {"z": "3"})
    assert {name: p.value for name, p in found.items()} == {"x": "1", "y": "2", "z": "3"}
    assert (found["x"].where, found["z"].where) == (f"{first}:1", "-p")


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_properties(tmp_path / "none")
    (tmp_path / "png").write_bytes(b"\x89PNG")
    with pytest.raises(InputError, match="is not text: byte 0x89 at offset 0"):
        read_properties(tmp_path / "png")


names = st.text("abcdefgh.", min_size=1, max_size=8)
words = st.text(st.characters(codec="ascii", categories=["L", "N"]), max_size=8)


@given(st.dictionaries(names, words, max_size=5))
def test_what_is_written_plainly_is_read_back(given_: dict[str, str]) -> None:
    assert values("\n".join(f"{name}={value}" for name, value in given_.items())) == given_


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    try:
        told = " ".join(parse_properties(text, "file"))
    except InputError as error:
        told = str(error)
    assert "\r\n" not in told
