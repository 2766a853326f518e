"""A progress bar for work of which the number of steps is known, once it takes a while."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

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
