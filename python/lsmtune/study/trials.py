"""The runs of a study's trials, and what of them is on the disk."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from lsmtune.driver.messages import IntervalPassed, Message, PhaseStarted
from lsmtune.engines.scaling import scaled, scaling_options
from lsmtune.errors import LsmtuneError
from lsmtune.experiment.files import explained
from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.measurer import Measurer
from lsmtune.experiment.schedule import Arm, Slot, Stream, derive_seed
from lsmtune.experiment.store import Role
from lsmtune.model.config import OptionValue
from lsmtune.model.measurement import IntermediateReport, Outcome
from lsmtune.search.in_memory_study import with_violations
from lsmtune.search.sampler import PROMISE, Accepts, suggestion_of
from lsmtune.search.searcher import OUTCOME, PUT_BACK, Searcher
from lsmtune.space.space import Space
from lsmtune.study.spec import DataRungs, Spec, TimeRungs
from lsmtune.study.stored import TimeReports, TrialRuns, rung_workloads

# --- The runs of one trial: smaller ones, then one per workload; ended early where it is pruned.

# Takes a step, a value, and whether it is the first of a run, which may be one that is tried anew;
# whether the pruner wants the trial to end.
Report = Callable[[int, float, bool], bool]


def run_trial(
    spec: Spec,
    measurer: Measurer,
    arm: Arm,
    report: Report,
    number: int,
    index: int,
    deadline_s: float,
    until_s: float,
) -> TrialRuns | None:
    """All runs of trial `number`, the `index`th of its study; None when it was interrupted.

    `deadline_s` and `until_s` are those of `Measurer.measure`. The pruner is asked at every rung,
    by `report`: a trial that it ends between two sizes has only runs of rungs. Smaller runs have
    configuration and memory at the scale of their data; what is stored as the trial's is the whole
    configuration.
    """
    trial, seed = TrialRuns(number), derive_seed(spec.seed, Stream.TRIAL, number)
    rungs = None if spec.pruner is None else spec.pruner.rungs
    metric = spec.objective.metric
    prune = None
    if isinstance(rungs, TimeRungs):
        judges = rungs.judge(arm.config.options)
        prune = partial(watching, report, rungs, metric, judges=judges)
    if isinstance(rungs, DataRungs):
        stated_s = rungs.deadlines_s or (deadline_s,) * len(rungs.num)
        deadlines_s = [min(deadline_s, each_s) for each_s in stated_s]
        workloads = [rung_workloads(rungs, each.workload) for each in spec.workloads]
        threads = max(phase.threads for each in spec.workloads for phase in each.workload.phases)
        scales = bool(scaling_options(spec.engine_name))
        for rung in range(len(rungs.num) - 1):
            slot = Slot(Role.RUNG, index, trial=number, rung=rung)
            scale = rungs.num[rung] / rungs.num[-1]
            options = scaled(spec.engine_name, arm.config.options, scale, arm.engine.version)
            memory_bytes = rungs.memory_bytes(rung, spec.limits.memory_bytes, threads)
            runs = measurer.measure_workloads(
                arm,
                seed,
                slot,
                deadline_s=deadlines_s[rung],
                until_s=until_s,
                workloads=[smaller[rung] for smaller in workloads],
                config=replace(arm.config, options=options),
                memory_bytes=memory_bytes if scales else None,
            )
            if runs is None:
                return None
            trial.rungs[rung] = runs
            value = spec.goal.value([run.measurement for run in runs])
            if value is None or report(rungs.step(rung), value, False):
                return trial
        deadline_s = deadlines_s[-1]
    slot = Slot(Role.TRIAL, index, trial=number)
    runs = measurer.measure_workloads(
        arm, seed, slot, deadline_s=deadline_s, until_s=until_s, prune=prune
    )
    if runs is None:
        return None
    trial.runs += runs
    return trial


def watching(
    report: Report, rungs: TimeRungs, metric: str, *, judges: bool = True
) -> Callable[[Message], bool]:
    """Follows one try of a run: asked at each message, says whether the pruner wants it to end.

    `judges` says whether the rungs are of use for its options.
    """
    reports: TimeReports | None = None  # while the phase of the rungs lasts
    first = True

    def is_to_end(message: Message) -> bool:
        nonlocal reports, first
        due: tuple[int, float] | None = None
        if isinstance(message, IntermediateReport) and metric in message.metrics:
            due = message.step, message.metrics[metric]
        elif isinstance(message, PhaseStarted):
            reports = TimeReports(rungs) if judges and message.name == rungs.phase else None
        elif isinstance(message, IntervalPassed) and reports is not None:
            due = reports.take(message.interval())
        if due is None:
            return False
        begins, first = first, False
        return report(*due, begins)

    return is_to_end


# --- Trials: proposed by the Searcher, kept on the disk, put back when they were cut off.
#
# The Searcher works in memory; the disk has one transaction when a trial begins, with all that the
# sampler chose, and one when it ends. The order of commits lets a kill at any moment neither lose a
# completed trial nor count it twice: its measurements are stored first, under the trial's number,
# and then the trial is told. What a kill can leave is a running trial, with some or all of its
# measurements; `Trials.restore` finishes or puts back each of them.

RETRY_OF = "retry_of"
START = "start"
BY_HAND = "by_hand"
ASKED = "asked"  # what a trial with a promise was proposed for
_ABSENT = object()
# The largest of so many counts: a single one may be a whim of the model's fit.
_PROMISES = 3


@dataclass(frozen=True)
class TrialEnd:
    """How a trial ended: its outcome, and what is known of its objectives and constraints.

    `values` has one value per objective, and is None for a trial that failed or was pruned.
    `pickable`: it meets what the study wants of the configuration that it picks from a front.
    """

    outcome: Outcome
    values: tuple[float, ...] | None = None
    violations: Mapping[str, float] = field(default_factory=dict)
    pickable: bool = True

    @property
    def eligible(self) -> bool:
        """Whether it may be the best: it has values, and breaks nothing."""
        kept = all(violation <= 0 for violation in self.violations.values())
        return self.values is not None and kept and self.pickable

    @property
    def broken(self) -> tuple[str, ...]:
        """The constraints on outcomes that it broke."""
        return tuple(text for text, by in self.violations.items() if by > 0)

    @property
    def state(self) -> TrialState:
        """Optuna's word for it."""
        if self.outcome is Outcome.OK:
            return TrialState.COMPLETE
        return TrialState.PRUNED if self.outcome is Outcome.PRUNED else TrialState.FAIL


