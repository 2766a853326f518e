"""The distributions of keys and of sizes: their parameters, and the reading of what a file states.

`docs/workloads.md` says what each means. A distribution is stated as a mapping with its name under
`distribution`; one without parameters by its name alone, and a constant size by its number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from pydantic import PlainSerializer, PlainValidator, SerializationInfo

from lsmtune.errors import FieldError, check_names
from lsmtune.model.fields import refusing
from lsmtune.model.setting import Domain, above, number, read_number, real, size, whole

Number = int | float
ParameterOf: TypeAlias = "Number | tuple[tuple[Number, Number], ...] | Distribution"


@dataclass(frozen=True)
class Distribution:
    """How keys, sizes or lengths are drawn: a name, and what it needs, in the driver's words.

    `docs/workloads.md` lists the names. A parameter is a number, a list of pairs (`table`), or
    another distribution (`row`).
    """

    name: str
    parameters: tuple[tuple[str, ParameterOf], ...] = ()

    @classmethod
    def of(cls, name: str, **parameters: ParameterOf) -> Distribution:
        """The distribution `name` with `parameters`, in the order given."""
        return cls(name, tuple(parameters.items()))

    def get(self, name: str) -> ParameterOf | None:
        """The parameter `name`; None where it is not given."""
        return dict(self.parameters).get(name)


SIZE_MAX = 2**30
WEIGHT_MAX = 1e100  # of which sums are numbers
_LENGTH, _SIZES = "length", "sizes"

_ABOVE_ZERO = above(0)
_ANY = number("a number", math.isfinite)
_FRACTION = real(0, 1)
# The driver's limits (`driver/src/run/check/distributions.rs`), which it tells run by run.
ITEMS_PER_RECORD_MAX = 1000  # a number that is of no record yet is drawn again
_SHARE = above(0, 1)
_SIZE = size(0, SIZE_MAX)
_THETA_MAX, _THETA_GAP = 10, 1e-6
_THETA = number(
    f"a number above 0, at most {_THETA_MAX}, that is not 1",
    lambda theta: 0 < theta <= _THETA_MAX and abs(theta - 1) >= _THETA_GAP,
)
_SOME = whole(1)
_WEIGHT = above(0, WEIGHT_MAX)
_PER_CENT = number("a number above 0, below 100", lambda share: 0 < share < 100, unit="%")
KEY_DISTRIBUTIONS: Mapping[str, Mapping[str, Domain]] = {
    "uniform": {},
    "sequential": {},
    "zipfian": {"theta": _THETA},
    "scrambled_zipfian": {"theta": _THETA, "items": _SOME},
    "latest": {"theta": _THETA},
    "hotspot": {"hot_data": _SHARE, "hot_operations": _FRACTION},
    "exponential": {"percentile": _PER_CENT, "fraction": _ABOVE_ZERO},
    "power": {"a": _SHARE, "b": _ABOVE_ZERO, "grains": _SOME},
    "ranges": {
        "ranges": whole(1, 2**20),
        **dict.fromkeys("abcd", _ANY),
        "key_a": _SHARE,
        "key_b": _ABOVE_ZERO,
        "key_grains": _SOME,
    },
}
SIZE_DISTRIBUTIONS: Mapping[str, Mapping[str, Domain]] = {
    "constant": {"size": _SIZE},
    "uniform": {"low": _SIZE, "high": _SIZE},
    "zipfian": {"low": _SIZE, "high": _SIZE, "theta": _THETA},
    "normal": {"mean": _ANY, "sd": _ABOVE_ZERO, "low": _SIZE, "high": _SIZE},
    "pareto": {"theta": _ANY, "k": _ANY, "sigma": _ABOVE_ZERO, "low": _SIZE, "high": _SIZE},
    "row": {
        "fields": whole(1, 10_000),
        "names_bytes": _SIZE,
        _LENGTH: Domain("a distribution of sizes", read_number),
    },
    "table": {_SIZES: Domain("a list of [size, weight]", read_number)},
}
_MAY_BE_MISSING = ("items", "grains", "key_a", "key_b", "key_grains")


def key_distribution(value: object, field: str = "") -> Distribution:
    """How keys are chosen, as a file states it. Raises InputError within `field`."""
    return _distribution(value, KEY_DISTRIBUTIONS, field)


def size_distribution(value: object, field: str = "") -> Distribution:
    """How sizes are drawn, as a file states it. Raises InputError within `field`."""
    is_size = isinstance(value, int | str) and not isinstance(value, bool)
    if is_size and not str(value).isidentifier():
        return Distribution.of("constant", size=_SIZE.parse(value, "", field))
    return _distribution(value, SIZE_DISTRIBUTIONS, field)


def distribution_document(distribution: Distribution) -> dict[str, Any]:
    """The mapping that states `distribution`; the inverse of reading it."""

    def plain(value: ParameterOf) -> object:
        if isinstance(value, Distribution):
            return distribution_document(value)
        return [list(pair) for pair in value] if isinstance(value, tuple) else value

    return {
        "distribution": distribution.name,
        **{name: plain(value) for name, value in distribution.parameters},
    }


def _distribution(
    value: object, known: Mapping[str, Mapping[str, Domain]], field: str
) -> Distribution:
    stated = {"distribution": value} if isinstance(value, str) else value
    if not isinstance(stated, dict):
        allowed = f"a mapping with distribution: {', '.join(known)}"
        raise FieldError(field, found=value, allowed=allowed)
    name = stated.get("distribution")
    if not isinstance(name, str) or name not in known:
        why = "missing" if name is None else ""
        raise FieldError(f"{field}.distribution", why=why, found=name and str(name), known=known)
    parts = known[name]
    given_parts = [part for part in stated if part != "distribution"]
    check_names(given_parts, parts, "", field, why=f"unknown parameter of {name}")
    given: dict[str, ParameterOf] = {}
    for part, domain in parts.items():
        place = f"{field}.{part}"
        if part in stated:
            value = stated[part]
            if part == _LENGTH:
                given[part] = size_distribution(value, place)
            elif part == _SIZES:
                given[part] = _table(value, place)
            else:
                given[part] = domain.parse(value, "", place)
        elif part not in _MAY_BE_MISSING:
            raise FieldError(place, why="missing", allowed=domain.allowed)
    _check(name, given, field)
    return Distribution(name, tuple(given.items()))


def _table(value: object, place: str) -> tuple[tuple[Number, Number], ...]:
    allowed = "a list of [size, weight], weights above 0"
    if not isinstance(value, list) or not value:
        raise FieldError(place, found=value, allowed=allowed)
    pairs: list[tuple[Number, Number]] = []
    for index, pair in enumerate(value):
        if not isinstance(pair, list) or len(pair) != 2:
            raise FieldError(f"{place}[{index}]", found=pair, allowed=allowed)
        length = _SIZE.parse(pair[0], "", f"{place}[{index}][0]")
        pairs.append((length, _WEIGHT.parse(pair[1], "", f"{place}[{index}][1]")))
    return tuple(pairs)


def _check(name: str, given: Mapping[str, ParameterOf], field: str) -> None:
    low, high = given.get("low"), given.get("high")
    if isinstance(low, int) and isinstance(high, int) and low > high:
        raise FieldError(f"{field}.high", found=high, allowed=f"at least low, {low}")
    mean = given.get("mean")
    if name == "normal" and not low <= mean <= high:  # type: ignore[operator]
        raise FieldError(f"{field}.mean", found=mean, allowed="from low to high")
    if name == "pareto":
        _check_pareto(field, **given)  # type: ignore[arg-type]
    if ("key_a" in given) != ("key_b" in given):
        missing = "key_b" if "key_a" in given else "key_a"
        why = "missing beside the other of key_a and key_b"
        raise FieldError(f"{field}.{missing}", why=why)
    if "key_grains" in given and "key_a" not in given:
        why = "given without key_a and key_b"
        raise FieldError(f"{field}.key_grains", why=why)
    if name == "ranges":
        _check_ranges(field, **given)  # type: ignore[arg-type]
    length = given.get(_LENGTH)
    if isinstance(length, Distribution) and length.name == "row":
        allowed = ", ".join(other for other in SIZE_DISTRIBUTIONS if other != "row")
        raise FieldError(f"{field}.{_LENGTH}.distribution", found="row", allowed=allowed)


_RANGE_SHARE_LEAST = 1e-16  # the driver counts less as 0


def _check_ranges(
    field: str, *, ranges: int, a: float, b: float, c: float, d: float, **_within: float
) -> None:
    try:
        shares = (a * math.exp(b * i) + c * math.exp(d * i) for i in range(1, ranges + 1))
        total = sum(share for share in shares if not share < _RANGE_SHARE_LEAST)
    except OverflowError:
        total = math.inf
    if not 0 < total < math.inf:
        why = "the share of some range is endless" if total else "no range has a share above 0"
        allowed = "numbers by which range i has a share of a exp(b i) + c exp(d i)"
        raise FieldError(f"{field}.a", found=a, why=why, allowed=allowed)


_SHARE_LEAST = 1e-300  # of less, the logarithm may be that of 0


def _check_pareto(field: str, *, theta: float, k: float, sigma: float, low: int, high: int) -> None:
    if theta >= high:
        raise FieldError(f"{field}.theta", found=theta, allowed=f"below high, {high}")
    above, beyond = (pareto_above(size, theta, k, sigma) for size in (low, high + 1))
    if low < high and above - beyond < _SHARE_LEAST:
        # As the driver refuses it; and who draws until a size is within would never end.
        why = "no size from low to high is ever drawn"
        allowed = f"below theta - sigma / k, {theta - sigma / k:g}" if k < 0 else "nearer to theta"
        raise FieldError(f"{field}.low", found=low, why=why, allowed=allowed)


def pareto_above(size: float, theta: float, k: float, sigma: float) -> float:
    """The share above `size` of the generalised Pareto distribution.

    1 - F(x) = (1 + k (x - theta) / sigma)^(-1 / k); see `docs/measuring.md`.
    """
    if size <= theta:
        return 1.0
    if k == 0:
        return math.exp(-(size - theta) / sigma)
    return math.pow(max(0.0, 1 + k * (size - theta) / sigma), -1 / k)


def _stated(distribution: Distribution, info: SerializationInfo) -> Any:
    """By its name alone where it has no parameters, and the context is that of a file."""
    short = info.context is not None and not distribution.parameters
    return distribution.name if short else distribution_document(distribution)


KeyDistribution = Annotated[
    Distribution, PlainValidator(refusing(key_distribution)), PlainSerializer(_stated)
]
SizeDistribution = Annotated[
    Distribution, PlainValidator(refusing(size_distribution)), PlainSerializer(_stated)
]
