"""What `doctor --calibrate` shows: a display while it runs, then a document or tables."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Group, RenderableType
from rich.text import Text

from lsmtune.cli.live import tune_display
from lsmtune.cli.output import failure
from lsmtune.cli.tune_progress import Plan, TuneProgress
from lsmtune.experiment.run_length import scaled_num
from lsmtune.experiment.store import StoredMeasurement
from lsmtune.model.codec import encode
from lsmtune.model.goal import WeightedWorkload
from lsmtune.model.measurement import Outcome
from lsmtune.proof.calibration import (
    PAIRS_LEAST,
    Calibration,
    MetricNoise,
    pairs_for,
    pairs_within,
    seconds_for,
    smallest_effect,
)
from lsmtune.proof.standalone import CalibrationRequest
from lsmtune.report.document import Table, numbers, words
from lsmtune.report.terminal import terminal_table
from lsmtune.units import format_duration
from lsmtune.workloads.stated import size_flags


class CalibrationProgress(TuneProgress):
    """Stops at a run that fails: a machine or an engine like that has to be mended first."""

    def run_finished(self, stored: StoredMeasurement) -> None:
        """As in the base class. Raises LsmtuneError, or InputError for what the user gave."""
        super().run_finished(stored)
        if stored.measurement.outcome is not Outcome.OK:
            raise failure(stored.measurement, "doctor")


@contextmanager
def calibration_display(asked: CalibrationRequest) -> Iterator[CalibrationProgress]:
    """The observer of a calibration, shown while the context lasts."""
    workloads = (WeightedWorkload(asked.workload.name, asked.workload, 1.0),)
    plan = Plan(asked.goal, workloads, trials=None, time_s=asked.time_s, pairs=0)
    with tune_display(plan, time.monotonic, observer=CalibrationProgress) as observer:
        yield observer


# --- a calibration as a document and for people: pure, nothing here is printed

BUDGETS_S = (60, 600, 3600)
EFFECTS = (0.05, 0.01)
CONFIDENCE = 0.95
_HARDLY_LOG_SD = 0.001
_CAPTION = "how much runs and pairs of runs vary, and the smallest difference provable in a time:"


def calibration_document(
    asked: CalibrationRequest, found: Sequence[Calibration]
) -> dict[str, object]:
    """What `doctor --json` has under `calibration`."""
    return {
        "engine": encode(asked.engine),
        "workload": encode(asked.workload),
        "options": encode(asked.config.options),
        "metric": asked.goal.metric,
        "confidence": CONFIDENCE,
        "methods": [_method_document(each) for each in found],
        "num_recommended": _num(asked, found),
        "warnings": _warnings(found),
    }


def _method_document(found: Calibration) -> dict[str, object]:
    return {
        "method": found.method.value,
        "pairs": found.pairs,
        "seconds_per_pair": found.seconds_per_pair,
        "why": found.why,
        "metrics": {
            name: {
                **encode(noise),
                "provable": [_provable(found, name, budget_s) for budget_s in BUDGETS_S],
                "needed": [_needed(found, name, effect) for effect in EFFECTS],
            }
            for name, noise in found.metrics.items()
        },
    }


def _provable(found: Calibration, name: str, budget_s: float) -> dict[str, object]:
    return {
        "budget_s": budget_s,
        "pairs": pairs_within(found, budget_s),
        "smallest_effect": smallest_effect(found, name, budget_s, CONFIDENCE),
    }


def _needed(found: Calibration, name: str, effect: float) -> dict[str, object]:
    return {
        "effect": effect,
        "pairs": pairs_for(found, name, effect, CONFIDENCE),
        "budget_s": seconds_for(found, name, effect, CONFIDENCE),
    }


def calibration_view(asked: CalibrationRequest, found: Sequence[Calibration]) -> RenderableType:
    """A table for each method, then what to do about it."""
    engine, parts = asked.engine, list[RenderableType]()
    for each in found:
        title = f"{engine.name} {engine.version or ''}".rstrip()
        head = f"{title}, {asked.workload.name}, {asked.workload.num:,} keys, {_pairs_text(each)}"
        parts.append(Text(head, style="bold"))
        if each.why:
            parts.append(Text(f"note: {each.why}"))
        if each.pairs >= PAIRS_LEAST:
            parts += [Text(_CAPTION), _table(each), *_steady_metrics(each)]
            parts += _repeats(each, asked.goal.metric)
    parts.append(Text(_length(asked, found)))
    parts += [Text(f"warning: {line}", style="yellow") for line in _warnings(found)]
    return Group(*parts)


def _pairs_text(found: Calibration) -> str:
    each = found.seconds_per_pair
    time = "" if each is None else f", {format_duration(each)} each"
    return f"by {found.method.value}: {found.pairs} pair{'' if found.pairs == 1 else 's'}{time}"


def _table(found: Calibration) -> RenderableType:
    """Deviations of runs and of pairs, and the smallest difference provable in each time."""
    times = (f"in {format_duration(budget_s)}" for budget_s in BUDGETS_S)
    rows: list[tuple[str, ...]] = []
    for name, noise in found.metrics.items():
        if _hardly_varies(noise):
            continue
        provable = (smallest_effect(found, name, budget_s, CONFIDENCE) for budget_s in BUDGETS_S)
        lag = noise.autocorrelation
        rows.append(
            (
                name,
                _per_cent(noise.run_log_sd),
                _per_cent(noise.pair_log_sd),
                "-" if lag is None else f"{lag:+.2f}",
                *("nothing" if effect is None else _per_cent(effect) for effect in provable),
            )
        )
    return terminal_table(
        Table((*words("metric"), *numbers("runs", "pairs", "autocorr.", *times)), rows)
    )


def _hardly_varies(noise: MetricNoise) -> bool:
    return max(noise.run_log_sd, noise.pair_log_sd) < _HARDLY_LOG_SD


def _steady_metrics(found: Calibration) -> list[RenderableType]:
    """The metrics that are not in the table."""
    names = [name for name, noise in found.metrics.items() if _hardly_varies(noise)]
    within = _per_cent(_HARDLY_LOG_SD)
    return [Text(f"varying by less than {within}: {', '.join(names)}")] if names else []


def _repeats(found: Calibration, metric: str) -> list[RenderableType]:
    """How many pairs, and how long, for each of EFFECTS."""
    parts = []
    for effect in EFFECTS:
        pairs = pairs_for(found, metric, effect, CONFIDENCE)
        time_s = seconds_for(found, metric, effect, CONFIDENCE)
        if pairs is not None and time_s is not None:
            unit_s = 60 if time_s > 3600 else 1
            time = format_duration(max(1, round(time_s / unit_s)) * unit_s)
            parts.append(f"{100 * effect:.0f} % takes {pairs:,} pairs, {time}")
    if not parts:
        return []
    noise = found.metrics[metric]
    known = f"{_per_cent(noise.pair_log_sd_low)} to {_per_cent(noise.pair_log_sd_high)}"
    return [
        Text(f"to prove a difference in {metric}: {'; '.join(parts)}"),
        Text(f"{found.pairs} pairs tell its noise only so far: {known} (95 % confidence)"),
    ]


def _length(asked: CalibrationRequest, found: Sequence[Calibration]) -> str:
    num = _num(asked, found)
    if num is None:
        return "run length: this workload says nothing of flushes, any length will do"
    if num <= asked.workload.num:
        return "run length: enough flushes, and compactions into each level that holds data"
    return (
        f"run length: at least {size_flags(asked.workload, num)} for enough flushes, and "
        "compactions into each level "
        "that holds data; then calibrate again"
    )


def _num(asked: CalibrationRequest, found: Sequence[Calibration]) -> int | None:
    """The recommended number of keys; None where runs do not say how often they flushed."""
    factors = [each.factor for each in found if each.factor is not None]
    return scaled_num(asked.workload.num, max(factors)) if factors else None


def _warnings(found: Sequence[Calibration]) -> list[str]:
    few = [
        f"{each.pairs} pair by {each.method.value} in that time: at least {PAIRS_LEAST} show noise"
        for each in found
        if each.pairs < PAIRS_LEAST
    ]
    # Runs by either method are of the same length.
    return [*few, *next((each.warnings for each in found if each.pairs), ())]


def _per_cent(share: float) -> str:
    """Two digits that matter, one below a tenth of a per cent, none below a hundredth."""
    if 0 < share < 1e-4:
        return "<0.01 %"
    if share < 1e-3:
        return f"{100 * share:.1g} %"
    return f"{100 * share:.2g} %" if share < 0.095 else f"{100 * share:,.0f} %"
