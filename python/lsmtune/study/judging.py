"""What the trials of a study are worth, by all of its rows: the one way in which that is computed.

A trial's value is the geometric mean of its rounds, each seen relative to the anchors of its own
time (`study.drift`). Rounds that ran while the machine changed count only where there are no
others. A trial of which one round failed has failed. The best one is chosen by what is to be
believed of each (`study.racing`).

Pure functions of rounds: a study that goes on, one that never stopped, and a report agree.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from lsmtune.records.config import Config
from lsmtune.records.goal import Goal
from lsmtune.records.measurement import Outcome
from lsmtune.records.objective import Direction
from lsmtune.samplers import TrialJudgement, ValueNoise
from lsmtune.study.drift import Drift, drift_of
from lsmtune.study.racing import Race, Standing, run_log_sd
from lsmtune.study.stored import Round, TrialRounds
from lsmtune.study.trials import TrialEnd


@dataclass(frozen=True)
class JudgedTrial:
    """A trial as it is seen now.

    It began in row `first` of the store. `end` has its values, for which `runs` of its `tried`
    rounds count. `unplaced`: all of them ran while the machine changed, and the trial is to be run
    again. `reports` is what a pruner was told, at the speed that the machine had in the beginning.
    """

    number: int
    config: Config
    first: int
    end: TrialEnd
    runs: int
    tried: int
    unplaced: bool
    wall_s: float
    reports: Mapping[int, float]


class Judgement:
    """All trials by number, what is known of the machine, and the race for the best.

    `log_sd` is the standard deviation of the logarithm of the goal's number from run to run.
    """

    def __init__(
        self, trials: Mapping[int, JudgedTrial], drift: Drift, log_sd: float, goal: Goal
    ) -> None:
        self.trials = dict(sorted(trials.items()))
        self.drift = drift
        self.log_sd = log_sd
        self._goal = goal
        numbers = {trial.number: self.value(trial) for trial in self.trials.values()}
        self._numbers = {n: value for n, value in numbers.items() if value is not None}
        self._in_logs = all(value > 0 for value in self._numbers.values())
        self._race = Race(self._standings() if self._in_logs else {}, log_sd)

    def value(self, trial: JudgedTrial) -> float | None:
        """The goal's number of a trial that may be the best, else None."""
        end = trial.end
        number = None if end.values is None else self._goal.number(end.values)
        return number if end.eligible and number is not None and math.isfinite(number) else None

    @property
    def best(self) -> int | None:
        """The number of the best trial: by its posterior, see `study.racing`.

        By its value where some values are not above zero and have no logarithm.
        """
        if self._in_logs:
            return self._race.best()
        sign = self._sign
        return max(self._numbers, key=lambda n: (sign * self._numbers[n], -n), default=None)

    def next_repeat(self, runs_max: int) -> int | None:
        """The trial that is to be run again before a new one, if any.

        First those that cannot be placed, because the machine changed while they ran; then the one
        that may be the best and of which one more run would teach most.
        """
        for trial in self.trials.values():
            if trial.unplaced and trial.tried < 2 * runs_max + 1:
                return trial.number
        return self._race.repeat(runs_max)

    def unplaced(self) -> list[int]:
        """The trials whose rounds all ran while the machine changed."""
        return [trial.number for trial in self.trials.values() if trial.unplaced]

    def for_searcher(self) -> dict[int, TrialJudgement]:
        """All trials as samplers and pruners are to see them: means, and how sure these are."""
        return {
            trial.number: TrialJudgement(
                trial.end.state,
                trial.end.values,
                trial.end.violations,
                trial.reports,
                self._noise(trial),
            )
            for trial in self.trials.values()
        }

    def _noise(self, trial: JudgedTrial) -> ValueNoise | None:
        """Of the value of the only objective; None where that is not known."""
        if self._goal.several or trial.end.values is None or trial.end.values[0] <= 0:
            return None
        # To first order, the standard deviation of a value is that of its logarithm, times it.
        variance = trial.end.values[0] ** 2 * self.log_sd**2 / trial.runs
        return ValueNoise(variance, trial.runs)

    def _standings(self) -> dict[int, Standing]:
        found = {}
        for number, value in self._numbers.items():
            trial = self.trials[number]
            found[number] = Standing(self._sign * math.log(value), trial.runs, trial.tried)
        return found

    @property
    def _sign(self) -> int:
        return 1 if self._goal.direction is Direction.MAXIMIZE else -1


def judge(trials: Iterable[TrialRounds], anchors: Sequence[Round], goal: Goal) -> Judgement:
    """What `trials` are worth by all that is stored; `anchors` in the order of their rows."""
    found, drift = list(trials), drift_of(anchors)
    judged = {trial.number: _judged(trial, drift) for trial in found}
    groups = [_logs(rounds, drift, goal) for rounds in _alike(anchors, drift)]
    groups += [_logs(_placed(trial.rounds, drift), drift, goal) for trial in found]
    log_sd = run_log_sd([group for group in groups if len(group) > 1])
    return Judgement(judged, drift, log_sd, goal)


def _judged(trial: TrialRounds, drift: Drift) -> JudgedTrial:
    first, failed = trial.rounds[0], _failure(trial.rounds)
    factor = drift.factor(first.first)
    placed = [] if failed is not None else _placed(trial.rounds, drift)
    counted = placed or trial.rounds
    return JudgedTrial(
        number=trial.number,
        config=trial.config,
        first=first.first,
        end=TrialEnd(failed) if failed is not None else _end(counted, drift),
        runs=len(counted),
        tried=len(trial.rounds),
        unplaced=failed is None and not placed,
        wall_s=first.wall_s,
        reports={step: value * factor for step, value in trial.reports.items()},
    )


def _failure(rounds: Sequence[Round]) -> Outcome | None:
    return next((r.outcome for r in rounds if r.outcome is not Outcome.OK), None)


def _placed(rounds: Sequence[Round], drift: Drift) -> list[Round]:
    """Those of which it is known how fast the machine was."""
    return [r for r in rounds if drift.segment_of(r.first) is not None]


def _end(rounds: Sequence[Round], drift: Drift) -> TrialEnd:
    """The end of a trial of which all `rounds` ended well."""
    values = [drift.judged(r.values, r.first) for r in rounds if r.values is not None]
    return TrialEnd(
        Outcome.OK,
        tuple(_mean(column) for column in zip(*values, strict=True)),
        {text: fmean(r.violations[text] for r in rounds) for text in rounds[0].violations},
        2 * sum(r.pickable for r in rounds) > len(rounds),
    )


def _mean(values: Sequence[float]) -> float:
    """The geometric mean; the arithmetic one where some value is not above zero."""
    if len(values) == 1:
        return values[0]
    if all(value > 0 for value in values):
        return math.exp(fmean(math.log(value) for value in values))
    return fmean(values)


def _alike(anchors: Sequence[Round], drift: Drift) -> list[list[Round]]:
    """The anchors by segment: within one the machine was the same."""
    groups: dict[tuple[int, ...], list[Round]] = {}
    for anchor in anchors:
        segment = drift.segment_of(anchor.first)
        if segment is not None:
            groups.setdefault(segment, []).append(anchor)
    return list(groups.values())


def _logs(rounds: Sequence[Round], drift: Drift, goal: Goal) -> list[float]:
    """The logarithms of the goal's number, judged, of those rounds that have one."""
    found = []
    for each in rounds:
        if each.values is None:
            continue
        number = goal.number(drift.judged(each.values, each.first))
        if number is not None and number > 0:
            found.append(math.log(number))
    return found
