"""The machine in a few words, noted in a study so that its report can say where it was measured."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import psutil

from lsmtune.machine.cgroup import cpu_limit, memory_limit
from lsmtune.machine.filesystem import mount_of
from lsmtune.machine.host import (
    ROOT,
    clock_source,
    cores_present,
    governors,
    processor_name,
)
from lsmtune.units import format_bytes


def machine_facts(folder: Path, root: Path = ROOT) -> dict[str, str]:
    """Names and values for a report; what the machine does not tell is left out.

    `folder` is where the study's databases are made.
    """
    mount = mount_of(folder.resolve(), root)
    limit, quota = memory_limit(root), cpu_limit(root)
    facts = {
        "processor": processor_name(root),
        "processors": str(cores_present()),
        "processor quota": None if quota is None else f"{quota:g}",
        "governor": ", ".join(governors(root)) or None,
        "memory": format_bytes(psutil.virtual_memory().total),
        "memory limit": None if limit is None else format_bytes(limit.limit_bytes),
        "filesystem": None if mount is None else f"{mount.filesystem} on {mount.device}",
        "kernel": platform.release(),
        "clock source": clock_source(root),
        "load average at the start": f"{os.getloadavg()[0]:.2f}",
    }
    return {name: value for name, value in facts.items() if value is not None}
