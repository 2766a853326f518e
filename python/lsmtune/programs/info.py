"""What is known of a program that people trust, before any process of it is started."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lsmtune.errors import InputError
from lsmtune.records.objective import METRICS
from lsmtune.records.workload import Phase, PhaseKind, Workload

# What no program tells of a phase, because none waits for what it left to flush and compact, and
# none counts what the engine did behind it.
NEVER_TOLD = frozenset(
    {"drain_s", "sustained_throughput_ops_s", "total_with_drain_s"}
    | {"user_bytes_written", "user_bytes_read"}
    | {"write_amplification", "read_amplification", "space_amplification", "stall_s"}
    | {"flushes", "flush_bytes", "compactions", "compaction_read_bytes", "compaction_write_bytes"}
    | {"block_cache_hits", "block_cache_misses"}
)
LATENCIES = frozenset(f"latency_us_{name}" for name in ("mean", "p50", "p95", "p99", "p999", "max"))


def all_told(_phase: Phase) -> frozenset[str]:
    """For a program that tells of every phase what it tells of any."""
    return frozenset()


@dataclass(frozen=True)
class ProgramInfo:
    """A program that people trust.

    `executables` are the names under which it is looked for on PATH, `{engine}` standing for the
    engine's. `check` raises InputError for what of a workload it cannot perform on an engine.
    `blind_to` has the metrics of a phase that it does not tell, beside `NEVER_TOLD`. `known_flags`
    are used where it lists none. `note` is what to know when its figures stand beside others'.
    """

    name: str
    engines: tuple[str, ...]
    executables: tuple[str, ...]
    check: Callable[[Workload, str], None]
    blind_to: Callable[[Phase], frozenset[str]] = all_told
    known_flags: tuple[str, ...] = ()
    note: str = ""

    def check_engine(self, engine_name: str) -> None:
        """Raises InputError where the program does not work on that engine."""
        if engine_name not in self.engines:
            source, allowed = f"--runner {self.name}", ", ".join(self.engines)
            raise InputError(source, "--engine", found=engine_name, allowed=allowed)

    def untold(self, phase: Phase) -> frozenset[str]:
        """The metrics of `phase` that this program cannot tell."""
        return NEVER_TOLD | self.blind_to(phase)

    def check_told(
        self, metric: str, phase: str | None, workload: Workload, source: str, field: str = ""
    ) -> None:
        """Raises InputError where `metric` of a measure phase cannot be told.

        `phase` None is the last one, as for an objective.
        """
        measured = [
            each
            for each in workload.phases
            if each.kind is PhaseKind.MEASURE and phase in (None, each.name)
        ]
        if not measured or metric not in (untold := self.untold(measured[-1])):
            return
        told = ", ".join(each for each in METRICS if each not in untold)
        why = f"{self.name} cannot tell it"
        raise InputError(source, field, found=metric, why=why, allowed=told)
