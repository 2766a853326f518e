"""Which keys a trace asks for, as a distribution that a workload draws from.

Two things are looked at: how hot keys are, by the share of the hottest x, whichever they are; and
how hot neighbours are together, by ranges of the key space. A block of a table holds neighbours, so
that the hit rate of a block cache needs both. A third is whether a trace reads the keys that it
writes: it decides how many reads an engine answers from its memtables, and what is left for its
cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lsmtune.model.distribution import Distribution
from lsmtune.stats.fitting import Array, shares, total_variation
from lsmtune.stats.key_hotness import (
    Grains,
    Groups,
    PowerLaw,
    SortedCurve,
    fit_power_law,
    fit_zipf,
    hit_ratios,
    power_groups,
    uniform_groups,
    zipf_groups,
)
from lsmtune.stats.range_hotness import (
    TwoTermExponential,
    fit_by_key,
    fit_two_term_exponential,
    reads_of_written,
)
from lsmtune.traces.sizes import FittedPart, fitted_part, rounded
from lsmtune.traces.summary import KeyRange, TraceSummary

RANGES_FEWEST, RANGES_MOST = 4, 128
# The fewest ranges are taken that come as near as the nearest, within this factor: more than the
# true number come nearer only by chance.
_NEARLY = 1.1
# Of fewer accesses of a part the logarithm is noise, which more ranges would follow.
_PARTS_ACCESSES = 20


def has_db_bench_numbers(summary: TraceSummary) -> bool:
    """Whether keys look like db_bench's: of 8 bytes or more, and numbers in the first 8.

    Such numbers, the highest byte first, begin with zeros in all but absurdly large databases.
    """
    space = summary.key_space
    prefix = bytes.fromhex(space.common_prefix_hex)
    sizes = summary.key_sizes.values()
    return 0 < len(prefix) < 8 and not any(prefix) and all(size.min >= 8 for size in sizes)


def count_ranges(parts: Sequence[KeyRange]) -> int:
    """The number of equal ranges, 4 to 128, within which parts of the key space are alike.

    Found by the logarithms of the parts' accesses and their medians, which single hot keys do not
    move. 1 where no number of ranges tells parts apart.
    """
    accesses = np.array([part.accesses for part in parts])
    if len(accesses) < 2 * RANGES_MOST or accesses.sum() < _PARTS_ACCESSES * len(accesses):
        return 1
    logs = np.log(accesses + 1.0)
    numbers: list[int] = [1, *range(RANGES_FEWEST, RANGES_MOST + 1)]
    residuals = np.array([_residual(logs, number) for number in numbers])
    fewest: int = int(np.argmax(residuals <= _NEARLY * residuals.min()))
    return numbers[fewest]


def _residual(logs: Array, ranges: int) -> float:
    """The mean distance of parts to the median of their range."""
    middle = (np.arange(len(logs)) + 0.5) / len(logs)
    of_range = np.minimum((middle * ranges).astype(np.int64), ranges - 1)
    # Parts that a border cuts belong to two ranges, and say nothing of either.
    offset = middle * ranges % 1.0
    inside = (offset * len(logs) / ranges > 1.0) & ((1.0 - offset) * len(logs) / ranges > 1.0)
    # Medians of all ranges at once: parts of a range are neighbours, and here in the order of logs.
    ordered = logs[np.lexsort((logs, of_range))]
    borders = np.searchsorted(of_range, np.arange(ranges + 1))
    twice = borders[:-1] + borders[1:]
    medians = (ordered[(twice - 1) // 2] + ordered[twice // 2]) / 2.0
    return float(np.abs(logs - medians[of_range])[inside].mean())


# --- reads of written keys

WRITTEN_LIMIT = 0.03
# Where independent draws come so near to the share of the trace, they are taken: they are simpler.
_NEAR = 0.01
_WRITES = ("put", "merge", "delete")


@dataclass(frozen=True)
class WrittenFit:
    """The share `by_key` of the draws in which the key decides the operation; None: in none."""

    by_key: float | None = None
    part: FittedPart | None = None


def fit_written(summary: TraceSummary, operations: Mapping[str, float], keys: KeyFit) -> WrittenFit:
    """Fitted to the share of the trace's gets of a key that the trace has written before."""
    writes = sum(operations.get(name, 0.0) for name in _WRITES)
    observed = summary.gets_of_written.share
    if observed is None or not 0.0 < writes < 1.0 or keys.distribution.name == "sequential":
        return WrittenFit()
    width, each = keys.groups
    each = each / float((width * each).sum())
    accesses = float(summary.hotness["all"].accesses)
    by_key = None
    words = "operations and keys drawn independently"
    modelled = reads_of_written(width, each, writes, 0.0, accesses)
    if modelled > observed + _NEAR:
        by_key = rounded(fit_by_key(width, each, writes, accesses, observed))
        modelled = reads_of_written(width, each, writes, by_key, accesses)
        words = f"the key decides the operation in {100 * by_key:.4g} % of the draws"
    warning = (
        f"reads of written keys: {100 * observed:.1f} % of the trace's gets meet a key that it has "
        f"written before, {100 * modelled:.1f} % of the model's"
    )
    distance = ("share_difference", abs(modelled - observed))
    part = fitted_part("reads_of_written", words, distance, WRITTEN_LIMIT, warning)
    return WrittenFit(by_key, part)


