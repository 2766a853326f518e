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
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from lsmtune.engines.importers.base import (
    ImportedStudy,
    ImportFormat,
    ImportRequest,
    Notes,
    json_document,
    without_comments,
)
from lsmtune.engines.importers.names import Found
from lsmtune.engines.importers.space_parts import Number, Numbers, Path, SpaceParts
from lsmtune.errors import nearest_name

NAME = "nni-space"

# Beyond so many standard deviations from the mean a normal distribution is cut off: 6 draws in
# 100,000 lie there.
TRUNCATED_SD = 4
_INTEGER_MAX = 2**53


def recognises(text: str) -> bool:
    """Whether it is a JSON object of objects with `_type`."""
    if not text.lstrip().startswith(("{", "/")) or '"_type"' not in text:
        return False
    try:
        data = json.loads(without_comments(text))
    except (ValueError, RecursionError):
        return False
    return isinstance(data, dict) and is_space(data)


def is_space(data: Mapping[str, Any]) -> bool:
    """Whether some value of `data` is a parameter in NNI's form."""
    return any(isinstance(value, dict) and "_type" in value for value in data.values())


def read(request: ImportRequest) -> ImportedStudy:
    """The space. Raises InputError for what NNI would refuse, too."""
    document = json_document(request.text, request.source)
    notes = Notes(request.source)
    parts = SpaceParts(document, notes, request.engine)
    add_space(parts, document.data, ())
    return ImportedStudy(parts.fields(), notes.taken(), parts.comments)


