"""`lsmtune workload`: list, show, import, export and sum up workloads; what traces hold."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from lsmtune.cli.bench import Bench, measure_one, native_runner
from lsmtune.cli.commands import Group
from lsmtune.cli.flags import (
    EngineOption,
    ForceOption,
    JsonOption,
    LibraryOption,
    LimitFlags,
    QuietOption,
    RepeatFlags,
    SeedOption,
    TextOutputOption,
    WorkloadFlags,
    WorkloadSetOption,
    bytes_of,
    command,
    config_of,
    option,
)
from lsmtune.cli.output import check_outputs, new_file, note, print_json, print_view, put_out
from lsmtune.driver.conversation import find_driver
from lsmtune.engines.properties import properties_of
from lsmtune.engines.workload_options import with_page_cache
from lsmtune.errors import InputError, LsmtuneError, check_name
from lsmtune.machine.files import STDOUT, write_output
from lsmtune.model.codec import decode
from lsmtune.model.measurement import Measurement
from lsmtune.model.text import open_text, read_text
from lsmtune.model.workload import VALUE_BYTES_MAX, Workload
from lsmtune.programs.output import NATIVE
from lsmtune.report.document import Document
from lsmtune.traces.summary import TraceSummary, inspect_trace
from lsmtune.workloads.choice import WORKLOAD_FLAG, stated_workload
from lsmtune.workloads.describe import show_document, show_lines
from lsmtune.workloads.file import parse_workload_file, workload_document, workload_text
from lsmtune.workloads.stated import FAMILIES, WORKLOAD_NAMES, Stated, state_workload
from lsmtune.workloads.ycsb import properties_text

YAML, YCSB, EKVSB = "yaml", "ycsb", "ekvsb"
EXPORTS = (YAML, YCSB, EKVSB)
IMPORTS = (YCSB, EKVSB)
_HEAD_CHARACTERS = 4096
_SUMMED_UP = "what `ekvsb run` printed, or `lsmtune bench --json`"

LIST_EXAMPLES = ("lsmtune workload list", "lsmtune workload list --json")
SHOW_EXAMPLES = (
    "lsmtune workload show ycsb-a",
    "lsmtune workload show zippydb -w num=50000000",
    "lsmtune workload show nights.yaml --json",
)
IMPORT_EXAMPLES = (
    "lsmtune workload import workloada --output a.yaml",
    "lsmtune workload import tasks.json --output tasks.yaml",
    "What is lost on the way is said on stderr, line by line.",
)
EXPORT_EXAMPLES = (
    "lsmtune workload export contest --format yaml --output contest.yaml",
    "lsmtune workload export ycsb-a -w recordcount=1000000 --format ycsb --output workloada",
    "lsmtune workload export ycsb-a --format ekvsb --seed 7 --output tasks.json",
)
SUMMARY_EXAMPLES = (
    "ekvsb run rocksdb /tmp/db < tasks.json > run.json; lsmtune workload summary run.json",
    "lsmtune bench --engine rocksdb --workload put-get-delete --json > bench.json; "
    "lsmtune workload summary bench.json",
    "Times are seconds. Of a run of lsmtune's there is a summary for each phase, and no least "
    "latency.",
)
NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="A workload by name, a workload file, or a file of YCSB's properties.",
        autocompletion=lambda: list(WORKLOAD_NAMES),
    ),
]
app = typer.Typer(
    cls=Group,
    name="workload",
    help="List, show, import and export workloads.",
    no_args_is_help=True,
)


@command(app, "list", LIST_EXAMPLES)
def _list(as_json: JsonOption = False) -> None:
    """List the workloads that have a name."""
    if as_json:
        rows = [{"name": f.name, "description": f.description} for f in FAMILIES.usable().values()]
        print_json({"workloads": rows})
        return
    width = max(map(len, FAMILIES))
    for family in FAMILIES.usable().values():
        typer.echo(f"{family.name:{width}}  {family.description}")


@command(app, "show", SHOW_EXAMPLES)
def _show(name: NameArgument, given: WorkloadFlags, as_json: JsonOption = False) -> None:
    """Show a workload: its phases, its parameters, and where its figures are from."""
    stated = given.stated(name)
    family = FAMILIES.get(name)
    if as_json:
        print_json(show_document(stated, family))
    else:
        typer.echo("\n".join(show_lines(stated, family)))
        for line in stated.notes:
            note(line)


@command(app, "import", IMPORT_EXAMPLES)
def _import(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Properties of YCSB, or tasks.")],
    format_name: str | None = option(
        "--format NAME", f"Found out if unset: {', '.join(IMPORTS)}.", None
    ),
    output: TextOutputOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Read a workload of another program into a workload file."""
    output = new_file(output, force=force)
    check_name(format_name, IMPORTS, "--format")
    if format_name is None:
        # A list of tasks begins with a bracket, which no property does.
        format_name = EKVSB if _head_of(file).startswith("[") else YCSB
    workload, notes = _imported(file, format_name)
    document: dict[str, Any] = {
        "file": str(file),
        "format": format_name,
        "notes": list(notes),
        "workload": workload_document(workload),
    }
    text = workload_text(workload, (f"Imported by lsmtune from {file}", *notes))
    message = "wrote {0}\nnext: lsmtune bench --engine rocksdb --workload {0}"
    put_out(text, output, document, as_json=as_json, notes=notes, message=message)


