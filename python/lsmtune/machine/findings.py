"""What `lsmtune doctor` finds out about this machine, and what reports say of it in a few words."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import psutil

from lsmtune.machine import host
from lsmtune.machine.cgroup import cpu_limit, memory_group_obstacle, memory_limit
from lsmtune.machine.filesystem import Mount, mount_of, page_cache_obstacles
from lsmtune.machine.host import ROOT
from lsmtune.units import format_bytes

# A study of the default sizes writes a few GiB; two runs may be on the disk at once.
_FREE_BYTES_WANTED = 10 * 2**30
_FREE_BYTES_NEEDED = 1 * 2**30
_STEAL_SHARE_MAX = 0.02
_STEAL_WINDOW_S = 0.5
_WAITING_SHARE_MAX = 0.05
_SLOW_CLOCKS = ("acpi_pm", "hpet", "jiffies", "refined-jiffies")
_IN_MEMORY = ("tmpfs", "ramfs")
_REMOTE = ("nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "fuse.sshfs", "ceph")
# Options that change what a write or a sync costs: sync(8) semantics of mount(8), and the
# barriers and journal modes of ext4(5).
_COSTLY = ("sync", "dirsync", "data=journal")
_UNSAFE = ("nobarrier", "barrier=0")
_OTHER_FOLDER = "choose a folder on a local disk with --dir"
# How each policy that keeps the page cache out is applied and checked.
_HOW = {
    "cold": "cold (files are dropped, and each page is checked)",
    "direct": "direct (RocksDB; the filesystem takes O_DIRECT)",
}


class Level(StrEnum):
    """How much a finding matters."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at, and what to do about it (empty: nothing)."""

    level: Level
    subject: str
    text: str
    next_step: str = ""


def disk_findings(directory: Path, root: Path = ROOT) -> Iterator[Finding]:
    """The filesystem of `directory`, its device, the space that is left, and the page cache."""
    subject = "disk"
    if not directory.is_dir() or not os.access(directory, os.W_OK | os.X_OK):
        why = "not a folder that can be written to"
        yield Finding(Level.PROBLEM, subject, f"{directory}: {why}", "choose another with --dir")
        return
    mount = mount_of(directory.resolve(), root)
    if mount is None:
        yield Finding(Level.NOTE, subject, f"{directory}: filesystem not known")
    else:
        yield from mount_findings(mount, directory)
    free = shutil.disk_usage(directory).free
    text, step = f"{format_bytes(free)} free", "free some space, or choose another with --dir"
    if free < _FREE_BYTES_NEEDED:
        yield Finding(Level.PROBLEM, subject, text, step)
        return
    yield _unless(subject, text, step, bad=free < _FREE_BYTES_WANTED)
    yield page_cache_finding(directory)


def mount_findings(mount: Mount, directory: Path) -> Iterator[Finding]:
    """What kind of filesystem it is, and which of its options bear on measurements."""
    subject, facts = "disk", f"{directory}: {mount.filesystem} on {mount.device}"
    if mount.filesystem in _IN_MEMORY:
        why = f"{facts} is memory: flushes and syncs cost nothing there"
        yield Finding(Level.WARNING, subject, why, _OTHER_FOLDER)
    elif mount.filesystem in _REMOTE:
        yield Finding(Level.WARNING, subject, f"{facts} is on another machine", _OTHER_FOLDER)
    elif mount.rotational:
        why = f"{facts}, which says that it turns (disks of virtual machines often do)"
        yield Finding(Level.NOTE, subject, why, "expect reads to cost milliseconds if it does")
    else:
        yield Finding(Level.OK, subject, facts)
    costly = [option for option in mount.options if option in _COSTLY]
    unsafe = [option for option in mount.options if option in _UNSAFE]
    if costly:
        why = f"mounted with {', '.join(costly)}: every write costs more than usual"
        yield Finding(Level.WARNING, subject, why, "measure on a mount like that of production")
    if unsafe:
        why = f"mounted with {', '.join(unsafe)}: a sync costs less than it should"
        yield Finding(Level.WARNING, subject, why, "mount it with barriers")


def page_cache_finding(directory: Path) -> Finding:
    """Which of the page-cache policies of a workload can be had in `directory`."""
    subject = "page cache"
    try:
        obstacles = page_cache_obstacles(directory)
    except OSError as error:
        return Finding(Level.NOTE, subject, f"{directory}: cannot be tried: {error.strerror}")
    missing = [f"not {name}: {why}" for name, why in obstacles.items() if why]
    can = ["warm", *(_HOW[name] for name, why in obstacles.items() if not why)]
    text = "; ".join([", ".join(can), *missing])
    level, step = (Level.NOTE, _OTHER_FOLDER) if missing else (Level.OK, "")
    return Finding(level, subject, text, step)


