"""Get an engine library: install a known release, or take what the user names.

RocksDB comes from its release for Java, whose jar carries the library; LevelDB is built in release
mode from a source tree, with cmake.
"""

from __future__ import annotations

import hashlib
import lzma
import os
import platform
import re
import shutil
import sys
import zipfile
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from io import BufferedReader, FileIO
from pathlib import Path
from typing import IO

import psutil

from lsmtune.engines.library import ENGINE_KINDS, Library, detect_engine, file_sha256, logs_folder
from lsmtune.engines.steps import (
    Accept,
    Progress,
    install_folder,
    kill_tree,
    open_log,
    require_programs,
    run_step,
)
from lsmtune.errors import InputError, InterruptedByUserError, LsmtuneError, by_name
from lsmtune.machine.host import usable_cores
from lsmtune.machine.interrupts import stop_on_interrupt
from lsmtune.model.text import open_input
from lsmtune.units import format_bytes

# Names inside the jar, by `platform.machine()`. They need glibc; the musl builds in the jar of
# all platforms have names of their own.
_MEMBERS = {
    "x86_64": "librocksdbjni-linux64.so",
    "aarch64": "librocksdbjni-linux-aarch64.so",
    "ppc64le": "librocksdbjni-linux-ppc64le.so",
    "s390x": "librocksdbjni-linux-s390x.so",
    "riscv64": "librocksdbjni-linux-riscv64.so",
}

LIBRARY_BYTES_MAX = 1 << 30  # one of RocksDB with all debugging symbols has half of that
# Of all platforms' jar, 40 KB; in memory an entry takes ten times what it takes here.
DIRECTORY_BYTES_MAX = 4 << 20
_DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, UnicodeDecodeError)


class _Jar(BufferedReader):
    """A jar's file. `zipfile` reads its directory in one piece, of whatever size that claims."""

    def read(self, size: int | None = -1, /) -> bytes:
        """As in the base class. Raises BadZipFile for more than a directory may have."""
        if size is not None and size > DIRECTORY_BYTES_MAX:
            allowed = format_bytes(DIRECTORY_BYTES_MAX)
            raise zipfile.BadZipFile(f"a directory of {size} bytes, and at most {allowed} is read")
        return super().read(size)


def extract_library(jar: Path, folder: Path, source: str, machine: str | None = None) -> Path:
    """Copy the engine library for `machine` out of `jar` into `folder`; returns the new file.

    That is this machine unless another is named, as `platform.machine()` names it. Raises
    InputError, naming `source`, when the file is no jar, holds none for this machine, or holds one
    that cannot be unpacked or is of no library's size.
    """
    machine = machine or platform.machine()
    wanted = _MEMBERS.get(machine)
    try:
        with _Jar(FileIO(jar)) as file, zipfile.ZipFile(file) as archive:
            libraries = [n for n in archive.namelist() if n.endswith(".so")]
            if wanted is None or wanted not in libraries:
                found = ", ".join(libraries) or str(jar)
                why = f"holds no RocksDB library for {machine}"
                allowed = wanted or f"a machine among {', '.join(_MEMBERS)}"
                raise InputError(source, found=found, why=why, allowed=allowed)
            # zipfile unpacks no more than this, whatever follows.
            size = archive.getinfo(wanted).file_size
            if size > LIBRARY_BYTES_MAX:
                why = f"{wanted} unpacks to {format_bytes(size)}"
                allowed = f"at most {format_bytes(LIBRARY_BYTES_MAX)}"
                raise InputError(source, found=str(jar), why=why, allowed=allowed)
            target = folder / wanted
            with archive.open(wanted) as inside, target.open("wb") as outside:
                shutil.copyfileobj(inside, outside)
            return target
    except _DAMAGED as error:
        raise InputError(source, found=str(jar), why=f"not a jar ({error})") from error
    except (RuntimeError, NotImplementedError) as error:  # encrypted; an unknown compression
        why = f"{wanted} cannot be unpacked ({error})"
        raise InputError(source, found=str(jar), why=why) from error


# --- engine libraries built in release mode from a source tree, with cmake

# Both engines and snappy ask for cmake versions whose rules cmake 4 dropped.
_ANY_CMAKE = "-DCMAKE_POLICY_VERSION_MINIMUM=3.5"
_RELEASE = "-DCMAKE_BUILD_TYPE=Release"

