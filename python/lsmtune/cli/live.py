"""Live displays on a terminal, and their plain counterparts where there is none.

All of this goes to stderr: stdout is for results.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from lsmtune.cli.tune_progress import (
    Plan,
    RunLine,
    RunProgress,
    TuneProgress,
    number,
    shown_value,
)
from lsmtune.machine.files import Clock
from lsmtune.model.workload import PhaseKind
from lsmtune.units import format_bytes, format_duration

_REFRESHES_PER_S = 4
_BAR_WIDTH = 30
_LEVELS = " ▁▂▃▄▅▆▇█"

Observer = TypeVar("Observer", bound=TuneProgress)


def stderr_console() -> Console:
    """Where displays go."""
    return Console(stderr=True, highlight=False)


@contextmanager
def bench_display(run: RunProgress, title: Callable[[], str]) -> Iterator[None]:
    """Shows `run` while the context lasts, on a terminal; nothing elsewhere."""
    with _live(lambda: bench_view(run, title())):
        yield


@contextmanager
def tune_display(
    plan: Plan,
    clock: Clock,
    spent_before_s: float = 0.0,
    *,
    observer: type[Observer],
) -> Iterator[Observer]:
    """An `observer` of a study or a proof, shown while the context lasts.

    A live table on a terminal, a line per run elsewhere.
    """
    console = stderr_console()
    if not console.is_terminal:
        yield observer(plan, clock, spent_before_s, on_line=_print_line(plan), on_text=_print)
        return
    progress = observer(plan, clock, spent_before_s)
    with _live(lambda: tune_view(progress)):
        yield progress


@contextmanager
def _live(view: Callable[[], RenderableType]) -> Iterator[None]:
    console = stderr_console()
    if not console.is_terminal:
        yield
        return
    live = Live(
        console=console,
        get_renderable=view,
        refresh_per_second=_REFRESHES_PER_S,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    with live:
        yield


def bench_view(run: RunProgress, title: str) -> RenderableType:
    """The phases of one run: how far, how fast now, and the last intervals."""
    table = Table(box=None, pad_edge=False)
    for name in ("phase", "done", "operations", "now", "last intervals", "memory"):
        table.add_column(name, justify="left" if name in ("phase", "last intervals") else "right")
    for phase in run.phases:
        rates, settles = phase.throughputs_ops_s, phase.phase.kind is PhaseKind.SETTLE
        cells = (
            "" if settles and not phase.finished else f"{100 * phase.share:.0f} %",
            f"{phase.operations:,}" if phase.operations else "",
            f"{rates[-1]:,.0f} ops/s" if rates and not phase.finished else "",
            sparkline(tuple(rates)),
            format_bytes(phase.rss_bytes) if phase.rss_bytes else "",
        )
        table.add_row(phase.phase.name, *(cells if phase.started else ("",) * len(cells)))
    return Group(Text(title, style="bold"), table)


def sparkline(values: Sequence[float]) -> str:
    """`values` as a line of bars, the tallest for the largest."""
    top = max(values, default=0.0)
    if top <= 0:
        return ""
    return "".join(_LEVELS[round(value / top * (len(_LEVELS) - 1))] for value in values)


def tune_view(progress: TuneProgress) -> RenderableType:
    """Progress bar, the best so far, the run that is on, and the last runs."""
    bar, left = Table.grid(padding=(0, 1)), progress.left_s
    bar.add_row(
        ProgressBar(total=1.0, completed=progress.share, width=_BAR_WIDTH),
        f"{100 * progress.share:3.0f} %",
        "" if left is None else f"at most {format_duration(round(left))} left",
    )
    parts: list[RenderableType] = [bar, Text(_status(progress))]
    if progress.best:
        parts.append(Text(f"best so far  {progress.best}", style="green"))
    phase, now = progress.run.current, progress.run_name
    if phase is not None:
        rates = phase.throughputs_ops_s
        speed = f" {rates[-1]:,.0f} ops/s {sparkline(tuple(rates))}" if rates else ""
        now = f"{now}: {phase.phase.name} {100 * phase.share:.0f} %{speed}"
    parts.append(Text(now))
    if progress.proof_so_far:
        parts.append(Text(progress.proof_so_far, style="bold"))
    parts += [Text(note, style="yellow" if "warning" in note else "") for note in progress.notes]
    if progress.lines:
        parts.append(_lines_table(progress))
    return Group(*parts)


def _status(progress: TuneProgress) -> str:
    plan = progress.plan
    of = f" of {plan.trials}" if plan.trials is not None else ""
    failed = {name: number for name, number in sorted(progress.counts.items()) if name != "ok"}
    bad = "".join(f", {number} {name}" for name, number in failed.items())
    trials = f"{progress.trials}{of} trials{bad}, " if plan.trials is None or plan.trials else ""
    runs = f", proof run {progress.proof_runs} of at most {plan.proof_runs}"
    spent = format_duration(round(progress.spent_s))
    return f"{trials}{spent}{runs if progress.proving else ''}"


def _lines_table(progress: TuneProgress) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("run", "outcome", progress.plan.objective.metric, "x baseline", "time", "options"):
        right = name not in ("run", "outcome", "options")
        table.add_column(name, justify="right" if right else "left", no_wrap=True)
    for line in progress.lines:
        style = "green" if line.best else ("" if line.outcome == "ok" else "red")
        table.add_row(
            line.name,
            line.outcome,
            "" if line.value is None else number(line.value),
            "" if line.ratio is None else f"{line.ratio:.2f}",
            format_duration(line.wall_s),
            line.why or line.options,
            style=style,
        )
    return table


def _print_line(plan: Plan) -> Callable[[RunLine], None]:
    def print_line(line: RunLine) -> None:
        value = "" if line.value is None else f" {shown_value(plan.objective.metric, line.value)}"
        ratio = "" if line.ratio is None else f" {line.ratio:.2f}x"
        best = " best" if line.best else ""
        text = f"{line.name}: {line.outcome}{value}{ratio}{best} {line.options}"
        why = f": {line.why}" if line.why else ""
        _print(f"{text.rstrip()} ({format_duration(line.wall_s)}){why}")

    return print_line


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# --- A progress bar for work of which the number of steps is known, once it takes a while

SILENT_S = 2.0


@contextmanager
def counted_progress(
    label: str,
    *,
    console: Console | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Callable[[int, int], None]]:
    """What is yielded is told how many steps of how many are done; it shows them on stderr.

    Nothing is shown in the first two seconds, nor where stderr is no terminal.
    """
    console = console or Console(stderr=True)
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
    task, started_s = progress.add_task(label, total=None), clock()

    def on_progress(done: int, of: int) -> None:
        progress.update(task, completed=done, total=of)
        if console.is_terminal and clock() - started_s >= SILENT_S:
            progress.start()  # starting it again changes nothing

    try:
        yield on_progress
    finally:
        # One that was not started would end with an empty line all the same.
        if progress.live.is_started:
            progress.stop()
