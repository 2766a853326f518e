"""What the tests of this room share: reading texts, and where the collected files are."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsmtune.engines.formats import chosen_format
from lsmtune.engines.formats.base import (
    TO_IMPORT,
    Imported,
    ImportedConfig,
    ImportedStudy,
    ImportRequest,
)
from lsmtune.model.text import read_text

HERE = Path(__file__).parent
GOOD = HERE / "importers_good"
BAD = HERE / "importers_bad"
DATA = HERE.parents[2] / "shared" / "data"


def import_text(request: ImportRequest, format_name: str | None = None) -> Imported:
    """What the file of `request` says; its format is found out unless `format_name` gives it."""
    return chosen_format(request.text, request.path, format_name).read(request)


def import_file(
    path: Path, format_name: str | None = None, *, engine: str | None = None
) -> Imported:
    """As `import_text`, of the file at `path`."""
    return import_text(ImportRequest(read_text(path, TO_IMPORT), path, engine), format_name)


def collected(name: str) -> Path:
    """A file of the collected test data, which lies beside the checkout; skips without it."""
    path = DATA / name
    if not path.is_file():
        pytest.skip(f"{path}: the collected test data is not there")
    return path


def read(text: str, name: str, engine: str | None = None, *, keep: bool = False) -> Imported:
    """`text` in the format `name`, as a file called `file`."""
    return import_text(ImportRequest(text, Path("file"), engine, keep), name)


def config(
    text: str, name: str, engine: str | None = None, *, keep: bool = False
) -> ImportedConfig:
    """As `read`, of an option file."""
    found = read(text, name, engine, keep=keep)
    assert isinstance(found, ImportedConfig)
    return found


def study(text: str, name: str, engine: str | None = None) -> ImportedStudy:
    """As `read`, of a space."""
    found = read(text, name, engine)
    assert isinstance(found, ImportedStudy)
    return found


def notes_of(found: Imported) -> str:
    """The notes, a line each."""
    return "\n".join(found.notes)
