from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmtune.errors import InputError
from lsmtune.model.config import EngineIdentity
from lsmtune.model.measurement import IntermediateReport, Interval, Measurement, Outcome
from lsmtune.study.build import parse_spec, parse_stored_spec
from lsmtune.study.spec import DataRungs, PrunerSpec, Spec, TimeRungs
from lsmtune.study.stored import (
    TimeReports,
    reached_by,
    rung_workloads,
    smaller,
    time_reports,
)
from lsmtune.study.trials import watching
from lsmtune.workloads.stated import make_workload


def intervals(*steps: tuple[float, int]) -> tuple[Interval, ...]:
    found, before = [], 0
    for elapsed_s, total in steps:
        found.append(Interval(elapsed_s, 0.25, total - before, total, 0.0, 0))
        before = total
    return tuple(found)


def test_a_report_is_the_rate_since_the_phase_began() -> None:
    reports = TimeReports(TimeRungs(1.0, "w"))
    series = intervals((0.5, 100), (1.01, 200), (1.5, 300), (2.0, 800))
    assert [reports.take(i) for i in series] == [
        None,
        (1, pytest.approx(200 / 1.01)),
        None,
        (2, 400.0),
    ]


def with_pending(*steps: tuple[float, int, int | None, int | None]) -> tuple[Interval, ...]:
    plain = intervals(*((elapsed_s, total) for elapsed_s, total, _, _ in steps))
    return tuple(
        replace(each, interval_s=1.0, pending_compaction_bytes=debt, background_write_bytes=written)
        for each, (_, _, debt, written) in zip(plain, steps, strict=True)
    )


def test_a_rung_charges_the_compactions_that_are_due() -> None:
    """A burst rate ranked first those that put off the work for which the objective charges."""
    # 300 operations a second, but half of the work was put off: 100 bytes a second are paid.
    putting_off = with_pending((1.0, 300, 100, 100), (2.0, 600, 200, 100))
    steady = with_pending((1.0, 200, 0, 200), (2.0, 400, 0, 200))
    charged, burst = TimeRungs(1.0, "w", charged=True), TimeRungs(1.0, "w")

    def values(rungs: TimeRungs, series: tuple[Interval, ...]) -> list[float]:
        reports = TimeReports(rungs)
        return [report[1] for report in map(reports.take, series) if report is not None]

    assert values(charged, putting_off) == [150.0, 150.0]
    assert values(charged, steady) == [200.0, 200.0]
    assert values(burst, putting_off) == [300.0, 300.0]
    assert values(burst, steady) == [200.0, 200.0]


def test_the_rate_of_draining_is_that_of_the_steps_that_drained() -> None:
    reports = TimeReports(TimeRungs(1.0, "w", charged=True))
    series = with_pending((1.0, 100, 50, 0), (2.0, 200, 100, 0), (3.0, 300, 100, 100))
    assert [reports.take(each) for each in series] == [None, None, (3, 75.0)]


def test_a_debt_of_which_nothing_is_known_is_not_taken_for_none() -> None:
    reports = TimeReports(TimeRungs(1.0, "w", charged=True))
    series = with_pending((1.0, 100, None, None), (2.0, 200, 0, 0), (3.0, 300, 0, None))
    # Nothing was flushed in the second step; the third is of an engine that never flushes.
    assert [reports.take(each) for each in series] == [None, None, (3, 100.0)]


def test_a_compaction_that_never_tells_its_debt_is_not_taken_to_have_none() -> None:
    """A universal trial was ranked by its burst, before level ones that were charged."""
    series = with_pending((1.0, 300, 0, 100), (2.0, 600, 0, 100))
    run = Measurement(
        *(Outcome.PRUNED, EngineIdentity("rocksdb"), {}, "w", 1, 0.0, 2.0),
        intervals_unfinished=series,
        phase_unfinished="w",
    )
    charged, burst = TimeRungs(1.0, "w", charged=True), TimeRungs(1.0, "w")
    for style, told in (("kCompactionStyleLevel", 2), ("kCompactionStyleUniversal", 0)):
        styled = replace(run, options={"compaction_style": style})
        assert len(list(time_reports(charged, styled, "m"))) == told
        assert len(list(time_reports(burst, styled, "m"))) == 2


@pytest.mark.parametrize(
    ("engine", "workload", "metric", "charged"),
    [
        ("rocksdb", "fillrandom", "sustained_throughput_ops_s", True),
        ("rocksdb", "fillrandom", "throughput_ops_s", False),
        ("rocksdb", "readrandom", "sustained_throughput_ops_s", False),
        ("leveldb", "readrandom", "sustained_throughput_ops_s", False),
        ("leveldb", "fillrandom", "throughput_ops_s", False),
    ],
)
def test_rungs_in_time_charge_what_the_objective_charges(
    engine: str, workload: str, metric: str, charged: bool
) -> None:
    assert a_pruner(engine, workload, metric).rungs == TimeRungs(1.0, workload, charged)


