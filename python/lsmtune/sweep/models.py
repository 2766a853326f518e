"""The shape of a sweep file as pydantic models: its fields, their types and their JSON Schema.

What only makes sense across fields is checked in `sweep.grid`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from lsmtune.engines.names import ENGINE_NAMES
from lsmtune.records.request import SEED_MAX
from lsmtune.spec.fields import OPTION_ALLOWED, LimitsModel, Option, Size, StrictModel, Version
from lsmtune.sweep.plan import DATABASES_BYTES_DEFAULT
from lsmtune.workloads import WORKLOAD_NAMES

_WORKLOAD_ALLOWED = "the name of a workload, or a mapping with name and parameters"
_PARAMETER = {"type": ["number", "string"]}


def _workload(value: object) -> object:
    parts = {"name": value} if isinstance(value, str) else value
    if not isinstance(parts, dict):
        raise PydanticCustomError("refused", "{allowed}", {"allowed": _WORKLOAD_ALLOWED})
    for key in ("name", "label"):
        if key in parts and not isinstance(parts[key], str):
            context = {"allowed": "text", "field": key, "found": parts[key]}
            raise PydanticCustomError("refused", "{allowed}", context)
    if "name" not in parts:
        context = {"allowed": ", ".join(WORKLOAD_NAMES), "field": "name", "found": None}
        raise PydanticCustomError("refused", "{allowed}", context)
    return parts


WorkloadEntry = Annotated[
    dict[str, Any],
    BeforeValidator(_workload),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "minLength": 1},
                {
                    "type": "object",
                    "properties": {"name": {"type": "string"}, "label": {"type": "string"}},
                    "required": ["name"],
                    "additionalProperties": _PARAMETER,
                },
            ]
        }
    ),
]
Parameters = Annotated[
    dict[str, Any], WithJsonSchema({"type": "object", "additionalProperties": _PARAMETER})
]
_VALUES = f"a list of values, each {OPTION_ALLOWED.removeprefix('one value: ')}"


class EngineModel(StrictModel):
    """Which engine is measured."""

    name: Literal[ENGINE_NAMES] = Field(description=", ".join(ENGINE_NAMES))  # type: ignore[valid-type]
    library: str | None = Field(
        default=None,
        min_length=1,
        description="path of the engine's library, from the sweep file; found when not given",
    )


class AxesModel(StrictModel):
    """What varies; the first value of each axis together make the first cell."""

    workload: dict[str, Annotated[list[Option], Field(description=_VALUES)]] = Field(
        default={}, description="a mapping of workload parameter to a list of values"
    )
    options: dict[str, Annotated[list[Option], Field(description=_VALUES)]] = Field(
        default={}, description="a mapping of engine option to a list of values"
    )


class DatabasesModel(StrictModel):
    """Databases that are loaded once and copied for each run."""

    reuse: bool = Field(default=True, description="true, false")
    size: Size = Field(default=DATABASES_BYTES_DEFAULT, description="disk space for them; 20GiB")


class SweepModel(StrictModel):
    """A sweep file of lsmtune."""

    version: Version = Field(description="1, the version of this file format")
    name: str = Field(
        default="sweep",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]*$",
        max_length=100,
        description="letters, digits, spaces and . _ -, starting with a letter or digit",
    )
    engine: EngineModel = Field(description="a mapping with name and, if wanted, library")
    workloads: list[WorkloadEntry] = Field(
        min_length=1, description="a list of workloads: names, or mappings with parameters"
    )
    workload: Parameters = Field(
        default={}, description="a mapping of workload parameters that hold in every cell"
    )
    options: dict[str, Option] = Field(
        default={}, description="a mapping of engine options that hold in every cell"
    )
    axes: AxesModel = Field(description="a mapping with workload, options, or both")
    repeats: int = Field(default=3, ge=1, le=1000, description="rounds; 1 to 1000")
    seed: int = Field(default=1, ge=0, le=SEED_MAX, description="all randomness follows from it")
    limits: LimitsModel = Field(default=LimitsModel(), description="when a run is killed")
    databases: DatabasesModel = Field(
        default=DatabasesModel(), description="loaded once, copied for each run"
    )
