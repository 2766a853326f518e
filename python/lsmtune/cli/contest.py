"""`lsmtune contest`: configurations of several teams under one workload, and who is where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lsmtune.cli.flags import (
    CONFIDENCE_DEFAULT,
    FirstSeedOption,
    ForceOption,
    JsonOption,
    LibraryOption,
    LimitFlags,
    QuietOption,
    RunsDirOption,
    WorkloadFlags,
    WorkloadOption,
    WorkloadSetOption,
    command,
    confidence_of,
    flag,
    refuse_others,
    under_workload,
)
from lsmtune.cli.output import check_outputs, print_json, print_view, warn
from lsmtune.engines.library import ENGINE_KINDS, ENGINE_NAMES
from lsmtune.errors import InputError, LsmtuneError, check_name
from lsmtune.machine.files import STDOUT, write_output
from lsmtune.model.metrics import DEFAULT_METRIC

if TYPE_CHECKING:
    from lsmtune.driver.runner import Runner
    from lsmtune.experiment.contest import Entry, Rules
    from lsmtune.experiment.schedule import Cell
    from lsmtune.experiment.standings import Leaderboard
    from lsmtune.experiment.store import StoredMeasurement
    from lsmtune.model.config import EngineIdentity
    from lsmtune.model.request import Limits
    from lsmtune.model.workload import Workload

COMMAND = "contest"
WORKLOAD_DEFAULT = "contest"
TEAMS_MIN = 2
_FROM_LOGS = "--from-logs"
_SHOW_RULES = "--show-rules"
EXAMPLES = (
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
app = typer.Typer()


@dataclass(frozen=True)
class ContestFlags:
    """Who takes part, under which rules, and how teams are told apart."""

    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE",
            help="What each team handed in; NAME=FILE names the team.",
            show_default=False,
        ),
    ] = None
    engine: str | None = flag(
        "--engine NAME",
        f"{', '.join(ENGINE_NAMES)}; not needed where the files say it.",
        known=ENGINE_NAMES,
    )
    library: LibraryOption = None
    workload: WorkloadOption = WORKLOAD_DEFAULT
    workload_set: WorkloadSetOption = None
    rounds: int = flag(
        "--rounds N",
        "Each team runs once in every round, on a fresh database.",
        5,
        number=(1, 1000),
    )
    rules: Path | None = flag("--rules FILE", "Rules (YAML) in place of the built-in ones.")
    show_rules: bool = flag(_SHOW_RULES, "Print the rules, and run nothing.", False)
    from_logs: bool = flag(_FROM_LOGS, "Rank existing logs of YCSB-cpp, and run nothing.", False)
    metric: str | None = flag(
        "--metric NAME", f"What teams are ranked by in each phase; {DEFAULT_METRIC} if unset."
    )
    confidence: str = flag(
        "--confidence SHARE", "That every separation of teams is right; 95%.", CONFIDENCE_DEFAULT
    )
    seed: FirstSeedOption = 1
    directory: RunsDirOption = None
    output: list[Path] | None = flag(
        "--output FILE",
        "Write the leaderboard, as .html or .md; - is Markdown on stdout; repeat.",
    )
    force: ForceOption = False


@command(app, COMMAND, EXAMPLES)
def _contest(
    *,
    context: typer.Context,
    given: ContestFlags,
    limits: LimitFlags,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Rank configurations of several teams, phase by phase and in total."""
    from lsmtune.report.leaderboard import check_board

    confidence = confidence_of(given.confidence)
    outputs = given.output or ()
    for path in outputs:
        if path != STDOUT:
            check_board(path, "--output")
    files = [("--output", path) for path in outputs]
    err = check_outputs(files, force=given.force, as_json=as_json)
    if given.show_rules:
        effective = ["show_rules", "rules", "engine", "as_json"]
        refuse_others(context, effective, f"has no effect beside {_SHOW_RULES}")
        _show_rules(given.rules, given.engine, as_json)
    elif given.from_logs:
        effective = ["files", "from_logs", "confidence", "output", "force", "as_json"]
        refuse_others(context, effective, f"has no effect beside {_FROM_LOGS}")
        if not given.files:
            raise InputError(COMMAND, "FILE", why="is missing", allowed="logs of YCSB-cpp")
        from lsmtune.experiment.contest_scores import log_files
        from lsmtune.experiment.standings import leaderboard_of_logs

        board = leaderboard_of_logs(log_files(given.files), confidence=confidence)
        warn(board.warnings)
        _put_out(board, outputs, as_json=as_json, err=err)
    else:
        _put_out(hold_contest(given, limits, quiet=quiet), outputs, as_json=as_json, err=err)


