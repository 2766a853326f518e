"""A small workload whose run is like a trace, and how much alike they are; replays.

`fit_trace` also says with which flags db_bench's `mixgraph` would make such a trace. Its generator
has steps that a model does not: shares of ranges are whole multiples of the smallest, and one
random number decides range, key, operation, value size and scan length. The parameters are those
that are most likely given these steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lsmtune.errors import InputError
from lsmtune.model.distribution import Distribution
from lsmtune.model.text import open_input
from lsmtune.model.workload import (
    KEY_BYTES_MAX,
    KEY_BYTES_MIN,
    VALUE_BYTES_MAX,
    Mix,
    Phase,
    PhaseKind,
    Replay,
    Workload,
)
from lsmtune.programs.mixgraph import RATIOS
from lsmtune.traces.keys import (
    RANGES_FEWEST,
    KeyFit,
    WrittenFit,
    count_ranges,
    fit_keys,
    fit_written,
    has_db_bench_numbers,
)
from lsmtune.traces.sizes import (
    DB_BENCH_WRAP,
    FittedPart,
    RateFit,
    SizeFit,
    fit_mix,
    fit_rate,
    fit_sizes,
    rounded,
)
from lsmtune.traces.summary import DB_BENCH_NUMBER, RANGES_MAX, Histogram, TraceSummary
from lsmtune.workloads.distributions import largest_size

_FEWEST_OPERATIONS = 1000
# The search for db_bench's steps draws points; the same ones for the same trace.
_SEED = 20261121
# An estimate is so many standard errors too high less than once in 30,000 times.
_ERRORS = 4
_NAME = "trace"
_VALUE_BYTES_UNKNOWN = 100
# Mean key sizes of groups that differ by more are not those of one distribution.
_SIZES_DIFFER = 0.05

# Inspects the trace, given how many ranges are told apart and how a key's number is read.
Inspect = Callable[[int, dict[str, object] | None], TraceSummary]


@dataclass(frozen=True)
class FitRequest:
    """How a workload is to be fitted; None: from the trace, as far as that tells.

    `records` keys were in the database; `ranges` equal ranges of them are modelled. Seeks read
    `scan_length` entries. `load_value_bytes` is the size of the values that were there before the
    trace. The run has `operations` operations, as many as the trace where None, in `threads`
    threads, at the rate of the trace with `at_rate`.
    """

    records: int | None = None
    ranges: int | None = None
    scan_length: int = 1
    load_value_bytes: int | None = None
    operations: int | None = None
    threads: int = 1
    at_rate: bool = False


@dataclass(frozen=True)
class TraceFit:
    """A workload, the parts of it with their goodness of fit, and what the user has to know.

    `db_bench` are flags of db_bench's `mixgraph` that would make such a trace, as far as it is one
    that mixgraph can make.
    """

    summary: TraceSummary
    workload: Workload
    parts: tuple[FittedPart, ...]
    warnings: tuple[str, ...]
    db_bench: Mapping[str, float]

    @property
    def fits(self) -> bool:
        """Whether every part fits."""
        return all(part.fits for part in self.parts)


@dataclass(frozen=True)
class Components:
    """The parts from which the workload is made; `values` is None where the trace writes none.

    `keys_seen` are the sizes of the trace's keys.
    """

    operations: Mapping[str, float]
    keys: KeyFit
    keys_seen: Histogram
    key_sizes: SizeFit
    values: SizeFit | None
    rate: RateFit
    records: int
    written: WrittenFit


def fit_trace(inspect: Inspect, request: FitRequest) -> TraceFit:
    """The workload that is like the trace which `inspect` reads, once or twice.

    Raises InputError for a trace without operations on keys, with fewer than a thousand, with keys
    or values larger than a workload has, or without the rate that is asked for.
    """
    first = inspect(RANGES_MAX, None)
    if first.operations < _FEWEST_OPERATIONS:
        allowed = f"at least {_FEWEST_OPERATIONS}: fewer say too little of a workload"
        raise InputError(first.path, found=f"{first.operations} operations", allowed=allowed)
    numbers = has_db_bench_numbers(first)
    summary = first
    if numbers:
        count = request.ranges or count_ranges(first.ranges_by_number)
        summary = inspect(count, DB_BENCH_NUMBER)
    records, assumptions = _records(summary, request, numbers)
    ranges = _range_accesses(summary, request, numbers)
    try:
        keys = fit_keys(summary, ranges, records, np.random.default_rng(_SEED))
    except ValueError as error:
        raise InputError(summary.path, why=f"the keys cannot be modelled: {error}") from error
    operations, mix = fit_mix(summary)
    # Mostly a key has one size in all groups: that with the most operations tells it best.
    sizes = max(summary.key_sizes.values(), key=lambda group: group.count)
    values = summary.value_sizes.get("put") or summary.value_sizes.get("merge")
    _refuse_larger(summary.path, "keys", sizes, KEY_BYTES_MAX)
    if values is not None:
        _refuse_larger(summary.path, "values", values, VALUE_BYTES_MAX)
    rate = fit_rate(summary)
    if request.at_rate and not rate.known:
        why = f"the rate of {summary.path} is {rate.part.model}"
        raise InputError("--rate", found="recorded", allowed="closed", why=why)
    components = Components(
        operations,
        keys,
        sizes,
        fit_sizes("key_sizes", sizes, model=False),
        None if values is None else fit_sizes("value_sizes", values),
        rate,
        records,
        fit_written(summary, operations, keys),
    )
    parts = [mix, components.key_sizes.part]
    if components.values is not None:
        parts.append(components.values.part)
    parts += keys.parts
    if components.written.part is not None:
        parts.append(components.written.part)
    parts.append(components.rate.part)
    assumptions += _assumptions(summary, request, components)
    warnings = (*assumptions, *(warning for part in parts for warning in part.warnings))
    db_bench = _mixgraph_flags(summary, components) if numbers else {}
    workload = _build_workload(summary, request, components)
    return TraceFit(summary, workload, tuple(parts), warnings, db_bench)


def _refuse_larger(path: str, what: str, sizes: Histogram, most: int) -> None:
    if sizes.max > most:
        allowed = f"{what} of at most {most} bytes, as a workload has"
        raise InputError(path, found=f"{what} of {sizes.max} bytes", allowed=allowed)


def _records(summary: TraceSummary, request: FitRequest, numbers: bool) -> tuple[int, list[str]]:
    sampling, distinct = summary.sampling, round(summary.keys.distinct)
    least = distinct
    if sampling.method != "exact":
        # The number of keys is an estimate then, and half of all estimates are too high.
        least = math.ceil(distinct * (1 - _ERRORS * sampling.standard_error))
    if request.records is not None:
        if request.records < least:
            allowed = f"at least {least}: so many keys are in the trace"
            raise InputError("--records", found=request.records, allowed=allowed)
        return request.records, []
    numbered = int(summary.key_space.max) + 1 if numbers else 0
    if numbered >= least:
        return numbered, [f"records: {numbered}, by the largest number of a key; --records says it"]
    # Numbered keys, too, may be more than their numbers: one of two column families is two.
    return distinct, [
        f"records: {distinct}, the keys that the trace asks for; a database holds more: "
        "--records says how many"
    ]


def _range_accesses(summary: TraceSummary, request: FitRequest, numbers: bool) -> list[float]:
    """Accesses of ranges of equally many keys: by their numbers, or by the keys that were seen.

    Raises InputError for more ranges than the trace's parts, of which there are a hundred.
    """
    if numbers:
        ranges = [part.accesses for part in summary.ranges_by_number]
        return ranges if len(ranges) >= RANGES_FEWEST else []
    parts = summary.ranges_by_rank
    if not parts:
        return []
    count = request.ranges or len(parts)
    if count > len(parts):
        allowed = f"at most {len(parts)}: of keys that are no numbers of db_bench no more are told"
        raise InputError("--ranges", found=count, allowed=allowed)
    # A part that a border cuts belongs to both ranges, by the keys on either side.
    keys = np.cumsum([0.0, *(part.keys_distinct for part in parts)])
    accesses = np.cumsum([0.0, *(part.accesses for part in parts)])
    within = np.diff(np.interp(np.linspace(0.0, keys[-1], count + 1), keys, accesses))
    return [float(total) for total in within]


def _assumptions(summary: TraceSummary, request: FitRequest, components: Components) -> list[str]:
    """What the trace does not say, and the workload therefore has by assumption."""
    lines = []
    if "scan" in components.operations:
        lines.append(
            f"scan lengths are not in a trace: each seek reads {request.scan_length} "
            f"(--scan-length says how many)"
        )
    if request.load_value_bytes is None:
        size = "of the trace's writes" if components.values else "of 100 bytes"
        lines.append(
            f"the values that were there before are not in a trace: loaded {size} "
            "(--load-value-bytes says their size)"
        )
    lines.append(
        "how well values compress is not in a trace: to half of their size (compression_ratio of "
        "the file says it)"
    )
    if components.operations.keys() - {"get", "scan"}:
        lines.append(
            "whether writes were synced is not in a trace: they are not (durability of "
            "the file says it)"
        )
    if summary.value_sizes.keys() >= {"put", "merge"}:
        lines.append("merges have the value sizes of puts: a mix has the same for all its writes")
    lines += _other_key_sizes(summary.key_sizes, components.keys_seen)
    if components.keys_seen.min < KEY_BYTES_MIN:
        lines.append(f"keys shorter than {KEY_BYTES_MIN} bytes have {KEY_BYTES_MIN}")
    if len(summary.column_families) > 1:
        lines.append(
            f"{len(summary.column_families)} column families: their shares are not modelled, "
            "keys are divided evenly among them"
        )
    if not request.at_rate:
        hint = " (--rate recorded puts it there)" if components.rate.known else ""
        lines.append(
            f"rate: {components.rate.part.model}: not in the workload, which runs as fast as "
            f"it goes{hint}"
        )
    if summary.sampling.method != "exact":
        lines.append(f"keys: {summary.sampling.text}")
    if summary.damage is not None:
        lines.append(
            f"the trace is damaged at offset {summary.damage.offset_bytes}: fitted to the "
            f"{summary.records} records before"
        )
    return lines


def _other_key_sizes(groups: Mapping[str, Histogram], modelled: Histogram) -> list[str]:
    """A line where another group of operations has keys of other sizes than the `modelled` ones."""

    def bytes_of(sizes: Histogram) -> str:
        if sizes.min == sizes.max:
            return f"{sizes.min} bytes"
        return f"{sizes.min} to {sizes.max} bytes, {sizes.mean:.4g} on average"

    def differs(sizes: Histogram) -> bool:
        # Samples of one distribution have other extremes by chance, and nearly the same mean.
        further = abs(sizes.mean - modelled.mean) > _SIZES_DIFFER * modelled.mean
        return further or (sizes.min == sizes.max) != (modelled.min == modelled.max)

    said = bytes_of(modelled)
    (of,) = [name for name, sizes in groups.items() if sizes is modelled]
    others = [f"{name}: {bytes_of(sizes)}" for name, sizes in groups.items() if differs(sizes)]
    left_out = "; ".join(others)
    return [f"all keys have the sizes of {of}: {said}; not those of {left_out}"] if others else []


# --- what the fitted components make up


def _build_workload(summary: TraceSummary, request: FitRequest, components: Components) -> Workload:
    """A load of `components.records` keys, and a run of the mix, as often as was requested."""
    values = None if components.values is None else components.values.distribution
    histogram = summary.value_sizes.get("put") or summary.value_sizes.get("merge")
    mean = _VALUE_BYTES_UNKNOWN
    if histogram is not None:
        mean = max(1, round(histogram.mean))  # a trace of empty values alone has a mean of 0
    loaded = values
    if request.load_value_bytes is not None:
        loaded = Distribution.of("constant", size=request.load_value_bytes)
    scans = Distribution.of("constant", size=request.scan_length)
    mix = Mix(
        operations=tuple(components.operations.items()),
        records=components.records,
        keys=components.keys.distribution,
        scan_lengths=scans if "scan" in components.operations else None,
        value_sizes=values,
        operation_by_key=components.written.by_key,
    )
    inserts = Mix((("insert", 1.0),), records=0, value_sizes=loaded)
    run = Phase(
        "run",
        PhaseKind.MEASURE,
        mix=mix,
        operations=request.operations or summary.operations,
        threads=request.threads,
        rate=components.rate.shape if request.at_rate else None,
        rate_ops_s=components.rate.constant_ops_s if request.at_rate else None,
    )
    sizes = _driver_keys(components.key_sizes.distribution)
    return Workload(
        name=_NAME,
        phases=(
            Phase("load", PhaseKind.LOAD, mix=inserts, operations=components.records),
            Phase("settle", PhaseKind.SETTLE),
            run,
        ),
        num=components.records,
        key_bytes=largest_size(sizes),
        value_bytes=request.load_value_bytes or mean,
        key_sizes=None if sizes.name == "constant" else sizes,
        column_families=max(len(summary.column_families), 1),
    )


def _driver_keys(sizes: Distribution) -> Distribution:
    """`sizes` of keys, of the driver's keys: these begin with a number, which takes 8 bytes."""
    table = sizes.get("sizes")
    pairs = table if isinstance(table, tuple) else ((largest_size(sizes), 1),)
    raised: dict[float, float] = {}
    for size, weight in pairs:
        longer = max(KEY_BYTES_MIN, size)
        raised[longer] = raised.get(longer, 0) + weight
    if len(raised) == 1:
        return Distribution.of("constant", size=next(iter(raised)))
    return Distribution.of("table", sizes=tuple(raised.items()))


