"""The tables of a sweep: means, ratios paired by round, the best cell, and what is said of it."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from sweep_parts import axis, by_size, cells_of, failed, run_of, runs_of, sweep_of

from lsmtune.experiment.store import StoredMeasurement
from lsmtune.experiment.sweep import SweepWorkload
from lsmtune.experiment.sweep_grid import GridCell, is_rough, left_s, too_short, written_bytes
from lsmtune.experiment.sweep_tables import summarise
from lsmtune.model.measurement import Outcome
from lsmtune.stats.intervals import paired_ratio

SWEEP = sweep_of()
CELLS = cells_of(SWEEP)
SUSTAINED = "sustained_throughput_ops_s"


def test_rates_are_those_of_the_runs_in_operations_and_in_bytes() -> None:
    (table,) = summarise(SWEEP, CELLS, runs_of(CELLS, 1)).tables
    cell = table.cells[4]
    assert cell.values == ("32", "200")
    rate = by_size(CELLS[4], 0)
    assert cell.value("throughput_ops_s") == pytest.approx(rate)
    assert cell.value("throughput_mb_s") == pytest.approx(rate * 232 / 1e6)
    whole_s = 1000 / rate + 0.5
    assert cell.value("phase_with_drain_s") == pytest.approx(whole_s)
    assert cell.value("sustained_throughput_mb_s") == pytest.approx(1000 * 232 / 1e6 / whole_s)
    assert cell.value("total_with_drain_s") == pytest.approx(whole_s)
    assert cell.metrics[SUSTAINED].low is None


def test_ratios_are_paired_by_round_so_that_the_drift_of_rounds_cancels() -> None:
    runs = runs_of(CELLS, 4)
    (table,) = summarise(SWEEP, CELLS, runs).tables
    ratio = table.cells[8].ratios["throughput_ops_s"]
    expected = by_size(CELLS[8], 0) / by_size(CELLS[0], 0)
    assert ratio.pairs == 4
    assert ratio.ratio == pytest.approx(expected)
    assert ratio.low == pytest.approx(expected)
    assert ratio.high == pytest.approx(expected)
    spread = table.cells[8].metrics["throughput_ops_s"]
    assert spread.high is not None
    assert spread.high > 1.1 * spread.mean, "the means do not hide the drift"
    mean = table.cells[0].metrics["throughput_ops_s"].mean
    assert spread.mean / mean == pytest.approx(expected), "means and ratios agree"
    assert table.cells[0].ratios == {}


def test_a_ratio_has_the_interval_of_the_pairs() -> None:
    def rate(cell: GridCell, number: int) -> float:
        return 1000.0 * (1.0 + 0.03 * number) if cell.point == (0, 0) else 2000.0

    (table,) = summarise(SWEEP, CELLS, runs_of(CELLS, 3, rate)).tables
    expected = paired_ratio([1000.0, 1030.0, 1060.0], [2000.0] * 3)
    found = table.cells[1].ratios["throughput_ops_s"]
    assert found.ratio == pytest.approx(expected.ratio)
    assert found.low == pytest.approx(expected.low)


def test_a_run_that_failed_is_kept_said_and_in_no_mean() -> None:
    runs = runs_of(CELLS, 3)
    at = next(i for i, run in enumerate(runs) if run.arm == CELLS[1].name and run.round == 1)
    runs[at] = failed(runs[at])
    result = summarise(SWEEP, CELLS, runs)
    (table,) = result.tables
    assert table.cells[1].outcomes == {"ok": 2, "timeout": 1}
    assert table.cells[1].metrics[SUSTAINED].runs == 2
    assert table.cells[1].ratios[SUSTAINED].pairs == 2
    assert table.cells[2].ratios[SUSTAINED].pairs == 3
    (failure,) = result.failures
    assert (failure.cell, failure.round, failure.why) == (CELLS[1].name, 1, "took too long")
    assert "1 of 27 runs did not end well; their cells rest on the others" in table.notes


def test_the_best_cell_and_the_edges_that_it_lies_on() -> None:
    def peak(cell: GridCell, number: int) -> float:
        return {1: 3e3}.get(cell.point[0], 1e3) * (2.0 if cell.point[1] == 2 else 1.0) + number

    (table,) = summarise(SWEEP, CELLS, runs_of(CELLS, 2, peak)).tables
    assert table.best == 5
    assert table.notes[0] == (
        "most operations per second, sustained: key_bytes=32, value_bytes=400"
    )
    edges = [note for note in table.notes if note.startswith("edge")]
    assert edges == [
        "edge: value_bytes=400 is the last value of its axis; what lies beyond it was not measured"
    ]


def test_cells_that_cannot_be_told_from_the_best_are_counted() -> None:
    def rate(cell: GridCell, number: int) -> float:
        near = {(0, 0): 1e5, (0, 1): 0.99e5}.get((cell.point[0], cell.point[1]), 1e4)
        return near * (1.0 + 0.05 * (number % 2 if cell.point == (0, 1) else 0))

    (table,) = summarise(SWEEP, CELLS, runs_of(CELLS, 4, rate, drain_s=0.0)).tables
    assert table.notes[0].endswith("; 1 of the 8 others cannot be told from it by these rounds")
    (table,) = summarise(SWEEP, CELLS, runs_of(CELLS, 1, rate)).tables
    assert table.notes[0].endswith("; all others cannot be told from it by these rounds")


def test_a_cell_that_beat_the_best_one_in_all_their_rounds_is_not_told_from_it() -> None:
    """Cut off in a fast round, a sweep left out the faster cell, which had not run in it."""
    sweep = sweep_of(axes=(axis("key_bytes", 16, 32),))
    cells = cells_of(sweep)

    def rate(cell: GridCell, number: int) -> float:
        return (2.0 if number == 2 else 1.0) * (1000.0 if cell.point == (0,) else 1100.0)

    (table,) = summarise(sweep, cells, runs_of(cells, 3, rate, drain_s=0.0)[:5]).tables
    assert table.best == 0
    assert table.notes[0].endswith("; all others cannot be told from it by these rounds")


def test_the_fastest_cell_is_rarely_told_apart_from_the_one_that_came_out_first() -> None:
    """Of nine cells that are all alike, 95 % intervals of the first one left each out in 10 %."""
    random, told_apart, tables = np.random.default_rng(5), 0, 40
    for _ in range(tables):
        noise = 1e4 * np.exp(0.05 * random.standard_normal((len(CELLS), 4)))
        rates = {cell.name: noise[index] for index, cell in enumerate(CELLS)}
        runs = runs_of(CELLS, 4, lambda cell, n, of=rates: float(of[cell.name][n]), drain_s=0.0)
        (table,) = summarise(SWEEP, CELLS, runs).tables
        alike = re.search(r"; (all others|\d+)", table.notes[0])
        assert alike is not None
        told_apart += 0 if alike[1] == "all others" else 8 - int(alike[1])
    assert told_apart / (tables * len(CELLS)) < 0.05


def test_two_values_have_no_middle_and_so_no_edge() -> None:
    sweep = sweep_of(axes=(axis("key_bytes", 16, 32),))
    cells = cells_of(sweep)
    (table,) = summarise(sweep, cells, runs_of(cells, 2)).tables
    assert not any("edge" in note for note in table.notes)


def test_what_is_unfinished_has_the_tables_that_it_can_have() -> None:
    runs = runs_of(CELLS, 3)[:11]
    result = summarise(SWEEP, CELLS, runs)
    assert (result.runs, result.runs_wanted) == (11, 27)
    (table,) = result.tables
    assert table.cells[8].metrics[SUSTAINED].runs == 1
    assert summarise(SWEEP, CELLS, []).tables[0].best is None


def test_a_round_that_was_begun_and_is_not_asked_for_any_more_is_not_unfinished() -> None:
    """After Ctrl-C in round 2 of 3, fewer rounds ended as interrupted (130), again and again."""
    result = summarise(replace(SWEEP, repeats=1), CELLS, runs_of(CELLS, 2)[:11])
    assert (result.runs, result.runs_wanted, result.repeats) == (11, 11, 2)
    result = summarise(replace(SWEEP, repeats=1), CELLS, runs_of(CELLS, 1)[:5])
    assert (result.runs, result.runs_wanted) == (5, 9)


def test_programs_that_know_no_drain_are_compared_by_what_they_know() -> None:
    result = summarise(SWEEP, CELLS, runs_of(CELLS, 2, drain_s=None))
    (table,) = result.tables
    assert table.metric == "throughput_ops_s"
    assert SUSTAINED not in table.cells[0].metrics
    assert "phase_with_drain_s" not in table.cells[0].metrics
    assert table.notes[0].startswith("most operations per second, without the drain")


def test_each_measure_phase_has_its_own_table() -> None:
    sweep = sweep_of(workloads=(SweepWorkload("put-get-delete"),))
    cells = cells_of(sweep)
    result = summarise(sweep, cells, runs_of(cells, 1))
    assert [table.title for table in result.tables] == [
        "put-get-delete: put",
        "put-get-delete: get",
        "put-get-delete: delete",
    ]
    assert len(result.rows) == 27


def test_what_ran_too_short_is_warned_of_once_per_workload() -> None:
    def short(run: StoredMeasurement) -> StoredMeasurement:
        phases = tuple(replace(phase, flushes=4) for phase in run.measurement.phases)
        return replace(run, measurement=replace(run.measurement, phases=phases))

    result = summarise(SWEEP, CELLS, map(short, runs_of(CELLS, 2)), ["mind the gap"])
    first, second = result.warnings
    assert first == "mind the gap"
    assert second.startswith("in 9 of 9 cells of fillseq the runs may be too short to say what is")
    assert "fillseq: flushed 4 times; 20 make a rate of writing; num=5000 may do" in second


def test_longer_runs_are_asked_for_in_the_words_of_the_workload() -> None:
    """A sweep of YCSB A was told that num=5000 may do, which the next command refused."""
    sizes = {"recordcount": 1000, "operationcount": 500}
    axes = (axis("fieldlength", 10, 20),)
    sweep = sweep_of(workloads=(SweepWorkload("ycsb-a"),), axes=axes, parameters=sizes)
    cells = cells_of(sweep)
    runs = [
        replace(run, measurement=replace(run.measurement, phases=(replace(phase, flushes=4),)))
        for run in runs_of(cells, 1)
        for phase in run.measurement.phases
    ]
    (line,) = too_short(cells, runs)
    assert "; recordcount=5000, operationcount=2500 may do)" in line


def test_the_time_left_is_what_the_cells_took_times_what_is_missing() -> None:
    names = [cell.name for cell in CELLS]
    assert left_s(names, 3, []) is None
    one = [replace(run_of(CELLS[0], 0, 1e3), wall_s=4.0)]
    assert left_s(names, 3, one) == pytest.approx(2 * 4.0 + 8 * 3 * 4.0)
    assert is_rough(names, one)
    runs = runs_of(CELLS, 1)
    assert left_s(names, 3, runs) == pytest.approx(9 * 2 * 2.0)
    assert not is_rough(names, runs)
    assert left_s(names, 1, runs) == 0.0
    assert written_bytes(CELLS) == sum(
        1000 * (k + v) for k in (16, 32, 64) for v in (100, 200, 400)
    )


def test_outcomes_count_all_runs() -> None:
    runs = [failed(run, Outcome.CRASHED) for run in runs_of(CELLS, 2)]
    (table,) = summarise(SWEEP, CELLS, runs).tables
    assert table.notes == ("no run of this table ended well",)
    assert table.cells[0].outcomes == {"crashed": 2}