def _show_rules(path: Path | None, engine: str | None, as_json: bool) -> None:
    """The rules file as it is, which is one to start from; with --json what it says."""
    from lsmtune.experiment.contest import parse_rules, rules_text

    check_name(engine, ENGINE_KINDS, "--engine")
    names = [engine] if engine is not None else list(ENGINE_KINDS)
    text, source = rules_text(path)
    if not as_json:
        if engine is not None and path is not None:
            parse_rules(text, source, engine)
        typer.echo(text, nl=False)
        return
    documents = [
        {"engine": name, "rule": rule.name, "expression": rule.text, "about": rule.about}
        for name in names
        for rule in parse_rules(text, source, name).constraints
    ]
    print_json({"source": source, "rules": documents})


def hold_contest(given: ContestFlags, limits: LimitFlags, *, quiet: bool) -> Leaderboard:
    """Check the entries, run those that meet the rules, and rank them.

    Raises InputError for what the user can mend, and typer.Exit when interrupted.
    """
    from lsmtune.cli.bench import native_runner
    from lsmtune.experiment.contest import disqualified_entries, load_rules
    from lsmtune.experiment.contest_scores import SCORE_METRICS
    from lsmtune.experiment.schedule import Cell
    from lsmtune.experiment.standings import leaderboard_of_runs

    metric = given.metric or DEFAULT_METRIC
    check_name(metric, SCORE_METRICS, "--metric")
    limit = limits.limits
    engine_name, entries = entries_of(given.files or (), given.engine)
    choice = WorkloadFlags(given.workload_set).choice(given.workload, engine_name)
    for number, entry in enumerate(entries):
        # With the options that the workload stands for; its label is the team's name.
        config = under_workload(entry.config, choice, engine_name, entry.source)
        entries[number] = replace(entry, config=replace(config, label=entry.name))
    rules = load_rules(engine_name, given.rules)
    by = native_runner(engine_name, given.library)
    engine = by.engine
    disqualified = disqualified_entries(entries, rules, engine)
    workload = choice.workload
    warnings = (*by.warnings, *_warnings(entries, rules, engine, workload, limit))
    warn(warnings)
    out = {each.team for each in disqualified}
    allowed = [entry for entry in entries if entry.name not in out]
    cells = [Cell(engine, entry.config, entry.name, workload=workload) for entry in allowed]
    runs = _rounds(given, limit, cells, by.runner, quiet=quiet) if cells else ()
    of_runs = dict.fromkeys(f"{r.arm}: {o}" for r in runs for o in r.measurement.options_replaced)
    warn(of_runs)
    return leaderboard_of_runs(
        runs,
        entries,
        disqualified,
        rules,
        engine,
        workload,
        metric,
        warnings=(*warnings, *of_runs),
        confidence=confidence_of(given.confidence),
    )


