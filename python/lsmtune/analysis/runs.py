"""Which stored runs a table looks at: the trials, the baseline, and the two arms of the proof."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lsmtune.analysis.source import StudyRecords
from lsmtune.analysis.tables import Arm, RunRow
from lsmtune.records.config import Config
from lsmtune.records.measurement import Measurement
from lsmtune.records.objective import METRICS, Direction
from lsmtune.storage.measurements import Role, StoredMeasurement


@dataclass(frozen=True)
class Chosen:
    """The Config that the study puts forward, and the trial that it came from when known."""

    config: Config
    trial: int | None


def trials_of(records: StudyRecords) -> list[StoredMeasurement]:
    """The last run of every trial, in the order of the trials."""
    latest: dict[int, StoredMeasurement] = {}
    for stored in records.measurements:
        if stored.role is Role.TRIAL and stored.trial is not None:
            latest[stored.trial] = stored
    return [latest[trial] for trial in sorted(latest)]


def best_trial(records: StudyRecords) -> StoredMeasurement | None:
    """The trial with the best value of the objective, the earlier of two equals."""
    valued = [
        (value, stored)
        for stored in trials_of(records)
        if (value := records.objective.value(stored.measurement)) is not None
    ]
    if not valued:
        return None
    sign = -1 if records.objective.direction is Direction.MAXIMIZE else 1
    return min(valued, key=lambda pair: sign * pair[0])[1]


def chosen(records: StudyRecords) -> Chosen | None:
    """The Config of the latest proof; before any proof, that of the best trial."""
    proven = [s for s in records.measurements if s.role is Role.PROOF_CANDIDATE]
    if proven:
        config = proven[-1].config
        return Chosen(config, _trial_with(records, config, proven[-1].trial))
    best = best_trial(records)
    return None if best is None else Chosen(best.config, best.trial)


def _trial_with(records: StudyRecords, config: Config, known: int | None) -> int | None:
    if known is not None:
        return known
    same = [s.trial for s in trials_of(records) if s.config.options == config.options]
    return same[0] if same else None


def proof_runs(records: StudyRecords) -> dict[int, dict[Arm, StoredMeasurement]]:
    """Pair number to the runs of its arms, for the Config of the latest proof.

    A pair of which only the baseline was run counts too, unless it belongs to an earlier proof.
    """
    tuned = chosen(records)
    pairs: dict[int, dict[Arm, StoredMeasurement]] = {}
    earlier: set[int] = set()
    for stored in records.measurements:
        if stored.pair is None or tuned is None:
            continue
        if stored.role is Role.PROOF_BASELINE:
            pairs.setdefault(stored.pair, {})[Arm.BASELINE] = stored
        elif stored.role is Role.PROOF_CANDIDATE:
            pairs.setdefault(stored.pair, {})[Arm.TUNED] = stored
            if stored.config.options != tuned.config.options:
                earlier.add(stored.pair)
    return {number: pairs[number] for number in sorted(pairs) if number not in earlier}


def arms(records: StudyRecords) -> dict[Arm, list[StoredMeasurement]]:
    """The runs that stand for each arm: those of the proof; before any, those of the search."""
    pairs = proof_runs(records).values()
    if pairs:
        return {arm: [pair[arm] for pair in pairs if arm in pair] for arm in Arm}
    best = best_trial(records)
    return {
        Arm.BASELINE: [s for s in records.measurements if s.role is Role.BASELINE],
        Arm.TUNED: [] if best is None else [best],
    }


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
        engine=measurement.engine.name,
        engine_version=measurement.engine.version,
        build=measurement.engine.build.value,
        options=dict(stored.config.options),
        metrics=_metrics(records, measurement),
        error=measurement.error.message if measurement.error else "",
    )


def _metrics(records: StudyRecords, measurement: Measurement) -> Mapping[str, float | None]:
    phase = records.objective.phase_of(measurement)
    return {name: None if phase is None else getattr(phase, name) for name in METRICS}
