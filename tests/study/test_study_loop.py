from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_runner import ENGINE, MIB, FakeRunner, Refusing, SpeedBySeed
from optuna.trial import TrialState
from study_parts import Recorder, make_spec, stored, trials_of, tuned

from lsmtune.errors import InputError, LsmtuneError
from lsmtune.experiment import files as scratch
from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.schedule import Stream, derive_seed
from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import RunRequest
from lsmtune.model.verdict import VerdictOutcome
from lsmtune.report.source import read_study
from lsmtune.search.starts import preset_starts
from lsmtune.search.unit_space import make_unit_space
from lsmtune.study.build import load_spec
from lsmtune.study.feasible import Feasibility
from lsmtune.study.spec import Budget
from lsmtune.study.start import allowed_points, problem_of, textbook_points

ROOT = Path(__file__).resolve().parents[2]


def states(folder: Path) -> Counter[TrialState]:
    with StudyFolder.open(folder) as opened:
        return Counter(trial.state for trial in opened.optuna_study().trials)


def size_mib(request: RunRequest) -> float:
    return float(str(request.config.options.get("write_buffer_size", 0))) / MIB


def test_a_study_from_start_to_verdict(tmp_path: Path) -> None:
    runner, observer = FakeRunner(), Recorder()
    result = tuned(make_spec(tmp_path), tmp_path / "s", runner, observer)
    assert result.verdict is not None
    assert result.verdict.outcome is VerdictOutcome.BETTER
    assert result.counts == {"ok": 8}
    assert not result.interrupted
    assert result.best is not None
    assert result.best.label == f"small.yaml#{result.best_trial}"
    roles = [row.role for row in stored(tmp_path / "s")]
    assert roles[:9] == [Role.BASELINE, *[Role.TRIAL] * 8]
    assert len(roles) == 9 + 12
    assert states(tmp_path / "s") == {TrialState.COMPLETE: 8}
    document = json.loads((tmp_path / "s" / "result" / "result.json").read_text())
    assert document["verdict"]["outcome"] == "better"
    assert document["best"]["options"] == dict(result.best.options)
    assert document["outcomes"] == {"ok": 8}
    with StudyFolder.open(tmp_path / "s") as folder:
        assert folder.measurements.verdict() == result.verdict


def test_the_observer_hears_everything_in_order(tmp_path: Path) -> None:
    observer = Recorder()
    tuned(make_spec(tmp_path, budget="{trials: 1}"), tmp_path / "s", observer=observer)
    run = ["run_started", "run_message", "run_finished"]
    assert observer.names() == [
        "study_started", *run, *run, "trial_finished", "best_changed", "search_finished", "finished"
    ]  # fmt: skip


def test_the_first_trial_is_the_baseline_as_a_point_of_the_space(tmp_path: Path) -> None:
    runner = FakeRunner()
    tuned(make_spec(tmp_path, budget="{trials: 2}"), tmp_path / "s", runner)
    assert dict(runner.requests[1].config.options) == {
        "write_buffer_size": 2 * MIB,
        "level0_file_num_compaction_trigger": 4,
    }
    assert dict(runner.requests[0].config.options) == {}


def test_a_report_tells_the_budget_that_was_asked_for_last(tmp_path: Path) -> None:
    """With `--budget 2h` for a file that says 170 s, `show` had 1h58m of 170 s used."""
    spec = make_spec(tmp_path, budget="{trials: 1}")
    tuned(spec, tmp_path / "s")
    tuned(replace(spec, budget=Budget(3600.0, 2)), tmp_path / "s")
    with StudyFolder.open(tmp_path / "s") as folder:
        assert read_study(folder).spec.budget == Budget(3600.0, 2)


def test_without_a_known_default_the_sampler_begins(tmp_path: Path) -> None:
    spec = make_spec(tmp_path, default="unit: bytes", budget="{trials: 3}")
    result = tuned(spec, tmp_path / "s")
    assert result.counts == {"ok": 3}


def test_every_run_has_a_seed_of_its_own_and_the_proof_fresh_ones(tmp_path: Path) -> None:
    tuned(make_spec(tmp_path), tmp_path / "s")
    search: set[int] = set()
    proof: set[int] = set()
    for row in stored(tmp_path / "s"):
        (proof if row.pair is not None else search).add(row.measurement.seed)
    assert len(search) == 9
    assert len(proof) == 6
    assert not search & proof


