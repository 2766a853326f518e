"""The workload that the fitted parts of a trace make up: a load, and a run of a mix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lsmtune.records.workload import Distribution, Mix, Phase, PhaseKind, Workload
from lsmtune.traces.keys import KeyFit
from lsmtune.traces.rates import RateFit
from lsmtune.traces.sizes import SizeFit
from lsmtune.traces.summary import TraceSummary
from lsmtune.traces.wishes import Wishes
from lsmtune.traces.written import WrittenFit

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