def _mixgraph_flags(summary: TraceSummary, components: Components) -> dict[str, float]:
    """The flags in db_bench's spelling; empty for a trace with operations it does not have."""
    if not set(components.operations) <= set(RATIOS):
        return {}
    flags: dict[str, float] = {"num": components.records, "reads": summary.operations}
    flags["key_size"] = round(components.keys_seen.mean)
    flags |= {flag: components.operations.get(name, 0.0) for name, flag in RATIOS.items()}
    ranges, power = components.keys.ranges, components.keys.power
    if ranges is not None:
        flags |= {f"keyrange_dist_{n}": rounded(getattr(ranges, n)) for n in "abcd"}
        flags["keyrange_num"] = ranges.ranges
    if power is not None:
        flags |= {"key_dist_a": rounded(power.a), "key_dist_b": rounded(power.b)}
    pareto = None if components.values is None else components.values.pareto
    if pareto is not None:
        flags |= {
            "value_theta": rounded(pareto.theta),
            "value_k": rounded(pareto.k),
            "value_sigma": rounded(pareto.sigma),
            "mix_max_value_size": max(DB_BENCH_WRAP, summary.value_sizes["put"].max),
        }
    elif components.values is not None:
        # All of one size: a distribution without a scale. What no flag says has a mean of 35 bytes.
        size = largest_size(components.values.distribution)
        flags |= {"value_theta": size, "value_k": 1.0, "value_sigma": 0.0}
        flags["mix_max_value_size"] = size
    return flags


def replay_workload(trace: Path, load: Workload, speed: float | None, threads: int) -> Workload:
    """The load phases of `load`, or its first phase as a load, settled; then the trace.

    `speed` 1 is the trace's own pace, None as fast as it goes. Raises InputError for a trace that
    is not a file.
    """
    open_input(trace, "a query trace of RocksDB").close()
    loads = [phase for phase in load.phases if phase.kind is PhaseKind.LOAD]
    if not loads:
        loads = [replace(phase, kind=PhaseKind.LOAD) for phase in load.phases[:1]]
    replayed = Phase(
        "replay", PhaseKind.MEASURE, replay=Replay(str(trace.resolve()), speed), threads=threads
    )
    settle = Phase("settle", PhaseKind.SETTLE)
    return replace(load, name=f"replay-{trace.name}", phases=(*loads, settle, replayed))
