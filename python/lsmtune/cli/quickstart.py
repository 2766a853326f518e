"""`lsmtune quickstart`: the study that lsmtune brings along, from its file to the verdict."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import typer

from lsmtune.cli.flags import command
from lsmtune.cli.output import say
from lsmtune.cli.tune import SessionFlags, TuneFlags, tune_study
from lsmtune.errors import InputError
from lsmtune.machine.files import write_output

FILE = Path("quickstart.yaml")
EXAMPLES = (
    "lsmtune quickstart",
    "lsmtune tune quickstart.yaml --budget 2h --dir target   # the same question, at full size",
)
app = typer.Typer()


@command(app, "quickstart", EXAMPLES)
def _quickstart(session: SessionFlags) -> None:
    """Tune RocksDB for three minutes, from a study file that it writes here: quickstart.yaml."""
    ours = (files("lsmtune.cli") / FILE.name).read_text(encoding="utf-8")
    if not FILE.exists():
        write_output(FILE, ours)
        say(f"wrote {FILE}: what is tuned, and how")
    elif FILE.read_bytes() != ours.encode():
        why = "is there, and is not the file of this lsmtune"
        allowed = f"a folder without it, or `lsmtune tune {FILE}`"
        raise InputError("quickstart", found=str(FILE.absolute()), why=why, allowed=allowed)
    tune_study(FILE, session, TuneFlags())
