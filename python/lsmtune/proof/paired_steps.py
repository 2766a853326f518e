"""A minimisation carried out: its steps as proofs on pairs of fresh runs, in one folder."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lsmtune.driver.runner import Runner
from lsmtune.engines.catalogue import catalogue_defaults, has_catalogue, option_catalogue
from lsmtune.experiment.measurer import Measurer
from lsmtune.experiment.observer import Observer
from lsmtune.experiment.schedule import Arm
from lsmtune.model.config import Config, EngineIdentity, OptionValue
from lsmtune.model.goal import Goal
from lsmtune.model.measurement import Outcome
from lsmtune.model.verdict import VerdictOutcome
from lsmtune.proof.minimise import (
    Comparison,
    Kind,
    Minimisation,
    Step,
    differing_options,
    minimise,
    without,
)
from lsmtune.proof.paired import prove
from lsmtune.proof.pairs import Pair, Side, ended, measurements, seconds_each, stored_pairs
from lsmtune.proof.standalone import Verification, measuring, qualified
from lsmtune.proof.survival import UNTESTED, Survival, survived
from lsmtune.proof.verdict import not_proven
from lsmtune.space.parameter import same_value
from lsmtune.stats.sequential import pairs_at_least
from lsmtune.units import format_duration


class StepOverError(Exception):
    """The configuration without the option of a step fails, which is all that is asked of it.

    An observer raises it to end a step.
    """


class StepObserver(Observer):
    """An Observer that is told of the steps, too."""

    def step_begins(self, step: Step, steps: int) -> None:
        """A step begins; `steps` is how many are planned."""


@dataclass(frozen=True)
class Minimised:
    """What a minimisation came to; `survival` is empty where nothing was proved better."""

    result: Minimisation
    survival: Survival = UNTESTED


def minimised(
    verification: Verification,
    refusal: Callable[[Arm], str],
    path: Path,
    runner: Runner,
    observer: StepObserver,
    stop: threading.Event,
) -> Minimised:
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
            return Minimised(result)
        finalist = Arm(verification.engine, result.config)
        tested = survived(
            *(result.gain, finalist, measurer, observer),
            study_seed=verification.seed,
            plan=verification.survival,
        )
    if tested is None:
        return Minimised(replace(result, complete=False))
    if tested.verdict.outcome is not result.gain.outcome:
        result = replace(result, gain=tested.verdict, why=tested.verdict.why)
    return Minimised(result, tested.survival)


def told_apart(
    baseline: Config, candidate: Config, engine: EngineIdentity
) -> tuple[Config, tuple[str, ...]]:
    """`candidate` without the differences to `baseline` that make none, and their options.

    An option that only one of the two sets makes none where it is set to the engine's default.
    """
    # Of an engine of unknown version nothing is known to be at its default.
    defaults = catalogue_defaults(engine.name, engine.version) if engine.version else {}

    def value(config: Config, option: str) -> OptionValue | None:
        return config.options.get(option, defaults.get(option))

    same = []
    for option in differing_options(baseline, candidate):
        one, other = value(baseline, option), value(candidate, option)
        if one is not None and other is not None and same_value(one, other):
            same.append(option)
            candidate = without(candidate, option, baseline)
    return candidate, tuple(same)


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
        goal = Goal((asked.objective,))
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
        plan = replace(asked.plan, confidence=step.confidence, deadline_s=self._share_s(step))
        try:
            verdict = prove(
                before,
                after,
                goal,
                self.measurer,
                self.observer,
                study_seed=asked.seed,
                plan=plan,
            )
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
