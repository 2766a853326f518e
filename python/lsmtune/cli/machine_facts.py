"""The machine in a few words, noted in a study so that its report can say where it was measured."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import psutil

from lsmtune.cli.machine import (
    ROOT,
    clock_source,
    cpu_limit,
    governor,
    load_average,
    memory_limit_bytes,
    mount_of,
)
from lsmtune.units import format_bytes


def machine_facts(folder: Path, root: Path = ROOT) -> dict[str, str]:
    """Names and values for a report; what the machine does not tell is left out.

    `folder` is where the study's databases are made.
    """
    mount = mount_of(folder.resolve(), root)
    limit_bytes, quota, load = memory_limit_bytes(root), cpu_limit(root), load_average(root)
    facts = {
        "processor": _processor(root),
        "processors": str(os.cpu_count()),
        "processor quota": None if quota is None else f"{quota:g}",
        "governor": governor(root),
        "memory": format_bytes(psutil.virtual_memory().total),
        "memory limit": None if limit_bytes is None else format_bytes(limit_bytes),
        "filesystem": None if mount is None else f"{mount.filesystem} on {mount.device}",
        "kernel": platform.release(),
        "clock source": clock_source(root),
        "load average at the start": None if load is None else f"{load:.2f}",
    }
    return {name: value for name, value in facts.items() if value is not None}


def _processor(root: Path) -> str | None:
    try:
        lines = (root / "proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, None)
