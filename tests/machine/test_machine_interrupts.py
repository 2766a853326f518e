"""Ctrl-C, and what Python does to it."""

from __future__ import annotations

import signal
import time

import pytest

from lsmtune.machine.interrupts import STOPPING, stop_on_interrupt
from patience import PATIENCE_S


class Interrupted:
    """Is sent a signal while Python calls it back, and cannot raise."""

    def __init__(self, number: signal.Signals) -> None:
        self._number = number

    def __del__(self) -> None:
        signal.raise_signal(self._number)
        "".join(["the handler", "runs", "here"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_interrupt_that_python_dropped_is_raised_again(number: signal.Signals) -> None:
    """It came in a callback of C code, and a study that hung went on as if nobody had asked."""
    said: list[str] = []

    def work() -> None:
        with stop_on_interrupt(said.append) as stop:
            signal.raise_signal(number)
            assert stop.is_set()
            Interrupted(number)
            for _ in range(int(PATIENCE_S)):
                time.sleep(1)  # until a signal, in practice

    with pytest.raises(KeyboardInterrupt):
        work()
    assert said == [STOPPING]


def test_what_else_python_drops_is_told_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[type[BaseException]] = []
    monkeypatch.setattr("sys.unraisablehook", lambda dropped: told.append(dropped.exc_type))

    class Broken:
        def __del__(self) -> None:
            raise ValueError

    with stop_on_interrupt(lambda _: None):
        Broken()
    Broken()
    assert told == [ValueError, ValueError]
