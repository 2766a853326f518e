"""Study files: text to Spec, and the JSON Schema of what they may hold."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lsmtune.errors import InputError
from lsmtune.spec.build import build_spec
from lsmtune.spec.document import Document, parse_document, read_text
from lsmtune.spec.models import PARAMETER_MODELS, StudyModel
from lsmtune.spec.problems import first_problem
from lsmtune.spec.spec import Spec
from lsmtune.stats.sequential import pairs_at_least

# The one key of what the folder of a proof without a study has in place of a study file.
_PROOF = "verify"


def load_spec(path: Path) -> Spec:
    """The Spec of the study file at `path`.

    Raises `InputError`, which names the file, the line and the field, for the first thing that is
    wrong.
    """
    return parse_spec(read_text(path), path)


def parse_spec(text: str, path: Path) -> Spec:
    """The Spec of a study file's `text`; `path` is where the file is, or will be.

    Raises `InputError` as `load_spec` does.
    """
    return _spec_of(parse_document(text, str(path)), path, text)


def parse_stored_spec(text: str, path: Path) -> Spec:
    """As `parse_spec`, for the `text` of a study that was run, maybe by an older lsmtune.

    The proof may have been of fewer pairs than its test needs now, which is no matter any more.
    Raises InputError, too, for what `lsmtune verify` and `minimise` keep, which is no study.
    """
    document = parse_document(text, str(path))
    if _PROOF in document.data:
        why = "is of a proof without a study, which has no report: repeat the command that made it"
        raise InputError(str(path), why=why)
    proof = document.data.get("proof")
    if isinstance(proof, dict) and _too_few_pairs(proof):
        del proof["pairs"]
    return _spec_of(document, path, text)


def _too_few_pairs(proof: Mapping[str, Any]) -> bool:
    pairs, confidence = proof.get("pairs"), proof.get("confidence", 0.95)
    if not isinstance(pairs, int) or not isinstance(confidence, float):
        return False
    return 0.0 < confidence < 1.0 and pairs < pairs_at_least(confidence)


def _spec_of(document: Document, path: Path, text: str) -> Spec:
    try:
        study = StudyModel.model_validate(document.data)
    except ValidationError as error:
        raise _with_line(
            first_problem(error, document, StudyModel, PARAMETER_MODELS), document
        ) from None
    try:
        return build_spec(study, document, path, text)
    except InputError as error:
        raise _with_line(error, document) from None


def place_of(spec: Spec, field: str) -> str:
    """`file:line` of the dotted `field` in the study file of `spec`."""
    return parse_document(spec.text, str(spec.path)).where(field)


def _with_line(error: InputError, document: Document) -> InputError:
    """`error` with its line, and with what was found as the file has it: `64MiB`, not 67108864.

    What another file has wrong, which this one names, stays as it is.
    """
    if error.source != document.source:
        return error
    found = error.found
    if found is not None and document.scalars.get(error.field) is not None:
        found = document.scalars[error.field]
    return InputError(
        document.where(error.field),
        error.field,
        found=found,
        allowed=error.allowed,
        nearest=error.nearest,
        why=error.why,
    )


def spec_json_schema() -> dict[str, Any]:
    """The JSON Schema (Draft 2020-12) of study files.

    It holds what a schema can say; relations between fields are only checked by `load_spec`.
    """
    schema = StudyModel.model_json_schema(mode="validation")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
