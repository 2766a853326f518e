"""`lsmtune`: the command line's entry point. Maps every error to one line and an exit status."""

from __future__ import annotations

import codecs
import io
import json
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any

import typer
from typer.main import get_command

import lsmtune
from lsmtune.cli.commands import LazyGroup
from lsmtune.errors import (
    ExitStatus,
    InputError,
    InterruptedByUserError,
    LsmtuneError,
    disk_trouble,
    is_utf8,
    nearest_name,
)
from lsmtune.machine.interrupts import obeyed

PROGRAM = "lsmtune"
DEBUG = "LSMTUNE_DEBUG"

EPILOG = "\n\n".join(
    (
        "Examples:",
        "lsmtune doctor",
        "lsmtune bench --engine rocksdb --workload fillrandom -o write_buffer_size=4MiB",
        "lsmtune tune study.yaml --budget 10m",
        "lsmtune report study.yaml",
        "Exit status: 0 done, 1 failed, 2 wrong input, 3 not proven better, 4 proved worse, "
        "130 interrupted.",
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
    _open_streams()
    # What Ctrl-C does is what a polite kill should do: clean up, keep the state.
    for number in obeyed():
        signal.signal(number, signal.default_int_handler)
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        for argument in given:
            # Study files, databases and the driver's protocol hold names and values as UTF-8.
            if not is_utf8(argument):
                raise InputError("command line", found=argument, allowed="text and names in UTF-8")
        status = get_command(app).main(args=given, prog_name=PROGRAM, standalone_mode=False)
        if status == ExitStatus.INTERRUPTED:  # what typer makes of a KeyboardInterrupt
            raise InterruptedByUserError("interrupted")
        with suppress(BrokenPipeError):
            sys.stdout.flush()
    except LsmtuneError as error:
        failure = error
    except (typer.Abort, KeyboardInterrupt):
        failure = InterruptedByUserError("interrupted")
    except typer.TyperException as error:
        failure = UsageError(usage_line(error))
    except Exception as error:
        if os.environ.get(DEBUG) == "1":
            traceback.print_exc()
            return ExitStatus.FAILED
        failure = _unexpected(error)
    else:
        return status if isinstance(status, int) else ExitStatus.DONE
    return _fail(failure, as_json="--json" in given)


class UsageError(LsmtuneError):
    """What the parser of the command line refused."""

    exit_status = ExitStatus.BAD_INPUT


def usage_line(error: typer.TyperException) -> str:
    """What the parser of the command line refused, in one line of our form."""
    context: Any = getattr(error, "ctx", None)
    command = "" if context is None else context.command_path.removeprefix(PROGRAM).strip()
    if hasattr(error, "possibilities"):
        name = str(getattr(error, "option_name", ""))
        known = [flag for parameter in context.command.params for flag in parameter.opts]
        nearest = nearest_name(name, [*known, "--help"])
        hint = f"; did you mean {nearest}?" if nearest else ""
        help_line = " ".join(filter(None, (PROGRAM, command, "--help")))
        line = f"{name}: no such option; allowed: those of `{help_line}`{hint}"
    else:
        # A group without a command has printed its help, and has no message.
        message = error.format_message() or "name one of its commands"
        line = f"{message[:1].lower()}{message[1:]}".rstrip(".")
    return f"{command}: {line}" if command else line


def _fail(failure: LsmtuneError, *, as_json: bool) -> ExitStatus:
    """Says on stderr what failed; with --json on stdout, too, unless a document there has it."""
    print(f"{PROGRAM}: {failure}", file=sys.stderr)
    if failure.exit_status is ExitStatus.INTERRUPTED:
        # A KeyboardInterrupt inside of an `exec`, by which dataclasses are made while a module is
        # imported, leaves a note in CPython (`unhandled_keyboard_interrupt` in pythonrun.c): the
        # process then dies of SIGINT in place of exiting with our status, though we caught it.
        # The next evaluation of a text takes the note away.
        eval("0")
    if as_json and not failure.in_document:
        with suppress(OSError, LsmtuneError):
            print(json.dumps({"error": failure.document()}, indent=2), flush=True)
    return failure.exit_status


_SPELL = "lsmtune.spell"
_IN_ASCII = {
    "\N{MULTIPLICATION SIGN}": "x", "\N{PLUS-MINUS SIGN}": "+/-", "\N{MICRO SIGN}": "u",
    "\N{GREEK SMALL LETTER MU}": "u", "\N{EN DASH}": "-", "\N{EM DASH}": "-", "\N{MINUS SIGN}": "-",
    "\N{HORIZONTAL ELLIPSIS}": "...", "\N{RIGHT SINGLE QUOTATION MARK}": "'", "\N{BULLET}": "*",
    "\N{RIGHTWARDS ARROW}": "->", "\N{LESS-THAN OR EQUAL TO}": "<=", "\N{MIDDLE DOT}": "*",
    "\N{GREATER-THAN OR EQUAL TO}": ">=", "\N{ALMOST EQUAL TO}": "~",
}  # fmt: skip


def _open_streams() -> None:
    """Stand-ins for streams that the caller closed, and for those that may not take what is said.

    What goes to closed ones is lost, and no more. Characters that the terminal's encoding lacks are
    spelt in ASCII.
    """
    codecs.register_error(_SPELL, _spelt)
    for name, number in (("stdout", 1), ("stderr", 2)):
        stream = getattr(sys, name)
        if stream is None:
            descriptor = os.open(os.devnull, os.O_WRONLY)
            # On their own numbers, so that no database file is opened there.
            if descriptor != number:
                os.dup2(descriptor, number)
                os.close(descriptor)
            setattr(sys, name, os.fdopen(number, "w", errors=_SPELL))
        elif stream is getattr(sys, f"__{name}__"):
            taken = io.BufferedWriter(_Stream(number, "w", closefd=False))
            errors = _SPELL if stream.errors == "strict" else stream.errors
            lines = stream.line_buffering
            made = io.TextIOWrapper(taken, stream.encoding, errors, line_buffering=lines)
            setattr(sys, name, made)


class _Stream(io.FileIO):
    """Standard output, or standard error, which loses what a full disk or nobody takes of it."""

    def write(self, part: Any, /) -> int:
        """As in the base class. Raises LsmtuneError for what standard output does not take."""
        try:
            return super().write(part)
        except OSError as error:
            if self.fileno() == 2:  # a study goes on where nobody reads its progress any more
                return len(part)
            # At its end Python writes what is left once more, would fail again, and exit with 120.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            if isinstance(error, BrokenPipeError):  # its reader has what it wants
                raise
            raise LsmtuneError(f"standard output: {error.strerror}") from error


def _spelt(error: UnicodeError) -> tuple[str, int]:
    """What a terminal whose encoding lacks a character shows in its place."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    # What JSON can read as well.
    shown = (_IN_ASCII.get(character, f"\\u{ord(character):04x}") for character in lacking)
    return "".join(shown), error.end


def _unexpected(error: Exception) -> LsmtuneError:
    """What the disk refused, or a mistake of ours, in one line."""
    if isinstance(error, OSError) and error.errno is not None:
        return disk_trouble(error)
    name, message = type(error).__name__, " ".join(str(error).split())
    return LsmtuneError(f"unexpected error: {name}: {message}; set {DEBUG}=1 to see where")


if __name__ == "__main__":
    sys.exit(main())
