"""What distributions draw: the mean and the largest of sizes, the bytes of a workload, and draws.

Means are what memory models, reports and advice go by. They are exact where there is a closed
form, and taken over quantiles where there is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from random import Random
from statistics import NormalDist, fmean
from typing import Any

from lsmtune.errors import InputError
from lsmtune.model.distribution import Distribution, pareto_above
from lsmtune.model.workload import KeyOrder, Workload, YcsbKeys

_QUANTILES = 4096
_SUMMED = 1000  # ranks whose terms are summed one by one; an integral takes the rest


def mean_size(distribution: Distribution) -> float:
    """The mean size that `distribution` draws. Raises KeyError for one that is not of sizes."""
    return _MEANS[distribution.name](dict(distribution.parameters))


def largest_size(distribution: Distribution) -> int:
    """The largest size that `distribution` can draw."""
    return _bound(distribution, "high", max)


def smallest_size(distribution: Distribution) -> int:
    """The smallest size that `distribution` can draw."""
    return _bound(distribution, "low", min)


def _bound(distribution: Distribution, stated: str, of: Callable[[Iterable[int]], int]) -> int:
    """The parameter `stated` of most distributions, or `of` what is listed: max or min."""
    given: Given = dict(distribution.parameters)
    match distribution.name:
        case "constant":
            return int(given["size"])
        case "table":
            return of(int(size) for size, _ in given["sizes"])
        case "row":
            each = 8 + _bound(given["length"], stated, of)
            return int(given["names_bytes"] + given["fields"] * each)
    return int(given[stated])


def mean_key_bytes(workload: Workload) -> float:
    """The mean length of a key."""
    sizes = workload.key_sizes
    return float(workload.key_bytes) if sizes is None else mean_size(sizes)


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


def _over_quantiles(quantile: Callable[[float], float], one: float, other: float) -> float:
    """The mean of what lies between two shares of a distribution."""
    step = (other - one) / _QUANTILES
    return fmean(quantile(one + (i + 0.5) * step) for i in range(_QUANTILES))


def _mean_of_normal(given: Given) -> float:
    normal = NormalDist(given["mean"], given["sd"])
    return _over_quantiles(normal.inv_cdf, normal.cdf(given["low"]), normal.cdf(given["high"]))


def _mean_of_pareto(given: Given) -> float:
    if given["low"] == given["high"]:
        return float(given["low"])
    law = given["theta"], given["k"], given["sigma"]
    above = (pareto_above(given[bound], *law) for bound in ("low", "high"))
    return _over_quantiles(lambda share: _pareto_at(share, *law), *above)


def _pareto_at(above: float, theta: float, k: float, sigma: float) -> float:
    """The size above which is a share `above` of the generalised Pareto distribution."""
    back = -math.log(above)
    return theta + sigma * (math.expm1(k * back) / k if k else back)


_MEANS: dict[str, Callable[[Given], float]] = {
    "constant": lambda given: float(given["size"]),
    "uniform": lambda given: (given["low"] + given["high"]) / 2,
    "zipfian": _mean_of_zipfian,
    "normal": _mean_of_normal,
    "pareto": _mean_of_pareto,
    "row": _mean_of_row,
    "table": _mean_of_table,
}


# --- keys, sizes and operations drawn in Python, for what is written for others
#
# The driver draws its own, by the same definitions (`driver/src/random/`); this is as correct and
# much slower. The Zipfian is that of J. Gray and others, "Quickly generating billion-record
# synthetic databases" (SIGMOD 1994), as YCSB's `ZipfianGenerator` uses it.

# FNV-1a of 64 bits over the eight bytes of a number (Fowler, Noll, Vo).
_FNV_OFFSET, _FNV_PRIME, _MASK = 0xCBF29CE484222325, 1099511628211, (1 << 64) - 1
_SCRAMBLED_RANKS = 10_000_000_000  # ScrambledZipfianGenerator.java, ITEM_COUNT
_RANKS_SUMMED = 100_000
_LEAST = 2.0**-53  # a quantile function takes neither 0 nor 1

Chooser = Callable[[int, int], int]


def hashed(number: int) -> int:
    """YCSB's hash of a key's number."""
    value = _FNV_OFFSET
    for _ in range(8):
        value = ((value ^ (number & 0xFF)) * _FNV_PRIME) & _MASK
        number >>= 8
    return value


def key_text(number: int, keys: YcsbKeys | None, key_bytes: int) -> str:
    """The key of `number`: YCSB's, or its decimal digits with zeros before, `key_bytes` long."""
    if keys is None:
        return str(number).zfill(key_bytes)
    shown = hashed(number) if keys.order is KeyOrder.HASHED else number
    return keys.prefix + str(shown).zfill(keys.zero_padding)


def chooser(keys: Distribution, random: Random, source: str, records: int) -> Chooser:
    """Draws the number of one of the keys from `first` to `last`, both included.

    What depends on how many there are follows from the `records` of the beginning, as in YCSB.

    Raises InputError for a distribution that is drawn by the driver alone.
    """
    given: dict[str, Any] = dict(keys.parameters)
    match keys.name:
        case "uniform":
            return random.randint
        case "sequential":
            return _sequential()
        case "zipfian":
            ranks = _Zipfian(given["theta"], random)
            return lambda first, last: first + ranks.draw(last - first + 1)
        case "latest":
            ranks = _Zipfian(given["theta"], random)
            # One rank less than there are keys, as YCSB's SkewedLatestGenerator has it.
            return lambda first, last: last - ranks.draw(max(1, last - first))
        case "scrambled_zipfian":
            return _scrambled(given, random, records)
        case "hotspot":
            return _hotspot(given["hot_data"], given["hot_operations"], random)
        case "exponential":
            return _exponential(given["percentile"], records * given["fraction"], random)
    allowed = "uniform, sequential, zipfian, scrambled_zipfian, latest, hotspot, exponential"
    why = "is drawn by lsmtune's driver only"
    raise InputError(source, "keys", found=keys.name, why=why, allowed=allowed)


