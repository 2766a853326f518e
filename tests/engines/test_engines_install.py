"""Installing and adding: whole or not at all, with failures that say what to do."""

from __future__ import annotations

import ctypes
import io
import os
import platform
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import psutil
import pytest
from engine_parts import compile_library

from lsmtune.engines import install
from lsmtune.engines.install import (
    build_leveldb_with_snappy,
    engine_of_tree,
    extract_library,
    tree_version,
)
from lsmtune.engines.library import Library, build_type, engines_folder
from lsmtune.engines.steps import (
    MARKER,
    Accept,
    Progress,
    install_folder,
    installed,
    open_log,
    require_programs,
    run_step,
    unregistered,
)
from lsmtune.errors import InputError, InterruptedByUserError, LsmtuneError
from lsmtune.model.config import Build
from patience import PATIENCE_S, wait_until


def quiet(_line: str) -> None:
    """Progress that nobody watches."""


def anything(_fetched: Library) -> None:
    """Takes every library."""


def fill(work: Path) -> Path:
    """A library made of nothing."""
    path = work / "lib.so"
    path.write_bytes(b"library")
    return path


def test_an_installed_folder_is_whole_marked_and_leaves_nothing_beside_it() -> None:
    done = install_folder("x-1", "rocksdb", "test", fill, anything)
    assert done.path.read_bytes() == b"library"
    assert (done.path.parent / MARKER).exists()
    assert installed("x-1") == done
    assert sorted(p.name for p in engines_folder().iterdir()) == [".x-1.lock", "x-1"]


def test_a_second_install_does_not_fill_again() -> None:
    done = install_folder("x-1", "rocksdb", "test", fill, anything)

    def refuse(_work: Path) -> Path:
        raise AssertionError("filled twice")

    assert install_folder("x-1", "rocksdb", "test", refuse, anything) == done


def test_what_an_older_recipe_made_is_made_again_when_the_recipe_promises_more() -> None:
    older = install_folder("x-1", "rocksdb", "test", fill, anything)
    assert older.compressions == ()
    newer = install_folder("x-1", "rocksdb", "test", fill, anything, compressions=("snappy",))
    assert newer.compressions == ("snappy",)
    assert installed("x-1") == newer


def test_a_failed_install_leaves_nothing() -> None:
    def fail(work: Path) -> Path:
        fill(work)
        raise LsmtuneError("no network")

    with pytest.raises(LsmtuneError, match="no network"):
        install_folder("x-1", "rocksdb", "test", fail, anything)
    assert installed("x-1") is None
    assert [p.name for p in engines_folder().iterdir()] == [".x-1.lock"]


def test_a_library_that_is_refused_is_not_installed_and_replaces_nothing() -> None:
    """It stayed in its folder, and a rebuilt one had taken the place of one that worked."""
    before = install_folder("x-1", "rocksdb", "test", fill, anything)

    def refuse(fetched: Library) -> None:
        assert fetched.path.is_file()
        raise LsmtuneError("cannot be loaded")

    for name in ("x-1", "x-2"):
        with pytest.raises(LsmtuneError, match="cannot be loaded"):
            install_folder(name, "rocksdb", "test", fill, refuse, rebuild=True)
    assert installed("x-1") == before
    left = sorted(p.name for p in engines_folder().iterdir())
    assert left == [".x-1.lock", ".x-2.lock", "x-1"]


def test_the_leftover_of_a_killed_install_is_cleared() -> None:
    left = engines_folder() / "lsmtune-install-left"
    left.mkdir(parents=True)
    (left / ".lsmtune-temporary").touch()
    (left / "half.so").touch()
    install_folder("x-1", "rocksdb", "test", fill, anything)
    assert not left.exists()


def test_a_damaged_library_is_installed_again() -> None:
    done = install_folder("x-1", "rocksdb", "test", fill, anything)
    done.path.write_bytes(b"damaged")
    assert installed("x-1") is None
    assert install_folder("x-1", "rocksdb", "test", fill, anything).path.read_bytes() == b"library"


