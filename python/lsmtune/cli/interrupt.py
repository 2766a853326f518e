"""Ctrl-C: the first ends the work in order and keeps its state, the second ends it at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

STOPPING = "stopping; the state is kept (Ctrl-C again to stop at once)"


@contextmanager
def stop_on_interrupt(say: Callable[[str], None]) -> Iterator[threading.Event]:
    """An event that the first SIGINT or SIGTERM sets; the second raises KeyboardInterrupt.

    For the main thread. `say` is told once. The handlers before are put back on the way out.
    """
    stop = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            signal.default_int_handler(number, frame)
        stop.set()
        say(STOPPING)

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
