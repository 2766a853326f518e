"""lsmtune's own import formats in the suite for all of them, and what each file gives.

Each is a file of `importers_good/`, with what it gives beside it. To make the expected text anew
after a change that is wanted: LSMTUNE_GOLDEN=write.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from importer_parts import GOOD

from lsmtune.engines.formats import IMPORTERS
from lsmtune.engines.formats.base import Imported, ImportedConfig
from lsmtune.testing.importers import ImporterSuite


class TestNniSpace(ImporterSuite):
    name, engine, files = "nni-space", "rocksdb", (GOOD / "nni-space.json",)


class TestMlos(ImporterSuite):
    name, engine, files = "mlos", "rocksdb", (GOOD / "mlos.jsonc",)


class TestRocksdbOptions(ImporterSuite):
    name = "rocksdb-options"
    files = (GOOD / "rocksdb-options.ini", GOOD / "rocksdb-options-102.ini")


class TestRocksdbLog(ImporterSuite):
    name = "rocksdb-log"
    files = (GOOD / "rocksdb-log-78.LOG", GOOD / "rocksdb-log-102.LOG")


class TestProperties(ImporterSuite):
    name, engine, files = "properties", "rocksdb", (GOOD / "properties.properties",)


class TestNniConfig(ImporterSuite):
    name = "nni-config"
    files = (GOOD / "nni-config.yml", GOOD / "nni-config-v2.yml")


class TestDbBench(ImporterSuite):
    name, engine, files = "db_bench", "rocksdb", (GOOD / "db_bench.flags",)


SUITES = ImporterSuite.__subclasses__()


def test_every_format_of_lsmtunes_own_is_in_the_suite() -> None:
    own = {name for name in IMPORTERS if IMPORTERS.origin(name) is None}
    assert own <= {suite.name for suite in SUITES}


def described(found: Imported) -> dict[str, Any]:
    notes = list(found.notes)
    if isinstance(found, ImportedConfig):
        what = {"engine": found.engine, "version": found.version, "options": dict(found.options)}
        return {**what, "notes": notes}
    return {"study": found.study, "comments": found.comments, "notes": notes}


@pytest.mark.parametrize(
    ("suite", "file"),
    [(suite, file) for suite in SUITES for file in suite.files],
    ids=lambda each: each.name,
)
def test_what_a_file_gives(suite: type[ImporterSuite], file: Path) -> None:
    expected = file.with_name(f"{file.name}.expected")
    gives = described(suite().read(file))
    gives["notes"] = [note.replace(f"{GOOD}/", "") for note in gives["notes"]]
    found = json.dumps(gives, indent=1) + "\n"
    if os.environ.get("LSMTUNE_GOLDEN") == "write":
        expected.write_text(found, encoding="utf-8")
    assert found == expected.read_text(encoding="utf-8")
