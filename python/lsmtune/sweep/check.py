"""Whether the engine takes the options of every cell, found out before hours are spent on some."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path

from lsmtune.records.measurement import Measurement, Outcome
from lsmtune.records.request import Limits, RunRequest
from lsmtune.records.workload import PageCache, Phase, PhaseKind
from lsmtune.runners.base import Runner
from lsmtune.storage.scratch import run_directory
from lsmtune.storage.trouble import explained
from lsmtune.sweep.grid import GridCell

# An engine that hangs over one put is no refusal: its runs say so themselves.
_DEADLINE_S = 30.0
_ONE_PUT = (Phase("one put", PhaseKind.MEASURE, "fillseq", operations_per_thread=1),)


def first_refused(
    cells: Iterable[GridCell],
    known: Collection[str],
    runner: Runner,
    limits: Limits,
    parent: Path,
    cancel: threading.Event,
) -> tuple[GridCell, Measurement] | None:
    """The first cell of which the engine refuses the options, with what it said; None if none is.

    Each assignment of options is tried once with a single put, in a scratch folder under `parent`;
    those of the cells named in `known` have run already. The first is tried even where it has no
    options, because a driver of another version refuses every request.
    """
    tried = {_options(cell) for cell in cells if cell.cell.name in known}
    for cell in cells:
        if _options(cell) in tried or cancel.is_set():
            continue
        tried.add(_options(cell))
        measurement = _one_put(cell, runner, limits, parent, cancel)
        if measurement.outcome is Outcome.INVALID:
            return cell, measurement
    return None


def _options(cell: GridCell) -> tuple[tuple[str, str], ...]:
    return tuple(cell.cell.config.engine_options().items())


def _one_put(
    cell: GridCell, runner: Runner, limits: Limits, parent: Path, cancel: threading.Event
) -> Measurement:
    limits = replace(limits, deadline_s=min(limits.deadline_s, _DEADLINE_S))
    one = replace(cell.cell.workload, phases=_ONE_PUT, num=1, page_cache=PageCache.WARM)
    with explained(parent):
        parent.mkdir(parents=True, exist_ok=True)
        with run_directory(parent) as directory:
            request = RunRequest(
                cell.cell.engine, cell.cell.config, one, 0, directory, limits, verify_keys=0
            )
            return runner.run(request, None, cancel)
