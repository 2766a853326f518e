"""When the search ends: trials, or time less what the proof will need. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from lsmtune.units import format_duration

# The proof's runs may be slower than the median run of the search; an estimate that is too short
# would cost the proof its last pairs.
RESERVE_FACTOR = 1.2

# Pairs for which the search leaves time, where the proof may take so many. A proof ends as soon as
# it is clear, and most are with fewer: ten show a difference of about one and a half times the
# scatter of their ratios. What is left of the budget then is given back; a gain that is smaller
# than that gets the rest of the budget, and ends as not proven with what it would take.
PAIRS_KEPT = 10

# Of a short budget the proof is kept half, or the pairs without which it can prove nothing.
SHARE_KEPT = 0.5
PAIRS_KEPT_LEAST = 6

# A trial slower than this many median runs is a bad one, whatever it would come to in the end.
PATIENCE_FACTOR = 5.0


@dataclass(frozen=True)
class SearchBudget:
    """At most `trials` trials, and `time_s` seconds for search and proof together; None: no end.

    `pairs` is the number of pairs that are kept for the proof, of two runs each.
    """

    trials: int | None
    time_s: float | None
    pairs: int

    def reserve_s(self, run_walls_s: Sequence[float]) -> float:
        """Seconds to keep for the proof, given what each run so far took (at least one)."""
        pair_s = 2 * statistics.median(run_walls_s) * RESERVE_FACTOR
        kept = self.pairs
        if self.time_s is not None and pair_s > 0:
            fitting = max(PAIRS_KEPT_LEAST, int(SHARE_KEPT * self.time_s / pair_s))
            kept = min(kept, fitting)
        return kept * pair_s

    def trials_end(self, trials: int) -> str:
        """Why no other trial may begin after so many, in one line; empty when one may."""
        ended = self.trials is not None and trials >= self.trials
        return f"{trials} trials done" if ended else ""

    def time_ends(self, spent_s: float, run_walls_s: Sequence[float]) -> str:
        """Why no other run may begin, in one line; empty when one may."""
        if self.holds(statistics.median(run_walls_s), spent_s, run_walls_s):
            return ""
        left_s = max(0.0, (self.time_s or 0.0) - spent_s)
        return f"{format_duration(left_s)} of the time budget are left, kept for the proof"

    def holds(self, run_s: float, spent_s: float, run_walls_s: Sequence[float]) -> bool:
        """Whether a run of `run_s` seconds leaves enough for the proof."""
        return self.time_s is None or spent_s + run_s + self.reserve_s(run_walls_s) <= self.time_s

    def longest_run_s(self, spent_s: float, run_walls_s: Sequence[float]) -> float:
        """Seconds after which a trial is ended, so that one that hangs cannot eat the budget.

        What is left for the search, but at least `PATIENCE_FACTOR` median runs: a trial must not
        be judged by how late it came.
        """
        if self.time_s is None:
            return math.inf
        left_s = self.time_s - spent_s - self.reserve_s(run_walls_s)
        return max(left_s, PATIENCE_FACTOR * statistics.median(run_walls_s))

    def too_short(self, run_walls_s: Sequence[float]) -> str:
        """A warning when the time budget allows no search at all, else empty."""
        if self.time_s is None:
            return ""
        run_s, reserve_s = statistics.median(run_walls_s), self.reserve_s(run_walls_s)
        if sum(run_walls_s) + run_s + reserve_s <= self.time_s:
            return ""
        return (
            f"a time budget of {format_duration(self.time_s)} leaves nothing for the search: a run "
            f"takes {format_duration(run_s)} and the proof needs {format_duration(reserve_s)}; "
            "raise the budget or make the workload smaller"
        )
