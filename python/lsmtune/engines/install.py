"""Get an engine library: install a known release, or take what the user names.

Nothing here loads a library: the command line probes what these functions return and
registers it. `python -m lsmtune.engines.install NAME...` only fetches, so that a set-up can
fetch while the driver is still being compiled.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

import psutil

from lsmtune.engines.build import detect_engine
from lsmtune.engines.home import logs_folder
from lsmtune.engines.jar import extract_library
from lsmtune.engines.library import file_sha256
from lsmtune.engines.names import ENGINE_KINDS, engine_kind
from lsmtune.engines.source_tree import (
    build_leveldb_with_snappy,
    build_tree,
    engine_of_tree,
    tree_version,
)
from lsmtune.engines.staging import Fetched, install_folder
from lsmtune.engines.steps import (
    Progress,
    kill_tree,
    open_log,
    require_programs,
    run_step,
)
from lsmtune.errors import InputError, LsmtuneError

ROCKSDB_VERSION = "10.2.1"
_ROCKSDB_ARTIFACT = f"org.rocksdb:rocksdbjni:{ROCKSDB_VERSION}:jar:linux64"
_ROCKSDB_JAR_SHA256 = "6c7ad6bbeb0b15abeac117ce2f4281244ac273b2793100917fbc5c253297de6f"

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


def install(name: str, progress: Progress) -> Fetched:
    """A release build of engine `name`; at once when it is already installed.

    Raises InputError for an unknown engine; LsmtuneError when a program is missing or a step
    fails, and then nothing is left half installed.
    """
    kind = engine_kind(name, "engines install")
    recipe = RECIPES[kind.name]
    return install_folder(
        recipe.folder,
        kind.name,
        recipe.origin,
        lambda work: recipe.fill(work, progress),
        compressions=recipe.compressions,
    )


def add(path: Path, progress: Progress) -> Fetched:
    """What the user names: a shared library (used where it lies), a jar, or a source tree.

    Raises InputError when it is none of these; LsmtuneError when a build fails.
    """
    path = path.expanduser().absolute()
    source = "engines add"
    if not path.exists():
        raise InputError(source, "PATH", found=str(path), why="no such file or folder")
    if path.is_dir():
        return _add_tree(path, source, progress)
    if path.suffix == ".jar":
        name = f"rocksdb-jar-{file_sha256(path)[:12]}"
        return install_folder(
            name, "rocksdb", f"jar: {path}", lambda work: extract_library(path, work, source)
        )
    kind = detect_engine(path, source)
    return Fetched(path, kind.name, f"user: {path}")


def _add_tree(tree: Path, source: str, progress: Progress) -> Fetched:
    kind = engine_of_tree(tree)
    if kind is None:
        allowed = " or ".join(f"a tree with include/{k}/c.h" for k in ENGINE_KINDS)
        raise InputError(source, "PATH", found=str(tree), allowed=f"{allowed}, a jar, a .so file")
    version = tree_version(tree, kind)
    # One folder per tree: building the same tree again replaces what it gave before.
    name = f"{kind.name}-{version}-tree-{_short_hash(str(tree))}"

    def fill(work: Path) -> Path:
        with open_log(logs_folder(), f"build-{name}") as log:
            return build_tree(tree, kind, work, log, progress)

    return install_folder(name, kind.name, f"sources: {tree}", fill, again=True)


def _fetch_rocksdb(work: Path, progress: Progress) -> Path:
    what = f"fetching rocksdbjni {ROCKSDB_VERSION} with Maven (27 MB)"
    require_programs(("mvn",), "to fetch RocksDB (or name a library: lsmtune engines add PATH)")
    command = ["mvn", "--quiet", "--batch-mode", "dependency:copy"]
    command += [f"-Dartifact={_ROCKSDB_ARTIFACT}", f"-DoutputDirectory={work}"]
    with open_log(logs_folder(), f"install-rocksdb-{ROCKSDB_VERSION}") as log:
        run_step(what, command, log, progress)
    jar = work / f"rocksdbjni-{ROCKSDB_VERSION}-linux64.jar"
    if not jar.is_file():
        raise LsmtuneError(f"{what} left no {jar.name}; next step: read the log {log.name}")
    found = file_sha256(jar)
    if found != _ROCKSDB_JAR_SHA256:
        raise LsmtuneError(
            f"{jar.name} has SHA-256 {found}, not {_ROCKSDB_JAR_SHA256}; next step: delete it "
            "from Maven's local repository and install again"
        )
    return extract_library(jar, work, jar.name)


def _fetch_leveldb(work: Path, progress: Progress) -> Path:
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
        return build_leveldb_with_snappy(leveldb, snappy, work, log, progress)


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Recipe:
    """How a release build is made: the compressions it promises, and what fills its folder."""

    folder: str
    origin: str
    compressions: tuple[str, ...]
    fill: Callable[[Path, Progress], Path]


RECIPES = {
    "rocksdb": Recipe(
        f"rocksdb-{ROCKSDB_VERSION}",
        f"rocksdbjni {ROCKSDB_VERSION} jar",
        ("snappy", "zlib", "bzip2", "lz4", "lz4hc", "zstd"),
        _fetch_rocksdb,
    ),
    "leveldb": Recipe(
        f"leveldb-{LEVELDB_VERSION}",
        f"crate leveldb-sys {_LEVELDB_CRATE_VERSION} sources",
        ("snappy",),
        _fetch_leveldb,
    ),
}
INSTALLABLE = tuple(RECIPES)
_KILL_AGAIN_S = 0.05


def install_all(names: tuple[str, ...], progress: Progress) -> list[Fetched]:
    """Install several engines side by side: one waits for the network while another compiles."""
    with ThreadPoolExecutor(max_workers=max(1, len(names))) as pool:
        installs = [pool.submit(install, name, progress) for name in names]
        try:
            return [each.result() for each in installs]
        except KeyboardInterrupt:
            # The threads do not learn of it; their steps end when the programs do.
            while wait(installs, timeout=_KILL_AGAIN_S).not_done:
                for step in psutil.Process().children():
                    kill_tree(step.pid)
            raise


def main(arguments: list[str]) -> int:
    """Fetch the engines named by `arguments`; returns the exit status."""
    try:
        install_all(tuple(arguments) or INSTALLABLE, lambda line: print(line, file=sys.stderr))
    except LsmtuneError as error:
        print(f"lsmtune: {error}", file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
