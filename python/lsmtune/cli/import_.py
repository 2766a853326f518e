"""`lsmtune import`: what other programs wrote, as options or as a study file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lsmtune.cli.flags import (
    MEMORY,
    BudgetOption,
    ForceOption,
    JsonOption,
    SeedOption,
    TextOutputOption,
    TrialsOption,
    WorkloadSetOption,
    bytes_of,
    command,
    duration_of,
    option,
)
from lsmtune.cli.output import new_file, put_out
from lsmtune.engines.formats import IMPORTERS
from lsmtune.engines.library import ENGINE_KINDS
from lsmtune.errors import check_name
from lsmtune.workloads.stated import WORKLOAD_NAMES

DEFAULT_OUTPUT = "study.yaml"
ROLES = ("baseline", "options", "start", "study")
EXAMPLES = (
    "lsmtune import OPTIONS-000007",
    "lsmtune import OPTIONS-000007 --as baseline --output study.yaml",
    "lsmtune import search_space.json --engine rocksdb --output study.yaml",
    "lsmtune import config_tpe.yml --output study.yaml",
    'lsmtune import tunables.jsonc --command "./run.sh" --output study.yaml',
    "What cannot be carried over is said on stderr, line by line.",
)
app = typer.Typer()


@command(app, "import", EXAMPLES)
def _import(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="What to import.")],
    format_name: str | None = option(
        "--format NAME", f"Found out when not given: {', '.join(IMPORTERS)}.", None
    ),
    engine: str | None = option("--engine NAME", "The engine, if the files do not name it.", None),
    command: str | None = option(
        "--command COMMAND", "The program whose parameters a space holds.", None
    ),
    role: str | None = option(
        "--as ROLE",
        "A study with an option file as its baseline, options (the fixed base) or start; "
        "study is baseline. Without it, the options alone.",
        None,
    ),
    workload: str | None = option(
        "--workload NAME", "Workload of the study; fillrandom if unset.", None
    ),
    workload_set: WorkloadSetOption = None,
    memory: str | None = option("--memory SIZE", MEMORY, None),
    budget: BudgetOption = None,
    trials: TrialsOption = None,
    seed: SeedOption = 0,
    keep_defaults: bool = option(
        "--keep-defaults", "Keep what has the engine's default value anyway.", False
    ),
    output: TextOutputOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Read the spaces and option files of other programs."""
    check_name(engine, ENGINE_KINDS, "--engine")
    if budget is not None:
        duration_of("--budget", budget)
    if memory is not None:
        bytes_of("--memory", memory)
    output = new_file(output, force=force)
    check_name(role, ROLES, "--as")
    check_name(workload, WORKLOAD_NAMES, "--workload")
    from lsmtune.study.imported import Wanted, import_files

    sets = tuple(workload_set or ())
    wanted = Wanted(role, engine, command, workload, sets, budget, trials, seed, memory)
    document, text = import_files(
        files, format_name, wanted, output or Path(DEFAULT_OUTPUT), keep_defaults=keep_defaults
    )
    message = "wrote {0}\nnext: lsmtune tune {0}" if "study" in document else "wrote {}"
    put_out(text, output, document, as_json=as_json, notes=document["notes"], message=message)