def test_a_folder_that_is_not_ours_is_left_alone() -> None:
    folder = engines_folder() / "x-1"
    folder.mkdir(parents=True)
    (folder / "precious").touch()
    with pytest.raises(LsmtuneError, match="not made by lsmtune"):
        install_folder("x-1", "rocksdb", "test", fill, anything)
    assert [p.name for p in folder.iterdir()] == ["precious"]


def test_a_step_that_fails_says_its_last_lines_and_the_log(tmp_path: Path) -> None:
    with (tmp_path / "the.log").open("w") as log:
        command = ["sh", "-c", "echo first; echo second >&2; exit 3"]
        with pytest.raises(LsmtuneError, match=r"status 3: first \| second; .*the\.log"):
            run_step("building", command, log, quiet)
    assert "second" in (tmp_path / "the.log").read_text()


def test_a_step_shows_its_percentages_sparsely() -> None:
    seen: list[str] = []
    log = io.StringIO()
    script = 'for n in 1 5 10 12 50 100; do echo "[ $n%] Building"; done'
    run_step("building", ["sh", "-c", script], log, seen.append)
    assert seen == ["building", "building: 10 %", "building: 50 %", "building: 100 %"]


def test_missing_programs_are_named_with_their_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(LsmtuneError, match=r"mvn, cargo not found.*apt-get install maven.*rustup"):
        require_programs(("mvn", "cargo"), "to fetch")
    with pytest.raises(LsmtuneError, match="mvn not found"):
        install.install("rocksdb", quiet, anything)


