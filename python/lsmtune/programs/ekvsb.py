"""How ekvsb is called, and what it prints.

Its tasks are `workloads/ekvsb.py`, its flags of options `formats/ekvsb.py`.

Facts from ekvsb's `src/main.rs` and `src/task.rs`: a workload is a JSON array of tasks on stdin,
held in memory whole; it is performed in order in one thread; values are random bytes, keys text.
"""

from __future__ import annotations

import itertools
import math
import re
import shlex
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from lsmtune.driver.runner import DATABASE
from lsmtune.engines.formats.ekvsb import FLAGS
from lsmtune.errors import FieldError, InputError
from lsmtune.model.measurement import Latency, PhaseMeasurement
from lsmtune.model.metrics import PERCENTILES
from lsmtune.model.request import RunRequest
from lsmtune.model.workload import Durability, PageCache, Phase, Workload
from lsmtune.programs.output import cannot, check_performable, performing
from lsmtune.programs.program import (
    FoundProgram,
    Observed,
    Plan,
    Program,
    Step,
    StepOutput,
    options_for,
    phase_measurement,
    settle_warnings,
    value_warnings,
)
from lsmtune.workloads.ekvsb import METHODS, elements, lines_of

NAME = "ekvsb"
_EACH_ONCE = ("fillseq", "filluniquerandom", "readuniquerandom", "deleteuniquerandom")
_OPERATIONS = (*_EACH_ONCE, "fillrandom", "overwrite", "readrandom", "deleterandom")
# The JSON of a task is some 60 bytes and becomes a string of Rust: 2^24 of them are 2 GiB.
OPERATIONS_MAX = 2**24

ALL_FLAGS = (
    *(spelling.name for spelling in FLAGS.values()),
    *("force-default", "parallelism", "optimize-level-style-compaction"),
    *("optimize-for-point-lookup", "min-write-buffer-number", "memtable-factory-vector"),
    *("memtable-factory-hashskiplist-bucket-count", "memtable-factory-hashskiplist-height"),
    *("memtable-factory-hashskiplist-branching-factor",),
    *("memtable-factory-hashlinklist-bucket-count",),
    "block-opt-bloom-filter-block-based",
)


def check(workload: Workload, _engine_name: str) -> None:
    """Raises InputError for the first thing in `workload` that ekvsb cannot perform."""
    check_performable(NAME, workload, (Durability.WAL,))
    if workload.page_cache is not PageCache.WARM:
        raise cannot(NAME, "page_cache", found=workload.page_cache.value, allowed="warm")
    if workload.key_bytes < len(str(workload.num - 1)):
        allowed = f"{len(str(workload.num - 1))} or more: its keys are text, decimal digits"
        raise cannot(NAME, "key_bytes", found=workload.key_bytes, allowed=allowed)
    total = sum(operations_of(workload, phase) for _, phase in performing(workload))
    if total > OPERATIONS_MAX:
        allowed = f"at most {OPERATIONS_MAX} in all phases: it holds its workload in memory"
        raise cannot(NAME, "num", found=total, allowed=allowed)


def operations_of(workload: Workload, phase: Phase) -> int:
    """How many tasks `phase` is. Raises InputError for what ekvsb cannot perform of it."""
    field = f"{phase.name}: operation"
    if phase.operation not in _OPERATIONS:
        doing = phase.operation or ("a mix of operations" if phase.mix is not None else "nothing")
        raise cannot(NAME, field, found=doing, allowed=", ".join(_OPERATIONS))
    if phase.threads != 1:
        raise cannot(NAME, f"{phase.name}: threads", found=phase.threads, allowed="1")
    count = phase.operations_whole
    if count is None or phase.duration_s is not None:
        raise cannot(NAME, f"{phase.name}: duration_s", why="it ends by its operations alone")
    if phase.operation in _EACH_ONCE and count > workload.num:
        allowed = f"at most num, {workload.num}: each key comes up once"
        raise cannot(NAME, f"{phase.name}: operations", found=count, allowed=allowed)
    return count


def _blind_to(workload: Workload, index: int) -> frozenset[str]:
    """Percentiles but three; processor time, much of which goes into tasks and records.

    Of one phase of several also what `_read` leaves out.
    """
    reported = {"latency_us_p50", "latency_us_p95", "latency_us_p99"}
    blind = (frozenset(PERCENTILES) - reported) | {"cpu_us_per_operation"}
    phases = [at for at, _ in performing(workload)]
    if len(phases) > 1:
        blind |= {"rss_bytes_max"}
    return blind if index == phases[-1] else blind | {"database_bytes"}


