from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmtune.model.goal import Direction, Goal, Objective
from lsmtune.model.verdict import VerdictOutcome
from lsmtune.proof.verdict import PairValues, judge, not_proven, sample_size_wanted
from lsmtune.stats.sequential import sequential_ratio

FASTER = Goal((Objective("throughput_ops_s", Direction.MAXIMIZE),))
SHORTER = Goal((Objective("latency_us_p99", Direction.MINIMIZE),))
BASE = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8]
LEAST = 6  # pairs, at a confidence of 0.95


def scaled(factor: float) -> list[float]:
    return [value * factor * (1.0 + 0.002 * (i % 3)) for i, value in enumerate(BASE)]


@pytest.mark.parametrize(
    ("goal", "factor", "outcome"),
    [
        (FASTER, 1.4, VerdictOutcome.BETTER),
        (FASTER, 0.7, VerdictOutcome.WORSE),
        (SHORTER, 1.4, VerdictOutcome.WORSE),
        (SHORTER, 0.7, VerdictOutcome.BETTER),
    ],
)
def test_an_interval_beyond_one_decides_in_the_objectives_direction(
    goal: Goal, factor: float, outcome: VerdictOutcome
) -> None:
    verdict = judge(PairValues(BASE, scaled(factor)), goal, 0.95)
    assert verdict.outcome is outcome
    assert verdict.why == ""
    expected = sequential_ratio(BASE, scaled(factor))
    assert (verdict.ratio, verdict.ratio_low, verdict.ratio_high) == (
        expected.ratio, expected.low, expected.high
    )  # fmt: skip
    assert (verdict.pairs, verdict.metric) == (7, goal.metric)


def test_an_interval_that_includes_one_proves_nothing() -> None:
    verdict = judge(PairValues(BASE, BASE[::-1]), FASTER, 0.95)
    assert verdict.outcome is VerdictOutcome.NOT_PROVEN
    assert verdict.why == "the interval includes 1"


def test_equivalent_only_with_an_effect_and_within_it() -> None:
    values = PairValues(BASE, scaled(1.001))
    assert judge(values, FASTER, 0.95).outcome is not VerdictOutcome.EQUIVALENT
    wide = judge(values, FASTER, 0.95, smallest_effect=0.02)
    narrow = judge(values, FASTER, 0.95, smallest_effect=0.0001)
    assert wide.outcome is VerdictOutcome.EQUIVALENT
    assert narrow.outcome is not VerdictOutcome.EQUIVALENT
    big = judge(PairValues(BASE, scaled(1.4)), FASTER, 0.95, smallest_effect=0.02)
    assert big.outcome is VerdictOutcome.BETTER


def test_an_effect_of_nothing_makes_no_two_values_equivalent() -> None:
    verdict = judge(PairValues(BASE, BASE[::-1]), FASTER, 0.95, smallest_effect=0.0)
    assert verdict.outcome is VerdictOutcome.NOT_PROVEN


def test_what_a_proof_would_have_taken_is_told_with_what_it_would_have_seen() -> None:
    """From the least pairs on: with fewer, nothing at all could have been proved."""
    noisy = [value * (1.0 + 0.05 * (-1) ** i) for i, value in enumerate(BASE)]
    for pairs, told in ((LEAST - 1, False), (LEAST, True), (LEAST + 1, True)):
        verdict = judge(PairValues(BASE[:pairs], noisy[:pairs]), FASTER, 0.95)
        found = sample_size_wanted(verdict, 0.02, 60.0)
        assert found.pairs is not None
        assert found.pairs > LEAST
        assert found.text.startswith(f"{pairs} pairs show a difference of") == told
        assert f"takes about {found.pairs:,} pairs" in found.text
        assert f"{found.pairs - pairs} more (about " in found.text


@given(st.integers(0, LEAST - 1))
def test_too_few_pairs_prove_nothing(pairs: int) -> None:
    verdict = judge(PairValues(BASE[:pairs], scaled(2.0)[:pairs]), FASTER, 0.95)
    assert verdict.outcome is VerdictOutcome.NOT_PROVEN
    assert verdict.why == f"only {pairs} complete pairs; an interval at 0.95 needs {LEAST}"
    assert (verdict.ratio is None) == (pairs < 2)
    # JSON has no infinity: a bound that is not known is None.
    assert (verdict.ratio_low, verdict.ratio_high) == (None, None)


def test_a_higher_confidence_needs_more_pairs() -> None:
    both = PairValues(BASE, scaled(2.0))
    assert judge(both, FASTER, 0.95).outcome is VerdictOutcome.BETTER
    assert judge(both, FASTER, 0.99).why == "only 7 complete pairs; an interval at 0.99 needs 8"


def test_an_interval_without_ends() -> None:
    assert sequential_ratio(BASE[:3], BASE[:3]).ends == (None, None)


def test_a_candidate_that_failed_is_never_better_or_equivalent() -> None:
    for factor, effect in ((2.0, None), (1.0, 0.1)):
        values = PairValues(BASE, scaled(factor), failed=1, disqualified="it crashed")
        verdict = judge(values, FASTER, 0.95, smallest_effect=effect)
        assert verdict.outcome is VerdictOutcome.NOT_PROVEN
        assert verdict.why == "it crashed"
        assert verdict.pairs_failed == 1
    slower = judge(PairValues(BASE, scaled(0.5), disqualified="it crashed"), FASTER, 0.95)
    assert slower.outcome is VerdictOutcome.WORSE


def test_a_candidate_that_lost_data_is_worse_however_fast() -> None:
    values = PairValues(BASE, scaled(9.0), disqualified="it lost data", data_lost=True)
    assert judge(values, FASTER, 0.95).outcome is VerdictOutcome.WORSE


def test_a_metric_that_is_zero_has_no_ratio() -> None:
    verdict = judge(PairValues(BASE, [0.0, *BASE[1:]]), SHORTER, 0.95)
    assert verdict.outcome is VerdictOutcome.NOT_PROVEN
    assert "candidate values must be finite and above zero, found 0.0" in verdict.why


def test_nothing_to_prove_has_its_reason() -> None:
    verdict = not_proven(FASTER, 0.95, "no trial gave a value")
    assert (verdict.outcome, verdict.why, verdict.pairs) == (
        VerdictOutcome.NOT_PROVEN, "no trial gave a value", 0
    )  # fmt: skip
