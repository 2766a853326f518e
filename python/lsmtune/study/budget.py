"""When a search ends: after so many trials, or its time less what the proof will need. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from lsmtune.errors import InputError
from lsmtune.model.workload import PhaseKind
from lsmtune.stats.sequential import pairs_at_least
from lsmtune.study.spec import Spec
from lsmtune.units import format_duration, format_share

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
# For a finalist whose runs have to be longer it is kept up to so much.
LONGER_SHARE_KEPT = 2 / 3
PAIRS_KEPT_LEAST = 6  # at 95 %
# A search with fewer trials finds what its first points are, and is told so.
TRIALS_FEW = 10
# Trials of a model that run once at the size of the proof before it: few, as they take as long.
PROMOTED_MAX = 4

# What a calibration may take of the time budget: enough to know the noise, and most of it left for
# what the study is for.
SHARE_MAX = 0.1

# A trial slower than this many median runs is a bad one, whatever it would come to in the end.
PATIENCE_FACTOR = 5.0


def pairs_kept_least(spec: Spec) -> int:
    """The pairs without which the proof of `spec` can prove nothing, but no fewer than six."""
    return max(PAIRS_KEPT_LEAST, pairs_at_least(spec.proof.confidence))


def proof_runs_least(spec: Spec) -> float:
    """The runs of the least proof, which may be slower than those of the search."""
    return RESERVE_FACTOR * 2 * pairs_kept_least(spec)


@dataclass(frozen=True)
class SearchBudget:
    """At most `trials` trials, and `time_s` seconds for search and proof together; None: no end.

    `spent_s` of these are gone, and each run so far took `run_walls_s`, the baseline's first.
    `pairs` is the number of pairs that are kept for the proof, of two runs each, and `pairs_least`
    that without which it proves nothing. `other_s` seconds of the time go to neither: what starts
    the study, and what comes after its proof. A run of the proof takes `proof_factor` times as long
    as one of the search. While nothing is known that could be proved (`to_prove`), the search has
    half of the proof's time, too. A run of the proof is `longer_s` seconds longer than one of the
    baseline, at the size of the search, as its finalist needs that. `at_once` trials run at a time.
    """

    trials: int | None
    time_s: float | None
    pairs: int
    other_s: float = 0.0
    proof_factor: float = 1.0
    to_prove: bool = True
    longer_s: float = 0.0
    pairs_least: int = PAIRS_KEPT_LEAST
    spent_s: float = 0.0
    run_walls_s: Sequence[float] = ()
    at_once: int = 1

    @cached_property
    def _run_s(self) -> float:
        """The median run."""
        return float(np.median(np.asarray(self.run_walls_s)))

    @property
    def reserve_s(self) -> float:
        """Seconds to keep for the proof."""
        kept_s = self._kept_s(self._run_s)
        if self.longer_s and self.time_s is not None:
            # Most trials may be as long themselves. A part of the time is the search's in any
            # case: a better trial, with shorter runs, may come.
            longer_s = self._kept_s(max(self._run_s, self.run_walls_s[0] + self.longer_s))
            kept_s = max(kept_s, min(longer_s, LONGER_SHARE_KEPT * self.time_s))
        return kept_s * (1.0 if self.to_prove else SHARE_KEPT)

    def _kept_s(self, run_s: float) -> float:
        """Seconds of a proof with runs of `run_s`, at the size of the search."""
        pair_s = 2 * run_s * RESERVE_FACTOR * self.proof_factor
        kept = self.pairs
        if self.time_s is not None and pair_s > 0:
            fitting = max(self.pairs_least, int(SHARE_KEPT * self.time_s / pair_s))
            kept = min(kept, fitting)
        return kept * pair_s

    @property
    def proof_s(self) -> float:
        """Seconds that the proof may take now."""
        return math.inf if self.time_s is None else self.time_s - self.other_s - self.spent_s

    @property
    def search_s(self) -> float:
        """Seconds that the search may still take, less than 0 where it took too much."""
        return self.proof_s - self.reserve_s

    def trials_end(self, trials: int, promise: float | None, smallest_effect: float | None) -> str:
        """Why no other trial may begin after so many, in one line; empty when one may.

        The next trial is expected to gain `promise`, a logarithm of a ratio, None where that is not
        known; `smallest_effect` is what matters to the user, 0.05 for 5 %, None: nobody said.
        """
        if self.trials is not None and trials >= self.trials:
            return f"{trials} trials done"
        if promise is None or smallest_effect is None:
            return ""
        # Trials of the next tenth of the budget; without one, of what was done.
        whole = [] if self.trials is None else [float(self.trials)]
        if self.time_s is not None:
            whole.append(self.at_once * self.time_s / self._run_s)
        more = 0.1 * min(whole, default=trials)
        if more * promise >= math.log1p(smallest_effect):
            return ""
        return (
            f"the next tenth of the budget promises a gain of {100 * more * promise:.2g} %, and "
            f"{format_share(smallest_effect)} is the smallest that matters"
        )

    def time_ends(self) -> str:
        """Why no other run may begin, in one line; empty when one may."""
        if self.holds(self._run_s):
            return ""
        left_s = max(0.0, (self.time_s or 0.0) - self.spent_s)
        return f"{format_duration(left_s)} of the time budget are left, kept for the proof"

    def holds(self, run_s: float) -> bool:
        """Whether a run of `run_s` seconds leaves enough for the proof."""
        return run_s <= self.search_s

    @property
    def longest_run_s(self) -> float:
        """Seconds after which a trial has failed, so that one that hangs cannot eat the budget.

        What is left for the search, but at least `PATIENCE_FACTOR` median runs: a trial must not
        be judged by how late it came. One for which no time is left sooner is put back.
        """
        return max(self.search_s, PATIENCE_FACTOR * self._run_s)

    def exceeded(self, startup_s: float) -> str:
        """What to say of a study that took longer; `startup_s` are those before its first run."""
        over_s = 0.0 if self.time_s is None else startup_s + self.spent_s - self.time_s
        if over_s <= 0:
            return ""
        return (
            f"the study took {format_duration(over_s)} more than its time budget: the pairs "
            "without which a proof says nothing, and what follows it, are not cut off"
        )

    def few_trials(self) -> str:
        """What to say before a search that has no time for `TRIALS_FEW` trials; else empty."""
        run_s = self._run_s
        trials = self.at_once * replace(self, to_prove=True).search_s / max(run_s, 1e-9)
        if self.time_s is None or trials >= min(TRIALS_FEW, self.trials or TRIALS_FEW):
            return ""
        more_s = (TRIALS_FEW - trials) * run_s / self.at_once
        wanted_s = self.time_s + more_s / (1 - SHARE_KEPT)
        return (
            f"the time budget has room for about {max(1, math.floor(trials))} trials beside the "
            f"proof, as a run takes {format_duration(run_s)}; --budget "
            f"{format_duration(math.ceil(wanted_s))} has room for {TRIALS_FEW}"
        )

    def too_short(self) -> str:
        """What to say of a time budget that has no room for a first trial; else empty."""
        if self.time_s is None or not self.time_ends():
            return ""
        run_s = self._run_s
        proof_s = RESERVE_FACTOR * 2 * self.pairs_least * run_s * self.proof_factor
        kept_s = proof_s
        for _ in range(self.pairs):  # until it is steady: of a longer budget more pairs are kept
            needed_s = (self.spent_s + run_s + kept_s + self.other_s) / (1 - SHARE_MAX)
            kept_s = max(proof_s, replace(self, time_s=needed_s).reserve_s)
        return (
            f"nothing was tried: a time budget of {format_duration(self.time_s)} leaves nothing "
            f"for the search, as a run takes {format_duration(run_s)} and the proof needs "
            f"{format_duration(proof_s)}; what was measured is kept: repeat the command with "
            f"--budget {format_duration(math.ceil(needed_s) + 1)} or more, or make the workload "
            "smaller"
        )


def refuse_short(spec: Spec, place: str) -> None:
    """Raises InputError, which names `place`, where the time budget is too short for any search.

    That is known before a run where durations alone end phases: a baseline, a trial, and a proof.
    """
    phases = [phase for each in spec.workloads for phase in each.workload.phases]
    # A database that is loaded once serves all runs, and one with operations may end before.
    lasting = [p for p in phases if p.kind is not PhaseKind.LOAD and p.operations_whole is None]
    run_s = sum(phase.duration_s or 0.0 for phase in lasting if phase.replay is None)
    runs = 2 + 2 * pairs_kept_least(spec)
    least_s = runs * run_s
    if spec.budget.time_s is not None and spec.budget.time_s < least_s:
        field = "" if place.startswith("-") else "budget.time"  # a flag has no fields
        allowed = (
            f"at least {format_duration(least_s)}: by the durations of its phases a run takes "
            f"{format_duration(run_s)}, and a study has {runs} or more"
        )
        found = format_duration(spec.budget.time_s)
        raise InputError(place, field, found=found, allowed=allowed)
