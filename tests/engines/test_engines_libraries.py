"""Which library is used, and what the registry remembers."""

from __future__ import annotations

import dataclasses
import json
import os
import threading
from pathlib import Path

import pytest
from engine_parts import compile_library

from lsmtune.engines import install, libraries
from lsmtune.engines.libraries import (
    Registry,
    find_library,
    library_warnings,
    list_libraries,
    parse_loader_cache,
    registry_warnings,
)
from lsmtune.engines.library import Library, version_key
from lsmtune.errors import InputError, LsmtuneError
from lsmtune.model.config import Build, EngineIdentity


def library(
    path: Path, version: str | None = "1.0", build: Build = Build.RELEASE, origin: str = "test"
) -> Library:
    path.write_bytes(path.name.encode())
    identity = EngineIdentity("rocksdb", version, str(path), build)
    return Library(path, identity, ("none", "snappy"), origin)


@pytest.fixture(autouse=True)
def distribution(monkeypatch: pytest.MonkeyPatch) -> list[Library]:
    """The distribution's libraries, none unless a test adds one."""
    found: list[Library] = []

    def of_kind(engine: str) -> list[Library]:
        return [x for x in found if x.identity.name == engine]

    monkeypatch.setattr(libraries, "distribution_libraries", of_kind)
    return found


def test_what_is_registered_comes_back_whole(tmp_path: Path) -> None:
    added = library(tmp_path / "a.so")
    Registry().add(added)
    assert [e.library for e in Registry().entries()] == [added]
    assert find_library("rocksdb") == added


def test_registering_a_path_again_replaces_it(tmp_path: Path) -> None:
    first = library(tmp_path / "a.so", "1.0")
    Registry().add(first)
    identity = dataclasses.replace(first.identity, version="2.0")
    Registry().add(dataclasses.replace(first, identity=identity))
    assert [e.library.identity.version for e in Registry().entries()] == ["2.0"]


def test_removing_forgets_the_entry_and_keeps_the_file(tmp_path: Path) -> None:
    added = library(tmp_path / "a.so")
    Registry().add(added)
    Registry().remove(added.path)
    assert added.path.exists()
    assert Registry().entries() == ()
    with pytest.raises(InputError, match="nothing is registered"):
        Registry().remove(added.path)


def test_two_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    added = [library(tmp_path / f"{n}.so", f"{n}.0") for n in range(20)]
    threads = [threading.Thread(target=Registry().add, args=(x,)) for x in added]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {e.library.path for e in Registry().entries()} == {x.path for x in added}
    assert not list(Registry().path.parent.glob("*.tmp"))


def test_the_default_is_release_then_registered_then_newest(
    tmp_path: Path, distribution: list[Library]
) -> None:
    names = ("old", "new", "slow", "packaged", "packaged-slow")
    paths = {name: tmp_path / f"{name}.so" for name in names}
    distribution.append(library(paths["packaged"], None))
    distribution.append(library(paths["packaged-slow"], None, Build.ASSERTIONS_ON))
    for x in distribution:
        object.__setattr__(x, "origin", libraries.DISTRIBUTION)
    Registry().add(library(paths["new"], "10.2.1"))
    Registry().add(library(paths["slow"], "11.0.0", Build.ASSERTIONS_ON))
    Registry().add(library(paths["old"], "9.11.2"))
    expected = ["new", "old", "packaged", "slow", "packaged-slow"]
    assert [x.path for x in list_libraries()] == [paths[name] for name in expected]
    assert find_library("rocksdb").path == paths["new"]


def test_a_wheels_library_needs_no_installation_and_gives_way_to_one_that_is_registered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, distribution: list[Library]
) -> None:
    distribution.append(library(tmp_path / "of-debian.so", "12.0", origin="distribution package"))
    monkeypatch.setattr(
        libraries, "packaged_file", lambda name: tmp_path / name if "rocksdb" in name else None
    )
    assert find_library("rocksdb") == distribution[0]
    (tmp_path / "librocksdb.so").touch()
    packaged = find_library("rocksdb")
    assert (packaged.path, packaged.origin) == (tmp_path / "librocksdb.so", "packaged with lsmtune")
    assert library_warnings(packaged) == ()
    own = library(tmp_path / "own.so", "7.0")
    Registry().add(own)
    assert [x.path for x in list_libraries()] == [own.path, packaged.path, distribution[0].path]


def test_of_two_equals_the_one_registered_last_is_the_default(tmp_path: Path) -> None:
    Registry().add(library(tmp_path / "a.so"))
    Registry().add(library(tmp_path / "b.so"))
    assert find_library("rocksdb").path == tmp_path / "b.so"