@pytest.mark.parametrize(
    "outcome",
    [o for o in Outcome if o not in (Outcome.OK, Outcome.CANCELLED, Outcome.DISTURBED)],
)
def test_the_study_goes_on_after_any_outcome(tmp_path: Path, outcome: Outcome) -> None:
    runner = FakeRunner(fails=lambda r: outcome if size_mib(r) > 10 else None)
    result = tuned(make_spec(tmp_path, budget="{trials: 12}"), tmp_path / "s", runner)
    assert sum(result.counts.values()) == 12
    assert 0 < result.counts[outcome.value] < 12
    assert result.verdict is not None
    assert result.verdict.outcome is VerdictOutcome.BETTER
    state = TrialState.PRUNED if outcome is Outcome.PRUNED else TrialState.FAIL
    assert states(tmp_path / "s")[state] == result.counts[outcome.value]
    with StudyFolder.open(tmp_path / "s") as folder:
        for row in folder.measurements.of(Role.TRIAL):
            trial = folder.optuna_study().trials[row.trial or 0]
            assert trial.user_attrs.get("outcome", "ok") == row.measurement.outcome.value


def test_a_study_in_which_every_candidate_fails_has_a_verdict(tmp_path: Path) -> None:
    runner = FakeRunner(fails=lambda r: Outcome.CRASHED if r.config.options else None)
    result = tuned(make_spec(tmp_path), tmp_path / "s", runner)
    assert result.best is None
    assert result.verdict is not None
    assert result.verdict.why == "no trial gave a value"
    assert result.counts == {"crashed": 8}


def test_a_candidate_that_loses_data_only_in_the_proof_is_not_better(tmp_path: Path) -> None:
    lost = derive_seed(1, Stream.PROOF, 1)
    runner = FakeRunner(
        fails=lambda r: Outcome.DATA_LOSS if r.seed == lost and r.config.options else None
    )
    result = tuned(make_spec(tmp_path), tmp_path / "s", runner)
    assert result.verdict is not None
    assert result.verdict.outcome is VerdictOutcome.WORSE
    assert "data_loss" in result.verdict.why


def test_when_the_baseline_is_the_best_there_is_no_proof(tmp_path: Path) -> None:
    def speed(options: dict[str, object]) -> float:
        return 2e5 if options.get("write_buffer_size") == 2 * MIB else 1e5

    runner = FakeRunner(speed=speed, noise=0.0)
    result = tuned(make_spec(tmp_path, budget="{trials: 3}"), tmp_path / "s", runner)
    assert result.verdict is not None
    assert result.verdict.outcome is VerdictOutcome.NOT_PROVEN
    assert result.verdict.why == "the baseline itself was the best of the search"
    assert len(runner.requests) == 4


def test_a_trial_without_an_option_of_the_baseline_is_not_the_baseline(tmp_path: Path) -> None:
    """What made today's configuration slow was no parameter, and the gain without it not proved."""

    def speed(options: dict[str, object]) -> float:
        if "max_background_jobs" in options:
            return 1e5
        return 2e5 if options["write_buffer_size"] == 2 * MIB else 1.5e5

    spec = make_spec(tmp_path, budget="{trials: 3}", more="baseline: {max_background_jobs: 1}")
    observer = Recorder()
    result = tuned(spec, tmp_path / "s", FakeRunner(speed=speed, noise=0.0), observer)
    assert result.best_trial == 0
    assert result.verdict is not None
    assert result.verdict.outcome is VerdictOutcome.BETTER
    told = "candidates are tried without max_background_jobs of the baseline: no parameters of the"
    assert any(text.startswith(told) for text in observer.warnings)


def test_one_fast_run_of_the_baseline_does_not_replace_the_proof(tmp_path: Path) -> None:
    """The baseline's run of the search was the fastest of all; its runs of the proof are not."""
    lucky = derive_seed(1, Stream.BASELINE, 0)
    runner = SpeedBySeed({lucky: 9.0})
    result = tuned(make_spec(tmp_path), tmp_path / "s", runner)
    assert result.baseline_value is not None
    assert result.best_value is not None
    assert result.baseline_value > result.best_value
    assert result.verdict is not None
    assert (result.verdict.outcome, result.verdict.pairs) == (VerdictOutcome.BETTER, 6)


