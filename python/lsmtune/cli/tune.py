"""What performs the runs of a study: lsmtune's driver, or a program of the user's own."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lsmtune.cli.flags import BudgetOption, JsonOption, TrialsOption, duration_of
from lsmtune.driver.conversation import find_driver
from lsmtune.driver.library_facts import chosen_engine
from lsmtune.driver.native import NativeRunner
from lsmtune.driver.runner import Runner
from lsmtune.errors import ExitStatus, InputError
from lsmtune.model.command import ProgramSpec
from lsmtune.model.config import Build, EngineIdentity
from lsmtune.model.verdict import VerdictOutcome
from lsmtune.programs.command import CommandRunner
from lsmtune.programs.find import check_arguments, find_program, introduced
from lsmtune.programs.registry import PROGRAMS
from lsmtune.programs.runner import ProgramRunner
from lsmtune.proof.pairs import refusal
from lsmtune.study.build import place_of
from lsmtune.study.spec import Spec

if TYPE_CHECKING:
    from lsmtune.experiment.folder import StudyFolder
    from lsmtune.study.observer import TuneResult
    from lsmtune.study.spec import Spec


@dataclass(frozen=True)
class TuneRunner:
    """A runner, what it measures, and what the user should know of it."""

    runner: Runner
    engine: EngineIdentity
    warnings: tuple[str, ...] = ()


_LIBRARY = "engine.library"
_METHOD = "proof.method"


def _in_study_file(error: InputError, spec: Spec) -> InputError:
    """`error` with the field of the study file in the place of the flag that says the same."""
    if error.source != "--library":
        return error
    place, allowed = place_of(spec, _LIBRARY), error.allowed.replace("--engine ", "engine.name: ")
    return InputError(place, _LIBRARY, found=error.found, allowed=allowed, why=error.why)


def _trusted(spec: Spec, asked: ProgramSpec) -> TuneRunner:
    """A program that people trust, found and asked what it is."""
    program, place = PROGRAMS[asked.name], place_of(spec, "runner.program")
    path_place = place_of(spec, "runner.path") if asked.path is not None else place
    found = find_program(
        program, spec.engine_name, asked.path, source=path_place, field="runner.path"
    )
    check_arguments(program, found, asked.arguments, place, "runner.arguments")
    said = introduced(program, found)
    build = said.build or Build.UNKNOWN
    engine = EngineIdentity(spec.engine_name, said.version, str(found.path), build)
    warnings = tuple(f"{program.name}: {line}" for line in said.warnings)
    return TuneRunner(ProgramRunner(program, found, asked.arguments), engine, warnings)


def tune_runner(spec: Spec) -> TuneRunner:
    """The runner that `spec` asks for. Raises InputError when it cannot be used."""
    workloads = [weighted.workload for weighted in spec.workloads]
    why = refusal(
        spec.proof.method, workloads, native=spec.command is None and spec.program is None
    )
    if why and spec.proof.method is not None:
        raise InputError(place_of(spec, _METHOD), _METHOD, found=spec.proof.method.value, why=why)
    if spec.program is not None:
        return _trusted(spec, spec.program)
    if spec.command is not None:
        return TuneRunner(CommandRunner(spec.command), EngineIdentity(spec.engine_name))
    driver = find_driver()
    try:
        engine, warnings = chosen_engine(spec.engine_name, spec.engine_library, driver)
    except InputError as error:
        raise _in_study_file(error, spec) from None
    return TuneRunner(NativeRunner(driver), engine, warnings)


# --- `lsmtune tune`: search, prove, and write the result.

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
    from lsmtune.experiment.folder import StudyFolder, default_folder
    from lsmtune.machine.facts import machine_facts
    from lsmtune.study.build import load_spec

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

    from lsmtune.cli.interrupts import stop_on_interrupt
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
