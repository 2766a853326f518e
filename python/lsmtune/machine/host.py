"""What the kernel says of processors in small files below /proc and /sys, where psutil does not.

None is what the kernel does not say. Every reader of this room takes the folder that stands for
`/`, so that tests can hand it a made-up machine.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

ROOT = Path("/")
_CPU = "sys/devices/system/cpu"
_SOME = re.compile(r"^some .*?\bavg60=(\d+(?:\.\d+)?)", re.M)


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


def reason(error: OSError) -> str:
    """What the kernel refused, in a clause."""
    return os.strerror(error.errno).lower() if error.errno else str(error)


def process_began(pid: int, root: Path = ROOT) -> int | None:
    """When process `pid` began, in ticks since the machine started; None where it is not told.

    A number is given again, and sooner in a container, but not to two that began at one time: field
    22 of proc_pid_stat(5), whose second may hold blanks and brackets.
    """
    stat = text_of(root / "proc" / str(pid) / "stat")
    return None if stat is None else int(stat.rpartition(")")[2].split()[19])


def usable_cores() -> tuple[int, ...]:
    """The cores that this process may use, by number."""
    return tuple(sorted(os.sched_getaffinity(0)))


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


def disk_waiting_share(root: Path = ROOT) -> float | None:
    """The share of the last minute in which some program waited for a disk.

    From /proc/pressure (Linux kernel documentation, `accounting/psi.rst`); None where the kernel
    does not account for it.
    """
    average = _SOME.search(text_of(root / "proc/pressure/io") or "")
    return None if average is None else float(average[1]) / 100.0
