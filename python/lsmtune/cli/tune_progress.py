"""Where a study or a proof is, for displays: fed with the loop's callbacks, asked at any time."""

from __future__ import annotations

import statistics
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lsmtune.cli.output import print_text
from lsmtune.driver.messages import IntervalPassed, Message, PhaseFinished, PhaseStarted
from lsmtune.engines.differences import Difference, differences, known_defaults
from lsmtune.experiment.observer import Observer
from lsmtune.experiment.schedule import Arm, Slot
from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.machine.awake import Clock
from lsmtune.model.config import Config, EngineIdentity, OptionValue
from lsmtune.model.goal import Direction, Goal, Objective, WeightedWorkload
from lsmtune.model.measurement import Outcome
from lsmtune.model.verdict import Verdict
from lsmtune.model.workload import Phase, PhaseKind, Workload
from lsmtune.report.verdict import running_line
from lsmtune.report.words import quantity
from lsmtune.study.observer import TuneObserver
from lsmtune.study.trials import TrialEnd

_ROWS_KEPT = 10
_INTERVALS_KEPT = 16


@dataclass
class PhaseProgress:
    """One phase: `share` of it done, 0 to 1; throughput of the last intervals, oldest first."""

    phase: Phase
    started: bool = False
    finished: bool = False
    elapsed_s: float = 0.0
    operations: int = 0
    rss_bytes: int | None = None
    throughputs_ops_s: deque[float] = field(default_factory=lambda: deque(maxlen=_INTERVALS_KEPT))

    @property
    def share(self) -> float:
        """How much of the phase is done, as far as its size is known."""
        if self.finished:
            return 1.0
        shares = [0.0]
        whole = self.phase.operations_whole
        if whole:
            shares.append(self.operations / whole)
        if self.phase.duration_s:
            shares.append(self.elapsed_s / self.phase.duration_s)
        return min(1.0, max(shares))

    @property
    def left_s(self) -> float | None:
        """Seconds until its end at the pace so far; None where that is not known."""
        known = self.started and not self.finished and self.share > 0.0 and self.elapsed_s > 0.0
        return self.elapsed_s * (1.0 - self.share) / self.share if known else None


class RunProgress(Observer):
    """The phases of the run that is on, and how far it is.

    `put` takes what is said beside them: it prints that, or a display does above itself.
    """

    def __init__(self, workload: Workload) -> None:
        self.put: Callable[[str], None] = print_text
        self.phases = [PhaseProgress(phase) for phase in workload.phases]
        self.title = ""  # of the run, where its display has one

    def say(self, text: str) -> None:
        """Says a line beside the phases."""
        self.put(text)

    def run_started(self, _slot: Slot, _arm: Arm, workload: Workload) -> None:
        """A new run of `workload` begins."""
        self.phases = [PhaseProgress(phase) for phase in workload.phases]

    @property
    def current(self) -> PhaseProgress | None:
        """The phase that runs now."""
        running = [phase for phase in self.phases if phase.started and not phase.finished]
        return running[0] if running else None

    def run_message(self, message: Message) -> None:
        """Takes one message of the driver."""
        match message:
            case PhaseStarted(index=index):
                self._align(index, message.name)
                self.phases[index].started = True
            case IntervalPassed(index=index):
                phase = self.phases[index]
                phase.elapsed_s = message.elapsed_s
                phase.operations = message.operations_total
                phase.rss_bytes = message.rss_bytes
                phase.throughputs_ops_s.append(message.throughput_ops_s)
            case PhaseFinished(index=index, phase=measured):
                phase = self.phases[index]
                phase.finished = True
                phase.elapsed_s = measured.elapsed_s + (measured.drain_s or 0.0)
                phase.operations = measured.operations
                phase.rss_bytes = measured.rss_bytes_max
            case _:
                pass

    def _align(self, index: int, name: str) -> None:
        """Makes room for a settle phase that the workload does not have, where there is one.

        A database that is loaded once is settled whatever the workload says, and the run
        on its copy does not announce what was done before.
        """
        names = [known.phase.name for known in self.phases]
        if index < len(names) and names[index] == name:
            return
        place = names.index(name) if name in names else min(index, len(names))
        missing = max(index - place + (name not in names), 1)
        settle = Phase("settle", PhaseKind.SETTLE)
        self.phases[place:place] = [PhaseProgress(settle) for _ in range(missing)]


@dataclass(frozen=True)
class Plan:
    """What is done, and how much: `trials` or `time_s` may be open; `pairs` follow.

    A trial, and each side of a pair, takes one run per workload. Of a configuration is shown what
    differs from the `baseline` on the `engine`, by its `defaults` where a study states some.
    """

    baseline: Config
    engine: EngineIdentity
    goal: Goal
    workloads: tuple[WeightedWorkload, ...]
    trials: int | None
    time_s: float | None
    pairs: int
    defaults: Mapping[str, OptionValue] = field(default_factory=dict)

    @property
    def objective(self) -> Objective:
        """What is shown of a single run."""
        return self.goal.objectives[0]

    @property
    def proof_runs(self) -> int:
        """How many runs the proof takes."""
        return 2 * self.pairs * len(self.workloads)


