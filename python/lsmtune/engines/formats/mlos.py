"""Tunable parameters of MLOS (`mlos_bench`), JSON with comments.

What the fields mean is MLOS's `optimizers/convert_configspace.py` and, for what it hands on,
ConfigSpace 1.2: special values without weights have a half of the draws between them; the sum of
the weights and `range_weight` is taken as 1; `quantization_bins` are so many values evenly spread
over the range, on its scale, both ends among them; `mu` and `sigma` of a normal distribution are
in the parameter's own unit and cut off at the range, `beta` spans the range. On a log scale
ConfigSpace takes log(mu) for the mean and |log(low + sigma)| for the deviation of the logarithm,
and refuses bounds that are not above 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from lsmtune.engines.formats.base import (
    ImportedStudy,
    ImportFormat,
    ImportRequest,
    Notes,
    json_document,
    peek_json,
)
from lsmtune.engines.formats.space_builder import Number, Numbers, Place, SpaceBuilder, is_number
from lsmtune.errors import nearest_name
from lsmtune.model.config import OptionValue

SPECIAL_SHARE = 0.5  # of the draws, for special values without weights

_COMMON = ("description", "meta", "type", "default")
_NUMERIC = (
    "range",
    "log",
    "quantization_bins",
    "distribution",
    "special",
    "special_weights",
    "range_weight",
)
_FIELDS = {
    "int": (*_COMMON, *_NUMERIC),
    "float": (*_COMMON, *_NUMERIC),
    "categorical": (*_COMMON, "values", "values_weights"),
}
# Of a field: whether it may hold a value, and what is allowed.
_RULES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "default": (lambda value: isinstance(value, str | int | float | bool), "one value"),
    "values": (lambda values: isinstance(values, list) and bool(values), "a list of values"),
    "meta": (lambda value: value is None or isinstance(value, dict), "an object"),
    "log": (lambda value: isinstance(value, bool), "true, false"),
    "quantization_bins": (
        lambda bins: bins is None or (type(bins) is int and bins >= 2),
        "a whole number from 2",
    ),
    "special": (lambda values: isinstance(values, list), "a list of values"),
}
_DISTRIBUTIONS = {"uniform": (), "normal": ("mu", "sigma"), "beta": ("alpha", "beta")}


def recognises(text: str) -> bool:
    """Whether `text` is a JSON object of groups with `params`."""
    return any(
        isinstance(group, dict) and isinstance(group.get("params"), dict)
        for group in peek_json(text, "params").values()
    )


def read(request: ImportRequest) -> ImportedStudy:
    """The space, and the defaults as `baseline`. Raises InputError for what MLOS would refuse."""
    document = json_document(request.text, request.source)
    builder = SpaceBuilder(document, Notes(request.source), request.engine)
    defaults: dict[str, OptionValue] = {}
    for name, group in document.data.items():
        if name.startswith("$"):
            continue
        if not isinstance(group, dict):
            raise document.error((name,), found=group, allowed="an object with cost and params")
        _check_fields(builder, (name,), group, ("description", "cost", "params"))
        params, cost = group.get("params"), group.get("cost", 0)
        if not isinstance(params, dict) or not params:
            raise document.error((name, "params"), found=params, allowed="an object of parameters")
        if not is_number(cost):
            raise document.error((name, "cost"), found=cost, allowed="a number")
        if cost:
            text = f"left out: every run has a database of its own, at the same cost (was {cost})"
            builder.note((name, "cost"), text)
        for parameter, spec in params.items():
            defaults |= _parameter(builder, (name, "params", parameter), parameter, spec)
    baseline = {name: value for name, value in defaults.items() if name in builder.space}
    study = builder.fields() | {"baseline": baseline}
    return ImportedStudy(study, builder.notes.taken(), builder.comments)


def _check_fields(
    builder: SpaceBuilder, path: Place, fields: Mapping[str, Any], known: tuple[str, ...]
) -> None:
    for name in fields:
        if name not in known:
            nearest, allowed = nearest_name(name, known), ", ".join(known)
            why = "no such field"
            raise builder.document.error((*path, name), why=why, allowed=allowed, nearest=nearest)


def _parameter(
    builder: SpaceBuilder, path: Place, name: str, spec: object
) -> dict[str, OptionValue]:
    """Adds one parameter; its default by the name that it has here."""
    error = builder.document.error
    kind = spec.get("type") if isinstance(spec, dict) else spec
    if not isinstance(spec, dict) or kind not in tuple(_FIELDS):
        raise error((*path, "type"), found=kind, known=_FIELDS)
    _check_fields(builder, path, spec, _FIELDS[kind])
    for needed in ("default", "values" if kind == "categorical" else "range"):
        if needed not in spec:
            raise error((*path, needed), why="is missing")
    option = builder.find(path, name)
    if option is None:
        return {}
    for field, (is_right, allowed) in _RULES.items():
        if field in spec and not is_right(spec[field]):
            raise error((*path, field), found=spec[field], allowed=allowed)
    if spec.get("meta"):
        meta = ", ".join(f"{key} {value}" for key, value in spec["meta"].items())
        builder.note((*path, "meta"), f"left out: {meta}")
    if isinstance(spec.get("description"), str):
        builder.comments[f"space.{option.name}"] = " ".join(spec["description"].split())
    if kind == "categorical":
        weights, place = spec.get("values_weights"), (*path, "values_weights")
        if weights is not None:
            _check_weights(builder, place, weights, len(spec["values"]))
            if len(set(weights)) > 1:
                text = "left out: choices are equally likely before anything is known"
                builder.note(place, text)
        builder.add_choices((*path, "values"), option, spec["values"])
    else:
        builder.add_numbers(path, option, _numbers(builder, path, spec))
    default = builder.choice((*path, "default"), option, spec["default"])
    return {} if default is None else {option.name: default}


def _check_weights(builder: SpaceBuilder, path: Place, weights: object, count: int) -> None:
    listed = weights if isinstance(weights, list) else []
    if len(listed) != count or not all(is_number(w) and w >= 0 for w in listed):
        raise builder.document.error(path, found=weights, allowed=f"{count} numbers from 0")


def _numbers(builder: SpaceBuilder, path: Place, spec: Mapping[str, Any]) -> Numbers:
    bounds, integer = spec["range"], spec["type"] == "int"
    kind = int if integer else int | float
    if (
        not isinstance(bounds, list)
        or len(bounds) != 2
        or not all(is_number(bound) and isinstance(bound, kind) for bound in bounds)
        or bounds[0] >= bounds[1]
    ):
        allowed = f"two {'whole ' if integer else ''}numbers in order"
        raise builder.document.error((*path, "range"), found=bounds, allowed=allowed)
    bins, log = spec.get("quantization_bins"), spec.get("log", False)
    if log and bounds[0] <= 0:
        text = f"left out: a log scale cannot hold {bounds[0]}, in MLOS's optimizers either"
        builder.note((*path, "log"), text)
        log = False
    prior = _prior(builder, (*path, "distribution"), spec.get("distribution"), bounds[0], log)
    # A prior takes the place of the log scale, unless that is where the bins are.
    log = log and (prior is None or bins is not None)
    specials = _specials(builder, path, spec, integer)
    low, high = bounds
    return Numbers(low, high, integer=integer, log=log, bins=bins, specials=specials, prior=prior)


def _specials(
    builder: SpaceBuilder, path: Place, spec: Mapping[str, Any], integer: bool
) -> tuple[tuple[Number, float], ...]:
    values = spec.get("special", [])
    shares = _shares(builder, path, spec, len(values))
    specials: dict[Number, float] = {}
    for index, (value, share) in enumerate(zip(values, shares, strict=True)):
        here = (*path, "special", index)
        if not is_number(value) or (integer and not isinstance(value, int)):
            builder.note(here, f"left out: {value} is not a {'whole ' if integer else ''}number")
        elif spec["range"][0] <= value <= spec["range"][1]:
            builder.note(here, f"left out: {value} lies within the range, and is drawn from there")
        elif share <= 0:
            builder.note(here, f"left out: {value} has no weight, and would never be drawn")
        elif value in specials:
            builder.note(here, f"{value} is there already, and listed once")
        else:
            specials[value] = float(f"{share:.6g}")
    return tuple(specials.items())


def _shares(builder: SpaceBuilder, path: Place, spec: Mapping[str, Any], count: int) -> list[float]:
    """The probability of each special value."""
    weights, of_range = spec.get("special_weights"), spec.get("range_weight")
    without_weights = [SPECIAL_SHARE / count] * count if count else []
    if weights is None and of_range is None:
        return without_weights
    if weights is None or of_range is None:
        missing = "special_weights" if weights is None else "range_weight"
        why = "is missing: special_weights and range_weight go together"
        raise builder.document.error((*path, missing), why=why)
    _check_weights(builder, (*path, "special_weights"), weights, count)
    _check_weights(builder, (*path, "range_weight"), [of_range], 1)
    if of_range == 0:
        text = "0 cannot be said: the special values have a half of the draws"
        builder.note((*path, "range_weight"), text)
        return without_weights
    return [weight / (sum(weights) + of_range) for weight in weights]


def _prior(
    builder: SpaceBuilder, path: Place, given: object, low: Number, log: bool
) -> dict[str, Any] | None:
    if given is None:
        return None
    kind = given.get("type") if isinstance(given, dict) else given
    if not isinstance(given, dict) or kind not in tuple(_DISTRIBUTIONS):
        allowed = ", ".join(_DISTRIBUTIONS)
        raise builder.document.error((*path, "type"), found=kind, allowed=allowed)
    settings = given.get("params") or {}
    if not isinstance(settings, dict):
        raise builder.document.error((*path, "params"), found=settings, allowed="a mapping")
    for name in _DISTRIBUTIONS[kind]:
        value = settings.get(name)
        if not is_number(value) or (name != "mu" and value <= 0):
            allowed = "a number" if name == "mu" else "a number above 0"
            raise builder.document.error((*path, "params", name), found=value, allowed=allowed)
    if kind == "uniform":
        return None
    if kind == "beta":
        if log:
            builder.note(path, "left out: here a beta spans the range itself, not its logarithm")
            return None
        return {"distribution": "beta", "alpha": settings["alpha"], "beta": settings["beta"]}
    mean, sd = settings["mu"], settings["sigma"]
    if not log:
        return {"distribution": "normal", "mean": mean, "sd": sd}
    sd_of_log = abs(math.log(low + sd))
    if mean <= 0 or sd_of_log == 0:
        text = "left out: on a log scale mu has to be above 0, in MLOS's optimizers too"
        builder.note(path, text)
        return None
    prior = {"mean": float(f"{math.log(mean):.6g}"), "sd": float(f"{sd_of_log:.6g}")}
    return {"distribution": "lognormal", **prior}


FORMAT = ImportFormat("mlos", "tunable parameters of MLOS", recognises, read)
