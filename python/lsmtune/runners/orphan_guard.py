"""What ends a run when the tuner is killed: a program knows nothing of the tuner's death."""

from __future__ import annotations

import subprocess
from types import TracebackType

# The shell waits for a line that never comes; end of file means that the tuner is gone.
_SCRIPT = 'read -r _; kill -KILL "-$1"'


class OrphanGuard:
    """A small process that kills the process group `group` when this process dies.

    A context manager: on the way out the guard is ended, and nobody is killed. It has to be left
    before the group's leader is reaped, because the number may then become another's.
    """

    def __init__(self, group: int) -> None:
        # No descriptor but these three is handed on, so that only this process holds the pipe open.
        self._popen = subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT, "sh", str(group)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def __enter__(self) -> OrphanGuard:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the guard."""
        self._popen.kill()
        self._popen.wait()
        if self._popen.stdin is not None:
            self._popen.stdin.close()
