"""Sweep files: text to Sweep, the sweeps that are built in, and the JSON Schema of the files."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lsmtune.errors import InputError
from lsmtune.records.request import Limits
from lsmtune.spec.document import Document, FileKind, parse_document, read_text
from lsmtune.spec.problems import first_problem
from lsmtune.sweep.axes import Axis, AxisKind
from lsmtune.sweep.models import SweepModel
from lsmtune.sweep.plan import Place, Sweep, SweepWorkload

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
    data = resources.files("lsmtune.sweep") / "studies" / f"{name}.yaml"
    return data.read_text(encoding="utf-8")


def parse_sweep(text: str, path: Path) -> Sweep:
    """The Sweep of a file's `text`; `path` is where the file is. Raises as `load_sweep` does."""
    document = parse_document(text, str(path), SWEEP_FILE)
    try:
        model = SweepModel.model_validate(document.data)
    except ValidationError as error:
        problem = first_problem(error, document, SweepModel)
        raise InputError(
            document.where(problem.field),
            problem.field,
            found=problem.found,
            allowed=problem.allowed,
            nearest=problem.nearest,
            why=problem.why,
        ) from None
    return _sweep_of(model, document, path)


def sweep_json_schema() -> dict[str, Any]:
    """The JSON Schema (Draft 2020-12) of sweep files; it holds what a schema can say."""
    schema = SweepModel.model_json_schema(mode="validation")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _sweep_of(model: SweepModel, document: Document, path: Path) -> Sweep:
    limits, library = model.limits, model.engine.library
    return Sweep(
        name=model.name,
        engine=model.engine.name,
        library=None if library is None else path.parent.absolute() / library,
        workloads=tuple(_workload(entry) for entry in model.workloads),
        parameters=model.workload,
        options=model.options,
        axes=(
            *_axes(AxisKind.WORKLOAD, model.axes.workload, document),
            *_axes(AxisKind.OPTION, model.axes.options, document),
        ),
        repeats=model.repeats,
        seed=model.seed,
        limits=Limits(limits.deadline, limits.memory, limits.disk),
        databases_bytes=model.databases.size if model.databases.reuse else 0,
        place=_place(document),
        folder=path.parent,
    )


def _workload(entry: Mapping[str, Any]) -> SweepWorkload:
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
