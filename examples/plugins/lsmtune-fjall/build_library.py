"""The step of the build that compiles the library; cargo's own folder keeps what it compiled."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LIBRARY = "libfjall_lsmtune.so"


class LibraryHook(BuildHookInterface):
    """Adds the library to the wheel, which is then one for this kind of machine."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Compile it, and say where it goes."""
        folder = Path(self.root)
        target = Path(os.environ.get("CARGO_TARGET_DIR", folder / "target"))
        command = ["cargo", "build", "--quiet", "--release", "--locked"]
        environment = {**os.environ, "CARGO_TARGET_DIR": str(target)}
        subprocess.run(command, cwd=folder, env=environment, check=True)
        built = target / "release" / LIBRARY
        build_data["force_include"][str(built)] = f"lsmtune_fjall/{LIBRARY}"
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