def entries_of(texts: Sequence[str], engine: str | None) -> tuple[str, list[Entry]]:
    """The engine, and what each team handed in.

    Raises InputError for fewer than two teams, a text that names no configuration, and entries of
    different engines.
    """
    from lsmtune.cli.choices import resolve_named
    from lsmtune.experiment.contest import FILE, Entry, entries_by_team

    teams = entries_by_team(texts)
    if len(teams) < TEAMS_MIN:
        why = f"a contest has {TEAMS_MIN} teams or more"
        raise InputError(FILE, found=" ".join(texts) or "nothing", why=why)
    resolved = {name: resolve_named(what, engine, FILE) for name, what in teams.items()}
    engines = {name: each.engine.name for name, each in resolved.items() if each.engine}
    if engine is None and not engines:
        why = "is missing: no entry says which engine it is for"
        raise InputError("--engine", why=why, allowed=", ".join(ENGINE_NAMES))
    if engine is None and len(set(engines.values())) > 1:
        listed = ", ".join(f"{team} ({name})" for team, name in engines.items())
        raise InputError(FILE, found=listed, why="entries of one engine make a contest")
    entries = [Entry(name, what, resolved[name].config) for name, what in teams.items()]
    return engine or next(iter(engines.values())), entries


def _warnings(
    entries: Sequence[Entry],
    rules: Rules,
    engine: EngineIdentity,
    workload: Workload,
    limits: Limits,
) -> Iterator[str]:
    """Rules that say nothing here, and what may be wrong with an entry."""
    from lsmtune.engines.safety import doubts

    if rules.elsewhere:
        yield f"no rule for {engine.name}: {', '.join(rules.elsewhere)} ({rules.source})"
    for entry in entries:
        doubtful = doubts(engine, entry.config, workload.durability, limits, entry.source)
        yield from (f"{entry.name}: {reason}" for reason in doubtful.reasons())


def _rounds(
    given: ContestFlags, limits: Limits, cells: Sequence[Cell], runner: Runner, *, quiet: bool
) -> tuple[StoredMeasurement, ...]:
    """Runs the rounds with their display; Ctrl-C stops them in order."""
    from lsmtune.cli.live import bench_display
    from lsmtune.cli.rounds_progress import RoundsProgress, stored_runs
    from lsmtune.cli.verify import proof_folder
    from lsmtune.experiment.rounds import perform
    from lsmtune.machine.interrupts import interrupted, stop_on_interrupt

    names = {cell.name for cell in cells}
    before = () if given.directory is None else stored_runs(given.directory, names)
    observer = RoundsProgress(cells, given.rounds, before, quiet=quiet)
    with (
        proof_folder(given.directory) as folder,
        bench_display(observer, quiet=quiet),
        stop_on_interrupt(observer.say) as stop,
    ):
        runs = perform(cells, given.rounds, folder, runner, limits, given.seed, observer, stop)
    if stop.is_set() and len(runs) < len(cells) * given.rounds:
        raise interrupted(given.directory)
    return runs


def _put_out(board: Leaderboard, outputs: Sequence[Path], *, as_json: bool, err: bool) -> None:
    """Print the leaderboard, on stderr where `err`, and write its files.

    Raises LsmtuneError where nobody is ranked, and as `write_output` does, once it is printed.
    """
    from lsmtune.report.leaderboard import FORMATS, board_document, document

    failure: LsmtuneError | None = None
    written: list[Path] = []
    try:
        for path in outputs:
            form = FORMATS[".md" if path == STDOUT else path.suffix]
            written.append(write_output(path, form(board)))
    except LsmtuneError as error:  # what hours went to is told all the same
        failure = error
    if failure is None and board.standings is None:
        out = {"disqualified": board.disqualified, "failed": board.failed}
        counts = ", ".join(f"{len(teams)} {what}" for what, teams in out.items() if teams)
        why = f": {counts}" if counts else ""
        failure = LsmtuneError(f"{COMMAND}: no team could be ranked{why}")
    if as_json:
        print_json(document(board), failure)
    else:
        print_view(board_document(board), err=err)
        for path in written:
            typer.echo(str(path), err=err)
    if failure is not None:
        raise failure
