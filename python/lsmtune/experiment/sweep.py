"""A Sweep, which is what is measured over which axes, and the sweep files that state one.

What only makes sense across fields is checked in `experiment.sweep_grid`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from lsmtune.engines.library import ENGINE_NAMES
from lsmtune.errors import InputError
from lsmtune.model.config import OptionValue, option_text
from lsmtune.model.fields import (
    OPTION_ALLOWED,
    Option,
    StrictModel,
    Version,
    found_text,
    refused,
)
from lsmtune.model.files import Document, FileKind, json_schema, parse_document, read_as, read_text
from lsmtune.model.request import LIMITS_DEFAULT, SEED_MAX, DatabaseSpec, Limits
from lsmtune.workloads.stated import WORKLOAD_NAMES


class AxisKind(StrEnum):
    """What an axis sets; the values are also the words of the sweep file."""

    WORKLOAD = "workload"
    OPTION = "options"


@dataclass(frozen=True)
class Axis:
    """`values` of the workload parameter or option `name`, in the order in which they are shown.

    `texts` are the values as the user wrote them (`4MiB`), by which cells are named.
    """

    kind: AxisKind
    name: str
    values: tuple[OptionValue, ...]
    texts: tuple[str, ...]

    @classmethod
    def of(
        cls,
        kind: AxisKind,
        name: str,
        values: Sequence[OptionValue],
        texts: Sequence[str] | None = None,
    ) -> Axis:
        """An axis; without `texts` the values are named as the engines read them."""
        told = tuple(option_text(value) for value in values) if texts is None else tuple(texts)
        return cls(kind, name, tuple(values), told)

    @property
    def field(self) -> str:
        """Where the axis stands in a sweep file, dotted."""
        return f"axes.{self.kind.value}.{self.name}"


# Where the user wrote the dotted field of a sweep file: what errors name as source and field.
Place = Callable[[str], tuple[str, str]]

CELLS_MAX = 10_000
DATABASES_BYTES_DEFAULT = DatabaseSpec().size_bytes


@dataclass(frozen=True)
class SweepWorkload:
    """A workload of a sweep by name or file, with the parameters that are its own."""

    name: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    label: str = ""

    @property
    def told(self) -> str:
        """What tells it apart from the others of its sweep."""
        return self.label or self.name


@dataclass(frozen=True)
class Sweep:
    """A grid over `axes` under each of `workloads`; `parameters` and `options` hold everywhere.

    `library` is None where the engine's best known one is taken. `databases_bytes` is the disk
    space for loaded databases from whose copies runs start, 0 where each run loads its own.
    `place` says where the user wrote a field, `folder` from where files of workloads are named.
    """

    name: str
    engine: str
    workloads: tuple[SweepWorkload, ...]
    axes: tuple[Axis, ...]
    place: Place
    library: Path | None = None
    parameters: Mapping[str, object] = field(default_factory=dict)
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    repeats: int = 3
    seed: int = 1
    limits: Limits = LIMITS_DEFAULT
    databases_bytes: int = DATABASES_BYTES_DEFAULT
    folder: Path = Path()

    @property
    def points(self) -> int:
        """How many points the grid has; each is measured under every workload."""
        product = 1
        for axis in self.axes:
            product *= len(axis.values)
        return product

    def error(
        self, at: str, *, why: str = "", found: object = None, allowed: str = "", nearest: str = ""
    ) -> InputError:
        """What is wrong with the dotted field `at`, where the user wrote it."""
        source, name = self.place(at)
        return InputError(source, name, why=why, found=found, allowed=allowed, nearest=nearest)


# --- What a sweep file may hold.

_WORKLOAD_ALLOWED = "the name of a workload, or a mapping with name and parameters"
_PARAMETER = {"type": ["number", "string"]}


def _workload(value: object) -> object:
    parts = {"name": value} if isinstance(value, str) else value
    if not isinstance(parts, dict):
        raise refused(_WORKLOAD_ALLOWED)
    for key in ("name", "label"):
        if key in parts and not isinstance(parts[key], str):
            raise refused("text", key, found=found_text(parts[key]))
    if "name" not in parts:
        raise refused(", ".join(WORKLOAD_NAMES), "name", found=found_text(None))
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
    limits: Limits = Field(default=LIMITS_DEFAULT, description="when a run is killed")
    databases: DatabaseSpec = Field(
        default=DatabaseSpec(), description="loaded once, copied for each run"
    )


# --- Sweep files: text to Sweep, the sweeps that are built in, and the JSON Schema of the files.

BUILT_IN = ("rf5",)
SWEEP_FILE = FileKind("sweep")
_NOT_PARAMETERS = ("name", "label")


def load_sweep(path: Path) -> Sweep:
    """The Sweep of the file at `path`.

    Raises `InputError`, which names the file, the line and the field, for the first thing that is
    wrong; relations to the engine are only seen by `grid`.
    """
    return parse_sweep(read_text(path, SWEEP_FILE), path)


def built_in(name: str) -> Sweep:
    """One of the sweeps of BUILT_IN. Raises KeyError for another name."""
    return parse_sweep(built_in_text(name), Path(f"{name}.yaml"))


def built_in_text(name: str) -> str:
    """The sweep file of one of BUILT_IN. Raises KeyError for another name."""
    if name not in BUILT_IN:
        raise KeyError(name)
    data = resources.files("lsmtune.experiment") / "sweeps" / f"{name}.yaml"
    return data.read_text(encoding="utf-8")


def parse_sweep(text: str, path: Path) -> Sweep:
    """The Sweep of a file's `text`; `path` is where the file is. Raises as `load_sweep` does."""
    document = parse_document(text, str(path), SWEEP_FILE)
    return _sweep_of(read_as(SweepModel, document), document, path)


def sweep_json_schema() -> dict[str, Any]:
    """The JSON Schema (Draft 2020-12) of sweep files; it holds what a schema can say."""
    return json_schema(SweepModel)


def _sweep_of(model: SweepModel, document: Document, path: Path) -> Sweep:
    library = model.engine.library
    return Sweep(
        name=model.name,
        engine=model.engine.name,
        library=None if library is None else path.parent.absolute() / library,
        workloads=tuple(_load_workload(entry) for entry in model.workloads),
        parameters=model.workload,
        options=model.options,
        axes=(
            *_axes(AxisKind.WORKLOAD, model.axes.workload, document),
            *_axes(AxisKind.OPTION, model.axes.options, document),
        ),
        repeats=model.repeats,
        seed=model.seed,
        limits=model.limits,
        databases_bytes=model.databases.size_bytes if model.databases.reuse else 0,
        place=_place(document),
        folder=path.parent,
    )


def _load_workload(entry: Mapping[str, Any]) -> SweepWorkload:
    own = {key: value for key, value in entry.items() if key not in _NOT_PARAMETERS}
    return SweepWorkload(entry["name"], own, entry.get("label", ""))


def _axes(kind: AxisKind, axes: Mapping[str, list[Any]], document: Document) -> tuple[Axis, ...]:
    """The axes of one kind, with the values' texts as the file has them."""
    made = []
    for name, values in axes.items():
        field = f"axes.{kind.value}.{name}"
        written = [document.scalars[f"{field}[{index}]"] for index in range(len(values))]
        texts = [_told(value) for value in written]
        made.append(Axis.of(kind, name, values, texts))
    return tuple(made)


def _told(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _place(document: Document) -> Place:
    return lambda field: (document.where(field), field)
