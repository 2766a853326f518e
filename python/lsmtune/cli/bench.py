"""`lsmtune bench`: measure one configuration under one workload."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from lsmtune.cli.flags import (
    DEADLINE_DEFAULT,
    DISK_DEFAULT,
    MEMORY_DEFAULT,
    OPTION_FLAG,
    WORKLOAD_FLAG,
    DeadlineOption,
    DiskOption,
    EngineOption,
    JsonOption,
    LibraryOption,
    MemoryOption,
    OptionSetOption,
    RepeatOption,
    SeedOption,
    WorkloadOption,
    WorkloadSetOption,
    config_of,
    limits_of,
    workload_of,
)
from lsmtune.engines.page_cache import with_page_cache
from lsmtune.records.config import Config
from lsmtune.records.engine import EngineIdentity
from lsmtune.records.measurement import Measurement, Outcome
from lsmtune.records.request import Limits, RunRequest
from lsmtune.records.workload import Workload

COMMAND = "bench"
EPILOG = "\n\n".join(
    (
        "Examples:",
        "lsmtune bench --engine rocksdb --workload fillrandom -o write_buffer_size=4MiB",
        "lsmtune bench --engine leveldb --workload readrandom -w num=1000000 --repeat 5 --json",
    )
)


@dataclass(frozen=True)
class Bench:
    """What to measure: one run for each of `seeds`, its database under `parent`."""

    engine: EngineIdentity
    config: Config
    workload: Workload
    limits: Limits
    seeds: Sequence[int]
    parent: Path


def register(app: typer.Typer) -> None:
    """Add the `bench` command to `app`."""
    app.command(COMMAND, epilog=EPILOG)(_bench)


def _bench(
    engine: EngineOption,
    workload: WorkloadOption,
    library: LibraryOption = None,
    workload_set: WorkloadSetOption = None,
    option: OptionSetOption = None,
    seed: SeedOption = 1,
    repeat: RepeatOption = 1,
    directory: Annotated[
        Path | None,
        typer.Option("--dir", metavar="DIR", help="Where databases are made; here by default."),
    ] = None,
    deadline: DeadlineOption = DEADLINE_DEFAULT,
    memory: MemoryOption = MEMORY_DEFAULT,
    disk: DiskOption = DISK_DEFAULT,
    as_json: JsonOption = False,
) -> None:
    """Measure one configuration under one workload."""
    from lsmtune.cli.bench_result import bench_document, bench_view
    from lsmtune.cli.engine_choice import chosen_engine
    from lsmtune.cli.guard import doubts
    from lsmtune.cli.output import failure
    from lsmtune.runners.driver_binary import find_driver

    chosen = workload_of(workload, workload_set)
    config = with_page_cache(config_of(option), engine, chosen.page_cache, WORKLOAD_FLAG)
    limits = limits_of(deadline, memory, disk)
    driver = find_driver()
    identity, warnings = chosen_engine(engine, library, driver)
    # A measurement may be of anything; who reads it must know what it is of.
    doubtful = doubts(identity, config, chosen.durability, limits, OPTION_FLAG).reasons()
    for warning in doubtful:
        typer.echo(f"lsmtune: warning: {warning}", err=True)
    seeds = range(seed, seed + repeat)
    bench = Bench(identity, config, chosen, limits, seeds, directory or Path.cwd())
    measurements = measure(bench, driver)
    if as_json:
        document = bench_document(measurements, chosen) | {"warnings": [*warnings, *doubtful]}
        typer.echo(json.dumps(document, indent=2))
    elif measurements[-1].outcome is not Outcome.INVALID:
        _print(bench_view(measurements, chosen, [*warnings, *doubtful]))
    for measurement in measurements:
        if measurement.outcome is not Outcome.OK:
            raise failure(measurement, COMMAND)


def measure(bench: Bench, driver: Path) -> list[Measurement]:
    """One Measurement per seed; ends at one that is `invalid`, as all others would be."""
    from lsmtune.cli.live import bench_display
    from lsmtune.cli.run_progress import RunProgress
    from lsmtune.runners.native import NativeRunner
    from lsmtune.storage.scratch import run_directory
    from lsmtune.storage.trouble import explained

    runner, progress = NativeRunner(driver), RunProgress(bench.workload)
    measurements: list[Measurement] = []

    def title() -> str:
        runs = len(bench.seeds)
        number = min(len(measurements) + 1, runs)
        return f"{bench.engine.name} {bench.workload.name}, run {number} of {runs}"

    with bench_display(progress, title), explained(bench.parent):
        bench.parent.mkdir(parents=True, exist_ok=True)
        for seed in bench.seeds:
            progress.restart(bench.workload)
            with run_directory(bench.parent) as directory:
                request = RunRequest(
                    bench.engine, bench.config, bench.workload, seed, directory, bench.limits
                )
                measurements.append(runner.run(request, progress.message))
            if measurements[-1].outcome is Outcome.INVALID:
                break
    return measurements


def _print(view: object) -> None:
    import sys

    from rich.console import Console

    # A pipe has no width of its own; whole lines are what a reader there wants.
    Console(width=None if sys.stdout.isatty() else 200, highlight=False).print(view)