def test_rungs_in_time_are_of_the_phase_that_the_objective_looks_at() -> None:
    """What a get leaves to compact is none of its own: the puts before it left that."""

    def rungs(objective: str) -> object:
        return a_pruner("rocksdb", "put-get-delete", objective).rungs

    assert rungs("sustained_throughput_ops_s, phase: put") == TimeRungs(1.0, "put", charged=True)
    assert rungs("sustained_throughput_ops_s, phase: get") == TimeRungs(1.0, "get")
    assert rungs("throughput_ops_s") == TimeRungs(1.0, "delete")


@pytest.mark.parametrize(
    ("outcome", "workload", "phase", "objective", "done", "reached"),
    [
        (Outcome.TIMEOUT, "overwrite", "overwrite", "sustained_throughput_ops_s", 200, 80.0),
        (Outcome.TIMEOUT, "overwrite", "overwrite", "throughput_ops_s", 200, 80.0),
        # A rate of 0 was told as how far it came: from then on no value counted as a logarithm.
        (Outcome.TIMEOUT, "overwrite", "overwrite", "throughput_ops_s", 0, None),
        (Outcome.TIMEOUT, "overwrite", "load", "throughput_ops_s", 200, None),
        (Outcome.TIMEOUT, "overwrite", "overwrite", "write_amplification", 200, None),
        (Outcome.CRASHED, "overwrite", "overwrite", "throughput_ops_s", 200, None),
        # Of several phases that of the objective: another one's rate says nothing of it.
        (Outcome.TIMEOUT, "put-get-delete", "put", "throughput_ops_s, phase: put", 200, 80.0),
        (Outcome.TIMEOUT, "put-get-delete", "delete", "throughput_ops_s, phase: put", 200, None),
        (Outcome.TIMEOUT, "put-get-delete", "delete", "throughput_ops_s", 200, 80.0),
        (Outcome.TIMEOUT, "put-get-delete", "put", "throughput_ops_s", 200, None),
    ],
)
def test_a_run_that_its_deadline_ended_was_no_faster_than_up_to_there(
    outcome: Outcome, workload: str, phase: str, objective: str, done: int, reached: float | None
) -> None:
    ended = Measurement(
        *(outcome, EngineIdentity("rocksdb"), {}, workload, 1, 0.0, 2.5),
        intervals_unfinished=intervals((1.2, done // 2), (2.5, done)),
        phase_unfinished=phase,
    )
    assert reached_by(ended, stated("rocksdb", workload, objective)) == reached


def test_leveldb_does_not_tell_what_a_rung_would_have_to_charge() -> None:
    with pytest.raises(
        InputError, match=r"pruner\.rungs: leveldb does not tell .* throughput_ops_s"
    ):
        a_pruner("leveldb", "fillrandom", "sustained_throughput_ops_s")


@pytest.mark.parametrize(
    ("style", "refused"),
    [
        ("options: {compaction_style: kCompactionStyleUniversal}", True),
        ("options: {compaction_style: kCompactionStyleLevel}", False),
    ],
)
def test_rungs_that_end_no_trial_are_refused(style: str, refused: bool) -> None:
    metric = "sustained_throughput_ops_s"
    more = f"{style}\npruner: {{name: median, rungs: {{every: 1s}}}}"
    if refused:
        with pytest.raises(InputError, match=r"pruner\.rungs: kCompactionStyleUniversal does not"):
            stated("rocksdb", "fillrandom", metric, more)
    else:
        assert stated("rocksdb", "fillrandom", metric, more).pruner is not None
    # The pruner that `auto` comes with charges nothing.
    assert stated("rocksdb", "fillrandom", metric, style).pruner is not None


def test_a_study_whose_rungs_are_refused_by_now_has_a_report() -> None:
    """It was run, and its report and its line in `ls` said that its file is wrong."""
    more = "options: {compaction_style: kCompactionStyleUniversal}"
    more += "\npruner: {name: median, rungs: {every: 1s}}"
    text = study_text("rocksdb", "fillrandom", "sustained_throughput_ops_s", more)
    with pytest.raises(InputError):
        parse_spec(text, Path("study.yaml"))
    assert parse_stored_spec(text, Path("study.yaml")).pruner is not None


def test_steps_of_a_program_that_runs_anew_do_not_stand_beside_those_of_its_first_try() -> None:
    """Step 1 of the second try was judged with steps 2 to 5 of the one that was disturbed."""
    reports: list[tuple[int, bool]] = []

    def report(step: int, _value: float, first: bool) -> bool:
        reports.append((step, first))
        return False

    for _try in range(2):
        is_to_end = watching(report, TimeRungs(1.0, "w"), "m")
        for step in (1, 2):
            assert not is_to_end(IntermediateReport(step, {"m": 1.0}))
    assert reports == [(1, True), (2, False), (1, True), (2, False)]


def stated(engine: str, workload: str, metric: str, more: str = "") -> Spec:
    return parse_spec(study_text(engine, workload, metric, more), Path("study.yaml"))


def study_text(engine: str, workload: str, metric: str, more: str) -> str:
    return f"""
version: 1
name: rungs
engine: {{name: {engine}}}
workload: {{name: {workload}, num: 1000}}
objective: {{metric: {metric}}}
space: {{write_buffer_size: {{type: int, low: 1MiB, high: 8MiB}}}}
budget: {{trials: 1}}
{more}
"""


def a_pruner(engine: str, workload: str, metric: str) -> PrunerSpec:
    rungs = "pruner: {name: median, rungs: {every: 1s}}"
    pruner = stated(engine, workload, metric, rungs).pruner
    assert pruner is not None
    return pruner


def test_a_rung_that_was_slept_through_is_not_reported_twice() -> None:
    reports = TimeReports(TimeRungs(1.0, "w"))
    found = [reports.take(i) for i in intervals((3.5, 700), (3.7, 740), (4.1, 820))]
    assert [report[0] for report in found if report] == [3, 4]


@given(st.lists(st.floats(0.01, 2.0), min_size=1, max_size=50), st.floats(0.05, 3.0))
def test_steps_rise_and_never_come_before_their_time(gaps: list[float], every_s: float) -> None:
    elapsed = [sum(gaps[: index + 1]) for index in range(len(gaps))]
    reports = TimeReports(TimeRungs(every_s, "w"))
    steps = []
    for interval in intervals(*((at, 10 * (n + 1)) for n, at in enumerate(elapsed))):
        report = reports.take(interval)
        if report is not None:
            step, _ = report
            assert step * every_s <= interval.elapsed_s * (1 + 1e-9)
            steps.append(step)
    assert steps == sorted(set(steps))


def test_a_stored_run_gives_the_reports_that_it_gave_while_it_ran() -> None:
    series = intervals((0.6, 60), (1.2, 120), (2.5, 200))
    pruned = Measurement(
        *(Outcome.PRUNED, EngineIdentity("memory"), {}, "w", 1, 0.0, 2.5),
        intervals_unfinished=series,
        phase_unfinished="put",
    )

    def reports(phase: str) -> list[tuple[int, float]]:
        return list(time_reports(TimeRungs(1.0, phase), pruned, "throughput_ops_s"))

    assert reports("put") == [(1, pytest.approx(100.0)), (2, 80.0)]
    assert reports("delete") == []


def test_a_smaller_workload_shrinks_every_phase_alike() -> None:
    full = make_workload("overwrite", {"num": 100_000, "warmup_operations": 5000}, "test")
    small = smaller(full, 1000)
    assert small.num == 1000
    for before, after in zip(full.phases, small.phases, strict=True):
        if before.operations_per_thread is None:
            assert after.operations_per_thread is None
        else:
            assert after.operations_per_thread == before.operations_per_thread // 100


def test_a_phase_of_a_duration_keeps_it() -> None:
    full = make_workload("readrandom", {"num": 1000, "duration_s": 5}, "test")
    assert [phase.duration_s for phase in smaller(full, 10).phases] == [
        phase.duration_s for phase in full.phases
    ]


def test_the_last_rung_is_the_workload_itself() -> None:
    full = make_workload("fillrandom", {"num": 500_000}, "test")
    sizes = rung_workloads(DataRungs((5000, 50_000, 500_000)), full)
    assert [workload.num for workload in sizes] == [5000, 50_000, 500_000]
    assert sizes[-1] is full


def test_rungs_of_several_workloads_are_the_same_share_of_each() -> None:
    """Of two that became longer before the search, one may fill a database with more keys."""
    rungs = DataRungs((5000, 500_000), (4.0, 400.0)).longer(1_500_000, 3.0)
    assert rungs == DataRungs((15_000, 1_500_000), (12.0, 1200.0))
    for num in (1_500_000, 500_000):
        full = make_workload("fillrandom", {"num": num}, "test")
        assert [workload.num for workload in rung_workloads(rungs, full)] == [num // 100, num]
