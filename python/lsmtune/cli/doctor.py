"""`lsmtune doctor`: what this machine and these engine libraries are good for."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lsmtune.cli.flags import (
    DEADLINE_DEFAULT,
    DISK_DEFAULT,
    MEMORY_DEFAULT,
    OPTION_FLAG,
    DiskIfSetOption,
    JsonOption,
    LibraryOption,
    MemoryIfSetOption,
    OptionSetOption,
    WorkloadSetOption,
    config_of,
    duration_of,
    limits_of,
    whole_number,
)
from lsmtune.engines.library import STUDY_ENGINES
from lsmtune.errors import ExitStatus, InputError, nearest_name
from lsmtune.model.request import SEED_MAX
from lsmtune.workloads.choice import WORKLOAD_FLAG
from lsmtune.workloads.stated import WORKLOAD_NAMES

if TYPE_CHECKING:
    from lsmtune.machine.findings import Finding
    from lsmtune.proof.standalone import CalibrationRequest

CALIBRATE_FLAG = "--calibrate"
WORKLOAD_DEFAULT = "fillrandom"
EPILOG = "\n\n".join(
    (
        "Examples:",
        "lsmtune doctor --dir /data",
        "lsmtune doctor --engine rocksdb --workload fillrandom -w num=300000 --calibrate 60s",
        "Exit status 1: something that was found keeps lsmtune from working here.",
    )
)
_COLOURS = {"ok": "green", "note": "cyan", "warning": "yellow", "problem": "red"}
_SEED_DEFAULT = 1
_PIPE_COLUMNS = 120


def register(app: typer.Typer) -> None:
    """Add the `doctor` command to `app`."""
    app.command("doctor", epilog=EPILOG)(_doctor)


def _doctor(
    directory: Annotated[
        Path, typer.Option("--dir", metavar="DIR", help="Where studies will be.")
    ] = Path(),
    calibrate: Annotated[
        str | None,
        typer.Option(
            CALIBRATE_FLAG,
            metavar="TIME",
            help="Run an engine against itself for this time, and say what noise hides: 60s.",
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            metavar="NAME",
            help=f"What to calibrate with: {', '.join(STUDY_ENGINES)}.",
            autocompletion=lambda: list(STUDY_ENGINES),
        ),
    ] = None,
    library: LibraryOption = None,
    workload: Annotated[
        str | None,
        typer.Option(
            "--workload",
            metavar="NAME",
            help=f"What to calibrate with, {WORKLOAD_DEFAULT} if unset.",
            autocompletion=lambda: list(WORKLOAD_NAMES),
        ),
    ] = None,
    workload_set: WorkloadSetOption = None,
    option: OptionSetOption = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            metavar="N",
            parser=whole_number("--seed", 0, SEED_MAX),
            help=f"Seed of the pairs, {_SEED_DEFAULT} if unset.",
        ),
    ] = None,
    memory: MemoryIfSetOption = None,
    disk: DiskIfSetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what this machine and its engine libraries are good for, and what to do about it."""
    request = None
    if calibrate is None:
        _refuse_idle_flags(
            {
                "--engine": engine,
                "--library": library,
                "--workload": workload,
                WORKLOAD_FLAG: workload_set,
                OPTION_FLAG: option,
                "--seed": seed,
                "--memory": memory,
                "--disk": disk,
            }
        )
    else:
        request = _request(
            calibrate, engine, library, workload, workload_set, option, seed, memory, disk
        )
    findings = _looked_at(directory.absolute(), calibrating=request is not None, quiet=as_json)
    is_broken = any(finding.level == "problem" for finding in findings)
    calibration = None
    if request is not None and not is_broken:
        calibration = _calibrated(request, directory.absolute(), quiet=as_json)
    if as_json:
        document = {"findings": [asdict(f) for f in findings], "calibration": calibration}
        typer.echo(json.dumps(document, indent=2))
    if is_broken:
        raise typer.Exit(ExitStatus.FAILED)


def _refuse_idle_flags(given: dict[str, object]) -> None:
    """Raises InputError for a flag that has no effect because nothing is calibrated."""
    for flag, value in given.items():
        if value is not None:
            raise InputError(flag, why=f"has no effect without {CALIBRATE_FLAG} TIME")


