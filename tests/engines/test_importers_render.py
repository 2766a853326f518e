"""A study's text reads back as the fields that it was made of."""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from lsmtune.model.files import parse_document
from lsmtune.study.template import render_options, render_study
from lsmtune.units import parse_bytes

WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1
).map(str.strip)
SCALARS = (
    WORDS
    | st.integers(-(2**60), 2**60)
    | st.booleans()
    | st.sampled_from(
        [
            "yes",
            "no",
            "on",
            "null",
            "~",
            "0",
            "010",
            "1e5",
            "12h",
            "a: b",
            "#x",
            "- a",
            "kZSTD",
            "a,b",
        ]
    )
)


@settings(max_examples=60)
@given(st.dictionaries(st.from_regex(r"[a-z_]{1,8}(\.[a-z]{1,4})?", fullmatch=True), SCALARS))
def test_options_read_back(options: dict[str, Any]) -> None:
    text = render_study({"version": 1, "options": options, "start": [options]})
    data = parse_document(text, "study.yaml").data
    assert data["options"] == options
    assert data["start"] == [options]


@settings(max_examples=60)
@given(SCALARS)
def test_another_reader_of_yaml_sees_the_same_text(value: Any) -> None:
    text = render_study({"space": {"a": {"type": "categorical", "choices": [value, "b"]}}})
    assert yaml.safe_load(text)["space"]["a"]["choices"] == [value, "b"]


@settings(max_examples=60)
@given(st.integers(0, 2**53))
def test_sizes_are_written_with_their_unit_and_exactly(size: int) -> None:
    space = {
        "write_buffer_size": {"type": "int", "low": size, "high": size + 1024, "unit": "bytes"}
    }
    engine = {"name": "rocksdb"}
    text = render_study({"engine": engine, "space": space, "baseline": {"write_buffer_size": size}})
    data = parse_document(text, "study.yaml").data
    assert parse_bytes(data["space"]["write_buffer_size"]["low"]) == size
    assert parse_bytes(data["baseline"]["write_buffer_size"]) == size
    written = data["space"]["write_buffer_size"]
    assert "unit" in written or any(isinstance(value, str) for value in written.values())


def test_a_size_goes_by_the_engines_unit() -> None:
    options = {"write_buffer_size": 64 << 20, "max_open_files": 1024}
    expected = "write_buffer_size: 64MiB\nmax_open_files: 1024\n"
    assert render_options(options, "rocksdb") == expected


def test_comments_and_header_stand_above() -> None:
    study = {"version": 1, "space": {"a": {"type": "int", "low": 1, "high": 2}}}
    text = render_study(study, {"space.a": "what\na is"}, ("from x",))
    assert (
        text == "# from x\nversion: 1\n\nspace:\n  # what a is\n  a: {type: int, low: 1, high: 2}\n"
    )