def test_a_file_that_vanished_or_changed_is_passed_over_and_reported(tmp_path: Path) -> None:
    gone, changed = library(tmp_path / "gone.so"), library(tmp_path / "changed.so")
    Registry().add(gone)
    Registry().add(changed)
    gone.path.unlink()
    changed.path.write_bytes(b"something else")
    warnings = registry_warnings("rocksdb")
    assert any("gone.so is gone" in w and "engines remove" in w for w in warnings)
    assert any("changed.so has changed" in w and "engines add" in w for w in warnings)
    assert registry_warnings("leveldb") == ()
    with pytest.raises(InputError, match=r"gone\.so is gone.*engines install rocksdb"):
        find_library("rocksdb")


def test_a_file_with_a_new_time_and_the_old_content_is_unchanged(tmp_path: Path) -> None:
    added = library(tmp_path / "a.so")
    Registry().add(added)
    os.utime(added.path, ns=(0, 0))
    assert find_library("rocksdb") == added
    added.path.write_bytes(added.path.read_bytes()[::-1])
    assert "a.so has changed" in registry_warnings()[0]


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "[" * 99999, '{"format_version": 1, "libraries": [{}]}']
)
def test_a_registry_that_cannot_be_understood_is_left_alone(text: str) -> None:
    path = Registry().path
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(LsmtuneError, match="not an engine registry"):
        Registry().entries()
    assert path.read_text() == text


def test_a_registry_that_is_no_text_is_one_that_cannot_be_understood() -> None:
    """A damaged byte in it was an unexpected error of every command that looks for an engine."""
    path = Registry().path
    path.parent.mkdir(parents=True)
    path.write_bytes(b'{"format_version": 1, "libraries": ["\xff"]}')
    with pytest.raises(LsmtuneError, match="not an engine registry"):
        Registry().entries()


def test_a_registry_of_a_newer_format_is_refused() -> None:
    path = Registry().path
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"format_version": 2, "libraries": []}))
    with pytest.raises(LsmtuneError, match="format version 2"):
        Registry().entries()


def test_an_explicit_path_wins_and_needs_no_registration(tmp_path: Path) -> None:
    Registry().add(library(tmp_path / "registered.so"))
    path = compile_library(tmp_path / "mine.so", "rocksdb", flags=("-DNDEBUG",))
    found = find_library("rocksdb", path)
    assert (found.path, found.identity.build, found.identity.version) == (path, Build.RELEASE, None)


def test_an_explicit_path_of_another_engine_is_refused(tmp_path: Path) -> None:
    path = compile_library(tmp_path / "mine.so", "leveldb")
    with pytest.raises(InputError, match=r"is a leveldb library.*--engine leveldb"):
        find_library("rocksdb", path)


@pytest.mark.parametrize(
    ("name", "message"),
    [("rocksbd", "did you mean rocksdb"), ("memory", "built into the driver"), ("", "allowed")],
)
def test_an_engine_without_libraries_is_refused(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        find_library(name)


def test_a_slow_or_unknown_build_comes_with_a_warning(tmp_path: Path) -> None:
    slow = library(tmp_path / "a.so", build=Build.ASSERTIONS_ON)
    assert "assertions on" in library_warnings(slow)[0]
    assert "engines install rocksdb" in library_warnings(slow)[0]
    assert "does not tell" in library_warnings(library(tmp_path / "a.so", build=Build.UNKNOWN))[0]
    assert library_warnings(library(tmp_path / "a.so")) == ()


def test_the_loader_cache_is_read_without_the_development_link() -> None:
    text = """2 libs found in cache `/etc/ld.so.cache'
\tlibrocksdb.so.7.8 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/librocksdb.so.7.8
\tlibrocksdb.so (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/librocksdb.so
\tlibrocksdbjni.so (libc6,x86-64) => /usr/lib/librocksdbjni.so
"""
    found = parse_loader_cache(text, "rocksdb")
    assert [path.name for path in found] == ["librocksdb.so.7.8", "librocksdb.so"]


def test_versions_are_ordered_by_their_numbers() -> None:
    versions = ["9.11.2", None, "10.2.1", "10.2", "7.8.3"]
    assert sorted(versions, key=version_key) == [None, "7.8.3", "9.11.2", "10.2", "10.2.1"]


def test_a_name_that_is_no_engines_keeps_the_others_from_being_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`install rocksdb levledb` fetched RocksDB, named the slip, and registered nothing."""
    begun: list[str] = []
    monkeypatch.setattr(install, "install", lambda name, *_: begun.append(name))
    with pytest.raises(InputError, match="did you mean leveldb"):
        install.install_all(("rocksdb", "levledb"), lambda _line: None)
    assert begun == []
