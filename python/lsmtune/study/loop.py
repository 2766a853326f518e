"""The loop of a study: baseline, then ask, run, store, tell; it ends in a proof."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from lsmtune.errors import InputError
from lsmtune.proof.measurer import Clock, Measurer
from lsmtune.proof.paired import ProofPlan, prove, stored_sides
from lsmtune.proof.place import Place
from lsmtune.proof.seeds import Stream, derive_seed
from lsmtune.proof.verdict import not_proven
from lsmtune.pruners import make_pruner
from lsmtune.records.config import OptionValue
from lsmtune.records.engine import EngineIdentity
from lsmtune.records.measurement import Outcome
from lsmtune.records.verdict import Verdict, VerdictOutcome
from lsmtune.runners.base import Runner
from lsmtune.samplers import Searcher, SpaceExhaustedError
from lsmtune.spec import Spec, place_of
from lsmtune.storage.folder import StudyFolder
from lsmtune.storage.measurements import Role
from lsmtune.study.baseline import Baseline, stored_baseline
from lsmtune.study.budget import SearchBudget
from lsmtune.study.defaults import engine_defaults
from lsmtune.study.feasible import Feasibility
from lsmtune.study.observer import TuneObserver
from lsmtune.study.progress import BestTrial, Progress
from lsmtune.study.refusal import unknown_option, without_baseline, without_mean
from lsmtune.study.result import TuneResult, result_document
from lsmtune.study.start import (
    baseline_config,
    candidate_config,
    is_baseline,
    outside,
    starting_points,
)
from lsmtune.study.stored import stored_reports, trial_end, trial_runs
from lsmtune.study.trial_run import TrialPlan, TrialRunner
from lsmtune.study.trials import TrialEnd, Trials

_NO_PICK = "no trial met what pick.where asks of it"
_NO_PRODUCT = "no trial has values above 0 of every objective that the pick weighs"
CONSTRAINTS = "constraints"  # a field of the study file, and the source of the Searcher's errors
REFUSED = "refused"  # the stored fact: configurations refused before a run, by reason


def tune(
    spec: Spec,
    folder: StudyFolder,
    runner: Runner,
    engine: EngineIdentity,
    observer: TuneObserver,
    *,
    stop: threading.Event,
    clock: Clock = time.monotonic,
) -> TuneResult:
    """Search, prove, and write `result/result.json`; continues what the folder holds.

    Setting `stop` (from a signal handler, say) ends it within one message of the driver; the
    study is kept, and the next call goes on. `clock` gives seconds that never go back.

    Raises LsmtuneError when the baseline does not run, and InputError when the engine refuses the
    baseline, does not have an option of the space, is not the one with which the study began, or
    when the constraints leave no configuration.
    """
    result = _Tuning(spec, folder, runner, engine, observer, stop, clock).run()
    if not result.interrupted:
        folder.measurements.set_verdict(result.verdict)
        folder.write_result("result.json", result_document(result))
    observer.finished(result)
    return result


class _StoppedError(Exception):
    """The study is to stop, and a configuration was still being looked for."""


class _Tuning:
    def __init__(
        self,
        spec: Spec,
        folder: StudyFolder,
        runner: Runner,
        engine: EngineIdentity,
        observer: TuneObserver,
        stop: threading.Event,
        clock: Clock,
    ) -> None:
        self._spec = spec
        self._folder = folder
        self._observer = observer
        self._stop = stop
        self._baseline = baseline_config(spec)
        self._baseline_value: float | None = None
        self._baseline_values: tuple[float, ...] | None = None
        self._resumed = 0
        self._defaults = engine_defaults(spec, engine.version)
        self._feasibility = Feasibility(spec, self._defaults)
        self._refused: Counter[str] = Counter()
        self._budget = SearchBudget(spec.budget.trials, spec.budget.time_s, spec.proof.pairs)
        self._progress = Progress(spec.goal)
        self._trials = Trials(folder, spec.space, self._searcher())
        workloads = [weighted.workload for weighted in spec.workloads]
        self._measurer = Measurer(
            folder, runner, engine, workloads, spec.limits, observer, stop, clock
        )
        self._runner = TrialRunner(spec, self._measurer, self._trials)

    def _searcher(self) -> Searcher:
        spec = self._spec
        pruner = spec.pruner
        return Searcher(
            spec.space,
            spec.sampler.name,
            spec.sampler.settings,
            derive_seed(spec.seed, Stream.SAMPLER, 0),
            spec.directions,
            accepts=self._refusal,
            pruner=None
            if pruner is None
            else make_pruner(pruner.name, pruner.settings, spec.directions),
        )

    def _refusal(self, values: Mapping[str, OptionValue]) -> str:
        """Why a candidate may not be run; counted, as it costs no run that would tell of it."""
        if self._stop.is_set():  # where nearly all is refused, an ask can take minutes
            raise _StoppedError
        refusal = self._feasibility.refusal(values)
        self._refused.update([refusal] if refusal else [])
        return refusal

    def run(self) -> TuneResult:
        self._resume()
        if not self._measure_baseline():
            return self._result(None, interrupted=True)
        if self._progress.best is not None:
            self._tell_best(self._progress.best)
        try:
            reason = self._search()
        finally:
            self._note_refused()
        if reason is None:
            return self._result(None, interrupted=True)
        self._observer.search_finished(reason)
        verdict = self._prove()
        return self._result(verdict, interrupted=verdict is None)

    def _resume(self) -> None:
        """Bring folder, Searcher and memory to the same state, whatever a kill left."""
        self._folder.sweep_leftovers()
        spec, rows = self._spec, self._folder.measurements.all()
        runs = trial_runs(rows)
        ends = {number: trial_end(t, spec, self._feasibility) for number, t in runs.items()}
        reports = {n: stored_reports(t, spec.pruner, spec.goal) for n, t in runs.items()}
        self._folder.note_origin(spec.path)
        outcomes = self._trials.restore(ends, reports, self._start())
        for number, outcome in outcomes.items():
            # A trial that was pruned between two sizes has no run that says so.
            end = ends[number] or TrialEnd(Outcome(outcome))
            self._progress.add_trial(number, runs[number].config, end, runs[number].wall_s)
        self._resumed = self._progress.trials()
        self._observer.study_started(spec, self._resumed)
        for note in spec.notes:
            self._observer.warning(note)

    def _start(self) -> list[dict[str, OptionValue]]:
        """The points of the space to try first; what keeps one of `start` out is said."""
        for line in outside(self._spec, self._defaults):
            self._observer.warning(line)
        allowed = []
        for label, point in starting_points(self._spec, self._defaults):
            refusal = self._feasibility.refusal(point)
            if not refusal:
                allowed.append(point)
            else:
                self._observer.warning(f"{label} {refusal} and is not tried")
        return allowed

    def _measure_baseline(self) -> bool:
        """The values that trials are shown against; False when interrupted."""
        rows = self._folder.measurements.of(Role.BASELINE)
        stored = stored_baseline(rows, self._spec.goal, self._measurer.workloads)
        fresh = not stored.runs
        for workload in range(len(stored.runs), self._measurer.workloads):
            seed = derive_seed(self._spec.seed, Stream.BASELINE, len(rows))
            place = Place(Role.BASELINE, index=len(rows), workload=workload)
            run = None
            if not self._stop.is_set():
                run = self._measurer.measure(self._baseline, seed, place)
            if run is None:
                return False
            rows.append(run)
            stored = stored_baseline(rows, self._spec.goal, self._measurer.workloads)
            if len(stored.runs) <= workload:
                raise without_baseline(self._spec, run.measurement)
        if not fresh:
            self._observer.baseline_known(stored.runs)
        self._use_baseline(stored)
        warning = self._budget.too_short(self._progress.trial_walls_s) if fresh else ""
        if warning:
            self._observer.warning(warning)
        return True

    def _use_baseline(self, baseline: Baseline) -> None:
        runs = baseline.measurements
        self._baseline_values = self._spec.goal.values(runs)
        self._baseline_value = self._spec.goal.value(runs)
        if self._baseline_values is None:
            raise without_mean(self._spec, runs)
        self._progress.add_baseline(baseline.wall_s)
        options = self._baseline.options
        broken = [t for t, v in self._feasibility.violations(options, runs).items() if v > 0]
        refusal = self._feasibility.refusal_of(options)
        for what in [*([refusal] if refusal else []), *(f"breaks {text}" for text in broken)]:
            self._observer.warning(f"the baseline {what}; it is compared with all the same")

    def _search(self) -> str | None:
        """Run trials until the budget ends; returns why, or None when interrupted."""
        while True:
            reason = self._budget.end(
                self._progress.trials(), self._measurer.spent_s(), self._progress.trial_walls_s
            )
            if reason:
                return reason
            if self._stop.is_set():
                return None
            try:
                if not self._run_trial():
                    return None
            except SpaceExhaustedError as error:
                return str(error)
            except _StoppedError:
                return None
            except InputError as error:
                raise self._placed(error) from None

    def _placed(self, error: InputError) -> InputError:
        """`error`, at its place in the study file where it is about the constraints."""
        if error.source != CONSTRAINTS:
            return error
        place = place_of(self._spec, CONSTRAINTS)
        return InputError(place, CONSTRAINTS, why=error.why)

    def _run_trial(self) -> bool:
        if self._progress.trials() == self._resumed:
            # A verdict of an earlier session says nothing about what is searched from here on.
            self._folder.measurements.set_verdict(None)
        asked = self._trials.ask()
        config = candidate_config(self._spec, asked.number, asked.values)
        seed = derive_seed(self._spec.seed, Stream.TRIAL, asked.number)
        longest_s = self._budget.longest_run_s(
            self._measurer.spent_s(), self._progress.trial_walls_s
        )
        plan = TrialPlan(asked.number, self._progress.trials(), config, seed, longest_s)
        trial = self._runner.run(plan)
        if trial is None:
            self._trials.put_back(asked.number, asked.values)
            return False
        end = trial_end(trial, self._spec, self._feasibility) or TrialEnd(Outcome.PRUNED)
        self._trials.tell(asked.number, end)
        mistyped = unknown_option(self._spec, trial.all[-1].measurement)
        if mistyped is not None:
            raise mistyped
        best = self._progress.add_trial(asked.number, config, end, trial.wall_s)
        self._observer.trial_finished(asked.number, end, best=best)
        if best:
            self._tell_best(self._progress.best)
        return True

    def _note_refused(self) -> None:
        """Keep how many configurations cost no run, and why. A kill loses this count alone."""
        if self._refused:
            stored = Counter(self._folder.measurements.fact(REFUSED) or {})
            self._folder.measurements.set_fact(REFUSED, dict(stored + self._refused))
            self._refused.clear()

    def _tell_best(self, best: BestTrial | None) -> None:
        if best is not None:
            base = self._baseline_value
            # Of values that are not above zero a ratio says nothing.
            ratio = best.value / base if base is not None and min(base, best.value) > 0 else None
            self._observer.best_changed(best.number, best.value, ratio)

    def _prove(self) -> Verdict | None:
        """The verdict on the best trial; None when interrupted."""
        spec, best = self._spec, self._progress.best
        why_not = self._nothing_to_prove()
        if best is None or why_not:
            return not_proven(spec.goal, spec.proof.confidence, why_not)
        deadline_s = None
        if spec.budget.time_s is not None:
            deadline_s = spec.budget.time_s - self._measurer.spent_s()
        verdict = prove(
            self._baseline,
            best.config,
            spec.goal,
            self._measurer,
            self._observer,
            study_seed=spec.seed,
            plan=ProofPlan(spec.proof.pairs, spec.proof.confidence, deadline_s),
        )
        verdict = self._judged_by_constraints(verdict, best)
        # Interrupted pairs that already decided need no repetition.
        return None if self._stop.is_set() and verdict.pairs < spec.proof.pairs else verdict

    def _judged_by_constraints(self, verdict: Verdict, best: BestTrial) -> Verdict:
        """`verdict`, unless the candidate broke a constraint in most of its fresh runs.

        The search saw one run, which may have kept a limit by luck.
        """
        sides = stored_sides(self._folder.measurements, Role.PROOF_CANDIDATE, best.config)
        pairs = [[run.measurement for run in side] for side in sides.values()]
        whole = [runs for runs in pairs if self._spec.goal.values(runs) is not None]
        broken = Counter(
            text
            for runs in whole
            for text, by in self._feasibility.violations(best.config.options, runs).items()
            if by > 0
        )
        often = [
            f"{t} in {n} of {len(whole)} pairs" for t, n in broken.items() if 2 * n > len(whole)
        ]
        if not often or verdict.outcome is VerdictOutcome.WORSE:
            return verdict
        why = "; ".join([f"the candidate breaks {', '.join(often)}", *filter(None, [verdict.why])])
        return replace(verdict, outcome=VerdictOutcome.NOT_PROVEN, why=why)

    def _nothing_to_prove(self) -> str:
        best = self._progress.best
        if best is None:
            if self._progress.counts[Outcome.OK.value]:
                broken = ", ".join(text for text, _ in self._progress.broken.most_common(3))
                if broken:
                    return f"every trial broke a constraint ({broken})"
                return _NO_PICK if self._spec.pick_where else _NO_PRODUCT
            return "no trial gave a value"
        # A better single run of the baseline is no reason: only pairs decide.
        same = is_baseline(self._spec, best.config, self._defaults)
        return "the baseline itself was the best of the search" if same else ""

    def _result(self, verdict: Verdict | None, *, interrupted: bool) -> TuneResult:
        best = self._progress.best
        return TuneResult(
            baseline=self._baseline,
            baseline_value=self._baseline_value,
            baseline_values=self._labelled(self._baseline_values),
            best=best.config if best else None,
            best_trial=best.number if best else None,
            best_value=best.value if best else None,
            best_values=self._labelled(best.values if best else None),
            verdict=verdict,
            counts=dict(self._progress.counts),
            refused=dict(self._folder.measurements.fact(REFUSED) or {}),
            interrupted=interrupted,
            spent_s=self._folder.measurements.spent_s(),
        )

    def _labelled(self, values: tuple[float, ...] | None) -> dict[str, float]:
        """Values by the objectives' labels."""
        labels = [objective.label for objective in self._spec.goal.objectives]
        return {} if values is None else dict(zip(labels, values, strict=True))
