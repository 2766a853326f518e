"""`lsmtune init`: write a commented study file."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import typer

from lsmtune.cli.flags import (
    MEMORY,
    ForceOption,
    WorkloadFlags,
    WorkloadOption,
    bytes_of,
    command,
    duration_of,
    option,
)
from lsmtune.cli.output import check_new
from lsmtune.engines.library import ENGINE_KINDS
from lsmtune.engines.ready import known_spaces, ready_space
from lsmtune.errors import InputError, by_name, check_name
from lsmtune.machine.files import STDOUT, write_output
from lsmtune.search.samplers import SAMPLERS
from lsmtune.study.build import parse_spec
from lsmtune.study.template import study_text
from lsmtune.workloads.stated import FAMILIES
from lsmtune.workloads.ycsb_properties import HISTOGRAM

DEFAULT_WORKLOAD = "fillrandom"
BUDGET = "Time for the whole study."
# Of the target, beside its sizes: how large records are, how many threads, what a write survives.
ASKED = ("value_bytes", "fieldcount", "fieldlength", "threads", "threadcount", "durability")
EXAMPLES = (
    "lsmtune init --workload fillrandom -w num=1000000 --memory 8GiB",
    "lsmtune init --engine leveldb --workload ycsb-a --budget 30m --output ycsb.yaml",
    "lsmtune init -P workloada --space rocksdb-basic --sampler gp",
)
app = typer.Typer()


@command(app, "init", EXAMPLES)
def _init(
    *,
    engine: str = option("--engine NAME", ", ".join(ENGINE_KINDS), "rocksdb"),
    workload: WorkloadOption = None,
    given: WorkloadFlags,
    budget: str = option("--budget TIME", BUDGET, "10m"),
    memory: str = option("--memory SIZE", MEMORY, "4GiB"),
    space: str | None = option("--space", "A ready space (lsmtune options ENGINE --spaces).", None),
    sampler: str = option("--sampler NAME", ", ".join(SAMPLERS), "auto"),
    output: Path = option("--output FILE", "The file to write.", Path("study.yaml")),
    force: ForceOption = False,
) -> None:
    """Write a commented study file to start from.

    In a terminal, without a workload, it asks for one, its sizes, the memory and the time.
    """
    check_name(engine, ENGINE_KINDS, "init", "--engine")
    check_new(output, "--output", force=force)
    if workload is None and not given.properties and not given.property_set:
        workload = DEFAULT_WORKLOAD
        if sys.stdin.isatty() and not given.workload_set:
            workload, parameters = _ask_workload()
            given = replace(given, workload_set=parameters)
            memory = _ask("memory", MEMORY, memory, lambda text: bytes_of("memory", text))
            budget = _ask("budget", BUDGET, budget, lambda text: duration_of("budget", text))
    choice = given.choice(workload, engine)
    duration_of("--budget", budget)
    bytes_of("--memory", memory)
    if space is not None and ready_space(space, "init", "--space").engine != engine:
        ours = ", ".join(name for name, ready in known_spaces().items() if ready.engine == engine)
        raise InputError("init", "--space", found=space, allowed=ours)
    by_name(SAMPLERS, sampler, "init", "--sampler")
    fields = dict(choice.fields)
    for name in fields.keys() & {"file", HISTOGRAM}:  # named from the study file
        fields[name] = os.path.relpath(str(fields[name]), output.parent)
    text = study_text(
        engine,
        fields,
        budget,
        "study.yaml" if output == STDOUT else str(output),
        workload=choice.workload,
        space=space,
        sampler=sampler,
        memory=memory,
        options=choice.options,
    )
    # What we write must load: an error here is one between flags (LevelDB without its log).
    parse_spec(text, output)
    write_output(output, text)
    if output != STDOUT:
        typer.echo(f"wrote {output}\nnext: lsmtune tune {output}")


def _ask_workload() -> tuple[str, list[str]]:
    """A workload and its `name=value` parameters, as somebody in a terminal says."""
    typer.echo("What must the answer hold for? Enter takes what is in brackets.\n", err=True)
    about = "`lsmtune workload list` says what each is."
    name = _ask(
        "workload",
        about,
        DEFAULT_WORKLOAD,
        lambda text: by_name(FAMILIES, text, "workload", "name"),
    )
    family = FAMILIES[name]
    stated: list[str] = []
    for parameter in family.parameters.values():
        if parameter.name in (*family.sizes, *ASKED) and parameter.default is not None:
            check = partial(parameter.domain.parse, source=name, field=parameter.name)
            default = str(parameter.default)
            answer = _ask(parameter.name, f"{parameter.description}.", default, check)
            if answer != default:
                stated.append(f"{parameter.name}={answer}")
    return name, stated


def _ask(name: str, about: str, default: str, check: Callable[[str], object]) -> str:
    """An answer that `check` takes; what it raises InputError for is asked again."""
    while True:
        answer: str = typer.prompt(f"{about}\n  {name}", default=default, err=True)
        try:
            check(answer)
        except InputError as error:
            typer.echo(str(error), err=True)
        else:
            return answer
