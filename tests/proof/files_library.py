"""The library that notes what a program does to files, compiled from this checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lsmtune.proof.file_log import Record, read_records

SOURCE = Path(__file__).parents[2] / "driver" / "preload" / "files.c"


@pytest.fixture(scope="session")
def files_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler here to make the library that notes changes of files")
    library = tmp_path_factory.mktemp("files") / "lsmtune-files.so"
    command = [compiler, "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", str(SOURCE)]
    subprocess.run([*command, "-ldl", "-lpthread", "-o", str(library)], check=True)
    return library


def noted(library: Path, path: Path, code: str, fault: str = "") -> tuple[list[Record], Path]:
    """What Python code does to `path / "db"`, its current folder, which it finds empty."""
    folder, log = path / "db", path / "files.log"
    folder.mkdir()
    environment = {
        **os.environ,
        "LD_PRELOAD": str(library),
        "LSMTUNE_FILES_BELOW": str(folder),
        "LSMTUNE_FILES_LOG": str(log),
        "LSMTUNE_FILES_FAULT": fault,
    }
    command = [sys.executable, "-I", "-S", "-c", code]
    subprocess.run(command, env=environment, cwd=folder, check=True)
    return read_records(log), folder
