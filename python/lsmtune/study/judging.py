"""What the trials of a study are worth, by all of its rows.

A trial's value is the geometric mean of its rounds, each seen relative to the anchors of its own
time (`study.drift`). Rounds that ran while the machine changed count only where there are no
others. A trial of which one round failed has failed. The best one is chosen by what is to be
believed of each (`study.racing`).

Pure functions of rounds: a study that goes on, one that never stopped, and a report agree. One
that goes on judges anew what is new, or what another state of the machine changes: the time of a
trial does not grow with those before it, but for sums and comparisons of arrays.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import NormalDist, fmean
from types import MappingProxyType

from optuna.trial import TrialState

from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.model.goal import Direction, Goal
from lsmtune.model.measurement import Outcome
from lsmtune.model.metrics import RATES
from lsmtune.search.in_memory_study import TrialJudgement, ValueNoise
from lsmtune.study.drift import ANCHOR_SHARE_MAX, Change, Drift, Kept, drift_of
from lsmtune.study.racing import Race, Scatter, Standing, after_another, run_log_sd, scatter_of
from lsmtune.study.stored import Round, TrialRounds, anchor_rounds
from lsmtune.study.trials import TrialEnd

REJECTED = "<rejected>"  # the constraint that a trial broke which failed at the proof's size


@dataclass(frozen=True, kw_only=True)
class JudgedTrial(TrialRounds):
    """A trial as it is seen now.

    `end` has its values, for which `runs` of its rounds count. `unplaced`: all of them ran while
    the machine changed, and the trial is to be run again. At the speed that the machine had in the
    beginning, `reports` is what a pruner was told, and `reached` what a run came to that its
    deadline ended. `value` is the goal's number where it may be the best, and `standing` its place
    in the race, for a number above zero. `scatter` is that of its rounds.
    """

    end: TrialEnd
    runs: int
    unplaced: bool
    reached: float | None
    value: float | None
    standing: Standing | None
    scatter: Scatter


@dataclass(frozen=True)
class Promotion:
    """A round at a larger size: the goal's number of the baseline, and of each trial by `values`.

    None for a trial that failed there or broke a constraint. `believed` is what was to be believed
    of trials there before that round, of logarithms as those of `study.racing`.
    """

    baseline: float | None = None
    values: Mapping[int, float | None] = field(default_factory=dict)
    believed: Mapping[int, NormalDist] = field(default_factory=dict)

    def outdated(self) -> Promotion:
        """What it says once the search has gone on: of trials that failed there, that they did."""
        return Promotion(values={n: None for n, value in self.values.items() if value is None})


class Judgement:
    """All trials by number, what is known of the machine, and the race for the best.

    `log_sd` is the standard deviation of the logarithm of the goal's number from run to run.
    """

    def __init__(
        self,
        trials: Mapping[int, JudgedTrial],
        drift: Drift,
        log_sd: float,
        goal: Goal,
        promotion: Promotion,
    ) -> None:
        self.trials = dict(sorted(trials.items()))
        self.drift = drift
        self.log_sd = log_sd
        self._goal = goal
        self._promotion = promotion
        larger = promotion.values
        self.rejected = {n for n, value in larger.items() if value is None}
        self._values = {n: t.value for n, t in self.trials.items() if t.value is not None}
        # One that was promoted may break what is asked by now, or have failed when run again.
        self._promoted = {n: v for n, v in larger.items() if v is not None and n in self._values}
        self._sign = _sign(goal)
        standings = {n: t.standing for n, t in self.trials.items() if t.standing is not None}
        self._in_logs = len(standings) == len(self._values)
        self._race = Race(standings if self._in_logs else {}, log_sd)
        # What was rejected leads nobody any more.
        able = {n: each for n, each in standings.items() if n not in self.rejected}
        self._able = Race(able if self._in_logs else {}, log_sd) if self.rejected else self._race

    @cached_property
    def best(self) -> int | None:
        """The number of the best trial: by its posterior, see `study.racing`.

        By its value where some values are not above zero and have no logarithm. Of trials that hold
        at a larger size the best by that run and the search; none that was rejected there.
        """
        ranked = self._by_promotion() if self._promoted else self.ranked()
        return next((number for number in ranked if number not in self.rejected), None)

    @cached_property
    def best_trial(self) -> JudgedTrial | None:
        """The trial of that number."""
        return None if self.best is None else self.trials[self.best]

    @cached_property
    def counts(self) -> Counter[str]:
        """Trials by outcome."""
        return Counter(trial.end.outcome.value for trial in self.trials.values())

    @cached_property
    def broken(self) -> Counter[str]:
        """Trials that broke each constraint on outcomes, by its text."""
        return Counter(text for trial in self.trials.values() for text in trial.end.broken)

    @cached_property
    def walls_s(self) -> list[float]:
        """What each trial cost that ended well; others say nothing of how long one will take."""
        return [t.began.wall_s for t in self.trials.values() if t.end.outcome is Outcome.OK]

    @property
    def best_of_promotion(self) -> int | None:
        """The best of trials at a larger size by their runs there alone; None without any."""
        return next(iter(self._by_value(self._promoted)), None)

    def believed(
        self, expected: Mapping[int, NormalDist] = MappingProxyType({})
    ) -> dict[int, NormalDist]:
        """What the search makes one believe of the trials that may be the best.

        What its model has `expected` of each, where it has, in place of its own runs alone: what
        ran beside it says something of it, too. Empty where numbers have no logarithm.
        """
        if not self._in_logs:
            return {}
        believed = self._race.believed()
        return {n: expected[n] for n in believed if n in expected} if expected else believed

    def ranked(self, believed: Mapping[int, NormalDist] = MappingProxyType({})) -> list[int]:
        """The trials that may be the best, from the best on: by what is `believed`, or the race."""
        if not self._in_logs:
            return self._by_value(self._values)
        if not believed:
            return self._race.ranked()

        def worth(number: int) -> float:
            known = believed.get(number)
            return -math.inf if known is None else known.mean + self._log_odds(number)

        return sorted(self._race.ranked(), key=worth, reverse=True)

    def _by_promotion(self) -> list[int]:
        """The trials that hold at a larger size, from the best on.

        One run there is as noisy as one of the search: both count. By that run alone where nothing
        was believed before.
        """
        known, promoted = self._promotion.believed, self._promoted
        if not (self._in_logs and promoted.keys() <= known.keys() and min(promoted.values()) > 0):
            return self._by_value(promoted)
        runs = {n: self._sign * math.log(value) for n, value in promoted.items()}
        worths = after_another({n: known[n] for n in runs}, runs, self.log_sd**2)
        return sorted(worths, key=lambda n: (worths[n] + self._log_odds(n), -n), reverse=True)

    def _log_odds(self, number: int) -> float:
        """The logarithm of the probability that a trial's guards hold in a proof."""
        standing = self.trials[number].standing
        return 0.0 if standing is None else standing.log_odds

    def _by_value(self, values: Mapping[int, float]) -> list[int]:
        # At a larger size one may be zero, where none was in the search.
        in_logs = self._in_logs and all(value > 0 for value in values.values())

        def rank(number: int) -> tuple[float, int]:
            value = self._sign * values[number]
            if in_logs:
                value = self._sign * math.log(values[number]) + self._log_odds(number)
            return value, -number

        return sorted(values, key=rank, reverse=True)

    def around(self, change: Change) -> tuple[list[JudgedTrial], ...]:
        """The trials on its host that began before `change`, while it came about, and after it."""
        here = [trial for trial in self.trials.values() if trial.began.host == change.host]
        return (
            [trial for trial in here if trial.began.first < change.before],
            [trial for trial in here if change.before < trial.began.first < change.after],
            [trial for trial in here if trial.began.first > change.after],
        )

    def next_repeat(self, runs_max: int) -> int | None:
        """The trial that is to be run again before a new one, if any.

        First those that cannot be placed, because the machine changed while they ran; then the one
        that may be the best and of which one more run would teach most.
        """
        for trial in self.trials.values():
            if trial.unplaced and len(trial.rounds) < 2 * runs_max + 1:
                return trial.number
        return self._able.repeat(runs_max)

    @property
    def rounded_log_sd(self) -> float:
        """`log_sd` in two digits: samplers read all trials anew when it changes."""
        return float(f"{self.log_sd:.2g}")

    def for_searcher(self, number: int) -> TrialJudgement:
        """A trial as samplers and pruners are to see it: a mean, and how sure that is."""
        trial = self.trials[number]
        values, noise = trial.end.values, None
        if not self._goal.several and values is not None and values[0] > 0:
            # To first order, the standard deviation of a value is that of its logarithm, times it.
            variance = values[0] ** 2 * self.rounded_log_sd**2 / trial.runs
            began = trial.began
            noise = ValueNoise(variance, trial.runs, began.wall_s, began.run_s)
        state, reports = trial.end.state, trial.reports
        last = reports.get(max(reports, default=0))
        if state is TrialState.PRUNED and last == 0.0 and self._goal.objectives[0].metric in RATES:
            # It did nothing until it was ended: that is no rate, and would leave no logarithms.
            state = TrialState.FAIL
        if trial.reached is not None:
            # Too slow for its deadline is no failure of another kind: how slow is known.
            state = TrialState.PRUNED
            reports = {**reports, max(reports, default=0) + 1: trial.reached}
        broken = dict(trial.end.violations)
        if number in self.rejected:
            broken[REJECTED] = 1.0
        return TrialJudgement(state, values, broken, reports, noise)


