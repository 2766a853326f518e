"""What ekvsb prints: the records of a run, streamed, and the summary of one.

    run     = "[" record { "," record } "]"
    record  = { seqno, key, method, start_time, elapsed, exists, error }
    summary = { oks, errors, existence: { exists, absents, unknowns }, elapsed, ops,
                latency: { min, median, p95, p99, max } }

Times are seconds. A run prints one record a line (`execute` in ekvsb's `src/main.rs`), so that one
of any length is read in little memory. `summarise` computes what `ekvsb summary` does: the
operations per second are those of the sum of all `elapsed`, without what lay between operations,
and a percentile is the element number `n * p / 100`, rounded down, of all times in order.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from lsmtune.errors import InputError
from lsmtune.model.measurement import PhaseMeasurement

METHODS = ("PUT", "GET", "DELETE")


@dataclass(frozen=True)
class EkvsbRecord:
    """One operation. `exists` is None where the store does not say; `error` None where it did."""

    seqno: int
    key: str
    method: str
    start_time_s: float
    elapsed_s: float
    exists: bool | None
    error: str | None


@dataclass(frozen=True)
class EkvsbLatency:
    """Latency in seconds; all zero for a run without operations, as ekvsb has it."""

    min_s: float
    median_s: float
    p95_s: float
    p99_s: float
    max_s: float


@dataclass(frozen=True)
class EkvsbSummary:
    """What `ekvsb summary` prints of a run.

    `exists`, `absents` and `unknowns` count what the records say; writes are unknowns. `elapsed_s`
    is the sum of the operations' own times, and `ops` operations by it, None for none at all.
    """

    oks: int
    errors: int
    exists: int
    absents: int
    unknowns: int
    elapsed_s: float
    ops: float | None
    latency: EkvsbLatency

    def document(self) -> dict[str, object]:
        """The same as ekvsb's JSON has it."""
        counts = {"exists": self.exists, "absents": self.absents, "unknowns": self.unknowns}
        latency = self.latency
        return {
            "oks": self.oks,
            "errors": self.errors,
            "existence": counts,
            "elapsed": self.elapsed_s,
            "ops": self.ops,
            "latency": {
                "min": latency.min_s,
                "median": latency.median_s,
                "p95": latency.p95_s,
                "p99": latency.p99_s,
                "max": latency.max_s,
            },
        }


def read_records(lines: Iterable[str], source: str) -> Iterator[EkvsbRecord]:
    """The records of a run, as they come; `lines` are those that ekvsb printed.

    A run that was cut off is no error until its end is needed: the last record may lack its comma,
    and the closing bracket may be missing. Raises InputError with the line for anything else.
    """
    opened = closed = False
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text:
            continue
        if not opened:
            opened = True
            if not text.startswith("["):
                raise InputError(source, f"line {number}", found=text, allowed="[")
            text = text[1:].strip()
        if closed:
            raise InputError(source, f"line {number}", found=text, allowed="nothing after ]")
        if text.endswith("]"):
            closed = True
            text = text[:-1].strip()
        text = text.removesuffix(",")
        if text:
            yield _record(text, f"line {number}", source)
    if not opened:
        raise InputError(source, found="nothing", allowed="the JSON array that `ekvsb run` prints")


def _record(text: str, place: str, source: str) -> EkvsbRecord:
    try:
        data = json.loads(text)
    except ValueError:
        raise InputError(source, place, found=text, allowed="a record of ekvsb, one a line") from (
            None
        )
    if not isinstance(data, dict):
        raise InputError(source, place, found=text, allowed="a record of ekvsb, one a line")
    method = data.get("method")
    if method not in METHODS:
        raise InputError(source, f"{place}: method", found=method, allowed=", ".join(METHODS))
    error = data.get("error")
    return EkvsbRecord(
        seqno=_whole(data, "seqno", place, source),
        key=str(data.get("key", "")),
        method=str(method),
        start_time_s=_seconds(data, "start_time", place, source),
        elapsed_s=_seconds(data, "elapsed", place, source),
        exists=_truth(data, place, source),
        error=None if error is None else json.dumps(error),
    )


