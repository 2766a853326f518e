"""The loop of a study: baseline, then ask, run, store, tell; it ends in a proof."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from lsmtune.driver.runner import Runner
from lsmtune.errors import InputError, InterruptedByUserError, LsmtuneError
from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.measurer import Measurer, loaded_databases
from lsmtune.experiment.schedule import Arm
from lsmtune.experiment.store import OF_BASELINE, Role, StoredMeasurement
from lsmtune.machine.files import Clock
from lsmtune.model.config import EngineIdentity, OptionValue
from lsmtune.model.measurement import Outcome
from lsmtune.model.verdict import Verdict
from lsmtune.proof.survival import UNTESTED, Survival, Survived
from lsmtune.proof.verdict import not_proven
from lsmtune.search.sampler import SpaceExhaustedError
from lsmtune.study import size
from lsmtune.study.build import place_of
from lsmtune.study.feasible import (
    Feasibility,
    engine_defaults,
    unknown_option,
    without_mean,
)
from lsmtune.study.finalist import (
    budget_now,
    nothing_to_prove,
    prove_finalist,
    size_budget,
    survival_s,
)
from lsmtune.study.judging import JudgedTrial, Judgement, Observations
from lsmtune.study.live import LiveFile, Observers, begin_live
from lsmtune.study.observer import (
    ChangeReporter,
    Progress,
    TuneObserver,
    TuneResult,
    result_document,
)
from lsmtune.study.promotion import Promotion, notes_on_sizes, promote, promotion_of
from lsmtune.study.spec import Spec
from lsmtune.study.start import (
    allowed_points,
    baseline_config,
    calibrate_study,
    candidate_config,
    make_searcher,
    measure_baseline,
    points_by_hand,
    stored_baseline,
)
from lsmtune.study.stored import TrialRuns, round_of, trial_rounds, trial_runs
from lsmtune.study.trials import Rounds, Trials, run_trial

CONSTRAINTS = "constraints"  # a field of the study file, and the source of the Searcher's errors
REFUSED = "refused"  # the stored fact: configurations refused before a run, by reason
# The stored fact: the budget in time that ended the search. The proof may leave some of it.
_TIME_ENDED = "search_ended_by"
FLEET_HOSTS = "fleet_hosts"  # the stored fact: the hosts of a fleet, by name


def tune(
    spec: Spec,
    folder: StudyFolder,
    runner: Runner,
    engine: EngineIdentity,
    observer: TuneObserver,
    *,
    stop: threading.Event,
    clock: Clock = time.monotonic,
    begun_s: float | None = None,
    make: Callable[..., Tuning] | None = None,
) -> TuneResult:
    """Search, prove, and write `result/result.json`; continues what the folder holds.

    Setting `stop` (from a signal handler, say) ends it within one message of the driver; the
    study is kept, and the next call goes on. `clock` gives seconds that never go back, and
    `begun_s` what it showed when the command began, None for now. `make` makes another kind of
    Tuning, one on several hosts for instance.

    Raises LsmtuneError when the baseline does not run or the time budget leaves no time for a
    trial, and InputError when the engine refuses the baseline, does not have an option of the
    space, is not that with which the study began, or when the constraints leave no configuration.
    """
    startup_s = 0.0 if begun_s is None else clock() - begun_s
    budget, result = spec.budget, None
    live = begin_live(folder.path, clock, stop, time_s=budget.time_s, trials=budget.trials)
    observer = Observers(observer, live)
    size.begin(spec, folder)
    while result is None:
        sized = size.at_length(spec, folder)
        parts = (sized, folder, runner, engine, observer, live, clock, startup_s)
        tuning = (make or Tuning)(*parts)
        try:
            result = tuning.run()
        except size.ResizedError as resized:
            observer.warning(str(resized))
    if not result.interrupted:
        folder.measurements.set_verdict(result.verdict)
        folder.write_result("result.json", result_document(result))
    observer.finished(result)
    return result


_Step = Callable[[], bool]  # something to run; False when it was interrupted


class Tuning:
    """One session of a study with runs of one size, one after the other on this machine.

    A kind of it that performs them elsewhere has its own `_refuse_other_kind`, `_measure_baseline`,
    `_search`, `_promoted` and `_proved`: the others say what is run, these say where.
    """

    def __init__(
        self,
        spec: Spec,
        folder: StudyFolder,
        runner: Runner,
        engine: EngineIdentity,
        observer: TuneObserver,
        live: LiveFile,
        clock: Clock,
        startup_s: float,
    ) -> None:
        self._spec = spec
        self._folder = folder
        self._observer = observer
        self._live, self._stop = live, live.stop
        self._startup_s = startup_s
        self._engine = engine
        self._baseline = Arm(engine, baseline_config(spec))
        self._baseline_value: float | None = None
        self._baseline_values: tuple[float, ...] | None = None
        self._defaults = engine_defaults(spec, engine.version)
        self._feasibility = Feasibility(spec, self._defaults)
        self._size = size.stored_size(folder)
        self._refused: Counter[str] = Counter()
        # The report at the end loads as much as the start of the program did, and then ends it.
        self._other_s = 2 * startup_s + survival_s(spec, runner)
        self._budget = size_budget(spec, self._size, self._other_s)
        self._observations = Observations(spec.goal)
        self._baseline_wall_s: float | None = None
        self._known_progress: tuple[Judgement, Progress] | None = None
        self._announced_best: tuple[int, int] | None = None
        searcher = make_searcher(spec, self._defaults, self._refusal)
        self._trials = Trials(folder, spec.space, searcher)
        databases = None
        if spec.databases.reuse:
            databases = loaded_databases(folder.path, runner, spec.databases.size_bytes, observer)
        workloads, limits = size.at_scale(spec, self._size.scale)
        self._measurer = Measurer(
            *(folder, runner, workloads, limits, observer, live.stop, clock, databases),
            scale=self._size.scale,
        )
        self._measurer.refuse_other_build(engine)
        self._refuse_other_kind()
        self._rounds = Rounds(spec, self._measurer)
        self._changes = ChangeReporter(spec.goal, observer)
        self._anchors = 0
        self._search_begun = False

    def _refuse_other_kind(self) -> None:
        """Raises InputError where the folder's runs were made by another kind of Tuning."""
        if self._folder.measurements.fact(FLEET_HOSTS) is not None:
            raise InputError(
                str(self._folder.path),
                why="was begun on a fleet, and cannot go on on one machine",
                allowed="--fleet, or another folder (--dir DIR)",
            )

    def _refusal(self, values: Mapping[str, OptionValue]) -> str:
        """Why a candidate may not be run; counted, as it costs no run that would tell of it."""
        if self._stop.is_set():  # where nearly all is refused, an ask can take minutes
            raise InterruptedByUserError("stopped")
        refusal = self._feasibility.refusal(values)
        self._refused.update([refusal] if refusal else [])
        return refusal

    def run(self) -> TuneResult:
        """Search and prove, from what is stored on. Raises as `tune` does, and ResizedError."""
        self._resume()
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
        self._observer.search_finished(reason)
        proved = self._prove()
        if proved is None:
            return self._result(None, interrupted=True)
        if exceeded := self._budget.exceeded(self._startup_s + self._spent[0]):
            self._observer.warning(exceeded)
        return self._result(proved.verdict, interrupted=False, survival=proved.survival)

    @property
    def _progress(self) -> Progress:
        judgement = self._observations.judgement
        if self._known_progress is None or self._known_progress[0] is not judgement:
            self._known_progress = judgement, Progress(judgement, self._baseline_wall_s)
        return self._known_progress[1]

    @property
    def _spent(self) -> tuple[float, Sequence[float]]:
        """Seconds of the time budget that are gone, and what each run of a trial took."""
        return self._measurer.spent_s(), self._progress.trial_walls_s

    def _resume(self) -> None:
        """Bring folder, Searcher and memory to the same state, whatever a kill left."""
        self._folder.sweep_leftovers()
        spec, rows = self._spec, self._folder.measurements.all()
        self._feasibility = Feasibility(spec, self._defaults, rows)
        runs = trial_runs(rows)
        self._folder.note_origin(spec.path)
        self._remember_anchors()
        self._observations.promote(promotion_of(rows, spec, self._defaults).values)
        for trial in runs.values():
            self._remember(trial)
        judged = self._observations.judgement.trials
        ends = {number: judged[number].end if number in judged else None for number in runs}
        reports = {number: trial.reports for number, trial in judged.items()}
        ran = {number: trial.config.options for number, trial in runs.items()}
        first_points = allowed_points(spec, self._defaults, self._feasibility, self._observer)
        outcomes = self._trials.restore(ends, ran, reports, first_points)
        for number in outcomes.keys() - judged.keys():
            # A trial that was pruned between two sizes has no run that says so.
            self._remember(runs[number], pruned=True)
        self._changes.known(self._observations.judgement)
        self._observer.study_started(spec, self._progress.trials())
        for note in spec.notes:
            self._observer.warning(note)

    def _remember(self, trial: TrialRuns, *, pruned: bool = False) -> None:
        """What is stored of a trial, and what a kill left of a repeat."""
        rounds = trial_rounds(trial, self._spec, self._feasibility, pruned=pruned)
        if rounds is None:
            return
        self._observations.add_trial(rounds)
        last = trial.repeats.get(max(trial.repeats, default=0), [])
        if last and round_of(last, self._spec, self._feasibility) is None:
            self._rounds.keep_unfinished(last)

    def _remember_anchors(self) -> Sequence[StoredMeasurement]:
        """The whole series of anchors, and what a kill left of the last one; all its rows."""
        store = self._folder.measurements
        rows = [row for role in OF_BASELINE for row in store.of(role)]
        self._observations.set_anchors(rows)
        anchors = [row for row in rows if row.role is Role.ANCHOR]
        self._anchors = 1 + max((row.repeat for row in anchors), default=-1)
        last = [row for row in anchors if row.repeat == self._anchors - 1]
        well = all(row.measurement.outcome is Outcome.OK for row in last)
        if last and well and len(last) < len(self._spec.workloads):
            self._rounds.keep_unfinished(last)
            self._anchors -= 1
        return rows

    def _measure_baseline(self) -> bool:
        """The values that trials are shown against; False when interrupted."""
        rows = self._folder.measurements.of(Role.BASELINE)
        known = stored_baseline(rows, self._spec.goal, 1)

        def settle(baseline: Sequence[StoredMeasurement]) -> None:
            if known:
                self._observer.baseline_known(baseline)
            self._settle_size(baseline)

        searched = bool(self._observations.trials)
        if self._baseline_on(self._measurer, self._observer, settle, searched=searched) is None:
            return False
        self._feasibility = Feasibility(self._spec, self._defaults, self._remember_anchors())
        return not self._stop.is_set()

    def _baseline_on(
        self,
        measurer: Measurer,
        observer: TuneObserver,
        settle: Callable[[Sequence[StoredMeasurement]], None],
        *,
        searched: bool,
    ) -> Sequence[StoredMeasurement] | None:
        """The baseline by `measurer`, then against itself; None when interrupted.

        `settle` decides in between on the size of the runs. Where trials are known (`searched`),
        no calibration begins.
        """
        baseline = measure_baseline(self._spec, self._baseline, measurer)
        if baseline is None:
            return None
        settle(baseline)
        measurer.lengths = self._lengths()
        calibrate_study(
            *(self._spec, self._baseline, measurer, observer),
            round_s=sum(row.wall_s for row in baseline),
            searched=searched,
        )
        return baseline

    def _lengths(self) -> size.TrialLengths | None:
        return size.lengths(self._spec, self._size, self._defaults)

    def _settle_size(self, baseline: Sequence[StoredMeasurement]) -> None:
        """How long and how large the runs are, by those of the baseline. Raises ResizedError."""
        self._use_baseline(baseline)
        if self._observations.trials:
            short = size.smaller_than_could_be(self._spec, self._size)
        else:
            short = size.resize(self._spec, self._folder, baseline, self._spent[0])
        self._size = size.stored_size(self._folder)
        self._budget = size_budget(self._spec, self._size, self._other_s)
        if short:
            self._observer.warning(short)
        self._refuse_short()

    def _refuse_short(self) -> None:
        """Raises LsmtuneError where nothing was tried, and no time is left to try anything."""
        short = self._budget.too_short(*self._spent)
        if short and not self._observations.trials:
            raise LsmtuneError(f"{self._spec.path}: {short}")

    def _use_baseline(self, baseline: Sequence[StoredMeasurement]) -> None:
        runs = [row.measurement for row in baseline]
        self._baseline_values = self._spec.goal.values(runs)
        self._baseline_value = self._spec.goal.value(runs)
        if self._baseline_values is None:
            raise without_mean(self._spec, runs)
        self._baseline_wall_s = sum(row.wall_s for row in baseline)
        self._known_progress = None
        for what in self._feasibility.complaints(self._baseline.config.options, runs):
            self._observer.warning(f"the baseline {what}; it is compared with all the same")

    def _search(self) -> str | None:
        """Run trials until the budget ends; returns why, or None when interrupted."""
        time_s = self._spec.budget.time_s
        if time_s is not None and self._folder.measurements.fact(_TIME_ENDED) == time_s:
            return "the time of the search was used up in an earlier session"
        while True:
            self._attend()
            if reason := self._budget.time_ends(*self._spent):
                self._folder.measurements.set_fact(_TIME_ENDED, time_s)
                return reason
            if self._stop.is_set():
                return None
            step = self._next()
            if isinstance(step, str):
                return step
            try:
                if not step() and self._stop.is_set():
                    return None
            except SpaceExhaustedError as error:
                return str(error)
            except InterruptedByUserError:
                return None
            except InputError as error:
                raise self._placed(error) from None

    def _placed(self, error: InputError) -> InputError:
        """What the Searcher refuses, with its place in the study file."""
        if error.source != CONSTRAINTS:
            return error
        return InputError(place_of(self._spec, CONSTRAINTS), CONSTRAINTS, why=error.why)

    def _attend(self) -> None:
        """Do what other programs ask for."""
        asked = self._live.attend()
        known = self._spec, self._progress, self._defaults, self._measurer
        self._budget = budget_now(self._budget, asked, *known)
        defined = self._spec, self._defaults, self._feasibility, self._observer
        self._trials.queue(points_by_hand(*defined, asked.add))

    def _next(self) -> _Step | str:
        """What to run now, or why nothing is left. It follows from what is stored alone."""
        repeated = self._rounds.unfinished_trial()
        if repeated is None:
            repeated = self._observations.judgement.next_repeat(self._spec.noise.repeats_max)
        if repeated is not None:
            return partial(self._repeat, repeated)
        if self._rounds.unfinished_anchor() or self._anchor_due():
            return self._run_anchor
        return self._trials_end(self._progress.trials()) or self._run_trial

    def _anchor_due(self, host: str = "") -> bool:
        """Whether the baseline is to be run once more, and there is time for it."""
        next_s = self._baseline_wall_s or 0.0
        due = self._observations.anchor_due(self._spec.noise.anchor_every, next_s, host)
        return due and self._budget.holds(next_s, *self._spent)

    def _trials_end(self, trials: int) -> str:
        """Why there is no new trial after so many, in one line; empty where there is one."""
        known = self._spent[1], self._trials.promise(), self._spec.proof.smallest_effect
        return self._budget.trials_end(trials, *known)

    def _run_anchor(self) -> bool:
        """Run the baseline once more, and see whether the machine is still the same."""
        self._begin()
        runs = self._rounds.anchor(self._anchors, self._baseline, *self._run_ends())
        return runs is not None and self._end_anchor(runs)

    def _end_anchor(self, runs: Sequence[StoredMeasurement]) -> bool:
        self._observations.add_anchor(runs)
        self._anchors = runs[-1].repeat + 1
        ended = runs[-1].measurement.outcome
        if ended is not Outcome.OK:
            self._observer.warning(f"anchor {runs[-1].repeat}, a baseline run, ended {ended}")
        self._changes.tell(self._observations.judgement)
        self._announce_best()
        return True

    def _repeat(self, number: int) -> bool:
        """Run a trial once more."""
        self._begin()
        trial = self._observations.trials[number]
        arm = Arm(self._engine, trial.config)
        runs = self._rounds.trial(number, len(trial.rounds), arm, *self._run_ends())
        return self._end_repeat(number, runs)

    def _end_repeat(self, number: int, runs: Sequence[StoredMeasurement] | None) -> bool:
        repeated = None if runs is None else round_of(runs, self._spec, self._feasibility)
        if repeated is None:
            return False
        self._observations.add_round(number, repeated)
        if repeated.outcome is not Outcome.OK:
            self._observer.warning(
                f"trial {number} ended {repeated.outcome} when it was run again, and counts as such"
            )
        judged = self._observations.judgement.trials[number]
        self._observer.trial_repeated(number, judged.end, judged.runs)
        self._announce_best()
        return True

    def _begin(self) -> None:
        """Before the first run of this session's search."""
        if not self._search_begun:
            # A verdict of an earlier session says nothing about what is searched from here on.
            self._folder.measurements.set_verdict(None)
            self._search_begun = True
            few = self._budget.few_trials(*self._spent)
            if few and not self._observations.trials:
                self._observer.warning(few)

    def _run_ends(self) -> tuple[float, float]:
        """After how many seconds a run has failed, and when the search's time is used up."""
        until_s = self._measurer.now_s() + self._budget.search_s(*self._spent)
        return self._budget.longest_run_s(*self._spent), until_s

    def _new_trial(
        self, host: str = "", tell: Callable[[Callable[[], bool]], bool] = lambda what: what()
    ) -> tuple[int, Mapping[str, OptionValue], Callable[[Measurer], TrialRuns | None]]:
        """Begin a trial on `host`: its number, its values, and what runs it.

        What the pruner is told is given to `tell`, which does it and says what came of it.
        """
        self._begin()
        self._trials.rejudge(self._observations.for_searcher())
        number, values = self._trials.ask()
        # As if the machine were as fast as it was in the beginning.
        scale = self._observations.judgement.drift.factor_now(host)
        deadline_s, until_s = self._run_ends()
        arm = Arm(self._engine, candidate_config(self._spec, number, values))
        index = self._progress.trials()

        def report(step: int, value: float) -> bool:
            return tell(lambda: self._trials.report(number, step, value * scale))

        def run(measurer: Measurer) -> TrialRuns | None:
            return run_trial(
                *(self._spec, measurer, arm, report),
                number=number,
                index=index,
                deadline_s=deadline_s,
                until_s=until_s,
            )

        return number, values, run

    def _run_trial(self) -> bool:
        number, values, run = self._new_trial()
        return self._end_trial(number, values, run(self._measurer))

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

    def _announce_best(self) -> None:
        """Where another trial is the best now, or the best one was run again."""
        best = self._progress.best
        now = None if best is None else (best.number, best.runs)
        if best is None or now == self._announced_best:
            return
        self._announced_best = now
        value, base = self._progress.best_value, self._baseline_value
        # Of values that are not above zero a ratio says nothing.
        ratio = value / base if base is not None and min(base, value) > 0 else None
        self._observer.best_changed(best.number, value, ratio)

    def _prove(self) -> Survived | None:
        """The verdict on the best trial, and what it survives; None when interrupted."""
        spec, promotion = self._spec, None
        if self._size.grows:
            judgement, rows = self._observations.judgement, self._folder.measurements.all()
            left_s = self._budget.proof_s(self._spent[0])
            promotion = self._promoted(
                lambda measurer, host: promote(
                    *(spec, self._baseline, judgement, self._at_proof(measurer), self._defaults),
                    rows=rows,
                    host=host,
                    deadline_s=left_s,
                )
            )
            if promotion is None:
                return None
            self._observations.promote(promotion.values)
            self._announce_best()
        best = self._progress.best
        why_not = nothing_to_prove(spec, self._progress, self._defaults)
        if best is None or why_not:
            return Survived(not_proven(spec.goal, spec.proof.confidence, why_not))
        left_s = self._budget.proof_s(self._spent[0])
        measurer = self._at_proof(self._measurer, best.number, left_s)
        notes = notes_on_sizes(
            *(self._size, self._observations.judgement, promotion, self._baseline_value),
            proved_scale=measurer.scale,
        )
        return self._proved(best, measurer, notes, left_s)

    def _at_proof(
        self, measurer: Measurer, finalist: int | None = None, left_s: float | None = None
    ) -> Measurer:
        """`measurer` with runs of the size of the proof: that of the trial `finalist`, once known.

        The first to ask that decides on it, by the time that is left.
        """
        scale = self._size.proof_scale
        measurer = measurer.at(*size.at_scale(self._spec, scale), scale)
        if finalist is None:
            return measurer
        return size.for_proof(self._spec, measurer, self._size, finalist, left_s)

    def _promoted(self, work: Callable[[Measurer, str], Promotion | None]) -> Promotion | None:
        """What `work` comes to, which is given what measures, and the name of its host."""
        self._measurer = self._at_proof(self._measurer)
        return work(self._measurer, "")

    def _proved(
        self, best: JudgedTrial, measurer: Measurer, notes: Sequence[str], left_s: float | None
    ) -> Survived | None:
        """The verdict on the trial `best`, by runs of the size of those of `measurer`."""
        self._measurer = measurer
        return prove_finalist(
            *(self._spec, self._baseline, Arm(self._engine, best.config)),
            *(measurer, self._observer, self._feasibility),
            notes=notes,
            deadline_s=left_s,
        )

    def _result(
        self, verdict: Verdict | None, *, interrupted: bool, survival: Survival = UNTESTED
    ) -> TuneResult:
        labels = [objective.label for objective in self._spec.goal.objectives]
        return TuneResult(
            **self._progress.best_fields(labels),
            baseline=self._baseline.config,
            baseline_value=self._baseline_value,
            baseline_values=dict(zip(labels, self._baseline_values or (), strict=False)),
            verdict=verdict,
            survival=survival,
            counts=dict(self._progress.counts),
            refused=dict(self._folder.measurements.fact(REFUSED) or {}),
            interrupted=interrupted,
            spent_s=self._folder.measurements.spent_s(),
        )
