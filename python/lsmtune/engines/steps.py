"""One step of a download or a build: an external program, its log, its progress, its failure."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import psutil

from lsmtune.errors import LsmtuneError

Progress = Callable[[str], None]

_TAIL_LINES = 4
_PERCENT = re.compile(r"^\[\s*(\d+)%\]")
_PERCENT_STEP = 10

# What to install where a program is missing, as Debian calls it.
_PACKAGES = {"mvn": "maven", "cmake": "cmake", "c++": "g++", "cargo": ""}


def require_programs(names: Sequence[str], purpose: str) -> None:
    """Raises LsmtuneError, naming what to install, unless every program is on PATH."""
    missing = [name for name in names if shutil.which(name) is None]
    if not missing:
        return
    packages = [_PACKAGES[name] for name in missing if _PACKAGES.get(name)]
    steps = [f"apt-get install {' '.join(packages)}"] if packages else []
    if "cargo" in missing:
        steps.append("install Rust 1.88 or newer with rustup")
    raise LsmtuneError(
        f"{', '.join(missing)} not found, needed {purpose}; next step: {' and '.join(steps)}"
    )


def run_step(
    what: str,
    command: Sequence[str],
    log: IO[str],
    progress: Progress,
    *,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Run `command`, its output into `log`; percentages in the output become progress lines.

    `what` is the step in words ("building LevelDB"). Raises LsmtuneError with the last lines
    of the output when the program fails. The program is killed when this call is interrupted.
    """
    progress(what)
    log.write(f"$ {' '.join(command)}\n")
    tail: list[str] = []
    shown = 0
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, **(environment or {})},
    ) as process:
        try:
            for line in process.stdout or ():
                log.write(line)
                tail = [*tail, line.strip()][-_TAIL_LINES:] if line.strip() else tail
                percent = _PERCENT.match(line)
                if percent and int(percent.group(1)) >= shown + _PERCENT_STEP:
                    shown = int(percent.group(1))
                    progress(f"{what}: {shown} %")
        except BaseException:
            kill_tree(process.pid)
            raise
    log.flush()
    if process.returncode != 0:
        raise LsmtuneError(
            f"{what} failed with status {process.returncode}: {' | '.join(tail) or 'no output'}; "
            f"next step: read the log {log.name}"
        )


def kill_tree(pid: int) -> None:
    """Kill process `pid` and all that it started: `make` alone would leave its compilers."""
    try:
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    for member in family:
        with suppress(psutil.NoSuchProcess):
            member.kill()


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0))


def open_log(folder: Path, name: str) -> IO[str]:
    """A new log called `name` in `folder`, in place of the last one of that name."""
    folder.mkdir(parents=True, exist_ok=True)
    return (folder / f"{name}.log").open("w", encoding="utf-8")