# --- hotness of keys

CURVE_LIMIT, RANGES_LIMIT, HITS_LIMIT = 0.05, 0.05, 0.03
# YCSB scatters so many ranks, whatever the number of records (its ScrambledZipfianGenerator).
YCSB_RANKS = 1e10
# Chance alone makes the shares of ranges differ; with so many accesses in each, by a tenth.
_ACCESSES_EACH = 100
_SEQUENTIAL_SHARE = 0.95
# A model with more parameters has to be better by this much to be taken.
_BETTER = 0.01
# The driver's Zipfian has no exponent of exactly 1.
_NEAR_ONE = 0.99999
_SCATTERINGS = 20
_CACHES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)


@dataclass(frozen=True)
class KeyFit:
    """Keys as a workload draws them, and the parts that say how well it fits.

    `ranges` and `power` are the models with the meaning that db_bench gives their parameters, where
    the trace's keys may be db_bench's; `groups` the keys alike of the chosen model.
    """

    distribution: Distribution
    parts: tuple[FittedPart, ...]
    groups: Groups
    ranges: TwoTermExponential | None = None
    power: PowerLaw | None = None


@dataclass(frozen=True)
class _Candidate:
    distribution: Distribution
    groups: Groups
    range_shares: Array


def fit_keys(
    summary: TraceSummary, ranges: Sequence[float], records: int, rng: np.random.Generator
) -> KeyFit:
    """The distribution of the driver nearest to the keys of a trace, of `records` keys.

    `ranges` are the accesses of equally many keys each, in the order of keys. Raises ValueError
    for a trace without operations on keys.
    """
    curve = summary.hotness.get("all")
    rows = [] if curve is None else [p for p in curve.points if p[0] <= records]
    if curve is None or len(rows) < 3:
        raise ValueError("fewer than three keys: nothing to fit")
    observed = _Observed(
        np.array([rank for rank, _, _ in rows]),
        np.minimum(np.array([share for _, _, share in rows]), 1.0),
        curve.accesses,
        records,
        np.asarray(ranges, dtype=np.float64),
    )
    ranges_law, power = _as_db_bench(observed, rng)
    even = uniform_groups(records)
    known = [share for share in summary.ascending.values() if share is not None]
    candidates = [_Candidate(Distribution("sequential"), even, observed.alike)]
    if not known or min(known) < _SEQUENTIAL_SHARE:
        candidates = [_Candidate(Distribution("uniform"), even, observed.alike)]
        candidates += _scattered_laws(observed, rng)
        candidates += _mixgraphs(observed, ranges_law, power, rng)
        candidates += _range_candidates(observed, power, rng) if observed.has_ranges else []
    best = candidates[0]
    for candidate in candidates[1:]:
        if observed.distance(candidate) < observed.distance(best) - _BETTER:
            best = candidate
    parts = (_hotness_part(best, observed), _range_part(best, observed), *_hit_parts(best, summary))
    return KeyFit(best.distribution, parts, best.groups, ranges_law, power)


