"""A program of the user's own as a child process: its output is kept, its whole tree ends."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from lsmtune.driver.process import ProcessGroup, WatchedProcess, resident_bytes_of_all, start_group
from lsmtune.errors import LsmtuneError
from lsmtune.model.text import NotPlainError, open_plain


class ResultError(LsmtuneError):
    """A program reported, or is to be told, what cannot be used; `str()` says what and where."""


# --- a file that a program appends lines to, read while it grows

# A program that never stops talking must not keep us from its limits: this much takes some 50 ms.
_BYTES_PER_READ = 1 << 17
_LINE_BYTES_MAX = 1 << 20  # far above any result; bounds our memory against a garbage writer


class FollowedFile:
    """The lines of the file at `path`, which need not exist yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._unfinished = b""

    def read(self) -> tuple[list[bytes], bool]:
        """Whole lines that were added since the last call, and whether more is there already.

        Blank ones too: who counts them for people counts as an editor does. A file that became
        shorter was begun anew and is read from its start. Raises ResultError for a line of absurd
        length, and for what stands in the file's place.
        """
        try:
            with open_plain(self._path) as file:
                if os.fstat(file.fileno()).st_size < self._offset:
                    self._offset, self._unfinished = 0, b""
                file.seek(self._offset)
                chunk = file.read(_BYTES_PER_READ)
        except FileNotFoundError:
            return [], False
        except NotPlainError as error:
            raise ResultError(f"{self._path.name}: {error}") from None
        except OSError as error:
            raise ResultError(f"{self._path.name}: cannot be read: {error.strerror}") from None
        self._offset += len(chunk)
        *whole, self._unfinished = (self._unfinished + chunk).split(b"\n")
        if len(self._unfinished) > _LINE_BYTES_MAX:
            why = f"a line of more than {_LINE_BYTES_MAX} bytes"
            raise ResultError(f"{self._path.name}: {why}")
        return whole, len(chunk) == _BYTES_PER_READ

    def last(self) -> bytes:
        """The last line, if it has no line end, or nothing: for when no more can follow."""
        line, self._unfinished = self._unfinished, b""
        return line if line.strip() else b""


# --- what ends a run when the tuner is killed: a program knows nothing of the tuner's death

# The shell waits for a line that never comes; end of file means that the tuner is gone.
_SCRIPT = 'read -r _; kill -KILL "-$1"'


class OrphanGuard(ProcessGroup):
    """A small process that kills the process group `group` when this process dies.

    A context manager: on the way out the guard is ended, and nobody is killed. It has to be left
    before the group's leader is reaped, because the number may then become another's.
    """

    def __init__(self, group: int) -> None:
        # No descriptor but these three is handed on, so that only this process holds the pipe open.
        nothing = Path(os.devnull)
        super().__init__(start_group(["/bin/sh", "-c", _SCRIPT, "sh", str(group)], nothing))

    def close(self) -> None:
        """Ends the guard."""
        self.reap()
        if self._popen.stdin is not None:
            self._popen.stdin.close()


# --- a program of the user's own as a child process: what it prints is kept, its whole tree ends
#
# It leads a session of its own, like the driver. Unlike the driver it may start processes, so that
# memory is that of the tree; and it does not listen, so that a cancellation is a SIGTERM and a
# guard takes the tuner's place when that is killed.

_POLL_S = 0.01
_TREE_TICK_S = 0.1  # finding the tree takes the kernel a look at every process of the machine
_KIB = 1024


class CommandProcess(WatchedProcess[tuple[int, bytes]]):
    """A started program. `followed` are the files whose lines are read while it runs; each line
    comes with the index of its file. On the way out every other process of the tree that was seen
    is killed too. `cpu_s` and `rss_bytes_max` are what the tree took, as far as it is known.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        stdout: Path,
        stderr: Path,
        followed: Sequence[Path],
        stdin: Path | None = None,
    ) -> None:
        """Starts the program in `folder`, which reads the file `stdin`, nothing where None.

        Raises InputError if it cannot be started.
        """
        self._files = [FollowedFile(path) for path in followed]
        given = stdin or Path(os.devnull)
        super().__init__(
            start_group(arguments, stdout, stderr=stderr, stdin=given, cwd=folder, env=environment)
        )
        self._seen: dict[int, psutil.Process] = {}
        self._tree_bytes = 0
        self._next_look = time.monotonic()
        self.cpu_s, self.rss_bytes_max = 0.0, 0
        try:
            self._guard = OrphanGuard(self._popen.pid)
        except BaseException:
            self._end()
            raise

    def lines(self, timeout_s: float) -> tuple[list[tuple[int, bytes]], bool]:
        """Lines that were added within `timeout_s`, and whether more is there already."""
        end = time.monotonic() + timeout_s
        while True:
            exited = self.exited()  # asked before reading: then nothing can come after what is read
            lines: list[tuple[int, bytes]] = []
            more = False
            for index, file in enumerate(self._files):
                added, remains = file.read()
                lines += [(index, line) for line in added]
                more |= remains
            if exited and not lines and not more:
                last = [(index, file.last()) for index, file in enumerate(self._files)]
                return [(index, line) for index, line in last if line], False
            if lines or more or time.monotonic() >= end:
                return lines, more
            time.sleep(_POLL_S)

    def ask_to_stop(self) -> None:
        """SIGTERM to the whole process group."""
        self.signal(signal.SIGTERM)

    def resident_bytes(self, limit: int) -> int:
        """Resident memory of the whole tree, looked at anew every 100 ms."""
        if time.monotonic() >= self._next_look:
            self._look()
            self._tree_bytes = resident_bytes_of_all(self._seen.values(), limit)
            self.rss_bytes_max = max(self.rss_bytes_max, self._tree_bytes)
            self._next_look = time.monotonic() + _TREE_TICK_S
        return self._tree_bytes

    def _look(self) -> None:
        """Brings `_seen` up to date: the tree, and what has left it but was in it once."""
        with suppress(psutil.NoSuchProcess):
            program = psutil.Process(self._popen.pid)
            tree = [program, *program.children(recursive=True)]
            self._seen |= {process.pid: process for process in tree}
        self._seen = {pid: one for pid, one in self._seen.items() if one.is_running()}

    def reap(self) -> int:
        """Kills what is left of the tree; the program's exit status, negative for a signal."""
        if self._popen.returncode is None:
            try:
                self._guard.close()
            finally:
                self._end()
        return self._popen.returncode

    def _end(self) -> None:
        self._look()
        self.signal(signal.SIGKILL)
        for process in self._seen.values():
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                process.kill()
        _, status, used = os.wait4(self._popen.pid, 0)
        self._popen.returncode = os.waitstatus_to_exitcode(status)
        self.cpu_s = used.ru_utime + used.ru_stime  # also of children that were waited for
        self.rss_bytes_max = max(self.rss_bytes_max, peak_of_child_bytes(used.ru_maxrss))


def peak_of_child_bytes(maxrss_kib: int) -> int:
    """Peak resident memory by a child's `ru_maxrss` (KiB: getrusage(2)); 0 where it tells nothing.

    Linux carries the peak of the process that it was forked from over into it (`exec_mmap` in
    fs/exec.c), and the memory of a child before its `exec` is ours: only a larger figure than our
    own is the program's.
    """
    own_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return maxrss_kib * _KIB if maxrss_kib > own_kib else 0
