"""What a wheel has beside Python: the driver and, made by `make wheel`, the engine libraries.

`make wheel` (scripts/wheel.py) compiles these parts for a platform and names their folder in
LSMTUNE_WHEEL_PARTS; the folder's name is the platform's, such as manylinux2014_x86_64. Any other
wheel, as pip makes one from the sdist, gets the driver that this machine's cargo compiles. Where
there is none, this is said and the wheel is Python alone: it then takes a driver from PATH.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PARTS_VARIABLE = "LSMTUNE_WHEEL_PARTS"
# Where the parts lie in the wheel; found by their names (`packaged_file`).
FOLDER = "lsmtune/packaged"


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the parts to a wheel, and names the platform that they are for."""

    compiled: str | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """As in the base class."""
        if version == "editable":  # the Makefile compiles the driver of a checkout
            return
        if PARTS_VARIABLE in os.environ:
            parts = Path(os.environ[PARTS_VARIABLE])
            platform = parts.name
        else:
            self.compiled = tempfile.mkdtemp(prefix="lsmtune-driver-")
            parts = Path(self.compiled)
            lacks = compile_parts(Path(self.root), parts)
            if lacks:
                self.app.display_warning(f"lsmtune: {lacks}")
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        files = sorted(path for path in parts.iterdir() if path.is_file())
        if not files:
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        build_data["force_include"] |= {str(path): f"{FOLDER}/{path.name}" for path in files}

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """As in the base class."""
        del version, build_data, artifact_path
        if self.compiled is not None:
            shutil.rmtree(self.compiled)


def compile_parts(root: Path, folder: Path) -> str:
    """Compile the driver, its Snappy and the library that notes changes of files, for this one.

    Returns what cannot be done here and why, or nothing. A compiler that fails ends the build.
    """
    if sys.platform != "linux":
        return "the driver runs on Linux alone: this wheel has none"
    manifest = tomllib.loads((root / "driver" / "Cargo.toml").read_text(encoding="utf-8"))
    needed = manifest["package"]["rust-version"]
    found = _cargo_version()
    if found is None or _numbers(found) < _numbers(needed):
        return (
            f"this wheel has no driver: cargo {needed} or newer is needed, found {found or 'none'}"
            "; next step: install Rust with rustup and build again, or take a wheel that has one"
        )
    install = ["cargo", "install", "--quiet", "--locked", "--no-track", "--path", "driver"]
    with tempfile.TemporaryDirectory(prefix="lsmtune-cargo-") as target:
        environment = {"CARGO_TARGET_DIR": target, **os.environ}
        install += ["--root", str(folder)]
        subprocess.run(install, check=True, cwd=root, env=environment)
        snappy = ["cargo", "build", "--quiet", "--release", "--locked"]
        snappy += ["--manifest-path", "driver/preload/snappy/Cargo.toml", "--target-dir", target]
        subprocess.run(snappy, check=True, cwd=root, env=environment)
        built = Path(target) / "release" / "liblsmtune_snappy.so"
        shutil.copy(built, folder / "lsmtune-snappy.so")
    (folder / "bin" / "lsmtune-driver").rename(folder / "lsmtune-driver")
    if shutil.which("cc") is None:
        return "no C compiler: a lsmtune from this wheel computes no power losses"
    library = str(folder / "lsmtune-files.so")
    source = str(root / "driver" / "preload" / "files.c")
    compiler = ["cc", "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl", "-lpthread"]
    subprocess.run(compiler, check=True)
    return ""


def _cargo_version() -> str | None:
    """The version of the cargo on PATH; None where there is none that works."""
    try:
        done = subprocess.run(["cargo", "--version"], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    found = re.search(r"\d+\.\d+\.\d+", done.stdout)
    return found and found[0]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