def test_less_is_better_when_the_objective_says_so(tmp_path: Path) -> None:
    metric = "throughput_ops_s\n  direction: minimize"
    result = tuned(make_spec(tmp_path, metric=metric), tmp_path / "s")
    values = [row.measurement.phases[-1].throughput_ops_s for row in trials_of(tmp_path / "s")]
    assert result.best_value == min(values)
    assert result.verdict is not None
    assert result.verdict.direction == "minimize"


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ("options: {max_open_fils: 5}", "small.yaml:20: options.max_open_fils"),
        ("baseline: {max_open_fils: 5}", "small.yaml:20: baseline.max_open_fils"),
    ],
)
def test_a_baseline_that_the_engine_refuses_is_an_error_of_the_study_file(
    tmp_path: Path, more: str, line: str
) -> None:
    with pytest.raises(InputError) as caught:
        tuned(make_spec(tmp_path, more=more), tmp_path / "s", Refusing("max_open_fils"))
    assert str(caught.value) == f"{tmp_path}/{line}: unknown option; did you mean nearest_one?"


def test_a_mistyped_option_of_the_space_ends_the_study_and_can_be_corrected(tmp_path: Path) -> None:
    name = "level0_file_num_compaction_trigger"
    runner = Refusing(name)
    with pytest.raises(InputError, match=rf"small.yaml:12: space.{name}: unknown option; did you"):
        tuned(make_spec(tmp_path), tmp_path / "s", runner)
    assert len(runner.requests) == 2
    corrected = make_spec(tmp_path, default="default: 3MiB")
    corrected = replace(corrected, fixed={"max_open_files": 10})
    assert tuned(corrected, tmp_path / "s").counts == {"ok": 8}


def test_a_baseline_that_fails_is_a_clear_error_and_can_be_tried_again(tmp_path: Path) -> None:
    spec = make_spec(tmp_path)
    broken = FakeRunner(fails=lambda _request: Outcome.TIMEOUT)
    with pytest.raises(
        LsmtuneError, match="the study cannot start: its baseline run ended timeout: made to end"
    ):
        tuned(spec, tmp_path / "s", broken)
    assert [row.measurement.outcome for row in stored(tmp_path / "s")] == [Outcome.TIMEOUT]
    assert tuned(spec, tmp_path / "s").counts == {"ok": 8}


def test_a_time_budget_covers_search_and_proof(tmp_path: Path) -> None:
    # Runs of 1 s on the fake clock: 14.4 s are kept for the proof of 6 pairs.
    runner, observer = FakeRunner(), Recorder()
    result = tuned(make_spec(tmp_path, budget="{time: 40s}"), tmp_path / "s", runner, observer)
    assert result.counts == {"ok": 24}
    assert result.spent_s == pytest.approx(37.0)
    reason = next(what[1] for what in observer.told if what[0] == "search_finished")
    assert reason == "15s of the time budget are left, kept for the proof"
    assert "warning" not in observer.names()


def test_time_is_not_kept_for_a_proof_of_nothing(tmp_path: Path) -> None:
    """A study ended after one trial, no better than the baseline, with four fifths of its time."""

    class LateGain(FakeRunner):
        def run(self, request: RunRequest, *more: Any) -> Measurement:
            gains = request.config.options.get("write_buffer_size") == self.found
            self.speed = lambda _options: 2e5 if gains else 1e5
            if request.trial == 6 and not self.found:
                self.found = request.config.options["write_buffer_size"]
                self.speed = lambda _options: 2e5
            return super().run(request, *more)

        found: object = None

    # 14.4 of 20 s are kept for a proof: four trials fit beside it, and the seventh is faster.
    spec = make_spec(tmp_path, budget="{time: 20s}")
    observer = Recorder()
    result = tuned(spec, tmp_path / "s", LateGain(noise=0.0), observer)
    assert result.counts == {"ok": 7}
    assert result.verdict is not None
    assert (result.verdict.outcome, result.verdict.pairs) == (VerdictOutcome.BETTER, 6)
    assert result.spent_s == pytest.approx(20.0)
    warnings = observer.warnings
    assert [text for text in warnings if "has room for about" in text]


