"""Reads HDR histograms (base64 of the V2 format, deflated) into counts per value, and merges them.

Format: the wire format "V2" of HdrHistogram, as the driver writes it: a cookie and a length, then
a zlib stream that holds a 40-byte header and zigzag LEB128 counts, where a negative count stands
for a run of empty buckets.
"""

from __future__ import annotations

import base64
import binascii
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lsmtune.experiment.run_length import judged_phases
from lsmtune.model.goal import Goal
from lsmtune.model.measurement import Latency, Outcome
from lsmtune.model.metrics import PERCENTILES
from lsmtune.report.source import StudyRecords, arms, workload_label
from lsmtune.report.tables import Arm, LatencyCurve
from lsmtune.stats.fitting import quantiles

_COOKIE_MASK = 0xFFFFFF0F
_COOKIE_DEFLATED = 0x1C849304
_COOKIE_PLAIN = 0x1C849303
_HEADER = struct.Struct(">iiiiqqd")
_BYTES_LIMIT = 64 << 20  # far above 3 digits over 2**63: a larger one is not a histogram of ours


@dataclass(frozen=True)
class Histogram:
    """Counts of recorded values: `values[i]` (highest of its bucket) was seen `counts[i]` times.

    Both are int64 arrays of one length; `values` rises strictly; no count is zero.
    """

    values: NDArray[np.int64]
    counts: NDArray[np.int64]

    @property
    def total(self) -> int:
        """How many values were recorded."""
        return int(self.counts.sum())

    def at_percentiles(self, percentiles: Sequence[float]) -> list[int]:
        """The smallest recorded value that at least each percentile (0 to 100) does not exceed.

        Raises ValueError when the histogram is empty.
        """
        shares = np.asarray(percentiles, dtype=float) / 100.0
        return [int(value) for value in quantiles(self.values, self.counts, shares.tolist())]


def merged(histograms: Iterable[Histogram]) -> Histogram:
    """All of `histograms` as one, whatever the bucket layout of each."""
    every = list(histograms)
    if not every:
        return Histogram(np.zeros(0, np.int64), np.zeros(0, np.int64))
    values, places = np.unique(np.concatenate([h.values for h in every]), return_inverse=True)
    counts = np.zeros(len(values), np.int64)
    np.add.at(counts, places, np.concatenate([h.counts for h in every]))
    return Histogram(values, counts)


def decode(text: str) -> Histogram:
    """The histogram in `text`; raises ValueError that says what is wrong with it."""
    try:
        data = base64.b64decode(text, validate=True)
        cookie, length = struct.unpack_from(">ii", data)
        if cookie & _COOKIE_MASK == _COOKIE_DEFLATED:
            data = _inflated(data[8 : 8 + length], length)
        cookie, length, offset, digits, lowest, _, _ = _HEADER.unpack_from(data)
    except (binascii.Error, struct.error, zlib.error) as error:
        raise ValueError(f"not an HDR histogram: {error}") from error
    if cookie & _COOKIE_MASK != _COOKIE_PLAIN:
        raise ValueError(f"not an HDR histogram: cookie {cookie & 0xFFFFFFFF:#010x}")
    if offset or not 0 <= digits <= 5 or lowest < 1:
        raise ValueError(f"HDR histogram with digits {digits}, lowest {lowest}, offset {offset}")
    payload = data[_HEADER.size : _HEADER.size + length]
    if len(payload) != length:
        raise ValueError(f"not an HDR histogram: {len(payload)} bytes of counts of {length}")
    # Index and count of every bucket that is not empty; a negative number skips empty ones.
    indices, counts, index = [], [], 0
    for number in _numbers(payload):
        if number > 0:
            indices.append(index)
            counts.append(number)
        index += -number if number < 0 else 1
    if indices and indices[-1] >= 1 << 62:
        raise ValueError("not an HDR histogram: a value passes 2**63")
    values = _highest_equivalent(np.array(indices, np.int64), digits, lowest)
    return Histogram(values, np.array(counts, np.int64))


