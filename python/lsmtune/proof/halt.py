"""Ending one run, or all of them."""

from __future__ import annotations

import threading
from collections.abc import Callable


def _never() -> bool:
    return False


class Halt(threading.Event):
    """Set when a run is to end: by the user's `stop`, once `expired` says so, or by itself."""

    def __init__(self, stop: threading.Event, expired: Callable[[], bool] = _never) -> None:
        super().__init__()
        self._stop = stop
        self._expired = expired

    def is_set(self) -> bool:
        """Whether the run is to end, whoever wants it."""
        return super().is_set() or self._stop.is_set() or self._expired()

    @property
    def pruned(self) -> bool:
        """Whether it was this run alone that was ended."""
        return super().is_set() and not self._stop.is_set()
