"""A limit in bytes or seconds is one of the target: a run of another size is not held to it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from size_parts import (
    ONE_LENGTH,
    ROCKSDB,
    ByBytes,
    FallingAtFirst,
    Flushing,
    Rising,
    large,
    mixed,
    run_large,
)
from study_parts import Recorder, make_spec, tuned

from lsmtune.experiment.measurer import Measurer
from lsmtune.experiment.schedule import Arm, Slot
from lsmtune.experiment.store import Role
from lsmtune.study.build import parse_spec
from lsmtune.study.feasible import limits_of_length, limits_of_size
from lsmtune.study.finalist import for_proof
from lsmtune.study.size import RunSize, at_scale
from lsmtune.study.start import baseline_config, candidate_config, open_study


@pytest.mark.parametrize(
    ("asked", "of_size", "of_length"),
    [
        ("constraints: ['rss_bytes_max <= 2GiB']", True, False),
        ("constraints: ['db_bytes <= 2GiB']", True, False),
        ("constraints: ['database_bytes_max <= 1.2 * data_bytes']", True, False),
        ("constraints: ['stall_s <= 5']", True, True),
        ("constraints: ['latency_us_max <= 50000']", True, True),
        ("constraints: ['latency_us_p99 <= num / 1000']", True, False),
        ("guards: ['database_bytes <= baseline + 0.1 * data_bytes']", True, False),
        (
            "constraints: ['rss_bytes_max <= 1.2 * baseline', 'latency_us_p99 <= 2000']",
            False,
            False,
        ),
        ("constraints: ['space_amplification <= 1.2', 'data_bytes <= 4GiB']", False, False),
        (ONE_LENGTH, False, False),
    ],
)
def test_what_is_a_limit_of_one_size(
    asked: str, *, of_size: bool, of_length: bool, tmp_path: Path
) -> None:
    spec = large(tmp_path, "{time: 2h}", asked=asked)
    assert bool(limits_of_size(spec)) is of_size
    assert bool(limits_of_length(spec)) is of_length


@pytest.mark.parametrize("limit", ["database_bytes <= 1.2 * data_bytes", "rss_bytes_max <= 2GiB"])
def test_a_limit_in_bytes_is_kept_by_runs_of_the_target(limit: str, tmp_path: Path) -> None:
    """A model of a fiftieth was held to it, and could take fifty times as much."""
    spec = large(tmp_path, "{time: 2h, trials: 3}", asked=f"constraints: [{limit}]")
    runner, observer = ByBytes(), Recorder()
    run_large(spec, tmp_path / "study", runner, observer)
    assert {request.workload.num for request in runner.requests} == {10_000_000}
    assert any(f"a model of it would keep or break `{limit}`" in w for w in observer.warnings)


def test_a_limit_on_what_the_baseline_takes_has_a_model(tmp_path: Path) -> None:
    asked = "guards: [database_bytes <= 1.2 * baseline, stall_s <= 2 * baseline]"
    spec = large(tmp_path, "{time: 2h, trials: 3}", asked=asked)
    runner, observer = ByBytes(), Recorder()
    run_large(spec, tmp_path / "study", runner, observer)
    assert runner.requests[1].workload.num < 10_000_000
    assert not any("keep or break" in line for line in observer.warnings)


def test_a_limit_that_comes_to_a_model_is_told_of(tmp_path: Path) -> None:
    """Constraints may change between two sessions, and the size of the runs may not."""
    observer, again = Recorder(), Recorder()
    observer.stop_at = again.stop_at = ("trial_finished", 1)
    assert run_large(
        large(tmp_path, "{time: 20m}"), tmp_path / "s", ByBytes(), observer
    ).interrupted
    again.stop_at = ("trial_finished", 3)
    limited = large(tmp_path, "{time: 20m}", asked=f"{ONE_LENGTH}\nconstraints: [db_bytes <= 2GiB]")
    run_large(limited, tmp_path / "s", ByBytes(), again)
    (told,) = (line for line in again.warnings if "keeps or breaks `db_bytes <= 2GiB`" in line)
    assert "begin anew" in told
    assert not any("keeps or breaks" in line for line in observer.warnings)


def test_a_limit_on_what_grows_is_told_of_where_runs_become_longer(tmp_path: Path) -> None:
    """Runs of eight times the length broke `stall_s <= 5`, every one of them."""
    observer, spec = Recorder(), make_spec(tmp_path, more="constraints: [stall_s <= 5]")
    tuned(spec, tmp_path / "study", Flushing(500), observer)
    limit = "`stall_s <= 5` counts for runs 4.5 times as long"
    assert any(limit in line for line in observer.warnings), observer.warnings


def test_a_limit_on_what_grows_is_told_of_where_the_pairs_are_longer(tmp_path: Path) -> None:
    spec = parse_spec(f"{mixed(tmp_path).text}constraints: [stall_s <= 5]\n", tmp_path / "s.yaml")
    observer = Recorder()
    tuned(spec, tmp_path / "study", Rising(), observer)
    told = [line for line in observer.warnings if "in the proof `stall_s <= 5` counts" in line]
    assert len(told) == 1


@pytest.mark.parametrize(("workload", "longer"), [("ycsb-d", True), ("ycsb-a", False)])
def test_a_limit_on_what_grows_is_told_of_where_what_inserts_cannot_be_warmed_up(
    workload: str, *, longer: bool, tmp_path: Path
) -> None:
    """The pairs of YCSB D were twice as long, in place of a warmup, and nobody said so."""
    text = mixed(tmp_path).text.replace("ycsb-a", workload) + "constraints: [stall_s <= 5]\n"
    spec, runner, observer = parse_spec(text, tmp_path / "s.yaml"), FallingAtFirst(), Recorder()
    finalist = candidate_config(spec, 7, {"write_buffer_size": 2 << 20})
    with open_study(tmp_path / "study", spec) as folder:
        measurer = Measurer(
            *(folder, runner, *at_scale(spec, 1.0), observer, observer.stop, runner.clock)
        )
        measurer.measure(Arm(ROCKSDB, baseline_config(spec)), 1, Slot(Role.BASELINE, 0))
        measurer.measure(Arm(ROCKSDB, finalist), 1, Slot(Role.TRIAL, 7, trial=7))
        proof = for_proof(spec, measurer, RunSize(), 7, math.inf)
    (run,) = proof.workloads[0].measured_phases
    assert run.operations == (12_000 if longer else 6000)
    told = ["in the proof `stall_s <= 5` counts for runs 2 times as long: state it for these"]
    assert observer.warnings == (told if longer else [])
