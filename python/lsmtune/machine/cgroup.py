"""Control groups: what those of this process allow it, and one of its own for a run.

Version 1 has a hierarchy per controller, version 2 one for all (Linux kernel documentation,
`admin-guide/cgroup-v1/` and `admin-guide/cgroup-v2.rst`). They are looked for where systemd and
container engines mount them, below /sys/fs/cgroup.

A run gets a group of its own, so that the kernel holds it below a memory limit. It is made where
this process may make one: version 1 below its own group; version 2 below the nearest group that
gives its children the memory controller, which is never its own unless that is the root, because a
group with processes in it may not ("No Internal Process Constraint"). The limits of the groups
between that one and its own no longer bind the run. Its memory limit is carried over; where they
limit more than memory, the run gets no group. A group counts page cache too, but the kernel drops
that before it kills anything.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import NamedTuple

import psutil

from lsmtune.errors import LsmtuneError
from lsmtune.machine.files import locked_folder
from lsmtune.machine.host import ROOT, field_of, number_of, reason, text_of

_TOP = "sys/fs/cgroup"


def groups(root: Path, controller: str = "") -> list[Path]:
    """Folders of this process's groups of version 1 that have `controller`, or of version 2.

    Its own first, then those above it, by the first line `number:controllers:path` of cgroups(7)
    that has the controller; that of version 2 has none. Inside a container the path may be that of
    the host, which cannot be seen here, or lead above the top: the top folder is then the
    container's own group.
    """
    for line in (text_of(root / "proc/self/cgroup") or "").splitlines():
        _, _, rest = line.partition(":")
        controllers, colon, path = rest.partition(":")
        if colon and controller in controllers.split(","):
            top, group = root / _TOP / controllers, Path(path.removeprefix("/"))
            if ".." in group.parts or not (top / group).is_dir():
                return [top]
            return [top / part for part in (group, *group.parents)]
    return []


# --- what this process is allowed

# Version 1 has no word for "no limit"; it shows the largest page-aligned number.
_NO_LIMIT_BYTES = 2**60


@dataclass(frozen=True)
class MemoryLimit:
    """The limit that binds this process, and what its group uses of it, page cache included."""

    limit_bytes: int
    usage_bytes: int | None


def memory_limit(root: Path = ROOT) -> MemoryLimit | None:
    """The least memory limit of this process's control groups, versions 1 and 2; None for none."""
    files = [(folder / "memory.max", folder / "memory.current") for folder in groups(root)]
    files += [
        (folder / "memory.limit_in_bytes", folder / "memory.usage_in_bytes")
        for folder in groups(root, "memory")
    ]
    limits = [
        MemoryLimit(limit_bytes, number_of(usage))
        for limit, usage in files
        if (limit_bytes := number_of(limit)) is not None and limit_bytes < _NO_LIMIT_BYTES
    ]
    return min(limits, key=lambda limit: limit.limit_bytes, default=None)


def memory_here(root: Path = ROOT) -> int:
    """The memory that this process can have: that of the machine, or of its control groups."""
    own, total_bytes = memory_limit(root), int(psutil.virtual_memory().total)
    return total_bytes if own is None else min(total_bytes, own.limit_bytes)


def cpu_limit(root: Path = ROOT) -> float | None:
    """The least processor quota of this process's control groups, in processors."""
    quotas = []
    for folder in groups(root):
        words = (text_of(folder / "cpu.max") or "").split()
        if len(words) == 2 and words[0].isdecimal():
            quotas.append(int(words[0]) / int(words[1]))
    for folder in groups(root, "cpu"):
        quota = number_of(folder / "cpu.cfs_quota_us")
        period = number_of(folder / "cpu.cfs_period_us")
        if quota is not None and quota > 0 and period:
            quotas.append(quota / period)
    return min(quotas, default=None)


# --- a group for a run

PREFIX = "lsmtune-"
_NAME = re.compile(rf"{PREFIX}(\d+)-\d+")
_REMOVAL_TICK_S = 0.01
_REMOVAL_TICKS = 500
_PROBE_BYTES = 1 << 30


class _Version(NamedTuple):
    """The names of a version's files, and what is written into a new group: (file, text).

    A setting whose file a kernel has not got is left out, except for the limit itself. `{}` is
    the limit in bytes; settings are made in their order.
    """

    limit_file: str
    settings: Sequence[tuple[str, str]]
    kills_file: str


# Swap is no way around the limit: version 1 limits memory and swap together, and where swap is not
# accounted for the group is told not to swap. Killing may be off in the group above, and is
# inherited.
_V1 = _Version(
    "memory.limit_in_bytes",
    (
        ("memory.memsw.limit_in_bytes", "{}"),
        ("memory.swappiness", "0"),
        ("memory.oom_control", "0"),
    ),
    "memory.oom_control",
)
_V2 = _Version("memory.max", (("memory.swap.max", "0"),), "memory.events")


