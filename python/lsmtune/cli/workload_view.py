"""What `lsmtune workload show` prints: a workload, its parameters, and the figures it stands on."""

from __future__ import annotations

from typing import Any

from lsmtune.spec.workload_text import workload_document
from lsmtune.workloads.describe import data_line, phase_line
from lsmtune.workloads.family import WorkloadFamily
from lsmtune.workloads.stated import Stated

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
