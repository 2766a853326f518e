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

# A trial slower than this many median runs is a bad one, whatever it would come to in the end.
PATIENCE_FACTOR = 5.0


@dataclass(frozen=True)
class SearchBudget:
    """At most `trials` trials, and `time_s` seconds for search and proof together; None: no end.

    `pairs` is the number of pairs of the proof, of two runs each.
    """

    trials: int | None
    time_s: float | None
    pairs: int

    def reserve_s(self, run_walls_s: Sequence[float]) -> float:
        """Seconds to keep for the proof, given what each run so far took (at least one)."""
        return 2 * self.pairs * statistics.median(run_walls_s) * RESERVE_FACTOR

    def end(self, trials: int, spent_s: float, run_walls_s: Sequence[float]) -> str:
        """Why no other trial may begin, in one line; empty when one may."""
        if self.trials is not None and trials >= self.trials:
            return f"{trials} trials done"
        if self.time_s is None:
            return ""
        next_run_s = statistics.median(run_walls_s)
        reserve_s = self.reserve_s(run_walls_s)
        if spent_s + next_run_s + reserve_s <= self.time_s:
            return ""
        return (
            f"{format_duration(max(0.0, self.time_s - spent_s))} of the time budget are left, "
            f"kept for the proof"
        )

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
