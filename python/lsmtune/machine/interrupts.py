"""Ctrl-C: the first ends the work in order and keeps its state, the second ends it at once."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from lsmtune.errors import InterruptedByUserError

# Ctrl-C, a polite kill, and a terminal that is closed: the same for all of them.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STOPPING = "stopping; the state is kept (Ctrl-C again to stop at once)"
# After so long the code that dropped a KeyboardInterrupt has returned.
_DELAY_S = 0.05


def obeyed() -> list[signal.Signals]:
    """Those of SIGNALS that the caller of the program did not have ignored, as `nohup` does."""
    return [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]


@contextmanager
def stop_on_interrupt(
    say: Callable[[str], None], *, second_raises: bool = True
) -> Iterator[threading.Event]:
    """An event that the first of the SIGNALS sets; the second raises KeyboardInterrupt.

    For the main thread. `say` is called once, with STOPPING. The handlers of before are put back
    on the way out. Without `second_raises` nothing follows from the second: a closed terminal sends
    two at once, and work that ends at the first has to come to that.

    A KeyboardInterrupt that comes while C code calls back, or in a `__del__`, has no way up: Python
    drops it, and the second Ctrl-C did nothing. It is raised once more after that.
    """
    stop, hook_before = threading.Event(), sys.unraisablehook
    last_signal = signal.SIGINT

    def raise_dropped(dropped: sys.UnraisableHookArgs) -> None:
        if issubclass(dropped.exc_type, KeyboardInterrupt):
            main = threading.main_thread().ident
            threading.Timer(_DELAY_S, lambda: signal.pthread_kill(main or 0, last_signal)).start()
        else:
            hook_before(dropped)

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal last_signal
        if stop.is_set():
            if second_raises:
                last_signal = signal.Signals(number)
                signal.default_int_handler(number, frame)
            return
        stop.set()
        # The terminal is closed, or what was interrupted was writing to it.
        with suppress(OSError, RuntimeError):
            say(STOPPING)

    handlers_before = {number: signal.signal(number, handle) for number in obeyed()}
    sys.unraisablehook = raise_dropped
    try:
        yield stop
    finally:
        sys.unraisablehook = hook_before
        for number, handler in handlers_before.items():
            signal.signal(number, handler)


def interrupted(directory: Path | None) -> InterruptedByUserError:
    """How a command ends that was stopped: says whether its runs are kept in a `directory`."""
    kept = "nothing was kept" if directory is None else f"the runs are kept in {directory}"
    return InterruptedByUserError(f"interrupted; {kept}")
