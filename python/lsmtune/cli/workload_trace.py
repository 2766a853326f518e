"""`lsmtune workload inspect`, `fit` and `replay`: what a trace holds, and what is made of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lsmtune.cli.flags import (
    EngineOption,
    ForceOption,
    JsonOption,
    LibraryOption,
    LimitFlags,
    RepeatFlags,
    WorkloadSetOption,
    bytes_of,
    command,
    config_of,
    option,
)
from lsmtune.cli.output import check_outputs, print_json
from lsmtune.errors import InputError, LsmtuneError
from lsmtune.machine.files import STDOUT, write_output
from lsmtune.workloads.choice import WORKLOAD_FLAG

if TYPE_CHECKING:
    from lsmtune.traces.summary import OnProgress, TraceSummary

CLOSED, RECORDED = "closed", "recorded"
RATES = (CLOSED, RECORDED)
_COUNT_MAX = 2**53

INSPECT_EXAMPLES = (
    "lsmtune workload inspect production.trace",
    "lsmtune workload inspect production.trace --html production.html --json",
    "Exit status 1: the trace is damaged; what was read before the damage is shown.",
)
FIT_EXAMPLES = (
    "lsmtune workload fit production.trace --output workload.yaml",
    "lsmtune workload fit production.trace --output workload.yaml --records 50000000 "
    "--scan-length 20 --rate recorded",
    "Exit status 1: the trace is damaged; the workload is fitted to what comes before.",
)
REPLAY_EXAMPLES = (
    "lsmtune workload replay production.trace --engine rocksdb --load fillseq -w num=1000000",
    "lsmtune workload replay production.trace --engine rocksdb --speed 2 --threads 4",
)
app = typer.Typer()

TraceArgument = Annotated[
    Path, typer.Argument(metavar="TRACE", help="A query trace: db_bench --trace_file, StartTrace.")
]
HtmlOption = Annotated[Path | None, option("--html FILE", "Write a page with plots; - is stdout.")]
RANGES = option(
    "--ranges N",
    "Equal ranges of keys that are told apart; `fit` finds how many.",
    number=(1, 4096),
)
THREADS = option("--threads N", "Threads of the run.", number=(1, 1024))


@command(app, "inspect", INSPECT_EXAMPLES)
def _inspect(
    trace: TraceArgument,
    html: HtmlOption = None,
    ranges: Annotated[int, RANGES] = 1024,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show what a trace holds: operations, sizes, hot keys, reuse, and how they change."""
    from lsmtune.driver.conversation import find_driver
    from lsmtune.report.workload import summary_document, summary_lines
    from lsmtune.traces.summary import inspect_trace

    err = check_outputs([("--html", html)], force=force, as_json=as_json)
    with _progress() as on_progress:
        summary = inspect_trace(find_driver(), trace, ranges=ranges, on_progress=on_progress)
    if html is not None:
        from lsmtune.report.trace import write_trace_page

        write_trace_page(summary, html)
    if as_json:
        print_json(summary_document(summary) | {"html": None if html is None else str(html)})
    else:
        typer.echo("\n".join(summary_lines(summary)), err=err)
        if html is not None and not err:
            typer.echo(f"wrote {html}")
    _fail_if_damaged(summary)


