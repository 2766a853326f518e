"""One session of a study: what its folder holds, its baseline and budget, and how far it is."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from lsmtune.driver.runner import Runner
from lsmtune.errors import InputError, InterruptedByUserError, LsmtuneError
from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.measurer import Measurer, loaded_databases
from lsmtune.experiment.schedule import Arm
from lsmtune.experiment.store import OF_BASELINE, MeasurementStore, Role, StoredMeasurement
from lsmtune.machine.awake import Clock
from lsmtune.model.config import EngineIdentity, OptionValue
from lsmtune.model.measurement import Measurement
from lsmtune.model.verdict import Verdict
from lsmtune.proof.survival import UNTESTED, Survival
from lsmtune.study import size
from lsmtune.study.budget import SearchBudget
from lsmtune.study.feasible import Feasibility, without_mean
from lsmtune.study.finalist import size_budget, survival_s
from lsmtune.study.judging import Observations
from lsmtune.study.live import LiveFile
from lsmtune.study.observer import TuneObserver, TuneResult, new_changes
from lsmtune.study.promotion import promotion_of, stored_beliefs
from lsmtune.study.resize import ResizedError, resized
from lsmtune.study.spec import Spec
from lsmtune.study.start import (
    allowed_points,
    baseline_config,
    calibrate_study,
    candidate_config,
    make_searcher,
    measure_baseline,
    stored_baseline,
)
from lsmtune.study.stored import TrialRuns, trial_rounds, trial_runs
from lsmtune.study.trials import Trials

REFUSED = "refused"  # the stored fact: configurations refused before a run, by reason
BUDGET = "budget"  # the stored fact: seconds and trials, as asked for last
SEARCH_ENDED = "search_ended"  # the stored fact: why; null while it goes on
FLEET_HOSTS = "fleet_hosts"  # the stored fact: the hosts of a fleet, by name
FLEET_ELAPSED = "fleet_elapsed_s"  # the stored fact: how long the sessions of a fleet took


def time_spent_s(store: MeasurementStore) -> float:
    """Seconds of a study's time so far: of a fleet by the clock, as its hosts work at once."""
    elapsed_s = store.fact(FLEET_ELAPSED)
    return store.spent_s() if elapsed_s is None else float(elapsed_s)


def _asked(spec: Spec) -> str:
    """The same for as long as the same sampler proposes under the same limits."""
    limits = [each.text for each in (*spec.constraints, *spec.guards)]
    parts = spec.sampler.name, sorted(spec.sampler.settings.items()), limits
    return hashlib.sha256(repr(parts).encode()).hexdigest()


