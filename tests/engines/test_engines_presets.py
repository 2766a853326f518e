"""Presets: real engines take every option of each; the gist's winner is translated in full."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from engine_parts import distribution_library
from option_runs import Opener

from lsmtune.engines.catalogue import option_catalogue
from lsmtune.engines.ready import Preset, known_presets, ready_space
from lsmtune.engines.safety import unsafe_reason
from lsmtune.model.workload import Durability

GIST = Path(__file__).parents[3] / "shared" / "data" / "seed-results" / "optuna-gist-summary.json"
WINNER = "rocksdb-gist-winner"
# Options that presets set and that are no performance options of the catalogue.
BESIDE_CATALOGUE = {"table_factory", "bloom_locality"}
TABLE = "block_based_table_factory."

# What the study called it -> the option, and its value in an options string.
SAID = {
    "block-opt-cache-index-and-filter-blocks": f"{TABLE}cache_index_and_filter_blocks",
    "block-opt-block-size": f"{TABLE}block_size",
    "block-opt-lru-cache": f"{TABLE}block_cache",
    "block-opt-index-type": f"{TABLE}index_type",
    "block-opt-bloom-filter-bits-per-key": f"{TABLE}filter_policy",
    "bytes-per-sync": "bytes_per_sync",
    "compaction-readahead-size": "compaction_readahead_size",
    "compaction-style": "compaction_style",
    "disable-auto-compactions": "disable_auto_compactions",
    "level-zero-file-num-compaction-trigger": "level0_file_num_compaction_trigger",
    "max-background-compactions": "max_background_compactions",
    "max-background-flushes": "max_background_flushes",
    "max-bytes-for-level-base": "max_bytes_for_level_base",
    "max-bytes-for-level-multiplier": "max_bytes_for_level_multiplier",
    "max-write-buffer-number": "max_write_buffer_number",
    "memtable-factory": "memtable_factory.id",
    "memtable-factory-hashlinklist-bucket-count": "memtable_factory.bucket_count",
    "min-write-buffer-number-to-merge": "min_write_buffer_number_to_merge",
    "num-levels": "num_levels",
    "parallelism": "max_background_jobs",
    "table-cache-num-shard-bits": "table_cache_numshardbits",
    "target-file-size-base": "target_file_size_base",
    "use-direct-reads": "use_direct_reads",
    "use-fsync": "use_fsync",
    "write-buffer-size": "write_buffer_size",
}
SPELLED = {"Fifo": "kCompactionStyleFIFO", "HashSearch": "kHashSearch"}
SPELLED |= {"hashlinklist": "hash_linkedlist"}
# Parameters without an option of their own in the preset, for a reason that its notes give, or
# because they are the engine's defaults.
UNSAID = {
    "block-opt-bloom-filter-block-based",
    "block-opt-disable-cache",
    "disable-advise-random-on-open",
    "level-zero-slowdown-writes-trigger",
    "level-zero-stop-writes-trigger",
    "memtable-prefix-bloom-ratio",
    "min-write-buffer-number",
    "optimize-for-point-lookup",
    "use-direct-io-for-flush-and-compaction",
}


@pytest.fixture
def winner() -> dict[str, Any]:
    if not GIST.is_file():
        pytest.skip("the shared data are not beside this checkout")
    return dict(json.loads(GIST.read_text())["best_params"])


def test_presets_have_names_sources_and_options_of_their_engine() -> None:
    for name, known in known_presets().items():
        assert known.name == name
        assert name.startswith(f"{known.engine}-")
        assert min(len(known.source), len(known.summary)) > 10
        assert set(known.options) - BESIDE_CATALOGUE <= set(option_catalogue(known.engine)), name
    wanted = {"increase-parallelism", "optimize-for-point-lookup", "optimize-for-small-db"}
    wanted |= {f"optimize-{style}-style-compaction" for style in ("level", "universal")}
    wanted |= {"default", "gist-winner", "basic-tuning"}
    assert {f"rocksdb-{name}" for name in wanted} | {"leveldb-default"} <= set(known_presets())


def test_a_preset_is_unsafe_exactly_where_its_notes_say_so() -> None:
    for known in known_presets().values():
        unsafe = [
            name
            for name, value in known.options.items()
            if unsafe_reason(known.engine, name, value, Durability.WAL)
        ]
        assert bool(unsafe) == any(note.startswith("UNSAFE") for note in known.notes), known.name


@pytest.mark.engine
@pytest.mark.parametrize("known", known_presets().values(), ids=lambda known: known.name)
def test_the_engine_takes_every_option_of_a_preset(
    driver: Path, request: pytest.FixtureRequest, tmp_path: Path, known: Preset
) -> None:
    library = request.getfixturevalue(f"{known.engine}_library")
    opener = Opener(driver, known.engine, library, tmp_path)
    if not opener.able(known.options):
        pytest.skip("the file system of the test has no direct input and output")
    assert opener.trouble(known.options) == ""


@pytest.mark.engine
def test_the_oldest_engine_covered_takes_them_too(driver: Path, tmp_path: Path) -> None:
    for engine in ("rocksdb", "leveldb"):
        opener = Opener(driver, engine, distribution_library(engine), tmp_path)
        own = [p for p in known_presets().values() if p.engine == engine and opener.able(p.options)]
        assert {p.name: opener.trouble(p.options) for p in own} == {p.name: "" for p in own}


def test_every_parameter_of_the_winner_is_said_or_explained(winner: dict[str, Any]) -> None:
    assert set(winner) == set(SAID) | UNSAID
    options = known_presets()[WINNER].options
    for parameter, option in SAID.items():
        value = winner[parameter]
        if parameter == "block-opt-bloom-filter-bits-per-key":
            value = f"bloomfilter:{value}"
        assert options[option] == SPELLED.get(value, value), parameter
    notes = " ".join(known_presets()[WINNER].notes)
    defaults = {"block-opt-disable-cache", "disable-advise-random-on-open"}
    defaults |= {"use-direct-io-for-flush-and-compaction"}
    assert not any(winner[parameter] for parameter in defaults)
    assert all(parameter in notes for parameter in UNSAID - defaults)


def test_the_winner_lies_within_the_ranges_of_the_gists_space() -> None:
    parameters = {p.name: p for p in ready_space("rocksdb-gist", "test", "").parameters}
    fixed = ready_space("rocksdb-gist", "test", "").fixed
    for name, value in known_presets()[WINNER].options.items():
        if name in fixed:
            assert fixed[name] == value
        elif (numbers := parameters[name].numbers) is not None:
            assert isinstance(value, int | float)
            special = any(value == special.value for special in parameters[name].specials)
            assert special or numbers.low <= value <= numbers.high, name
        elif name != f"{TABLE}filter_policy":  # 58 bits per key are worth nobody's search
            assert parameters[name].contains(value), name