VALUES = "ekvsb writes random bytes"
WITHIN = "ekvsb counts only the time within operations; what lies between them is left out"


# --- ekvsb as a runner: one process performs all phases, whose records are told apart by number

WORKLOAD = "workload.json"
NO_SETTLE = "ekvsb cannot wait for compactions: its next phase starts from a tree that is busy"
_US_PER_S = 1e6


def _plan(request: RunRequest, _executable: FoundProgram) -> Plan:
    workload = request.workload
    options = shlex.split(options_for(NAME, NAME, "rocksdb", request.config.options))
    step = Step(
        arguments=("run", "rocksdb", str(request.directory / DATABASE), *options),
        phases=tuple(index for index, _ in performing(workload)),
        read=partial(_read, workload),
        files={WORKLOAD: partial(lines_of, workload, request.seed, NAME)},
        stdin=WORKLOAD,
    )
    warnings = settle_warnings(workload, WITHIN, NO_SETTLE) + value_warnings(workload, VALUES)
    return Plan((step,), warnings)


def _read(workload: Workload, output: StepOutput) -> Observed:
    """Each phase's records, in the order in which they were asked for.

    From outside only the end of the last phase is seen, and the peak of all of them.
    """
    measured: dict[int, PhaseMeasurement] = {}
    phases = performing(workload)
    if len(phases) > 1:
        output = replace(output, rss_bytes_max=None)
    with output.stdout.open(encoding="utf-8", errors="replace") as printed:
        records = read_records(printed.read, NAME)
        for index, phase in phases:
            is_last = index == phases[-1][0]
            of_phase = output if is_last else replace(output, database_bytes=None)
            wanted = operations_of(workload, phase)
            measured[index] = _measured(phase, wanted, records, of_phase)
    return Observed(measured)


def _measured(
    phase: Phase, wanted: int, records: Iterator[EkvsbRecord], output: StepOutput
) -> PhaseMeasurement:
    summary, method = Summary(), ""
    for record in itertools.islice(records, wanted):
        method = record.method
        summary.add(record)
    if summary.count < wanted:
        why = f"ended after {summary.count} of {wanted} operations of {phase.name}"
        raise InputError(NAME, why=why)
    if summary.errors:
        why = f"{summary.errors} of {wanted} operations of {phase.name} failed"
        raise InputError(NAME, why=why)
    if not summary.elapsed_s:  # infinitely many per second
        why = f"{phase.name} took less time than it can tell: 0 seconds"
        raise InputError(NAME, why=why, allowed="more operations")
    timed, reads = METHODS[method], method == "GET"
    latency_us = {name: seconds * _US_PER_S for name, seconds in summary.latency_s().items()}
    latency = Latency(
        count=wanted,
        latency_us_mean=summary.elapsed_s / wanted * _US_PER_S,
        latency_us_p50=latency_us["median"],
        latency_us_p95=latency_us["p95"],
        latency_us_p99=latency_us["p99"],
        latency_us_max=latency_us["max"],
    )
    return phase_measurement(
        phase,
        output,
        alone=False,
        operations=wanted,
        elapsed_s=summary.elapsed_s,
        throughput_ops_s=wanted / summary.elapsed_s,
        latencies={timed: latency},
        keys_found=summary.exists if reads else None,
        keys_missing=summary.absents if reads else None,
        operations_by_type={timed: wanted},
    )


PROGRAM = Program(
    name=NAME,
    engines=("rocksdb",),
    executables=("ekvsb",),
    answer=re.compile(r"^ +summary +Shows summary of a benchmark result", re.MULTILINE),
    check=check,
    blind_to=_blind_to,
    known_flags=ALL_FLAGS,
    note=WITHIN,
    plan=_plan,
)


# --- what ekvsb prints: the records of a run, streamed, and the summary of one
#
#     run     = "[" record { "," record } "]"
#     record  = { seqno, key, method, start_time, elapsed, exists, error }
#     summary = { oks, errors, existence: { exists, absents, unknowns }, elapsed, ops,
#                 latency: { min, median, p95, p99, max } }
#
# Times are seconds.


@dataclass(frozen=True)
class EkvsbRecord:
    """One operation. `exists` is None where the store does not say; `failed`: it says an error."""

    method: str
    elapsed_s: float
    exists: bool | None
    failed: bool