@dataclass(eq=False)
class MemoryGroup:
    """A control group with a memory limit, removed when the context is left.

    What is still in the group by then is killed. `lock` is a descriptor of the group's folder,
    locked as long as the group is in use. One run at a time; not thread-safe.
    """

    path: Path
    limit_bytes: int
    kills_file: str
    lock: int | None = None

    def __enter__(self) -> MemoryGroup:
        return self

    def __exit__(self, *_error: object) -> None:
        self.remove()

    def add(self, pid: int) -> None:
        """Put process `pid` into the group; only what it allocates from now on counts.

        Raises ProcessLookupError when it has ended, and LsmtuneError when the kernel refuses.
        """
        try:
            _write(self.path / "cgroup.procs", str(pid))
        except ProcessLookupError:
            raise
        except OSError as error:
            raise LsmtuneError(f"{self.path}: {reason(error)}") from error

    def oom_kills(self) -> int:
        """How many processes of the group the kernel has killed for want of memory.

        Raises LsmtuneError when the group is gone.
        """
        file = self.path / self.kills_file
        kills = field_of(file, "oom_kill")
        if kills is None:
            raise LsmtuneError(f"{file}: cannot be read")
        return kills

    def remove(self) -> None:
        """Kill what is left in the group, and remove it. May be called more than once.

        Raises LsmtuneError when a process in it does not end within 5 seconds.
        """
        if self.lock is not None:
            os.close(self.lock)
            self.lock = None
        for _ in range(_REMOVAL_TICKS):
            if _removed(self.path):
                return
            for pid in (text_of(self.path / "cgroup.procs") or "").split():
                if pid != "0":  # of another namespace
                    with suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)
            time.sleep(_REMOVAL_TICK_S)
        raise LsmtuneError(f"{self.path}: cannot be removed: a process in it does not end")


def machine_oom_kills(root: Path = ROOT) -> int | None:
    """How many processes the kernel has killed for want of memory, its groups' included.

    Of the group that this process is in, where that counts them for itself and those below it,
    else of the whole machine; None where neither is known.
    """
    own = next((folder / "memory.events" for folder in groups(root)), None)
    counted = None if own is None else field_of(own, "oom_kill")
    return field_of(root / "proc/vmstat", "oom_kill") if counted is None else counted


def memory_group(limit_bytes: int, root: Path = ROOT) -> MemoryGroup | None:
    """A new control group limited to `limit_bytes`; None where none can be made.

    The limit of the group is less where this process itself is limited to less. Groups that
    killed tuners left behind beside it are removed. Raises ValueError for a limit of nothing.
    """
    made = _new_group(limit_bytes, root)
    return made if isinstance(made, MemoryGroup) else None


def memory_group_obstacle(root: Path = ROOT) -> str:
    """Why `memory_group` makes none here, in one clause; empty when it does. One is tried."""
    made = _new_group(_PROBE_BYTES, root)
    if not isinstance(made, MemoryGroup):
        return made
    made.remove()
    return ""


def _new_group(limit_bytes: int, root: Path) -> MemoryGroup | str:
    """The new group, or why there is none."""
    if limit_bytes <= 0:
        raise ValueError(f"a memory limit is above 0, found {limit_bytes}")
    where = _parent(root)
    if isinstance(where, str):
        return where
    parent, version = where
    _remove_leftovers(parent, root)
    # Beside our own group its limit would no longer bind the run: it is carried over.
    own = memory_limit(root)
    limit_bytes = limit_bytes if own is None else min(limit_bytes, own.limit_bytes)
    for number in count():
        path = parent / f"{PREFIX}{os.getpid()}-{number}"
        try:
            path.mkdir()
        except FileExistsError:
            continue
        except OSError as error:
            return f"no control group can be made in {parent}: {reason(error)}"
        try:
            lock = locked_folder(path)
            break
        except (FileNotFoundError, BlockingIOError):  # another tuner found it before it was locked
            continue
    group = MemoryGroup(path, limit_bytes, version.kills_file, lock)
    try:
        _write(path / version.limit_file, str(limit_bytes))
        for setting, value in version.settings:
            with suppress(FileNotFoundError):
                _write(path / setting, value.format(limit_bytes))
    except OSError as error:
        group.remove()
        return f"a control group in {parent} takes no memory limit: {reason(error)}"
    if field_of(path / version.kills_file, "oom_kill") is None:
        group.remove()
        return "this kernel does not count what it kills for want of memory"
    return group


def _remove_leftovers(parent: Path, root: Path) -> None:
    """Remove the groups in `parent` of tuners that were killed."""
    for folder in parent.glob(f"{PREFIX}*"):
        name = _NAME.fullmatch(folder.name)
        if name is None or (root / "proc" / name[1]).exists():
            continue
        with suppress(OSError):  # of another user, whose tuner will do it, or removed meanwhile
            # A tuner in a container has no process here, but its lock.
            os.close(locked_folder(folder))
            _removed(folder)


def _parent(root: Path) -> tuple[Path, _Version] | str:
    """The group in which to make one; or why there is none."""
    of_v1 = groups(root, "memory")
    if of_v1:
        return of_v1[0], _V1
    of_v2 = groups(root)
    if not of_v2:
        return "there are no control groups here"
    for number, folder in enumerate(of_v2):
        if "memory" in (text_of(folder / "cgroup.subtree_control") or "").split():
            if escaped := _limit_in(of_v2[:number]):
                return f"a run in a group in {folder} would escape {escaped}"
            # A process moves only where its mover may write to the group above both places.
            if os.access(folder / "cgroup.procs", os.W_OK):
                return folder, _V2
            return f"no control group can be made in {folder}: permission denied"
    return f"no group above this process gives memory limits to its children ({of_v2[0]})"


def _limit_in(folders: Sequence[Path]) -> Path | None:
    """The first file of these groups that limits processors or devices; memory does not count.

    Its limit is carried over to the new group, and these cannot be.
    """
    for folder in folders:
        quota = (text_of(folder / "cpu.max") or "max").split()
        if quota and quota[0] != "max":
            return folder / "cpu.max"
        for name in ("cpuset.cpus", "io.max"):
            if text_of(folder / name):
                return folder / name
    return None


def _removed(folder: Path) -> bool:
    """Remove an empty group; False while something is in it."""
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        return False
    return True


def _write(file: Path, text: str) -> None:
    """Into a file that the kernel made; it is not created, and the kernel says what is wrong."""
    descriptor = os.open(file, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
