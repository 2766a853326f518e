"""Into how many equal ranges the keys of a trace fall, and what went to each of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lsmtune.traces.summary import KeyRange, TraceSummary

Array = NDArray[np.float64]

RANGES_FEWEST, RANGES_MOST = 4, 128
# How much closer more ranges have to come, for the keys to fall into so many: where the true number
# has been passed, others come closer only by chance.
_CLOSER = 1.1
# Below this the logarithm of a part's accesses is noise: more ranges would follow it.
_PARTS_ACCESSES = 20


def has_db_bench_numbers(summary: TraceSummary) -> bool:
    """Whether keys look like db_bench's: of 8 bytes or more, and numbers in the first 8.

    Such numbers, the highest byte first, begin with zeros in all but absurdly large databases.
    """
    space = summary.key_space
    prefix = bytes.fromhex(space.common_prefix_hex)
    sizes = summary.key_sizes.values()
    return 0 < len(prefix) < 8 and not any(prefix) and all(size.min >= 8 for size in sizes)


def count_ranges(parts: Sequence[KeyRange]) -> int:
    """The number of equal ranges, 4 to 128, within which parts of the key space are alike.

    Found by the logarithms of the parts' accesses and their medians, which single hot keys do not
    move. 1 where no number of ranges tells parts apart.
    """
    accesses = np.array([part.accesses for part in parts])
    if len(accesses) < 2 * RANGES_MOST or accesses.sum() < _PARTS_ACCESSES * len(accesses):
        return 1
    logs = np.log(accesses + 1.0)
    numbers: list[int] = [1, *range(RANGES_FEWEST, RANGES_MOST + 1)]
    left = np.array([_left_over(logs, number) for number in numbers])
    enough: int = int(np.argmax(left <= _CLOSER * left.min()))
    return numbers[enough]


def _left_over(logs: Array, ranges: int) -> float:
    """The mean distance of parts to the median of their range."""
    middle = (np.arange(len(logs)) + 0.5) / len(logs)
    of_range = np.minimum((middle * ranges).astype(np.int64), ranges - 1)
    # Parts that a border cuts belong to two ranges, and say nothing of either.
    place = middle * ranges % 1.0
    inside = (place * len(logs) / ranges > 1.0) & ((1.0 - place) * len(logs) / ranges > 1.0)
    medians = np.array([np.median(logs[of_range == number]) for number in range(ranges)])
    return float(np.abs(logs - medians[of_range])[inside].mean())
