"""The configurations that a study compares, made from its Spec."""

from __future__ import annotations

from collections.abc import Mapping

from lsmtune.records.config import Config, OptionValue
from lsmtune.spec import Spec

Defaults = Mapping[str, OptionValue]


def baseline_config(spec: Spec) -> Config:
    """The baseline with the options that every run has.

    A program of the user's own has no defaults that come into force by themselves: for it, the
    parameters' defaults are part of the baseline.
    """
    options = spec.baseline.options
    if spec.command is not None:
        options = spec.space.point_of(options) or options
    return Config({**spec.fixed, **options}, spec.baseline.label)


def candidate_config(spec: Spec, number: int, values: Mapping[str, OptionValue]) -> Config:
    """The configuration of trial `number`, which was given `values`."""
    return Config({**spec.fixed, **values}, f"{spec.path.name}#{number}")


def starting_points(spec: Spec, defaults: Defaults) -> list[tuple[str, dict[str, OptionValue]]]:
    """The configurations to try first, each with its label, as points of the space.

    The baseline, then those of `start`; none twice. `defaults` are the engine's. One that lies
    outside the space is left out (`outside` says which of `start` do).
    """
    found: list[tuple[str, dict[str, OptionValue]]] = []
    for config in (spec.baseline, *spec.start):
        point = spec.space.point_of(config.options, defaults)
        if point is not None and point not in [known for _, known in found]:
            found.append((config.label, point))
    return found


def outside(spec: Spec, defaults: Defaults) -> list[str]:
    """What of the study's `start` cannot be tried as it stands, one line each."""
    found = []
    for config in spec.start:
        why = spec.space.outside(config.options, defaults)
        if why:
            found.append(f"{config.label} lies outside the space and is not tried: {why}")
            continue
        fixed = {name for name, value in spec.fixed.items() if config.options.get(name) == value}
        known = {parameter.name for parameter in spec.space.parameters} | fixed
        others = [name for name in config.options if name not in known]
        if others:
            left = ", ".join(others)
            found.append(f"{config.label} is tried without {left}: no parameters of the space")
    return found


def is_baseline(spec: Spec, config: Config, defaults: Defaults) -> bool:
    """Whether `config` is the baseline, in its own words or as a point of the space."""
    first = spec.space.point_of(spec.baseline.options, defaults)
    same = [baseline_config(spec).options]
    if first is not None:
        same.append(candidate_config(spec, 0, first).options)
    return any(config.options == options for options in same)
