"""A control group of its own for a run, so that the kernel holds it below a memory limit.

Made where this process may make one: version 1 below its own group; version 2 below the nearest
group that gives its children the memory controller, which is never its own unless that is the
root, because a group with processes in it may not (Linux kernel documentation,
`admin-guide/cgroup-v2.rst`, "No Internal Process Constraint").

A group counts page cache too, but the kernel drops that before it kills anything.
"""

from __future__ import annotations

import errno
import itertools
import os
import re
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from lsmtune.errors import LsmtuneError
from lsmtune.machine.group_folders import groups_v1, groups_v2
from lsmtune.machine.kernel_files import ROOT, field_of, text_of
from lsmtune.machine.limits import memory_limit

PREFIX = "lsmtune-"
_NAME = re.compile(rf"{PREFIX}(\d+)-\d+")
_REMOVAL_S = 5.0
_REMOVAL_TICK_S = 0.01
_PROBE_BYTES = 1 << 30


@dataclass(frozen=True)
class _Version:
    """The names of a version's files, and what is written into a new group: (file, text).

    A setting whose file a kernel has not got is left out, except for the limit itself. `{}` is
    the limit in bytes; settings are made in their order.
    """

    limit: str
    settings: Sequence[tuple[str, str]]
    kills: str


# Swap is no way around the limit: version 1 limits memory and swap together, and where swap is not
# accounted for the group is told not to swap.
_V1 = _Version(
    limit="memory.limit_in_bytes",
    settings=(
        ("memory.memsw.limit_in_bytes", "{}"),
        ("memory.swappiness", "0"),
        ("memory.oom_control", "0"),  # killing may be off in the group above, and is inherited
    ),
    kills="memory.oom_control",
)
_V2 = _Version(
    limit="memory.max",
    settings=(("memory.swap.max", "0"),),
    kills="memory.events",
)


class MemoryGroup:
    """A control group with a memory limit, removed when the context is left.

    What is still in the group by then is killed. One run at a time; not thread-safe.
    """

    def __init__(self, path: Path, limit_bytes: int, kills_file: str) -> None:
        self.path = path
        self.limit_bytes = limit_bytes
        self._kills = path / kills_file

    def __enter__(self) -> MemoryGroup:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
            raise LsmtuneError(f"{self.path}: {_reason(error)}") from error

    def oom_kills(self) -> int:
        """How many processes of the group the kernel has killed for want of memory."""
        return field_of(self._kills, "oom_kill") or 0

    def remove(self) -> None:
        """Kill what is left in the group, and remove it. May be called more than once.

        Raises LsmtuneError when a process in it does not end within 5 seconds.
        """
        until_s = time.monotonic() + _REMOVAL_S
        while not _removed(self.path):
            if time.monotonic() > until_s:
                raise LsmtuneError(f"{self.path}: cannot be removed: a process in it does not end")
            for pid in (text_of(self.path / "cgroup.procs") or "").split():
                if pid != "0":  # of another namespace
                    with suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)
            time.sleep(_REMOVAL_TICK_S)


def memory_group(limit_bytes: int, root: Path = ROOT) -> MemoryGroup | None:
    """A new control group limited to `limit_bytes`; None where none can be made.

    The limit of the group is less where this process itself is limited to less. Groups that
    killed tuners left behind beside it are removed. Raises ValueError for a limit of nothing.
    """
    made = _made(limit_bytes, root)
    return made if isinstance(made, MemoryGroup) else None


def memory_group_obstacle(root: Path = ROOT) -> str:
    """Why `memory_group` makes none here, in one clause; empty when it does. One is tried."""
    made = _made(_PROBE_BYTES, root)
    if not isinstance(made, MemoryGroup):
        return made
    made.remove()
    return ""


def _made(limit_bytes: int, root: Path) -> MemoryGroup | str:
    """The new group, or why there is none."""
    if limit_bytes <= 0:
        raise ValueError(f"a memory limit is above 0, found {limit_bytes}")
    place = _place(root)
    if isinstance(place, str):
        return place
    parent, version = place
    _sweep(parent, root)
    # Beside our own group its limit would no longer bind the run: it is carried over.
    own = memory_limit(root)
    limit_bytes = limit_bytes if own is None else min(limit_bytes, own.limit_bytes)
    try:
        path = _new_folder(parent)
    except OSError as error:
        return f"no control group can be made in {parent}: {_reason(error)}"
    group = MemoryGroup(path, limit_bytes, version.kills)
    try:
        _limit(path, limit_bytes, version)
    except OSError as error:
        group.remove()
        return f"a control group in {parent} takes no memory limit: {_reason(error)}"
    if field_of(path / version.kills, "oom_kill") is None:
        group.remove()
        return "this kernel does not count what it kills for want of memory"
    return group


def _place(root: Path) -> tuple[Path, _Version] | str:
    """The group in which to make one; or why there is none."""
    groups = groups_v1("memory", root)
    if groups:
        return groups[0], _V1
    groups = groups_v2(root)
    if not groups:
        return "there are no control groups here"
    for folder in groups:
        if "memory" in (text_of(folder / "cgroup.subtree_control") or "").split():
            return folder, _V2
    return f"no group above this process gives memory limits to its children ({groups[0]})"


def _sweep(parent: Path, root: Path) -> None:
    """Remove the groups of tuners that were killed; a group with processes in it stays."""
    for folder in parent.glob(f"{PREFIX}*"):
        name = _NAME.fullmatch(folder.name)
        if name is not None and not (root / "proc" / name[1]).exists():
            _removed(folder)


def _removed(folder: Path) -> bool:
    """Remove an empty group; False while something is in it."""
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno not in (errno.EBUSY, errno.ENOTEMPTY, errno.EACCES, errno.EPERM):
            raise
        return False
    return True


def _new_folder(parent: Path) -> Path:
    for number in itertools.count():
        folder = parent / f"{PREFIX}{os.getpid()}-{number}"
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder
    raise AssertionError("unreachable")


def _limit(folder: Path, limit_bytes: int, version: _Version) -> None:
    _write(folder / version.limit, str(limit_bytes))
    for name, value in version.settings:
        with suppress(FileNotFoundError):
            _write(folder / name, value.format(limit_bytes))


def _write(file: Path, text: str) -> None:
    """Into a file that the kernel made; it is not created, and the kernel says what is wrong."""
    descriptor = os.open(file, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def _reason(error: OSError) -> str:
    return os.strerror(error.errno).lower() if error.errno else str(error)
