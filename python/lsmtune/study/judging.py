"""Which trial may be the best, how sure that is, and which run would teach most: pure functions.

All numbers are logarithms of the goal's number, turned so that higher is better. A trial's *mean*
is that of its runs that count, its *posterior* what is to be believed of it: the runs of a trial
scatter around its true value with the standard deviation of a run, and the true values of trials
scatter around their median, so that the best of many single runs is mostly a lucky one. Both taken
as normal, the posterior is the mean drawn towards the median, the more the fewer runs there are
(empirical Bayes: C. Stein 1956; B. Efron, C. Morris, JASA 68, 1973; C. N. Morris, JASA 78, 1983).
The best trial is the one with the best posterior, not the one with the luckiest run.

A run that repeats a trial is worth its *knowledge gradient*: by how much the best posterior is
expected to rise because of it (P. Frazier, W. Powell, S. Dayanik, "A knowledge-gradient policy for
sequential information collection", SIAM J. Control Optim. 47, 2008). The first run of a new trial
is worth the same, with what those tried so far make one believe of it. A trial is repeated while
that gains more than going on, and while it may still be on either side of the best.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from types import MappingProxyType

import scipy
from optuna.trial import TrialState

from lsmtune.experiment.store import OF_BASELINE, Role, StoredMeasurement
from lsmtune.model.config import Config
from lsmtune.model.goal import Direction, Goal
from lsmtune.model.measurement import Outcome
from lsmtune.search.in_memory_study import TrialJudgement, ValueNoise
from lsmtune.study.drift import ANCHOR_SHARE_MAX, Drift, drift_of
from lsmtune.study.stored import Round, TrialRounds, anchor_rounds
from lsmtune.study.trials import TrialEnd

# What the noise of a run is taken for before anything is known, and how many degrees of freedom
# that guess is worth: 5 %, which a quiet machine keeps below and a shared one soon exceeds.
PRIOR_LOG_SD = 0.05
PRIOR_FREEDOM = 1
# A trial that is better than the best with a probability outside of this band is decided.
UNDECIDED = (0.05, 0.95)


@dataclass(frozen=True)
class Standing:
    """A trial in the race: the mean of its `runs` that count, and how often it was `tried`.

    `log_odds` is the logarithm of the probability that its guards hold in a proof: a gain that
    breaks one is none.
    """

    mean: float
    runs: int
    tried: int
    log_odds: float = 0.0


@dataclass(frozen=True)
class Belief:
    """What is believed of a trial's true value: a normal distribution."""

    mean: float
    variance: float


def run_log_sd(groups: Sequence[Sequence[float]]) -> float:
    """The standard deviation of a run: pooled over `groups` of runs of one thing in one state.

    Together with a guess (`PRIOR_LOG_SD`) that counts as one degree of freedom, since at the
    beginning there are few runs: the mean of a scaled inverse chi-squared posterior without its
    correction (A. Gelman and others, "Bayesian Data Analysis", 3rd edition, section 2.6).
    """
    squares, freedom = PRIOR_FREEDOM * PRIOR_LOG_SD**2, float(PRIOR_FREEDOM)
    for group in groups:
        middle = fmean(group)
        squares += sum((value - middle) ** 2 for value in group)
        freedom += len(group) - 1
    return math.sqrt(squares / freedom)


def spread_variance(standings: Sequence[Standing], run_variance: float) -> float:
    """The variance of the true values of trials around their median; 0 where they are all alike.

    From the better half alone: how far bad configurations fall behind says nothing of how far
    apart good ones are. The mean square of deviations, less what noise adds to it, but at least its
    standard error: that noise explains everything is not known from a few trials, and an estimate
    of 0 would end the race (Y. Chung and others, "A nondegenerate penalized likelihood estimator
    for variance parameters in multilevel models", Psychometrika 78, 2013, is as far from 0).
    """
    middle = median(standing.mean for standing in standings)
    better = [standing for standing in standings if standing.mean > middle]
    if not better:
        return 0.0
    noise = fmean(run_variance / standing.runs for standing in better)
    scatter = fmean((standing.mean - middle) ** 2 for standing in better)
    # A mean of m squares of normal values of this variance has this standard deviation.
    return max(scatter - noise, noise * math.sqrt(2.0 / len(better)))