class Session:
    """What a study with runs of one size knows, from what is stored on; `Tuning` runs it."""

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
        self._baseline_runs: Sequence[Measurement] = ()
        self._baseline_value: float | None = None
        self._baseline_values: tuple[float, ...] | None = None
        self._feasibility = Feasibility(spec)
        self._size = size.stored_size(folder)
        self._refused: Counter[str] = Counter()
        # The report at the end loads as much as the start of the program did, and then ends it.
        self._other_s = 2 * startup_s + survival_s(spec, runner)
        self._whole_budget = size_budget(spec, self._size, self._other_s)
        self._observations = Observations(spec.goal)
        self._baseline_wall_s = 0.0
        self._announced_best: tuple[int, int] | None = None
        self._searcher = make_searcher(spec, self._refusal)
        self._trials = Trials(folder, spec.space, self._searcher, asked=_asked(spec))
        databases = loaded_databases(folder.path, runner, spec.databases, observer)
        scale = self._size.scale
        workloads, limits = size.at_scale(spec, scale)
        self._measurer = Measurer(
            folder, runner, workloads, limits, observer, live.stop, clock, databases, scale=scale
        )
        self._measurer.refuse_other_build(engine, alone=True)
        self._refuse_other_kind()
        self._known_changes: set[tuple[int, int]] = set()
        # How many anchors, and repeats of each trial, were begun.
        self._anchors, self._repeats = 0, Counter[int]()
        self._of_baseline: list[StoredMeasurement] = []  # decoded once
        self._search_begun = False

    def _refuse_other_kind(self) -> None:
        """Raises InputError where the folder's runs were made by another kind of Tuning."""
        store = self._folder.measurements
        if store.fact(FLEET_HOSTS) is None:
            return
        if store.all():
            raise InputError(
                str(self._folder.path),
                why="was begun on a fleet, and cannot go on on one machine",
                allowed="--fleet, or another folder (--dir DIR)",
            )
        for fact in (FLEET_HOSTS, FLEET_ELAPSED):  # it waited for a host in vain
            store.set_fact(fact, None)

    def _refusal(self, values: Mapping[str, OptionValue]) -> str:
        """Why a candidate may not be run; counted, as it costs no run that would tell of it."""
        if self._stop.is_set():  # where nearly all is refused, an ask can take minutes
            raise InterruptedByUserError("stopped")
        refusal = self._feasibility.refusal(values) or self._too_long(values)
        if refusal:
            self._refused[refusal] += 1
        return refusal

    def _too_long(self, values: Mapping[str, OptionValue]) -> str:
        """Why a candidate would be cut off: its runs are longer than the baseline's; or empty.

        A first one is begun in any case: a budget in which it is cut off is an error of its own.
        """
        longer = self._measurer.length_of(candidate_config(self._spec, 0, values))
        if longer == 1.0 or not self._observations.trials:
            return ""
        run_s = sum(run.elapsed_s + size.more_s(run, longer) for run in self._baseline_runs)
        return "" if self._budget.holds(run_s) else "would run for longer than the search has left"

    @property
    def _spent_s(self) -> float:
        """Seconds of the time budget that are gone."""
        return self._measurer.spent_s()

    @property
    def _budget(self) -> SearchBudget:
        """The whole budget, with what is gone of it by now."""
        walls_s = [self._baseline_wall_s, *self._observations.judgement.walls_s]
        return replace(self._whole_budget, spent_s=self._spent_s, run_walls_s=walls_s)

    def _resume(self) -> Sequence[StoredMeasurement]:
        """Bring folder, Searcher and memory to the same state, whatever a kill left; all rows."""
        self._folder.sweep_leftovers()
        self._live.spent_s = lambda: self._spent_s
        spec, rows = self._spec, self._folder.measurements.all()
        self._feasibility = Feasibility(spec, rows)
        runs = trial_runs(rows)
        self._repeats = Counter({n: max(t.repeats, default=0) for n, t in runs.items()})
        self._folder.note_origin(spec.path)
        self._remember_baseline()
        believed = stored_beliefs(self._folder.measurements)
        self._observations.promote(promotion_of(rows, spec, believed))
        for trial in runs.values():
            self._remember(trial)
        judged = self._observations.judgement.trials
        ends = {number: judged[number].end if number in judged else None for number in runs}
        reports = {number: trial.reports for number, trial in judged.items()}
        ran = {number: trial.config.options for number, trial in runs.items()}
        first_points = allowed_points(spec, self._feasibility, self._observer)
        accepts = self._feasibility.refusal
        ended = self._trials.restore(ends, ran, reports, first_points, accepts)
        for number in ended - judged.keys():
            # A trial that was pruned between two sizes has no run that says so.
            self._remember(runs[number], pruned=True)
        # Those of earlier sessions were told then.
        new_changes(self._observations.judgement, spec.goal, self._known_changes)
        self._observer.study_started(spec, len(self._observations.trials))
        for note in spec.notes:
            self._observer.warning(note)
        return rows

    def _remember(self, trial: TrialRuns, *, pruned: bool = False) -> None:
        """What is stored of a trial."""
        rounds = trial_rounds(trial, self._spec, self._feasibility, pruned=pruned)
        if rounds is not None:
            self._observations.add_trial(rounds)

    def _remember_baseline(self) -> Sequence[StoredMeasurement]:
        """All runs of the baseline, anchors among them, in the order in which they were stored."""
        rows = self._of_baseline
        last_id = rows[-1].id if rows else 0
        new = [row for role in OF_BASELINE for row in self._folder.measurements.of(role, last_id)]
        rows += sorted(new, key=lambda row: row.id)
        self._observations.set_baseline_rows(rows)
        begun = (row.repeat + 1 for row in rows if row.role is Role.ANCHOR)
        self._anchors = max([self._anchors, *begun])
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
        if self._baseline_on(self._measurer, settle, searched=searched) is None:
            return False
        self._feasibility = Feasibility(self._spec, self._remember_baseline())
        return not self._stop.is_set()

    def _baseline_on(
        self,
        measurer: Measurer,
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
        measurer.lengths = size.lengths(self._spec, self._size)
        round_s = sum(row.wall_s for row in baseline)
        calibrate_study(self._spec, self._baseline, measurer, round_s=round_s, searched=searched)
        return baseline

    def _settle_size(self, baseline: Sequence[StoredMeasurement]) -> None:
        """How long and how large the runs are, by those of the baseline. Raises ResizedError."""
        self._use_baseline(baseline)
        began, store = self._size, self._folder.measurements
        if self._observations.trials:
            line = size.unlike_now(self._spec, began)
        else:
            self._size, line = resized(self._spec, began, baseline, self._spent_s)
        if (self._size.longer, self._size.scale) != (began.longer, began.scale):
            store.set_aside(size.RUN_SIZE, self._size)
            raise ResizedError(line)
        if self._size != began:
            store.set_fact(size.RUN_SIZE, self._size)
        self._whole_budget = size_budget(self._spec, self._size, self._other_s)
        if line:
            self._observer.warning(line)
        self._refuse_short()

    def _refuse_short(self) -> None:
        """Raises LsmtuneError where nothing was tried, and no time is left to try anything."""
        short = self._budget.too_short()
        if short and not self._observations.trials:
            raise LsmtuneError(f"{self._spec.path}: {short}")

    def _use_baseline(self, baseline: Sequence[StoredMeasurement]) -> None:
        runs = self._baseline_runs = [row.measurement for row in baseline]
        self._baseline_values = self._spec.goal.values(runs)
        self._baseline_value = self._spec.goal.value(runs)
        if self._baseline_values is None:
            raise without_mean(self._spec, runs)
        self._baseline_wall_s = sum(row.wall_s for row in baseline)
        for what in self._feasibility.complaints(self._baseline.config.options, runs):
            self._observer.warning(f"the baseline {what}; it is compared with all the same")
        for line in dict.fromkeys(line for run in runs for line in run.warnings):
            self._observer.warning(f"a run of the baseline: {line}")

    def _announce_best(self) -> None:
        """Where another trial is the best now, or the best one was run again."""
        best = self._observations.judgement.best_trial
        if best is None or best.value is None or (best.number, best.runs) == self._announced_best:
            return
        self._announced_best = best.number, best.runs
        value, base = best.value, self._baseline_value
        # Of values that are not above zero a ratio says nothing.
        ratio = value / base if base is not None and min(base, value) > 0 else None
        self._observer.best_changed(best.number, value, ratio)

    def _result(
        self, verdict: Verdict | None, *, interrupted: bool, survival: Survival = UNTESTED
    ) -> TuneResult:
        judgement = self._observations.judgement
        best = judgement.best_trial
        best_values = None if best is None else best.end.values
        labels = [objective.label for objective in self._spec.goal.objectives]
        return TuneResult(
            best=None if best is None else best.config,
            best_trial=None if best is None else best.number,
            best_value=None if best is None else best.value,
            best_values=dict(zip(labels, best_values or (), strict=False)),
            baseline=self._baseline.config,
            baseline_value=self._baseline_value,
            baseline_values=dict(zip(labels, self._baseline_values or (), strict=False)),
            verdict=verdict,
            survival=survival,
            counts=dict(judgement.counts),
            refused=dict(self._folder.measurements.fact(REFUSED) or {}),
            interrupted=interrupted,
            spent_s=time_spent_s(self._folder.measurements),
            search_ended=self._folder.measurements.fact(SEARCH_ENDED) or "",
        )
