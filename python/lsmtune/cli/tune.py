"""`lsmtune tune`: search, prove, and write the result."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lsmtune.cli.flags import BudgetOption, JsonOption, TrialsOption, duration_of
from lsmtune.errors import ExitStatus
from lsmtune.records.verdict import VerdictOutcome

if TYPE_CHECKING:
    from lsmtune.cli.tune_runner import TuneRunner
    from lsmtune.spec import Spec
    from lsmtune.storage.folder import StudyFolder
    from lsmtune.study.result import TuneResult

COMMAND = "tune"
EPILOG = "\n\n".join(
    (
        "Examples:",
        "lsmtune tune study.yaml",
        "lsmtune tune study.yaml --budget 10m --require-gain && deploy",
        "Ctrl-C stops it; the same command goes on where it stopped.",
    )
)


def register(app: typer.Typer) -> None:
    """Add the `tune` command to `app`."""
    app.command(COMMAND, epilog=EPILOG)(_tune)


def _tune(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="A study file (YAML).")],
    directory: Annotated[
        Path | None,
        typer.Option("--dir", metavar="DIR", help="The study's folder; beside its file if unset."),
    ] = None,
    trials: TrialsOption = None,
    budget: BudgetOption = None,
    as_json: JsonOption = False,
    require_gain: Annotated[
        bool, typer.Option("--require-gain", help="Exit 3 unless a gain is proved.")
    ] = False,
) -> None:
    """Search, prove, and write the result; continues where it stopped."""
    from lsmtune.cli.tune_result import (
        all_failed,
        tune_document,
        tune_text,
        write_result_files,
    )
    from lsmtune.cli.tune_runner import tune_runner
    from lsmtune.machine.facts import machine_facts
    from lsmtune.spec import load_spec
    from lsmtune.storage.folder import StudyFolder, default_folder

    spec = with_budget(load_spec(study), trials, budget)
    chosen = tune_runner(spec)
    with StudyFolder.create_or_resume(directory or default_folder(study), spec) as folder:
        if folder.measurements.fact("machine") is None:
            folder.measurements.set_fact("machine", machine_facts(folder.path))
        result = search_and_prove(spec, folder, chosen)
        files = write_result_files(folder, spec, result, chosen.engine)
        failure = all_failed(folder, spec, result)
        if as_json:
            typer.echo(json.dumps(tune_document(spec, folder, result, files), indent=2))
        elif not result.interrupted:
            typer.echo(tune_text(spec, folder, result, files, chosen.engine))
    if result.interrupted:
        typer.echo(f"lsmtune: interrupted; the same command continues {folder.path}", err=True)
        raise typer.Exit(ExitStatus.INTERRUPTED)
    if failure is not None:
        raise failure
    better = result.verdict is not None and result.verdict.outcome is VerdictOutcome.BETTER
    if require_gain and not better:
        raise typer.Exit(ExitStatus.NOT_BETTER)


def with_budget(spec: Spec, trials: int | None, budget: str | None) -> Spec:
    """`spec` with the budgets of the command line in place of its own."""
    time_s = spec.budget.time_s if budget is None else duration_of("--budget", budget)
    trials = spec.budget.trials if trials is None else trials
    return replace(spec, budget=replace(spec.budget, time_s=time_s, trials=trials))


def search_and_prove(spec: Spec, folder: StudyFolder, chosen: TuneRunner) -> TuneResult:
    """Runs the loop with its display; Ctrl-C stops it in order, a second one at once."""
    import time

    from lsmtune.cli.interrupt import stop_on_interrupt
    from lsmtune.cli.live import tune_display
    from lsmtune.cli.tune_progress import Plan, TuneProgress
    from lsmtune.study.loop import tune

    budget = spec.budget
    plan = Plan(spec.goal, spec.workloads, budget.trials, budget.time_s, spec.proof.pairs)
    spent_s, clock = folder.measurements.spent_s(), time.monotonic
    with (
        tune_display(plan, clock, spent_s, observer=TuneProgress) as observer,
        stop_on_interrupt(observer.warning) as stop,
    ):
        for warning in chosen.warnings:
            observer.warning(warning)
        return tune(spec, folder, chosen.runner, chosen.engine, observer, stop=stop, clock=clock)
