"""Make a wheel with driver and engines for each architecture, and the sdist, in build/wheels.

    make wheel [ARCHES="x86_64 aarch64"]

All that is compiled needs glibc 2.17 and no C++ library of the machine: zig (from PyPI) compiles
and links it, on any Linux, for either architecture. RocksDB is the library of its release for Java,
without symbols for debuggers.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from lsmtune.engines.install import ROCKSDB_VERSION, fetch_leveldb, fetch_rocksdb
from lsmtune.engines.library import ENGINE_KINDS, build_type
from lsmtune.engines.steps import open_log, require_programs, run_step
from lsmtune.errors import InputError, LsmtuneError
from lsmtune.model.config import Build

CHECKOUT = Path(__file__).resolve().parents[1]
ARCHES = ("x86_64", "aarch64")
GLIBC = "2.17"
POLICY = "manylinux2014"
RUST_TARGET = "{arch}-unknown-linux-gnu"


def progress(line: str) -> None:
    """Say which step begins."""
    print(f"== {line}", file=sys.stderr)


def check_rust(arch: str) -> None:
    """Raises LsmtuneError, which names what is needed, unless cargo compiles for `arch`."""
    target = RUST_TARGET.format(arch=arch)
    needed = f"`make wheel` needs Rust 1.88 or newer of rustup, with the target {target}"
    if shutil.which("rustup") is None:
        raise LsmtuneError(f"{needed}; found no rustup; next step: install it (https://rustup.rs)")
    folder = subprocess.run(
        ["rustc", "--print", "target-libdir", "--target", target],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if folder.returncode != 0 or not Path(folder.stdout.strip()).is_dir():
        raise LsmtuneError(f"{needed}; next step: rustup target add {target}")


def objcopy() -> list[str]:
    """A program that takes symbols out of a library for any architecture; rustc brings it along.

    Raises LsmtuneError where it does not.
    """
    folder = subprocess.run(
        ["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True
    )
    sysroot = Path(folder.stdout.strip())
    found = sorted(sysroot.glob("lib/rustlib/*/bin/rust-objcopy"))
    if not found:
        raise LsmtuneError(f"{sysroot}: no rust-objcopy; next step: rustup update")
    return ["env", f"LD_LIBRARY_PATH={sysroot / 'lib'}", str(found[0])]


def compilers(folder: Path, target: str) -> tuple[str, ...]:
    """The flags of cmake for compilers of C and C++ for `target`, made in `folder`: cc, c++."""
    folder.mkdir(parents=True)
    programs = {"cc": f"cc -target {target}", "c++": f"c++ -target {target}", "ar": "ar",
                "ranlib": "ranlib"}  # fmt: skip
    for name, words in programs.items():
        text = f'#!/bin/sh\nexec "{sys.executable}" -m ziglang {words} "$@"\n'
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).chmod(0o755)
    return (
        "-DCMAKE_SYSTEM_NAME=Linux",
        f"-DCMAKE_SYSTEM_PROCESSOR={target.partition('-')[0]}",
        f"-DCMAKE_C_COMPILER={folder}/cc",
        f"-DCMAKE_CXX_COMPILER={folder}/c++",
        f"-DCMAKE_AR={folder}/ar",
        f"-DCMAKE_RANLIB={folder}/ranlib",
        "-DCMAKE_SHARED_LINKER_FLAGS_RELEASE=-s",  # without the symbols of the C++ library inside
    )


def make_parts(arch: str, work: Path) -> Path:
    """Compile and fetch what is not Python; returns the folder that holds nothing else."""
    rust_target = RUST_TARGET.format(arch=arch)
    toolchain = compilers(work / "bin", f"{arch}-linux-gnu.{GLIBC}")
    parts = work / f"{POLICY}_{arch}"
    parts.mkdir()
    built = Path(os.environ["CARGO_TARGET_DIR"]) / rust_target / "release"
    with open_log(work, "driver") as log:
        for what, folder in (("the driver", "driver"), ("Snappy", "driver/preload/snappy")):
            cargo = ["cargo", "zigbuild", "--release", "--locked"]
            cargo += ["--manifest-path", str(CHECKOUT / folder / "Cargo.toml")]
            cargo += ["--target", f"{rust_target}.{GLIBC}"]
            run_step(f"compiling {what} for {arch}", cargo, log, progress)
        shutil.copy(built / "lsmtune-driver", parts)
        source = str(CHECKOUT / "driver" / "preload" / "files.c")
        library = ["-O2", "-s", "-shared", "-fPIC", "-o", str(parts / "lsmtune-files.so"), source]
        what = f"compiling the library that notes changes of files for {arch}"
        run_step(what, [str(work / "bin" / "cc"), *library, "-ldl", "-lpthread"], log, progress)
    for name in ENGINE_KINDS:
        (work / name).mkdir()
    rocksdb = fetch_rocksdb(ROCKSDB_VERSION, work / "rocksdb", progress, arch)
    leveldb = fetch_leveldb(work / "leveldb", progress, toolchain)
    shutil.copyfile(rocksdb, parts / "librocksdb.so")
    shutil.copyfile(leveldb, parts / "libleveldb.so")
    # 2 of its 15 MB are symbols that only debuggers read.
    with open_log(work, "strip") as log:
        strip = [*objcopy(), "--strip-all", str(parts / "librocksdb.so")]
        run_step(f"stripping RocksDB's library for {arch}", strip, log, progress)
    if build_type(parts / "librocksdb.so", "rocksdb") is Build.SLOW_SNAPPY:
        shutil.copy(built / "liblsmtune_snappy.so", parts / "librocksdb.snappy.so")
    for name in ENGINE_KINDS:
        shipped = parts / f"lib{name}.so"
        if not build_type(shipped, name).is_release:
            raise LsmtuneError(f"{shipped}: not a release build of {name}")
    return parts


FIT = ("2_5", "2_12", "2_17")  # manylinux2014 and what is older


def make_wheel(arch: str, parts: Path, output: Path) -> None:
    """The wheel with these parts. Raises LsmtuneError when auditwheel finds it unfit for its name.

    The folder gets what auditwheel says of it, too.
    """
    wheel = build("wheel", output, LSMTUNE_WHEEL_PARTS=str(parts))
    audit = [sys.executable, "-m", "auditwheel", "show", str(wheel)]
    shown = subprocess.run(audit, check=False, capture_output=True, text=True)
    said = shown.stdout + shown.stderr
    (output / f"{wheel.stem}.auditwheel.txt").write_text(said, encoding="utf-8")
    # The first tag is that of the whole wheel; later ones are of its symbols or libraries alone.
    tag = re.search(r'consistent\s+with\s+the\s+following\s+platform\s+tag:\s+"(.*?)"', said)
    if tag is None or tag[1] not in {f"manylinux_{minor}_{arch}" for minor in FIT}:
        raise LsmtuneError(f"{wheel.name} is not what its name says: {said}")


def build(target: str, output: Path, **environment: str) -> Path:
    """Have hatchling build a `wheel` or the `sdist` into the folder `output`; returns the file."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target]
    command += ["--directory", str(output)]
    done = subprocess.run(
        command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        cwd=CHECKOUT, env={**os.environ, **environment},
    )  # fmt: skip
    if done.returncode != 0:
        raise LsmtuneError(f"hatchling built no {target}: {done.stdout}")
    file = Path(done.stdout.split()[-1])  # its last line is the path
    progress(f"made {file} ({file.stat().st_size / 1e6:.1f} MB)")
    return file


def main(arches: list[str]) -> int:
    """Make the wheels for `arches` and the sdist; returns the exit status."""
    output, work = CHECKOUT / "build" / "wheels", CHECKOUT / "build" / "wheel-parts"
    try:
        require_programs(("cargo", "cmake", "mvn"), "to make wheels")
        for arch in arches:
            if arch not in ARCHES:
                raise InputError("make wheel", "ARCHES", found=arch, allowed=", ".join(ARCHES))
            check_rust(arch)
        for arch in arches:
            shutil.rmtree(work / arch, ignore_errors=True)
            make_wheel(arch, make_parts(arch, work / arch), output)
        build("sdist", output)
    except LsmtuneError as error:
        print(f"lsmtune: {error}", file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(ARCHES)))
