"""A Sweep, which is what is measured over which axes, and the sweep files that state one.

What only makes sense across fields is checked in `experiment.sweep_grid`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidatorFunctionWrapHandler, WrapValidator

from lsmtune.engines.library import ENGINE_NAMES
from lsmtune.model.config import OptionValue
from lsmtune.model.fields import (
    OPTION_ALLOWED,
    STRICT,
    Option,
    StatedAs,
    StrictModel,
    Version,
    described,
    found_text,
    refused,
)
from lsmtune.model.files import FileKind, parse_document, read_as, read_text
from lsmtune.model.request import FIRST_SEED_MAX, LIMITS_DEFAULT, DatabaseSpec, Limits
from lsmtune.workloads.stated import WORKLOAD_NAMES

CELLS_MAX = 10_000
_DATABASES = DatabaseSpec()


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

    @property
    def field(self) -> str:
        """Where the axis stands in a sweep file, dotted."""
        return f"axes.{self.kind.value}.{self.name}"


def _with_text(value: object, read: ValidatorFunctionWrapHandler) -> tuple[OptionValue, str]:
    return read(value), str(value).lower() if isinstance(value, bool) else str(value)


_Values = Annotated[
    list[Annotated[Option, WrapValidator(_with_text)]],
    Field(description=f"a list of values, each {OPTION_ALLOWED.removeprefix('one value: ')}"),
]


class AxesModel(StrictModel):
    """What varies; the first value of each axis together make the first cell."""

    workload: dict[str, _Values] = Field(
        default={}, description="a mapping of workload parameter to a list of values"
    )
    options: dict[str, _Values] = Field(
        default={}, description="a mapping of engine option to a list of values"
    )


def _axes(stated: AxesModel) -> tuple[Axis, ...]:
    return tuple(
        Axis(kind, name, tuple(value for value, _ in values), tuple(text for _, text in values))
        for kind, axes in zip(AxisKind, (stated.workload, stated.options), strict=True)
        for name, values in axes.items()
    )


@dataclass(frozen=True)
class SweepWorkload:
    """A workload of a sweep by name or file, with the parameters that are its own."""

    name: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    label: str = ""

    @property
    def title(self) -> str:
        """What tells it apart from the others of its sweep."""
        return self.label or self.name


def _workload(value: object) -> object:
    stated = {"name": value} if isinstance(value, str) else value
    if not isinstance(stated, dict):
        raise refused("the name of a workload, or a mapping with name and parameters")
    for key in ("name", "label"):
        if key in stated and not isinstance(stated[key], str):
            raise refused("text", key, found=found_text(stated[key]))
    if "name" not in stated:
        raise refused(", ".join(WORKLOAD_NAMES), "name", found=found_text(None))
    own = {key: stated[key] for key in stated if key not in ("name", "label")}
    return {"name": stated["name"], "parameters": own, "label": stated.get("label", "")}


@dataclass(frozen=True)
class SweepEngine:
    """Which engine is measured."""

    __pydantic_config__ = STRICT

    name: Annotated[Literal[ENGINE_NAMES], described(", ".join(ENGINE_NAMES))]  # type: ignore[valid-type]
    library: Annotated[
        str | None,
        described(
            "path of the engine's library, from the sweep file; found when not given", min_length=1
        ),
    ] = None


# Where the user wrote the dotted field of a sweep file: what errors name as source and field.
Place = Callable[[str], tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class SweepFile:
    """A sweep file of lsmtune."""

    __pydantic_config__ = STRICT

    version: Annotated[Version, described("1, the version of this file format")]
    name: Annotated[
        str,
        described(
            "letters, digits, spaces and . _ -, starting with a letter or digit",
            pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]*$",
            max_length=100,
        ),
    ] = "sweep"
    engine: Annotated[SweepEngine, described("a mapping with name and, if wanted, library")]
    workloads: Annotated[
        tuple[Annotated[SweepWorkload, BeforeValidator(_workload)], ...],
        described("a list of workloads: names, or mappings with parameters", min_length=1),
    ]
    parameters: Annotated[
        Mapping[str, Any],
        described("a mapping of workload parameters that hold in every cell", alias="workload"),
    ] = field(default_factory=dict)
    options: Annotated[
        Mapping[str, Option], described("a mapping of engine options that hold in every cell")
    ] = field(default_factory=dict)
    axes: Annotated[
        tuple[Axis, ...],
        StatedAs(AxesModel, _axes),
        described("a mapping with workload, options, or both"),
    ]
    repeats: Annotated[int, described("rounds; 1 to 1000", ge=1, le=1000)] = 3
    seed: Annotated[int, described("all randomness follows from it", ge=0, le=FIRST_SEED_MAX)] = 1
    limits: Annotated[Limits, described("when a run is killed")] = LIMITS_DEFAULT
    databases: Annotated[DatabaseSpec, described("loaded once, copied for each run")] = _DATABASES


@dataclass(frozen=True, kw_only=True)
class Sweep(SweepFile):
    """A grid over `axes` under each of `workloads`; `parameters` and `options` hold everywhere.

    `place` says where the user wrote a field, `folder` from where files of workloads are named.
    """

    place: Place
    folder: Path = Path()

    @property
    def points(self) -> int:
        """How many points the grid has; each is measured under every workload."""
        return math.prod(len(axis.values) for axis in self.axes)

    @property
    def library(self) -> Path | None:
        """The engine's library; None where its best known one is taken."""
        return None if self.engine.library is None else Path(self.engine.library)


# --- Sweep files: text to Sweep, and the sweeps that are built in.

BUILT_IN = ("rf5",)
SWEEP_FILE = FileKind("sweep")


def load_sweep(path: Path) -> Sweep:
    """The Sweep of the file at `path`.

    Raises `InputError`, which names the file, the line and the field, for the first thing that is
    wrong; relations to the engine are only seen by `grid`.
    """
    return parse_sweep(read_text(path, SWEEP_FILE), path)


def built_in(name: str) -> Sweep:
    """One of the sweeps of BUILT_IN."""
    data = resources.files("lsmtune.experiment") / "sweeps" / f"{name}.yaml"
    return parse_sweep(data.read_text(encoding="utf-8"), Path(data.name))


def parse_sweep(text: str, path: Path) -> Sweep:
    """The Sweep of a file's `text`; `path` is where the file is. Raises as `load_sweep` does."""
    document = parse_document(text, str(path), SWEEP_FILE)
    stated = read_as(SweepFile, document)
    engine = stated.engine
    if engine.library is not None:
        engine = replace(engine, library=str(path.parent.absolute() / engine.library))

    def place(at: str) -> tuple[str, str]:
        return document.where(at), at

    return Sweep(**{**vars(stated), "engine": engine}, place=place, folder=path.parent)