def test_a_search_that_goes_on_is_not_told_that_it_has_room_for_few_trials(tmp_path: Path) -> None:
    """Seven were done, and it was told to take a larger budget as there was room for two."""
    spec = make_spec(tmp_path, budget="{time: 25s}")
    observer, again = Recorder(), Recorder()
    observer.stop_at = ("trial_finished", 6)
    assert tuned(spec, tmp_path / "s", None, observer).interrupted
    tuned(spec, tmp_path / "s", None, again)
    assert "trial_finished" in again.names()
    assert not [what for what in again.told if "has room for about" in str(what)]


def test_a_time_budget_in_which_nothing_was_tried_is_no_result(tmp_path: Path) -> None:
    for _ in range(2):  # nor when it is repeated
        with pytest.raises(LsmtuneError, match=r"nothing was tried: .*--budget 20s or more"):
            tuned(make_spec(tmp_path, budget="{time: 5s}"), tmp_path / "s")
    assert [row.role for row in stored(tmp_path / "s")] == [Role.BASELINE]
    assert tuned(make_spec(tmp_path, budget="{time: 20s}"), tmp_path / "s").trials > 0


def test_a_trial_for_which_no_time_is_left_is_put_back_and_not_a_failure(tmp_path: Path) -> None:
    """Neither is the time of the proof spent on it."""

    class Slow(FakeRunner):
        def run(self, request: RunRequest, *more: Any) -> Measurement:
            self.fake_s = 4.0 if request.trial == 3 else 1.0
            return super().run(request, *more)

    spec = make_spec(tmp_path, budget="{time: 22s}")
    observer = Recorder()
    result = tuned(spec, tmp_path / "s", Slow(), observer)
    assert result.counts == {"ok": 3}
    assert result.verdict is not None
    assert result.verdict.pairs >= 6
    assert result.spent_s <= 22.0
    assert not result.interrupted
    again = tuned(make_spec(tmp_path, budget="{trials: 4}"), tmp_path / "s")
    assert again.counts == {"ok": 4}


def test_a_resumed_study_does_not_get_its_time_again(tmp_path: Path) -> None:
    spec = make_spec(tmp_path, budget="{time: 40s}")
    observer = Recorder()
    observer.stop_at = ("run_started", Role.TRIAL, 20)
    assert tuned(spec, tmp_path / "s", observer=observer).interrupted
    result = tuned(spec, tmp_path / "s")
    assert result.spent_s <= 40.0
    assert result.counts == {"ok": 24}


@pytest.mark.parametrize(
    "moment",
    [
        ("study_started",),
        ("run_started", Role.BASELINE),
        ("run_finished", Role.BASELINE),
        ("run_started", Role.TRIAL, 0),
        ("run_started", Role.TRIAL, 5),
        ("run_finished", Role.TRIAL, 5),
        ("search_finished",),
        ("run_started", Role.PROOF_BASELINE, 0),
        ("run_started", Role.PROOF_CANDIDATE, 3),
        ("run_finished", Role.PROOF_CANDIDATE, None, 2),
    ],
)
def test_an_interrupted_study_goes_on_to_the_same_end(
    tmp_path: Path, moment: tuple[object, ...]
) -> None:
    spec = make_spec(tmp_path)
    observer = Recorder()
    observer.stop_at = moment
    first = tuned(spec, tmp_path / "s", observer=observer)
    assert first.interrupted
    assert first.verdict is None
    assert not (tmp_path / "s" / "result").exists()
    assert list((tmp_path / "s" / "runs").iterdir()) == []
    second = tuned(spec, tmp_path / "s")
    assert not second.interrupted
    assert second.verdict is not None
    assert second.counts == {"ok": 8}
    assert second.verdict.pairs == 6
    assert states(tmp_path / "s")[TrialState.RUNNING] == 0
    assert states(tmp_path / "s")[TrialState.COMPLETE] == 8


