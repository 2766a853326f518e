"""How often something happened in simulations, and whether that is more than was stated."""

from __future__ import annotations

from dataclasses import dataclass

from scipy import special
from scipy import stats as distributions

_INTERVAL_CONFIDENCE = 0.95
# A rate breaks its promise when chance alone would show it so far off in fewer than one of a
# thousand simulations: with some sixty rates, a run of all of them is wrong once in sixteen at
# most.
_CHANCE = 1e-3


@dataclass(frozen=True)
class Rate:
    """`count` of `of`, as a `share` with its interval at 95 % (Clopper and Pearson)."""

    count: int
    of: int
    share: float
    low: float
    high: float

    def is_above(self, level: float) -> bool:
        """Whether the true rate is above `level`, beyond what the simulation's error explains."""
        return float(distributions.binom.sf(self.count - 1, self.of, level)) < _CHANCE

    def is_below(self, level: float) -> bool:
        """Whether the true rate is below `level`, beyond what the simulation's error explains."""
        return float(distributions.binom.cdf(self.count, self.of, level)) < _CHANCE


def rate(count: int, of: int) -> Rate:
    """The rate of `count` in `of` >= 1 (C. J. Clopper, E. S. Pearson, Biometrika 26, 1934)."""
    tail = (1.0 - _INTERVAL_CONFIDENCE) / 2.0
    # The quantiles of the beta distribution; at the ends the interval is one-sided.
    low = 0.0 if count == 0 else float(special.betaincinv(count, of - count + 1, tail))
    high = 1.0 if count == of else float(special.betaincinv(count + 1, of - count, 1.0 - tail))
    return Rate(count, of, count / of, low, high)


def rate_of(happened: list[bool]) -> Rate:
    """The rate of what is true."""
    return rate(sum(happened), len(happened))
