"""Scores, runs and logs that the contest's tests share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from lsmtune.experiment.contest import Entry, disqualified_entries, load_rules
from lsmtune.experiment.contest_scores import Scores
from lsmtune.experiment.standings import Leaderboard, leaderboard_of_runs
from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.measurement import Measurement, Outcome, PhaseMeasurement, RunError
from lsmtune.model.workload import Phase, PhaseKind, Workload
from made_up import made_up_phase

RESULTS = Path(__file__).parents[3] / "shared" / "data" / "dku-contest" / "results"
PROPERTIES = RESULTS.parent / "properties"
TEAMS = ("WAL/Manifest", "Memtable", "Compaction", "SSTable", "Bloom Filter", "Cache")
ENGINE = EngineIdentity("leveldb", "1.22")


def contest_logs() -> list[str]:
    """The logs of the contest of 2022, as the command line names them."""
    if not RESULTS.is_dir():
        pytest.skip("the shared data are not beside this checkout")
    return [f"{team}={RESULTS}/No5_Team{number}_*.txt" for number, team in enumerate(TEAMS, 1)]


def scores(values: Mapping[str, Mapping[str, Sequence[float]]]) -> Scores:
    """Throughputs by phase and team, in rounds from 1."""
    by_phase = {phase: {t: tuple(v) for t, v in teams.items()} for phase, teams in values.items()}
    first = next(iter(by_phase.values()))
    rounds = tuple(range(1, 1 + len(next(iter(first.values())))))
    return Scores("throughput_ops_s", tuple(by_phase), tuple(first), rounds, by_phase)


def run(
    team: str,
    number: int,
    outcome: Outcome = Outcome.OK,
    **throughputs_ops_s: float,
) -> StoredMeasurement:
    """A run of `team` in round `number`, from 0, by the throughput of its phases."""
    phases = tuple(phase(name, value) for name, value in throughputs_ops_s.items())
    error = None if outcome is Outcome.OK else RunError("engine", "it fell over")
    measurement = Measurement(
        outcome, ENGINE, {}, "contest", 1 + number, 0.0, 1.0, phases=phases, error=error
    )
    return StoredMeasurement(
        0, Role.ROUND, None, None, Config(), measurement, round=number, arm=team
    )


def phase(name: str, throughput_ops_s: float) -> PhaseMeasurement:
    """A measure phase of one second."""
    return made_up_phase(
        name,
        operation="put",
        operations=round(throughput_ops_s),
        throughput_ops_s=throughput_ops_s,
        sustained_throughput_ops_s=throughput_ops_s / 2,
    )


def log_text(**throughputs: float) -> str:
    """What YCSB-cpp prints for phases such as `load_a` and `run_b`."""
    lines = []
    for name, throughput in throughputs.items():
        kind, workload = name.split("_")
        lines += [
            f"./ycsb -{kind} -db leveldb -P workloads/workload{workload} -s",
            f"{kind.capitalize()} runtime(sec): 10",
            f"{kind.capitalize()} operations(ops): {round(10 * throughput)}",
            f"{kind.capitalize()} throughput(ops/sec): {throughput:g}",
        ]
    return "\n".join(lines) + "\n"


# --- A contest whose leaderboard is reported

ODD = "<b>a|b</b>"
PHASES = tuple(
    Phase(name, PhaseKind.MEASURE, "fillrandom", operations_per_thread=1) for name in ("put", "get")
)
WORKLOAD = Workload("small", PHASES, 1)
SPEEDS = {ODD: 200.0, "slow": 100.0, "same": 102.0}
# By team and round: an outlier of `slow`, which puts it before `same`.
JITTER = (1.0, 1.02, 0.99, 1.01, 0.985)


def board(rounds: int = 5, *, ranked: bool = True) -> Leaderboard:
    rules = load_rules("leveldb")
    options = {"write_buffer_size": 2**30}
    entries = [Entry(team, team, Config({"block_size": 4096})) for team in (*SPEEDS, "broken")]
    entries.append(Entry("huge", "huge", Config(options)))
    if not ranked:
        entries = entries[-1:]
    disqualified = disqualified_entries(entries, rules, ENGINE)
    runs = []
    for number in range(rounds if ranked else 0):
        for shift, (team, speed) in enumerate(SPEEDS.items()):
            value = speed * JITTER[(number + 2 * shift) % 5]
            put = 1.5 * value if (team, number) == ("slow", 3) else value
            runs.append(run(team, number, put=put, get=value))
        runs.append(run("broken", number, Outcome.CRASHED))
    return leaderboard_of_runs(
        runs,
        entries,
        disqualified,
        rules,
        ENGINE,
        WORKLOAD,
        "throughput_ops_s",
        warnings=["beware"],
    )
