"""Who runs next when two runs take turns; a state machine that knows nothing of processes.

A run that takes turns halts at *places*: at the start of each phase, after each slice of a measure
phase, and before what is left to flush and compact after it. The same request halts at the same
places, so that two runs can be kept side by side: the one whose place lies behind goes first. Where
both are at the same place, which of them begins changes from place to place within a phase, so that
slices come in the order A B B A A B B A: whatever drifts evenly through a phase helps neither.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, order=True)
class Halt:
    """Where a run has halted: the `number`-th halt, from 0, in phase `phase`, from 0.

    A run that has not begun is before its first phase.
    """

    phase: int
    number: int


BEFORE_ALL = Halt(-1, 0)


class _State(Enum):
    HALTED = "halted"
    RUNNING = "running"
    ENDED = "ended"


class Turnstile:
    """Lets one of two arms run at a time; arm 0 begins.

    `grant` says who runs next. That arm runs until `halted` or `ended` is called for it; an arm
    may end at any time, halted or not, and the other goes on alone.
    """

    def __init__(self) -> None:
        self._states = [_State.HALTED, _State.HALTED]
        self._halts = [BEFORE_ALL, BEFORE_ALL]

    @property
    def running(self) -> int | None:
        """The arm that runs."""
        return self._states.index(_State.RUNNING) if _State.RUNNING in self._states else None

    def grant(self) -> int | None:
        """The arm that runs from now on; None while one is running and when both have ended."""
        if self.running is not None:
            return None
        halted = [arm for arm in (0, 1) if self._states[arm] is _State.HALTED]
        if not halted:
            return None
        arm = halted[0] if len(halted) == 1 else self._next_of_both()
        self._states[arm] = _State.RUNNING
        return arm

    def halted(self, arm: int, phase: int) -> None:
        """The arm that ran has halted in `phase`.

        Raises ValueError for an arm that was not running, or a phase before that of its last halt.
        """
        before = self._halts[arm]
        if self._states[arm] is not _State.RUNNING:
            raise ValueError(f"arm {arm} halted while it was {self._states[arm].value}")
        if phase < max(before.phase, 0):
            raise ValueError(f"arm {arm} halted in phase {phase} after phase {before.phase}")
        self._halts[arm] = Halt(phase, before.number + 1 if phase == before.phase else 0)
        self._states[arm] = _State.HALTED

    def ended(self, arm: int) -> None:
        """The arm is over, however that came. May be said more than once."""
        self._states[arm] = _State.ENDED

    def _next_of_both(self) -> int:
        first, second = self._halts
        if first != second:
            return 0 if first < second else 1
        return first.number % 2
