"""The fewest options that keep a gain: backward elimination, each step a proof of its own.

Which runs prove a step is none of this file's business: it is handed a `Prove`, and decides from
what that found alone what to compare next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from lsmtune.model.config import Config, OptionValue, option_text
from lsmtune.model.verdict import Verdict, VerdictOutcome
from lsmtune.stats.sequential import pairs_at_least


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
    then not known.
    """

    config: Config
    effects: tuple[OptionEffect, ...] = ()
    first: Verdict | None = None
    gain: Verdict | None = None
    loss: Verdict | None = None
    why: str = ""
    complete: bool = True

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

    def text(config: Config, option: str) -> str | None:
        value = config.options.get(option)
        return None if value is None else option_text(value)

    names = sorted({*baseline.options, *candidate.options})
    return tuple(name for name in names if text(baseline, name) != text(candidate, name))


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
    small to be proven one by one can add up, so the result meets the full candidate at the end, and
    while it is proven worse, or fails, the option that seemed to matter most is put back.

    Each step is judged at 1 - (1 - confidence) / steps (Bonferroni). Comparisons that are made
    again after an option was put back are beyond those; what they can do wrong is to keep too much.
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
            loss = self._restore_what_is_missed()
            gain = self._ask(self.baseline, self._current, Kind.GAIN, self._steps).verdict
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

    def _restore_what_is_missed(self) -> Verdict | None:
        """Put options back while the result is worse than the full candidate, or fails."""

        def gain(effect: OptionEffect) -> float:
            """How much better with the option, as a ratio; 1 where nothing is known."""
            ratio = effect.verdict.ratio
            if ratio is None or ratio <= 0:
                return 1.0
            return ratio if effect.verdict.direction == "maximize" else 1.0 / ratio

        dropped = sorted((e for e in self._effects.values() if not e.kept), key=gain)
        while dropped:
            comparison = self._ask(self.candidate, self._current, Kind.LOSS, self._steps - 2)
            failure = comparison.candidate_failure
            if comparison.verdict.outcome is not VerdictOutcome.WORSE and not failure:
                return comparison.verdict
            why = f"without it {failure or 'the result was worse than the full candidate'}"
            missed = dropped.pop()
            self._current = _with_value(self._current, missed.option, missed.value)
            self._effects[missed.option] = replace(missed, kept=True, restored=True, why=why)
        return None

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