def add_space(
    parts: SpaceParts,
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
            raise parts.document.error(
                here, found=_kind(spec), allowed="{_type: ..., _value: [...]}"
            )
        kind, values = spec["_type"], spec["_value"]
        if kind not in _TYPES:
            nearest = nearest_name(str(kind), _TYPES)
            allowed = ", ".join(_TYPES)
            raise parts.document.error(
                (*here, "_type"), found=kind, allowed=allowed, nearest=nearest
            )
        if not isinstance(values, list) or not values:
            allowed = "a list that is not empty"
            raise parts.document.error((*here, "_value"), found=_kind(values), allowed=allowed)
        if when and parts.also_active(here, name, spec, when):
            continue
        found = parts.find(here, name, f"{prefix}{name}")
        if found is None:
            continue
        if prefix:
            shown = " and ".join(f"{other} is {value}" for other, value in (when or {}).items())
            parts.note(here, f"{found.option.name} is active only while {shown}")
        if kind != "choice":
            numbers = _numbers(parts, here, kind, values)
            parts.add_numbers(here, found, numbers, when)
        elif any(isinstance(value, dict) for value in values):
            _add_nested(parts, here, found, values, when)
        else:
            parts.add_choices((*here, "_value"), found, values, when)


def _kind(value: object) -> str:
    return json.dumps(value, default=str)[:60]


def _add_nested(
    parts: SpaceParts, path: Path, found: Found, values: list[Any], when: Mapping[str, Any] | None
) -> None:
    """A choice of branches, each with a space of its own."""
    names = []
    for index, branch in enumerate(values):
        here = (*path, "_value", index)
        if not isinstance(branch, dict) or not isinstance(branch.get("_name"), str):
            allowed = "an object with _name in every branch of a nested choice"
            raise parts.document.error(here, found=_kind(branch), allowed=allowed)
        names.append(branch["_name"])
    if len(set(names)) != len(names):
        raise parts.document.error(path, why="two branches of one name", found=", ".join(names))
    taken = [parts.choice((*path, "_value", i), found, name) for i, name in enumerate(names)]
    option = found.option
    parts.add_choices(path, Found(option), [value for value in taken if value is not None], when)
    for index, (branch, value) in enumerate(zip(values, taken, strict=True)):
        if value is None:
            continue
        # With one branch left there is nothing to depend on.
        inner = {option.name: value} if option.name in parts.space else when
        prefix = f"{option.name}_{branch['_name']}_"
        add_space(parts, branch, (*path, "_value", index), prefix, inner)


def _numbers(parts: SpaceParts, path: Path, kind: str, values: list[Any]) -> Numbers:
    want = 3 if kind.startswith("q") else 2
    place = (*path, "_value")
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    if len(values) != want or len(numbers) != want or not all(map(_usable, numbers)):
        shape = "[mu, sigma" if "normal" in kind else "[low, high"
        allowed = f"{shape}{', q' if want == 3 else ''}] of finite numbers"
        raise parts.document.error(place, found=_kind(values), allowed=allowed)
    if "normal" in kind:
        if numbers[1] <= 0:
            raise parts.document.error((*place, 1), found=numbers[1], allowed="sigma above 0")
    elif numbers[0] >= numbers[1]:
        allowed = f"above {numbers[0]}"
        raise parts.document.error((*place, 1), found=numbers[1], allowed=allowed)
    elif "log" in kind and numbers[0] <= 0:
        raise parts.document.error((*place, 0), found=numbers[0], allowed="more than 0")
    if want == 3 and numbers[2] <= 0:
        raise parts.document.error((*place, 2), found=numbers[2], allowed="a step above 0")
    return _TYPES[kind](parts, path, numbers)


def _usable(number: Number) -> bool:
    return math.isfinite(number) and abs(number) <= _INTEGER_MAX


def _randint(parts: SpaceParts, path: Path, values: list[Number]) -> Numbers:
    low, upper = values
    if not isinstance(low, int) or not isinstance(upper, int):
        raise parts.document.error((*path, "_value"), found=_kind(values), allowed="whole numbers")
    return Numbers(low, upper - 1, integer=True)


def _uniform(_parts: SpaceParts, _path: Path, values: list[Number]) -> Numbers:
    return Numbers(values[0], values[1], integer=False)


def _loguniform(_parts: SpaceParts, _path: Path, values: list[Number]) -> Numbers:
    return Numbers(values[0], values[1], integer=False, log=True)


def _quniform(parts: SpaceParts, path: Path, values: list[Number]) -> Numbers:
    return _rounded(parts, path, values, float)


def _qloguniform(parts: SpaceParts, path: Path, values: list[Number]) -> Numbers:
    return _rounded(parts, path, values, math.log)


def _rounded(
    parts: SpaceParts, path: Path, values: list[Number], scale: Callable[[Number], float]
) -> Numbers:
    """The multiples of q within the bounds, and the bounds where clipping makes values of them."""
    low, high, q = (Fraction(str(value)) for value in values)
    integer = all(isinstance(value, int) for value in values)
    log = scale(math.e) == 1.0
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
        parts.note(path, text)
    parts.note(path, "NNI draws its ends about half as often as the values between; not here")
    if log and not integer:
        text = f"its step of {values[2]} is left out: a log scale of floats has no steps"
        parts.note(path, text)
        return Numbers(values[0], values[1], integer=False, log=True)
    return Numbers(
        _plain(first, integer),
        _plain(last, integer),
        integer=integer,
        log=log,
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


def _normal(_parts: SpaceParts, _path: Path, values: list[Number]) -> Numbers:
    mean, sd, *step = values
    low, high = mean - TRUNCATED_SD * sd, mean + TRUNCATED_SD * sd
    prior = {"distribution": "normal", "mean": mean, "sd": sd}
    return _truncated(low, high, prior, step)


def _lognormal(parts: SpaceParts, path: Path, values: list[Number]) -> Numbers:
    mean, sd, *step = values
    try:
        low = math.exp(mean - TRUNCATED_SD * sd)
        high = math.exp(mean + TRUNCATED_SD * sd)
    except OverflowError:
        high = math.inf
    if high > _INTEGER_MAX:
        allowed = "mu and sigma of the logarithm, whose values stay below 2^53"
        raise parts.document.error((*path, "_value"), found=_kind(values), allowed=allowed)
    prior = {"distribution": "lognormal", "mean": mean, "sd": sd}
    return _truncated(low, high, prior, step)


def _truncated(
    low: float,
    high: float,
    prior: dict[str, Any],
    step: list[Number],
) -> Numbers:
    """A distribution without bounds, cut off far out; on the multiples of a step, if any."""
    integer = bool(step) and isinstance(step[0], int)
    ends: tuple[Number, Number] = (float(f"{low:.6g}"), float(f"{high:.6g}"))
    if step:
        q = Fraction(str(step[0]))
        first, last = math.ceil(Fraction(low) / q), math.floor(Fraction(high) / q)
        if prior["distribution"] == "lognormal":
            first = max(first, 1)  # 0 has no logarithm
        ends = (_plain(first * q, integer), _plain(max(first, last) * q, integer))
    return Numbers(
        *ends, integer=integer, step=step[0] if step else None, prior=prior, open_ended=True
    )


_Maker = Callable[[SpaceParts, Path, list[Number]], Numbers]


def _choice(parts: SpaceParts, path: Path, values: list[Number]) -> Numbers:
    raise parts.document.error(path, found=_kind(values), why="a choice is not a range")


_TYPES: Mapping[str, _Maker] = {
    "choice": _choice,
    "randint": _randint,
    "uniform": _uniform,
    "quniform": _quniform,
    "loguniform": _loguniform,
    "qloguniform": _qloguniform,
    "normal": _normal,
    "qnormal": _normal,
    "lognormal": _lognormal,
    "qlognormal": _lognormal,
}

FORMAT = ImportFormat(NAME, "a search space of NNI", recognises, read)
