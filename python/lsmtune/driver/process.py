"""Child processes that lead a group of their own, which never outlives its owner."""

from __future__ import annotations

import errno
import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import psutil

from lsmtune.errors import InputError
from lsmtune.machine.awake import Clock
from lsmtune.model.codec import ProtocolError


def resident_bytes(pid: int) -> int:
    """Resident memory of process `pid` without pages of files; 0 when it has ended.

    Like the kernel's control groups, which count such pages as cache: they can be dropped, and
    those of a library belong to whoever read them first.
    """
    try:
        # In bytes: the kernel cuts a program's name after 15 of them, also inside a letter.
        status = Path(f"/proc/{pid}/status").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    # Anonymous and shared memory, in kB (proc_pid_status(5)); a zombie has neither.
    resident = re.findall(rb"^Rss(?:Anon|Shmem):\s+(\d+) kB$", status, re.MULTILINE)
    return 1024 * sum(map(int, resident))


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
    proportional = 0
    for process in processes:
        try:
            proportional += int(process.memory_full_info().pss)
        except psutil.NoSuchProcess:
            continue
        except psutil.AccessDenied:  # of another user: what is resident is all that is known
            proportional += resident_bytes(process.pid)
    return proportional


# --- a clock that stands still when it is told to: the time that a run itself took


class Stopwatch:
    """Seconds of `clock` between each `start` and the `stop` after it, added up; a `Clock` too.

    It stands at first. Starting one that runs, or stopping one that stands, changes nothing.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._before_s = 0.0
        self._started_s: float | None = None

    def start(self) -> None:
        """Goes on."""
        if self._started_s is None:
            self._started_s = self._clock()

    def stop(self) -> None:
        """Stands still."""
        self._before_s, self._started_s = self(), None

    def __call__(self) -> float:
        """Seconds so far."""
        running_s = 0.0 if self._started_s is None else self._clock() - self._started_s
        return self._before_s + running_s


# --- a child process that leads a group of its own, which never outlives its owner

LOG_TAIL_BYTES = 4096


class Closing:
    """A context manager that is closed on the way out."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of what this holds."""
        raise NotImplementedError


class ProcessGroup(Closing):
    """A child that leads a session of its own: Ctrl-C in the terminal does not reach it.

    A context manager: on the way out its whole group is killed and the child reaped. Not
    thread-safe; each run has its own.
    """

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self._popen = popen

    def close(self) -> None:
        """Kills what is left of the group and reaps the child."""
        self.reap()

    @property
    def pid(self) -> int:
        """Process id; also that of its group."""
        return self._popen.pid

    def _state_change(self, kinds: int) -> os.waitid_result | None:
        """The child's last change of state of these `kinds` (waitid(2)); None for none, or reaped.

        It leaves the child a zombie that has ended, so that its id cannot be another's yet.
        """
        if self._popen.returncode is not None:
            return None
        return os.waitid(os.P_PID, self._popen.pid, kinds | os.WNOHANG | os.WNOWAIT)

    def exited(self) -> bool:
        """Whether the child has ended, reaped or not."""
        return self._popen.returncode is not None or self._state_change(os.WEXITED) is not None

    def killed(self) -> bool:
        """Whether a signal ended the child."""
        if self._popen.returncode is not None:
            return self._popen.returncode < 0
        ended = self._state_change(os.WEXITED)
        return ended is not None and ended.si_code != os.CLD_EXITED

    def stop_or_continue(self) -> int | None:
        """`CLD_STOPPED` while the child is stopped, `CLD_CONTINUED` once it was continued.

        None where neither was done, by `kill(2)` or its terminal, and when the child has ended.
        """
        last = self._state_change(os.WEXITED | os.WSTOPPED | os.WCONTINUED)
        known = (os.CLD_STOPPED, os.CLD_CONTINUED)
        return last.si_code if last is not None and last.si_code in known else None

    def is_disturbance(self, _change: int) -> bool:
        """Whether a stranger did what `stop_or_continue` returned: nobody here stops the child."""
        return True

    def signal(self, number: int) -> None:
        """Sends the signal `number` to the whole group, whatever its state."""
        if self._popen.returncode is None:  # once reaped, the id may be another's
            with suppress(ProcessLookupError):
                os.killpg(self._popen.pid, number)

    def reap(self) -> int:
        """Kills what is left of the group; the child's exit status, negative for a signal."""
        self.signal(signal.SIGKILL)
        return self._popen.wait()


