"""Live displays on a terminal of 80 columns or more, and plain lines where there is none.

All of this goes to stderr: stdout is for results.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TypeVar

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from lsmtune.cli.output import print_text
from lsmtune.cli.tune_progress import (
    PhaseProgress,
    Plan,
    RunLine,
    RunProgress,
    TuneProgress,
    better_or_worse,
)
from lsmtune.engines.differences import Difference
from lsmtune.machine.awake import Clock
from lsmtune.model.workload import PhaseKind
from lsmtune.report.differences import differences_text
from lsmtune.report.words import metric_label, quantity
from lsmtune.units import format_bytes, format_duration

_REFRESHES_PER_S = 4
_BAR_WIDTH = 20
_LEVELS = " ▁▂▃▄▅▆▇█"
_LABEL = "{:<13}"  # of a line: `best so far`, `now`
# How long a configuration in one line may be: beside a label on 80 columns, and in a log.
_BESIDE_LABEL, _IN_A_LOG = 66, 100
_NOTES = 3
_GAP, _LEAST = 2, 12  # columns of a terminal: between those of a table, and for what differs
_WARNING = "warning: "

Observer = TypeVar("Observer", bound=TuneProgress)


def live_console() -> Console | None:
    """Where a display goes that changes; None where there is nobody to watch it."""
    console = Console(stderr=True, highlight=False)
    return console if console.is_terminal and not console.is_dumb_terminal else None


@contextmanager
def bench_display(run: RunProgress, *, quiet: bool = False) -> Iterator[None]:
    """Shows `run` while the context lasts, on a terminal; nothing elsewhere."""
    console = None if quiet else live_console()
    if console is None:
        yield
        return
    above: deque[str] = deque()
    with _live(console, lambda: bench_view(run), above):
        run.put, put_after = above.append, run.put
        try:
            yield
        finally:
            run.put = put_after


@contextmanager
def tune_display(
    plan: Plan,
    clock: Clock,
    spent_before_s: float = 0.0,
    *,
    observer: type[Observer],
    quiet: bool = False,
) -> Iterator[Observer]:
    """An `observer` of a study or a proof, shown while the context lasts.

    A live table on a terminal, a line per run elsewhere. Warnings stay, also where it is `quiet`.
    """
    console = live_console()
    if console is None and not quiet:
        yield observer(plan, clock, spent_before_s, on_line=_print_line(plan), on_text=print_text)
        return
    if console is None or quiet:
        yield observer(plan, clock, spent_before_s, on_text=_warnings_to(print_text))
        return
    above: deque[str] = deque()
    progress = observer(plan, clock, spent_before_s, on_text=_warnings_to(above.append))

    def view() -> RenderableType:
        return tune_view(progress, datetime.now().astimezone(), console.width)

    with _live(console, view, above):
        yield progress


@contextmanager
def _live(
    console: Console, view: Callable[[], RenderableType], above: deque[str]
) -> Iterator[None]:
    """Shows `view` while the context lasts, below the texts that are put into `above` meanwhile.

    The thread that draws prints those, too. To draw, rich goes up by the height of what it drew
    last, and erases: of what another thread has written meanwhile it erases a part.
    """

    def print_above() -> None:
        while above:
            text = above.popleft()
            console.print(Text(text, "yellow" if text.startswith(_WARNING) else ""))

    def drawn() -> RenderableType:
        print_above()
        return view()

    display = Live(
        console=console,
        get_renderable=drawn,
        refresh_per_second=_REFRESHES_PER_S,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    try:
        with display:
            yield
    finally:
        print_above()  # what came while it ended


def bench_view(run: RunProgress) -> RenderableType:
    """The phases of one run: how far, how fast now, until when, and the last intervals."""
    table = Table(box=None, pad_edge=False)
    for name in ("phase", "done", "left", "now", "last intervals", "memory"):
        left = name in ("phase", "last intervals")
        table.add_column(name, justify="left" if left else "right", no_wrap=True)
    for phase in run.phases:
        rates, settles = phase.throughputs_ops_s, phase.phase.kind is PhaseKind.SETTLE
        cells = (
            "" if settles and not phase.finished else f"{100 * phase.share:.0f} %",
            "" if phase.left_s is None else format_duration(round(phase.left_s)),
            f"{rates[-1]:,.0f} ops/s" if rates and not phase.finished else "",
            sparkline(tuple(rates)),
            format_bytes(phase.rss_bytes) if phase.rss_bytes else "",
        )
        table.add_row(phase.phase.name, *(cells if phase.started else ("",) * len(cells)))
    return Group(_line(run.title, "bold"), table)


def sparkline(values: Sequence[float]) -> str:
    """`values` as a line of bars, the tallest for the largest."""
    top = max(values, default=0.0)
    if top <= 0:
        return ""
    return "".join(_LEVELS[round(value / top * (len(_LEVELS) - 1))] for value in values)


def tune_view(progress: TuneProgress, now: datetime, width: int) -> RenderableType:
    """How far it is and until when, the best so far, the run that is on, and the last runs.

    In `width` columns.
    """
    bar, left = Table.grid(padding=(0, 1)), progress.left_s
    until = ""
    if left is not None:
        at = now + timedelta(seconds=left)
        until = f"at most {format_duration(round(left))} left, until {at:%H:%M}"
    bar.add_row(
        ProgressBar(total=1.0, completed=progress.share, width=_BAR_WIDTH),
        f"{100 * progress.share:3.0f} %",
        until,
    )
    parts: list[RenderableType] = [bar, _line(_status(progress))]
    if progress.best:
        parts.append(_line(f"{_LABEL.format('best so far')}{progress.best}", "green"))
        parts += _below(progress.best_differs)
    if progress.run_name:
        phase = progress.current
        run = f"{progress.run_name}{'' if phase is None else _phase_text(phase)}"
        parts.append(_line(f"{_LABEL.format('now')}{run}"))
        parts += _below(progress.run_differs)
    if progress.proof_so_far:
        parts.append(_line(progress.proof_so_far, "bold"))
    parts += [_line(note) for note in progress.notes[-_NOTES:]]
    if progress.lines:
        parts.append(_lines_table(progress, width))
    return Group(*parts)


def _line(text: str, style: str = "") -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def _status(progress: TuneProgress) -> str:
    plan = progress.plan
    of = f" of {plan.trials}" if plan.trials is not None else ""
    failed = {name: number for name, number in sorted(progress.counts.items()) if name != "ok"}
    bad = "".join(f", {number} {name}" for name, number in failed.items())
    trials = f"{progress.trials}{of} trials{bad}, " if plan.trials is None or plan.trials else ""
    runs = f", proof run {progress.proof_runs} of at most {plan.proof_runs}"
    spent = format_duration(round(progress.spent_s))
    return f"{trials}{spent}{runs if progress.proving else ''}"


def _below(differs: Sequence[Difference]) -> list[RenderableType]:
    """A line of what a configuration differs in; none for the baseline."""
    options = differences_text(differs, _BESIDE_LABEL)
    return [_line(f"{_LABEL.format('')}{options}", "dim")] if options else []


def _phase_text(phase: PhaseProgress) -> str:
    rates = phase.throughputs_ops_s
    speed = f" {rates[-1]:,.0f} ops/s {sparkline(tuple(rates))}" if rates else ""
    left_s = phase.left_s or 0.0
    left = f" {format_duration(round(left_s))} left" if left_s >= 1.0 else ""
    return f": {phase.phase.name} {100 * phase.share:.0f} %{left}{speed}"


def _lines_table(progress: TuneProgress, width: int) -> Table:
    """The last runs; what each differs in has the columns that the rest leaves of `width`."""
    metric, direction = progress.plan.objective.metric, progress.plan.objective.direction
    rows: list[tuple[str, ...]] = [("run", metric_label(metric), "x baseline", "time")]
    lines = list(progress.lines)  # drawn in a thread of its own, while runs end in another one
    for line in lines:
        ratio = "" if line.ratio is None else f"{line.ratio:.2f} "
        word = "" if line.ratio is None else better_or_worse(line.ratio, direction)
        value = "" if line.value is None else quantity(metric, line.value)
        rows.append((line.name, value, f"{ratio}{word}", format_duration(line.wall_s)))
    # A proof has no ratios of single runs.
    kept = [at for at, column in enumerate(zip(*rows, strict=True)) if any(column[1:])]
    rows = [tuple(row[at] for at in kept) for row in rows]
    taken = sum(max(map(len, column)) + _GAP for column in zip(*rows, strict=True))
    left = max(width - taken, _LEAST)
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    for name in rows[0]:
        table.add_column(name, justify="left" if name == "run" else "right", no_wrap=True)
    table.add_column("differs in", no_wrap=True, max_width=left, overflow="ellipsis")
    for line, cells in zip(lines, rows[1:], strict=True):
        good = line.outcome == "ok"
        why = line.why if good else f"{line.outcome}: {line.why}".removesuffix(": ")
        detail = why or differences_text(line.differs, left)
        table.add_row(*cells, detail, style="green" if line.best else "" if good else "red")
    return table


def _print_line(plan: Plan) -> Callable[[RunLine], None]:
    """Prints a run in a line; what its configuration differs in beside the first run of it."""
    objective, printed = plan.objective, set[str]()

    def print_line(line: RunLine) -> None:
        facts = [] if line.outcome == "ok" else [f"{line.outcome}: {line.why}".removesuffix(": ")]
        facts += [] if line.value is None else [quantity(objective.metric, line.value)]
        if line.ratio is not None:
            label = metric_label(objective.metric)
            word = better_or_worse(line.ratio, objective.direction)
            facts.append(f"{line.ratio:.2f}x the baseline's {label}, {word}")
        facts += ["best so far"] if line.best else []
        facts += [line.why] if line.outcome == "ok" and line.why else []
        options = differences_text(line.differs, _IN_A_LOG)
        of = f"; {options}" if options and options not in printed else ""
        printed.add(options)
        print_text(f"{line.name}: {', '.join(facts)} ({format_duration(line.wall_s)}){of}")

    return print_line


def _warnings_to(put: Callable[[str], None]) -> Callable[[str], None]:
    def put_warning(text: str) -> None:
        if text.startswith(_WARNING):
            put(text)

    return put_warning


# --- A progress bar for work of which the number of steps is known


@contextmanager
def counted_progress(label: str, *, quiet: bool = False) -> Iterator[Callable[[int, int], None]]:
    """What is yielded is told how many steps of how many are done; a terminal shows them."""
    console = None if quiet else live_console()
    if console is None:  # before 14.3 rich's disabled bar ends with an empty line on stdout
        yield lambda _done, _of: None
        return
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as progress:
        task = progress.add_task(label, total=None)
        yield lambda done, of: progress.update(task, completed=done, total=of)
