"""Where the control groups of this process are: its own, and those above it.

Version 1 has a hierarchy per controller, version 2 one for all (Linux kernel documentation,
`admin-guide/cgroup-v1/` and `admin-guide/cgroup-v2.rst`). They are looked for where systemd and
container engines mount them, below /sys/fs/cgroup.
"""

from __future__ import annotations

from pathlib import Path

from lsmtune.machine.kernel_files import text_of

_TOP = "sys/fs/cgroup"


def groups_v1(controller: str, root: Path) -> list[Path]:
    """Folders of this process's groups of version 1, its own first, then those above it."""
    for controllers, path in _lines(root):
        if controller in controllers.split(","):
            return _upwards(root / _TOP / controllers, path)
    return []


def groups_v2(root: Path) -> list[Path]:
    """Folders of this process's groups of version 2, its own first, then those above it."""
    for controllers, path in _lines(root):
        if controllers == "":
            return _upwards(root / _TOP, path)
    return []


def _lines(root: Path) -> list[tuple[str, str]]:
    """Controllers and path of each line `number:controllers:path` of cgroups(7)."""
    lines = (text_of(root / "proc/self/cgroup") or "").splitlines()
    parts = [line.split(":", 2) for line in lines]
    return [(part[1], part[2]) for part in parts if len(part) == 3]


def _upwards(top: Path, path: str) -> list[Path]:
    """The group at `path` below `top` and all above it.

    Inside a container the path may be that of the host, which cannot be seen here, or lead above
    the top: the top folder is then the container's own group.
    """
    group = Path(path).relative_to("/") if path.startswith("/") else Path(path)
    if ".." in group.parts or not (top / group).is_dir():
        return [top]
    return [top / part for part in (group, *group.parents)]
