"""What scripts without sequential statistics conclude from the same runs: for contrast only."""

from __future__ import annotations

import numpy as np
from scipy import special

from lsmtune.model.verdict import VerdictOutcome
from simulations.playing import Look, Pairs

# Two pairs have an interval, but scripts tend to wait for three.
_FIRST_LOOK = 3


def student_after_every_pair(pairs: Pairs, confidence: float) -> list[Look]:
    """Baseline first in every pair; Student's t interval of the log ratios after every pair.

    The study ends at the first interval that excludes 1. An interval at `confidence` is wrong that
    often at one look that was fixed beforehand, and more often at the worst of many.
    """
    logs = np.log(pairs.second / pairs.first)
    counts = np.arange(1, logs.shape[1] + 1)
    means = np.cumsum(logs, axis=1) / counts
    squares = np.maximum(np.cumsum(logs**2, axis=1) - counts * means**2, 0.0)
    freedom = np.maximum(counts - 1, 1)
    margins = special.stdtrit(freedom, 0.5 + confidence / 2.0) * np.sqrt(squares / freedom / counts)
    decided = (np.abs(means) > margins) & (counts >= _FIRST_LOOK)
    ends = np.where(decided.any(axis=1), decided.argmax(axis=1), logs.shape[1] - 1)
    return [
        _look(int(end) + 1, bool(decided[study, end]), means[study, end], margins[study, end])
        for study, end in enumerate(ends)
    ]


def best_single_run(pairs: Pairs) -> list[Look]:
    """All pairs are run, and whoever had the fastest single run is called the faster one."""
    ratios = pairs.second.max(axis=1) / pairs.first.max(axis=1)
    count = pairs.first.shape[1]
    return [_look(count, ratio != 1.0, float(np.log(ratio)), 0.0) for ratio in ratios]


def _look(pairs: int, decided: bool, mean: float, margin: float) -> Look:
    outcome = VerdictOutcome.NOT_PROVEN
    if decided:
        outcome = VerdictOutcome.BETTER if mean > 0.0 else VerdictOutcome.WORSE
    low, ratio, high = (float(x) for x in np.exp([mean - margin, mean, mean + margin]))
    return Look(pairs, outcome, ratio, low, high)