class Race:
    """The trials that may be the best, by number, seen with the noise of a run."""

    def __init__(self, standings: Mapping[int, Standing], log_sd: float) -> None:
        """`standings` in rising order of numbers; `log_sd` is the standard deviation of a run."""
        self._standings = dict(standings)
        self._run_variance = log_sd**2
        self._middle, self._spread = 0.0, 0.0
        if self._standings:
            known = list(self._standings.values())
            self._middle = median(standing.mean for standing in known)
            self._spread = spread_variance(known, self._run_variance)
        self.beliefs: dict[int, Belief] = {}
        for number, standing in self._standings.items():
            if len(self._standings) == 1:
                belief = Belief(standing.mean, self._run_variance / standing.runs)
            elif self._spread == 0.0:
                belief = Belief(self._middle, 0.0)
            else:
                precision = 1.0 / self._spread + standing.runs / self._run_variance
                weight = standing.runs / self._run_variance / precision
                mean = self._middle + weight * (standing.mean - self._middle)
                belief = Belief(mean, 1.0 / precision)
            self.beliefs[number] = belief

    def ranked(self) -> list[int]:
        """By their posterior, the best first; equals by their mean, and then the earliest."""
        return sorted(self._standings, key=self._rank, reverse=True)

    def best(self) -> int | None:
        """The first of them; None where there is none."""
        return max(self._standings, key=self._rank, default=None)

    def _rank(self, number: int) -> tuple[float, float, int]:
        standing = self._standings[number]
        return self._worth(number), standing.mean + standing.log_odds, -number

    def _worth(self, number: int) -> float:
        """What is believed of a trial, times the odds that its guards hold in a proof."""
        return self.beliefs[number].mean + self._standings[number].log_odds

    def repeat(self, runs_max: int) -> int | None:
        """The trial of which another run gains most; None where a new trial gains more.

        A trial has at most `runs_max` runs that count, the best one twice as many, because every
        other one is compared with it. With `runs_max` 1 none is repeated.
        """
        best = self.best()
        if best is None or runs_max < 2 or len(self._standings) < 2 or self._spread == 0.0:
            return None
        second = max((n for n in self._standings if n != best), key=self._rank)
        # What a new trial gains: one that is drawn like those so far.
        gain_most = max(0.0, self._gain(self._middle - self.beliefs[best].mean, self._spread))
        wanted = None
        for number, standing in self._standings.items():
            limit = 2 * runs_max if number == best else runs_max
            if standing.runs >= limit or standing.tried > limit:
                continue
            other = second if number == best else best
            own, rival = self.beliefs[number], self.beliefs[other]
            lead = self._worth(number) - self._worth(other)
            deviation = math.sqrt(own.variance + rival.variance)
            low, high = UNDECIDED
            if low <= float(scipy.special.ndtr(lead / deviation)) <= high:
                gain = self._gain(-abs(lead), own.variance)
                if gain > gain_most:
                    gain_most, wanted = gain, number
        return wanted

    def _gain(self, lead: float, variance: float) -> float:
        """The knowledge gradient of one run of a trial that leads by `lead`, mostly below 0.

        It moves the mean of a belief of `variance`; the gain is the mean of max(0, x) for that
        normal x.
        """
        deviation = variance / math.sqrt(variance + self._run_variance)
        z = lead / deviation
        density = math.exp(-z * z / 2.0) / math.sqrt(2.0 * math.pi)
        return deviation * (z * float(scipy.special.ndtr(z)) + density)


# --- What the trials of a study are worth, by all of its rows.
#
# A trial's value is the geometric mean of its rounds, each seen relative to the anchors of its own
# time (`study.drift`). Rounds that ran while the machine changed count only where there are no
# others. A trial of which one round failed has failed. The best one is chosen by what is to be
# believed of each (`study.judging`).
#
# Pure functions of rounds: a study that goes on, one that never stopped, and a report agree.


@dataclass(frozen=True)
class JudgedTrial:
    """A trial as it is seen now.

    It began in row `first` of the store. `end` has its values, for which `runs` of its `tried`
    rounds count. `unplaced`: all of them ran while the machine changed, and the trial is to be run
    again. `reports` is what a pruner was told, at the speed that the machine had in the beginning;
    `reached` what a run came to that its deadline ended, likewise. `log_odds` is the mean of those
    of its rounds.
    """

    number: int
    config: Config
    first: int
    end: TrialEnd
    runs: int
    tried: int
    unplaced: bool
    wall_s: float
    run_s: float
    reports: Mapping[int, float]
    reached: float | None = None
    log_odds: float = 0.0


