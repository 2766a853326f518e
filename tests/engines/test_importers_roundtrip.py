"""What an exporter writes, the importer of its format reads back as the same Config.

A Config that a format cannot say is refused by its exporter; nothing else excuses a difference.
"""

from __future__ import annotations

from collections.abc import Mapping

import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from importer_parts import config

from lsmtune.engines.catalogue import option_catalogue
from lsmtune.engines.formats import EXPORTERS, IMPORTERS, export
from lsmtune.engines.ready import known_spaces
from lsmtune.errors import InputError
from lsmtune.model.config import OptionValue
from lsmtune.space.parameter import Parameter
from lsmtune.space.space import Space, make_space
from optuna_draws import draws

# The rest are for other programs alone.
SAID = [(n, engine) for n, f in EXPORTERS.items() if n in IMPORTERS for engine in f.engines]
SEEDS = range(15)
CACHE_KIND = "block_based_table_factory.block_cache.id"


def drawn(space: Space, seed: int) -> dict[str, OptionValue]:
    """A random configuration of `space`."""
    sampler = optuna.samplers.RandomSampler(seed=seed)
    return space.suggest(draws(space, optuna.create_study(sampler=sampler).ask()))


@pytest.fixture(autouse=True)
def _quiet() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def exported(name: str, engine: str, options: Mapping[str, OptionValue]) -> str | None:
    """The text; None where the format cannot say one of the options or values."""
    try:
        return export(name, engine, options)
    except InputError as error:
        said = f"{error.field} {error.why}"
        if not any(option in said for option in options):
            pytest.fail(f"refused for another reason: {error}")
        return None


def check_round_trip(name: str, engine: str, options: Mapping[str, OptionValue]) -> bool:
    """Whether the format can say `options`; then they come back, and nothing has to be noted."""
    text = exported(name, engine, options)
    if text is None:
        return False
    back = config(text, name, engine, keep=True)
    expected = dict(options)
    if name == "properties":
        # YCSB-cpp has another default for compression than the engines, so it is always written.
        expected.setdefault("compression", back.options["compression"])
    elif name == "db_bench" and expected.get("unordered_write"):
        # Of the two, which RocksDB refuses together, db_bench has the other one on by default.
        expected.setdefault("enable_pipelined_write", False)
    elif expected.get(CACHE_KIND) == "lru_cache":
        # An OPTIONS file has no word for the one kind of cache that it can ask for.
        del expected[CACHE_KIND]
    assert dict(back.options) == expected
    assert [*map(type, back.options.values())] == [type(expected[k]) for k in back.options]
    assert back.notes == ()
    assert back.engine == engine
    return True


def test_files_and_flags_of_other_programs_are_read_and_written() -> None:
    assert {name for name, _ in SAID} == {"rocksdb-options", "properties", "db_bench"}


@pytest.mark.parametrize("name", known_spaces())
def test_every_config_of_a_ready_space_comes_back(name: str) -> None:
    ready = known_spaces()[name]
    space = make_space(ready.parameters)
    came_back = dict.fromkeys((f for f, engine in SAID if engine == ready.engine), 0)
    for seed in SEEDS:
        options = {**ready.fixed, **drawn(space, seed)}
        for format_name in came_back:
            came_back[format_name] += check_round_trip(format_name, ready.engine, options)
    # The one format of each engine that can say nearly everything.
    complete = "rocksdb-options" if ready.engine == "rocksdb" else "properties"
    assert came_back[complete] >= len(SEEDS) / 2, came_back


def single_option_spaces(engine: str) -> list[Space]:
    """A space of one parameter for each option that a search can try, without its conditions."""
    found = []
    for info in option_catalogue(engine).values():
        if info.searchable:
            whole = info.parameter()
            bare = Parameter(whole.name, whole.numbers, whole.choices, whole.specials, whole.unit)
            found.append(make_space([bare]))
    return found


# How many options of the catalogue each format can say at least; a format that refuses everything
# would pass every other test of this file.
ENOUGH = {
    ("rocksdb-options", "rocksdb"): 125,
    ("properties", "rocksdb"): 15,
    ("db_bench", "rocksdb"): 75,
    ("properties", "leveldb"): 8,
    ("db_bench", "leveldb"): 7,
}


@pytest.mark.parametrize(("name", "engine"), SAID)
def test_every_option_comes_back_by_itself(name: str, engine: str) -> None:
    said = set()
    for space in single_option_spaces(engine):
        for seed in range(4):
            if check_round_trip(name, engine, drawn(space, seed)):
                said.add(space.parameters[0].name)
    assert len(said) >= ENOUGH[name, engine], sorted(said)


def test_a_special_value_of_a_real_option_is_a_real_number() -> None:
    # The gist's `0` was an int, which came back from db_bench's flags as 0.0: one draw in hundreds.
    name = "memtable_prefix_bloom_size_ratio"
    space = make_space([p for p in known_spaces()["rocksdb-gist"].parameters if p.name == name])
    values = [drawn(space, seed)[name] for seed in range(20)]
    assert 0 in values
    assert {type(value) for value in values} == {float}
    assert check_round_trip("db_bench", "rocksdb", {name: values[values.index(0)]})


@settings(max_examples=40)
@given(st.sampled_from(sorted(known_spaces())), st.integers(0, 2**32 - 1), st.data())
def test_any_part_of_a_config_comes_back(name: str, seed: int, data: st.DataObject) -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    ready = known_spaces()[name]
    whole = drawn(make_space(ready.parameters), seed)
    kept = data.draw(st.sets(st.sampled_from(sorted(whole)), min_size=1))
    for format_name, engine in SAID:
        if engine == ready.engine:
            check_round_trip(format_name, engine, {k: v for k, v in whole.items() if k in kept})


def test_a_block_cache_keeps_its_parts() -> None:
    cache = "block_based_table_factory.block_cache"
    options: dict[str, OptionValue] = {cache: 8 << 20, f"{cache}.num_shard_bits": 4}
    text = export("rocksdb-options", "rocksdb", options)
    assert "  block_cache={capacity=8388608;num_shard_bits=4;}\n" in text
    assert config(text, "rocksdb-options").options == options


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("block_cache.id", "hyper_clock_cache", "only ask for an LRU cache"),
        ("block_cache.num_shard_bits", 4, "would make an empty cache"),
    ],
)
def test_a_cache_that_an_options_file_cannot_ask_for_is_refused(
    option: str, value: OptionValue, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        export("rocksdb-options", "rocksdb", {f"block_based_table_factory.{option}": value})


@pytest.mark.parametrize("policy", ["ribbonfilter:10:-1", "bloomfilter:10:true", "bloomfilter:9.5"])
def test_a_filter_that_flags_would_change_is_refused(policy: str) -> None:
    with pytest.raises(InputError, match="filter_policy"):
        export("db_bench", "rocksdb", {"block_based_table_factory.filter_policy": policy})


@pytest.mark.parametrize(
    ("name", "engine", "option", "texts"),
    [
        ("ekvsb", "rocksdb", "use_direct_reads", ("--use-direct-reads\n", "\n")),
        ("python", "leveldb", "paranoid_checks", ('"paranoid_checks": True', ": False")),
        ("c++", "leveldb", "paranoid_checks", ("paranoid_checks = true", "checks = false")),
    ],
)
def test_one_and_zero_are_truths_as_they_are_to_the_engines(
    name: str, engine: str, option: str, texts: tuple[str, str]
) -> None:
    """`use_direct_reads=1` was left out, as a value that is not allowed."""
    for value, text in zip((1, 0), texts, strict=True):
        assert text in export(name, engine, {option: value})
