"""Finding programs: by path, on PATH, and the two that have one name."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from trusted_parts import engine_for, write_fake

from lsmtune import plugins
from lsmtune.errors import InputError
from lsmtune.model.config import Build
from lsmtune.programs.find import check_arguments, find_program, identify, introduced, serves
from lsmtune.programs.registry import PROGRAMS

ROCKSDB, LEVELDB = PROGRAMS["rocksdb-db_bench"], PROGRAMS["leveldb-db_bench"]
# As a package adds one.
FORK = replace(
    ROCKSDB, name="fork", executables=("fork",), answer=re.compile("^fork of db_bench", re.M)
)


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_a_program_is_what_it_answers(name: str, tmp_path: Path) -> None:
    path = write_fake(name, tmp_path)
    found = find_program(PROGRAMS[name], engine_for(name), path)
    assert (found.name, found.path) == (name, path)
    on_path = find_program(PROGRAMS[name], engine_for(name), environment={"PATH": str(tmp_path)})
    assert on_path == found
    assert ("value_size" in found.flags) == (name == "rocksdb-db_bench")
    assert found.version == ("7.8.3" if name == "rocksdb-db_bench" else None)


def test_of_two_with_one_name_the_right_one_is_taken(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    write_fake("rocksdb-db_bench", first)
    right = write_fake("leveldb-db_bench", second)
    environment = {"PATH": f"{first}:{second}"}
    assert find_program(LEVELDB, "leveldb", environment=environment).path == right
    with pytest.raises(InputError) as error:
        find_program(LEVELDB, "leveldb", environment={"PATH": str(first)})
    assert "is rocksdb-db_bench" in str(error.value)
    assert "allowed: --program PATH of one" in str(error.value)


def test_what_cannot_be_used_on_path_hides_nothing_behind_it(tmp_path: Path) -> None:
    """A folder that the user may not search, of root's for example, ended the command."""
    broken = tmp_path / "a"
    broken.mkdir()
    (broken / "db_bench").write_text("no program")
    (broken / "db_bench").chmod(0o755)
    right = write_fake("leveldb-db_bench", tmp_path / "b")
    # As little can be asked of a name that is too long, also by root.
    path = f"/{'x' * 300}:{broken}:{right.parent}"
    assert find_program(LEVELDB, "leveldb", environment={"PATH": path}).path == right
    with pytest.raises(InputError, match="a/db_bench: cannot be used: Exec format error; allowed"):
        find_program(LEVELDB, "leveldb", environment={"PATH": str(broken)})


def test_another_program_at_a_path_is_named(tmp_path: Path) -> None:
    path = write_fake("rocksdb-db_bench", tmp_path)
    with pytest.raises(InputError, match="--program: is rocksdb-db_bench; found"):
        find_program(LEVELDB, "leveldb", path)
    with pytest.raises(InputError, match="is no program that lsmtune knows"):
        find_program(LEVELDB, "leveldb", Path("/bin/true"))
    with pytest.raises(InputError, match="cannot be used: No such file"):
        find_program(LEVELDB, "leveldb", tmp_path / "none")
    with pytest.raises(InputError, match="--engine: found 'rocksdb'; allowed: leveldb"):
        find_program(LEVELDB, "rocksdb", path)


def test_a_program_of_a_package_is_found_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = (EntryPoint("fork", f"{__name__}:FORK", plugins.PROGRAMS),)
    monkeypatch.setattr(plugins, "_installed", lambda group: added * (group == plugins.PROGRAMS))
    path = tmp_path / "fork"
    path.write_text("#!/bin/sh\necho fork of db_bench\n")
    path.chmod(0o755)
    assert find_program(PROGRAMS["fork"], "rocksdb", path).name == "fork"
    on_path = find_program(PROGRAMS["fork"], "rocksdb", environment={"PATH": str(tmp_path)})
    assert (on_path.name, on_path.path) == ("fork", path)
    with pytest.raises(InputError, match="--program: is fork; found"):
        find_program(ROCKSDB, "rocksdb", path)
    # Its help has that of RocksDB's db_bench, too: it is what is asked for.
    path.write_text("#!/bin/sh\necho fork of db_bench\necho '    -benchmarks ('\n")
    assert find_program(PROGRAMS["fork"], "rocksdb", path).name == "fork"


def test_ycsb_cpp_serves_the_engines_it_was_built_with(tmp_path: Path) -> None:
    found = identify(write_fake("ycsb-cpp", tmp_path))
    assert found is not None
    assert serves(found, "rocksdb")
    found.path.write_text(found.path.read_text().replace("rocksdb.dbname", "sqlite.dbname"))
    assert not serves(found, "rocksdb")
    with pytest.raises(InputError, match="built without rocksdb"):
        find_program(PROGRAMS["ycsb-cpp"], "rocksdb", found.path)


@pytest.mark.parametrize(("program", "version"), [(ROCKSDB, "7.8.3"), (LEVELDB, "1.23")])
def test_db_benches_say_what_they_are(program: object, version: str, tmp_path: Path) -> None:
    named = PROGRAMS[program.name]  # type: ignore[attr-defined]
    found = identify(write_fake(named.name, tmp_path))
    assert found is not None
    said = introduced(named, found)
    assert (said.version, said.build) == (version, Build.ASSERTIONS_ON)
    assert said.warnings == ("Assertions are enabled; benchmarks unnecessarily slow",)


def test_an_unknown_argument_is_refused_before_anything_starts(tmp_path: Path) -> None:
    found = identify(write_fake("leveldb-db_bench", tmp_path))
    assert found is not None
    check_arguments(LEVELDB, found, ["--comparisons=1"], "s")
    with pytest.raises(InputError, match="found '--nohistogram'"):
        check_arguments(LEVELDB, found, ["--nohistogram"], "s")
    # gflags say so that a truth is false, and it was refused as unknown.
    gflags = replace(found, flags=("histogram", "num"))
    check_arguments(ROCKSDB, gflags, ["--nohistogram", "--num=5"], "s")
    with pytest.raises(InputError) as error:
        check_arguments(LEVELDB, found, ["--val_size=100"], "s", "f")
    assert str(error.value) == (
        "s: f: unknown flag of leveldb-db_bench; found '--val_size=100'; did you mean --value_size?"
    )