def size_chooser(sizes: Distribution, random: Random, source: str) -> Callable[[], int]:
    """Draws sizes. Raises InputError for a distribution that is drawn by the driver alone."""
    given: dict[str, Any] = dict(sizes.parameters)
    match sizes.name:
        case "constant":
            return lambda: int(given["size"])
        case "uniform":
            return lambda: random.randint(given["low"], given["high"])
        case "zipfian":
            ranks, count = _Zipfian(given["theta"], random), given["high"] - given["low"] + 1
            return lambda: int(given["low"]) + ranks.draw(count)
        case "normal":
            return _normal(given, random)
        case "pareto":
            return _pareto(given, random)
        case "table":
            drawn = weighted(given["sizes"], random)
            return lambda: int(drawn())
        case "row":
            length = size_chooser(given["length"], random, source)
            fields, names = int(given["fields"]), int(given["names_bytes"])
            return lambda: names + sum(8 + length() for _ in range(fields))
    raise InputError(source, "value_sizes", found=sizes.name, why="is no distribution of sizes")


def weighted(pairs: tuple[tuple[Any, float], ...], random: Random) -> Callable[[], Any]:
    """Draws the first of a pair by its second, the weight."""
    known, bounds = [one for one, _ in pairs], list(accumulate(weight for _, weight in pairs))
    return lambda: random.choices(known, cum_weights=bounds)[0]


def _sequential() -> Chooser:
    at = -1

    def draw(first: int, last: int) -> int:
        nonlocal at
        at = first if at < first or at >= last else at + 1
        return at

    return draw


def _scrambled(given: dict[str, Any], random: Random, records: int) -> Chooser:
    ranks, items = _Zipfian(given["theta"], random), given.get("items") or records

    def draw(first: int, last: int) -> int:
        while True:
            number = first + hashed(ranks.draw(_SCRAMBLED_RANKS)) % items
            if number <= last:
                return number

    return draw


def _hotspot(hot_data: float, hot_operations: float, random: Random) -> Chooser:
    def draw(first: int, last: int) -> int:
        count = last - first + 1
        hot = min(max(int(count * hot_data), 1), count)
        if random.random() < hot_operations or hot == count:
            return first + random.randrange(hot)
        return first + hot + random.randrange(count - hot)

    return draw


def _exponential(percentile: float, newest: float, random: Random) -> Chooser:
    """`percentile` of the draws are among the `newest` keys; those before the first come again."""
    rate = -math.log(1 - percentile / 100) / newest

    def draw(first: int, last: int) -> int:
        while True:
            back = int(random.expovariate(rate))
            if last - back >= first:
                return last - back

    return draw


def _normal(given: dict[str, Any], random: Random) -> Callable[[], int]:
    """Between the bounds at once, as the driver draws: a wide law may seldom be within them."""
    low, high = int(given["low"]), int(given["high"])
    normal = NormalDist(given["mean"], given["sd"])
    below, up_to = normal.cdf(low - 0.5), normal.cdf(high + 0.5)

    def draw() -> int:
        share = min(max(random.uniform(below, up_to), _LEAST), 1 - _LEAST)
        return min(max(round(normal.inv_cdf(share)), low), high)

    return draw


def _pareto(given: dict[str, Any], random: Random) -> Callable[[], int]:
    """Between the bounds at once, as the driver draws: a tail may hold one draw in a billion."""
    low, high = int(given["low"]), int(given["high"])
    law = given["theta"], given["k"], given["sigma"]
    above, beyond = (pareto_above(size, *law) for size in (low, high + 1))

    def draw() -> int:
        if low == high:
            return low
        size = math.floor(_pareto_at(above - random.random() * (above - beyond), *law))
        return min(max(size, low), high)  # only rounding leaves the bounds

    return draw


class _Zipfian:
    """Ranks from 0 on, the k-th with a share of about 1 / (k + 1)^theta."""

    def __init__(self, theta: float, random: Random) -> None:
        self._theta = theta
        self._random = random
        self._count = 0
        self._zeta = self._eta = 0.0
        self._head = list(accumulate(math.pow(i, -theta) for i in range(1, _RANKS_SUMMED + 1)))

    def draw(self, count: int) -> int:
        if count != self._count:
            self._count, self._zeta = count, self._sum(count)
            two = 1 + 0.5**self._theta
            self._eta = (
                (1 - (2 / count) ** (1 - self._theta)) / (1 - two / self._zeta) if count > 2 else 0
            )
        u = self._random.random()
        scaled = u * self._zeta
        if scaled < 1 or count == 1:
            return 0
        if scaled < 1 + 0.5**self._theta or count == 2:
            return 1
        rank = int(count * (self._eta * u - self._eta + 1) ** (1 / (1 - self._theta)))
        return min(rank, count - 1)

    def _sum(self, count: int) -> float:
        """The sum of i^-theta up to `count`; beyond the summed head by the midpoint rule."""
        if count <= _RANKS_SUMMED:
            return self._head[count - 1]
        power = 1 - self._theta
        low, high = _RANKS_SUMMED + 0.5, count + 0.5
        return self._head[-1] + (math.pow(high, power) - math.pow(low, power)) / power
