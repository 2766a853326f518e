"""What the `workload` commands print: a workload, and as JSON how it fits a trace."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from lsmtune.workloads.describe import data_line, phase_line
from lsmtune.workloads.file import workload_document
from lsmtune.workloads.parameter import WorkloadFamily
from lsmtune.workloads.stated import Stated

if TYPE_CHECKING:
    from lsmtune.traces.fit import TraceFit

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
