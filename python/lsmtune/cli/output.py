"""What commands put out: files, written whole or not at all, and verdicts and failures in words."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import typer

from lsmtune.errors import ExitStatus, InputError, LsmtuneError
from lsmtune.machine.files import STDOUT, check_output, write_output
from lsmtune.model.measurement import Measurement, Outcome, RunError
from lsmtune.model.verdict import GuardResult, MetricRatio, ProvedAt, Verdict, VerdictOutcome
from lsmtune.units import format_ratio


def print_json(document: Mapping[str, object], failure: LsmtuneError | None = None) -> None:
    """One JSON document on stdout, with the `failure` that the command will end with."""
    if failure is not None:
        document = {**document, "error": failure.document()}
        failure.in_document = True
    typer.echo(json.dumps(document, indent=2))


def print_view(
    view: object, pipe_width: int = 200, *, soft_wrap: bool = False, err: bool = False
) -> None:
    """What rich draws, on stdout or stderr.

    A pipe has no width of its own; its reader wants whole lines.
    """
    from rich.console import Console

    width = None if (sys.stderr if err else sys.stdout).isatty() else pipe_width
    Console(width=width, highlight=False, soft_wrap=soft_wrap, stderr=err).print(view)


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
    said: str = "wrote {}",
) -> None:
    """The end of a command that makes one text: into `output`, or on standard output if None.

    With `as_json` that has the `document` in place of the text. `said` is what people are told of
    the file, `notes` what to know of it, which the document has itself.
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
        typer.echo(said.format(output))


def note(text: str) -> None:
    """Say on stderr what to know of what was asked for."""
    typer.echo(f"lsmtune: note: {text}", err=True)


def warn(lines: Iterable[str]) -> None:
    """Say on stderr what speaks against what was asked for."""
    for line in lines:
        typer.echo(f"lsmtune: warning: {line}", err=True)


def check_new(path: Path, flag: str, *, force: bool) -> None:
    """As `check_output`, and for a file that is there unless `force`; `flag` names others."""
    check_output(path)
    if path.is_file() and not force:
        allowed = f"another {flag}, or --force to replace it"
        raise InputError(str(path), why="exists already", allowed=allowed)


def check_outputs(files: Iterable[tuple[str, Path | None]], *, force: bool, as_json: bool) -> bool:
    """As `check_new` for each file that was asked for, beside the flag that names it.

    Returns whether standard output takes one, so that what people read goes to stderr. Raises
    InputError where it would take two things.
    """
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
    why = f": {measurement.error.message}" if measurement.error else ""
    return f"run with seed {measurement.seed} ended {measurement.outcome.value}{why}"


def failure(measurement: Measurement, source: str) -> LsmtuneError:
    """The error for a run that did not end `ok`: the user's where the outcome is `invalid`."""
    error = measurement.error
    if measurement.outcome is Outcome.INVALID and error is not None:
        return invalid(error, source)
    return LsmtuneError(f"{source}: {failure_line(measurement)}")


def invalid(error: RunError, source: str) -> InputError:
    """What the driver refused, in the words of the command line."""
    field = error.field or ""
    if field.startswith("options."):
        field = f"-o {field.removeprefix('options.')}"
    elif field == "engine.library":
        field = "--library"
    return error.input_error(source, field)


def verdict_line(verdict: Verdict) -> str:
    """The verdict in one line, as in `1.42x the baseline (metric), 95 % CI 1.37 to 1.47, 5 pairs`.

    Only what is proved better begins with its ratio; anything else says first what it is.
    """
    lead = {
        VerdictOutcome.BETTER: "",
        VerdictOutcome.WORSE: "worse",
        VerdictOutcome.EQUIVALENT: "equivalent",
        VerdictOutcome.NOT_PROVEN: "no proven gain",
    }[verdict.outcome]
    if verdict.outcome is VerdictOutcome.NOT_PROVEN and verdict.breaks_guard:
        lead = "not recommended"
    ratio = ""
    if verdict.ratio is not None:
        better = ", lower is better" if verdict.direction == "minimize" else ""
        pairs = f"{verdict.pairs} pair{'' if verdict.pairs == 1 else 's'}"
        ratio = f"{format_ratio(verdict.ratio)}x the baseline ({verdict.metric}{better})"
        ratio = f"{ratio}, {_interval(verdict)}, {pairs}"
        if verdict.share_of_target < 1.0:
            ratio = f"{ratio}, at {verdict.share_of_target:.2g} of the target's size"
    line = ": ".join(filter(None, (lead, ratio)))
    return f"{line}; {verdict.why}" if verdict.why else line


