"""Release and assertions-on builds are told apart, in real libraries and in made-up ones."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from engine_parts import compile_library, distribution_library

from lsmtune.engines.library import build_type, detect_engine
from lsmtune.errors import InputError
from lsmtune.model.config import Build


@pytest.mark.engine
def test_the_installed_rocksdb_is_a_release_build(rocksdb_library: Path) -> None:
    assert build_type(rocksdb_library, "rocksdb").is_release
    assert detect_engine(rocksdb_library, "x") == "rocksdb"


@pytest.mark.engine
def test_the_installed_leveldb_is_a_release_build(leveldb_library: Path) -> None:
    assert build_type(leveldb_library, "leveldb") is Build.RELEASE
    assert detect_engine(leveldb_library, "x") == "leveldb"


@pytest.mark.parametrize("engine", ["rocksdb", "leveldb"])
def test_the_distributions_packages_have_assertions_on(engine: str) -> None:
    path = distribution_library(engine)
    assert build_type(path, engine) is Build.ASSERTIONS_ON
    assert detect_engine(path, "x") == engine


@pytest.mark.parametrize("engine", ["rocksdb", "leveldb"])
@pytest.mark.parametrize(
    ("flags", "build"), [((), Build.ASSERTIONS_ON), (("-DNDEBUG", "-O2"), Build.RELEASE)]
)
def test_a_compiled_library_tells_its_build(
    tmp_path: Path, engine: str, flags: tuple[str, ...], build: Build
) -> None:
    path = compile_library(tmp_path / "lib.so", engine, flags=flags)
    assert build_type(path, engine) is build


def test_signatures_of_another_engine_do_not_count(tmp_path: Path) -> None:
    path = compile_library(tmp_path / "lib.so", "rocksdb")
    assert build_type(path, "leveldb") is Build.UNKNOWN


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"not a library", b"\x7fELF\x02\x01" * 50])
def test_a_file_that_is_no_library_is_unknown_and_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "lib.so"
    path.write_bytes(content)
    assert build_type(path, "rocksdb") is Build.UNKNOWN
    with pytest.raises(InputError, match="not a shared library"):
        detect_engine(path, "--library")


def test_a_truncated_library_is_refused(tmp_path: Path) -> None:
    whole = compile_library(tmp_path / "lib.so", "leveldb").read_bytes()
    for size in (40, 70, 500, len(whole) // 2, len(whole) - 70):
        path = tmp_path / f"cut-{size}.so"
        path.write_bytes(whole[:size])
        with pytest.raises(InputError, match="--library"):
            detect_engine(path, "--library")


def test_a_library_for_another_machine_is_refused(tmp_path: Path) -> None:
    content = bytearray(compile_library(tmp_path / "lib.so", "leveldb").read_bytes())
    content[18:20] = (22).to_bytes(2, "little")  # e_machine: EM_S390
    path = tmp_path / "other.so"
    path.write_bytes(content)
    with pytest.raises(InputError, match="built for s390x"):
        detect_engine(path, "--library")


def test_a_library_of_no_engine_is_refused() -> None:
    shell = Path(shutil.which("sh") or "/bin/sh").resolve()
    with pytest.raises(InputError, match=r"not an engine library.*rocksdb_open or leveldb_open"):
        detect_engine(shell, "--library")


@pytest.mark.parametrize(("name", "why"), [("absent.so", "no such file"), ("", "not a file")])
def test_a_path_that_is_no_file_is_refused(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        detect_engine(tmp_path / name, "--library")
