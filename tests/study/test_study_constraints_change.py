"""A study goes on with another file: every stored trial is judged by the constraints of today."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from fake_runner import MIB, FakeRunner
from optuna.trial import FrozenTrial
from size_parts import ONE_LENGTH, Buffering, mixed
from study_parts import Recorder, make_spec, tuned

from lsmtune.cli.tune_result import ResultFiles, write_result_files
from lsmtune.errors import InputError
from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.store import Role
from lsmtune.model.config import EngineIdentity, OptionValue
from lsmtune.report import study as study_report
from lsmtune.report.source import chosen, proof_pairs, read_study
from lsmtune.search.in_memory_study import CONSTRAINT_PREFIX
from lsmtune.search.sampler import PROMISE
from lsmtune.search.searcher import Proposal, Searcher
from lsmtune.study.build import parse_spec
from lsmtune.study.spec import Spec
from lsmtune.study.start import open_study

LARGE = "constraints: [write_buffer_size >= 12MiB]"
SMALL = "constraints: [write_buffer_size <= 4MiB]"


def session(tmp_path: Path, more: str, trials: int) -> Spec:
    return make_spec(tmp_path, budget=f"{{trials: {trials}}}", more=more)


def test_a_trial_that_breaks_a_new_constraint_on_options_is_not_the_best(tmp_path: Path) -> None:
    """It was run before the constraint was stated, and was proved and recommended all the same."""
    free = tuned(session(tmp_path, "", 12), tmp_path / "s")
    assert free.best is not None
    assert int(free.best.options["write_buffer_size"]) > 4 * MIB
    bound = tuned(session(tmp_path, SMALL, 14), tmp_path / "s")
    assert bound.best is not None
    assert int(bound.best.options["write_buffer_size"]) <= 4 * MIB
    with StudyFolder.open(tmp_path / "s") as folder:
        records = read_study(folder)
    free_best = records.trials[free.best_trial or 0]
    assert free_best.end.broken == ("write_buffer_size <= 4MiB",)
    assert not free_best.end.eligible
    again = tuned(session(tmp_path, "", 14), tmp_path / "s")
    assert again.best == free.best


def test_a_new_constraint_that_a_stored_trial_breaks_spares_those_after_it(tmp_path: Path) -> None:
    """The study could not go on, nor be reported: its first trial has nothing to divide by."""
    tuned(session(tmp_path, "", 3), tmp_path / "s")
    bound = "constraints: [write_buffer_size >= 3MiB, 1MiB / (write_buffer_size - 2MiB) <= 1]"
    result = tuned(session(tmp_path, bound, 5), tmp_path / "s")
    assert result.trials == 5
    with StudyFolder.open(tmp_path / "s") as folder:
        records = read_study(folder)
    assert records.trials[0].config.options["write_buffer_size"] == 2 * MIB
    assert records.trials[0].end.broken == ("write_buffer_size >= 3MiB",)


def test_the_report_counts_with_the_defaults_of_the_engine_that_ran(tmp_path: Path) -> None:
    """It took those of the newest one: of an older RocksDB no trial was to be recommended.

    The cache that nobody set has 8 MiB up to 8.1, and 32 MiB since.
    """
    bound = "constraints: [write_buffer_size + block_cache <= 24MiB]"
    result = tuned(session(tmp_path, bound, 3), tmp_path / "s")
    with StudyFolder.open(tmp_path / "s") as folder:
        records = read_study(folder)
    assert result.best is not None
    assert records.judgement.best == result.best_trial
    assert [trial.end.broken for trial in records.trials] == [()] * 3


def test_what_is_put_forward_is_what_the_verdict_is_about(tmp_path: Path) -> None:
    """Under a verdict on older pairs the report named the options of the trial proved since."""
    free = tuned(session(tmp_path, "", 12), tmp_path / "s")
    bound = tuned(session(tmp_path, SMALL, 14), tmp_path / "s")
    again = tuned(session(tmp_path, "", 14), tmp_path / "s")
    assert again.best == free.best != bound.best
    with StudyFolder.open(tmp_path / "s") as folder:
        records = read_study(folder)
    put_forward = chosen(records)
    assert put_forward is not None
    assert (put_forward.config, put_forward.trial) == (again.best, again.best_trial)
    assert records.verdict == again.verdict
    assert len(proof_pairs(records)) == 6


def test_what_was_put_back_and_breaks_a_new_constraint_is_not_tried_again(tmp_path: Path) -> None:
    """It was the first to run, and cost a trial; what breaks such a constraint is to cost none."""
    observer, runner = Recorder(), FakeRunner()
    observer.stop_at = ("run_started", Role.TRIAL, 2)
    assert tuned(session(tmp_path, "", 6), tmp_path / "s", runner, observer).interrupted
    cut_off = int(str(runner.requests[-1].config.options["write_buffer_size"]))
    again = FakeRunner()
    other = f"constraints: [write_buffer_size != {cut_off}]"
    assert tuned(session(tmp_path, other, 6), tmp_path / "s", again).trials == 6
    tried = [r.config.options["write_buffer_size"] for r in again.requests if r.trial is not None]
    assert cut_off not in tried


def test_when_every_trial_breaks_a_new_constraint_that_is_the_reason(tmp_path: Path) -> None:
    tuned(session(tmp_path, SMALL, 3), tmp_path / "s")
    none = tuned(session(tmp_path, LARGE, 3), tmp_path / "s")
    assert none.best is None
    assert none.verdict is not None
    assert "every trial broke a constraint (write_buffer_size >= 12MiB)" in none.verdict.why


def test_a_constraint_that_is_gone_steers_no_sampler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a trial broke is stored with it, and was believed for ever."""
    seen: list[FrozenTrial] = []
    restore = Searcher.restore

    def watched(searcher: Searcher, trials: Sequence[FrozenTrial]) -> None:
        seen[:] = trials
        restore(searcher, trials)

    monkeypatch.setattr(Searcher, "restore", watched)
    slow = "constraints: [sustained_throughput_ops_s <= 1]"
    tuned(session(tmp_path, slow, 3), tmp_path / "s")
    assert attributes(seen) == []
    tuned(session(tmp_path, slow, 4), tmp_path / "s")
    assert set(attributes(seen)) == {f"{CONSTRAINT_PREFIX}sustained_throughput_ops_s <= 1"}
    tuned(session(tmp_path, "", 5), tmp_path / "s")
    assert len(seen) == 4
    assert attributes(seen) == []


