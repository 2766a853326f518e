"""The fewest options that keep a gain: backward elimination, each step a proof of its own.

What to compare next is decided from what a `Prove` found alone; `PairedSteps` is the one that runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from lsmtune.driver.runner import Runner
from lsmtune.engines.catalogue import has_catalogue, option_catalogue
from lsmtune.engines.differences import differences, known_defaults
from lsmtune.experiment.measurer import Measurer
from lsmtune.experiment.observer import Observer
from lsmtune.experiment.schedule import Arm
from lsmtune.model.config import Config, EngineIdentity, OptionValue
from lsmtune.model.measurement import Outcome
from lsmtune.model.verdict import Verdict, VerdictOutcome
from lsmtune.proof.paired import prove
from lsmtune.proof.pairs import Pair, Side, ended, measurements, seconds_each, stored_pairs
from lsmtune.proof.standalone import Verification, measuring, qualified
from lsmtune.proof.survival import UNTESTED, Survival, survived
from lsmtune.proof.verdict import not_proven
from lsmtune.stats.sequential import pairs_at_least
from lsmtune.units import format_duration


class Kind(StrEnum):
    """What a step asks."""

    WHOLE = "whole"  # whether there is a gain at all; without one nothing comes after it
    OPTION = "option"  # what one option does: the step's baseline is without it
    LOSS = "loss"  # whether the result is worse than the full candidate
    GAIN = "gain"  # what the result gains over the baseline


@dataclass(frozen=True)
class Step:
    """One comparison: what it asks, and how many may come after it, at most.

    `confidence` is what the step is judged at, so that all steps together are wrong no more often
    than one proof at the confidence that was asked for. `option` is that of a step of that kind.
    """

    kind: Kind
    confidence: float
    to_come: int
    option: str = ""


@dataclass(frozen=True)
class Comparison:
    """What a step found: a verdict, and how runs of either side failed, empty where none did."""

    verdict: Verdict
    baseline_failure: str = ""
    candidate_failure: str = ""


# Carries out one proof, of a candidate against a baseline; None when it was interrupted.
Prove = Callable[[Config, Config, Step], Comparison | None]


@dataclass(frozen=True)
class OptionEffect:
    """What became of one option: its value in candidate and baseline (None: the engine's default).

    `verdict` compares the configuration at that moment with itself without the option; `kept` says
    whether the option is in the result, `restored` that it had been left out before. `why` says
    what keeps an option of which no effect is proven.
    """

    option: str
    value: OptionValue | None
    baseline_value: OptionValue | None
    verdict: Verdict
    kept: bool
    restored: bool = False
    why: str = ""


@dataclass(frozen=True)
class Minimisation:
    """The result: `config`, each option's effect in the order of the steps, and the other proofs.

    `first` is of the full candidate over the baseline, `gain` of the result over the baseline.
    `loss` is of the result over the full candidate: not `worse` says that nothing that matters is
    proven to be lost; it is None where every option is kept. All are None where there was nothing
    to prove, and `why` then says why. `complete` is False when it was interrupted, and the rest is
    then not known. `survival` is empty where nothing was proved better.
    """

    config: Config
    effects: tuple[OptionEffect, ...] = ()
    first: Verdict | None = None
    gain: Verdict | None = None
    loss: Verdict | None = None
    why: str = ""
    complete: bool = True
    survival: Survival = UNTESTED

    @property
    def kept(self) -> tuple[OptionEffect, ...]:
        """The options of the result that differ from the baseline."""
        return tuple(effect for effect in self.effects if effect.kept)

    @property
    def gone(self) -> tuple[OptionEffect, ...]:
        """The options that are back at the baseline's value."""
        return tuple(effect for effect in self.effects if not effect.kept)

    @property
    def is_proven(self) -> bool:
        """Whether the result is proven better than the baseline."""
        return self.gain is not None and self.gain.outcome is VerdictOutcome.BETTER


class _InterruptedError(Exception):
    """A proof was cut off."""


def differing_options(baseline: Config, candidate: Config) -> tuple[str, ...]:
    """Options that the two set to different values, in the order of their names."""
    one, other = baseline.engine_options(), candidate.engine_options()
    return tuple(sorted(name for name in {*one, *other} if one.get(name) != other.get(name)))


def without(config: Config, option: str, baseline: Config) -> Config:
    """`config` with the baseline's value of `option`, which may be the engine's own default."""
    return _with_value(config, option, baseline.options.get(option))


def steps_of(options: int) -> int:
    """Comparisons that are planned for so many options: the whole, each, and the closing two."""
    return options + 3


def confidence_each(confidence: float, options: int) -> float:
    """What each step is judged at, for all of them to hold at `confidence` (Bonferroni)."""
    return 1.0 - (1.0 - confidence) / steps_of(options)


def minimise(
    baseline: Config,
    candidate: Config,
    prove: Prove,
    *,
    confidence: float,
    riskiest_first: Callable[[str], float] = lambda _option: 0.0,
) -> Minimisation:
    """The fewest options of `candidate` that keep its gain over `baseline`.

    After one proof of the whole gain, each differing option is taken out in turn and stays out
    unless the configuration with it is proven better than the one without (backward elimination:
    N. Draper, H. Smith, "Applied Regression Analysis", 1966, chapter 6). Of two options that do the
    same, the one that is tried first goes: `riskiest_first` gives a larger number to what a user
    would rather not deploy. An option stays too where the configuration without it failed, and
    where there were fewer pairs than any proof needs, since nothing is known of it then. Losses too
    small to be proven one by one can add up, and an option without a gain may be what keeps a
    guard. So the result meets the full candidate at the end, and then the baseline. While it is
    proven worse, fails, or breaks a guard, the option that seemed to matter most is put back.

    Each step is judged at 1 - (1 - confidence) / steps (Bonferroni). Comparisons that are made
    again after an option was put back are beyond those; what they mostly do wrong is to keep too
    much.
    """
    options = sorted(
        differing_options(baseline, candidate), key=lambda name: (-riskiest_first(name), name)
    )
    each = confidence_each(confidence, len(options))
    return _Elimination(baseline, candidate, options, prove, each).run()


@dataclass(eq=False)
class _Elimination:
    baseline: Config
    candidate: Config
    options: Sequence[str]
    prove: Prove
    confidence: float  # of each step

    def __post_init__(self) -> None:
        self._steps = steps_of(len(self.options))
        self._current = self.candidate
        self._effects: dict[str, OptionEffect] = {}

    def run(self) -> Minimisation:
        if not self.options:
            return self._result(why="the two configurations do not differ")
        first = None
        try:
            first = self._ask(self.baseline, self.candidate, Kind.WHOLE, 0).verdict
            if first.outcome is not VerdictOutcome.BETTER:
                return self._result(first, why="there is no proven gain to keep")
            for done, option in enumerate(self.options):
                self._try_without(option, done + 1)
            loss, gain = self._restore_what_is_missed()
        except _InterruptedError:
            return self._result(first, complete=False)
        is_gain = gain.outcome is VerdictOutcome.BETTER
        why = "" if is_gain else "the gain of what is left is not proven"
        return self._result(first, gain=gain, loss=loss, why=why)

    def _ask(
        self, baseline: Config, candidate: Config, kind: Kind, done: int, option: str = ""
    ) -> Comparison:
        step = Step(kind, self.confidence, max(0, self._steps - done - 1), option)
        comparison = self.prove(baseline, candidate, step)
        if comparison is None:
            raise _InterruptedError
        return comparison

    def _try_without(self, option: str, done: int) -> None:
        reduced = without(self._current, option, self.baseline)
        comparison = self._ask(reduced, self._current, Kind.OPTION, done, option)
        verdict, why = comparison.verdict, ""
        is_gain = verdict.outcome is VerdictOutcome.BETTER
        if not is_gain and comparison.baseline_failure:
            why = f"without it {comparison.baseline_failure}"
        elif verdict.outcome is VerdictOutcome.NOT_PROVEN and not comparison.candidate_failure:
            least = pairs_at_least(verdict.confidence)
            few = f"not known: {verdict.pairs} pairs, and a proof takes at least {least}"
            why = few if verdict.pairs < least else ""
        kept = is_gain or bool(why)
        value = self.candidate.options.get(option)
        before = self.baseline.options.get(option)
        self._effects[option] = OptionEffect(option, value, before, verdict, kept, why=why)
        if not kept:
            self._current = reduced

    def _restore_what_is_missed(self) -> tuple[Verdict | None, Verdict]:
        """Loss and gain of the result, for which options go back as `minimise` says."""

        def effect_of(effect: OptionEffect) -> float:
            """How much better with the option, as a ratio; 1 where nothing is known."""
            ratio = effect.verdict.ratio
            if ratio is None or ratio <= 0:
                return 1.0
            return ratio if effect.verdict.direction == "maximize" else 1.0 / ratio

        dropped = sorted((e for e in self._effects.values() if not e.kept), key=effect_of)
        while True:
            loss, why = None, ""
            if dropped:
                comparison = self._ask(self.candidate, self._current, Kind.LOSS, self._steps - 2)
                loss, why = comparison.verdict, comparison.candidate_failure
                if not why and loss.outcome is VerdictOutcome.WORSE:
                    why = "the result was worse than the full candidate"
            if not why:
                gain = self._ask(self.baseline, self._current, Kind.GAIN, self._steps).verdict
                if not (dropped and gain.breaks_guard):
                    return loss, gain
                why = "the result broke a guard"
            missed = dropped.pop()
            self._current = _with_value(self._current, missed.option, missed.value)
            why = f"without it {why}"
            self._effects[missed.option] = replace(missed, kept=True, restored=True, why=why)

    def _result(
        self,
        first: Verdict | None = None,
        *,
        gain: Verdict | None = None,
        loss: Verdict | None = None,
        why: str = "",
        complete: bool = True,
    ) -> Minimisation:
        label, effects = self.candidate.label, tuple(self._effects.values())
        if effects:
            kept = sum(effect.kept for effect in effects)
            label = f"{label}, {kept} of {len(self.options)} options kept"
        config = Config(self._current.options, label)
        return Minimisation(config, effects, first, gain, loss, why, complete)


def _with_value(config: Config, option: str, value: OptionValue | None) -> Config:
    """`config` with `value` of `option`; None leaves it to the engine."""
    options = {name: old for name, old in config.options.items() if name != option}
    return Config(options if value is None else options | {option: value}, config.label)


# --- The steps carried out: proofs on pairs of fresh runs, in one folder.


class StepOverError(Exception):
    """An observer raises it to end a step: the configuration without the option has failed."""


class StepObserver(Observer):
    """An Observer that is told of the steps, too."""

    def step_begins(self, step: Step, steps: int) -> None:
        """A step begins; `steps` is how many are planned."""


def minimised(
    verification: Verification,
    refusal: Callable[[Arm], str],
    path: Path,
    runner: Runner,
    observer: StepObserver,
    stop: threading.Event,
) -> Minimisation:
    """Carry out the minimisation, its runs kept in the folder at `path`.

    `refusal` says why an arm may not be recommended; empty where it may. The time budget of
    `verification` begins now.
    """
    engine = verification.engine.name
    catalogue = option_catalogue(engine) if has_catalogue(engine) else {}

    def riskiest_first(option: str) -> float:
        return 1.0 if option in catalogue and catalogue[option].risk else 0.0

    with measuring(verification, path, runner, observer, stop) as measurer:
        result = minimise(
            verification.baseline.config,
            verification.candidate.config,
            PairedSteps(verification, measurer, observer, refusal),
            confidence=verification.plan.confidence,
            riskiest_first=riskiest_first,
        )
        if result.gain is None:
            return result
        finalist = Arm(verification.engine, result.config)
        seed, plan = verification.seed, verification.survival
        tested = survived(result.gain, finalist, measurer, study_seed=seed, plan=plan)
    if tested is None:
        return replace(result, complete=False)
    if tested.verdict.outcome is not result.gain.outcome:
        result = replace(result, gain=tested.verdict, why=tested.verdict.why)
    return replace(result, survival=tested.survival)


def without_same_values(
    baseline: Config, candidate: Config, engine: EngineIdentity
) -> tuple[Config, tuple[str, ...]]:
    """`candidate` without the differences to `baseline` that make none, and their options.

    An option that only one of the two sets makes none where it is set to the engine's default.
    """
    defaults = known_defaults(engine)
    changes = differences(engine.name, candidate.options, baseline.options, defaults)
    differ = {each.option for each in changes}
    same = tuple(name for name in differing_options(baseline, candidate) if name not in differ)
    for option in same:
        candidate = without(candidate, option, baseline)
    return candidate, same


@dataclass(eq=False)
class PairedSteps:
    """A `Prove` whose steps are paired proofs, each within its share of the time that is left.

    Pairs have numbers of their own in the folder, and each belongs to the two configurations that
    ran in it and to their roles; so steps cannot mix, and one that is repeated goes on from the
    pairs it has. `refusal` says why a configuration may not be recommended; empty where it may.
    """

    verification: Verification
    measurer: Measurer
    observer: StepObserver
    refusal: Callable[[Arm], str] = lambda _arm: ""

    def __post_init__(self) -> None:
        self._steps = 0
        self._gain_s = 0.0
        time_s = self.verification.plan.deadline_s
        self._until_s = None if time_s is None else self.measurer.clock() + time_s

    def __call__(self, baseline: Config, candidate: Config, step: Step) -> Comparison | None:
        """As `Prove` says. Raises InputError in the first step for what the engine refuses."""
        self._steps = max(self._steps, step.to_come + 1)
        self.observer.step_begins(step, self._steps)
        asked, store = self.verification, self.measurer.folder.measurements
        goal = asked.goal
        before, after = (Arm(asked.engine, config) for config in (baseline, candidate))

        def pairs() -> list[Pair]:
            return stored_pairs(store, before, after, len(self.measurer.workloads))

        def without_option(failure: str) -> Comparison:
            """What a step found that ended at a configuration that is none without its option."""
            verdict = not_proven(goal, step.confidence, failure)
            return Comparison(verdict, baseline_failure=failure)

        if step.kind is Kind.OPTION:
            failure = self.refusal(before) or _failure(pair.baseline for pair in pairs())
            if failure:
                return without_option(failure)
        if step.kind is Kind.LOSS and (refused := self.refusal(after)):
            # With an option that was put back the result is a mixture that no step has looked at.
            return Comparison(not_proven(goal, step.confidence, refused), candidate_failure=refused)
        plan = replace(asked.plan, confidence=step.confidence, deadline_s=self._share_s(step))
        try:
            verdict = prove(before, after, goal, self.measurer, study_seed=asked.seed, plan=plan)
        except StepOverError:
            return without_option(_failure(pair.baseline for pair in pairs()))
        if verdict is None:
            return None
        done = pairs()
        if step.kind in (Kind.WHOLE, Kind.GAIN):
            verdict = qualified(asked, verdict, before, after, self.measurer)
        if step.kind is Kind.WHOLE and verdict.outcome is VerdictOutcome.BETTER:
            # The same gain, or most of it, is proved once more at the end.
            self._gain_s = sum(pair.wall_s for pair in done)
            self._warn_of_time(step, done)
        failures = _failure(pair.baseline for pair in done), _failure(p.candidate for p in done)
        return Comparison(verdict, *failures)

    def _share_s(self, step: Step) -> float | None:
        """Seconds for `step`: as many for each that is to come before the last.

        The last one, without which the others are for nothing, is left what the first one took.
        The first one may take all: where it proves no gain, nothing comes after it.
        """
        if self._until_s is None:
            return None
        left_s = self._until_s - self.measurer.clock()
        if step.kind in (Kind.WHOLE, Kind.GAIN):
            return left_s
        return (left_s - self._gain_s) / step.to_come

    def _warn_of_time(self, step: Step, pairs: Sequence[Pair]) -> None:
        """Say so where what is left of the budget does not suffice for the steps to come."""
        if self._until_s is None or not pairs:
            return
        least = pairs_at_least(step.confidence)
        needed_s = (step.to_come - 1) * least * seconds_each(pairs) + self._gain_s
        left_s = max(0.0, self._until_s - self.measurer.clock())
        if needed_s > left_s:
            self.observer.warning(
                f"{format_duration(round(left_s))} are left for {step.to_come} steps, which take "
                f"at least {least} pairs each to prove anything, about "
                f"{format_duration(round(needed_s))} in all: an option of which nothing is known "
                "is kept"
            )


def _failure(sides: Iterable[Side]) -> str:
    """How the first run that failed ended, in words; empty when all went well."""
    failed = [m for side in sides for m in measurements(side) if m.outcome is not Outcome.OK]
    return f"a run ended {ended(failed[0])}" if failed else ""
