"""What the `workload` commands print: a workload, a trace, and how a workload fits a trace."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from lsmtune.units import format_bytes, format_duration
from lsmtune.workloads.describe import data_line, phase_line
from lsmtune.workloads.file import workload_document
from lsmtune.workloads.parameter import WorkloadFamily
from lsmtune.workloads.stated import Stated

if TYPE_CHECKING:
    from lsmtune.traces.fit import TraceFit
    from lsmtune.traces.summary import TraceSummary

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
            "name": name,
            "value": stated.parameters.get(name, parameter.default),
            "default": parameter.default,
            "unit": parameter.unit,
            "allowed": parameter.allowed,
            "description": parameter.description,
        }
        for name, parameter in family.parameters.items()
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
    values = {name: stated.parameters.get(name) for name in family.parameters}
    settings = [
        f"{name}={'(not set)' if value is None else value}" for name, value in values.items()
    ]
    width = max(map(len, settings))
    about = (parameter.description for parameter in family.parameters.values())
    lines += [f"  {each:{width}}  {text}" for each, text in zip(settings, about, strict=True)]
    if family.figures:
        lines += ["", "figures, and who says so:"]
        for figure in family.figures:
            lines.append(f"  {figure.name}: {figure.value} [{figure.source or _NOT_PUBLISHED}]")
    return lines


# --- What the commands for traces say: lines for people, documents for programs. Prints nothing

_HOTTEST = (1, 10, 100, 1000, 10_000)
_CACHE_SHARES = (0.001, 0.01, 0.1)
_PREFIXES = 5


def summary_lines(summary: TraceSummary) -> list[str]:
    """What a reader wants first."""
    lines = [
        f"{summary.path}: trace version {summary.trace_version} of RocksDB "
        f"{summary.rocksdb_version}, {format_bytes(summary.bytes_total)}"
    ]
    if summary.damage is not None:
        where = f"offset {summary.damage.offset_bytes}, record {summary.damage.record}"
        why = f"{summary.damage.reason}; all figures are of what comes before"
        lines.append(f"DAMAGED at {where}: {why}")
    read = f"{format_duration(summary.duration_s)}; read in {summary.elapsed_s:.2f} s"
    counts = {name: count for name, count in summary.operation_counts.items() if count}
    total = max(summary.operations, 1)
    shares = [f"{name} {100 * count / total:.3f} %" for name, count in counts.items()]
    lines += [
        f"{summary.records:,} records, {summary.operations:,} operations in {read}",
        f"operations: {', '.join(shares) or 'none'}",
    ]
    if summary.column_families_other or len(summary.column_families) > 1:
        families = ", ".join(f"{number}: {count:,}" for number, count in summary.column_families)
        lines.append(f"column families: {families}")
    sizes = {f"key bytes, {name}": each for name, each in summary.key_sizes.items()}
    sizes |= {f"value bytes, {name}": each for name, each in summary.value_sizes.items()}
    if summary.inter_arrival_us is not None:
        sizes["microseconds between records"] = summary.inter_arrival_us
    for name, each in sizes.items():
        spread = f"{each.min} to {each.max}, median {each.p50:g}, p99 {each.p99:g}"
        several = f"mean {each.mean:.4g}, {spread}"
        lines.append(f"{name}: {f'always {each.min}' if each.min == each.max else several}")
    return [*lines, *_key_lines(summary)]


def _key_lines(summary: TraceSummary) -> list[str]:
    """How many keys there are, how hot the hottest are, and what a cache of keys would hit."""
    lines = [f"distinct keys: {summary.keys.distinct:,.0f} ({summary.sampling.text})"]
    curve, prefixes, reuse = summary.hotness.get("all"), summary.prefixes, summary.reuse.get("all")
    if curve is not None:
        shares = []
        for rank in (rank for rank in _HOTTEST if curve.points and curve.points[-1][0] >= rank):
            below = [share for at, _, share in curve.points if at <= rank]
            shares += [f"{rank:,}: {100 * below[-1]:.2f} %"] if below else []
        lines.append(f"share of the hottest keys: {', '.join(shares)}")
    if prefixes.top and summary.operations:
        shares = [
            f"{prefix.hex} {100 * prefix.accesses / summary.operations:.1f} %"
            for prefix in prefixes.top[:_PREFIXES]
        ]
        lines.append(f"hottest of {prefixes.distinct:g} prefixes: {', '.join(shares)}")
    if reuse is not None and reuse.miss_ratio:
        shares = []
        for share in _CACHE_SHARES:
            room = max(share * summary.keys.distinct, 1.0)
            misses = [ratio for keys, ratio in reuse.miss_ratio if keys <= room]
            shares += [f"{room:,.0f} keys {100 * (1 - misses[-1]):.1f} %"] if misses else []
        lines.append(f"hits of a cache of keys (least recently used): {', '.join(shares)}")
    return lines


def fit_document(fit: TraceFit) -> dict[str, Any]:
    """The workload, and how well each part of it fits."""
    return {
        "fits": fit.fits,
        "parts": [
            {
                "name": part.name,
                "model": part.model,
                "distances": dict(part.distances),
                "limit": part.limit,
                "fits": part.fits,
                "curve": [{"x": x, "trace": trace, "model": y} for x, trace, y in part.curve],
            }
            for part in fit.parts
        ],
        "warnings": list(fit.warnings),
        "workload": workload_document(fit.workload),
        "db_bench": dict(fit.db_bench) or None,
        "damage": None if fit.summary.damage is None else asdict(fit.summary.damage),
    }


def fit_lines(fit: TraceFit) -> list[str]:
    """A line for each part, then what to mind, then db_bench's flags."""
    width, lines = max(len(part.name) for part in fit.parts), []
    for part in fit.parts:
        verdict = "-"
        for name, value in part.distances[:1]:
            fits = "fits" if part.fits else f"DOES NOT FIT (limit {part.limit:g})"
            verdict = f"{fits}: {name} {value:.4f}"
        lines.append(f"{part.name:{width}}  {verdict}  {part.model}")
    lines += [f"warning: {warning}" for warning in fit.warnings]
    if fit.db_bench:
        flags = " ".join(f"--{name}={value}" for name, value in fit.db_bench.items())
        lines.append(f"as db_bench would make it: --benchmarks=mixgraph {flags}")
    return lines
