"""One suite for every format: each is a file of `importers_good/`, with what it gives beside it.

To make the expected text anew after a change that is wanted: LSMTUNE_GOLDEN=write.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from importer_parts import GOOD

from lsmtune.engines.formats import IMPORTERS, chosen_format, import_file
from lsmtune.engines.formats.base import Imported, ImportedConfig, ImportRequest
from lsmtune.errors import InputError


@dataclass(frozen=True)
class Case:
    """A file, its format, and the engine where the file does not say it."""

    file: str
    format: str
    engine: str | None = None

    def __str__(self) -> str:
        return self.file

    @property
    def path(self) -> Path:
        return GOOD / self.file

    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    def imported(self) -> Imported:
        return import_file(self.path, engine=self.engine)


CASES = (
    Case("nni-space.json", "nni-space", "rocksdb"),
    Case("mlos.jsonc", "mlos", "rocksdb"),
    Case("rocksdb-options.ini", "rocksdb-options"),
    Case("rocksdb-options-102.ini", "rocksdb-options"),
    Case("rocksdb-log-78.LOG", "rocksdb-log"),
    Case("rocksdb-log-102.LOG", "rocksdb-log"),
    Case("properties.properties", "properties", "rocksdb"),
    Case("nni-config.yml", "nni-config"),
    Case("nni-config-v2.yml", "nni-config"),
    Case("db_bench.flags", "db_bench", "rocksdb"),
)
cases = pytest.mark.parametrize("case", CASES, ids=str)


def described(found: Imported) -> dict[str, Any]:
    """What is imported, as JSON; places without the folder."""
    notes = [note.replace(f"{GOOD}/", "") for note in found.notes]
    if isinstance(found, ImportedConfig):
        what = {"engine": found.engine, "version": found.version, "options": dict(found.options)}
        return {**what, "notes": notes}
    return {"study": found.study, "comments": found.comments, "notes": notes}


def test_every_format_has_a_case() -> None:
    assert {case.format for case in CASES} == set(IMPORTERS)


@cases
def test_a_file_is_recognised_by_its_content(case: Case) -> None:
    assert chosen_format(case.text(), case.path).name == case.format


@cases
def test_what_a_file_gives(case: Case) -> None:
    expected = case.path.with_name(f"{case.file}.expected")
    found = json.dumps(described(case.imported()), indent=1) + "\n"
    if os.environ.get("LSMTUNE_GOLDEN") == "write":
        expected.write_text(found, encoding="utf-8")
    assert found == expected.read_text(encoding="utf-8")


@cases
def test_nothing_is_lost_in_silence(case: Case) -> None:
    """Each case has something that cannot be carried over, and every note names its place."""
    notes = described(case.imported())["notes"]
    assert notes
    assert len(set(notes)) == len(notes)
    assert all(note.startswith(tuple(c.file for c in CASES)) for note in notes)


@cases
def test_a_file_gives_the_same_with_other_line_ends(case: Case) -> None:
    text = case.text().replace("\n", "\r\n").replace("\\\r\n", "\\\n")
    request = ImportRequest(text, case.path, case.engine)
    assert described(IMPORTERS[case.format].read(request)) == described(case.imported())


@cases
@settings(max_examples=40)
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused_in_one_line(case: Case, data: st.DataObject) -> None:
    text = case.text()
    start = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, 40))
    added = data.draw(st.text(alphabet='{}[]":,=#\\\n\t -0aé/*', max_size=4))
    damaged = text[:start] + added + text[start + cut :]
    for format_ in IMPORTERS.values():
        format_.recognises(damaged)
    try:
        found = IMPORTERS[case.format].read(ImportRequest(damaged, case.path, case.engine))
        said = json.dumps([found.notes, described(found)]).replace("\\n", "")
    except InputError as error:
        said = str(error).removeprefix(f"{GOOD}/")
    assert "\n" not in said
    assert said