def _request(
    time: str,
    engine: str | None,
    library: Path | None,
    workload: str | None,
    workload_set: list[str] | None,
    option: list[str] | None,
    seed: int | None,
    memory: str | None,
    disk: str | None,
) -> CalibrationRequest:
    """What is to be calibrated. Raises InputError."""
    from lsmtune.cli.choices import choose_workload
    from lsmtune.driver.conversation import find_driver
    from lsmtune.driver.library_facts import chosen_engine
    from lsmtune.engines.workload_options import with_page_cache
    from lsmtune.proof.standalone import CalibrationRequest

    time_s, allowed = duration_of(CALIBRATE_FLAG, time), ", ".join(STUDY_ENGINES)
    if engine is None:
        raise InputError("--engine", why=f"needed by {CALIBRATE_FLAG}", allowed=allowed)
    if engine not in STUDY_ENGINES:
        nearest = nearest_name(engine, STUDY_ENGINES)
        raise InputError("--engine", found=engine, allowed=allowed, nearest=nearest)
    choice = choose_workload(workload or WORKLOAD_DEFAULT, workload_set, None, None, engine)
    config = choice.config(config_of(option), engine, OPTION_FLAG)
    config = with_page_cache(config, engine, choice.workload.page_cache, WORKLOAD_FLAG)
    limits = limits_of(DEADLINE_DEFAULT, memory or MEMORY_DEFAULT, disk or DISK_DEFAULT)
    driver = find_driver()
    identity, warnings = chosen_engine(engine, library, driver)
    seed = _SEED_DEFAULT if seed is None else seed
    return CalibrationRequest(
        identity, choice.workload, config, limits, seed, time_s, driver, tuple(warnings)
    )


def examine(directory: Path) -> Iterator[Finding]:
    """Every finding, for studies kept in `directory`."""
    from lsmtune.driver.library_facts import driver_finding, engine_findings, known_libraries
    from lsmtune.machine import findings

    # First, because looking at the rest is load too.
    quiet = list(findings.quiet_findings())
    yield driver_finding()
    yield from engine_findings(known_libraries())
    yield from findings.disk_findings(directory)
    yield from findings.memory_findings()
    yield from findings.cpu_findings()
    yield from quiet
    yield findings.clock_finding()


def _looked_at(directory: Path, *, calibrating: bool, quiet: bool) -> list[Finding]:
    """Every finding, printed as it is found unless `quiet`."""
    from rich.console import Console
    from rich.text import Text

    from lsmtune.machine.findings import Finding, Level

    text = "not measured: what this machine can tell apart is not known"
    step = f"lsmtune doctor --engine rocksdb {CALIBRATE_FLAG} 60s"
    not_calibrated = () if calibrating else (Finding(Level.NOTE, "noise", text, step),)
    findings, console = [], Console(highlight=False, soft_wrap=True)
    for finding in chain(examine(directory), not_calibrated):
        findings.append(finding)
        if not quiet:
            step = f"; next step: {finding.next_step}" if finding.next_step else ""
            level = (f"{finding.level.value:8}", _COLOURS[finding.level.value])
            console.print(Text.assemble(level, f"{finding.subject}: {finding.text}{step}"))
    return findings


def _calibrated(request: CalibrationRequest, directory: Path, *, quiet: bool) -> dict[str, object]:
    """The calibration as a document, printed for people unless `quiet`.

    Raises typer.Exit when interrupted.
    """
    from rich.console import Console

    from lsmtune.cli.calibration import calibration_display, calibration_document, calibration_view
    from lsmtune.cli.interrupts import interrupted, stop_on_interrupt
    from lsmtune.proof.standalone import calibrated

    for warning in request.warnings:
        typer.echo(f"lsmtune: warning: {warning}", err=True)
    with calibration_display(request) as observer, stop_on_interrupt(observer.warning) as stop:
        calibration = calibrated(request, directory, observer, stop)
    if stop.is_set():
        raise interrupted(None)
    if not quiet:
        # A pipe has no width of its own.
        width = None if sys.stdout.isatty() else _PIPE_COLUMNS
        console = Console(width=width, highlight=False, soft_wrap=True)
        console.print(calibration_view(request, calibration))
    return calibration_document(request, calibration)
