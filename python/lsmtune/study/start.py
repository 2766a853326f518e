"""The configurations that a study compares, made from its Spec."""

from __future__ import annotations

from collections.abc import Mapping

from lsmtune.records.config import Config, OptionValue
from lsmtune.spec import Spec


def baseline_config(spec: Spec) -> Config:
    """The baseline with the options that every run has."""
    return Config({**spec.fixed, **spec.baseline.options}, spec.baseline.label)


def candidate_config(spec: Spec, number: int, values: Mapping[str, OptionValue]) -> Config:
    """The configuration of trial `number`, which was given `values`."""
    return Config({**spec.fixed, **values}, f"{spec.path.name}#{number}")


def starting_values(spec: Spec) -> dict[str, OptionValue] | None:
    """The baseline as a point of the space, the first trial; None when it is outside.

    A parameter that the baseline leaves alone has its default, when the study file states one.
    """
    values: dict[str, OptionValue] = {}
    for parameter in spec.space.evaluation_order:
        if not all(condition.holds(values) for condition in parameter.conditions):
            continue
        value = spec.baseline.options.get(parameter.name, parameter.default)
        if value is None:
            return None
        values[parameter.name] = value
    return values if spec.space.contains(values) else None


def is_baseline(spec: Spec, config: Config) -> bool:
    """Whether `config` is the baseline, in its own words or as a point of the space."""
    first = starting_values(spec)
    same = [baseline_config(spec).options]
    if first is not None:
        same.append(candidate_config(spec, 0, first).options)
    return any(config.options == options for options in same)
