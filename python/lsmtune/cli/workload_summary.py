"""`lsmtune workload summary`: the figures of `ekvsb summary`, of its runs and of lsmtune's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from lsmtune.errors import InputError

COMMAND = "summary"
EPILOG = "\n\n".join(
    (
        "Examples:",
        "ekvsb run rocksdb /tmp/db < tasks.json > run.json; lsmtune workload summary run.json",
        "lsmtune bench --engine rocksdb --workload put-get-delete --json > bench.json; "
        "lsmtune workload summary bench.json",
        "Times are seconds. Of a run of lsmtune's there is a summary for each phase, and no least "
        "latency.",
    )
)
_ALLOWED = "what `ekvsb run` printed, or `lsmtune bench --json`"
_HEAD_CHARACTERS = 4096


def register(group: typer.Typer) -> None:
    """Add the command to the `workload` group."""
    group.command(COMMAND, epilog=EPILOG)(_summary)


def _summary(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A run of ekvsb, or of bench with --json.")
    ],
) -> None:
    """Print what `ekvsb summary` says of a run, as JSON."""
    source = str(file)
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            head = opened.read(_HEAD_CHARACTERS).lstrip()
            opened.seek(0)
            if head.startswith("["):
                from lsmtune.programs.ekvsb_output import read_records, summarise

                # Record after record: a run of any length.
                document: dict[str, Any] = summarise(read_records(opened, source)).document()
            else:
                document = {"summaries": list(_of_bench(opened.read(), source))}
    except OSError as error:
        raise InputError(source, why=f"cannot be read: {error.strerror}") from None
    typer.echo(json.dumps(document, indent=2))


def _of_bench(text: str, source: str) -> Iterator[dict[str, object]]:
    """A summary of each phase that performed operations, of each run in the document."""
    from lsmtune.programs.ekvsb_summary import summary_of_phase
    from lsmtune.programs.performing import NATIVE

    for measurement in _measurements(text, source):
        for phase in measurement.phases:
            if phase.operations:
                yield {
                    "runner": measurement.runner or NATIVE,
                    "seed": measurement.seed,
                    "phase": phase.name,
                    "summary": summary_of_phase(phase),
                }


def _measurements(text: str, source: str) -> list[Any]:
    """The measurements of `bench --json`, with one runner or all of them."""
    from lsmtune.records.measurement import Measurement
    from lsmtune.storage.codec import decode

    try:
        document = json.loads(text)
        parts = document.get("runners", [document])
        return [decode(Measurement, each) for part in parts for each in part["measurements"]]
    except (ValueError, TypeError, KeyError, AttributeError):
        found = text.strip()[:60] or "nothing"
        raise InputError(source, found=found, allowed=_ALLOWED) from None
