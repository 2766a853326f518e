"""What is in a wheel and in the sdist, and the licences of it; nothing is compiled or fetched."""

from __future__ import annotations

import importlib.util
import io
import os
import re
import stat
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from email.parser import BytesParser
from pathlib import Path
from types import ModuleType

import pytest

import lsmtune

ROOT = Path(__file__).resolve().parents[1]
PARTS = (
    "libleveldb.so",
    "librocksdb.snappy.so",
    "librocksdb.so",
    "lsmtune-driver",
    "lsmtune-files.so",
)


def module(path: Path) -> ModuleType:
    """A Python file of the checkout that is in no package."""
    specification = importlib.util.spec_from_file_location(path.stem, path)
    assert specification is not None
    assert specification.loader is not None
    found = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(found)
    return found


def build(target: str, output: Path, **environment: str) -> tuple[Path, str]:
    """What hatchling makes, and what it says."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(output)]
    done = subprocess.run(
        command,
        check=False,
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    (made,) = output.iterdir()
    return made, done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of made-up parts for a made-up platform."""
    parts = tmp_path_factory.mktemp("parts") / "manylinux2014_abacus"
    parts.mkdir()
    for name in PARTS:
        (parts / name).write_text(name)
    (parts / "lsmtune-driver").chmod(0o755)
    return build("wheel", tmp_path_factory.mktemp("wheel"), LSMTUNE_WHEEL_PARTS=str(parts))[0]


def metadata_of(wheel: Path, file: str) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(f".dist-info/{file}"))
        return BytesParser().parse(io.BytesIO(archive.read(name)))


def test_a_wheel_is_for_one_platform_and_any_python(wheel: Path) -> None:
    assert wheel.name == f"lsmtune-{lsmtune.__version__}-py3-none-manylinux2014_abacus.whl"
    about = metadata_of(wheel, "WHEEL")
    assert (about["Root-Is-Purelib"], about["Tag"]) == ("false", "py3-none-manylinux2014_abacus")


def test_a_wheel_brings_driver_engines_and_the_quickstart(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packaged = {i.filename: i for i in archive.infolist() if "/packaged/" in i.filename}
        assert sorted(packaged) == [f"lsmtune/packaged/{name}" for name in PARTS]
        driver = packaged["lsmtune/packaged/lsmtune-driver"]
        assert driver.external_attr >> 16 & stat.S_IXOTH
        study = archive.read("lsmtune/cli/quickstart.yaml")
        assert study == (ROOT / "examples" / "quickstart" / "study.yaml").read_bytes()
        names = set(archive.namelist())
    ours = {p.relative_to(ROOT / "python").as_posix() for p in ROOT.glob("python/lsmtune/**/*.py")}
    assert ours <= names


def test_a_wheel_has_the_licence_of_every_part(wheel: Path) -> None:
    about = metadata_of(wheel, "METADATA")
    files = about.get_all("License-File") or []
    assert files == ["LICENSE", *sorted(f"licenses/{p.name}" for p in ROOT.glob("licenses/*"))]
    # What the library of rocksdbjni is linked with, and LevelDB's, and what zig links.
    linked = {"rocksdb", "leveldb", "snappy", "zlib", "bzip2", "lz4", "zstd", "llvm", "zig"}
    assert {Path(file).stem for file in files} == {"LICENSE", "rust-crates", *linked}
    with zipfile.ZipFile(wheel) as archive:
        inside = {n.partition("/licenses/")[2] for n in archive.namelist() if "/licenses/" in n}
    assert inside == set(files)


def test_the_licences_of_the_crates_are_those_of_the_lock_file() -> None:
    """scripts/rust_licences.py writes them anew."""
    licences = module(ROOT / "scripts" / "rust_licences.py")
    assert licences.FILE.read_text() == licences.document()


def test_the_sdist_has_what_a_wheel_is_built_from(tmp_path: Path) -> None:
    sdist = build("sdist", tmp_path)[0]
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    sources = [*ROOT.glob("python/**/*.[py]*"), *ROOT.glob("driver/src/**/*.rs")]
    sources += [path for path in ROOT.glob("driver/preload/**/*") if path.is_file()]
    needed = {path.relative_to(ROOT).as_posix() for path in sources if path.suffix != ".pyc"}
    needed |= {"pyproject.toml", "hatch_build.py", "driver/Cargo.lock"}
    assert needed <= names
    assert not [name for name in names if name.startswith(("tests/", "docs/", "benchmarks/"))]


def test_without_cargo_a_wheel_is_python_alone_and_says_so(tmp_path: Path) -> None:
    made, said = build("wheel", tmp_path, PATH=str(tmp_path / "no-programs"))
    assert made.name.endswith("-py3-none-any.whl")
    assert "this wheel has no driver: cargo 1.88 or newer is needed, found none" in said
    with zipfile.ZipFile(made) as archive:
        assert not [name for name in archive.namelist() if "/packaged/" in name]


def test_a_cargo_that_is_too_old_is_none(tmp_path: Path) -> None:
    programs, output = tmp_path / "programs", tmp_path / "output"
    programs.mkdir()
    (programs / "cargo").write_text('#!/bin/sh\necho "cargo 1.63.0 (fd9c4297c 2022-07-01)"\n')
    (programs / "cargo").chmod(0o755)
    output.mkdir()
    made, said = build("wheel", output, PATH=str(programs))
    assert made.name.endswith("-py3-none-any.whl")
    assert "found 1.63.0" in said


def test_the_crate_of_the_driver_is_complete(tmp_path: Path) -> None:
    """What crates.io asks for is there, and no file that lies outside the crate is needed."""
    package = tomllib.loads((ROOT / "driver" / "Cargo.toml").read_text())["package"]
    assert {"license", "description", "repository", "readme", "rust-version"} <= package.keys()
    environment = {**os.environ, "CARGO_TARGET_DIR": str(tmp_path)}
    done = subprocess.run(
        ["cargo", "package", "--list", "--allow-dirty", "--offline"],
        check=True, cwd=ROOT / "driver", capture_output=True, text=True, env=environment,
    )  # fmt: skip
    assert done.stderr == ""
    files = done.stdout.split()
    assert {"Cargo.toml", "Cargo.lock", "LICENSE", "README.md", "preload/files.c"} <= set(files)
    outside = re.compile(r"(?:Cargo|LICENSE|README|src/|preload/|\.cargo_vcs_info)")
    assert [file for file in files if not outside.match(file)] == []
