"""`lsmtune doctor`: what this machine and these engine libraries are good for."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, fields
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from lsmtune.cli.choices import choose_workload
from lsmtune.cli.findings import Finding, Level, examine
from lsmtune.cli.flags import (
    DEADLINE_DEFAULT,
    DISK_DEFAULT,
    MEMORY_DEFAULT,
    OPTION_FLAG,
    WORKLOAD_FLAG,
    JsonOption,
    LibraryOption,
    OptionSetOption,
    WorkloadSetOption,
    config_of,
    duration_of,
    limits_of,
    whole_number,
)
from lsmtune.engines.library import STUDY_ENGINES
from lsmtune.engines.workload_options import with_page_cache
from lsmtune.errors import ExitStatus, InputError, nearest_name
from lsmtune.model.request import SEED_MAX
from lsmtune.workloads.stated import WORKLOAD_NAMES

if TYPE_CHECKING:
    from lsmtune.proof.standalone import CalibrationRequest

COMMAND = "doctor"
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
_COLOURS = {Level.OK: "green", Level.NOTE: "cyan", Level.WARNING: "yellow", Level.PROBLEM: "red"}
_SEED_DEFAULT = 1
_PIPE_COLUMNS = 120
_FLAGS = {"workload_set": WORKLOAD_FLAG, "option": OPTION_FLAG}
_NOT_CALIBRATED = Finding(
    Level.NOTE,
    "noise",
    "not measured: what this machine can tell apart is not known",
    f"lsmtune doctor --engine rocksdb {CALIBRATE_FLAG} 60s",
)


def register(app: typer.Typer) -> None:
    """Add the `doctor` command to `app`."""
    app.command(COMMAND, epilog=EPILOG)(_doctor)


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
    memory: Annotated[
        str | None,
        typer.Option("--memory", metavar="SIZE", help="A run is killed above this memory."),
    ] = None,
    disk: Annotated[
        str | None,
        typer.Option("--disk", metavar="SIZE", help="A run is killed above this disk space."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Say what this machine and its engine libraries are good for, and what to do about it."""
    place = directory.absolute()
    given = _Given(engine, library, workload, workload_set, option, seed, memory, disk)
    asked = None if calibrate is None else given.request(calibrate)
    if asked is None:
        given.refuse_all()
    findings = _looked_at(place, calibrating=asked is not None, quiet=as_json)
    problem = any(finding.level is Level.PROBLEM for finding in findings)
    document = None
    if asked is not None and not problem:
        document = _calibrated(asked, place, quiet=as_json)
    if as_json:
        found = {"findings": [asdict(f) for f in findings], "calibration": document}
        print(json.dumps(found, indent=2))
    if problem:
        raise typer.Exit(ExitStatus.FAILED)


@dataclass(frozen=True)
class _Given:
    """The flags that say what to calibrate with, as the user gave them."""

    engine: str | None
    library: Path | None
    workload: str | None
    workload_set: list[str] | None
    option: list[str] | None
    seed: int | None
    memory: str | None
    disk: str | None

    def request(self, time: str) -> CalibrationRequest:
        """What is to be calibrated. Raises InputError."""
        from lsmtune.cli.choices import chosen_engine
        from lsmtune.driver.conversation import find_driver
        from lsmtune.proof.standalone import CalibrationRequest

        time_s, allowed = duration_of(CALIBRATE_FLAG, time), ", ".join(STUDY_ENGINES)
        if self.engine is None:
            raise InputError("--engine", why=f"needed by {CALIBRATE_FLAG}", allowed=allowed)
        if self.engine not in STUDY_ENGINES:
            nearest = nearest_name(self.engine, STUDY_ENGINES)
            raise InputError("--engine", found=self.engine, allowed=allowed, nearest=nearest)
        workload = self.workload or WORKLOAD_DEFAULT
        choice = choose_workload(workload, self.workload_set, None, None, self.engine)
        chosen = choice.workload
        config = choice.config(config_of(self.option), self.engine, OPTION_FLAG)
        config = with_page_cache(config, self.engine, chosen.page_cache, WORKLOAD_FLAG)
        limits = limits_of(
            DEADLINE_DEFAULT, self.memory or MEMORY_DEFAULT, self.disk or DISK_DEFAULT
        )
        driver = find_driver()
        identity, warnings = chosen_engine(self.engine, self.library, driver)
        seed = _SEED_DEFAULT if self.seed is None else self.seed
        return CalibrationRequest(
            identity, chosen, config, limits, seed, time_s, driver, tuple(warnings)
        )

    def refuse_all(self) -> None:
        """Raises InputError for a flag that has no effect because nothing is calibrated."""
        for field in fields(self):
            if getattr(self, field.name) is not None:
                flag = _FLAGS.get(field.name, f"--{field.name}")
                why = f"has no effect without {CALIBRATE_FLAG} TIME"
                raise InputError(flag, why=why)


def _looked_at(directory: Path, *, calibrating: bool, quiet: bool) -> list[Finding]:
    """Every finding, printed as it is found unless `quiet`."""
    found, console = [], Console(highlight=False, soft_wrap=True)
    for finding in chain(examine(directory), () if calibrating else (_NOT_CALIBRATED,)):
        found.append(finding)
        if not quiet:
            console.print(_line(finding))
    return found


def _calibrated(asked: CalibrationRequest, directory: Path, *, quiet: bool) -> dict[str, object]:
    """The calibration as a document, printed for people unless `quiet`.

    Raises typer.Exit when interrupted.
    """
    from lsmtune.cli.calibration import calibration_display, calibration_document, calibration_view
    from lsmtune.cli.output import stop_on_interrupt
    from lsmtune.proof.standalone import calibrated

    for warning in asked.warnings:
        typer.echo(f"lsmtune: warning: {warning}", err=True)
    with calibration_display(asked) as observer, stop_on_interrupt(observer.warning) as stop:
        found = calibrated(asked, directory, observer, stop)
    if stop.is_set():
        typer.echo("lsmtune: interrupted; nothing was kept", err=True)
        raise typer.Exit(ExitStatus.INTERRUPTED)
    if not quiet:
        # A pipe has no width of its own.
        width = None if sys.stdout.isatty() else _PIPE_COLUMNS
        console = Console(width=width, highlight=False, soft_wrap=True)
        console.print(calibration_view(asked, found))
    return calibration_document(asked, found)


def _line(finding: Finding) -> Text:
    step = f"; next step: {finding.next_step}" if finding.next_step else ""
    return Text.assemble(
        (f"{finding.level.value:8}", _COLOURS[finding.level]),
        f"{finding.subject}: {finding.text}{step}",
    )
