"""The loop of a study: baseline, then ask, run, store, tell; it ends in a proof."""

from __future__ import annotations

import math
import threading
import time

from lsmtune.proof.measurer import Clock, Measurer, Place
from lsmtune.proof.paired import ProofPlan, prove
from lsmtune.proof.seeds import Stream, derive_seed
from lsmtune.proof.verdict import not_proven
from lsmtune.records.config import Config
from lsmtune.records.engine import EngineIdentity
from lsmtune.records.verdict import Verdict
from lsmtune.runners.base import Runner
from lsmtune.samplers import make_sampler
from lsmtune.spec import Spec
from lsmtune.storage.folder import StudyFolder
from lsmtune.storage.measurements import Role, StoredMeasurement
from lsmtune.study.budget import SearchBudget
from lsmtune.study.observer import TuneObserver
from lsmtune.study.progress import BestTrial, Progress
from lsmtune.study.refusal import unknown_option, without_baseline
from lsmtune.study.result import TuneResult, result_document
from lsmtune.study.start import (
    baseline_config,
    candidate_config,
    is_baseline,
    starting_values,
)
from lsmtune.study.trials import Trials


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
    baseline, does not have an option of the space, or is not the one with which the study began.
    """
    result = _Tuning(spec, folder, runner, engine, observer, stop, clock).run()
    if not result.interrupted:
        folder.measurements.set_verdict(result.verdict)
        folder.write_result("result.json", result_document(result))
    observer.finished(result)
    return result


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
        self._resumed = 0
        self._budget = SearchBudget(spec.budget.trials, spec.budget.time_s, spec.proof.pairs)
        self._progress = Progress(spec.objective)
        self._trials = Trials(folder, spec.space, spec.objective)
        self._measurer = Measurer(
            folder, runner, engine, spec.workload, spec.limits, observer, stop, clock
        )

    def run(self) -> TuneResult:
        self._resume()
        if not self._measure_baseline():
            return self._result(None, interrupted=True)
        if self._progress.best is not None:
            self._tell_best(self._progress.best)
        reason = self._search()
        if reason is None:
            return self._result(None, interrupted=True)
        self._observer.search_finished(reason)
        verdict = self._prove()
        return self._result(verdict, interrupted=verdict is None)

    def _resume(self) -> None:
        """Bring folder, Optuna study and memory to the same state, whatever a kill left."""
        self._folder.sweep_leftovers()
        measured = {
            stored.trial: stored
            for stored in self._folder.measurements.of(Role.TRIAL)
            if stored.trial is not None
        }
        self._trials.recover(measured)
        for stored in measured.values():
            self._progress.add_trial(stored)
        self._resumed = len(measured)
        asked = self._trials.asked()
        first = starting_values(self._spec)
        if asked == 0 and first is not None:
            self._trials.enqueue(first)
        # A sampler has no memory of the draws of an earlier session: with the same seed it would
        # draw the same again. Samplers take seeds of 32 bits, the upper ones of our 53.
        seed = derive_seed(self._spec.seed, Stream.SAMPLER, asked) >> 21
        sampler = self._spec.sampler
        self._trials.use_sampler(make_sampler(sampler.name, seed, sampler.startup_trials))
        self._observer.study_started(self._spec, len(measured))

    def _measure_baseline(self) -> bool:
        """The value that trials are shown against; False when interrupted."""
        runs = self._folder.measurements.of(Role.BASELINE)
        for stored in runs:
            self._use_baseline(stored)
        if self._baseline_value is not None:
            return True
        seed = derive_seed(self._spec.seed, Stream.BASELINE, len(runs))
        stored_now = self._measure(self._baseline, seed, Place(Role.BASELINE, index=len(runs)))
        if stored_now is None:
            return False
        self._use_baseline(stored_now)
        if self._baseline_value is None:
            raise without_baseline(self._spec, stored_now.measurement)
        warning = self._budget.too_short(self._progress.run_walls_s)
        if warning:
            self._observer.warning(warning)
        return True

    def _use_baseline(self, stored: StoredMeasurement) -> None:
        value = self._spec.objective.value(stored.measurement)
        if value is not None:
            self._baseline_value = value
            self._progress.add_baseline(stored)

    def _search(self) -> str | None:
        """Run trials until the budget ends; returns why, or None when interrupted."""
        while True:
            reason = self._budget.end(
                self._progress.trials(), self._measurer.spent_s(), self._progress.run_walls_s
            )
            if reason:
                return reason
            if self._stop.is_set() or not self._run_trial():
                return None

    def _run_trial(self) -> bool:
        if self._progress.trials() == self._resumed:
            # A verdict of an earlier session says nothing about what is searched from here on.
            self._folder.measurements.set_verdict(None)
        asked = self._trials.ask()
        config = candidate_config(self._spec, asked.number, asked.values)
        seed = derive_seed(self._spec.seed, Stream.TRIAL, asked.number)
        place = Place(Role.TRIAL, index=self._progress.trials(), trial=asked.number)
        longest_s = self._budget.longest_run_s(self._measurer.spent_s(), self._progress.run_walls_s)
        stored = self._measure(config, seed, place, deadline_s=longest_s)
        if stored is None:
            self._trials.put_back(asked.number)
            return False
        self._trials.tell(asked.number, stored)
        mistyped = unknown_option(self._spec, stored.measurement)
        if mistyped is not None:
            raise mistyped
        if self._progress.add_trial(stored) and self._progress.best is not None:
            self._tell_best(self._progress.best)
        return True

    def _measure(
        self, config: Config, seed: int, place: Place, *, deadline_s: float = math.inf
    ) -> StoredMeasurement | None:
        if self._stop.is_set():
            return None
        return self._measurer.measure(config, seed, place, deadline_s=deadline_s)

    def _tell_best(self, best: BestTrial) -> None:
        ratio = best.value / self._baseline_value if self._baseline_value else None
        self._observer.best_changed(best.number, best.value, ratio)

    def _prove(self) -> Verdict | None:
        """The verdict on the best trial; None when interrupted."""
        spec, best = self._spec, self._progress.best
        why_not = self._nothing_to_prove()
        if best is None or why_not:
            return not_proven(spec.objective, spec.proof.confidence, why_not)
        deadline_s = None
        if spec.budget.time_s is not None:
            deadline_s = spec.budget.time_s - self._measurer.spent_s()
        verdict = prove(
            self._baseline,
            best.config,
            spec.objective,
            self._measurer,
            self._observer,
            study_seed=spec.seed,
            plan=ProofPlan(spec.proof.pairs, spec.proof.confidence, deadline_s),
        )
        # Interrupted pairs that already decided need no repetition.
        return None if self._stop.is_set() and verdict.pairs < spec.proof.pairs else verdict

    def _nothing_to_prove(self) -> str:
        best = self._progress.best
        if best is None:
            return "no trial gave a value"
        # A better single run of the baseline is no reason: only pairs decide.
        same = is_baseline(self._spec, best.config)
        return "the baseline itself was the best of the search" if same else ""

    def _result(self, verdict: Verdict | None, *, interrupted: bool) -> TuneResult:
        best = self._progress.best
        return TuneResult(
            baseline=self._baseline,
            baseline_value=self._baseline_value,
            best=best.config if best else None,
            best_trial=best.number if best else None,
            best_value=best.value if best else None,
            verdict=verdict,
            counts=dict(self._progress.counts),
            interrupted=interrupted,
            spent_s=self._folder.measurements.spent_s(),
        )
