"""What it would take: numbers that the test itself bears out, and words for them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lsmtune.model.goal import Goal, Objective
from lsmtune.model.verdict import Verdict, VerdictOutcome
from lsmtune.proof.verdict import PairValues, SampleSize, judge, sample_size_wanted
from lsmtune.stats.noise import noise_of, pairs_needed
from lsmtune.stats.sequential import evidence_of_more

GOAL = Goal((Objective(),))


def unproven(pairs: int, ratio: float, log_sd: float) -> Verdict:
    """A verdict on values whose ratios scatter by about `log_sd` around `ratio`."""
    logs = np.random.default_rng(5).normal(0.0, 1.0, pairs)
    logs = (logs - logs.mean()) / logs.std(ddof=1) * log_sd + math.log(ratio)
    return judge(PairValues([1e5] * pairs, list(1e5 * np.exp(logs))), GOAL, 0.95)


def test_the_difference_that_was_seen() -> None:
    verdict = unproven(12, 1.03, 0.1)
    assert verdict.outcome is VerdictOutcome.NOT_PROVEN
    found = sample_size_wanted(verdict, None, 20.0)
    assert found.pairs is not None
    # The scale is a robust one, so that it is not quite the usual standard deviation.
    assert found.pairs == pytest.approx(pairs_needed(0.03, 0.1), rel=0.5)
    told = f"a difference of 3 % takes about {found.pairs} pairs, {found.pairs - 12} more (about "
    assert told in found.text
    assert found.text.startswith("12 pairs show a difference of ")


def test_a_slower_candidate_takes_as_many() -> None:
    slower, faster = (
        sample_size_wanted(unproven(12, r, 0.1), None, None).pairs for r in (1 / 1.03, 1.03)
    )
    assert slower == faster


def test_nothing_smaller_than_what_matters_is_sought() -> None:
    verdict = unproven(12, 1.001, 0.05)
    found = sample_size_wanted(verdict, 0.03, None)
    assert "at this noise a difference below 3 % takes about" in found.text
    assert found.text.endswith("more")  # nothing is known of the time


@pytest.mark.parametrize("seen", [0.0005, 0.01, 0.015, 0.02, 0.029])
def test_so_many_pairs_prove_a_difference_or_that_it_is_too_small(seen: float) -> None:
    """Where half of what matters was seen, three in five of such proofs ended unproven again."""
    proofs, effect = 150, 0.03
    verdict = unproven(12, 1.0 + seen, 0.03)
    wanted = sample_size_wanted(verdict, effect, None).pairs
    assert wanted is not None
    log_sd = noise_of([value / 1e5 for value in verdict.candidate_values]).log_sd
    noise = np.random.default_rng(7).standard_normal((proofs, wanted))
    logs, limit = math.log1p(seen) + log_sd * noise, math.log1p(effect)
    mark = 2.0 / (1.0 - 0.95)
    more, less = (evidence_of_more(side, 0.0) > mark for side in (logs, -logs))
    within = (evidence_of_more(logs, -limit) > mark) & (evidence_of_more(-logs, -limit) > mark)
    proved = (more | less | within).any(axis=1).mean()
    assert proved >= 0.8 - 3 * math.sqrt(0.8 * 0.2 / proofs)


def test_what_no_number_of_pairs_shows_has_another_advice() -> None:
    found = sample_size_wanted(unproven(8, 1.001, 0.1), None, 10.0)
    assert found.pairs is not None
    assert found.pairs > 1000
    assert f"takes about {found.pairs:,} pairs: say what is too small to matter" in found.text
    asked = sample_size_wanted(unproven(8, 1.001, 0.1), 0.0015, 10.0)
    assert asked.text.endswith("pairs: make the runs longer, or the machine quieter")


def test_more_than_there_were() -> None:
    """A proof that should have been clear by now was unlucky."""
    verdict = unproven(7, 1.2, 0.2)
    assert verdict.outcome is VerdictOutcome.NOT_PROVEN
    found = sample_size_wanted(verdict, None, 1.0)
    assert found.pairs is not None
    assert found.pairs > 7


@pytest.mark.parametrize("pairs", [0, 1])
def test_too_few_pairs_to_know_the_noise(pairs: int) -> None:
    verdict = judge(PairValues([1.0] * pairs, [1.0] * pairs), GOAL, 0.95)
    assert sample_size_wanted(verdict, None, None) == SampleSize(
        6, f"at least 6 pairs, {6 - pairs} more"
    )
    assert sample_size_wanted(verdict, None, 10.0).text.endswith(
        f"(about {'1m' if pairs == 0 else '50s'})"
    )


def test_a_large_difference_needs_no_more_than_the_least() -> None:
    found = sample_size_wanted(unproven(4, 0.05, 0.1), None, 30.0)
    assert found == SampleSize(6, "at least 6 pairs, 2 more (about 1m)")


def test_what_cannot_be_told() -> None:
    same = judge(PairValues([5.0] * 8, [5.0] * 8), GOAL, 0.95)
    assert sample_size_wanted(same, None, 10.0) == SampleSize()
    zero = judge(PairValues([5.0] * 8, [0.0] * 8), GOAL, 0.95)
    assert sample_size_wanted(zero, None, 10.0) == SampleSize()
