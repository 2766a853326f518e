"""All simulations of the statistics; a function of the seed."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

import numpy as np

from lsmtune.errors import LsmtuneError
from simulations.detectors import ANCHOR_CASES, NOISE_CASES
from simulations.playing import (
    CONFIDENCE,
    PAIRS_MAX,
    Look,
    Pairs,
    best_single_run,
    coins,
    draw_pairs,
    play,
    proof_rule,
    student_after_every_pair,
    useful_looks,
)
from simulations.scenarios import SCENARIOS, Scenario

# Part of the derivation of seeds.
_STUDIES_PER_PART = 100
# Of each part so many studies are looked at after every pair, to hold `useful_looks` against.
_LOOKED_AT_ALWAYS = 3


@dataclass
class Endings:
    """How the studies of one scenario ended: by proof, and by what naive scripts do."""

    proof: list[Look] = field(default_factory=list)
    student: list[Look] = field(default_factory=list)
    best_run: list[Look] = field(default_factory=list)


@dataclass
class Simulated:
    """Endings by scenario and counts by case, each of `studies` studies."""

    studies: int
    endings: dict[str, Endings] = field(default_factory=lambda: defaultdict(Endings))
    counts: Counter[str] = field(default_factory=Counter)


def simulate(studies: int, seed: int) -> Simulated:
    """`studies` >= 1 studies of every scenario and case.

    Raises LsmtuneError when a study that was looked at after every pair ended otherwise than one
    whose useless looks were skipped.
    """
    found = Simulated(studies)
    for first in range(0, studies, _STUDIES_PER_PART):
        count = min(_STUDIES_PER_PART, studies - first)
        went_first = coins([seed + first + index for index in range(count)])
        for number, case in enumerate((*SCENARIOS, *ANCHOR_CASES, *NOISE_CASES)):
            sequence = np.random.SeedSequence(seed, spawn_key=(number, first))
            random = np.random.default_rng(sequence)
            if isinstance(case, Scenario):
                _add_endings(found, case, draw_pairs(case, random, went_first))
            else:
                found.counts[case.name] += case.count(random, count)
    return found


def _add_endings(found: Simulated, scenario: Scenario, pairs: Pairs) -> None:
    useful = useful_looks(pairs.log_ratios, CONFIDENCE, scenario.smallest_effect)
    rule = proof_rule(CONFIDENCE, scenario.smallest_effect)
    columns = list(zip(pairs.baseline.tolist(), pairs.candidate.tolist(), strict=True))
    proof = [
        play(baseline, candidate, rule, (np.flatnonzero(looks) + 1).tolist())
        for (baseline, candidate), looks in zip(columns, useful, strict=True)
    ]
    for (baseline, candidate), skipped in zip(columns[:_LOOKED_AT_ALWAYS], proof, strict=False):
        check_skipping(scenario.name, play(baseline, candidate, rule, looks_at_all()), skipped)
    endings = found.endings[scenario.name]
    endings.proof += proof
    endings.student += student_after_every_pair(pairs, CONFIDENCE)
    endings.best_run += best_single_run(pairs)


def looks_at_all() -> range:
    """A look after every pair."""
    return range(1, PAIRS_MAX + 1)


def check_skipping(name: str, every: Look, skipped: Look) -> None:
    """Raises LsmtuneError when skipping looks changed how a study ended."""
    if every.pairs != skipped.pairs or every.outcome is not skipped.outcome:
        raise LsmtuneError(
            f"simulation: {name}: a proof decides where its evidence should be too little: "
            f"{every.outcome.value} after {every.pairs} pairs; without useless looks "
            f"{skipped.outcome.value} after {skipped.pairs}"
        )
