"""Anchors, noise, repeated trials, conditions, and what was sustained."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from sample_study import BEST, STUDY, SampleStudy, analysed, fill, speed_of

from lsmtune.experiment.run_length import length_warnings
from lsmtune.experiment.store import Role
from lsmtune.model.codec import encode
from lsmtune.model.config import Config
from lsmtune.model.measurement import LevelWork, Measurement, Outcome
from lsmtune.model.verdict import MetricRatio, Verdict, VerdictOutcome
from lsmtune.model.workload import Durability
from lsmtune.proof.crash_test import CrashOutcome, CrashTest
from lsmtune.report.analysis import StudyAnalysis
from lsmtune.report.document import Severity
from lsmtune.report.history import RUNS_LEAST, repeat_rows
from lsmtune.report.study_proof import proof_lines
from lsmtune.report.study_trust import noise_source
from lsmtune.report.tables import Arm, Ended, NoiseSource
from lsmtune.report.trust import CACHED_SHARE_MAX, STEAL_SHARE_MAX, steal_share
from lsmtune.stats.noise import noise_of
from lsmtune.stats.sequential import pairs_at_least
from lsmtune.study.session import FLEET_HOSTS

COLD = STUDY.replace("value_bytes: 100}", "value_bytes: 100, page_cache: cold}")


def notices(found: StudyAnalysis, kind: str) -> list[tuple[Severity, str]]:
    return [(n.severity, n.text) for n in found.notices if n.kind == kind]


def with_phase(run: Measurement, **changes: object) -> Measurement:
    return replace(run, phases=(replace(run.phases[0], **changes),))  # type: ignore[arg-type]


def halved(sample: SampleStudy) -> None:
    """Trials between anchors; before the last eight of these the machine becomes half as fast.

    Trial 7 ran while it changed, and was run again.
    """
    sample.add_baseline()
    for number in range(16):
        speed = 1.0 if number < 7 else 0.5
        sample.add_trial(number, BEST, sample.measured(BEST, 1.2 * speed))
        sample.add_anchor(number, speed)
    again = sample.measured(BEST, 0.6)
    sample.add_trial(7, BEST, again, repeat=1)


def test_a_change_is_seen_in_the_anchors_and_taken_out_of_the_trials(study: SampleStudy) -> None:
    halved(study)
    found = analysed(study)
    (series,) = found.anchors
    assert [point.role for point in series.points] == ["baseline"] + 16 * ["anchor"]
    assert [point.trials_before for point in series.points] == list(range(17))
    assert [point.segment for point in series.points] == 8 * [0] + 9 * [1]
    assert [segment.anchors for segment in series.segments] == [8, 9]
    (change,) = series.changes
    assert change.ratio == pytest.approx(0.5, rel=0.05)
    assert (change.last_trial, change.first_trial) == (6, 8)
    assert (change.run_again, change.left) == ((7,), ())
    assert series.segments[0].to_s == change.from_s < change.to_s == series.segments[1].from_s
    # As the machine was in the beginning, all trials are alike, and as good as they are.
    ratios = [row.ratio_to_baseline for row in found.history.trials]
    assert ratios == pytest.approx([1.2] * 16, rel=0.08)
    moved = found.history.trials[7]
    assert [run.counts for run in moved.runs] == [False, True]
    assert moved.run_again_after_change
    raw, judged = moved.runs[1].value or 0.0, moved.runs[1].judged or 0.0
    assert judged == pytest.approx(2 * raw, rel=0.05)
    assert moved.value == pytest.approx(judged)


def test_times_of_anchors_are_those_that_the_study_worked(study: SampleStudy) -> None:
    study.add_baseline()
    study.add_trial(0, BEST, study.measured(BEST))
    study.add_anchor(0)
    walls = [stored.wall_s for stored in study.folder.measurements.all()]
    (series,) = analysed(study).anchors
    assert [point.at_s for point in series.points] == pytest.approx([walls[0], sum(walls)])
    (segment,) = series.segments
    assert (segment.from_s, segment.to_s) == (0.0, pytest.approx(sum(walls)))


def test_a_trial_that_waits_to_be_run_again_is_named(study: SampleStudy) -> None:
    halved(study)
    study.add_trial(16, BEST, study.measured(BEST, 0.6))
    # The machine becomes fast again, and nothing has been run again yet.
    for number in range(16, 30):
        study.add_anchor(number, 1.0)
    first, second = analysed(study).anchors[0].changes
    assert (first.run_again, first.left) == ((7,), ())
    assert (second.run_again, second.left) == ((), (16,))
    assert second.first_trial is None
    assert second.last_trial == 15


def test_a_change_of_one_host_is_none_of_the_trials_of_another(study: SampleStudy) -> None:
    """Those that ran on it meanwhile were said to wait to be run again, which they never are."""
    for host in "ab":
        study.add(Role.BASELINE, replace(study.measured({}), host=host), study.baseline)
    for number in range(16):
        speeds = {"a": 1.0 if number < 7 else 0.5, "b": 1.0}
        for place, (host, speed) in enumerate(speeds.items()):
            run = replace(study.measured(BEST, 1.2 * speed), host=host)
            study.add_trial(2 * number + place, BEST, run)
        for place, (host, speed) in enumerate(speeds.items()):
            run = replace(study.measured({}, speed), host=host)
            study.add(Role.ANCHOR, run, study.baseline, repeat=2 * number + place)
    (series,) = (each for each in analysed(study).anchors if each.objective.endswith(" on a"))
    (change,) = series.changes
    assert (change.run_again, change.left) == ((), (14,))
    assert (change.last_trial, change.first_trial) == (12, 16)


def test_repeated_trials_have_a_spread(study: SampleStudy) -> None:
    study.add_baseline()
    study.add_trial(0, BEST, study.measured(BEST, 1.0))
    for repeat in (1, 2):
        study.add_trial(0, BEST, study.measured(BEST, 1.0 + repeat / 10), repeat=repeat)
    other = {**BEST, "write_buffer_size": 4 << 20}
    study.add_trial(1, other, study.failed(Outcome.CRASHED, "signal 11", other))
    row, failed = analysed(study).history.trials
    values = sorted(run.value for run in row.runs if run.value is not None)
    assert len(values) == 3
    assert row.spread == pytest.approx((values[2] - values[0]) / 2 / values[1])
    assert (failed.spread, [run.value for run in failed.runs]) == (None, [None])


def test_the_noise_is_that_of_calibration_search_and_proof(study: SampleStudy) -> None:
    study.add_baseline()
    pairs = [(1.0, 1.1), (1.05, 0.9), (1.0, 1.0), (0.95, 1.02)]
    study.add_calibration(0, (3.0, 0.2), "slices")  # by another method than it went on with
    for number, speeds in enumerate(pairs, 1):
        study.add_calibration(number, speeds, "whole")
    rows = study.folder.measurements.of(Role.CALIBRATION)[2:]
    values = [study.spec.objective.value(row.measurement) or 0.0 for row in rows]
    found = {(row.source, row.of_pairs): row for row in analysed(study).noise}
    run, pair = found[NoiseSource.CALIBRATION, False], found[NoiseSource.CALIBRATION, True]
    assert (run.count, run.log_sd) == (8, noise_of(values).log_sd)
    assert (run.log_sd_low, run.log_sd_high) != (None, None)
    assert (pair.count, pair.pairs) == (4, 30)
    assert pair.smallest_effect is not None
    assert 0.2 * pair.log_sd < pair.smallest_effect < pair.log_sd
    assert found[NoiseSource.SEARCH, False].count is None
    assert (NoiseSource.PROOF, True) not in found


def test_the_noise_of_a_calibration_is_told_of_each_host_by_itself(study: SampleStudy) -> None:
    """That one host is three times as fast as the other was noise from run to run."""
    for pair in range(6):
        host, speed = "ab"[pair % 2], (1.0, 3.0)[pair % 2]
        for repeat in range(2):
            run = replace(study.measured({}, speed), paired_by="whole", host=host)
            study.add(Role.CALIBRATION, run, study.baseline, pair=pair, repeat=repeat)
    runs = [row for row in analysed(study).noise if row.source is NoiseSource.CALIBRATION]
    assert [(row.host, row.of_pairs, row.count) for row in runs] == [
        *(("a", False, 6), ("a", True, 3)),
        *(("b", False, 6), ("b", True, 3)),
    ]
    assert all(row.log_sd < 0.1 for row in runs)
    assert noise_source(runs[0]) == "calibration: the baseline against itself on a, 6 runs"


def test_a_fleet_is_not_told_what_pairs_on_one_machine_would_show(study: SampleStudy) -> None:
    """Its interval is one over hosts: much wider, and of as many pairs as each host has."""
    for pair in range(4):
        for repeat in range(2):
            run = replace(study.measured({}), paired_by="whole", host="a")
            study.add(Role.CALIBRATION, run, study.baseline, pair=pair, repeat=repeat)
    study.folder.measurements.set_verdict(verdict())
    rows = [row for row in analysed(study).noise if row.of_pairs]
    assert [(row.source, row.pairs, row.smallest_effect) for row in rows] == [
        (NoiseSource.CALIBRATION, None, None),
        (NoiseSource.PROOF, None, None),
    ]


def verdict(**changes: object) -> Verdict:
    base = Verdict(
        VerdictOutcome.NOT_PROVEN,
        "sustained_throughput_ops_s",
        "maximize",
        0.95,
        pairs=8,
        ratio=1.01,
        ratio_low=0.9,
        ratio_high=1.1,
        baseline_values=(100.0, 101.0, 99.0, 100.0, 98.0, 103.0, 100.0, 100.0),
        candidate_values=(102.0, 100.0, 104.0, 97.0, 99.0, 103.0, 101.0, 100.5),
        method="slices",
        why="the time budget allowed 8 of 30 pairs",
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def test_the_noise_of_a_proof_says_what_it_could_show(study: SampleStudy) -> None:
    study.add_baseline()
    study.folder.measurements.set_verdict(verdict())
    (row,) = analysed(study).noise
    both = zip(verdict().candidate_values, verdict().baseline_values, strict=True)
    ratios = [candidate / baseline for candidate, baseline in both]
    assert (row.source, row.of_pairs, row.log_sd) == (
        NoiseSource.PROOF,
        True,
        noise_of(ratios).log_sd,
    )
    assert row.smallest_effect is not None
    assert 0 < row.smallest_effect < 0.1


@pytest.mark.parametrize(
    ("changes", "ended"),
    [
        ({}, Ended.OTHER),
        ({"pairs": 30, "why": "the interval includes 1"}, Ended.PAIRS),
        ({"outcome": VerdictOutcome.BETTER, "ratio_low": 1.001}, Ended.DECIDED),
        ({"outcome": VerdictOutcome.WORSE, "ratio_high": 0.99, "ratio_low": None}, Ended.DECIDED),
        ({"outcome": VerdictOutcome.EQUIVALENT}, Ended.EQUIVALENT),
        ({"method": ""}, None),
    ],
)
def test_why_a_proof_stopped(
    study: SampleStudy, changes: dict[str, object], ended: Ended | None
) -> None:
    study.folder.measurements.set_verdict(verdict(**changes))
    found = analysed(study).proof
    assert found is not None
    assert (found.ended, found.pairs_max, found.pairs_least_each) == (ended, 30, None)


def test_a_proof_of_no_difference_stopped_for_that_also_where_a_guard_was_broken(
    tmp_path: Path,
) -> None:
    """It was said to have stopped because the candidate broke the guard, which stops no proof."""
    sample = SampleStudy(tmp_path, STUDY + "proof: {smallest_effect: 5%}\n")
    why = "the candidate breaks write_amplification <= 1.5 * baseline in 8 of 8 pairs (2.00x)"
    sample.folder.measurements.set_verdict(verdict(ratio_low=0.98, ratio_high=1.03, why=why))
    found = analysed(sample).proof
    sample.close()
    assert found is not None
    assert found.ended is Ended.EQUIVALENT


def test_no_interval_stopped_the_proof_of_a_fleet(study: SampleStudy) -> None:
    """It was said to have stopped as soon as the interval excluded no difference."""
    run = replace(study.measured({}), host="a")
    study.add(Role.PROOF_BASELINE, run, study.baseline, pair=0)
    better = verdict(outcome=VerdictOutcome.BETTER, ratio_low=1.001)
    study.folder.measurements.set_verdict(better)
    found = analysed(study)
    assert found.proof is not None
    assert found.proof.ended is None
    assert not any(line.startswith("It stopped") for line in proof_lines(better, found.proof))


def test_corrected_intervals_need_more_pairs(study: SampleStudy) -> None:
    others = (MetricRatio("drain_s", "minimize", 0.9),)
    study.folder.measurements.set_verdict(verdict(confidence_each=0.999, others=others))
    found = analysed(study).proof
    assert found is not None
    assert found.pairs_least_each == pairs_at_least(0.999) > 8


def test_a_pair_by_another_method_is_shown_and_does_not_count(study: SampleStudy) -> None:
    study.add_proof(BEST, 1.4, pairs=3)
    rows = study.folder.measurements.all()
    found = analysed(study)
    assert [row.method for row in found.pairs] == ["", "", ""]
    study.folder.measurements.set_verdict(verdict(method="whole"))
    found = analysed(study)
    assert [row.counts for row in found.pairs] == [False] * 3
    assert (found.medians, found.arms_from_proof) == ({}, False)
    config, proven = rows[-1].config, replace(rows[-1].measurement, paired_by="whole")
    study.add(Role.PROOF_BASELINE, proven, study.baseline, pair=3)
    study.add(Role.PROOF_CANDIDATE, proven, config, pair=3)
    found = analysed(study)
    assert [row.counts for row in found.pairs] == [False, False, False, True]
    assert set(found.medians) == set(Arm)
    assert [curve.runs for curve in found.latencies] == [1, 1]


def test_each_host_of_a_fleet_has_a_method_of_its_own(study: SampleStudy) -> None:
    """Whole runs of the host whose first pair stalled in slices were said not to count."""
    config = Config({**study.spec.fixed, **BEST}, "study.yaml#best")
    ran = [("a", "slices"), ("b", "slices"), ("a", "slices"), ("b", "whole")]
    for pair, (host, method) in enumerate(ran):
        run = replace(study.measured({}), paired_by=method, host=host)
        study.add(Role.PROOF_BASELINE, run, study.baseline, pair=pair)
        study.add(Role.PROOF_CANDIDATE, run, config, pair=pair)
    study.folder.measurements.set_verdict(verdict(method=""))
    assert [row.counts for row in analysed(study).pairs] == [True, False, True, True]


def test_burst_sustained_and_drain_are_medians_of_both_arms(study: SampleStudy) -> None:
    study.add_baseline()
    study.add_proof(BEST, 1.5, pairs=3)
    found = {row["metric"]: row for row in analysed(study).performance}
    runs = study.folder.measurements.of(Role.PROOF_CANDIDATE)
    bursts = sorted(run.measurement.phases[0].throughput_ops_s for run in runs)
    assert found["throughput_ops_s"]["tuned"] == bursts[1]
    assert found["sustained_throughput_ops_s"]["ratio"] == pytest.approx(1.5, rel=0.1)
    assert found["drain_s"]["ratio"] == pytest.approx(1 / 1.5, rel=0.1)
    assert "flushes" not in found  # nobody said
    assert {(row["workload"], row["phase"]) for row in found.values()} == {("", "fillrandom")}


def test_before_a_proof_the_best_trial_is_compared_on_its_own_host(study: SampleStudy) -> None:
    """On the slow one of two hosts it was no faster than the baseline of both."""
    for host, speed in (("a", 1.0), ("b", 0.5)):
        study.add(Role.BASELINE, replace(study.measured({}, speed), host=host), study.baseline)
    study.add_trial(0, BEST, replace(study.measured(BEST, 0.75), host="b"))
    ratios = {row["metric"]: row["ratio"] for row in analysed(study).performance}
    assert ratios["sustained_throughput_ops_s"] == pytest.approx(1.5, rel=0.1)


def test_levels_have_what_is_in_them_and_what_was_written_there(study: SampleStudy) -> None:
    levels = (LevelWork(1, 4, 400), LevelWork(3, 0, 0))
    run = with_phase(
        study.measured(BEST),
        levels=levels,
        flushes=7,
        flush_bytes=70,
        files_per_level=(2, 0, 5, 0),
        bytes_per_level=(20, 0, 50, 0),
    )
    study.add(Role.BASELINE, run, study.baseline)
    rows = analysed(study).levels
    shown = ("arm", "level", "files", "bytes", "compactions", "flushes", "flush_bytes")
    assert [tuple(row[name] for name in shown) for row in rows] == [
        (Arm.BASELINE, 0, 2, 20, 0, 7, 70),
        (Arm.BASELINE, 1, 0, 0, 4, None, None),
        (Arm.BASELINE, 2, 5, 50, 0, None, None),
    ]
    assert rows[1]["compaction_write_bytes"] == 400


def test_runs_that_are_too_short_are_told_once_with_what_would_do(study: SampleStudy) -> None:
    run = with_phase(study.measured(BEST), flushes=5, compactions=0)
    study.add(Role.BASELINE, run, study.baseline)
    study.add_trial(0, BEST, run)
    ((severity, text),) = notices(analysed(study), "run_length")
    assert severity is Severity.WARNING
    for line in length_warnings(run):
        assert text.count(line) == 1
    assert "(baseline and tuned)" in text
    assert "at least num: 4000000" in text


@pytest.mark.parametrize(
    ("operations", "advice"),
    [
        (1_000_000, "at least num: 2500000"),
        (3_000_000, "at least num: 7500000"),  # 2,500,000 would do, it said
        (20_000, "Longer runs say more."),  # of a model, to which the target says more
    ],
)
def test_what_would_do_is_told_by_what_the_runs_had(
    study: SampleStudy, operations: int, advice: str
) -> None:
    run = study.measured(BEST)
    run = with_phase(run, operations=operations, flushes=8, compactions=0, intervals=())
    study.add(Role.BASELINE, run, study.baseline)
    ((_, text),) = notices(analysed(study), "run_length")
    assert text.endswith((f"{advice}.", advice))


def test_long_runs_are_not_warned_of(study: SampleStudy) -> None:
    run = with_phase(study.measured(BEST), flushes=40, compactions=0, intervals=())
    study.add(Role.BASELINE, run, study.baseline)
    assert notices(analysed(study), "run_length") == []


@pytest.mark.parametrize(
    ("share", "severity", "said"),
    [
        (CACHED_SHARE_MAX, None, ""),
        (0.5, Severity.WARNING, "50 % of the database was still in the page cache"),
        (None, Severity.INFO, "could not find out"),
    ],
)
def test_what_was_still_cached_at_a_cold_start(
    tmp_path: Path, share: float | None, severity: Severity | None, said: str
) -> None:
    sample = SampleStudy(tmp_path, COLD)
    run = with_phase(sample.measured({}), page_cache_cached_share=share)
    sample.add(Role.BASELINE, run, sample.baseline)
    found = analysed(sample)
    sample.close()
    assert found.conditions.page_cache == {"fillrandom": "cold"}
    assert (found.conditions.cold_runs, found.conditions.cached_share_max) == (1, share)
    told = notices(found, "page_cache")
    assert [s for s, _ in told] == ([] if severity is None else [severity])
    assert all(said in text for _, text in told)
    assert found.runs[0]["page_cache_cached_share"] == share


def test_stolen_time_is_a_share_of_all_processors(study: SampleStudy) -> None:
    quiet = with_phase(study.measured({}), elapsed_s=3.0, drain_s=1.0, steal_s=0.08)
    assert steal_share(quiet, 2) == pytest.approx(0.01)
    assert steal_share(quiet, None) is None
    assert steal_share(study.measured({}), 2) is None
    disturbed = with_phase(quiet, steal_s=0.8)
    for number, run in enumerate((quiet, quiet, disturbed)):
        study.add_trial(number, BEST, run)
    study.folder.measurements.set_fact("machine", {"processors": "2"})
    found = analysed(study)
    assert (found.conditions.steal_runs, found.conditions.steal_runs_disturbed) == (3, 1)
    assert found.conditions.steal_share_max == pytest.approx(0.1)
    ((severity, text),) = notices(found, "steal")
    assert severity is Severity.INFO  # most runs were left alone
    assert text.startswith(f"More than {100 * STEAL_SHARE_MAX:.0f} % in 1 of 3 runs, at most 10 %")
    for number in (3, 4):
        study.add_trial(number, BEST, disturbed)
    ((severity, _),) = notices(analysed(study), "steal")
    assert severity is Severity.WARNING


def test_a_fleet_was_measured_on_its_hosts_and_not_on_its_head(study: SampleStudy) -> None:
    """The report told the processor of the head, and took what was stolen for shares of its 64."""
    store, kernel = study.folder.measurements, "6.12"
    head = {"processors": "64", "load average at the start": "9.00", "plugin: sampler": "smac 1"}
    store.set_fact("machine", head)
    hardware = {
        "a": {"processors": "2", "kernel": kernel},
        "b": {"processors": "8", "kernel": kernel},
    }
    hosts = {name: {"index": 0, "software": {}, "hardware": hardware[name]} for name in hardware}
    store.set_fact(FLEET_HOSTS, hosts)
    stolen = with_phase(study.measured({}), elapsed_s=3.0, drain_s=1.0, steal_s=0.8)
    for host in hardware:
        study.add(Role.BASELINE, replace(stolen, host=host), study.baseline)
    found = analysed(study)
    assert found.machine == {
        "plugin: sampler": "smac 1",
        "processors of a": "2",
        "processors of b": "8",
        "kernel": kernel,
    }
    assert found.conditions.steal_share_max == pytest.approx(0.1)
    assert found.conditions.steal_share_median == pytest.approx((0.1 + 0.025) / 2)


def test_no_steal_is_told_where_nobody_knows_the_processors(study: SampleStudy) -> None:
    study.add(Role.BASELINE, with_phase(study.measured({}), steal_s=9.0), study.baseline)
    found = analysed(study)
    assert (found.conditions.steal_runs, found.conditions.steal_share_max) == (0, None)
    assert notices(found, "steal") == []


def test_what_held_the_memory_of_runs_is_counted(study: SampleStudy) -> None:
    for how in ("cgroup", "cgroup", "watch", ""):
        run = replace(study.measured({}), memory_limited_by=how)
        study.add(Role.BASELINE, run, study.baseline)
    assert analysed(study).conditions.memory_limited_by == {"cgroup": 2, "watch": 1}


def test_the_crash_test_is_that_of_the_tuned_configuration(study: SampleStudy) -> None:
    best = fill(study, trials=5)
    study.add_proof(best, speed_of(best))
    proven = study.folder.measurements.of(Role.PROOF_CANDIDATE)[0].config
    passed = CrashTest(CrashOutcome.PASSED, Durability.WAL, 1000, 1000)
    failed = replace(passed, outcome=CrashOutcome.FAILED, keys_lost=3)
    rows = [
        {"of": {"options": {"write_buffer_size": "1"}}, "found": encode(failed)},
        {"of": {"options": proven.engine_options()}, "found": encode(passed)},
    ]
    study.folder.measurements.set_fact("crash_tests", rows[:1])
    assert analysed(study).crash_test is None
    study.folder.measurements.set_fact("crash_tests", rows)
    assert analysed(study).crash_test == passed


def test_repeats_have_a_noise_from_three_runs_on(study: SampleStudy) -> None:
    runs = [study.measured({}, speed) for speed in (1.0, 1.2, 0.9)]
    runs.append(study.failed(Outcome.CRASHED, "signal 6", {}))
    rows = {row.metric: row for row in repeat_rows(runs)}
    values = [run.phases[0].sustained_throughput_ops_s for run in runs[:3]]
    found = rows["sustained_throughput_ops_s"]
    assert (found.runs, found.median) == (RUNS_LEAST, values[0])
    assert (found.low, found.high) == (values[2], values[1])
    assert found.noise == noise_of(values)
    few = repeat_rows(runs[:2])
    assert {row.noise for row in few} == {None}
    zero = [with_phase(run, drain_s=0.0) for run in runs[:3]]
    assert next(row for row in repeat_rows(zero) if row.metric == "drain_s").noise is None
    assert repeat_rows([]) == ()
