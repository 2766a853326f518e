"""Workloads that are fitted to made-up traces: what is put in comes out."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from trace_parts import histogram, reuse, said

from lsmtune.errors import InputError
from lsmtune.model.codec import ProtocolError
from lsmtune.model.distribution import Distribution
from lsmtune.model.workload import Durability, PhaseKind, SineRate, StepRate
from lsmtune.traces.fit import FitRequest, TraceFit, fit_trace
from lsmtune.traces.keys import count_ranges
from lsmtune.traces.sizes import TABLE_ROWS, fit_rate, fit_sizes
from lsmtune.traces.summary import Histogram, KeyRange, trace_summary
from lsmtune.workloads.file import parse_workload_file, workload_text

Whole = NDArray[np.int64]
RECORDS = 30_000
# For what does not depend on which keys are hot: that is what takes longest to fit.
IN_ORDER = np.arange(10_000)
MIXGRAPH = Path(__file__).resolve().parents[3] / "shared/data/rocksdb/mixgraph-params.json"


def power(rng: np.random.Generator, count: int, keys: int, b: float) -> Whole:
    """The driver's power law: ranks, three times as many as keys, each with a key by chance."""
    last = 3 * keys
    ranks = np.ceil(rng.random(count) ** (1 / b) * last).astype(np.int64) - 1
    return np.random.default_rng(99).integers(0, keys, last)[ranks]


