"""What ekvsb prints: the records of a run, streamed, and the summary of one.

    run     = "[" record { "," record } "]"
    record  = { seqno, key, method, start_time, elapsed, exists, error }
    summary = { oks, errors, existence: { exists, absents, unknowns }, elapsed, ops,
                latency: { min, median, p95, p99, max } }

Times are seconds. A run prints one record a line (`execute` in ekvsb's `src/main.rs`), so that one
of any length is read in little memory.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lsmtune.errors import InputError
from lsmtune.model.measurement import PhaseMeasurement

METHODS = ("PUT", "GET", "DELETE")
_US_PER_S = 1e6


@dataclass(frozen=True)
class EkvsbRecord:
    """One operation. `exists` is None where the store does not say; `failed`: it says an error."""

    method: str
    elapsed_s: float
    exists: bool | None
    failed: bool


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


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_seconds(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _is_truth(value: object) -> bool:
    return value is None or isinstance(value, bool)


_FIELDS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "method": (METHODS.__contains__, ", ".join(METHODS)),
    "seqno": (_is_whole, "a whole number from 0"),
    "start_time": (_is_seconds, "seconds, from 0"),
    "elapsed": (_is_seconds, "seconds, from 0"),
    "exists": (_is_truth, "true, false or null"),
}


def _record(text: str, line: str, source: str) -> EkvsbRecord:
    try:
        data: Any = json.loads(text)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise InputError(source, line, found=text, allowed="a record of ekvsb, one a line")
    for name, (is_right, allowed) in _FIELDS.items():
        if not is_right(data.get(name)):
            raise InputError(source, f"{line}: {name}", found=data.get(name), allowed=allowed)
    failed = data.get("error") is not None
    return EkvsbRecord(data["method"], float(data["elapsed"]), data.get("exists"), failed)


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

    @property
    def ops(self) -> float | None:
        """Operations per second of `elapsed_s`; None for none at all."""
        return self.count / self.elapsed_s if self.elapsed_s > 0 else None

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
        places = {name: len(times) * p // 100 for name, p in _PERCENTS.items()}
        return {name: times[place] for name, place in {**places, "max": last}.items()}

    def document(self) -> dict[str, object]:
        """The JSON that `ekvsb summary` prints of the records so far."""
        unknowns = self.count - self.exists - self.absents
        existence = {"exists": self.exists, "absents": self.absents, "unknowns": unknowns}
        return {
            "oks": self.count - self.errors,
            "errors": self.errors,
            "existence": existence,
            "elapsed": self.elapsed_s,
            "ops": self.ops,
            "latency": self.latency_s(),
        }


_PERCENTS = {"min": 0, "median": 50, "p95": 95, "p99": 99}


def summarise(records: Iterable[EkvsbRecord]) -> dict[str, object]:
    """What `ekvsb summary` prints of `records`."""
    summary = Summary()
    for record in records:
        summary.add(record)
    return summary.document()


def summary_of_phase(phase: PhaseMeasurement) -> dict[str, object]:
    """The same of a phase that lsmtune's driver, or another program, performed; untold is None.

    Operations that failed end a run, so that there are no errors. `min` is in no measurement.
    Writes, and reads of which it is not told whether they found their keys, are unknowns; the
    lookups of updates count as reads. A phase tells the mean of the operations' own times, so that
    their sum is known where it is told of all of them, and percentiles from a histogram.
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
            name: None if latency_us is None else latency_us / _US_PER_S
            for name, latency_us in latencies_us.items()
        },
    }
