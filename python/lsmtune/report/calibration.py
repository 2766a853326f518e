"""A calibration as a document and for people: what noise hides, and what a proof would take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lsmtune.experiment.run_length import scaled_num
from lsmtune.model.codec import encode
from lsmtune.proof.calibration import (
    PAIRS_LEAST,
    Calibration,
    pairs_for,
    pairs_within,
    smallest_effect,
)
from lsmtune.proof.standalone import CalibrationRequest
from lsmtune.report.document import (
    NOT_KNOWN,
    Block,
    Notice,
    Notices,
    Paragraph,
    Table,
    numbers,
    words,
)
from lsmtune.report.words import count, deviation
from lsmtune.units import format_duration
from lsmtune.workloads.stated import size_advice

BUDGETS_S = (60, 600, 3600)
EFFECTS = (0.05, 0.01)
CONFIDENCE = 0.95
_HARDLY_LOG_SD = 0.001
_CAPTION = "how much runs and pairs of runs vary, and the smallest difference provable in a time:"


def calibration_document(
    asked: CalibrationRequest, calibrations: Sequence[Calibration]
) -> dict[str, object]:
    """What `doctor --json` has under `calibration`."""
    return {
        "engine": encode(asked.engine),
        "workload": encode(asked.workload),
        "options": encode(asked.config.options),
        "metric": asked.goal.metric,
        "confidence": CONFIDENCE,
        "methods": [
            {
                "method": each.method.value,
                "pairs": each.pairs,
                "seconds_per_pair": each.seconds_per_pair,
                "why": each.why,
                "metrics": {name: _metric_document(each, name) for name in each.metrics},
            }
            for each in calibrations
        ],
        "num_recommended": _num(asked, calibrations),
        "warnings": _warnings(calibrations),
    }


def _provable(calibration: Calibration, metric: str) -> Iterator[tuple[float, int, float | None]]:
    """For each of BUDGETS_S, how many pairs it holds, and the smallest effect that they show."""
    for budget_s in BUDGETS_S:
        pairs = pairs_within(calibration, budget_s)
        yield budget_s, pairs, smallest_effect(calibration, metric, pairs, CONFIDENCE)


def _needed(
    calibration: Calibration, metric: str
) -> Iterator[tuple[float, int | None, float | None]]:
    """For each of EFFECTS, how many pairs show it and in which time; None where not known."""
    pair_s = calibration.seconds_per_pair
    for effect in EFFECTS:
        pairs = pairs_for(calibration, metric, effect, CONFIDENCE)
        yield effect, pairs, None if pairs is None or pair_s is None else pairs * pair_s


def _metric_document(calibration: Calibration, name: str) -> dict[str, object]:
    return {
        **encode(calibration.metrics[name]),
        "provable": [
            {"budget_s": budget_s, "pairs": pairs, "smallest_effect": effect}
            for budget_s, pairs, effect in _provable(calibration, name)
        ],
        "needed": [
            {"effect": effect, "pairs": pairs, "budget_s": time_s}
            for effect, pairs, time_s in _needed(calibration, name)
        ],
    }


def calibration_view(asked: CalibrationRequest, calibrations: Sequence[Calibration]) -> list[Block]:
    """A table for each method, then what to do about it."""
    engine, blocks = asked.engine, list[Block]()
    for each in calibrations:
        pair_s = each.seconds_per_pair
        time = "" if pair_s is None else f", {format_duration(pair_s)} each"
        pairs = f"{count(each.pairs, 'pair')}{time}"
        keys = f"{asked.workload.num:,} keys"
        head = f"{engine.title}, {asked.workload.name}, {keys}, by {each.method.value}: {pairs}"
        blocks.append(Paragraph(head, "title"))
        if each.why:
            blocks.append(Paragraph(f"note: {each.why}"))
        if each.pairs >= PAIRS_LEAST:
            blocks += [Paragraph(_CAPTION), *_noise(each)]
            blocks += map(Paragraph, _needed_lines(each, asked.goal.metric))
    blocks.append(Paragraph(_length(asked, calibrations)))
    blocks.append(Notices([Notice(line) for line in _warnings(calibrations)]))
    return blocks


def _noise(calibration: Calibration) -> Iterator[Block]:
    """Deviations of runs and of pairs, and the smallest difference provable in each time."""
    rows: list[tuple[str, ...]] = []
    steady: list[str] = []
    for name, noise in calibration.metrics.items():
        if max(noise.run_log_sd, noise.pair_log_sd) < _HARDLY_LOG_SD:
            steady.append(name)
            continue
        effects = [effect for _, _, effect in _provable(calibration, name)]
        lag = noise.autocorrelation
        rows.append(
            (
                name,
                deviation(noise.run_log_sd),
                deviation(noise.pair_log_sd),
                NOT_KNOWN if lag is None else f"{lag:+.2f}",
                *("nothing" if effect is None else deviation(effect) for effect in effects),
            )
        )
    times = (f"in {format_duration(budget_s)}" for budget_s in BUDGETS_S)
    columns = (*words("metric"), *numbers("runs", "pairs", "autocorr.", *times))
    yield Table(columns, rows)
    if steady:
        yield Paragraph(f"varying by less than {deviation(_HARDLY_LOG_SD)}: {', '.join(steady)}")


def _needed_lines(calibration: Calibration, metric: str) -> Iterator[str]:
    """How many pairs, and how long, for each of EFFECTS."""
    needed = []
    for effect, pairs, time_s in _needed(calibration, metric):
        if pairs is not None and time_s is not None:
            unit_s = 60 if time_s > 3600 else 1
            time = format_duration(max(1, round(time_s / unit_s)) * unit_s)
            needed.append(f"{100 * effect:.0f} % takes {pairs:,} pairs, {time}")
    if needed:
        noise = calibration.metrics[metric]
        known = f"{deviation(noise.pair_log_sd_low)} to {deviation(noise.pair_log_sd_high)}"
        yield f"to prove a difference in {metric}: {'; '.join(needed)}"
        yield f"{calibration.pairs:,} pairs tell its noise only so far: {known} (95 % confidence)"


def _length(asked: CalibrationRequest, calibrations: Sequence[Calibration]) -> str:
    num = _num(asked, calibrations)
    if num is None:
        return "run length: this workload says nothing of flushes, any length will do"
    enough = "enough flushes, and compactions into each level that holds data"
    if num <= asked.workload.num:
        return f"run length: {enough}"
    larger = size_advice(asked.workload, num, asked.parameters)
    return f"run length: at least {larger} for {enough}; then calibrate again"


def _num(asked: CalibrationRequest, calibrations: Sequence[Calibration]) -> int | None:
    """The recommended number of keys; None where runs do not say how often they flushed."""
    factors = [each.factor for each in calibrations if each.factor is not None]
    return scaled_num(asked.workload.num, max(factors)) if factors else None


def _warnings(calibrations: Sequence[Calibration]) -> list[str]:
    few = [
        f"{count(each.pairs, 'pair')} by {each.method.value} in that time: "
        f"at least {PAIRS_LEAST} show noise"
        for each in calibrations
        if each.pairs < PAIRS_LEAST
    ]
    # Runs by either method are of the same length.
    return [*few, *next((each.warnings for each in calibrations if each.pairs), ())]
