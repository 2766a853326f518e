"""How noisy runs are, what can be proved with it, and whether a run had become steady.

The scatter is measured by a robust scale, because that is what the sequential test feels: what it
can lose by one pair is bounded, so that a run that a neighbour disturbed costs it a few pairs, and
not the inflated variance. What it needs is found by playing the test itself on simulated pairs.

A run is steady where it was not still changing when it ended. The trend over the whole run is
compared with the slow ups and downs that are no trend: those along the six longest cosines beside
it. What autocorrelation does to slow movements it does to both, so that it need not be estimated,
which a run has too few intervals for (U. K. Mueller, "A theory of robust long-run variance
estimation", Journal of Econometrics 141, 2007; E. Lazarus, D. J. Lewis, J. H. Stock, M. W. Watson,
"HAR inference: recommendations for practice", Journal of Business and Economic Statistics 36,
2018). The usual diagnostics (J. Geweke, 1992, for one) take the long-run variance as known: in
simulation that one calls 3 to 5 in 10 steady runs of 20 intervals unsteady.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy
from numpy.typing import NDArray

from lsmtune.stats.intervals import logs_of
from lsmtune.stats.sequential import evidence_of_more, pairs_at_least

# Of fewer runs no scale can tell an outlier from the rest, nor a series its autocorrelation.
_ROBUST_RUNS = 5
_INTERVAL_CONFIDENCE = 0.95

# The simulated proofs: so many that a power of 0.8 is known to 0.013 (one standard error). The
# seed is fixed, so that the answers are a function of the arguments.
_PROOFS = 1000
_SEED = 20261121
# Simulated proofs go no further; beyond, pairs are taken to grow as 1 / effect^2.
_PAIRS_SIMULATED = 120
_PRECISION = 1e-3
_POWER = 0.8


@dataclass(frozen=True)
class Noise:
    """The scatter of `runs` values: the standard deviation of their logarithms.

    `log_sd_low` to `log_sd_high` is its interval at 95 %, for values whose logs are normal and
    independent; with few runs it is wide. `autocorrelation` is that of neighbours in time, None
    where fewer than five values or values that are all the same tell nothing of it.
    """

    runs: int
    log_sd: float
    log_sd_low: float
    log_sd_high: float
    autocorrelation: float | None


def noise_of(values: Sequence[float]) -> Noise:
    """The noise of at least two positive values in the order of time.

    From five values on it is Qn, the lower quartile of all distances between two logs (P. J.
    Rousseeuw, C. Croux, "Alternatives to the median absolute deviation", JASA 88, 1993), scaled to
    be the standard deviation of normal values. Up to half of the values may be outliers; on clean
    normal values it is as good as the usual formula on about 0.7 times as many. With fewer values,
    or where most are equal and some are not, it is the usual formula.

    Raises ValueError for another shape, fewer than two values, and values that are not finite and
    above zero.
    """
    row = np.asarray(values, dtype=np.float64)
    if row.ndim != 1 or len(row) < 2:
        raise ValueError(f"noise needs a series of at least 2 values, found shape {row.shape}")
    logs, runs = logs_of(row), len(row)
    log_sd, freedom = _qn(logs) if runs >= _ROBUST_RUNS else (0.0, 0.0)
    if log_sd == 0.0:
        log_sd, freedom = float(np.std(logs, ddof=1)), float(runs - 1)
    tails = 0.5 + np.array([0.5, -0.5]) * _INTERVAL_CONFIDENCE
    # Quantiles of chi squared; scipy.stats, which has them too, takes half a second to load.
    low, high = log_sd / np.sqrt(2.0 * scipy.special.gammaincinv(freedom / 2.0, tails) / freedom)
    # Of neighbours, by the usual formula (G. E. P. Box, G. M. Jenkins, 1970, section 2.1.5).
    around, autocorrelation = logs - logs.mean(), None
    total = float(around @ around)
    if runs >= _ROBUST_RUNS and total > 1e-24 * float(logs @ logs):
        autocorrelation = float(around[1:] @ around[:-1]) / total
    return Noise(runs, log_sd, float(low), float(high), autocorrelation)


def _qn(logs: NDArray[np.float64]) -> tuple[float, float]:
    """The scale Qn, such that its square is about the variance of normal values.

    With the degrees of freedom of the chi-squared distribution that Qn squared is about as wide as.
    """
    runs = len(logs)
    first, second = np.triu_indices(runs, 1)
    order = math.comb(runs // 2 + 1, 2)
    raw = float(np.partition(np.abs(logs[first] - logs[second]), order - 1)[order - 1])
    # 2.2191 is the constant of Rousseeuw and Croux for many values. Those for few were fitted to
    # the distribution of 100,000 simulated series each of 5 to 100 values: the scale is within 2 %
    # of it, and the interval holds the deviation in 94 to 97 % of series.
    few, freedom = (1.9, 0.72 * runs - 1.9) if runs % 2 else (4.5, 0.72 * runs - 1.4)
    return 2.2191 * (runs / (runs + few)) * raw, freedom


def pairs_needed(
    effect: float, pair_log_sd: float, confidence: float = 0.95, power: float = _POWER
) -> int:
    """The pairs within which the sequential test proves `effect` with probability `power`.

    `effect` is the ratio less one: 0.05 and -0.05 are a candidate with 5 % more and 5 % less.
    `pair_log_sd` is the standard deviation of the log of one pair's ratio. Up to 120 pairs it is
    counted in 1,000 simulated proofs on normal logs, looked at after every pair; beyond, it grows
    as 1 / effect^2, which is so within 8 % up to a deviation of 0.2. The simulation's own error is
    about 3 % of the pairs.

    Raises ValueError for an effect that is 0, not finite or not above -1, a negative or infinite
    deviation, and a confidence or power that is not between 0 and 1.
    """
    if not (math.isfinite(effect) and effect > -1.0 and effect != 0.0):
        raise ValueError(f"an effect must be above -1 and not 0, found {effect}")
    _check(pair_log_sd, confidence, power)
    size = abs(math.log1p(effect))
    for pairs in (30, _PAIRS_SIMULATED):
        needed = _quantile_of_pairs(size, pair_log_sd, confidence, power, pairs)
        if needed <= pairs:
            return needed
    furthest = _detectable_size(_PAIRS_SIMULATED, pair_log_sd, confidence, power)
    return math.ceil(_PAIRS_SIMULATED * (furthest / size) ** 2)


def detectable_effect(pairs: int, pair_log_sd: float, confidence: float = 0.95) -> float:
    """The smallest effect, as a ratio less one, that `pairs` pairs prove with probability 0.8.

    The inverse of `pairs_needed`, to a thousandth. Infinite with fewer than
    `pairs_at_least(confidence)` pairs. Raises ValueError as `pairs_needed` does.
    """
    _check(pair_log_sd, confidence, _POWER)
    if pairs < pairs_at_least(confidence):
        return math.inf
    simulated = min(pairs, _PAIRS_SIMULATED)
    size = _detectable_size(simulated, pair_log_sd, confidence, _POWER)
    return math.expm1(size * math.sqrt(simulated / pairs))


def _check(pair_log_sd: float, confidence: float, power: float) -> None:
    if not (math.isfinite(pair_log_sd) and pair_log_sd >= 0.0):
        raise ValueError(f"a deviation must be finite and not negative, found {pair_log_sd}")
    for name, share in (("confidence", confidence), ("power", power)):
        if not 0.0 < share < 1.0:
            raise ValueError(f"{name} must lie between 0 and 1, found {share}")


@cache
def _detectable_size(pairs: int, log_sd: float, confidence: float, power: float) -> float:
    """The smallest log ratio that is proved within `pairs` pairs, by bisection."""

    def proved(size: float) -> bool:
        return _quantile_of_pairs(size, log_sd, confidence, power, pairs) <= pairs

    # Near the answer: see `pairs_needed`; a deviation of 0 leaves the finest of the slopes.
    low, high = 0.0, max(4.0 * log_sd / math.sqrt(pairs), 1e-3)
    while not proved(high):
        low, high = high, 2.0 * high
    while high - low > _PRECISION * high:
        middle = (low + high) / 2.0
        low, high = (low, middle) if proved(middle) else (middle, high)
    return high


def _quantile_of_pairs(
    size: float, log_sd: float, confidence: float, power: float, most: int
) -> int:
    """The pair at which a share `power` of simulated proofs have ended; most + 1 if none of `most`.

    The same draws serve every call, so that the answer falls as `size` rises.
    """
    draws = np.random.default_rng(_SEED).standard_normal((most, _PROOFS)).T
    proven = evidence_of_more(size + log_sd * draws, 0.0) > 2.0 / (1.0 - confidence)
    ended = np.where(proven.any(axis=1), proven.argmax(axis=1) + 1, most + 1)
    return int(np.quantile(ended, power, method="inverted_cdf"))


# --- steadiness

INTERVALS_LEAST = 8
_COSINES = 6
# The nominal level. In 8,000 simulated steady runs each of 8 to 100 intervals, autocorrelated by up
# to 0.5, at most 5 in 100 are called unsteady at it, and 1 in 100 without autocorrelation.
_LEVEL = 0.01


@dataclass(frozen=True)
class Stationarity:
    """Whether a run was `steady`, and how it is known.

    `trend_per_cent` is how far the straight line through the throughputs rises from the first
    interval to the last (falls, where negative), in per cent of their mean. `why` is a clause.
    """

    steady: bool
    trend_per_cent: float
    why: str


@cache
def _movements(count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A rising straight line, and the slow movements beside it; orthonormal."""
    time = (np.arange(count) + 0.5) / count
    cosines = [np.cos(np.pi * number * time) for number in range(2, 2 + min(_COSINES, count - 4))]
    columns, _ = np.linalg.qr(np.column_stack([np.ones(count), time - 0.5, *cosines]))
    return columns[:, 1] * np.sign(columns[-1, 1]), columns[:, 2:]


