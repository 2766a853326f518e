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
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lsmtune.engines.importers.base import (
    ImportedStudy,
    ImportFormat,
    ImportRequest,
    Notes,
    json_document,
    peek_json,
)
from lsmtune.engines.importers.names import Meaning
from lsmtune.engines.importers.space_builder import (
    Number,
    Numbers,
    Path,
    SpaceBuilder,
    is_number,
)
from lsmtune.errors import nearest_name

NAME = "nni-space"

# Beyond so many standard deviations from the mean a normal distribution is cut off: 6 draws in
# 100,000 lie there.
TRUNCATED_SD = 4
_INTEGER_MAX = 2**53


@dataclass(frozen=True)
class _Kind:
    """A `_type` of numbers: the words of its `_value` in order, and whether they are of the log."""

    words: tuple[str, ...]
    log: bool = False


_KINDS: Mapping[str, _Kind] = {
    "randint": _Kind(("low", "high")),
    "uniform": _Kind(("low", "high")),
    "quniform": _Kind(("low", "high", "q")),
    "loguniform": _Kind(("low", "high"), log=True),
    "qloguniform": _Kind(("low", "high", "q"), log=True),
    "normal": _Kind(("mu", "sigma")),
    "qnormal": _Kind(("mu", "sigma", "q")),
    "lognormal": _Kind(("mu", "sigma"), log=True),
    "qlognormal": _Kind(("mu", "sigma", "q"), log=True),
}
_TYPES = ("choice", *_KINDS)


def recognises(text: str) -> bool:
    """Whether it is a JSON object with an object that has `_type`."""
    values = peek_json(text, "_type").values()
    return any(isinstance(value, dict) and "_type" in value for value in values)


def read(request: ImportRequest) -> ImportedStudy:
    """The space. Raises InputError for what NNI would refuse, too."""
    document = json_document(request.text, request.source)
    notes = Notes(request.source)
    builder = SpaceBuilder(document, notes, request.engine)
    add_space(builder, document.data, ())
    return ImportedStudy(builder.fields(), notes.taken(), builder.comments)


def add_space(
    builder: SpaceBuilder,
    space: Mapping[str, Any],
    path: Path,
    prefix: str = "",
    when: Mapping[str, Any] | None = None,
) -> None:
    """Adds the parameters of `space`, which stands at `path` of the document.

    Those of a nested space are active only under `when`. An engine's option keeps its name there;
    a program's own parameter is named `prefix` (parameter, branch) and its name, joined by `_`.
    """
    for name, spec in space.items():
        if name == "_name" and path:
            continue
        here = (*path, name)
        if not isinstance(spec, dict) or "_type" not in spec or "_value" not in spec:
            raise builder.document.error(
                here, found=_json(spec), allowed="{_type: ..., _value: [...]}"
            )
        kind, values = spec["_type"], spec["_value"]
        if kind not in _TYPES:
            nearest = nearest_name(str(kind), _TYPES)
            allowed = ", ".join(_TYPES)
            raise builder.document.error(
                (*here, "_type"), found=kind, allowed=allowed, nearest=nearest
            )
        if not isinstance(values, list) or not values:
            allowed = "a list that is not empty"
            raise builder.document.error((*here, "_value"), found=_json(values), allowed=allowed)
        if when and builder.also_active(here, name, spec, when):
            continue
        meaning = builder.find(here, name, f"{prefix}{name}")
        if meaning is None:
            continue
        if prefix:
            shown = " and ".join(f"{other} is {value}" for other, value in (when or {}).items())
            builder.note(here, f"{meaning.option.name} is active only while {shown}")
        if kind != "choice":
            numbers = _numbers(builder, here, kind, values)
            builder.add_numbers(here, meaning, numbers, when)
        elif any(isinstance(value, dict) for value in values):
            _add_nested(builder, here, meaning, values, when)
        else:
            builder.add_choices((*here, "_value"), meaning, values, when)


def _json(value: object) -> str:
    return json.dumps(value, default=str)[:60]


def _add_nested(
    builder: SpaceBuilder,
    path: Path,
    meaning: Meaning,
    values: list[Any],
    when: Mapping[str, Any] | None,
) -> None:
    """A choice of branches, each with a space of its own."""
    names = []
    for index, branch in enumerate(values):
        here = (*path, "_value", index)
        if not isinstance(branch, dict) or not isinstance(branch.get("_name"), str):
            allowed = "an object with _name in every branch of a nested choice"
            raise builder.document.error(here, found=_json(branch), allowed=allowed)
        names.append(branch["_name"])
    if len(set(names)) != len(names):
        raise builder.document.error(path, why="two branches of one name", found=", ".join(names))
    taken = [builder.choice((*path, "_value", i), meaning, name) for i, name in enumerate(names)]
    option = meaning.option
    builder.add_choices(
        path, Meaning(option), [value for value in taken if value is not None], when
    )
    for index, (branch, value) in enumerate(zip(values, taken, strict=True)):
        if value is None:
            continue
        # With one branch left there is nothing to depend on.
        inner = {option.name: value} if option.name in builder.space else when
        prefix = f"{option.name}_{branch['_name']}_"
        add_space(builder, branch, (*path, "_value", index), prefix, inner)


