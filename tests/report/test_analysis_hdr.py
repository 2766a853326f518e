from __future__ import annotations

import base64
import math
import struct
import zlib

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from lsmtune.report.latencies import Histogram, decode, merged

HIGHEST = 3_600_000_000_000
VALUES = st.lists(st.integers(1, HIGHEST), min_size=1, max_size=60)
PERCENTILES = (10.0, 50.0, 90.0, 99.0, 99.9, 99.99, 100.0)
_PLAIN, _FAR = b"\x1c\x84\x93\x03", b"\xff" * 9 + b"\x02"


def oracle(values: list[int], digits: int = 3) -> HdrHistogram:
    histogram = HdrHistogram(1, HIGHEST, digits)
    for value in values:
        histogram.record_value(value)
    return histogram


def text_of(histogram: HdrHistogram) -> str:
    return str(histogram.encode().decode())


@given(VALUES, st.integers(1, 3))
def test_reads_what_another_implementation_wrote(values: list[int], digits: int) -> None:
    expected = oracle(values, digits)
    found = decode(text_of(expected))
    assert found.total == len(values)
    # Its own percentiles round the rank to the nearest, ours up, as the driver's library does.
    ranks = [max(math.ceil(p / 100 * len(values) - 1e-9), 1) for p in PERCENTILES]
    assert found.at_percentiles(PERCENTILES) == [
        expected.get_highest_equivalent_value(sorted(values)[rank - 1]) for rank in ranks
    ]


@given(VALUES)
def test_values_keep_three_digits(values: list[int]) -> None:
    found = decode(text_of(oracle(values)))
    again = np.repeat(found.values, found.counts)
    assert np.all(again >= np.sort(values))
    assert np.all(again <= np.sort(values) * 1.001)


@given(VALUES, VALUES)
def test_merging_is_recording_together(one: list[int], other: list[int]) -> None:
    together = decode(text_of(oracle(one + other)))
    parts = merged([decode(text_of(oracle(one))), decode(text_of(oracle(other)))])
    assert np.array_equal(parts.values, together.values)
    assert np.array_equal(parts.counts, together.counts)


def test_merging_takes_histograms_of_different_precision() -> None:
    parts = merged([decode(text_of(oracle([1000] * 3, 2))), decode(text_of(oracle([1000], 4)))])
    assert parts.total == 4


def test_nothing_merged_is_empty_and_has_no_percentiles() -> None:
    assert merged([]).total == 0
    with pytest.raises(ValueError, match="add up to nothing"):
        merged([]).at_percentiles([50.0])


def test_an_empty_histogram_is_read() -> None:
    assert decode(text_of(oracle([]))).total == 0


@given(VALUES, st.data())
def test_damage_is_a_value_error_or_harmless(values: list[int], data: st.DataObject) -> None:
    raw = bytearray(base64.b64decode(text_of(oracle(values))))
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] ^= data.draw(st.integers(1, 255))
    try:
        found = decode(base64.b64encode(bytes(raw)).decode())
    except ValueError:
        return
    assert isinstance(found, Histogram)


@pytest.mark.parametrize(
    "text",
    [
        "no base64!",
        "",
        "AAAA",
        base64.b64encode(b"\0" * 60).decode(),
        base64.b64encode(b"\x1c\x84\x93\x14\0\0\0\x10" + b"x" * 16).decode(),
        base64.b64encode(b"\x1c\x84\x93\x14\0\0\0\x08" + zlib.compress(b"")).decode(),
        # A count after 2**63 empty buckets, which ended a report with an OverflowError.
        base64.b64encode(_PLAIN + struct.pack(">iiiqqd", 10, 0, 3, 1, 2, 1.0) + _FAR).decode(),
    ],
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"HDR|histogram"):
        decode(text)
