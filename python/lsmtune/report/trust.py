"""Whether figures can be trusted: anchors, noise, and under what the runs were made.

What the series of anchors says is `study.drift`'s: this puts numbers of rows into seconds and
trials.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.workload import PageCache
from lsmtune.proof.calibration import smallest_effect
from lsmtune.report import words as text
from lsmtune.report.document import NOT_KNOWN
from lsmtune.report.source import StudyRecords, cached_shares, middle
from lsmtune.report.tables import (
    AnchorPoint,
    AnchorSegment,
    AnchorSeries,
    Conditions,
    MachineChange,
    NoiseRow,
    NoiseSource,
)
from lsmtune.stats.changepoint import VALUES_LEAST
from lsmtune.stats.intervals import MINIMUM_PAIRS
from lsmtune.stats.noise import detectable_effect, noise_of
from lsmtune.stats.sequential import pairs_at_least
from lsmtune.study.drift import Change
from lsmtune.study.judging import Judgement


def anchor_series(records: StudyRecords) -> tuple[AnchorSeries, ...]:
    """One series for each objective on each host; empty where the baseline has not been run."""
    clock, series, drift = _Clock(records), [], records.judgement.drift
    changes = drift.changes()
    for host, known in drift.hosts.items():
        here = [anchor for anchor in records.anchors if anchor.host == host]
        for index, objective in enumerate(records.spec.goal.objectives):
            # A series in which nothing can be judged has no segments.
            segments, place_of = known[index].segments, known[index].around
            points = [
                AnchorPoint(
                    role=clock.roles[anchor.first],
                    at_s=clock.end_s(anchor.last),
                    trials_before=clock.trials_before(anchor.first),
                    value=(anchor.values or ())[index],
                    segment=place_of(anchor.first)[0] if segments else None,
                )
                for anchor in here
            ]
            shown = [
                AnchorSegment(
                    from_s=clock.begin_s(segment.first),
                    to_s=clock.end_s(segment.last),
                    level=math.exp(segment.log_level),
                    anchors=sum(point.segment == number for point in points),
                )
                for number, segment in enumerate(segments)
            ]
            own = [each for each in changes if (each.host, each.objective) == (host, index)]
            series.append(
                AnchorSeries(
                    objective=f"{objective.label} on {host}" if host else objective.label,
                    metric=objective.metric,
                    anchors_least=VALUES_LEAST,
                    points=tuple(points),
                    segments=tuple(shown),
                    changes=tuple(_change(records.judgement, clock, each) for each in own),
                )
            )
    return tuple(series)


class _Clock:
    """How long the study had worked at each row, and how many trials it had begun."""

    def __init__(self, records: StudyRecords) -> None:
        rows = sorted(records.measurements, key=lambda stored: stored.id)
        self._ids = [stored.id for stored in rows]
        self._ends_s = [0.0, *accumulate(stored.wall_s for stored in rows)]
        self._firsts = sorted(trial.began.first for trial in records.judgement.trials.values())
        self.roles = {stored.id: stored.role.value for stored in rows}

    def begin_s(self, row: int) -> float:
        return self._ends_s[bisect_left(self._ids, row)]

    def end_s(self, row: int) -> float:
        return self._ends_s[bisect_right(self._ids, row)]

    def trials_before(self, row: int) -> int:
        return bisect_left(self._firsts, row)


def _change(judgement: Judgement, clock: _Clock, change: Change) -> MachineChange:
    before, meanwhile, after = judgement.around(change)
    # Those with a value of which nobody knows how fast the machine was.
    left = (t.number for t in meanwhile if len(t.rounds) == 1 and t.end.values is not None)
    return MachineChange(
        from_s=clock.end_s(change.before),
        to_s=clock.begin_s(change.after),
        ratio=change.ratio,
        last_trial=before[-1].number if before else None,
        first_trial=after[0].number if after else None,
        run_again=tuple(trial.number for trial in meanwhile if len(trial.rounds) > 1),
        left=tuple(left),
    )


# --- How much runs and pairs scatter, and what could be proved therefore
# All figures are `proof.calibration`'s, `study.judging`'s and `stats.noise`'s.


def noise_rows(records: StudyRecords) -> list[NoiseRow]:
    """What the calibration, the search and the proof say of the noise of the goal's metric."""
    rows: list[NoiseRow] = []
    metric, proof = records.spec.goal.metric, records.spec.proof
    for host, calibration in records.calibrations.items():
        noise = calibration.metrics.get(metric)
        if noise is None:
            continue
        run = (noise.run_log_sd, noise.run_log_sd_low, noise.run_log_sd_high)
        pair = (noise.pair_log_sd, noise.pair_log_sd_low, noise.pair_log_sd_high)
        source, pairs = NoiseSource.CALIBRATION, calibration.pairs
        of_runs = NoiseRow(source, False, metric, 2 * pairs, *run, noise.autocorrelation, host=host)
        of_pairs = NoiseRow(source, True, metric, pairs, *pair, host=host)
        if not host:  # the interval of a fleet is one over its hosts
            effect = smallest_effect(calibration, metric, proof.pairs, proof.confidence)
            of_pairs = replace(of_pairs, pairs=proof.pairs, smallest_effect=effect)
        rows += [of_runs, of_pairs]
    # What the search takes the noise for, where more than one run of anything tells of it.
    repeated = any(len(trial.rounds) > 1 for trial in records.judgement.trials.values())
    if repeated or len(records.anchors) > 1:
        log_sd = records.judgement.log_sd
        rows.append(NoiseRow(NoiseSource.SEARCH, False, metric, None, log_sd))
    return rows + _proof_noise(records)


