"""The rate of a trace over time, as a shape that an open loop can follow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lsmtune.records.workload import SineRate, StepRate
from lsmtune.stats.fitting import fit_sine
from lsmtune.stats.goodness import explained_share
from lsmtune.traces.part import FittedPart
from lsmtune.traces.summary import TraceSummary

Array = NDArray[np.float64]

# A shape has to explain this part of the rate's variance; what it does not is noise, or another.
UNEXPLAINED_LIMIT = 0.5
# What is called a sine has to be one: any slow change looks a little like part of a wave.
_SINE_LIMIT = 0.3
STEPS_MAX = 48
_FEWEST_WINDOWS = 8
# Rates that scatter less than this around their mean are a constant rate to any reader.
_CONSTANT_SPREAD = 0.05


@dataclass(frozen=True)
class RateFit:
    """The rate as an open loop follows it: a shape, or a constant one; None where unknown."""

    shape: SineRate | StepRate | None
    constant_ops_s: float | None
    part: FittedPart


def fit_rate(summary: TraceSummary) -> RateFit:
    """The simplest shape that explains how the rate of a trace changes.

    A sine, else steps of equal length, else the mean. Of less than eight windows, the mean.
    """
    times_s, rates = window_rates(summary)
    mean = summary.operations / summary.duration_s if summary.duration_s > 0 else None
    if mean is None or len(rates) < _FEWEST_WINDOWS:
        return RateFit(None, mean, _part("the mean: too short for a shape", 0.0))
    if float(rates.std()) <= _CONSTANT_SPREAD * float(rates.mean()):
        return RateFit(None, _rounded(mean), _part(f"constant: {mean:.6g} ops/s", 0.0))
    wave = fit_sine(times_s, rates)
    turns = (times_s[-1] - times_s[0]) / wave.period_s
    if turns >= 1.0 and 1.0 - wave.explained <= _SINE_LIMIT and wave.amplitude <= wave.mean:
        shape = SineRate(
            *(_rounded(v) for v in (wave.mean, wave.amplitude, wave.period_s, wave.offset_s))
        )
        words = (
            f"sine: mean {shape.mean_ops_s} ops/s, amplitude {shape.amplitude_ops_s} ops/s, "
            f"period {shape.period_s} s, offset {shape.offset_s} s"
        )
        return RateFit(
            shape, None, _part(words, 1.0 - wave.explained, times_s, rates, wave.at(times_s))
        )
    steps, modelled = _steps(times_s, rates)
    unexplained = 1.0 - explained_share(rates, modelled)
    if unexplained <= UNEXPLAINED_LIMIT:
        words = f"{len(steps.steps)} steps of {steps.steps[0][0]:g} s"
        return RateFit(steps, None, _part(words, unexplained, times_s, rates, modelled))
    constant = np.full_like(rates, mean)
    words = f"constant: {mean:.6g} ops/s"
    return RateFit(None, _rounded(mean), _part(words, 1.0, times_s, rates, constant))


def window_rates(summary: TraceSummary) -> tuple[Array, Array]:
    """The middle of each whole window, in seconds from the first record, and its rate in ops/s."""
    window_s = summary.windows.window_s
    counts = np.array([step[0] + step[1] + step[2] for step in summary.windows.steps], float)
    # The last window ends after the last record.
    whole = counts[: max(len(counts) - 1, 0)]
    times_s = (np.arange(len(whole), dtype=np.float64) + 0.5) * window_s
    return times_s, whole / window_s


def _steps(times_s: Array, rates: Array) -> tuple[StepRate, Array]:
    """Steps of as many windows each as leave at most 48 of them."""
    each = -(-len(rates) // STEPS_MAX)
    group = np.arange(len(rates)) // each
    sums, counts = np.bincount(group, rates), np.bincount(group)
    window_s = float(times_s[1] - times_s[0])
    means = sums / counts
    pairs = zip((counts * window_s).tolist(), means.tolist(), strict=True)
    steps = StepRate(tuple((_rounded(s), _rounded(rate)) for s, rate in pairs))
    return steps, np.asarray(means[group], dtype=np.float64)


def _part(
    model: str,
    unexplained: float,
    times_s: Array | None = None,
    rates: Array | None = None,
    modelled: Array | None = None,
) -> FittedPart:
    rows: tuple[tuple[float, float, float], ...] = ()
    if times_s is not None and rates is not None and modelled is not None:
        rows = tuple(zip(times_s.tolist(), rates.tolist(), modelled.tolist(), strict=True))
    warnings: tuple[str, ...] = ()
    if unexplained > UNEXPLAINED_LIMIT:
        warnings = ("rate: it changes in a way that neither a sine nor steps explain",)
    distances = (("unexplained_share", unexplained),)
    return FittedPart("rate", model, distances, UNEXPLAINED_LIMIT, warnings, rows)


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
