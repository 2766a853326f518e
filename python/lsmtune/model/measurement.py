"""A Measurement: what one run observed, kept whole. None means not known, never zero."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from lsmtune.errors import InputError
from lsmtune.model.config import EngineIdentity
from lsmtune.model.metrics import TOTAL_ELAPSED_S, TOTAL_METRICS


class Outcome(StrEnum):
    """How a run ended."""

    OK = "ok"
    INVALID = "invalid"
    CRASHED = "crashed"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    DISK_FULL = "disk_full"
    DATA_LOSS = "data_loss"
    PRUNED = "pruned"  # ended by the tuner, because its beginning promised nothing
    CANCELLED = "cancelled"
    DISTURBED = "disturbed"  # stopped or killed from outside, which says nothing of what was run


@dataclass(frozen=True, kw_only=True)
class Percentiles:
    """Latency percentiles in microseconds: the driver's, each with an entry in `model.metrics`."""

    latency_us_p50: float | None = None
    latency_us_p95: float | None = None
    latency_us_p99: float | None = None
    latency_us_p999: float | None = None


@dataclass(frozen=True)
class Latency(Percentiles):
    """Latency of one operation type, in microseconds, and the whole HDR histogram in ns.

    Percentiles are None, and the histogram is empty, where a program of others' does not tell.
    """

    count: int
    latency_us_mean: float
    latency_us_max: float
    histogram_ns_base64: str = ""


@dataclass(frozen=True)
class Interval:
    """One step of the interval series: `elapsed_s` is at its end, since the phase's start.

    `pending_compaction_bytes` is what compactions have yet to rewrite at its end, by the engine's
    estimate; `background_write_bytes` what flushes and compactions wrote in the step, None where
    the engine has neither.
    """

    elapsed_s: float
    interval_s: float
    operations: int
    operations_total: int
    throughput_ops_s: float
    rss_bytes: int | None
    cpu_s: float | None = None
    steal_s: float | None = None
    pending_compaction_bytes: int | None = None
    background_write_bytes: int | None = None


@dataclass(frozen=True)
class LevelWork:
    """Compactions of one phase into one level of the tree."""

    level: int
    compactions: int
    compaction_write_bytes: int


@dataclass(frozen=True)
class TraceDamage:
    """Where a trace cannot be read any more, and why; what comes before it counts."""

    offset_bytes: int
    record: int
    reason: str


@dataclass(frozen=True)
class ReplayReport:
    """What the replay of a trace left out: entries of batches by their type, and damaged parts."""

    skipped: Mapping[str, int]
    damage: TraceDamage | None


@dataclass(frozen=True)
class PhaseMeasurement(Percentiles):
    """What one phase observed. `latency_us_*` are those of the phase's own operation type.

    What the runner cannot tell is None: a program of others' knows nothing of the drain after its
    last operation, and so nothing of what is sustained.
    """

    name: str
    kind: str
    operation: str | None
    threads: int
    operations: int
    elapsed_s: float
    drain_s: float | None
    throughput_ops_s: float
    sustained_throughput_ops_s: float | None
    cut_short: bool
    user_bytes_written: int | None
    user_bytes_read: int | None
    rss_bytes_max: int | None
    database_bytes: int | None
    started_unix_us: int
    finished_unix_us: int
    latency_us_mean: float | None = None
    latency_us_max: float | None = None
    latencies: Mapping[str, Latency] = field(default_factory=dict)
    intervals: tuple[Interval, ...] = ()
    database_bytes_max: int | None = None
    keys_found: int | None = None
    keys_missing: int | None = None
    reads_checked: int | None = None
    write_amplification: float | None = None
    read_amplification: float | None = None
    space_amplification: float | None = None
    cpu_us_per_operation: float | None = None
    stall_s: float | None = None
    flushes: int | None = None
    flush_bytes: int | None = None
    compactions: int | None = None
    compaction_read_bytes: int | None = None
    compaction_write_bytes: int | None = None
    steal_s: float | None = None
    levels: tuple[LevelWork, ...] | None = None
    files_per_level: tuple[int, ...] | None = None
    bytes_per_level: tuple[int, ...] | None = None
    page_cache_cached_share: float | None = None
    block_cache_hits: int | None = None
    block_cache_misses: int | None = None
    operations_by_type: Mapping[str, int] | None = None
    replay: ReplayReport | None = None


