"""Scores of a contest: what every team came to in every phase and round, from runs or from logs."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lsmtune.engines.importers.base import read_text
from lsmtune.errors import InputError
from lsmtune.experiment.contest import FILE, named
from lsmtune.experiment.store import StoredMeasurement
from lsmtune.model.goal import Direction, Objective
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.metrics import shown_in
from lsmtune.programs.ycsb_cpp_output import YcsbPhase, parse_ycsb_log

# Ratios are what teams are compared by, so a metric has to be above zero in every run.
SCORE_METRICS = shown_in("contest")


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
    runs: Sequence[StoredMeasurement],
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
    by_place = {(run.round, run.arm): run.measurement for run in runs}
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
    runs: Sequence[StoredMeasurement], team: str, phases: Sequence[str], metric: str
) -> Failed | None:
    for run in sorted((run for run in runs if run.arm == team), key=lambda run: run.round):
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


# --- Scores from logs of YCSB-cpp that exist already: which file is whose, and of which round.

# `No5_Team1_4`, `team-round3`, `sst.r2`: the round is the number after the last separator.
_ROUND = re.compile(r"(?P<team>.+)[._-](?:round|run|r)?(?P<round>\d{1,6})", re.ASCII)
_METRIC = "throughput_ops_s"
# What does not divide by the number of threads is left out by some versions of YCSB-cpp.
_OPERATIONS_TOLERANCE = 0.01


@dataclass(frozen=True)
class LogFile:
    """A log of `team`; `round` None where the file's name does not say it."""

    team: str
    round: int | None
    path: Path


def log_files(texts: Sequence[str]) -> list[LogFile]:
    """The files that `FILE` or `NAME=FILE` texts name; FILE may be a pattern (`Team1_*.txt`).

    Every team's rounds are numbered, by the files' names or else in the order given. Raises
    InputError for a pattern that no file matches, a round that a team has twice, and a team of
    which only some names have a number.
    """
    by_team: dict[str, list[LogFile]] = {}
    for text in texts:
        for file in _files(text):
            by_team.setdefault(file.team, []).append(file)
    return [file for team, files in by_team.items() for file in _numbered(team, files)]


def _files(text: str) -> list[LogFile]:
    given = named(text)
    path = Path(given.text)
    paths = [path]
    if not path.exists() and any(sign in given.text for sign in "*?["):
        paths = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
        if not paths:
            raise InputError(FILE, found=text, why="no file matches")
    has_name = given.text != text
    return [_file(path, given.name if has_name else None) for path in paths]


def _file(path: Path, name: str | None) -> LogFile:
    match = _ROUND.fullmatch(path.stem)
    number = None if match is None else int(match["round"])
    own = path.stem if match is None else match["team"]
    return LogFile(own if name is None else name, number, path)


def _numbered(team: str, files: Sequence[LogFile]) -> list[LogFile]:
    without = [file for file in files if file.round is None]
    if without:
        if len(without) < len(files):
            why = f"has no round in its name, as other files of {team} have"
            raise InputError(str(without[0].path), why=why, allowed="a name such as team_1.txt")
        return [replace(file, round=number) for number, file in enumerate(files, 1)]
    seen: dict[int | None, LogFile] = {}
    for file in files:
        if file.round in seen:
            why = f"is round {file.round} of {team}, as {seen[file.round].path} is"
            raise InputError(str(file.path), why=why, allowed="each round of a team once")
        seen[file.round] = file
    return sorted(files, key=lambda file: file.round or 0)


def scores_of_logs(files: Sequence[LogFile]) -> Scores:
    """The throughput that YCSB-cpp printed for each phase.

    A phase is named by what was done and the workload's file, `load-a` for `-load` of `workloada`.
    Raises InputError for a file that is no such log, teams whose rounds differ, files whose phases
    differ, and fewer than two teams.
    """
    rounds = _rounds(files)
    read = {(file.team, file.round): _phases(file.path) for file in files}
    phases = list(next(iter(read.values())))
    for file in files:
        found = list(read[file.team, file.round])
        if found != phases:
            allowed = f"{', '.join(phases)} as in {files[0].path}"
            raise InputError(str(file.path), found=", ".join(found), allowed=allowed)
    teams = list(dict.fromkeys(file.team for file in files))
    values = {
        phase: {
            team: tuple(read[team, number][phase].throughput_ops_s for number in rounds)
            for team in teams
        }
        for phase in phases
    }
    return Scores(_METRIC, Direction.MAXIMIZE, tuple(phases), tuple(teams), tuple(rounds), values)


def warnings_of_logs(files: Sequence[LogFile]) -> list[str]:
    """A line for each phase of which some logs have another number of operations than the first.

    It may be a run of another size, or one that ended by the clock. Raises as `scores_of_logs`.
    """
    read = [(file.path, _phases(file.path)) for file in files]
    lines = []
    for name, first in read[0][1].items():
        for path, phases in read[1:]:
            found = phases[name].operations
            if abs(found - first.operations) > _OPERATIONS_TOLERANCE * first.operations:
                lines.append(
                    f"{name}: {found:,} operations in {path} and {first.operations:,} in "
                    f"{read[0][0]}: rates of runs of different sizes are not of one contest"
                )
                break
    return lines


def _rounds(files: Sequence[LogFile]) -> list[int]:
    """The rounds that every team has."""
    by_team: dict[str, list[int]] = {}
    for file in files:
        by_team.setdefault(file.team, []).append(file.round or 0)
    first, *others = by_team
    if not others:
        why = f"all are logs of one team, {first}"
        raise InputError(FILE, why=why, allowed="logs of two teams or more, NAME=FILE for each")
    for team in others:
        if by_team[team] != by_team[first]:
            rounds, allowed = (", ".join(map(str, by_team[each])) for each in (team, first))
            why = f"{team} has other rounds than {first}"
            raise InputError(FILE, why=why, found=f"rounds {rounds}", allowed=f"rounds {allowed}")
    return by_team[first]


def _phases(path: Path) -> Mapping[str, YcsbPhase]:
    """What was printed of each phase, in order, by its name."""
    found: dict[str, YcsbPhase] = {}
    for phase in parse_ycsb_log(read_text(path), str(path)).phases:
        name = _phase_name(phase)
        same = sum(other == name or other.startswith(f"{name}#") for other in found)
        if phase.throughput_ops_s <= 0:
            place = f"line {phase.line}"
            raise InputError(str(path), place, found=phase.throughput_ops_s, allowed="above 0")
        found[f"{name}#{same + 1}" if same else name] = phase
    return found


def _phase_name(phase: YcsbPhase) -> str:
    if phase.workload is None:
        return phase.kind
    return f"{phase.kind}-{phase.workload.removeprefix('workload').strip('-_') or phase.workload}"
