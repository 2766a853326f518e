"""The shape of a study file as pydantic models: its fields, their types and their JSON Schema.

What only makes sense across fields is checked in `spec.build`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from lsmtune.engines.names import STUDY_ENGINES
from lsmtune.records.config import OptionValue
from lsmtune.records.objective import METRICS
from lsmtune.records.request import LIMITS_DEFAULT, SEED_MAX, TRIALS_MAX
from lsmtune.units import (
    BYTES_ALLOWED,
    UnitError,
    format_bytes,
    format_duration,
    is_size_text,
    option_text_allowed,
    option_value,
    parse_bytes,
    parse_duration,
)
from lsmtune.workloads import WORKLOAD_NAMES, WORKLOAD_PARAMETERS

# The samplers room is this room's sibling; a test holds the two lists together.
SAMPLER_NAMES = ("tpe", "random")

WHOLE_ALLOWED = "a whole number, or a size such as 4MiB"
DURATION_ALLOWED = "a time above 0, largest unit first (1h30m, 90s, 500ms), or a number of seconds"
OPTION_ALLOWED = "one value: text, a number, true or false"

_SIZE_SCHEMA = {
    "anyOf": [
        {"type": "integer", "minimum": 0},
        {"type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*(B|[KMGT]iB|kB|MB|GB)?\s*$"},
    ]
}
_WHOLE_SCHEMA = {"anyOf": [{"type": "integer"}, _SIZE_SCHEMA["anyOf"][1]]}
_DURATION_SCHEMA = {
    "anyOf": [
        {"type": "number", "minimum": 0},
        {"type": "string", "pattern": r"^\s*([0-9]+(\.[0-9]+)?(ms|[hms])?)+\s*$"},
    ]
}
_OPTION_SCHEMA = {"type": ["string", "number", "boolean"]}


def _refused(allowed: str) -> PydanticCustomError:
    return PydanticCustomError("refused", "{allowed}", {"allowed": allowed})


def _version(value: object) -> object:
    # To Python, and so to a Literal, `true` and `1.0` equal 1.
    if isinstance(value, bool | float):
        raise _refused("1")
    return value


def _whole(value: object) -> object:
    if isinstance(value, str):
        try:
            return parse_bytes(value)
        except UnitError as error:
            if is_size_text(value):  # a right size of a wrong amount: its own error says more
                raise
            raise UnitError(value, WHOLE_ALLOWED, error.nearest) from None
    if isinstance(value, bool) or not isinstance(value, int):
        raise _refused(WHOLE_ALLOWED)
    return value


def _size(value: object) -> int:
    size = parse_bytes(value)
    if size == 0:
        raise UnitError(value, f"more than 0: {BYTES_ALLOWED}")
    return size


def _duration(value: object) -> float:
    try:
        duration_s = parse_duration(value)
    except UnitError:
        raise UnitError(value, DURATION_ALLOWED) from None
    if duration_s <= 0:
        raise UnitError(value, DURATION_ALLOWED)
    return duration_s


def _option(value: object) -> OptionValue:
    if not isinstance(value, str | int | float | bool):
        raise _refused(OPTION_ALLOWED)
    if isinstance(value, str):
        allowed = option_text_allowed(value)
        if allowed:
            raise _refused(allowed)
    return option_value(value)


def _condition(value: object) -> OptionValue | list[OptionValue]:
    return [_option(item) for item in value] if isinstance(value, list) else _option(value)


def _special(value: object) -> object:
    return value if isinstance(value, dict) else {"value": value}


def _baseline(value: object) -> object:
    if value == "default":
        return None
    if not isinstance(value, dict):
        raise _refused("default, or a mapping of options")
    return value


def _workload(value: object) -> object:
    if not isinstance(value, dict):
        raise _refused("a mapping of fields")
    name = value.get("name")
    if not isinstance(name, str):
        context = {"allowed": ", ".join(WORKLOAD_NAMES), "field": "name", "found": name}
        raise PydanticCustomError("refused", "{allowed}", context)
    return value


def _special_schema(number: dict[str, Any]) -> dict[str, Any]:
    weighted = {
        "type": "object",
        "properties": {
            "value": number,
            "weight": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        },
        "required": ["value"],
        "additionalProperties": False,
    }
    return {"anyOf": [number, weighted]}


def _workload_schema() -> dict[str, Any]:
    properties: dict[str, Any] = {
        parameter.name: {
            "description": f"{parameter.description}; {parameter.allowed}",
            "type": ["number", "string"],
        }
        for parameter in WORKLOAD_PARAMETERS.values()
    }
    properties["name"] = {"enum": list(WORKLOAD_NAMES)}
    return {
        "type": "object",
        "properties": properties,
        "required": ["name"],
        "additionalProperties": False,
    }


Version = Annotated[Literal[1], BeforeValidator(_version)]
Size = Annotated[int, BeforeValidator(_size), WithJsonSchema(_SIZE_SCHEMA)]
Whole = Annotated[int, BeforeValidator(_whole), WithJsonSchema(_WHOLE_SCHEMA)]
Duration = Annotated[float, BeforeValidator(_duration), WithJsonSchema(_DURATION_SCHEMA)]
Option = Annotated[Any, BeforeValidator(_option), WithJsonSchema(_OPTION_SCHEMA)]
When = Annotated[
    Any,
    BeforeValidator(_condition),
    WithJsonSchema(
        {"anyOf": [_OPTION_SCHEMA, {"type": "array", "items": _OPTION_SCHEMA, "minItems": 1}]}
    ),
]
Baseline = Annotated[
    dict[str, Option] | None,
    BeforeValidator(_baseline),
    WithJsonSchema(
        {
            "anyOf": [
                {"const": "default"},
                {"type": "object", "additionalProperties": _OPTION_SCHEMA},
            ]
        }
    ),
]
WorkloadFields = Annotated[
    dict[str, Any], BeforeValidator(_workload), WithJsonSchema(_workload_schema())
]


class StrictModel(BaseModel):
    """No unknown fields, no conversions between types, no change after reading."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class EngineModel(StrictModel):
    """Which engine is tuned."""

    name: Literal[STUDY_ENGINES] = Field(description=", ".join(STUDY_ENGINES))  # type: ignore[valid-type]
    library: str | None = Field(
        default=None,
        min_length=1,
        description="path of the engine's library, from the study file; found when not given",
    )


