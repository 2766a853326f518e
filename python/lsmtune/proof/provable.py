"""What a calibrated machine can prove: the smallest effect for a time, the time for an effect.

All of it is for the sequential test of a proof, looked at after every pair, at a power of 80 %.
"""

from __future__ import annotations

import math
from functools import cache

from lsmtune.proof.calibration import Calibration
from lsmtune.stats.noise import detectable_effect, pairs_needed
from lsmtune.stats.sequential import pairs_at_least

POWER = 0.8
# An effect that can be proved is nearly a multiple of the deviation, the same for all deviations
# (within 3 % from 0.003 to 0.4), so that one simulation of the test serves every metric; and above
# so many pairs it falls nearly as their root (3 % too cautious at 1,000), so that it stays short.
_REFERENCE_LOG_SD = 0.05
_PAIRS_SIMULATED = 120
_DEVIATIONS_MOST = 100.0  # far more than the least number of pairs needs


def pairs_within(calibration: Calibration, budget_s: float) -> int:
    """How many pairs of runs fit into a time; 0 where no pair has been timed."""
    if not calibration.seconds_per_pair:
        return 0
    return math.floor(budget_s / calibration.seconds_per_pair)


def smallest_effect(
    calibration: Calibration, metric: str, budget_s: float, confidence: float = 0.95
) -> float | None:
    """The smallest effect on `metric` that a proof of `budget_s` seconds shows, 0.05 being 5 %.

    0 for a metric that does not vary. None where so few pairs fit that nothing can be proved, or
    the metric's noise is not known.
    """
    noise, pairs = calibration.metrics.get(metric), pairs_within(calibration, budget_s)
    if noise is None or pairs < pairs_at_least(confidence):
        return None
    return math.expm1(_deviations(pairs, confidence) * noise.pair_log_sd)


def pairs_for(
    calibration: Calibration, metric: str, effect: float, confidence: float = 0.95
) -> int | None:
    """How many pairs show an `effect` above 0 on `metric`; None where its noise is not known."""
    noise = calibration.metrics.get(metric)
    if noise is None:
        return None
    if noise.pair_log_sd == 0.0:
        return pairs_at_least(confidence)
    deviations = math.log1p(effect) / noise.pair_log_sd
    furthest = _deviations(_PAIRS_SIMULATED, confidence)
    if deviations < furthest:
        return math.ceil(_PAIRS_SIMULATED * (furthest / deviations) ** 2)
    as_reference = math.expm1(min(deviations, _DEVIATIONS_MOST) * _REFERENCE_LOG_SD)
    return pairs_needed(as_reference, _REFERENCE_LOG_SD, confidence, POWER)


def seconds_for(
    calibration: Calibration, metric: str, effect: float, confidence: float = 0.95
) -> float | None:
    """The time in which an effect on `metric` can be proved; None where it is not known."""
    pairs = pairs_for(calibration, metric, effect, confidence)
    if pairs is None or calibration.seconds_per_pair is None:
        return None
    return pairs * calibration.seconds_per_pair


def _deviations(pairs: int, confidence: float) -> float:
    """The log ratio that `pairs` pairs prove, in deviations of the log ratio of one pair."""
    simulated = min(pairs, _PAIRS_SIMULATED)
    return _simulated(simulated, confidence) * math.sqrt(simulated / pairs)


@cache
def _simulated(pairs: int, confidence: float) -> float:
    effect = detectable_effect(pairs, _REFERENCE_LOG_SD, confidence, POWER)
    return math.log1p(effect) / _REFERENCE_LOG_SD