def verdict_lines(verdict: Verdict, of: str = "") -> list[str]:
    """The verdict after what it is `of`; what it would take, other metrics, and what to mind."""
    lines = [f"{of}{verdict_line(verdict)}"]
    if verdict.what_it_takes:
        lines.append(f"  what it takes: {verdict.what_it_takes}")
    if verdict.others:
        lines.append(f"  other metrics ({others_hold(verdict)}):")
        lines += [f"    {other_line(other)}" for other in verdict.others]
    if verdict.proved_at:
        lines.append("  proved at:")
        lines += [f"    {proved_at_line(at)}" for at in verdict.proved_at]
    if verdict.guards:
        lines.append("  the price:")
        lines += [f"    {guard_line(guard)}" for guard in verdict.guards]
    return lines + [f"  warning: {note}" for note in verdict.notes]


def others_hold(verdict: Verdict) -> str:
    """How surely the intervals of the other metrics hold, and what they would take."""
    from lsmtune.stats.sequential import pairs_at_least

    together = f"{100 * verdict.confidence:.4g} % CI for all of them together"
    each = verdict.confidence_each
    if each is not None and verdict.pairs < pairs_at_least(each):
        together = f"{together} needs {pairs_at_least(each)} pairs"
    return together


def proved_at_line(at: ProvedAt) -> str:
    """The size and the length of the runs of one workload."""
    counts = (
        ("flushes", at.baseline_flushes, at.candidate_flushes),
        ("compactions", at.baseline_compactions, at.candidate_compactions),
    )
    both = [f"{b:,} and {c:,} {n}" for n, b, c in counts if b is not None and c is not None]
    work = f"; baseline and candidate: {', '.join(both)}" if both else ""
    model = f" ({at.share_of_target:.2g} of the target)" if at.share_of_target < 1.0 else ""
    return f"{at.workload}: {at.records:,} records{model}, {at.operations:,} operations{work}"


def status_of(verdict: Verdict | None, *, equivalent: bool = False) -> ExitStatus:
    """What a command exits with that was asked for a gain, or with `equivalent` for no loss."""
    fine = {VerdictOutcome.BETTER, *([VerdictOutcome.EQUIVALENT] if equivalent else ())}
    if verdict is None or verdict.outcome not in {*fine, VerdictOutcome.WORSE}:
        return ExitStatus.NOT_PROVEN
    return ExitStatus.DONE if verdict.outcome in fine else ExitStatus.WORSE


def running_line(verdict: Verdict) -> str:
    """What the pairs say so far, as in `after 7 pairs: 1.42x, 95 % CI 1.30 to 1.55`."""
    pairs = f"after {verdict.pairs} pair{'' if verdict.pairs == 1 else 's'}"
    if verdict.ratio is None:
        return f"{pairs}: no ratio yet"
    return f"{pairs}: {format_ratio(verdict.ratio)}x, {_interval(verdict)}"


def _interval(verdict: Verdict) -> str:
    ends = interval(verdict)
    return f"{100 * verdict.confidence:.4g} % CI {ends}" if ends else "no interval"


def other_line(other: MetricRatio) -> str:
    """One metric of several in one line, as in `latency_us_p99: 0.93x (0.91 to 0.95)`."""
    if other.ratio is None:
        return f"{other.metric}: no ratio"
    better = ", lower is better" if other.direction == "minimize" else ""
    ends = interval(other) or "no interval"
    return f"{other.metric}: {format_ratio(other.ratio)}x ({ends}{better})"


def guard_line(guard: GuardResult) -> str:
    """`write_amplification <= 1.5 * baseline: broken in 6 of 6 pairs, 7.80x (6.95 to 8.76)`."""
    if guard.held is None:
        return f"{guard.guard}: not known, as no pair observed it"
    ended = f"broken in {guard.broken} of {guard.pairs} pairs"
    if guard.held:
        ended = f"held, {ended}" if guard.broken else "held"
    ratio = "" if guard.ratio is None else f", {format_ratio(guard.ratio)}x"
    if ends := interval(guard):
        ratio += f" ({ends})"
    return f"{guard.guard}: {ended}{ratio}{f' in {guard.where}' if guard.where else ''}"


def interval(of: Verdict | MetricRatio | GuardResult) -> str:
    """The interval of a ratio, as in `0.91 to 0.95`; empty where there is none."""
    if of.ratio_low is None or of.ratio_high is None:
        return ""
    return f"{format_ratio(of.ratio_low)} to {format_ratio(of.ratio_high)}"
