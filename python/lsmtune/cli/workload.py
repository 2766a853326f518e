"""`lsmtune workload`: list, show, import, export and sum up workloads."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lsmtune.cli import workload_trace
from lsmtune.cli.commands import Group
from lsmtune.cli.flags import (
    ForceOption,
    JsonOption,
    SeedOption,
    WorkloadFlags,
    command,
    option,
)
from lsmtune.cli.output import new_file, note, print_json, put_out
from lsmtune.engines.properties import properties_of
from lsmtune.errors import InputError, check_name
from lsmtune.model.text import open_text, read_text
from lsmtune.workloads.stated import FAMILIES, WORKLOAD_NAMES

if TYPE_CHECKING:
    from lsmtune.model.workload import Workload
    from lsmtune.workloads.stated import Stated

YAML, YCSB, EKVSB = "yaml", "ycsb", "ekvsb"
EXPORTS = (YAML, YCSB, EKVSB)
IMPORTS = (YCSB, EKVSB)
_HEAD_CHARACTERS = 4096
_LINE_CHARACTERS_MAX = 1 << 20
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
OutOption = Annotated[Path | None, option("--output FILE", "Write to this file, not to stdout.")]
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
def _show(
    name: NameArgument,
    given: WorkloadFlags,
    as_json: JsonOption = False,
) -> None:
    """Show a workload: its phases, its parameters, and where its figures are from."""
    from lsmtune.report.workload import show_document, show_lines

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
    output: OutOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Read a workload of another program into a workload file."""
    from lsmtune.workloads.file import workload_document, workload_text

    output = new_file(output, force=force)
    if format_name is not None:
        check_name(format_name, IMPORTS, "--format")
    elif _head_of(file).startswith("["):
        format_name = EKVSB  # a list of tasks begins with a bracket, which no property does
    else:
        format_name = YCSB
    workload, notes = _imported(file, format_name)
    document: dict[str, Any] = {
        "file": str(file),
        "format": format_name,
        "notes": list(notes),
        "workload": workload_document(workload),
    }
    text = workload_text(workload, (f"Imported by lsmtune from {file}", *notes))
    said = "wrote {0}\nnext: lsmtune bench --engine rocksdb --workload {0}"
    put_out(text, output, document, as_json=as_json, notes=notes, said=said)


@command(app, "export", EXPORT_EXAMPLES)
def _export(
    *,
    name: NameArgument,
    format_name: str = option("--format NAME", f"{', '.join(EXPORTS)}.", YAML),
    given: WorkloadFlags,
    seed: SeedOption = 1,
    output: OutOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write a workload in the form that another program reads, or as a workload file."""
    check_name(format_name, EXPORTS, "--format")
    output = new_file(output, force=force)
    if as_json and output is None:
        raise InputError("--json", why="has no effect without --output: the text is the result")
    stated = given.stated(name)
    parts, notes = _parts(stated, format_name, seed)
    notes = (*stated.notes, *notes)
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
    from lsmtune.programs.output import NATIVE

    source, is_records = str(file), _head_of(file).startswith("[")
    if is_records:
        # Record after record: a run of any length.
        with open_text(file, _SUMMED_UP) as opened:
            lines = iter(partial(opened.readline, _LINE_CHARACTERS_MAX), "")
            print_json(summarise(read_records(lines, source)))
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
    from lsmtune.model.codec import decode
    from lsmtune.model.measurement import Measurement

    try:
        document = json.loads(text)
        runners = document.get("runners", [document])
        return [decode(Measurement, each) for runner in runners for each in runner["measurements"]]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        beginning = text.strip()[:60] or "nothing"
        raise InputError(source, found=beginning, allowed=_SUMMED_UP) from None


def _parts(stated: Stated, format_name: str, seed: int) -> tuple[Iterable[str], tuple[str, ...]]:
    """The text in parts, and what it cannot say."""
    workload = stated.workload
    if format_name == YAML:
        from lsmtune.workloads.file import workload_text

        return [workload_text(workload, (f"Written by lsmtune: {workload.name}",))], ()
    if format_name == YCSB:
        from lsmtune.workloads.ycsb import properties_text

        return [properties_text(workload.name, stated.parameters, "workload export")], ()
    from lsmtune.workloads.ekvsb import lines_of, what_is_lost

    return lines_of(workload, seed, "workload export"), what_is_lost(workload)


def _imported(file: Path, format_name: str) -> tuple[Workload, tuple[str, ...]]:
    if format_name == EKVSB:
        from lsmtune.workloads.ekvsb import imported_workload

        return imported_workload(file)
    from lsmtune.workloads.stated import state_workload

    stated = state_workload(YCSB, {}, str(file), properties_of([file], {}))
    engine = [
        f"{given.where}: {key}: left out: -P {file} makes it an option of a run"
        for key, given in stated.engine.items()
    ]
    return stated.workload, (*stated.notes, *engine)


def _head_of(file: Path) -> str:
    """How the text begins, after white space. Raises InputError where it cannot be read."""
    with open_text(file) as opened:
        return opened.read(_HEAD_CHARACTERS).lstrip()


# The commands for traces are of the same group.
app.add_typer(workload_trace.app)