def _inflated(stream: bytes, length: int) -> bytes:
    if len(stream) != length:
        raise ValueError(f"not an HDR histogram: {len(stream)} bytes of {length}")
    inflater = zlib.decompressobj()
    plain = inflater.decompress(stream, _BYTES_LIMIT)
    if not inflater.eof:
        raise ValueError("not an HDR histogram: its zlib stream does not end")
    return plain


def _numbers(payload: bytes) -> Iterator[int]:
    """The signed numbers, of up to nine bytes each; the ninth carries eight bits."""
    number = shift = 0
    for byte in payload:
        last = shift == 56
        number |= (byte if last else byte & 0x7F) << shift
        shift += 7
        if last or byte < 0x80:
            yield (number >> 1) ^ -(number & 1)
            number = shift = 0
    if shift:
        raise ValueError("not an HDR histogram: its last count is cut off")


def _highest_equivalent(indices: NDArray[np.int64], digits: int, lowest: int) -> NDArray[np.int64]:
    """The highest value that falls in each bucket, as HdrHistogram reports percentiles."""
    half_bits = max(int(2 * 10**digits - 1).bit_length(), 1) - 1
    unit_bits = lowest.bit_length() - 1
    half = 1 << half_bits
    bucket = (indices >> half_bits) - 1
    sub = (indices & (half - 1)) + np.where(bucket < 0, 0, half)
    shift = np.maximum(bucket, 0) + unit_bits
    if len(shift) and int(shift.max()) + half_bits + 1 > 63:
        raise ValueError("not an HDR histogram: a value passes 2**63")
    return np.asarray((sub << shift) + (np.int64(1) << shift) - 1, np.int64)


# --- Latency percentile curves of both arms, from the whole histograms that the runs stored

_NS_PER_US = 1000.0
# Percentiles from 50 to 99.99, twelve a decade of 1 - p, and the named ones.
_EVEN = {round(100.0 - 100.0 * above, 6) for above in np.geomspace(0.5, 1e-4, 45).tolist()}
_GRID = sorted(_EVEN | {90.0, 99.99, *PERCENTILES.values()})


def latency_curves(records: StudyRecords) -> tuple[tuple[LatencyCurve, ...], tuple[str, ...]]:
    """One curve per operation type and arm, and a line for each histogram that is not readable.

    With several workloads the operation's name begins with the workload's label. A curve stops at
    the percentile beyond which fewer than one operation would lie.
    """
    curves, problems, goal = [], [], Goal((records.spec.objective,))
    for arm, runs in arms(records).items():
        by_operation: dict[str, list[tuple[int, Latency]]] = {}
        for stored in (run for run in runs if run.measurement.outcome is Outcome.OK):
            label = workload_label(records, stored)
            for phase in judged_phases(stored.measurement, goal):
                for operation, latency in phase.latencies.items():
                    if latency.histogram_ns_base64:
                        name = f"{label}: {operation}" if label else operation
                        by_operation.setdefault(name, []).append((stored.id, latency))
        for operation, latencies in sorted(by_operation.items()):
            histograms = []
            for run, latency in latencies:
                try:
                    histograms.append(decode(latency.histogram_ns_base64))
                except ValueError as error:
                    problems.append(f"run {run}, {operation}: {error}")
            whole = merged(histograms)
            if whole.total:
                runs_seen = len({run for run, _ in latencies})
                most = max(latency.latency_us_max for _, latency in latencies)
                curves.append(_curve(arm, operation, whole, runs_seen, most))
    return tuple(curves), tuple(problems)


def _curve(arm: Arm, operation: str, whole: Histogram, runs: int, most_us: float) -> LatencyCurve:
    grid = [p for p in _GRID if p <= 50.0 or (1 - p / 100.0) * whole.total >= 1 - 1e-9]
    named_ns = whole.at_percentiles(tuple(PERCENTILES.values()))
    return LatencyCurve(
        arm=arm,
        operation=operation,
        runs=runs,
        count=whole.total,
        points=[
            {"percentile": percentile, "latency_us": ns / _NS_PER_US}
            for percentile, ns in zip(grid, whole.at_percentiles(grid), strict=True)
        ],
        latency_us_max=most_us,
        **{name: ns / _NS_PER_US for name, ns in zip(PERCENTILES, named_ns, strict=True)},
    )
