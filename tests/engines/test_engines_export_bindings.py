"""Exported code sets the options that were asked for: each in the engine's real binding.

A program takes what was exported, opens a database, and the OPTIONS file that RocksDB then writes
is compared with the configuration. A test that misses something says so and is skipped; `make dev
test-tools` installs it. The crate rocksdb and grocksdb would compile a RocksDB of their own; here
they link the library that lsmtune measures.
"""

from __future__ import annotations

import functools
import json
import os
import pwd
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import export_parts
import pytest
from engine_parts import distribution_library
from export_parts import CACHE, DEBIAN, check_took, most, run, version_of, written
from option_cases import choices_in

from lsmtune.engines.catalogue import catalogue_defaults, option_catalogue
from lsmtune.engines.formats import exported
from lsmtune.engines.formats.base import ExportRequest
from lsmtune.engines.install import ROCKSDB_VERSION
from lsmtune.engines.option_names import TABLE_OPTION
from lsmtune.model.config import OptionValue, option_text


def nothing(_version: str) -> dict[str, OptionValue]:
    return {}


def of_the_family(_version: str) -> dict[str, OptionValue]:
    return {"write_buffer_size": 4 << 20}


OptionsOf = Callable[[str], dict[str, OptionValue]]
EITHER = pytest.mark.parametrize("options_of", [most, nothing])


def text_of(name: str, version: str, options: Mapping[str, OptionValue]) -> str:
    """What `name` says of all of `options`."""
    made = exported(name, ExportRequest("rocksdb", options, version))
    assert made.left_out == ()
    return made.text


def tool(name: str) -> str:
    """The program `name`; the test is skipped without it."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


# --- C++

CPP = """\
#include "tuned_options.h"
#include "set_options.h"
#include <cstdio>
#include <string>

void Check(const rocksdb::Status& status) {
  if (status.ok()) return;
  std::printf("%s\\n", status.ToString().c_str());
  std::exit(1);
}

// Opens a database in a folder for each thing that can be done to one.
int main(int, char** arguments) {
  const std::string folder = arguments[1];
  for (const char* done : {"tuned", "plain", "set", "back"}) {
    const std::string what = done;
    rocksdb::Options options;
    if (what == "tuned") Check(SetTunedOptions(&options));
    options.create_if_missing = true;
    rocksdb::DB* db = nullptr;
    Check(rocksdb::DB::Open(options, folder + "/" + what, &db));
    if (what == "set" || what == "back") Check(SetTunedOptions(db));
    if (what == "back") Check(SetOptionsBack(db));
    std::string capacity;
    db->GetProperty("rocksdb.block-cache-capacity", &capacity);
    std::printf("%s ", capacity.c_str());
    delete db;
  }
}
"""


def headers(engine: str) -> None:
    """Skips the test where g++ or the headers of `engine` are missing."""
    probe = [tool("g++"), "-E", "-x", "c++", "-"]
    include = f"#include <{engine}/options.h>\n"
    done = subprocess.run(probe, input=include, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no headers of {engine} (package lib{engine}-dev): make test-tools")


def other_value(name: str) -> OptionValue:
    """A value of a mutable option that is not the default of DEBIAN's version."""
    info = option_catalogue("rocksdb")[name]
    default = info.default_in(DEBIAN)
    values = choices_in(info, DEBIAN) or (info.low, info.high)
    return next(v for v in values if v is not None and (default is None or v != default))


@functools.cache
def changeable() -> dict[str, OptionValue]:
    """Every option that an open database of DEBIAN's version can change, with another value."""
    infos = option_catalogue("rocksdb").values()
    names = [i.name for i in infos if i.exists_in(DEBIAN) and i.mutable_in(DEBIAN) and i.searchable]
    return {name: other_value(name) for name in names if name in catalogue_defaults("rocksdb")}


@pytest.mark.engine
def test_cpp_sets_what_was_asked_and_changes_what_can_be_changed(tmp_path: Path) -> None:
    headers("rocksdb")
    library = distribution_library("rocksdb")
    (tmp_path / "tuned_options.h").write_text(text_of("c++", DEBIAN, most(DEBIAN)))
    changes = exported("set-options", ExportRequest("rocksdb", changeable(), DEBIAN))
    assert [each.option for each in changes.left_out] == ["bytes_per_sync"]
    (tmp_path / "set_options.h").write_text(changes.text)
    (tmp_path / "main.cc").write_text(CPP)
    program = tmp_path / "main"
    run("g++", "-std=c++17", "-Wall", "-Werror", tmp_path / "main.cc", library, "-o", program)
    sizes = run(program, tmp_path).split()
    check_took(tmp_path / "tuned", most(DEBIAN))
    assert sizes[0] == str(most(DEBIAN)[CACHE])
    assert len(changeable()) > 70
    check_took(tmp_path / "set", changeable())
    # Changed and changed back, a database is as one that nobody touched, but for what was said.
    back = written(tmp_path / "back").replace("bytes_per_sync=1048576", "bytes_per_sync=0")
    assert back == written(tmp_path / "plain")