class Judgement:
    """All trials by number, what is known of the machine, and the race for the best.

    `log_sd` is the standard deviation of the logarithm of the goal's number from run to run.
    `promoted` has the goal's number of trials that hold at a larger size (`study.promotion`).
    """

    def __init__(
        self,
        trials: Mapping[int, JudgedTrial],
        drift: Drift,
        log_sd: float,
        goal: Goal,
        promoted: Mapping[int, float],
    ) -> None:
        self.trials = dict(sorted(trials.items()))
        self.drift = drift
        self.log_sd = log_sd
        self._goal = goal
        self._promoted = promoted
        numbers = {trial.number: self.value(trial) for trial in self.trials.values()}
        self._numbers = {n: value for n, value in numbers.items() if value is not None}
        self._sign = 1 if goal.direction is Direction.MAXIMIZE else -1
        self._in_logs = all(value > 0 for value in self._numbers.values())
        standings = {}
        for number, value in self._numbers.items() if self._in_logs else ():
            trial = self.trials[number]
            standings[number] = Standing(
                self._sign * math.log(value), trial.runs, trial.tried, trial.log_odds
            )
        self._race = Race(standings, log_sd)

    def value(self, trial: JudgedTrial) -> float | None:
        """The goal's number of a trial that may be the best, else None."""
        end = trial.end
        number = None if end.values is None else self._goal.number(end.values)
        return number if end.eligible and number is not None and math.isfinite(number) else None

    @property
    def best(self) -> int | None:
        """The number of the best trial: by its posterior, see `study.judging`.

        By its value where some values are not above zero and have no logarithm. Of trials that hold
        at a larger size the best there, whatever a small one says.
        """
        return next(iter(self._by_value(self._promoted) or self.ranked()), None)

    def ranked(self) -> list[int]:
        """The trials that may be the best, by the search alone, from the best on."""
        return self._race.ranked() if self._in_logs else self._by_value(self._numbers)

    def _by_value(self, values: Mapping[int, float]) -> list[int]:
        def rank(number: int) -> tuple[float, int]:
            value = self._sign * values[number]
            if self._in_logs and values[number] > 0:
                value = self._sign * math.log(values[number]) + self.trials[number].log_odds
            return value, -number

        return sorted(values, key=rank, reverse=True)

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
        judgements = {}
        for trial in self.trials.values():
            values, noise = trial.end.values, None
            if not self._goal.several and values is not None and values[0] > 0:
                # To first order, the standard deviation of a value is that of its logarithm,
                # times it.
                variance = values[0] ** 2 * self.log_sd**2 / trial.runs
                noise = ValueNoise(variance, trial.runs, trial.wall_s, trial.run_s)
            state, reports = trial.end.state, trial.reports
            if trial.reached is not None:
                # Too slow for its deadline is no failure of another kind: how slow is known.
                state = TrialState.PRUNED
                reports = {**reports, max(reports, default=0) + 1: trial.reached}
            judgements[trial.number] = TrialJudgement(
                state, values, trial.end.violations, reports, noise
            )
        return judgements


def judge(
    trials: Iterable[TrialRounds],
    anchors: Sequence[Round],
    goal: Goal,
    promoted: Mapping[int, float] = MappingProxyType({}),
) -> Judgement:
    """What `trials` are worth by all that is stored; `anchors` in the order of their rows.

    `promoted` is that of a Judgement.
    """
    ended, drift = list(trials), drift_of(anchors)
    judged = {trial.number: _judged(trial, drift) for trial in ended}
    # Runs of one thing in one state of the machine: anchors by segment, and rounds of a trial.
    groups: dict[tuple[int, ...], list[Round]] = {}
    for anchor in anchors:
        segment = drift.segment_of(anchor.first)
        if segment is not None:
            groups.setdefault(segment, []).append(anchor)
    alike = [*groups.values(), *(_placed(trial.rounds, drift) for trial in ended)]
    logs = [_logs(rounds, drift, goal) for rounds in alike]
    log_sd = run_log_sd([group for group in logs if len(group) > 1])
    return Judgement(judged, drift, log_sd, goal, promoted)