def judge(
    trials: Iterable[TrialRounds],
    anchors: Sequence[Round],
    goal: Goal,
    promotion: Promotion | None = None,
) -> Judgement:
    """What `trials` are worth by all that is stored; `anchors` in the order of their rows."""
    observations = Observations(goal)
    observations.use_anchors(anchors)
    for trial in trials:
        observations.add_trial(trial)
    observations.promote(promotion or Promotion())
    return observations.judgement


def _sign(goal: Goal) -> int:
    return 1 if goal.direction is Direction.MAXIMIZE else -1


def _judged(trial: TrialRounds, drift: Drift, goal: Goal) -> JudgedTrial:
    failed = next((r for r in trial.rounds if r.outcome is not Outcome.OK), None)
    # Those of which it is known how fast the machine was.
    placed = [r for r in trial.rounds if drift.segment_of(r.first, r.host) is not None]
    counted = placed if placed and failed is None else trial.rounds
    number: float | None = None
    reached: float | None = None
    if failed is not None:
        end = TrialEnd(failed.outcome)
        if failed.reached is not None:
            reached = failed.reached * drift.factor(failed.first, failed.host)
    else:
        values = [drift.judged(r.values, r.first, r.host) for r in counted if r.values is not None]
        end = TrialEnd(
            Outcome.OK,
            tuple(_mean(column) for column in zip(*values, strict=True)),
            _mean_violations([r.violations for r in counted]),
            2 * sum(r.pickable for r in counted) > len(counted),
        )
        number = goal.number(end.values or ()) if end.eligible else None
    value = number if number is not None and math.isfinite(number) else None
    standing = None
    if value is not None and value > 0:
        mean, log_odds = _sign(goal) * math.log(value), fmean(each.log_odds for each in counted)
        standing = Standing(mean, len(counted), len(trial.rounds), log_odds)
    factor = drift.factor(trial.began.first, trial.began.host)
    return JudgedTrial(
        trial.number,
        trial.config,
        trial.rounds,
        {step: value * factor for step, value in trial.reports.items()},
        end=end,
        runs=len(counted),
        unplaced=failed is None and not placed,
        reached=reached,
        value=value,
        standing=standing,
        # Most trials have one round.
        scatter=scatter_of(_logs(placed, drift, goal)) if len(placed) > 1 else (0.0, 0),
    )


