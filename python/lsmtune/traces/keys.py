"""Into how many equal ranges the keys of a trace fall, and what went to each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lsmtune.model.distribution import Distribution
from lsmtune.stats.fitting import shares, total_variation
from lsmtune.stats.key_hotness import (
    Grains,
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
from lsmtune.traces.sizes import FittedPart
from lsmtune.traces.summary import KeyRange, TraceSummary

Array = NDArray[np.float64]

RANGES_FEWEST, RANGES_MOST = 4, 128
# How much closer more ranges have to come, for the keys to fall into so many: where the true number
# has been passed, others come closer only by chance.
_CLOSER = 1.1
# Below this the logarithm of a part's accesses is noise: more ranges would follow it.
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
    left = np.array([_left_over(logs, number) for number in numbers])
    enough: int = int(np.argmax(left <= _CLOSER * left.min()))
    return numbers[enough]


def _left_over(logs: Array, ranges: int) -> float:
    """The mean distance of parts to the median of their range."""
    middle = (np.arange(len(logs)) + 0.5) / len(logs)
    of_range = np.minimum((middle * ranges).astype(np.int64), ranges - 1)
    # Parts that a border cuts belong to two ranges, and say nothing of either.
    place = middle * ranges % 1.0
    inside = (place * len(logs) / ranges > 1.0) & ((1.0 - place) * len(logs) / ranges > 1.0)
    medians = np.array([np.median(logs[of_range == number]) for number in range(ranges)])
    return float(np.abs(logs - medians[of_range])[inside].mean())


# ----------
# Whether the keys that a trace reads are those that it writes.
#
# It decides how many reads an engine answers from its memtables, and so what is left for its cache.

LIMIT = 0.03
# So near to it, independence is as good, and simpler.
_NEAR = 0.01
_WRITES = ("put", "merge", "delete")


@dataclass(frozen=True)
class WrittenFit:
    """In which share of the draws the key decides the operation; None: operation and key are
    drawn independently."""

    by_key: float | None = None
    part: FittedPart | None = None


def fit_written(summary: TraceSummary, operations: Mapping[str, float], keys: KeyFit) -> WrittenFit:
    """By the share of the trace's gets that meet a key which the trace has written before."""
    writes = sum(operations.get(name, 0.0) for name in _WRITES)
    seen = summary.gets_of_written.share
    if seen is None or not 0.0 < writes < 1.0 or keys.distribution.name == "sequential":
        return WrittenFit()
    width, each = keys.groups
    each = each / float((width * each).sum())
    accesses = float(summary.hotness["all"].accesses)
    by_key = None
    words = "operations and keys drawn independently"
    found = reads_of_written(width, each, writes, 0.0, accesses)
    if found > seen + _NEAR:
        by_key = rounded(fit_by_key(width, each, writes, accesses, seen))
        found = reads_of_written(width, each, writes, by_key, accesses)
        words = f"the key decides the operation in {100 * by_key:.4g} % of the draws"
    off = abs(found - seen)
    warnings: tuple[str, ...] = ()
    if off > LIMIT:
        warnings = (
            f"reads of written keys: {100 * seen:.1f} % of the trace's gets meet a key that it has "
            f"written before, {100 * found:.1f} % of the model's",
        )
    distances = (("share_difference", off),)
    return WrittenFit(by_key, FittedPart("reads_of_written", words, distances, LIMIT, warnings))


# ----------
# Which keys are asked for: the distribution that a workload draws from, fitted to a trace.
#
# Two things are looked at: how hot keys are, by the share of the hottest x, whichever they are; and
# how hot neighbours are together, by ranges of the key space. A block of a table holds neighbours,
# so that the hit rate of a block cache needs both.

Groups = tuple[Array, Array]

CURVE_LIMIT, RANGES_LIMIT, HITS_LIMIT = 0.05, 0.05, 0.03
# YCSB scatters so many ranks, whatever the number of records (its ScrambledZipfianGenerator).
YCSB_RANKS = 1e10
_FEWEST_RANGES = 4
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
    seen = _Seen(
        np.array([rank for rank, _, _ in rows]),
        np.minimum(np.array([share for _, _, share in rows]), 1.0),
        curve.accesses,
        records,
        np.asarray(ranges, dtype=np.float64),
    )
    ranges_law, power = _as_db_bench(seen, rng)
    candidates = [_sequential(seen)]
    if not _is_sequential(summary):
        candidates = _candidates(seen, rng) + _mixgraphs(seen, ranges_law, power, rng)
        candidates += _range_candidates(seen, power, rng) if seen.has_ranges else []
    best = candidates[0]
    for candidate in candidates[1:]:
        if seen.distance(candidate) < seen.distance(best) - _BETTER:
            best = candidate
    parts = (_hotness_part(best, seen), _range_part(best, seen), *_hit_parts(best, summary))
    return KeyFit(best.distribution, parts, best.groups, ranges_law, power)


