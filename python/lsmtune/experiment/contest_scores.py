"""Scores of a contest: what every team came to in every phase and round, from runs or from logs."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lsmtune.errors import InputError
from lsmtune.experiment.contest import FILE, team_and_entry, team_name
from lsmtune.experiment.store import StoredMeasurement
from lsmtune.model.goal import Direction, Objective, default_direction
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.metrics import shown_in
from lsmtune.model.text import is_there, read_text
from lsmtune.programs.ycsb_cpp_output import YcsbPhase, parse_ycsb_log

# Ratios are what teams are compared by, so a metric has to be above zero in every run.
SCORE_METRICS = shown_in("contest")


@dataclass(frozen=True)
class Scores:
    """`values[phase][team]` has one value above zero for each of `rounds`, in their order.

    `rounds` are counted from 1. Phases and teams are in the order in which they came.
    """

    metric: str
    phases: tuple[str, ...]
    teams: tuple[str, ...]
    rounds: tuple[int, ...]
    values: Mapping[str, Mapping[str, tuple[float, ...]]]

    @property
    def direction(self) -> Direction:
        """Which way is better."""
        return default_direction(self.metric)


@dataclass(frozen=True)
class Failed:
    """A team of which a run did not end well, in the first such `round`; it is not ranked."""

    team: str
    round: int
    why: str


def scores_of_runs(
    runs: Sequence[StoredMeasurement],
    teams: Sequence[str],
    phases: Sequence[str],
    metric: str,
) -> tuple[Scores, tuple[Failed, ...]]:
    """The scores of the teams all of whose runs ended well, and the others.

    Only rounds that each of the former has finished count, so that a contest that was interrupted
    is one of fewer rounds. Raises InputError where a metric that is not above zero was observed.
    """
    first_failed: dict[str, Failed] = {}  # by team
    for run in sorted(runs, key=lambda run: run.round):
        why = _why_failed(run.measurement, phases, metric)
        if why:
            first_failed.setdefault(run.arm, Failed(run.arm, run.round + 1, why))
    failed = tuple(first_failed[team] for team in teams if team in first_failed)
    ranked = [team for team in teams if team not in first_failed]
    measured = {(run.round, run.arm): run.measurement for run in runs}
    rounds = [
        number
        for number in sorted({run.round for run in runs})
        if all((number, team) in measured for team in ranked)
    ]
    values: dict[str, dict[str, tuple[float, ...]]] = {phase: {} for phase in phases}
    for phase, team in itertools.product(phases, ranked):
        by_round = [_value(measured[number, team], phase, metric) or 0.0 for number in rounds]
        values[phase][team] = tuple(by_round)
        for number, value in zip(rounds, by_round, strict=True):
            if value <= 0:
                why = f"of {team} in round {number + 1}, {phase}"
                raise InputError(metric, why=why, found=value, allowed="above 0")
    from_one = tuple(number + 1 for number in rounds)
    scores = Scores(metric, tuple(phases), tuple(ranked), from_one, values)
    return scores, failed


def _why_failed(measurement: Measurement, phases: Sequence[str], metric: str) -> str:
    """Why a run does not count; empty where it does."""
    if measurement.outcome is not Outcome.OK:
        why = measurement.outcome.value.replace("_", " ")
        return f"{why}: {measurement.error.message}" if measurement.error else why
    missing = [phase for phase in phases if _value(measurement, phase, metric) is None]
    return f"{metric} of {missing[0]} is not known" if missing else ""


def _value(measurement: Measurement, phase: str, metric: str) -> float | None:
    value = Objective(metric, phase=phase).value(measurement)
    return value if value is None or math.isfinite(value) else None


# --- Scores from logs of YCSB-cpp that exist already: which file is whose, and of which round.

# `No5_Team1_4`, `team-round3`, `sst.r2`: the round is the number after the last separator.
_ROUND = re.compile(r"(?P<team>.+)[._-](?:round|run|r)?(?P<round>\d{1,6})", re.ASCII)
_METRIC = "throughput_ops_s"
# What does not divide by the number of threads is left out by some versions of YCSB-cpp.
_OPERATIONS_TOLERANCE = 0.01


@dataclass(frozen=True)
class LogFile:
    """A log of `team`, of one of its rounds."""

    team: str
    round: int
    path: Path


def log_files(texts: Sequence[str]) -> list[LogFile]:
    """The files that `FILE` or `NAME=FILE` texts name; FILE may be a pattern (`Team1_*.txt`).

    Every team's rounds are numbered, by the files' names or else in the order given. Raises
    InputError for what is no pattern, or one that no file matches, a round that a team has twice,
    and a team of which only some names have a number.
    """
    by_team: dict[str, list[tuple[Path, int | None]]] = {}
    for text in texts:
        name, what = team_and_entry(text) if "=" in text else ("", text)
        if what == text:
            name = ""  # no NAME= was given: each file's own name says whose it is
        path = Path(what)
        paths = [path]
        if not is_there(path) and any(sign in what for sign in "*?["):
            try:
                paths = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
            except ValueError as error:  # `**` beside other characters
                raise InputError(FILE, found=text, why=f"is no pattern: {error}") from None
            if not paths:
                raise InputError(FILE, found=text, why="no file matches")
        for path in paths:
            match = _ROUND.fullmatch(path.stem)
            team = name or (path.stem if match is None else match["team"])
            number = None if match is None else int(match["round"])
            by_team.setdefault(team_name(team, str(path)), []).append((path, number))
    return [file for team, paths in by_team.items() for file in _numbered(team, paths)]


def _numbered(team: str, paths: Sequence[tuple[Path, int | None]]) -> list[LogFile]:
    """The files of a team by round, which is None where no file's name says it."""
    without = [path for path, number in paths if number is None]
    if without and len(without) < len(paths):
        why = f"has no round in its name, as other files of {team} have"
        raise InputError(str(without[0]), why=why, allowed="a name such as team_1.txt")
    by_round: dict[int, Path] = {}
    for place, (path, number) in enumerate(paths, start=1):
        first = by_round.setdefault(place if number is None else number, path)
        if first is not path:
            why = f"is round {number} of {team}, as {first} is"
            raise InputError(str(path), why=why, allowed="each round of a team once")
    return [LogFile(team, number, by_round[number]) for number in sorted(by_round)]