def memory_findings(root: Path = ROOT) -> Iterator[Finding]:
    """Memory of the machine, the limit of this process, and how a run is held to its own."""
    memory = psutil.virtual_memory()
    facts = f"{format_bytes(memory.total)}, {format_bytes(memory.available)} available"
    limit = memory_limit(root)
    if limit is None or limit.limit_bytes >= memory.total:
        yield Finding(Level.OK, "memory", f"{facts}, no lower limit for this process")
    else:
        used = "" if limit.usage_bytes is None else f", {format_bytes(limit.usage_bytes)} used"
        here = f"limited to {format_bytes(limit.limit_bytes)} here{used} (page cache included)"
        step = "keep caches and databases well below the limit"
        yield Finding(Level.NOTE, "memory", f"{facts}, but {here}", step)
    obstacle = memory_group_obstacle(root)
    if not obstacle:
        yield Finding(Level.OK, "memory limit", "the kernel holds each run by a control group")
        return
    why = f"runs are watched and killed when they pass it, not held: {obstacle}"
    step = "for an exact limit start lsmtune as root, or by `systemd-run --user --scope`"
    yield Finding(Level.NOTE, "memory limit", why, step)


def cpu_findings(root: Path = ROOT) -> Iterator[Finding]:
    """Processors that may be used, and how their frequency is governed."""
    usable: float = len(host.usable_cores())
    facts = f"{usable} of {os.cpu_count()} processors"
    quota = cpu_limit(root)
    if quota is not None and quota < usable:
        usable, facts = quota, f"{facts}, limited to the time of {quota:.4g}"
    if host.cores_share_units(root):
        facts += ", two to a core"
    facts += ": compaction competes with the workload" if usable < 2 else ""
    yield _unless("cpu", facts, "use a machine with at least 2 processors", bad=usable < 2)
    governors = host.governors(root)
    if not governors:
        yield Finding(Level.NOTE, "governor", "not visible here (usual in a virtual machine)")
    else:
        varies = governors != ("performance",)
        text = f"{', '.join(governors)}{': the clock rate will vary' if varies else ''}"
        step = "cpupower frequency-set --governor performance"
        yield _unless("governor", text, step, bad=varies)


def quiet_findings(root: Path = ROOT) -> Iterator[Finding]:
    """What else takes processors and disks of this machine; it watches for half a second."""
    stolen = psutil.cpu_times_percent(_STEAL_WINDOW_S).steal / 100
    load, processors = os.getloadavg()[0], len(host.usable_cores())
    text = f"{load:.2f} over the last minute, on {processors} processors"
    step = "stop other programs, or expect wider intervals"
    yield _unless("load", text, step, bad=load > processors / 2)
    waiting = host.disk_waiting_share(root)
    if waiting is not None:
        text = f"some program waited for a disk in {100 * waiting:.0f} % of the last minute"
        step = "wait until the disks are idle, or expect wider intervals"
        yield _unless("disk load", text, step, bad=waiting > _WAITING_SHARE_MAX)
    text = f"{100 * stolen:.1f} % of processor time taken by the host"
    step = "use a machine that is not shared, or more pairs"
    yield _unless("steal", text, step, bad=stolen > _STEAL_SHARE_MAX)


def _unless(subject: str, text: str, next_step: str, *, bad: bool) -> Finding:
    """A finding that is fine unless it is `bad`."""
    level, step = (Level.WARNING, next_step) if bad else (Level.OK, "")
    return Finding(level, subject, text, step)


def clock_finding(root: Path = ROOT) -> Finding:
    """What time is read from."""
    clock = host.clock_source(root)
    if clock is None:
        return Finding(Level.NOTE, "clock", "source not visible here")
    is_slow = clock in _SLOW_CLOCKS
    text = f"{clock}{' is slow to read, which every latency then contains' if is_slow else ''}"
    return _unless("clock", text, "boot with clocksource=tsc if it is stable", bad=is_slow)


# --- the machine in a few words

OF_THE_MOMENT = "load average at the start"


def machine_facts(folder: Path, root: Path = ROOT) -> dict[str, str]:
    """Names and values for a report; what the machine does not tell is left out.

    `folder` is where the study's databases are made.
    """
    mount = mount_of(folder.resolve(), root)
    limit, quota = memory_limit(root), cpu_limit(root)
    facts = {
        "processor": host.processor_name(root),
        "processors": str(os.cpu_count()),
        "processor quota": None if quota is None else f"{quota:g}",
        "governor": ", ".join(host.governors(root)) or None,
        "memory": format_bytes(psutil.virtual_memory().total),
        "memory limit": None if limit is None else format_bytes(limit.limit_bytes),
        "filesystem": None if mount is None else f"{mount.filesystem} on {mount.device}",
        "kernel": platform.release(),
        "clock source": host.clock_source(root),
        OF_THE_MOMENT: f"{os.getloadavg()[0]:.2f}",
    }
    return {name: value for name, value in facts.items() if value is not None}
