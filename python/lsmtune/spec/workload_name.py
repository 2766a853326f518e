"""The `workload` of a study file as it is written: a name with parameters, or a workload file."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from lsmtune.spec.fields import refused
from lsmtune.workloads import FAMILIES, WORKLOAD_NAMES, WorkloadFamily


def _workload(value: object) -> object:
    if not isinstance(value, dict):
        raise refused("a mapping of fields")
    name = value.get("name")
    if not isinstance(name, str) and "file" not in value:
        context = {"allowed": ", ".join(WORKLOAD_NAMES), "field": "name", "found": name}
        raise PydanticCustomError("refused", "{allowed}", context)
    return value


_WEIGHTED = {
    "label": {"type": "string", "description": "what tells it apart; its name when not given"},
    "weight": {"type": "number", "exclusiveMinimum": 0, "description": "its share; 1 unless given"},
}


def _workload_schema() -> dict[str, Any]:
    """Families of the same parameters together; what else they check, only they know."""
    groups: dict[tuple[str, ...], list[WorkloadFamily]] = {}
    for family in FAMILIES.values():
        names = (*family.parameters, *family.also, *family.ignored, *family.no_effect)
        groups.setdefault(tuple(sorted(names)), []).append(family)
    file = {"file": {"type": "string", "minLength": 1, "description": "a workload file"}}
    return {
        "anyOf": [
            *(_families_schema(families) for families in groups.values()),
            {
                "type": "object",
                "properties": {**file, **_parameters_schema(FAMILIES["ycsb"]), **_WEIGHTED},
                "required": ["file"],
                "additionalProperties": False,
            },
        ]
    }


def _families_schema(families: list[WorkloadFamily]) -> dict[str, Any]:
    parameters: dict[str, Any] = {}
    for family in families:
        parameters |= _parameters_schema(family)
    names = {"enum": [family.name for family in families]}
    paths = {"type": ["string", "array"], "items": {"type": "string"}}
    return {
        "type": "object",
        "properties": {"name": names, "properties": paths, **parameters, **_WEIGHTED},
        "required": ["name"],
        "additionalProperties": False,
    }


def _parameters_schema(family: WorkloadFamily) -> dict[str, Any]:
    kinds = {"type": ["number", "string", "boolean"]}
    others = (*family.also, *family.ignored)
    return {name: dict(kinds) for name in others} | {
        parameter.name: {
            "description": f"{parameter.description}; {parameter.allowed}",
            "type": ["number", "string"],
        }
        for parameter in family.parameters.values()
    }


WorkloadFields = Annotated[
    dict[str, Any], BeforeValidator(_workload), WithJsonSchema(_workload_schema())
]
