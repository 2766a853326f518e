"""NNI's search space: `search_space.json`, and `searchSpace` of an experiment's configuration.

What the types mean is NNI's `nni/parameter_expressions.py` and `nni/common/hpo_utils/formatting.py`
(v1.9 and v3.0 agree): `randint` excludes its upper bound; `quniform` and `qloguniform` are
clip(round(x / q) * q, low, high), so that a bound which is no multiple of q is a value too, of its
own probability, if x can be rounded past the multiple next to it; `qnormal` and `qlognormal` are
round(x / q) * q without bounds; mu and sigma of the log kinds are those of the logarithm.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from lsmtune.engines.formats.base import (
    ImportedStudy,
    ImportFormat,
    ImportRequest,
    Notes,
    json_document,
    peek_json,
)
from lsmtune.engines.formats.space_builder import (
    Number,
    Numbers,
    Place,
    SpaceBuilder,
    When,
    is_number,
)
from lsmtune.engines.formats.spelling import KnownOption
from lsmtune.space.range import INTEGER_MAX

# Beyond so many standard deviations from the mean a normal distribution is cut off: 6 draws in
# 100,000 lie there.
TRUNCATED_SD = 4

# A `_type` of numbers: the words of its `_value` in order.
_WORDS: Mapping[str, tuple[str, ...]] = {
    "randint": ("low", "high"),
    "uniform": ("low", "high"),
    "quniform": ("low", "high", "q"),
    "loguniform": ("low", "high"),
    "qloguniform": ("low", "high", "q"),
    "normal": ("mu", "sigma"),
    "qnormal": ("mu", "sigma", "q"),
    "lognormal": ("mu", "sigma"),
    "qlognormal": ("mu", "sigma", "q"),
}
_TYPES = ("choice", *_WORDS)


def recognises(text: str) -> bool:
    """Whether `text` is a JSON object with an object that has `_type`."""
    values = peek_json(text, "_type").values()
    return any(isinstance(value, dict) and "_type" in value for value in values)


def read(request: ImportRequest) -> ImportedStudy:
    """The space. Raises InputError for what NNI would refuse, too."""
    document = json_document(request.text, request.source)
    builder = SpaceBuilder(document, Notes(request.source), request.engine)
    add_space(builder, document.data, ())
    return ImportedStudy(builder.fields(), builder.notes.taken(), builder.comments)


def add_space(
    builder: SpaceBuilder,
    space: Mapping[str, Any],
    path: Place,
    prefix: str = "",
    when: When = None,
) -> None:
    """Adds the parameters of `space`, which stands at `path` of the document.

    Those of a nested space are active only under `when`. An engine's option keeps its name there;
    a program's own parameter is named `prefix` (parameter, branch) and its name, joined by `_`.
    """
    error = builder.document.error
    for name, spec in space.items():
        if name == "_name" and path:
            continue
        here = (*path, name)
        if not isinstance(spec, dict) or "_type" not in spec or "_value" not in spec:
            raise error(here, found=_json(spec), allowed="{_type: ..., _value: [...]}")
        kind, values = spec["_type"], spec["_value"]
        if kind not in _TYPES:
            raise error((*here, "_type"), found=kind, known=_TYPES)
        if not isinstance(values, list) or not values:
            raise error((*here, "_value"), found=_json(values), allowed="a list that is not empty")
        if when and builder.also_active(here, name, spec, when):
            continue
        option = builder.find(here, name, f"{prefix}{name}")
        if option is None:
            continue
        if prefix:
            shown = " and ".join(f"{parent} is {value}" for parent, value in (when or {}).items())
            builder.note(here, f"{option.name} is active only while {shown}")
        if kind != "choice":
            builder.add_numbers(here, option, _numbers(builder, here, kind, values), when)
        elif any(isinstance(value, dict) for value in values):
            _add_nested(builder, here, option, values, when)
        else:
            builder.add_choices((*here, "_value"), option, values, when)


def _json(value: object) -> str:
    return json.dumps(value, default=str)[:60]


def _add_nested(
    builder: SpaceBuilder, path: Place, option: KnownOption, values: list[Any], when: When
) -> None:
    """A choice of branches, each with a space of its own."""
    names = []
    for index, branch in enumerate(values):
        if not isinstance(branch, dict) or not isinstance(branch.get("_name"), str):
            allowed = "an object with _name in every branch of a nested choice"
            place = (*path, "_value", index)
            raise builder.document.error(place, found=_json(branch), allowed=allowed)
        names.append(branch["_name"])
    if len(set(names)) != len(names):
        raise builder.document.error(path, why="two branches of one name", found=", ".join(names))
    taken = [builder.choice((*path, "_value", i), option, name) for i, name in enumerate(names)]
    choices = [value for value in taken if value is not None]
    builder.add_choices(path, replace(option, spelling=None), choices, when)
    for index, (branch, value) in enumerate(zip(values, taken, strict=True)):
        if value is not None:
            # With one branch left there is nothing to depend on.
            inner = {option.name: value} if option.name in builder.space else when
            prefix = f"{option.name}_{branch['_name']}_"
            add_space(builder, branch, (*path, "_value", index), prefix, inner)


def _numbers(builder: SpaceBuilder, path: Place, kind: str, values: list[Any]) -> Numbers:
    """The range or distribution that a kind of numbers and its `_value` mean."""
    words, log, place = _WORDS[kind], "log" in kind, (*path, "_value")
    error = builder.document.error
    if len(values) != len(words) or not all(
        is_number(value) and abs(value) <= INTEGER_MAX for value in values
    ):
        allowed = f"[{', '.join(words)}] of finite numbers"
        raise error(place, found=_json(values), allowed=allowed)
    first, second, *step = values
    # The first of these that holds: the index of the value that cannot be, and what it has to be.
    is_normal = "mu" in words
    for is_wrong, index, allowed in (
        (is_normal and second <= 0, 1, "sigma above 0"),
        (not is_normal and first >= second, 1, f"above {first}"),
        (not is_normal and log and first <= 0, 0, "more than 0"),
        (step and step[0] <= 0, 2, "a step above 0"),
    ):
        if is_wrong:
            raise error((*place, index), found=values[index], allowed=allowed)
    if is_normal:
        return _distribution(builder, path, values, log)
    if kind == "randint":
        if not all(isinstance(value, int) for value in values):
            raise error(place, found=_json(values), allowed="whole numbers")
        return Numbers(first, second - 1, integer=True)
    if step:
        return _rounded(builder, path, values, log)
    return Numbers(first, second, integer=False, log=log)


def _rounded(builder: SpaceBuilder, path: Place, values: list[Number], log: bool) -> Numbers:
    """The multiples of q within the bounds, and the bounds where clipping makes values of them."""
    low, high, q = (Fraction(str(value)) for value in values)
    integer = all(isinstance(value, int) for value in values)
    plain: type[int] | type[float] = int if integer else float
    scale = math.log if log else float
    first, last = math.ceil(low / q) * q, math.floor(high / q) * q
    if first > last:
        # No multiple lies within: rounding goes out of the bounds, above or below, and back.
        turn = float(last + q / 2)
        if values[0] < turn < values[1]:
            return Numbers(values[0], values[0], integer=integer, specials=((values[1], 0.5),))
        only = values[1] if turn <= values[0] else values[0]
        return Numbers(only, only, integer=integer)
    if log and not integer:
        text = f"its step of {values[2]} is left out: a log scale of floats has no steps"
        builder.note(path, text)
        return Numbers(values[0], values[1], integer=False, log=True)
    width = scale(float(high)) - scale(float(low))
    specials = []
    # Below first - q/2 a value is rounded away and clipped back to the bound; likewise above.
    for end, clipped in ((low, first - q / 2), (high, last + q / 2)):
        if low < clipped < high:
            weight = abs(scale(float(clipped)) - scale(float(end))) / width
            specials.append((plain(end), float(f"{weight:.6g}")))
            bound = f"its bound {plain(end)}, no multiple of {values[2]}"
            builder.note(path, f"{bound}, is a value by clipping: special")
    builder.note(path, "NNI draws its ends about half as often as the values between; not here")
    return Numbers(
        plain(first), plain(last), integer=integer, log=log, step=plain(q), specials=tuple(specials)
    )


def _distribution(builder: SpaceBuilder, path: Place, values: list[Number], log: bool) -> Numbers:
    """A distribution without bounds, cut off far out; on the multiples of a step, if any."""
    mean, sd, *step = values
    low, high = mean - TRUNCATED_SD * sd, mean + TRUNCATED_SD * sd
    if log:
        try:
            low, high = math.exp(low), math.exp(high)
        except OverflowError:
            high = math.inf
        if high > INTEGER_MAX:
            allowed = "mu and sigma of the logarithm, whose values stay below 2^53"
            place = (*path, "_value")
            raise builder.document.error(place, found=_json(values), allowed=allowed)
    integer = bool(step) and isinstance(step[0], int)
    ends: tuple[Number, Number] = (float(f"{low:.6g}"), float(f"{high:.6g}"))
    if step:
        q, plain = Fraction(str(step[0])), int if integer else float
        first, last = round(Fraction(low) / q), round(Fraction(high) / q)
        if log:
            first = max(first, 1)  # 0 has no logarithm
        ends = (plain(first * q), plain(max(first, last) * q))
    name = "lognormal" if log else "normal"
    return Numbers(
        *ends,
        integer=integer,
        step=step[0] if step else None,
        prior={"distribution": name, "mean": mean, "sd": sd},
        open_ended=True,
    )


FORMAT = ImportFormat("nni-space", "a search space of NNI", recognises, read)
