"""Waiting for what happens: no test waits for seconds, because a busy machine takes its own time.

The one number of seconds here ends a test that hangs. It says nothing about the product.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import psutil

PATIENCE_S = 300.0
_LOOK_EVERY_S = 0.01


def wait_until(condition: Callable[[], object], what: str = "") -> None:
    """Returns once `condition` holds; fails after PATIENCE_S."""
    end_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end_s, f"waited {PATIENCE_S:.0f} s in vain: {what or condition}"
        time.sleep(_LOOK_EVERY_S)


def in_time(attempt: Callable[[], bool]) -> None:
    """Repeats `attempt`, which says whether it was in time, until it was.

    For what is promised within less than a second: on a busy machine the processors may belong to
    somebody else for a while, but hardly each of fifty times.
    """
    assert any(attempt() for _ in range(50)), "late fifty times in a row"


def is_over(process: psutil.Process) -> bool:
    """Whether it has ended, reaped or not."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def wait_until_over(processes: Iterable[psutil.Process]) -> None:
    """Returns once all of them have ended."""
    all_of_them = list(processes)
    wait_until(lambda: all(map(is_over, all_of_them)), f"these live on: {all_of_them}")
