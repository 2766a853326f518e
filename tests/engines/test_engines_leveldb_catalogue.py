"""LevelDB's catalogue: every option that can be set, and a real LevelDB at each of its values."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine_parts import distribution_library
from option_cases import values_of
from option_runs import Opener

from lsmtune.driver.native import probe
from lsmtune.engines.catalogue import option_catalogue
from lsmtune.model.config import OptionValue

CATALOGUE = option_catalogue("leveldb")
VERSION = "1.22"
# A run creates its database, and opens it a second time to read it back.
NOT_OF_A_RUN = (("create_if_missing", False), ("error_if_exists", True))
CASES = [
    (name, value)
    for name, info in CATALOGUE.items()
    for value in values_of(info, VERSION)
    if (name, value) not in NOT_OF_A_RUN
]


def test_every_option_says_what_it_is() -> None:
    for info in CATALOGUE.values():
        assert info.searchable
        assert info.scope == "db"
        assert not info.mutable, f"{info.name}: LevelDB has no SetOptions"
        assert info.default is not None
        assert info.parameter().contains(info.default)


@pytest.mark.engine
def test_the_defaults_are_those_of_the_driver(
    driver: Path, leveldb_library: Path, tmp_path: Path
) -> None:
    options = probe(driver, "leveldb", leveldb_library, tmp_path).options
    probed = {option.name: option.default for option in options}
    del probed["create_if_missing"]  # the driver's own: LevelDB's is false
    ours = {n: i.parameter().default for n, i in CATALOGUE.items() if n in probed}
    shown = {n: str(v).lower() if isinstance(v, bool) else str(v) for n, v in ours.items()}
    assert shown == probed


@pytest.mark.engine
@pytest.mark.parametrize(("name", "value"), CASES)
def test_leveldb_opens_at_the_default_and_at_both_ends(
    driver: Path, leveldb_library: Path, tmp_path: Path, name: str, value: OptionValue
) -> None:
    opener = Opener(driver, "leveldb", leveldb_library, tmp_path)
    assert opener.trouble({name: value}) == ""


@pytest.mark.engine
def test_the_library_of_the_distribution_opens_at_all_ends_together(
    driver: Path, tmp_path: Path
) -> None:
    opener = Opener(driver, "leveldb", distribution_library("leveldb"), tmp_path)
    numbers = [info for info in CATALOGUE.values() if info.low is not None]
    assert opener.trouble({i.name: i.low for i in numbers if i.low is not None}) == ""
    assert opener.trouble({i.name: i.high for i in numbers if i.high is not None}) == ""


@pytest.mark.engine
def test_a_value_beyond_what_leveldb_takes_is_not_taken_in_silence(
    driver: Path, leveldb_library: Path, tmp_path: Path
) -> None:
    opener = Opener(driver, "leveldb", leveldb_library, tmp_path)
    assert opener.trouble({"block_size": 1023}).startswith("invalid: ")
