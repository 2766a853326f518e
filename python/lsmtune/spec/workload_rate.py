"""From the model of a rate that changes with time to its record."""

from __future__ import annotations

from lsmtune.errors import InputError
from lsmtune.records.workload import SineRate, StepRate
from lsmtune.spec.workload_models import STEPS_ALLOWED, PhaseModel, RateModel
from lsmtune.units import UnitError, parse_duration
from lsmtune.workloads.parameters import RATE_MAX

_OF_SINE = ("mean_ops_s", "amplitude_ops_s", "period_s", "offset_s")


def make_rate(phase: PhaseModel, source: str, field: str) -> SineRate | StepRate | None:
    """The rate of `phase`, which lies at `field`. Raises InputError for parts that do not fit."""
    model = phase.rate
    if model is None:
        return None
    place = f"{field}.rate"
    foreign = ("steps",) if model.shape == "sine" else _OF_SINE
    for name in foreign:
        if getattr(model, name) is not None:
            why = f"has no effect with shape {model.shape}"
            raise InputError(source, f"{place}.{name}", why=why)
    return _sine(model, source, place) if model.shape == "sine" else _steps(model, source, place)


def _sine(model: RateModel, source: str, place: str) -> SineRate:
    stated = {name: getattr(model, name) for name in _OF_SINE[:3]}
    for name, value in stated.items():
        if value is None:
            raise InputError(source, f"{place}.{name}", why="missing", allowed="a number above 0")
    if stated["amplitude_ops_s"] > stated["mean_ops_s"]:
        found = stated["amplitude_ops_s"]
        allowed = f"at most mean_ops_s, {stated['mean_ops_s']:g}"
        raise InputError(source, f"{place}.amplitude_ops_s", found=found, allowed=allowed)
    return SineRate(**stated, offset_s=model.offset_s or 0.0)


def _steps(model: RateModel, source: str, place: str) -> StepRate:
    if not model.steps:
        raise InputError(source, f"{place}.steps", why="missing", allowed=STEPS_ALLOWED)
    steps = tuple(
        _step(step, source, f"{place}.steps[{index}]") for index, step in enumerate(model.steps)
    )
    if all(rate == 0 for _, rate in steps):
        allowed = "one step at least with a rate above 0"
        raise InputError(source, f"{place}.steps", why="never does anything", allowed=allowed)
    return StepRate(steps)


def _step(step: list[object], source: str, place: str) -> tuple[float, float]:
    if len(step) != 2:
        raise InputError(source, place, found=step, allowed=STEPS_ALLOWED)
    time, rate = step
    try:
        duration_s = parse_duration(time)
    except UnitError as error:
        raise InputError(source, place, found=time, allowed=error.allowed) from None
    if duration_s <= 0:
        raise InputError(source, place, found=time, allowed="a time above 0")
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= RATE_MAX:
        raise InputError(source, place, found=rate, allowed=f"a rate from 0 to {RATE_MAX:.0f}")
    return duration_s, float(rate)
