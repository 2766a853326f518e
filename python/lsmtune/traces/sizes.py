"""Sizes, rates and operations of a trace, as a workload has them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import scipy

from lsmtune.model.distribution import Distribution
from lsmtune.model.workload import SineRate, StepRate
from lsmtune.stats.fitting import (
    Array,
    Pareto,
    explained_share,
    fit_pareto,
    fit_sine,
    ks_distance,
    quantiles,
    relative_error,
    total_variation,
)
from lsmtune.traces.summary import Histogram, Rows, TraceSummary


@dataclass(frozen=True)
class FittedPart:
    """What was fitted (`mix`, `keys`, ...), by which `model`, and how far it is from the trace.

    `distances` are pairs of a measure's name and its value, 0 where nothing differs; a part whose
    first distance is above `limit` does not fit. `curve` has rows of (x, trace, model), where there
    is something to draw.
    """

    name: str
    model: str
    distances: tuple[tuple[str, float], ...]
    limit: float
    warnings: tuple[str, ...] = ()
    curve: Rows = field(default=(), repr=False)

    @property
    def fits(self) -> bool:
        """Whether the first distance is within the limit."""
        return not self.distances or self.distances[0][1] <= self.limit


def fitted_part(
    name: str,
    model: str,
    distance: tuple[str, float],
    limit: float,
    warning: str = "",
    curve: Rows = (),
) -> FittedPart:
    """A part with one distance; `warning` is said where that is above `limit`."""
    warnings = (warning,) if distance[1] > limit else ()
    return FittedPart(name, model, (distance,), limit, warnings, curve)


def rounded(value: float) -> float:
    """To six digits: more say nothing, and files are read by people."""
    return float(f"{value:.6g}")


# --- sizes

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
        part = fitted_part(name, f"always {size}", ("ks_distance", 0.0), KS_LIMIT)
        return SizeFit(Distribution.of("constant", size=size), part, None)
    pareto = _likely_pareto(sizes, counts) if model else None
    best = _table(sizes, counts)
    distance = ks_distance(sizes, counts, best.sizes, best.weights)
    if model and len(sizes) >= _FEWEST_FOR_MODELS:
        models = _models(sizes, counts, pareto)
        distances = [ks_distance(sizes, counts, each.sizes, each.weights) for each in models]
        near = min(distances)
        if near <= KS_LIMIT:
            chosen = next(i for i, d in enumerate(distances) if d <= near + _ABOUT)
            best, distance = models[chosen], distances[chosen]
    part = _size_part(name, sizes, counts, best, distance, pareto)
    return SizeFit(best.distribution, part, pareto)


def _likely_pareto(sizes: Array, counts: Array) -> Pareto | None:
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
    return max(tried, key=lambda fit: fit.log_likelihood, default=None)


class _Model(NamedTuple):
    """A distribution of the driver, the sizes that it draws, and how often it draws each."""

    distribution: Distribution
    sizes: Array
    weights: Array


def _models(sizes: Array, counts: Array, pareto: Pareto | None) -> list[_Model]:
    """Distributions with parameters, the simplest first."""
    low, high = int(sizes.min()), int(sizes.max())
    # A tail of single sizes far out is no reason to list every whole number up to it.
    support = np.unique(np.round(np.linspace(low, high, min(high - low + 1, 200_000))))
    edges = np.append(support[0] - 1.0, support)
    uniform = Distribution.of("uniform", low=low, high=high)
    mean = float(np.average(sizes, weights=counts))
    variance = np.average((sizes - mean) ** 2, weights=counts)
    sd = max(float(np.sqrt(variance)), 1e-6)
    normal = Distribution.of("normal", mean=rounded(mean), sd=rounded(sd), low=low, high=high)
    within = np.diff(scipy.special.ndtr((edges + 0.5 - mean) / sd))
    models = [_Model(uniform, support, np.diff(edges)), _Model(normal, support, within)]
    if pareto is not None:
        shares = np.diff(pareto.cdf(edges))
        # The driver rounds down, and the model up: the same whole sizes, with theta one more.
        theta, k, sigma = pareto.theta + 1.0, rounded(pareto.k), rounded(pareto.sigma)
        law = Distribution.of("pareto", theta=theta, k=k, sigma=sigma, low=low, high=high)
        models.append(_Model(law, support, shares))
    return [model for model in models if model.weights.sum() > 0]


def _table(sizes: Array, counts: Array) -> _Model:
    """The sizes themselves, or groups of neighbours, each by its mean size."""
    means, weights = (sizes, counts) if len(sizes) <= TABLE_ROWS else _grouped(sizes, counts)
    rows = tuple((round(size), int(weight)) for size, weight in zip(means, weights, strict=True))
    drawn = np.array([float(size) for size, _ in rows])
    often = np.array([float(weight) for _, weight in rows])
    return _Model(Distribution.of("table", sizes=rows), drawn, often)


def _grouped(sizes: Array, counts: Array) -> tuple[Array, Array]:
    # A size that is as frequent as two groups has a group of its own.
    own = counts * TABLE_ROWS >= 2 * counts.sum()
    step = counts.sum() / max(TABLE_ROWS - 2 * int(own.sum()), 1)
    within = np.floor((np.cumsum(np.where(own, 0, counts)) - 1e-9) / step)
    after_own = np.append(False, own[:-1])
    group = np.cumsum(np.diff(within, prepend=within[0]).astype(bool) | own | after_own)
    weights = np.bincount(group, counts)
    sums = np.bincount(group, counts * sizes)
    used = weights > 0
    return np.asarray(sums[used] / weights[used], float), np.asarray(weights[used], float)


def _size_part(
    name: str, sizes: Array, counts: Array, best: _Model, distance: float, pareto: Pareto | None
) -> FittedPart:
    is_table = best.distribution.name == "table"
    mean = float(np.average(sizes, weights=counts))
    modelled = float(np.average(best.sizes, weights=best.weights))
    warnings = []
    if is_table and pareto is not None and len(sizes) > TABLE_ROWS:
        warnings.append(
            f"{name}: no model of the driver is within {KS_LIMIT:g} of the trace; "
            f"the sizes themselves are used, in {len(best.sizes)} groups"
        )
    qq = zip(
        _QUANTILES,
        quantiles(sizes, counts, _QUANTILES).tolist(),
        quantiles(best.sizes, best.weights, _QUANTILES).tolist(),
        strict=True,
    )
    distances = (("ks_distance", distance), ("mean_relative_error", relative_error(modelled, mean)))
    words = f"table of {len(best.sizes)} sizes"
    if not is_table:
        given = ", ".join(f"{key} {value}" for key, value in best.distribution.parameters)
        words = f"{best.distribution.name}: {given}"
    return FittedPart(name, words, distances, KS_LIMIT, tuple(warnings), tuple(qq))


# --- rates

# A shape has to explain this part of the rate's variance; what it does not is noise, or another.
UNEXPLAINED_LIMIT = 0.5
# What is called a sine has to be one: any slow change looks a little like part of a wave.
_SINE_LIMIT = 0.3
STEPS_MAX = 48
_FEWEST_WINDOWS = 8
# Rates that scatter less than this around their mean are a constant rate to any reader.
_CONSTANT_SPREAD = 0.05


@dataclass(frozen=True)
class RateFit:
    """The rate as an open loop follows it: a shape, or a constant one; None where unknown."""

    shape: SineRate | StepRate | None
    constant_ops_s: float | None
    part: FittedPart

    @property
    def known(self) -> bool:
        """Whether there is a rate to follow."""
        return self.shape is not None or self.constant_ops_s is not None


def fit_rate(summary: TraceSummary) -> RateFit:
    """The simplest shape that explains how the rate of a trace changes.

    A sine, else steps of equal length, else the mean. Of less than eight windows, the mean.
    """
    times_s, rates = window_rates(summary)

    def part(model: str, unexplained: float, modelled: Array | None = None) -> FittedPart:
        curve: Rows = ()
        if modelled is not None:
            curve = tuple(zip(times_s.tolist(), rates.tolist(), modelled.tolist(), strict=True))
        distance = ("unexplained_share", unexplained)
        warning = "rate: it changes in a way that neither a sine nor steps explain"
        return fitted_part("rate", model, distance, UNEXPLAINED_LIMIT, warning, curve)

    mean = summary.operations / summary.duration_s if summary.duration_s > 0 else None
    if mean is None:
        return RateFit(None, None, part("unknown: all records bear the same time", 0.0))
    if len(rates) < _FEWEST_WINDOWS:
        return RateFit(None, mean, part("the mean: too short for a shape", 0.0))
    constant = f"constant: {mean:.6g} ops/s"
    if float(rates.std()) <= _CONSTANT_SPREAD * float(rates.mean()):
        return RateFit(None, rounded(mean), part(constant, 0.0))
    wave = fit_sine(times_s, rates)
    turns = (times_s[-1] - times_s[0]) / wave.period_s
    if turns >= 1.0 and 1.0 - wave.explained <= _SINE_LIMIT and wave.amplitude <= wave.mean:
        shape = SineRate(
            *(rounded(v) for v in (wave.mean, wave.amplitude, wave.period_s, wave.offset_s))
        )
        words = (
            f"sine: mean {shape.mean_ops_s} ops/s, amplitude {shape.amplitude_ops_s} ops/s, "
            f"period {shape.period_s} s, offset {shape.offset_s} s"
        )
        return RateFit(shape, None, part(words, 1.0 - wave.explained, wave.at(times_s)))
    steps, modelled = _steps(times_s, rates)
    unexplained = 1.0 - explained_share(rates, modelled)
    if unexplained <= UNEXPLAINED_LIMIT:
        words = f"{len(steps.steps)} steps of {steps.steps[0][0]:g} s"
        return RateFit(steps, None, part(words, unexplained, modelled))
    return RateFit(None, rounded(mean), part(constant, 1.0, np.full_like(rates, mean)))


def window_rates(summary: TraceSummary) -> tuple[Array, Array]:
    """The middle of each whole window, in seconds from the first record, and its rate in ops/s."""
    window_s = summary.windows.window_s
    counts = np.array([step[0] + step[1] + step[2] for step in summary.windows.steps], float)
    # The last window ends after the last record.
    whole = counts[: max(len(counts) - 1, 0)]
    times_s = (np.arange(len(whole), dtype=np.float64) + 0.5) * window_s
    return times_s, whole / window_s


def _steps(times_s: Array, rates: Array) -> tuple[StepRate, Array]:
    """Steps of as many windows each as leave at most 48 of them."""
    each = -(-len(rates) // STEPS_MAX)
    group = np.arange(len(rates)) // each
    sums, counts = np.bincount(group, rates), np.bincount(group)
    window_s = float(times_s[1] - times_s[0])
    means = sums / counts
    pairs = zip((counts * window_s).tolist(), means.tolist(), strict=True)
    steps = StepRate(tuple((rounded(s), rounded(rate)) for s, rate in pairs))
    return steps, np.asarray(means[group], dtype=np.float64)


# --- operations

# How the operations of a trace are called in a mix. A range of deletes has no word there.
_OPERATIONS = {
    **dict.fromkeys(("get", "multi_get"), "get"),
    **dict.fromkeys(("put", "put_entity", "blob_index"), "put"),
    **dict.fromkeys(("delete", "single_delete"), "delete"),
    **dict.fromkeys(("seek", "seek_for_prev"), "scan"),
    "merge": "merge",
}
MIX_LIMIT = 0.01


def fit_mix(summary: TraceSummary) -> tuple[dict[str, float], FittedPart]:
    """The share of each operation of a mix; what a mix has no word for is left out, and said."""
    counts = summary.operation_counts
    operations: Counter[str] = Counter()
    for name, count in counts.items():
        if count and name in _OPERATIONS:
            operations[_OPERATIONS[name]] += count
    dropped = sum(count for name, count in counts.items() if name not in _OPERATIONS)
    modelled = [float(count if name in _OPERATIONS else 0) for name, count in counts.items()]
    distance = total_variation([float(count) for count in counts.values()], modelled)
    mix = {name: rounded(count / operations.total()) for name, count in operations.items()}
    warnings = []
    if dropped:
        warnings.append(f"mix: {dropped} operations left out: deletes of ranges have no model")
    if counts.get("seek_for_prev"):
        warnings.append("mix: seeks backwards are modelled as scans forwards")
    if counts.get("multi_get"):
        warnings.append("mix: each key of a multi-get is modelled as a get of its own")
    words = ", ".join(f"{name} {100 * share:.4g} %" for name, share in mix.items())
    distances = (("total_variation", distance),)
    return mix, FittedPart("mix", words, distances, MIX_LIMIT, tuple(warnings))
