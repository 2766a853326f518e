"""What the `workload` commands print: a workload, a trace, and how a workload fits a trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from lsmtune.model.measurement import TraceDamage
from lsmtune.units import format_bytes, format_duration
from lsmtune.workloads.describe import data_line, phase_line
from lsmtune.workloads.file import workload_document
from lsmtune.workloads.parameter import WorkloadFamily
from lsmtune.workloads.stated import Stated

if TYPE_CHECKING:
    from lsmtune.traces.fit import TraceFit
    from lsmtune.traces.sizes import FittedPart
    from lsmtune.traces.summary import Histogram, TraceSummary

# --- What `lsmtune workload show` prints: a workload, its parameters, and the figures it stands on

_NOT_PUBLISHED = "not published"


def show_document(stated: Stated, family: WorkloadFamily | None) -> dict[str, Any]:
    """The document of `--json`; `family` is None for a file."""
    document: dict[str, Any] = {
        "name": stated.workload.name,
        "description": "" if family is None else family.description,
        "workload": workload_document(stated.workload),
        "notes": list(stated.notes),
    }
    if family is None:
        return document
    document["parameters"] = [
        {
            "name": parameter.name,
            "value": stated.parameters.get(parameter.name, parameter.default),
            "default": parameter.default,
            "unit": parameter.unit,
            "allowed": parameter.allowed,
            "description": parameter.description,
        }
        for parameter in family.parameters.values()
    ]
    document["figures"] = [
        {"name": figure.name, "value": figure.value, "source": figure.source or None}
        for figure in family.figures
    ]
    return document


def show_lines(stated: Stated, family: WorkloadFamily | None) -> list[str]:
    """The same for people."""
    workload = stated.workload
    head = workload.name if family is None else f"{workload.name}: {family.description}"
    lines = [head, "", f"data: {data_line(workload)}"]
    lines += [f"{phase.name}: {phase_line(phase)}" for phase in workload.phases]
    if family is None:
        return lines
    lines += ["", "parameters (-w NAME=VALUE):"]
    names = [
        f"{p.name}={_shown(stated.parameters.get(p.name))}" for p in family.parameters.values()
    ]
    width = max(map(len, names))
    about = (parameter.description for parameter in family.parameters.values())
    lines += [f"  {name:{width}}  {text}" for name, text in zip(names, about, strict=True)]
    if family.figures:
        lines += ["", "figures, and who says so:"]
        for figure in family.figures:
            lines.append(f"  {figure.name}: {figure.value} [{figure.source or _NOT_PUBLISHED}]")
    return lines


def _shown(value: object) -> str:
    return "(not set)" if value is None else str(value)


# --- What the commands for traces say: lines for people, documents for programs. Prints nothing

_HOTTEST = (1, 10, 100, 1000, 10_000)
_CACHE_SHARES = (0.001, 0.01, 0.1)
_PREFIXES = 5


def summary_document(summary: TraceSummary) -> dict[str, Any]:
    """Everything that was counted."""
    return {"trace": asdict(summary)}


def summary_lines(summary: TraceSummary) -> list[str]:
    """What a reader wants first."""
    damaged = [] if summary.damage is None else [_damage_line(summary.damage)]
    return [
        f"{summary.path}: trace version {summary.trace_version} of RocksDB "
        f"{summary.rocksdb_version}, {format_bytes(summary.bytes_total)}",
        *damaged,
        f"{summary.records:,} records, {summary.operations:,} operations in "
        f"{format_duration(summary.duration_s)}; read in {summary.elapsed_s:.2f} s",
        *_mix_lines(summary),
        *_size_lines(summary),
        *_key_lines(summary),
        *_reuse_lines(summary),
    ]


def _damage_line(damage: TraceDamage) -> str:
    return (
        f"DAMAGED at offset {damage.offset_bytes}, record {damage.record}: {damage.reason}; "
        "all figures are of what comes before"
    )


def _mix_lines(summary: TraceSummary) -> list[str]:
    counts = {name: count for name, count in summary.operation_counts.items() if count}
    total = max(summary.operations, 1)
    shares = [f"{name} {100 * count / total:.3f} %" for name, count in counts.items()]
    lines = [f"operations: {', '.join(shares) or 'none'}"]
    if summary.column_families_other or len(summary.column_families) > 1:
        families = ", ".join(f"{number}: {count:,}" for number, count in summary.column_families)
        lines.append(f"column families: {families}")
    return lines


def _size_lines(summary: TraceSummary) -> list[str]:
    groups = [
        *((f"key bytes, {name}", found) for name, found in summary.key_sizes.items()),
        *((f"value bytes, {name}", found) for name, found in summary.value_sizes.items()),
    ]
    if summary.inter_arrival_us is not None:
        groups.append(("microseconds between records", summary.inter_arrival_us))
    return [f"{name}: {_histogram(found)}" for name, found in groups]


def _histogram(found: Histogram) -> str:
    if found.min == found.max:
        return f"always {found.min}"
    return (
        f"mean {found.mean:.4g}, {found.min} to {found.max}, median {found.p50:g}, "
        f"p99 {found.p99:g}"
    )


def _key_lines(summary: TraceSummary) -> list[str]:
    lines = [f"distinct keys: {summary.keys.distinct:,.0f} ({summary.sampling.text})"]
    curve = summary.hotness.get("all")
    if curve is not None:
        shares = [
            f"{number:,}: {100 * share:.2f} %"
            for number in _HOTTEST
            if (share := _share_of(curve.points, number)) is not None
        ]
        lines.append(f"share of the hottest keys: {', '.join(shares)}")
    prefixes = summary.prefixes
    if prefixes.top and summary.operations:
        shares = [
            f"{prefix.hex} {100 * prefix.accesses / summary.operations:.1f} %"
            for prefix in prefixes.top[:_PREFIXES]
        ]
        lines.append(f"hottest of {prefixes.distinct:g} prefixes: {', '.join(shares)}")
    return lines


def _share_of(points: Sequence[Sequence[float]], rank: int) -> float | None:
    """The share of the hottest `rank` keys; None where there are not so many."""
    found = [share for at, _, share in points if at <= rank]
    return found[-1] if found and points[-1][0] >= rank else None


def _reuse_lines(summary: TraceSummary) -> list[str]:
    reuse = summary.reuse.get("all")
    if reuse is None or not reuse.miss_ratio:
        return []
    shares = []
    for share in _CACHE_SHARES:
        room = max(share * summary.keys.distinct, 1.0)
        misses = [ratio for keys, ratio in reuse.miss_ratio if keys <= room]
        if misses:
            shares.append(f"{room:,.0f} keys {100 * (1 - misses[-1]):.1f} %")
    return [f"hits of a cache of keys (least recently used): {', '.join(shares)}"]


def fit_document(fit: TraceFit) -> dict[str, Any]:
    """The workload, and how well each part of it fits."""
    return {
        "fits": fit.fits,
        "parts": [_part_document(part) for part in fit.parts],
        "warnings": list(fit.warnings),
        "workload": workload_document(fit.workload),
        "db_bench": dict(fit.db_bench) or None,
        "damage": None if fit.summary.damage is None else asdict(fit.summary.damage),
    }


def _part_document(part: FittedPart) -> dict[str, Any]:
    return {
        "name": part.name,
        "model": part.model,
        "distances": dict(part.distances),
        "limit": part.limit,
        "fits": part.fits,
        "curve": [{"x": x, "trace": trace, "model": model} for x, trace, model in part.curve],
    }


def fit_lines(fit: TraceFit) -> list[str]:
    """A line for each part, then what to mind, then db_bench's flags."""
    width = max(len(part.name) for part in fit.parts)
    lines = [_part_line(part, width) for part in fit.parts]
    lines += [f"warning: {warning}" for warning in fit.warnings]
    if fit.db_bench:
        flags = " ".join(f"--{name}={value}" for name, value in fit.db_bench.items())
        lines.append(f"as db_bench would make it: --benchmarks=mixgraph {flags}")
    return lines


def _part_line(part: FittedPart, width: int) -> str:
    if not part.distances:
        return f"{part.name:{width}}  -  {part.model}"
    name, value = part.distances[0]
    verdict = "fits" if part.fits else f"DOES NOT FIT (limit {part.limit:g})"
    return f"{part.name:{width}}  {verdict}: {name} {value:.4f}  {part.model}"
