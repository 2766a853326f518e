"""A verdict on runs that do not show what is sustained: it is no gain, and says at what size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from fake_runner import ENGINE, phase

from lsmtune.experiment.run_length import (
    flushes_for,
    flushes_missing,
    length_warnings,
    longer_by,
    steady_factor,
    unsteady,
    warmed_by,
)
from lsmtune.model.goal import Goal, Objective
from lsmtune.model.measurement import Interval, Measurement, Outcome, PhaseMeasurement
from lsmtune.model.verdict import ProvedAt, Verdict, VerdictOutcome
from lsmtune.model.workload import Mix, Phase, PhaseKind, Workload
from lsmtune.proof.verdict import judged_by_length
from lsmtune.report.verdict import size_lines

GOAL = Goal((Objective(),))
BETTER = Verdict(
    VerdictOutcome.BETTER, "sustained_throughput_ops_s", "maximize", 0.95, 6, ratio=1.5
)
FALLING = tuple(Interval(k + 1.0, 1.0, 1, 1, 1000.0 - 50.0 * k, 1) for k in range(12))


def workload(operation: str = "overwrite", num: int = 1000) -> Workload:
    return Workload("writes", (Phase("write", PhaseKind.MEASURE, operation),), num=num)


def wrote(flushes: int | None, compactions: int | None = 1, **more: object) -> PhaseMeasurement:
    figures = {"flushes": flushes, "compactions": compactions, "user_bytes_written": 1 << 20}
    return replace(phase(1e5), name="write", **{**figures, **more})  # type: ignore[arg-type]


def measured(*phases: PhaseMeasurement) -> Measurement:
    return Measurement(Outcome.OK, ENGINE, {}, "writes", 1, 0.0, 10.0, phases)


def factor_of(observed: PhaseMeasurement, memtable: int = 0, *, least: bool = False) -> float:
    run = measured(observed)
    return steady_factor(run, workload(), GOAL, flushes_missing(run, GOAL, memtable), least=least)


def judged(
    baseline: Sequence[PhaseMeasurement],
    candidate: Sequence[PhaseMeasurement],
    *,
    burst: bool = False,
    verdict: Verdict = BETTER,
) -> Verdict:
    pairs = zip(baseline, candidate, strict=True)
    sides = [([measured(b)], [measured(c)]) for b, c in pairs]
    return judged_by_length(verdict, GOAL, [workload()], sides, burst=burst)


def test_a_winner_that_keeps_everything_in_memory_is_not_better() -> None:
    """The first quickstart: its gain of 1.49x was a loss at twenty times the writes."""
    verdict = judged([wrote(8)] * 6, [wrote(1)] * 6)
    assert verdict.outcome is VerdictOutcome.NOT_PROVEN
    assert "candidate: flushed 1 time, at least 5 are wanted, in 6 of 6 runs" in verdict.why
    assert verdict.proved_at == (
        ProvedAt("writes", 1000, verdict.proved_at[0].operations, 8, 1, 1, 1),
    )


def test_a_run_that_puts_off_more_than_it_does_shows_no_sustained_rate() -> None:
    """1,000,000 overwrites in 5 s, and 6 s of compactions: 1.74x, and 1.20x with 4,000,000."""
    owing = wrote(16, 6, elapsed_s=5.0, drain_s=6.0)
    verdict = judged([owing] * 6, [wrote(6)] * 6)
    assert verdict.outcome is VerdictOutcome.NOT_PROVEN
    assert "baseline: write: what it left to flush and compact took longer than" in verdict.why
    for least in (False, True):
        assert factor_of(owing, least=least) == 2.0
    assert unsteady(measured(owing), workload("fillrandom"), GOAL) == []
    assert unsteady(measured(wrote(16, elapsed_s=5.0, drain_s=5.0)), workload(), GOAL) == []


def test_a_baseline_that_never_filled_its_memtable_is_not_beaten() -> None:
    verdict = judged([wrote(1)] * 6, [wrote(40)] * 6)
    assert verdict.outcome is VerdictOutcome.NOT_PROVEN
    assert "baseline: flushed 1 time" in verdict.why


def test_a_user_who_asks_for_a_burst_gets_an_answer_about_it() -> None:
    verdict = judged([wrote(1)] * 6, [wrote(1)] * 6, burst=True)
    assert verdict.outcome is VerdictOutcome.BETTER
    assert size_lines(verdict) != []


def test_steady_runs_leave_the_verdict_as_it_is() -> None:
    verdict = judged([wrote(5)] * 6, [wrote(9)] * 6)
    assert replace(verdict, proved_at=()) == BETTER
    assert "1,000 records" in size_lines(verdict)[0]
    assert "to warm up" not in size_lines(verdict)[0]
    warmed = replace(verdict.proved_at[0], warmup_operations=1234)
    (line,) = size_lines(replace(verdict, proved_at=(warmed,)))
    assert "operations after 1,234 to warm up; baseline and candidate" in line


def test_one_run_in_six_with_a_trend_is_chance() -> None:
    falls = wrote(9, intervals=FALLING)
    assert judged([wrote(9)] * 6, [falls, *[wrote(9)] * 5]).outcome is VerdictOutcome.BETTER
    verdict = judged([wrote(9)] * 6, [falls] * 4 + [wrote(9)] * 2)
    assert verdict.outcome is VerdictOutcome.NOT_PROVEN
    assert "candidate: write: not steady: throughput fell" in verdict.why


@pytest.mark.parametrize(
    ("mix", "grows"),
    [
        ((("get", 0.95), ("insert", 0.05)), True),
        ((("get", 0.996), ("insert", 0.004)), False),
        ((("insert", 0.05), ("delete_oldest", 0.05)), False),
        ((("get", 0.5), ("update", 0.5)), False),
    ],
)
def test_a_run_that_doubles_its_data_has_no_rate_that_lasts(
    mix: tuple[tuple[str, float], ...], grows: bool
) -> None:
    """YCSB D fell by 61 % while its data doubled; one proof of two was refused for that."""
    work = Workload("d", (Phase("write", PhaseKind.MEASURE, mix=Mix(mix)),), num=1000)
    falls = wrote(9, intervals=FALLING, operations=20_000)
    sides = [([measured(falls)], [measured(falls)])] * 6
    verdict = judged_by_length(BETTER, GOAL, [work], sides, burst=False)
    assert (verdict.outcome is VerdictOutcome.BETTER) is grows
    assert (unsteady(measured(falls), work, GOAL) == []) is grows
    assert steady_factor(measured(falls), work, GOAL, 0.0) == (1.0 if grows else 2.0)
    note = (
        "d, write: adds 1,000 records to 1,000, so that its rate moves with the tree; the ratio is "
        "that of the whole run"
    )
    assert verdict.notes == ((note,) if grows else ())


def test_what_is_not_better_anyway_is_told_beside_the_verdict() -> None:
    worse = replace(BETTER, outcome=VerdictOutcome.WORSE)
    verdict = judged([wrote(1)] * 6, [wrote(1)] * 6, verdict=worse)
    assert verdict.outcome is VerdictOutcome.WORSE
    assert "the runs do not show what is sustained" in verdict.notes[0]


@pytest.mark.parametrize(
    ("operation", "observed", "steady"),
    [
        ("overwrite", wrote(4), False),
        ("overwrite", wrote(5), True),
        ("overwrite", wrote(5, 0), False),
        ("fillseq", wrote(20, 0), True),  # files of keys in order are only moved down
        ("overwrite", wrote(None, None), True),  # not known is not held against a run
        ("overwrite", wrote(None, None, elapsed_s=5.0, drain_s=6.0), False),
        ("readrandom", wrote(0, 0, user_bytes_written=0), True),
        ("readrandom", wrote(0, 0, user_bytes_written=0, intervals=FALLING), False),
        ("fillrandom", wrote(9, intervals=FALLING), True),  # a job slows down as the tree grows
    ],
)
def test_what_makes_a_run_steady(operation: str, observed: PhaseMeasurement, steady: bool) -> None:
    run, work = measured(observed), workload(operation)
    assert (unsteady(run, work, GOAL) == []) is steady
    assert (steady_factor(run, work, GOAL, flushes_missing(run, GOAL)) == 1.0) is steady
    assert steady or length_warnings(run), "what may not decide is warned of, too"


@pytest.mark.parametrize(
    ("flushes", "compactions", "factor"), [(0, 0, 8.0), (1, 0, 9.0), (1, 1, 6.0), (4, 1, 2.0)]
)
def test_how_much_longer_a_run_has_to_be(flushes: int, compactions: int, factor: float) -> None:
    assert factor_of(wrote(flushes, compactions)) == factor


def test_the_flush_of_the_end_does_not_tell_how_long_the_first_one_takes() -> None:
    """YCSB B wrote a twelfth of a memtable, and 9 times as much, which was 5m in vain."""
    twelfth, none = (wrote(n, 0, user_bytes_written=1 << 20) for n in (1, 0))
    assert factor_of(twelfth, 12 << 20) == 9 * 12
    assert factor_of(none, 12 << 20) == 9 * 12
    # What flushed more often has counted for itself.
    assert factor_of(wrote(4, 1), 12 << 20) == 2.0


def test_a_rate_that_moves_is_warmed_up_and_not_diluted() -> None:
    """YCSB B fell by 78 % in runs twice as long, and by 10 % in their second halves."""
    run = Phase("run", PhaseKind.MEASURE, mix=Mix((("get", 0.9), ("update", 0.1))), operations=100)
    load = Phase("load", PhaseKind.LOAD, mix=Mix((("insert", 1.0),)), operations=50)
    mixed = Workload("mixed", (load, run), num=50)
    first, before, again = warmed_by(mixed, 0.755).phases
    assert (first, again) == mixed.phases
    assert before == replace(run, name="run-warmup", kind=PhaseKind.WARMUP, operations=76)
    timed = replace(mixed, phases=(load, replace(run, operations=None, duration_s=4.0)))
    assert warmed_by(timed, 0.5).phases[1].duration_s == 2.0
    assert warmed_by(mixed, 0.0) == mixed
    # What is measured then would be of other records.
    latest = replace(run, mix=Mix((("get", 0.9), ("insert", 0.1))))
    inserting = replace(mixed, phases=(load, latest))
    assert warmed_by(inserting, 1.0) == longer_by(inserting, 2.0)


def test_without_time_a_run_is_as_long_as_its_flushes_need() -> None:
    """A finalist that flushed 4 times got no longer proof, as twice as long had no room."""
    few, falling = wrote(4, 1), replace(wrote(4, 1), intervals=FALLING)
    assert factor_of(few, least=True) == 1.5
    assert factor_of(falling, least=True) == 2.0
    assert factor_of(wrote(9, 1), least=True) == 1.0
    # 12 flushes without a compaction asked for 0.75 of their run.
    assert factor_of(wrote(12, 0), least=True) == 21 / 12


@pytest.mark.parametrize("trigger", [1, 2, 4, 9, 16, 100])
def test_a_run_that_is_long_enough_by_its_options_is_so_by_what_it_did(trigger: int) -> None:
    wanted = flushes_for(trigger)
    assert flushes_missing(measured(wrote(wanted, int(wanted > trigger))), GOAL) == 0.0
    assert flushes_missing(measured(wrote(4, 1)), GOAL) == 0.5


def test_keys_in_order_need_no_cycles_of_level_0() -> None:
    """With a trigger of 16 files a fill ran four times more, each time `1 times as long`."""
    run = measured(wrote(25, 0))
    assert unsteady(run, workload("fillseq"), GOAL, 32) == []
    assert flushes_missing(run, GOAL, flushes_least=32) == 0.0
