"""Where a study or a proof is, for displays: fed with the loop's callbacks, asked at any time."""

from __future__ import annotations

import statistics
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass

from lsmtune.cli.run_progress import RunProgress
from lsmtune.proof.measurer import Clock
from lsmtune.records.config import Config, option_text
from lsmtune.records.objective import Objective
from lsmtune.records.workload import Workload
from lsmtune.runners.messages import Message
from lsmtune.storage.measurements import Role, StoredMeasurement
from lsmtune.study.observer import NullObserver

_ROWS_KEPT = 10


@dataclass(frozen=True)
class Plan:
    """How much there is to do: `trials` or `time_s` may be open; `pairs` of two runs follow."""

    objective: Objective
    workload: Workload
    trials: int | None
    time_s: float | None
    pairs: int


@dataclass(frozen=True)
class RunLine:
    """A finished run: `ratio` is its value over the baseline's, `best` marks a new best trial.

    `why` says what went wrong in a run that did not end `ok`.
    """

    name: str
    outcome: str
    value: float | None
    ratio: float | None
    options: str
    wall_s: float
    best: bool = False
    why: str = ""


class TuneProgress(NullObserver):
    """Keeps what a display shows. `on_line` gets each finished run, `on_text` each announcement."""

    def __init__(
        self,
        plan: Plan,
        clock: Clock,
        spent_before_s: float = 0.0,
        on_line: Callable[[RunLine], None] | None = None,
        on_text: Callable[[str], None] | None = None,
    ) -> None:
        self.plan = plan
        self.run = RunProgress(plan.workload)
        self.run_name = ""
        self.trials = 0
        self.counts: Counter[str] = Counter()
        self.best: str = ""
        self.proof_runs = 0
        self.proving = False
        self.done = False
        self.lines: deque[RunLine] = deque(maxlen=_ROWS_KEPT)
        self.notes: list[str] = []
        self._clock = clock
        self._started_s = clock() - spent_before_s
        self._walls_s: list[float] = []
        self._baseline_value: float | None = None
        self._best_value: float | None = None
        self._on_line = on_line
        self._on_text = on_text

    # --- callbacks of the loop

    def study_started(self, _spec: object, resumed: int) -> None:
        """Counts the trials of earlier sessions."""
        self.trials = resumed
        if resumed:
            self._say(f"continuing: {resumed} trials are stored")

    def run_started(self, role: Role, trial: int | None, _config: Config, index: int) -> None:
        """A run begins."""
        self.run_name = _run_name(role, trial, index)
        self.run.restart()

    def run_message(self, message: Message) -> None:
        """The driver said something."""
        self.run.message(message)

    def run_finished(self, stored: StoredMeasurement) -> None:
        """A run ended."""
        value = self.plan.objective.value(stored.measurement)
        self._walls_s.append(stored.wall_s)
        if stored.role is Role.BASELINE and value is not None:
            self._baseline_value = value
        if stored.role in (Role.PROOF_BASELINE, Role.PROOF_CANDIDATE):
            self.proof_runs += 1
        if stored.role is Role.TRIAL:
            self.trials += 1
            self.counts[stored.measurement.outcome.value] += 1
        self._add(stored, value)

    def best_changed(self, trial: int, value: float, ratio_to_baseline: float | None) -> None:
        """A new best trial, or the best of earlier sessions."""
        against = "" if ratio_to_baseline is None else f", {ratio_to_baseline:.2f}x the baseline"
        shown = shown_value(self.plan.objective.metric, value)
        self.best = f"trial {trial}: {shown}{against} (one run each, not yet proved)"
        self._best_value = value

    def search_finished(self, reason: str) -> None:
        """The search is over."""
        self._say(f"search finished: {reason}")

    def proof_started(self, pairs: int) -> None:
        """The proof begins."""
        self.proving = True
        self._say(f"proof: {pairs} pairs of fresh, interleaved runs")

    def finished(self, _result: object) -> None:
        """The last callback."""
        self.done = True

    def warning(self, text: str) -> None:
        """Something the user should know."""
        self._say(f"warning: {text}")

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
            runs = 2 * self.plan.pairs
            shares.append((self.trials + self.proof_runs) / (self.plan.trials + runs))
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
            runs = trials_left + 2 * self.plan.pairs - self.proof_runs
            bounds.append(runs * statistics.median(self._walls_s))
        return max(0.0, min(bounds)) if bounds else None

    # --- inside

    def _add(self, stored: StoredMeasurement, value: float | None) -> None:
        is_best = stored.role is Role.TRIAL and value is not None and self._beats_best(value)
        base = self._baseline_value
        line = RunLine(
            name=_run_name(stored.role, stored.trial, stored.pair or 0),
            outcome=stored.measurement.outcome.value,
            value=value,
            ratio=None if value is None or not base else value / base,
            options=options_text(stored.config),
            wall_s=stored.wall_s,
            best=is_best,
            why="" if stored.measurement.error is None else stored.measurement.error.message,
        )
        self.lines.append(line)
        if self._on_line is not None:
            self._on_line(line)

    def _beats_best(self, value: float) -> bool:
        return self._best_value is None or self.plan.objective.better(value, self._best_value)

    def _say(self, text: str) -> None:
        self.notes.append(text)
        if self._on_text is not None:
            self._on_text(text)


def shown_value(metric: str, value: float) -> str:
    """`value` of `metric` with its unit."""
    if metric.endswith("_ops_s"):
        return f"{value:,.0f} ops/s"
    return f"{number(value)} {metric}"


def number(value: float) -> str:
    """Four digits that matter, and no exponent for anything large: `25,711`, `0.4213`."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def options_text(config: Config) -> str:
    """`name=value name=value`."""
    return " ".join(f"{name}={option_text(value)}" for name, value in config.options.items())


def _run_name(role: Role, trial: int | None, index: int) -> str:
    match role:
        case Role.TRIAL:
            return f"trial {trial}"
        case Role.PROOF_BASELINE:
            return f"pair {index + 1} baseline"
        case Role.PROOF_CANDIDATE:
            return f"pair {index + 1} candidate"
        case _:
            return role.value
