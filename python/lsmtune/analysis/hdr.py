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
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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

    def at_percentiles(self, percentiles: Iterable[float]) -> list[int]:
        """The smallest recorded value that at least each percentile (0 to 100) does not exceed.

        Raises ValueError when the histogram is empty.
        """
        if not self.total:
            raise ValueError("an empty histogram has no percentiles")
        wanted = np.ceil(np.asarray(list(percentiles), dtype=float) / 100.0 * self.total - 1e-9)
        places = np.searchsorted(np.cumsum(self.counts), np.maximum(wanted, 1))
        return [int(value) for value in self.values[np.minimum(places, len(self.values) - 1)]]


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
        return _from_plain(_inflated(base64.b64decode(text, validate=True)))
    except (binascii.Error, struct.error, zlib.error) as error:
        raise ValueError(f"not an HDR histogram: {error}") from error


def _inflated(data: bytes) -> bytes:
    cookie, length = struct.unpack_from(">ii", data)
    if cookie & _COOKIE_MASK != _COOKIE_DEFLATED:
        return data
    stream = data[8 : 8 + length]
    if len(stream) != length:
        raise ValueError(f"not an HDR histogram: {len(stream)} bytes of {length}")
    inflater = zlib.decompressobj()
    plain = inflater.decompress(stream, _BYTES_LIMIT)
    if not inflater.eof:
        raise ValueError("not an HDR histogram: its zlib stream does not end")
    return plain


def _from_plain(data: bytes) -> Histogram:
    cookie, length, offset, digits, lowest, _, _ = _HEADER.unpack_from(data)
    if cookie & _COOKIE_MASK != _COOKIE_PLAIN:
        raise ValueError(f"not an HDR histogram: cookie {cookie & 0xFFFFFFFF:#010x}")
    if offset or not 0 <= digits <= 5 or lowest < 1:
        raise ValueError(f"HDR histogram with digits {digits}, lowest {lowest}, offset {offset}")
    payload = data[_HEADER.size : _HEADER.size + length]
    if len(payload) != length:
        raise ValueError(f"not an HDR histogram: {len(payload)} bytes of counts of {length}")
    indices, counts = _counts(payload)
    return Histogram(_highest_equivalent(indices, digits, lowest), counts)


def _counts(payload: bytes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Index and count of every bucket that is not empty."""
    indices, counts, index, position = [], [], 0, 0
    while position < len(payload):
        number, position = _zigzag(payload, position)
        if number < 0:
            index -= number
            continue
        if number:
            indices.append(index)
            counts.append(number)
        index += 1
    return np.array(indices, np.int64), np.array(counts, np.int64)


def _zigzag(payload: bytes, position: int) -> tuple[int, int]:
    """One signed number and the position after it; the ninth byte carries eight bits."""
    number = 0
    for shift in range(0, 63, 7):
        if position >= len(payload):
            raise ValueError("not an HDR histogram: its last count is cut off")
        byte = payload[position]
        position += 1
        last = shift == 56
        number |= (byte if last else byte & 0x7F) << shift
        if last or byte < 0x80:
            break
    return (number >> 1) ^ -(number & 1), position


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
