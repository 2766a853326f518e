"""What it would take to prove what was not proven: pairs and time, from what the pairs showed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lsmtune.records.verdict import Verdict
from lsmtune.stats.noise import detectable_effect, noise_of, pairs_needed
from lsmtune.stats.paired import MINIMUM_PAIRS
from lsmtune.stats.sequential import pairs_at_least
from lsmtune.units import format_duration

# The largest number of pairs that can be asked for; above it the advice is another one.
PAIRS_MAX = 1000


@dataclass(frozen=True)
class Effort:
    """About `pairs` pairs in all, None where that cannot be told, and the same in words."""

    pairs: int | None = None
    text: str = ""


def effort(verdict: Verdict, smallest_effect: float | None, pair_s: float | None) -> Effort:
    """What a proof that ended in `verdict`, not proven, would have taken.

    The difference to prove is the one that was seen, or `smallest_effect` e where that is larger:
    then to show that there is none. It is proven in four of five proofs of so many pairs, if the
    noise stays what it was. A difference that was seen by chance is smaller in truth, so that this
    is a lower estimate. `pair_s` seconds go into a pair.
    """
    least = pairs_at_least(verdict.confidence)
    if verdict.pairs < MINIMUM_PAIRS:
        return Effort(least, _least(verdict, least, pair_s))
    if verdict.ratio is None:
        return Effort()
    both = zip(verdict.candidate_values, verdict.baseline_values, strict=True)
    log_sd = noise_of([candidate / baseline for candidate, baseline in both]).log_sd
    seen = math.exp(abs(math.log(verdict.ratio))) - 1.0
    wanted = max(seen, smallest_effect or 0.0)
    if log_sd == 0.0 or wanted == 0.0:
        return Effort()
    pairs = max(pairs_needed(wanted, log_sd, verdict.confidence), least, verdict.pairs + 1)
    if pairs == least:
        return Effort(pairs, _least(verdict, least, pair_s))
    shown = ""
    if verdict.pairs >= least:
        detectable = detectable_effect(verdict.pairs, log_sd, verdict.confidence)
        shown = f"{verdict.pairs} pairs show a difference of {_percent(detectable)}; "
    return Effort(pairs, shown + _wanted(wanted, pairs, verdict, pair_s, smallest_effect))


def _least(verdict: Verdict, least: int, pair_s: float | None) -> str:
    more = least - verdict.pairs
    return f"at least {least} pairs, {more} more{_time(more, pair_s)}"


def _wanted(
    wanted: float,
    pairs: int,
    verdict: Verdict,
    pair_s: float | None,
    smallest_effect: float | None,
) -> str:
    many = f"at this noise a difference of {_percent(wanted)} takes about {pairs:,} pairs"
    if pairs <= PAIRS_MAX:
        more = pairs - verdict.pairs
        return f"{many}, {more} more{_time(more, pair_s)}"
    advice = "make the runs longer, or the machine quieter"
    if smallest_effect is None:
        advice = f"say what is too small to matter (smallest effect), {advice}"
    return f"{many}: {advice}"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.0f} %"


def _time(pairs: int, pair_s: float | None) -> str:
    return "" if pair_s is None else f" (about {format_duration(round(pairs * pair_s))})"
