"""Which options stay, decided from verdicts alone: here from true effects that are known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmtune.model.config import Config
from lsmtune.model.verdict import GuardResult, Verdict, VerdictOutcome
from lsmtune.proof.minimise import (
    Comparison,
    Kind,
    Minimisation,
    Step,
    confidence_each,
    differing_options,
    minimise,
    steps_of,
    without,
)

PROVABLE = 0.03  # log effects from here on are proven, as by a proof without noise


class TrueEffects:
    """A machine without noise: options have log effects, and some pairs of them another one."""

    def __init__(
        self, effects: Mapping[str, float], together: Mapping[tuple[str, str], float] | None = None
    ) -> None:
        self.effects = effects
        self.together = together or {}
        self.steps: list[Step] = []
        self.interrupted_at = math.inf
        self.pairs: Mapping[str, int] = {}  # of the steps of some options
        self.fails_without: Mapping[str, str] = {}  # and how the runs without some options fail

    def log_value(self, config: Config) -> float:
        on = {name for name, value in config.options.items() if value == 1}
        alone = sum(effect for name, effect in self.effects.items() if name in on)
        return alone + sum(e for pair, e in self.together.items() if on.issuperset(pair))

    def __call__(self, baseline: Config, candidate: Config, step: Step) -> Comparison | None:
        self.steps.append(step)
        if len(self.steps) > self.interrupted_at:
            return None
        effect = self.log_value(candidate) - self.log_value(baseline)
        outcome = VerdictOutcome.NOT_PROVEN
        if abs(effect) >= PROVABLE:
            outcome = VerdictOutcome.BETTER if effect > 0 else VerdictOutcome.WORSE
        baseline_failure, candidate_failure = self.failure(baseline), self.failure(candidate)
        pairs = self.pairs.get(step.option, 12)
        if candidate_failure or baseline_failure or pairs < 8:
            outcome = VerdictOutcome.NOT_PROVEN
        ratio = math.exp(effect)
        verdict = Verdict(
            outcome, "throughput_ops_s", "maximize", step.confidence, pairs, ratio=ratio
        )
        return Comparison(verdict, baseline_failure, candidate_failure)

    def failure(self, config: Config) -> str:
        off = {name for name in self.effects if config.options.get(name) != 1}
        whole_baseline = off == set(self.effects)
        failures = [said for name, said in self.fails_without.items() if name in off]
        return "" if whole_baseline or not failures else failures[0]


BASELINE = Config({"shared": 7})


def all_on(names: Mapping[str, float], label: str = "winner") -> Config:
    return Config({"shared": 7, **dict.fromkeys(names, 1)}, label)


def minimised(machine: TrueEffects, **options: object) -> Minimisation:
    return minimise(BASELINE, all_on(machine.effects), machine, confidence=0.95, **options)  # type: ignore[arg-type]


def test_only_options_with_a_proven_effect_stay() -> None:
    result = minimised(TrueEffects({"cache": 0.3, "idle": 0.0, "little": 0.01, "threads": 0.2}))
    assert result.config.options == {"shared": 7, "cache": 1, "threads": 1}
    assert [effect.option for effect in result.kept] == ["cache", "threads"]
    assert [effect.verdict.ratio for effect in result.kept] == pytest.approx(
        [math.exp(0.3), math.exp(0.2)]
    )
    assert result.gain is not None
    assert result.gain.outcome is VerdictOutcome.BETTER
    assert result.loss is not None
    assert result.loss.outcome is VerdictOutcome.NOT_PROVEN


def test_an_option_that_does_harm_goes_too() -> None:
    result = minimised(TrueEffects({"good": 0.4, "harmful": -0.1}))
    assert result.config.options == {"shared": 7, "good": 1}


def test_of_two_options_that_do_the_same_the_riskier_one_goes() -> None:
    machine = TrueEffects({"a": 0.2, "b": 0.2}, together={("a", "b"): -0.2})
    assert [e.option for e in minimised(machine).kept] == ["b"]
    risk = {"b": 1.0}
    result = minimised(machine, riskiest_first=lambda name: risk.get(name, 0.0))
    assert [e.option for e in result.kept] == ["a"]


def test_losses_that_add_up_are_seen_at_the_end_and_taken_back() -> None:
    """Four options of 2 % each: none is proven alone, together they are the gain."""
    machine = TrueEffects({"a": 0.020, "b": 0.021, "c": 0.022, "d": 0.023})
    result = minimised(machine)
    assert [e.option for e in result.effects if e.restored] == ["b", "c", "d"]
    assert result.config.options == {"shared": 7, "b": 1, "c": 1, "d": 1}
    assert result.loss is not None
    assert result.loss.outcome is not VerdictOutcome.WORSE


def test_without_a_gain_nothing_is_tried() -> None:
    machine = TrueEffects({"a": 0.01})
    result = minimised(machine)
    assert (result.why, len(machine.steps)) == ("there is no proven gain to keep", 1)
    assert result.config.options == all_on(machine.effects).options


def test_the_same_configuration_twice_needs_no_run() -> None:
    machine = TrueEffects({})
    result = minimise(BASELINE, Config({"shared": "7"}), machine, confidence=0.95)
    assert (result.why, machine.steps) == ("the two configurations do not differ", [])


def test_an_interrupt_keeps_what_is_known_and_says_that_it_is_not_all() -> None:
    machine = TrueEffects({"a": 0.3, "b": 0.0, "c": 0.2})
    machine.interrupted_at = 3
    result = minimised(machine)
    assert not result.complete
    assert [(e.option, e.kept) for e in result.effects] == [("a", True), ("b", False)]
    assert result.gain is None


def test_all_steps_share_one_error() -> None:
    machine = TrueEffects({"a": 0.3, "b": 0.2, "idle": 0.0})
    minimised(machine)
    assert len(machine.steps) == 6
    assert {round(step.confidence, 10) for step in machine.steps} == {round(1 - 0.05 / 6, 10)}
    assert [step.to_come for step in machine.steps] == [5, 4, 3, 2, 1, 0]
    assert [step.kind for step in machine.steps] == [
        Kind.WHOLE, Kind.OPTION, Kind.OPTION, Kind.OPTION, Kind.LOSS, Kind.GAIN
    ]  # fmt: skip
    assert steps_of(3) == len(machine.steps)
    assert confidence_each(0.95, 3) == machine.steps[0].confidence


def test_an_option_without_which_nothing_runs_stays() -> None:
    machine = TrueEffects({"a": 0.3, "needed": 0.0})
    machine.fails_without = {"needed": "a run ended crashed (no such table)"}
    result = minimised(machine)
    assert result.config.options == {"shared": 7, "a": 1, "needed": 1}
    assert result.effects[1].why == "without it a run ended crashed (no such table)"
    assert result.is_proven


def test_an_option_of_which_nothing_is_known_stays() -> None:
    """Time for a few pairs only: neither proof nor a reason to take it out."""
    machine = TrueEffects({"a": 0.3, "idle": 0.0, "late": 0.0})
    machine.pairs = {"late": 7}
    result = minimised(machine)
    assert [e.option for e in result.gone] == ["idle"]
    assert result.effects[2].why == "not known: 7 pairs, and a proof takes at least 9"


def test_a_result_that_fails_gets_its_options_back() -> None:
    """Two options that can only be missed together: the runs without either of them go well."""

    class Together(TrueEffects):
        def failure(self, config: Config) -> str:
            lacks = all(config.options.get(name) != 1 for name in ("b", "c"))
            return "a run ended timeout" if lacks and config.options.get("a") == 1 else ""

    class UnseenInSteps(Together):
        def __call__(self, baseline: Config, candidate: Config, step: Step) -> Comparison | None:
            found = super().__call__(baseline, candidate, step)
            return found and (found if step.kind is Kind.LOSS else Comparison(found.verdict))

    result = minimised(UnseenInSteps({"a": 0.3, "b": 0.0, "c": 0.0}))
    (back,) = [effect for effect in result.effects if effect.restored]
    assert back.why == "without it a run ended timeout"
    assert back.kept


def test_an_option_that_keeps_a_guard_is_put_back() -> None:
    """It gains nothing itself, and without it the whole minimisation was for nothing."""
    text = "write_amplification <= 1.5 * baseline"

    class Guarded(TrueEffects):
        def __call__(self, baseline: Config, candidate: Config, step: Step) -> Comparison | None:
            found = super().__call__(baseline, candidate, step)
            if found is None or step.kind is not Kind.GAIN:
                return found
            broken = 0 if candidate.options.get("saver") == 1 else 12
            verdict = replace(found.verdict, guards=(GuardResult(text, 12, broken),))
            if broken:
                verdict = verdict.but(VerdictOutcome.NOT_PROVEN, "the candidate breaks it")
            return Comparison(verdict)

    machine = Guarded({"a": 0.3, "idle": 0.0, "saver": 0.01})
    result = minimised(machine)
    assert result.config.options == {"shared": 7, "a": 1, "saver": 1}
    assert result.effects[2].restored
    assert result.effects[2].why == "without it the result broke a guard"
    assert result.is_proven
    kinds = [step.kind for step in machine.steps[4:]]
    assert kinds == [Kind.LOSS, Kind.GAIN, Kind.LOSS, Kind.GAIN]


def test_a_result_whose_gain_is_not_proven_says_so() -> None:
    class Faint(TrueEffects):
        def __call__(self, baseline: Config, candidate: Config, step: Step) -> Comparison | None:
            found = super().__call__(baseline, candidate, step)
            if found is None or step.kind is not Kind.GAIN:
                return found
            return Comparison(replace(found.verdict, outcome=VerdictOutcome.NOT_PROVEN))

    result = minimised(Faint({"a": 0.3, "b": 0.0}))
    assert not result.is_proven
    assert result.why == "the gain of what is left is not proven"


def test_an_option_that_the_baseline_has_goes_back_to_its_value() -> None:
    baseline, candidate = Config({"a": 4, "b": 2}), Config({"a": 8, "c": 1}, "winner")
    assert differing_options(baseline, candidate) == ("a", "b", "c")
    assert without(candidate, "a", baseline).options == {"a": 4, "c": 1}
    assert without(candidate, "b", baseline).options == {"a": 8, "b": 2, "c": 1}
    assert without(candidate, "c", baseline).options == {"a": 8}


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.floats(-0.3, 0.3), min_size=1))
def test_the_result_is_never_proven_worse_than_the_candidate(effects: dict[str, float]) -> None:
    machine = TrueEffects(effects)
    result = minimised(machine)
    lost = machine.log_value(all_on(effects)) - machine.log_value(result.config)
    assert lost < PROVABLE
    kept = {effect.option for effect in result.kept}
    if result.gain is not None:
        assert {name for name in effects if result.config.options.get(name) == 1} == kept