class ObjectiveModel(StrictModel):
    """What is made better."""

    metric: Literal[METRICS] = Field(  # type: ignore[valid-type]
        default="sustained_throughput_ops_s", description="a metric of the measure phase"
    )
    direction: Literal["maximize", "minimize"] | None = Field(
        default=None, description="maximize or minimize; follows from the metric when not given"
    )
    phase: str | None = Field(
        default=None, description="name of the measure phase; the last one when not given"
    )


class _ConditionalModel(StrictModel):
    when: dict[str, When] = Field(
        default={}, description="active only while these parameters have one of these values"
    )


class WholeSpecialModel(StrictModel):
    """A special value and its weight."""

    value: Whole = Field(description=WHOLE_ALLOWED)
    weight: float | None = Field(default=None, description="share of random draws, between 0 and 1")


class FloatSpecialModel(StrictModel):
    """A special value and its weight."""

    value: float = Field(description="a number")
    weight: float | None = Field(default=None, description="share of random draws, between 0 and 1")


WholeSpecial = Annotated[
    WholeSpecialModel,
    BeforeValidator(_special),
    WithJsonSchema(_special_schema(_WHOLE_SCHEMA)),
]


class IntModel(_ConditionalModel):
    """A whole number within bounds."""

    type: Literal["int"]
    low: Whole = Field(description=WHOLE_ALLOWED)
    high: Whole = Field(description=WHOLE_ALLOWED)
    log: bool = Field(default=False, description="search on a log scale")
    step: Whole | None = Field(default=None, description="distance between values, from low")
    unit: Literal["bytes"] | None = Field(default=None, description="bytes, for sizes")
    special: list[WholeSpecial] = Field(
        default=[], description="values outside the bounds that have a meaning of their own"
    )
    default: Whole | None = Field(default=None, description="the engine's own default")


