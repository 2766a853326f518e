"""The fewest options that keep a gain: backward elimination, each step a proof of its own.

Which runs prove a step is none of this file's business: it is handed a `Prove`, and decides from
verdicts alone what to compare next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from lsmtune.records.config import Config, OptionValue, option_text
from lsmtune.records.verdict import Verdict, VerdictOutcome


class Prove(Protocol):
    """Carries out one proof of a minimisation."""

    def __call__(self, baseline: Config, candidate: Config, step: Step) -> Verdict | None:
        """The verdict on `candidate` against `baseline`; None when it was interrupted."""
        ...


@dataclass(frozen=True)
class Step:
    """One comparison: what it is for, and how many may come after it, at most.

    `confidence` is what the step is judged at, so that all steps together are wrong no more often
    than one proof at the confidence that was asked for.
    """

    purpose: str
    confidence: float
    to_come: int


@dataclass(frozen=True)
class OptionEffect:
    """What became of one option: its value in candidate and baseline (None: the engine's default).

    `verdict` compares the configuration at that moment with itself without the option; `kept` says
    whether the option is in the result, `restored` that it had been left out before.
    """

    option: str
    value: OptionValue | None
    baseline_value: OptionValue | None
    verdict: Verdict
    kept: bool
    restored: bool = False


@dataclass(frozen=True)
class Minimisation:
    """The result: `config`, each option's effect in the order of the steps, and two closing proofs.

    `gain` is of the result over the baseline. `loss` is of the result over the full candidate: not
    `worse` says that nothing that matters was lost. Both are None where there was nothing to prove,
    and `why` then says why. `complete` is False when it was interrupted, and the rest is then not
    known.
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


class _InterruptedError(Exception):
    """A proof was cut off."""


def differing_options(baseline: Config, candidate: Config) -> tuple[str, ...]:
    """Options that the two set to different values, in the order of their names."""
    names = sorted({*baseline.options, *candidate.options})
    return tuple(n for n in names if _text(baseline, n) != _text(candidate, n))


def without(config: Config, option: str, baseline: Config) -> Config:
    """`config` with the baseline's value of `option`, which may be the engine's own default."""
    options = {name: value for name, value in config.options.items() if name != option}
    if option in baseline.options:
        options[option] = baseline.options[option]
    return Config(options, f"{config.label} without {option}")


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
    would rather not deploy. Losses too small to be proven one by one can add up, so the result
    meets the full candidate at the end, and while it is proven worse the option that seemed to
    matter most is put back.

    Each step is judged at 1 - (1 - confidence) / steps (Bonferroni). Comparisons that are made
    again after an option was put back are beyond those; what they can do wrong is to keep too much.
    """
    options = sorted(
        differing_options(baseline, candidate), key=lambda name: (-riskiest_first(name), name)
    )
    return _Elimination(baseline, candidate, options, prove, confidence).run()


class _Elimination:
    def __init__(
        self,
        baseline: Config,
        candidate: Config,
        options: Sequence[str],
        prove: Prove,
        confidence: float,
    ) -> None:
        self._baseline = baseline
        self._candidate = candidate
        self._options = options
        self._prove = prove
        self._confidence = confidence
        self._current = candidate
        self._effects: dict[str, OptionEffect] = {}
        self._first: Verdict | None = None

    def run(self) -> Minimisation:
        if not self._options:
            return self._result(why="the two configurations do not differ")
        try:
            self._first = self._ask(self._baseline, self._candidate, "the whole gain", 0)
            if self._first.outcome is not VerdictOutcome.BETTER:
                return self._result(why="there is no proven gain to keep")
            for done, option in enumerate(self._options):
                self._try_without(option, done + 1)
            loss = self._restore_what_is_missed()
            gain = self._ask(self._baseline, self._current, "the gain that is kept", self._steps)
        except _InterruptedError:
            return self._result(complete=False)
        return self._result(gain=gain, loss=loss)

    @property
    def _steps(self) -> int:
        """Comparisons that are planned: the whole, each option, and the two closing ones."""
        return len(self._options) + 3

    def _ask(self, baseline: Config, candidate: Config, purpose: str, done: int) -> Verdict:
        each = 1.0 - (1.0 - self._confidence) / self._steps
        step = Step(purpose, each, max(0, self._steps - done - 1))
        verdict = self._prove(baseline, candidate, step)
        if verdict is None:
            raise _InterruptedError
        return verdict

    def _try_without(self, option: str, done: int) -> None:
        reduced = without(self._current, option, self._baseline)
        verdict = self._ask(reduced, self._current, f"the effect of {option}", done)
        kept = verdict.outcome is VerdictOutcome.BETTER
        self._effects[option] = OptionEffect(
            option,
            self._candidate.options.get(option),
            self._baseline.options.get(option),
            verdict,
            kept,
        )
        if not kept:
            self._current = reduced

    def _restore_what_is_missed(self) -> Verdict | None:
        """Put options back while the result is proven worse than the full candidate."""
        dropped = [e for e in self._effects.values() if not e.kept]
        dropped.sort(key=lambda effect: _gain_of(effect.verdict))
        loss: Verdict | None = None
        while dropped:
            purpose = "what was lost on the way"
            loss = self._ask(self._candidate, self._current, purpose, self._steps - 2)
            if loss.outcome is not VerdictOutcome.WORSE:
                return loss
            missed = dropped.pop()
            value = {missed.option: missed.value} if missed.value is not None else {}
            kept = {n: v for n, v in self._current.options.items() if n != missed.option}
            self._current = Config({**kept, **value}, self._candidate.label)
            self._effects[missed.option] = replace(missed, kept=True, restored=True)
        return None

    def _result(
        self,
        *,
        gain: Verdict | None = None,
        loss: Verdict | None = None,
        why: str = "",
        complete: bool = True,
    ) -> Minimisation:
        options: Mapping[str, OptionValue] = self._current.options
        kept = [option for option, effect in self._effects.items() if effect.kept]
        label = f"{self._candidate.label}, {len(kept)} of {len(self._options)} options kept"
        return Minimisation(
            Config(options, label if self._effects else self._candidate.label),
            tuple(self._effects.values()),
            self._first,
            gain,
            loss,
            why,
            complete,
        )


def _gain_of(verdict: Verdict) -> float:
    """How much better with the option than without it, as a ratio; 1 where nothing is known."""
    if verdict.ratio is None or verdict.ratio <= 0:
        return 1.0
    return verdict.ratio if verdict.direction == "maximize" else 1.0 / verdict.ratio


def _text(config: Config, option: str) -> str | None:
    value = config.options.get(option)
    return None if value is None else option_text(value)