# Asks an open database for one change after the other, through RocksDB's C interface; in a process
# of its own, because two RocksDBs in one process may share what they should not.
CHANGES = """\
import ctypes, json, pathlib, sys
library, folder, changes = ctypes.CDLL(sys.argv[1]), sys.argv[2], json.loads(sys.stdin.read())
text = ctypes.c_char_p
library.rocksdb_options_create.restype = library.rocksdb_open.restype = ctypes.c_void_p
options, trouble = ctypes.c_void_p(library.rocksdb_options_create()), text()
library.rocksdb_options_set_create_if_missing(options, ctypes.c_ubyte(1))
database = ctypes.c_void_p(library.rocksdb_open(options, folder.encode(), ctypes.byref(trouble)))
version = next(pathlib.Path(folder).glob("OPTIONS-*")).read_text()
taken = []
for name, option, value in changes:
    trouble = text()
    one = ((text * 1)(option.encode()), (text * 1)(value.encode()), ctypes.byref(trouble))
    library.rocksdb_set_options(database, 1, *one)
    taken += [name] if trouble.value is None else []
print(json.dumps([version.partition("rocksdb_version=")[2].split()[0], taken]))
"""
# RocksDB takes these, and the catalogue does not trust it: blocks would be in two caches.
ANOTHER_CACHE = (CACHE, f"{TABLE_OPTION}.no_block_cache")


@pytest.mark.engine
def test_an_open_database_takes_the_changes_that_the_catalogue_says(
    rocksdb_library: Path, tmp_path: Path
) -> None:
    infos = [i for i in option_catalogue("rocksdb").values() if i.scope != "db"]
    changes = []
    for info in infos:
        value = next((v for v in (info.default, *info.choices, info.low) if v is not None), 1)
        head, _, part = info.name.partition(".")
        text = option_text(value)
        for name in reversed(part.split(".") if part else []):
            text = f"{{{name}={text}}}"
        changes.append((info.name, head, text))
    done = subprocess.run(
        [sys.executable, "-c", CHANGES, str(rocksdb_library), str(tmp_path / "db")],
        input=json.dumps(changes),
        capture_output=True,
        text=True,
        check=True,
    )
    version, taken = json.loads(done.stdout)
    known = [i for i in infos if i.exists_in(version) and not i.name.startswith(ANOTHER_CACHE)]
    assert len(known) > 100
    assert [i.name for i in known if (i.name in taken) != i.mutable_in(version)] == []


LEVELDB_CPP = """\
#include "tuned_options.h"
#include <leveldb/db.h>
#include <cstdio>

int main(int, char** arguments) {
  leveldb::Options options = TunedOptions();
  options.create_if_missing = true;
  leveldb::DB* db = nullptr;
  if (!leveldb::DB::Open(options, arguments[1], &db).ok()) return 1;
  std::printf("%zu %zu %zu %d %d %d %d %s", options.write_buffer_size, options.max_file_size,
              options.block_size, options.block_restart_interval, options.max_open_files,
              options.compression, options.paranoid_checks, options.filter_policy->Name());
  delete db;
  delete options.block_cache;
  delete options.filter_policy;
}
"""
LEVELDB: dict[str, OptionValue] = {**export_parts.LEVELDB, "paranoid_checks": True}


@pytest.mark.engine
def test_cpp_sets_what_was_asked_of_leveldb(tmp_path: Path) -> None:
    headers("leveldb")
    library = distribution_library("leveldb")
    made = exported("c++", ExportRequest("leveldb", LEVELDB))
    assert made.left_out == ()
    (tmp_path / "tuned_options.h").write_text(made.text)
    (tmp_path / "main.cc").write_text(LEVELDB_CPP)
    program = tmp_path / "main"
    run("g++", "-Wall", "-Werror", tmp_path / "main.cc", library, "-o", program)
    said = run(program, tmp_path / "db")
    assert said == f"{1 << 20} {4 << 20} 8192 8 100 0 1 leveldb.BuiltinBloomFilter2"


# --- Java

JAVA = """\
import org.rocksdb.Options;
import org.rocksdb.RocksDB;

public final class Main {
  public static void main(String[] arguments) throws Exception {
    try (Options options = TunedOptions.create().setCreateIfMissing(true);
        RocksDB db = RocksDB.open(options, arguments[0])) {
      System.out.print(db.getProperty("rocksdb.block-cache-capacity"));
    }
  }
}
"""


def rocksdb_jar() -> Path:
    """RocksJava, where Maven put it when the default engine was installed."""
    # Java's home of a user is the one of the accounts' file, whatever HOME says.
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    folder = home / ".m2/repository/org/rocksdb/rocksdbjni" / ROCKSDB_VERSION
    jar = folder / f"rocksdbjni-{ROCKSDB_VERSION}-linux64.jar"
    if not jar.is_file():
        pytest.skip(f"{jar} is not there: make setup fetches it to install RocksDB")
    return jar


