"""What differs between two configurations: by what the engine reads, and what it has unasked."""

from __future__ import annotations

import pytest

from lsmtune.engines.differences import Difference, differences, known_defaults
from lsmtune.model.config import EngineIdentity, OptionValue

Options = dict[str, OptionValue]
SIZE = "write_buffer_size"
DEFAULTS = known_defaults(EngineIdentity("rocksdb", "10.2.1"))


@pytest.mark.parametrize(
    ("engine", "here", "there", "names"),
    [
        # RocksDB has suffixes of its own; to a program of the user's own they are text.
        ("rocksdb", {SIZE: "16M"}, {SIZE: 16 << 20}, []),
        ("own-program", {SIZE: "16M"}, {SIZE: 16 << 20}, [SIZE]),
        ("rocksdb", {"paranoid_checks": "true"}, {"paranoid_checks": True}, []),
        # What is not set is at its default.
        ("rocksdb", {SIZE: "64M"}, {}, []),
        ("rocksdb", {}, {SIZE: 1 << 20}, [SIZE]),
        # Of an option that no catalogue knows only what is set is compared.
        ("rocksdb", {"unheard_of": 1}, {"unheard_of": "1"}, []),
        ("rocksdb", {"unheard_of": 1}, {}, ["unheard_of"]),
    ],
)
def test_what_differs_is_what_the_engine_reads_as_another_value(
    engine: str, here: Options, there: Options, names: list[str]
) -> None:
    assert [each.option for each in differences(engine, here, there, DEFAULTS)] == names


def test_a_difference_has_both_values_and_the_unit() -> None:
    assert differences("rocksdb", {"unheard_of": 1}, {SIZE: 1 << 20}, DEFAULTS) == (
        Difference("unheard_of", 1, True, None, False),
        Difference(SIZE, 64 << 20, False, 1 << 20, True, "bytes"),
    )


def test_the_defaults_that_are_given_count() -> None:
    assert differences("mine", {"threads": 4}, {}, {"threads": 4}) == ()


def test_of_an_engine_of_unknown_version_no_default_is_known() -> None:
    assert known_defaults(EngineIdentity("rocksdb")) == {}
    assert DEFAULTS[SIZE] == 64 << 20