def test_a_trial_that_was_cut_off_is_run_again_with_its_values(tmp_path: Path) -> None:
    spec = make_spec(tmp_path)
    observer, runner = Recorder(), FakeRunner(hangs=lambda r: r.seed == seed)
    seed = derive_seed(1, Stream.TRIAL, 5)
    observer.stop_at = ("run_started", Role.TRIAL, 5)
    tuned(spec, tmp_path / "s", runner, observer)
    cut = runner.requests[-1].config.options
    again = FakeRunner()
    tuned(spec, tmp_path / "s", again)
    assert again.requests[0].config.options == cut
    assert again.requests[0].seed != seed


def test_a_finished_study_runs_nothing_again(tmp_path: Path) -> None:
    spec = make_spec(tmp_path)
    first = tuned(spec, tmp_path / "s")
    runner, observer = FakeRunner(), Recorder()
    assert tuned(spec, tmp_path / "s", runner, observer) == first
    assert runner.requests == []
    assert observer.told[0] == ("study_started", "small", 8)
    assert observer.told[1][:2] == ("best_changed", first.best_trial)


def test_more_trials_continue_a_finished_study(tmp_path: Path) -> None:
    tuned(make_spec(tmp_path), tmp_path / "s")
    runner = FakeRunner()
    result = tuned(make_spec(tmp_path, budget="{trials: 12}"), tmp_path / "s", runner)
    assert result.counts == {"ok": 12}
    sizes = [request.config.options for request in runner.requests[:4]]
    earlier = [row.config.options for row in stored(tmp_path / "s") if row.role is Role.TRIAL][:8]
    assert any(options not in earlier for options in sizes)


def test_a_verdict_does_not_outlive_the_search_it_ended(tmp_path: Path) -> None:
    tuned(make_spec(tmp_path), tmp_path / "s")
    observer = Recorder()
    observer.stop_at = ("run_finished", Role.TRIAL, 9)
    tuned(make_spec(tmp_path, budget="{trials: 12}"), tmp_path / "s", observer=observer)
    with StudyFolder.open(tmp_path / "s") as folder:
        assert folder.measurements.verdict() is None


def test_the_same_seed_gives_the_same_search(tmp_path: Path) -> None:
    configs = []
    for name in ("a", "b"):
        runner = FakeRunner()
        tuned(make_spec(tmp_path, sampler="tpe"), tmp_path / name, runner)
        configs.append([request.config.options for request in runner.requests])
    assert configs[0] == configs[1]


def test_another_version_of_the_engine_is_refused_on_resume(tmp_path: Path) -> None:
    spec = make_spec(tmp_path)
    observer = Recorder()
    observer.stop_at = ("run_finished", Role.TRIAL, 2)
    tuned(spec, tmp_path / "s", observer=observer)
    other = FakeRunner(engine=replace(ENGINE, version="9.9"))
    with pytest.raises(InputError, match=r"memory 9\.9.*with which this study began"):
        tuned(spec, tmp_path / "s", other)
    assert tuned(spec, tmp_path / "s").counts == {"ok": 8}


def test_a_run_is_stored_after_its_folder_is_gone_since_it_may_have_filled_the_disk(
    tmp_path: Path,
) -> None:
    left: list[list[Path]] = []

    class Looking(Recorder):
        def run_finished(self, stored: StoredMeasurement) -> None:
            super().run_finished(stored)
            left.append(list((tmp_path / "s" / "runs").iterdir()))

    tuned(make_spec(tmp_path, budget="{trials: 1}"), tmp_path / "s", observer=Looking())
    assert left == [[]] * len(left)
    assert left


def test_a_run_whose_folder_cannot_be_removed_is_stored_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(directory: Path, *_: object) -> None:
        raise LsmtuneError(f"{directory}: cannot be deleted")

    with monkeypatch.context() as stubborn:
        stubborn.setattr(scratch, "remove_owned", refuse)
        with pytest.raises(LsmtuneError, match="cannot be deleted"):
            tuned(make_spec(tmp_path), tmp_path / "s")
    assert [row.role for row in stored(tmp_path / "s")] == [Role.BASELINE]


