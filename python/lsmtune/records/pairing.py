"""How the two runs of a pair share a machine."""

from __future__ import annotations

from enum import StrEnum


class PairMethod(StrEnum):
    """One way to run a baseline and a candidate so that their ratio says something.

    `whole`: one run after the other. `slices`: both alive, taking turns in short slices, the other
    one frozen. `duet`: both at the same time, each on its own half of the cores.
    """

    WHOLE = "whole"
    SLICES = "slices"
    DUET = "duet"


# Slices of each measure phase where nothing is known of its length.
SLICES_DEFAULT = 20
# A slice should be short beside what disturbs a shared machine, which is seconds, and long beside a
# change of turns, which is less than a millisecond.
SLICE_S = 0.15
SLICES_MAX = 400


def slices_for(measure_s: float) -> int:
    """The number of slices for a measure phase that takes about `measure_s` seconds.

    Even, so that each run begins as often as the other; at least 4.
    """
    return min(max(4, 2 * round(measure_s / SLICE_S / 2)), SLICES_MAX)
