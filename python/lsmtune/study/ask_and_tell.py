"""Ask and tell: a Search proposes configurations, and its caller runs the trials.

It is what a study does by itself, in pieces: nothing is judged or proved here. The words are those
of a study file.

What was told of a trial is stored as its Measurement, all else as that of a study (`study.trials`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import SupportsFloat

from lsmtune.errors import InputError, check_name, finite_number, nearest_name
from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.model.config import Config, EngineIdentity, OptionValue
from lsmtune.model.goal import Direction
from lsmtune.model.measurement import IntermediateReport, Measurement, Outcome
from lsmtune.search.searcher import Searcher
from lsmtune.space.constraint import ConstraintKind
from lsmtune.stats.pareto import front
from lsmtune.study.ask_and_tell_inputs import read_arguments
from lsmtune.study.trials import TrialEnd, Trials


@dataclass(frozen=True)
class Trial:
    """A trial that runs. `parameters` has the active parameters, and the options of every run."""

    number: int
    parameters: Mapping[str, OptionValue]
    _search: Search = field(repr=False, compare=False)

    def report(self, value: float, step: int | None = None) -> None:
        """The trial has come to `value`, of the only objective; `step` counts up from 1.

        Raises InputError for what is not a finite number, and for a trial that does not run.
        """
        self._search.report(self.number, value, step)

    def should_prune(self) -> bool:
        """Whether the trial looks so bad that it should end here: `tell(trial, pruned=True)`."""
        return self._search.should_prune(self.number)


@dataclass(frozen=True)
class FinishedTrial:
    """A trial that ended.

    `values` has one value per objective, None where the trial did not end `ok`; `metrics` all that
    was told. `violations` says by how much each constraint is broken, 0 or less where it holds.
    """

    number: int
    parameters: Mapping[str, OptionValue]
    outcome: Outcome
    values: tuple[float, ...] | None
    metrics: Mapping[str, float]
    violations: Mapping[str, float]

    @property
    def value(self) -> float | None:
        """The value of the first objective, which most searches have alone."""
        return None if self.values is None else self.values[0]

    @property
    def eligible(self) -> bool:
        """Whether it may be the best: it has values and breaks nothing."""
        return self.values is not None and all(v <= 0 for v in self.violations.values())


# --- the Search

ENGINE = "python"  # what measured: the caller
WORKLOAD = "ask-and-tell"
FAILURES = (
    Outcome.INVALID,
    Outcome.CRASHED,
    Outcome.TIMEOUT,
    Outcome.OUT_OF_MEMORY,
    Outcome.DISK_FULL,
    Outcome.DATA_LOSS,
)


class Search:
    """A search; for one thread.

    `space` is a mapping as under `space:` in a study file, or the name of a ready space. `sampler`
    and `pruner` are names, or mappings of a name and settings. `direction` is maximize or minimize;
    a mapping of metric to direction names the objectives, and several of them are searched for a
    front. `constraints` are texts on parameters, on the objectives and on `metrics`, further names
    that `tell` gives. `start` are configurations of the space that are tried first, and break no
    constraint on parameters.

    With a `folder` the search is on the disk, locked for this process until `close`, and another
    Search with the same arguments goes on with it. Without one it is forgotten in the end.

    The sequence of trials follows from `seed` and from what was told. Raises InputError for
    whatever is wrong with an argument.
    """

    def __init__(
        self,
        space: str | Sequence[str] | Mapping[str, object],
        *,
        sampler: str | Mapping[str, object] = "tpe",
        pruner: str | Mapping[str, object] = "none",
        seed: int = 0,
        direction: str | Mapping[str, str] = "maximize",
        constraints: Sequence[str] = (),
        metrics: Sequence[str] = (),
        start: Sequence[Mapping[str, OptionValue]] = (),
        folder: str | Path | None = None,
    ) -> None:
        given = {
            "space": space,
            "sampler": {"name": sampler} if isinstance(sampler, str) else sampler,
            "pruner": {"name": pruner} if isinstance(pruner, str) else pruner,
            "seed": seed,
            "direction": direction,
            "constraints": constraints,
            "metrics": metrics,
            "start": start,
        }
        arguments = self._arguments = read_arguments(given)
        self._searcher = Searcher(
            arguments.space,
            arguments.sampler.name,
            arguments.sampler.settings,
            arguments.seed,
            arguments.directions,
            accepts=arguments.refusal,
            pruner=arguments.pruner,
        )
        self._running: dict[int, _Running] = {}
        self._finished: dict[int, FinishedTrial] = {}
        self._closed = False
        self._folder: StudyFolder | None = None
        if folder is not None:
            path, parts = Path(folder), arguments.comparable_parts()
            self._folder = StudyFolder.create_or_resume(
                path, parts, text=arguments.text, directions=arguments.directions
            )
        self._trials = Trials(self._folder, arguments.space, self._searcher, "use another folder")
        try:
            self._restore()
        except BaseException:
            self.close()
            raise

    def ask(self) -> Trial:
        """Begins a trial: a configuration that was not tried before.

        Raises SpaceExhaustedError when there is none left, and InputError when the constraints
        leave none at all.
        """
        self._refuse_closed()
        number, values = self._trials.ask()
        self._running[number] = _Running(values)
        return Trial(number, self._arguments.options(values), self)

    def tell(
        self,
        trial: Trial,
        value: SupportsFloat | Mapping[str, SupportsFloat] | None = None,
        *,
        failed: str | None = None,
        pruned: bool = False,
    ) -> FinishedTrial:
        """Ends a trial: with its value or its metrics by name, as failed, or as pruned.

        `failed` says how: invalid, crashed, timeout, out_of_memory, disk_full, data_loss. Samplers
        learn from all three. On the disk when it returns. Raises InputError for a trial that does
        not run, for a metric that is missing or not a finite number, and for an unknown failure.
        """
        running = self._of(trial)
        if [value is not None, failed is not None, pruned].count(True) != 1:
            allowed = "value, failed or pruned"
            raise InputError("tell", why="says how the trial ended", allowed=allowed)
        check_name(failed, FAILURES, "tell", "failed")
        outcome = Outcome.PRUNED if pruned else Outcome(failed or Outcome.OK)
        metrics = self._metrics(value) if outcome is Outcome.OK else {}
        finished = self._judged(trial.number, running.values, outcome, metrics)
        if self._folder is not None:
            self._store(self._folder, finished, running)
        end = TrialEnd(outcome, finished.values, finished.violations)
        self._trials.tell(trial.number, end)
        self._finished[trial.number] = finished
        del self._running[trial.number]
        return finished

    def put_back(self, trial: Trial) -> None:
        """Ends a trial that was cut off and says nothing; its configuration comes again next."""
        running = self._of(trial)
        self._trials.put_back(trial.number, running.values)
        del self._running[trial.number]

    def report(self, number: int, value: float, step: int | None = None) -> None:
        """Takes an intermediate value of a running trial; see `Trial.report`."""
        if number not in self._running:
            raise InputError("report", why=f"trial {number} does not run")
        reports = self._running[number].reports
        if step is None:
            step = max(reports, default=0) + 1
        if isinstance(step, bool) or not isinstance(step, int) or step < 0:
            raise InputError("report", "step", found=step, allowed="a whole number, at least 0")
        reported = finite_number(value, "report", "value")
        self._searcher.report(number, step, reported)
        reports[step] = reported

    def should_prune(self, number: int) -> bool:
        """Whether a running trial should end here; see `Trial.should_prune`."""
        return number in self._running and self._searcher.should_prune(number)

    @property
    def trials(self) -> tuple[FinishedTrial, ...]:
        """The trials that ended, in order of their numbers, but for those put back."""
        return tuple(self._finished[number] for number in sorted(self._finished))

    @property
    def best(self) -> FinishedTrial | None:
        """The trial with the best value of those that break no constraint; None without any.

        Raises InputError for a search with several objectives, which has a front.
        """
        if len(self._arguments.directions) > 1:
            raise InputError("Search.best", why="several objectives have no best trial but a front")
        return self.front[0] if self.front else None

    @property
    def front(self) -> tuple[FinishedTrial, ...]:
        """The trials that break no constraint and that no other such trial beats."""
        eligible = [trial for trial in self.trials if trial.eligible]
        points = [trial.values for trial in eligible if trial.values is not None]
        upwards = [way is Direction.MAXIMIZE for way in self._arguments.directions]
        return tuple(eligible[index] for index in front(points, upwards)) if points else ()

    def close(self) -> None:
        """Closes the folder and lets the next process in. May be called more than once."""
        self._closed = True
        if self._folder is not None:
            self._folder.close()

    def __enter__(self) -> Search:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _of(self, trial: Trial) -> _Running:
        self._refuse_closed()
        allowed = "what ask gave"
        if not isinstance(trial, Trial) or trial._search is not self:
            why = "is no trial of this search"
            raise InputError("trial", found=trial, why=why, allowed=allowed)
        running = self._running.get(trial.number)
        if running is None:
            raise InputError("trial", found=trial.number, why="does not run", allowed=allowed)
        return running

    def _refuse_closed(self) -> None:
        """A closed folder may be another process's by now."""
        if self._closed and self._folder is not None:
            raise InputError("Search", why="is closed", allowed="another Search of the same folder")

    def _metrics(self, value: object) -> dict[str, float]:
        names = self._arguments.objectives
        if not isinstance(value, Mapping):
            if len(names) > 1:
                allowed = f"a mapping with {', '.join(names)}"
                raise InputError("tell", "value", found=value, allowed=allowed)
            value = {next(iter(names)): value}
        metrics = {str(n): finite_number(number, "tell", str(n)) for n, number in value.items()}
        for name in names:
            if name not in metrics:
                raise InputError("tell", name, why="missing", nearest=nearest_name(name, metrics))
        for constraint in self._arguments.of_kind(ConstraintKind.OUTCOME):
            missing = sorted(constraint.metric_names - metrics.keys())
            if missing:
                why = f"missing, and a constraint names it: {constraint.text}"
                raise InputError("tell", missing[0], why=why)
        return metrics

    def _judged(
        self,
        number: int,
        values: Mapping[str, OptionValue],
        outcome: Outcome,
        metrics: Mapping[str, float],
    ) -> FinishedTrial:
        """A trial that ended, with what it breaks of the constraints."""
        options = self._arguments.options(values)
        if outcome is not Outcome.OK:
            return FinishedTrial(number, options, outcome, None, metrics, {})
        # A stored trial may break a constraint on parameters that is new.
        violations = dict(self._arguments.broken(values))
        for constraint in self._arguments.of_kind(ConstraintKind.OUTCOME):
            if not constraint.metric_names <= metrics.keys():
                continue  # a new one, on what was not told of a stored trial
            known = self._arguments.known(values)
            violations[constraint.text] = constraint.violation({**known, **metrics})
        objectives = tuple(metrics[name] for name in self._arguments.objectives)
        return FinishedTrial(number, options, outcome, objectives, metrics, violations)

    def _restore(self) -> None:
        """Takes over what is stored, by today's constraints, and ends what a kill left running."""
        rows = [] if self._folder is None else self._folder.measurements.all()
        stored = {row.trial: row for row in rows if row.trial is not None}
        names = {parameter.name for parameter in self._arguments.space.parameters}
        ends: dict[int, TrialEnd] = {}
        reports: dict[int, dict[int, float]] = {}
        for number, row in stored.items():
            run, options = row.measurement, row.config.options
            values = {name: value for name, value in options.items() if name in names}
            trial = self._judged(number, values, run.outcome, dict(run.reported))
            ends[number] = TrialEnd(trial.outcome, trial.values, trial.violations)
            reports[number] = {
                each.step: value for each in run.intermediate for value in each.metrics.values()
            }
            self._finished[number] = trial
        ran = {number: row.config.options for number, row in stored.items()}
        start, accepts = self._arguments.start, self._arguments.refusal
        self._trials.restore(ends, ran, reports, start, accepts)

    def _store(self, folder: StudyFolder, trial: FinishedTrial, running: _Running) -> None:
        """Keep what was told of a trial as the measurement of a run."""
        config = Config(trial.parameters, f"#{trial.number}")
        objective = next(iter(self._arguments.objectives))
        elapsed_s = time.monotonic() - running.started_s
        measurement = Measurement(
            outcome=trial.outcome,
            engine=EngineIdentity(ENGINE),
            options=config.engine_options(),
            workload=WORKLOAD,
            seed=0,
            started_unix_s=time.time() - elapsed_s,
            elapsed_s=elapsed_s,
            reported=trial.metrics,
            intermediate=tuple(
                IntermediateReport(step, {objective: value})
                for step, value in running.reports.items()
            ),
        )
        run = StoredMeasurement(0, Role.TRIAL, trial.number, None, config, measurement, elapsed_s)
        folder.measurements.insert(run)


@dataclass
class _Running:
    """A trial between ask and tell."""

    values: Mapping[str, OptionValue]
    reports: dict[int, float] = field(default_factory=dict)
    started_s: float = field(default_factory=time.monotonic)
