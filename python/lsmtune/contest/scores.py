"""Scores: what every team came to in every phase and round, complete, and who has none."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lsmtune.errors import InputError
from lsmtune.records.measurement import Measurement, Outcome
from lsmtune.records.objective import Direction, Objective
from lsmtune.rounds import CellRun

# Ratios are what teams are compared by, so a metric has to be above zero in every run.
SCORE_METRICS = (
    *("sustained_throughput_ops_s", "throughput_ops_s"),
    *("latency_us_mean", "latency_us_p50", "latency_us_p95", "latency_us_p99", "latency_us_p999"),
)


@dataclass(frozen=True)
class Scores:
    """`values[phase][team]` has one value above zero for each of `rounds`, in their order.

    `rounds` are counted from 1. Phases and teams are in the order in which they came.
    """

    metric: str
    direction: Direction
    phases: tuple[str, ...]
    teams: tuple[str, ...]
    rounds: tuple[int, ...]
    values: Mapping[str, Mapping[str, tuple[float, ...]]]


@dataclass(frozen=True)
class Failed:
    """A team of which a run did not end well, in the first such `round`; it is not ranked."""

    team: str
    round: int
    why: str


def scores_of_runs(
    runs: Sequence[CellRun],
    teams: Sequence[str],
    phases: Sequence[str],
    metric: str,
    direction: Direction,
) -> tuple[Scores, tuple[Failed, ...]]:
    """The scores of the teams all of whose runs ended well, and the others.

    Only rounds that each of the former has finished count, so that a contest that was interrupted
    is one of fewer rounds. Raises InputError where a metric that is not above zero was observed.
    """
    failed = {team: why for team in teams if (why := _failure(runs, team, phases, metric))}
    ranked = [team for team in teams if team not in failed]
    by_place = {(run.round, run.cell): run.measurement for run in runs}
    rounds = [
        number
        for number in sorted({run.round for run in runs})
        if all((number, team) in by_place for team in ranked)
    ]
    values = {
        phase: {
            team: tuple(_value(by_place[number, team], phase, metric) or 0.0 for number in rounds)
            for team in ranked
        }
        for phase in phases
    }
    scores = Scores(
        metric,
        direction,
        tuple(phases),
        tuple(ranked),
        tuple(number + 1 for number in rounds),
        values,
    )
    _check_positive(scores)
    return scores, tuple(failed.values())


def _failure(
    runs: Sequence[CellRun], team: str, phases: Sequence[str], metric: str
) -> Failed | None:
    for run in sorted((run for run in runs if run.cell == team), key=lambda run: run.round):
        found = run.measurement
        if found.outcome is not Outcome.OK:
            why = found.outcome.value.replace("_", " ")
            said = f"{why}: {found.error.message}" if found.error else why
            return Failed(team, run.round + 1, said)
        missing = [phase for phase in phases if _value(found, phase, metric) is None]
        if missing:
            return Failed(team, run.round + 1, f"{metric} of {missing[0]} is not known")
    return None


def _value(measurement: Measurement, phase: str, metric: str) -> float | None:
    value = Objective(metric, phase=phase).value(measurement)
    return value if value is None or math.isfinite(value) else None


def _check_positive(scores: Scores) -> None:
    for phase, by_team in scores.values.items():
        for team, values in by_team.items():
            for number, value in zip(scores.rounds, values, strict=True):
                if value <= 0:
                    why = f"of {team} in round {number}, {phase}"
                    raise InputError(scores.metric, why=why, found=value, allowed="above 0")
