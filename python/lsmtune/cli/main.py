"""`lsmtune`: the command line's entry point. Maps every error to one line and an exit status."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.main import get_command

import lsmtune
from lsmtune.cli.commands import LazyGroup
from lsmtune.errors import ExitStatus, LsmtuneError, nearest_name

PROGRAM = "lsmtune"
DEBUG = "LSMTUNE_DEBUG"

EPILOG = "\n\n".join(
    (
        "Examples:",
        "lsmtune doctor",
        "lsmtune bench --engine rocksdb --workload fillrandom -o write_buffer_size=4MiB",
        "lsmtune tune study.yaml --budget 10m",
        "lsmtune report study.yaml",
        "Exit status: 0 done, 1 failed, 2 wrong input, 3 not better, 130 interrupted.",
    )
)

app = typer.Typer(
    cls=LazyGroup,
    epilog=EPILOG,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"{PROGRAM} {lsmtune.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    _version_wanted: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Finds, proves and ships the right configuration of an LSM key-value store."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line `arguments` (those of the process by default); the exit status."""
    # What Ctrl-C does is what a polite kill should do: clean up, keep the state.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        status = get_command(app).main(
            args=None if arguments is None else list(arguments),
            prog_name=PROGRAM,
            standalone_mode=False,
        )
    except LsmtuneError as error:
        return _fail(str(error), error.exit_status)
    except typer.Abort:
        return _fail("interrupted", ExitStatus.INTERRUPTED)
    except typer.TyperException as error:
        return _fail(usage_line(error), ExitStatus.BAD_INPUT)
    except Exception as error:
        return _unexpected(error)
    return status if isinstance(status, int) else ExitStatus.DONE


def usage_line(error: typer.TyperException) -> str:
    """What the parser of the command line refused, in one line of our form."""
    context = getattr(error, "ctx", None)
    command = "" if context is None else context.command_path.removeprefix(PROGRAM).strip()
    if hasattr(error, "possibilities"):
        return _no_such_option(command, str(getattr(error, "option_name", "")), context)
    said = error.format_message()
    return _joined(command, f"{said[:1].lower()}{said[1:]}".rstrip("."))


def _no_such_option(command: str, name: str, context: Any) -> str:
    known = [flag for parameter in context.command.params for flag in parameter.opts]
    nearest = nearest_name(name, [*known, "--help"])
    hint = f"; did you mean {nearest}?" if nearest else ""
    help_line = " ".join(part for part in (PROGRAM, command, "--help") if part)
    return _joined(command, name, f"no such option; allowed: those of `{help_line}`{hint}")


def _joined(*parts: str) -> str:
    return ": ".join(part for part in parts if part)


def _fail(line: str, status: ExitStatus) -> ExitStatus:
    print(f"{PROGRAM}: {line}", file=sys.stderr)
    return status


def _unexpected(error: Exception) -> ExitStatus:
    if os.environ.get(DEBUG) == "1":
        traceback.print_exc()
        return ExitStatus.FAILED
    said = " ".join(str(error).split())
    line = f"unexpected error: {type(error).__name__}: {said}; set {DEBUG}=1 to see where"
    return _fail(line, ExitStatus.FAILED)


if __name__ == "__main__":
    sys.exit(main())