def in_ranges(rng: np.random.Generator, count: int, b: float) -> Whole:
    """Ten ranges, the hottest with half of the accesses; a power law in each."""
    shares = 2.0 ** -np.arange(1, 11)
    of_range = np.random.default_rng(5).permutation(10)[
        rng.choice(10, count, p=shares / shares.sum())
    ]
    return of_range * (RECORDS // 10) + power(rng, count, RECORDS // 10, b)


def fitted(keys: Whole, request: FitRequest | None = None, **more: Any) -> TraceFit:
    counted = more if "reused" in more else {**more, "reused": reuse(keys)}

    def inspect(ranges: int, _number: dict[str, object] | None) -> Any:
        return trace_summary(said(keys, ranges=ranges, **counted))

    return fit_trace(inspect, request or FitRequest(records=RECORDS))


def keys_of(fit: TraceFit) -> Distribution:
    mix = fit.workload.phases[-1].mix
    assert mix is not None
    return mix.keys


def test_a_power_law_is_found_again() -> None:
    fit = fitted(power(np.random.default_rng(1), 100_000, RECORDS, 0.5))
    keys = keys_of(fit)
    assert keys.name == "power"
    assert keys.get("b") == pytest.approx(0.5, rel=0.05)
    assert fit.fits, fit.parts


def test_values_of_one_size_are_in_db_benchs_flags() -> None:
    """Without flags mixgraph writes values of some 35 bytes, and cuts those above 1024."""
    fit = fitted(IN_ORDER, values=np.full(10, 4096), operations={"get": 9990, "put": 10})
    flags = {name: value for name, value in fit.db_bench.items() if "value" in name}
    assert flags == {
        "value_theta": 4096,
        "value_k": 1.0,
        "value_sigma": 0.0,
        "mix_max_value_size": 4096,
    }
    read_only = fitted(IN_ORDER).db_bench
    assert not [name for name in read_only if "value" in name]


def test_no_value_of_the_trace_is_cut_by_db_benchs_flags() -> None:
    """Of values of up to 6 KB mixgraph, which was told 1024, would have made remainders."""
    rng = np.random.default_rng(1)
    sizes = np.ceil(400 * ((1 - rng.random(1000)) ** -0.2 - 1) / 0.2).astype(np.int64)
    counts = {"get": 9000, "put": 1000}
    for values, most in ((sizes, int(sizes.max())), (np.minimum(sizes, 900), 1024)):
        flags = fitted(IN_ORDER, values=values, operations=counts).db_bench
        assert (values.max() > 1024, flags["mix_max_value_size"]) == (most > 1024, most)


def test_ranges_are_counted_and_found_again() -> None:
    fit = fitted(in_ranges(np.random.default_rng(1), 200_000, 0.6))
    keys = keys_of(fit)
    assert (keys.name, keys.get("ranges")) == ("ranges", 10)
    assert keys.get("key_b") == pytest.approx(0.6, rel=0.1)
    assert {part.name: part.fits for part in fit.parts}["ranges"]
    assert {part.name: part.fits for part in fit.parts}["hit_rate"]


def test_alike_keys_are_alike_in_as_many_ranges_as_are_asked_for() -> None:
    """30 ranges were of three or four of a hundred parts, and so some hotter than others."""
    keys = np.random.default_rng(4).integers(0, RECORDS, 100_000)
    summary = trace_summary(said(keys, numbers=False))
    asked: list[int] = []

    def inspect(ranges: int, _number: dict[str, object] | None) -> Any:
        asked.append(ranges)
        return summary

    fit = fit_trace(inspect, FitRequest(ranges=30))
    assert asked == [4096]  # the hundred parts do not depend on it: no second pass
    assert keys_of(fit).name == "uniform"
    (ranges,) = [part for part in fit.parts if part.name == "ranges"]
    assert len(ranges.curve) == 30
    assert dict(ranges.distances)["total_variation"] < 0.02
    refused = "^--ranges: found 300; allowed: at most 100: of keys that are no numbers"
    with pytest.raises(InputError, match=refused):
        fitted(keys, FitRequest(ranges=300), numbers=False)


def test_uniform_and_sequential_keys_are_told_from_hot_ones() -> None:
    rng = np.random.default_rng(3)
    assert keys_of(fitted(rng.integers(0, RECORDS, 100_000))).name == "uniform"
    # Once each, and the first half of them once more: what is in order has no hot keys by chance.
    for keys in (np.arange(RECORDS), np.arange(45_000) % RECORDS):
        fit = fitted(keys)
        assert keys_of(fit).name == "sequential"
        (hotness,) = [part for part in fit.parts if part.name == "hotness"]
        assert dict(hotness.distances)["ks_distance"] == pytest.approx(0.0, abs=1e-9)
        assert fit.fits, fit.parts


def test_a_trace_that_asks_for_each_key_once_is_fitted() -> None:
    """No cache hits it: a curve without points was "not enough values to unpack"."""
    keys = np.random.default_rng(5).permutation(20_000)
    never = {"accesses": len(keys), "share": 1.0, "first_accesses": float(len(keys))}
    fit = fitted(keys, reused={**never, "distances": [], "miss_ratio": []})
    assert keys_of(fit).name == "uniform"
    hit_rate = next(part for part in fit.parts if part.name == "hit_rate")
    assert [hits for _, hits, _ in hit_rate.curve] == [0.0] * 6


def test_caches_of_fewer_keys_than_lie_between_hit_nothing() -> None:
    """Keys came back after 1,999 others, and a cache of two was said to hit four in five."""
    keys = np.tile(np.random.default_rng(7).permutation(2000), 5)
    back = {"accesses": len(keys), "share": 1.0, "first_accesses": 2000.0}
    seldom = {**back, "distances": [[1920, 2047, 8000.0]], "miss_ratio": [[2048, 0.2]]}
    fit = fitted(keys, FitRequest(records=2000), reused=seldom)
    hit_rate = next(part for part in fit.parts if part.name == "hit_rate")
    assert [hits for _, hits, _ in hit_rate.curve] == [0.0] * 6


def test_ycsbs_scattered_zipfian_is_found_again() -> None:
    ranks = 1_000_000
    weights = np.arange(1, ranks + 1) ** -1.2
    drawn = np.random.default_rng(1).choice(ranks, 100_000, p=weights / weights.sum())
    scattered = np.random.default_rng(2).integers(0, RECORDS, ranks)[drawn]
    keys = keys_of(fitted(scattered, numbers=False))
    assert keys.name == "scrambled_zipfian"
    assert keys.get("theta") == pytest.approx(1.2, rel=0.05)


def test_the_mix_has_the_traces_shares_and_says_what_it_leaves_out() -> None:
    counts = {"get": 5000, "multi_get": 1000, "put": 2000, "seek": 1000, "delete_range": 1000}
    fit = fitted(IN_ORDER, operations=counts)
    mix = fit.workload.phases[-1].mix
    assert mix is not None
    assert dict(mix.operations) == pytest.approx(
        {"get": 2 / 3, "put": 2 / 9, "scan": 1 / 9}, rel=1e-4
    )
    assert mix.scan_lengths == Distribution.of("constant", size=1)
    found = next(part for part in fit.parts if part.name == "mix")
    assert dict(found.distances)["total_variation"] == pytest.approx(0.1)
    assert not found.fits
    assert any("deletes of ranges" in line for line in fit.warnings)
    assert any("--scan-length" in line for line in fit.warnings)
    assert fit.db_bench["mix_get_ratio"] == pytest.approx(2 / 3, rel=1e-4)


def test_the_workload_loads_settles_and_runs_what_was_wished() -> None:
    request = FitRequest(40_000, scan_length=7, load_value_bytes=300, operations=123, threads=3)
    fit = fitted(IN_ORDER, request, values=np.full(10, 55), operations={"get": 9990, "put": 10})
    load, settle, run = fit.workload.phases
    assert (load.kind, load.operations) == (PhaseKind.LOAD, 40_000)
    assert load.mix is not None
    assert load.mix.value_sizes == Distribution.of("constant", size=300)
    assert settle.kind is PhaseKind.SETTLE
    assert (run.operations, run.threads, run.rate, run.rate_ops_s) == (123, 3, None, None)
    assert run.mix is not None
    assert run.mix.value_sizes == Distribution.of("constant", size=55)
    assert (fit.workload.num, fit.workload.key_bytes) == (40_000, 48)


@pytest.mark.parametrize(
    ("key_bytes", "value_bytes", "keys", "loaded"),
    [
        ([12, 20, 20], [50, 90], 20, 70),  # the mean of the keys is 17
        ([4, 4, 4], [55], 8, 55),
        ([3, 6, 30], [55], 30, 55),
        ([48], [0], 48, 1),
        ([48], [2**20], 48, 2**20),
    ],
)
def test_what_is_fitted_is_a_workload_that_lsmtune_reads(
    key_bytes: list[int], value_bytes: list[int], keys: int, loaded: int
) -> None:
    """Keys had the mean of their sizes, of which the reader wants the largest, and 8 at least."""
    counts = {"get": 9900, "put": 100}
    summary = said(
        IN_ORDER,
        operations=counts,
        key_bytes=np.resize(key_bytes, len(IN_ORDER)),
        values=np.resize(value_bytes, 100),
        numbers=False,
    )
    fit = fit_trace(lambda _ranges, _number: trace_summary(summary), FitRequest(records=RECORDS))
    again = parse_workload_file(workload_text(fit.workload), Path("w.yaml"))
    assert again == fit.workload
    assert (again.key_bytes, again.value_bytes) == (keys, loaded)
    assert ("keys shorter than 8 bytes have 8" in fit.warnings) == (min(key_bytes) < 8)


def test_what_the_workload_has_by_assumption_is_named() -> None:
    """Compression and durability were the defaults of a workload file, and merges had the sizes of
    puts, without a word."""
    keys, rng = np.arange(2000) % 300, np.random.default_rng(1)
    counts = {"get": 1000, "put": 500, "merge": 500}
    summary = said(keys, operations=counts, values=rng.integers(50, 90, 500))
    summary["value_sizes"]["merge"] = histogram(np.full(500, 8))
    both = fit_trace(lambda *_: trace_summary(summary), FitRequest())
    told = "\n".join(both.warnings)
    assert (both.workload.compression_ratio, both.workload.durability) == (0.5, Durability.WAL)
    for part in ("compression_ratio of the file", "durability of the file", "merges have the val"):
        assert part in told, part
    read = "\n".join(fitted(keys, operations={"get": 2000}).warnings)
    assert "compression_ratio of the file" in read  # of what is loaded
    assert "durability of the file" not in read
    assert "merges have" not in read


def test_a_trace_with_keys_or_values_that_no_workload_has_is_refused() -> None:
    keys, counts = np.arange(2000), {"get": 1999, "put": 1}
    with pytest.raises(InputError, match="found 'values of 1048577 bytes'; allowed: values of at"):
        fitted(keys, operations=counts, values=np.array([2**20 + 1]))
    with pytest.raises(InputError, match="found 'keys of 65536 bytes'; allowed: keys of at most"):
        fitted(keys, key_bytes=np.full(2000, 65536))


@pytest.mark.parametrize(("own", "low", "high"), [(0.0, None, None), (0.6, 0.5, 0.7)])
def test_keys_that_are_only_read_are_found(
    own: float, low: float | None, high: float | None
) -> None:
    rng, writes = np.random.default_rng(1), 0.2
    keys = power(rng, 100_000, RECORDS, 0.5)
    of_key = rng.random(RECORDS) < writes
    written = np.where(rng.random(len(keys)) < own, of_key[keys], rng.random(len(keys)) < writes)
    first = np.full(RECORDS, len(keys))
    np.minimum.at(first, keys[written], np.flatnonzero(written))
    gets = first[keys][~written]
    share = float((gets < np.flatnonzero(~written)).mean())
    counts = {"get": len(gets), "put": len(keys) - len(gets)}
    met = {"gets": share * len(gets), "share": share}
    summary = said(keys, operations=counts) | {"gets_of_written": met}
    fit = fit_trace(lambda _ranges, _number: trace_summary(summary), FitRequest(records=RECORDS))
    mix = fit.workload.phases[-1].mix
    assert mix is not None
    found = mix.operation_by_key
    assert found is None if low is None else low < float(found or 0) < float(high or 1)
    assert {part.name: part.fits for part in fit.parts}["reads_of_written"]


def test_records_are_said_to_be_guessed_and_cannot_be_fewer_than_were_seen() -> None:
    keys = np.random.default_rng(1).integers(0, RECORDS, 10_000)
    numbered = fitted(keys, FitRequest())
    assert numbered.workload.num == int(keys.max()) + 1
    assert any("largest number" in line for line in numbered.warnings)
    seen = fitted(keys, FitRequest(), numbers=False)
    assert seen.workload.num == len(np.unique(keys))
    assert any("a database holds more" in line for line in seen.warnings)
    with pytest.raises(InputError, match="--records: found 10; allowed: at least"):
        fitted(keys, FitRequest(records=10))


def test_numbers_of_several_column_families_are_more_keys_than_the_largest() -> None:
    """Of two families of 30,000 keys each the workload had half, and the hottest twice as hot."""
    keys = np.random.default_rng(6).integers(0, 2 * RECORDS, 300_000)
    counted = said(keys, ranges=1) | {"column_families": [[0, 150_000], [1, 150_000]]}
    counted["key_space"] = {**counted["key_space"], "max": str(RECORDS - 1)}
    fit = fit_trace(lambda _ranges, _number: trace_summary(counted), FitRequest())
    distinct = len(np.unique(keys))
    assert (fit.workload.num, fit.workload.column_families) == (distinct, 2)
    assert any(line.startswith(f"records: {distinct}, the keys") for line in fit.warnings)
    assert {part.name: part.fits for part in fit.parts}["hotness"]


def test_the_true_number_of_records_is_taken_where_that_of_keys_is_an_estimate() -> None:
    """Of more than a million keys the driver counts a sample: the estimate may be above the truth,
    which was refused."""
    keys = np.random.default_rng(1).integers(0, RECORDS, 100_000)
    counted, seen = said(keys, numbers=False), len(np.unique(keys))
    sampled = {**counted["sampling"], "method": "sampled", "standard_error": 0.01}

    def fit(records: int) -> TraceFit:
        summary = {**counted, "sampling": sampled}
        return fit_trace(lambda *_: trace_summary(summary), FitRequest(records=records))

    assert fit(round(0.97 * seen)).workload.num == round(0.97 * seen)
    with pytest.raises(InputError, match=f"allowed: at least {math.ceil(0.96 * seen)}: so many"):
        fit(round(0.95 * seen))


def test_a_trace_that_says_too_little_is_refused() -> None:
    with pytest.raises(InputError, match="found '100 operations'"):
        fitted(np.arange(100))
    with pytest.raises(InputError, match="fewer than three keys"):
        fitted(np.zeros(2000, dtype=np.int64))


@pytest.mark.skipif(not MIXGRAPH.is_file(), reason=f"needs {MIXGRAPH}")
@pytest.mark.parametrize("name", ["zippydb_pr5953", "social_graph_wiki"])
def test_published_value_sizes_come_back_as_db_benchs_flags(name: str) -> None:
    published = json.loads(MIXGRAPH.read_text())[name]
    k, sigma = published["value_k"], published["value_sigma"]
    u = 1 - np.random.default_rng(1).random(50_000)
    sizes = np.ceil(sigma * (u**-k - 1) / k)
    sizes = np.where(sizes < 10, 10, np.where(sizes > 1024, sizes % 1024, sizes)).astype(np.int64)
    keys = np.random.default_rng(1).integers(0, RECORDS, 100_000)
    fit = fitted(keys, values=sizes, operations={"get": 50_000, "put": 50_000})
    assert fit.db_bench["value_k"] == pytest.approx(k, rel=0.1)
    assert fit.db_bench["value_sigma"] == pytest.approx(sigma, rel=0.1)
    part = next(part for part in fit.parts if part.name == "value_sizes")
    assert part.fits
    mean = dict(part.distances)["mean_relative_error"]
    assert mean < 0.02


def _sizes(values: Whole) -> Histogram:
    sizes, counts = np.unique(values, return_counts=True)
    buckets = tuple((float(s), float(s), float(c)) for s, c in zip(sizes, counts, strict=True))
    mean = float(values.mean())
    return Histogram(len(values), mean, int(sizes[0]), int(sizes[-1]), 0, 0, 0, 0, buckets)


def test_sizes_take_the_model_they_were_drawn_from() -> None:
    rng = np.random.default_rng(1)
    normal = np.clip(np.round(rng.normal(126.7, 22.1, 50_000)), 40, 220).astype(np.int64)
    assert fit_sizes("v", _sizes(normal)).distribution.name == "normal"
    assert fit_sizes("v", _sizes(rng.integers(10, 500, 50_000))).distribution.name == "uniform"
    u = rng.random(50_000)
    pareto = np.ceil(80 * ((1 - u) ** -0.2 - 1) / 0.2).astype(np.int64)
    found = fit_sizes("v", _sizes(pareto)).distribution
    assert (found.name, found.get("theta")) == ("pareto", 1.0)
    assert found.get("k") == pytest.approx(0.2, abs=0.02)
    assert fit_sizes("v", _sizes(np.full(10, 7))).distribution == Distribution.of(
        "constant", size=7
    )


def test_sizes_that_no_model_fits_are_a_short_table() -> None:
    rng = np.random.default_rng(1)
    mixed = np.concatenate(
        [np.full(30_000, 10), rng.integers(500, 900, 20_000), np.full(9000, 4096)]
    )
    fit = fit_sizes("value_sizes", _sizes(mixed))
    rows = fit.distribution.get("sizes")
    assert isinstance(rows, tuple)
    assert len(rows) <= TABLE_ROWS
    assert fit.part.fits
    assert "no model of the driver" in fit.part.warnings[0]
    assert rows[0] == (10, 30_000)


@pytest.mark.parametrize("ranges", [4, 10, 30, 77])
def test_the_number_of_ranges_is_found_in_parts_that_do_not_divide_it(ranges: int) -> None:
    rng = np.random.default_rng(ranges)
    heat = rng.permutation(np.geomspace(0.2, 40, ranges))
    middle = (np.arange(4096) + 0.5) / 4096
    accesses = rng.poisson(200 * heat[(middle * ranges).astype(int)])
    accesses[rng.integers(0, 4096, 40)] += 100_000  # hot keys
    assert count_ranges([KeyRange("0", 1, float(n), 0, 0) for n in accesses]) == ranges


def test_alike_parts_are_one_range() -> None:
    accesses = np.random.default_rng(1).poisson(200, 4096)
    assert count_ranges([KeyRange("0", 1, float(n), 0, 0) for n in accesses]) == 1


def _rated(rates: NDArray[np.float64]) -> Any:
    keys = np.random.default_rng(1).integers(0, 100, int(rates.sum()))
    return fit_rate(trace_summary(said(keys, window_rates=rates)))


def test_rates_are_a_sine_steps_or_constant() -> None:
    rng = np.random.default_rng(1)
    t = np.arange(120.0)
    wave = _rated(
        np.round(100 + 50 * np.sin(2 * np.pi * (t + 0.5 + 5) / 40) + rng.normal(0, 5, 120))
    )
    assert isinstance(wave.shape, SineRate)
    found = (wave.shape.mean_ops_s, wave.shape.amplitude_ops_s, wave.shape.period_s)
    assert found == pytest.approx((100, 50, 40), rel=0.05)
    burst = _rated(np.where(t < 100, 20.0, 400.0))
    assert isinstance(burst.shape, StepRate)
    assert sum(seconds for seconds, _ in burst.shape.steps) == pytest.approx(120)
    constant = _rated(np.full(120, 50.0))
    assert (constant.shape, constant.constant_ops_s) == (None, pytest.approx(50))
    noise = _rated(np.round(rng.uniform(10, 90, 120)))
    assert noise.shape is None
    assert not noise.part.fits


def test_keys_of_other_sizes_than_the_modelled_ones_are_said() -> None:
    """Those of the group with the most operations were taken for all, without a word."""
    fields = said(IN_ORDER, operations={"get": 9000, "put": 1000})

    def warned(**groups: Whole) -> list[str]:
        sizes = {name: histogram(group) for name, group in groups.items()}
        summary = trace_summary({**fields, "key_sizes": sizes})
        fit = fit_trace(lambda _ranges, _number: summary, FitRequest(records=RECORDS))
        assert fit.workload.key_bytes == 24
        return [line for line in fit.warnings if "keys have the sizes of" in line]

    gets = np.full(9000, 24)
    assert warned(get=gets, write=np.full(1000, 24)) == []
    assert warned(get=gets, write=np.full(1000, 40), seek=np.resize([8, 16], 10)) == [
        "all keys have the sizes of get: 24 bytes; not those of write: 40 bytes; "
        "seek: 8 to 16 bytes, 12 on average"
    ]


def test_keys_of_one_distribution_are_not_called_of_other_sizes() -> None:
    """Two samples have other extremes and digits of their mean: nearly every trace was warned."""
    rng = np.random.default_rng(1)
    sizes = {
        name: histogram(np.clip(np.round(rng.normal(10.45, 1.4, count)), 8, 16).astype(np.int64))
        for name, count in (("get", 9000), ("put", 1000))
    }
    assert sizes["get"]["mean"] != sizes["put"]["mean"]
    fields = said(IN_ORDER, operations={"get": 9000, "put": 1000})
    summary = trace_summary({**fields, "key_sizes": sizes})
    fit = fit_trace(lambda _ranges, _number: summary, FitRequest(records=RECORDS))
    assert [line for line in fit.warnings if "keys have the sizes of" in line] == []


def test_the_recorded_rate_is_in_the_workload_only_when_asked_for() -> None:
    assert fitted(IN_ORDER).workload.phases[-1].rate_ops_s is None
    recorded = fitted(IN_ORDER, FitRequest(records=RECORDS, at_rate=True)).workload.phases[-1]
    assert recorded.rate_ops_s == pytest.approx(500)


def test_a_rate_that_the_trace_does_not_tell_is_refused() -> None:
    """Where all records bear one time, the workload had no rate, and nobody was told."""
    at_once = np.array([], float)
    why = "the rate of made-up.trace is unknown: all records bear the same time"
    with pytest.raises(InputError, match=rf"^--rate: {why}; found 'recorded'; allowed: closed"):
        fitted(IN_ORDER, FitRequest(records=RECORDS, at_rate=True), window_rates=at_once)
    (line,) = [w for w in fitted(IN_ORDER, window_rates=at_once).warnings if w.startswith("rate:")]
    assert line.startswith("rate: unknown: all records bear the same time: not in the workload")
    assert "--rate recorded" not in line


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("records", "many", "trace_summary.records: found 'many'"),
        ("ranges_by_number", [["0", 1]], r"ranges_by_number\[0\]"),
        ("ranges_by_rank", None, "ranges_by_rank"),
        ("unheard_of", 1, "trace_summary.unheard_of: unknown field"),
    ],
)
def test_a_summary_that_is_not_in_the_protocol_is_refused(
    name: str, value: object, complaint: str
) -> None:
    good = said(np.arange(100))
    assert trace_summary(good).records == 100
    with pytest.raises(ProtocolError, match=complaint):
        trace_summary({**good, name: value})
