"""`lsmtune engines`: with a driver without an engine, and with real ones."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from lsmtune.engines import libraries
from lsmtune.engines.install import RECIPES, Recipe
from lsmtune.engines.libraries import Registry
from lsmtune.engines.library import Library, build_type, engines_folder
from lsmtune.engines.steps import Progress
from lsmtune.model.config import EngineIdentity


@pytest.fixture
def no_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without engine packages."""
    monkeypatch.setattr(libraries, "distribution_libraries", lambda _kind: [])


@pytest.mark.usefixtures("no_distribution", "fake_driver")
def test_an_empty_list_says_what_to_do(lsmtune: Any) -> None:
    said = lsmtune("engines")
    assert said.status == 0
    assert "next step: lsmtune engines install" in said.out
    assert lsmtune("engines", "--json").json() == {"engines": [], "warnings": []}
    missing = lsmtune("engines", "path", "rocksdb")
    assert missing.status == 2
    assert "lsmtune engines install rocksdb" in missing.err


def test_a_library_that_is_asked_for_or_forgotten_is_told_to_programs_too(
    lsmtune: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`no such option` was the answer, though every command that prints a result takes --json."""
    path = tmp_path / "librocksdb.so"
    path.write_text("a library")
    library = Library(path, EngineIdentity("rocksdb", "9.0", str(path)), (), "a test")
    Registry().add(library)
    monkeypatch.setattr("lsmtune.cli.engines.find_library", lambda _engine: library)
    found = lsmtune("engines", "path", "rocksdb", "--json").json()
    assert (found["engine"], found["version"], found["path"]) == ("rocksdb", "9.0", str(path))
    assert lsmtune("engines", "remove", str(path), "--json").json() == {"forgotten": found}
    assert Registry().entries() == ()


def test_json_before_a_command_of_the_group_is_not_dropped(lsmtune: Any) -> None:
    """`engines --json install` installed, and printed text to a program that read JSON."""
    said = lsmtune("engines", "--json", "path", "rocksdb")
    assert said.status == 2
    assert "--json: has no effect before path; allowed: lsmtune engines path --json" in said.err
    assert said.json()["error"]["source"] == "--json"


@pytest.mark.engine
@pytest.mark.usefixtures("no_distribution")
def test_real_libraries_are_added_listed_and_forgotten(
    lsmtune: Any, driver: Path, rocksdb_library: Path, leveldb_library: Path
) -> None:
    assert driver.is_file()
    for path in (rocksdb_library, leveldb_library):
        assert lsmtune("engines", "add", str(path)).status == 0
    document = lsmtune("engines", "--json").json()
    assert document["warnings"] == []
    listed = {row["engine"]: row for row in document["engines"]}
    for name, path in (("rocksdb", rocksdb_library), ("leveldb", leveldb_library)):
        row = listed[name]
        assert row["path"] == str(path)
        assert row["build"] == build_type(path, name).value
        assert row["origin"] == f"user: {path}"
        assert row["default"] is True
        assert row["version"][0].isdigit()
        assert {"none", "snappy"} <= set(row["compressions"])
    assert lsmtune("engines", "path", "rocksdb").out == f"{rocksdb_library}\n"
    assert lsmtune("engines", "remove", str(rocksdb_library)).status == 0
    assert [row["engine"] for row in lsmtune("engines", "--json").json()["engines"]] == ["leveldb"]
    assert rocksdb_library.exists()


@pytest.mark.engine
def test_a_library_of_another_engine_than_asked_for_is_not_registered(
    lsmtune: Any, driver: Path, leveldb_library: Path
) -> None:
    assert driver.is_file()
    refusal = lsmtune("engines", "add", str(leveldb_library), "--engine", "rocksdb").refusal
    assert "is leveldb" in refusal
    assert Registry().entries() == ()


@pytest.mark.engine
def test_an_installed_library_that_lacks_what_its_recipe_promised_is_refused(
    lsmtune: Any, driver: Path, leveldb_library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A LevelDB was once built without snappy, and registered, and nobody was told."""
    assert driver.is_file()

    def fill(work: Path, _progress: Progress) -> Path:
        return shutil.copyfile(leveldb_library, work / "libleveldb.so")

    promised = ("snappy", "zstd")
    monkeypatch.setitem(RECIPES, "leveldb", Recipe("leveldb-0", "a test", promised, fill))
    said = lsmtune("engines", "install", "leveldb")
    assert said.status == 1
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "leveldb (a test) was made without zstd and is not installed" in said.err
    assert "next step: read the log" in said.err
    assert Registry().entries() == ()
    assert not (engines_folder() / "leveldb-0").exists()
    monkeypatch.setitem(RECIPES, "leveldb", Recipe("leveldb-0", "a test", ("snappy",), fill))
    assert lsmtune("engines", "install", "leveldb").status == 0
    (entry,) = Registry().entries()
    assert entry.library.compressions == ("none", "snappy")
    assert lsmtune("engines", "install", "leveldb").status == 0
    assert Registry().entries() == (entry,)


@pytest.mark.usefixtures("fake_driver")
def test_what_is_no_library_is_refused_in_one_line(lsmtune: Any, tmp_path: Path) -> None:
    (tmp_path / "x.so").write_text(json.dumps({}))
    with zipfile.ZipFile(tmp_path / "x.jar", "w") as jar:
        jar.writestr("librocksdbjni-linux64.so", b"no library")
    for path in ("x.so", "absent.so", ".", "x.jar"):
        said = lsmtune("engines", "add", str(tmp_path / path))
        assert said.status == 2
        assert said.err.count("\n") == 1
    # What was unpacked and refused stayed installed.
    assert {p.suffix for p in engines_folder().iterdir()} <= {".lock"}
