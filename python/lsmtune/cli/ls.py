"""`lsmtune ls`: the studies in a folder, each in a line."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from lsmtune.cli.flags import JsonOption, command
from lsmtune.cli.output import print_json, print_view
from lsmtune.errors import InputError, LsmtuneError
from lsmtune.machine.files import is_owned
from lsmtune.units import format_ratio

EXAMPLES = ("lsmtune ls", "lsmtune ls /data/studies --json")
STUDY_FILE = "study.yaml"
app = typer.Typer()


@dataclass(frozen=True)
class Listed:
    """A study's line; `error` says why nothing else is known. `ratio` is of the `verdict`."""

    path: str
    name: str = ""
    engine: str = ""
    workload: str = ""
    trials: int = 0
    verdict: str | None = None
    ratio: float | None = None
    changed_unix_s: float | None = None
    error: str = ""


@command(app, "ls", EXAMPLES)
def _ls(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Where to look: it, and the folders in it.")
    ] = Path(),
    as_json: JsonOption = False,
) -> None:
    """List the studies here: engine, workload, trials, verdict, when."""
    if not directory.is_dir():
        raise InputError("ls", "DIR", found=str(directory), why="no such folder")
    places = [directory, *sorted(directory.iterdir())]
    studies = [study for each in places if (study := listed(each)) is not None]
    if as_json:
        print_json({"studies": [asdict(each) for each in studies]})
    elif not studies:
        typer.echo(f"no study in {directory}; next step: lsmtune init")
    else:
        _print(studies)


def listed(path: Path) -> Listed | None:
    """A line for the study in `path`; None where there is none."""
    try:
        return _read(path) if is_owned(path) and (path / STUDY_FILE).is_file() else None
    except PermissionError as error:  # of another user: whether it is a study is not known either
        return Listed(str(path), error=f"cannot be read ({error.strerror})")
    except LsmtuneError as error:
        return Listed(str(path), error=str(error))


def _read(path: Path) -> Listed | None:
    """The same of a folder that somebody may be working on; None for a proof or a `Search`."""
    from lsmtune.experiment.folder import StudyFolder
    from lsmtune.study.build import stored_spec

    with StudyFolder.open(path) as folder:
        if not folder.was_tuned:
            return None
        spec = stored_spec(folder)
        store, verdict = folder.measurements, folder.measurements.verdict()
        return Listed(
            path=str(path),
            name=spec.name,
            engine=spec.engine_name,
            workload=", ".join(each.label for each in spec.workloads),
            trials=store.trials_begun(),
            verdict=None if verdict is None else verdict.outcome.value,
            ratio=None if verdict is None else verdict.ratio,
            changed_unix_s=store.changed_unix_s(),
        )


def _print(studies: list[Listed]) -> None:
    from lsmtune.report.document import Table, numbers, words
    from lsmtune.report.words import moment, outcome

    rows = []
    for each in studies:
        verdict = each.error or ("none yet" if each.verdict is None else outcome(each.verdict))
        ratio = "" if each.ratio is None else f" {format_ratio(each.ratio)}x"
        facts = (each.engine, each.workload, f"{each.trials:,}", f"{verdict}{ratio}")
        rows.append((each.path, each.name, *facts, moment(each.changed_unix_s)))
    columns = (*words("study", "name", "engine", "workload"), *numbers("trials"))
    print_view([Table((*columns, *words("verdict", "changed")), rows)])
