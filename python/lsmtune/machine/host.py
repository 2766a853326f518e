"""What the kernel says in small files below /proc and /sys; None is what it does not say.

Every reader of this room takes the folder that stands for `/`, so that tests can hand it a made-up
machine.
"""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/")


def text_of(path: Path) -> str | None:
    """The text of a file without the white space around it; None where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def number_of(path: Path) -> int | None:
    """The whole number in a file; None where there is none, as in `max`."""
    text = text_of(path)
    return int(text) if text and text.lstrip("-").isdecimal() else None


def field_of(path: Path, name: str) -> int | None:
    """The number after `name` in a file of lines `name number`."""
    for line in (text_of(path) or "").splitlines():
        words = line.split()
        if len(words) == 2 and words[0] == name and words[1].isdecimal():
            return int(words[1])
    return None


# ----------
# Processors: how many may be used, how they are clocked, and who else takes their time.

_CPU = "sys/devices/system/cpu"


@dataclass(frozen=True)
class CpuTimes:
    """Ticks since boot over all processors: stolen by the host, and in all."""

    steal: int
    total: int


def cores_usable() -> int:
    """Processors that this process may run on."""
    return len(os.sched_getaffinity(0))


def cores_present() -> int | None:
    """Processors of the machine."""
    return os.cpu_count()


def governors(root: Path = ROOT) -> tuple[str, ...]:
    """The frequency governors in force, each once; virtual machines usually have none."""
    files = (root / _CPU).glob("cpu[0-9]*/cpufreq/scaling_governor")
    return tuple(sorted({text for file in files if (text := text_of(file))}))


def cores_share_units(root: Path = ROOT) -> bool | None:
    """Whether two processors are threads of one core (simultaneous multithreading) anywhere."""
    active = text_of(root / _CPU / "smt/active")
    return None if active not in ("0", "1") else active == "1"


def processor_name(root: Path = ROOT) -> str | None:
    """What the first processor is called."""
    for line in (text_of(root / "proc/cpuinfo") or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return None


def clock_source(root: Path = ROOT) -> str | None:
    """The kernel's clock source."""
    return text_of(root / "sys/devices/system/clocksource/clocksource0/current_clocksource")


def load_average(root: Path = ROOT) -> float | None:
    """Runnable and waiting threads, averaged over a minute."""
    words = (text_of(root / "proc/loadavg") or "").split()
    return float(words[0]) if words else None


def cpu_times(root: Path = ROOT) -> CpuTimes | None:
    """Processor time so far. Fields as in proc(5): steal is the eighth; guest is in user."""
    for line in (text_of(root / "proc/stat") or "").splitlines():
        words = line.split()
        if words[:1] == ["cpu"] and len(words) >= 9:
            ticks = [int(word) for word in words[1:9]]
            return CpuTimes(ticks[7], sum(ticks))
    return None


def steal_share(before: CpuTimes, after: CpuTimes) -> float:
    """The share of processor time between two readings that the host took; NaN for no time."""
    total = after.total - before.total
    return (after.steal - before.steal) / total if total > 0 else math.nan


# ----------
# How much programs wait for what they share: the kernel's pressure stall information.

RESOURCES = ("cpu", "io", "memory")
_SOME = re.compile(r"^some .*?\bavg60=(\d+(?:\.\d+)?)", re.M)


def waiting_share(resource: str, root: Path = ROOT) -> float | None:
    """The share of the last minute in which some program waited for one of RESOURCES.

    From /proc/pressure (Linux kernel documentation, `accounting/psi.rst`); None where the kernel
    does not account for it.
    """
    found = _SOME.search(text_of(root / "proc/pressure" / resource) or "")
    return None if found is None else float(found[1]) / 100.0
