"""What a search does beside one run per trial: constraints, rungs, several workloads and goals."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
from fake_runner import MIB, FakeRunner
from fake_runner import phase as one_phase
from optuna.trial import TrialState
from study_parts import Recorder, stored, tuned

from lsmtune.cli.choices import resolve_named
from lsmtune.driver.collect import KILLED
from lsmtune.driver.messages import IntervalPassed, Message, PhaseStarted
from lsmtune.engines.scaling import PROCESS_BYTES, THREAD_BYTES
from lsmtune.errors import InputError
from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.store import Role
from lsmtune.model.measurement import Interval, Measurement, Outcome, RunError
from lsmtune.model.request import RunRequest
from lsmtune.report.source import read_study
from lsmtune.study.build import parse_spec
from lsmtune.study.feasible import Feasibility
from lsmtune.study.session import REFUSED
from lsmtune.study.spec import Spec

STUDY = """\
version: 1
name: small
engine: {name: rocksdb}
workload: {name: fillrandom, num: 1000}
space:
  write_buffer_size: {type: int, low: 2MiB, high: 16MiB, step: 1MiB, default: 2MiB}
  max_write_buffer_number: {type: int, low: 2, high: 8, default: 2}
sampler: {name: random}
budget: {trials: 12}
proof: {pairs: 6}
noise: {calibration: 0, anchors: 0, repeats: 1}
seed: 1
"""


def study(path: Path, **replaced: str) -> Spec:
    """The study above, some of its fields replaced or added; an empty text removes one."""
    fields = {}
    for line in STUDY.splitlines():
        if not line.startswith(" "):
            key = line.partition(":")[0]
            fields[key] = line
        else:
            fields[key] += f"\n{line}"
    fields |= replaced
    text = "\n".join(text for text in fields.values() if text) + "\n"
    return parse_spec(text, path / "small.yaml")


class Streaming(FakeRunner):
    """Tells of ten intervals of a second, at the speed of the configuration, until cancelled.

    So it does in each of its `passes`, which have a share of this speed.
    """

    passes: ClassVar[Mapping[str, float]] = {"fillrandom": 1.0}

    def run(
        self,
        request: RunRequest,
        on_message: Callable[[Message], None] | None = None,
        cancel: threading.Event | None = None,
    ) -> Measurement:
        speed = self.speed(dict(request.config.options))
        tell, cancel = on_message or (lambda _: None), cancel or threading.Event()
        series: dict[str, list[Interval]] = {}
        for index, (name, share) in enumerate(self.passes.items()):
            steps, rate = series.setdefault(name, []), round(speed * share)
            tell(PhaseStarted(index, name, "measure"))
            for second in range(1, 11):
                if cancel.is_set():
                    break
                totals = (rate, rate * second, float(rate), 1)
                steps.append(Interval(float(second), 1.0, *totals, pending_compaction_bytes=0))
                tell(IntervalPassed(**steps[-1].__dict__, index=index))
            if cancel.is_set():
                break
        found = super().run(request, None, cancel)
        measured = found.phases[0] if found.phases else one_phase(speed)
        *before, last = (
            replace(measured, name=name, intervals=tuple(steps)) for name, steps in series.items()
        )
        if found.outcome is Outcome.OK:
            return replace(found, phases=(*before, last))
        ended = replace(found, phases=tuple(before), error=None)
        return replace(ended, phase_unfinished=last.name, intervals_unfinished=last.intervals)


class Frozen(Streaming):
    """The run of trial 3 is frozen for an hour and then killed, both once, from outside."""

    frozen = False

    def run(
        self,
        request: RunRequest,
        on_message: Callable[[Message], None] | None = None,
        cancel: threading.Event | None = None,
    ) -> Measurement:
        if request.trial != 3 or self.frozen:
            return super().run(request, on_message, cancel)
        self.frozen = True
        tell = on_message or (lambda _: None)
        tell(PhaseStarted(0, "fillrandom", "measure"))
        late = Interval(3600.0, 3600.0, 1, 1, 0.0, 1, pending_compaction_bytes=0)
        tell(IntervalPassed(**late.__dict__, index=0))
        found = FakeRunner.run(self, request)
        error = RunError(KILLED, "killed by SIGKILL, by whom is not known")
        return replace(found, outcome=Outcome.DISTURBED, error=error, phases=())


def test_a_run_that_was_disturbed_is_not_pruned_by_what_it_came_to_before(tmp_path: Path) -> None:
    """Measured again, the run was ended at its first step, by the rate of the frozen one."""
    spec = study(tmp_path, pruner="pruner: {name: far-behind}", budget="budget: {trials: 5}")
    runner = Frozen(speed=lambda _options: 1e5)
    assert tuned(spec, tmp_path / "s", runner).counts == {"ok": 5}
    assert runner.frozen


def trial_states(folder: Path) -> list[TrialState]:
    with StudyFolder.open(folder) as opened:
        return [trial.state for trial in opened.optuna_study().trials]


def test_what_breaks_a_constraint_on_options_costs_no_run(tmp_path: Path) -> None:
    runner = FakeRunner()
    text = "constraints: [write_buffer_size * max_write_buffer_number <= 24MiB]"
    tuned(study(tmp_path, constraints=text), tmp_path / "s", runner)
    for request in runner.requests[1:13]:
        options = request.config.options
        size, number = options["write_buffer_size"], options["max_write_buffer_number"]
        assert int(size) * int(number) <= 24 * MIB
    with StudyFolder.open(tmp_path / "s") as folder:
        refused = folder.measurements.fact(REFUSED)
    assert list(refused) == ["breaks write_buffer_size * max_write_buffer_number <= 24MiB"]
    document = json.loads((tmp_path / "s" / "result" / "result.json").read_text())
    assert document["refused"] == refused


def test_what_may_use_more_memory_than_the_limit_costs_no_run(tmp_path: Path) -> None:
    runner, observer = FakeRunner(), Recorder()
    spec = study(tmp_path, limits="limits: {memory: 100MiB}")
    tuned(spec, tmp_path / "s", runner, observer)
    for request in runner.requests[1:13]:
        options = request.config.options
        size, number = options["write_buffer_size"], options["max_write_buffer_number"]
        assert int(size) * int(number) < 100 * MIB
    warnings = observer.warnings
    assert any("the baseline may come to use more memory" in text for text in warnings)


def test_the_memory_model_of_a_study_is_that_of_the_engine_it_measures(tmp_path: Path) -> None:
    """RocksDB before 8.5 has a buffer for each file that it compacts, and nobody counted them."""
    baseline = "baseline: {compaction_readahead_size: 16MiB}"
    spec = study(tmp_path, limits="limits: {memory: 300MiB}", baseline=baseline)
    observer = Recorder()
    tuned(spec, tmp_path / "s", observer=observer)  # on version 1.0
    assert any("the baseline may come to use more memory" in text for text in observer.warnings)
    wide = {"compaction_readahead_size": 16 * MIB}
    older, newer = (replace(spec, engine_version=version) for version in ("7.8.3", "10.10.1"))
    assert Feasibility(older).refusal(wide).startswith("may come to use more memory")
    assert Feasibility(newer).refusal(wide) == ""


def test_constraints_that_leave_nothing_are_an_error_of_the_study(tmp_path: Path) -> None:
    text = "constraints: [write_buffer_size < 2MiB]"
    with pytest.raises(InputError, match="breaks write_buffer_size < 2MiB"):
        tuned(study(tmp_path, constraints=text), tmp_path / "s")


def test_the_best_meets_the_constraints_on_outcomes(tmp_path: Path) -> None:
    # The fastest buffers are of 8 MiB; those beyond 5 MiB break the constraint by their speed.
    text = "constraints: [throughput_ops_s <= 125000]"
    free = tuned(study(tmp_path), tmp_path / "free")
    bound = tuned(study(tmp_path, constraints=text), tmp_path / "bound")
    assert free.best_value is not None
    assert free.best_value > 125_000
    assert bound.best_value is not None
    assert bound.best_value <= 125_000
    with StudyFolder.open(tmp_path / "bound") as folder:
        trials = folder.optuna_study().trials
    broken = [t for t in trials if any(value > 0 for value in t.constraints.values())]
    assert broken
    assert all(t.value > 125_000 for t in broken if t.value is not None)


def test_a_candidate_that_breaks_a_constraint_in_its_proof_is_not_better(tmp_path: Path) -> None:
    """Every run of a proof waits longer than the runs of the search did."""
    text = "constraints: [latency_us_p99 <= 10]"
    runner = FakeRunner(figures=lambda r: {"latency_us_p99": 50.0 if r.trial is None else 5.0})
    result = tuned(study(tmp_path, constraints=text), tmp_path / "s", runner)
    assert result.verdict is not None
    assert result.verdict.outcome.value == "not_proven"
    assert "the candidate breaks latency_us_p99 <= 10 in 6 of 6 pairs" in result.verdict.why


def test_by_default_a_gain_may_not_cost_three_times_the_write_amplification(tmp_path: Path) -> None:
    amplifying = FakeRunner(
        figures=lambda r: {"write_amplification": 6.0 if r.config.options else 2.0}
    )
    free = tuned(study(tmp_path, constraints="guards: []"), tmp_path / "free", amplifying)
    assert free.verdict is not None
    assert free.verdict.outcome.value == "better"
    bound = tuned(study(tmp_path), tmp_path / "bound", amplifying)
    assert bound.verdict is not None
    assert bound.verdict.outcome.value == "not_proven"
    text = "every trial broke a constraint (write_amplification <= 1.5 * baseline)"
    assert text in bound.verdict.why


class ThreePhases(FakeRunner):
    """Puts wait long, gets and deletes do not."""

    def _measurement(self, request: RunRequest, outcome: Outcome) -> Measurement:
        found = super()._measurement(request, outcome)
        phases = tuple(
            replace(found.phases[0], name=name, latency_us_p99=wait_us)
            for name, wait_us in (("put", 20.0), ("get", 5.0), ("delete", 4.0))
        )
        return replace(found, phases=phases)


def test_a_constraint_holds_in_every_phase_unless_it_names_one(tmp_path: Path) -> None:
    """It looked at the last phase alone: puts of 20 us passed a limit of 12."""
    workload = "workload: {name: put-get-delete, num: 1000}"

    def best(name: str, constraint: str) -> object:
        text = f"constraints: [{constraint}]"
        spec = study(tmp_path, workload=workload, constraints=text)
        return tuned(spec, tmp_path / name, ThreePhases()).best

    assert best("all", "latency_us_p99 <= 12") is None
    assert best("get", "get.latency_us_p99 <= 12") is not None
    assert best("put", "put.latency_us_p99 <= 12") is None


def test_a_short_name_is_the_metric_that_it_stands_for(tmp_path: Path) -> None:
    for name in ("db_bytes", "database_bytes"):
        text = f"constraints: [{name} > 1]"
        result = tuned(study(tmp_path, constraints=text), tmp_path / name)
        assert result.verdict is not None
        assert f"every trial broke a constraint ({name} > 1)" in result.verdict.why


def test_a_study_in_which_every_trial_breaks_a_constraint_says_so(tmp_path: Path) -> None:
    text = "constraints: [throughput_ops_s >= 1e9]"
    result = tuned(study(tmp_path, constraints=text), tmp_path / "s")
    assert result.best is None
    assert result.verdict is not None
    assert "every trial broke a constraint (throughput_ops_s >= 1e9)" in result.verdict.why
    # A command that asks for its best was told that no trial had finished yet.
    recommended = r"none of its \d+ trials is to be recommended; \d+ broke throughput_ops_s >= 1e9"
    with pytest.raises(InputError, match=recommended + r".*a trial by its number, such as \S+s#\d"):
        resolve_named(str(tmp_path / "s"))


def test_a_constraint_on_what_was_not_observed_is_an_error_of_the_study(tmp_path: Path) -> None:
    text = "constraints: [write_amplification <= 5]"
    with pytest.raises(InputError, match="did not observe write_amplification"):
        tuned(study(tmp_path, constraints=text), tmp_path / "s")


def test_runs_that_look_bad_are_ended_and_kept_as_censored(tmp_path: Path) -> None:
    pruner = "pruner: {name: median, startup_trials: 3, rungs: {every: 2s}}"
    spec = study(tmp_path, pruner=pruner, budget="budget: {trials: 20}")
    result = tuned(spec, tmp_path / "s", Streaming(noise=0.0))
    assert result.counts["ok"] + result.counts["pruned"] == 20
    assert result.counts["pruned"] >= 3
    rows = [row for row in stored(tmp_path / "s") if row.role is Role.TRIAL]
    pruned = [row for row in rows if row.measurement.outcome is Outcome.PRUNED]
    assert len(pruned) == result.counts["pruned"]
    for row in pruned:
        assert 2 <= row.measurement.intervals_unfinished[-1].elapsed_s < 10
    for row, state in zip(rows, trial_states(tmp_path / "s"), strict=True):
        was_pruned = row.measurement.outcome is Outcome.PRUNED
        assert state == (TrialState.PRUNED if was_pruned else TrialState.COMPLETE)
    assert result.verdict is not None
    assert result.verdict.pairs == 6


class SlowPasses(Streaming):
    passes: ClassVar[Mapping[str, float]] = {"put": 1.0, "get": 0.1, "delete": 0.1}


def test_a_pruner_compares_the_phase_of_the_objective(tmp_path: Path) -> None:
    """The rate of a trial's puts was compared with that of the others' deletes."""
    spec = study(
        tmp_path,
        workload="workload: {name: put-get-delete, num: 1000}",
        objective="objective: {metric: throughput_ops_s, phase: put}",
        pruner="pruner: {name: median, startup_trials: 3, rungs: {every: 2s}}",
        budget="budget: {trials: 20}",
    )
    result = tuned(spec, tmp_path / "s", SlowPasses(noise=0.0))
    assert result.counts["pruned"] >= 3
    rows = [row.measurement for row in stored(tmp_path / "s") if row.role is Role.TRIAL]
    pruned = [run for run in rows if run.outcome is Outcome.PRUNED]
    assert {run.phase_unfinished for run in pruned} == {"put"}


class BySize(FakeRunner):
    """Notes the number of keys of each run."""

    def sizes(self) -> list[int]:
        return [request.workload.num for request in self.requests]


def test_rungs_of_size_run_small_first_and_the_full_size_for_the_few(tmp_path: Path) -> None:
    pruner = (
        "pruner: {name: successive-halving, min_resource: 1, reduction_factor: 10, "
        "rungs: {num: [10, 100, 1000]}}"
    )
    runner = BySize(noise=0.0)
    spec = study(tmp_path, pruner=pruner, budget="budget: {trials: 30}")
    result = tuned(spec, tmp_path / "s", runner)
    search = (
        runner.sizes()[1:-12] if result.verdict and result.verdict.pairs else runner.sizes()[1:]
    )
    assert search.count(10) == 30
    assert 0 < search.count(1000) <= search.count(100) < 30
    assert result.counts["pruned"] == 30 - search.count(1000)
    rungs = [row for row in stored(tmp_path / "s") if row.role is Role.RUNG]
    assert {row.rung for row in rungs} == {0, 1}
    assert not any(row.measurement.outcome is Outcome.PRUNED for row in rungs)


def test_a_smaller_run_has_the_configuration_at_its_scale(tmp_path: Path) -> None:
    """Of 100 keys in place of 1000, a memtable of the whole size would never be full."""
    pruner = (
        "pruner: {name: successive-halving, min_resource: 1, reduction_factor: 10, "
        "rungs: {num: [100, 1000]}}"
    )
    runner = BySize(noise=0.0)
    spec = study(tmp_path, pruner=pruner, budget="budget: {trials: 12}")
    result = tuned(spec, tmp_path / "s", runner)
    assert result.counts["pruned"] > 0
    whole = {row.trial: row.config for row in stored(tmp_path / "s") if row.trial is not None}
    small = [request for request in runner.requests if request.workload.num == 100]
    for request in small:
        options, own = request.config.options, whole[request.trial].options
        tenth = own["write_buffer_size"] / 10
        assert options["write_buffer_size"] == pytest.approx(tenth, abs=4096)
        assert options["target_file_size_base"] == pytest.approx((64 << 20) / 10, abs=4096)
    big = [request for request in runner.requests[1:] if request.workload.num == 1000]
    assert all("target_file_size_base" not in request.config.options for request in big)


def test_a_study_says_what_its_smaller_runs_cannot_tell_apart(tmp_path: Path) -> None:
    pruner = "pruner: {name: median, rungs: {num: [10, 1000]}}"
    notes = study(tmp_path, pruner=pruner).notes
    assert [note for note in notes if note.startswith("runs on 10 keys take write_buffer_size")]
    assert not [note for note in notes if "of memory" in note]
    large = "workload: {name: fillrandom, num: 1000, value_bytes: 1MiB}"
    notes = study(tmp_path, workload=large, pruner=pruner, limits="limits: {memory: 512MiB}").notes
    assert [note for note in notes if note.startswith("runs on 10 keys have 64MiB of memory")]


def test_a_smaller_run_has_the_memory_at_its_scale(tmp_path: Path) -> None:
    """With all of it, reads of a tenth of the data came from the page cache."""
    pruner = "pruner: {name: median, rungs: {num: [10, 100, 1000]}}"
    runner = BySize(noise=0.0)
    spec = study(tmp_path, pruner=pruner, limits="limits: {memory: 4GiB}")
    tuned(spec, tmp_path / "s", runner)
    known = {request.workload.num: request.limits.memory_bytes for request in runner.requests}
    fixed = PROCESS_BYTES + THREAD_BYTES
    tenth = fixed + ((4 << 30) - fixed) / 10
    assert known == {10: 64 << 20, 100: pytest.approx(tenth, abs=1), 1000: 4 << 30}


def test_a_run_of_a_small_size_has_its_own_deadline(tmp_path: Path) -> None:
    pruner = (
        "pruner: {name: successive-halving, min_resource: 1, "
        "rungs: {num: [10, 1000], deadlines: [4s, 40s]}}"
    )
    runner = FakeRunner()
    tuned(study(tmp_path, pruner=pruner), tmp_path / "s", runner)
    search = runner.requests[1:-12]
    assert {(r.workload.num, r.limits.deadline_s) for r in search} == {(10, 4.0), (1000, 40.0)}


WORKLOADS = """workloads:
  - {name: fillrandom, label: writes, num: 1000}
  - {name: readrandom, label: reads, num: 1000, weight: 3}"""


class TwoSpeeds(FakeRunner):
    """Writes like 8 MiB, reads like 14 MiB, and reads are ten times faster."""

    def _measurement(self, request: RunRequest, outcome: Outcome) -> Measurement:
        found = super()._measurement(request, outcome)
        if request.workload.name == "fillrandom" or not found.phases:
            return found
        size = float(str(request.config.options.get("write_buffer_size", 2 * MIB))) / MIB
        rate = 1e6 * (1.0 + 0.5 * (1.0 - ((size - 14.0) / 12.0) ** 2))
        measured = replace(found.phases[0], name="readrandom", throughput_ops_s=rate)
        return replace(found, phases=(replace(measured, sustained_throughput_ops_s=rate),))


def test_one_configuration_for_several_workloads(tmp_path: Path) -> None:
    runner = TwoSpeeds(noise=0.001)
    spec = study(tmp_path, workload="", workloads=WORKLOADS, budget="budget: {trials: 25}")
    result = tuned(spec, tmp_path / "s", runner)
    assert len(runner.requests) == 2 * (1 + 25 + 12)
    assert result.counts == {"ok": 25}
    assert result.best is not None
    # Writes alone want 8 MiB, reads 14; with three times the weight, reads pull it over.
    assert int(result.best.options["write_buffer_size"]) / MIB >= 10
    assert result.verdict is not None
    assert result.verdict.outcome.value == "better"
    rows = [row for row in stored(tmp_path / "s") if row.role is Role.TRIAL]
    assert [(row.trial, row.workload) for row in rows[:4]] == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_a_trial_whose_first_workload_fails_spares_the_others(tmp_path: Path) -> None:
    def fails(request: RunRequest) -> Outcome | None:
        small = int(request.config.options.get("write_buffer_size", 2 * MIB)) < 8 * MIB
        writes = request.workload.name == "fillrandom"
        return Outcome.CRASHED if small and writes and request.config.options else None

    runner = TwoSpeeds(fails=fails)
    result = tuned(study(tmp_path, workload="", workloads=WORKLOADS), tmp_path / "s", runner)
    assert result.counts["crashed"] > 0
    search = runner.requests[2:-24]
    assert len(search) == 12 * 2 - result.counts["crashed"]


OBJECTIVES = """objectives:
  - {metric: throughput_ops_s}
  - {metric: rss_bytes_max, direction: minimize}"""


def hungry(request: RunRequest) -> dict[str, int]:
    """Memory grows with the buffers."""
    return {"rss_bytes_max": int(request.config.options.get("write_buffer_size", 2 * MIB))}


def test_a_front_is_searched_and_one_of_it_is_picked_and_proved(tmp_path: Path) -> None:
    fields = {"objectives": OBJECTIVES, "sampler": "sampler: {name: nsga2, population: 6}"}
    fields["budget"] = "budget: {trials: 30}"
    pick = "pick: {best: throughput_ops_s, where: ['rss_bytes_max <= 5MiB']}"
    spec = study(tmp_path, **fields, pick=pick)
    result = tuned(spec, tmp_path / "s", FakeRunner(figures=hungry))
    assert result.best is not None
    assert result.verdict is not None
    assert int(result.best.options["write_buffer_size"]) <= 5 * MIB
    assert set(result.best_values) == {"throughput_ops_s", "rss_bytes_max"}
    assert [other.metric for other in result.verdict.others][:2] == [
        "throughput_ops_s",
        "rss_bytes_max",
    ]
    by_weight = study(tmp_path, **fields, pick="pick: {weights: {rss_bytes_max: 1}}")
    small = tuned(by_weight, tmp_path / "t", FakeRunner(figures=hungry))
    assert small.best is not None
    assert int(small.best.options["write_buffer_size"]) == 2 * MIB


def test_start_configurations_are_tried_first_and_what_cannot_be_is_said(tmp_path: Path) -> None:
    runner, observer = FakeRunner(), Recorder()
    start = """start:
  - {write_buffer_size: 7MiB, max_write_buffer_number: 3}
  - {write_buffer_size: 1GiB}
  - {write_buffer_size: 9MiB, compression: kNoCompression}"""
    tuned(study(tmp_path, start=start), tmp_path / "s", runner, observer)
    sizes = [int(r.config.options["write_buffer_size"]) // MIB for r in runner.requests[1:4]]
    assert sizes == [2, 7, 9]
    warnings = observer.warnings
    outside = "start[1] lies outside the space and is not tried: write_buffer_size is 1073741824"
    assert any(text.startswith(outside) for text in warnings)
    assert "start[2] is tried without compression: no parameters of the space" in warnings


@pytest.mark.parametrize("sampler", ["tpe", "cmaes"])
def test_a_study_that_stops_often_is_the_one_that_never_stopped(
    tmp_path: Path, sampler: str
) -> None:
    """Of two kinds: the suite of the samplers has what each of them remembers."""
    spec = study(
        tmp_path,
        sampler=f"sampler: {{name: {sampler}}}",
        budget="budget: {trials: 21}",
        pruner="pruner: {name: median, startup_trials: 5, rungs: {every: 2s}}",
    )
    straight = Streaming()
    tuned(spec, tmp_path / "straight", straight)
    stopping = Streaming()
    for _ in range(12):
        observer = Recorder()
        done = len(stopping.requests) - 1
        observer.stop_at = ("trial_finished", done + 3)
        if not tuned(spec, tmp_path / "stopping", stopping, observer).interrupted:
            break
    assert [r.config.options for r in stopping.requests] == [
        r.config.options for r in straight.requests
    ]


def test_a_small_space_ends_the_search_when_all_of_it_was_tried(tmp_path: Path) -> None:
    space = "space:\n  max_background_jobs: {type: int, low: 1, high: 4, default: 2}"
    observer = Recorder()
    result = tuned(study(tmp_path, space=space), tmp_path / "s", observer=observer)
    assert result.counts == {"ok": 4}
    (reason,) = (str(what[1]) for what in observer.told if what[0] == "search_finished")
    assert "every configuration" in reason


def test_an_option_file_of_a_study_is_found_from_where_the_study_file_lies(tmp_path: Path) -> None:
    (tmp_path / "mine.properties").write_text(
        "rocksdb.write_buffer_size=3145728\nrocksdb.compression=no\nrocksdb.colour=red\n"
    )
    observer = Recorder()
    spec = study(tmp_path, baseline="baseline: mine.properties")
    tuned(spec, tmp_path / "elsewhere" / "s", observer=observer)
    with StudyFolder.open(tmp_path / "elsewhere" / "s") as folder:
        records = read_study(folder)
    assert records.spec.baseline.label == "mine.properties"
    assert records.spec.baseline.options["write_buffer_size"] == 3 * MIB
    warnings = observer.warnings
    assert any("colour" in text for text in warnings)
