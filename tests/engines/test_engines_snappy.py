"""The Snappy inside RocksDB's release for Java was compiled without optimisation; ours was not.

Over that one LZ4 gained 1.9 times on `overwrite`, and over any other build of Snappy nothing: half
of what was promised there came from one library.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lsmtune.driver.library_facts import give_fast_snappy
from lsmtune.engines.libraries import library_warnings
from lsmtune.engines.library import Library, build_type, snappy_beside, snappy_place
from lsmtune.model.config import Build, EngineIdentity


@pytest.fixture
def jar(rocksdb_library: Path, tmp_path: Path) -> Path:
    """A copy of the jar's library, with no Snappy beside it."""
    if "rocksdbjni" not in rocksdb_library.name:
        pytest.skip(f"{rocksdb_library} is not that of the jar")
    return Path(shutil.copy(rocksdb_library, tmp_path))


@pytest.fixture
def own_snappy() -> Path:
    """Lsmtune's Snappy, as `make setup` builds it."""
    path = Path(sys.executable).parent / "lsmtune-snappy.so"
    if not path.is_file():
        pytest.skip(f"{path} is not built; `make setup` builds it")
    return path


def test_a_snappy_without_optimisation_is_told_of(jar: Path, leveldb_library: Path) -> None:
    assert build_type(leveldb_library, "leveldb") is Build.RELEASE
    build = build_type(jar, "rocksdb")
    assert build is Build.SLOW_SNAPPY
    identity = EngineIdentity("rocksdb", "10.10.1", str(jar), build)
    (warning,) = library_warnings(Library(jar, identity, ("none", "snappy"), f"user: {jar}"))
    assert "Snappy that was compiled without optimisation" in warning
    assert warning.endswith("of `make setup` or of the wheel, unless you deploy this one")
    place = snappy_place(jar)
    assert place is not None
    assert snappy_beside(jar) is None
    place.touch()
    assert snappy_beside(jar) == place
    assert build_type(jar, "rocksdb") is Build.OWN_SNAPPY


@pytest.mark.parametrize(
    ("library", "beside"),
    [
        ("librocksdb.so", "librocksdb.snappy.so"),
        ("librocksdbjni-linux64.so", "librocksdbjni-linux64.snappy.so"),
        # The driver has the same rule: two versions of a library would share a file.
        ("librocksdb.so.7.8", None),
        ("librocksdb", None),
    ],
)
def test_only_a_library_of_a_plain_name_has_one(library: str, beside: str | None) -> None:
    found = snappy_place(Path("/lib") / library)
    assert found == (None if beside is None else Path("/lib") / beside)


def test_an_installed_release_gets_one(
    jar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    driver, built = tmp_path / "bin" / "lsmtune-driver", tmp_path / "bin" / "lsmtune-snappy.so"
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python" / "python"))
    give_fast_snappy(jar, driver)
    assert build_type(jar, "rocksdb") is Build.SLOW_SNAPPY, "it is not built"
    beside = tmp_path / "librocksdbjni-linux64.snappy.so"
    for content in (b"snappy", b"a newer snappy"):
        built.write_bytes(content)
        give_fast_snappy(jar, driver)
        assert beside.read_bytes() == content
        assert build_type(jar, "rocksdb") is Build.OWN_SNAPPY


def bound(library: Path, folder: Path) -> list[str]:
    """What the linker bound Snappy's functions to in a short run on `library`."""
    run = [sys.executable, "-m", "lsmtune.cli.main", "bench", "--json", "--engine", "rocksdb"]
    run += ["--library", str(library), "--workload", "fillrandom", "-w", "num=5000"]
    run += ["-o", "compression=kSnappyCompression"]
    watched = {**os.environ, "LD_DEBUG": "bindings", "LD_DEBUG_OUTPUT": str(folder / "linker")}
    subprocess.run(run, check=True, capture_output=True, env=watched)
    texts = [path.read_text(errors="replace") for path in folder.glob("linker.*")]
    lines = [line for text in texts for line in text.splitlines()]
    return [line.rpartition(" to ")[2] for line in lines if "_ZN6snappy" in line]


def test_the_driver_takes_the_one_that_lies_beside(
    jar: Path, own_snappy: Path, tmp_path: Path
) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    of_the_jar = bound(jar, plain)
    assert any("CompressFragment" in line for line in of_the_jar)
    assert all(line.startswith(str(jar)) for line in of_the_jar)
    beside = Path(shutil.copy(own_snappy, tmp_path / "librocksdbjni-linux64.snappy.so"))
    own = [line for line in bound(jar, tmp_path) if line.startswith(str(beside))]
    for function in ("CompressFragment", "RawUncompress", "GetUncompressedLength"):
        assert any(function in line for line in own), function


_BOTH_WAYS = """
import ctypes, sys

class Snappy:
    def __init__(self, path):
        self._all = ctypes.CDLL(path)

    def _call(self, name, *arguments):
        return getattr(self._all, name)(*arguments)

    def compressed(self, text):
        room, written = ctypes.create_string_buffer(2 * len(text) + 64), ctypes.c_size_t()
        size = ctypes.c_size_t(len(text))
        self._call("_ZN6snappy11RawCompressEPKcmPcPm", text, size, room, ctypes.byref(written))
        return room.raw[: written.value]

    def uncompressed(self, data, length):
        room = ctypes.create_string_buffer(length + 1)
        size = ctypes.c_size_t(len(data))
        done = self._call("_ZN6snappy13RawUncompressEPKcmPc", data, size, room) & 1
        return room.raw[:length] if done else None

one, other = map(Snappy, sys.argv[1:])
for length in (0, 1, 100, 4096, 16384, 65536, 300000):
    pieces = (f"{n:050d}".encode() + bytes(range(50)) for n in range(length // 100 + 1))
    text = b"".join(pieces)[:length]
    assert other.uncompressed(one.compressed(text), length) == text
    assert one.uncompressed(other.compressed(text), length) == text
"""


def test_each_reads_what_the_other_wrote(jar: Path, own_snappy: Path) -> None:
    command = [sys.executable, "-c", _BOTH_WAYS, str(jar), str(own_snappy)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