def fake_mvn(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = folder / "mvn"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_a_jar_that_is_not_the_known_one_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = 'for a; do case $a in -DoutputDirectory=*) echo x > "${a#*=}/$JAR";; esac; done'
    monkeypatch.setenv("JAR", f"rocksdbjni-{install.ROCKSDB_VERSION}-linux64.jar")
    fake_mvn(tmp_path, script, monkeypatch)
    with pytest.raises(LsmtuneError, match="has SHA-256"):
        install.install("rocksdb", quiet, anything)
    assert not (engines_folder() / f"rocksdb-{install.ROCKSDB_VERSION}").exists()


def test_the_release_that_was_the_default_before_can_still_be_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Studies and figures of its time name it."""
    fake_mvn(tmp_path, 'echo "$@"; exit 1', monkeypatch)
    for name, version in (("rocksdb-10.2.1", "10.2.1"), ("rocksdb", install.ROCKSDB_VERSION)):
        with pytest.raises(LsmtuneError, match=f"rocksdbjni:{version}:jar:linux64"):
            install.install(name, quiet, anything)


def test_a_maven_without_network_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_mvn(tmp_path, "echo unknown host; exit 1", monkeypatch)
    with pytest.raises(LsmtuneError, match=r"unknown host.*next step: read the log"):
        install.install("rocksdb", quiet, anything)


def test_an_unknown_engine_cannot_be_installed() -> None:
    with pytest.raises(InputError, match="did you mean rocksdb"):
        install.install("rocksbd", quiet, anything)
    with pytest.raises(InputError, match=r"did you mean rocksdb-10\.10\.1"):
        install.install("rocksdb-10.11.1", quiet, anything)


def test_a_shared_library_is_used_where_it_lies(tmp_path: Path) -> None:
    path = compile_library(tmp_path / "mine.so", "leveldb")
    done = install.add(path, quiet, anything)
    assert (done.path, done.identity.name, done.origin) == (path, "leveldb", f"user: {path}")


def jar_with(path: Path, *members: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for member in members:
            archive.writestr(member, b"content of " + member.encode())
    return path


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the names are those of x86_64")
def test_the_library_of_this_machine_is_taken_out_of_a_jar(tmp_path: Path) -> None:
    members = ("librocksdbjni-linux64-musl.so", "librocksdbjni-linux64.so", "A.class")
    done = install.add(jar_with(tmp_path / "rocksdbjni-9.0.0.jar", *members), quiet, anything)
    assert done.path.read_bytes() == b"content of librocksdbjni-linux64.so"
    assert done.identity.name == "rocksdb"
    assert done.origin == f"jar: {tmp_path}/rocksdbjni-9.0.0.jar"


def test_a_jar_without_a_library_for_this_machine_is_refused(tmp_path: Path) -> None:
    jar = jar_with(tmp_path / "x.jar", "librocksdbjni-linux-vax.so")
    with pytest.raises(InputError, match=r"holds no RocksDB library.*linux-vax"):
        extract_library(jar, tmp_path, "engines add")


def test_a_file_that_is_no_jar_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.jar").write_text("not a zip file")
    with pytest.raises(InputError, match="not a jar"):
        install.add(tmp_path / "x.jar", quiet, anything)


MEMBER = "librocksdbjni-linux64.so"


def encrypted(jar: bytes) -> bytes:
    """`jar` with the flag of encryption in both headers."""
    at, central = jar.index(b"PK\3\4") + 6, jar.index(b"PK\1\2") + 8
    return jar[:at] + b"\1" + jar[at + 1 : central] + b"\1" + jar[central + 1 :]


def of_unknown_method(jar: bytes) -> bytes:
    """`jar` with a compression that nobody knows in both headers."""
    at, central = jar.index(b"PK\3\4") + 8, jar.index(b"PK\1\2") + 10
    return jar[:at] + b"\x63" + jar[at + 1 : central] + b"\x63" + jar[central + 1 :]


def overlapping(jar: bytes) -> bytes:
    """`jar` whose first entry begins where the second does."""
    second = jar.index(b"PK\3\4", 4)
    at = jar.index(b"PK\1\2") + 42
    return jar[:at] + second.to_bytes(4, "little") + jar[at + 4 :]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the names are those of x86_64")
@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (encrypted, "cannot be unpacked .*encrypted"),
        (of_unknown_method, "cannot be unpacked .*compression method"),
        (overlapping, "not a jar"),
        (lambda jar: jar[:-30], "not a jar"),
        (lambda jar: jar[:60] + b"\xff\xff\xff\xff" + jar[64:], "not a jar"),
        (lambda _: b"", "not a jar"),
    ],
)
def test_a_jar_that_cannot_be_unpacked_is_refused_and_leaves_nothing(
    tmp_path: Path, spoil: Callable[[bytes], bytes], why: str
) -> None:
    """An encrypted jar, and one with an unknown compression, ended in unexpected errors."""
    path = tmp_path / "x.jar"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MEMBER, bytes(range(256)) * 9)
        archive.writestr("other.so", b"x" * 99)
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(InputError, match=why):
        install.add(path, quiet, anything)
    assert [p.suffix for p in engines_folder().iterdir()] == [".lock"]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the names are those of x86_64")
def test_a_small_jar_that_unpacks_to_a_full_disk_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """3 MB became 3 GB. What an entry says it is is all that is unpacked of it."""
    monkeypatch.setattr(install, "LIBRARY_BYTES_MAX", 1 << 20)
    path = tmp_path / "x.jar"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MEMBER, bytes(4 << 20))
    with pytest.raises(InputError, match=r"unpacks to 4MiB; .*allowed: at most 1MiB"):
        install.add(path, quiet, anything)
    jar = path.read_bytes()
    path.write_bytes(jar.replace((4 << 20).to_bytes(4, "little"), (99).to_bytes(4, "little")))
    with pytest.raises(InputError, match="not a jar"):  # its checksum is of more
        install.add(path, quiet, anything)
    assert [p.suffix for p in engines_folder().iterdir()] == [".lock"] * 2


def test_a_jar_that_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    with (tmp_path / "huge.jar").open("wb") as file:
        file.truncate(10 << 30)
    with pytest.raises(InputError, match="is too large: 10GiB; allowed: a jar of at most 1GiB"):
        install.add(tmp_path / "huge.jar", quiet, anything)
    os.mkfifo(tmp_path / "x.jar")
    with pytest.raises(InputError, match="is not a regular file; allowed: a jar"):
        install.add(tmp_path / "x.jar", quiet, anything)


def tree(folder: Path, engine: str, header: str, text: str) -> Path:
    include = folder / "include" / engine
    include.mkdir(parents=True)
    (include / "c.h").touch()
    (include / header).write_text(text)
    (folder / "CMakeLists.txt").touch()
    return folder


def test_source_trees_are_recognised_by_their_headers(tmp_path: Path) -> None:
    numbers = "#define ROCKSDB_MAJOR 9\n#define ROCKSDB_MINOR 8\n#define ROCKSDB_PATCH 7\n"
    rocksdb = tree(tmp_path / "r", "rocksdb", "version.h", numbers)
    numbers = "static const int kMajorVersion = 1;\nstatic const int kMinorVersion = 23;\n"
    leveldb = tree(tmp_path / "l", "leveldb", "db.h", numbers)
    for folder, name, version in ((rocksdb, "rocksdb", "9.8.7"), (leveldb, "leveldb", "1.23")):
        assert (engine_of_tree(folder), tree_version(folder, name)) == (name, version)


@pytest.mark.parametrize("name", ["", "absent"])
def test_a_path_that_is_none_of_these_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="engines add: PATH"):
        install.add(tmp_path / name, quiet, anything)


def test_a_small_tree_is_built_and_its_failure_reported(tmp_path: Path) -> None:
    folder = tree(tmp_path / "l", "leveldb", "db.h", "")
    (folder / "leveldb.cc").write_text('extern "C" void leveldb_open() {}\n')
    project = "cmake_minimum_required(VERSION 3.9)\nproject(leveldb CXX)\n"
    (folder / "CMakeLists.txt").write_text(f"{project}add_library(leveldb leveldb.cc)\n")
    seen: list[str] = []
    done = install.add(folder, seen.append, anything)
    assert done.path.name == "libleveldb.so"
    assert seen
    assert not list(folder.glob("**/CMakeCache.txt"))
    (folder / "leveldb.cc").write_text("this does not compile\n")
    with pytest.raises(LsmtuneError, match=r"building leveldb.*read the log"):
        install.add(folder, quiet, anything)
    assert done.path.exists()


SNAPPY_PROJECT = """
cmake_minimum_required(VERSION 3.5)
project(Snappy CXX)
add_library(snappy snappy.cc)
install(TARGETS snappy DESTINATION lib)
install(FILES snappy.h DESTINATION include)
"""
# As LevelDB 1.22 looks for snappy and links it.
LEVELDB_PROJECT = """
cmake_minimum_required(VERSION 3.9)
project(leveldb LANGUAGES C CXX)
include(CheckLibraryExists)
check_library_exists(snappy snappy_compress "" HAVE_SNAPPY)
add_library(leveldb leveldb.cc)
if(HAVE_SNAPPY)
  target_compile_definitions(leveldb PRIVATE HAVE_SNAPPY)
  target_link_libraries(leveldb snappy)
endif()
"""
LEVELDB_SOURCE = """
#ifdef HAVE_SNAPPY
#include <snappy.h>
#else
extern "C" int snappy_compress() { return 0; }
#endif
extern "C" int leveldb_open() { return snappy_compress(); }
"""


def test_snappy_is_inside_leveldb_where_the_machine_has_none(tmp_path: Path) -> None:
    """The C program that LevelDB's check links finds neither this snappy nor the C++ runtime."""
    snappy = tmp_path / "snappy"
    snappy.mkdir()
    (snappy / "CMakeLists.txt").write_text(SNAPPY_PROJECT)
    (snappy / "snappy.h").write_text('extern "C" int snappy_compress();\n')
    # A C++ runtime is needed by whatever links it, and no other snappy gives this answer.
    body = '#include <string>\n#include "snappy.h"\n'
    body += "int snappy_compress() { return std::string(4711, 'x').size(); }\n"
    (snappy / "snappy.cc").write_text(body)
    leveldb = tree(tmp_path / "leveldb", "leveldb", "db.h", "")
    (leveldb / "CMakeLists.txt").write_text(LEVELDB_PROJECT)
    (leveldb / "leveldb.cc").write_text(LEVELDB_SOURCE)
    work = tmp_path / "a home with spaces"
    work.mkdir()
    with (tmp_path / "log").open("w") as log:
        library = build_leveldb_with_snappy(leveldb, snappy, work, log, quiet)
    assert ctypes.CDLL(str(library)).leveldb_open() == 4711
    assert build_type(library, "leveldb") is Build.RELEASE


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


INSTALL = "import sys; from lsmtune.cli.main import main; sys.exit(main(['engines', 'install']))"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_install_ends_its_programs_and_leaves_nothing(
    tmp_path: Path, number: int
) -> None:
    for name in ("mvn", "cargo", "lsmtune-driver"):
        program = tmp_path / name
        # Two processes deep, as make and its compilers are.
        program.write_text(f"#!/bin/bash\nsleep 900 & echo $! > {tmp_path / name}.pid; wait\n")
        program.chmod(0o755)
    command = subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-c", INSTALL],
        env={
            **os.environ,
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "PYTHONPATH": ":".join(sys.path),
            "LSMTUNE_DRIVER": str(tmp_path / "lsmtune-driver"),
        },
        stderr=subprocess.PIPE,
        text=True,
    )
    pids = [tmp_path / "mvn.pid", tmp_path / "cargo.pid"]
    try:
        wait_until(lambda: all(p.is_file() and p.read_text() for p in pids))
        command.send_signal(number)
        _, err = command.communicate(timeout=PATIENCE_S)
    except (AssertionError, subprocess.TimeoutExpired):
        family = psutil.Process(command.pid).children(recursive=True)
        steps = [f"{each.pid} {each.status()} {each.name()}" for each in family]
        command.send_signal(signal.SIGABRT)  # then faulthandler says where its threads are
        pytest.fail(f"{steps}: {command.communicate()[1]}")
    finally:
        command.kill()
    assert command.returncode == 130, err
    assert err.endswith("lsmtune: interrupted\n")
    # A program that was killed needs the processor once more.
    wait_until(lambda: not any(is_running(int(p.read_text())) for p in pids))
    assert all(p.name.endswith(".lock") for p in engines_folder().iterdir())


