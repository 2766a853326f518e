from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from sample_study import (
    BEST,
    LEVELDB_STUDY,
    STUDY,
    SampleStudy,
    analysed,
    fill,
    finished,
    histogram_base64,
    speed_of,
    with_option_not_taken,
)

from lsmtune.experiment.store import Role
from lsmtune.model.config import Config, OptionValue
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.verdict import VerdictOutcome
from lsmtune.report.analysis import StudyAnalysis
from lsmtune.report.document import Facts, Severity, Table
from lsmtune.report.notices import notices
from lsmtune.report.source import read_study
from lsmtune.report.study_proof import deploy_section, headline
from lsmtune.report.tables import Arm
from lsmtune.units import parse_bytes

OTHER: dict[str, OptionValue] = {**BEST, "write_buffer_size": 16 << 20}


def titles(analysis: StudyAnalysis, kind: str) -> list[str]:
    return [notice.title for notice in analysis.notices if notice.kind == kind]


def test_an_empty_study_gives_empty_tables(study: SampleStudy) -> None:
    found = analysed(study)
    assert found.status == "unfinished"
    assert (found.history.trials, found.pairs, found.options, found.runs) == ((), (), [], [])
    assert found.started_unix_s is None


def test_history_follows_the_best_and_its_ratio(study: SampleStudy) -> None:
    study.add_baseline()
    for number, speed in enumerate((0.9, 1.5, 1.2, 2.0)):
        study.add_trial(number, BEST, study.measured(BEST, speed))
    study.add_trial(4, BEST, study.failed(Outcome.CRASHED, "signal 11", BEST))
    history = analysed(study).history
    values = [row.value for row in history.trials]
    assert [row.best_so_far for row in history.trials] == [
        values[0],
        values[1],
        values[1],
        values[3],
        values[3],
    ]
    assert (history.best_trial, history.best_value) == (3, values[3])
    assert history.baseline_value == history.baseline_values[0]
    assert history.best_ratio == pytest.approx(2.0, rel=0.1)
    assert [row.is_best for row in history.trials] == [False, False, False, True, False]
    assert history.trials[4].ratio_to_baseline is None


def test_a_trial_that_failed_on_more_data_is_not_the_best_so_far(study: SampleStudy) -> None:
    """The plot stayed at its value, which nobody can have."""
    study.add_baseline()
    for number, speed in enumerate((1.2, 1.5, 1.1)):
        study.add_trial(number, BEST, study.measured(BEST, speed))
    failed, config = study.failed(Outcome.CRASHED, "signal 11", BEST), Config(BEST)
    study.add(Role.PROMOTION, failed, config, trial=1)
    rows = analysed(study).history.trials
    assert [row.best_so_far for row in rows] == [rows[0].value] * 3
    assert [row.is_best for row in rows] == [True, False, False]


def test_the_lowest_is_best_where_lower_is_better(tmp_path: Path) -> None:
    sample = SampleStudy(tmp_path, LEVELDB_STUDY)
    sample.add_baseline()
    for number, speed in enumerate((1.0, 4.0, 2.0)):
        sample.add_trial(number, sample.draw(), sample.measured({}, speed))
    history = analysed(sample).history
    sample.close()
    assert history.best_trial == 1
    assert history.best_ratio is not None
    assert history.best_ratio < 1
    sofar = [row.best_so_far for row in history.trials]
    assert sofar[2] == sofar[1] == history.best_value


def test_values_below_zero_have_no_ratio(study: SampleStudy) -> None:
    """A score of -5 was `0.50` of a baseline of -10, where more is better."""

    def scored(value: float) -> Measurement:
        run = study.measured({})
        return replace(run, phases=(replace(run.phases[0], sustained_throughput_ops_s=value),))

    study.add(Role.BASELINE, scored(-10.0), study.baseline)
    study.add_trial(0, BEST, scored(-5.0))
    found = analysed(study)
    assert (found.history.best_trial, found.history.best_value) == (0, -5.0)
    assert found.history.best_ratio is None
    assert "the best is trial 0, -5 ops/s by the runs of the search" in headline(found).detail


def test_pairs_are_those_of_the_latest_proof(study: SampleStudy) -> None:
    study.add_baseline()
    study.add_trial(0, OTHER, study.measured(OTHER, 1.2))
    study.add_trial(1, BEST, study.measured(BEST, 1.4))
    study.add_proof(OTHER, 1.2, pairs=5, first=0)
    study.add_proof(BEST, 1.4, pairs=6, first=5)
    found = analysed(study)
    assert [row.pair for row in found.pairs] == [5, 6, 7, 8, 9, 10]
    assert found.tuned_trial == 1
    assert all(row.ratio == pytest.approx(1.4, rel=0.15) for row in found.pairs)
    ratio = found.medians[Arm.TUNED] / found.medians[Arm.BASELINE]
    assert ratio == pytest.approx(1.4, rel=0.1)