FloatSpecial = Annotated[
    FloatSpecialModel,
    BeforeValidator(_special),
    WithJsonSchema(_special_schema({"type": "number"})),
]


class FloatModel(_ConditionalModel):
    """A number within bounds."""

    type: Literal["float"]
    low: float = Field(description="a number")
    high: float = Field(description="a number")
    log: bool = Field(default=False, description="search on a log scale")
    step: float | None = Field(default=None, description="distance between values, from low")
    special: list[FloatSpecial] = Field(
        default=[], description="values outside the bounds that have a meaning of their own"
    )
    default: float | None = Field(default=None, description="the engine's own default")


class CategoricalModel(_ConditionalModel):
    """One of a list of values."""

    type: Literal["categorical"]
    choices: list[Option] = Field(description="a list of at least 2 values")
    default: Option | None = Field(default=None, description="the engine's own default")


ParameterModel = Annotated[IntModel | FloatModel | CategoricalModel, Field(discriminator="type")]
PARAMETER_MODELS: dict[str, type[StrictModel]] = {
    "int": IntModel,
    "float": FloatModel,
    "categorical": CategoricalModel,
}


class SamplerModel(StrictModel):
    """How the space is searched."""

    name: Literal[SAMPLER_NAMES] = Field(  # type: ignore[valid-type]
        default="tpe", description=", ".join(SAMPLER_NAMES)
    )
    startup_trials: int | None = Field(
        default=None, ge=1, le=100_000, description="random trials before the sampler learns"
    )


class BudgetModel(StrictModel):
    """When the search ends; at least one of the two, and then whichever comes first."""

    time: Duration | None = Field(
        default=None, description="time for the whole study, its proof included"
    )
    trials: int | None = Field(default=None, ge=1, le=TRIALS_MAX, description="number of trials")


class LimitsModel(StrictModel):
    """When a run is killed."""

    deadline: Duration = Field(
        default=LIMITS_DEFAULT.deadline_s,
        description=f"time for one run; {format_duration(LIMITS_DEFAULT.deadline_s)}",
    )
    memory: Size = Field(
        default=LIMITS_DEFAULT.memory_bytes,
        description=f"resident memory of one run; {format_bytes(LIMITS_DEFAULT.memory_bytes)}",
    )
    disk: Size = Field(
        default=LIMITS_DEFAULT.disk_bytes,
        description=f"disk space of one run; {format_bytes(LIMITS_DEFAULT.disk_bytes)}",
    )


class ProofModel(StrictModel):
    """How the best configuration is proved against the baseline."""

    pairs: int = Field(default=5, ge=5, le=1000, description="interleaved pairs of runs")
    confidence: float = Field(
        default=0.95, ge=0.5, le=0.9999, description="of the ratio's interval"
    )


class StudyModel(StrictModel):
    """A study file of lsmtune."""

    version: Version = Field(description="1, the version of this file format")
    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]*$",
        max_length=100,
        description="letters, digits, spaces and . _ -, starting with a letter or digit",
    )
    engine: EngineModel = Field(description="a mapping with name and, if wanted, library")
    workload: WorkloadFields = Field(description="a mapping with name and parameters")
    objective: ObjectiveModel = Field(default=ObjectiveModel(), description="what is made better")
    baseline: Baseline = Field(
        default=None, description="default, or options; what the best configuration has to beat"
    )
    options: dict[str, Option] = Field(
        default={}, description="options of every run, of the baseline and of the candidates"
    )
    space: dict[str, ParameterModel] = Field(description="a mapping of option name to parameter")
    sampler: SamplerModel = Field(default=SamplerModel(), description="how the space is searched")
    budget: BudgetModel = Field(description="a mapping with time, trials, or both")
    limits: LimitsModel = Field(default=LimitsModel(), description="when a run is killed")
    proof: ProofModel = Field(default=ProofModel(), description="how the result is proved")
    seed: int = Field(default=0, ge=0, le=SEED_MAX, description="all randomness follows from it")
    allow_unsafe: list[str] = Field(
        default=[],
        description="options that trade data for speed and may be used here all the same",
    )
