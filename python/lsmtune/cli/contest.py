"""`lsmtune contest`: configurations of several teams under one workload, and who is where."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lsmtune.cli.flags import (
    CONFIDENCE_DEFAULT,
    DEADLINE_DEFAULT,
    DISK_DEFAULT,
    MEMORY_DEFAULT,
    DeadlineOption,
    DiskOption,
    JsonOption,
    LibraryOption,
    MemoryOption,
    RunsDirOption,
    SeedOption,
    WorkloadOption,
    WorkloadSetOption,
    limits_of,
    share_of,
    whole_number,
)
from lsmtune.engines.library import ENGINE_NAMES
from lsmtune.errors import InputError, LsmtuneError, nearest_name
from lsmtune.model.metrics import DEFAULT_METRIC

if TYPE_CHECKING:
    from lsmtune.experiment.standings import Leaderboard

COMMAND = "contest"
WORKLOAD_DEFAULT = "contest"
ROUNDS_DEFAULT = 5
_FROM_LOGS = "--from-logs"
_SHOW_RULES = "--show-rules"
_CONFIDENCE_LOW, _CONFIDENCE_HIGH = 0.5, 0.9999
EPILOG = "\n\n".join(
    (
        "Examples:",
        "lsmtune contest leveldb1.properties leveldb2.properties --dir contest --output board.html",
        "lsmtune contest SSTable=a.properties Cache=b.properties -w recordcount=200000 "
        "-w operationcount=200000",
        "lsmtune contest --show-rules > rules.yaml",
        "lsmtune contest --from-logs 'SSTable=results/No5_Team4_*.txt' "
        "'Cache=results/No5_Team6_*.txt' --json",
        "An entry is an option file or whatever else names a configuration (default, a preset, "
        "fast=write_buffer_size=64MiB). One that breaks a rule is listed with its figures, and "
        "not run. --dir keeps the runs: the same command goes on from them, also with more "
        "--rounds.",
    )
)

FilesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FILE...",
        help="What each team handed in; NAME=FILE names the team.",
        show_default=False,
    ),
]
EngineFlag = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="NAME",
        help=f"{', '.join(ENGINE_NAMES)}; not needed where the files say it.",
        autocompletion=lambda: list(ENGINE_NAMES),
    ),
]
RoundsFlag = Annotated[
    int,
    typer.Option(
        "--rounds",
        metavar="N",
        parser=whole_number("--rounds", 1, 1000),
        help="Each team runs once in every round, on a fresh database.",
    ),
]
RulesFlag = Annotated[
    Path | None,
    typer.Option("--rules", metavar="FILE", help="Rules (YAML) in place of the built-in ones."),
]
ShowRulesFlag = Annotated[bool, typer.Option(_SHOW_RULES, help="Print the rules, and run nothing.")]
FromLogsFlag = Annotated[
    bool, typer.Option(_FROM_LOGS, help="Rank existing logs of YCSB-cpp, and run nothing.")
]
MetricFlag = Annotated[
    str | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        help=f"What teams are ranked by in each phase; {DEFAULT_METRIC} if unset.",
    ),
]
ConfidenceFlag = Annotated[
    str,
    typer.Option(
        "--confidence", metavar="SHARE", help="That no separation of teams is wrong: 95%."
    ),
]
OutputFlag = Annotated[
    list[Path] | None,
    typer.Option(
        "--output",
        metavar="FILE",
        help="Write the leaderboard, as .html, .md, .json or .csv; again for each.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the `contest` command to `app`."""
    app.command(COMMAND, epilog=EPILOG)(_contest)


def _contest(
    context: typer.Context,
    files: FilesArgument = None,
    engine: EngineFlag = None,
    library: LibraryOption = None,
    workload: WorkloadOption = WORKLOAD_DEFAULT,
    workload_set: WorkloadSetOption = None,
    rounds: RoundsFlag = ROUNDS_DEFAULT,
    rules: RulesFlag = None,
    show_rules: ShowRulesFlag = False,
    from_logs: FromLogsFlag = False,
    metric: MetricFlag = None,
    confidence: ConfidenceFlag = CONFIDENCE_DEFAULT,
    seed: SeedOption = 1,
    directory: RunsDirOption = None,
    output: OutputFlag = None,
    deadline: DeadlineOption = DEADLINE_DEFAULT,
    memory: MemoryOption = MEMORY_DEFAULT,
    disk: DiskOption = DISK_DEFAULT,
    as_json: JsonOption = False,
) -> None:
    """Rank configurations of several teams, phase by phase and in total."""
    from lsmtune.cli.contest_run import ContestPlan, held
    from lsmtune.report.leaderboard import check_output

    share = _confidence(confidence)
    for path in output or ():
        check_output(path, "--output")
    if show_rules:
        _refuse_without_effect(context, _SHOW_RULES, ("show_rules", "rules", "engine", "as_json"))
        _show_rules(rules, engine, as_json)
        return
    if from_logs:
        used = ("files", "from_logs", "confidence", "output", "as_json")
        _refuse_without_effect(context, _FROM_LOGS, used)
        _tell(_from_logs(files or (), share), output or (), as_json)
        return
    plan = ContestPlan(
        texts=tuple(files or ()),
        engine=engine,
        library=library,
        workload=workload or WORKLOAD_DEFAULT,
        workload_set=workload_set,
        rounds=rounds,
        rules=rules,
        metric=_metric(metric or DEFAULT_METRIC),
        confidence=share,
        seed=seed,
        directory=directory,
        limits=limits_of(deadline, memory, disk),
    )
    _tell(held(plan), output or (), as_json)


