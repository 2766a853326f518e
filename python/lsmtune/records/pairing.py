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
