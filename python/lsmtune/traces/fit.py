"""What a trace does not say, and who fits a workload to it may."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from lsmtune.errors import InputError
from lsmtune.model.distribution import Distribution
from lsmtune.model.workload import Mix, Phase, PhaseKind, Replay, Workload
from lsmtune.traces.keys import (
    RANGES_FEWEST,
    KeyFit,
    WrittenFit,
    count_ranges,
    fit_keys,
    fit_written,
    has_db_bench_numbers,
    rounded,
)
from lsmtune.traces.sizes import (
    DB_BENCH_WRAP,
    FittedPart,
    RateFit,
    SizeFit,
    fit_mix,
    fit_rate,
    fit_sizes,
)
from lsmtune.traces.summary import DB_BENCH_NUMBER, RANGES_MAX, TraceSummary


@dataclass(frozen=True)
class Wishes:
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


# ----------
# Flags of db_bench's `mixgraph` that would make a trace like a given one.
#
# Its own generator has steps that a model does not: shares of ranges are whole multiples of the
# smallest, and one random number decides range, key, operation, value size and scan length. The
# parameters are those that are most likely given these steps.

_RATIOS: Mapping[str, str] = MappingProxyType(
    {"get": "mix_get_ratio", "put": "mix_put_ratio", "scan": "mix_seek_ratio"}
)


def mixgraph_flags(summary: TraceSummary, found: Found) -> dict[str, float]:
    """The flags in db_bench's spelling; empty for a trace with operations it does not have."""
    if not set(found.operations) <= set(_RATIOS):
        return {}
    flags: dict[str, float] = {"num": found.records, "reads": summary.operations}
    flags["key_size"] = round(found.key_bytes)
    flags |= {flag: found.operations.get(name, 0.0) for name, flag in _RATIOS.items()}
    ranges, power = found.keys.ranges, found.keys.power
    if ranges is not None:
        flags |= {f"keyrange_dist_{n}": rounded(getattr(ranges, n)) for n in "abcd"}
        flags["keyrange_num"] = ranges.ranges
    if power is not None:
        flags |= {"key_dist_a": rounded(power.a), "key_dist_b": rounded(power.b)}
    pareto = None if found.values is None else found.values.pareto
    if pareto is not None:
        flags |= {
            "value_theta": rounded(pareto.theta),
            "value_k": rounded(pareto.k),
            "value_sigma": rounded(pareto.sigma),
            "mix_max_value_size": pareto.wrap or DB_BENCH_WRAP,
        }
    return flags


# ----------
# The workload that the fitted parts of a trace make up: a load, and a run of a mix.

_NAME = "trace"
_VALUE_BYTES_UNKNOWN = 100


@dataclass(frozen=True)
class Found:
    """The parts from which the workload is made; `values` is None where the trace writes none."""

    operations: Mapping[str, float]
    keys: KeyFit
    key_sizes: SizeFit
    values: SizeFit | None
    rate: RateFit
    records: int
    key_bytes: float
    written: WrittenFit


def build_workload(summary: TraceSummary, wishes: Wishes, found: Found) -> Workload:
    """The workload: `found.records` keys are inserted, and the mix is drawn as often as wished."""
    values = None if found.values is None else found.values.distribution
    histogram = summary.value_sizes.get("put") or summary.value_sizes.get("merge")
    mean = round(histogram.mean) if histogram is not None else _VALUE_BYTES_UNKNOWN
    loaded = values
    if wishes.load_value_bytes is not None:
        loaded = Distribution.of("constant", size=wishes.load_value_bytes)
    scans = Distribution.of("constant", size=wishes.scan_length)
    mix = Mix(
        operations=tuple(found.operations.items()),
        records=found.records,
        keys=found.keys.distribution,
        scan_lengths=scans if "scan" in found.operations else None,
        value_sizes=values,
        operation_by_key=found.written.by_key,
    )
    inserts = Mix((("insert", 1.0),), records=0, value_sizes=loaded)
    run = Phase(
        "run",
        PhaseKind.MEASURE,
        mix=mix,
        operations=wishes.operations or summary.operations,
        threads=wishes.threads,
        rate=found.rate.shape if wishes.at_rate else None,
        rate_ops_s=found.rate.constant_ops_s if wishes.at_rate else None,
    )
    sizes = found.key_sizes.distribution
    constant = sizes.get("size") if sizes.name == "constant" else None
    return Workload(
        name=_NAME,
        phases=(
            Phase("load", PhaseKind.LOAD, mix=inserts, operations=found.records),
            Phase("settle", PhaseKind.SETTLE),
            run,
        ),
        num=found.records,
        key_bytes=constant if isinstance(constant, int) else round(found.key_bytes),
        value_bytes=wishes.load_value_bytes or mean,
        key_sizes=sizes if constant is None else None,
        column_families=max(len(summary.column_families), 1),
    )


# ----------
# A workload that replays a trace: on a database that another workload loads.


def replay_workload(trace: Path, load: Workload, speed: float | None, threads: int) -> Workload:
    """The load phases of `load`, or its first phase as a load, settled; then the trace.

    `speed` 1 is the trace's own pace, None as fast as it goes. Raises InputError for a trace that
    is not a file.
    """
    if not trace.is_file():
        raise InputError(str(trace), why="no such file", allowed="a query trace of RocksDB")
    loads = [phase for phase in load.phases if phase.kind is PhaseKind.LOAD]
    if not loads:
        loads = [replace(phase, kind=PhaseKind.LOAD) for phase in load.phases[:1]]
    replayed = Phase(
        "replay",
        PhaseKind.MEASURE,
        replay=Replay(str(trace.resolve()), speed),
        threads=threads,
    )
    settle = Phase("settle", PhaseKind.SETTLE)
    return replace(load, name=f"replay-{trace.name}", phases=(*loads, settle, replayed))


