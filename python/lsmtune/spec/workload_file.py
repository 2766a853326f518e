"""Workload files: text to Workload, and the JSON Schema of what they may hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lsmtune.errors import InputError
from lsmtune.records.workload import Workload
from lsmtune.spec.document import Document, FileKind, parse_document, read_text
from lsmtune.spec.problems import first_problem
from lsmtune.spec.workload_build import build_workload
from lsmtune.spec.workload_models import WorkloadFileModel

WORKLOAD_FILE = FileKind("workload", "`lsmtune workload export` writes one")
SUFFIXES = (".yaml", ".yml")


def load_workload_file(path: Path) -> Workload:
    """The Workload of the workload file at `path`.

    Raises `InputError`, which names the file, the line and the field, for the first thing that is
    wrong.
    """
    return parse_workload_file(read_text(path, WORKLOAD_FILE), path)


def parse_workload_file(text: str, path: Path) -> Workload:
    """The Workload of a workload file's `text`; `path` is where the file is, or will be.

    Raises `InputError` as `load_workload_file` does.
    """
    document = parse_document(text, str(path), WORKLOAD_FILE)
    try:
        model = WorkloadFileModel.model_validate(document.data)
    except ValidationError as error:
        problem = first_problem(error, document, WorkloadFileModel)
        raise _with_line(problem, document) from None
    try:
        return build_workload(model, document.source, path.parent)
    except InputError as error:
        raise _with_line(error, document) from None


def workload_file_schema() -> dict[str, Any]:
    """The JSON Schema (Draft 2020-12) of workload files."""
    schema = WorkloadFileModel.model_json_schema(mode="validation")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _with_line(error: InputError, document: Document) -> InputError:
    return InputError(
        document.where(error.field),
        error.field,
        found=error.found,
        allowed=error.allowed,
        nearest=error.nearest,
        why=error.why,
    )