class _Observed:
    """What the trace showed of keys: `drawn` shares of the `at` hottest ones, and of ranges."""

    def __init__(
        self, at: Array, drawn: Array, accesses: int, records: int, counted: Array
    ) -> None:
        self.at, self.drawn, self.accesses, self.records = at, drawn, accesses, records
        self.counted = counted
        self._curve = SortedCurve(accesses, float(drawn[0] / at[0]) * accesses)

    @property
    def alike(self) -> Array:
        """The shares of ranges that are all as hot."""
        return np.full(max(len(self.counted), 1), 1.0)

    @property
    def has_ranges(self) -> bool:
        """Whether there are enough ranges for a model, and enough accesses to tell them apart."""
        ranges = len(self.counted)
        return ranges >= RANGES_FEWEST and float(self.counted.sum()) >= _ACCESSES_EACH * ranges

    def modelled(self, candidate: _Candidate) -> Array:
        """The shares of the hottest keys that a model would show."""
        if candidate.distribution.name == "sequential":  # each key in turn, and none by chance
            each, once_more = divmod(self.accesses, self.records)
            shares = (each * self.at + np.minimum(self.at, once_more)) / self.accesses
            return np.asarray(shares, dtype=np.float64)
        return self._curve.cumulative(*candidate.groups, self.at)

    def curve_distance(self, candidate: _Candidate) -> float:
        """The largest difference of both curves."""
        return float(np.abs(self.modelled(candidate) - self.drawn).max())

    def range_distance(self, candidate: _Candidate) -> float:
        """Total variation of the ranges' shares, the hottest of both first."""
        if not self.has_ranges:
            return 0.0
        return total_variation(np.sort(self.counted)[::-1], candidate.range_shares)

    def distance(self, candidate: _Candidate) -> float:
        """The larger of both."""
        return max(self.curve_distance(candidate), self.range_distance(candidate))


def _scattered(groups: Groups, observed: _Observed, rng: np.random.Generator) -> Array:
    """The shares of ranges onto which keys fall by chance, the hottest first."""
    ranges = len(observed.alike)
    width, each = groups
    whole = np.maximum(np.round(width), 1).astype(np.int64)
    even = np.full(ranges, 1.0 / ranges)
    # Of each scattering, what the hottest, the second, ... of its ranges draw.
    sums = [
        np.sort((rng.multinomial(whole, even) * each[:, None]).sum(axis=0))[::-1]
        for _ in range(_SCATTERINGS)
    ]
    return np.asarray(np.mean(sums, axis=0))


def _scattered_laws(observed: _Observed, rng: np.random.Generator) -> list[_Candidate]:
    """Hot keys that are no neighbours: YCSB's Zipfian, and the driver's power law."""
    curve = (observed.at, observed.drawn, observed.accesses, observed.records)
    theta, _ = fit_zipf(*curve, YCSB_RANKS)
    theta = rounded(theta) if rounded(theta) != 1.0 else _NEAR_ONE
    power = fit_power_law(*curve)
    a, b = rounded(power.a), rounded(power.b)
    zipf = zipf_groups(theta, YCSB_RANKS, observed.records)
    hot = power_groups(a, b, observed.records)
    scrambled = Distribution.of("scrambled_zipfian", theta=theta)
    return [
        _Candidate(scrambled, zipf, _scattered(zipf, observed, rng)),
        _Candidate(Distribution.of("power", a=a, b=b), hot, _scattered(hot, observed, rng)),
    ]


def _mixgraphs(
    observed: _Observed,
    ranges: TwoTermExponential | None,
    power: PowerLaw,
    rng: np.random.Generator,
) -> list[_Candidate]:
    """What db_bench's mixgraph draws, by the same parameters."""
    if ranges is not None:
        return [_grained_ranges(observed, replace(ranges, stepped=False), power)]
    a, b = rounded(power.a), rounded(power.b)
    groups = power_groups(a, b, observed.records, grains=Grains.EACH)
    of = Distribution.of("power", a=a, b=b, grains=observed.records)
    return [_Candidate(of, groups, _scattered(groups, observed, rng))]


def _range_candidates(
    observed: _Observed, power: PowerLaw, rng: np.random.Generator
) -> list[_Candidate]:
    """Ranges of different hotness, with keys alike in each, and with a power law in each."""
    fit = fit_two_term_exponential(observed.counted, rng)
    of = _range_parameters(fit)
    range_shares = shares(observed.counted)
    law = fit_power_law(
        observed.at, observed.drawn, observed.accesses, observed.records, range_shares
    )
    a, b = rounded(law.a), rounded(law.b)
    alike = uniform_groups(observed.records, fit.shares())
    hot = power_groups(a, b, observed.records, fit.shares())
    return [
        _Candidate(Distribution.of("ranges", **of), alike, fit.shares()),
        _grained_ranges(observed, fit, power),
        _Candidate(Distribution.of("ranges", **of, key_a=a, key_b=b), hot, fit.shares()),
    ]


