"""How much runs and pairs scatter, and what could be proved therefore.

All figures are `proof.calibration`'s, `study.judging`'s and `stats.noise`'s.
"""

from __future__ import annotations

import math

from lsmtune.analysis.source import StudyRecords
from lsmtune.analysis.trust_tables import NoiseRow, NoiseSource
from lsmtune.proof.provable import smallest_effect
from lsmtune.stats.noise import detectable_effect, noise_of
from lsmtune.stats.paired import MINIMUM_PAIRS
from lsmtune.stats.sequential import pairs_at_least


def noise_rows(records: StudyRecords) -> tuple[NoiseRow, ...]:
    """What the calibration, the search and the proof say of the noise of the goal's metric."""
    return (*_calibration(records), *_search(records), *_proof(records))


def _calibration(records: StudyRecords) -> list[NoiseRow]:
    found, metric = records.calibration, records.goal.metric
    noise = None if found is None else found.metrics.get(metric)
    if found is None or noise is None:
        return []
    # Half a pair more, so that no rounding makes it one pair less.
    budget_s = (records.pairs_max + 0.5) * (found.seconds_per_pair or 0.0)
    return [
        NoiseRow(
            NoiseSource.CALIBRATION,
            False,
            metric,
            2 * found.pairs,
            noise.run_log_sd,
            noise.run_log_sd_low,
            noise.run_log_sd_high,
            noise.autocorrelation,
        ),
        NoiseRow(
            NoiseSource.CALIBRATION,
            True,
            metric,
            found.pairs,
            noise.pair_log_sd,
            noise.pair_log_sd_low,
            noise.pair_log_sd_high,
            pairs=records.pairs_max,
            smallest_effect=smallest_effect(found, metric, budget_s, records.confidence),
        ),
    ]


def _search(records: StudyRecords) -> list[NoiseRow]:
    """What the search takes the noise for, where more than one run of anything tells of it."""
    again = any(len(trial.rounds) > 1 for trial in records.trials)
    if records.run_log_sd is None or not (again or len(records.anchors) > 1):
        return []
    return [NoiseRow(NoiseSource.SEARCH, False, records.goal.metric, None, records.run_log_sd)]


def _proof(records: StudyRecords) -> list[NoiseRow]:
    """The scatter of the verdict's own pairs."""
    verdict = records.verdict
    if verdict is None or len(verdict.baseline_values) < MINIMUM_PAIRS:
        return []
    both = zip(verdict.candidate_values, verdict.baseline_values, strict=True)
    ratios = [candidate / baseline for candidate, baseline in both if baseline]
    if len(ratios) < verdict.pairs or not all(r > 0 and math.isfinite(r) for r in ratios):
        return []
    noise, enough = noise_of(ratios), verdict.pairs >= pairs_at_least(verdict.confidence)
    # In the pairs of old, the order was not drawn by lot, and another test judged them.
    judged_so = enough and verdict.method != ""
    return [
        NoiseRow(
            NoiseSource.PROOF,
            True,
            verdict.metric,
            verdict.pairs,
            noise.log_sd,
            noise.log_sd_low,
            noise.log_sd_high,
            noise.autocorrelation,
            pairs=verdict.pairs,
            smallest_effect=detectable_effect(verdict.pairs, noise.log_sd, verdict.confidence)
            if judged_so
            else None,
        )
    ]