def test_a_pair_with_a_failed_run_has_no_ratio_but_is_there(study: SampleStudy) -> None:
    study.add_proof(BEST, 1.4, pairs=5)
    config = Config({**study.spec.fixed, **BEST})
    lost = study.failed(Outcome.DATA_LOSS, "3 of 4100 sampled keys lost", BEST)
    study.add(Role.PROOF_BASELINE, study.measured({}), study.baseline, pair=5)
    study.add(Role.PROOF_CANDIDATE, lost, config, pair=5)
    found = analysed(study)
    assert [row.ratio is None for row in found.pairs] == [False] * 5 + [True]
    assert found.pairs[5].tuned_outcome is Outcome.DATA_LOSS
    assert found.pairs[5].baseline_outcome is Outcome.OK
    assert found.notices[0].severity is Severity.DANGER
    assert titles(found, "data_loss") == ["1 run lost data"]


def test_latency_curves_are_merged_over_the_proof(study: SampleStudy) -> None:
    study.add_baseline()
    study.add_proof(BEST, 1.5, pairs=5)
    curves = {curve.arm: curve for curve in analysed(study).latencies}
    for arm in Arm:
        assert (curves[arm].runs, curves[arm].count) == (5, 15_000)
        levels = [point["latency_us"] for point in curves[arm].points]
        assert levels == sorted(levels)
        assert curves[arm].points[0]["percentile"] == 50.0
        # Beyond p99.99 of 15,000 there is one operation; the grid ends there.
        assert curves[arm].points[-1]["percentile"] == 99.99
    assert curves[Arm.TUNED].latency_us_p50 < curves[Arm.BASELINE].latency_us_p50


def with_histogram(run: Measurement, text: str) -> Measurement:
    phase = run.phases[0]
    latency = replace(phase.latencies["put"], histogram_ns_base64=text)
    return replace(run, phases=(replace(phase, latencies={"put": latency}),))


def test_a_histogram_that_cannot_be_read_is_told(study: SampleStudy) -> None:
    study.add(Role.BASELINE, with_histogram(study.measured({}), "broken"), study.baseline)
    found = analysed(study)
    assert found.latencies == ()
    assert len(titles(found, "histogram")) == 1


def test_a_curve_ends_where_no_operation_lies_beyond(study: SampleStudy) -> None:
    run = with_histogram(study.measured({}), histogram_base64([1000] * 100))
    study.add(Role.BASELINE, run, study.baseline)
    (curve,) = analysed(study).latencies
    assert curve.points[-1]["percentile"] == 99.0


def test_series_are_of_both_arms(study: SampleStudy) -> None:
    fill(study, trials=20)
    found = analysed(study)
    assert {series["arm"] for series in found.series} == set(Arm)


def test_series_have_no_run_that_did_not_end_well(study: SampleStudy) -> None:
    """Runs that lost data stood beside the others, as the rate of what to deploy."""
    study.add_baseline()
    before = len(analysed(study).series)
    lost = replace(study.measured({}), outcome=Outcome.DATA_LOSS)
    study.add(Role.ANCHOR, lost, study.baseline)
    assert len(analysed(study).series) == before > 0


def test_outcomes_and_failures_are_counted(study: SampleStudy) -> None:
    study.add_baseline()
    for number in range(3):
        run = study.failed(Outcome.TIMEOUT, "deadline passed", BEST)
        study.add_trial(number, BEST, run)
    study.add_trial(3, BEST, study.failed(Outcome.CRASHED, "signal 11", BEST))
    found = analysed(study)
    counts = {(row["role"], row["outcome"]): row["count"] for row in found.outcomes}
    assert counts == {
        ("baseline", Outcome.OK): 1,
        ("trial", Outcome.TIMEOUT): 3,
        ("trial", Outcome.CRASHED): 1,
    }
    assert [(row["outcome"], row["count"], row["trials"]) for row in found.failures] == [
        (Outcome.TIMEOUT, 3, [0, 1, 2]),
        (Outcome.CRASHED, 1, [3]),
    ]
    assert titles(found, "failed_runs") == ["4 of 5 runs failed"]


def test_many_failures_are_counted_as_all_large_numbers_are(study: SampleStudy) -> None:
    study.add_baseline()
    study.add_trial(0, BEST, study.failed(Outcome.CRASHED, "signal 11", BEST))
    with study.opened() as folder:
        records = read_study(folder)
    many = replace(records, measurements=records.measurements * 1234)
    (failed,) = (notice for notice in notices(many) if notice.kind == "failed_runs")
    assert failed.title == "1,234 of 2,468 runs failed"
    assert failed.text.startswith("By kind: 1,234 crashed. ")