def _grained_ranges(observed: _Observed, ranges: TwoTermExponential, power: PowerLaw) -> _Candidate:
    """A power law in each range, of as many random numbers as the range has keys."""
    a, b = rounded(power.a), rounded(power.b)
    within = {"key_a": a, "key_b": b, "key_grains": max(observed.records // ranges.ranges, 1)}
    groups = power_groups(a, b, observed.records, ranges.shares(), grains=Grains.EACH)
    of = Distribution.of("ranges", **_range_parameters(ranges), **within)
    return _Candidate(of, groups, ranges.shares())


def _range_parameters(ranges: TwoTermExponential) -> dict[str, float]:
    return {"ranges": ranges.ranges} | {n: rounded(getattr(ranges, n)) for n in "abcd"}


def _as_db_bench(
    observed: _Observed, rng: np.random.Generator
) -> tuple[TwoTermExponential | None, PowerLaw]:
    """The parameters with which db_bench's mixgraph would have made the trace."""
    curve = (observed.at, observed.drawn, observed.accesses, observed.records)
    few = not observed.has_ranges
    if few or total_variation(observed.counted, observed.alike) <= RANGES_LIMIT:
        return None, fit_power_law(*curve, grains=Grains.SHARED)
    smooth = fit_two_term_exponential(observed.counted, rng)
    stepped = fit_two_term_exponential(observed.counted, rng, stepped=True)
    law = fit_power_law(*curve, shares(observed.counted), grains=Grains.SHARED)
    return max(smooth, stepped, key=lambda fit: fit.log_likelihood), law


def _hotness_part(best: _Candidate, observed: _Observed) -> FittedPart:
    modelled = observed.modelled(best)
    rows = zip(observed.at.tolist(), observed.drawn.tolist(), modelled.tolist(), strict=True)
    distance = observed.curve_distance(best)
    warning = (
        f"hotness: the hottest keys draw shares that differ by up to {distance:.3f} from the "
        f"trace's: no distribution of the driver is nearer"
    )
    of = best.distribution
    given = ", ".join(f"{name} {value}" for name, value in of.parameters)
    words = f"{of.name}: {given}" if given else of.name
    measured = ("ks_distance", distance)
    return fitted_part("hotness", words, measured, CURVE_LIMIT, warning, tuple(rows))


def _range_part(best: _Candidate, observed: _Observed) -> FittedPart:
    words = f"{len(observed.counted)} ranges, {best.distribution.name}"
    if not observed.has_ranges:
        why = "ranges: too few of them, or too few accesses in each, to be told apart: not modelled"
        return FittedPart("ranges", words, (), RANGES_LIMIT, (why,))
    distance = observed.range_distance(best)
    counted = np.sort(shares(observed.counted))[::-1]
    modelled = np.sort(shares(best.range_shares))[::-1]
    rank = range(1, len(counted) + 1)
    rows = zip(map(float, rank), counted.tolist(), modelled.tolist(), strict=True)
    warning = f"ranges: {distance:.3f} of the accesses go to ranges of another hotness"
    measured = ("total_variation", distance)
    return fitted_part("ranges", words, measured, RANGES_LIMIT, warning, tuple(rows))


def _hit_parts(best: _Candidate, summary: TraceSummary) -> list[FittedPart]:
    """Caches of several sizes: how often they hit the trace, and would hit the model."""
    reuse = summary.reuse.get("all")
    if reuse is None or best.distribution.name == "sequential":
        return []
    distinct = summary.keys.distinct
    caches = [max(share * distinct, 1.0) for share in _CACHES]
    # A cache of n keys hits what comes back after fewer than n others: nothing where no key does.
    low, high, count = np.array(reuse.distances or ((0.0, 0.0, 0.0),)).T
    within = np.clip((np.array(caches)[:, None] - low) / (high + 1.0 - low), 0.0, 1.0)
    hits = np.clip(within @ count / reuse.accesses, 0.0, 1.0)
    keys, each = best.groups
    modelled = hit_ratios(keys, each / float((keys * each).sum()), caches, float(reuse.accesses))
    difference = float(np.abs(hits - modelled).max())
    warning = (
        f"hit rate: a cache of keys would hit the model up to {100 * difference:.1f} points more "
        f"or less often than the trace"
    )
    rows = tuple(zip(caches, hits.tolist(), modelled.tolist(), strict=True))
    words = f"caches of {caches[0]:.0f} to {caches[-1]:.0f} keys that drop the least recently used"
    measured = ("hit_rate_difference", difference)
    return [fitted_part("hit_rate", words, measured, HITS_LIMIT, warning, rows)]
