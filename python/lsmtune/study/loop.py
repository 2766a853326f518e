"""The loop of a study: baseline, then ask, run, store, tell; it ends in a proof."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from lsmtune.driver.runner import Runner
from lsmtune.errors import InputError, InterruptedByUserError
from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.measurer import Measurer
from lsmtune.experiment.schedule import Arm, Slot, Stream, derive_seed
from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.machine.awake import Clock
from lsmtune.model.config import EngineIdentity, OptionValue
from lsmtune.model.measurement import Outcome
from lsmtune.proof.survival import Survived
from lsmtune.proof.verdict import not_proven
from lsmtune.search.sampler import SpaceExhaustedError
from lsmtune.study import size
from lsmtune.study.build import place_of
from lsmtune.study.feasible import unknown_option
from lsmtune.study.finalist import for_proof, nothing_to_prove, prove_finalist
from lsmtune.study.judging import JudgedTrial, Promotion
from lsmtune.study.live import Observers, begin_live
from lsmtune.study.observer import TuneObserver, TuneResult, new_changes, result_document
from lsmtune.study.promotion import believed_there, notes_on_sizes, promote
from lsmtune.study.resize import ResizedError, begin
from lsmtune.study.session import BUDGET, REFUSED, SEARCH_ENDED, Session
from lsmtune.study.spec import Spec
from lsmtune.study.start import candidate_config, points_by_hand
from lsmtune.study.stored import TrialRuns, round_of, trial_rounds
from lsmtune.study.trials import run_trial

CONSTRAINTS = "constraints"  # a field of the study file, and the source of the Searcher's errors
# The stored fact: the budget in time that ended the search. The proof may leave some of it.
_TIME_ENDED = "search_ended_by"
# Seeds for so many repeats of one trial: the study file allows 100 (study.spec), of which twice as
# many and one more can come, beside those that were cut off.
_REPEATS_RESERVED = 1000


def tune(
    spec: Spec,
    folder: StudyFolder,
    runner: Runner,
    engine: EngineIdentity,
    observer: TuneObserver,
    *,
    stop: threading.Event,
    clock: Clock = time.monotonic,
    startup_s: float = 0.0,
    make: Callable[..., Tuning] | None = None,
) -> TuneResult:
    """Search, prove, and write `result/result.json`; continues what the folder holds.

    Setting `stop` ends it within one message of the driver; the next call goes on. `clock` gives
    seconds that never go back, and `startup_s` is what the command took until now.
    `make` makes another kind of Tuning, one on several hosts for instance.

    Raises LsmtuneError when the baseline does not run or the time budget leaves no time for a
    trial, and InputError when the engine refuses the baseline, does not have an option of the
    space, is not that with which the study began, or when the constraints leave no configuration.
    """
    spec = replace(spec, engine_version=engine.version)
    live, result = begin_live(folder.path, clock, stop, spec.budget), None
    observer = Observers(observer, live)
    if line := begin(spec, folder):
        observer.warning(line)
    while result is None:
        sized = size.at_length(spec, folder)
        parts = (sized, folder, runner, engine, observer, live, clock, startup_s)
        tuning = (make or Tuning)(*parts)
        try:
            result = tuning.run()
        except ResizedError as resized:
            observer.warning(str(resized))
    if not result.interrupted:
        folder.measurements.set_verdict(result.verdict, result.best_trial)
        folder.write_result("result.json", result_document(result))
    observer.finished(result)
    return result


class Begun(NamedTuple):
    """What was begun: `run` performs it, and gives None where it was cut off.

    `end` takes what that gave, and is False where it counts for nothing.
    """

    run: Callable[[Measurer], Any]
    end: Callable[[Any], bool]


Promoting = Callable[[Measurer], Promotion | None]


class Tuning(Session):
    """Runs a Session, one run after the other on this machine.

    A kind of it that performs them elsewhere says where they run: by its own `_refuse_other_kind`,
    `_measure_baseline`, `_search`, `_promoted` and `_proved`. And it may go about all of it in its
    own way: `run` (what to leave behind), `_resume` (what it has to know of its rows), `_spent_s`,
    `_excuse` and `_budget` (whose time counts, and for how many trials at once) and `_use_baseline`
    (which one trials are shown against).
    """

    def run(self) -> TuneResult:
        """Search and prove, from what is stored on. Raises as `tune` does, and ResizedError."""
        self._resume()
        self._note_budget(self._spec.budget.time_s, self._spec.budget.trials)
        if not self._measure_baseline():
            return self._result(None, interrupted=True)
        self._announce_best()
        try:
            reason = self._search()
        finally:
            # How many configurations cost no run, and why. A kill loses this count alone.
            if self._refused:
                stored = Counter(self._folder.measurements.fact(REFUSED) or {})
                self._folder.measurements.set_fact(REFUSED, dict(stored + self._refused))
        if reason is None:
            return self._result(None, interrupted=True)
        self._refuse_short()
        store = self._folder.measurements
        if self._search_begun or store.fact(SEARCH_ENDED) is None:  # else why it did at first
            store.set_fact(SEARCH_ENDED, reason)
        self._observer.search_finished(reason)
        proved = self._prove()
        if proved is None:
            return self._result(None, interrupted=True)
        if exceeded := self._budget.exceeded(self._startup_s):
            self._observer.warning(exceeded)
        return self._result(proved.verdict, interrupted=False, survival=proved.survival)

    def _search(self) -> str | None:
        """Run trials until the budget ends; returns why, or None when interrupted."""
        if used_up := self._used_up():
            return used_up
        while True:
            self._attend()
            if reason := self._time_ends():
                return reason
            if self._stop.is_set():
                return None
            try:
                begun = self._next()
                if isinstance(begun, str):
                    return begun
                if not begun.end(begun.run(self._measurer)) and self._stop.is_set():
                    return None
            except SpaceExhaustedError as error:
                return str(error)
            except InterruptedByUserError:
                return None
            except InputError as error:
                raise self._placed(error) from None

    def _used_up(self) -> str:
        """Why the search does not go on: it had the same time before, and used it up; or empty."""
        time_s = self._spec.budget.time_s
        is_same = time_s is not None and self._folder.measurements.fact(_TIME_ENDED) == time_s
        return "the time of the search was used up in an earlier session" if is_same else ""

    def _time_ends(self) -> str:
        """Why no other run may begin, which later sessions keep to; empty when one may."""
        reason = self._budget.time_ends()
        if reason:
            self._folder.measurements.set_fact(_TIME_ENDED, self._budget.time_s)
        return reason

    def _placed(self, error: InputError) -> InputError:
        """What the Searcher refuses, with its place in the study file."""
        if error.source != CONSTRAINTS:
            return error
        return InputError(place_of(self._spec, CONSTRAINTS), CONSTRAINTS, why=error.why)

    def _attend(self) -> None:
        """Do what other programs ask for, and keep the time that the proof of the best takes."""
        asked = self._live.attend(self._excuse)
        self._note_budget(asked.time_s, asked.trials)
        self._trials.queue(points_by_hand(self._spec, self._feasibility, self._observer, asked.add))
        judgement, longer_s = self._observations.judgement, 0.0
        best, to_prove = judgement.best_trial, not nothing_to_prove(self._spec, judgement)
        if best is not None and to_prove:
            longer_s = (1.0 - 1.0 / self._measurer.length_of(best.config)) * best.began.run_s
        budget = replace(self._whole_budget, time_s=asked.time_s, trials=asked.trials)
        self._whole_budget = replace(budget, to_prove=to_prove, longer_s=longer_s)

    def _note_budget(self, *bounds: float | None) -> None:
        """For reports: a flag, or a live page, may ask for another than the study file's."""
        if self._folder.measurements.fact(BUDGET) != [*bounds]:
            self._folder.measurements.set_fact(BUDGET, bounds)

    def _excuse(self, seconds: float) -> None:
        """Time that the study waited for its user costs it nothing."""
        self._measurer.excuse(seconds)

    def _next(self) -> Begun | str:
        """What to run now, or why nothing is left. It follows from what is stored alone."""
        repeated = self._observations.judgement.next_repeat(self._spec.noise.repeats_max)
        if repeated is not None:
            return self._new_repeat(repeated)
        if self._anchor_due():
            return self._new_anchor()
        return self._trials_end(len(self._observations.trials)) or self._new_trial()[1]

    def _anchor_due(self, host: str = "") -> bool:
        """Whether the baseline is to be run once more, and there is time for it."""
        next_s = self._baseline_wall_s
        due = self._observations.anchor_due(self._spec.noise.anchor_every, next_s, host)
        return due and self._budget.holds(next_s)

    def _trials_end(self, trials: int) -> str:
        """Why there is no new trial after so many, in one line; empty where there is one."""
        effect = self._spec.proof.smallest_effect
        return self._budget.trials_end(trials, self._trials.promise(), effect)

    def _new_anchor(self) -> Begun:
        """The baseline once more, to see whether the machine is still the same."""
        self._begin_search()
        number = self._anchors
        self._anchors += 1
        seed = derive_seed(self._spec.seed, Stream.ANCHOR, number)
        slot = Slot(Role.ANCHOR, number, repeat=number)
        return Begun(self._under_each_workload(self._baseline, seed, slot), self._end_anchor)

    def _end_anchor(self, runs: Sequence[StoredMeasurement] | None) -> bool:
        if runs is None:
            return False
        self._remember_baseline()
        ended = runs[-1].measurement.outcome
        if ended is not Outcome.OK:
            self._observer.warning(f"anchor {runs[-1].repeat}, a baseline run, ended {ended}")
        judgement, goal = self._observations.judgement, self._spec.goal
        for line in new_changes(judgement, goal, self._known_changes):
            self._observer.warning(line)
        self._announce_best()
        return True

    def _new_repeat(self, number: int) -> Begun:
        """A trial once more; its repeats are numbered from 1."""
        self._begin_search()
        self._repeats[number] += 1
        repeat = self._repeats[number]
        seed = derive_seed(self._spec.seed, Stream.REPEAT, number * _REPEATS_RESERVED + repeat)
        slot = Slot(Role.TRIAL, number, trial=number, repeat=repeat)
        arm = Arm(self._engine, self._observations.trials[number].config)
        run = self._under_each_workload(arm, seed, slot)
        return Begun(run, partial(self._end_repeat, number))

    def _end_repeat(self, number: int, runs: Sequence[StoredMeasurement] | None) -> bool:
        repeated = None if runs is None else round_of(runs, self._spec, self._feasibility)
        if repeated is None:
            return False
        self._observations.add_round(number, repeated)
        if repeated.outcome is not Outcome.OK:
            self._observer.warning(
                f"trial {number} ended {repeated.outcome} when it was run again, and counts as such"
            )
        self._announce_best()
        return True

    def _begin_search(self) -> None:
        """Before the first run of this session's search."""
        if not self._search_begun:
            # A verdict of an earlier session says nothing about what is searched from here on.
            self._folder.measurements.set_verdict(None)
            self._folder.measurements.set_fact(SEARCH_ENDED, None)
            self._observations.search_goes_on()
            self._search_begun = True
            few = self._budget.few_trials()
            if few and not self._observations.trials:
                self._observer.warning(few)

    def _under_each_workload(self, arm: Arm, seed: int, slot: Slot) -> Callable[[Measurer], Any]:
        """A run of `arm` under each workload; what is stored of one cut off counts for nothing."""
        deadline_s, until_s = self._run_ends()
        return lambda measurer: measurer.measure_workloads(
            arm, seed, slot, deadline_s=deadline_s, until_s=until_s
        )

    def _run_ends(self) -> tuple[float, float]:
        """After how many seconds a run has failed, and when the search's time is used up."""
        budget = self._budget
        return budget.longest_run_s, self._measurer.clock() + budget.search_s

    def _new_trial(
        self, host: str = "", call: Callable[[Callable[[], bool]], bool] = lambda report: report()
    ) -> tuple[int, Begun]:
        """A new trial on `host`, and its number.

        `call` has a function called in the thread of the study, and returns what that returns.
        """
        self._begin_search()
        self._searcher.rejudge(self._observations.for_searcher())
        number, values = self._trials.ask()
        # As if the machine were as fast as it was in the beginning.
        scale = self._observations.judgement.drift.factor(host=host)

        def report(step: int, value: float, first: bool) -> bool:
            return call(lambda: self._trials.report(number, step, value * scale, first=first))

        arm = Arm(self._engine, candidate_config(self._spec, number, values))
        index, (deadline_s, until_s) = len(self._observations.trials), self._run_ends()

        def run(measurer: Measurer) -> TrialRuns | None:
            return run_trial(self._spec, measurer, arm, report, number, index, deadline_s, until_s)

        return number, Begun(run, partial(self._end_trial, number, values))

    def _end_trial(
        self, number: int, values: Mapping[str, OptionValue], trial: TrialRuns | None
    ) -> bool:
        """What a trial came to; one that was cut off (None) is put back, and then it is False."""
        if trial is None:
            self._trials.put_back(number, values)
            return False
        # A trial that was pruned between two sizes has no run that says so.
        rounds = trial_rounds(trial, self._spec, self._feasibility, pruned=True)
        if rounds is None:
            raise ValueError(f"trial {number} ended without a run")
        self._observations.add_trial(rounds)
        judgement = self._observations.judgement
        end = judgement.trials[number].end
        self._trials.tell(number, end)
        mistyped = unknown_option(self._spec, trial.all[-1].measurement)
        if mistyped is not None:
            raise mistyped
        self._observer.trial_finished(number, end, best=judgement.best == number)
        self._announce_best()
        return True

    def _prove(self) -> Survived | None:
        """The verdict on the best trial, and what it survives; None when interrupted."""
        spec, promotion = self._spec, None
        if self._size.grows:
            promotion = self._promotion()
            if promotion is None:
                return None
            self._observations.promote(promotion)
            self._announce_best()
        judgement = self._observations.judgement
        best, why_not = judgement.best_trial, nothing_to_prove(spec, judgement)
        if best is None or why_not:
            return Survived(not_proven(spec.goal, spec.proof.confidence, why_not))
        left_s = self._budget.proof_s
        measurer = self._at_proof(self._measurer, best.number, left_s)
        notes = notes_on_sizes(
            self._size, judgement, promotion, self._baseline_value, proved_scale=measurer.scale
        )
        return self._proved(best, measurer, notes, left_s)

    def _promotion(self) -> Promotion | None:
        """What the best trials come to at the size of the proof; None when interrupted."""
        searched = self._observations.judgement
        self._searcher.rejudge(self._observations.for_searcher())
        believed = believed_there(searched.believed(self._searcher.expected()), self._size)
        best_first = [searched.trials[number] for number in searched.ranked(believed)]
        until_s = self._measurer.clock() + self._budget.proof_s

        def begin(host: str) -> Promoting:
            # By the rows of now: a host that was lost meanwhile has left a round of its own.
            rows, now_s = self._folder.measurements.all(), self._measurer.clock()
            return lambda measurer: promote(
                self._spec,
                self._baseline,
                best_first,
                self._at_proof(measurer),
                rows=rows,
                believed=believed,
                host=host,
                run_s=self._size.proof_factor * self._baseline_wall_s,
                deadline_s=until_s - now_s,
            )

        return self._promoted(begin)

    def _at_proof(
        self, measurer: Measurer, finalist: int | None = None, left_s: float = math.inf
    ) -> Measurer:
        """`measurer` with runs of the size of the proof: of that of trial `finalist`, once known.

        Who first asks for that of a finalist decides on it, by the `left_s` seconds that are left.
        """
        scale = self._size.proof_scale
        measurer = measurer.at(*size.at_scale(self._spec, scale), scale)
        if finalist is None:
            return measurer
        return for_proof(self._spec, measurer, self._size, finalist, left_s)

    def _promoted(self, begin: Callable[[str], Promoting]) -> Promotion | None:
        """What the work comes to that begins on a host, by its name, and is given what measures."""
        self._measurer = self._at_proof(self._measurer)
        return begin("")(self._measurer)

    def _proved(
        self, best: JudgedTrial, measurer: Measurer, notes: Sequence[str], left_s: float
    ) -> Survived | None:
        """The verdict on the trial `best`, by runs of the size of those of `measurer`."""
        self._measurer = measurer
        return prove_finalist(
            self._spec,
            self._baseline,
            Arm(self._engine, best.config),
            measurer,
            self._feasibility,
            notes=notes,
            deadline_s=left_s,
        )
