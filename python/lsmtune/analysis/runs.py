"""Which stored runs a table looks at: the trials, the baseline, and the two arms of the proof."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lsmtune.analysis.source import StudyRecords, Trial
from lsmtune.analysis.tables import GAIN, Arm, RunRow
from lsmtune.records.config import Config
from lsmtune.records.measurement import Measurement, PhaseMeasurement
from lsmtune.records.objective import METRICS, metric_value
from lsmtune.records.workload import PhaseKind
from lsmtune.storage.measurements import Role, StoredMeasurement


@dataclass(frozen=True)
class Chosen:
    """The Config that the study puts forward, and the trial that it came from when known."""

    config: Config
    trial: int | None


def metric_of(records: StudyRecords) -> str:
    """What the values of trials and pairs are: an objective's metric, or a gain over several."""
    chosen_ones = records.goal.chosen
    return chosen_ones[0].metric if len(chosen_ones) == 1 else GAIN


def value_of(records: StudyRecords, values: Sequence[float] | None) -> float | None:
    """The one number by which trials are compared: the value of the objective that counts.

    Where several count it is the weighted geometric mean of the ratios to the baseline, each
    turned over where less is better, with the weights of the study's `pick`: what `Goal.number`
    gives, over that of the baseline. None where that is not known.
    """
    number = None if values is None else records.goal.number(values)
    if number is None or len(records.goal.chosen) == 1:
        return number
    return number / records.baseline_number if records.baseline_number else None


def best_trial(records: StudyRecords) -> Trial | None:
    """The trial that is best by all that is known, as the study itself would say."""
    return next((trial for trial in records.trials if trial.number == records.best), None)


def chosen(records: StudyRecords) -> Chosen | None:
    """The Config of the latest proof; before any proof, that of the best trial."""
    proven = [s for s in records.measurements if s.role is Role.PROOF_CANDIDATE]
    if proven:
        config = proven[-1].config
        return Chosen(config, _trial_with(records, config, proven[-1].trial))
    best = best_trial(records)
    return None if best is None else Chosen(best.config, best.number)


def _trial_with(records: StudyRecords, config: Config, known: int | None) -> int | None:
    if known is not None:
        return known
    same = [t.number for t in records.trials if t.config.options == config.options]
    return same[0] if same else None


Side = tuple[StoredMeasurement, ...]


def proof_runs(records: StudyRecords) -> dict[int, dict[Arm, Side]]:
    """Pair number to the runs of its arms, in the workloads' order, for the latest proof's Config.

    A pair of which only the baseline was run counts too, unless it belongs to an earlier proof.
    """
    tuned = chosen(records)
    pairs: dict[int, dict[Arm, list[StoredMeasurement]]] = {}
    earlier: set[int] = set()
    for stored in sorted(records.measurements, key=lambda stored: stored.workload):
        if stored.pair is None or tuned is None:
            continue
        if stored.role is Role.PROOF_BASELINE:
            pairs.setdefault(stored.pair, {}).setdefault(Arm.BASELINE, []).append(stored)
        elif stored.role is Role.PROOF_CANDIDATE:
            pairs.setdefault(stored.pair, {}).setdefault(Arm.TUNED, []).append(stored)
            if stored.config.options != tuned.config.options:
                earlier.add(stored.pair)
    return {
        number: {arm: tuple(side) for arm, side in pairs[number].items()}
        for number in sorted(pairs)
        if number not in earlier
    }


def method_of(pair: Mapping[Arm, Side]) -> str:
    """How the runs of a pair shared the machine; empty where that was not noted."""
    return next((run.measurement.paired_by for side in pair.values() for run in side), "")


def counts(records: StudyRecords, pair: Mapping[Arm, Side]) -> bool:
    """Whether the verdict stands on a pair: not where it was run by another method."""
    verdict = records.verdict
    return verdict is None or not verdict.method or method_of(pair) == verdict.method


def counted_pairs(records: StudyRecords) -> list[dict[Arm, Side]]:
    """The pairs of `proof_runs` on which the verdict stands."""
    return [pair for pair in proof_runs(records).values() if counts(records, pair)]


def arms(records: StudyRecords) -> dict[Arm, list[StoredMeasurement]]:
    """The runs that stand for each arm: those of the proof; before any, those of the search."""
    pairs = counted_pairs(records)
    if pairs:
        return {arm: [run for pair in pairs for run in pair.get(arm, ())] for arm in Arm}
    best = best_trial(records)
    alone = (Role.BASELINE, Role.ANCHOR)
    return {
        Arm.BASELINE: [s for s in records.measurements if s.role in alone],
        Arm.TUNED: [] if best is None else [*best.runs, *best.repeats],
    }


def workload_label(records: StudyRecords, stored: StoredMeasurement) -> str:
    """The label of the workload of a run, empty where the study has one alone."""
    several = len(records.workloads) > 1
    return records.workloads[stored.workload].label if several else ""


def run_rows(records: StudyRecords) -> tuple[RunRow, ...]:
    """Every stored run as one flat row."""
    return tuple(_row(records, stored) for stored in records.measurements)


def _row(records: StudyRecords, stored: StoredMeasurement) -> RunRow:
    measurement = stored.measurement
    return RunRow(
        measurement=stored.id,
        role=stored.role.value,
        trial=stored.trial,
        pair=stored.pair,
        outcome=measurement.outcome,
        value=records.objective.value(measurement),
        seed=measurement.seed,
        started_unix_s=measurement.started_unix_s,
        elapsed_s=measurement.elapsed_s,
        wall_s=stored.wall_s,
        workload=workload_label(records, stored),
        rung=stored.rung,
        engine=measurement.engine.name,
        engine_version=measurement.engine.version,
        build=measurement.engine.build.value,
        options=dict(stored.config.options),
        metrics=_metrics(records, measurement),
        reported=dict(measurement.reported),
        error=measurement.error.message if measurement.error else "",
        repeat=stored.repeat,
        paired_by=measurement.paired_by,
        memory_limited_by=measurement.memory_limited_by,
        steal_s=_total(phase.steal_s for phase in measured(measurement)),
        page_cache_cached_share=max(cached_shares(measurement), default=None),
    )


def measured(measurement: Measurement) -> list[PhaseMeasurement]:
    """The measure phases of a run."""
    return [phase for phase in measurement.phases if phase.kind == PhaseKind.MEASURE]


def cached_shares(measurement: Measurement) -> list[float]:
    """What was still cached of the database at the start of each phase that was to begin cold."""
    shares = (phase.page_cache_cached_share for phase in measured(measurement))
    return [share for share in shares if share is not None]


def _total(values: Iterable[float | None]) -> float | None:
    """The sum of what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _metrics(records: StudyRecords, measurement: Measurement) -> Mapping[str, float | None]:
    phase = records.objective.phase_of(measurement)
    return {name: metric_value(measurement, name, phase) for name in METRICS}
