"""A limit in bytes or seconds is one of the target: a run of another size is not held to it."""

from __future__ import annotations

from pathlib import Path

import pytest
from size_parts import (
    ONE_LENGTH,
    ByBytes,
    Flushing,
    Rising,
    large,
    mixed,
    run_large,
)
from study_parts import Recorder, make_spec, tuned

from lsmtune.study.build import parse_spec
from lsmtune.study.feasible import limits_of_length, limits_of_size


@pytest.mark.parametrize(
    ("asked", "of_size", "of_length"),
    [
        ("constraints: ['rss_bytes_max <= 2GiB']", True, False),
        ("constraints: ['db_bytes <= 2GiB']", True, False),
        ("constraints: ['database_bytes_max <= 1.2 * data_bytes']", True, False),
        ("constraints: ['stall_s <= 5']", True, True),
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
    limit = "`stall_s <= 5` counts for runs 3 times as long"
    assert any(limit in line for line in observer.warnings), observer.warnings


def test_a_limit_on_what_grows_is_told_of_where_the_pairs_are_longer(tmp_path: Path) -> None:
    spec = parse_spec(f"{mixed(tmp_path).text}constraints: [stall_s <= 5]\n", tmp_path / "s.yaml")
    observer = Recorder()
    tuned(spec, tmp_path / "study", Rising(), observer)
    told = [line for line in observer.warnings if "in the proof `stall_s <= 5` counts" in line]
    assert len(told) == 1
