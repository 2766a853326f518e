"""Engine libraries built in release mode from a source tree, with cmake."""

from __future__ import annotations

import re
from pathlib import Path
from typing import IO

from lsmtune.engines.names import ENGINE_KINDS, EngineKind
from lsmtune.engines.steps import Progress, processors, require_programs, run_step
from lsmtune.errors import LsmtuneError

# Both engines and snappy ask for cmake versions whose rules cmake 4 dropped.
_ANY_CMAKE = "-DCMAKE_POLICY_VERSION_MINIMUM=3.5"
_RELEASE = "-DCMAKE_BUILD_TYPE=Release"

_LEVELDB = ("-DBUILD_SHARED_LIBS=ON", "-DLEVELDB_BUILD_TESTS=OFF", "-DLEVELDB_BUILD_BENCHMARKS=OFF")
_SNAPPY = (
    "-DBUILD_SHARED_LIBS=OFF",
    "-DSNAPPY_BUILD_TESTS=OFF",
    "-DCMAKE_POSITION_INDEPENDENT_CODE=ON",
    "-DCMAKE_INSTALL_LIBDIR=lib",
)
# LevelDB looks for these libraries by linking a C program. Such a program finds neither a library
# outside the system's folders nor the C++ runtime that a static snappy needs, and LevelDB is then
# built without snappy and says nothing. An answer that is given is not looked for: snappy is
# linked or the build fails, and what else this machine has makes no difference.
_LEVELDB_LIBRARIES = ("-DHAVE_SNAPPY=ON", "-DHAVE_CRC32C=OFF", "-DHAVE_TCMALLOC=OFF")
_ROCKSDB = (
    "-DROCKSDB_BUILD_SHARED=ON",
    "-DFAIL_ON_WARNINGS=OFF",
    "-DWITH_GFLAGS=OFF",
    "-DWITH_TESTS=OFF",
    "-DWITH_TOOLS=OFF",
    "-DWITH_CORE_TOOLS=OFF",
    "-DWITH_BENCHMARK_TOOLS=OFF",
)
# RocksDB stops when a compression it was told to use has no header, so each is asked for only
# where its header is: cmake option -> header.
_ROCKSDB_COMPRESSIONS = {
    "WITH_SNAPPY": "snappy.h",
    "WITH_LZ4": "lz4.h",
    "WITH_ZSTD": "zstd.h",
    "WITH_ZLIB": "zlib.h",
    "WITH_BZ2": "bzlib.h",
}
_HEADER_FOLDERS = (Path("/usr/include"), Path("/usr/local/include"))


def engine_of_tree(tree: Path) -> EngineKind | None:
    """The engine whose source tree this is, by its C header; None when it is neither's."""
    for kind in ENGINE_KINDS.values():
        if (tree / "include" / kind.name / "c.h").is_file() and (tree / "CMakeLists.txt").is_file():
            return kind
    return None


def tree_version(tree: Path, kind: EngineKind) -> str:
    """The version that the tree's headers state, or `unknown`."""
    header = tree / "include" / kind.name / ("version.h" if kind.name == "rocksdb" else "db.h")
    if not header.is_file():
        return "unknown"
    text = header.read_text(encoding="utf-8", errors="replace")
    if kind.name == "rocksdb":
        numbers = [re.search(rf"ROCKSDB_{p} (\d+)", text) for p in ("MAJOR", "MINOR", "PATCH")]
    else:
        numbers = [re.search(rf"k{p}Version = (\d+)", text) for p in ("Major", "Minor")]
    return ".".join(n.group(1) for n in numbers if n) or "unknown"


def build_tree(tree: Path, kind: EngineKind, work: Path, log: IO[str], progress: Progress) -> Path:
    """Build the tree's shared library in `work`; returns its path. The tree is not written to.

    RocksDB takes about 20 processor-minutes, LevelDB one. Raises LsmtuneError when a program is
    missing or fails.
    """
    require_programs(("cmake", "c++"), f"to build {kind.name} from sources")
    if kind.name == "rocksdb":
        progress("building RocksDB takes about 20 processor-minutes")
        flags, target = (*_ROCKSDB, *_compression_flags()), "rocksdb-shared"
    else:
        flags, target = _LEVELDB, "leveldb"
    cmake_build(f"building {kind.name} {tree_version(tree, kind)}", tree, work / "build", flags,
                target, log, progress)  # fmt: skip
    return _built_library(work / "build", kind)


def build_leveldb_with_snappy(
    leveldb: Path, snappy: Path, work: Path, log: IO[str], progress: Progress
) -> Path:
    """Build LevelDB with this snappy inside, so that it compresses wherever it is loaded."""
    require_programs(("cmake", "c++"), "to build leveldb from sources")
    prefix = work / "prefix"
    install = f"-DCMAKE_INSTALL_PREFIX={prefix}"
    cmake_build("building snappy", snappy, work / "snappy", (*_SNAPPY, install), "install", log,
                progress)  # fmt: skip
    flags = (
        *_LEVELDB,
        *_LEVELDB_LIBRARIES,
        # LevelDB of this age names the library and no folder.
        f'-DCMAKE_CXX_FLAGS=-I"{prefix}/include"',
        f'-DCMAKE_SHARED_LINKER_FLAGS=-L"{prefix}/lib"',
    )
    cmake_build("building leveldb", leveldb, work / "build", flags, "leveldb", log, progress)
    return _built_library(work / "build", ENGINE_KINDS["leveldb"])


def cmake_build(
    what: str,
    tree: Path,
    build: Path,
    flags: tuple[str, ...],
    target: str,
    log: IO[str],
    progress: Progress,
) -> None:
    """Configure `tree` in release mode in the folder `build` and build `target` there."""
    configure = ["cmake", "-S", str(tree), "-B", str(build), _RELEASE, _ANY_CMAKE, *flags]
    run_step(f"{what}: configuring", configure, log, progress)
    make = ["cmake", "--build", str(build), "--target", target, "--parallel", str(processors())]
    run_step(what, make, log, progress)


def _compression_flags() -> list[str]:
    def has(header: str) -> bool:
        return any((folder / header).is_file() for folder in _HEADER_FOLDERS)

    return [
        f"-D{option}={'ON' if has(header) else 'OFF'}"
        for option, header in _ROCKSDB_COMPRESSIONS.items()
    ]


def _built_library(build: Path, kind: EngineKind) -> Path:
    for path in sorted(build.glob(f"{kind.soname_stem}.so*")):
        if path.is_file():
            # The file behind the version links, under the plain name.
            plain = build / f"{kind.soname_stem}.so"
            return plain if plain.is_file() else path
    raise LsmtuneError(f"the build of {kind.name} ended without {kind.soname_stem}.so in {build}")
