"""Steps of a download or a build, and the folder in which its library is kept."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from lsmtune.engines.library import Library, engines_folder, file_sha256
from lsmtune.errors import LsmtuneError
from lsmtune.machine.files import MARKER, file_lock, is_owned, temporary_folder, write_whole

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


def run_step(what: str, command: Sequence[str], log: IO[str], progress: Progress) -> None:
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
        start_new_session=True,
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
    """Kill process `pid` and its group: `make` alone would leave its compilers.

    Not a list of its children: psutil takes no child for one that seems older than its parent, as
    when the time since the boot is rounded the other way meanwhile.
    """
    for kill in (os.killpg, os.kill):
        with suppress(ProcessLookupError):
            kill(pid, signal.SIGKILL)


def open_log(folder: Path, name: str) -> IO[str]:
    """A new log called `name` in `folder`, in place of the last one of that name."""
    folder.mkdir(parents=True, exist_ok=True)
    return (folder / f"{name}.log").open("w", encoding="utf-8")


# --- whole or not at all: a library is put into its folder when all else is done
#
# A folder that lsmtune may delete bears the marker file. `installed.json` says what the folder
# holds, with the library's checksum, so that a later command can tell that it is whole.

_RECORD = "installed.json"

# Raises LsmtuneError for a library that must not be installed.
Accept = Callable[[Library], object]


def installed(name: str) -> Library | None:
    """What the folder `name` holds, or None when it is absent or no longer whole."""
    folder = engines_folder() / name
    try:
        record = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
        library = folder / record["file"]
        if file_sha256(library) != record["sha256"]:
            return None
        promised = tuple(record.get("compressions", ()))
        return Library.unprobed(library, record["engine_name"], record["origin"], promised=promised)
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None


def unregistered(registered: Collection[str]) -> tuple[str, ...]:
    """What is installed whole and not among the `registered` paths, each with the next step.

    A kill between an installation and its registration leaves such a folder.
    """
    names = [record.parent.name for record in sorted(engines_folder().glob(f"*/{_RECORD}"))]
    libraries = [one for one in map(installed, names) if one and str(one.path) not in registered]
    return tuple(
        f"{one.identity.name} library {one.path} is installed and not registered; next step: "
        f"lsmtune engines add {one.path}, or delete {one.path.parent}"
        for one in libraries
    )


def install_folder(
    name: str,
    engine_name: str,
    origin: str,
    fill: Callable[[Path], Path],
    accept: Accept,
    *,
    compressions: tuple[str, ...] = (),
    rebuild: bool = False,
) -> Library:
    """The folder `name`, made by `fill` unless it is already there, whole, and promises the same.

    `fill` gets a work folder and returns the library's path within it; only that file is
    kept, and only if `accept` takes it. A second process that wants the same folder waits for the
    first. With `rebuild` a folder that is there is made anew and replaced.

    Raises LsmtuneError when a folder of that name is not ours, and whatever `fill` and `accept`
    raise; then nothing is left behind, and what was there before is still there.
    """
    root = engines_folder()
    root.mkdir(parents=True, exist_ok=True)
    folder = root / name
    with file_lock(root / f".{name}.lock"):
        present = installed(name)
        if present is not None and present.compressions == compressions and not rebuild:
            return present
        if folder.exists() and not is_owned(folder):
            why = f"has no {MARKER} file, so it was not made by lsmtune and is left alone"
            raise LsmtuneError(f"{folder}: {why}; next step: move it away")
        with temporary_folder("install", root) as work:
            library = fill(work)
            accept(Library.unprobed(library, engine_name, origin, promised=compressions))
            folder.mkdir(exist_ok=True)
            (folder / MARKER).touch()
            kept = library.resolve().replace(folder / library.name)
        record = {
            "engine_name": engine_name,
            "origin": origin,
            "file": kept.name,
            "sha256": file_sha256(kept),
            "compressions": compressions,
        }
        write_whole(folder / _RECORD, json.dumps(record, indent=2) + "\n")
    return Library.unprobed(kept, engine_name, origin, promised=compressions)
