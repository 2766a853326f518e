"""A workload in words: a line for what it stands on, and one for each phase."""

from __future__ import annotations

from typing import Any

from lsmtune.model.distribution import Distribution
from lsmtune.model.workload import Companion, Mix, Phase, PhaseKind, SineRate, StepRate, Workload
from lsmtune.units import format_bytes, format_duration
from lsmtune.workloads.file import workload_document
from lsmtune.workloads.parameter import WorkloadFamily
from lsmtune.workloads.stated import Stated


def mixed_phases(workload: Workload) -> list[str]:
    """The lines of the phases that a name alone does not describe: mixes and replays."""
    return [
        f"{phase.name}: {phase_line(phase)}"
        for phase in workload.phases
        if phase.mix is not None or phase.replay is not None
    ]


def data_line(workload: Workload) -> str:
    """Keys, values and what else all phases share."""
    keys = workload.keys
    named = "" if keys is None else f" ({keys.prefix}..., {keys.order.value})"
    sizes = workload.key_sizes
    key = format_bytes(workload.key_bytes) if sizes is None else _sizes(sizes)
    parts = [
        f"{workload.num:,} records: keys of {key}{named}, values of "
        f"{format_bytes(workload.value_bytes)}, compressible to {workload.compression_ratio:g}",
        f"durability {workload.durability.value}, page_cache {workload.page_cache.value}",
    ]
    if workload.databases > 1:
        parts.append(f"{workload.databases} databases")
    if workload.column_families > 1:
        parts.append(f"{workload.column_families} column families")
    return "; ".join(parts)


def phase_line(phase: Phase) -> str:
    """What a phase does, how often, by how many threads and at which rate."""
    if phase.kind is PhaseKind.SETTLE:
        return "waits until the engine has nothing left to do"
    doing = str(phase.operation) if phase.mix is None else _mix(phase.mix)
    if (replay := phase.replay) is not None:
        pace = "as fast as it goes" if replay.speed is None else f"{replay.speed:g} times its pace"
        doing = f"replay of {replay.path}, {pace}"
    sizes = []
    if phase.operations is not None:
        sizes.append(f"{phase.operations:,} operations")
    if phase.operations_per_thread is not None:
        sizes.append(f"{phase.operations_per_thread:,} operations of each thread")
    if phase.duration_s is not None:
        sizes.append(format_duration(phase.duration_s))
    parts = [f"{phase.kind.value}, {doing}", " or ".join(sizes)]
    parts.append("1 thread" if phase.threads == 1 else f"{phase.threads} threads")
    if phase.rate_ops_s is not None:
        parts.append(f"{phase.rate_ops_s:,g} operations/s")
    if phase.rate is not None:
        parts.append(_rate(phase.rate))
    parts += [f"beside it {_companion(companion)}" for companion in phase.companions]
    return "; ".join(part for part in parts if part)


def _mix(mix: Mix) -> str:
    total = sum(weight for _, weight in mix.operations)
    shares = ", ".join(f"{100 * weight / total:.4g} % {name}" for name, weight in mix.operations)
    parts = [shares]
    if mix.names - {"insert", "delete_oldest"}:
        parts.append(f"keys {_distribution(mix.keys)} of {mix.records:,}")
    if mix.operation_by_key is not None:
        parts.append(f"the key decides the operation in {100 * mix.operation_by_key:.4g} %")
    if mix.scan_lengths is not None:
        parts.append(f"scans {_distribution(mix.scan_lengths)}")
    if mix.value_sizes is not None:
        parts.append(f"values {_sizes(mix.value_sizes)}")
    return ", ".join(parts)


def _sizes(sizes: Distribution) -> str:
    if sizes.name == "constant":
        return f"{sizes.get('size')} bytes"
    return _distribution(sizes)


def _distribution(distribution: Distribution) -> str:
    parts = []
    for name, value in distribution.parameters:
        if isinstance(value, Distribution):
            parts.append(f"{name} {_distribution(value)}")
        elif isinstance(value, tuple):
            parts.append(f"{len(value)} {name}")
        else:
            parts.append(f"{name} {value:.12g}")
    return f"{distribution.name} ({', '.join(parts)})" if parts else distribution.name


def _rate(rate: SineRate | StepRate) -> str:
    if isinstance(rate, SineRate):
        period = format_duration(rate.period_s)
        return f"{rate.mean_ops_s:g} +- {rate.amplitude_ops_s:g} operations/s in waves of {period}"
    steps = ", ".join(f"{ops:g} for {format_duration(time)}" for time, ops in rate.steps)
    return f"operations/s in turn: {steps}"


def _companion(companion: Companion) -> str:
    doing = companion.operation if companion.mix is None else _mix(companion.mix)
    rate = "" if companion.rate_ops_s is None else f" at {companion.rate_ops_s:g} operations/s"
    threads = "" if companion.threads == 1 else f" in {companion.threads} threads"
    return f"{companion.name}: {doing}{threads}{rate}"


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
            "unit": parameter.domain.unit,
            "allowed": parameter.domain.allowed,
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
    """The lines for people; `family` is None for a file."""
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
    width = max(map(len, settings), default=0)
    about = (parameter.description for parameter in family.parameters.values())
    lines += [f"  {each:{width}}  {text}" for each, text in zip(settings, about, strict=True)]
    if family.figures:
        lines += ["", "figures, and who says so:"]
        for figure in family.figures:
            lines.append(f"  {figure.name}: {figure.value} [{figure.source or _NOT_PUBLISHED}]")
    return lines
