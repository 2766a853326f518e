"""The distributions of keys and of sizes: their parameters, and the reading of what a file states.

`docs/measuring.md` says what each means. A distribution is stated as a mapping with its name under
`distribution`; one without parameters by its name alone, and a constant size by its number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import NormalDist, fmean
from typing import Any

from lsmtune.errors import InputError, nearest_name
from lsmtune.model.workload import Distribution, Number, ParameterOf, Workload
from lsmtune.units import UnitError
from lsmtune.workloads.parameter import COUNT_MAX, read_count, read_fraction, read_number, read_size

SIZE_MAX = 2**30
_LENGTH, _SIZES = "length", "sizes"


@dataclass(frozen=True)
class Part:
    """A parameter of a distribution: how it is read, what is allowed, and its JSON Schema."""

    read: Callable[[object], Number]
    allowed: str
    schema: Mapping[str, Any]
    needed: bool = True


def _not_one(value: object) -> float:
    number = float(read_number(value))
    if not 0 < number < 100 or number == 1:
        raise ValueError(value)
    return number


def _above_zero(value: object) -> float:
    number = float(read_number(value))
    if number <= 0:
        raise ValueError(value)
    return number


def _per_cent(value: object) -> float:
    number = float(read_number(value))
    if not 0 < number < 100:
        raise ValueError(value)
    return number


_NUMBER_SCHEMA = {"type": "number"}
_ABOVE_ZERO_SCHEMA = {"type": "number", "exclusiveMinimum": 0}
_SIZE_SCHEMA = {"type": ["integer", "string"]}
_ABOVE_ZERO = Part(_above_zero, "a number above 0", _ABOVE_ZERO_SCHEMA)
_ANY = Part(lambda value: float(read_number(value)), "a number", _NUMBER_SCHEMA)
_OPTIONAL = Part(_ANY.read, _ANY.allowed, _NUMBER_SCHEMA, needed=False)
_FRACTION = Part(
    read_fraction, "a number from 0 to 1", {"type": "number", "minimum": 0, "maximum": 1}
)
_SIZE = Part(read_size(0, SIZE_MAX), f"0 to {SIZE_MAX} bytes", _SIZE_SCHEMA)
_THETA = Part(_not_one, "a number above 0 that is not 1", _ABOVE_ZERO_SCHEMA)
_COUNT = Part(read_count(1, COUNT_MAX), "a whole number above 0", {"type": "integer", "minimum": 1})
_SOME = Part(_COUNT.read, _COUNT.allowed, _COUNT.schema, needed=False)
_PER_CENT = Part(
    _per_cent, "a number above 0, below 100", {**_ABOVE_ZERO_SCHEMA, "exclusiveMaximum": 100}
)

KEY_DISTRIBUTIONS: Mapping[str, Mapping[str, Part]] = {
    "uniform": {},
    "sequential": {},
    "zipfian": {"theta": _THETA},
    "scrambled_zipfian": {"theta": _THETA, "items": _SOME},
    "latest": {"theta": _THETA},
    "hotspot": {"hot_data": _FRACTION, "hot_operations": _FRACTION},
    "exponential": {"percentile": _PER_CENT, "fraction": _ABOVE_ZERO},
    "power": {"a": _ABOVE_ZERO, "b": _ABOVE_ZERO, "grains": _SOME},
    "ranges": {
        "ranges": _COUNT,
        **dict.fromkeys("abcd", _ANY),
        "key_a": _OPTIONAL,
        "key_b": _OPTIONAL,
        "key_grains": _SOME,
    },
}
SIZE_DISTRIBUTIONS: Mapping[str, Mapping[str, Part]] = {
    "constant": {"size": _SIZE},
    "uniform": {"low": _SIZE, "high": _SIZE},
    "zipfian": {"low": _SIZE, "high": _SIZE, "theta": _THETA},
    "normal": {"mean": _ANY, "sd": _ABOVE_ZERO, "low": _SIZE, "high": _SIZE},
    "pareto": {"theta": _ANY, "k": _ANY, "sigma": _ABOVE_ZERO, "low": _SIZE, "high": _SIZE},
    "row": {
        "fields": _COUNT,
        "names_bytes": _SIZE,
        _LENGTH: Part(read_number, "a distribution of sizes", {"type": "object"}),
    },
    "table": {_SIZES: Part(read_number, "a list of [size, weight]", {"type": "array"})},
}


def key_distribution(value: object, source: str, field: str) -> Distribution:
    """How keys are chosen, as a file states it. Raises InputError naming `source` and `field`."""
    return _distribution(value, KEY_DISTRIBUTIONS, source, field)


def size_distribution(value: object, source: str, field: str) -> Distribution:
    """How sizes are drawn, as a file states it. Raises InputError naming `source` and `field`."""
    if (
        isinstance(value, int | str)
        and not isinstance(value, bool)
        and value not in SIZE_DISTRIBUTIONS
    ):
        size = _read(_SIZE, value, source, field)
        return Distribution.of("constant", size=size)
    return _distribution(value, SIZE_DISTRIBUTIONS, source, field)


def distribution_document(distribution: Distribution) -> dict[str, Any]:
    """The mapping that a file states `distribution` by; the inverse of reading it."""

    def plain(value: ParameterOf) -> object:
        if isinstance(value, Distribution):
            return distribution_document(value)
        return [list(pair) for pair in value] if isinstance(value, tuple) else value

    return {
        "distribution": distribution.name,
        **{name: plain(value) for name, value in distribution.parameters},
    }


def distributions_schema(known: Mapping[str, Mapping[str, Part]]) -> dict[str, Any]:
    """The JSON Schema of a distribution among `known`."""
    stated = [
        {
            "type": "object",
            "properties": {
                "distribution": {"const": name},
                **{part: dict(what.schema) for part, what in parts.items()},
            },
            "required": ["distribution", *(part for part, what in parts.items() if what.needed)],
            "additionalProperties": False,
        }
        for name, parts in known.items()
    ]
    alone = [name for name, parts in known.items() if not parts]
    sizes = [_SIZE_SCHEMA] if known is SIZE_DISTRIBUTIONS else [{"enum": alone}]
    return {"anyOf": [*stated, *sizes]}


def _distribution(
    value: object, known: Mapping[str, Mapping[str, Part]], source: str, field: str
) -> Distribution:
    stated: Mapping[str, object] = {"distribution": value} if isinstance(value, str) else {}
    if isinstance(value, dict):
        stated = value
    elif not isinstance(value, str):
        allowed = f"a mapping with distribution: {', '.join(known)}"
        raise InputError(source, field, found=value, allowed=allowed)
    name = stated.get("distribution")
    if not isinstance(name, str) or name not in known:
        nearest = nearest_name(str(name), known)
        place = f"{field}.distribution"
        raise InputError(source, place, found=str(name), allowed=", ".join(known), nearest=nearest)
    parts = known[name]
    for part in stated:
        if part != "distribution" and part not in parts:
            allowed, nearest = ", ".join(parts) or "none", nearest_name(part, parts)
            why = f"unknown parameter of {name}"
            raise InputError(source, f"{field}.{part}", why=why, allowed=allowed, nearest=nearest)
    given: dict[str, ParameterOf] = {}
    for part, what in parts.items():
        place = f"{field}.{part}"
        if part in stated:
            given[part] = _parameter(part, what, stated[part], source, place)
        elif what.needed:
            raise InputError(source, place, why="missing", allowed=what.allowed)
    _check(name, given, source, field)
    return Distribution(name, tuple(given.items()))


def _parameter(part: str, what: Part, value: object, source: str, place: str) -> ParameterOf:
    if part == _LENGTH:
        return size_distribution(value, source, place)
    if part == _SIZES:
        return _table(value, source, place)
    return _read(what, value, source, place)


def _read(what: Part, value: object, source: str, place: str) -> Number:
    try:
        return what.read(value)
    except UnitError as error:
        raise InputError(
            source, place, found=value, allowed=what.allowed, nearest=error.nearest
        ) from None
    except ValueError:
        raise InputError(source, place, found=value, allowed=what.allowed) from None


def _table(value: object, source: str, place: str) -> tuple[tuple[Number, Number], ...]:
    allowed = "a list of [size, weight], weights above 0"
    if not isinstance(value, list) or not value:
        raise InputError(source, place, found=value, allowed=allowed)
    pairs: list[tuple[Number, Number]] = []
    for index, pair in enumerate(value):
        if not isinstance(pair, list) or len(pair) != 2:
            raise InputError(source, f"{place}[{index}]", found=pair, allowed=allowed)
        size = _read(_SIZE, pair[0], source, f"{place}[{index}][0]")
        pairs.append((size, _read(_ABOVE_ZERO, pair[1], source, f"{place}[{index}][1]")))
    return tuple(pairs)


def _check(name: str, given: Mapping[str, ParameterOf], source: str, field: str) -> None:
    low, high = given.get("low"), given.get("high")
    if isinstance(low, int) and isinstance(high, int) and low > high:
        raise InputError(source, f"{field}.high", found=high, allowed=f"at least low, {low}")
    mean, theta = given.get("mean"), given.get("theta")
    if name == "normal" and not low <= mean <= high:  # type: ignore[operator]
        raise InputError(source, f"{field}.mean", found=mean, allowed="from low to high")
    if name == "pareto" and not theta < high:  # type: ignore[operator]
        raise InputError(source, f"{field}.theta", found=theta, allowed=f"below high, {high}")
    if ("key_a" in given) != ("key_b" in given):
        missing = "key_b" if "key_a" in given else "key_a"
        why = "missing beside the other of key_a and key_b"
        raise InputError(source, f"{field}.{missing}", why=why)
    if "key_grains" in given and "key_a" not in given:
        why = "given without key_a and key_b"
        raise InputError(source, f"{field}.key_grains", why=why)
    if name == "ranges" and not any(given.get(part) for part in "ac"):
        raise InputError(source, f"{field}.a", why="a and c are 0", allowed="one of them above 0")


# ----------
# The mean and the largest of what a distribution of sizes draws.
#
# Means are what memory models, reports and advice go by. They are exact where there is a closed
# form, and taken over quantiles where there is none.

_QUANTILES = 4096
_SUMMED = 1000  # ranks whose terms are summed one by one; an integral takes the rest


def mean_size(distribution: Distribution) -> float:
    """The mean size that `distribution` draws. Raises KeyError for one that is not of sizes."""
    return _MEANS[distribution.name](dict(distribution.parameters))


def largest_size(distribution: Distribution) -> int:
    """The largest size that `distribution` can draw."""
    given = dict(distribution.parameters)
    match distribution.name:
        case "constant":
            return int(_number(given, "size"))
        case "table":
            return max(int(size) for size, _ in _pairs(given))
        case "row":
            fields, length = _row(given)
            return int(_number(given, "names_bytes")) + fields * (8 + largest_size(length))
    return int(_number(given, "high"))


def mean_key_bytes(workload: Workload) -> float:
    """The mean length of a key."""
    return (
        float(workload.key_bytes) if workload.key_sizes is None else mean_size(workload.key_sizes)
    )


def data_bytes(workload: Workload) -> int:
    """Bytes of the keys and values of `num` records."""
    return round(workload.num * (mean_key_bytes(workload) + workload.value_bytes))


Given = Mapping[str, ParameterOf]


def _number(given: Given, name: str) -> float:
    value = given[name]
    if not isinstance(value, int | float):
        raise TypeError(f"{name} is {value!r}")
    return float(value)


def _row(given: Given) -> tuple[int, Distribution]:
    length = given["length"]
    if not isinstance(length, Distribution):
        raise TypeError(f"length is {length!r}")
    return int(_number(given, "fields")), length


def _pairs(given: Given) -> tuple[tuple[Number, Number], ...]:
    pairs = given["sizes"]
    if not isinstance(pairs, tuple):
        raise TypeError(f"sizes is {pairs!r}")
    return pairs


def _mean_of_row(given: Given) -> float:
    """Before name and value of each field stand 4 bytes with their lengths, as in YCSB-cpp."""
    fields, length = _row(given)
    return _number(given, "names_bytes") + fields * (8 + mean_size(length))


def _mean_of_table(given: Given) -> float:
    pairs = _pairs(given)
    return math.fsum(size * weight for size, weight in pairs) / math.fsum(w for _, w in pairs)


def _power_sum(count: int, exponent: float) -> float:
    """The sum of i^exponent for i from 1 to `count`, by the midpoint rule beyond _SUMMED."""
    head = math.fsum(float(i) ** exponent for i in range(1, min(count, _SUMMED) + 1))
    if count <= _SUMMED:
        return head
    low, high = _SUMMED + 0.5, count + 0.5
    if exponent == -1:
        return head + math.log(high / low)
    upper, lower = (math.pow(x, exponent + 1) for x in (high, low))
    return head + (upper - lower) / (exponent + 1)


def _mean_of_zipfian(given: Given) -> float:
    low, theta = _number(given, "low"), _number(given, "theta")
    count = int(_number(given, "high") - low) + 1
    return low - 1 + _power_sum(count, 1 - theta) / _power_sum(count, -theta)


def _over_quantiles(
    quantile: Callable[[float], float], share_low: float, share_high: float
) -> float:
    """The mean of what lies between two shares of a distribution."""
    step = (share_high - share_low) / _QUANTILES
    return fmean(quantile(share_low + (i + 0.5) * step) for i in range(_QUANTILES))


def _mean_of_normal(given: Given) -> float:
    normal = NormalDist(_number(given, "mean"), _number(given, "sd"))
    low, high = _number(given, "low"), _number(given, "high")
    return _over_quantiles(normal.inv_cdf, normal.cdf(low), normal.cdf(high))


def _mean_of_pareto(given: Given) -> float:
    """Of the generalised Pareto distribution: F(x) = 1 - (1 + k (x - theta) / sigma)^(-1 / k)."""
    theta, k, sigma = (_number(given, name) for name in ("theta", "k", "sigma"))

    def share_above(x: float) -> float:
        if x <= theta:
            return 1.0
        if k == 0:
            return math.exp(-(x - theta) / sigma)
        return math.pow(max(0.0, 1 + k * (x - theta) / sigma), -1 / k)

    def quantile(share: float) -> float:
        if k == 0:
            return theta - sigma * math.log1p(-share)
        return theta + sigma * (math.pow(1 - share, -k) - 1) / k

    low, high = _number(given, "low"), _number(given, "high")
    return _over_quantiles(quantile, 1 - share_above(low), 1 - share_above(high))


_MEANS: dict[str, Callable[[Given], float]] = {
    "constant": lambda given: _number(given, "size"),
    "uniform": lambda given: (_number(given, "low") + _number(given, "high")) / 2,
    "zipfian": _mean_of_zipfian,
    "normal": _mean_of_normal,
    "pareto": _mean_of_pareto,
    "row": _mean_of_row,
    "table": _mean_of_table,
}
