"""What the control groups of this process allow it: memory and processor time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lsmtune.machine.group_folders import groups_v1, groups_v2
from lsmtune.machine.kernel_files import ROOT, number_of, text_of

# Version 1 has no word for "no limit"; it shows the largest page-aligned number.
_NO_LIMIT_BYTES = 2**60


@dataclass(frozen=True)
class MemoryLimit:
    """The limit that binds this process, and what its group uses of it, page cache included."""

    limit_bytes: int
    usage_bytes: int | None


def memory_limit(root: Path = ROOT) -> MemoryLimit | None:
    """The least memory limit of this process's control groups, versions 1 and 2; None for none."""
    names = ("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")
    found = []
    for folders, (limit, usage) in zip(
        (groups_v2(root), groups_v1("memory", root)), names, strict=True
    ):
        for folder in folders:
            limit_bytes = number_of(folder / limit)
            if limit_bytes is not None and limit_bytes < _NO_LIMIT_BYTES:
                found.append(MemoryLimit(limit_bytes, number_of(folder / usage)))
    return min(found, key=lambda each: each.limit_bytes, default=None)


def cpu_limit(root: Path = ROOT) -> float | None:
    """The least processor quota of this process's control groups, in processors."""
    found = []
    for folder in groups_v2(root):
        words = (text_of(folder / "cpu.max") or "").split()
        if len(words) == 2 and words[0].isdecimal():
            found.append(int(words[0]) / int(words[1]))
    for folder in groups_v1("cpu", root):
        quota, period = number_of(folder / "cpu.cfs_quota_us"), number_of(
            folder / "cpu.cfs_period_us"
        )
        if quota is not None and quota > 0 and period:
            found.append(quota / period)
    return min(found, default=None)