Line = TypeVar("Line")


class WatchedProcess(ProcessGroup, Generic[Line]):
    """A child that a `Watch` looks after, and the lines that it says."""

    def lines(self, timeout_s: float) -> tuple[list[Line], bool]:
        """Lines that arrive within `timeout_s`, and whether more is waiting to be read."""
        raise NotImplementedError

    def ask_to_stop(self) -> None:
        """Tells it to end soon."""
        raise NotImplementedError

    def resident_bytes(self, limit: int) -> int:
        """Resident memory of the run; need not be exact below `limit`."""
        raise NotImplementedError


def start_group(
    arguments: Sequence[str],
    stdout: Path,
    *,
    stderr: Path | None = None,
    stdin: Path | None = None,
    hint: str = "",
    **streams: Any,
) -> subprocess.Popen[bytes]:
    """Starts a program as the leader of a group; `stdout` and `stderr` are created or emptied.

    `stderr` None: it prints there what it prints on `stdout`. `stdin` None: a pipe. `streams` are
    further arguments of `Popen`. Raises InputError if it cannot, with `hint` for what is no
    program.
    """
    try:
        with ExitStack() as stack:
            given = subprocess.PIPE if stdin is None else stack.enter_context(stdin.open("rb"))
            output = stack.enter_context(stdout.open("wb"))
            errors = subprocess.STDOUT if stderr is None else stack.enter_context(stderr.open("wb"))
            return subprocess.Popen(
                arguments,
                stdin=given,
                stdout=output,
                stderr=errors,
                bufsize=0,
                start_new_session=True,
                **streams,
            )
    except OSError as error:
        hint = hint if error.errno == errno.ENOEXEC else ""
        raise not_started(arguments[0], error, hint) from error


def not_started(program: str, error: OSError, hint: str = "") -> InputError:
    """The error for a program, or another file named by `error`, that cannot be used."""
    what = program if error.filename in (None, program) else str(error.filename)
    reason = os.strerror(error.errno) if error.errno else str(error)
    return InputError(what, why=f"cannot be used: {reason}{hint}")


def tail_of(*logs: Path) -> str:
    """The last LOG_TAIL_BYTES of the first of `logs` that a child printed to; empty for none."""
    for log in logs:
        with log.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LOG_TAIL_BYTES))
            tail = file.read(LOG_TAIL_BYTES).decode(errors="replace").strip()
        if tail:
            return tail
    return ""


# --- the driver as a child process, with a pipe of its own for messages
#
# What engines print on stdout and stderr goes to a log file. The child keeps its stdin open: end of
# file there tells it that its parent is gone.

_CHUNK_BYTES = 1 << 16
_CHUNKS_PER_READ = 16  # a child that never stops talking must not keep us from its deadline
_EXIT_POLL_S = 0.005
_LINE_BYTES_MAX = 64 << 20  # far above any message; bounds our memory against a garbage writer
CANCEL_LINE = '{"command":"cancel"}'


