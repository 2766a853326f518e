"""What this machine is, as far as it bears on measurements: read from /proc and /sys.

Every function takes the folder that stands for `/`, so that tests can hand it a made-up machine,
and returns None for what the machine does not tell.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/")

# cgroup version 1 has no word for "no limit"; it shows the largest page-aligned number.
_NO_LIMIT_BYTES = 2**60


@dataclass(frozen=True)
class CpuTimes:
    """Ticks since boot over all processors: stolen by the host, and in all."""

    steal: int
    total: int


@dataclass(frozen=True)
class Mount:
    """The filesystem that holds a path."""

    filesystem: str
    device: str
    mount_point: str


def memory_limit_bytes(root: Path = ROOT) -> int | None:
    """The tightest memory limit of this process's control groups, versions 1 and 2."""
    found = [_whole(p / "memory.max") for p in _cgroup_folders("", root)]
    found += [_whole(p / "memory.limit_in_bytes") for p in _cgroup_folders("memory", root)]
    limits = [limit for limit in found if limit is not None and limit < _NO_LIMIT_BYTES]
    return min(limits, default=None)


def cpu_limit(root: Path = ROOT) -> float | None:
    """The tightest processor quota of this process's control groups, in processors."""
    found = []
    for folder in _cgroup_folders("", root):
        words = (_text(folder / "cpu.max") or "").split()
        if len(words) == 2 and words[0].isdigit():
            found.append(int(words[0]) / int(words[1]))
    for folder in _cgroup_folders("cpu", root):
        quota, period = _whole(folder / "cpu.cfs_quota_us"), _whole(folder / "cpu.cfs_period_us")
        if quota is not None and quota > 0 and period:
            found.append(quota / period)
    return min(found, default=None)


def governor(root: Path = ROOT) -> str | None:
    """The frequency governor of the first processor; virtual machines have none."""
    return _text(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


def clock_source(root: Path = ROOT) -> str | None:
    """The kernel's clock source."""
    return _text(root / "sys/devices/system/clocksource/clocksource0/current_clocksource")


def load_average(root: Path = ROOT) -> float | None:
    """Runnable and waiting threads, averaged over a minute."""
    words = (_text(root / "proc/loadavg") or "").split()
    return float(words[0]) if words else None


def cpu_times(root: Path = ROOT) -> CpuTimes | None:
    """Processor time so far. Fields as in proc(5): steal is the eighth; guest is in user."""
    for line in (_text(root / "proc/stat") or "").splitlines():
        words = line.split()
        if words[:1] == ["cpu"] and len(words) >= 9:
            ticks = [int(word) for word in words[1:9]]
            return CpuTimes(ticks[7], sum(ticks))
    return None


def steal_share(before: CpuTimes, after: CpuTimes) -> float:
    """The share of processor time between two readings that the host took; NaN for no time."""
    total = after.total - before.total
    return (after.steal - before.steal) / total if total > 0 else math.nan


def mount_of(path: Path, root: Path = ROOT) -> Mount | None:
    """The filesystem of `path`: the deepest mount point above it, the last one mounted there."""
    best: Mount | None = None
    for line in (_text(root / "proc/self/mountinfo") or "").splitlines():
        left, _, right = line.partition(" - ")
        if len(left.split()) < 5 or len(right.split()) < 2:
            continue
        point = left.split()[4].replace("\\040", " ")
        filesystem, device = right.split()[:2]
        deeper = best is None or len(point) >= len(best.mount_point)
        if deeper and path.is_relative_to(point):
            best = Mount(filesystem, device, point)
    return best


def _cgroup_folders(controller: str, root: Path) -> Iterator[Path]:
    """Folders of this process's group and those above it, of a controller ('' is version 2)."""
    for line in (_text(root / "proc/self/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        if controller not in controllers.split(","):
            continue
        top = root / "sys/fs/cgroup" / controllers
        # Inside a container the path may be that of the host, which cannot be seen here: the
        # top folder is then the container's own group.
        group = Path(path)
        yield top
        for part in (group, *group.parents):
            folder = top / part.relative_to("/")
            if folder != top and folder.is_dir():
                yield folder


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _whole(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text and text.lstrip("-").isdigit() else None
