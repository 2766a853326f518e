"""`lsmtune doctor`: what this machine and these engine libraries are good for."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from lsmtune.cli.flags import (
    OPTION_FLAG,
    JsonOption,
    LibraryOption,
    LimitFlags,
    OptionSetOption,
    QuietOption,
    SeedOption,
    WorkloadFlags,
    WorkloadOption,
    WorkloadSetOption,
    command,
    config_of,
    duration_of,
    flag,
    option,
    refuse_others,
    under_workload,
)
from lsmtune.cli.output import print_json, print_view, warn
from lsmtune.engines.library import STUDY_ENGINES
from lsmtune.errors import ExitStatus, InputError, check_name

if TYPE_CHECKING:
    from lsmtune.machine.findings import Finding
    from lsmtune.proof.standalone import CalibrationRequest

CALIBRATE_FLAG = "--calibrate"
WORKLOAD_DEFAULT = "fillrandom"
EXAMPLES = (
    "lsmtune doctor --dir /data",
    "lsmtune doctor --engine rocksdb --workload fillrandom -w num=300000 --calibrate 60s",
    "Exit status 1: something that was found keeps lsmtune from working here.",
)
_COLOURS = {"ok": "green", "note": "cyan", "warning": "yellow", "problem": "red"}
app = typer.Typer()


@dataclass(frozen=True)
class CalibrationFlags:
    """What is run against itself."""

    engine: str | None = flag(
        "--engine NAME",
        f"What to calibrate with: {', '.join(STUDY_ENGINES)}.",
        known=STUDY_ENGINES,
    )
    library: LibraryOption = None
    workload: WorkloadOption = WORKLOAD_DEFAULT
    workload_set: WorkloadSetOption = None
    option: OptionSetOption = None
    seed: SeedOption = 1


@command(app, "doctor", EXAMPLES)
def _doctor(
    *,
    context: typer.Context,
    directory: Path = option("--dir DIR", "Where studies will be.", Path()),
    calibrate: str | None = option(
        f"{CALIBRATE_FLAG} TIME",
        "Run an engine against itself for this time, and say what noise hides: 60s.",
        None,
    ),
    given: CalibrationFlags,
    limits: LimitFlags,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Say what this machine and its engine libraries are good for, and what to do about it."""
    request = None
    if calibrate is not None:
        request = _request(calibrate, given, limits)
    else:
        effective = ("directory", "as_json")
        refuse_others(context, effective, f"has no effect without {CALIBRATE_FLAG} TIME")
    findings = _looked_at(directory.absolute(), calibrating=request is not None, quiet=as_json)
    is_broken = any(finding.level == "problem" for finding in findings)
    calibration = None
    if request is not None and is_broken:
        warn([f"{CALIBRATE_FLAG}: not done, since a problem was found; next step: mend that first"])
    elif request is not None:
        calibration = _calibrated(request, directory.absolute(), as_json=as_json, quiet=quiet)
    if as_json:
        print_json({"findings": [asdict(f) for f in findings], "calibration": calibration})
    if is_broken:
        raise typer.Exit(ExitStatus.FAILED)


def _request(time_text: str, given: CalibrationFlags, limits: LimitFlags) -> CalibrationRequest:
    """What is to be calibrated. Raises InputError."""
    from lsmtune.cli.bench import native_runner
    from lsmtune.proof.standalone import CalibrationRequest

    time_s = duration_of(CALIBRATE_FLAG, time_text)
    if given.engine is None:
        allowed = ", ".join(STUDY_ENGINES)
        raise InputError("--engine", why=f"needed by {CALIBRATE_FLAG}", allowed=allowed)
    check_name(given.engine, STUDY_ENGINES, "--engine")
    choice = WorkloadFlags(given.workload_set).choice(given.workload, given.engine)
    config = under_workload(config_of(given.option), choice, given.engine, OPTION_FLAG)
    limit = limits.limits
    by = native_runner(given.engine, given.library)
    return CalibrationRequest(
        by.engine,
        choice.workload,
        config,
        limit,
        seed=given.seed,
        time_s=time_s,
        runner=by.runner,
        warnings=by.warnings,
        parameters=choice.parameters,
    )


def examine(directory: Path) -> Iterator[Finding]:
    """Every finding, for studies kept in `directory`."""
    from lsmtune.cli.plugins import listed
    from lsmtune.driver.library_facts import driver_finding, engine_findings, known_libraries
    from lsmtune.machine import findings

    # First, because looking at the rest is load too.
    quiet = list(findings.quiet_findings())
    yield driver_finding()
    yield from engine_findings(known_libraries())
    yield from plugin_findings(listed())
    yield from findings.disk_findings(directory)
    yield from findings.memory_findings()
    yield from findings.cpu_findings()
    yield from quiet
    yield findings.clock_finding()


def plugin_findings(plugins: Iterable[Mapping[str, str | None]]) -> Iterator[Finding]:
    """What each package adds, and what cannot be used of it; `plugins` as `lsmtune plugins` says.

    A warning and no problem: a broken plugin breaks only the commands that ask for it.
    """
    from lsmtune.machine.findings import Finding, Level

    usable: dict[str, list[str]] = {}
    for plugin in plugins:
        package, what = plugin["package"], f"{plugin['kind']} {plugin['name']}"
        named = f"{package} {plugin['version']}"
        if plugin["problem"] is None:
            usable.setdefault(named, []).append(what)
        else:
            step = f"install another version of {package}, or uninstall it"
            text = f"{named}: the {what} {plugin['problem']}"
            yield Finding(Level.WARNING, "plugins", text, step)
    for named, names in usable.items():
        yield Finding(Level.OK, "plugins", f"{named}: {', '.join(names)}")


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


def _calibrated(
    request: CalibrationRequest, directory: Path, *, as_json: bool, quiet: bool
) -> dict[str, object]:
    """The calibration as a document, printed for people unless `as_json`.

    Raises typer.Exit when interrupted.
    """
    from lsmtune.cli.live import tune_display
    from lsmtune.cli.proof_progress import CalibrationObserver
    from lsmtune.cli.tune_progress import Plan
    from lsmtune.machine.interrupts import interrupted, stop_on_interrupt
    from lsmtune.model.goal import WeightedWorkload
    from lsmtune.proof.standalone import calibrated
    from lsmtune.report.calibration import calibration_document, calibration_view

    warn(request.warnings)
    workloads = (WeightedWorkload(request.workload.name, request.workload, 1.0),)
    baseline, engine, goal = request.config, request.engine, request.goal
    plan = Plan(baseline, engine, goal, workloads, trials=None, time_s=request.time_s, pairs=0)
    with (
        tune_display(plan, time.monotonic, observer=CalibrationObserver, quiet=quiet) as observer,
        stop_on_interrupt(observer.warning) as stop,
    ):
        calibrations = calibrated(request, directory, observer, stop)
    if stop.is_set():
        raise interrupted(None)
    if not as_json:
        print_view(calibration_view(request, calibrations), soft_wrap=True)
    return calibration_document(request, calibrations)