def _proof_noise(records: StudyRecords) -> list[NoiseRow]:
    """The scatter of the verdict's own pairs."""
    verdict = records.verdict
    if verdict is None or len(verdict.baseline_values) < MINIMUM_PAIRS:
        return []
    both = zip(verdict.candidate_values, verdict.baseline_values, strict=True)
    ratios = [candidate / baseline for candidate, baseline in both if baseline]
    if len(ratios) < verdict.pairs or not all(r > 0 and math.isfinite(r) for r in ratios):
        return []
    noise, pairs, effect = noise_of(ratios), verdict.pairs, None
    scatter = (noise.log_sd, noise.log_sd_low, noise.log_sd_high, noise.autocorrelation)
    row = NoiseRow(NoiseSource.PROOF, True, verdict.metric, pairs, *scatter)
    if records.of_fleet:
        return [row]
    if pairs >= pairs_at_least(verdict.confidence):
        effect = detectable_effect(pairs, noise.log_sd, verdict.confidence)
    return [replace(row, pairs=pairs, smallest_effect=effect)]


# --- Under what the runs were made: machines, page cache, what held their memory, stolen time

# Above this share of the processors' time, what the host took is felt in the figures.
STEAL_SHARE_MAX = 0.02
# A run that was to begin cold did not with more than this share of its database in the cache.
CACHED_SHARE_MAX = 0.05


def machine_facts(records: StudyRecords) -> dict[str, str]:
    """What the runs were made on, as name and value; of each host where those of a fleet differ."""
    facts: dict[str, str] = {}
    for name in dict.fromkeys(name for known in records.machines.values() for name in known):
        values = {host: known.get(name, NOT_KNOWN) for host, known in records.machines.items()}
        alike = len(set(values.values())) == 1
        facts |= {name if alike else f"{name} of {host}": each for host, each in values.items()}
    return facts


def conditions(records: StudyRecords) -> Conditions:
    """The conditions of all runs of a study that ended well."""
    declared = [weighted.workload.page_cache for weighted in records.spec.workloads]
    processors = {host: known.get("processors", "") for host, known in records.machines.items()}
    return conditions_of(
        [(stored.measurement, declared[stored.workload]) for stored in records.measurements],
        {each.label: each.workload.page_cache for each in records.spec.workloads},
        {host: int(number) for host, number in processors.items() if number.isdecimal()},
    )


def conditions_of(
    runs: Sequence[tuple[Measurement, PageCache]],
    declared: Mapping[str, PageCache],
    processors: Mapping[str, int],
) -> Conditions:
    """The conditions of those `runs` that ended well, each with what its workload declares.

    `declared` is by the workloads' labels; `processors` are those of each host of which somebody
    knows.
    """
    ok = [(run, cache) for run, cache in runs if run.outcome is Outcome.OK]
    cached = [share for run, _ in ok for share in cached_shares(run)]
    shares = [steal_share(run, processors.get(run.host)) for run, _ in ok]
    stolen = [share for share in shares if share is not None]
    return Conditions(
        page_cache={label: cache.value for label, cache in declared.items()},
        cold_runs=sum(cache is PageCache.COLD for _, cache in ok),
        cached_share_max=max(cached, default=None),
        memory_limited_by=Counter(run.memory_limited_by for run, _ in ok if run.memory_limited_by),
        steal_runs=len(stolen),
        steal_runs_disturbed=sum(share > STEAL_SHARE_MAX for share in stolen),
        steal_share_median=middle(stolen),
        steal_share_max=max(stolen, default=None),
    )


def steal_share(run: Measurement, processors: int | None) -> float | None:
    """The share of the processors' time that the host took during the measure phases of `run`.

    None where the run does not say, or nobody knows how many processors there are.
    """
    phases = [phase for phase in run.measured_phases if phase.steal_s is not None]
    time_s = sum(phase.elapsed_s + (phase.drain_s or 0.0) for phase in phases)
    if not processors or not time_s > 0:
        return None
    return sum(phase.steal_s or 0.0 for phase in phases) / (time_s * processors)


_LIMITED = {"cgroup": "by a control group", "watch": "by watching it"}
_PAGE_CACHE = {
    "warm": "warm: whatever earlier phases left in it",
    "cold": "cold: dropped before each measure phase",
    "direct": "direct: the engine reads and writes past it",
}


def condition_facts(under: Conditions) -> list[tuple[str, str]]:
    """Page cache, memory and stolen time, as name and value."""
    kinds = {label: _PAGE_CACHE.get(kind, kind) for label, kind in under.page_cache.items()}
    facts = [("page cache", f"{label}: {kind}") for label, kind in kinds.items()]
    if len(set(kinds.values())) == 1:
        facts = [("page cache", next(iter(kinds.values())))]
    if under.cached_share_max is not None:
        cached = f"at most {text.share(under.cached_share_max)} of the database"
        facts.append(("still cached at a cold start", cached))
    limited = [
        f"{_LIMITED.get(how, how)} ({text.count(runs, 'run')})"
        for how, runs in under.memory_limited_by.items()
    ]
    if limited:
        facts.append(("memory limited", ", ".join(limited)))
    if under.steal_share_median is not None and under.steal_share_max is not None:
        median, most = text.share(under.steal_share_median), text.share(under.steal_share_max)
        stolen = f"{median} of a run, at most {most}" if under.steal_share_max else "none"
        facts.append(("processor time taken by the host", stolen))
    return facts