def test_options_show_both_arms(tmp_path: Path) -> None:
    text = STUDY.replace("space:", "baseline: {write_buffer_size: 32MiB}\nspace:")
    sample = SampleStudy(tmp_path, text)
    sample.add_trial(0, BEST, sample.measured(BEST))
    rows = {row["name"]: row for row in analysed(sample).options}
    sample.close()
    assert (rows["write_buffer_size"]["baseline"], rows["write_buffer_size"]["tuned"]) == (
        32 << 20,
        8 << 20,
    )
    assert rows["compression"]["baseline"] is None
    assert rows["min_write_buffer_number_to_merge"]["engine_default"] == 1
    fixed = rows["max_background_jobs"]
    assert (fixed["tuned_by_study"], fixed["baseline"], fixed["tuned"]) == (False, 2, 2)
    assert next(iter(rows.values()))["tuned_by_study"]


@pytest.mark.parametrize(
    ("name", "stated", "default"),
    [("level0_slowdown_writes_trigger", 20, 20), ("max_bytes_for_level_base", "256M", 256 << 20)],
)
def test_an_option_that_the_baseline_sets_to_the_default_is_as_in_the_baseline(
    tmp_path: Path, name: str, stated: OptionValue, default: OptionValue
) -> None:
    """`show` took it for the same, and the report listed it under what differs."""
    text = STUDY.replace("space:", f"baseline: {{{name}: {stated}}}\nspace:")
    sample = SampleStudy(tmp_path, text)
    sample.add_trial(0, BEST, sample.measured(BEST))
    found = analysed(sample)
    sample.close()
    (row,) = (row for row in found.options if row["name"] == name)
    assert (row["baseline"], row["tuned"], row["engine_default"]) == (stated, None, default)
    assert not row["differs"]
    tables = [block for block in deploy_section(found, False).blocks if isinstance(block, Table)]
    listed = [name in [first for first, *_ in table.rows] for table in tables]
    assert [table.label for table in tables] == ["Options that differ", "The other options"]
    assert listed == [False, True]


@pytest.mark.parametrize(
    ("proven", "label"), [(True, "file to deploy"), (False, "file of the candidate")]
)
def test_what_is_not_proven_is_no_file_to_deploy(tmp_path: Path, proven: bool, label: str) -> None:
    """A page said "do not deploy the candidate", and called its file the one to deploy."""
    sample = finished(tmp_path)
    found = analysed(sample)
    sample.close()
    (files,) = (b for b in deploy_section(found, proven).blocks if isinstance(b, Facts))
    assert {name for name, _ in files.rows} == files.wide == {label}


def test_a_best_value_on_an_edge_is_told_with_a_wider_range(study: SampleStudy) -> None:
    on_edge: dict[str, OptionValue] = {**BEST, "write_buffer_size": 2 << 20}
    study.add_trial(0, on_edge, study.measured(on_edge))
    (notice,) = [n for n in analysed(study).notices if n.kind == "edge_of_range"]
    assert "write_buffer_size lies on the lower edge" in notice.title
    assert "low: 512KiB, high: 64MiB" in notice.text


def test_a_wider_range_is_told_as_a_study_file_takes_it(tmp_path: Path) -> None:
    """`high: 9.54MiB`, which is no whole number of bytes, was proposed, and then refused."""
    low, high = 2_000_000, 10_000_000
    text = STUDY.replace("low: 2MiB, high: 64MiB", f"low: {low}, high: {high}")
    sample = SampleStudy(tmp_path, text.replace("default: 64MiB", f"default: {high}"))
    sample.add_trial(0, {**BEST, "write_buffer_size": low}, sample.measured(BEST))
    (notice,) = [n for n in analysed(sample).notices if n.kind == "edge_of_range"]
    sample.close()
    bounds = re.search(r"low: (\S+), high: (\S+)\.", notice.text)
    assert bounds is not None
    assert parse_bytes(bounds[1]) < low
    assert parse_bytes(bounds[2]) == high


def test_a_workload_without_a_log_is_marked(tmp_path: Path) -> None:
    sample = SampleStudy(tmp_path, STUDY.replace("num: 1e6", "num: 1e6, durability: none"))
    found = analysed(sample)
    sample.close()
    assert titles(found, "durability") == ["Measured with the write-ahead log off"]