class _Seen:
    """What the trace showed of keys: `drawn` shares of the `at` hottest ones, and of ranges."""

    def __init__(
        self, at: Array, drawn: Array, accesses: int, records: int, counted: Array
    ) -> None:
        self.at, self.drawn, self.accesses, self.records = at, drawn, accesses, records
        self.counted = counted
        self._curve = SortedCurve(accesses, float(drawn[0] / at[0]) * accesses)

    @property
    def has_ranges(self) -> bool:
        """Whether there are enough ranges for a model, and enough accesses to tell them apart."""
        ranges = len(self.counted)
        return ranges >= _FEWEST_RANGES and float(self.counted.sum()) >= _ACCESSES_EACH * ranges

    def modelled(self, groups: Groups) -> Array:
        """The shares of the hottest keys that a model would show."""
        return self._curve.cumulative(*groups, self.at)

    def curve_distance(self, candidate: _Candidate) -> float:
        """The largest difference of both curves."""
        return float(np.abs(self.modelled(candidate.groups) - self.drawn).max())

    def range_distance(self, candidate: _Candidate) -> float:
        """Total variation of the ranges' shares, the hottest of both first."""
        if not self.has_ranges:
            return 0.0
        return total_variation(np.sort(self.counted)[::-1], candidate.range_shares)

    def distance(self, candidate: _Candidate) -> float:
        """The larger of both."""
        return max(self.curve_distance(candidate), self.range_distance(candidate))


def _is_sequential(summary: TraceSummary) -> bool:
    known = [share for share in summary.ascending.values() if share is not None]
    return bool(known) and min(known) >= _SEQUENTIAL_SHARE


def _sequential(seen: _Seen) -> _Candidate:
    uniform = _uniform(seen)
    return _Candidate(Distribution.of("sequential"), uniform.groups, uniform.range_shares)


def _uniform(seen: _Seen) -> _Candidate:
    return _Candidate(Distribution.of("uniform"), uniform_groups(seen.records), _even(seen))


def _even(seen: _Seen) -> Array:
    return np.full(max(len(seen.counted), 1), 1.0)


def _scattered(groups: Groups, seen: _Seen, rng: np.random.Generator) -> Array:
    """The shares of ranges onto which keys fall by chance, the hottest first."""
    ranges = max(len(seen.counted), 1)
    width, each = groups
    whole = np.maximum(np.round(width), 1).astype(np.int64)
    even = np.full(ranges, 1.0 / ranges)
    # Of each scattering, what the hottest, the second, ... of its ranges draw.
    sums = [
        np.sort((rng.multinomial(whole, even) * each[:, None]).sum(axis=0))[::-1]
        for _ in range(_SCATTERINGS)
    ]
    return np.asarray(np.mean(sums, axis=0))


def _candidates(seen: _Seen, rng: np.random.Generator) -> list[_Candidate]:
    """Models of the driver, those with fewer parameters first."""
    curve = (seen.at, seen.drawn, seen.accesses, seen.records)
    theta, _ = fit_zipf(*curve, YCSB_RANKS)
    theta = rounded(theta) if rounded(theta) != 1.0 else _NEAR_ONE
    scrambled = Distribution.of("scrambled_zipfian", theta=theta)
    power = fit_power_law(*curve)
    a, b = rounded(power.a), rounded(power.b)
    hot = power_groups(a, b, seen.records)
    zipf = zipf_groups(theta, YCSB_RANKS, seen.records)
    return [
        _uniform(seen),
        _Candidate(scrambled, zipf, _scattered(zipf, seen, rng)),
        _Candidate(Distribution.of("power", a=a, b=b), hot, _scattered(hot, seen, rng)),
    ]


def _mixgraphs(
    seen: _Seen, ranges: TwoTermExponential | None, power: PowerLaw, rng: np.random.Generator
) -> list[_Candidate]:
    """What db_bench's mixgraph draws, by the same parameters."""
    if ranges is not None:
        return [_grained_ranges(seen, replace(ranges, stepped=False), power)]
    a, b = rounded(power.a), rounded(power.b)
    groups = power_groups(a, b, seen.records, grains=Grains.EACH)
    of = Distribution.of("power", a=a, b=b, grains=seen.records)
    return [_Candidate(of, groups, _scattered(groups, seen, rng))]


def _range_candidates(seen: _Seen, power: PowerLaw, rng: np.random.Generator) -> list[_Candidate]:
    """Ranges of different hotness, with keys alike in each, and with a power law in each."""
    fit = fit_two_term_exponential(seen.counted, rng)
    of = _range_parameters(fit)
    observed = shares(seen.counted)
    law = fit_power_law(seen.at, seen.drawn, seen.accesses, seen.records, observed)
    a, b = rounded(law.a), rounded(law.b)
    alike = uniform_groups(seen.records, fit.shares())
    hot = power_groups(a, b, seen.records, fit.shares())
    return [
        _Candidate(Distribution.of("ranges", **of), alike, fit.shares()),
        _grained_ranges(seen, fit, power),
        _Candidate(Distribution.of("ranges", **of, key_a=a, key_b=b), hot, fit.shares()),
    ]