def _from_logs(texts: Sequence[str], confidence: float) -> Leaderboard:
    from lsmtune.experiment.contest_scores import log_files
    from lsmtune.experiment.standings import leaderboard_of_logs

    if not texts:
        raise InputError(COMMAND, "FILE", why="is missing", allowed="logs of YCSB-cpp")
    board = leaderboard_of_logs(log_files(texts), confidence=confidence)
    for warning in board.warnings:
        typer.echo(f"lsmtune: warning: {warning}", err=True)
    return board


def _refuse_without_effect(context: typer.Context, switch: str, used: Sequence[str]) -> None:
    """Raises InputError for what was given beside `switch` and is not among `used`."""
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if name in used or source is None or source.name != "COMMANDLINE":
            continue
        flag = "FILE" if name == "files" else parameter.opts[0]
        raise InputError(flag, why=f"has no effect beside {switch}")


def _confidence(text: str) -> float:
    share = share_of("--confidence", text)
    if not _CONFIDENCE_LOW <= share <= _CONFIDENCE_HIGH:
        allowed = f"from {100 * _CONFIDENCE_LOW:g}% to {100 * _CONFIDENCE_HIGH:g}%"
        raise InputError("--confidence", found=text, allowed=allowed)
    return share


def _metric(name: str) -> str:
    from lsmtune.experiment.contest_scores import SCORE_METRICS

    if name not in SCORE_METRICS:
        nearest = nearest_name(name, SCORE_METRICS)
        raise InputError("--metric", found=name, allowed=", ".join(SCORE_METRICS), nearest=nearest)
    return name


def _show_rules(path: Path | None, engine: str | None, as_json: bool) -> None:
    """The rules file as it is, which is one to start from; with --json what it says."""
    from lsmtune.engines.importers.base import read_text
    from lsmtune.engines.library import ENGINE_KINDS, engine_kind
    from lsmtune.experiment.contest import BUILT_IN, built_in_text, load_rules, parse_rules

    names = [engine_kind(engine, "--engine").name] if engine is not None else list(ENGINE_KINDS)
    if not as_json and path is None:
        typer.echo(built_in_text(), nl=False)
        return
    if not as_json and path is not None:
        if engine is not None:
            load_rules(path, engine)
        typer.echo(read_text(path), nl=False)
        return
    text, source = (built_in_text(), BUILT_IN) if path is None else (read_text(path), str(path))
    documents = [
        {"engine": name, "rule": rule.name, "expression": rule.text, "about": rule.about}
        for name in names
        for rule in parse_rules(text, source, name).constraints
    ]
    typer.echo(json.dumps({"source": source, "rules": documents}, indent=2))


def _tell(board: Leaderboard, outputs: Sequence[Path], as_json: bool) -> None:
    """Print the leaderboard and write its files. Raises LsmtuneError where nobody is ranked."""
    import sys

    from rich.console import Console

    from lsmtune.report.leaderboard import board_document, document, write_leaderboard
    from lsmtune.report.terminal import to_terminal

    for path in outputs:
        write_leaderboard(board, path)
    if as_json:
        typer.echo(json.dumps(document(board), indent=2))
    else:
        width = None if sys.stdout.isatty() else 200
        Console(width=width, highlight=False).print(to_terminal(board_document(board)))
        for path in outputs:
            typer.echo(str(path))
    if board.standings is None:
        raise LsmtuneError(f"{COMMAND}: no team could be ranked{_reason(board)}")


def _reason(board: Leaderboard) -> str:
    counts = [
        f"{len(teams)} {what}"
        for teams, what in ((board.disqualified, "disqualified"), (board.failed, "failed"))
        if teams
    ]
    return f": {', '.join(counts)}" if counts else ""
