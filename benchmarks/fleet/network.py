"""Network namespaces of this machine, one a host, joined by a bridge; their links can be cut.

Needs root. Addresses exist only inside the namespaces, all of which are removed in the end. One
fleet at a time: Ray begins no second head of the same address on a machine.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil

_NET = "10.77.0."


def _ip(*arguments: str) -> str:
    return subprocess.run(
        ["ip", *arguments], check=True, capture_output=True, text=True, timeout=60
    ).stdout


class Network:
    """A context. Each host has an address, a link, and a folder of its own at /tmp/ray."""

    def __init__(self, base: Path) -> None:
        self._base, self._prefix = base, f"lsmtune-{os.getpid()}-"
        self._numbers: dict[str, int] = {}
        self._ends = ExitStack()

    def add(self, name: str) -> str:
        """The address of one more host."""
        number = self._numbers[name] = len(self._numbers) + 1
        own, link = self._namespace(name), f"link{number}"
        _ip("-n", own, "link", "add", "eth0", "type", "veth", "peer", link, "netns", self._bridge)
        _ip("-n", own, "addr", "add", f"{_NET}{number}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            _ip("-n", own, "link", "set", device, "up")
        _ip("-n", self._bridge, "link", "set", link, "master", "bridge0", "up")
        (self._base / f"ray-{name}").mkdir()
        return f"{_NET}{number}"

    def inside(self, name: str, command: Sequence[str]) -> list[str]:
        """`command` as it is run on the host `name`."""
        mounts = 'mount --bind "$0" /tmp/ray && exec "$@"'
        own = ["ip", "netns", "exec", self._prefix + name, "sh", "-c", mounts]
        return [*own, str(self._base / f"ray-{name}"), *command]

    def link(self, name: str, state: str) -> None:
        """Cut the host off (`down`), or heal it (`up`)."""
        _ip("-n", self._bridge, "link", "set", f"link{self._numbers[name]}", state)

    def processes(self, name: str) -> list[psutil.Process]:
        """All that run on the host, by what they are inside."""
        found = []
        for pid in _ip("netns", "pids", self._prefix + name).split():
            with suppress(psutil.NoSuchProcess):
                found.append(psutil.Process(int(pid)))
        return found

    def _namespace(self, name: str) -> str:
        made = self._prefix + name
        _ip("netns", "add", made)
        self._ends.callback(_ip, "netns", "del", made)
        return made

    def __enter__(self) -> Network:
        Path("/tmp/ray").mkdir(exist_ok=True)
        self._bridge = self._namespace("bridge")
        _ip("-n", self._bridge, "link", "add", "bridge0", "type", "bridge")
        _ip("-n", self._bridge, "link", "set", "bridge0", "up")
        return self

    def __exit__(self, *_error: object) -> None:
        for name in self._numbers:
            for process in self.processes(name):
                process.kill()
        self._ends.close()