def scores_of_logs(files: Sequence[LogFile]) -> tuple[Scores, list[str]]:
    """The throughput that YCSB-cpp printed for each phase; and warnings, as `_other_sizes` says.

    A phase is named by what was done and the workload's file, `load-a` for `-load` of `workloada`.
    Raises InputError for a file that is no such log, teams whose rounds differ, files whose phases
    differ, and fewer than two teams.
    """
    by_team: dict[str, list[int]] = {}
    for file in files:
        by_team.setdefault(file.team, []).append(file.round)
    first, *others = by_team
    if not others:
        why = f"all are logs of one team, {first}"
        raise InputError(FILE, why=why, allowed="logs of two teams or more, NAME=FILE for each")
    for team in others:
        if by_team[team] != by_team[first]:
            rounds, allowed = (", ".join(map(str, by_team[each])) for each in (team, first))
            why = f"{team} has other rounds than {first}"
            raise InputError(FILE, why=why, found=f"rounds {rounds}", allowed=f"rounds {allowed}")
    logs = {(file.team, file.round): _phases(file.path) for file in files}
    phases = tuple(next(iter(logs.values())))
    for file in files:
        own = tuple(logs[file.team, file.round])
        if own != phases:
            allowed = f"{', '.join(phases)} as in {files[0].path}"
            raise InputError(str(file.path), found=", ".join(own), allowed=allowed)
    values: dict[str, dict[str, tuple[float, ...]]] = {phase: {} for phase in phases}
    for phase, team in itertools.product(phases, by_team):
        by_round = (logs[team, number][phase] for number in by_team[first])
        values[phase][team] = tuple(log.throughput_ops_s for log in by_round)
    scores = Scores(_METRIC, phases, tuple(by_team), tuple(by_team[first]), values)
    return scores, _other_sizes([(file.path, logs[file.team, file.round]) for file in files])


def _other_sizes(logs: Sequence[tuple[Path, Mapping[str, YcsbPhase]]]) -> list[str]:
    """A line for each phase of which some logs have another number of operations than the first.

    It may be a run of another size, or one that ended by the clock.
    """
    lines = []
    for name, first in logs[0][1].items():
        for path, phases in logs[1:]:
            operations = phases[name].operations
            if abs(operations - first.operations) > _OPERATIONS_TOLERANCE * first.operations:
                lines.append(
                    f"{name}: {operations:,} operations in {path} and {first.operations:,} in "
                    f"{logs[0][0]}: rates of runs of different sizes are not of one contest"
                )
                break
    return lines


def _phases(path: Path) -> Mapping[str, YcsbPhase]:
    """What was printed of each phase, in order, by its name."""
    by_name: dict[str, YcsbPhase] = {}
    for phase in parse_ycsb_log(read_text(path, "a log of YCSB"), str(path)).phases:
        name = phase.kind
        if phase.workload is not None:
            short = phase.workload.removeprefix("workload").strip("-_")
            name = f"{phase.kind}-{short or phase.workload}"
        if phase.throughput_ops_s <= 0:
            line = f"line {phase.line}"
            raise InputError(str(path), line, found=phase.throughput_ops_s, allowed="above 0")
        same = sum(before == name or before.startswith(f"{name}#") for before in by_name)
        by_name[f"{name}#{same + 1}" if same else name] = phase
    return by_name
