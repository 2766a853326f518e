"""The filesystem that holds a folder, and the device below it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from lsmtune.machine.kernel_files import ROOT, number_of, text_of

_MEMORY = ("tmpfs", "ramfs")
_REMOTE = ("nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "fuse.sshfs", "ceph")
# Options that change what a write or a sync costs: sync(8) semantics of mount(8), and the
# barriers and journal modes of ext4(5).
_COSTLY = ("sync", "dirsync", "data=journal")
_UNSAFE = ("nobarrier", "barrier=0")


@dataclass(frozen=True)
class Mount:
    """One mounted filesystem; `options` are those of the mount and of the filesystem."""

    filesystem: str
    device: str
    mount_point: str
    options: tuple[str, ...] = ()
    rotational: bool | None = None

    @property
    def in_memory(self) -> bool:
        """Whether it has no device, so that flushes and syncs cost nothing."""
        return self.filesystem in _MEMORY

    @property
    def remote(self) -> bool:
        """Whether it is reached over a network, or through the host of a virtual machine."""
        return self.filesystem in _REMOTE

    @property
    def costly_options(self) -> tuple[str, ...]:
        """Options that make every write pay more than usual."""
        return tuple(option for option in self.options if option in _COSTLY)

    @property
    def unsafe_options(self) -> tuple[str, ...]:
        """Options by which a sync promises less than it says."""
        return tuple(option for option in self.options if option in _UNSAFE)


def mount_of(path: Path, root: Path = ROOT) -> Mount | None:
    """The filesystem of `path`: the deepest mount point above it, the last one mounted there.

    Lines are those of proc_pid_mountinfo(5).
    """
    best: Mount | None = None
    for line in (text_of(root / "proc/self/mountinfo") or "").splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(), right.split()
        if len(fields) < 6 or len(kind) < 2:
            continue
        point = fields[4].replace("\\040", " ")
        if not path.is_relative_to(point) or (best and len(point) < len(best.mount_point)):
            continue
        options = dict.fromkeys([*fields[5].split(","), *",".join(kind[2:3]).split(",")])
        options.pop("", None)
        best = Mount(kind[0], kind[1], point, tuple(options), _rotational(fields[2], root))
    return best


def free_bytes(directory: Path) -> int:
    """Bytes that this user may still write into the filesystem of `directory`."""
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize


def _rotational(number: str, root: Path) -> bool | None:
    """Whether the block device `major:minor` turns; a partition asks its disk."""
    folder = (root / "sys/dev/block" / number).resolve()
    for place in (folder, folder.parent):
        found = number_of(place / "queue/rotational")
        if found is not None:
            return found != 0
    return None