@pytest.mark.engine
@pytest.mark.parametrize("options_of", [most, of_the_family, nothing])
def test_java_sets_what_was_asked(tmp_path: Path, options_of: OptionsOf) -> None:
    compiler, jar, options = tool("javac"), rocksdb_jar(), options_of(ROCKSDB_VERSION)
    (tmp_path / "TunedOptions.java").write_text(text_of("java", ROCKSDB_VERSION, options))
    (tmp_path / "Main.java").write_text(JAVA)
    run(compiler, "-Werror", "-Xlint:all", "-cp", jar, *tmp_path.glob("*.java"))
    temporary = f"-Djava.io.tmpdir={tmp_path}"  # where the library out of the jar goes
    said = run("java", temporary, "-cp", f"{jar}:{tmp_path}", "Main", tmp_path / "db")
    check_took(tmp_path / "db", options)
    assert said == str(options.get(CACHE, 32 << 20))


# --- Python


def python_module(text: str, folder: Path) -> dict[str, Any]:
    """The names that exported Python has, once it was run."""
    path = folder / "tuned_options.py"
    path.write_text(text)
    return runpy.run_path(str(path))


@pytest.mark.engine
@EITHER
def test_python_sets_what_was_asked(tmp_path: Path, options_of: OptionsOf) -> None:
    rocksdict = pytest.importorskip("rocksdict", reason="rocksdict is not installed: make dev")
    rocksdict.Rdict(str(tmp_path / "plain")).close()
    version = version_of(tmp_path / "plain")
    options = options_of(version)
    module = python_module(text_of("python", version, options), tmp_path)
    opened, families = module["tuned_options"]()
    opened.create_if_missing(True)
    database = rocksdict.Rdict(str(tmp_path / "db"), opened, families)
    database[b"key"] = b"value"
    assert database[b"key"] == b"value"
    capacity = database.property_value("rocksdb.block-cache-capacity")
    database.close()
    check_took(tmp_path / "db", options)
    assert capacity == str(options.get(CACHE, 32 << 20))


@pytest.mark.engine
def test_python_sets_what_was_asked_of_leveldb(tmp_path: Path) -> None:
    plyvel = pytest.importorskip("plyvel", reason="plyvel is not installed: make dev")
    made = exported("python", ExportRequest("leveldb", LEVELDB))
    assert made.left_out == ()
    options = python_module(made.text, tmp_path)["OPTIONS"]
    # A name that plyvel does not have is a TypeError.
    database = plyvel.DB(str(tmp_path / "db"), create_if_missing=True, **options)
    database.put(b"key", b"value")
    assert database.get(b"key") == b"value"
    database.close()


# --- Rust and Go: built with their bindings, on the library that lsmtune measures

PROJECTS = Path(__file__).parent / "bindings"
WITH_ROCKSDB = Path(__file__).parents[2] / "scripts" / "with_rocksdb.py"


def build(library: Path, project: Path, *command: str, **environment: str) -> str:
    """Standard output of a command of cargo or go in `project`, which ends well."""
    words = [sys.executable, WITH_ROCKSDB, library, project, *command]
    return run(*words, GOPROXY="off", **environment)


def binding(library: Path, project: Path, *command: str) -> None:
    """Builds what a program needs of its binding; the test is skipped where that is not to be had.

    What is there, and with it this command, does not depend on what lsmtune exports.
    """
    tool(command[0])
    try:
        build(library, project, *command)
    except AssertionError as error:
        said = str(error).strip().splitlines()
        pytest.skip(f"no binding to build with (make dev test-tools): {said[0]} ... {said[-1]}")


@pytest.mark.engine
@EITHER
def test_rust_sets_what_was_asked(
    rocksdb_library: Path, tmp_path: Path, options_of: OptionsOf
) -> None:
    project, options = PROJECTS / "rust", options_of(ROCKSDB_VERSION)
    cargo = ("cargo", "--quiet", "--offline", "--locked")
    binding(rocksdb_library, project, *cargo, "build", "--package=rocksdb")
    source = tmp_path / "tuned_options.rs"
    source.write_text(text_of("rust", ROCKSDB_VERSION, options))
    run(tool("rustfmt"), "--check", "--edition=2021", source)
    command = (*cargo, "run", "--", str(tmp_path), str(tmp_path / "db"))
    said = build(rocksdb_library, project, *command, TUNED_OPTIONS=str(source))
    check_took(tmp_path / "db", options)
    assert said == str(options.get(CACHE, 32 << 20))


@pytest.mark.engine
@EITHER
def test_go_sets_what_was_asked(
    rocksdb_library: Path, tmp_path: Path, options_of: OptionsOf
) -> None:
    binding(rocksdb_library, PROJECTS / "go", "go", "build", "github.com/linxGnu/grocksdb")
    project, options = tmp_path / "project", options_of(ROCKSDB_VERSION)
    shutil.copytree(PROJECTS / "go", project)
    source = project / "tuned" / "tuned_options.go"
    source.parent.mkdir()
    source.write_text(text_of("go", ROCKSDB_VERSION, options))
    assert run(tool("gofmt"), "-d", "-e", source) == ""
    build(rocksdb_library, project, "go", "vet", "./...")
    said = build(rocksdb_library, project, "go", "run", ".", str(tmp_path / "db"))
    check_took(tmp_path / "db", options)
    assert said == str(options.get(CACHE, 32 << 20))
