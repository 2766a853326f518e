"""Time in which lsmtune was awake: not stopped by a signal, not frozen, not on a sleeping machine.

Nobody tells a process that it was stopped (SIGSTOP, Ctrl-Z, the freezer of control groups): the
monotonic clock went on, and it did nothing meanwhile. While the machine itself sleeps, that clock
stands still, and CLOCK_BOOTTIME goes on (clock_gettime(2)).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Clock = Callable[[], float]  # gives seconds that never go back

# Longer than any tick, and than a busy machine keeps a process waiting for a processor.
GAP_S = 2.0
BEAT_S = 0.25
# A process that computed through such a gap spent at least this share of it on a processor.
_BUSY_SHARE = 0.1
_AT_ONCE_S = 0.01


class AwakeClock:
    """Seconds of `clock` while this process was awake; a `Clock` that never goes back.

    It has to be read often: where more than GAP_S passed since it was read last, and this process
    took next to no time of a processor (`cpu`) meanwhile, it slept. Where nobody reads it for long,
    `beating` does.
    """

    def __init__(self, clock: Clock = time.monotonic, cpu: Clock = time.process_time) -> None:
        self._clock, self._cpu = clock, cpu
        self._lock = threading.Lock()
        self._asleep_s = 0.0
        self._read_s, self._read_cpu_s = clock(), cpu()

    def __call__(self) -> float:
        """Seconds so far."""
        with self._lock:
            now_s, cpu_s = self._clock(), self._cpu()
            gap_s, busy_s = now_s - self._read_s, cpu_s - self._read_cpu_s
            if gap_s > GAP_S and busy_s < _BUSY_SHARE * gap_s:
                self._asleep_s += gap_s
            self._read_s, self._read_cpu_s = now_s, cpu_s
            return now_s - self._asleep_s

    @property
    def asleep_s(self) -> float:
        """Seconds of `clock` in which this process slept."""
        self()
        return self._asleep_s

    @contextmanager
    def beating(self) -> Iterator[None]:
        """A thread reads the clock while this context lasts."""
        over = threading.Event()

        def beat() -> None:
            while not over.wait(BEAT_S):
                self()

        thread = threading.Thread(target=beat, name="awake", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def suspended_s() -> float:
    """Seconds for which the machine was suspended since it started."""
    while True:
        before_s = time.clock_gettime(time.CLOCK_MONOTONIC)
        boot_s = time.clock_gettime(time.CLOCK_BOOTTIME)
        after_s = time.clock_gettime(time.CLOCK_MONOTONIC)
        if after_s - before_s < _AT_ONCE_S:  # else this process was stopped between the two
            return boot_s - after_s
