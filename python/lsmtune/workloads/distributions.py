"""The mean and the largest of what a distribution of sizes draws, and the bytes of a workload.

Means are what memory models, reports and advice go by. They are exact where there is a closed
form, and taken over quantiles where there is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from statistics import NormalDist, fmean
from typing import Any

from lsmtune.model.distribution import Distribution
from lsmtune.model.workload import Workload

_QUANTILES = 4096
_SUMMED = 1000  # ranks whose terms are summed one by one; an integral takes the rest


def mean_size(distribution: Distribution) -> float:
    """The mean size that `distribution` draws. Raises KeyError for one that is not of sizes."""
    return _MEANS[distribution.name](dict(distribution.parameters))


def largest_size(distribution: Distribution) -> int:
    """The largest size that `distribution` can draw."""
    given: Given = dict(distribution.parameters)
    match distribution.name:
        case "constant":
            return int(given["size"])
        case "table":
            return max(int(size) for size, _ in given["sizes"])
        case "row":
            return int(given["names_bytes"] + given["fields"] * (8 + largest_size(given["length"])))
    return int(given["high"])


def mean_key_bytes(workload: Workload) -> float:
    """The mean length of a key."""
    return (
        float(workload.key_bytes) if workload.key_sizes is None else mean_size(workload.key_sizes)
    )


def data_bytes(workload: Workload) -> int:
    """Bytes of the keys and values of `num` records."""
    return round(workload.num * (mean_key_bytes(workload) + workload.value_bytes))


Given = Mapping[str, Any]  # a number, a table of pairs, or the distribution of a row's lengths


def _mean_of_row(given: Given) -> float:
    """Before name and value of each field stand 4 bytes with their lengths, as in YCSB-cpp."""
    return float(given["names_bytes"] + given["fields"] * (8 + mean_size(given["length"])))


def _mean_of_table(given: Given) -> float:
    pairs = given["sizes"]
    return math.fsum(size * weight for size, weight in pairs) / math.fsum(w for _, w in pairs)


def _power_sum(count: int, exponent: float) -> float:
    """The sum of i^exponent for i from 1 to `count`, by the midpoint rule beyond _SUMMED."""
    head = math.fsum(float(i) ** exponent for i in range(1, min(count, _SUMMED) + 1))
    if count <= _SUMMED:
        return head
    low, high = _SUMMED + 0.5, count + 0.5
    if exponent == -1:
        return head + math.log(high / low)
    upper, lower = (math.pow(x, exponent + 1) for x in (high, low))
    return head + (upper - lower) / (exponent + 1)


def _mean_of_zipfian(given: Given) -> float:
    low, theta = given["low"], given["theta"]
    count = int(given["high"] - low) + 1
    return float(low - 1 + _power_sum(count, 1 - theta) / _power_sum(count, -theta))


def _over_quantiles(
    quantile: Callable[[float], float], share_low: float, share_high: float
) -> float:
    """The mean of what lies between two shares of a distribution."""
    step = (share_high - share_low) / _QUANTILES
    return fmean(quantile(share_low + (i + 0.5) * step) for i in range(_QUANTILES))


def _mean_of_normal(given: Given) -> float:
    normal = NormalDist(given["mean"], given["sd"])
    return _over_quantiles(normal.inv_cdf, normal.cdf(given["low"]), normal.cdf(given["high"]))


def _mean_of_pareto(given: Given) -> float:
    """Of the generalised Pareto distribution: F(x) = 1 - (1 + k (x - theta) / sigma)^(-1 / k)."""
    theta, k, sigma = given["theta"], given["k"], given["sigma"]

    def share_above(x: float) -> float:
        if x <= theta:
            return 1.0
        if k == 0:
            return math.exp(-(x - theta) / sigma)
        return math.pow(max(0.0, 1 + k * (x - theta) / sigma), -1 / k)

    share_low, share_high = (1 - share_above(given[bound]) for bound in ("low", "high"))
    return _over_quantiles(pareto_quantile(theta, k, sigma), share_low, share_high)


def pareto_quantile(theta: float, k: float, sigma: float) -> Callable[[float], float]:
    """The quantiles of the generalised Pareto distribution, by the share below them."""

    def quantile(share: float) -> float:
        if k == 0:
            return theta - sigma * math.log1p(-share)
        return theta + sigma * (math.pow(1 - share, -k) - 1) / k

    return quantile


_MEANS: dict[str, Callable[[Given], float]] = {
    "constant": lambda given: float(given["size"]),
    "uniform": lambda given: (given["low"] + given["high"]) / 2,
    "zipfian": _mean_of_zipfian,
    "normal": _mean_of_normal,
    "pareto": _mean_of_pareto,
    "row": _mean_of_row,
    "table": _mean_of_table,
}
