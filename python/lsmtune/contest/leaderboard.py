"""The Leaderboard: standings, and what has to be known beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lsmtune.contest.entry import Entry
from lsmtune.contest.logs import LogFile, scores_of_logs, warnings_of_logs
from lsmtune.contest.rules import Broken, Rules, broken_rules
from lsmtune.contest.scores import Failed, scores_of_runs
from lsmtune.contest.standings import CONFIDENCE, standings_of
from lsmtune.contest.tables import Standings
from lsmtune.records.config import OptionValue
from lsmtune.records.engine import EngineIdentity
from lsmtune.records.objective import Direction, default_direction
from lsmtune.records.workload import Workload
from lsmtune.rounds import Cell, CellRun


@dataclass(frozen=True)
class RuleTold:
    """A rule as the leaderboard shows it."""

    name: str
    text: str
    about: str = ""


@dataclass(frozen=True)
class Disqualified:
    """A team that was not run, and the rules that its entry breaks, at least one."""

    team: str
    broken: tuple[Broken, ...]


@dataclass(frozen=True)
class Leaderboard:
    """A contest's result. `standings` is None where no team could be ranked.

    `engine` and `workload` are None for logs, of which it is not known; `options` are what each
    team handed in.
    """

    metric: str
    direction: Direction
    standings: Standings | None
    engine: EngineIdentity | None = None
    workload: str | None = None
    rules: tuple[RuleTold, ...] = ()
    disqualified: tuple[Disqualified, ...] = ()
    failed: tuple[Failed, ...] = ()
    options: Mapping[str, Mapping[str, OptionValue]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Checked:
    """The entries that may take part, and those that may not."""

    allowed: tuple[Entry, ...]
    disqualified: tuple[Disqualified, ...]


def checked_entries(entries: Sequence[Entry], rules: Rules, engine: EngineIdentity) -> Checked:
    """Which entries meet the rules. Raises InputError as `broken_rules` does."""
    allowed, disqualified = [], []
    for entry in entries:
        broken = broken_rules(rules, entry.config, entry.source, engine.version)
        if broken:
            disqualified.append(Disqualified(entry.name, tuple(broken)))
        else:
            allowed.append(entry)
    return Checked(tuple(allowed), tuple(disqualified))


def cells_of(
    entries: Sequence[Entry], engine: EngineIdentity, workload: Workload
) -> tuple[Cell, ...]:
    """What `rounds.perform` measures for `entries`: one cell for each, by the team's name."""
    return tuple(Cell(entry.name, engine, entry.config, workload) for entry in entries)


def leaderboard_of_runs(
    runs: Sequence[CellRun],
    entries: Sequence[Entry],
    checked: Checked,
    rules: Rules,
    engine: EngineIdentity,
    workload: Workload,
    metric: str,
    *,
    warnings: Sequence[str] = (),
    confidence: float = CONFIDENCE,
) -> Leaderboard:
    """The leaderboard of a contest's `runs`. Raises InputError as `scores_of_runs` does."""
    direction = default_direction(metric)
    teams = [entry.name for entry in checked.allowed]
    scores, failed = scores_of_runs(runs, teams, workload.measured_phases, metric, direction)
    can_rank = bool(scores.teams and scores.rounds)
    return Leaderboard(
        metric,
        direction,
        standings_of(scores, confidence) if can_rank else None,
        engine=engine,
        workload=workload.name,
        rules=tuple(RuleTold(rule.name, rule.text, rule.about) for rule in rules.rules),
        disqualified=checked.disqualified,
        failed=failed,
        options={entry.name: entry.config.options for entry in entries},
        warnings=tuple(warnings),
    )


def leaderboard_of_logs(files: Sequence[LogFile], *, confidence: float = CONFIDENCE) -> Leaderboard:
    """The leaderboard of logs of YCSB-cpp. Raises InputError as `scores_of_logs` does."""
    scores = scores_of_logs(files)
    standings = standings_of(scores, confidence)
    warnings = tuple(warnings_of_logs(files))
    return Leaderboard(scores.metric, scores.direction, standings, warnings=warnings)