def _mean_violations(rounds: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Each constraint by those rounds that tell: not all observe every metric."""
    texts = dict.fromkeys(text for violations in rounds for text in violations)
    return {text: fmean(r[text] for r in rounds if text in r) for text in texts}


def _mean(values: Sequence[float]) -> float:
    """The geometric mean; the arithmetic one where some value is not above zero."""
    if len(values) == 1:
        return values[0]
    if all(value > 0 for value in values):
        return math.exp(fmean(math.log(value) for value in values))
    return fmean(values)


def _logs(rounds: Sequence[Round], drift: Drift, goal: Goal) -> list[float]:
    """The logarithms of the goal's number, judged, of those rounds that have one."""
    judged = [drift.judged(r.values, r.first, r.host) for r in rounds if r.values is not None]
    numbers = [goal.number(values) for values in judged]
    return [math.log(number) for number in numbers if number is not None and number > 0]


class Observations:
    """The rounds of all trials and anchors, and the Judgement that follows from them."""

    def __init__(self, goal: Goal) -> None:
        self._goal = goal
        self._trials: dict[int, TrialRounds] = {}
        self._promotion = Promotion()
        self._anchors_s: dict[str, float] = {}  # by host
        self._last_attempt: dict[str, int] = {}
        self._drift = Drift()
        self._series: Kept = {}
        self._anchors_scatter: list[Scatter] = []
        self._in_turns_scatter: list[Scatter] = []
        # What is known of each trial, and what its searcher knows, by the noise `_searcher_log_sd`;
        # without those that are to be judged anew.
        self._judged: dict[int, JudgedTrial] = {}
        self._for_searcher: dict[int, TrialJudgement] = {}
        self._searcher_log_sd = 0.0
        self._judgement: Judgement | None = None

    @property
    def judgement(self) -> Judgement:
        """What everything that was seen so far comes to."""
        if self._judgement is None:
            for number in self._trials.keys() - self._judged.keys():
                self._judged[number] = _judged(self._trials[number], self._drift, self._goal)
            repeated = [t.scatter for t in self._judged.values() if len(t.rounds) > 1]
            log_sd = run_log_sd([*self._anchors_scatter, *repeated], self._in_turns_scatter)
            known = (self._judged, self._drift, log_sd, self._goal, self._promotion)
            self._judgement = Judgement(*known)
        return self._judgement

    @property
    def trials(self) -> Mapping[int, TrialRounds]:
        """The trials that ended, by number."""
        return self._trials

    def for_searcher(self) -> Mapping[int, TrialJudgement]:
        """That of a Judgement, of all trials: the same objects as before where nothing changed."""
        judgement = self.judgement
        if judgement.rounded_log_sd != self._searcher_log_sd:
            self._for_searcher.clear()
            self._searcher_log_sd = judgement.rounded_log_sd
        for number in judgement.trials.keys() - self._for_searcher.keys():
            self._for_searcher[number] = judgement.for_searcher(number)
        return self._for_searcher

    def add_trial(self, trial: TrialRounds) -> None:
        """A trial ended, or was run again: all of its rounds."""
        self._trials[trial.number] = trial
        self._judge_anew(trial.number)

    def add_round(self, number: int, repeated: Round) -> None:
        """A trial was run again: one more round of it."""
        trial = self._trials[number]
        self.add_trial(replace(trial, rounds=(*trial.rounds, repeated)))

    def _judge_anew(self, number: int) -> None:
        self._judged.pop(number, None)
        self._for_searcher.pop(number, None)
        self._judgement = None

    def set_baseline_rows(self, rows: Sequence[StoredMeasurement]) -> None:
        """Take over all runs of the baseline, in the order in which they were stored.

        An anchor that was cut off before its last workload does not count, and is due as before.
        """
        self._last_attempt, self._anchors_s = {}, {}
        last = len(self._goal.shares) - 1
        for row in rows:
            host, is_anchor = row.measurement.host, row.role is Role.ANCHOR
            ended = row.workload == last or row.measurement.outcome is not Outcome.OK
            if ended or not is_anchor:
                self._last_attempt[host] = row.id
            if is_anchor:
                self._anchors_s[host] = self._anchors_s.get(host, 0.0) + row.wall_s
        self.use_anchors(anchor_rounds(rows, self._goal))

    def use_anchors(self, anchors: Sequence[Round]) -> None:
        """The anchors, in the order of their rows; those `in_turns` tell of noise alone."""
        before = self._drift
        series = [anchor for anchor in anchors if not anchor.in_turns]
        drift = self._drift = drift_of(series, self._series)
        groups: dict[tuple[str, tuple[int, ...]], list[Round]] = {}
        in_turns: dict[str, list[Round]] = {}
        for anchor in anchors:
            segment = drift.segment_of(anchor.first, anchor.host)
            if anchor.in_turns:
                in_turns.setdefault(anchor.host, []).append(anchor)
            elif segment is not None:
                groups.setdefault((anchor.host, segment), []).append(anchor)
        self._anchors_scatter = [self._scatter(group) for group in groups.values()]
        self._in_turns_scatter = [self._scatter(group) for group in in_turns.values()]
        alike = drift.alike_to(before)
        for number, trial in self._trials.items():
            if any(each.first > alike.get(each.host, 0) for each in trial.rounds):
                self._judge_anew(number)
        self._judgement = None

    def _scatter(self, rounds: Sequence[Round]) -> Scatter:
        return scatter_of(_logs(rounds, self._drift, self._goal))

    def promote(self, promotion: Promotion) -> None:
        """What trials came to at a larger size, in the latest round there."""
        for number in {*self._promotion.values, *promotion.values}:
            self._for_searcher.pop(number, None)
        self._promotion = promotion
        self._judgement = None

    def search_goes_on(self) -> None:
        """Trials that come now have not been where those of an earlier round were."""
        self.promote(self._promotion.outdated())

    def anchor_due(self, every: int, next_s: float, host: str = "") -> bool:
        """Whether an anchor is to be run now on `host`: `every` trials after the last attempt.

        Later where anchors would take too large a share of the search's time with another one of
        `next_s` seconds.
        """
        last = self._last_attempt.get(host, 0)
        began = (trial.began for trial in self._trials.values())
        if every == 0 or sum(each.first > last and each.host == host for each in began) < every:
            return False
        rounds = (each for trial in self._trials.values() for each in trial.rounds)
        trials_s = sum(each.wall_s for each in rounds if each.host == host)
        with_next_s = self._anchors_s.get(host, 0.0) + next_s
        return with_next_s <= ANCHOR_SHARE_MAX * (trials_s + with_next_s)
