"""Pruned trials, several objectives, several workloads, constraints: what a study says of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from optuna.trial import TrialState
from sample_study import BEST, STUDY, SampleStudy, analysed

from lsmtune.experiment.store import Role
from lsmtune.model.config import Config
from lsmtune.model.goal import Direction
from lsmtune.model.measurement import IntermediateReport, Measurement, Outcome
from lsmtune.model.verdict import VerdictOutcome
from lsmtune.report.analysis import StudyAnalysis
from lsmtune.report.document import Answer, Paragraph
from lsmtune.report.importance import Method
from lsmtune.report.source import read_study
from lsmtune.report.study_proof import deploy_section, headline, price_section
from lsmtune.report.study_search import statistics_facts
from lsmtune.report.tables import GAIN, Arm
from lsmtune.search.searcher import PUT_BACK
from lsmtune.study.session import FLEET_ELAPSED, REFUSED, SEARCH_ENDED
from made_up import add_run

Make = Callable[[str], SampleStudy]

IN_TIME = STUDY + "pruner: {name: median, rungs: {every: 1s}}\n"
IN_SIZE = STUDY + "pruner: {name: median, rungs: {num: [10000, 100000, 1000000]}}\n"
SEVERAL = STUDY + (
    "objectives: [{metric: sustained_throughput_ops_s}, {metric: rss_bytes_max}]\n"
    "pick: {weights: {sustained_throughput_ops_s: 3, rss_bytes_max: 1}}\n"
    "sampler: {name: random}\nguards: []\n"
)
WORKLOADS = STUDY.replace(
    "workload: {name: fillrandom, num: 1e6, key_bytes: 20, value_bytes: 100}",
    "workloads: [{name: fillrandom, num: 1e6, weight: 3}, "
    "{name: fillrandom, label: small, num: 1e4, weight: 1}]\nguards: []",
)
CONSTRAINED = STUDY + "constraints: [rss_bytes_max <= 200MiB]\n"


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[SampleStudy] = []

    def sample(text: str) -> SampleStudy:
        made.append(SampleStudy(tmp_path, text))
        return made[-1]

    yield sample
    for study in made:
        study.close()


def with_memory(run: Measurement, rss_bytes: int) -> Measurement:
    return replace(run, phases=(replace(run.phases[0], rss_bytes_max=rss_bytes),))


def test_a_pruned_trial_is_a_bound_and_no_failure(make: Make) -> None:
    study = make(IN_TIME)
    study.add_baseline()
    study.add_trial(0, BEST, study.measured(BEST, 1.5))
    study.add_trial(1, BEST, study.pruned(BEST, 2.5, 90_000.0))
    study.add_trial(2, BEST, study.pruned(BEST, 1.25, 80_000.0))
    study.add_trial(3, BEST, study.pruned(BEST, 2.0, 70_000.0))
    study.add_trial(4, BEST, study.failed(Outcome.TIMEOUT, "deadline passed", BEST))
    found = analysed(study)
    second = found.history.trials[1]
    assert (second.outcome, second.value) == (Outcome.PRUNED, None)
    assert second.censored is not None
    assert (second.censored.rung, second.censored.reached_s) == (2, 2.0)
    assert second.censored.value == pytest.approx(90_000.0)
    assert found.history.trials[4].censored is None
    assert [row["outcome"] for row in found.failures] == [Outcome.TIMEOUT]
    (failed,) = [n.title for n in found.notices if n.kind == "failed_runs"]
    assert failed == "1 of 6 runs failed"


def test_where_a_pruned_trial_was_is_seen_by_the_anchors_as_values_are(make: Make) -> None:
    """On a machine that had become half as fast it stood at half of its height."""
    study = make(IN_TIME)
    study.add_baseline()
    for number in range(16):
        speed = 1.0 if number < 8 else 0.5
        study.add_trial(number, BEST, study.pruned(BEST, 2.0, 90_000.0 * speed))
        study.add_anchor(number, speed)
    stopped = [row.censored for row in analysed(study).history.trials]
    values = [each.value for each in stopped if each is not None]
    del values[8]  # it ran while the machine changed
    assert values == pytest.approx([90_000.0] * 15, rel=0.05)


def test_a_program_is_stopped_at_a_step_of_its_own(make: Make) -> None:
    study = make(IN_TIME)
    steps = tuple(
        IntermediateReport(step, {"sustained_throughput_ops_s": 1000.0 * step}) for step in (3, 7)
    )
    run = replace(study.pruned(BEST, 0.0, 1.0), intermediate=steps)
    study.add_trial(0, BEST, run)
    found = analysed(study)
    stopped = found.history.trials[0].censored
    assert stopped is not None
    assert (stopped.rung, stopped.reached_s, stopped.value) == (7, None, 7000.0)
    assert [(row["rung"], row["at_s"], row["at_keys"]) for row in found.statistics["rungs"]] == [
        (7, None, None)
    ]


def test_statistics_count_as_the_trials_ended(make: Make) -> None:
    study = make(IN_TIME)
    study.add_baseline()
    study.add_trial(0, BEST, study.measured(BEST, 1.5))
    for number, after_s in ((1, 1.25), (2, 1.5), (3, 3.0)):
        study.add_trial(number, BEST, study.pruned(BEST, after_s, 90_000.0))
    study.add_trial(4, BEST, study.failed(Outcome.TIMEOUT, "deadline passed", BEST))
    study.folder.measurements.set_fact(
        REFUSED,
        {"breaks a <= b": 3, "may come to use 5GiB of memory": 1, "may come to use 6GiB": 1},
    )
    statistics = analysed(study).statistics
    counts = (
        statistics["finished"],
        statistics["complete"],
        statistics["pruned"],
        statistics["failed"],
    )
    assert counts == (5, 1, 3, 1)
    assert statistics["without_pruning"] == 2
    assert dict(statistics["refused"]) == {
        "breaks a <= b": 3,
        "may come to use more memory than the limit": 2,
    }
    assert [(row["outcome"], row["trials"]) for row in statistics["kinds"]] == [
        (Outcome.PRUNED, 3),
        (Outcome.OK, 1),
        (Outcome.TIMEOUT, 1),
    ]
    assert statistics["kinds"][0]["total_s"] == pytest.approx(1.25 + 1.5 + 3.0 + 3 * 0.2)
    assert statistics["kinds"][0]["median_s"] == pytest.approx(1.7)
    assert [(row["rung"], row["at_s"], row["trials"]) for row in statistics["rungs"]] == [
        (1, 1.0, 2),
        (3, 3.0, 1),
    ]
    assert [(row["role"], row["runs"]) for row in statistics["roles"]] == [
        ("baseline", 1),
        ("trial", 5),
    ]
    assert sum(row["share"] for row in statistics["roles"]) == pytest.approx(1.0)
    assert statistics["spent_s"] == pytest.approx(
        sum(row["total_s"] for row in statistics["roles"])
    )
    assert (statistics["budget_trials"], statistics["budget_s"]) == (40, None)
    assert statistics["search_ended"] is None
    study.folder.measurements.set_fact(SEARCH_ENDED, "5 trials done")
    facts = statistics_facts(analysed(study).statistics)
    assert ("the search ended", "5 trials done") in facts


def test_the_time_budget_of_a_fleet_is_compared_with_the_clock(make: Make) -> None:
    """Four hosts, which work at once, had used 400 % of it."""
    study = make(STUDY.replace("{trials: 40}", "{time: 1h}"))
    store, run = study.folder.measurements, study.measured({})
    add_run(store, Role.BASELINE, run, config=Config(), wall_s=7200.0)
    assert ("time", "2h of 1h (200 %)") in statistics_facts(analysed(study).statistics)
    store.set_fact(FLEET_ELAPSED, 1800.0)
    facts = statistics_facts(analysed(study).statistics)
    assert ("time", "30m of 1h (50 %)") in facts
    assert ("time of all hosts together", "2h") in facts


def test_time_of_runs_that_do_not_count_is_time_of_the_budget(make: Make) -> None:
    """A study whose runs became longer had 25 % of its hour spent, and 80 % of it was gone."""
    study = make(STUDY.replace("{trials: 40}", "{time: 1h}"))
    store, run = study.folder.measurements, study.measured({})
    add_run(store, Role.BASELINE, run, config=Config(), wall_s=1800.0)
    store.set_aside("run_size", None)
    add_run(store, Role.BASELINE, run, config=Config(), wall_s=900.0)
    assert ("time", "45m of 1h (75 %)") in statistics_facts(analysed(study).statistics)
    store.note_lost(180.0)
    facts = statistics_facts(analysed(study).statistics)
    assert ("time", "48m of 1h (80 %)") in facts
    assert ("time of runs that do not count", "33m") in facts


def test_a_trial_pruned_between_two_sizes_has_smaller_runs_only(make: Make) -> None:
    study = make(IN_SIZE)
    study.add_baseline()
    for number in range(3):
        study.add_rung(number, BEST, study.measured(BEST, 0.5), 0)
    study.add_rung(1, BEST, study.measured(BEST, 0.6), 1)
    study.add_trial(1, BEST, study.measured(BEST, 1.3))
    study.end_trial(0, "pruned", TrialState.PRUNED)
    study.end_trial(1, "ok", TrialState.COMPLETE)
    study.end_trial(2, PUT_BACK, TrialState.FAIL)
    found = analysed(study)
    # Trial 2 was cut off: it did not end, and its smaller run says nothing of it.
    assert [(row.trial, row.outcome) for row in found.history.trials] == [
        (0, Outcome.PRUNED),
        (1, Outcome.OK),
    ]
    stopped = found.history.trials[0].censored
    assert stopped is not None
    assert (stopped.rung, stopped.reached_keys, stopped.reached_s) == (0, 10_000, None)
    assert found.statistics["put_back"] == 1
    assert [(row["rung"], row["at_keys"], row["trials"]) for row in found.statistics["rungs"]] == [
        (0, 10_000, 1)
    ]
    assert found.history.trials[1].elapsed_s > study.measured(BEST, 1.3).elapsed_s * 1.5


def test_a_front_and_the_point_that_the_weights_pick(make: Make) -> None:
    study = make(SEVERAL)
    study.add(Role.BASELINE, with_memory(study.measured({}, 1.0), 200 << 20), study.baseline)
    speeds_and_memory = [(2.0, 400), (1.5, 100), (1.2, 150), (0.5, 50), (4.0, 8000)]
    for number, (speed, memory) in enumerate(speeds_and_memory):
        options = {**BEST, "level0_file_num_compaction_trigger": 2 + number}
        run = with_memory(study.measured(options, speed), memory << 20)
        study.add_trial(number, options, run)
    found = analysed(study)
    assert found.metric == GAIN
    assert found.direction is Direction.MAXIMIZE
    assert found.front is not None
    assert [row.trial for row in found.front.rows] == [4, 0, 1, 3]
    assert [number for number, _ in found.front.others] == [2]
    assert found.front.weights == (0.75, 0.25)
    by_trial = {row.trial: row for row in found.front.rows}
    # 1.5 times the throughput at half the memory: 1.5 ** 0.75 * 2 ** 0.25.
    assert by_trial[1].gain == pytest.approx(1.5**0.75 * 2**0.25, rel=0.05)
    assert [row.trial for row in found.front.rows if row.is_picked] == [found.history.best_trial]
    best = max(found.front.rows, key=lambda row: row.gain or 0.0)
    assert best.is_picked
    assert found.history.baseline_value == 1.0
    assert found.history.best_value == best.gain == found.history.best_ratio
    assert [table.metric for table in found.importances] == [
        "sustained_throughput_ops_s",
        "rss_bytes_max",
    ]


def test_the_gain_of_a_pair_is_over_the_baseline_of_the_proof(make: Make) -> None:
    """On more data than the search had, the baseline had a gain of 0.4 over itself."""
    study = make(SEVERAL)
    config = Config({**study.spec.fixed, **BEST}, "study.yaml#0")
    study.add(Role.BASELINE, study.measured({}), study.baseline)
    study.add_trial(0, BEST, study.measured(BEST, 1.5))
    for pair in range(5):
        study.add(Role.PROOF_BASELINE, study.measured({}, 0.3), study.baseline, pair=pair)
        study.add(Role.PROOF_CANDIDATE, study.measured(BEST, 0.45), config, pair=pair)
    found = analysed(study)
    assert found.metric == GAIN
    assert found.medians[Arm.BASELINE] == 1.0
    assert found.medians[Arm.TUNED] == pytest.approx(1.5**0.75, rel=0.05)
    assert all(row.ratio == pytest.approx(1.5**0.75, rel=0.1) for row in found.pairs)


def test_a_broken_constraint_keeps_a_trial_from_being_best_and_off_the_front(make: Make) -> None:
    study = make(CONSTRAINED)
    study.add_baseline()
    for number, (speed, memory) in enumerate(((1.5, 300), (1.2, 100), (1.1, 100))):
        run = with_memory(study.measured(BEST, speed), memory << 20)
        study.add_trial(number, BEST, run)
    found = analysed(study)
    assert found.history.best_trial == 1
    assert found.history.trials[0].broken == ("rss_bytes_max <= 200MiB",)
    assert found.history.trials[0].best_so_far is None
    assert dict(found.statistics["broken"]) == {"rss_bytes_max <= 200MiB": 1}
    assert found.statistics["complete"] == 3


def test_what_lifting_a_guard_would_buy_is_said_beside_the_price(make: Make) -> None:
    """The report counted the trials that broke a guard, and did not say what they gained."""
    study = make(STUDY + "guards: [rss_bytes_max <= 1.25 * baseline]\n")
    baseline = with_memory(study.measured(study.baseline.options), 100 << 20)
    study.add(Role.BASELINE, baseline, study.baseline)
    for number, (speed, memory) in enumerate(((1.5, 300), (1.8, 300), (1.2, 100))):
        run = with_memory(study.measured(BEST, speed), memory << 20)
        study.add_trial(number, BEST, run)
    found = analysed(study)
    assert (found.history.best_trial, found.history.lifted_trial) == (2, 1)
    study.set_verdict(VerdictOutcome.NOT_PROVEN, None)
    verdict = analysed(study).verdict
    assert verdict is not None
    head, said, *_ = price_section(verdict, found.history).blocks
    assert isinstance(head, Answer)
    assert (head.figure, head.lead) == ("Not compared", "no pair was run")
    assert isinstance(said, Paragraph)
    assert said.text.startswith("Without guards, trial 1 would be the best of the search: 1.")
    assert said.text.endswith("It breaks rss_bytes_max <= 1.25 * baseline.")


def test_a_study_in_which_every_trial_broke_a_constraint_says_so(make: Make) -> None:
    """It said that no trial had given a value, beside the table of their values."""
    study = make(CONSTRAINED)
    study.add_baseline()
    study.add_trial(0, BEST, with_memory(study.measured(BEST, 1.5), 300 << 20))
    found = analysed(study)
    none = "met what the study asks of one"
    assert headline(found).detail == f"1 trial so far, and none {none}."
    said = deploy_section(found, False).blocks[0]
    assert said == Paragraph(f"No trial {none} yet, so there is nothing to deploy.", "quiet")


def test_several_workloads_make_one_value_and_one_row_each(make: Make) -> None:
    study = make(WORKLOADS)
    config = Config({**study.spec.fixed, **BEST}, "study.yaml#0")
    for workload, speed in enumerate((1.0, 1.0)):
        run = study.measured({}, speed)
        study.add(Role.BASELINE, run, study.baseline, workload=workload)
    for workload, speed in enumerate((2.0, 0.5)):
        study.add(Role.TRIAL, study.measured(BEST, speed), config, trial=0, workload=workload)
    study.add(Role.TRIAL, study.measured(BEST), config, trial=1, workload=0)
    found = analysed(study)
    # A trial that ran under one of two workloads was cut off.
    assert [row.trial for row in found.history.trials] == [0]
    assert found.history.best_ratio == pytest.approx(2**0.75 * 0.5**0.25, rel=0.05)
    assert [(row["workload"], row["share"]) for row in found.by_workload] == [
        ("fillrandom", 0.75),
        ("small", 0.25),
    ]
    ratios = [row["ratio"] for row in found.by_workload]
    assert ratios == [pytest.approx(2.0, rel=0.1), pytest.approx(0.5, rel=0.1)]
    assert {curve.operation for curve in found.latencies} == {"fillrandom: put", "small: put"}
    assert {series["workload"] for series in found.series} == {"fillrandom", "small"}


def test_a_pair_under_several_workloads_has_one_ratio(make: Make) -> None:
    study = make(WORKLOADS)
    config = Config({**study.spec.fixed, **BEST}, "study.yaml#0")
    for pair in range(5):
        for workload, speed in enumerate((2.0, 0.5)):
            of_pair = {"pair": pair, "workload": workload}
            study.add(Role.PROOF_BASELINE, study.measured({}), study.baseline, **of_pair)
            study.add(Role.PROOF_CANDIDATE, study.measured(BEST, speed), config, **of_pair)
    found = analysed(study)
    assert len(found.pairs) == 5
    assert all(row.ratio == pytest.approx(2**0.75 * 0.5**0.25, rel=0.1) for row in found.pairs)
    assert [row["ratio"] for row in found.by_workload] == [
        pytest.approx(2.0, rel=0.1),
        pytest.approx(0.5, rel=0.1),
    ]


def test_importance_may_be_left_out_and_comes_from_the_studys_seed(make: Make) -> None:
    study = make(STUDY)
    study.add_baseline()
    for number in range(25):
        options = study.draw()
        level = float(str(options["level0_file_num_compaction_trigger"]))
        study.add_trial(number, options, study.measured(options, 1 + level))
    with study.opened() as folder:
        records = read_study(folder)
    assert StudyAnalysis(records, None).importances == ()
    (table,) = StudyAnalysis(records).importances
    assert table.rows[0].parameter == "level0_file_num_compaction_trigger"
    assert StudyAnalysis(records).importances == (table,)
    told: list[tuple[int, int]] = []
    StudyAnalysis(records, Method.FANOVA, lambda done, of: told.append((done, of)))
    assert told[-1] == (10, 10)


def test_a_configuration_that_filled_its_disk_counts_as_one_that_failed(make: Make) -> None:
    """Trials over `limits.disk` were left out: what fills the disk did not matter."""
    study = make(STUDY)
    study.add_baseline()
    for number in range(40):
        options, why = study.draw(), "9GiB in the run's folder are over the limit of 8GiB"
        full = study.failed(Outcome.DISK_FULL, why, options)
        study.add_trial(number, options, full if number % 4 == 0 else study.measured(options))
    (table,) = analysed(study).importances
    assert (table.trials, table.trials_without_value) == (30, 10)