@dataclass(frozen=True)
class RunLine:
    """A finished run: `ratio` is its value over the baseline's, `best` marks a new best trial.

    `differs` is what its configuration has that the baseline has not. `why` says what went wrong
    in a run that did not end `ok`.
    """

    name: str
    outcome: str
    value: float | None
    ratio: float | None
    differs: Sequence[Difference]
    wall_s: float
    best: bool = False
    why: str = ""


class TuneProgress(RunProgress, TuneObserver):
    """Keeps what a display shows. `on_line` gets each finished run, `on_text` each announcement."""

    def __init__(
        self,
        plan: Plan,
        clock: Clock,
        spent_before_s: float = 0.0,
        on_line: Callable[[RunLine], None] = lambda _line: None,
        on_text: Callable[[str], None] = lambda _text: None,
    ) -> None:
        super().__init__(plan.workloads[0].workload)
        self.plan = plan
        self.run_name = ""
        self.run_differs: tuple[Difference, ...] = ()
        self.trials = 0
        self.counts: Counter[str] = Counter()
        self.best: str = ""
        self.best_differs: tuple[Difference, ...] = ()
        self.proof_runs = 0
        self.proving = False
        self.proof_so_far = ""
        self.done = False
        self.lines: deque[RunLine] = deque(maxlen=_ROWS_KEPT)
        self.notes: list[str] = []
        self._clock = clock
        self._started_s = clock() - spent_before_s
        self._walls_s: list[float] = []
        self._baseline_values: dict[int, float] = {}
        # Both runs of a pair may be on at the same time; by role, pair and workload.
        self._names: dict[tuple[Role, int | None, int], str] = {}
        self._held: RunLine | None = None
        self._tried: dict[int, tuple[Difference, ...]] = {}  # by the trial's number
        self._on_line = on_line
        self._on_text = on_text

    # --- callbacks of the loop

    def study_started(self, _spec: object, resumed: int) -> None:
        """Counts the trials of earlier sessions."""
        self.trials = resumed
        if resumed:
            stored = "1 trial is" if resumed == 1 else f"{resumed:,} trials are"
            self._say(f"continuing: {stored} stored")

    def run_started(self, place: Slot, arm: Arm, workload: Workload) -> None:
        """A run begins."""
        self._release()
        self.run_differs = self._differs(arm.config)
        self.run_name = _role_name(place)
        if len(self.plan.workloads) > 1:
            self.run_name += f" {self.plan.workloads[place.workload].label}"
        if place.rung is not None:
            self.run_name += f" ({workload.num:,} keys)"
        self._names[(place.role, place.pair, place.workload)] = self.run_name
        super().run_started(place, arm, workload)

    def run_finished(self, stored: StoredMeasurement) -> None:
        """A run ended."""
        value = self.plan.objective.value(stored.measurement)
        if stored.role is not Role.RUNG:
            self._walls_s.append(stored.wall_s)
        # What follows a promotion has the size of the promotion.
        of_baseline = stored.role is Role.PROMOTION and stored.trial is None
        if (stored.role is Role.BASELINE or of_baseline) and value is not None:
            self._baseline_values[stored.workload] = value
        if stored.role in (Role.PROOF_BASELINE, Role.PROOF_CANDIDATE):
            self.proof_runs += 1
        # Of the same size, and no part of a pair, which is judged by its other side.
        compared = stored.rung is None and stored.pair is None and stored.trial is not None
        base = self._baseline_values.get(stored.workload) if compared else None
        place, differs = (stored.role, stored.pair, stored.workload), self._differs(stored.config)
        if stored.trial is not None:
            self._tried[stored.trial] = differs
        # The line of a trial's last run says what became of the trial.
        self._held = RunLine(
            name=self._names.pop(place, self.run_name),
            outcome=stored.measurement.outcome.value,
            value=value,
            ratio=value / base if value and base and min(value, base) > 0 else None,
            differs=differs,
            # A run of a pair is charged half of what both took.
            wall_s=stored.wall_s if stored.pair is None else stored.measurement.elapsed_s,
            why=stored.measurement.message,
        )
        if stored.role is not Role.TRIAL:
            self._release()

    def baseline_known(self, runs: Sequence[StoredMeasurement]) -> None:
        """What trials are shown against was measured in an earlier session."""
        for stored in runs:
            value = self.plan.objective.value(stored.measurement)
            if value is not None:
                self._baseline_values[stored.workload] = value

    def trial_finished(self, number: int, end: TrialEnd, *, best: bool) -> None:
        """A trial ended."""
        self.trials += 1
        self.counts[end.outcome.value] += 1
        why = f"breaks {end.broken[0]}" if end.broken else ""
        held = self._held
        self._release(best=best, why=why)
        if end.outcome is Outcome.PRUNED and (held is None or held.outcome == Outcome.OK.value):
            # Its runs of smaller sizes went well, and say nothing of it.
            self._say(f"trial {number}: pruned")

    def best_changed(self, trial: int, value: float, ratio_to_baseline: float | None) -> None:
        """A new best trial, or the best of earlier sessions."""
        against = ""
        if ratio_to_baseline is not None:
            word = better_or_worse(ratio_to_baseline, self.plan.goal.direction)
            against = f", {ratio_to_baseline:.2f}x the baseline's, {word}"
        shown = quantity(self.plan.goal.metric, value)
        self.best = f"trial {trial}: {shown}{against} (not yet proved)"
        self.best_differs = self._tried.get(trial, ())  # of an earlier session they are not known

    def calibrated(self, line: str) -> None:
        """What the baseline against itself says of the machine."""
        self._say(line)

    def search_finished(self, reason: str) -> None:
        """The search is over."""
        self._say(f"search finished: {reason}")

    def proof_started(self, pairs: int) -> None:
        """The proof begins."""
        self.proving = True
        self._say(f"proof: at most {pairs} pairs of fresh, interleaved runs")

    def pair_judged(self, verdict: Verdict) -> None:
        """What the pairs say so far; on a terminal one line that changes."""
        self.proof_so_far = running_line(verdict)
        self._on_text(self.proof_so_far)

    def finished(self, _result: object) -> None:
        """The last callback."""
        self.done = True

    def warning(self, text: str) -> None:
        """Something the user should know, which is no part of what changes."""
        self._on_text(f"warning: {text}")

    # --- what displays ask

    @property
    def spent_s(self) -> float:
        """Seconds of all sessions so far."""
        return self._clock() - self._started_s

    @property
    def share(self) -> float:
        """How much of the whole is done, 0 to 1, by whichever budget ends first."""
        if self.done:
            return 1.0
        shares = [0.0]
        if self.plan.time_s:
            shares.append(self.spent_s / self.plan.time_s)
        if self.plan.trials is not None:
            each = len(self.plan.workloads)
            whole = self.plan.trials * each + self.plan.proof_runs
            shares.append((self.trials * each + self.proof_runs) / whole)
        return min(1.0, max(shares))

    @property
    def left_s(self) -> float | None:
        """Seconds left, at most: of the time budget, or of the runs that are left."""
        if self.done:
            return None
        bounds = []
        if self.plan.time_s is not None:
            bounds.append(self.plan.time_s - self.spent_s)
        if self._walls_s and (self.plan.trials is not None or self.proving):
            trials_left = 0 if self.proving else max(0, (self.plan.trials or 0) - self.trials)
            runs = trials_left * len(self.plan.workloads) + self.plan.proof_runs - self.proof_runs
            bounds.append(runs * statistics.median(self._walls_s))
        return max(0.0, min(bounds)) if bounds else None

    # --- inside

    def _differs(self, config: Config) -> tuple[Difference, ...]:
        plan, engine = self.plan, self.plan.engine
        defaults = {**known_defaults(engine), **plan.defaults}
        return differences(engine.name, config.options, plan.baseline.options, defaults)

    def _release(self, *, best: bool = False, why: str = "") -> None:
        if self._held is None:
            return
        line = replace(self._held, best=best, why=why or self._held.why)
        self._held = None
        self.lines.append(line)
        self._on_line(line)

    def _say(self, text: str) -> None:
        self.notes.append(text)
        self._on_text(text)


_ALIKE = 0.005  # a ratio that is shown as 1.00


def better_or_worse(ratio: float, direction: Direction) -> str:
    """What a ratio to the baseline means: for latencies more than 1 is worse."""
    if abs(ratio - 1.0) < _ALIKE:
        return "the same"
    return "better" if (ratio > 1.0) == (direction is Direction.MAXIMIZE) else "worse"


def _role_name(place: Slot) -> str:
    match place.role:
        case Role.TRIAL | Role.RUNG:
            return f"trial {place.trial}" + (f" run {place.repeat + 1}" if place.repeat else "")
        case Role.PROMOTION:
            return "larger baseline" if place.trial is None else f"larger trial {place.trial}"
        case Role.PROOF_BASELINE:
            return f"pair {place.index + 1} baseline"
        case Role.PROOF_CANDIDATE:
            return f"pair {place.index + 1} candidate"
        case Role.ANCHOR:
            return f"anchor {place.index}"
        case _:
            return place.role.value