@dataclass(frozen=True)
class OptionNotTaken:
    """An option whose effective value differs from the request; None: cannot be read back."""

    name: str
    requested: str
    effective: str | None

    def __str__(self) -> str:
        does = f"uses {self.effective}"
        if self.effective is None:
            does = "does not say whether it took it"
        return f"option {self.name}={self.requested}: the engine {does}"


@dataclass(frozen=True)
class Verification:
    """The read-back of a sample of written keys after the database was closed and reopened."""

    keys_checked: int
    keys_lost: int
    keys_wrong: int
    reopen_s: float


@dataclass(frozen=True)
class RunError:
    """Why a run did not end `ok`; `nearest` holds known names close to a mistyped one."""

    kind: str
    message: str
    field: str | None = None
    found: str | None = None
    allowed: str | None = None
    nearest: tuple[str, ...] = ()

    @property
    def is_unknown_option(self) -> bool:
        """Whether the engine has no option of that name, so that no value of it could do."""
        return self.kind == "unknown_option"

    def input_error(self, source: str, field: str) -> InputError:
        """The same for the user, who wrote it under `field` of `source`."""
        if self.is_unknown_option:
            nearest = ", ".join(self.nearest)
            return InputError(source, field, why="unknown option", nearest=nearest)
        if self.found is not None and self.allowed is not None:
            return InputError(source, field, found=self.found, allowed=self.allowed)
        return InputError(source, field, why=self.message)


@dataclass(frozen=True)
class IntermediateReport:
    """What a program of the user's own said of itself at a `step`, before it was done."""

    step: int
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class Measurement:
    """One run: (config, workload, seed) on an engine, and everything it observed.

    A run that ended early keeps the phases it finished, and the intervals of the one it did not,
    which is the `phase_unfinished`.
    `reported` holds what a program of the user's own measured, by the names that it chose, and
    `intermediate` what it said on its way there. `memory_limited_by` is `cgroup` or `watch`;
    `paired_by` the `PairMethod` of a run that shared the machine with another. `runner` is the
    program of others' that performed it, by its name; empty for lsmtune's driver and for commands.
    `host` is the machine of a fleet that it ran on, by its name; empty for the tuner's own.
    """

    outcome: Outcome
    engine: EngineIdentity
    options: Mapping[str, str]
    workload: str
    seed: int
    started_unix_s: float
    elapsed_s: float
    phases: tuple[PhaseMeasurement, ...] = ()
    options_not_taken: tuple[OptionNotTaken, ...] = ()
    verification: Verification | None = None
    cpu_s: float | None = None
    rss_bytes_max: int | None = None
    database_bytes: int | None = None
    intervals_unfinished: tuple[Interval, ...] = ()
    phase_unfinished: str = ""
    error: RunError | None = None
    warnings: tuple[str, ...] = ()
    reported: Mapping[str, float] = field(default_factory=dict)
    intermediate: tuple[IntermediateReport, ...] = ()
    memory_limited_by: str = ""
    paired_by: str = ""
    runner: str = ""
    host: str = ""

    @property
    def measured_phases(self) -> list[PhaseMeasurement]:
        """The measure phases in their order."""
        return [phase for phase in self.phases if phase.kind == "measure"]

    @property
    def options_replaced(self) -> list[OptionNotTaken]:
        """Those of `options_not_taken` of which the engine says which value they have instead."""
        return [option for option in self.options_not_taken if option.effective is not None]

    @property
    def message(self) -> str:
        """Why the run did not end `ok`; empty where it did, and where nothing said why."""
        return self.error.message if self.error else ""

    @property
    def ended(self) -> str:
        """How the run ended, and why where that is known: `crashed: killed by signal 9`."""
        return f"{self.outcome.value}: {self.error.message}" if self.error else self.outcome.value


def total_metric(measurement: Measurement, metric: str) -> float | None:
    """One of TOTAL_METRICS, in seconds; None for another name, a run without measure phases, and
    where one of them does not tell.

    `total_elapsed_s` adds up the phases from their first operation to the end of their last one;
    `total_with_drain_s` adds the time to flush and compact what they wrote, which the next phase or
    user of the database would otherwise pay.
    """
    measured = measurement.measured_phases
    if metric not in TOTAL_METRICS or not measured:
        return None
    elapsed_s = sum(phase.elapsed_s for phase in measured)
    if metric == TOTAL_ELAPSED_S:
        return elapsed_s
    drains_s = [phase.drain_s for phase in measured if phase.drain_s is not None]
    return elapsed_s + sum(drains_s) if len(drains_s) == len(measured) else None
