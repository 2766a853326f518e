"""What one run is doing now, for displays: fed with the driver's messages."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from lsmtune.records.workload import Phase, PhaseKind, Workload
from lsmtune.runners.messages import IntervalPassed, Message, PhaseFinished, PhaseStarted

_KEPT = 24


@dataclass
class PhaseProgress:
    """One phase: `share` of it done, 0 to 1; throughput of the last intervals, oldest first."""

    phase: Phase
    started: bool = False
    finished: bool = False
    elapsed_s: float = 0.0
    operations: int = 0
    rss_bytes: int | None = None
    throughputs_ops_s: deque[float] = field(default_factory=lambda: deque(maxlen=_KEPT))

    @property
    def share(self) -> float:
        """How much of the phase is done, as far as its size is known."""
        if self.finished:
            return 1.0
        shares = [0.0]
        whole = self.phase.operations_whole
        if whole:
            shares.append(self.operations / whole)
        if self.phase.duration_s:
            shares.append(self.elapsed_s / self.phase.duration_s)
        return min(1.0, max(shares))


class RunProgress:
    """The phases of a run and how far it is; begin again with `restart`."""

    def __init__(self, workload: Workload) -> None:
        self.phases: list[PhaseProgress] = []
        self.restart(workload)

    def restart(self, workload: Workload) -> None:
        """A new run of `workload` begins."""
        self.phases = [PhaseProgress(phase) for phase in workload.phases]

    @property
    def current(self) -> PhaseProgress | None:
        """The phase that runs now."""
        running = [phase for phase in self.phases if phase.started and not phase.finished]
        return running[0] if running else None

    def message(self, message: Message) -> None:
        """Takes one message of the driver."""
        match message:
            case PhaseStarted(index=index):
                self._align(index, message.name)
                self.phases[index].started = True
            case IntervalPassed(index=index):
                phase = self.phases[index]
                phase.elapsed_s = message.elapsed_s
                phase.operations = message.operations_total
                phase.rss_bytes = message.rss_bytes
                phase.throughputs_ops_s.append(message.throughput_ops_s)
            case PhaseFinished(index=index, phase=measured):
                phase = self.phases[index]
                phase.finished = True
                phase.elapsed_s = measured.elapsed_s + (measured.drain_s or 0.0)
                phase.operations = measured.operations
                phase.rss_bytes = measured.rss_bytes_max
            case _:
                pass

    def _align(self, index: int, name: str) -> None:
        """Makes room for a settle phase that the workload does not have, where there is one.

        A database that is loaded once is settled whatever the workload says (`databases.plan`), and
        the run on its copy does not announce what was done before.
        """
        names = [known.phase.name for known in self.phases]
        if index < len(names) and names[index] == name:
            return
        place = names.index(name) if name in names else min(index, len(names))
        missing = max(index - place + (name not in names), 1)
        settle = Phase("settle", PhaseKind.SETTLE)
        self.phases[place:place] = [PhaseProgress(settle) for _ in range(missing)]