def _numbers(builder: SpaceBuilder, path: Path, name: str, values: list[Any]) -> Numbers:
    """The range or distribution that a kind of numbers and its `_value` mean."""
    kind, place = _KINDS[name], (*path, "_value")
    if len(values) != len(kind.words) or not all(map(_is_usable, values)):
        allowed = f"[{', '.join(kind.words)}] of finite numbers"
        raise builder.document.error(place, found=_json(values), allowed=allowed)
    wrong = _wrong(kind, values)
    if wrong is not None:
        index, allowed = wrong
        raise builder.document.error((*place, index), found=values[index], allowed=allowed)
    if "mu" in kind.words:
        return _distribution(builder, path, kind, values)
    if name == "randint":
        if not all(isinstance(value, int) for value in values):
            raise builder.document.error(place, found=_json(values), allowed="whole numbers")
        return Numbers(values[0], values[1] - 1, integer=True)
    if "q" in kind.words:
        return _rounded(builder, path, kind, values)
    return Numbers(values[0], values[1], integer=False, log=kind.log)


def _is_usable(value: object) -> bool:
    return is_number(value) and abs(value) <= _INTEGER_MAX


def _wrong(kind: _Kind, values: list[Number]) -> tuple[int, str] | None:
    """The index of the first value that cannot be, and what is allowed in its place."""
    first, second, *step = values
    if "mu" in kind.words:
        if second <= 0:
            return 1, "sigma above 0"
    elif first >= second:
        return 1, f"above {first}"
    elif kind.log and first <= 0:
        return 0, "more than 0"
    return (2, "a step above 0") if step and step[0] <= 0 else None


def _rounded(builder: SpaceBuilder, path: Path, kind: _Kind, values: list[Number]) -> Numbers:
    """The multiples of q within the bounds, and the bounds where clipping makes values of them."""
    low, high, q = (Fraction(str(value)) for value in values)
    integer = all(isinstance(value, int) for value in values)
    scale = math.log if kind.log else float
    first, last = math.ceil(low / q) * q, math.floor(high / q) * q
    width = scale(float(high)) - scale(float(low))
    specials = []
    # Below first - q/2 a value is rounded away and clipped back to the bound; likewise above.
    if first > low and first - q / 2 > low:
        weight = (scale(float(first - q / 2)) - scale(float(low))) / width
        specials.append((_plain(low, integer), weight))
    if last < high and last + q / 2 < high:
        weight = (scale(float(high)) - scale(float(last + q / 2))) / width
        specials.append((_plain(high, integer), weight))
    if first > last:
        return _without_multiple(values, float(last + q / 2), integer)
    for value, _ in specials:
        text = f"its bound {value}, no multiple of {values[2]}, is a value by clipping: special"
        builder.note(path, text)
    builder.note(path, "NNI draws its ends about half as often as the values between; not here")
    if kind.log and not integer:
        text = f"its step of {values[2]} is left out: a log scale of floats has no steps"
        builder.note(path, text)
        return Numbers(values[0], values[1], integer=False, log=True)
    return Numbers(
        _plain(first, integer),
        _plain(last, integer),
        integer=integer,
        log=kind.log,
        step=_plain(q, integer),
        specials=tuple((value, float(f"{weight:.6g}")) for value, weight in specials),
    )


def _without_multiple(values: list[Number], turn: float, integer: bool) -> Numbers:
    """No multiple lies within: rounding goes out of the bounds, below `turn` or above, and back."""
    low, high = values[0], values[1]
    if turn <= low or turn >= high:
        only = high if turn <= low else low
        return Numbers(only, only, integer=integer)
    return Numbers(low, low, integer=integer, specials=((high, 0.5),))


def _plain(number: Fraction, integer: bool) -> Number:
    return int(number) if integer else float(number)


def _distribution(builder: SpaceBuilder, path: Path, kind: _Kind, values: list[Number]) -> Numbers:
    """A distribution without bounds, cut off far out; on the multiples of a step, if any."""
    mean, sd, *step = values
    low, high = mean - TRUNCATED_SD * sd, mean + TRUNCATED_SD * sd
    if kind.log:
        try:
            low, high = math.exp(low), math.exp(high)
        except OverflowError:
            high = math.inf
        if high > _INTEGER_MAX:
            allowed = "mu and sigma of the logarithm, whose values stay below 2^53"
            shown = _json(values)
            raise builder.document.error((*path, "_value"), found=shown, allowed=allowed)
    integer = bool(step) and isinstance(step[0], int)
    ends: tuple[Number, Number] = (float(f"{low:.6g}"), float(f"{high:.6g}"))
    if step:
        q = Fraction(str(step[0]))
        first, last = math.ceil(Fraction(low) / q), math.floor(Fraction(high) / q)
        if kind.log:
            first = max(first, 1)  # 0 has no logarithm
        ends = (_plain(first * q, integer), _plain(max(first, last) * q, integer))
    name = "lognormal" if kind.log else "normal"
    return Numbers(
        *ends,
        integer=integer,
        step=step[0] if step else None,
        prior={"distribution": name, "mean": mean, "sd": sd},
        open_ended=True,
    )


FORMAT = ImportFormat(NAME, "a search space of NNI", recognises, read)
