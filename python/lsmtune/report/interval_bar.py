"""Where the marks of the verdict's bar go: geometry only."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lsmtune.records.verdict import Verdict

_MARGIN = 0.18  # of the span, on either side, so that no mark touches an end


@dataclass(frozen=True)
class IntervalBar:
    """Positions in percent of the bar's width; `one` is where the ratio is 1."""

    one: float
    low: float
    high: float
    ratio: float

    @property
    def width(self) -> float:
        """Width of the interval."""
        return self.high - self.low


def interval_bar(verdict: Verdict | None) -> IntervalBar | None:
    """The bar on a log scale of ratios, or None without a finite interval above zero."""
    if verdict is None:
        return None
    ratios = (1.0, verdict.ratio_low, verdict.ratio_high, verdict.ratio)
    known = [r for r in ratios if r is not None and math.isfinite(r) and r > 0]
    if len(known) < len(ratios):
        return None
    logs = [math.log(r) for r in known]
    span = max(max(logs) - min(logs), 0.02)
    start = min(logs) - _MARGIN * span
    whole = max(logs) - min(logs) + 2 * _MARGIN * span
    one, low, high, ratio = (round(100 * (place - start) / whole, 2) for place in logs)
    return IntervalBar(one, low, high, ratio)
