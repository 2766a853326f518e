"""`lsmtune minimise`: the fewest options that keep a configuration's proven gain."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lsmtune.cli.choices import choose_workload
from lsmtune.cli.flags import (
    AUTO,
    CONFIDENCE_DEFAULT,
    DEADLINE_DEFAULT,
    DISK_DEFAULT,
    MEMORY_DEFAULT,
    METRIC_DEFAULT,
    NO_CRASH_TEST_FLAG,
    PAIRS_DEFAULT,
    AllowUnsafeOption,
    BaselineOption,
    BudgetOption,
    CandidateOption,
    ConfidenceOption,
    ConfigsArgument,
    DeadlineOption,
    DiskOption,
    EngineOption,
    JsonOption,
    LibraryOption,
    MemoryOption,
    MethodOption,
    MetricOption,
    NoCrashTestOption,
    PairsOption,
    PhaseOption,
    PropertiesOption,
    PropertyOption,
    RunsDirOption,
    SeedOption,
    SmallestEffectOption,
    WorkloadOption,
    WorkloadSetOption,
    check_method,
    check_pairs,
    limits_of,
    plan_of,
)
from lsmtune.cli.output import check_file, write_file
from lsmtune.cli.verify import configs_of, named, objective_of, phase_notes, proof_folder
from lsmtune.errors import ExitStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lsmtune.cli.minimise_view import Minimising
    from lsmtune.proof.paired_steps import Minimised
    from lsmtune.proof.standalone import Verification

COMMAND = "minimise"
EPILOG = "\n\n".join(
    (
        "Examples:",
        "lsmtune minimise default study.yaml --engine rocksdb --workload fillrandom --budget 30m "
        "--output OPTIONS",
        "lsmtune minimise --engine leveldb --workload readrandom --candidate study.yaml#17 "
        "--smallest-effect 2% --dir fewest",
        "Each option goes back to the baseline's value in turn, the risky ones first, and stays "
        "there unless the gain is proved to need it. --dir DIR keeps the runs, and the same "
        "command goes on from them; those of `lsmtune verify` count as well.",
        "Exit status 0: the gain is kept, and proved; 3: there is none, or the candidate is "
        "refused as in verify.",
    )
)
_WIDTH = 150  # of the table, in a file or a pipe
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output", metavar="FILE", help="Write the result as the engine's file of options."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the `minimise` command to `app`."""
    app.command(COMMAND, epilog=EPILOG)(_minimise)