# ----------
# A small workload whose run is like a trace, and how much alike they are.

_FEWEST_OPERATIONS = 1000
# The search for db_bench's steps draws points; the same ones for the same trace.
_SEED = 20261121

# Inspects the trace again: (ranges, how a key's number is read).
Ask = Callable[[int, dict[str, object] | None], TraceSummary]


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


def fit_trace(ask: Ask, wishes: Wishes) -> TraceFit:
    """The workload that is like the trace which `ask` inspects, once or twice.

    Raises InputError for a trace without operations on keys, or with fewer than a thousand.
    """
    first = ask(RANGES_MAX, None)
    if first.operations < _FEWEST_OPERATIONS:
        raise InputError(
            first.path,
            found=f"{first.operations} operations",
            allowed=f"at least {_FEWEST_OPERATIONS}: fewer say too little of a workload",
        )
    numbers = has_db_bench_numbers(first)
    asked = wishes.ranges or (count_ranges(first.ranges_by_number) if numbers else 1)
    again = numbers or wishes.ranges is not None
    summary = ask(asked, DB_BENCH_NUMBER if numbers else None) if again else first
    records, doubts = _records(summary, wishes, numbers)
    ranges = _range_accesses(summary, wishes, numbers)
    try:
        keys = fit_keys(summary, ranges, records, np.random.default_rng(_SEED))
    except ValueError as error:
        raise InputError(summary.path, why=f"the keys cannot be modelled: {error}") from error
    operations, mix = fit_mix(summary)
    # One key has one size in all groups: that with the most operations tells it best.
    sizes = max(summary.key_sizes.values(), key=lambda group: group.count)
    values = summary.value_sizes.get("put") or summary.value_sizes.get("merge")
    found = Found(
        operations,
        keys,
        fit_sizes("key_sizes", sizes, model=False),
        None if values is None else fit_sizes("value_sizes", values),
        fit_rate(summary),
        records,
        sizes.mean,
        fit_written(summary, operations, keys),
    )
    fitted = [found.key_sizes.part] + ([] if found.values is None else [found.values.part])
    written = [] if found.written.part is None else [found.written.part]
    parts = (mix, *fitted, *keys.parts, *written, found.rate.part)
    warnings = (*doubts, *_unknown(summary, wishes, found), *(w for p in parts for w in p.warnings))
    db_bench = mixgraph_flags(summary, found) if numbers else {}
    return TraceFit(summary, build_workload(summary, wishes, found), parts, warnings, db_bench)


def _records(summary: TraceSummary, wishes: Wishes, numbers: bool) -> tuple[int, list[str]]:
    distinct = round(summary.keys.distinct)
    if wishes.records is not None:
        if wishes.records < distinct:
            raise InputError(
                "--records",
                found=wishes.records,
                allowed=f"at least {distinct}: so many keys are in the trace",
            )
        return wishes.records, []
    if numbers:
        records = int(summary.key_space.max) + 1
        return records, [f"records: {records}, by the largest number of a key; --records says it"]
    return distinct, [
        f"records: {distinct}, the keys that the trace asks for; a database holds more: "
        "--records says how many"
    ]


def _range_accesses(summary: TraceSummary, wishes: Wishes, numbers: bool) -> list[float]:
    """Accesses of ranges of equally many keys: by their numbers, or by the keys that were seen."""
    if numbers:
        ranges = [part.accesses for part in summary.ranges_by_number]
        return ranges if len(ranges) >= RANGES_FEWEST else []
    seen = [part.accesses for part in summary.ranges_by_rank]
    wanted = min(wishes.ranges or len(seen), len(seen))
    groups = np.arange(len(seen)) * wanted // max(len(seen), 1)
    return [float(total) for total in np.bincount(groups, seen, wanted)] if seen else []


def _unknown(summary: TraceSummary, wishes: Wishes, found: Found) -> list[str]:
    """What the trace does not say, and the workload therefore has by assumption."""
    lines = []
    if "scan" in found.operations:
        lines.append(
            f"scan lengths are not in a trace: each seek reads {wishes.scan_length} "
            f"(--scan-length says how many)"
        )
    if wishes.load_value_bytes is None:
        size = "of the trace's writes" if found.values else "of 100 bytes"
        lines.append(
            f"the values that were there before are not in a trace: loaded {size} "
            "(--load-value-bytes says their size)"
        )
    if len(summary.column_families) > 1:
        lines.append(
            f"{len(summary.column_families)} column families: their shares are not modelled, "
            "keys are divided evenly among them"
        )
    if not wishes.at_rate:
        lines.append(
            f"rate: {found.rate.part.model}: not in the workload, which runs as fast as "
            "it goes (--rate recorded puts it there)"
        )
    if summary.sampling.method != "exact":
        lines.append(f"keys: {summary.sampling.text}")
    if summary.damage is not None:
        lines.append(
            f"the trace is damaged at offset {summary.damage.offset_bytes}: fitted to the "
            f"{summary.records} records before"
        )
    return lines
