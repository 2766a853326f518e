"""Sizes of keys and values: the distribution that a workload draws from, fitted to a histogram."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats as distributions

from lsmtune.records.workload import Distribution
from lsmtune.stats.fitting import Pareto, fit_pareto
from lsmtune.stats.goodness import ks_distance, quantiles, relative_error
from lsmtune.traces.part import FittedPart
from lsmtune.traces.summary import Histogram

Array = NDArray[np.float64]

# A distribution with parameters is taken where its largest difference to the trace is below this;
# elsewhere the sizes themselves, in so many groups, each of which then holds 2 % at most.
KS_LIMIT = 0.05
TABLE_ROWS = 64
# Where models are about as good, the one with fewer parameters is taken.
_ABOUT = 0.005
_FEWEST_FOR_MODELS = 5
_QUANTILES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999)
# db_bench: an option that nobody sets, and the size below which none is (tools/db_bench_tool.cc).
DB_BENCH_FLOOR, DB_BENCH_WRAP = 10, 1024


@dataclass(frozen=True)
class SizeFit:
    """Sizes as a workload draws them, and the Pareto distribution that is most like them."""

    distribution: Distribution
    part: FittedPart
    pareto: Pareto | None


def fit_sizes(name: str, histogram: Histogram, *, model: bool = True) -> SizeFit:
    """The distribution nearest to `histogram`; without `model`, of the sizes themselves."""
    sizes, counts = np.array(histogram.values), np.array(histogram.counts)
    if len(sizes) == 1:
        size = int(sizes[0])
        part = FittedPart(name, f"always {size}", (("ks_distance", 0.0),), KS_LIMIT)
        return SizeFit(Distribution.of("constant", size=size), part, None)
    pareto = likely_pareto(sizes, counts) if model else None
    found = _table(sizes, counts)
    best = ks_distance(sizes, counts, *found[1:])
    if model and len(sizes) >= _FEWEST_FOR_MODELS:
        candidates = _models(sizes, counts, pareto)
        distances = [ks_distance(sizes, counts, *candidate[1:]) for candidate in candidates]
        near = min(distances)
        if near <= KS_LIMIT:
            chosen = next(i for i, d in enumerate(distances) if d <= near + _ABOUT)
            found, best = candidates[chosen], distances[chosen]
    return SizeFit(found[0], _part(name, sizes, counts, found, best, pareto), pareto)


def likely_pareto(sizes: Array, counts: Array) -> Pareto | None:
    """The most likely of the Pareto distributions that sizes may have come from, if any.

    With a floor, and with remainders, where that makes what was seen more likely: as db_bench draws
    them. None for fewer than two sizes.
    """
    if len(sizes) < 2 or sizes.max() < 2:
        return None
    low, high = int(sizes.min()), int(sizes.max())
    tried = [fit_pareto(sizes, counts, theta=theta) for theta in {0.0, low - 1.0} if theta < low]
    if low > 0:
        tried.append(fit_pareto(sizes, counts, floor=low))
    if high <= DB_BENCH_WRAP:
        floor = DB_BENCH_FLOOR if low < DB_BENCH_FLOOR else low
        tried.append(fit_pareto(sizes, counts, floor=floor, wrap=DB_BENCH_WRAP))
    return max(tried, key=lambda found: found.log_likelihood, default=None)


Candidate = tuple[Distribution, Array, Array]


def _models(sizes: Array, counts: Array, pareto: Pareto | None) -> list[Candidate]:
    """Distributions of the driver, the simplest first: what they draw, and how often."""
    low, high = int(sizes.min()), int(sizes.max())
    # A tail of single sizes far out is no reason to list every whole number up to it.
    support = np.unique(np.round(np.linspace(low, high, min(high - low + 1, 200_000))))
    edges = np.append(support[0] - 1.0, support)
    found = []
    uniform = Distribution.of("uniform", low=low, high=high)
    found.append((uniform, support, np.diff(edges)))
    mean, sd = _moments(sizes, counts)
    normal = distributions.norm(mean, sd)
    of = Distribution.of("normal", mean=_rounded(mean), sd=_rounded(sd), low=low, high=high)
    found.append((of, support, np.diff(normal.cdf(edges + 0.5))))
    if pareto is not None:
        shares = np.diff(pareto.distribution(edges))
        # The driver rounds down, and the model up: the same whole sizes, with theta one more.
        of = Distribution.of(
            *("pareto",),
            theta=pareto.theta + 1.0,
            k=_rounded(pareto.k),
            sigma=_rounded(pareto.sigma),
            low=low,
            high=high,
        )
        found.append((of, support, shares))
    return [candidate for candidate in found if candidate[2].sum() > 0]


def _moments(sizes: Array, counts: Array) -> tuple[float, float]:
    mean = float(np.average(sizes, weights=counts))
    return mean, max(float(np.sqrt(np.average((sizes - mean) ** 2, weights=counts))), 1e-6)


def _table(sizes: Array, counts: Array) -> Candidate:
    """The sizes themselves, or groups of neighbours, each by its mean size."""
    means, weights = (sizes, counts) if len(sizes) <= TABLE_ROWS else _grouped(sizes, counts)
    rows = tuple((round(size), int(weight)) for size, weight in zip(means, weights, strict=True))
    table = Distribution.of("table", sizes=rows)
    return table, np.array([float(size) for size, _ in rows]), np.array([w for _, w in rows], float)


def _grouped(sizes: Array, counts: Array) -> tuple[Array, Array]:
    # A size that is as frequent as two groups has a group of its own.
    own = counts * TABLE_ROWS >= 2 * counts.sum()
    step = counts.sum() / max(TABLE_ROWS - 2 * int(own.sum()), 1)
    within = np.floor((np.cumsum(np.where(own, 0, counts)) - 1e-9) / step)
    group = np.cumsum(np.diff(within, prepend=within[0]).astype(bool) | own | _after(own))
    weights = np.bincount(group, counts)
    sums = np.bincount(group, counts * sizes)
    used = weights > 0
    return np.asarray(sums[used] / weights[used], float), np.asarray(weights[used], float)


def _after(own: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return np.append(False, own[:-1])


def _part(
    name: str,
    sizes: Array,
    counts: Array,
    found: Candidate,
    distance: float,
    pareto: Pareto | None,
) -> FittedPart:
    of, drawn, shares = found
    mean = float(np.average(sizes, weights=counts))
    modelled = float(np.average(drawn, weights=shares))
    warnings = []
    if of.name == "table" and pareto is not None and len(sizes) > TABLE_ROWS:
        warnings.append(
            f"{name}: no model of the driver is within {KS_LIMIT:g} of the trace; "
            f"the sizes themselves are used, in {len(drawn)} groups"
        )
    qq = zip(
        _QUANTILES,
        quantiles(sizes, counts, _QUANTILES).tolist(),
        quantiles(drawn, shares, _QUANTILES).tolist(),
        strict=True,
    )
    distances = (("ks_distance", distance), ("mean_relative_error", relative_error(modelled, mean)))
    return FittedPart(name, size_words(of), distances, KS_LIMIT, tuple(warnings), tuple(qq))


def size_words(of: Distribution) -> str:
    """A distribution of sizes in a few words."""
    given = dict(of.parameters)
    rows = given.get("sizes")
    if isinstance(rows, tuple):
        return f"table of {len(rows)} sizes"
    return f"{of.name}: " + ", ".join(f"{key} {value}" for key, value in given.items())


def _rounded(value: float) -> float:
    """To six digits: more say nothing, and files are read by people."""
    return float(f"{value:.6g}")
