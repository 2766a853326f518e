"""`lsmtune doctor`: what this machine and these engine libraries are good for."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import psutil
import typer
from rich.console import Console
from rich.text import Text

from lsmtune.cli import engines as engine_list
from lsmtune.cli import machine
from lsmtune.engines.libraries import library_warnings
from lsmtune.engines.names import ENGINE_KINDS
from lsmtune.errors import ExitStatus, InputError
from lsmtune.runners.driver_binary import find_driver
from lsmtune.units import format_bytes

# A study of the default sizes writes a few GiB; two runs may be on the disk at once.
_FREE_BYTES_WANTED = 10 * 2**30
_FREE_BYTES_NEEDED = 1 * 2**30
_STEAL_SHARE_MAX = 0.02
_STEAL_WINDOW_S = 0.5
_SLOW_CLOCKS = ("acpi_pm", "hpet", "jiffies", "refined-jiffies")
_MEMORY_FILESYSTEMS = ("tmpfs", "ramfs")
_REMOTE_FILESYSTEMS = ("nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "ceph")


class Level(StrEnum):
    """How much a finding matters."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    PROBLEM = "problem"


_COLOURS = {Level.OK: "green", Level.NOTE: "cyan", Level.WARNING: "yellow", Level.PROBLEM: "red"}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at, and what to do about it (empty: nothing)."""

    level: Level
    subject: str
    text: str
    next_step: str = ""


def register(app: typer.Typer) -> None:
    """Add the `doctor` command to `app`."""
    app.command("doctor")(_doctor)


def _doctor(
    directory: Annotated[Path, typer.Option("--dir", help="Where studies will be.")] = Path(),
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Say what this machine and its engine libraries are good for, and what to do about it."""
    findings = list(examine(directory.absolute()))
    if as_json:
        print(json.dumps({"findings": [asdict(f) for f in findings]}, indent=2))
    else:
        console = Console(highlight=False, soft_wrap=True)
        for finding in findings:
            console.print(_line(finding))
    if any(f.level is Level.PROBLEM for f in findings):
        raise typer.Exit(ExitStatus.FAILED)


def examine(directory: Path) -> Iterator[Finding]:
    """Every finding, for studies kept in `directory`."""
    yield driver_finding()
    yield from engine_findings(engine_list.collect())
    yield from disk_findings(directory)
    yield from memory_findings()
    yield from cpu_findings()
    yield from quiet_findings()


def driver_finding() -> Finding:
    """Whether there is a driver."""
    try:
        return Finding(Level.OK, "driver", str(find_driver()))
    except InputError as error:
        return Finding(Level.PROBLEM, "driver", str(error), "make setup")


def engine_findings(listing: engine_list.Listing) -> Iterator[Finding]:
    """The library that each engine would run with, and what is wrong with others."""
    for name in ENGINE_KINDS:
        step = f"lsmtune engines install {name}"
        found = [x for x in listing.libraries if x.identity.name == name]
        if not found:
            yield Finding(Level.WARNING, name, "no library is known", step)
            continue
        library = found[0]
        identity = library.identity
        facts = f"{identity.version or 'version not known'}, {identity.build.value}, "
        facts += f"compressions {' '.join(library.compressions) or 'not known'}, {library.path}"
        warned = library_warnings(library)
        level = Level.WARNING if warned else Level.OK
        yield Finding(level, name, facts, step if warned else "")
        if library.compressions == ("none",):
            why = "this library compresses nothing, so measurements without compression only"
            yield Finding(Level.NOTE, name, why, step)
    shown = [w for x in listing.libraries for w in library_warnings(x)]
    for warning in listing.warnings:
        if warning not in shown:
            text, _, step = warning.partition("; next step: ")
            yield Finding(Level.WARNING, "engines", text, step)