@command(app, "fit", FIT_EXAMPLES)
def _fit(
    trace: TraceArgument,
    output: Annotated[Path, option("--output FILE", "The workload file to write.")],
    records: int | None = option(
        "--records N",
        "Keys in the database; by the trace's keys by default.",
        None,
        number=(1, _COUNT_MAX),
    ),
    ranges: Annotated[int | None, RANGES] = None,
    scan_length: int = option(
        "--scan-length N", "Entries that a seek reads: a trace does not say.", 1, number=(0, 10**6)
    ),
    load_value_bytes: str | None = option(
        "--load-value-bytes SIZE",
        "Size of the values there were before; as the trace's by default.",
        None,
    ),
    operations: int | None = option(
        "--operations N",
        "Operations of the run; as many as the trace by default.",
        None,
        number=(1, _COUNT_MAX),
    ),
    threads: Annotated[int, THREADS] = 1,
    rate: str = option("--rate NAME", "closed: as fast as it goes; recorded.", CLOSED),
    html: HtmlOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write a small workload whose run is like a trace, and say how well it fits."""
    from lsmtune.driver.conversation import find_driver
    from lsmtune.report.trace import write_trace_page
    from lsmtune.report.workload import fit_document, fit_lines
    from lsmtune.traces.fit import FitRequest, fit_trace
    from lsmtune.traces.summary import inspect_trace
    from lsmtune.workloads.file import workload_text

    err = check_outputs([("--output", output), ("--html", html)], force=force, as_json=as_json)
    if rate not in RATES:
        raise InputError("--rate", found=rate, allowed=", ".join(RATES))
    loaded = None if load_value_bytes is None else bytes_of("--load-value-bytes", load_value_bytes)
    request = FitRequest(
        records, ranges, scan_length, loaded, operations, threads, rate == RECORDED
    )
    driver = find_driver()
    with _progress() as on_progress:
        fit = fit_trace(
            lambda parts, number: inspect_trace(
                driver, trace, ranges=parts, key_number=number, on_progress=on_progress
            ),
            request,
        )
    comments = (f"Fitted by lsmtune to {trace}", *fit.warnings)
    write_output(output, workload_text(fit.workload, comments))
    if html is not None:
        write_trace_page(fit.summary, html, fit)
    if as_json:
        print_json(fit_document(fit) | {"trace": str(trace), "output": str(output)})
    else:
        typer.echo("\n".join(fit_lines(fit)), err=err)
        if output != STDOUT:
            next_step = f"lsmtune bench --engine rocksdb --workload {output}"
            typer.echo(f"wrote {output}\nnext: {next_step}", err=err)
    _fail_if_damaged(fit.summary)


@command(app, "replay", REPLAY_EXAMPLES)
def _replay(
    *,
    trace: TraceArgument,
    engine: EngineOption,
    speed: float | None = option(
        "--speed X", "Times its own pace; as fast as it goes unless set.", None
    ),
    threads: Annotated[int, THREADS] = 1,
    load: str = option("--load NAME", "The workload that loads the database.", "fillseq"),
    workload_set: WorkloadSetOption = None,
    library: LibraryOption = None,
    repeats: RepeatFlags,
    limits: LimitFlags,
    as_json: JsonOption = False,
) -> None:
    """Load a database, settle it, and perform the operations of a trace on it."""
    from lsmtune.cli.bench import bench_of, measure_one, native_runner
    from lsmtune.engines.workload_options import with_page_cache
    from lsmtune.traces.fit import replay_workload
    from lsmtune.workloads.choice import stated_workload

    if speed is not None and not 0 < speed < float("inf"):
        raise InputError("--speed", found=speed, allowed="a number above 0")
    loaded = stated_workload(load, workload_set).workload
    workload = replay_workload(trace, loaded, speed, threads)
    config = config_of(repeats.option)
    config = with_page_cache(config, engine, workload.page_cache, WORKLOAD_FLAG)
    bench = bench_of(config, workload, limits, repeats)
    measure_one(bench, native_runner(engine, library), as_json=as_json)


@contextmanager
def _progress() -> Iterator[OnProgress]:
    from lsmtune.cli.live import counted_progress
    from lsmtune.driver.messages import TraceProgress

    with counted_progress("trace, bytes") as counted:

        def on_progress(message: TraceProgress) -> None:
            counted(message.bytes_read, message.bytes_total)

        yield on_progress


def _fail_if_damaged(summary: TraceSummary) -> None:
    """After all that could be told was told."""
    damage = summary.damage
    if damage is not None:
        raise LsmtuneError(
            f"{summary.path}: damaged at offset {damage.offset_bytes}, record {damage.record}: "
            f"{damage.reason}; the {summary.records} records before it were read"
        )