class ChildProcess(WatchedProcess[bytes]):
    """A child started with `command` plus `--output-fd N`, and the lines that it writes to N."""

    def __init__(self, command: Sequence[str], log: Path, cpus: Sequence[int] = ()) -> None:
        """Starts the child on the cores `cpus`, all when empty; `log` is created or emptied.

        Raises InputError if it cannot.
        """
        self._log = log
        self._buffer = b""
        self._unsent = b""
        self._eof = False
        self.stops_itself = False  # it has said that it stops, and is to be continued
        self._read_fd, write_fd = os.pipe()
        try:
            with _pinned(cpus):
                popen = start_group(
                    [*command, "--output-fd", str(write_fd)],
                    log,
                    hint="; `make setup` builds the driver",
                    pass_fds=(write_fd,),
                    # A file beyond a limit (SIGXFSZ) is an error that the engine tells, no death.
                    restore_signals=False,
                )
        except BaseException:
            os.close(self._read_fd)
            raise
        finally:
            os.close(write_fd)
        super().__init__(popen)
        os.set_blocking(self._read_fd, False)
        os.set_blocking(self._stdin_fd, False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._read_fd, selectors.EVENT_READ)

    def close(self) -> None:
        """Kills the group, reaps the child, and lets the pipes go."""
        try:
            self.reap()
        finally:
            self._selector.close()
            os.close(self._read_fd)
            if self._popen.stdin is not None:
                self._popen.stdin.close()

    @property
    def messages_fd(self) -> int | None:
        """What can be read when the child has said something; None once it never will again."""
        return None if self._eof else self._read_fd

    @property
    def _stdin_fd(self) -> int:
        if self._popen.stdin is None:
            raise ValueError("the child was started without a stdin pipe")
        return self._popen.stdin.fileno()

    def send(self, line: str) -> None:
        """Queues `line` for the child's stdin; `flush` and `lines` pass it on without blocking."""
        self._unsent += line.encode() + b"\n"
        self.flush()

    def flush(self) -> None:
        """Writes what the child's stdin takes now. A child that is gone is not an error here."""
        try:
            while self._unsent:
                self._unsent = self._unsent[os.write(self._stdin_fd, self._unsent) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._unsent = b""

    def lines(self, timeout_s: float) -> tuple[list[bytes], bool]:
        """Whole lines that arrive within `timeout_s`, and whether more is waiting to be read.

        Returns as soon as there is something. After end of file it waits for the exit of the
        child, so it can be called in a loop without spinning. Raises ProtocolError for a line of
        absurd length.
        """
        self.flush()
        if self._eof:
            if not self.exited():
                time.sleep(min(timeout_s, _EXIT_POLL_S))  # an exit follows soon
            return self._last_line(), False
        if not self._selector.select(timeout_s):
            return [], False
        chunks: list[bytes] = []
        more = True
        try:
            while more and len(chunks) < _CHUNKS_PER_READ:
                chunks.append(os.read(self._read_fd, _CHUNK_BYTES))
                if not chunks[-1]:
                    self._eof, more = True, False
                    self._selector.unregister(self._read_fd)
        except BlockingIOError:
            more = False
        self._buffer += b"".join(chunks)
        *whole, self._buffer = self._buffer.split(b"\n")
        if len(self._buffer) > _LINE_BYTES_MAX:
            raise ProtocolError(f"message: a line of more than {_LINE_BYTES_MAX} bytes")
        if self._eof:
            whole += self._last_line()
        return [line for line in whole if line.strip()], more

    def _last_line(self) -> list[bytes]:
        """What the child said without a newline, once it has ended, unless a signal cut that off.

        Who is killed in the middle of a message has not said it: its death is what counts.
        """
        if not self._buffer or not self.exited():
            return []
        line, self._buffer = self._buffer, b""
        return [] if self.killed() or not line.strip() else [line]

    def ask_to_stop(self) -> None:
        """Cancels the run in the driver's own words."""
        self.send(CANCEL_LINE)

    def resident_bytes(self, _limit: int) -> int:
        """Resident memory of the driver, which starts no other process."""
        return resident_bytes(self.pid)

    def stopped(self) -> bool:
        """Whether the kernel has stopped every thread of the child (SIGSTOP).

        A continuation that is sent before would be lost, and the child never wake up.
        """
        return self.stop_or_continue() == os.CLD_STOPPED

    def is_disturbance(self, change: int) -> bool:
        """Whether a stranger stopped or continued it, and not the child itself or `resume`."""
        return change == os.CLD_CONTINUED or not self.stops_itself

    def resume(self) -> None:
        """Continues a child that stopped itself. One that is gone is not an error here."""
        self.stops_itself = False
        with suppress(ProcessLookupError):
            os.kill(self._popen.pid, signal.SIGCONT)
        with suppress(ChildProcessError):
            # The kernel has noted this in `kill` already: what is noted from now on is another's.
            os.waitid(os.P_PID, self._popen.pid, os.WCONTINUED | os.WNOHANG)

    def log_tail(self) -> str:
        """The end of what the child printed on stdout and stderr."""
        return tail_of(self._log)


@contextmanager
def _pinned(cpus: Sequence[int]) -> Iterator[None]:
    """This thread on the cores `cpus`: a child inherits them, so that it was never on others."""
    if not cpus:
        yield
        return
    before = os.sched_getaffinity(0)  # of this thread, not of the process
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
