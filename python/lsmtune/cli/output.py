"""What commands put out: files, written whole or not at all, and how commands fail, in words."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from lsmtune.errors import ExitStatus, InputError, LsmtuneError
from lsmtune.machine.files import STDOUT, check_output, write_output
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.verdict import Verdict, VerdictOutcome

if TYPE_CHECKING:
    from lsmtune.report.document import Block, Document

_PIPE_COLUMNS = 1000


def print_json(document: Mapping[str, object], failure: LsmtuneError | None = None) -> None:
    """One JSON document on stdout, with the `failure` that the command will end with."""
    if failure is not None:
        document = {**document, "error": failure.document()}
        failure.in_document = True
    typer.echo(json.dumps(document, indent=2))


def print_view(
    shown: Document | Sequence[Block], *, soft_wrap: bool = False, err: bool = False
) -> None:
    """A report, or what a command has to show, drawn on stdout or stderr.

    A pipe has no width of its own, and a reader of it wants whole lines.
    """
    from rich.console import Console

    from lsmtune.report.document import Document
    from lsmtune.report.terminal import blocks_view, to_terminal

    view = to_terminal(shown) if isinstance(shown, Document) else blocks_view(shown)
    width = None if (sys.stderr if err else sys.stdout).isatty() else _PIPE_COLUMNS
    Console(width=width, highlight=False, soft_wrap=soft_wrap, stderr=err).print(view)


def print_result(
    document: Mapping[str, object],
    view: Document | Sequence[Block],
    failure: LsmtuneError | None = None,
    *,
    as_json: bool,
    soft_wrap: bool = False,
    err: bool = False,
) -> None:
    """What a command found, for programs or for people; then the `failure` that it ends with."""
    if as_json:
        print_json(document, failure)
    else:
        print_view(view, soft_wrap=soft_wrap, err=err)
    if failure is not None:
        raise failure


def new_file(output: Path | None, *, force: bool) -> Path | None:
    """The file of `--output`, None for standard output. Raises as `check_new` does."""
    if output is None or output == STDOUT:
        return None
    check_new(output, "--output", force=force)
    return output


def put_out(
    content: str | Iterable[str],
    output: Path | None,
    document: Mapping[str, object],
    *,
    as_json: bool,
    notes: Iterable[str] = (),
    message: str = "wrote {}",
) -> None:
    """The end of a command that makes one text: into `output`, or on standard output if None.

    With `as_json` standard output has the `document` instead. `message` tells people of the file,
    `notes` what to know of it, which the document has itself.
    """
    for line in () if as_json else notes:
        note(line)
    if output is not None:
        write_output(output, content)
    elif isinstance(content, str) and not as_json:
        typer.echo(content, nl=False)
    elif not as_json:
        sys.stdout.writelines(content)
    if as_json:
        print_json(document if output is None else {**document, "output": str(output)})
    elif output is not None:
        typer.echo(message.format(output))


def print_text(text: str) -> None:
    """A line on stderr about what goes on, of a command that is long at work."""
    print(text, file=sys.stderr, flush=True)


def say(text: str) -> None:
    """A line on stderr, where it stands beside the result."""
    typer.echo(f"lsmtune: {text}", err=True)


def note(text: str) -> None:
    """Say on stderr what to know of what was asked for."""
    say(f"note: {text}")


def warn(lines: Iterable[str]) -> None:
    """Say on stderr what speaks against what was asked for."""
    for line in lines:
        say(f"warning: {line}")


def check_new(path: Path, flag: str, *, force: bool) -> None:
    """Raises InputError where `path`, of `flag`, cannot be written, or is there without `force`."""
    check_output(path)
    if path != STDOUT and path.is_file() and not force:
        allowed = f"another {flag}, or --force to replace it"
        raise InputError(str(path), why="exists already", allowed=allowed)


def check_apart(files: Iterable[tuple[str, Path | None]]) -> None:
    """Raises InputError for a file that is named twice: one result would replace the other."""
    flags: dict[str, str] = {}
    for flag, path in files:
        if path is None or path == STDOUT or (path.exists() and not path.is_file()):
            continue
        place = os.path.realpath(path)
        if place in flags:
            why = f"is the file of {flags[place]}, too"
            raise InputError(flag, found=path, why=why, allowed="another file")
        flags[place] = flag


def check_outputs(files: Sequence[tuple[str, Path | None]], *, force: bool, as_json: bool) -> bool:
    """Checks by `check_new` each file that was asked for; beside it stands the flag that names it.

    Returns whether one of them is standard output: what people read goes to stderr then. Raises
    InputError where two things would be on standard output, or in one file.
    """
    check_apart(files)
    taken = "--json" if as_json else ""
    for flag, path in files:
        if path is None:
            continue
        if path == STDOUT and taken:
            raise InputError(taken, why=f"stands beside {flag} -: both would be on stdout")
        taken = f"{flag} -" if path == STDOUT else taken
        check_new(path, flag, force=force)
    return taken not in ("", "--json")


def failure_line(measurement: Measurement) -> str:
    """How a run failed, in one line."""
    return f"run with seed {measurement.seed} ended {measurement.ended}"


def failure(measurement: Measurement, source: str) -> LsmtuneError:
    """The error for a run that did not end `ok`.

    It is an InputError, in the words of the command line, for what the driver refused.
    """
    error = measurement.error
    if measurement.outcome is not Outcome.INVALID or error is None:
        return LsmtuneError(f"{source}: {failure_line(measurement)}")
    field = error.field or ""
    if field.startswith("options."):
        # A flag that names a configuration is in a command without `-o`.
        flag = "" if source.startswith("-") else "-o "
        field = f"{flag}{field.removeprefix('options.')}"
    elif field == "engine.library":
        field = "--library"
    return error.input_error(source, field)


def status_of(verdict: Verdict | None, *, equivalent: bool = False) -> ExitStatus:
    """What a command exits with that was asked for a gain, or with `equivalent` for no loss."""
    outcome = None if verdict is None else verdict.outcome
    if outcome is VerdictOutcome.BETTER or (equivalent and outcome is VerdictOutcome.EQUIVALENT):
        return ExitStatus.DONE
    return ExitStatus.WORSE if outcome is VerdictOutcome.WORSE else ExitStatus.NOT_PROVEN