@command(app, "export", EXPORT_EXAMPLES)
def _export(
    *,
    name: NameArgument,
    format_name: str = option("--format NAME", f"{', '.join(EXPORTS)}.", YAML),
    given: WorkloadFlags,
    seed: SeedOption = 1,
    output: TextOutputOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write a workload in the form that another program reads, or as a workload file."""
    check_name(format_name, EXPORTS, "--format")
    output = new_file(output, force=force)
    if as_json and output is None:
        raise InputError("--json", why="has no effect without --output: the text is the result")
    stated = given.stated(name)
    folder = Path() if output is None else output.parent
    parts, notes = _parts(stated, format_name, seed, folder)
    notes = (*_notes_of(stated), *notes)
    # Part after part, as there may be more of them than memory holds.
    put_out(parts, output, {"format": format_name, "notes": notes}, as_json=as_json, notes=notes)


@command(app, "summary", SUMMARY_EXAMPLES)
def _summary(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A run of ekvsb, or of bench with --json.")
    ],
) -> None:
    """Print what `ekvsb summary` says of a run, as JSON."""
    from lsmtune.programs.ekvsb import read_records, summarise, summary_of_phase

    source, is_records = str(file), _head_of(file).startswith("[")
    if is_records:
        # Record after record: a run of any length.
        with open_text(file, _SUMMED_UP) as opened:
            summary = summarise(read_records(opened.read, source))
        print_json(summary)
        return
    measurements = _measurements(read_text(file, _SUMMED_UP), source)
    # A summary of each phase that performed operations, of each run in the document.
    summaries = [
        {
            "runner": measurement.runner or NATIVE,
            "seed": measurement.seed,
            "phase": phase.name,
            "summary": summary_of_phase(phase),
        }
        for measurement in measurements
        for phase in measurement.phases
        if phase.operations
    ]
    print_json({"summaries": summaries})


def _measurements(text: str, source: str) -> list[Any]:
    """The measurements of `bench --json`, with one runner or all of them."""
    try:
        document = json.loads(text)
        runners = document.get("runners", [document])
        return [decode(Measurement, each) for runner in runners for each in runner["measurements"]]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        beginning = text.strip()[:60] or "nothing"
        raise InputError(source, found=beginning, allowed=_SUMMED_UP) from None


def _parts(
    stated: Stated, format_name: str, seed: int, folder: Path
) -> tuple[Iterable[str], tuple[str, ...]]:
    """The text of a file in `folder`, in parts, and what it cannot say."""
    workload = stated.workload
    if format_name == YAML:
        return [workload_text(workload, (f"Written by lsmtune: {workload.name}",), folder)], ()
    if format_name == YCSB:
        return [properties_text(workload.name, stated.parameters, "workload export")], ()
    from lsmtune.workloads.ekvsb import lines_of, what_is_lost

    return lines_of(workload, seed, "workload export"), what_is_lost(workload)


def _imported(file: Path, format_name: str) -> tuple[Workload, tuple[str, ...]]:
    if format_name == EKVSB:
        from lsmtune.workloads.ekvsb import imported_workload

        return imported_workload(file)
    stated = state_workload(YCSB, {}, str(file), properties_of([file], {}))
    return stated.workload, _notes_of(stated)


def _notes_of(stated: Stated) -> tuple[str, ...]:
    """What is to be said of a workload that is written to a file, which holds no options."""
    engine = (
        f"{given.where}: {key}: left out: with -P or -p it is an option of a run"
        for key, given in stated.engine.items()
    )
    return (*stated.notes, *engine)


def _head_of(file: Path) -> str:
    """How the text begins, after white space. Raises InputError where it cannot be read."""
    with open_text(file) as opened:
        return opened.read(_HEAD_CHARACTERS).lstrip()


# --- Traces: what one holds, and what is made of it

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
    from lsmtune.cli.live import counted_progress
    from lsmtune.report.trace import trace_document

    err = check_outputs([("--html", html)], force=force, as_json=as_json)
    with counted_progress("trace, bytes") as on_progress:
        summary = inspect_trace(find_driver(), trace, ranges=ranges, on_progress=on_progress)
    failure = _damage_error(summary)
    _show_page(trace_document(summary), html, as_json=as_json, err=err)
    if as_json:
        document = {"trace": asdict(summary), "html": None if html is None else str(html)}
        print_json(document, failure)
    elif html is not None and not err:
        typer.echo(f"wrote {html}")
    if failure is not None:
        raise failure


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
        "--scan-length N", "Entries that a seek reads: a trace does not say.", 1, number=(1, 10**6)
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
    from lsmtune.cli.live import counted_progress
    from lsmtune.report.trace import fit_document, trace_document
    from lsmtune.traces.fit import FitRequest, fit_trace

    err = check_outputs([("--output", output), ("--html", html)], force=force, as_json=as_json)
    check_name(rate, RATES, "--rate")
    loaded = None if load_value_bytes is None else bytes_of("--load-value-bytes", load_value_bytes)
    if loaded is not None and loaded > VALUE_BYTES_MAX:
        allowed = f"at most {VALUE_BYTES_MAX} bytes"
        raise InputError("--load-value-bytes", found=load_value_bytes, allowed=allowed)
    request = FitRequest(
        records, ranges, scan_length, loaded, operations, threads, rate == RECORDED
    )
    driver = find_driver()
    with counted_progress("trace, bytes") as on_progress:
        fit = fit_trace(
            lambda parts, number: inspect_trace(
                driver, trace, ranges=parts, key_number=number, on_progress=on_progress
            ),
            request,
        )
    text = workload_text(fit.workload, (f"Fitted by lsmtune to {trace}", *fit.warnings))
    parse_workload_file(text, output)  # what cannot be read is not written
    write_output(output, text)
    failure = _damage_error(fit.summary)
    _show_page(trace_document(fit.summary, fit), html, as_json=as_json, err=err)
    if as_json:
        document = fit_document(fit) | {"trace": str(trace), "output": str(output)}
        print_json(document, failure)
    elif output != STDOUT:
        next_step = f"lsmtune bench --engine rocksdb --workload {output}"
        typer.echo(f"wrote {output}\nnext: {next_step}", err=err)
    if failure is not None:
        raise failure


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
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Load a database, settle it, and perform the operations of a trace on it."""
    from lsmtune.traces.fit import replay_workload

    if speed is not None and not 0 < speed < float("inf"):
        raise InputError("--speed", found=speed, allowed="a number above 0")
    loaded = stated_workload(load, workload_set).workload
    workload = replay_workload(trace, loaded, speed, threads)
    config = config_of(repeats.option)
    config = with_page_cache(config, engine, workload.page_cache, WORKLOAD_FLAG)
    bench = Bench(config, workload, {}, limits.limits, repeats)
    by = native_runner(engine, library)
    measure_one(bench, by, quiet=quiet, as_json=as_json, source="workload replay")


def _show_page(page: Document, html: Path | None, *, as_json: bool, err: bool) -> None:
    """Write the page, and print its tables. Sentences stay whole: flags are there to be copied."""
    from lsmtune.report.render import to_html

    if html is not None:
        write_output(html, to_html(page))
    if not as_json:
        print_view(page, soft_wrap=True, err=err)


def _damage_error(summary: TraceSummary) -> LsmtuneError | None:
    """What a command ends with once all that could be told was told; None for a whole trace."""
    damage = summary.damage
    if damage is None:
        return None
    return LsmtuneError(
        f"{summary.path}: damaged at offset {damage.offset_bytes}, record {damage.record}: "
        f"{damage.reason}; the {summary.records} records before it were read"
    )