class Trials:
    """The trials of one study, in memory and, where it has a folder, on the disk.

    The disk keeps what was known of each when it ended; as it is judged later only the `searcher`
    sees it. `instead` is what to do in place of putting back a file of the folder that is not its
    own. `asked` is the same text for as long as the same sampler proposes under the same limits.
    """

    def __init__(
        self,
        folder: StudyFolder | None,
        space: Space,
        searcher: Searcher,
        instead: str = "use another folder (--dir DIR)",
        asked: str = "",
    ) -> None:
        self._folder = folder
        self._instead = instead
        self._asked = asked
        self._space = space
        self._searcher = searcher
        # Values to be tried before the sampler is asked, and why.
        self._queue: deque[tuple[Mapping[str, OptionValue], tuple[str, int]]] = deque()
        self._stored: dict[int, dict[str, Any]] = {}
        self._promises: list[float] = []

    def restore(
        self,
        ends: Mapping[int, TrialEnd | None],
        ran: Mapping[int, Mapping[str, OptionValue]],
        reports: Mapping[int, Mapping[int, float]],
        start: Sequence[Mapping[str, OptionValue]],
        accepts: Accepts,
    ) -> set[int]:
        """Bring disk and Searcher to the same state; the trials that ended and were not put back.

        By number: `ends` are the trials that have stored runs, None for those that lack some; `ran`
        the options they ran with; `reports` what a pruner was told of them, step to value. `start`
        are configurations of the space to try first; what was put back comes before them, unless
        today's constraints no longer let it run: `accepts` says why.

        Raises LsmtuneError when one of the two databases is not the one that belongs to the other.
        """
        trials = [] if self._folder is None else self._ended(self._folder, ends, ran)
        for trial in trials:
            trial.intermediate_values = dict(reports.get(trial.number, {}))
            end = ends.get(trial.number)
            # By the constraints of today alone: those of an earlier session may be gone.
            broken = end.violations if end else {}
            trial.system_attrs = with_violations(trial.system_attrs, broken)
        with nullcontext() if self._folder is None else explained(self._folder.path):
            self._searcher.restore(trials)
        # What was put back and not tried again, then what was never tried of `start`.
        retried = {trial.user_attrs.get(RETRY_OF) for trial in trials}
        for trial in trials:
            if trial.user_attrs.get(OUTCOME) == PUT_BACK and trial.number not in retried:
                values = suggestion_of(self._space, trial.params).values
                if not accepts(values):
                    self._queue.append((values, (RETRY_OF, trial.number)))
        # By values: a place in the list means another configuration once the list has changed.
        queued = [values for values, _ in self._queue]
        for index, values in enumerate(start):
            if not self._searcher.tried(values) and values not in queued:
                self._queue.append((values, (START, index)))
        # Another sampler, or under other limits, expects something else.
        promised = [trial for trial in trials if PROMISE in trial.system_attrs]
        promised = [t for t in promised if t.user_attrs.get(ASKED, self._asked) == self._asked]
        self._promises = [trial.system_attrs[PROMISE] for trial in promised]
        ended = (trial for trial in trials if trial.state.is_finished())
        return {trial.number for trial in ended if trial.user_attrs.get(OUTCOME) != PUT_BACK}

    def _ended(
        self,
        folder: StudyFolder,
        ends: Mapping[int, TrialEnd | None],
        ran: Mapping[int, Mapping[str, OptionValue]],
    ) -> list[FrozenTrial]:
        """The stored trials, after those that a kill left running were ended or put back."""
        trials = folder.trials()
        folder.refuse_strangers(trials, ends.keys(), self._instead)
        folder.refuse_changed(trials, ran, self._space)
        running = [trial for trial in trials if trial.state is TrialState.RUNNING]
        for trial in running:
            end = ends.get(trial.number)
            if end is None:
                folder.end_trial(trial.number, TrialState.FAIL, outcome=PUT_BACK)
            else:
                self._store_end(trial.number, end)
        return folder.trials() if running else trials

    def ask(self) -> tuple[int, Mapping[str, OptionValue]]:
        """Begin a trial, also on the disk: its number and its values. Raises as `Searcher.ask`."""
        proposal = self._searcher.ask(self._queue[0][0] if self._queue else None)
        trial = proposal.trial
        if self._queue:
            _, (key, value) = self._queue.popleft()
            trial.user_attrs = {**trial.user_attrs, key: value}
        if PROMISE in trial.system_attrs:
            trial.user_attrs = {**trial.user_attrs, ASKED: self._asked}
            self._promises.append(trial.system_attrs[PROMISE])
        if self._folder is not None:
            with explained(self._folder.path):
                number = self._folder.begin_trial(trial)
            if number != proposal.number:
                raise LsmtuneError(
                    f"{self._folder.path}: another program added trial {number} to study.db; "
                    f"put back the file, or {self._instead}"
                )
        self._stored[proposal.number] = dict(trial.system_attrs)
        return proposal.number, proposal.values

    def queue(self, points: Sequence[Mapping[str, OptionValue]]) -> None:
        """Try `points` before all else, in their order: somebody wants to know."""
        by_hand = [(values, (BY_HAND, index)) for index, values in enumerate(points)]
        self._queue.extendleft(reversed(by_hand))

    def promise(self) -> float | None:
        """What the sampler expects the next trial to gain, as a logarithm of the ratio to the best.

        The largest of its last `_PROMISES`; None before there are so many, and for samplers that
        say nothing of it.
        """
        return None if len(self._promises) < _PROMISES else max(self._promises[-_PROMISES:])

    def report(self, number: int, step: int, value: float, *, first: bool) -> bool:
        """Tell the pruner of a trial that runs; whether it is to be ended.

        `first`: it is the first value of its run; those before it are of one that was disturbed.
        """
        if first:
            self._searcher.begin_anew(number)
        self._searcher.report(number, step, value)
        return self._searcher.should_prune(number)

    def tell(self, number: int, end: TrialEnd) -> None:
        """Finish a trial of which the measurements are stored."""
        self._searcher.tell(number, end.state, end.values, end.violations)
        self._store_end(number, end, self._searcher.attributes(number))

    def put_back(self, number: int, values: Mapping[str, OptionValue]) -> None:
        """End a trial that was cut off, and try its values again first of all."""
        if self._folder is not None:
            self._folder.end_trial(number, TrialState.FAIL, outcome=PUT_BACK)
        self._searcher.put_back(number)
        self._queue.appendleft((values, (RETRY_OF, number)))

    def _store_end(
        self, number: int, end: TrialEnd, attributes: Mapping[str, Any] | None = None
    ) -> None:
        """Keep how a trial ended, and those of the sampler's and pruner's notes that are new."""
        stored = self._stored.pop(number, {})
        if self._folder is None:
            return
        new = {k: v for k, v in (attributes or {}).items() if stored.get(k, _ABSENT) != v}
        outcome = "" if end.state is TrialState.COMPLETE else end.outcome.value
        self._folder.end_trial(number, end.state, end.values, outcome=outcome, notes=new)
