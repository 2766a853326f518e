"""`lsmtune tune`: search, prove, and write the result."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lsmtune.cli.bench import native_runner
from lsmtune.cli.flags import (
    BudgetOption,
    JsonOption,
    QuietOption,
    TrialsOption,
    command,
    duration_of,
    flag,
)
from lsmtune.cli.output import print_json, print_view, status_of
from lsmtune.driver.native import NativeRunner
from lsmtune.engines.library import PLUGIN_ENGINES
from lsmtune.errors import InputError, InterruptedByUserError, by_name, need_package
from lsmtune.experiment.folder import StudyFolder, default_folder
from lsmtune.machine.awake import AwakeClock
from lsmtune.model.config import EngineIdentity
from lsmtune.programs.command import CommandRunner
from lsmtune.programs.registry import PROGRAMS
from lsmtune.programs.runner import RunnerChoice, chosen_program
from lsmtune.proof.pairs import refusal
from lsmtune.search.pruners import PRUNERS
from lsmtune.search.samplers import SAMPLERS
from lsmtune.study.build import load_spec, place_of
from lsmtune.study.spec import Budget, Spec
from lsmtune.workloads.choice import check_traces
from lsmtune.workloads.stated import FAMILIES

if TYPE_CHECKING:
    from lsmtune.programs.program import Program
    from lsmtune.study.loop import Tuning
    from lsmtune.study.observer import TuneResult

_METHOD, _PLUGIN = "proof.method", "plugin: "
EXAMPLES = (
    "lsmtune tune study.yaml",
    "lsmtune tune study.yaml --budget 10m --require-gain && deploy",
    "lsmtune tune study.yaml --fleet auto   # on the hosts that joined `lsmtune worker`",
    "Ctrl-C stops it; the same command goes on where it stopped.",
    "lsmtune tune study.yaml --trials 1   # enough was tried: prove the best so far",
)
app = typer.Typer()


@dataclass(frozen=True)
class SessionFlags:
    """Where the study is kept, how long this session of it may take, and what it prints."""

    directory: Path | None = flag("--dir DIR", "The study's folder; beside its file if unset.")
    budget: BudgetOption = None
    quiet: QuietOption = False
    as_json: JsonOption = False


@dataclass(frozen=True)
class TuneFlags:
    """How many trials, where they are stored and measured, and what the exit status says."""

    trials: TrialsOption = None
    require_gain: bool = flag(
        "--require-gain", "Exit 3 unless a gain is proved, 4 where a loss is.", False
    )
    storage: str = flag(
        "--storage URL", "A PostgreSQL server for the rows of a new study (docs/scale.md).", ""
    )
    fleet: str | None = flag(
        "--fleet HOST:PORT",
        "Measure on the hosts of this fleet; `auto`: the one begun on this machine.",
    )


@command(app, "tune", EXAMPLES)
def tune_study(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="A study file (YAML).")],
    session: SessionFlags,
    flags: TuneFlags,
) -> None:
    """Search, prove, and write the result; continues where it stopped."""
    from lsmtune.cli.tune_result import all_failed, tune_document, tune_view, write_result_files
    from lsmtune.machine.findings import machine_facts
    from lsmtune.study.budget import refuse_short
    from lsmtune.study.size import at_length
    from lsmtune.study.start import open_study
    from lsmtune.study.winners import remember_winner, with_winners

    clock = AwakeClock()
    begun_s = clock()
    time_s = None if session.budget is None else duration_of("--budget", session.budget)
    spec = load_spec(study, Budget(time_s, flags.trials))
    refuse_short(spec, place_of(spec, "budget.time") if time_s is None else "--budget")
    chosen = tune_runner(spec)
    spec = replace(spec, engine_version=chosen.engine.version)
    path = session.directory or default_folder(study)
    if flags.fleet is None:
        # Runs are compared by a trace's bytes: a study of one that is gone would seem changed.
        field = "workload" if len(spec.workloads) == 1 else "workloads"
        for weighted in spec.workloads:
            check_traces(weighted.workload, place_of(spec, field), field)
    with open_study(path, spec, flags.storage) as folder:
        facts, noted = machine_facts(folder.path), folder.measurements.fact("machine")
        if noted is None:
            folder.measurements.set_fact("machine", {**facts, **_plugins_used(spec)})
        elif flags.fleet is None and (unlike := _unlike(noted, facts)):
            chosen = replace(chosen, warnings=(*chosen.warnings, unlike))
        spec = with_winners(spec, folder)
        with _fleet(flags.fleet, chosen, folder.path) as make:
            result = _search_and_prove(
                spec, folder, chosen, clock, begun_s, make, quiet=session.quiet
            )
        try:
            # By the workload as it is stated, by which a new study looks for its like.
            remember_winner(spec, result)
        except OSError as error:
            typer.echo(f"warning: not kept for later studies: {error}", err=True)
        spec = at_length(spec, folder)
        files = write_result_files(folder, spec, result, chosen.engine)
        failure = all_failed(folder, spec, result)
        if result.interrupted:
            hint = "; with --trials 1 it proves the best so far" if result.best else ""
            line = f"interrupted; the same command continues {folder.path}{hint}"
            failure = InterruptedByUserError(line)
        if session.as_json:
            print_json(tune_document(spec, folder, result, files), failure)
        elif not result.interrupted:
            print_view(tune_view(spec, folder, result, files), soft_wrap=True)
    if failure is not None:
        raise failure
    if flags.require_gain:
        raise typer.Exit(status_of(result.verdict))


def _unlike(noted: Mapping[str, object], facts: Mapping[str, str]) -> str:
    """What of the machine is not as `noted` when the study began, in one line; or empty."""
    from lsmtune.machine.findings import OF_THE_MOMENT

    names = [n for n in {**noted, **facts} if n != OF_THE_MOMENT and not n.startswith(_PLUGIN)]
    shown = [
        f"{n} {facts.get(n, 'not known')} (was {noted.get(n, 'not known')})"
        for n in names
        if facts.get(n) != noted.get(n)
    ]
    why = "what runs now is compared with what ran then"
    return f"the machine is not as when the study began: {', '.join(shown)}; {why}" if shown else ""


def _plugins_used(spec: Spec) -> dict[str, str]:
    """The plugins that a study uses, each with its package and the version of that."""
    used = {
        "engine": PLUGIN_ENGINES.origin(spec.engine_name),
        "sampler": SAMPLERS.origin(spec.sampler.name),
    }
    if spec.pruner is not None:
        used["pruner"] = PRUNERS.origin(spec.pruner.name)
    if spec.program is not None:
        used["program"] = PROGRAMS.origin(spec.program.name)
    for weighted in spec.workloads:
        name = weighted.workload.name
        used[f"workload {name}"] = FAMILIES.origin(name)
    return {f"{_PLUGIN}{kind}": str(origin) for kind, origin in used.items() if origin is not None}


def tune_runner(spec: Spec) -> RunnerChoice:
    """The runner that `spec` asks for. Raises InputError when it cannot be used."""
    workloads = [weighted.workload for weighted in spec.workloads]
    native = spec.command is None and spec.program is None
    why = refusal(spec.proof.method, workloads, native=native)
    if why and spec.proof.method is not None:
        raise InputError(place_of(spec, _METHOD), _METHOD, found=spec.proof.method.value, why=why)
    if spec.program is not None:
        asked, source = spec.program, place_of(spec, "runner.program")
        program = by_name(PROGRAMS, asked.name, source, "runner.program")
        _check_rungs(spec, program)
        path_source = place_of(spec, "runner.path") if asked.path is not None else source
        return chosen_program(
            program,
            spec.engine_name,
            asked.path,
            asked.arguments,
            workloads,
            path_place=(path_source, "runner.path"),
            arguments_place=(source, "runner.arguments"),
        )
    if spec.command is not None:
        engine = EngineIdentity(spec.engine_name)
        return RunnerChoice("command", CommandRunner(spec.command), engine)
    return native_runner(
        spec.engine_name, spec.engine_library, lambda field: (place_of(spec, field), field)
    )


@contextmanager
def _fleet(
    address: str | None, chosen: RunnerChoice, folder: Path
) -> Iterator[Callable[..., Tuning] | None]:
    """What performs the runs on the fleet at `address`; None without one.

    Raises InputError where that cannot be, LsmtuneError where no fleet answers.
    """
    if address is None:
        yield None
        return
    from lsmtune.cli.worker import address_of, fleet_environment

    need_package("ray", "--fleet")
    if not isinstance(chosen.runner, NativeRunner):
        why = "a fleet measures with lsmtune's own driver alone"
        raise InputError("--fleet", found=chosen.name, why=why, allowed="a study without runner:")
    address = address_of(address)
    os.environ.update(fleet_environment(begin=False))
    from lsmtune.fleet.host import host_facts
    from lsmtune.fleet.on_ray import RayFleet
    from lsmtune.fleet.tuning import FleetParts, FleetTuning

    hosts = RayFleet(address)
    try:
        parts = FleetParts(hosts, host_facts(chosen.engine, chosen.runner, folder))
        yield partial(FleetTuning, parts)
        if parts.discarded:
            typer.echo(f"{parts.discarded} answers came too late, and were discarded", err=True)
    finally:
        hosts.close()


def _search_and_prove(
    spec: Spec,
    folder: StudyFolder,
    chosen: RunnerChoice,
    clock: AwakeClock,
    begun_s: float,
    make: Callable[..., Tuning] | None,
    *,
    quiet: bool,
) -> TuneResult:
    """Runs the loop with its display; Ctrl-C stops it in order, a second one at once."""
    from lsmtune.cli.live import tune_display
    from lsmtune.cli.tune_progress import Plan, TuneProgress
    from lsmtune.machine.interrupts import stop_on_interrupt
    from lsmtune.study.loop import tune
    from lsmtune.study.session import time_spent_s
    from lsmtune.study.start import baseline_config

    plan = Plan(
        baseline_config(spec),
        chosen.engine,
        spec.goal,
        spec.workloads,
        trials=spec.budget.trials,
        time_s=spec.budget.time_s,
        pairs=spec.proof.pairs,
        defaults=spec.defaults,
    )
    spent_s = time_spent_s(folder.measurements)
    with (
        clock.beating(),
        tune_display(plan, clock, spent_s, observer=TuneProgress, quiet=quiet) as observer,
        stop_on_interrupt(observer.warning) as stop,
    ):
        for warning in chosen.warnings:
            observer.warning(warning)
        return tune(
            spec,
            folder,
            chosen.runner,
            chosen.engine,
            observer,
            stop=stop,
            clock=clock,
            startup_s=clock() - begun_s,
            make=make,
        )


def _check_rungs(spec: Spec, program: Program) -> None:
    """Raises InputError for a rung of size whose workload `program` cannot perform."""
    from lsmtune.study.stored import rung_workloads

    rungs = spec.data_rungs
    if rungs is None:
        return
    for weighted in spec.workloads:
        sized = rung_workloads(rungs, weighted.workload)
        for number, (num, workload) in enumerate(zip(rungs.num, sized, strict=True)):
            try:
                program.check(workload, spec.engine_name)
            except InputError as error:
                field, what = f"pruner.rungs.num[{number}]", f"{workload.name} of {num} keys"
                why = f"{program.name} cannot perform {what}: {error.field}: {error.why}"
                raise error.but(source=place_of(spec, field), field=field, why=why) from None