def test_auto_begins_with_the_textbook_and_each_start_holds_the_constraints(tmp_path: Path) -> None:
    """A search that begins at random spends an hour on what a page of the wiki says."""
    more = "constraints: [write_buffer_size <= 12MiB]"
    spec = make_spec(tmp_path, sampler="auto", budget="{trials: 12}", more=more)
    tuned(spec, tmp_path / "s")
    with StudyFolder.open(tmp_path / "s") as folder:
        trials = folder.trials()
    starts = [trial for trial in trials if "start" in trial.user_attrs]
    assert [trial.number for trial in starts] == list(range(len(starts)))
    # The baseline, and something of presets and cost models; then the sampler's own.
    assert 2 <= len(starts) <= 5
    spec = replace(spec, engine_version="1.0")
    wanted = allowed_points(spec, Feasibility(spec), Recorder())
    assert len(wanted) == len(starts)
    assert all(point["write_buffer_size"] <= 12 << 20 for point in wanted)


def test_what_auto_begins_with_is_an_optimum_and_a_preset_by_turns() -> None:
    """A fault: a quickstart of three trials tried two presets that were worse than its baseline."""
    spec = load_spec(ROOT / "examples" / "quickstart" / "study.yaml")
    spec = replace(spec, engine_version="10.10.1")
    problem = problem_of(spec)
    assert problem is not None
    presets = preset_starts(problem, make_unit_space(spec.space)).values()
    points = textbook_points(spec, Feasibility(spec))
    assert [point in presets for point in points[:4]] == [False, True, False, True]


@pytest.mark.parametrize(
    ("guards", "most"),
    [
        (None, 1.5),
        ("[write_amplification < 2 * baseline]", 2.0),
        ("[baseline.write_amplification * 3 >= write_amplification]", 3.0),
        ("[write_amplification >= 0.1 * baseline, write_amplification < 2 * baseline]", 2.0),
        ("[write_amplification + stall_s <= 2 * baseline.write_amplification]", None),
        ("[write_amplification <= baseline + 3]", None),
        ("[write_amplification / (baseline - 1) <= 3]", None),
        ("[]", None),
    ],
)
def test_what_a_guard_leaves_of_the_write_amplification(
    tmp_path: Path, guards: str | None, most: float | None
) -> None:
    spec = make_spec(tmp_path, more="" if guards is None else f"guards: {guards}")
    problem = problem_of(replace(spec, engine_version="10.10.1"))
    assert problem is not None
    found = None if problem.guard is None else problem.guard.most
    assert found == most


def test_a_search_ends_when_its_model_sees_nothing_to_gain_and_says_so(tmp_path: Path) -> None:
    """Thirteen sizes of a buffer and fifteen triggers that do nothing: soon there is no doubt."""
    spec = make_spec(tmp_path, budget="{trials: 60}", sampler="auto")
    spec = replace(spec, proof=replace(spec.proof, smallest_effect=0.05))
    observer = Recorder()
    result = tuned(spec, tmp_path / "study", FakeRunner(noise=0.002), observer)
    (said,) = [str(what[1]) for what in observer.told if what[0] == "search_finished"]
    assert "promises a gain of" in said
    assert "5 % is the smallest that matters" in said
    assert 10 < result.trials < 60
    assert result.search_ended == said
    assert result.best is not None
    assert result.best.options["write_buffer_size"] in [7 << 20, 8 << 20, 9 << 20]
    again = Recorder()
    tuned(spec, tmp_path / "study", FakeRunner(noise=0.002), again)
    assert [what[1] for what in again.told if what[0] == "search_finished"] == [said]
    # While it goes on nothing has ended it.
    more = replace(spec, proof=replace(spec.proof, smallest_effect=None))
    observer = Recorder()
    observer.stop_at = ("trial_finished", result.trials)
    assert tuned(more, tmp_path / "study", FakeRunner(noise=0.002), observer).search_ended == ""


def test_what_an_interrupted_search_found_is_proved_when_asked(tmp_path: Path) -> None:
    spec, observer = make_spec(tmp_path, budget="{trials: 8}"), Recorder()
    observer.stop_at = ("trial_finished", 3)
    assert tuned(spec, tmp_path / "study", FakeRunner(), observer).interrupted
    enough = replace(spec, budget=replace(spec.budget, trials=1))
    result = tuned(enough, tmp_path / "study", FakeRunner())
    assert (result.trials, result.interrupted) == (4, False)
    assert result.search_ended == "4 trials done"
    assert result.verdict is not None
    assert result.verdict.pairs >= 6