def disk_findings(directory: Path) -> Iterator[Finding]:
    """The filesystem of `directory`, its device, and the space that is left."""
    subject = "disk"
    if not directory.is_dir() or not os.access(directory, os.W_OK | os.X_OK):
        why = "not a folder that can be written to"
        yield Finding(Level.PROBLEM, subject, f"{directory}: {why}", "choose another with --dir")
        return
    mount = machine.mount_of(directory.resolve())
    if mount is None:
        yield Finding(Level.NOTE, subject, f"{directory}: filesystem not known")
    else:
        facts = f"{directory}: {mount.filesystem} on {mount.device}"
        step = "choose a folder on a local disk with --dir"
        if mount.filesystem in _MEMORY_FILESYSTEMS:
            why = f"{facts} is memory: flushes and syncs cost nothing there"
            yield Finding(Level.WARNING, subject, why, step)
        elif mount.filesystem in _REMOTE_FILESYSTEMS:
            yield Finding(Level.WARNING, subject, f"{facts} is on the network", step)
        else:
            yield Finding(Level.OK, subject, facts)
    free = psutil.disk_usage(str(directory)).free
    text, step = f"{format_bytes(free)} free", "free some space, or choose another with --dir"
    if free < _FREE_BYTES_NEEDED:
        yield Finding(Level.PROBLEM, subject, text, step)
    elif free < _FREE_BYTES_WANTED:
        yield Finding(Level.WARNING, subject, text, step)
    else:
        yield Finding(Level.OK, subject, text)


def memory_findings() -> Iterator[Finding]:
    """Memory of the machine, and the limit of this process's control group."""
    memory = psutil.virtual_memory()
    facts = f"{format_bytes(memory.total)}, {format_bytes(memory.available)} available"
    limit = machine.memory_limit_bytes()
    if limit is None or limit >= memory.total:
        yield Finding(Level.OK, "memory", f"{facts}, no lower limit for this process")
        return
    why = f"{facts}, but limited to {format_bytes(limit)} here (page cache included)"
    yield Finding(Level.NOTE, "memory", why, "keep caches and databases well below the limit")


def cpu_findings() -> Iterator[Finding]:
    """Processors that may be used, and how their frequency is governed."""
    usable: float = len(os.sched_getaffinity(0))
    facts = f"{usable} of {os.cpu_count()} processors"
    quota = machine.cpu_limit()
    if quota is not None and quota < usable:
        usable, facts = quota, f"{facts}, limited to the time of {quota:.2g}"
    if usable < 2:
        why = f"{facts}: compaction competes with the workload"
        yield Finding(Level.WARNING, "cpu", why, "use a machine with at least 2 processors")
    else:
        yield Finding(Level.OK, "cpu", facts)
    governor = machine.governor()
    if governor is None:
        yield Finding(Level.NOTE, "governor", "not visible here (usual in a virtual machine)")
    elif governor == "performance":
        yield Finding(Level.OK, "governor", governor)
    else:
        step = "cpupower frequency-set --governor performance"
        yield Finding(Level.WARNING, "governor", f"{governor}: the clock rate will vary", step)


def quiet_findings() -> Iterator[Finding]:
    """What else takes processor time, and what time is read from."""
    before = machine.cpu_times()
    time.sleep(_STEAL_WINDOW_S)
    after = machine.cpu_times()
    processors = len(os.sched_getaffinity(0))
    load = machine.load_average()
    if load is not None:
        busy = load > processors / 2
        text = f"{load:.2f} over the last minute, on {processors} processors"
        step = "stop other programs, or expect wider intervals"
        yield Finding(Level.WARNING if busy else Level.OK, "load", text, step if busy else "")
    if before is not None and after is not None and after.total > before.total:
        share = machine.steal_share(before, after)
        stolen = share > _STEAL_SHARE_MAX
        step = "use a machine that is not shared, or more pairs" if stolen else ""
        text = f"{100 * share:.1f} % of processor time taken by the host"
        yield Finding(Level.WARNING if stolen else Level.OK, "steal", text, step)
    clock = machine.clock_source()
    if clock is None:
        yield Finding(Level.NOTE, "clock", "source not visible here")
    elif clock in _SLOW_CLOCKS:
        why = f"{clock} is slow to read, which every latency then contains"
        yield Finding(Level.WARNING, "clock", why, "boot with clocksource=tsc if it is stable")
    else:
        yield Finding(Level.OK, "clock", clock)


def _line(finding: Finding) -> Text:
    step = f"; next step: {finding.next_step}" if finding.next_step else ""
    return Text.assemble(
        (f"{finding.level.value:8}", _COLOURS[finding.level]),
        f"{finding.subject}: {finding.text}{step}",
    )
