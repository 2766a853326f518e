"""A clock that stands still when it is told to: the time that a run itself took."""

from __future__ import annotations

from lsmtune.runners.watch import Clock


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