_LEVELDB_FLAGS = (
    "-DBUILD_SHARED_LIBS=ON",
    "-DLEVELDB_BUILD_TESTS=OFF",
    "-DLEVELDB_BUILD_BENCHMARKS=OFF",
)
_SNAPPY_FLAGS = (
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
_ROCKSDB_FLAGS = (
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


def engine_of_tree(tree: Path) -> str | None:
    """The engine whose source tree this is, by its C header; None when it is neither's."""
    if not (tree / "CMakeLists.txt").is_file():
        return None
    return next((n for n in ENGINE_KINDS if (tree / "include" / n / "c.h").is_file()), None)


def tree_version(tree: Path, engine: str) -> str:
    """The version that the tree's headers state, or `unknown`."""
    header = tree / "include" / engine / ("version.h" if engine == "rocksdb" else "db.h")
    if not header.is_file():
        return "unknown"
    text = header.read_text(encoding="utf-8", errors="replace")
    if engine == "rocksdb":
        numbers = [re.search(rf"ROCKSDB_{p} (\d+)", text) for p in ("MAJOR", "MINOR", "PATCH")]
    else:
        numbers = [re.search(rf"k{p}Version = (\d+)", text) for p in ("Major", "Minor")]
    return ".".join(n.group(1) for n in numbers if n) or "unknown"


def build_tree(tree: Path, engine: str, work: Path, log: IO[str], progress: Progress) -> Path:
    """Build the tree's shared library in `work`; returns its path. The tree is not written to.

    RocksDB takes about 20 processor-minutes, LevelDB one. Raises LsmtuneError when a program is
    missing or fails.
    """
    require_programs(("cmake", "c++"), f"to build {engine} from sources")
    if engine == "rocksdb":
        progress("building RocksDB takes about 20 processor-minutes")
        there = {each.name for folder in _HEADER_FOLDERS for each in folder.glob("*.h")}
        compressions = [
            f"-D{option}={'ON' if header in there else 'OFF'}"
            for option, header in _ROCKSDB_COMPRESSIONS.items()
        ]
        flags, target = (*_ROCKSDB_FLAGS, *compressions), "rocksdb-shared"
    else:
        flags, target = _LEVELDB_FLAGS, "leveldb"
    what, build = f"building {engine} {tree_version(tree, engine)}", work / "build"
    cmake_build(what, tree, build, flags, target, log, progress)
    return _built_library(build, engine)


def build_leveldb_with_snappy(
    leveldb: Path,
    snappy: Path,
    work: Path,
    log: IO[str],
    progress: Progress,
    toolchain: tuple[str, ...] = (),
) -> Path:
    """Build LevelDB with this snappy inside, so that it compresses wherever it is loaded.

    `toolchain` are flags of cmake that name compilers other than this machine's.
    """
    require_programs(("cmake", "c++"), "to build leveldb from sources")
    prefix = work / "prefix"
    install = f"-DCMAKE_INSTALL_PREFIX={prefix}"
    flags = (*toolchain, *_SNAPPY_FLAGS, install)
    cmake_build("building snappy", snappy, work / "snappy", flags, "install", log, progress)
    flags = (
        *toolchain,
        *_LEVELDB_FLAGS,
        *_LEVELDB_LIBRARIES,
        # LevelDB of this age names the library and no folder.
        f'-DCMAKE_CXX_FLAGS=-I"{prefix}/include"',
        f'-DCMAKE_SHARED_LINKER_FLAGS=-L"{prefix}/lib"',
    )
    cmake_build("building leveldb", leveldb, work / "build", flags, "leveldb", log, progress)
    return _built_library(work / "build", "leveldb")


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
    parallel = str(len(usable_cores()))
    make = ["cmake", "--build", str(build), "--target", target, "--parallel", parallel]
    run_step(what, make, log, progress)


def _built_library(build: Path, engine: str) -> Path:
    # The plain name, which comes first, leads to the file behind the version links.
    built = next(filter(Path.is_file, sorted(build.glob(f"lib{engine}.so*"))), None)
    if built is None:
        raise LsmtuneError(f"the build of {engine} ended without lib{engine}.so in {build}")
    return built


# --- known releases, and what the user names
#
# Nothing here loads a library: the command line probes what these functions return and
# registers it. `python -m lsmtune.engines.install NAME...` only fetches, so that a set-up can
# fetch while the driver is still being compiled.

# Releases of RocksDB: the SHA-256 of `rocksdbjni-VERSION-linux64.jar`. The first one is installed
# unless another is named.
_ROCKSDB_JARS = {
    "10.10.1": "fda4a26cd4ea229636c5379ed41d827ce119a99c404fab94d9f863783c9ccb18",
    "10.2.1": "6c7ad6bbeb0b15abeac117ce2f4281244ac273b2793100917fbc5c253297de6f",
}
ROCKSDB_VERSION = next(iter(_ROCKSDB_JARS))

LEVELDB_VERSION = "1.22"
_LEVELDB_CRATE_VERSION = "2.0.9"
_LEVELDB_MANIFEST = f"""[package]
name = "lsmtune-fetch"
version = "0.0.0"
edition = "2021"

[workspace]

[dependencies]
leveldb-sys = "={_LEVELDB_CRATE_VERSION}"
"""


def install(name: str, progress: Progress, accept: Accept) -> Library:
    """A release build that `accept` takes; at once when it is installed already.

    `name` is an engine, or an engine and one of its releases: `rocksdb-10.2.1`. Raises InputError
    for any other name; LsmtuneError when a program is missing or a step fails, and then nothing
    is left half installed.
    """
    recipe = by_name(RECIPES, name, "engines install")
    return install_folder(
        recipe.folder,
        name.partition("-")[0],
        recipe.origin,
        lambda work: recipe.fill(work, progress),
        accept,
        compressions=recipe.compressions,
    )


def add(path: Path, progress: Progress, accept: Accept, engine: str | None = None) -> Library:
    """What the user names: a shared library (used where it lies), a jar, or a source tree.

    Raises InputError when it is none of these, or not of `engine`; LsmtuneError when a build fails;
    and what `accept` raises. Then nothing is installed.
    """
    path = path.expanduser().absolute()
    source = "engines add"

    def check_engine(actual: str) -> None:
        if engine not in (None, actual):
            raise InputError(source, "--engine", found=engine, why=f"{path} is {actual}")

    if not path.exists():
        raise InputError(source, "PATH", found=str(path), why="no such file or folder")
    if path.is_dir():
        tree_engine = engine_of_tree(path)
        if tree_engine is None:
            trees = " or ".join(f"a tree with include/{name}/c.h" for name in ENGINE_KINDS)
            allowed = f"{trees}, a jar, a .so file"
            raise InputError(source, "PATH", found=str(path), allowed=allowed)
        check_engine(tree_engine)
        # One folder per tree: building the same tree again replaces what it gave before.
        hashed = hashlib.sha256(str(path).encode()).hexdigest()[:12]
        folder = f"{tree_engine}-{tree_version(path, tree_engine)}-tree-{hashed}"

        def fill(work: Path) -> Path:
            with open_log(logs_folder(), f"build-{folder}") as log:
                return build_tree(path, tree_engine, work, log, progress)

        return install_folder(folder, tree_engine, f"sources: {path}", fill, accept, rebuild=True)
    if path.suffix == ".jar":
        check_engine("rocksdb")
        with open_input(path, "a jar") as jar:
            if (size := os.fstat(jar.fileno()).st_size) > LIBRARY_BYTES_MAX:
                allowed = f"a jar of at most {format_bytes(LIBRARY_BYTES_MAX)}"
                why = f"is too large: {format_bytes(size)}"
                raise InputError(str(path), why=why, allowed=allowed)
        name = f"rocksdb-jar-{file_sha256(path)[:12]}"
        unpack = partial(extract_library, path, source=source)
        return install_folder(name, "rocksdb", f"jar: {path}", unpack, accept)
    library_engine = detect_engine(path, source)
    check_engine(library_engine)
    return Library.unprobed(path, library_engine, f"user: {path}")


def fetch_rocksdb(version: str, work: Path, progress: Progress, machine: str | None = None) -> Path:
    """RocksDB's library for `machine` (this one unless named) in the folder `work`.

    Raises LsmtuneError when Maven is missing or fails, or when the jar is not the known one.
    """
    what = f"fetching rocksdbjni {version} with Maven (28 MB)"
    require_programs(("mvn",), "to fetch RocksDB (or name a library: lsmtune engines add PATH)")
    command = ["mvn", "--quiet", "--batch-mode", "dependency:copy"]
    command += [f"-Dartifact=org.rocksdb:rocksdbjni:{version}:jar:linux64"]
    command += [f"-DoutputDirectory={work}"]
    with open_log(logs_folder(), f"install-rocksdb-{version}") as log:
        run_step(what, command, log, progress)
    jar = work / f"rocksdbjni-{version}-linux64.jar"
    if not jar.is_file():
        raise LsmtuneError(f"{what} left no {jar.name}; next step: read the log {log.name}")
    checksum, known = file_sha256(jar), _ROCKSDB_JARS[version]
    if checksum != known:
        raise LsmtuneError(
            f"{jar.name} has SHA-256 {checksum}, not {known}; next step: delete it "
            "from Maven's local repository and install again"
        )
    return extract_library(jar, work, jar.name, machine)


def fetch_leveldb(work: Path, progress: Progress, toolchain: tuple[str, ...] = ()) -> Path:
    """LevelDB's library, built in the folder `work`; `toolchain` as of the builder.

    Raises LsmtuneError when a program is missing or fails.
    """
    require_programs(("cargo", "cmake", "c++"), "to install LevelDB")
    project = work / "project"
    (project / "src").mkdir(parents=True)
    (project / "src" / "lib.rs").touch()
    (project / "Cargo.toml").write_text(_LEVELDB_MANIFEST, encoding="utf-8")
    manifest, vendor = project / "Cargo.toml", project / "vendor"
    with open_log(logs_folder(), f"install-leveldb-{LEVELDB_VERSION}") as log:
        command = ["cargo", "vendor", "--manifest-path", str(manifest), str(vendor)]
        what = f"fetching LevelDB {LEVELDB_VERSION} (crate leveldb-sys {_LEVELDB_CRATE_VERSION})"
        run_step(what, command, log, progress)
        sources = vendor / "leveldb-sys" / "deps"
        leveldb, snappy = sources / f"leveldb-{LEVELDB_VERSION}", sources / "snappy-1.1.7"
        return build_leveldb_with_snappy(leveldb, snappy, work, log, progress, toolchain)


@dataclass(frozen=True)
class Recipe:
    """How a release build is made: the compressions it promises, and what fills its folder."""

    folder: str
    origin: str
    compressions: tuple[str, ...]
    fill: Callable[[Path, Progress], Path]


def _rocksdb_recipe(version: str) -> Recipe:
    return Recipe(
        f"rocksdb-{version}",
        f"rocksdbjni {version} jar",
        ("snappy", "zlib", "bzip2", "lz4", "lz4hc", "zstd"),
        partial(fetch_rocksdb, version),
    )


RECIPES = {
    "rocksdb": _rocksdb_recipe(ROCKSDB_VERSION),
    "leveldb": Recipe(
        f"leveldb-{LEVELDB_VERSION}",
        f"crate leveldb-sys {_LEVELDB_CRATE_VERSION} sources",
        ("snappy",),
        fetch_leveldb,
    ),
    **{f"rocksdb-{version}": _rocksdb_recipe(version) for version in _ROCKSDB_JARS},
}
_WAKE_S = 0.05


def install_all(
    names: tuple[str, ...], progress: Progress, accept: Accept = lambda _fetched: None
) -> list[Library]:
    """Install `names`, else all engines, side by side: one waits for the network, another compiles.

    For the main thread. Raises InputError for a name that is none, before any is installed; what
    the first of them raises that failed; and InterruptedByUserError, when a signal asked for it and
    their programs have ended.
    """
    names = names or ENGINE_KINDS
    for name in names:
        by_name(RECIPES, name, "engines install")
    with (
        # No KeyboardInterrupt: within `submit` it leaves an installation that nobody knows.
        stop_on_interrupt(lambda _line: progress("stopping"), second_raises=False) as stop,
        ThreadPoolExecutor(max_workers=len(names)) as pool,
    ):
        installs = [pool.submit(install, name, progress, accept) for name in names]
        # A signal that comes just before this thread goes to sleep, or that another thread
        # receives, is obeyed only when this thread wakes.
        while wait(installs, timeout=_WAKE_S).not_done:
            if stop.is_set():
                # The threads do not learn of it; their steps end when the programs do.
                for step in psutil.Process().children():
                    kill_tree(step.pid)
    if stop.is_set():
        raise InterruptedByUserError("interrupted")
    return [each.result() for each in installs]


def main(arguments: list[str]) -> int:
    """Fetch the engines named by `arguments`, or all; returns the exit status."""
    try:
        install_all(tuple(arguments), lambda line: print(line, file=sys.stderr))
    except LsmtuneError as error:
        print(f"lsmtune: {error}", file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
