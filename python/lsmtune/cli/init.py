"""`lsmtune init`: write a commented study file."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from lsmtune.cli.flags import (
    ForceOption,
    WorkloadFlags,
    WorkloadOption,
    bytes_of,
    command,
    duration_of,
    option,
)
from lsmtune.cli.output import check_new, echo_beside
from lsmtune.engines.ready import READY_SPACES, ready_space
from lsmtune.errors import InputError, check_name
from lsmtune.machine.files import write_output
from lsmtune.search.samplers import SAMPLERS, sampler_kind
from lsmtune.study.build import parse_spec
from lsmtune.study.template import TEMPLATE_ENGINES, study_text

DEFAULT_WORKLOAD = "fillrandom"
EXAMPLES = (
    "lsmtune init --workload fillrandom -w num=1000000 --memory 8GiB",
    "lsmtune init --engine leveldb --workload ycsb-a --budget 30m --output ycsb.yaml",
    "lsmtune init -P workloada --space rocksdb-basic --sampler gp",
)
app = typer.Typer()


@command(app, "init", EXAMPLES)
def _init(
    *,
    engine: str = option("--engine NAME", ", ".join(TEMPLATE_ENGINES), "rocksdb"),
    workload: WorkloadOption = None,
    given: WorkloadFlags,
    budget: str = option("--budget TIME", "Time for the whole study.", "10m"),
    memory: str = option("--memory SIZE", "Of the machine, its page cache included.", "4GiB"),
    space: str | None = option("--space", "A ready space (lsmtune options ENGINE --spaces).", None),
    sampler: str = option("--sampler NAME", ", ".join(SAMPLERS), "auto"),
    output: Path = option("--output FILE", "The file to write.", Path("study.yaml")),
    force: ForceOption = False,
) -> None:
    """Write a commented study file to start from."""
    check_name(engine, TEMPLATE_ENGINES, "init", "--engine")
    if workload is None and not given.properties and not given.property_set:
        workload = DEFAULT_WORKLOAD
    choice = given.choice(workload, engine)
    duration_of("--budget", budget)
    bytes_of("--memory", memory)
    if space is not None and ready_space(space, "init", "--space").engine != engine:
        ours = ", ".join(name for name, ready in READY_SPACES.items() if ready.engine == engine)
        raise InputError("init", "--space", found=space, allowed=ours)
    sampler_kind(sampler, "init", "--sampler")
    fields = dict(choice.fields)
    if "file" in fields:  # named from the study file
        fields["file"] = os.path.relpath(fields["file"], output.parent)
    text = study_text(
        engine,
        fields,
        budget,
        str(output),
        workload=choice.workload,
        space=space,
        sampler=sampler,
        memory=memory,
        options=choice.options,
    )
    # What we write must load: an error here is one between flags (LevelDB without its log).
    parse_spec(text, output)
    check_new(output, "--output", force=force)
    write_output(output, text)
    echo_beside(f"wrote {output}\nnext: lsmtune tune {output}", output)
