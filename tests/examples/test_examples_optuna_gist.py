"""examples/optuna-gist-rocksdb asks the gist's question, and its files say what its page says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lsmtune.engines.formats import read_config
from lsmtune.engines.memory_model import memory_model
from lsmtune.engines.ready import known_presets
from lsmtune.engines.safety import unsafe_uses
from lsmtune.model.config import OptionValue
from lsmtune.model.goal import Direction
from lsmtune.model.workload import Durability
from lsmtune.study.build import load_spec
from lsmtune.study.feasible import Feasibility
from lsmtune.study.spec import DataRungs, Spec

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "optuna-gist-rocksdb"
GIST = ROOT.parent / "shared" / "data" / "seed-results" / "optuna-gist-summary.json"
SCALE = 50
MODEL_MIB = 82  # the memory that the small study leaves to a configuration
SIZES = (
    *("write_buffer_size", "memtable_factory.bucket_count", "bytes_per_sync"),
    *("max_bytes_for_level_base", "target_file_size_base", "compaction_readahead_size"),
    *("block_based_table_factory.block_size", "block_based_table_factory.block_cache"),
)
ACCEPTED = ("default-scaled.ini", "winner-safe-scaled.ini", "winner-small-blocks-scaled.ini")
FIFO_LIMIT = "compaction_options_fifo.max_table_files_size"


def small() -> Spec:
    return load_spec(EXAMPLE / "study.yaml")


def full() -> Spec:
    return load_spec(EXAMPLE / "study-full.yaml")


def data_bytes(spec: Spec) -> int:
    return spec.workload.num * (spec.workload.key_bytes + spec.workload.value_bytes)


def options(name: str) -> dict[str, OptionValue]:
    return dict(read_config(EXAMPLE / name).options)


def test_the_full_study_has_the_figures_of_the_gist() -> None:
    if not GIST.is_file():
        pytest.skip("the shared data are not beside this checkout")
    gist, spec = json.loads(GIST.read_text()), full()
    asked, study, workload = gist["workload"], gist["study"], spec.workload
    assert workload.num == asked["put"] == asked["get"] == asked["delete"]
    assert (workload.key_bytes, workload.value_bytes) == (asked["key_size"], asked["value_size"])
    assert spec.budget.time_s == study["timeout_s"]
    assert spec.sampler.name == "random"
    assert spec.pruner is not None
    settings, rungs = spec.pruner.settings, spec.pruner.rungs
    # The gist's min_resource of 5,000 keys is the smallest size, of which the pruner counts one.
    assert (settings["min_resource"], settings["reduction_factor"]) == (1, 10)
    assert rungs == DataRungs(tuple(study["rungs"]), tuple(study["rung_timeouts_s"]))


def test_the_drain_is_charged_and_the_memory_is_less_than_the_data() -> None:
    for spec in (small(), full()):
        objective = spec.objective
        assert (objective.metric, objective.direction) == ("total_with_drain_s", Direction.MINIMIZE)
        assert any(parameter.conditions for parameter in spec.space.parameters)
    assert full().limits.memory_bytes < data_bytes(full())
    texts = [constraint.text for constraint in small().constraints]
    assert f"memory_model_bytes <= {MODEL_MIB}MiB" in texts
    assert data_bytes(small()) > MODEL_MIB * 2**20
    assert full().limits.memory_bytes / SCALE == pytest.approx(MODEL_MIB * 2**20, rel=0.01)


def test_only_the_full_study_allows_what_is_unsafe() -> None:
    assert small().unsafe_options == {}
    assert set(full().unsafe_options) == {"compaction_style", "disable_auto_compactions"}


def test_the_small_study_has_the_options_of_the_full_one_and_ranges_below() -> None:
    ours = {parameter.name: parameter for parameter in small().space.parameters}
    theirs = {parameter.name: parameter for parameter in full().space.parameters}
    assert ours.keys() == theirs.keys() - {"disable_auto_compactions"}
    for name in SIZES:
        low, high = ours[name].numbers, theirs[name].numbers
        assert low is not None
        assert high is not None
        assert 0.9 < low.high * SCALE / high.high < 1.1, name
        assert ours[name].conditions == theirs[name].conditions, name
        assert ours[name].specials == theirs[name].specials, name


def test_the_scaled_winner_is_the_preset_with_its_sizes_divided() -> None:
    scaled, winner = (
        options("winner-scaled.ini"),
        dict(known_presets()["rocksdb-gist-winner"].options),
    )
    assert scaled.pop(FIFO_LIMIT) == 2**30 // SCALE
    assert scaled.keys() == winner.keys()
    for name, value in winner.items():
        if name in SIZES:
            assert isinstance(value, int)
            assert scaled[name] == pytest.approx(value / SCALE, rel=1e-4), name
        else:
            assert scaled[name] == value, name


def test_the_option_files_are_refused_and_accepted_as_the_page_says() -> None:
    limit_bytes, feasibility = small().limits.memory_bytes, Feasibility(small())
    winner = options("winner-scaled.ini")
    assert sum(memory_model("rocksdb", winner).values()) > limit_bytes
    uses = unsafe_uses("rocksdb", winner, Durability.WAL)
    assert {option for option, *_ in uses} == {"compaction_style", "disable_auto_compactions"}
    for name in ACCEPTED:
        assert feasibility.refusal(options(name)) == "", name
        assert unsafe_uses("rocksdb", options(name), Durability.WAL) == ()
    assert options("default-scaled.ini") == dict(small().baseline.options)