def read_records(read: Callable[[int], str], source: str) -> Iterator[EkvsbRecord]:
    """The records of a run, as they come; `read` is that of a file with what ekvsb printed.

    A run that was cut off after a record is no error until its end is needed. Raises InputError
    with the offset, in characters, of anything else.
    """
    return elements(read, source, _record, cut_off_is_fine=True)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_seconds(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value < math.inf


def _is_truth(value: object) -> bool:
    return value is None or isinstance(value, bool)


_FIELDS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "method": (lambda method: method in tuple(METHODS), ", ".join(METHODS)),
    "seqno": (_is_whole, "a whole number from 0"),
    "start_time": (_is_seconds, "seconds, from 0"),
    "elapsed": (_is_seconds, "seconds, from 0"),
    "exists": (_is_truth, "true, false or null"),
}


def _record(element: object) -> EkvsbRecord:
    if not isinstance(element, dict):
        raise FieldError(why="no record of ekvsb", allowed='{"seqno": 0, "method": "GET", ...}')
    for name, (is_right, allowed) in _FIELDS.items():
        if not is_right(element.get(name)):
            raise FieldError(name, found=element.get(name), allowed=allowed)
    failed = element.get("error") is not None
    return EkvsbRecord(element["method"], float(element["elapsed"]), element.get("exists"), failed)


class Summary:
    """Sums records up as they come, in eight bytes a record, as `ekvsb summary` does.

    `exists` and `absents` count what the records say. `elapsed_s` is the sum of the operations' own
    times, without what lies between them.
    """

    def __init__(self) -> None:
        self._times = array("d")
        self.elapsed_s = 0.0
        self.errors = self.exists = self.absents = 0

    @property
    def count(self) -> int:
        """Records so far."""
        return len(self._times)

    def add(self, record: EkvsbRecord) -> None:
        """Takes the next record."""
        self._times.append(record.elapsed_s)
        self.elapsed_s += record.elapsed_s  # in ekvsb's order, so that the last digit agrees
        self.errors += record.failed
        self.exists += record.exists is True
        self.absents += record.exists is False

    def latency_s(self) -> dict[str, float]:
        """Latency in seconds, by ekvsb's names; all zero for a run without operations.

        A percentile is the element number `n * p / 100`, rounded down, of all times in order.
        """
        times = sorted(self._times) or [0.0]
        last = len(times) - 1
        ranks = {name: len(times) * p // 100 for name, p in _PERCENTS.items()}
        return {name: times[rank] for name, rank in {**ranks, "max": last}.items()}


_PERCENTS = {"min": 0, "median": 50, "p95": 95, "p99": 99}


def _document(
    operations: int,
    errors: int,
    exists: int,
    absents: int,
    elapsed_s: float | None,
    latency_s: Mapping[str, float | None],
) -> dict[str, object]:
    unknowns = max(0, operations - exists - absents)
    return {
        "oks": operations - errors,
        "errors": errors,
        "existence": {"exists": exists, "absents": absents, "unknowns": unknowns},
        "elapsed": elapsed_s,
        "ops": operations / elapsed_s if elapsed_s else None,
        "latency": latency_s,
    }


def summarise(records: Iterable[EkvsbRecord]) -> dict[str, object]:
    """The JSON that `ekvsb summary` prints of `records`."""
    total = Summary()
    for record in records:
        total.add(record)
    return _document(
        total.count, total.errors, total.exists, total.absents, total.elapsed_s, total.latency_s()
    )


def summary_of_phase(phase: PhaseMeasurement) -> dict[str, object]:
    """What `summarise` gives, of a phase that lsmtune's driver or another program performed.

    Operations that failed end a run, so that there are no errors, and `min` is in no measurement.
    Unknowns are writes, and reads that do not say whether they found their keys; the lookups of
    updates count as reads. Elapsed time is the sum of the operations' own times, by their mean;
    None where it is not known of all of them.
    """
    exists, absents = phase.keys_found or 0, phase.keys_missing or 0
    by_type = phase.latencies.values()
    elapsed_s = None
    if phase.latency_us_mean is not None:
        elapsed_s = phase.latency_us_mean * phase.operations / _US_PER_S
    elif sum(latency.count for latency in by_type) >= phase.operations:
        elapsed_s = sum(each.latency_us_mean * each.count for each in by_type) / _US_PER_S
    latencies_us = {
        "min": None,
        "median": phase.latency_us_p50,
        "p95": phase.latency_us_p95,
        "p99": phase.latency_us_p99,
        "max": phase.latency_us_max,
    }
    latency_s = {
        name: None if latency_us is None else latency_us / _US_PER_S
        for name, latency_us in latencies_us.items()
    }
    return _document(phase.operations, 0, exists, absents, elapsed_s, latency_s)