def _judged(trial: TrialRounds, drift: Drift) -> JudgedTrial:
    first = trial.rounds[0]
    cut_off = next((r for r in trial.rounds if r.outcome is not Outcome.OK), None)
    failed = None if cut_off is None else cut_off.outcome
    reached = None if cut_off is None else cut_off.reached
    placed = [] if failed is not None else _placed(trial.rounds, drift)
    counted = placed or trial.rounds
    if failed is not None:
        end = TrialEnd(failed)
    else:
        values = [drift.judged(r.values, r.first) for r in counted if r.values is not None]
        end = TrialEnd(
            Outcome.OK,
            tuple(_mean(column) for column in zip(*values, strict=True)),
            _mean_violations([r.violations for r in counted]),
            2 * sum(r.pickable for r in counted) > len(counted),
        )
    factor = drift.factor(first.first)
    return JudgedTrial(
        number=trial.number,
        config=trial.config,
        first=first.first,
        end=end,
        runs=len(counted),
        tried=len(trial.rounds),
        unplaced=failed is None and not placed,
        wall_s=first.wall_s,
        run_s=first.run_s,
        reports={step: value * factor for step, value in trial.reports.items()},
        reached=None if reached is None else reached * factor,
        log_odds=fmean(each.log_odds for each in counted),
    )


def _mean_violations(rounds: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Of the constraints that every round tells; a guard needs a metric that not all observe."""
    known = set.intersection(*(set(violations) for violations in rounds))
    return {text: fmean(r[text] for r in rounds) for text in rounds[0] if text in known}


def _placed(rounds: Sequence[Round], drift: Drift) -> list[Round]:
    """Those of which it is known how fast the machine was."""
    return [r for r in rounds if drift.segment_of(r.first) is not None]


def _mean(values: Sequence[float]) -> float:
    """The geometric mean; the arithmetic one where some value is not above zero."""
    if len(values) == 1:
        return values[0]
    if all(value > 0 for value in values):
        return math.exp(fmean(math.log(value) for value in values))
    return fmean(values)


def _logs(rounds: Sequence[Round], drift: Drift, goal: Goal) -> list[float]:
    """The logarithms of the goal's number, judged, of those rounds that have one."""
    judged = [drift.judged(r.values, r.first) for r in rounds if r.values is not None]
    numbers = [goal.number(values) for values in judged]
    return [math.log(number) for number in numbers if number is not None and number > 0]


class Observations:
    """The rounds of all trials and anchors, and the Judgement that follows from them."""

    def __init__(self, goal: Goal) -> None:
        self._goal = goal
        self._trials: dict[int, TrialRounds] = {}
        self._anchors: list[Round] = []
        self._promoted: Mapping[int, float] = {}
        self._anchors_s = 0.0
        self._last_attempt = 0
        self._judgement: Judgement | None = None

    @property
    def judgement(self) -> Judgement:
        """What everything that was seen so far comes to."""
        if self._judgement is None:
            known = (self._trials.values(), self._anchors)
            self._judgement = judge(*known, self._goal, self._promoted)
        return self._judgement

    @property
    def trials(self) -> Mapping[int, TrialRounds]:
        """The trials that ended, by number."""
        return self._trials

    def add_trial(self, trial: TrialRounds) -> None:
        """A trial ended, or was run again: all of its rounds."""
        self._trials[trial.number] = trial
        self._judgement = None

    def add_round(self, number: int, repeated: Round) -> None:
        """A trial was run again: one more round of it."""
        trial = self._trials[number]
        self.add_trial(replace(trial, rounds=(*trial.rounds, repeated)))

    def set_anchors(self, rows: Sequence[StoredMeasurement]) -> None:
        """The whole series of anchors, and how often and how long the baseline ran, by `rows`."""
        self._anchors = anchor_rounds(rows, self._goal)
        self._last_attempt = max((row.id for row in rows if row.role in OF_BASELINE), default=0)
        self._anchors_s = sum(row.wall_s for row in rows if row.role is Role.ANCHOR)
        self._judgement = None

    def promote(self, values: Mapping[int, float]) -> None:
        """The goal's number of trials that hold at a larger size; of the latest round alone."""
        self._promoted = values
        self._judgement = None

    def anchor_due(self, every: int, next_s: float) -> bool:
        """Whether an anchor is to be run now: after `every` trials since the last attempt.

        Later where anchors would take too large a share of the search's time with another one of
        `next_s` seconds.
        """
        since = sum(t.rounds[0].first > self._last_attempt for t in self._trials.values())
        if every == 0 or since < every:
            return False
        trials_s = sum(r.wall_s for t in self._trials.values() for r in t.rounds)
        with_next_s = self._anchors_s + next_s
        return with_next_s <= ANCHOR_SHARE_MAX * (trials_s + with_next_s)