def _whole(data: dict[str, Any], name: str, place: str, source: str) -> int:
    value = data.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(source, f"{place}: {name}", found=value, allowed="a whole number from 0")
    return value


def _seconds(data: dict[str, Any], name: str, place: str, source: str) -> float:
    value = data.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise InputError(source, f"{place}: {name}", found=value, allowed="seconds, from 0")
    return float(value)


def _truth(data: dict[str, Any], place: str, source: str) -> bool | None:
    value = data.get("exists")
    if value is not None and not isinstance(value, bool):
        raise InputError(source, f"{place}: exists", found=value, allowed="true, false or null")
    return value


class Summing:
    """Sums records up as they come, in eight bytes a record."""

    def __init__(self) -> None:
        self._times = array("d")
        self._elapsed_s = 0.0
        self._errors = self._exists = self._absents = 0

    @property
    def count(self) -> int:
        """Records so far."""
        return len(self._times)

    def add(self, record: EkvsbRecord) -> None:
        """Takes the next record."""
        self._times.append(record.elapsed_s)
        self._elapsed_s += record.elapsed_s  # in ekvsb's order, so that the last digit agrees
        self._errors += record.error is not None
        self._exists += record.exists is True
        self._absents += record.exists is False

    def summary(self) -> EkvsbSummary:
        """What `ekvsb summary` says of the records so far."""
        times, count = sorted(self._times), len(self._times)

        def at(percent: int) -> float:
            return times[count * percent // 100] if times else 0.0

        return EkvsbSummary(
            oks=count - self._errors,
            errors=self._errors,
            exists=self._exists,
            absents=self._absents,
            unknowns=count - self._exists - self._absents,
            elapsed_s=self._elapsed_s,
            ops=count / self._elapsed_s if self._elapsed_s > 0 else None,
            latency=EkvsbLatency(at(0), at(50), at(95), at(99), times[-1] if times else 0.0),
        )


def summarise(records: Iterable[EkvsbRecord]) -> EkvsbSummary:
    """What `ekvsb summary` prints of `records`."""
    summing = Summing()
    for record in records:
        summing.add(record)
    return summing.summary()


# --- the figures of `ekvsb summary` of a phase that lsmtune's driver, or another program, performed
#
# ekvsb sums the operations' own times up; what lies between them is left out. A phase tells their
# mean, so that their sum is known, and percentiles from a histogram, where ekvsb takes them from
# all times in order. What is not told is None.

_US_PER_S = 1e6


def summary_of_phase(phase: PhaseMeasurement) -> dict[str, object]:
    """The document, in ekvsb's words and units (seconds).

    Operations that failed end a run, so that there are no errors. `min` is in no measurement.
    Writes, and reads of which it is not told whether they found their keys, are unknowns; the
    lookups of updates count as reads.
    """
    exists, absents = phase.keys_found or 0, phase.keys_missing or 0
    elapsed_s = _within_s(phase)
    return {
        "oks": phase.operations,
        "errors": 0,
        "existence": {
            "exists": exists,
            "absents": absents,
            "unknowns": max(0, phase.operations - exists - absents),
        },
        "elapsed": elapsed_s,
        "ops": phase.operations / elapsed_s if elapsed_s else None,
        "latency": {
            "min": None,
            "median": _ekvsb_summary_seconds(phase.latency_us_p50),
            "p95": _ekvsb_summary_seconds(phase.latency_us_p95),
            "p99": _ekvsb_summary_seconds(phase.latency_us_p99),
            "max": _ekvsb_summary_seconds(phase.latency_us_max),
        },
    }


def _within_s(phase: PhaseMeasurement) -> float | None:
    """Seconds within operations; None where latencies are not told of all of them."""
    if phase.latency_us_mean is not None:
        return phase.latency_us_mean * phase.operations / _US_PER_S
    told = phase.latencies.values()
    if sum(each.count for each in told) < phase.operations:
        return None
    return sum(each.latency_us_mean * each.count for each in told) / _US_PER_S


def _ekvsb_summary_seconds(latency_us: float | None) -> float | None:
    return None if latency_us is None else latency_us / _US_PER_S
