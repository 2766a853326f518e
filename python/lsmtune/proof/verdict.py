"""From pairs to a verdict, the secondary metrics, the pairs it would take, what it rests on."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from lsmtune.experiment.run_length import judged_phases, records_added, unsteady
from lsmtune.model.goal import Direction, Goal, Objective, default_direction
from lsmtune.model.measurement import Measurement
from lsmtune.model.metrics import BY_NAME, METRICS, TOTAL_METRICS, shown_in
from lsmtune.model.verdict import MetricRatio, ProvedAt, Verdict, VerdictOutcome
from lsmtune.model.workload import PhaseKind, Workload
from lsmtune.stats.intervals import MINIMUM_PAIRS, RatioInterval
from lsmtune.stats.noise import detectable_effect, noise_of, pairs_needed
from lsmtune.stats.sequential import pairs_at_least, sequential_ratio
from lsmtune.units import format_duration, format_share

Runs = Sequence[Measurement]  # of one configuration: one per workload
PairedRuns = Sequence[tuple[Runs, Runs]]  # of complete pairs: baseline, candidate


@dataclass(frozen=True)
class PairValues:
    """What the pairs of a proof observed.

    Element i of both sides is of the same pair; a pair with a failed run is in neither, and is
    counted in `failed`. `note` says in one line why there are fewer pairs than were planned.
    `disqualified` says why the candidate cannot be better, whatever the values say.
    `data_lost`: the candidate lost data.
    """

    baseline: Sequence[float] = ()
    candidate: Sequence[float] = ()
    failed: int = 0
    note: str = ""
    disqualified: str = ""
    data_lost: bool = False


def judge(
    values: PairValues,
    goal: Goal,
    confidence: float,
    *,
    smallest_effect: float | None = None,
    interval: RatioInterval | None = None,
) -> Verdict:
    """The verdict on the candidate, which may be asked for after every pair.

    `better` or `worse` when the interval of candidate over baseline excludes 1; `equivalent`
    when `smallest_effect` e > 0 is given and the interval lies from 1 / (1 + e) to 1 + e: then a
    difference is too small to matter, proven or not. The interval is `sequential_ratio`'s, which
    holds at all looks together, so that a proof may stop as soon as it says one of these, unless
    an `interval` is given: one of pairs on several hosts, say, of a number that was fixed. A
    candidate of which a run failed is never `better` or `equivalent`; one that lost data is
    `worse`.
    """
    pairs, needed, trouble = len(values.baseline), pairs_at_least(confidence), ""
    if interval is None and pairs < needed:
        trouble = f"only {pairs} complete pairs; an interval at {confidence:.4g} needs {needed}"
    if interval is None and pairs >= MINIMUM_PAIRS:
        try:
            interval = sequential_ratio(values.baseline, values.candidate, confidence)
        except ValueError as error:
            # A metric that can be zero, such as the stall time, has no ratio.
            trouble = str(error)
    outcome = VerdictOutcome.NOT_PROVEN
    if values.data_lost:
        outcome = VerdictOutcome.WORSE
    elif interval is not None:
        limit = 1.0 + (smallest_effect or 0.0)
        if smallest_effect is not None and 1.0 / limit <= interval.low <= interval.high <= limit:
            outcome = VerdictOutcome.EQUIVALENT
        elif interval.excludes_one():
            better = goal.direction.better(interval.ratio, 1.0)
            outcome = VerdictOutcome.BETTER if better else VerdictOutcome.WORSE
    if values.disqualified and outcome is not VerdictOutcome.WORSE:
        outcome = VerdictOutcome.NOT_PROVEN
    why = "; ".join(filter(None, [values.disqualified, values.note])) or trouble
    if outcome is VerdictOutcome.NOT_PROVEN and not why:
        why = "the interval includes 1"
    low, high = (None, None) if interval is None else interval.ends
    return Verdict(
        outcome=outcome,
        metric=goal.metric,
        direction=goal.direction.value,
        confidence=confidence,
        pairs=pairs,
        pairs_failed=values.failed,
        ratio=interval.ratio if interval else None,
        ratio_low=low,
        ratio_high=high,
        baseline_values=tuple(values.baseline),
        candidate_values=tuple(values.candidate),
        why=why,
    )


def not_proven(goal: Goal, confidence: float, why: str) -> Verdict:
    """The verdict when there was nothing to prove."""
    return judge(PairValues(disqualified=why), goal, confidence)


# --- secondary metrics: their ratios, with intervals that hold together


@dataclass(frozen=True)
class SecondaryRatios:
    """`ratios` of metrics, each at the confidence `each`; None where there are none."""

    ratios: tuple[MetricRatio, ...] = ()
    each: float | None = None


def secondary_ratios(goal: Goal, pairs: PairedRuns, confidence: float) -> SecondaryRatios:
    """Every metric that was observed but the one that decides; objectives of several come first.

    `pairs` have what both sides of each observed. All intervals together hold at `confidence`: with
    m of them, each is at 1 - (1 - confidence) / m (C. E. Bonferroni, 1936; O. J. Dunn, Journal of
    the American Statistical Association 56, 1961). m counts every metric that some run observed,
    also those that have no ratio because a value is not above zero, so that it does not depend on
    the values. What is shown only (`Metric.judged`) does not count, and has a ratio without bounds.
    Several workloads have the weighted geometric mean of their values.
    """
    runs = [run for pair in pairs for side in pair for run in side]
    own = goal.objectives if goal.several else ()
    compared: dict[Objective, tuple[list[float | None], list[float | None]]] = {}
    for objective in (*own, *_shown_objectives(goal, runs)):
        alone = Goal((objective,), goal.shares)
        values = [alone.value(one) for one, _ in pairs], [alone.value(two) for _, two in pairs]
        if any(value is not None for side in values for value in side):
            compared[objective] = values
    if not compared:
        return SecondaryRatios()
    unjudged = {o for o in compared if o.metric in BY_NAME and not BY_NAME[o.metric].judged}
    unjudged -= set(own)
    each = 1.0 - (1.0 - confidence) / max(len(compared) - len(unjudged), 1)
    ratios = []
    for objective, (baseline, candidate) in compared.items():
        # Which way a number is better that a program made up, nobody said.
        is_known = objective in own or objective.metric in METRICS
        direction = objective.direction.value if is_known else ""
        ratio = _ratio(objective.label, direction, baseline, candidate, each)
        if objective in unjudged:
            ratio = replace(ratio, ratio_low=None, ratio_high=None)
        if objective in own or ratio.ratio is not None:
            ratios.append(ratio)
    return SecondaryRatios(tuple(ratios), each)


def _shown_objectives(goal: Goal, runs: Runs) -> list[Objective]:
    """The metrics of the phase that is judged that may be shown, without those of the goal."""
    phase = goal.objectives[0].phase
    known = [Objective(name, default_direction(name), phase) for name in shown_in("verdict")]
    if any(len(run.measured_phases) > 1 for run in runs):
        known += [Objective(name, Direction.MINIMIZE) for name in TOTAL_METRICS]
    # A program may report a metric that is known, of which the direction is, too.
    reported = dict.fromkeys(name for run in runs for name in run.reported)
    others = reported.keys() - {objective.metric for objective in known}
    known += [Objective(name, default_direction(name)) for name in reported if name in others]
    shown = {objective.label for objective in goal.objectives}
    return [objective for objective in known if objective.label not in shown]


def _ratio(
    label: str,
    direction: str,
    baseline: Sequence[float | None],
    candidate: Sequence[float | None],
    confidence: float,
) -> MetricRatio:
    """The ratio of the metric `label`; without one where a pair has no value above zero."""
    base = [value for value in baseline if value is not None and value > 0]
    other = [value for value in candidate if value is not None and value > 0]
    if len(base) < max(len(baseline), MINIMUM_PAIRS) or len(other) < len(candidate):
        return MetricRatio(label, direction)
    interval = sequential_ratio(base, other, confidence)
    return MetricRatio(label, direction, interval.ratio, *interval.ends)


# --- What it would take to prove what was not proven: pairs and time, from what the pairs showed.

# The largest number of pairs that can be asked for; above it the advice is another one.
PAIRS_MAX = 1000
# An interval within two bounds has passed both: in four of five proofs, if each in nine of ten.
_POWER_OF_EACH_BOUND = 0.9


@dataclass(frozen=True)
class SampleSize:
    """About `pairs` pairs in all, None where that cannot be told, and the same in words."""

    pairs: int | None = None
    text: str = ""


def sample_size_wanted(
    verdict: Verdict, smallest_effect: float | None, pair_s: float | None
) -> SampleSize:
    """What a proof that ended in `verdict`, not proven, would have taken.

    The difference to prove is the one that was seen; or, where `smallest_effect` e is larger and
    that takes fewer pairs, that it is below e. It is proven in four of five proofs of so many
    pairs, if the noise stays what it was. A difference that was seen by chance is smaller in truth,
    so that this is a lower estimate. `pair_s` seconds go into a pair.
    """
    least = pairs_at_least(verdict.confidence)

    def more_than_now(pairs: int) -> str:
        more = pairs - verdict.pairs
        about = "" if pair_s is None else f" (about {format_duration(round(more * pair_s))})"
        return f"{more} more{about}"

    at_least = SampleSize(least, f"at least {least} pairs, {more_than_now(least)}")
    if verdict.pairs < MINIMUM_PAIRS:
        return at_least
    if verdict.ratio is None:
        return SampleSize()
    both = zip(verdict.candidate_values, verdict.baseline_values, strict=True)
    log_sd = noise_of([candidate / baseline for candidate, baseline in both]).log_sd
    effect = math.exp(abs(math.log(verdict.ratio))) - 1.0
    # How near the bound of the interval on the side of what was seen has to be; the other has room.
    room = (1.0 + (smallest_effect or 0.0)) / (1.0 + effect) - 1.0
    ways: list[tuple[int, str]] = []
    if log_sd > 0.0 and effect > 0.0:
        differs = pairs_needed(effect, log_sd, verdict.confidence)
        ways.append((differs, f"a difference of {format_share(effect)}"))
    if log_sd > 0.0 and smallest_effect is not None and room > 0.0:
        within = pairs_needed(room, log_sd, verdict.confidence, _POWER_OF_EACH_BOUND)
        ways.append((within, f"a difference below {format_share(smallest_effect)}"))
    if not ways:
        return SampleSize()
    fewest, what = min(ways)
    pairs = max(fewest, least, verdict.pairs + 1)
    if pairs == least:
        return at_least
    text = f"at this noise {what} takes about {pairs:,} pairs"
    if verdict.pairs >= least:
        detectable = detectable_effect(verdict.pairs, log_sd, verdict.confidence)
        text = f"{verdict.pairs} pairs show a difference of {format_share(detectable)}; {text}"
    if pairs <= PAIRS_MAX:
        return SampleSize(pairs, f"{text}, {more_than_now(pairs)}")
    advice = "make the runs longer, or the machine quieter"
    if smallest_effect is None:
        advice = f"say what is too small to matter (smallest effect), {advice}"
    return SampleSize(pairs, f"{text}: {advice}")


# --- What a verdict rests on: how much was run, and whether it shows what an engine sustains.
#
# An engine takes writes into memory and pays for them later. A short run shows how fast it takes
# them, and the configuration that keeps most in memory wins. At ten times the length it loses.

_ARMS = ("baseline", "candidate")


def judged_by_length(
    verdict: Verdict,
    goal: Goal,
    workloads: Sequence[Workload],
    pairs: PairedRuns,
    *,
    burst: bool,
    share_of_target: float = 1.0,
) -> Verdict:
    """`verdict` with what it was `proved_at`; one on runs that are not steady is not `better`.

    A run is not steady by `run_length.unsteady`; an arm where more than half of its runs are not,
    as chance makes one in twenty. `burst`: the user asks for what runs of this length show.
    `share_of_target` is that of the workloads in what the user runs.
    """
    proved_at = [replace(at, share_of_target=share_of_target) for at in _sizes(workloads, pairs)]
    verdict = replace(verdict, proved_at=tuple(proved_at))
    if burst or not pairs:
        return verdict
    verdict = replace(verdict, notes=(*verdict.notes, *_growth(goal, workloads, pairs[0][0])))
    lines = _unsteady_arms(goal, workloads, pairs)
    if not lines:
        return verdict
    why = "the runs do not show what is sustained: " + "; ".join(lines)
    if verdict.outcome is not VerdictOutcome.BETTER:
        return replace(verdict, notes=(*verdict.notes, why))
    return verdict.but(VerdictOutcome.NOT_PROVEN, why)


def _unsteady_arms(goal: Goal, workloads: Sequence[Workload], pairs: PairedRuns) -> list[str]:
    """Of each arm the most frequent reason why most of its runs are not steady, a line each."""
    lines = []
    for side, arm in enumerate(_ARMS):
        for index, workload in enumerate(workloads):
            runs = [pair[side][index] for pair in pairs]
            reasons = [unsteady(run, workload, goal) for run in runs]
            many = sum(bool(each) for each in reasons)
            if 2 * many > len(runs):
                ((often, _),) = Counter(each[0] for each in reasons if each).most_common(1)
                label = f" under {workload.name}" if len(workloads) > 1 else ""
                lines.append(f"{arm}{label}: {often}, in {many} of {len(runs)} runs")
    return lines


def _growth(goal: Goal, workloads: Sequence[Workload], runs: Runs) -> Iterator[str]:
    """Of phases that grow the data, what their ratio is about."""
    for run, workload in zip(runs, workloads, strict=True):
        for phase, added in records_added(judged_phases(run, goal), workload):
            yield (
                f"{workload.name}, {phase}: adds {added:,} records to {workload.num:,}, so that "
                "its rate moves with the tree; the ratio is that of the whole run"
            )


def _sizes(workloads: Sequence[Workload], pairs: PairedRuns) -> Iterator[ProvedAt]:
    for index, workload in enumerate(workloads if pairs else ()):
        sides = [[pair[side][index] for pair in pairs] for side in range(len(_ARMS))]
        yield ProvedAt(
            workload=workload.name,
            records=workload.num,
            operations=_median_of(sides[0] + sides[1], "operations") or 0,
            warmup_operations=_median_of(sides[0] + sides[1], "operations", PhaseKind.WARMUP) or 0,
            baseline_flushes=_median_of(sides[0], "flushes"),
            candidate_flushes=_median_of(sides[1], "flushes"),
            baseline_compactions=_median_of(sides[0], "compactions"),
            candidate_compactions=_median_of(sides[1], "compactions"),
        )


def _median_of(runs: Runs, field: str, kind: PhaseKind = PhaseKind.MEASURE) -> int | None:
    """The median over `runs` of a count in the phases of a kind; None where one lacks it."""
    counts = []
    for run in runs:
        each = [getattr(phase, field) for phase in run.phases if phase.kind == kind.value]
        if any(count is None for count in each):
            return None
        counts.append(int(sum(each)))
    return round(median(counts))
