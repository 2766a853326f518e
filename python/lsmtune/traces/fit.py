"""A small workload whose run is like a trace, and how much alike they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from lsmtune.errors import InputError
from lsmtune.records.workload import Workload
from lsmtune.traces.ask import DB_BENCH_NUMBER, RANGES_MAX
from lsmtune.traces.build import Found, build_workload
from lsmtune.traces.keys import fit_keys
from lsmtune.traces.mix import fit_mix
from lsmtune.traces.mixgraph import mixgraph_flags
from lsmtune.traces.part import FittedPart
from lsmtune.traces.ranges import RANGES_FEWEST, count_ranges, has_db_bench_numbers
from lsmtune.traces.rates import fit_rate
from lsmtune.traces.sizes import fit_sizes
from lsmtune.traces.summary import TraceSummary
from lsmtune.traces.wishes import Wishes
from lsmtune.traces.written import fit_written

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