def stationarity(throughputs: Sequence[float], *, smallest_per_cent: float = 5.0) -> Stationarity:
    """Whether the throughputs of at least `INTERVALS_LEAST` intervals of equal length are steady.

    They are not when their trend is more than chance, and at least `smallest_per_cent`: a long run
    shows trends that change no result. At most 5 in 100 steady runs are called unsteady while the
    autocorrelation of neighbours is at most 0.5. A burst at the start that was over early is no
    trend.

    Raises ValueError for another shape, fewer intervals, and throughputs that are negative or not
    finite.
    """
    values = np.asarray(throughputs, dtype=np.float64)
    if values.ndim != 1 or len(values) < INTERVALS_LEAST:
        raise ValueError(
            f"a trend needs at least {INTERVALS_LEAST} intervals, found shape {values.shape}"
        )
    bad = values[~(np.isfinite(values) & (values >= 0.0))]
    if bad.size:
        raise ValueError(f"throughputs must be finite and not negative, found {bad[0]}")
    count, mean = len(values), float(values.mean())
    if np.ptp(values) == 0.0 or mean == 0.0:
        return Stationarity(True, 0.0, f"all {count} intervals are the same")
    line, others = _movements(count)
    along = float(line @ values)
    per_cent = 100.0 * along * float(line[-1] - line[0]) / mean
    apart = float(np.sqrt(np.mean((others.T @ values) ** 2)))
    mark = float(scipy.special.stdtrit(others.shape[1], 1.0 - _LEVEL / 2.0))
    if abs(along) <= mark * apart:
        return Stationarity(True, per_cent, f"no trend stands out in {count} intervals")
    way = "rose" if per_cent > 0.0 else "fell"
    why = f"throughput {way} by {abs(per_cent):.2g} % of its mean over {count} intervals"
    return Stationarity(abs(per_cent) < smallest_per_cent, per_cent, why)
