"""Resident memory of processes, as the kernel counts it."""

from __future__ import annotations

from collections.abc import Iterable

import psutil


def resident_bytes(pid: int) -> int:
    """Resident memory of process `pid`; 0 when it has ended."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return 0


def resident_bytes_of_all(processes: Iterable[psutil.Process], limit: int) -> int:
    """Resident memory of `processes` together, each page counted once where it matters.

    Processes share pages (a fork shares all of them), and the sum of what each has resident is
    too much. The exact figure is the sum of proportional set sizes (PSS in the kernel's
    `/proc/PID/smaps_rollup`), which takes the kernel long: it is asked for only when the sum is
    above `limit`.
    """
    processes = list(processes)
    resident = sum(resident_bytes(process.pid) for process in processes)
    if resident <= limit or len(processes) == 1:
        return resident
    return sum(_proportional_bytes(process) for process in processes)


def _proportional_bytes(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except psutil.NoSuchProcess:
        return 0
    except psutil.AccessDenied:  # of another user: what is resident is all that is known
        return resident_bytes(process.pid)
