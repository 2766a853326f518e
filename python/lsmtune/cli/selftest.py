"""`lsmtune selftest`: simulations that show how often a verdict of lsmtune is wrong."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from lsmtune.cli.flags import JsonOption, whole_number
from lsmtune.cli.live import counted_progress
from lsmtune.errors import ExitStatus
from lsmtune.model.request import SEED_MAX

if TYPE_CHECKING:
    from lsmtune.selftest.document import Report

EPILOG = "\n\n".join(
    (
        "Examples:",
        "lsmtune selftest statistics",
        "lsmtune selftest statistics --studies 10000 --seed 7 --json",
        "Exit status 1: a rate is above its stated level by more than the simulation's error.",
    )
)
STUDIES_DEFAULT = 2000
_STUDIES_MIN, _STUDIES_MAX = 100, 1_000_000


def register(app: typer.Typer) -> None:
    """Add the `selftest` group to `app`."""
    group = typer.Typer(help="Check lsmtune itself, by simulation.")
    group.callback(invoke_without_command=True)(_group)
    group.command("statistics", epilog=EPILOG)(_statistics)
    app.add_typer(group, name="selftest")


def _group(context: typer.Context) -> None:
    """Check lsmtune itself, by simulation."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _statistics(
    studies: Annotated[
        int,
        typer.Option(
            "--studies",
            metavar="N",
            parser=whole_number("--studies", _STUDIES_MIN, _STUDIES_MAX),
            help="How many studies are simulated of each scenario.",
        ),
    ] = STUDIES_DEFAULT,
    seed: Annotated[
        int,
        typer.Option(
            "--seed",
            metavar="N",
            parser=whole_number("--seed", 0, SEED_MAX),
            help="Seed of the simulations: the same seed, the same result.",
        ),
    ] = 1,
    as_json: JsonOption = False,
) -> None:
    """How often verdicts are wrong, effects found, intervals right: simulated on bad machines."""
    from lsmtune.selftest.document import document, report_of
    from lsmtune.selftest.simulate import simulate

    with counted_progress("simulated studies of each scenario") as on_progress:
        report = report_of(simulate(studies, seed, on_progress), seed)
    if as_json:
        typer.echo(json.dumps(document(report), indent=2))
    else:
        _print(report)
    if report.broken:
        raise typer.Exit(ExitStatus.FAILED)


def _print(report: Report) -> None:
    from rich.console import Console

    from lsmtune.cli.selftest_view import report_view

    width = None if sys.stdout.isatty() else 150
    Console(width=width, highlight=False).print(report_view(report))