def attributes(trials: Sequence[FrozenTrial]) -> list[str]:
    names = [name for trial in trials for name in trial.system_attrs]
    return [name for name in names if name.startswith(CONSTRAINT_PREFIX)]


def test_a_study_does_not_go_on_with_smaller_runs_of_other_sizes(tmp_path: Path) -> None:
    """Runs of 100 keys counted as such of 500, and with fewer sizes it could not go on at all."""
    sizes = "pruner: {{name: median, rungs: {{num: [{}]}}}}".format
    tuned(session(tmp_path, sizes("10, 100, 1000"), 2), tmp_path / "s")
    with pytest.raises(InputError, match=r"changed since: pruner\.rungs\.num; allowed: what"):
        tuned(session(tmp_path, sizes("500, 1000"), 4), tmp_path / "s")
    assert tuned(session(tmp_path, sizes("10, 100, 1000"), 4), tmp_path / "s").trials == 4


def operations(runner: FakeRunner) -> set[int | None]:
    """Those of the runs of trials by themselves."""
    trials = [request for request in runner.requests if request.trial is not None]
    return {request.workload.phases[-1].operations for request in trials}


@pytest.mark.parametrize("begun_with", [ONE_LENGTH, "burst: true"])
def test_trials_are_as_long_as_was_decided_before_the_first(
    begun_with: str, tmp_path: Path
) -> None:
    """With a guard lifted they were up to four times as long, beside others that were not."""
    text, observer = mixed(tmp_path).text, Recorder()
    observer.stop_at = ("trial_finished", 1)
    begun, path = parse_spec(text + begun_with, tmp_path / "small.yaml"), tmp_path / "s"
    assert tuned(begun, path, Buffering(), observer).interrupted
    runner = Buffering()
    tuned(mixed(tmp_path), path, runner)
    assert operations(runner) == {6000}


def test_what_asks_for_runs_of_one_length_too_late_is_told_of(tmp_path: Path) -> None:
    """Half of the trials were as long as their memtables asked for, and half were not."""
    observer, again, path = Recorder(), Recorder(), tmp_path / "s"
    observer.stop_at = ("trial_finished", 1)
    assert tuned(mixed(tmp_path), path, Buffering(), observer).interrupted
    spec = parse_spec(mixed(tmp_path).text + ONE_LENGTH, tmp_path / "small.yaml")
    runner = Buffering()
    tuned(spec, path, runner, again)
    assert len(operations(runner)) > 3
    (told,) = (line for line in again.warnings if "runs up to 4 times as long" in line)
    assert "begin anew" in told
    assert not any("goes on" in line for line in observer.warnings)


def test_where_no_trial_may_be_deployed_no_file_of_an_earlier_session_offers_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The report listed it under the files to deploy, and every trial broke a constraint."""
    monkeypatch.setattr(study_report, "write_as", lambda folder, _form: (folder.path, ""))

    def session_of(more: str) -> ResultFiles:
        spec = session(tmp_path, more, 3)
        result = tuned(spec, tmp_path / "s")
        with open_study(tmp_path / "s", spec) as folder:
            return write_result_files(folder, spec, result, EngineIdentity("rocksdb", "10.2.1"))

    deployable = session_of(SMALL).deployable
    assert deployable is not None
    assert deployable.is_file()
    assert session_of(LARGE).deployable is None
    assert not deployable.exists()
    with StudyFolder.open(tmp_path / "s") as folder:
        assert read_study(folder).result_files == ()


ENDS = "the next tenth of the budget promises a gain of"


@pytest.mark.parametrize("changed", [{"sampler": "tpe"}, {"more": "guards: []"}, {"more": SMALL}])
def test_what_a_sampler_expected_of_another_search_does_not_end_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: dict[str, str]
) -> None:
    """Its last words were that nothing is left to gain: the new search ended before a trial."""

    def session_of(**named: str) -> tuple[int, str]:
        spec = make_spec(tmp_path, budget="{trials: 8}", **named)
        spec = replace(spec, proof=replace(spec.proof, smallest_effect=0.05))
        observer = Recorder()
        trials = tuned(spec, tmp_path / "s", FakeRunner(), observer).trials
        (ended,) = [str(what[1]) for what in observer.told if what[0] == "search_finished"]
        return trials, ended

    def ask(searcher: Searcher, queued: Mapping[str, OptionValue] | None = None) -> Proposal:
        proposal = asked(searcher, queued)
        proposal.trial.system_attrs = {**proposal.trial.system_attrs, PROMISE: 1e-6}
        return proposal

    asked = Searcher.ask
    with monkeypatch.context() as patched:
        patched.setattr(Searcher, "ask", ask)
        trials, ended = session_of()
    assert (trials, ended.startswith(ENDS)) == (3, True)
    assert session_of() == (3, ended)
    assert session_of(**changed) == (8, "8 trials done")
