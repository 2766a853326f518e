"""The messages of one run, put together into a Measurement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

from lsmtune.records.engine import EngineIdentity
from lsmtune.records.measurement import (
    Interval,
    Measurement,
    OptionNotTaken,
    Outcome,
    PhaseMeasurement,
    RunError,
    Slice,
    Verification,
)
from lsmtune.records.request import RunRequest
from lsmtune.runners.messages import (
    BackgroundWork,
    Failed,
    Finished,
    Hello,
    IntervalPassed,
    Message,
    Opened,
    Paused,
    PhaseFinished,
    PhaseStarted,
    Probed,
    Verified,
)
from lsmtune.runners.reading import ProtocolError

T = TypeVar("T")


class Collector:
    """Takes messages in the order in which they come; keeps everything said so far."""

    def __init__(self) -> None:
        self.probed: Probed | None = None
        self.last: Finished | Failed | None = None
        self.verified: Verified | None = None
        self._hello: Hello | None = None
        self._engine: Opened | None = None
        self._running: PhaseStarted | None = None
        self._phases: dict[int, PhaseMeasurement] = {}
        self._intervals: dict[int, list[Interval]] = {}
        self._pauses: dict[int, list[Paused]] = {}

    def take(self, message: Message) -> None:
        """Adds `message`. Raises ProtocolError for one that cannot come here."""
        if self._hello is None and not isinstance(message, Hello):
            raise ProtocolError(f"the first message is {_named(message)}; allowed: hello")
        if self.last is not None:
            raise ProtocolError(f"{_named(message)} after the last message")
        match message:
            case Hello():
                self._hello = message
            case Opened():
                self._engine = message
            case PhaseStarted(index=index):
                self._running = message
                self._intervals[index], self._pauses[index] = [], []
            case IntervalPassed(index=index):
                self._of_phase(index, self._intervals, message).append(message.interval())
            case Paused(index=index):
                self._of_phase(index, self._pauses, message).append(message)
            case PhaseFinished(index=index, phase=phase):
                intervals = self._of_phase(index, self._intervals, message)
                slices = slices_between(self._pauses[index])
                self._phases[index] = replace(phase, intervals=tuple(intervals), slices=slices)
                self._running = None
            case BackgroundWork(index=index):
                phase = self._of_phase(index, self._phases, message)
                self._phases[index] = _with_background_work(phase, message)
            case Verified():
                self.verified = message
            case Probed():
                self.probed = message
            case Finished() | Failed():
                self.last = message

    def _of_phase(self, index: int, known: dict[int, T], message: Message) -> T:
        if index not in known:
            raise ProtocolError(f"{_named(message)}.index: found {index}, a phase never announced")
        return known[index]

    @property
    def phase(self) -> int:
        """Number of the phase that began last; -1 before the first."""
        return max(self._intervals, default=-1)

    @property
    def place(self) -> str:
        """Where the run is, for error texts."""
        if self._running is not None:
            return f"in phase {self._running.name}"
        if self._engine is None:
            return "while opening the engine"
        return "after its last phase" if self._phases else "before its first phase"

    def measurement(
        self,
        request: RunRequest,
        outcome: Outcome,
        *,
        started_unix_s: float,
        elapsed_s: float,
        error: RunError | None = None,
        warnings: Sequence[str] = (),
        memory_limited_by: str = "",
    ) -> Measurement:
        """Everything observed; `elapsed_s` is the runner's own, spawn to reaped."""
        finished = self.last if isinstance(self.last, Finished) else None
        return Measurement(
            outcome=outcome,
            engine=self._identity(request.engine),
            options=request.config.engine_options(),
            workload=request.workload.name,
            seed=request.seed,
            started_unix_s=started_unix_s,
            elapsed_s=elapsed_s,
            phases=tuple(self._phases[index] for index in sorted(self._phases)),
            options_not_taken=self._options_not_taken(),
            verification=self._verification(),
            cpu_s=finished.cpu_s if finished else None,
            rss_bytes_max=finished.rss_bytes_max if finished else None,
            database_bytes=finished.database_bytes if finished else None,
            intervals_unfinished=self._unfinished(),
            error=error,
            warnings=tuple(warnings),
            memory_limited_by=memory_limited_by,
        )

    def _identity(self, asked: EngineIdentity) -> EngineIdentity:
        if self._engine is None:
            return asked
        said = self._engine.engine
        return EngineIdentity(said.name, said.version or asked.version, said.library, asked.build)

    def _options_not_taken(self) -> tuple[OptionNotTaken, ...]:
        return self._engine.options_not_taken if self._engine else ()

    def _verification(self) -> Verification | None:
        said = self.verified
        if said is None:
            return None
        return Verification(said.keys_checked, said.keys_lost, said.keys_wrong, said.reopen_s)

    def _unfinished(self) -> tuple[Interval, ...]:
        return tuple(
            step
            for index in sorted(self._intervals)
            if index not in self._phases
            for step in self._intervals[index]
        )


def slices_between(pauses: Sequence[Paused]) -> tuple[Slice, ...]:
    """The slices of one phase, each alone, from the pauses of that phase in their order.

    Pauses count from the start of the phase, and only some of them end a slice: the others are at
    the start of the phase and before what is left to flush and compact.
    """
    return tuple(
        Slice(
            elapsed_s=after.elapsed_s - before.elapsed_s,
            operations=after.operations_total - before.operations_total,
            cpu_s=after.cpu_s - before.cpu_s,
            steal_s=_difference(after.steal_s, before.steal_s),
        )
        for before, after in pairwise(pauses)
        if after.slice > before.slice
    )


def _difference(after: float | None, before: float | None) -> float | None:
    return None if after is None or before is None else after - before


def _with_background_work(phase: PhaseMeasurement, work: BackgroundWork) -> PhaseMeasurement:
    known = work.write_amplification
    return replace(
        phase,
        flushes=work.flushes,
        flush_bytes=work.flush_bytes,
        compactions=work.compactions,
        compaction_read_bytes=work.compaction_read_bytes,
        compaction_write_bytes=work.compaction_write_bytes,
        levels=work.levels,
        write_amplification=phase.write_amplification if known is None else known,
    )


def _named(message: Message) -> str:
    return type(message).__name__