def test_a_second_workload_without_a_log_is_marked_too(tmp_path: Path) -> None:
    """Of several workloads the first alone was asked how durable it is."""
    space = "  avoid_flush_during_shutdown: {type: categorical, choices: [true, false]}\n"
    allowed = "allow_unsafe: [avoid_flush_during_shutdown]\nguards: []\n"
    text = STUDY.replace("budget:", f"{space}{allowed}budget:").replace(
        "workload: {name: fillrandom, num: 1e6, key_bytes: 20, value_bytes: 100}",
        "workloads: [{name: fillrandom, num: 1e6}, {name: fillseq, num: 1e6, durability: none}]",
    )
    sample = SampleStudy(tmp_path, text)
    config = Config({**sample.spec.fixed, **BEST, "avoid_flush_during_shutdown": True})
    for workload in range(2):
        run = sample.measured(config.options)
        sample.add(Role.TRIAL, run, config, trial=0, workload=workload)
    found = analysed(sample)
    sample.close()
    assert titles(found, "durability") == ["Measured with the write-ahead log off under fillseq"]
    unsafe = ["avoid_flush_during_shutdown=true trades data for speed"]
    assert titles(found, "unsafe_option") == unsafe


def test_notices_of_engine_and_options(tmp_path: Path) -> None:
    sample = SampleStudy(tmp_path, LEVELDB_STUDY)
    run = with_option_not_taken(sample.measured({}))
    sample.add(Role.BASELINE, replace(run, warnings=("clock went back",)), sample.baseline)
    found = analysed(sample)
    sample.close()
    assert "assertions on" in titles(found, "assertions_on")[0]
    assert titles(found, "option_not_taken") == ["The engine did not take max_open_files=5"]
    assert titles(found, "durability") == []
    assert len(titles(found, "run_warning")) == 1


def test_unsafe_options_are_marked(tmp_path: Path) -> None:
    text = STUDY.replace(
        "budget:",
        "  paranoid_checks: {type: categorical, choices: [true, false]}\n"
        "allow_unsafe: [paranoid_checks]\nbudget:",
    )
    sample = SampleStudy(tmp_path, text)
    unsafe: dict[str, OptionValue] = {**BEST, "paranoid_checks": False}
    sample.add_trial(0, unsafe, sample.measured(unsafe))
    found = analysed(sample)
    sample.close()
    assert titles(found, "unsafe_option") == ["paranoid_checks=false trades data for speed"]
    assert found.notices[0].kind == "unsafe_option"
    assert len(titles(found, "unsafe_allowed")) == 1


def test_engine_versions_that_changed_are_told(study: SampleStudy) -> None:
    study.add_baseline()
    run = study.measured(BEST)
    study.add_trial(0, BEST, replace(run, engine=replace(run.engine, version="11.8.1")))
    found = analysed(study)
    assert len(titles(found, "engine_changed")) == 1
    assert [engine.version for engine in found.engines] == ["10.2.1", "11.8.1"]


def test_a_finished_study_names_its_files(study: SampleStudy) -> None:
    best = fill(study, trials=10)
    study.add_proof(best, speed_of(best))
    study.set_verdict(VerdictOutcome.BETTER, 1.4)
    study.folder.write_result("OPTIONS", "[Version]\n")
    study.folder.write_result("report.html", "old")
    study.folder.write_result("result.json", {})
    study.folder.measurements.set_fact("machine", {"processor": "2 CPUs", "swap": None})
    found = analysed(study)
    assert found.status == "finished"
    assert found.arms_from_proof
    assert [path.name for path in found.result_files] == ["OPTIONS"]
    assert found.machine == {"processor": "2 CPUs"}


# --- which phases the latency curves are of


def with_gets(run: Measurement) -> Measurement:
    """`run` with a second measure phase, and a load that nobody judges."""
    put = run.phases[0]
    latency = put.latencies["put"]
    load = replace(put, name="load", kind="load", latencies={"scan": latency})
    get = replace(put, name="get", latencies={"get": latency})
    return replace(run, phases=(load, put, get))


@pytest.mark.parametrize(
    ("metric", "operations"),
    [("total_with_drain_s", {"put", "get"}), ("latency_us_p99", {"get"})],
)
def test_a_total_has_the_curves_of_all_its_phases(
    tmp_path: Path, metric: str, operations: set[str]
) -> None:
    study = SampleStudy(tmp_path, f"{STUDY}objective: {{metric: {metric}}}\n")
    for _ in range(3):
        study.add(Role.BASELINE, with_gets(study.measured({})), study.baseline)
    with study.opened() as folder:
        curves = StudyAnalysis(read_study(folder)).latencies
    study.close()
    assert {curve.operation for curve in curves} == operations
    assert {curve.runs for curve in curves} == {3}
