"""A study goes on with the engine library that it began with, and says so where it cannot."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from fake_runner import FakeRunner
from study_parts import Recorder, make_spec, stored

from lsmtune.errors import InputError
from lsmtune.experiment.store import Role
from lsmtune.model.config import Build, EngineIdentity
from lsmtune.study.loop import tune
from lsmtune.study.observer import TuneResult
from lsmtune.study.start import open_study


def library(path: Path, content: str, build: Build = Build.RELEASE) -> EngineIdentity:
    """RocksDB in a file of its own."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    return EngineIdentity("rocksdb", "10.10.1", str(path), build)


def session(home: Path, engine: EngineIdentity, trials: int = 2) -> TuneResult:
    """One session of a study whose file names no library, on the one that was found."""
    spec, runner = make_spec(home, budget=f"{{trials: {trials}}}"), FakeRunner(engine=engine)
    with open_study(home / "s", spec) as folder:
        stop = threading.Event()
        return tune(spec, folder, runner, engine, Recorder(), stop=stop, clock=runner.clock)


def test_a_study_does_not_go_on_with_a_library_that_was_installed_meanwhile(tmp_path: Path) -> None:
    """Its trials were compared with the baseline of the slow build, and proved 3x better."""
    first = library(tmp_path / "usr" / "librocksdb.so", "slow", Build.ASSERTIONS_ON)
    session(tmp_path, first)
    installed = library(tmp_path / "engines" / "librocksdb.so", "fast")
    with pytest.raises(InputError) as refused:
        session(tmp_path, installed, 4)
    assert "two versions or builds of an engine cannot be compared" in refused.value.why
    found, allowed = str(refused.value.found), refused.value.allowed
    assert found.startswith("rocksdb 10.10.1 (release), SHA-256 ")
    assert found.endswith(f" at {installed.library}")
    assert allowed.startswith("rocksdb 10.10.1 (assertions-on), SHA-256 ")
    assert f" at {first.library}, with which this study began" in allowed
    assert session(tmp_path, first, 4).counts == {"ok": 4}


def test_two_libraries_of_one_version_are_told_apart_by_their_places(tmp_path: Path) -> None:
    session(tmp_path, library(tmp_path / "a" / "librocksdb.so", "one"))
    with pytest.raises(InputError, match=r"/a/librocksdb.so, with which this study") as refused:
        session(tmp_path, library(tmp_path / "b" / "librocksdb.so", "other"), 4)
    assert str(refused.value.found).endswith("/b/librocksdb.so")


def test_a_library_that_was_compiled_again_in_its_place_is_another_one(tmp_path: Path) -> None:
    path = tmp_path / "build" / "librocksdb.so"
    session(tmp_path, library(path, "before"))
    with pytest.raises(InputError, match=r"release., SHA-256 \w{12} at .*; allowed: .*, SHA-256"):
        session(tmp_path, library(path, "after, and longer"), 4)
    assert session(tmp_path, library(path, "before"), 4).counts == {"ok": 4}


def test_a_library_that_was_moved_is_the_same_one(tmp_path: Path) -> None:
    session(tmp_path, library(tmp_path / "a" / "librocksdb.so", "one"))
    (tmp_path / "a" / "librocksdb.so").unlink()
    moved = library(tmp_path / "b" / "librocksdb.so", "one")
    assert session(tmp_path, moved, 4).counts == {"ok": 4}


def test_a_proof_goes_on_with_a_library_that_was_moved(tmp_path: Path) -> None:
    """Its pairs were of the file at the old place: a finished study was proved once more."""
    first = session(tmp_path, library(tmp_path / "a" / "librocksdb.so", "one"), 8)
    rows = stored(tmp_path / "s")
    assert any(row.role is Role.PROOF_CANDIDATE for row in rows)
    (tmp_path / "a" / "librocksdb.so").unlink()
    again = session(tmp_path, library(tmp_path / "b" / "librocksdb.so", "one"), 8)
    assert again.verdict == first.verdict
    assert stored(tmp_path / "s") == rows
