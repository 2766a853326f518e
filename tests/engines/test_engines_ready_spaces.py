"""Ready spaces: sound, safe unless they say so, and real engines open what is drawn from them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import optuna
import pytest
from engine_parts import distribution_library
from option_runs import Opener

from lsmtune.engines.catalogue import option_catalogue, read_data, read_entries
from lsmtune.engines.ready import ReadySpace, known_spaces, ready_space
from lsmtune.engines.safety import unsafe_reason
from lsmtune.errors import InputError
from lsmtune.model.config import OptionValue
from lsmtune.model.workload import Durability
from lsmtune.space.constraint import Constraint, ConstraintKind, make_constraint
from lsmtune.space.parameter import Parameter
from lsmtune.space.space import make_space
from optuna_draws import draws

NAMES = (
    *(f"leveldb-{kind}" for kind in ("basic", "contest", "full")),
    *(f"rocksdb-{kind}" for kind in ("basic", "write", "read", "gist", "full")),
)
SPACES = list(known_spaces().values())
DRAWN = 24
TABLE = "block_based_table_factory."
# What the Optuna study over ekvsb tuned, as options.
GIST = {
    "advise_random_on_open",
    "disable_auto_compactions",
    "use_direct_io_for_flush_and_compaction",
    "use_direct_reads",
    "use_fsync",
    "bytes_per_sync",
    "compaction_readahead_size",
    "compaction_style",
    "level0_file_num_compaction_trigger",
    "level0_slowdown_writes_trigger",
    "level0_stop_writes_trigger",
    "max_background_compactions",
    "max_background_flushes",
    "max_background_jobs",  # parallelism
    "max_bytes_for_level_base",
    "max_bytes_for_level_multiplier",
    "max_write_buffer_number",
    "memtable_prefix_bloom_size_ratio",
    "min_write_buffer_number_to_merge",
    "num_levels",
    "table_cache_numshardbits",
    "target_file_size_base",
    "write_buffer_size",
    "memtable_factory.id",
    "memtable_factory.bucket_count",
    "memtable_factory.skiplist_height",
    "memtable_factory.branching_factor",
    # optimize-for-point-lookup
    "memtable_whole_key_filtering",
    f"{TABLE}data_block_index_type",
    f"{TABLE}data_block_hash_table_util_ratio",
    f"{TABLE}block_size",
    f"{TABLE}block_cache",
    f"{TABLE}no_block_cache",
    f"{TABLE}filter_policy",
    f"{TABLE}index_type",
    f"{TABLE}cache_index_and_filter_blocks",
}


def each(spaces: list[ReadySpace]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("space", spaces, ids=[space.name for space in spaces])


def defaults_of(space: ReadySpace) -> dict[str, OptionValue]:
    catalogue = option_catalogue(space.engine)
    known = {name: i.default for name, i in catalogue.items() if i.default is not None}
    return {**known, **space.fixed}


def constraints_of(space: ReadySpace) -> list[Constraint]:
    names = option_catalogue(space.engine)
    return [make_constraint(text, names, [], [], space.name, text) for text in space.constraints]


def drawn(space: ReadySpace, count: int) -> tuple[list[dict[str, OptionValue]], int]:
    """The first `count` seeded random configurations that keep the constraints, and all tries."""
    search, defaults = make_space(space.parameters), defaults_of(space)
    constraints = constraints_of(space)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=3))
    found: list[dict[str, OptionValue]] = []
    tries = 0
    while len(found) < count and tries < 50 * count:
        tries += 1
        values = search.suggest(draws(search, study.ask()))
        if all(constraint.holds(defaults | values) for constraint in constraints):
            found.append({**space.fixed, **values})
    return found, tries


def test_the_spaces_have_the_names_that_are_promised() -> None:
    assert tuple(known_spaces()) == NAMES
    assert ready_space("rocksdb-write", "study.yaml", "space") is known_spaces()["rocksdb-write"]


@each(SPACES)
def test_a_space_is_sound(space: ReadySpace) -> None:
    make_space(space.parameters)
    defaults = defaults_of(space)
    for constraint in constraints_of(space):
        assert constraint.kind is ConstraintKind.OPTIONS
        assert constraint.holds(defaults), "the engine's defaults break it"


@each(SPACES)
def test_every_parameter_has_a_name_and_a_range_of_the_catalogue(space: ReadySpace) -> None:
    catalogue = option_catalogue(space.engine)
    for parameter in space.parameters:
        whole = catalogue[parameter.name].parameter()
        if parameter.numbers is not None and space.name != "rocksdb-gist":
            assert whole.numbers is not None
            assert whole.numbers.low <= parameter.numbers.low
            assert parameter.numbers.high <= whole.numbers.high
        assert set(parameter.choices) <= set(whole.choices)
        assert not catalogue[parameter.name].choices_since.keys() & set(map(str, parameter.choices))
    names = [parameter.name for parameter in space.parameters]
    assert not any(catalogue[name].since or catalogue[name].until for name in names)
    assert not set(names) & set(space.fixed)


@each(SPACES)
def test_a_space_says_which_unsafe_options_it_has(space: ReadySpace) -> None:
    values = {p.name: p.choices for p in space.parameters} | {
        name: (value,) for name, value in space.fixed.items()
    }
    unsafe = {
        name
        for durability in Durability
        for name, possible in values.items()
        if any(unsafe_reason(space.engine, name, value, durability) for value in possible)
    }
    assert unsafe == set(space.unsafe)
    assert bool(unsafe) == (space.name == "rocksdb-gist")
    assert ("unsafe" in space.summary) == bool(unsafe)


def test_the_gists_space_has_all_that_the_gist_tunes_and_its_conditions() -> None:
    parameters = {p.name: p for p in known_spaces()["rocksdb-gist"].parameters}
    assert set(parameters) >= GIST
    assert _when(parameters["memtable_factory.bucket_count"]) == {
        "memtable_factory.id": ("prefix_hash", "hash_linkedlist")
    }
    assert _when(parameters[f"{TABLE}block_cache"]) == {f"{TABLE}no_block_cache": (False,)}


def _when(parameter: Parameter) -> dict[str, tuple[OptionValue, ...]]:
    return {condition.name: condition.values for condition in parameter.conditions}


def test_a_condition_on_an_option_that_is_held_still_is_settled() -> None:
    read = {p.name: p for p in known_spaces()["rocksdb-read"].parameters}
    assert _when(read[f"{TABLE}block_cache"]) == {}
    full = {p.name for p in known_spaces()["rocksdb-full"].parameters}
    assert "compaction_options_universal.size_ratio" in full
    assert not any(name.startswith("compaction_options_fifo.") for name in full)
    assert "inplace_update_num_locks" not in full


def test_the_contest_keeps_its_limits() -> None:
    total, file = constraints_of(known_spaces()["leveldb-contest"])
    gib = 2**30
    assert total.holds({"write_buffer_size": gib // 2, "cache_size": gib // 2})
    assert not total.holds({"write_buffer_size": gib // 2, "cache_size": gib // 2 + 1})
    assert file.holds({"max_file_size": gib})
    assert not file.holds({"max_file_size": gib + 1})


@each(SPACES)
def test_a_random_draw_keeps_the_constraints_often_enough(space: ReadySpace) -> None:
    found, tries = drawn(space, 40)
    assert len(found) / tries > 0.1


@pytest.mark.engine
@each(SPACES)
def test_the_engine_opens_and_takes_what_is_drawn(
    driver: Path, request: pytest.FixtureRequest, tmp_path: Path, space: ReadySpace
) -> None:
    library = request.getfixturevalue(f"{space.engine}_library")
    check(Opener(driver, space.engine, library, tmp_path), space, DRAWN)


@pytest.mark.engine
@each([space for space in SPACES if space.engine == "rocksdb"])
def test_the_oldest_engine_covered_does_too(
    driver: Path, tmp_path: Path, space: ReadySpace
) -> None:
    opener = Opener(driver, space.engine, distribution_library(space.engine), tmp_path)
    check(opener, space, DRAWN // 4)


def check(opener: Opener, space: ReadySpace, count: int) -> None:
    configs = [options for options in drawn(space, count)[0] if opener.able(options)]
    assert configs
    with ThreadPoolExecutor(2) as pool:
        troubles = list(pool.map(opener.trouble, configs))
    assert [(t, o) for t, o in zip(troubles, configs, strict=True) if t] == []


def test_a_wrong_name_is_one_line_with_the_nearest() -> None:
    with pytest.raises(InputError) as caught:
        ready_space("rocksdb-wrte", "study.yaml", "space")
    line = str(caught.value)
    assert line.startswith("study.yaml: space: no such ready space; found 'rocksdb-wrte'; allowed")
    assert line.endswith("did you mean rocksdb-write?")


def test_every_option_that_the_data_names_is_one_and_is_where_it_is_named() -> None:
    """A condition that never holds would leave it out in silence."""
    for name, entry in read_entries(read_data("spaces.yaml"), "spaces.yaml").items():
        space = known_spaces()[name]
        assert name.startswith(f"{space.engine}-")
        assert len(space.summary) > 10
        beside = {*entry.get("leaves_out", {}), *entry.get("fixed", {})}
        assert beside <= option_catalogue(space.engine).keys()
        named = {parameter.name for parameter in space.parameters}
        assert entry.get("parameters", {}).keys() <= named
