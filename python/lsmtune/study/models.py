"""The shape of a study file as pydantic models: its fields, their types and their JSON Schema.

What only makes sense across fields is checked in `study.build`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema

from lsmtune.engines.library import STUDY_ENGINES
from lsmtune.model.command import JsonPointers, ParametersFile
from lsmtune.model.fields import (
    CONFIG_ALLOWED,
    WHOLE_ALLOWED,
    WHOLE_SCHEMA,
    ConfigFields,
    Duration,
    Names,
    Option,
    StrictModel,
    Version,
    When,
    Whole,
    refusing,
    space_parts,
    special_parts,
    special_schema,
)
from lsmtune.model.goal import Objective, Pick, with_direction
from lsmtune.model.request import LIMITS_DEFAULT, SEED_MAX, DatabaseSpec, Limits
from lsmtune.search.pruners import FAR_BEHIND, PRUNERS
from lsmtune.search.samplers import SAMPLERS
from lsmtune.space.prior import Prior
from lsmtune.study.spec import Budget, NoiseSpec, ProofSpec
from lsmtune.workloads.file import WorkloadFields


class EngineModel(StrictModel):
    """Which engine is tuned."""

    name: Literal[STUDY_ENGINES] = Field(description=", ".join(STUDY_ENGINES))  # type: ignore[valid-type]
    library: str | None = Field(
        default=None,
        min_length=1,
        description="path of the engine's library, from the study file; found when not given",
    )


class _ConditionalModel(StrictModel):
    when: dict[str, When] = Field(
        default={}, description="active only while these parameters have one of these values"
    )


class FloatSpecialModel(StrictModel):
    """A special value and its weight."""

    value: float = Field(description="a number")
    weight: float | None = Field(default=None, description="share of random draws, between 0 and 1")


class WholeSpecialModel(FloatSpecialModel):
    """A special value that is a whole number."""

    value: Whole = Field(description=WHOLE_ALLOWED)


_PriorField = Annotated[Prior, AfterValidator(refusing(Prior.check))]
WholeSpecial = Annotated[
    WholeSpecialModel, BeforeValidator(special_parts), WithJsonSchema(special_schema(WHOLE_SCHEMA))
]


class IntModel(_ConditionalModel):
    """A whole number within bounds."""

    type: Literal["int"]
    low: Whole = Field(description=WHOLE_ALLOWED)
    high: Whole = Field(description=WHOLE_ALLOWED)
    log: bool = Field(default=False, description="search on a log scale")
    step: Whole | None = Field(default=None, description="distance between values, from low")
    bins: int | None = Field(default=None, description="number of values, evenly spread")
    prior: _PriorField | None = Field(default=None, description="a mapping with distribution")
    unit: Literal["bytes"] | None = Field(default=None, description="bytes, for sizes")
    special: list[WholeSpecial] = Field(
        default=[], description="values outside the bounds that have a meaning of their own"
    )
    default: Whole | None = Field(default=None, description="the engine's own default")

    @model_validator(mode="before")
    @classmethod
    def _unit_of_sizes(cls, stated: object) -> object:
        """The unit is bytes where a number is written as a size (`4MiB`)."""
        if not isinstance(stated, dict) or stated.get("unit") is not None:
            return stated
        numbers = (stated.get(key) for key in ("low", "high", "step", "default"))
        return {**stated, "unit": "bytes"} if any(isinstance(n, str) for n in numbers) else stated


FloatSpecial = Annotated[
    FloatSpecialModel,
    BeforeValidator(special_parts),
    WithJsonSchema(special_schema({"type": "number"})),
]


class FloatModel(_ConditionalModel):
    """A number within bounds."""

    type: Literal["float"]
    low: float = Field(description="a number")
    high: float = Field(description="a number")
    log: bool = Field(default=False, description="search on a log scale")
    step: float | None = Field(default=None, description="distance between values, from low")
    bins: int | None = Field(default=None, description="number of values, evenly spread")
    prior: _PriorField | None = Field(default=None, description="a mapping with distribution")
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


class SpaceModel(StrictModel):
    """What may be set to what: ready spaces by name, and parameters of one's own."""

    use: Names = Field(default=[], description="names of ready spaces")
    without: Names = Field(default=[], description="parameters of ready spaces to leave alone")
    parameters: dict[str, ParameterModel] = Field(
        default={}, description="a mapping of option name to parameter"
    )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """As the file has it: parameters beside `use` and `without`, or names alone."""
        schema = handler.resolve_ref_schema(handler(core))
        fields = schema["properties"]
        schema["additionalProperties"] = fields.pop("parameters")["additionalProperties"]
        names = [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
        for name in ("use", "without"):
            fields[name] = {"anyOf": names, "description": fields[name]["description"]}
        return {"anyOf": [*names, schema]}


SpaceFields = Annotated[SpaceModel, BeforeValidator(space_parts)]


class NamedModel(BaseModel):
    """A strategy by name; its settings stand beside the name, and are checked by their owner."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    @property
    def settings(self) -> dict[str, Any]:
        """What stands beside the name and the other fields."""
        return dict(self.model_extra or {})


class SamplerModel(NamedModel):
    """How the space is searched."""

    name: Literal[tuple(SAMPLERS)] = Field(  # type: ignore[valid-type]
        default="auto", description=", ".join(SAMPLERS)
    )


class RungsModel(StrictModel):
    """Where a pruner looks: at the time within a run, or at smaller runs before it."""

    every: Duration | None = Field(default=None, description="time within the measure phase")
    num: list[Whole] | None = Field(
        default=None, description="numbers of keys in rising order, the workload's own last"
    )
    deadlines: list[Duration] = Field(default=[], description="time for the runs of each num")


class PrunerModel(NamedModel):
    """Which trials are ended early."""

    name: Literal[tuple(PRUNERS)] = Field(  # type: ignore[valid-type]
        description=", ".join(PRUNERS)
    )
    rungs: RungsModel = Field(
        default=RungsModel(), description="a mapping with every, or with num and deadlines"
    )


class ResultsModel(StrictModel):
    """Where a program's results are; one of the fields."""

    json_lines: Literal["file", "stdout"] | None = Field(
        default=None, description="file (the one that LSMTUNE_RESULTS names), stdout"
    )
    regex: dict[str, str] = Field(
        default={}, description="metric to a regular expression with one group"
    )
    json_pointer: JsonPointers | None = Field(
        default=None, description="a mapping with metrics and, if wanted, file"
    )


class RunnerModel(StrictModel):
    """What performs the runs in place of lsmtune's driver: a program of the user's own, by its
    command, or one that people trust, by its name.
    """

    program: str | None = Field(
        default=None, description="rocksdb-db_bench, leveldb-db_bench, ycsb-cpp or ekvsb"
    )
    path: str | None = Field(
        default=None, description="where that program lies; looked for on PATH without"
    )
    arguments: list[str] = Field(default=[], description="further arguments for that program")
    command: list[str | list[str]] = Field(
        default=[],
        description="a list: the program, then its arguments with {parameter} for values",
    )
    environment: dict[str, str] = Field(
        default={}, description="variables added to the program's environment"
    )
    parameters_file: str | ParametersFile | None = Field(
        default=None, description="the name of a JSON file, or a mapping with name and template"
    )
    results: ResultsModel = Field(
        default=ResultsModel(), description="a mapping with json_lines, regex or json_pointer"
    )
    metrics: list[str] = Field(
        default=[], description="metrics that it reports beside those of the objectives"
    )


_ObjectiveField = Annotated[Objective, BeforeValidator(with_direction)]


class StudyModel(StrictModel):
    """A study file of lsmtune."""

    version: Version = Field(description="1, the version of this file format")
    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]*$",
        max_length=100,
        description="letters, digits, spaces and . _ -, starting with a letter or digit",
    )
    engine: EngineModel | None = Field(
        default=None, description="a mapping with name and, if wanted, library"
    )
    runner: RunnerModel | None = Field(
        default=None,
        description="a mapping with program, or with command: a program in place of an engine",
    )
    workload: WorkloadFields | None = Field(
        default=None, description="a mapping with name and parameters"
    )
    workloads: list[WorkloadFields] = Field(
        default=[],
        description="several workloads for one configuration, each with a weight, in place of one",
    )
    objective: _ObjectiveField | None = Field(default=None, description="what is made better")
    objectives: list[_ObjectiveField] = Field(
        default=[], description="several objectives, in place of one: a front is searched"
    )
    pick: Pick | None = Field(
        default=None, description="which configuration of the front is proved"
    )
    baseline: ConfigFields = Field(default="default", description=CONFIG_ALLOWED)
    options: ConfigFields = Field(
        default={}, description="options of every run, of the baseline and of the candidates"
    )
    start: list[ConfigFields] = Field(
        default=[], description="configurations of the space that are tried first"
    )
    space: SpaceFields = Field(description="a mapping of option name to parameter")
    constraints: list[str] = Field(
        default=[], description="what must hold of options, such as a * b <= 1GiB, and of metrics"
    )
    guards: list[str] | None = Field(
        default=None,
        description="how much worse than the baseline a metric may be, such as "
        "write_amplification <= 1.5 * baseline; [] lifts the default guards",
    )
    burst: bool = Field(
        default=False,
        description="whether runs may be too short to show what is sustained: true asks what a "
        "burst gains",
    )
    sampler: SamplerModel = Field(default=SamplerModel(), description="how the space is searched")
    pruner: PrunerModel | None = Field(
        default=None,
        description="which trials are ended early; without it, under the sampler auto, runs that "
        f"are {FAR_BEHIND.name}",
    )
    budget: Budget = Field(default=Budget(), description="a mapping with time, trials, or both")
    limits: Limits = Field(default=LIMITS_DEFAULT, description="when a run is killed")
    proof: ProofSpec = Field(default=ProofSpec(), description="how the result is proved")
    noise: NoiseSpec = Field(default=NoiseSpec(), description="calibration, anchors, repeats")
    databases: DatabaseSpec = Field(
        default=DatabaseSpec(), description="loaded once, copied for each run"
    )
    seed: int = Field(default=0, ge=0, le=SEED_MAX, description="all randomness follows from it")
    allow_unsafe: list[str] = Field(
        default=[],
        description="options that trade data for speed and may be used here all the same",
    )

    @property
    def rungs(self) -> RungsModel:
        """Where the pruner that the file states looks."""
        return RungsModel() if self.pruner is None else self.pruner.rungs