def test_an_interrupt_that_does_not_wake_the_main_thread_ends_the_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once in a while an interrupted installation waited for its programs.

    A signal that comes between the main thread's last look at signals and its sleep is obeyed when
    it wakes. So is one that another thread receives, as here.
    """
    ends: list[str] = []

    def interrupted(name: str, progress: Progress, _accept: Accept) -> NoReturn:
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        try:
            with open_log(tmp_path, name) as log:
                run_step(name, ["sleep", str(PATIENCE_S)], log, progress)
        except LsmtuneError as error:
            ends.append(str(error))
            raise
        raise AssertionError("the program ended by itself")

    monkeypatch.setattr(install, "install", interrupted)
    with pytest.raises(InterruptedByUserError):
        install.install_all(("rocksdb",), quiet)
    assert "failed with status -9" in ends[0]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the names are those of x86_64")
def test_a_jar_that_is_nothing_but_a_directory_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entries without content cost ten times their size in memory."""
    monkeypatch.setattr(install, "DIRECTORY_BYTES_MAX", 1 << 16)
    jar = jar_with(tmp_path / "x.jar", MEMBER, *(f"{number}.class" for number in range(2000)))
    with pytest.raises(
        InputError, match=r"not a jar \(a directory of \d+ bytes, and at most 64KiB"
    ):
        install.add(jar, quiet, anything)
    monkeypatch.undo()
    assert install.add(jar, quiet, anything).path.name == MEMBER


def test_a_library_that_a_kill_kept_from_being_registered_is_told() -> None:
    """No command listed it."""
    done = install_folder("x-1", "rocksdb", "test", fill, anything)
    (line,) = unregistered(())
    assert line.startswith(f"rocksdb library {done.path} is installed and not registered; next")
    assert unregistered({str(done.path)}) == ()