def _grained_ranges(seen: _Seen, ranges: TwoTermExponential, power: PowerLaw) -> _Candidate:
    """A power law in each range, of as many random numbers as the range has keys."""
    a, b = rounded(power.a), rounded(power.b)
    within = {"key_a": a, "key_b": b, "key_grains": max(seen.records // ranges.ranges, 1)}
    groups = power_groups(a, b, seen.records, ranges.shares(), grains=Grains.EACH)
    of = Distribution.of("ranges", **_range_parameters(ranges), **within)
    return _Candidate(of, groups, ranges.shares())


def _range_parameters(ranges: TwoTermExponential) -> dict[str, float]:
    return {"ranges": ranges.ranges} | {n: rounded(getattr(ranges, n)) for n in "abcd"}


def _as_db_bench(
    seen: _Seen, rng: np.random.Generator
) -> tuple[TwoTermExponential | None, PowerLaw]:
    """The parameters with which db_bench's mixgraph would have made the trace."""
    curve = (seen.at, seen.drawn, seen.accesses, seen.records)
    if not seen.has_ranges or total_variation(seen.counted, _even(seen)) <= RANGES_LIMIT:
        return None, fit_power_law(*curve, grains=Grains.SHARED)
    smooth = fit_two_term_exponential(seen.counted, rng)
    stepped = fit_two_term_exponential(seen.counted, rng, stepped=True)
    law = fit_power_law(*curve, shares(seen.counted), grains=Grains.SHARED)
    return max(smooth, stepped, key=lambda fit: fit.log_likelihood), law


def _hotness_part(best: _Candidate, seen: _Seen) -> FittedPart:
    modelled = seen.modelled(best.groups)
    rows = zip(seen.at.tolist(), seen.drawn.tolist(), modelled.tolist(), strict=True)
    found = seen.curve_distance(best)
    warnings: tuple[str, ...] = ()
    if found > CURVE_LIMIT:
        warnings = (
            f"hotness: the hottest keys draw shares that differ by up to {found:.3f} from the "
            f"trace's: no distribution of the driver is nearer",
        )
    words = key_words(best.distribution)
    distances = (("ks_distance", found),)
    return FittedPart("hotness", words, distances, CURVE_LIMIT, warnings, tuple(rows))


def _range_part(best: _Candidate, seen: _Seen) -> FittedPart:
    words = f"{len(seen.counted)} ranges, {best.distribution.name}"
    if not seen.has_ranges:
        why = "ranges: too few of them, or too few accesses in each, to be told apart: not modelled"
        return FittedPart("ranges", words, (), RANGES_LIMIT, (why,))
    found = seen.range_distance(best)
    observed = np.sort(shares(seen.counted))[::-1]
    modelled = np.sort(shares(best.range_shares))[::-1]
    rank = range(1, len(observed) + 1)
    rows = zip(map(float, rank), observed.tolist(), modelled.tolist(), strict=True)
    warnings: tuple[str, ...] = ()
    if found > RANGES_LIMIT:
        warnings = (f"ranges: {found:.3f} of the accesses go to ranges of another hotness",)
    distances = (("total_variation", found),)
    return FittedPart("ranges", words, distances, RANGES_LIMIT, warnings, tuple(rows))


def _hit_parts(best: _Candidate, summary: TraceSummary) -> list[FittedPart]:
    """Caches of several sizes: how often they hit the trace, and would hit the model."""
    reuse = summary.reuse.get("all")
    if reuse is None or best.distribution.name == "sequential":
        return []
    distinct = summary.keys.distinct
    caches = [max(share * distinct, 1.0) for share in _CACHES]
    sizes, misses = np.array(reuse.miss_ratio).T
    observed = 1.0 - np.interp(caches, sizes, misses)
    modelled = hit_ratios(*_scaled(best.groups), caches, float(reuse.accesses))
    found = float(np.abs(observed - modelled).max())
    warnings: tuple[str, ...] = ()
    if found > HITS_LIMIT:
        warnings = (
            f"hit rate: a cache of keys would hit the model up to {100 * found:.1f} points more "
            f"or less often than the trace",
        )
    rows = tuple(zip(caches, observed.tolist(), modelled.tolist(), strict=True))
    words = f"caches of {caches[0]:.0f} to {caches[-1]:.0f} keys that drop the least recently used"
    distances = (("hit_rate_difference", found),)
    return [FittedPart("hit_rate", words, distances, HITS_LIMIT, warnings, rows)]


def _scaled(groups: Groups) -> Groups:
    keys, each = groups
    return keys, each / float((keys * each).sum())


def key_words(of: Distribution) -> str:
    """A distribution of keys in a few words."""
    given = ", ".join(f"{name} {value}" for name, value in of.parameters)
    return f"{of.name}: {given}" if given else of.name


def rounded(value: float) -> float:
    """To six digits: more say nothing, and files are read by people."""
    return float(f"{value:.6g}")