def _minimise(
    engine: EngineOption,
    workload: WorkloadOption = None,
    configs: ConfigsArgument = None,
    candidate: CandidateOption = None,
    baseline: BaselineOption = None,
    library: LibraryOption = None,
    workload_set: WorkloadSetOption = None,
    properties: PropertiesOption = None,
    property_set: PropertyOption = None,
    metric: MetricOption = METRIC_DEFAULT,
    phase: PhaseOption = None,
    allow_unsafe: AllowUnsafeOption = None,
    pairs: PairsOption = PAIRS_DEFAULT,
    confidence: ConfidenceOption = CONFIDENCE_DEFAULT,
    smallest_effect: SmallestEffectOption = None,
    method: MethodOption = AUTO,
    budget: BudgetOption = None,
    seed: SeedOption = 1,
    no_crash_test: NoCrashTestOption = False,
    directory: RunsDirOption = None,
    output: OutputOption = None,
    deadline: DeadlineOption = DEADLINE_DEFAULT,
    memory: MemoryOption = MEMORY_DEFAULT,
    disk: DiskOption = DISK_DEFAULT,
    as_json: JsonOption = False,
) -> None:
    """Find the fewest options that keep a configuration's gain."""
    from lsmtune.cli.minimise_view import Minimising, format_for
    from lsmtune.cli.verification import judged
    from lsmtune.driver.conversation import find_driver
    from lsmtune.driver.library_facts import chosen_engine
    from lsmtune.experiment.schedule import Arm
    from lsmtune.proof.minimise import differing_options
    from lsmtune.proof.paired_steps import told_apart
    from lsmtune.proof.standalone import Verification

    started_s = time.monotonic()
    plan = plan_of(pairs, confidence, smallest_effect, method, budget)
    choice = choose_workload(workload, workload_set, properties, property_set, engine)
    chosen, limits = choice.workload, limits_of(deadline, memory, disk)
    check_method(plan, chosen)
    if output is not None:
        check_file(output)
        format_for(engine)
    sources = named(COMMAND, configs or (), baseline, candidate)
    before, after = configs_of(sources, engine, choice)
    objective = objective_of(metric, phase, chosen)
    driver = find_driver()
    identity, warnings = chosen_engine(engine, library, driver)
    least, same = told_apart(before, after, identity)
    check_pairs(plan, len(differing_options(before, least)))
    verification = Verification(
        Arm(identity, before),
        Arm(identity, least),
        chosen,
        objective,
        limits,
        seed,
        plan,
        NO_CRASH_TEST_FLAG if no_crash_test else "",
    )
    refused, doubtful = judged(verification, allow_unsafe or ())
    for warning in (*warnings, *doubtful):
        typer.echo(f"lsmtune: warning: {warning}", err=True)
    notes = tuple(phase_notes(objective, chosen))
    asked = Minimising(verification, same, tuple(refused), tuple(doubtful), notes)
    if refused:
        found = _refused(asked)
    else:
        timed = verification.after(time.monotonic() - started_s)
        found = _carry_out(timed, allow_unsafe or (), driver, directory)
    _tell(asked, found, as_json=as_json)
    _end(asked, found, directory, output)


def _refused(asked: Minimising) -> Minimised:
    """The result for a candidate that was not run."""
    from lsmtune.proof.minimise import Minimisation
    from lsmtune.proof.paired_steps import Minimised

    why = f"refused, not run: {'; '.join(asked.refused)}"
    return Minimised(Minimisation(asked.verification.candidate.config, why=why))


def _carry_out(
    verification: Verification, allowed: Sequence[str], driver: Path, directory: Path | None
) -> Minimised:
    """Runs the steps with their display; Ctrl-C stops them in order."""
    from functools import partial

    from lsmtune.cli.interrupts import stop_on_interrupt
    from lsmtune.cli.minimisation import minimisation_display, refusal_of
    from lsmtune.driver.native import NativeRunner
    from lsmtune.proof.paired_steps import minimised

    with (
        proof_folder(directory) as path,
        minimisation_display(verification) as observer,
        stop_on_interrupt(observer.warning) as stop,
    ):
        refusal = partial(refusal_of, verification, allowed)
        return minimised(verification, refusal, path, NativeRunner(driver), observer, stop)


def _tell(asked: Minimising, found: Minimised, *, as_json: bool) -> None:
    from rich.console import Console

    from lsmtune.cli.minimise_view import document, options_table, result_lines

    if as_json:
        typer.echo(json.dumps(document(asked, found), indent=2))
        return
    table = options_table(asked, found)
    if table is not None:
        width = None if sys.stdout.isatty() else _WIDTH
        Console(width=width, highlight=False).print(table)
    typer.echo("\n".join(result_lines(asked, found)))


def _end(asked: Minimising, found: Minimised, directory: Path | None, output: Path | None) -> None:
    """Writes the file that is wanted; raises typer.Exit for anything but a proved gain."""
    from lsmtune.cli.interrupts import interrupted
    from lsmtune.cli.minimise_view import exported

    if not found.result.complete:
        raise interrupted(directory)
    if not found.result.is_proven:
        raise typer.Exit(ExitStatus.NOT_BETTER)
    if output is not None:
        write_file(output, exported(asked, found))
        typer.echo(f"lsmtune: the minimal configuration is in {output}", err=True)
